// Passes over loop trees, in the order of this list (tree.c).
#ifndef NGRAD_PASSES_SCHEDULE_BUILD_TREE_PASSES_H
#define NGRAD_PASSES_SCHEDULE_BUILD_TREE_PASSES_H

#include "ir/loops/loops.h"

static inline const Index *tree_number(TreeBuilder *b, int64_t n) {
  return index_number(b, n, 0);
}

static inline void tree_set(TreeBuilder *b, Var var, const Index *value) {
  tree_add(b, (LoopNode){.kind = NODE_INDEX, .var = var, .value = value});
}

// Adds prefetches of elements that later iterations load. Before schedule_split_vectors.
void schedule_insert_prefetches(TreeBuilder *b, LoopTree *t);

// In a product, a group of at most this many vectors stays in registers, and the scalars are loaded row by row. A
// larger group has few rows: their scalars stay in registers, and each vector is loaded once for all rows.
enum { FEW_VECTORS = 2 };

// Replaces each loop over vectors by: the peeled elements before the first cache line; an unrolled loop over groups of
// vectors, with an accumulator for each vector of a group; a loop over single vectors; the tail of fewer than LANES
// elements. Nodes are in the builder's arena.
void schedule_split_vectors(TreeBuilder *b, LoopTree *t);

// The passes below come after schedule_split_vectors.

// Has totals leave the registers where a product's runs begin, if groups have many vectors.
void schedule_add_barriers(TreeBuilder *b, LoopTree *t);

// Loads and stores whole vectors of all rows of a micro-kernel at once where the rows are adjacent in memory.
void schedule_gather_rows(TreeBuilder *b, LoopTree *t);

// Makes stores of whole vectors bypass the caches where the loop's roots say so.
void schedule_stream_stores(TreeBuilder *b, LoopTree *t);

// Splits loops over middle axes into parts before, in and behind the indices at which all bounds of loads hold. Last,
// as it copies bodies.
void schedule_split_interiors(TreeBuilder *b, LoopTree *t);

#endif
