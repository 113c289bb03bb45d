// Properties of losses and their gradients.
#ifndef NGRAD_IR_OPERATORS_LOSS_H
#define NGRAD_IR_OPERATORS_LOSS_H

#include "ir/operators/operator.h"

// The values of the attribute `reduction`.
enum { LOSS_MEAN, LOSS_SUM, LOSS_NONE };

// The class axis of src, in 0 .. rank - 1, of a valid SoftmaxCrossEntropy or its gradient.
int loss_class_axis(const Node *node);

// Whether the node's ignore_index is beyond 2^24, so that f32 may confuse it with another label.
bool loss_ignored_is_large(const Node *node);

#endif
