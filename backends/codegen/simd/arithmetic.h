// clang-format off

// Operations on vectors: arithmetic, comparisons, masks, sums over lanes, conversions, prefetching. The same for every
// ISA; follows vector.h.

// All lanes are x, computed as x - 0, because x + 0 would lose the sign of -0.
static inline vec v_set(float x) { vec a; v_part zero = {0}; V_FOR_I a.p[i] = x - zero; return a; }

static inline dvec d_set(double x) { dvec a; d_part zero = {0}; D_FOR_I a.p[i] = x - zero; return a; }

// `count` consecutive lanes, from lane `first` on.
typedef struct { size_t first; int count; } v_span;

// The lanes below n with 0 <= at + lane * step < extent.
static inline v_span v_within(ptrdiff_t at, ptrdiff_t step, ptrdiff_t extent, int n) {
  if (step < 0) { // backwards along the extent
    at = extent - 1 - at;
    step = -step;
  }
  const ptrdiff_t first = at < 0 ? (step - 1 - at) / step : 0, end = at < extent ? (extent - at + step - 1) / step : 0;
  const ptrdiff_t count = (end < n ? end : n) - first;
  v_span none = {0, 0}, some = {(size_t)first, (int)count};
  return count > 0 ? some : none;
}

static inline vec v_place_by_memory(vec a, v_span s, float outside) {
  float x[16];
  v_store(x, v_set(outside));
  v_store_n(x + s.first, a, s.count);
  return v_load(x);
}

#ifndef V_PLACE
#define V_PLACE(a, s, outside) v_place_by_memory(a, s, outside)
#endif

// Moves the first s.count lanes of a to s.first and the following lanes; the other lanes are `outside`.
static inline vec v_place(vec a, v_span s, float outside) { return V_PLACE(a, s, outside); }

static inline dvec d_place(dvec a, v_span s, double outside) {
  double x[16];
  d_store(x, d_set(outside));
  d_store_n(x + s.first, a, s.count);
  return d_load(x);
}

// The part from lane i on of a load of the lanes of s; lane s.first is at p. Other lanes are `outside`.
#ifndef V_LOAD_WITHIN
#define V_LOAD_WITHIN(p, i, s, outside) v_pick_within(p, i, s, outside)
#endif

#define V_PICK_WITHIN(j) ((size_t)(i + (j)) - s.first < (size_t)s.count ? p[(size_t)(i + (j)) - s.first] : outside)

static inline v_part v_pick_within(const float *p, int i, v_span s, float outside) {
  v_part r = {V_EACH(V_PICK_WITHIN)};
  return r;
}

static inline d_part d_pick_within(const double *p, int i, v_span s, double outside) {
  d_part r = {D_EACH(V_PICK_WITHIN)};
  return r;
}

// Loads only the lanes of s; lane s.first is at p. Other lanes are `outside`.
static inline vec v_load_within(const float *p, v_span s, float outside) {
  vec a;
  V_FOR_I a.p[i] = V_LOAD_WITHIN(p, i * V_LANES, s, outside);
  return a;
}

static inline dvec d_load_within(const double *p, v_span s, double outside) {
  dvec a;
  D_FOR_I a.p[i] = d_pick_within(p, i * D_LANES, s, outside);
  return a;
}

// The same for elements that are `stride` apart.
#define V_PICK_FAR_WITHIN(j) ((size_t)(i + (j)) - s.first < (size_t)s.count \
  ? p[((ptrdiff_t)(i + (j)) - (ptrdiff_t)s.first) * stride] : outside)

static inline v_part v_pick_far_within(const float *p, ptrdiff_t stride, int i, v_span s, float outside) {
  v_part r = {V_EACH(V_PICK_FAR_WITHIN)};
  return r;
}

static inline d_part d_pick_far_within(const double *p, ptrdiff_t stride, int i, v_span s, double outside) {
  d_part r = {D_EACH(V_PICK_FAR_WITHIN)};
  return r;
}

