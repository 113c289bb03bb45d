// clang-format off

// Elementary functions of the virtual vector. The same for every ISA; follows vector.h and arithmetic.h. Errors are less
// than these numbers of units in the last place:
//
//            exp  expm1  log  log1p  tanh  erf   gelu  pow
//     f32    1    1.5    1    1.75   1.5   1.75  5.5   0.51
//     f64    1    2      1    1.5    1.5   2     8     1.25
//
// The error of gelu_slope is less than 2.2 (f64: 2) units in the last place of 1; for x < -2 it is less than gelu's.
// Special values are those of C's Annex F. Only operations that IEEE 754 defines are used, so that every ISA gives the
// same bits. tests/simd checks errors, special values and bits.
//
// Arguments are reduced as J.-M. Muller, Elementary Functions, describes; the f32 form of log1p follows N. Juffa's.
// Polynomials are minimax approximations made with Sollya's fpminimax (gelu's with Remez' algorithm); beside each stand
// its interval and largest error, relative unless said.

// Scalars are computed as lane 0 of a vector, so that they have the same bits.
static inline float v_lane_0(vec a) { return V_LANE(a.p[0], 0); }

static inline double d_lane_0(dvec a) { return V_LANE(a.p[0], 0); }

// The bits of a part as unsigned integers, whose arithmetic wraps around.
typedef uint32_t V_FULL v_words;

typedef uint64_t V_FULL d_words;

static inline v_words v_part_words(v_part x) { v_words u; memcpy(&u, &x, sizeof u); return u; }

static inline d_words d_part_words(d_part x) { d_words u; memcpy(&u, &x, sizeof u); return u; }

static inline v_part v_part_from_words(v_words u) { v_part x; memcpy(&x, &u, sizeof x); return x; }

static inline d_part d_part_from_words(d_words u) { d_part x; memcpy(&x, &u, sizeof x); return x; }

static inline v_part v_part_set(float x) { v_part zero = {0}; return x - zero; }

static inline d_part d_part_set(double x) { d_part zero = {0}; return x - zero; }

// y with the sign bit of x, for y that is not negative.
static inline v_part v_part_with_sign_of(v_part y, v_part x) {
  return v_part_from_words(v_part_words(y) | (v_part_words(x) & 0x80000000U));
}

static inline d_part d_part_with_sign_of(d_part y, d_part x) {
  return d_part_from_words(d_part_words(y) | (d_part_words(x) & 0x8000000000000000U));
}

// x clamped to [low, high]; propagates NaN.
static inline v_part v_part_clamp(v_part x, float low, float high) {
  x = V_MAX(v_part_set(low), x);
  return V_MIN(v_part_set(high), x);
}

static inline d_part d_part_clamp(d_part x, double low, double high) {
  x = D_MAX(d_part_set(low), x);
  return D_MIN(d_part_set(high), x);
}

// c[0] + c[1] x + ... + c[n - 1] x^(n - 1)
static inline V_INLINE v_part v_part_polynomial(v_part x, const float *c, int n) {
  v_part p = v_part_set(c[n - 1]);
  _Pragma("GCC unroll 32") for (int i = n - 2; i >= 0; i--) p = V_FMA(p, x, v_part_set(c[i]));
  return p;
}

static inline V_INLINE d_part d_part_polynomial(d_part x, const double *c, int n) {
  d_part p = d_part_set(c[n - 1]);
  _Pragma("GCC unroll 32") for (int i = n - 2; i >= 0; i--) p = D_FMA(p, x, d_part_set(c[i]));
  return p;
}

#define V_POLYNOMIAL(x, c) v_part_polynomial(x, c, (int)(sizeof(c) / sizeof *(c)))

#define D_POLYNOMIAL(x, c) d_part_polynomial(x, c, (int)(sizeof(c) / sizeof *(c)))

// Rounds to the nearest integer, half to even: |x| + 2^23 has no fractional bits if |x| < 2^23.
static inline v_part v_part_round(v_part x) {
  v_part y = v_part_with_sign_of(V_ABS(x) + 0x1p23F - 0x1p23F, x);
  return V_SELECT(V_ABS(x) < 0x1p23F, y, x);
}

