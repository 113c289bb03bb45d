// clang-format off

// The virtual vector of kernels, with its loads and stores: 16 lanes of f32 (`vec`) or f64 (`dvec`), in as many parts
// as the ISA needs registers.
//
// This file and those that print/vocabulary.c lists as common are the same for every ISA; they follow the ISA's
// header. That header defines upper-case macros: the width of a part, and operations on one part that the defaults
// here, which are GNU C, compile badly or not at all. V_ macros are for f32, D_ for f64, H_ for 16-bit types.
//
// Each operation rounds once, in an order that is fixed here, so that every ISA gives the same bits, except for the
// sign and payload of NaNs. That needs -ffp-contract=off, because gcc fuses operations across functions.
//
// Blank lines separate definitions. An emitted file contains only the definitions that it needs, with the comment above
// each. Words in these comments count as uses: a comment that names a type or macro pulls its definition in.

// A register of f32.
typedef float V_FULL v_part;

// A register of f64.
typedef double V_FULL d_part;

// bf16 or f16 as bits, as many as a v_part has lanes.
typedef uint16_t V_HALF h_part;

// f32, as many as a d_part has lanes.
typedef float V_HALF v_half;

// The bits of a v_part, or the result of a comparison: -1 or 0 in each lane.
typedef int32_t V_FULL v_bits;

typedef int64_t V_FULL d_bits;

typedef struct { v_part p[V_PARTS]; } vec;

typedef struct { d_part p[D_PARTS]; } dvec;

typedef struct { h_part p[V_PARTS]; } hvec;

typedef struct { v_bits p[V_PARTS]; } mask;

typedef struct { d_bits p[D_PARTS]; } dmask;

#define V_LANES (16 / V_PARTS)

#define D_LANES (16 / D_PARTS)

// The address of part i.
#define V_AT(p, i) ((p) + (ptrdiff_t)(i) * V_LANES)

#define D_AT(p, i) ((p) + (ptrdiff_t)(i) * D_LANES)

// A pragma unrolls it: gcc does not unroll a loop that would become longer, and then keeps the parts in memory.
#ifndef V_FOR_I
#define V_FOR_I _Pragma("GCC unroll 16") for (int i = 0; i < V_PARTS; i++)
#endif

// Before a loop over rows or vectors whose sums should be in registers.
#ifndef UNROLL
#define UNROLL V_UNROLL_ALL
#endif

#ifndef D_FOR_I
#define D_FOR_I _Pragma("GCC unroll 16") for (int i = 0; i < D_PARTS; i++)
#endif

// For functions that gcc finds too long to inline, because it does not see that a constant n removes most of the code.
#ifdef __GNUC__
#define V_INLINE __attribute__((always_inline))
#else
#define V_INLINE
#endif

// For functions that are called so often that compiling an inline copy for each call would take too long.
#ifdef __GNUC__
#define V_FAR __attribute__((noinline))
#else
#define V_FAR
#endif

// Hides a part's origin from the compiler: gcc would load a vector again for each use, instead of keeping it in a
// register.
#ifndef V_HOLD
#define V_HOLD(part) (void)(part)
#endif

// Forces the vectors of an array into memory, so that the following loops have all registers.
#ifdef __GNUC__
#define V_LEAVE(array) __asm__("" : "+m"(array))
#else
#define V_LEAVE(array) (void)(array)
#endif

static inline vec v_hold(vec a) { V_FOR_I V_HOLD(a.p[i]); return a; }

#define V_INDEX(j) j

// -1 in each lane whose number, i for the first lane, is below n, else 0.
static inline v_bits v_first(int i, int n) { v_bits lane = {V_EACH(V_INDEX)}; return lane + i < n; }

static inline d_bits d_first(int i, int n) { d_bits lane = {D_EACH(V_INDEX)}; return lane + i < n; }

#define V_PICK(j) (i + (j) < n ? p[(i + (j)) * stride] : 0)

// Elements i and following of n elements that are `stride` apart; +0 in lanes without an element.
static inline v_part v_pick(const float *p, ptrdiff_t stride, int i, int n) { v_part x = {V_EACH(V_PICK)}; return x; }

static inline d_part d_pick(const double *p, ptrdiff_t stride, int i, int n) { d_part x = {D_EACH(V_PICK)}; return x; }

#define H_PICK(j) (uint16_t)V_PICK(j)

