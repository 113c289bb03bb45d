// Fusion: decides which nodes become one kernel.
#ifndef NGRAD_PASSES_LOWER_FUSE_H
#define NGRAD_PASSES_LOWER_FUSE_H

#include "passes/pass.h"

// Sets the context's partition of the graph into regions. With fusion off or the pass disabled, each node is a region
// of its own. Returns whether any nodes were fused; an error sets c->failed.
bool pass_fuse(Graph *g, PassContext *c);

#endif
