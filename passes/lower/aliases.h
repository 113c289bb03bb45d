// Aliases: results of reshapes, transposes and slices without a kernel and memory. They are strided views of another
// value.
#ifndef NGRAD_PASSES_LOWER_ALIASES_H
#define NGRAD_PASSES_LOWER_ALIASES_H

#include "passes/pass.h"

// Sets Value.alias. Kernels then load from the memory of the viewed value. Also chooses layouts: a product that only
// transposes read is stored in the transposed layout, so that the transposes become aliases.
bool pass_aliases(Graph *g, PassContext *c);

// Whether the node's result is an alias, so that the node has no kernel.
bool node_is_alias(const Node *node);

#endif
