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

// Whether the sums of both parts have in one kernel the orders that they have in two. Operators without sums may change
// the order of others: what varies over some of the axes that a sum reduces splits them, and so the sum's segments.
bool fuse_keeps_orders(const FuseTrial *together, const FuseTrial *one, const FuseTrial *other);

// The same for a node that joins the other part, where it helps to make the operand of `sum`, which no tensor should
// hold (node_expands_into): that sum has the order that it has with such nodes alone. all: the nodes of both.
bool fuse_keeps_others(FuseTrials *t, const FuseTrial *together, const NodeList *all, const Node *sum,
                       const FuseTrial *other);

#endif
