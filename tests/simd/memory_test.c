// The vector vocabulary of one ISA on memory, between two guard pages: loads, stores, gathers and scatters of every
// type, rows to lanes and back, and halves of bytes. Prints a line `name hash` for each, as simd_test.c does.
#include "tests/simd/lanes.h"

#include <sys/mman.h>
#include <unistd.h>

// One kind of element and its functions, with numbers and lanes in f64.
typedef struct Access {
  const char *name;
  int nbytes; // of an element
  double (*get)(const void *p);
  void (*put)(void *p, double number);
  void (*load)(double *lanes, const void *p);
  void (*load_n)(double *lanes, const void *p, int n);
  void (*gather)(double *lanes, const void *p, ptrdiff_t stride);
  void (*gather_n)(double *lanes, const void *p, ptrdiff_t stride, int n);
  void (*store)(void *p, const double *lanes);
  void (*store_n)(void *p, const double *lanes, int n);
  void (*stream)(void *p, const double *lanes);
  void (*scatter)(void *p, ptrdiff_t stride, const double *lanes);
  void (*scatter_n)(void *p, ptrdiff_t stride, const double *lanes, int n);
} Access;

static vec v_of(const double *lanes) {
  return v_from_d(d_load(lanes));
}
static dvec d_of(const double *lanes) {
  return d_load(lanes);
}
static void v_to(double *lanes, vec a) {
  d_store(lanes, d_from_v(a));
}
static void d_to(double *lanes, dvec a) {
  d_store(lanes, a);
}

static float f32_from_f64(double x) {
  return (float)x;
}
static double f64_from_f32(float x) {
  return (double)x;
}
static double f64_from_f64(double x) {
  return x;
}
static uint16_t bf16_from_f64(double x) {
  return bf16_from_f32((float)x);
}
static double f64_from_bf16(uint16_t x) {
  return (double)f32_from_bf16(x);
}
static uint16_t f16_from_f64(double x) {
  return f16_from_f32((float)x);
}
static double f64_from_f16(uint16_t x) {
  return (double)f32_from_f16(x);
}
// Integers of 32 and 64 bits, which the vocabulary streams none of.
#define WIDE(name, type)                                                                                               \
  static double f64_from_##name(type x) {                                                                              \
    return (double)x;                                                                                                  \
  }                                                                                                                    \
  static void d_stream_##name(type *p, dvec a) {                                                                       \
    d_store_##name(p, a);                                                                                              \
  }
WIDE(s32, int32_t)
WIDE(u32, uint32_t)
WIDE(s64, int64_t)
WIDE(u64, uint64_t)

static uint8_t b8_from_f64(double x) {
  return x != 0;
}
static double f64_from_b8(uint8_t x) {
  return x != 0;
}
static void v_stream_b8(uint8_t *p, vec a) {
  v_store_b8(p, a);
} // the vocabulary has none

// Numbers of 8 bits and integers of 16, which the vocabulary streams none of.
#define BYTES(name, type)                                                                                              \
  static type name##_from_f64(double x) {                                                                              \
    return name##_from_f32((float)x);                                                                                  \
  }                                                                                                                    \
  static void v_stream_##name(type *p, vec a) {                                                                        \
    v_store_##name(p, a);                                                                                              \
  }
BYTES(s8, int8_t)
BYTES(u8, uint8_t)
BYTES(s16, int16_t)
BYTES(u16, uint16_t)
BYTES(e4m3, uint8_t)
BYTES(e5m2, uint8_t)

static double f64_from_s8(int8_t x) {
  return x;
}
static double f64_from_u8(uint8_t x) {
  return x;
}
static double f64_from_s16(int16_t x) {
  return x;
}
static double f64_from_u16(uint16_t x) {
  return x;
}
static double f64_from_e4m3(uint8_t x) {
  return (double)f32_from_e4m3(x);
}
static double f64_from_e5m2(uint8_t x) {
  return (double)f32_from_e5m2(x);
}

