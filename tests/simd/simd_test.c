// The vector vocabulary of one ISA: every function but those on memory (memory_test.c) against plain C on its lanes,
// and a line `name hash` of all that it returned, for run.sh to compare with another ISA's. A NaN counts as a NaN,
// whichever. No library, so that it cross-compiles. run.sh includes the ISA's headers before this file, as emitted C
// does; by itself it tests scalar.h.
#include "tests/simd/lanes.h"

// As next_f64.
static float next_f32(void) {
  // clang-format off
  static const float specials[] = {
      0, -0.0F, 1, -1, INFINITY, (float)-INFINITY, NAN, FLT_EPSILON, FLT_MAX, -FLT_MAX, FLT_MIN, -FLT_MIN, FLT_MIN / 2,
      0x1p-149F, -0x1p-149F, 0x1p-133F,                  // the least f32 and bf16
      65504, 65519, 65520, 0x1p-14F, 0x1p-24F, 0x1p-25F, // where f16 ends
  };
  // clang-format on
  uint64_t bits = next();
  if (bits >> 62 == 0) return specials[bits % (sizeof specials / sizeof *specials)];
  if (bits >> 62 == 1) return f32_from_bits((uint32_t)bits);
  return ldexpf((float)(int32_t)(uint32_t)bits, (int)(bits >> 32 & 15) - 39);
}

static float fa[COUNT], fb[COUNT], fc[COUNT];
static double da[COUNT], db[COUNT], dc[COUNT];

static int64_t la[COUNT], lb[COUNT], lc[COUNT];

// Also the ends of the range, whose sums, differences and products wrap around, and near numbers.
static int64_t next_s64(void) {
  const uint64_t bits = next();
  return bits >> 62 == 0   ? (int64_t)(bits & 1 ? UINT64_C(1) << 63 : INT64_MAX)
         : bits >> 62 == 1 ? (int64_t)(bits & 7) - 3
                           : (int64_t)next();
}

static void make_inputs(void) {
  for (int i = 0; i < COUNT; i++) {
    fa[i] = next_f32();
    fb[i] = i % 7 ? next_f32() : fa[i];
    fc[i] = next_f32();
    da[i] = next_f64();
    db[i] = i % 7 ? next_f64() : da[i];
    dc[i] = next_f64();
  }
  for (int i = 0; i < COUNT; i++) {
    la[i] = next_s64();
    lb[i] = i % 7 ? next_s64() : la[i];
    lc[i] = next_s64();
  }
}

// ---- Arithmetic

