// Passes over the tree of a loop: what recipes share.
#ifndef NGRAD_PASSES_SCHEDULE_TREE_PASSES_H
#define NGRAD_PASSES_SCHEDULE_TREE_PASSES_H

#include "ir/loops/loops.h"

// A loop over vectors becomes one over groups of them, where accumulators take turns, one over whole vectors, and what
// is done with the lanes that are left; before them what lies before a cache line. Memory is the builder's.
void schedule_split_vectors(TreeBuilder *b, LoopNode **nodes);

// Adds prefetches of what later outer iterations, or later elements, load. Before the loops over vectors are split.
void schedule_prefetch(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **step);

// Sends stores past the caches where the loop's roots say so. After the loops over vectors are split: only whole
// vectors go.
void schedule_stream(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **step, LoopNode **block);

#endif
