// Lowers and schedules each region of a graph's partition.
#ifndef NGRAD_PASSES_LOWER_REGIONS_H
#define NGRAD_PASSES_LOWER_REGIONS_H

#include "ir/kernel/program.h"
#include "ir/loops/target.h"
#include "passes/lower/lower.h"
#include "passes/pass.h"

typedef struct RegionLowering {
  PassContext *context; // overrides and allocator; errors are reported here
  const Graph *graph;
  const Target *target; // NULL: kernels are ordered, but not tuned or verified
  LowerScratch scratch;
  bool is_trial; // a kernel that cannot be made is no error, and kernels may depend on the values of open dims
} RegionLowering;

// Lowers nodes, given in topological order, to one scheduled kernel in the arena. The kernel computes one piece
// (passes/lower/pieces.h), and one slice of the slice group unless it is NULL. NULL: no schedule computes the nodes;
// or, if context->failed is set, an error, which has been reported.
Schedule *lower_and_schedule(const RegionLowering *l, Arena *arena, Node *const *nodes, size_t nnodes,
                             const SliceGroup *slice_group, uint32_t piece);

// Adds the kernels of all regions of the program's partition to the program. False: an error, which has been reported.
bool lower_regions(Program *p, PassContext *c);

#endif