static inline V_INLINE h_part h_pick(const uint16_t *p, ptrdiff_t stride, int i, int n) {
  h_part x = {V_EACH(H_PICK)};
  return x;
}

#ifndef V_LANE
#define V_LANE(x, j) ((x)[j])
#endif

#define V_PUT(j) (i + (j) < n ? (void)(p[(i + (j)) * stride] = V_LANE(x, j)) : (void)0)

static inline void v_put(float *p, ptrdiff_t stride, v_part x, int i, int n) { V_EACH(V_PUT); }

static inline void d_put(double *p, ptrdiff_t stride, d_part x, int i, int n) { D_EACH(V_PUT); }

static inline V_INLINE void h_put(uint16_t *p, ptrdiff_t stride, h_part x, int i, int n) { V_EACH(V_PUT); }

// Here and below, p must be aligned to its elements only, unless the comment says otherwise.
static inline vec v_load(const float *p) { vec a; V_FOR_I memcpy(&a.p[i], V_AT(p, i), sizeof a.p[i]); return a; }

static inline dvec d_load(const double *p) {
  dvec a;
  D_FOR_I memcpy(&a.p[i], D_AT(p, i), sizeof a.p[i]);
  return a;
}

// The part from lane i on of a load of p's first n elements; +0 in the lanes from n on.
#ifndef V_LOAD_N
#define V_LOAD_N(p, i, n) v_pick(p, 1, i, n)
#endif

#ifndef D_LOAD_N
#define D_LOAD_N(p, i, n) d_pick(p, 1, i, n)
#endif

#ifndef H_LOAD_N
#define H_LOAD_N(p, i, n) h_pick(p, 1, i, n)
#endif

// Reads only the first n elements, 0 <= n <= 16; the other lanes are +0.
static inline vec v_load_n(const float *p, int n) { vec a; V_FOR_I a.p[i] = V_LOAD_N(p, i * V_LANES, n); return a; }

static inline dvec d_load_n(const double *p, int n) { dvec a; D_FOR_I a.p[i] = D_LOAD_N(p, i * D_LANES, n); return a; }

static inline void v_store(float *p, vec a) { V_FOR_I memcpy(V_AT(p, i), &a.p[i], sizeof a.p[i]); }

static inline void d_store(double *p, dvec a) { D_FOR_I memcpy(D_AT(p, i), &a.p[i], sizeof a.p[i]); }

#ifndef V_STORE_N
#define V_STORE_N(p, x, i, n) v_put(p, 1, x, i, n)
#endif

#ifndef D_STORE_N
#define D_STORE_N(p, x, i, n) d_put(p, 1, x, i, n)
#endif

#ifndef H_STORE_N
#define H_STORE_N(p, x, i, n) h_put(p, 1, x, i, n)
#endif

// Writes only the first n elements, 0 <= n <= 16.
static inline void v_store_n(float *p, vec a, int n) { V_FOR_I V_STORE_N(p, a.p[i], i * V_LANES, n); }

static inline void d_store_n(double *p, dvec a, int n) { D_FOR_I D_STORE_N(p, a.p[i], i * D_LANES, n); }

// Stores a part to an address aligned to the part's size, bypassing the caches.
#ifndef V_STREAM
#define V_STREAM(p, x) __builtin_nontemporal_store(x, (v_part *)(void *)(p))
#endif

#ifndef D_STREAM
#define D_STREAM(p, x) __builtin_nontemporal_store(x, (d_part *)(void *)(p))
#endif

#ifndef H_STREAM
#define H_STREAM(p, x) __builtin_nontemporal_store(x, (h_part *)(void *)(p))
#endif

// Stores to p, aligned to 64 bytes, bypassing the caches. v_fence() orders it before later stores.
static inline void v_stream(float *p, vec a) { V_FOR_I V_STREAM(V_AT(p, i), a.p[i]); }

static inline void d_stream(double *p, dvec a) { D_FOR_I D_STREAM(D_AT(p, i), a.p[i]); }

// The part from lane i on of a load of every second element at p; +0 in the lanes from n on.
#ifndef V_SECOND_N
#define V_SECOND_N(p, i, n) v_pick(p, 2, i, n)
#endif

// Lane i is p[i * stride].
static inline vec v_gather_n(const float *p, ptrdiff_t stride, int n) {
  vec a;
  V_FOR_I a.p[i] = stride == 2 ? V_SECOND_N(p, i * V_LANES, n) : v_pick(p, stride, i * V_LANES, n);
  return a;
}

