// Finds inputs of a graph that hold indices (labels, or rows to take from a table) or counts (an optimizer's step), and
// the range that their elements must lie in.
#ifndef NGRAD_IR_OPERATORS_INDICES_H
#define NGRAD_IR_OPERATORS_INDICES_H

#include "ir/graph/formula.h"
#include "ir/operators/movement.h"

// The indices begin, begin + step, ... along an axis: `count` of them.
typedef struct AxisPart {
  Formula begin, count;
  int64_t step;
} AxisPart;

// The elements of an input must be at least 0 (with counts_from_end, -extent) and less than `extent`, or `ignored`;
// counts must be at least 1, after `added` is added to them, and must not wrap around then.
typedef struct IndexCheck {
  const Node *node; // the node that takes the elements as indices, perhaps after other nodes have moved them
  size_t input;     // index in graph->inputs
  const AxisPart *part[MAX_RANK]; // by axis of the input: the part that the node takes, through Slices and Splits; only
                                  // this is checked. NULL: the whole axis
  Extent extent;
  bool counts_from_end;
  bool is_count;          // the elements are counts; `extent` is unused
  int64_t added;          // to counts, before the node takes them; at least 0
  const int64_t *ignored; // a number that is allowed, too; NULL: none
} IndexCheck;

bool check_has_parts(const IndexCheck *c); // of an axis or several
// The part's first index and number of indices in a graph whose extents have numbers.
void part_numbers(const AxisPart *part, int64_t *begin, int64_t *count);

// The checks for all integer inputs that a valid graph uses as indices, or with_counts also as counts. Indices that the
// graph computes are not checked. The array is in the arena. NULL: out of memory.
const IndexCheck *graph_index_checks(const Graph *g, bool with_counts, Arena *arena, size_t *count);

// Whether b is a + *number, integers, where the number is a constant.
bool value_adds_constant(const Value *a, const Value *b, int64_t *number);

// The least and the greatest element that the state can have in a training that began with the state's first value and
// goes on: of a counter of s64, to which each call adds a number, others are damage. Else those of s64.
void state_range(const Graph *g, const State *state, int64_t *least, int64_t *most);

#endif
