// Tries nodes as one kernel: they are lowered, and their sums are ordered, for no target.
#ifndef NGRAD_PASSES_LOWER_FUSE_TRIAL_H
#define NGRAD_PASSES_LOWER_FUSE_TRIAL_H

#include "passes/lower/fusible.h"
#include "passes/lower/regions.h"
#include "passes/schedule/order/sum_forms.h"

typedef struct FuseTrials {
  const Costs *costs;
  const int *operand; // by node->index: not 0 if the node helps to compute an operand of the region's product
  RegionLowering lowering;
} FuseTrials;

typedef struct FuseTrial {
  int64_t nbytes; // that the kernel moves; NO_KERNEL: no schedule computes the nodes as one kernel
  SumForms sums;
} FuseTrial;
#define NO_KERNEL (-1)

// The kernels of all pieces of the nodes together.
FuseTrial fuse_try(FuseTrials *t, const NodeList *list);

#endif
