// clang-format off

// Random numbers of dropout: Philox-4x32-10, whose counter is an element's row-major index and whose key is the seed.
// The same for every ISA; follows math.h. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1,
// 2, 3", SC 2011; counters and keys are oneDNN's.

// The random numbers of 4 elements from `first` on, a multiple of 4. One counter gives all 4 numbers.
// Without an offset all 4 elements get the same number, as in oneDNN.
static inline void random_4(uint32_t *u, int64_t seed, int64_t offset, uint64_t first) {
  uint32_t low = (uint32_t)seed, high = offset ? (uint32_t)((uint64_t)seed >> 32) : low;
  u[0] = (uint32_t)(offset ? (uint64_t)offset : first);
  u[1] = (uint32_t)(offset ? (uint64_t)offset >> 32 : first + 1);
  u[2] = (uint32_t)first;
  u[3] = (uint32_t)(offset ? first >> 32 : first + 3);
  for (int round = 0; round < 10; round++, low += 0x9E3779B9, high += 0xBB67AE85) {
    const uint64_t p = UINT64_C(0xD2511F53) * u[0], q = UINT64_C(0xCD9E8D57) * u[2];
    u[0] = (uint32_t)(q >> 32) ^ u[1] ^ low;
    u[1] = (uint32_t)q;
    u[2] = (uint32_t)(p >> 32) ^ u[3] ^ high;
    u[3] = (uint32_t)p;
  }
  if (!offset) u[0] = u[1] = u[3] = u[2];
}

// The product of the low 32 bits of each lane.
#ifndef D_LOW_PRODUCT
#define D_LOW_PRODUCT(a, b) (((a) & UINT32_MAX) * (b))
#endif

#if defined __clang__ || __GNUC__ >= 12
#define V_SHUFFLE(x, index) __builtin_shufflevector(x, x, V_EACH(index))
#else
#define V_SHUFFLE(x, index) __builtin_shuffle(x, (v_words){V_EACH(index)})
#endif

#define V_FROM_BEHIND(j) ((j) ^ 3)

#define V_THIRD(j) (((j) | 2) & ~1)

#define D_IS_ODD(j) ((j) % 2 ? -1 : 0)

#define D_GROUP(j) ((j) / 2)

// The same for 4 groups of 4 elements: those that contain the elements `place`, place + stride, place + 2 stride and
// place + 3 stride. The 4 words of a group's counter are two 64-bit lanes. So one multiplication makes the products of
// all groups in a part, and a round puts the words of each group in reverse order.
#ifndef random_16
static inline V_INLINE void random_16(uint32_t *u, int64_t seed, int64_t offset, uint64_t place, uint64_t stride) {
  const d_bits is_odd_lane = {D_EACH(D_IS_ODD)}, group = {D_EACH(D_GROUP)};
  const d_words is_odd = (d_words)is_odd_lane, zero = {0}, half = zero + UINT32_MAX;
  const d_words factor = zero + 0xD2511F53 + (is_odd & (0xCD9E8D57 - UINT64_C(0xD2511F53)));
  const d_words step = zero + 0x9E3779B9 + (is_odd & (0xBB67AE85 - 0x9E3779B9));
  const uint64_t low = (uint32_t)seed, high = offset ? (uint64_t)seed >> 32 : low;
  V_FOR_I {
    d_words key = zero + low + (is_odd & (high - low));
    d_words first = (place + stride * ((uint64_t)(i * V_LANES / 4) + (d_words)group)) & ~UINT64_C(3);
    d_words c = offset ? (first & is_odd) | ((uint64_t)offset & ~is_odd) : (first & half) | (first + 1 + (is_odd & 2)) << 32;
    _Pragma("GCC unroll 16") for (int round = 0; round < 10; round++) {
      const v_words product = (v_words)D_LOW_PRODUCT(c, factor);
      c = (d_words)V_SHUFFLE(product, V_FROM_BEHIND) ^ c >> 32 ^ key;
      key = (key + step) & half;
    }
    const v_words words = (v_words)c, third = V_SHUFFLE(words, V_THIRD);
    memcpy(V_AT(u, i), offset ? &words : &third, sizeof words);
  }
}
#endif

// The random numbers of 16 elements, `stride` apart.
static inline V_INLINE void random_bits(uint32_t *u, int64_t seed, int64_t offset, uint64_t place, ptrdiff_t stride) {
  uint32_t own[32];
  if (stride == 1) {
    random_16(own, seed, offset, place, 4);
    if (place % 4) random_16(own + 16, seed, offset, place + 16, 4);
    memcpy(u, own + place % 4, 16 * sizeof *u);
    return;
  }
  for (int i = 0; i < 16; i++, place += (uint64_t)stride) {
    if (i % 4 == 0) random_16(own, seed, offset, place, (uint64_t)stride);
    u[i] = own[i % 4 * 4 + (int)(place % 4)];
  }
}

// An element is kept if its random number is greater than this. If the probability is NaN, no element is kept.
static inline uint32_t greatest_dropped(double probability) {
  const double x = 4294967295.0 * probability;
  return x < 4294967295.0 ? (uint32_t)(x > 0 ? x : 0) : UINT32_MAX;
}

// Whether the elements from `place` on, `stride` apart, are kept.
static inline V_INLINE mask v_is_kept(int64_t seed, int64_t offset, double probability, uint64_t place, ptrdiff_t stride) {
  mask m;
  uint32_t u[16];
  const uint32_t dropped = greatest_dropped(probability);
  random_bits(u, seed, offset, place, stride);
  V_FOR_I { v_words x; memcpy(&x, V_AT(u, i), sizeof x); m.p[i] = x > dropped; }
  return m;
}

static inline V_INLINE dmask d_is_kept(int64_t seed, int64_t offset, double probability, uint64_t place, ptrdiff_t stride) {
  dmask m;
  uint32_t u[16];
  uint64_t wide[16];
  const uint64_t dropped = greatest_dropped(probability);
  random_bits(u, seed, offset, place, stride);
  for (int i = 0; i < 16; i++) wide[i] = u[i];
  D_FOR_I { d_words x; memcpy(&x, D_AT(wide, i), sizeof x); m.p[i] = x > dropped; }
  return m;
}

static inline int is_kept(int64_t seed, int64_t offset, double probability, uint64_t place) {
  uint32_t u[4];
  random_4(u, seed, offset, place - place % 4);
  return u[place % 4] > greatest_dropped(probability);
}