// `vectors` of a, b and c is in each lane `numbers` of x, y and z.
#define TEST_V(name, vectors, numbers)                                                                                 \
  do {                                                                                                                 \
    begin(#name);                                                                                                      \
    for (int i = 0; i < COUNT; i += LANES) {                                                                           \
      vec a = v_load(fa + i), b = v_load(fb + i), c = v_load(fc + i);                                                  \
      float lanes[LANES];                                                                                              \
      v_store(lanes, vectors);                                                                                         \
      for (int j = 0; j < LANES; j++) {                                                                                \
        float x = fa[i + j], y = fb[i + j], z = fc[i + j];                                                             \
        (void)x, (void)y, (void)z;                                                                                     \
        expect_number((double)lanes[j], (double)(numbers));                                                            \
      }                                                                                                                \
      (void)a, (void)b, (void)c;                                                                                       \
    }                                                                                                                  \
    end();                                                                                                             \
  } while (0)

#define TEST_D(name, vectors, numbers)                                                                                 \
  do {                                                                                                                 \
    begin(#name);                                                                                                      \
    for (int i = 0; i < COUNT; i += LANES) {                                                                           \
      dvec a = d_load(da + i), b = d_load(db + i), c = d_load(dc + i);                                                 \
      double lanes[LANES];                                                                                             \
      d_store(lanes, vectors);                                                                                         \
      for (int j = 0; j < LANES; j++) {                                                                                \
        double x = da[i + j], y = db[i + j], z = dc[i + j];                                                            \
        (void)x, (void)y, (void)z;                                                                                     \
        expect_number(lanes[j], numbers);                                                                              \
      }                                                                                                                \
      (void)a, (void)b, (void)c;                                                                                       \
    }                                                                                                                  \
    end();                                                                                                             \
  } while (0)

#define TEST_L(name, vectors, numbers)                                                                                 \
  do {                                                                                                                 \
    begin(#name);                                                                                                      \
    for (int i = 0; i < COUNT; i += LANES) {                                                                           \
      lvec a = l_load_s64(la + i), b = l_load_s64(lb + i), c = l_load_s64(lc + i);                                     \
      int64_t lanes[LANES];                                                                                            \
      l_store_s64(lanes, vectors);                                                                                     \
      for (int j = 0; j < LANES; j++) {                                                                                \
        const int64_t sx = la[i + j], sy = lb[i + j], sz = lc[i + j];                                                  \
        const uint64_t x = (uint64_t)sx, y = (uint64_t)sy, z = (uint64_t)sz;                                           \
        (void)x, (void)y, (void)z;                                                                                     \
        hash_bits((uint64_t)lanes[j]);                                                                                 \
        expect((uint64_t)lanes[j] == (numbers), (double)lanes[j], (double)(int64_t)(numbers));                         \
      }                                                                                                                \
      (void)a, (void)b, (void)c;                                                                                       \
    }                                                                                                                  \
    end();                                                                                                             \
  } while (0)

static lvec gathered(const int64_t *p, ptrdiff_t stride, int n) {
  return n < LANES ? l_gather_n_s64(p, stride, n) : l_gather_s64(p, stride);
}

// The lanes of a, through memory with a stride, of which the first n are stored; the others are 0.
static lvec scattered(lvec a, ptrdiff_t stride, int n) {
  int64_t x[3 * LANES] = {0};
  if (n < LANES) l_scatter_n_s64(x, stride, a, n);
  else l_scatter_s64(x, stride, a);
  return gathered(x, stride, n);
}

static lvec stored(lvec a, int n) {
  int64_t x[LANES] = {0};
  l_store_n_s64(x, a, n);
  return l_load_n_s64(x, n);
}

// Lane j of the first `count` of x from lane `first` on, and -7 in the other lanes.
static uint64_t placed(const int64_t *x, int first, int count, int j) {
  return (uint64_t)(j >= first && j < first + count ? x[j - first] : -7);
}

// ---- Multiply-adds

// a * b + c where a second rounding would show, in turn: of any bits; with a product near half the last digit of c,
// which is often subnormal; with a product half way between two f32, and a c that is small beside it; nearly 0.
static void next_multiply_add(float *a, float *b, float *c) {
  const uint64_t bits = next();
  const int any = (int)(bits >> 32 & 0xffff) % 400, exponent = any < 280 ? any - 150 : -150; // of the product
  const int part = (int)(bits >> 48) % 60 - 30;                                              // of a
  const int sign = bits & 16 ? 1 : -1, j = (int)(bits >> 8 & 0xfff), k = bits & 32 ? -j : (int)(bits >> 20 & 0xfff);
  *a = f32_from_bits((uint32_t)next());
  *b = f32_from_bits((uint32_t)next());
  *c = f32_from_bits((uint32_t)next());
  switch (bits % 4) {
  case 1:
    *a = ldexpf(1 + (float)j * 0x1p-23F, exponent / 2 + part);
    *b = ldexpf(1 + (float)k * 0x1p-23F, exponent - exponent / 2 - part) * (float)sign;
    *c = ldexpf((float)((next() >> 40 | 1 << 23) >> (any < 280 ? 0 : bits >> 59)), exponent + 1);
    break;
  case 2: // the product of two odd numbers of 13 bits has 25 or 26
    *a = ldexpf((float)(j | 0x1001), exponent / 2 + part - 24);
    *b = ldexpf((float)((next() & 0xfff) | 0x1001), exponent - exponent / 2 - part);
    *c = bits & 64 ? ldexpf((float)sign, exponent - 60 - (int)(bits >> 54)) : (float)sign * 0x1p-149F;
    break;
  case 3: *c = -(*a * *b) * (1 + (float)(j & 7) * FLT_EPSILON); break;
  }
}

static void test_multiply_add(int count) {
  begin("v_fma of hard cases");
  float a[LANES], b[LANES], c[LANES], lanes[LANES];
  for (int i = 0; i < count; i += LANES) {
    for (int j = 0; j < LANES; j++) next_multiply_add(a + j, b + j, c + j);
    v_store(lanes, v_fma(v_load(a), v_load(b), v_load(c)));
    for (int j = 0; j < LANES; j++) expect_number((double)lanes[j], (double)fmaf(a[j], b[j], c[j]));
  }
  end();
}

// All signs and exponents of the three operands, with the least and the greatest fractions.
static void test_multiply_add_of_all_exponents(void) {
  begin("v_fma of all exponents");
  static const uint32_t fractions[] = {0, 1, 0x400000, 0x7fffff};
  float lanes[LANES];
  for (uint32_t i = 0; i < 256; i++)
    for (uint32_t j = 0; j < 256; j += 5)
      for (uint32_t sign = 0; sign < 2; sign++) {
        float x[LANES], y[LANES], z[LANES];
        for (int k = 0; k < LANES; k++) {
          x[k] = f32_from_bits(i << 23 | fractions[k % 4]);
          y[k] = f32_from_bits(sign << 31 | (j + i % 5 < 256 ? j + i % 5 : 255) << 23 | fractions[k / 4]);
          // From two digits below the product's last digit to two above its first.
          const int product = (int)(i + j) - 127, exponent = product + (k * 7 + (int)j) % 56 - 28;
          z[k] = f32_from_bits((uint32_t)(exponent < 0     ? 0
                                          : exponent > 254 ? 254
                                                           : exponent)
                                   << 23 |
                               fractions[(i + j) % 4]);
        }
        v_store(lanes, v_fma(v_load(x), v_load(y), v_load(z)));
        for (int k = 0; k < LANES; k++) expect_number((double)lanes[k], (double)fmaf(x[k], y[k], z[k]));
      }
  end();
}

static void test_arithmetic_s64(void) {
  TEST_L(l_set, l_set(la[i]), (uint64_t)la[i]);
  TEST_L(l_add, l_add(a, b), x + y);
  TEST_L(l_sub, l_sub(a, b), x - y);
  TEST_L(l_mul, l_mul(a, b), x * y);
  TEST_L(l_fma, l_fma(a, b, c), x * y + z);
  TEST_L(l_index, l_index((size_t)i), (uint64_t)(i + j));
  TEST_L(l_neg, l_neg(a), 0 - x);
  TEST_L(l_max, l_max(a, b), sx > sy ? x : y);
  TEST_L(l_min, l_min(a, b), sx < sy ? x : y);
  TEST_L(l_fmod, l_fmod(a, b), y + 1 < 2 ? 0 : (uint64_t)(sx % sy));
  TEST_L(l_gt, l_select(l_gt(a, b), a, c), sx > sy ? x : z);
  TEST_L(l_ge, l_select(l_ge(a, b), a, c), sx >= sy ? x : z);
  TEST_L(l_eq, l_select(l_eq(a, b), a, c), sx == sy ? x : z);
  TEST_L(l_scatter_s64, scattered(a, 1 + i / LANES % 3, i / LANES % 17), j < i / LANES % 17 ? x : 0);
  TEST_L(l_store_n_s64, stored(a, i / LANES % 17), j < i / LANES % 17 ? x : 0);
  TEST_L(l_place, l_place(a, ((v_span){(size_t)(i / LANES % 5), i / LANES % 11}), -7),
         placed(la + i, i / LANES % 5, i / LANES % 11, j));
  TEST_L(v_from_l, l_from_d(d_from_v(v_from_l(l_fmod(a, l_set(256))))), (uint64_t)(sx % 256));
  TEST_L(d_from_l, l_from_d(d_from_l(l_fmod(a, l_set(INT64_C(1) << 32)))), (uint64_t)(sx % (INT64_C(1) << 32)));
  TEST_L(l_from_v, l_from_v(v_from_l(l_select(l_gt(a, b), l_set(1), l_set(0)))), (uint64_t)(sx > sy));
}

static double maximum(double x, double y) {
  if (isnan(x) || isnan(y)) return (double)NAN;
  if (x == 0 && y == 0) return signbit(x) && signbit(y) ? -0.0 : 0.0;
  return x > y ? x : y;
}

static double product(double x, double y) {
  return x * y;
}

// To 13 bits, or to the neighbour of two that has the last bit set.
static double rounded_to_odd(double x) {
  double near;
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits = bits >> 40 << 40;
  memcpy(&near, &bits, sizeof near);
  if (near == x || (isnan(x) && isnan(near))) return near;
  bits |= (uint64_t)1 << 40;
  memcpy(&near, &bits, sizeof near);
  return near;
}

static void test_arithmetic_f32(void) {
  TEST_V(v_set, v_set(fa[i]), fa[i]);
  TEST_V(v_hold, v_hold(a), x);
  TEST_V(v_add, v_add(a, b), x + y);
  TEST_V(v_sub, v_sub(a, b), x - y);
  TEST_V(v_mul, v_mul(a, b), x * y);
  TEST_V(v_div, v_div(a, b), x / y);
  TEST_V(v_fmod, v_fmod(a, b), fmodf(x, y));
  TEST_V(v_neg, v_neg(a), -x);
  TEST_V(v_abs, v_abs(a), fabsf(x));
  TEST_V(v_sqrt, v_sqrt(a), sqrtf(x));
  TEST_V(v_fma, v_fma(a, b, c), fmaf(x, y, z));
  TEST_V(v_max, v_max(a, b), x > y ? x : y);
  TEST_V(v_min, v_min(a, b), x < y ? x : y);
  TEST_V(v_maximum, v_maximum(a, b), (float)maximum((double)x, (double)y));
  TEST_V(v_gt, v_select(v_gt(a, b), a, c), x > y ? x : z);
  TEST_V(v_ge, v_select(v_ge(a, b), a, c), x >= y ? x : z);
  TEST_V(v_eq, v_select(v_eq(a, b), a, c), x == y ? x : z);
  uint8_t bits[2];
  TEST_V(mask_load, (mask_store(bits, v_gt(b, a)), v_select(mask_load(bits), a, c)), x < y ? x : z);
  TEST_V(v_merge, v_merge(i / LANES % 17, a, b), j < i / LANES % 17 ? x : y);
}

static void test_arithmetic_f64(void) {
  TEST_D(d_set, d_set(da[i]), da[i]);
  TEST_D(d_add, d_add(a, b), x + y);
  TEST_D(d_sub, d_sub(a, b), x - y);
  TEST_D(d_mul, d_mul(a, b), x * y);
  TEST_D(d_div, d_div(a, b), x / y);
  TEST_D(d_fmod, d_fmod(a, b), fmod(x, y));
  TEST_D(d_neg, d_neg(a), -x);
  TEST_D(d_abs, d_abs(a), fabs(x));
  TEST_D(d_sqrt, d_sqrt(a), sqrt(x));
  TEST_D(d_fma, d_fma(a, b, c), fma(x, y, z));
  TEST_D(d_max, d_max(a, b), x > y ? x : y);
  TEST_D(d_min, d_min(a, b), x < y ? x : y);
  TEST_D(d_maximum, d_maximum(a, b), maximum(x, y));
  TEST_D(d_gt, d_select(d_gt(a, b), a, c), x > y ? x : z);
  TEST_D(d_ge, d_select(d_ge(a, b), a, c), x >= y ? x : z);
  TEST_D(d_eq, d_select(d_eq(a, b), a, c), x == y ? x : z);
  uint8_t bits[2];
  TEST_D(dmask_load, (dmask_store(bits, d_gt(b, a)), d_select(dmask_load(bits), a, c)), x < y ? x : z);
  TEST_D(d_merge, d_merge(i / LANES % 17, a, b), j < i / LANES % 17 ? x : y);
}

static void test_widths(void) {
  float narrow[LANES];
  double wide[LANES];
  begin("d_from_v");
  for (int i = 0; i < COUNT; i += LANES) {
    d_store(wide, d_from_v(v_load(fa + i)));
    for (int j = 0; j < LANES; j++) expect_number(wide[j], (double)fa[i + j]);
  }
  end();
  begin("v_from_d");
  for (int i = 0; i < COUNT; i += LANES) {
    v_store(narrow, v_from_d(d_load(da + i)));
    for (int j = 0; j < LANES; j++) expect_number((double)narrow[j], (double)(float)da[i + j]);
  }
  end();
}

static void test_narrowing(void) {
  TEST_V(v_round_bf16, v_round_bf16(a), f32_from_bf16(bf16_from_f32(x)));
  TEST_V(v_round_f16, v_round_f16(a), f32_from_f16(f16_from_f32(x)));
  TEST_D(d_round_odd, d_round_odd(a), rounded_to_odd(x));
  TEST_D(d_round_bf16, d_round_bf16(a), (double)f32_from_bf16(bf16_from_f32((float)x)));
  TEST_D(d_round_f16, d_round_f16(a), (double)f32_from_f16(f16_from_f32((float)x)));
  static const struct {
    double number;
    int32_t wanted;
  } integers[] = {
      {0.5, 0},
      {1.5, 2},
      {-2.5, -2},
      {(double)NAN, 0},
      {(double)INFINITY, INT32_MAX},
      {-(double)INFINITY, INT32_MIN},
      {2147483647.5, INT32_MAX},
      {-2147483648.5, INT32_MIN},
      {2147483646.5, 2147483646},
      {-2147483647.5, INT32_MIN},
  };
  begin("d_store_s32");
  for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
    int32_t stored[LANES];
    d_store_s32(stored, d_set(integers[i].number));
    for (int j = 0; j < LANES; j++) expect_number(stored[j], integers[i].wanted);
  }
  end();
}

// The tree, written out once more.
static void test_sums(void) {
  begin("d_sum");
  for (int i = 0; i < COUNT; i += LANES) {
    double t[LANES];
    memcpy(t, da + i, sizeof t);
    for (int k = 8; k; k /= 2) {
      for (int j = 0; j < k; j++) t[j] = t[j] + t[j + k];
    }
    expect_number(d_sum(d_load(da + i)), t[0]);
  }
  end();
}

static void test_fold(const char *name, double (*fold)(dvec), double (*combine)(double, double)) {
  begin(name);
  for (int i = 0; i < COUNT; i += LANES) {
    double t[LANES];
    memcpy(t, da + i, sizeof t);
    for (int k = 8; k; k /= 2) {
      for (int j = 0; j < k; j++) t[j] = combine(t[j], t[j + k]);
    }
    expect_number(fold(d_load(da + i)), t[0]);
  }
  end();
}

static void test_greatest(void) {
  begin("v_greatest");
  for (int i = 0; i < COUNT; i += LANES) {
    double greatest = (double)fa[i];
    for (int j = 1; j < LANES; j++) greatest = maximum(greatest, (double)fa[i + j]);
    expect_number((double)v_greatest(v_load(fa + i)), greatest);
  }
  end();
}

static void test_folds(void) {
  test_greatest();
  test_fold("d_greatest", d_greatest, maximum);
  test_fold("d_product", d_product, product);
}

static void test_scalars(void) {
  begin("f64");
  for (int i = 0; i < COUNT; i++) {
    expect_number(f64_add(da[i], db[i]), da[i] + db[i]);
    expect_number(f64_mul(da[i], db[i]), da[i] * db[i]);
    expect_number(f64_maximum(da[i], db[i]), maximum(da[i], db[i]));
  }
  end();
}

// ---- Formats of 16 bits

typedef struct Format {
  const char *name;
  int fraction_bits, bias;
  uint16_t infinity;
  float (*decode)(uint16_t);
  uint16_t (*encode)(float);
  void (*load)(float *lanes, const uint16_t *p);
  void (*store)(uint16_t *p, const float *lanes);
} Format;

static void load_bf16(float *lanes, const uint16_t *p) {
  v_store(lanes, v_load_bf16(p));
}
static void store_bf16(uint16_t *p, const float *lanes) {
  v_store_bf16(p, v_load(lanes));
}
static void load_f16(float *lanes, const uint16_t *p) {
  v_store(lanes, v_load_f16(p));
}
static void store_f16(uint16_t *p, const float *lanes) {
  v_store_f16(p, v_load(lanes));
}

enum { BF16, F16 };
static const Format formats[] = {
    {"bf16", 7, 127, 0x7f80, f32_from_bf16, bf16_from_f32, load_bf16, store_bf16},
    {"f16", 10, 15, 0x7c00, f32_from_f16, f16_from_f32, load_f16, store_f16},
};

// What a code stands for, from the definition; the code after the largest number is one more of them, not infinity.
static double code_value(const Format *format, int code) {
  int exponent = (code & 0x7fff) >> format->fraction_bits;
  int fraction = code & ((1 << format->fraction_bits) - 1);
  if (exponent) fraction += 1 << format->fraction_bits;
  double magnitude = ldexp(fraction, (exponent ? exponent : 1) - format->bias - format->fraction_bits);
  return code & 0x8000 ? -magnitude : magnitude;
}

static void test_decoding(const Format *format) {
  for (int code = 0; code < 0x10000; code += LANES) {
    uint16_t codes[LANES], again[LANES];
    float lanes[LANES];
    for (int j = 0; j < LANES; j++) codes[j] = (uint16_t)(code + j);
    format->load(lanes, codes);
    format->store(again, lanes);
    for (int j = 0; j < LANES; j++) {
      int magnitude = codes[j] & 0x7fff;
      double wanted = code_value(format, codes[j]);
      if (magnitude == format->infinity) wanted = codes[j] & 0x8000 ? -(double)INFINITY : (double)INFINITY;
      if (magnitude > format->infinity) {
        wanted = (double)NAN;
        expect((again[j] & 0x7fff) > format->infinity, again[j], codes[j]);
        expect((format->encode(lanes[j]) & 0x7fff) > format->infinity, format->encode(lanes[j]), codes[j]);
      } else {
        expect(again[j] == codes[j], again[j], codes[j]);
        expect(format->encode(lanes[j]) == codes[j], format->encode(lanes[j]), codes[j]);
      }
      expect_number((double)lanes[j], wanted);
      expect_number((double)format->decode(codes[j]), wanted);
    }
  }
}

static void expect_code(const Format *format, float number, int wanted) {
  float lanes[LANES];
  uint16_t codes[LANES];
  for (int j = 0; j < LANES; j++) lanes[j] = j & 1 ? -number : number;
  format->store(codes, lanes);
  for (int j = 0; j < LANES; j++) {
    int signed_code = j & 1 ? wanted | 0x8000 : wanted;
    hash_bits(codes[j]);
    expect(codes[j] == signed_code, codes[j], signed_code);
    expect(format->encode(lanes[j]) == signed_code, format->encode(lanes[j]), signed_code);
  }
}

// Halfway between one number and the next, and the f32 on either side of that.
static void test_rounding(const Format *format) {
  for (int code = 0; code < format->infinity; code++) {
    float middle = (float)((code_value(format, code) + code_value(format, code + 1)) / 2);
    expect_code(format, nextafterf(middle, 0), code);
    expect_code(format, middle, code + (code & 1));
    expect_code(format, nextafterf(middle, INFINITY), code + 1);
  }
  expect_code(format, FLT_MAX, format->infinity);
}

static void test_known_codes(void) {
  expect_code(&formats[BF16], 1, 0x3f80);
  expect_code(&formats[BF16], 3.14159274F, 0x4049);
  expect_code(&formats[BF16], 0x1p-133F, 1);
  expect_code(&formats[F16], 1, 0x3c00);
  expect_code(&formats[F16], 3.14159274F, 0x4248);
  expect_code(&formats[F16], 65504, 0x7bff);
  expect_code(&formats[F16], 65520, 0x7c00);
  expect_code(&formats[F16], 0x1p-24F, 1);
}

// A NaN whose payload is all below what the format keeps must not become infinity, nor one of all ones become zero.
static void test_nan(const Format *format) {
  static const uint32_t nans[] = {0x7f800001, 0x7fffffff, 0xff800001, 0xffffffff, 0x7fc00000, 0x7f802000, 0x7fff8000};
  for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
    uint32_t bits[LANES];
    float lanes[LANES];
    uint16_t codes[LANES];
    for (int j = 0; j < LANES; j++) bits[j] = nans[i];
    memcpy(lanes, bits, sizeof lanes);
    format->store(codes, lanes);
    for (int j = 0; j < LANES; j++) {
      expect((codes[j] & 0x7fff) > format->infinity, codes[j], nans[i]);
      expect((format->encode(lanes[j]) & 0x7fff) > format->infinity, format->encode(lanes[j]), nans[i]);
    }
  }
}

static void test_formats(void) {
  begin("known_codes");
  test_known_codes();
  end();
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    begin(formats[i].name);
    test_decoding(&formats[i]);
    test_rounding(&formats[i]);
    test_nan(&formats[i]);
    for (int k = 0; k < COUNT; k += LANES) {
      uint16_t codes[LANES];
      formats[i].store(codes, fa + k);
      for (int j = 0; j < LANES; j++) {
        uint16_t wanted = formats[i].encode(fa[k + j]);
        expect_number((double)formats[i].decode(codes[j]), (double)formats[i].decode(wanted));
      }
    }
    end();
  }
}

