// Properties of losses and their gradients.
#ifndef NGRAD_IR_OPERATORS_LOSS_H
#define NGRAD_IR_OPERATORS_LOSS_H

#include "ir/operators/operator.h"

// The values of the attribute `reduction`.
enum { LOSS_MEAN, LOSS_SUM, LOSS_NONE };

// The axis of classes of SoftmaxCrossEntropy's src and its gradient's, as 0 .. rank - 1. The node must be valid.
int loss_class_axis(const Node *node);

// Whether the node has an ignore_index that f32 may take for another label: one beyond 2^24.
bool loss_ignored_is_large(const Node *node);

#endif
