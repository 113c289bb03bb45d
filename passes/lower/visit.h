// Finds visits: groups of kernels that run together on one slice of their tensors after the other
// (ir/graph/partition.h).
#ifndef NGRAD_PASSES_LOWER_VISIT_H
#define NGRAD_PASSES_LOWER_VISIT_H

#include "passes/pass.h"

// Sets the visits of the context's partition. Returns whether there is a visit; an error sets c->failed.
bool pass_visit(Graph *g, PassContext *c);

#endif