// ---- Numbers of 8 bits and less

// Every number of 8 bits from its definition, a sign, an exponent and a mantissa, and back.
static void test_f8(void) {
  begin("f8");
  for (int b = 0; b < 256; b++) {
    const int e4 = b >> 3 & 15, m3 = b & 7, e5 = b >> 2 & 31, m2 = b & 3;
    const double sign = b & 128 ? -1 : 1;
    double e4m3 = sign * ldexp(e4 ? 8 + m3 : m3, (e4 ? e4 : 1) - 10);
    double e5m2 = sign * ldexp(e5 ? 4 + m2 : m2, (e5 ? e5 : 1) - 17);
    if (e4 == 15 && m3 == 7) e4m3 = (double)NAN;
    if (e5 == 31) e5m2 = m2 ? (double)NAN : sign * (double)INFINITY;
    expect_number((double)f32_from_e4m3((uint8_t)b), e4m3);
    expect_number((double)f32_from_e5m2((uint8_t)b), e5m2);
    if (!isnan(e4m3)) expect_number(e4m3_from_f32((float)e4m3), b);
    if (!isnan(e5m2)) expect_number(e5m2_from_f32((float)e5m2), b);
  }
  static const struct {
    float number;
    uint8_t e4m3, e5m2;
  } rows[] = {
      {448, 0x7E, 0x5F},    {464, 0x7E, 0x5F},     {465, 0x7F, 0x5F},      {-1000, 0xFF, 0xE4},
      {0x1p-10F, 0, 0x14},  {0x1.8p-10F, 1, 0x16}, {1.0625F, 0x38, 0x3C},  {1.1875F, 0x3A, 0x3D},
      {1.125F, 0x39, 0x3C}, {57344, 0x7F, 0x7B},   {61408, 0x7F, 0x7B},    {61440, 0x7F, 0x7C},
      {0x1p-17F, 0, 0},     {0x1.8p-17F, 0, 1},    {INFINITY, 0x7F, 0x7C}, {(float)-INFINITY, 0xFF, 0xFC},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    expect_number(e4m3_from_f32(rows[i].number), rows[i].e4m3);
    expect_number(e5m2_from_f32(rows[i].number), rows[i].e5m2);
  }
  expect_number((double)f32_from_e4m3(e4m3_from_f32(NAN)), (double)NAN);
  expect_number((double)f32_from_e5m2(e5m2_from_f32(NAN)), (double)NAN);
  end();
  TEST_V(v_round_e4m3, v_round_e4m3(a), f32_from_e4m3(e4m3_from_f32(x)));
  TEST_V(v_round_e5m2, v_round_e5m2(a), f32_from_e5m2(e5m2_from_f32(x)));
  TEST_D(d_round_e4m3, d_round_e4m3(a), (double)f32_from_e4m3(e4m3_from_f32((float)x)));
  TEST_D(d_round_e5m2, d_round_e5m2(a), (double)f32_from_e5m2(e5m2_from_f32((float)x)));
}

