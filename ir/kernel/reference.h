// What a kernel computes, bit by bit and without loops: its stores, at each point of the domain, with each reduction in
// its order of additions. This is what the bits of a kernel are by definition: whatever loops compute it must compute
// the same.
//
// The evaluation is over a domain of values: numbers or hashes (ir/kernel/domain.h). A kernel that computes a slice is
// evaluated for one slice; its elements are counted from the slice's first.
#ifndef NGRAD_IR_KERNEL_REFERENCE_H
#define NGRAD_IR_KERNEL_REFERENCE_H

#include "ir/kernel/domain.h"
#include "ir/kernel/sum_order.h"

// How a reduction, or a part of one, takes its operands, apart from their order in memory.
typedef struct SumStage {
  const SumOrder *order; // NULL: there is no such stage
  int axes[MAX_AXES];    // that operands come from, slowest first
  int naxes;
  // Of inner axes
  bool is_in_lanes;   // index i of the last axis belongs to accumulator i % LANES
  bool has_only_used; // there are only as many accumulators as have operands
} SumStage;

typedef struct Summation { // of a reduction: over inner axes, over outer axes, or over first the one, then the other
  ExprId sum;
  SumStage inner, outer;
  bool is_tiled; // both stages are over the last axis: inside of tiles, then over tiles, for each index on the others
} Summation;

// Evaluates the kernel's stores. sums: of all reductions that the stores need. dims: values of the open dims; NULL: the
// hints. False: memory is exhausted, or the kernel is one that the reference does not know, as *why says (else NULL).
bool kernel_reference(const Kernel *k, const Summation *sums, size_t nsums, const int64_t *dims,
                      const ValueDomain *domain, const Allocator *scratch, const char **why);

#endif
