// The arithmetic of emitted scalar C: the functions of backends/codegen/simd, in their portable form (scalar.h), chosen
// by operator and type.
#ifndef NGRAD_TESTS_LOOPS_VOCABULARY_H
#define NGRAD_TESTS_LOOPS_VOCABULARY_H

#include "ir/kernel/kernel.h"

// A vector or a mask; a scalar is in lane 0. f32: a `vec`; m32: a `mask`; f64: a `dvec`; m64: a `dmask`.
typedef union Lanes {
  float f32[LANES];
  double f64[LANES];
  int32_t m32[LANES];
  int64_t m64[LANES];
} Lanes;

// The type of a vector's lanes. Lanes of IN_S64 are in m64.
typedef enum Arithmetic { IN_F32, IN_F64, IN_S64 } Arithmetic;

// Calls v_NAME, d_NAME or l_NAME. False: there is no such function.
bool lanes_apply(ExprOp op, Arithmetic in, Lanes *y, const Lanes *const *x); // x: the operands

// n dense elements in memory (packed types: two a byte); other lanes become +0.
enum { MOST_ELEMENT_NBYTES = 8 };
bool lanes_load(Type type, Arithmetic in, Lanes *y, const void *elements, int n);
bool lanes_store(Type type, Arithmetic in, void *elements, const Lanes *x, int n);

typedef struct Dropping { // operands of EXPR_IS_KEPT
  int64_t seed, offset;
  double probability;
  uint64_t place;
} Dropping;
bool element_is_kept(const Dropping *d);

#endif