#ifndef V_SECOND_WITHIN
#define V_SECOND_WITHIN(p, i, s, outside) v_pick_far_within(p, 2, i, s, outside)
#endif

// Loads only the lanes of s; lane s.first is at p. Other lanes are `outside`.
static inline vec v_gather_within(const float *p, ptrdiff_t stride, v_span s, float outside) {
  vec a;
  V_FOR_I a.p[i] = stride == 2 ? V_SECOND_WITHIN(p, i * V_LANES, s, outside)
                               : v_pick_far_within(p, stride, i * V_LANES, s, outside);
  return a;
}

static inline dvec d_gather_within(const double *p, ptrdiff_t stride, v_span s, double outside) {
  dvec a;
  D_FOR_I a.p[i] = d_pick_far_within(p, stride, i * D_LANES, s, outside);
  return a;
}

// Integers to f32.
#ifndef V_FROM_BITS
#define V_FROM_BITS(x) __builtin_convertvector(x, v_part)
#endif

// Lane i is first + i, which is exact below 2^24.
static inline vec v_index(size_t first) {
  float x[16];
  if (first < (1U << 24) - 16) {
    const v_bits lane = {V_EACH(V_INDEX)};
    vec a;
    V_FOR_I { const int at = (int)first + i * V_LANES; a.p[i] = V_FROM_BITS(lane + at); }
    return a;
  }
  for (int i = 0; i < 16; i++) x[i] = (float)(first + (size_t)i);
  return v_load(x);
}

static inline dvec d_index(size_t first) {
  double x[16];
  for (int i = 0; i < 16; i++) x[i] = (double)(first + (size_t)i);
  return d_load(x);
}

static inline vec v_add(vec a, vec b) { V_FOR_I a.p[i] += b.p[i]; return a; }

static inline dvec d_add(dvec a, dvec b) { D_FOR_I a.p[i] += b.p[i]; return a; }

static inline vec v_sub(vec a, vec b) { V_FOR_I a.p[i] -= b.p[i]; return a; }

static inline dvec d_sub(dvec a, dvec b) { D_FOR_I a.p[i] -= b.p[i]; return a; }

static inline vec v_mul(vec a, vec b) { V_FOR_I a.p[i] *= b.p[i]; return a; }

static inline dvec d_mul(dvec a, dvec b) { D_FOR_I a.p[i] *= b.p[i]; return a; }

static inline vec v_div(vec a, vec b) { V_FOR_I a.p[i] /= b.p[i]; return a; }

static inline dvec d_div(dvec a, dvec b) { D_FOR_I a.p[i] /= b.p[i]; return a; }

static inline vec v_neg(vec a) { V_FOR_I a.p[i] = -a.p[i]; return a; }

static inline dvec d_neg(dvec a) { D_FOR_I a.p[i] = -a.p[i]; return a; }

#ifndef V_ABS
#define V_ABS(a) ((v_part)((v_bits)(a) & INT32_MAX))
#endif

#ifndef D_ABS
#define D_ABS(a) ((d_part)((d_bits)(a) & INT64_MAX))
#endif

static inline vec v_abs(vec a) { V_FOR_I a.p[i] = V_ABS(a.p[i]); return a; }

static inline dvec d_abs(dvec a) { D_FOR_I a.p[i] = D_ABS(a.p[i]); return a; }

static inline vec v_sqrt(vec a) { V_FOR_I a.p[i] = V_SQRT(a.p[i]); return a; }

static inline dvec d_sqrt(dvec a) { D_FOR_I a.p[i] = D_SQRT(a.p[i]); return a; }

#ifndef V_FMA
#define V_FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#endif

#ifndef D_FMA
#define D_FMA(a, b, c) __builtin_elementwise_fma(a, b, c)
#endif

