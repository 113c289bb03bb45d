// Passes over loop trees, in the order of this list (tree.c).
#ifndef NGRAD_PASSES_SCHEDULE_TREE_PASSES_H
#define NGRAD_PASSES_SCHEDULE_TREE_PASSES_H

#include "ir/loops/loops.h"

// Sets how nodes that end runs and sums combine the sum's `count` accumulators.
void schedule_merge_accumulators(TreeBuilder *b, int count, LoopNode *nodes);

// In a product, a group of at most this many vectors stays in registers, and the scalars are loaded row by row. A
// larger group has few rows: their scalars stay in registers, and each vector is loaded once for all rows.
enum { FEW_VECTORS = 2 };

// Replaces each loop over vectors by: the peeled elements before the first cache line; an unrolled loop over groups of
// vectors, with an accumulator for each vector of a group; a loop over single vectors; the tail of fewer than LANES
// elements. Nodes are in the builder's arena.
void schedule_split_vectors(TreeBuilder *b, const Kernel *k, LoopNode **nodes);

// Adds prefetches of elements that later iterations load. Before schedule_split_vectors.
void schedule_insert_prefetches(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **step);

// Has totals leave the registers where a product's runs begin. After schedule_split_vectors, which makes groups.
void schedule_leave_totals(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **nodes);

// Loads and stores vectors of all rows of a step at once where the rows are adjacent in memory. After
// schedule_split_vectors, as only whole vectors can be transposed.
void schedule_gather_rows(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **nodes);

// Makes stores bypass the caches where the loop's roots say so. After schedule_split_vectors, as only whole vectors can
// be streamed.
void schedule_stream_stores(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **step, LoopNode **block);

// Splits loops over middle axes into parts before, in and behind the indices at which all bounds of loads hold. Last,
// as it copies bodies.
void schedule_split_interiors(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **nodes);

#endif