static inline d_part d_part_round(d_part x) {
  d_part y = d_part_with_sign_of(D_ABS(x) + 0x1p52 - 0x1p52, x);
  return V_SELECT(D_ABS(x) < 0x1p52, y, x);
}

static inline vec v_round(vec a) { V_FOR_I a.p[i] = v_part_round(a.p[i]); return a; }

static inline dvec d_round(dvec a) { D_FOR_I a.p[i] = d_part_round(a.p[i]); return a; }

static inline v_part v_part_floor(v_part x) { v_part y = v_part_round(x); return V_SELECT(y > x, y - 1.0F, y); }

static inline d_part d_part_floor(d_part x) { d_part y = d_part_round(x); return V_SELECT(y > x, y - 1.0, y); }

static inline vec v_floor(vec a) { V_FOR_I a.p[i] = v_part_floor(a.p[i]); return a; }

static inline dvec d_floor(dvec a) { D_FOR_I a.p[i] = d_part_floor(a.p[i]); return a; }

// ---- e^x = 2^n e^r, with |r| <= log(2) / 2

// Adding this to a number rounds it to an integer n, whose bits are the lowest bits of the sum.
#define V_INTEGER 0x1.8p23F

#define D_INTEGER 0x1.8p52

// log(2) = 0x1.62e42fefa39ef...p-1 as a sum of two numbers; n times the first number is exact.
#define D_LOG_2 0x1.62e42fefa38p-1

#define D_LOG_2_REST 0x1.ef35793c7673p-45

// x = n log(2) + *r; returns n + V_INTEGER.
static inline V_INLINE v_part v_part_reduce(v_part x, v_part *r) {
  v_part sum = V_FMA(x, v_part_set(0x1.715476p0F), v_part_set(V_INTEGER)), n = sum - V_INTEGER;
  *r = V_FMA(n, v_part_set(-0x1.62e4p-1F), x);
  *r = V_FMA(n, v_part_set(-0x1.7f7d1cp-20F), *r);
  return sum;
}

static inline V_INLINE d_part d_part_reduce(d_part x, d_part *r) {
  d_part sum = D_FMA(x, d_part_set(0x1.71547652b82fep0), d_part_set(D_INTEGER)), n = sum - D_INTEGER;
  *r = D_FMA(n, d_part_set(-D_LOG_2), x);
  *r = D_FMA(n, d_part_set(-D_LOG_2_REST), *r);
  return sum;
}

// 2^(n + add), which must be a normal number.
static inline v_part v_part_power_of_2(v_part n, uint32_t add) {
  return v_part_from_words((v_part_words(n) << 23) + ((127 + add) << 23));
}

static inline d_part d_part_power_of_2(d_part n, uint64_t add) {
  return d_part_from_words((d_part_words(n) << 52) + ((1023 + add) << 52));
}

// y 2^(n - V_INTEGER), rounded once, for exponents from -252 to 252: by two multiplications, the first of which is
// exact.
#ifndef V_SCALE
#define V_SCALE(y, n) v_part_scale(y, n)
static inline v_part v_part_scale(v_part y, v_part n) {
  v_words sum = v_part_words(n) - (0x4b400000 - 254), first = sum >> 1;
  return y * v_part_from_words(first << 23) * v_part_from_words((sum - first) << 23);
}
#endif

#ifndef D_SCALE
#define D_SCALE(y, n) d_part_scale(y, n)
static inline d_part d_part_scale(d_part y, d_part n) {
  d_words sum = d_part_words(n) - (0x4338000000000000 - 2046), first = sum >> 1;
  return y * d_part_from_words(first << 52) * d_part_from_words((sum - first) << 52);
}
#endif

// e^r - 1 on [-0.34658, 0.34658]; error 2^-30.9.
static inline V_INLINE v_part v_part_expm1_near_0(v_part r) {
  static const float c[] = {0x1p-1F, 0x1.555554p-3F, 0x1.5554fp-5F, 0x1.111306p-7F, 0x1.6d4366p-10F, 0x1.9e0be4p-13F};
  return V_FMA(r * r, V_POLYNOMIAL(r, c), r);
}