static inline dvec d_gather_n(const double *p, ptrdiff_t stride, int n) {
  dvec a;
  D_FOR_I a.p[i] = d_pick(p, stride, i * D_LANES, n);
  return a;
}

// The part of every second element at p; reads nothing after the last element.
#ifndef V_SECOND
#define V_SECOND(p) v_pick(p, 2, 0, V_LANES)
#endif

static inline vec v_gather(const float *p, ptrdiff_t stride) {
  vec a;
  if (stride != 2) return v_gather_n(p, stride, 16);
  V_FOR_I a.p[i] = V_SECOND(p + (ptrdiff_t)i * 2 * V_LANES);
  return a;
}

static inline dvec d_gather(const double *p, ptrdiff_t stride) { return d_gather_n(p, stride, 16); }

// Stores lanes i and following, below lane n, to every second element.
#ifndef V_PUT_SECOND
#define V_PUT_SECOND(p, x, i, n) v_put(p, 2, x, i, n)
#endif

static inline void v_scatter_n(float *p, ptrdiff_t stride, vec a, int n) {
  if (stride != 2) V_FOR_I v_put(p, stride, a.p[i], i * V_LANES, n);
  else V_FOR_I V_PUT_SECOND(p, a.p[i], i * V_LANES, n);
}

static inline void d_scatter_n(double *p, ptrdiff_t stride, dvec a, int n) {
  D_FOR_I d_put(p, stride, a.p[i], i * D_LANES, n);
}

static inline void v_scatter(float *p, ptrdiff_t stride, vec a) { v_scatter_n(p, stride, a, 16); }

static inline void d_scatter(double *p, ptrdiff_t stride, dvec a) { d_scatter_n(p, stride, a, 16); }

// An offset in elements for each lane.
typedef struct { ptrdiff_t at[16]; } places;

static inline places v_places(vec a) {
  places o;
  float x[16];
  v_store(x, a);
  for (int i = 0; i < 16; i++) o.at[i] = (ptrdiff_t)x[i];
  return o;
}

static inline places d_places(dvec a) {
  places o;
  double x[16];
  d_store(x, a);
  for (int i = 0; i < 16; i++) o.at[i] = (ptrdiff_t)x[i];
  return o;
}

// Lane i is p[i * stride + o.at[i]].
static inline vec v_gather_at_n(const float *p, ptrdiff_t stride, places o, int n) {
  float x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = p[i * stride + o.at[i]];
  return v_load(x);
}

static inline vec v_gather_at(const float *p, ptrdiff_t stride, places o) { return v_gather_at_n(p, stride, o, 16); }

static inline dvec d_gather_at_n(const double *p, ptrdiff_t stride, places o, int n) {
  double x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = p[i * stride + o.at[i]];
  return d_load(x);
}

static inline dvec d_gather_at(const double *p, ptrdiff_t stride, places o) { return d_gather_at_n(p, stride, o, 16); }

static inline hvec h_load(const uint16_t *p) {
  hvec a;
  V_FOR_I memcpy(&a.p[i], V_AT(p, i), sizeof a.p[i]);
  return a;
}

static inline V_INLINE hvec h_load_n(const uint16_t *p, int n) {
  hvec a;
  V_FOR_I a.p[i] = H_LOAD_N(p, i * V_LANES, n);
  return a;
}

static inline void h_store(uint16_t *p, hvec a) { V_FOR_I memcpy(V_AT(p, i), &a.p[i], sizeof a.p[i]); }

static inline V_INLINE void h_store_n(uint16_t *p, hvec a, int n) { V_FOR_I H_STORE_N(p, a.p[i], i * V_LANES, n); }

static inline void h_stream(uint16_t *p, hvec a) { V_FOR_I H_STREAM(V_AT(p, i), a.p[i]); }

// Words as lanes of 32 bits, and the low words of such lanes.
#ifndef H_WIDEN
#define H_WIDEN(h) __builtin_convertvector(h, v_bits)
#endif

#ifndef H_NARROW
#define H_NARROW(u) __builtin_convertvector(u, h_part)
#endif

// The part from word i on of n words that are two apart; +0 in the lanes from n on.
#ifndef H_SECOND_N
#define H_SECOND_N(p, i, n) h_pick(p, 2, i, n)
#endif

#ifndef H_PUT_SECOND
#define H_PUT_SECOND(p, x, i, n) h_put(p, 2, x, i, n)
#endif