// a * b + c, rounded once. Without an instruction, fmaf is a slow function, which some libraries get wrong. In f64 the
// product is exact, and the rounded sum rounds to the right f32 unless it lies half way between two of them, or is so
// small that the f32 has fewer bits. Then the sum is rounded to odd: of the two f64 beside an inexact sum, the odd one
// rounds to f32 as the sum does (S. Boldo, G. Melquiond, Emulation of a FMA and correctly rounded sums, 2008). That
// fails where f64 is computed with more digits. The macros behind the first are clang's, which lacks the first.
#if defined __FP_FAST_FMAF || defined __FMA__ || defined __aarch64__ || defined __ARM_FEATURE_FMA || \
    defined __riscv_flen || (defined __FLT_EVAL_METHOD__ && __FLT_EVAL_METHOD__ != 0)
static inline float f32_fma(float a, float b, float c) { return fmaf(a, b, c); }
#else
static V_FAR float f32_fma_by_odd(float a, float b, float c) {
  const double product = (double)a * (double)b, sum = product + (double)c, rest = sum - product;
  const double error = (product - (sum - rest)) + ((double)c - rest);
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if (!(bits & 1) && (error < 0 || error > 0)) bits += (error > 0) == (sum > 0) ? 1 : UINT64_MAX;
  double odd;
  memcpy(&odd, &bits, sizeof odd);
  return (float)odd;
}
static inline float f32_fma(float a, float b, float c) {
  const double sum = (double)a * (double)b + (double)c;
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  const uint32_t low = (uint32_t)bits, magnitude = (uint32_t)(bits >> 32) & 0x7fffffff;
  const int is_half_way = (low & 0x1fffffff) == 0x10000000, is_small = magnitude != 0 && magnitude < 0x38100000;
  return is_half_way || is_small ? f32_fma_by_odd(a, b, c) : (float)sum;
}
#endif

// a * b + c
static inline vec v_fma(vec a, vec b, vec c) { V_FOR_I a.p[i] = V_FMA(a.p[i], b.p[i], c.p[i]); return a; }

static inline dvec d_fma(dvec a, dvec b, dvec c) { D_FOR_I a.p[i] = D_FMA(a.p[i], b.p[i], c.p[i]); return a; }

// m ? a : b in each lane. Comparing m with 0 again makes gcc use a blend instruction.
#ifndef V_SELECT
#define V_SELECT(m, a, b) ((__typeof__(a))((((m) < 0) & (__typeof__(m))(a)) | (~((m) < 0) & (__typeof__(m))(b))))
#endif

// Compilers turn this into one instruction if the processor has it.
#ifndef V_MAX
#define V_MAX(a, b) V_SELECT((a) > (b), a, b)
#endif

#ifndef D_MAX
#define D_MAX(a, b) V_SELECT((a) > (b), a, b)
#endif

// a > b ? a : b. Does not propagate a NaN in a: the result is b if a or b is NaN.
static inline vec v_max(vec a, vec b) { V_FOR_I a.p[i] = V_MAX(a.p[i], b.p[i]); return a; }

static inline dvec d_max(dvec a, dvec b) { D_FOR_I a.p[i] = D_MAX(a.p[i], b.p[i]); return a; }

#ifndef V_MIN
#define V_MIN(a, b) V_SELECT((a) < (b), a, b)
#endif

#ifndef D_MIN
#define D_MIN(a, b) V_SELECT((a) < (b), a, b)
#endif

// a < b ? a : b. Does not propagate a NaN in a: the result is b if a or b is NaN.
static inline vec v_min(vec a, vec b) { V_FOR_I a.p[i] = V_MIN(a.p[i], b.p[i]); return a; }

static inline dvec d_min(dvec a, dvec b) { D_FOR_I a.p[i] = D_MIN(a.p[i], b.p[i]); return a; }

// IEEE 754's maximum, which propagates NaN. Of +0 and -0, the bitwise and is +0; other equal numbers have equal bits.
#ifndef V_MAXIMUM
#define V_MAXIMUM(a, b) V_SELECT(((a) > (b)) | ((a) != (a)), a, \
  (__typeof__(a))((__typeof__((a) > (b)))(b) & ((__typeof__((a) > (b)))(a) | ((a) != (b)))))