// On the same interval; error 2^-61.5.
static inline V_INLINE d_part d_part_expm1_near_0(d_part r) {
  static const double c[] = {0x1p-1, 0x1.5555555555559p-3, 0x1.555555555554dp-5, 0x1.111111110f65ap-7,
                             0x1.6c16c16c1aaf7p-10, 0x1.a01a01afffe71p-13, 0x1.a01a018e10e9cp-16, 0x1.71ddf81bab08p-19,
                             0x1.27e5133a9958fp-22, 0x1.af5f1224a4cf4p-26, 0x1.1f1a292ebcaebp-29};
  return D_FMA(r * r, D_POLYNOMIAL(r, c), r);
}

// e^(x + y), where y is at most an ulp of x.
static inline d_part d_part_exp_of_sum(d_part x, d_part y) {
  d_part r, n = d_part_reduce(d_part_clamp(x, -746.0, 710.0), &r);
  return D_SCALE(V_SELECT(x <= -746.0, d_part_set(0.0), 1.0 + d_part_expm1_near_0(r + y)), n);
}

// Clamping does not change the result, which is 0 or infinity at the bounds. Steps of different parts are interleaved,
// because the steps of one part depend on each other. A 0 is scaled to 0: many processors take a hundred cycles for a
// multiplication whose result underflows, and masks of attention make most powers 0.
static inline V_INLINE vec v_exp(vec a) {
  v_part n[V_PARTS], r[V_PARTS];
  V_FOR_I n[i] = v_part_reduce(v_part_clamp(a.p[i], -104.0F, 89.0F), &r[i]);
  V_FOR_I r[i] = v_part_expm1_near_0(r[i]);
  V_FOR_I a.p[i] = V_SCALE(V_SELECT(a.p[i] <= -104.0F, v_part_set(0.0F), 1.0F + r[i]), n[i]);
  return a;
}

// The same for one part.
static inline v_part v_part_exp(v_part x) {
  v_part r, n = v_part_reduce(v_part_clamp(x, -104.0F, 89.0F), &r);
  r = v_part_expm1_near_0(r);
  return V_SCALE(V_SELECT(x <= -104.0F, v_part_set(0.0F), 1.0F + r), n);
}

static inline V_INLINE dvec d_exp(dvec a) {
  D_FOR_I a.p[i] = d_part_exp_of_sum(a.p[i], d_part_set(0.0));
  return a;
}

// 2^n (e^r - 1) + (2^n - 1), computed with 2^(n - 1) and doubled at the end, because 2^n may overflow. Near 0 the
// result is x, because halving would lose bits of subnormals.
static inline V_INLINE v_part v_part_expm1(v_part x) {
  v_part r, n = v_part_reduce(v_part_clamp(x, -30.0F, 89.0F), &r);
  v_part half = v_part_power_of_2(n, -1U);
  v_part y = V_FMA(half, v_part_expm1_near_0(r), half - 0.5F);
  return V_SELECT(V_ABS(x) < 0x1p-25F, x, y + y);
}

static inline d_part d_part_expm1(d_part x) {
  d_part r, n = d_part_reduce(d_part_clamp(x, -60.0, 710.0), &r);
  d_part half = d_part_power_of_2(n, -1ULL);
  d_part y = D_FMA(half, d_part_expm1_near_0(r), half - 0.5);
  return V_SELECT(D_ABS(x) < 0x1p-54, x, y + y);
}

static inline V_INLINE vec v_expm1(vec a) { V_FOR_I a.p[i] = v_part_expm1(a.p[i]); return a; }

static inline V_INLINE dvec d_expm1(dvec a) { D_FOR_I a.p[i] = d_part_expm1(a.p[i]); return a; }

// e^x for -80 <= x <= 80.
static inline V_INLINE v_part v_part_exp_of_small(v_part x) {
  v_part r, n = v_part_reduce(x, &r), power = v_part_power_of_2(n, 0);
  return V_FMA(power, v_part_expm1_near_0(r), power);
}

static inline V_INLINE d_part d_part_exp_of_small(d_part x) {
  d_part r, n = d_part_reduce(x, &r), power = d_part_power_of_2(n, 0);
  return D_FMA(power, d_part_expm1_near_0(r), power);
}

// ---- log(x) = k log(2) + log(1 + f)