#define ACCESS(name, type, V, _name)                                                                                   \
  static double name##_get(const void *p) {                                                                            \
    return f64_from_##name(*(const type *)p);                                                                          \
  }                                                                                                                    \
  static void name##_put(void *p, double x) {                                                                          \
    *(type *)p = name##_from_f64(x);                                                                                   \
  }                                                                                                                    \
  static void name##_load(double *l, const void *p) {                                                                  \
    V##_to(l, V##_load##_name((const type *)p));                                                                       \
  }                                                                                                                    \
  static void name##_load_n(double *l, const void *p, int n) {                                                         \
    V##_to(l, V##_load_n##_name((const type *)p, n));                                                                  \
  }                                                                                                                    \
  static void name##_gather(double *l, const void *p, ptrdiff_t stride) {                                              \
    V##_to(l, V##_gather##_name((const type *)p, stride));                                                             \
  }                                                                                                                    \
  static void name##_gather_n(double *l, const void *p, ptrdiff_t stride, int n) {                                     \
    V##_to(l, V##_gather_n##_name((const type *)p, stride, n));                                                        \
  }                                                                                                                    \
  static void name##_store(void *p, const double *l) {                                                                 \
    V##_store##_name((type *)p, V##_of(l));                                                                            \
  }                                                                                                                    \
  static void name##_store_n(void *p, const double *l, int n) {                                                        \
    V##_store_n##_name((type *)p, V##_of(l), n);                                                                       \
  }                                                                                                                    \
  static void name##_stream(void *p, const double *l) {                                                                \
    V##_stream##_name((type *)p, V##_of(l));                                                                           \
    v_fence();                                                                                                         \
  }                                                                                                                    \
  static void name##_scatter(void *p, ptrdiff_t stride, const double *l) {                                             \
    V##_scatter##_name((type *)p, stride, V##_of(l));                                                                  \
  }                                                                                                                    \
  static void name##_scatter_n(void *p, ptrdiff_t stride, const double *l, int n) {                                    \
    V##_scatter_n##_name((type *)p, stride, V##_of(l), n);                                                             \
  }                                                                                                                    \
  static const Access name##_access = {#name,         sizeof(type),   name##_get,      name##_put,   name##_load,      \
                                       name##_load_n, name##_gather,  name##_gather_n, name##_store, name##_store_n,   \
                                       name##_stream, name##_scatter, name##_scatter_n};

ACCESS(f32, float, v, )
ACCESS(f64, double, d, )
ACCESS(bf16, uint16_t, v, _bf16)
ACCESS(f16, uint16_t, v, _f16)
ACCESS(s32, int32_t, d, _s32)
ACCESS(s64, int64_t, d, _s64)
ACCESS(b8, uint8_t, v, _b8)
ACCESS(s8, int8_t, v, _s8)
ACCESS(u8, uint8_t, v, _u8)
ACCESS(s16, int16_t, v, _s16)
ACCESS(u16, uint16_t, v, _u16)
ACCESS(u32, uint32_t, d, _u32)
ACCESS(u64, uint64_t, d, _u64)
ACCESS(e4m3, uint8_t, v, _e4m3)
ACCESS(e5m2, uint8_t, v, _e5m2)

// The page between the guards.
static unsigned char *page;
static ptrdiff_t page_nbytes;

static bool map_page(void) {
  page_nbytes = sysconf(_SC_PAGESIZE);
  size_t nbytes = (size_t)page_nbytes;
  unsigned char *p = mmap(NULL, 3 * nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED || mprotect(p + nbytes, nbytes, PROT_READ | PROT_WRITE)) return false;
  page = p + nbytes;
  return true;
}

enum { UNTOUCHED = 0xa5 };

// The first of n elements that are `stride` apart and end, or begin, where the page does.
static unsigned char *place(const Access *access, ptrdiff_t stride, int n, bool at_end) {
  ptrdiff_t reach = n ? (n - 1) * stride * access->nbytes : 0;
  ptrdiff_t low = at_end ? page_nbytes - (n ? access->nbytes : 0) - (reach < 0 ? -reach : reach) : 0;
  memset(page, UNTOUCHED, (size_t)page_nbytes);
  return page + low - (reach < 0 ? reach : 0);
}

// The number as an element holds it.
static double element(const Access *access, double number) {
  double cell;
  access->put(&cell, number);
  return access->get(&cell);
}

static void expect_lanes(const Access *access, const double *lanes, int n) {
  for (int j = 0; j < LANES; j++) expect_number(lanes[j], j < n ? element(access, j + 1) : 0);
}

// The n elements are 1, 2, 3… as far as they can be, and nothing else was touched.
static void expect_elements(const Access *access, const unsigned char *p, ptrdiff_t stride, int n) {
  int touched = 0;
  for (int j = 0; j < n; j++) expect_number(access->get(p + j * stride * access->nbytes), element(access, j + 1));
  for (ptrdiff_t i = 0; i < page_nbytes; i++) touched += page[i] != UNTOUCHED;
  expect(touched == n * access->nbytes, touched, n * access->nbytes);
}