static void test_integers(void) {
  static const struct {
    float number;
    int s8, u8, s4, u4;
  } rows[] = {
      {0, 0, 0, 0, 0},           {0.5F, 0, 0, 0, 0},          {1.5F, 2, 2, 2, 2},        {2.5F, 2, 2, 2, 2},
      {-0.5F, 0, 0, 0, 0},       {-1.5F, -2, 0, -2, 0},       {-8.5F, -8, 0, -8, 0},     {7.5F, 8, 8, 7, 8},
      {14.5F, 14, 14, 7, 14},    {15.5F, 16, 16, 7, 15},      {126.5F, 126, 126, 7, 15}, {127.5F, 127, 128, 7, 15},
      {-128.5F, -128, 0, -8, 0}, {254.5F, 127, 254, 7, 15},   {255.5F, 127, 255, 7, 15}, {1e30F, 127, 255, 7, 15},
      {-1e30F, -128, 0, -8, 0},  {INFINITY, 127, 255, 7, 15}, {NAN, 0, 0, 0, 0},
  };
  begin("integers");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint8_t bytes[2] = {0xA5, 0xA5};
    expect_number(s8_from_f32(rows[i].number), rows[i].s8);
    expect_number(u8_from_f32(rows[i].number), rows[i].u8);
    put_s4(bytes, 1, rows[i].number);
    put_u4(bytes, 2, rows[i].number);
    expect_number((double)f32_from_s4(bytes, 1), rows[i].s4);
    expect_number((double)f32_from_u4(bytes, 2), rows[i].u4);
    expect((bytes[0] & 15) == 5 && bytes[1] >> 4 == 10, bytes[0], bytes[1]); // the other halves
  }
  end();
}