// The exponent k of x = 2^k (1 + f), with 1 + f in [2/3, 4/3). Returns k + 256, which is not negative.
static inline v_words v_part_exponent(v_part x) { return (v_part_words(x) + (0x80000000U - 0x3f2aaaab)) >> 23; }

static inline v_part v_part_from_exponent(v_words k) { return v_part_from_words(k | 0x4b000000) - (0x1p23F + 256); }

// The same with 1 + f in [sqrt(1/2), sqrt(2)). Returns k + 2048.
static inline d_words d_part_exponent(d_part x) {
  return (d_part_words(x) + (0x8000000000000000U - 0x3fe6a09e667f3bcd)) >> 52;
}

static inline d_part d_part_from_exponent(d_words k) {
  return d_part_from_words(k | 0x4330000000000000) - (0x1p52 + 2048);
}

// x 2^-k
static inline v_part v_part_without_exponent(v_part x, v_words k) {
  return v_part_from_words(v_part_words(x) - (k << 23) + 0x80000000U);
}

static inline d_part d_part_without_exponent(d_part x, d_words k) {
  return d_part_from_words(d_part_words(x) - (k << 52) + 0x8000000000000000U);
}

// k log(2) + log(1 + f) for |f| <= 1/3; error of the polynomial 2^-27.6.
static inline V_INLINE v_part v_part_log_of_reduced(v_words k, v_part f) {
  static const float c[] = {-0.5F, 0x1.555506p-2F, -0x1.fffefp-3F, 0x1.99d05ep-3F, -0x1.559de4p-3F, 0x1.1ed424p-3F,
                            -0x1.f30e36p-4F, 0x1.1e73ap-3F, -0x1.080c9ep-3F};
  v_part y = V_FMA(f * f, V_POLYNOMIAL(f, c), f);
  return V_FMA(v_part_from_exponent(k), v_part_set(0x1.62e43p-1F), y);
}

// (2 atanh(s) - 2 s) / s^3 - 2/3 over z, where z = s^2 <= 0.1717^2; error, relative to 2 atanh(s), 2^-66.2.
static inline V_INLINE d_part d_part_atanh_rest(d_part z) {
  static const double c[] = {0x1.9999999999b33p-2, 0x1.249249245774dp-2, 0x1.c71c722df7e32p-3, 0x1.745ce9ae525a5p-3,
                             0x1.3b1ef62450546p-3, 0x1.0f7ef257e4464p-3, 0x1.0e4c0c630a247p-3};
  return D_POLYNOMIAL(z, c);
}

// log(1 + f) = 2 atanh(s) with s = f / (2 + f), summed as in fdlibm's log.
static inline V_INLINE d_part d_part_log_of_reduced(d_words exponent, d_part f) {
  d_part s = f / (2.0 + f), z = s * s, half_square = 0.5 * f * f, k = d_part_from_exponent(exponent);
  d_part rest = D_FMA(z, d_part_atanh_rest(z), d_part_set(2.0 / 3));
  d_part y = D_FMA(s, D_FMA(z, rest, half_square), k * D_LOG_2_REST);
  return D_FMA(k, d_part_set(D_LOG_2), f - (half_square - y));
}

// y if x is positive and finite, else log(x): infinity, -infinity or NaN.
static inline V_INLINE v_part v_part_log_or(v_part x, v_part y) {
  y = V_SELECT(x < (float)INFINITY, y, x);
  y = V_SELECT(x == 0.0F, v_part_set(-(float)INFINITY), y);
  return V_SELECT(x < 0.0F, v_part_set(NAN), y);
}

static inline V_INLINE d_part d_part_log_or(d_part x, d_part y) {
  y = V_SELECT(x < (double)INFINITY, y, x);
  y = V_SELECT(x == 0.0, d_part_set(-(double)INFINITY), y);
  return V_SELECT(x < 0.0, d_part_set((double)NAN), y);
}

// Subnormal numbers are normalised first.
static inline V_INLINE v_part v_part_log(v_part x) {
  v_part y = V_SELECT(x < 0x1p-126F, x * 0x1p23F, x);
  v_words k = v_part_exponent(y);
  v_part f = v_part_without_exponent(y, k) - 1.0F;
  return v_part_log_or(x, v_part_log_of_reduced(V_SELECT(x < 0x1p-126F, k - 23, k), f));
}

