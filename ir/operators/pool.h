// Properties of pooling nodes; ir/operators/window.h has their windows.
#ifndef NGRAD_IR_OPERATORS_POOL_H
#define NGRAD_IR_OPERATORS_POOL_H

#include "ir/operators/operator.h"

// The rounding_type with which a forward node has the windows of this gradient, which has no such attribute: ceil if
// there are more windows than floor gives. Extents without numbers count as if rounding made no difference. False: one
// axis has the windows of floor, another those of ceil.
bool pool_rounding(const Node *node, int64_t *rounding);

// The type that represents 0 .. the number of taps of the node's windows; the number of taps stands for no winner.
Type pool_type_of_winners(const Node *node);

#endif
