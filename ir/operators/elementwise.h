// What every layer asks of an elementwise node.
#ifndef NGRAD_IR_OPERATORS_ELEMENTWISE_H
#define NGRAD_IR_OPERATORS_ELEMENTWISE_H

#include "ir/operators/operator.h"

// The values of the choice attributes.
enum { BROADCAST_NUMPY, BROADCAST_NONE };
enum { GELU_ERF, GELU_TANH };

// An attribute as a number that the operator computes with: an f32, unless its data is f64. Then a bound is the same
// number in every layer, and what was clamped to it is on it.
double node_coefficient(const Node *node, const char *name);

// The axis of input 0 that this operand of the node, which has that row, lies on when it is a vector of channels; -1:
// it is none, and its axes are aligned at the right, as numpy does it. Both ranks must be known.
int operand_channel_axis(const Node *node, const Operand *row, const Value *operand);

// Mask of the axes of input 0 along which the operand varies. Both shapes must be known.
uint32_t operand_axes(const Node *node, const Operand *row, const Value *operand);

#endif
