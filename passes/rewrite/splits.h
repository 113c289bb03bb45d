// Replaces each Split by a Slice for each of its outputs, which the nodes that use the output can be fused with.
#ifndef NGRAD_PASSES_REWRITE_SPLITS_H
#define NGRAD_PASSES_REWRITE_SPLITS_H

#include "passes/pass.h"

bool pass_splits(Graph *g, PassContext *c);

#endif
