// What every layer asks of a softmax node or its gradient.
#ifndef NGRAD_IR_OPERATORS_SOFTMAX_H
#define NGRAD_IR_OPERATORS_SOFTMAX_H

#include "ir/operators/operator.h"

// The values of SoftMax's attribute `mode`: what becomes of a row of nothing but -inf.
enum { SOFTMAX_NONE, SOFTMAX_INF_AS_ZERO };

// The axis of the first input along which it sums, counted from the left. Its rank must be known, and the node valid.
int softmax_axis(const Node *node);

#endif