static unsigned char *place_elements(const Access *access, ptrdiff_t stride, int n, bool at_end) {
  unsigned char *p = place(access, stride, n, at_end);
  for (int j = 0; j < n; j++) access->put(p + j * stride * access->nbytes, j + 1);
  return p;
}

static void test_reading(const Access *access, ptrdiff_t stride, int n, bool at_end) {
  const unsigned char *p = place_elements(access, stride, n, at_end);
  double lanes[LANES];
  access->gather_n(lanes, p, stride, n);
  expect_lanes(access, lanes, n);
  if (n == LANES) {
    access->gather(lanes, p, stride);
    expect_lanes(access, lanes, n);
  }
  if (stride != 1) return;
  access->load_n(lanes, p, n);
  expect_lanes(access, lanes, n);
  if (n == LANES) {
    access->load(lanes, p);
    expect_lanes(access, lanes, n);
  }
}

static void test_writing(const Access *access, ptrdiff_t stride, int n, bool at_end) {
  static const double lanes[LANES] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  unsigned char *p = place(access, stride, n, at_end);
  access->scatter_n(p, stride, lanes, n);
  expect_elements(access, p, stride, n);
  if (n == LANES) {
    p = place(access, stride, n, at_end);
    access->scatter(p, stride, lanes);
    expect_elements(access, p, stride, n);
  }
  if (stride != 1) return;
  p = place(access, stride, n, at_end);
  access->store_n(p, lanes, n);
  expect_elements(access, p, stride, n);
  if (n == LANES) {
    p = place(access, stride, n, at_end);
    access->store(p, lanes);
    expect_elements(access, p, stride, n);
    p = place(access, stride, n, at_end);
    access->stream(p, lanes);
    expect_elements(access, p, stride, n);
  }
}

static void test_access(const Access *access) {
  static const ptrdiff_t strides[] = {1, 2, 7, -1, -3};
  begin(access->name);
  for (size_t i = 0; i < sizeof strides / sizeof *strides; i++) {
    for (int n = 0; n <= LANES; n++) {
      for (int at_end = 0; at_end < 2; at_end++) {
        test_reading(access, strides[i], n, at_end);
        test_writing(access, strides[i], n, at_end);
      }
    }
  }
  end();
}

