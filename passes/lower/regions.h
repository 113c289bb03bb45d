// From regions to kernels: each region of a graph's partition is lowered and scheduled.
#ifndef NGRAD_PASSES_LOWER_REGIONS_H
#define NGRAD_PASSES_LOWER_REGIONS_H

#include "ir/kernel/kernel.h"
#include "ir/loops/target.h"
#include "passes/lower/lower.h"
#include "passes/pass.h"

typedef struct RegionLowering { // what the regions of a graph are lowered with
  PassContext *context;         // gives overrides and allocator, and is told of failures
  const Graph *graph;
  const Target *target;
  LowerScratch scratch;
  bool is_trial; // the kernel is measured and thrown away: it need not be verified, nor stay open
} RegionLowering;

// All of these nodes, in topological order, as one scheduled kernel. NULL: no schedule carries it, or, where
// context->failed is set, why has been told.
Kernel *lower_and_schedule(const RegionLowering *l, Arena *arena, Node *const *nodes, size_t nnodes);

// Fills in the program's kernels, of the regions of its partition. False after telling why.
bool lower_regions(Program *p, PassContext *c);

#endif
