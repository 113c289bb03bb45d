// Scheduling, third wing: builds the loop tree (ir/loops) of a scheduled loop. The schedule says everything: this wing
// decides nothing that it could say, and includes ir/ and passes/costs, but neither order/ nor tune/.
#ifndef NGRAD_PASSES_SCHEDULE_BUILD_TREE_H
#define NGRAD_PASSES_SCHEDULE_BUILD_TREE_H

#include "ir/loops/loops.h"

// The tree is in the arena. `wants` NULL: the caller wants every output. NULL: out of memory.
LoopTree *loop_tree(const Schedule *s, uint32_t loop, const Wants *wants, Arena *arena);

#endif
