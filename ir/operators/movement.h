// What later stages ask of the operators that move elements.
#ifndef NGRAD_IR_OPERATORS_MOVEMENT_H
#define NGRAD_IR_OPERATORS_MOVEMENT_H

#include "ir/operators/operator.h"

// axes[i]: the axis of a transpose's input that is its output's axis i. False when `order` is no order of `rank` axes.
bool transpose_axes(const Node *node, int rank, int axes[MAX_RANK]);

// The axis that a verified node's attribute `axis` names, of `rank`.
int axis_of(const Node *node, int rank);

// What StaticReshape's shape says for `to` of a tensor like `from`: open extents are what is left, or those at the same
// place. False: it cannot be said. `items` has room for `to`.
bool reshape_list(const Shape *from, const Shape *to, int64_t *items, bool *special_zero);

#endif
