// clang-format off

// Sine and cosine, for every argument. The same for every ISA; follows math.h. Errors in units in the last place are
// less than 0.51 in f32, which is computed in f64, and 0.8 in f64.
//
// An argument is n pi/2 + r with |r| <= pi/4, where r is a pair. Below 2^26, r = x - n (P1 + P2 + P3), as W. J. Cody and
// W. Waite do it: x - n P1 is exact with one FMA. From 2^26 on, the product with 2/pi is computed in integers, without
// the bits that give multiples of 2 pi, as M. Payne and R. Hanek do it. The polynomials are fdlibm's.

// pi/2 = P1 + P2 + P3 + ...
#define D_HALF_PI 0x1.921fb54442d18p+0

#define D_HALF_PI_2 0x1.1a62633145c07p-54

#define D_HALF_PI_3 -0x1.f1976b7ed8fbcp-110

// The least argument that d_part_reduce_turns cannot reduce.
#define D_FAR 0x1p26

// x = n pi/2 + r for |x| < D_FAR. Sets *n, modulo 2^51.
static inline V_INLINE d_pair d_part_reduce_turns(d_part x, d_words *n) {
  d_part sum = D_FMA(x, d_part_set(0x1.45f306dc9c883p-1), d_part_set(D_INTEGER)), k = sum - D_INTEGER;
  d_part first = D_FMA(k, d_part_set(-D_HALF_PI), x), product = k * D_HALF_PI_2, high = first - product;
  d_part rest = D_FMA(k, d_part_set(D_HALF_PI_3), D_FMA(k, d_part_set(D_HALF_PI_2), -product));
  d_part back = high - first;
  d_pair r = {high, ((first - (high - back)) - (product + back)) - rest};
  *n = d_part_words(sum);
  return r;
}

// The same for a finite |x| >= D_FAR, which is m 2^exponent. The product needs 192 bits of 2/pi, which two_over_pi has
// after 64 zeros. The first bit used, times 2^exponent, is 2; all bits before it give multiples of 4.
static V_FAR void f64_reduce_far(double x, double *high, double *low, uint64_t *n) {
  static const uint32_t two_over_pi[40] = {
      0x00000000, 0x00000000, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561,
      0xB7246E3A, 0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41,
      0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF, 0x27CB09B7,
      0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08, 0x56033046, 0xFC7B6BAB};
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  const int exponent = (int)(bits >> 52 & 0x7ff) - 1075, first = exponent + 62;
  const uint64_t m = (bits & 0xfffffffffffff) | 0x10000000000000;
  uint32_t p[6] = {0}; // m times the window, from its most significant word on
  for (int part = 0; part < 2; part++) {
    uint64_t factor = part ? m >> 32 : m & 0xffffffff, carry = 0;
    for (int i = 5; i >= part; i--) {
      const uint32_t *at = two_over_pi + first / 32 + i;
      const uint64_t word = (((uint64_t)at[0] << 32 | at[1]) << first % 32) >> 32;
      const uint64_t sum = word * factor + p[i - part] + carry;
      p[i - part] = (uint32_t)sum;
      carry = sum >> 32;
    }
  }
  // The two highest bits are n modulo 4. From a fraction of 1/2 or more, 1 is subtracted.
  const int is_above = p[0] >> 29 & 1;
  const uint64_t quarters = (p[0] >> 30) + (uint64_t)is_above;
  for (int i = 0; i < 4; i++) p[i] = is_above ? ~p[i] : p[i];
  const double a = (double)(p[0] & 0x3fffffff) * 0x1p-30, b = (double)p[1] * 0x1p-62;
  const double most = a + b, less = ((a - most) + b) + ((double)p[2] * 0x1p-94 + (double)p[3] * 0x1p-126);
  const double part = most + less, rest = (most - part) + less, r = part * D_HALF_PI;
  const double tail = fma(part, D_HALF_PI, -r) + (part * D_HALF_PI_2 + rest * D_HALF_PI);
  const int is_negative = (x < 0) != is_above;
  *high = is_negative ? -r : r;
  *low = is_negative ? -tail : tail;
  *n = x < 0 ? 0 - quarters : quarters;
}

// Replaces r and n in the lanes that are far.
static V_FAR void d_part_reduce_far(const d_part *x, d_pair *r, d_words *n) {
  double a[D_LANES], high[D_LANES], low[D_LANES];
  uint64_t k[D_LANES];
  memcpy(a, x, sizeof a);
  memcpy(high, &r->high, sizeof high);
  memcpy(low, &r->low, sizeof low);
  memcpy(k, n, sizeof k);
  for (int i = 0; i < D_LANES; i++)
    if (fabs(a[i]) >= D_FAR && fabs(a[i]) < (double)INFINITY) f64_reduce_far(a[i], &high[i], &low[i], &k[i]);
  memcpy(&r->high, high, sizeof high);
  memcpy(&r->low, low, sizeof low);
  memcpy(n, k, sizeof k);
}

static inline V_INLINE d_part d_part_sine_near_0(d_pair r) {
  static const double c[] = {0x1.111111110f8a6p-7, -0x1.a01a019c161d5p-13, 0x1.71de357b1fe7dp-19, -0x1.ae5e68a2b9cebp-26,
                             0x1.5d93a5acfd57cp-33};
  d_part z = r.high * r.high, cube = z * r.high;
  return r.high - ((z * (0.5 * r.low - cube * D_POLYNOMIAL(z, c)) - r.low) + cube * 0x1.5555555555549p-3);
}

static inline V_INLINE d_part d_part_cosine_near_0(d_pair r) {
  static const double c[] = {0x1.555555555554cp-5, -0x1.6c16c16c15177p-10, 0x1.a01a019cb1590p-16, -0x1.27e4f809c52adp-22,
                             0x1.1ee9ebdb4b1c4p-29, -0x1.8fae9be8838d4p-37};
  d_part z = r.high * r.high, half = 0.5 * z, most = 1.0 - half;
  return most + (((1.0 - most) - half) + (z * (z * D_POLYNOMIAL(z, c)) - r.high * r.low));
}

// The sine of a + quarters pi/2. An infinite argument gives NaN.
static inline V_INLINE dvec d_sine(dvec a, uint64_t quarters) {
  D_FOR_I {
    d_words n;
    d_pair r = d_part_reduce_turns(a.p[i], &n);
    if (D_TRUTHS(D_ABS(a.p[i]) >= D_FAR)) d_part_reduce_far(&a.p[i], &r, &n);
    n += quarters;
    d_part y = V_SELECT((n & 1) != 0, d_part_cosine_near_0(r), d_part_sine_near_0(r));
    y = d_part_from_words(d_part_words(y) ^ (n & 2) << 62);
    if (!quarters) y = V_SELECT(D_ABS(a.p[i]) < 0x1p-27, a.p[i], y);
    a.p[i] = V_SELECT(D_ABS(a.p[i]) < (double)INFINITY, y, a.p[i] - a.p[i]);
  }
  return a;
}

static inline dvec d_sin(dvec a) { return d_sine(a, 0); }

static inline dvec d_cos(dvec a) { return d_sine(a, 1); }

static inline vec v_sin(vec a) { return v_from_d(d_sin(d_from_v(a))); }

static inline vec v_cos(vec a) { return v_from_d(d_cos(d_from_v(a))); }
