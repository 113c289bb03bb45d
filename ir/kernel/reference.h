// What a kernel computes, bit by bit and without loops: its stores, at each point of the domain, with each reduction in
// its order of additions. This is what the bits of a kernel are by definition: whatever loops compute it must compute
// the same.
//
// The evaluation is over a domain of values. In numbers (tests/loops/vocabulary.h), the results have the bits of
// compiled code. In hashes, a load is a hash of tensor and element, and an operation one of operator and operands: two
// results are equal if the same operations are applied to the same elements in the same order.
#ifndef NGRAD_IR_KERNEL_REFERENCE_H
#define NGRAD_IR_KERNEL_REFERENCE_H

#include "ir/kernel/sum_order.h"

// How a reduction, or a part of one, takes its operands, apart from their order in memory.
typedef struct SumStage {
  const SumOrder *order; // NULL: there is no such stage
  int axes[MAX_AXES];    // that operands come from, slowest first
  int naxes;
  // Of inner axes
  bool is_in_lanes;    // index i of the last axis belongs to accumulator i % LANES
  bool has_only_used;  // there are only as many accumulators as have operands
  bool may_be_one_run; // where there are few additions, the totals of all lanes are rounded before these are added
  Runs runs;
  int run_axis;          // the middle axis that runs are cut from
  AxisSet inside;        // the axes inside of it
  int64_t nelems_inside; // of the middle axes inside of it
} SumStage;

typedef struct Summation { // of a reduction: over inner axes, over outer axes, or over first the one, then the other
  ExprId sum;
  SumStage inner, outer;
  bool is_tiled; // both stages are over the same axis: inside of tiles, then over tiles
} Summation;

typedef union ReferenceValue {
  float f32;
  double f64;
  int64_t s64; // of a mask: 0 or 1
  uint64_t hash;
} ReferenceValue;

typedef struct ReferenceDomain {
  void *context;
  ReferenceValue (*number)(void *context, Type type, double number); // rounded to the type: f32 or f64
  // TYPE_S64: an operand of EXPR_IS_KEPT. offset: of the type, in elements; NULL: 0.
  ReferenceValue (*load)(void *context, Type type, const Access *a, int64_t element, const ReferenceValue *offset);
  ReferenceValue (*integer)(void *context, int64_t integer);
  // EXPR_IS_KEPT of the element with this number: seed and offset are integers.
  ReferenceValue (*is_kept)(void *context, Type type, const ReferenceValue *args, int64_t place);
  ReferenceValue (*apply)(void *context, ExprOp op, Type type, const ReferenceValue *args); // type: of the operands
  ReferenceValue (*convert)(void *context, Type from, Type to, ReferenceValue x);
  void (*store)(void *context, Type type, const Access *a, int64_t element, ReferenceValue x, bool is_mask);
} ReferenceDomain;

extern const ReferenceDomain reference_hashes; // `store` does nothing; a copy of it stores as the caller wants

// Evaluates the kernel's stores. sums: of all reductions that the stores need. dims: values of the open dims; NULL: the
// hints. False: memory is exhausted, or the kernel is one that the reference does not know, as *why says (else NULL).
bool kernel_reference(const Kernel *k, const Summation *sums, size_t nsums, const int64_t *dims,
                      const ReferenceDomain *domain, const char **why);

#endif