static inline d_part d_part_log(d_part x) {
  d_part y = V_SELECT(x < 0x1p-1022, x * 0x1p52, x);
  d_words k = d_part_exponent(y);
  d_part f = d_part_without_exponent(y, k) - 1.0;
  return d_part_log_or(x, d_part_log_of_reduced(V_SELECT(x < 0x1p-1022, k - 52, k), f));
}

static inline V_INLINE vec v_log(vec a) { V_FOR_I a.p[i] = v_part_log(a.p[i]); return a; }

static inline V_INLINE dvec d_log(dvec a) { D_FOR_I a.p[i] = d_part_log(a.p[i]); return a; }

// f = (1 + x) 2^-k - 1 = x 2^-k + (2^-k - 1) is rounded once, and exact for k = 0. 2^-k may underflow, so it is computed
// as (4 2^-k) / 4.
static inline V_INLINE v_part v_part_log1p(v_part x) {
  v_words k = v_part_exponent(1.0F + x);
  v_part quarter = v_part_set(0.25F), minus_1 = v_part_set(-1.0F);
  v_part f = v_part_without_exponent(x, k) + V_FMA(v_part_without_exponent(v_part_set(4.0F), k), quarter, minus_1);
  return v_part_with_sign_of(v_part_log_or(1.0F + x, v_part_log_of_reduced(k, f)), x);
}

static inline d_part d_part_log1p(d_part x) {
  d_words k = d_part_exponent(1.0 + x);
  d_part quarter = d_part_set(0.25), minus_1 = d_part_set(-1.0);
  d_part f = d_part_without_exponent(x, k) + D_FMA(d_part_without_exponent(d_part_set(4.0), k), quarter, minus_1);
  return d_part_with_sign_of(d_part_log_or(1.0 + x, d_part_log_of_reduced(k, f)), x);
}

static inline V_INLINE vec v_log1p(vec a) { V_FOR_I a.p[i] = v_part_log1p(a.p[i]); return a; }

static inline V_INLINE dvec d_log1p(dvec a) { D_FOR_I a.p[i] = d_part_log1p(a.p[i]); return a; }

// ---- tanh, computed for |x|

// x + x^3 P(x^2) on [0, 0.6], error 2^-28.4; above that tanh(x) = 1 - 2 / (e^(2 x) + 1).
static inline V_INLINE v_part v_part_tanh(v_part x) {
  static const float c[] = {-0x1.55553ep-2F, 0x1.1109bep-3F, -0x1.b89abap-5F, 0x1.54c3c2p-6F, -0x1.828776p-8F};
  v_part a = V_ABS(x), z = x * x, near = V_FMA(a * z, V_POLYNOMIAL(z, c), a);
  v_part far = 1.0F - 2.0F / (v_part_exp_of_small(v_part_clamp(a + a, 0.0F, 20.0F)) + 1.0F);
  return v_part_with_sign_of(V_SELECT(a < 0.6F, near, far), x);
}

// The polynomial's error on [0, 0.6] is 2^-55.5.
static inline d_part d_part_tanh(d_part x) {
  static const double c[] = {-0x1.5555555555555p-2, 0x1.1111111110d9bp-3, -0x1.ba1ba1b9b0c43p-5, 0x1.664f485cacf63p-6,
                             -0x1.226e2e8402a08p-7, 0x1.d6d262163bcfcp-9, -0x1.7d8b75df724fep-10, 0x1.3455d219b3d1fp-11,
                             -0x1.e74c78fa67b08p-13, 0x1.56a09baaf21ecp-14, -0x1.34ea26dc331b4p-16};
  d_part a = D_ABS(x), z = x * x, near = D_FMA(a * z, D_POLYNOMIAL(z, c), a);
  d_part far = 1.0 - 2.0 / (d_part_exp_of_small(d_part_clamp(a + a, 0.0, 40.0)) + 1.0);
  return d_part_with_sign_of(V_SELECT(a < 0.6, near, far), x);
}

static inline V_INLINE vec v_tanh(vec a) { V_FOR_I a.p[i] = v_part_tanh(a.p[i]); return a; }

static inline V_INLINE dvec d_tanh(dvec a) { D_FOR_I a.p[i] = d_part_tanh(a.p[i]); return a; }

