// Shared by the tests of the vector functions: lines of output, and inputs. run.sh includes the ISA's headers first, as
// emitted C does; by itself a test takes scalar.h.
#ifndef NGRAD_TESTS_SIMD_LANES_H
#define NGRAD_TESTS_SIMD_LANES_H

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifndef V_PARTS
#include "backends/codegen/simd/scalar.h"

#include "backends/codegen/simd/vector.h"

#include "backends/codegen/simd/arithmetic.h"

#include "backends/codegen/simd/flush.h"

#include "backends/codegen/simd/wide_integers.h"

#include "backends/codegen/simd/rows.h"

#include "backends/codegen/simd/bytes.h"

#include "backends/codegen/simd/math.h"

#include "backends/codegen/simd/power.h"

#include "backends/codegen/simd/trigonometry.h"

#include "backends/codegen/simd/integers.h"

#include "backends/codegen/simd/random.h"
#endif

enum { LANES = 16, COUNT = 1 << 14 };

static const char *test; // the name of the function at hand
static uint64_t hash;
static int failures;

static void begin(const char *name) {
  test = name;
  hash = 0xcbf29ce484222325;
}

static void end(void) {
  printf("%s %016" PRIx64 "\n", test, hash);
}

static void expect(bool held, double got, double wanted) {
  if (held) return;
  if (++failures <= 20) fprintf(stderr, "%s gave %a instead of %a\n", test, got, wanted);
}

// FNV-1a
static void hash_bits(uint64_t bits) {
  for (int i = 0; i < 64; i += 8) hash = (hash ^ (bits >> i & 0xff)) * 0x100000001b3;
}

static uint64_t f64_bits(double x) {
  uint64_t u;
  memcpy(&u, &x, sizeof u);
  return isnan(x) ? 0x7ff8000000000000 : u;
}

// Through f64, which has every f32 and 16-bit number; -0 is not +0.
static void expect_number(double got, double wanted) {
  hash_bits(f64_bits(got));
  expect(f64_bits(got) == f64_bits(wanted), got, wanted);
}

// ---- Inputs

static uint64_t next(void) { // splitmix64
  static uint64_t state;
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// In turn: any bits at all; a number whose products and sums with others like it round; a special one.
static inline double next_f64(void) {
  // clang-format off
  static const double specials[] = {
      0, -0.0, 1, -1, (double)INFINITY, -(double)INFINITY, (double)NAN, DBL_EPSILON, DBL_MAX, -DBL_MAX, DBL_MIN,
      -DBL_MIN, DBL_MIN / 2, 0x1p-1074, -0x1p-1074,
      0x1.fffffep127, 0x1.ffffffp127, 0x1.fffffefffffffp127, 0x1p-149, 0x1p-150, 0x1.8p-149, // where f32 ends
      1 + 0x1p-24, 1 + 0x3p-24,
  };
  // clang-format on
  uint64_t bits = next();
  double x;
  if (bits >> 62 == 0) return specials[bits % (sizeof specials / sizeof *specials)];
  if (bits >> 62 == 1) {
    memcpy(&x, &bits, sizeof x);
    return x;
  }
  return ldexp((double)(int64_t)next(), (int)(bits & 15) - 71);
}

#endif
