// Finds slice groups: kernels that run together on one slice of their tensors after the other
// (ir/graph/partition.h).
#ifndef NGRAD_PASSES_LOWER_SLICE_REGIONS_H
#define NGRAD_PASSES_LOWER_SLICE_REGIONS_H

#include "passes/pass.h"

// Sets the slice groups of the context's partition. Returns whether there is a slice group; an error sets c->failed.
bool pass_slice_regions(Graph *g, PassContext *c);

#endif