// ---- GELU(x) = x Phi(x) with Phi(x) = (1 + erf(x / sqrt(2))) / 2, and its derivative. Let a = |x| and R(a) = Phi(-a)
// e^(a^2 / 2), which is Mills' ratio divided by sqrt(2 pi), and D(a) = e^(-a^2 / 2) (R(a) - a / sqrt(2 pi)). Then
//
//     GELU(x) = max(x, 0) - e^(-a^2 / 2) a R(a)    and    GELU'(x) = D(a) for x < 0, 1 - D(a) for x >= 0
//
// Neither formula cancels where its value is small, except GELU' near its zero at -0.7518.

// Returns y e^(-a^2 / 2) 2^-n for a <= 39, and sets n.
static inline V_INLINE v_part v_part_gauss(v_part a, v_part y, v_part *n) {
  v_part square = a * a, rest = V_FMA(a, a, -square), r;
  *n = v_part_reduce(-0.5F * square, &r);
  return V_FMA(y, v_part_expm1_near_0(V_FMA(v_part_set(-0.5F), rest, r)), y);
}

static inline V_INLINE d_part d_part_gauss(d_part a, d_part y, d_part *n) {
  d_part square = a * a, rest = D_FMA(a, a, -square), r;
  *n = d_part_reduce(-0.5 * square, &r);
  return D_FMA(y, d_part_expm1_near_0(D_FMA(d_part_set(-0.5), rest, r)), y);
}

// R(a) = (1 - t) P(t) with t = (a - 3.5) / (a + 3.5), on [0, 15]; error 2^-26.3.
static inline V_INLINE v_part v_part_mills(v_part a) {
  static const float c[] = {0x1.b396fap-4F, -0x1.4aef38p-4F, 0x1.712332p-5F, -0x1.0fa064p-6F, 0x1.45e8cap-9F,
                            0x1.e5530ep-11F, -0x1.db76eap-12F, -0x1.101e2p-14F, 0x1.044a4cp-14F, 0x1.41807ap-17F,
                            -0x1.06de24p-18F};
  v_part t = (a - 3.5F) / (a + 3.5F);
  return (1.0F - t) * V_POLYNOMIAL(t, c);
}

// The same with 4 instead of 3.5, on [0, 39]; error 2^-54.5.
static inline V_INLINE d_part d_part_mills(d_part a) {
  static const double c[] = {0x1.82b4bb8c94dcep-4, -0x1.373e3a893c28ap-4, 0x1.8c6dbf2cfc2b2p-5, -0x1.7dff2bff68368p-6,
                             0x1.eec4cc3e4d406p-8, -0x1.ee2761048d999p-11, -0x1.c81719d56773bp-12, 0x1.ab825fc4caac9p-13,
                             0x1.17a4ae45db34p-16, -0x1.e4a4268b31075p-16, -0x1.001e78358473bp-22, 0x1.26d0b2cc26764p-18,
                             0x1.80b4ed7c6b33fp-24, -0x1.8d4e03ef88e78p-21, -0x1.51efed3fbaae1p-24,
                             0x1.125283e1f01cfp-23, 0x1.237440abab326p-25, -0x1.4e496db938d12p-26,
                             -0x1.6d92aba671bb1p-27, 0x1.e3e5b7c59d11ap-30, 0x1.50710739ed579p-29, 0x1.80ea8e7f84a1ap-33,
                             -0x1.69eacb0769157p-32, -0x1.4023856d16218p-34, 0x1.fd6cb40c8b284p-38};
  d_part t = (a - 4.0) / (a + 4.0);
  return (1.0 - t) * D_POLYNOMIAL(t, c);
}

// e^(-a^2 / 2) underflows to 0 where a is clamped, and a bit before: there 0 is scaled, which is fast (see v_exp). The
// result for x = -0 and for minus infinity is -0.
static inline V_INLINE v_part v_part_gelu(v_part x) {
  v_part n, a = v_part_clamp(V_ABS(x), 0.0F, 15.0F), y = v_part_gauss(a, a * v_part_mills(a), &n);
  return V_SELECT(x < 0.0F, v_part_set(-0.0F), x) - V_SCALE(V_SELECT(a > 14.5F, v_part_set(0.0F), y), n);
}

