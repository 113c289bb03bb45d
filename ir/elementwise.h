// What every layer asks of an elementwise node.
#ifndef NGRAD_IR_ELEMENTWISE_H
#define NGRAD_IR_ELEMENTWISE_H

#include "ir/operator.h"

// The values of the choice attributes.
enum { BROADCAST_NUMPY, BROADCAST_NONE };
enum { GELU_ERF, GELU_TANH };

// An attribute as a number that the operator computes with: an f32, unless its data is f64. Then a bound is the same
// number in every layer, and what was clamped to it is on it.
double node_coefficient(const Node *node, const char *name);

#endif
