// Visits: decides which kernels go over slices of their tensors together.
#ifndef NGRAD_PASSES_LOWER_VISIT_H
#define NGRAD_PASSES_LOWER_VISIT_H

#include "passes/pass.h"

// Sets the visits of the context's partition. Returns whether there are any; an error sets c->failed.
bool pass_visit(Graph *g, PassContext *c);

#endif
