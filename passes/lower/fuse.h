// Fusing: which nodes become one kernel.
#ifndef NGRAD_PASSES_LOWER_FUSE_H
#define NGRAD_PASSES_LOWER_FUSE_H

#include "passes/pass.h"

// With fusion off or disabled each node becomes one.
bool pass_fuse(Graph *g, PassContext *c);

#endif