#endif

// The same for a part of f32.
#ifndef V_PART_MAXIMUM
#define V_PART_MAXIMUM(a, b) V_MAXIMUM(a, b)
#endif

// IEEE 754's maximum: propagates NaN, and +0 is greater than -0.
static inline vec v_maximum(vec a, vec b) { V_FOR_I a.p[i] = V_PART_MAXIMUM(a.p[i], b.p[i]); return a; }

static inline dvec d_maximum(dvec a, dvec b) { D_FOR_I a.p[i] = V_MAXIMUM(a.p[i], b.p[i]); return a; }

static inline double f64_maximum(double a, double b) {
  return a > b || a != a ? a : a == 0 && b == 0 ? a + b : b;
}

static inline double f64_add(double a, double b) { return a + b; }

static inline double f64_mul(double a, double b) { return a * b; }

static inline mask v_gt(vec a, vec b) { mask m; V_FOR_I m.p[i] = a.p[i] > b.p[i]; return m; }

static inline dmask d_gt(dvec a, dvec b) { dmask m; D_FOR_I m.p[i] = a.p[i] > b.p[i]; return m; }

static inline mask v_ge(vec a, vec b) { mask m; V_FOR_I m.p[i] = a.p[i] >= b.p[i]; return m; }

static inline dmask d_ge(dvec a, dvec b) { dmask m; D_FOR_I m.p[i] = a.p[i] >= b.p[i]; return m; }

static inline mask v_eq(vec a, vec b) { mask m; V_FOR_I m.p[i] = a.p[i] == b.p[i]; return m; }

static inline dmask d_eq(dvec a, dvec b) { dmask m; D_FOR_I m.p[i] = a.p[i] == b.p[i]; return m; }

#define V_TRUTH(j) ((uint32_t)(V_LANE(m, j) != 0) << (j))

// One bit for each lane of a comparison's result; lane 0 is the lowest bit.
#ifndef V_TRUTHS
#define V_TRUTHS(m) v_truths(m)
#endif

#ifndef D_TRUTHS
#define D_TRUTHS(m) d_truths(m)
#endif

#define V_OR(j) u |= V_TRUTH(j)

static inline V_INLINE uint32_t v_truths(v_bits m) { uint32_t u = 0; V_EACH(V_OR); return u; }

static inline V_INLINE uint32_t d_truths(d_bits m) { uint32_t u = 0; D_EACH(V_OR); return u; }

// In memory a comparison's result takes two bytes: one bit per lane, lanes 0 to 7 in the first byte.
static inline void mask_store(uint8_t *p, mask m) {
  uint32_t u = 0;
  V_FOR_I u |= V_TRUTHS(m.p[i]) << (i * V_LANES);
  p[0] = (uint8_t)u;
  p[1] = (uint8_t)(u >> 8);
}

static inline void dmask_store(uint8_t *p, dmask m) {
  uint32_t u = 0;
  D_FOR_I u |= D_TRUTHS(m.p[i]) << (i * D_LANES);
  p[0] = (uint8_t)u;
  p[1] = (uint8_t)(u >> 8);
}

#define V_BIT(j) (1 << (j))

static inline mask mask_load(const uint8_t *p) {
  int32_t u = p[0] | p[1] << 8;
  v_bits bit = {V_EACH(V_BIT)};
  mask m;
  V_FOR_I m.p[i] = (u >> (i * V_LANES) & bit) != 0;
  return m;
}

static inline dmask dmask_load(const uint8_t *p) {
  int64_t u = p[0] | p[1] << 8;
  d_bits bit = {D_EACH(V_BIT)};
  dmask m;
  D_FOR_I m.p[i] = (u >> (i * D_LANES) & bit) != 0;
  return m;
}