// Vectors of bytes, against one after the other.
static void test_bytes(void) {
  uint8_t unsigned_bytes[16], logical[16];
  int8_t signed_bytes[16];
  float got[16];
  begin("bytes");
  for (int first = 0; first < 256; first += 16) {
    for (int j = 0; j < 16; j++) signed_bytes[j] = (int8_t)((unsigned_bytes[j] = (uint8_t)(first + j)) - 128);
    v_store(got, v_load_u8(unsigned_bytes));
    for (int j = 0; j < 16; j++) expect_number((double)got[j], first + j);
    v_store(got, v_load_s8(signed_bytes));
    for (int j = 0; j < 16; j++) expect_number((double)got[j], first + j - 128);
    v_store(got, v_load_b8(unsigned_bytes));
    for (int j = 0; j < 16; j++) expect_number((double)got[j], first + j != 0);
  }
  static const float numbers[] = {-0.5F, 0.5F,  1.5F,   2.5F,   -1.5F,    126.5F,    127.5F,         -128.5F,
                                  -129,  -1e9F, 254.5F, 255.5F, INFINITY, -INFINITY, 0x1.fffffep-2F, NAN};
  v_store_u8(unsigned_bytes, v_load(numbers));
  v_store_s8(signed_bytes, v_load(numbers));
  v_store_b8(logical, v_load(numbers));
  for (int j = 0; j < 16; j++) {
    expect_number(unsigned_bytes[j], u8_from_f32(numbers[j]));
    expect_number(signed_bytes[j], s8_from_f32(numbers[j]));
    expect_number(logical[j], numbers[j] != 0);
  }
  end();
}

