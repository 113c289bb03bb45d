// Splits group norms, and their gradients, with channels last in memory into operators that vectorise over channels.
#ifndef NGRAD_PASSES_REWRITE_SPLIT_GROUPS_H
#define NGRAD_PASSES_REWRITE_SPLIT_GROUPS_H

#include "passes/pass.h"

// Must run before reshape-layouts, because it adds reshapes. Must run after common-subexpressions, which would merge
// the casts of the two reads of the data: the cast data would then be stored between kernels.
bool pass_split_groups(Graph *g, PassContext *c);

#endif