// m ? a : b
static inline vec v_select(mask m, vec a, vec b) { V_FOR_I a.p[i] = V_SELECT(m.p[i], a.p[i], b.p[i]); return a; }

static inline dvec d_select(dmask m, dvec a, dvec b) { D_FOR_I a.p[i] = V_SELECT(m.p[i], a.p[i], b.p[i]); return a; }

// The first n lanes of a, and the other lanes of b.
static inline vec v_merge(int n, vec a, vec b) {
  V_FOR_I a.p[i] = V_SELECT(v_first(i * V_LANES, n), a.p[i], b.p[i]);
  return a;
}

static inline dvec d_merge(int n, dvec a, dvec b) {
  D_FOR_I a.p[i] = V_SELECT(d_first(i * D_LANES, n), a.p[i], b.p[i]);
  return a;
}

// Sums add lane i + 8 to lane i, then i + 4, i + 2, i + 1.

#ifndef d_part_sum
static inline double d_part_sum(d_part x) {
  typedef double __attribute__((vector_size(16))) pair;
  pair q[4] = {{0}};
  memcpy(q, &x, sizeof x);
  if (D_LANES > 4) { q[0] += q[2]; q[1] += q[3]; }
  if (D_LANES > 2) q[0] += q[1];
  return q[0][0] + q[0][1];
}
#endif

#define D_FOLD(k) if (D_PARTS > (k)) D_FOR_I if (i < (k)) a.p[i] += a.p[i + (k)];

static inline double d_sum(dvec a) { D_FOLD(8) D_FOLD(4) D_FOLD(2) D_FOLD(1) return d_part_sum(a.p[0]); }

#define D_TIMES(a, b) ((a) * (b))

#define D_FOLD_PARTS(op, k) if (D_PARTS > (k)) D_FOR_I if (i < (k)) a.p[i] = op(a.p[i], a.p[i + (k)]);

typedef double __attribute__((vector_size(16))) d_128;

// Combines the lanes of a part, in the order of d_sum, and returns the result.
#ifndef D_FOLD_LANES
#define D_FOLD_LANES(op, x) \
  d_128 q[4] = {{0}}; \
  memcpy(q, &(x), sizeof(x)); \
  if (D_LANES > 4) { q[0] = op(q[0], q[2]); q[1] = op(q[1], q[3]); } \
  if (D_LANES > 2) q[0] = op(q[0], q[1]); \
  d_128 other = {q[0][1], q[0][0]}; \
  q[0] = op(q[0], other); \
  return q[0][0]
#endif

// Combines all lanes, in the order of d_sum.
#define D_FOLD_ALL(op) \
  D_FOLD_PARTS(op, 8) D_FOLD_PARTS(op, 4) D_FOLD_PARTS(op, 2) D_FOLD_PARTS(op, 1) D_FOLD_LANES(op, a.p[0])

#define V_FOLD_PARTS(op, k) if (V_PARTS > (k)) V_FOR_I if (i < (k)) a.p[i] = op(a.p[i], a.p[i + (k)]);

typedef float __attribute__((vector_size(16))) v_128;

#ifndef V_FOLD_LANES
#define V_FOLD_LANES(op, x) \
  v_128 q[4] = {{0}}; \
  memcpy(q, &(x), sizeof(x)); \
  if (V_LANES > 8) q[0] = op(q[0], q[2]), q[1] = op(q[1], q[3]); \
  if (V_LANES > 4) q[0] = op(q[0], q[1]); \
  v_128 far = {q[0][2], q[0][3], q[0][0], q[0][1]}; \
  q[0] = op(q[0], far); \
  v_128 near = {q[0][1], q[0][0], q[0][3], q[0][2]}; \
  q[0] = op(q[0], near); \
  return q[0][0]
#endif

static inline float v_greatest(vec a) {
  V_FOLD_PARTS(V_PART_MAXIMUM, 8) V_FOLD_PARTS(V_PART_MAXIMUM, 4) V_FOLD_PARTS(V_PART_MAXIMUM, 2)
  V_FOLD_PARTS(V_PART_MAXIMUM, 1)
  V_FOLD_LANES(V_MAXIMUM, a.p[0]);
}

