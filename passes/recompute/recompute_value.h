// Kernels that compute a value again.
#ifndef NGRAD_PASSES_RECOMPUTE_RECOMPUTE_VALUE_H
#define NGRAD_PASSES_RECOMPUTE_RECOMPUTE_VALUE_H

#include "passes/lower/regions.h"

typedef enum RecomputationCost {
  RECOMPUTE_ELEMENTWISE,
  RECOMPUTE_SUMS,
  RECOMPUTE_PRODUCTS
} RecomputationCost; // cheapest first

typedef struct Recomputation {
  Schedule *schedule; // stores only the value; NULL: the value cannot be computed again
  RecomputationCost cost;
  double operations;
} Recomputation;

// Makes a kernel, in p's arena, that computes the value again with the same bits. It is one of
//   - the elementwise nodes in f32 that lead to the value from values in memory, lowered without the rest of their
//     region: each of their results is a function of f32 operands, whichever kernel computes it;
//   - the kernel that stored it, with the same loops and order of sums, reduced to the parts that the value needs.
// Other values that several kernels store, or that a slice group stores, have no such kernel. False: out of memory.
bool recompute_value(const Program *p, const RegionLowering *l, const Value *v, Recomputation *out);

#endif
