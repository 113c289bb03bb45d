// Properties of elementwise nodes that inference, lowering, gradient and interpreter share.
#ifndef NGRAD_IR_OPERATORS_ELEMENTWISE_H
#define NGRAD_IR_OPERATORS_ELEMENTWISE_H

#include "ir/operators/operator.h"

// The values of the choice attributes.
enum { BROADCAST_NUMPY, BROADCAST_NONE };
enum { GELU_ERF, GELU_TANH };

// An attribute as a number to compute with: rounded to f32 unless the data is f64. So each stage compares with the same
// bound: an element that was clamped to a bound equals it.
double node_coefficient(const Node *node, const char *name);

// Whether a kernel of the node computes in s64: an operand is s64, of which f64 does not hold every number. TypeCast
// computes in f64.
bool node_computes_in_s64(const Node *node);

// The channel axis of input 0 if `operand`, described by `row`, is a vector with one element for each channel; -1: it
// is not, and its axes are aligned with input 0's at the right, as by numpy. Both ranks must be known.
int operand_channel_axis(const Node *node, const Operand *row, const Value *operand);

// Mask of the axes of input 0 along which the operand varies. Both shapes must be known.
uint32_t operand_axes(const Node *node, const Operand *row, const Value *operand);

#endif