// Combines all lanes, in the order of d_sum.
#define V_FOLD_ALL(op) \
  V_FOLD_PARTS(op, 8) V_FOLD_PARTS(op, 4) V_FOLD_PARTS(op, 2) V_FOLD_PARTS(op, 1) V_FOLD_LANES(op, a.p[0])

#define V_PLUS(a, b) ((a) + (b))

static inline float v_sum(vec a) { V_FOLD_ALL(V_PLUS); }

static inline float v_product(vec a) { V_FOLD_ALL(D_TIMES); }

static inline double d_greatest(dvec a) { D_FOLD_ALL(V_MAXIMUM); }

static inline double d_product(dvec a) { D_FOLD_ALL(D_TIMES); }

#ifndef D_FROM_HALF
#define D_FROM_HALF(h) __builtin_convertvector(h, d_part)
#endif

static inline dvec d_from_v(vec a) {
  dvec d;
  v_half h[D_PARTS];
  V_FOR_I memcpy(h + (ptrdiff_t)i * (D_PARTS / V_PARTS), &a.p[i], sizeof a.p[i]);
  D_FOR_I d.p[i] = D_FROM_HALF(h[i]);
  return d;
}

#ifndef V_HALF_FROM_D
#define V_HALF_FROM_D(x) __builtin_convertvector(x, v_half)
#endif

#ifndef V_FROM_D
static inline v_part v_join(v_half a, v_half b) {
#if defined __clang__ || __GNUC__ >= 12
  return __builtin_shufflevector(a, b, V_EACH(V_INDEX));
#else
  v_half h[2] = {a, b};
  v_part x;
  memcpy(&x, h, sizeof x);
  return x;
#endif
}
#endif

// Part i of a vec: parts 2i and 2i + 1 of a dvec, rounded.
#ifndef V_FROM_D
#define V_FROM_D(d, i) v_join(V_HALF_FROM_D((d).p[2 * (ptrdiff_t)(i)]), V_HALF_FROM_D((d).p[2 * (ptrdiff_t)(i) + 1]))
#endif

static inline vec v_from_d(dvec d) { vec a; V_FOR_I a.p[i] = V_FROM_D(d, i); return a; }

// Combines n vectors lane by lane, 1 to 16, in the order of v_sum.
static inline vec v_sum_of_each(const vec *a, int n) {
  vec x[16];
  for (int i = 0; i < n; i++) x[i] = a[i];
  for (int half = 8; half; half /= 2)
    for (int i = 0; i < half && i + half < n; i++) x[i] = v_add(x[i], x[i + half]);
  return x[0];
}

static inline vec v_product_of_each(const vec *a, int n) {
  vec x[16];
  for (int i = 0; i < n; i++) x[i] = a[i];
  for (int half = 8; half; half /= 2)
    for (int i = 0; i < half && i + half < n; i++) x[i] = v_mul(x[i], x[i + half]);
  return x[0];
}

#ifndef V_PREFETCH
#define V_PREFETCH(p, level) __builtin_prefetch(p, 0, level)
#endif

static inline void v_prefetch_l2(const void *p) { V_PREFETCH(p, 2); }

#ifndef V_FENCE
#define V_FENCE() (void)0
#endif

// Streaming stores before the fence become visible before any store after it.
static inline void v_fence(void) { V_FENCE(); }

static inline vec v_round_f16(vec a) { return v_from_f16(v_to_f16(a)); }

static inline dvec d_round_f32(dvec a) { return d_from_v(v_from_d(a)); }

static inline dvec d_round_bf16(dvec a) { return d_from_v(v_round_bf16(v_from_d(a))); }

static inline dvec d_round_f16(dvec a) { return d_from_v(v_round_f16(v_from_d(a))); }
