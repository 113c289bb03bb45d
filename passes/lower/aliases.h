// Aliases: results of reshapes, transposes and slices that need no kernel and no memory, as they are elements of
// another value at constant distances.
#ifndef NGRAD_PASSES_LOWER_ALIASES_H
#define NGRAD_PASSES_LOWER_ALIASES_H

#include "passes/pass.h"

// Sets Value.alias, and the layouts of results that transposes alone read so that these become aliases. Kernels then
// load what an alias stands for.
bool pass_aliases(Graph *g, PassContext *c);

// Whether the node's result is an alias, so that it has no kernel.
bool node_is_alias(const Node *node);

#endif