static inline d_part d_part_gelu(d_part x) {
  d_part n, a = d_part_clamp(D_ABS(x), 0.0, 39.0), y = d_part_gauss(a, a * d_part_mills(a), &n);
  return V_SELECT(x < 0.0, d_part_set(-0.0), x) - D_SCALE(y, n);
}

static inline V_INLINE vec v_gelu(vec a) { V_FOR_I a.p[i] = v_part_gelu(a.p[i]); return a; }

static inline V_INLINE dvec d_gelu(dvec a) { D_FOR_I a.p[i] = d_part_gelu(a.p[i]); return a; }

// erf(x) = x + x P(x^2) for |x| < 0.85, error 2^-26.7; above that 1 - 2 Phi(-a) with a = sqrt(2) |x|, which is not
// less than 0.77. The polynomials interpolate erf(x) / x - 1 at the roots of a Chebyshev polynomial of x^2.
static inline V_INLINE v_part v_part_erf(v_part x) {
  static const float c[] = {0x1.06eba8p-3F, -0x1.812746p-2F, 0x1.ce2eaep-4F, -0x1.b81dcep-6F,
                            0x1.5569a6p-8F, -0x1.b0652ep-11F, 0x1.7331c6p-14F};
  v_part size = V_ABS(x), z = size * size, near = V_FMA(size, V_POLYNOMIAL(z, c), size);
  v_part n, a = v_part_clamp(0x1.6a09e6p0F * size, 0.0F, 8.0F), y = v_part_gauss(a, v_part_mills(a), &n);
  v_part tail = V_SCALE(y, n);
  return v_part_with_sign_of(V_SELECT(size < 0.85F, near, 1.0F - (tail + tail)), x);
}

// The polynomial's error is 2^-56.3.
static inline d_part d_part_erf(d_part x) {
  static const double c[] = {0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042aa4p-4, -0x1.b82ce31280af9p-6,
                             0x1.565bcd0cbcf76p-8, -0x1.c02db3963408fp-11, 0x1.f9a31658993bep-14,
                             -0x1.f4d0a3d978b80p-17, 0x1.b9c84aad92c94p-20, -0x1.5e0ceca83a2b8p-23,
                             0x1.e78ce74511f33p-27, -0x1.e5d4a2f4facb1p-31};
  d_part size = D_ABS(x), z = size * size, near = D_FMA(size, D_POLYNOMIAL(z, c), size);
  d_part n, a = d_part_clamp(0x1.6a09e667f3bcdp0 * size, 0.0, 12.0), y = d_part_gauss(a, d_part_mills(a), &n);
  d_part tail = D_SCALE(y, n);
  return d_part_with_sign_of(V_SELECT(size < 0.85, near, 1.0 - (tail + tail)), x);
}

static inline V_INLINE vec v_erf(vec a) { V_FOR_I a.p[i] = v_part_erf(a.p[i]); return a; }

static inline V_INLINE dvec d_erf(dvec a) { D_FOR_I a.p[i] = d_part_erf(a.p[i]); return a; }

static inline V_INLINE v_part v_part_gelu_slope(v_part x) {
  v_part n, a = v_part_clamp(V_ABS(x), 0.0F, 15.0F), y = V_FMA(a, v_part_set(-0x1.988454p-2F), v_part_mills(a));
  y = v_part_gauss(a, y, &n);
  y = V_SCALE(V_SELECT(a > 14.75F, v_part_set(-0.0F), y), n);
  return V_SELECT(x < 0.0F, y, 1.0F - y);
}

static inline d_part d_part_gelu_slope(d_part x) {
  d_part n, a = d_part_clamp(D_ABS(x), 0.0, 39.0), y = D_FMA(a, d_part_set(-0x1.9884533d43651p-2), d_part_mills(a));
  y = d_part_gauss(a, y, &n);
  y = D_SCALE(y, n);
  return V_SELECT(x < 0.0, y, 1.0 - y);
}

static inline V_INLINE vec v_gelu_slope(vec a) { V_FOR_I a.p[i] = v_part_gelu_slope(a.p[i]); return a; }

static inline V_INLINE dvec d_gelu_slope(dvec a) { D_FOR_I a.p[i] = d_part_gelu_slope(a.p[i]); return a; }
