// Domains of values: what kernels are computed in, by their reference (ir/kernel/reference.h) and by loop trees
// (ir/loops/execute.h).
//
// In numbers (tests/loops/numbers.h), results have the bits of compiled code. In hashes, a load is a hash of tensor and
// element, and an operation one of operator and operands: two results are equal if the same operations are applied to
// the same elements in the same order. Operations on numbers alone, as indices are, and choices by such are computed.
#ifndef NGRAD_IR_KERNEL_DOMAIN_H
#define NGRAD_IR_KERNEL_DOMAIN_H

#include "ir/kernel/kernel.h"

typedef union Datum {
  float f32;
  double f64;
  int64_t s64; // of a mask: 0 or 1
  uint64_t hash;
} Datum;

// Types are those of operands: f32, f64 or s64. Functions on several values take n of each operand, and set y[0] to
// y[n - 1]; y may be an operand. n: at most LANES.
typedef struct ValueDomain {
  void *context;
  Datum (*number)(void *context, Type type, double number); // rounded to the type: f32 or f64
  Datum (*integer)(void *context, int64_t integer);
  // TYPE_S64: integers, as operands of EXPR_IS_KEPT are. offsets: added to the elements, of the type; NULL: 0.
  void (*load)(void *context, Type type, const Access *a, int n, const int64_t *elements, const Datum *offsets,
               Datum *y);
  // EXPR_IS_KEPT of the element with this number: seed and offset are integers.
  Datum (*is_kept)(void *context, Type type, const Datum *args, int64_t counter);
  void (*apply)(void *context, ExprOp op, Type type, int n, const Datum *const *args, Datum *y);
  void (*convert)(void *context, Type from, Type to, int n, const Datum *x, Datum *y); // f32 and f64
  void (*store)(void *context, Type type, const Access *a, int n, const int64_t *elements, const Datum *x,
                bool is_mask);
} ValueDomain;

extern const ValueDomain domain_of_hashes; // `store` does nothing; a copy of it stores as the caller wants

#endif
