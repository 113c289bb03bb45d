// Builds the tree (ir/loops) of a scheduled loop.
#ifndef NGRAD_PASSES_SCHEDULE_TREE_H
#define NGRAD_PASSES_SCHEDULE_TREE_H

#include "ir/loops/loops.h"

// The tree is in the arena. `wants` NULL: the caller wants every output. NULL: out of memory.
LoopTree *loop_tree(const Schedule *s, uint32_t loop, const Wants *wants, Arena *arena);

#endif
