// Replaces each Split by a Slice for each output, which can be fused with the users of its result; and each Pad along
// an open axis by a Concat.
#ifndef NGRAD_PASSES_REWRITE_SPLITS_H
#define NGRAD_PASSES_REWRITE_SPLITS_H

#include "passes/pass.h"

bool pass_splits(Graph *g, PassContext *c);

#endif
