// Properties of pooling nodes; ir/operators/window.h has their windows.
#ifndef NGRAD_IR_OPERATORS_POOL_H
#define NGRAD_IR_OPERATORS_POOL_H

#include "ir/operators/operator.h"

// The rounding_type of the forward node whose gradient this node is. The gradient has no such attribute; it follows
// from the extents: ceil if there are more windows than floor gives. Floor if extents have no numbers.
int64_t pool_rounding(const Node *node);

#endif
