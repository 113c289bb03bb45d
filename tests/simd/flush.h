// What a multiply-add of tdpbf16ps gives, for the tests of flush.h and amx_bf16.h: written after Intel's manual, by
// another way than theirs. And operands for it.
#ifndef NGRAD_TESTS_SIMD_FLUSH_H
#define NGRAD_TESTS_SIMD_FLUSH_H

#include "tests/simd/lanes.h"

static const float LEAST = 0x1p-126F; // normal number

static inline float model_flush(float x) {
  return fabsf(x) < LEAST ? copysignf(0, x) : x;
}

// The sum of two f64, rounded to odd: rounded again to 24 bits, it is as if rounded once.
static inline double model_odd_sum(double x, double y) {
  const double sum = x + y, rest = sum - x, error = (x - (sum - rest)) + (y - rest);
  if (!isfinite(sum) || error == 0) return sum;
  int64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if (bits & 1) return sum;
  return nextafter(sum, error > 0 ? DBL_MAX : -DBL_MAX);
}

// Rounds to 24 bits, whatever the exponent, and compares with the least normal number then.
static inline float model_fma(float a, float b, float c) {
  const double sum = model_odd_sum((double)model_flush(a) * (double)model_flush(b), (double)model_flush(c));
  if (!isfinite(sum) || sum == 0) return (float)sum;
  int exponent;
  const float digits = (float)frexp(sum, &exponent);
  const double rounded = ldexp((double)digits, exponent);
  return fabs(rounded) < (double)LEAST ? copysignf(0, (float)sum) : (float)rounded;
}

static inline float model_add(float a, float b) {
  return model_flush(model_flush(a) + model_flush(b));
}

static inline float of_bf16(uint16_t h) {
  const uint32_t bits = (uint32_t)h << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)(bits >> 16);
}

// a * b + c. In turn: of any bits; ordinary numbers; products near the least normal number; sums between 2^-126 -
// 2^-149 and 2^-126, of either sign, most of them near 2^-126 - 2^-150 and 2^-126 - 2^-151: where the digits of
// subnormals, and 24 digits, round to 2^-126.
static inline void next_bf16_multiply_add(uint16_t *a, uint16_t *b, float *c) {
  static const float differences[] = {4, 2, 3, 1, 0.5F, 0x1p-9F}; // times 2^-151
  const uint64_t bits = next();
  const int kind = bits & 3, sign = bits & 4 ? -1 : 1;
  const uint32_t digits = (uint32_t)(bits >> 8 & 0x7f), more = (uint32_t)(bits >> 16 & 0x7f);
  *a = (uint16_t)(bits >> 32);
  *b = (uint16_t)(bits >> 48);
  *c = f32_from_bits((uint32_t)next());
  if (kind == 0) return;
  const uint64_t exponents = next();
  const uint32_t low = kind == 1 ? 110 : 55, count = kind == 1 ? 30 : 20;
  *a = (uint16_t)((*a & 0x807f) | (low + (uint32_t)(exponents % count)) << 7);
  *b = (uint16_t)((*b & 0x807f) | (low + (uint32_t)((exponents >> 32) % count)) << 7);
  if (kind < 3) {
    *c = ldexpf(*c, kind == 1 ? 0 : -60);
    return;
  }
  // c is the least normal number and n of its last digits; the product takes these and a difference away.
  const int n = (int)(bits >> 24 & 3);
  const float difference = differences[(bits >> 28) % 6] * 0x1p-81F + (float)n * 0x1p-79F; // times 2^-70
  *c = (float)sign * (LEAST + (float)n * 0x1p-149F);
  *a = to_bf16((float)sign * ldexpf(1 + (bits & 8 ? 0 : (float)digits / 128), -70));
  *b = to_bf16(-difference * (1 + (bits & 16 ? 0 : (float)more / 1024)));
}

#endif
