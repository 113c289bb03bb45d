// clang-format off

// Powers and remainders. The same for every ISA; follows math.h, which has their errors.

// x^y = e^(y log(x))

// A number as an unevaluated sum of two numbers; `low` is at most about an ulp of `high`. T. J. Dekker, 1971.
typedef struct { d_part high, low; } d_pair;

// a + b, where |a| >= |b| or a = 0.
static inline d_pair d_pair_of_sum(d_part a, d_part b) {
  d_part sum = a + b;
  d_pair c = {sum, b - (sum - a)};
  return c;
}

static inline d_pair d_pair_product(d_pair a, d_pair b) {
  d_part high = a.high * b.high;
  d_pair c = {high, D_FMA(a.high, b.high, -high) + D_FMA(a.high, b.low, a.low * b.high)};
  return c;
}

// log(x) of a positive finite number, to about 2^-66: 2 s + s^3 (2/3 + z P(z)) as in d_part_log_of_reduced, all but P
// in pairs, as N. Shibata's SLEEF does. 2 + f = m + 1 is `sum` and sum_low.
static inline V_INLINE d_pair d_pair_log(d_part x) {
  d_part normal = V_SELECT(x < 0x1p-1022, x * 0x1p52, x);
  d_words exponent = d_part_exponent(normal);
  d_part k = d_part_from_exponent(V_SELECT(x < 0x1p-1022, exponent - 52, exponent));
  d_part m = d_part_without_exponent(normal, exponent), sum = m + 1.0, sum_low = m - (sum - 1.0), inverse = 1.0 / sum;
  d_pair s = {(m - 1.0) * inverse, sum};
  s.low = D_FMA(-s.high, sum_low, D_FMA(-s.high, sum, m - 1.0)) * inverse;
  d_pair z = d_pair_product(s, s);
  d_pair rest = d_pair_of_sum(d_part_set(2.0 / 3), z.high * d_part_atanh_rest(z.high));
  rest.low += 0x1.5555555555555p-55; // 2/3 minus its rounded value
  rest = d_pair_product(d_pair_product(s, z), rest);
  d_pair most = d_pair_of_sum(k * D_LOG_2, s.high + s.high), y = d_pair_of_sum(most.high, rest.high);
  rest.low += D_FMA(k, d_part_set(D_LOG_2_REST), s.low + s.low);
  return d_pair_of_sum(y.high, y.low + most.low + rest.low);
}

// x^y from |x|^y, with the special cases of C's Annex F. An infinite y counts as an even integer.
static inline d_part d_part_power_of_signed(d_part x, d_part y, d_part power) {
  d_part half = 0.5 * y, one = d_part_set(1.0);
  d_bits is_integer = d_part_round(y) == y, is_odd = is_integer & (d_part_round(half) != half);
  power = V_SELECT(is_odd, d_part_with_sign_of(power, x), power);
  power = V_SELECT((x < 0.0) & (x > -(double)INFINITY) & (is_integer == 0), d_part_set((double)NAN), power);
  return V_SELECT((x == 1.0) | (y == 0.0), one, power);
}

// An infinite y is replaced by a large finite one, which gives the same result, because 0 times infinity would be NaN.
static inline d_part d_part_pow(d_part x, d_part y) {
  d_part a = D_ABS(x), zero = {0};
  d_pair factor = {d_part_clamp(y, -0x1p1023, 0x1p1023), zero}, product = d_pair_log(a);
  product.high = d_part_log_or(a, product.high);
  product.low = V_SELECT(D_ABS(product.high) < (double)INFINITY, product.low, zero);
  product = d_pair_product(product, factor);
  product.low = V_SELECT(D_ABS(product.high) < 1000.0, product.low, zero);
  return d_part_power_of_signed(x, y, d_part_exp_of_sum(product.high, product.low));
}

static inline V_INLINE dvec d_pow(dvec a, dvec b) { D_FOR_I a.p[i] = d_part_pow(a.p[i], b.p[i]); return a; }

// Computed in f64, which is accurate enough for f32: |y log(x)| < 2^7 unless the result is 0 or infinity.
static inline d_part d_part_pow_of_f32(d_part x, d_part y) {
  d_part product = d_part_clamp(y, -0x1p1023, 0x1p1023) * d_part_log(D_ABS(x));
  return d_part_power_of_signed(x, y, d_part_exp_of_sum(product, d_part_set(0.0)));
}

static inline V_INLINE vec v_pow(vec a, vec b) {
  dvec x = d_from_v(a), y = d_from_v(b);
  D_FOR_I x.p[i] = d_part_pow_of_f32(x.p[i], y.p[i]);
  return v_from_d(x);
}

// fmod is exact, so every C library gives the same bits.
static inline vec v_fmod(vec a, vec b) {
  float x[16], y[16];
  v_store(x, a);
  v_store(y, b);
  for (int i = 0; i < 16; i++) x[i] = fmodf(x[i], y[i]);
  return v_load(x);
}

static inline dvec d_fmod(dvec a, dvec b) {
  double x[16], y[16];
  d_store(x, a);
  d_store(y, b);
  for (int i = 0; i < 16; i++) x[i] = fmod(x[i], y[i]);
  return d_load(x);
}

// Rounds to 13 bits; if digits are lost, the last of them becomes 1, by the carry of the sum.
static inline dvec d_round_odd(dvec a) {
  const uint64_t lost = ((uint64_t)1 << 40) - 1;
  D_FOR_I {
    const d_words u = d_part_words(a.p[i]);
    a.p[i] = d_part_from_words((u | ((u & lost) + lost)) & ~lost);
  }
  return a;
}
