// Properties of the operators that move elements.
#ifndef NGRAD_IR_OPERATORS_MOVEMENT_H
#define NGRAD_IR_OPERATORS_MOVEMENT_H

#include "ir/operators/operator.h"

// The permutation of a transpose: its output's axis i is its input's axis axes[i]. False when the attribute `order` is
// not a permutation of `rank` axes.
bool transpose_axes(const Node *node, int rank, int axes[MAX_RANK]);

// A verified node's attribute `axis`, as 0 .. rank - 1.
int axis_of(const Node *node, int rank);

// Where Slice and Pad read src along an axis: at begin + step * the index in dst. Pad also reads outside of src.
typedef struct AxisRead {
  int64_t begin, step;
} AxisRead;

// By axis, of a verified node. A read of a whole axis forwards, {0, 1}, holds for all its extents; another one for the
// extent that the axis has, or for 2 where a name has no value.
void node_reads(const Node *node, AxisRead reads[MAX_RANK]);

// The number of parts of a Split, and where each begins along the axis, of extents that have numbers.
uint32_t split_nparts(const Node *node);
void split_starts(const Node *node, int64_t starts[MAX_OPERANDS + 1]); // and behind the last, where that ends

// Whether all indices of a Gather are one number, whatever open extents are; *place: the index that it stands for,
// which may be outside of the tensor.
bool gather_place(const Node *node, int64_t *place);

// The elements of the tensor that a Gather indexes; 0 for other nodes, and where one place is known.
int64_t gather_greatest_place(const Node *node);

// StaticReshape's attributes for a reshape from one shape to another. A named extent can only be written as 0 (if
// `from` has the same extent on the same axis; then *special_zero is true) or as -1 (once). Fills items[to->rank];
// false when the reshape cannot be written so.
bool reshape_list(const Shape *from, const Shape *to, int64_t *items, bool *special_zero);

#endif