static inline V_INLINE hvec h_gather_n(const uint16_t *p, ptrdiff_t stride, int n) {
  hvec a;
  V_FOR_I a.p[i] = stride == 2 ? H_SECOND_N(p, i * V_LANES, n) : h_pick(p, stride, i * V_LANES, n);
  return a;
}

static inline V_INLINE void h_scatter_n(uint16_t *p, ptrdiff_t stride, hvec a, int n) {
  if (stride != 2) V_FOR_I h_put(p, stride, a.p[i], i * V_LANES, n);
  else V_FOR_I H_PUT_SECOND(p, a.p[i], i * V_LANES, n);
}

// 16-bit floats. Conversions round to nearest even, overflow to infinity, keep subnormals and propagate NaN.
static inline uint32_t f32_bits(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }

static inline float f32_from_bits(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }

static inline float f32_from_bf16(uint16_t h) { return f32_from_bits((uint32_t)h << 16); }

static inline uint16_t bf16_from_f32(float x) {
  uint32_t u = f32_bits(x);
  return (uint16_t)((x != x ? u | 0x400000 : u + 0x7fff + (u >> 16 & 1)) >> 16);
}

// The exponents' biases differ by 112. A subnormal is normalised by adding 2^-14 and subtracting it again.
static inline float f32_from_f16(uint16_t h) {
  uint32_t u = (h & 0x7fffU) << 13;
  uint32_t sign = (h & 0x8000U) << 16;
  uint32_t subnormal = f32_bits(f32_from_bits(u + (113U << 23)) - 0x1p-14f);
  return f32_from_bits(sign | (u < 1U << 23 ? subnormal : u < 31U << 23 ? u + (112U << 23) : u + (224U << 23)));
}

// Adding 0.5 rounds a number below 2^-14 to a multiple of 2^-24, the unit of f16's subnormals.
static inline uint16_t f16_from_f32(float x) {
  uint32_t u = f32_bits(x) & 0x7fffffff;
  uint32_t sign = f32_bits(x) >> 16 & 0x8000;
  uint32_t subnormal = f32_bits(f32_from_bits(u) + 0.5f) - (126U << 23);
  uint32_t normal = (u - (112U << 23) + 0xfff + (u >> 13 & 1)) >> 13;
  uint32_t huge = x != x ? 0x7e00 : 0x7c00;
  return (uint16_t)(sign | (u < 113U << 23 ? subnormal : u < f32_bits(65520) ? normal : huge));
}

#ifndef V_FROM_BF16
#define V_FROM_BF16(h) ((v_part)(H_WIDEN(h) << 16))
#endif

// Rounds to nearest even; a NaN becomes quiet.
#ifndef v_part_to_bf16_by_bits
static inline h_part v_part_to_bf16_by_bits(v_part x) {
  typedef uint32_t V_FULL words;
  words u = (words)x, is_nan = (words)(x != x);
  u += (0x7fff + (u >> 16 & 1)) & ~is_nan;
  return H_NARROW((u | (is_nan & 0x400000)) >> 16);
}
#endif

#ifndef V_TO_BF16
#define V_TO_BF16(x) v_part_to_bf16_by_bits(x)
#endif

// The same, as an f32; a NaN stays as it is.
#ifndef v_part_round_bf16
static inline v_part v_part_round_bf16(v_part x) {
  typedef uint32_t V_FULL words;
  words u = (words)x, is_nan = (words)(x != x);
  return (v_part)((u & is_nan) | ((u + 0x7fff + (u >> 16 & 1)) & (0xffff0000 & ~is_nan)));
}
#endif

static inline vec v_from_bf16(hvec h) { vec a; V_FOR_I a.p[i] = V_FROM_BF16(h.p[i]); return a; }

static inline hvec v_to_bf16(vec a) { hvec h; V_FOR_I h.p[i] = V_TO_BF16(a.p[i]); return h; }

static inline vec v_round_bf16(vec a) { V_FOR_I a.p[i] = v_part_round_bf16(a.p[i]); return a; }

#ifndef V_FROM_F16
#define V_FROM_F16(h) __builtin_convertvector((__fp16 V_HALF)(h), v_part)
#endif

#ifndef V_TO_F16
#define V_TO_F16(x) ((h_part)__builtin_convertvector(x, __fp16 V_HALF))
#endif

static inline vec v_from_f16(hvec h) { vec a; V_FOR_I a.p[i] = V_FROM_F16(h.p[i]); return a; }

