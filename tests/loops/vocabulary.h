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

// The type of a vector's lanes. Lanes of IN_S64 are in m64; where a lane is given as a double, the double's bits are
// the integer.
typedef enum Arithmetic { IN_F32, IN_F64, IN_S64 } Arithmetic;

// Calls v_NAME, d_NAME or l_NAME. False: there is no such function.
bool lanes_apply(ExprOp op, Arithmetic in, Lanes *y, const Lanes *const *x); // x: the operands
bool lanes_fold(ExprOp reduction, bool is_f64, const Lanes *x, double *y);   // over all lanes

// n dense elements in memory (packed types: two a byte); other lanes become +0.
enum { MOST_ELEMENT_NBYTES = 8 };
bool lanes_load(Type type, Arithmetic in, Lanes *y, const void *elements, int n);
bool lanes_store(Type type, Arithmetic in, void *elements, const Lanes *x, int n);
enum { MASK_NBYTES = LANES / 8 };
void lanes_load_mask(bool is_f64, Lanes *y, const uint8_t *bytes);
void lanes_store_mask(bool is_f64, uint8_t *bytes, const Lanes *x);

void lanes_set(Arithmetic in, Lanes *y, double x);
void lanes_index(Arithmetic in, Lanes *y, uint64_t first);
void lanes_to_offsets(bool is_f64, int64_t *to, const Lanes *x, int n); // numbers converted to integers
void lanes_merge(bool is_f64, Lanes *y, const Lanes *first, const Lanes *then, int n);
void lanes_widen(Lanes *y, const Lanes *x); // from f32 to f64, and back
void lanes_narrow(Lanes *y, const Lanes *x);

// The lanes below n with 0 <= at + lane * step < extent: *count lanes, from the returned lane on.
int lanes_within(uint64_t at, int64_t step, int64_t extent, int n, int *count);
// Moves the first `count` lanes to the lanes from `first` on; the others become `outside`.
void lanes_place(bool is_f64, Lanes *y, int first, int count, double outside);

typedef struct Dropping { // operands of EXPR_IS_KEPT
  int64_t seed, offset;
  double probability;
  uint64_t place;
} Dropping;
void lanes_is_kept(bool is_f64, Lanes *y, const Dropping *d, int64_t step); // a mask
bool element_is_kept(const Dropping *d);

#endif
