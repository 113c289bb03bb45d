// clang-format off

// AMX with BF16 (Sapphire Rapids and later): tiles of up to 16 rows of 64 bytes, and tdpbf16ps, which multiplies them.
// Follows flush.h. With AMX_MODEL, C in place of the instructions, with the same bits: for tests on other machines.
//
// A tile is a literal from 0 to 7. amx_configure gives all tiles their shapes, and amx_release ends their use; both
// belong to a thread. A product takes rows of A, with pairs of elements k and k + 1, and rows of pairs of B: row i of
// these has elements 2i and 2i + 1 of each column. All is as ldtilecfg, tileloadd, tdpbf16ps and so on say in Intel's
// manual, with palette 1.

// The shapes of tiles, as ldtilecfg reads them: bytes in a row, up to 64, and rows, up to 16. 0 and 0: not used.
typedef struct { uint8_t palette, first_row, none[14]; uint16_t row_nbytes[16]; uint8_t rows[16]; } amx_shapes;

// The leaf of CPUID that lists AMX, and the bits of XCR0 that say that the system saves tiles.
#if defined __x86_64__ && defined __GNUC__ && !defined AMX_MODEL
static inline int amx_processor_has(void) {
  uint32_t a = 1, b, c = 0, d, low, high;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (!(c >> 27 & 1)) return 0; // xgetbv
  a = 0, c = 0;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (a < 7) return 0;
  a = 7, c = 0;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (!(d >> 22 & 1) || !(d >> 24 & 1)) return 0; // AMX-BF16, AMX-TILE
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low >> 17 & 3) == 3;
}
#endif

// Asks Linux for the use of tiles, once a process: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA). Programs that
// must not make system calls define AMX_PERMITTED: 1 if the process has the permission, 0 if it has not.
#if defined __x86_64__ && defined __linux__ && defined __GNUC__ && !defined AMX_PERMITTED
static inline int amx_ask(void) {
  long status = 158;
  __asm__ volatile("syscall" : "+a"(status) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
  return status == 0;
}
#define AMX_PERMITTED amx_ask()
#endif

#ifndef AMX_PERMITTED
#define AMX_PERMITTED 0
#endif

// Whether this process can use amx_configure and what follows.
static inline int amx_is_available(void) {
#if defined AMX_MODEL
  return 1;
#elif defined __x86_64__ && defined __GNUC__
  return amx_processor_has() && AMX_PERMITTED;
#else
  return 0;
#endif
}

// The tiles of a thread, and its shapes. What a processor refuses ends the program.
#ifdef AMX_MODEL
static _Thread_local struct { amx_shapes shapes; uint8_t bytes[8][16][64]; } amx_state;
static inline void amx_expect(int is_valid) { if (!is_valid) __builtin_trap(); }
static inline uint8_t *amx_tile(int t) {
  amx_expect(amx_state.shapes.palette == 1 && amx_state.shapes.rows[t] > 0);
  return amx_state.bytes[t][0];
}
static inline void amx_model_configure(const amx_shapes *shapes) {
  amx_expect(shapes->palette == 1);
  for (int t = 0; t < 16; t++) {
    const int nbytes = shapes->row_nbytes[t], rows = shapes->rows[t];
    amx_expect(nbytes <= 64 && rows <= 16 && (nbytes > 0) == (rows > 0) && (t < 8 || !rows));
  }
  memset(&amx_state, 0, sizeof amx_state);
  amx_state.shapes = *shapes;
}
static inline void amx_model_release(void) { memset(&amx_state, 0, sizeof amx_state); }
static inline void amx_model_zero(int t) { memset(amx_tile(t), 0, sizeof amx_state.bytes[t]); }
static inline void amx_model_load(int t, const void *p, ptrdiff_t stride) {
  amx_model_zero(t);
  for (ptrdiff_t row = 0; row < amx_state.shapes.rows[t]; row++)
    memcpy(amx_tile(t) + row * 64, (const char *)p + row * stride, amx_state.shapes.row_nbytes[t]);
}
static inline void amx_model_store(int t, void *p, ptrdiff_t stride) {
  for (ptrdiff_t row = 0; row < amx_state.shapes.rows[t]; row++)
    memcpy((char *)p + row * stride, amx_tile(t) + row * 64, amx_state.shapes.row_nbytes[t]);
}
static inline float amx_element(int t, int row, int i) {
  uint16_t h;
  memcpy(&h, amx_tile(t) + (ptrdiff_t)row * 64 + (ptrdiff_t)i * 2, sizeof h);
  return f32_from_bf16(h);
}
static inline float amx_model_sum(int a, int row, int b, int column, int pairs, float sum) {
  float even = 0, odd = 0;
  for (int k = 0; k < pairs; k++) {
    even = f32_fma_flushed(amx_element(a, row, 2 * k), amx_element(b, k, 2 * column), even);
    odd = f32_fma_flushed(amx_element(a, row, 2 * k + 1), amx_element(b, k, 2 * column + 1), odd);
  }
  return f32_add_flushed(sum, f32_add_flushed(even, odd));
}
static inline void amx_model_multiply(int t, int a, int b) {
  const amx_shapes *s = &amx_state.shapes;
  amx_expect(t != a && t != b && a != b && s->rows[t] == s->rows[a] && s->row_nbytes[t] == s->row_nbytes[b] &&
             s->row_nbytes[a] == 4 * s->rows[b] && s->row_nbytes[a] % 4 == 0 && s->row_nbytes[t] % 4 == 0);
  for (int row = 0; row < s->rows[t]; row++)
    for (int column = 0; column < s->row_nbytes[t] / 4; column++) {
      uint8_t *at = amx_tile(t) + (ptrdiff_t)row * 64 + (ptrdiff_t)column * 4;
      float sum;
      memcpy(&sum, at, sizeof sum);
      sum = amx_model_sum(a, row, b, column, s->rows[b], sum);
      memcpy(at, &sum, sizeof sum);
    }
}
#endif

#ifdef AMX_MODEL
#define amx_configure(shapes) amx_model_configure(shapes)
#else
#define amx_configure(shapes) __extension__({ const amx_shapes *shapes_ = (shapes); \
  __asm__ volatile("ldtilecfg %0" : : "m"(*shapes_)); })
#endif

#ifdef AMX_MODEL
#define amx_release() amx_model_release()
#else
#define amx_release() __asm__ volatile("tilerelease" : : : "memory")
#endif

#ifdef AMX_MODEL
#define amx_zero(t) amx_model_zero(t)
#else
#define amx_zero(t) __asm__ volatile("tilezero %%tmm" #t : : )
#endif

// Loads and stores rows that are `stride` bytes apart.
#ifdef AMX_MODEL
#define amx_load(t, p, stride) amx_model_load(t, p, stride)
#else
#define amx_load(t, p, stride) \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"((const void *)(p)), "r"((ptrdiff_t)(stride)) : "memory")
#endif

#ifdef AMX_MODEL
#define amx_store(t, p, stride) amx_model_store(t, p, stride)
#else
#define amx_store(t, p, stride) \
  __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"((void *)(p)), "r"((ptrdiff_t)(stride)) : "memory")
#endif

// Adds to tile t the products of the rows of a and the pairs of b.
#ifdef AMX_MODEL
#define amx_multiply(t, a, b) amx_model_multiply(t, a, b)
#else
#define amx_multiply(t, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #t : : )
#endif