static inline hvec v_to_f16(vec a) { hvec h; V_FOR_I h.p[i] = V_TO_F16(a.p[i]); return h; }

static inline vec v_load_bf16(const uint16_t *p) { return v_from_bf16(h_load(p)); }

static inline V_INLINE vec v_load_n_bf16(const uint16_t *p, int n) { return v_from_bf16(h_load_n(p, n)); }

static inline void v_store_bf16(uint16_t *p, vec a) { h_store(p, v_to_bf16(a)); }

static inline V_INLINE void v_store_n_bf16(uint16_t *p, vec a, int n) { h_store_n(p, v_to_bf16(a), n); }

// p must be aligned to 32 bytes.
static inline void v_stream_bf16(uint16_t *p, vec a) { h_stream(p, v_to_bf16(a)); }

#ifndef V_SECOND_N_BF16
#define V_SECOND_N_BF16(p, i, n) V_FROM_BF16(H_SECOND_N(p, i, n))
#endif

static inline V_INLINE vec v_gather_n_bf16(const uint16_t *p, ptrdiff_t stride, int n) {
  vec a;
  if (stride != 2) return v_from_bf16(h_gather_n(p, stride, n));
  V_FOR_I a.p[i] = V_SECOND_N_BF16(p, i * V_LANES, n);
  return a;
}

#ifndef V_SECOND_BF16
#define V_SECOND_BF16(p) V_SECOND_N_BF16(p, 0, V_LANES)
#endif

static inline V_INLINE vec v_gather_bf16(const uint16_t *p, ptrdiff_t stride) {
  vec a;
  if (stride != 2) return v_gather_n_bf16(p, stride, 16);
  V_FOR_I a.p[i] = V_SECOND_BF16(p + (ptrdiff_t)i * 2 * V_LANES);
  return a;
}

static inline V_INLINE void v_scatter_n_bf16(uint16_t *p, ptrdiff_t stride, vec a, int n) {
  h_scatter_n(p, stride, v_to_bf16(a), n);
}

static inline V_INLINE void v_scatter_bf16(uint16_t *p, ptrdiff_t stride, vec a) { v_scatter_n_bf16(p, stride, a, 16); }

static inline vec v_load_f16(const uint16_t *p) { return v_from_f16(h_load(p)); }

static inline V_INLINE vec v_load_n_f16(const uint16_t *p, int n) { return v_from_f16(h_load_n(p, n)); }

static inline void v_store_f16(uint16_t *p, vec a) { h_store(p, v_to_f16(a)); }

static inline V_INLINE void v_store_n_f16(uint16_t *p, vec a, int n) { h_store_n(p, v_to_f16(a), n); }

static inline void v_stream_f16(uint16_t *p, vec a) { h_stream(p, v_to_f16(a)); }

static inline V_INLINE vec v_gather_n_f16(const uint16_t *p, ptrdiff_t stride, int n) {
  return v_from_f16(h_gather_n(p, stride, n));
}

static inline V_INLINE vec v_gather_f16(const uint16_t *p, ptrdiff_t stride) { return v_gather_n_f16(p, stride, 16); }

static inline V_INLINE void v_scatter_n_f16(uint16_t *p, ptrdiff_t stride, vec a, int n) {
  h_scatter_n(p, stride, v_to_f16(a), n);
}

static inline V_INLINE void v_scatter_f16(uint16_t *p, ptrdiff_t stride, vec a) { v_scatter_n_f16(p, stride, a, 16); }

static inline hvec h_gather_at_n(const uint16_t *p, ptrdiff_t stride, places o, int n) {
  uint16_t x[16] = {0};
  for (int i = 0; i < n; i++) x[i] = p[i * stride + o.at[i]];
  return h_load(x);
}

static inline vec v_gather_at_n_bf16(const uint16_t *p, ptrdiff_t stride, places o, int n) {
  return v_from_bf16(h_gather_at_n(p, stride, o, n));
}

static inline vec v_gather_at_bf16(const uint16_t *p, ptrdiff_t stride, places o) {
  return v_gather_at_n_bf16(p, stride, o, 16);
}

static inline vec v_gather_at_n_f16(const uint16_t *p, ptrdiff_t stride, places o, int n) {
  return v_from_f16(h_gather_at_n(p, stride, o, n));
}

static inline vec v_gather_at_f16(const uint16_t *p, ptrdiff_t stride, places o) {
  return v_gather_at_n_f16(p, stride, o, 16);
}