// Every span of lanes, whose elements end where memory's do.
static void test_spans(void) {
  float x[16], got[16];
  double wide_x[16], wide[16];
  begin("spans");
  for (int j = 0; j < 16; j++) {
    x[j] = (float)(j + 1);
    wide_x[j] = x[j];
  }
  for (int first = 0; first < 16; first++)
    for (int count = 1; first + count <= 16; count++) {
      const v_span s = {(size_t)first, count};
      v_store(got, v_load_within(x + 16 - count, s, -0.0F));
      d_store(wide, d_load_within(wide_x + 16 - count, s, (double)INFINITY));
      for (int j = 0; j < 16; j++) {
        const bool is_in = j >= first && j < first + count;
        expect_number((double)got[j], is_in ? (double)x[16 - count + j - first] : -0.0);
        expect_number(wide[j], is_in ? wide_x[16 - count + j - first] : (double)INFINITY);
      }
    }
  end();
}

// The same of elements that are not neighbours.
static void test_distant_spans(void) {
  float far[48], got[16];
  double wide_far[48], wide[16];
  begin("spans of distant elements");
  for (int j = 0; j < 48; j++) wide_far[j] = (double)(far[j] = (float)(j + 1));
  for (int stride = -3; stride <= 3; stride++)
    for (int first = 0; stride && first < 16; first++)
      for (int count = 1; first + count <= 16; count++) {
        const v_span s = {(size_t)first, count};
        const int reach = (count - 1) * stride, at = stride > 0 ? 47 - reach : -reach;
        v_store(got, v_gather_within(far + at, stride, s, -0.0F));
        d_store(wide, d_gather_within(wide_far + at, stride, s, (double)INFINITY));
        for (int j = 0; j < 16; j++) {
          const bool is_in = j >= first && j < first + count;
          expect_number((double)got[j], is_in ? (double)far[at + (j - first) * stride] : -0.0);
          expect_number(wide[j], is_in ? wide_far[at + (j - first) * stride] : (double)INFINITY);
        }
      }
  end();
}