// Sixteen rows to lanes and back; the last row ends where the page does.
#define ROWS(name, type, _name)                                                                                        \
  static void test_rows_##name(void) {                                                                                 \
    begin("rows of " #name);                                                                                           \
    for (int width = 1; width <= 64; width += width < 20 ? 1 : 11) {                                                   \
      for (int gap = 0; gap < 3; gap += 2) {                                                                           \
        float t[64 * LANES];                                                                                           \
        const ptrdiff_t stride = width + gap, nelems = (LANES - 1) * stride + width;                                   \
        if (nelems * (ptrdiff_t)sizeof(type) > page_nbytes) continue;                                                  \
        type *p = (type *)(void *)(page + page_nbytes) - nelems;                                                       \
        for (ptrdiff_t i = 0; i < nelems; i++) p[i] = name##_from_f64((double)(i % 251));                              \
        v_load_rows##_name(t, p, stride, width);                                                                       \
        for (int c = 0; c < width; c++)                                                                                \
          for (int r = 0; r < LANES; r++) expect_number((double)t[c * LANES + r], (double)((r * stride + c) % 251));   \
        for (ptrdiff_t i = 0; i < nelems; i++) p[i] = name##_from_f64(-1);                                             \
        v_store_rows##_name(p, stride, t, width);                                                                      \
        for (ptrdiff_t i = 0; i < nelems; i++)                                                                         \
          expect_number(f64_from_##name(p[i]), i % stride < width ? (double)(i % 251) : -1);                           \
        if ((ptrdiff_t)LANES * width * (ptrdiff_t)sizeof(type) > page_nbytes) continue;                                \
        v_stream_rows##_name((type *)(void *)page, t, width);                                                          \
        v_fence();                                                                                                     \
        for (int i = 0; i < LANES * width; i++)                                                                        \
          expect_number(f64_from_##name(((type *)(void *)page)[i]), (double)((i / width * stride + i % width) % 251)); \
      }                                                                                                                \
    }                                                                                                                  \
    end();                                                                                                             \
  }

ROWS(f32, float, )
ROWS(bf16, uint16_t, _bf16)
ROWS(f16, uint16_t, _f16)

// Vectors of n rows, at neighbouring elements but for one row if `has_gap`, whose lanes are `stride` apart.
static void test_rows_of_vectors(int n, bool has_gap) {
  enum { MOST = 40, STRIDE = 64, AT = 3 };
  float x[LANES * STRIDE + MOST], t[MOST * LANES];
  const float *from[MOST];
  float *to[MOST];
  for (int i = 0; i < LANES * STRIDE + MOST; i++) x[i] = (float)(i % 1021);
  for (int r = 0; r < n; r++) from[r] = to[r] = x + r + (has_gap && r == n / 2 ? 5 : 0);
  v_gather_rows(t, from, AT, STRIDE, n);
  for (int r = 0; r < n; r++)
    for (int l = 0; l < LANES; l++) {
      expect_number((double)t[r * LANES + l], (double)from[r][AT + l * STRIDE]);
      t[r * LANES + l] = (float)(-r * LANES - l);
    }
  v_scatter_rows(to, AT, STRIDE, t, n);
  for (int r = 0; r < n && !has_gap; r++)
    for (int l = 0; l < LANES; l++) expect_number((double)to[r][AT + l * STRIDE], (double)t[r * LANES + l]);
  for (int l = 0; l < LANES; l++) expect_number((double)x[AT + l * STRIDE + MOST], (AT + l * STRIDE + MOST) % 1021);
}

static void test_near_rows(void) {
  begin("near rows");
  for (int n = 1; n < 34; n++)
    for (int has_gap = 0; has_gap < 2; has_gap++) test_rows_of_vectors(n, has_gap);
  end();
}

enum { OUTSIDE = -7 };

// Lanes along a tensor of `extent` elements, of which some may be outside of it.
static void test_lanes_within(const float *x, ptrdiff_t at, ptrdiff_t step, ptrdiff_t extent, int n) {
  float lanes[LANES];
  double wide[LANES];
  const v_span s = v_within(at, step, extent, n);
  vec a = v_set(OUTSIDE);
  dvec d = d_set(OUTSIDE);
  if (s.count) {
    const float *first = x + at + (ptrdiff_t)s.first * step;
    const vec part = step == 1 ? v_load_n(first, s.count) : v_gather_n(first, step, s.count);
    a = v_place(part, s, OUTSIDE);
    d = d_place(d_from_v(part), s, OUTSIDE);
  }
  v_store(lanes, a);
  d_store(wide, d);
  for (int j = 0; j < LANES; j++) {
    const ptrdiff_t i = at + j * step;
    const double wanted = j < n && i >= 0 && i < extent ? (double)x[i] : OUTSIDE;
    expect_number((double)lanes[j], wanted);
    expect_number(wide[j], wanted);
  }
}

static void test_within(void) {
  static const ptrdiff_t steps[] = {1, 2, 3, -1, -2};
  static const int counts[] = {0, 1, 7, LANES};
  begin("within");
  for (ptrdiff_t extent = 0; extent < 40; extent += extent < 20 ? 1 : 7) {
    for (int at_end = 0; at_end < 2; at_end++) {
      float *x = (float *)(void *)(at_end ? page + page_nbytes : page) - (at_end ? extent : 0);
      for (ptrdiff_t i = 0; i < extent; i++) x[i] = (float)(i + 1);
      for (size_t s = 0; s < sizeof steps / sizeof *steps; s++)
        for (size_t n = 0; n < sizeof counts / sizeof *counts; n++)
          for (ptrdiff_t at = -50; at < 80; at++) test_lanes_within(x, at, steps[s], extent, counts[n]);
    }
  }
  end();
}

static void test_booleans(void) {
  static const uint8_t bytes[LANES] = {0, 1, 2, 127, 128, 255};
  static const float numbers[LANES] = {0, -0.0F, 1, -3, 0x1p-149F, NAN, INFINITY};
  float lanes[LANES];
  uint8_t stored[LANES];
  begin("booleans");
  v_store(lanes, v_load_b8(bytes));
  v_store_b8(stored, v_load(numbers));
  for (int j = 0; j < LANES; j++) {
    expect_number((double)lanes[j], j >= 1 && j <= 5);
    expect_number(stored[j], j >= 2 && j <= 6);
  }
  end();
}

// Halves of bytes at any place and stride, beside others that must stay.
#define TEST_HALVES(name)                                                                                              \
  static void test_##name(void) {                                                                                      \
    begin(#name);                                                                                                      \
    for (int first = 0; first < 4; first++) {                                                                          \
      for (int stride = 1; stride < 4; stride++) {                                                                     \
        for (int n = 0; n <= LANES; n++) {                                                                             \
          uint8_t bytes[32], wanted[32];                                                                               \
          float lanes[LANES], back[LANES];                                                                             \
          for (int i = 0; i < 32; i++) bytes[i] = wanted[i] = (uint8_t)next();                                         \
          for (int j = 0; j < LANES; j++) lanes[j] = (float)((int)(next() % 40) - 20);                                 \
          for (int j = 0; j < n; j++) put_##name(wanted, (size_t)(first + j * stride), lanes[j]);                      \
          const bool is_whole = n == LANES, is_dense = stride == 1;                                                    \
          const size_t at = (size_t)first;                                                                             \
          const vec a = v_load(lanes);                                                                                 \
          if (is_dense && is_whole) v_store_##name(bytes, at, a);                                                      \
          else if (is_dense) v_store_n_##name(bytes, at, a, n);                                                        \
          else if (is_whole) v_scatter_##name(bytes, at, stride, a);                                                   \
          else v_scatter_n_##name(bytes, at, stride, a, n);                                                            \
          for (int i = 0; i < 32; i++) expect_number(bytes[i], wanted[i]);                                             \
          v_store(back, is_dense   ? (is_whole ? v_load_##name(bytes, at) : v_load_n_##name(bytes, at, n))             \
                        : is_whole ? v_gather_##name(bytes, at, stride)                                                \
                                   : v_gather_n_##name(bytes, at, stride, n));                                         \
          for (int j = 0; j < LANES; j++)                                                                              \
            expect_number((double)back[j], j < n ? (double)f32_from_##name(bytes, (size_t)(first + j * stride)) : 0);  \
          places o;                                                                                                    \
          for (int j = 0; j < LANES; j++) o.at[j] = 5 * j % 16;                                                        \
          v_store(back, v_gather_at_n_##name(bytes, at, stride, o, n));                                                \
          for (int j = 0; j < LANES; j++)                                                                              \
            expect_number((double)back[j],                                                                             \
                          j < n ? (double)f32_from_##name(bytes, (size_t)(first + j * stride + 5 * j % 16)) : 0);      \
        }                                                                                                              \
      }                                                                                                                \
    }                                                                                                                  \
    end();                                                                                                             \
  }

TEST_HALVES(s4)
TEST_HALVES(u4)

#define TEST_ADD_ROW(name, V, type)                                                                                    \
  static void test_add_row_##name(void) {                                                                              \
    begin("add_row_" #name);                                                                                           \
    for (int n = 0; n < 40; n++) {                                                                                     \
      type *to = (type *)(void *)page, *from = (type *)(void *)(page + page_nbytes) - n;                               \
      for (int i = 0; i < n; i++) to[i] = (type)(3 * i), from[i] = (type)(0.25 * i);                                   \
      to[n] = 7;                                                                                                       \
      V##_add_row(to, from, (size_t)n);                                                                                \
      for (int i = 0; i < n; i++) expect_number((double)to[i], 3.25 * i);                                              \
      expect_number((double)to[n], 7);                                                                                 \
    }                                                                                                                  \
    end();                                                                                                             \
  }

TEST_ADD_ROW(f32, v, float)
TEST_ADD_ROW(f64, d, double)

int main(void) {
  if (!map_page()) {
    perror("memory_test: mmap");
    return 1;
  }
  test_access(&f32_access);
  test_access(&f64_access);
  test_access(&bf16_access);
  test_access(&f16_access);
  test_access(&s32_access);
  test_access(&s64_access);
  test_rows_f32();
  test_rows_bf16();
  test_rows_f16();
  test_near_rows();
  test_add_row_f32();
  test_add_row_f64();
  test_access(&b8_access);
  test_booleans();
  test_access(&s8_access);
  test_access(&u8_access);
  test_access(&s16_access);
  test_access(&u16_access);
  test_access(&u32_access);
  test_access(&u64_access);
  test_access(&e4m3_access);
  test_access(&e5m2_access);
  test_within();
  test_s4();
  test_u4();
  v_prefetch_l2(page);
  if (failures) fprintf(stderr, "memory_test: %d failures\n", failures);
  return failures != 0;
}
