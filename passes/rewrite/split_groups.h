// Group norms and their gradients with channels last, in steps that vectors of channels take.
#ifndef NGRAD_PASSES_REWRITE_SPLIT_GROUPS_H
#define NGRAD_PASSES_REWRITE_SPLIT_GROUPS_H

#include "passes/pass.h"

// Before reshape-orders, which sees to what is reshaped here; after common-subexpressions, which would join what both
// looks at the data compute, and so have it stored.
bool pass_split_groups(Graph *g, PassContext *c);

#endif