// Of numbers worked out from the paper's definition, then of vectors against one after the other.
static void test_random(void) {
  static const struct {
    int64_t seed, offset;
    uint64_t place;
    uint32_t bits;
  } rows[] = {
      {1, 7, 0, 0x7b0ea8fd},
      {1, 7, 1, 0x77ac0715},
      {1, 7, 2, 0x8ec2d935},
      {1, 7, 3, 0x852722c3},
      {1, 7, UINT32_MAX, 0xc2a7008e},
      {1, 7, UINT64_C(1) << 32, 0x74871586},
      {1, 7, (UINT64_C(1) << 32) + 5, 0x96e3bc0c},
      {1, 7, (UINT64_C(1) << 40) + 2, 0x76efaadc},
      {-2, (INT64_C(1) << 33) + 1, 4, 0xb1e95352},
      {-2, (INT64_C(1) << 33) + 1, 5, 0x36802e8f},
      {-2, (INT64_C(1) << 33) + 1, 6, 0xb2a9d998},
      {-2, (INT64_C(1) << 33) + 1, 7, 0xeb27e293},
  };
  uint32_t four[4], many[LANES];
  begin("random_4");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    random_4(four, rows[i].seed, rows[i].offset, rows[i].place - rows[i].place % 4);
    expect_number(four[rows[i].place % 4], rows[i].bits);
  }
  end();
  begin("random_bits");
  for (int i = 0; i < 200; i++) {
    const int64_t seed = (int64_t)next(), offset = i % 3 ? (int64_t)next() : 0;
    const ptrdiff_t stride = i % 2 ? 1 : (ptrdiff_t)(next() % 100);
    const uint64_t place = (next() >> (next() % 64)) - (i % 5 ? 0 : 9); // also across the end
    random_bits(many, seed, offset, place, stride);
    for (int j = 0; j < LANES; j++) {
      const uint64_t own = place + (uint64_t)(j * stride);
      random_4(four, seed, offset, own - own % 4);
      expect_number(many[j], four[own % 4]);
    }
  }
  end();
}

