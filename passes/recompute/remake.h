// Kernels that compute a value again.
#ifndef NGRAD_PASSES_RECOMPUTE_REMAKE_H
#define NGRAD_PASSES_RECOMPUTE_REMAKE_H

#include "passes/lower/regions.h"

typedef enum RemakeCost { REMAKE_ELEMENTWISE, REMAKE_SUMS, REMAKE_PRODUCTS } RemakeCost; // cheapest first

typedef struct Remake {
  Schedule *schedule; // stores only the value; NULL: the value cannot be computed again
  RemakeCost cost;
  double operations;
} Remake;

// Makes a kernel, in p's arena, that computes the value again with the same bits. It is one of
//   - the elementwise nodes in f32 that lead to the value from values in memory, lowered without the rest of their
//     region: each of their results is a function of f32 operands, whichever kernel computes it;
//   - the kernel that stored it, with the same loops and order of sums, reduced to the parts that the value needs.
// Other values that several kernels store, or that a visit stores, have no such kernel. False: out of memory.
bool remake_value(const Program *p, const RegionLowering *l, const Value *v, Remake *out);

#endif
