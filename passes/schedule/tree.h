// From a scheduled loop to its tree.
#ifndef NGRAD_PASSES_SCHEDULE_TREE_H
#define NGRAD_PASSES_SCHEDULE_TREE_H

#include "ir/loops/loops.h"

// NULL: out of memory. The tree is the arena's.
LoopTree *loop_tree(const Kernel *k, uint32_t loop, const Wants *wants, Arena *arena);

#endif
