// clang-format off

// Loads and stores of s32, u32, s64 and u64 as f64. The same for every ISA; follows arithmetic.h.

#include "backends/codegen/simd/templates.h"

// Rounds to nearest even and saturates; NaN becomes 0.
static inline int32_t s32_from_f64(double x) {
  const double whole = nearbyint(x);
  return x >= INT32_MAX ? INT32_MAX : x <= INT32_MIN ? INT32_MIN : x == x ? (int32_t)whole : 0;
}

EACH_INTEGER(s32, int32_t, p, d, dvec, double, f64)

// Rounds to nearest even and saturates; NaN becomes 0.
static inline int64_t s64_from_f64(double x) {
  const double whole = nearbyint(x);
  return x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : x == x ? (int64_t)whole : 0;
}

EACH_INTEGER(s64, int64_t, (double)p, d, dvec, double, f64)

// Rounds to nearest even and saturates; NaN becomes 0.
static inline uint32_t u32_from_f64(double x) {
  const double whole = nearbyint(x);
  return x >= UINT32_MAX ? UINT32_MAX : x >= 0 ? (uint32_t)whole : 0;
}

EACH_INTEGER(u32, uint32_t, (double)p, d, dvec, double, f64)

// Rounds to nearest even and saturates; NaN becomes 0.
static inline uint64_t u64_from_f64(double x) {
  const double whole = nearbyint(x);
  return x >= 0x1p64 ? UINT64_MAX : x >= 0 ? (uint64_t)whole : 0;
}

EACH_INTEGER(u64, uint64_t, (double)p, d, dvec, double, f64)
