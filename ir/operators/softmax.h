// Properties of softmax nodes and their gradients.
#ifndef NGRAD_IR_OPERATORS_SOFTMAX_H
#define NGRAD_IR_OPERATORS_SOFTMAX_H

#include "ir/operators/operator.h"

// The values of SoftMax's attribute `mode`: a row of only -inf gives NaN, or 0.
enum { SOFTMAX_NONE, SOFTMAX_INF_AS_ZERO };

// The reduced axis of the first input, in 0 .. rank - 1. The input's rank must be known, and the node valid.
int softmax_axis(const Node *node);

#endif
