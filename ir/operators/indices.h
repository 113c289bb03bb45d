// Which inputs of a graph hold indices, such as labels or the rows to take from a table, or counts, such as an
// optimizer's step, and what they must be.
#ifndef NGRAD_IR_OPERATORS_INDICES_H
#define NGRAD_IR_OPERATORS_INDICES_H

#include "ir/operators/movement.h"

#define WHOLE_AXIS (-1)

// The elements of an input must be at least 0 (with counts_from_end, -extent) and less than `extent`, or `ignored`;
// counts must be at least 1.
typedef struct IndexCheck {
  const Node *node;        // takes them as indices, or what nodes that move elements make of them
  size_t input;            // of the graph
  bool has_region;         // only some elements count: those that slices of the input take
  AxisRead read[MAX_RANK]; // of the region, by axis of the input: the first of its indices, and the step to the next
  int64_t count[MAX_RANK]; // how many these are; WHOLE_AXIS: all that the axis has
  Extent extent;
  bool counts_from_end;
  bool is_count;          // counts, to which extent does not apply
  const int64_t *ignored; // NULL: no other number is allowed
} IndexCheck;

// The checks of all inputs of integers that a valid graph takes as indices, or with_counts as counts, in the arena.
// Those that the graph computes have none. NULL: out of memory.
const IndexCheck *graph_index_checks(const Graph *g, bool with_counts, Arena *arena, size_t *count);

#endif