static void test_dropout(void) {
  static const double probabilities[] = {0, 0.25, 0.5, 0.999, 1, 2, -1, NAN};
  begin("is_kept");
  for (int i = 0; i < 400; i++) {
    const int64_t seed = (int64_t)next(), offset = i % 3 ? (int64_t)next() : 0;
    const uint64_t place = next() >> 30;
    const double p = probabilities[i % 8];
    const ptrdiff_t stride = i % 2 ? 1 : 37;
    float lanes[LANES];
    double wide[LANES];
    uint32_t bits[LANES];
    v_store(lanes, v_select(v_is_kept(seed, offset, p, place, stride), v_set(1), v_set(0)));
    d_store(wide, d_select(d_is_kept(seed, offset, p, place, stride), d_set(1), d_set(0)));
    random_bits(bits, seed, offset, place, stride);
    for (int j = 0; j < LANES; j++) {
      const bool kept = bits[j] > 4294967295.0 * (p < 0 ? 0 : p);
      expect_number((double)lanes[j], kept);
      expect_number(wide[j], kept);
      expect_number(is_kept(seed, offset, p, place + (uint64_t)(j * stride)), kept);
    }
  }
  end();
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "--exhaustive") == 0) {
    test_multiply_add(1 << 29);
    return failures != 0;
  }
  make_inputs();
  test_arithmetic_f32();
  test_arithmetic_f64();
  test_arithmetic_s64();
  test_multiply_add(1 << 20);
  test_multiply_add_of_all_exponents();
  test_widths();
  test_narrowing();
  test_sums();
  test_folds();
  test_scalars();
  test_formats();
  test_f8();
  test_integers();
  test_bytes();
  test_spans();
  test_distant_spans();
  test_random();
  test_dropout();
  if (failures) fprintf(stderr, "simd_test: %d failures\n", failures);
  return failures != 0;
}
