// Replaces each Split by a Slice for each output. A Slice can be fused with the users of its result.
#ifndef NGRAD_PASSES_REWRITE_SPLITS_H
#define NGRAD_PASSES_REWRITE_SPLITS_H

#include "passes/pass.h"

bool pass_splits(Graph *g, PassContext *c);

#endif
