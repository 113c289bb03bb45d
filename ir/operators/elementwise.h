// Properties of elementwise nodes, for inference, lowering, gradients and the interpreter.
#ifndef NGRAD_IR_OPERATORS_ELEMENTWISE_H
#define NGRAD_IR_OPERATORS_ELEMENTWISE_H

#include "ir/operators/operator.h"

// The values of the attribute `auto_broadcast`, and of GELU's attribute `mode`.
enum { BROADCAST_NUMPY, BROADCAST_NONE };
enum { GELU_ERF, GELU_TANH };

// An attribute as a number to compute with: rounded to f32 unless the data is f64. With the same rounding in every
// stage, an element that was clamped to a bound equals the bound.
double node_coefficient(const Node *node, const char *name);

// Whether a kernel of the node computes in s64: an operand is s64, and f64 cannot represent every s64. TypeCast
// does so only to a narrower integer.
bool node_computes_in_s64(const Node *node);

// The channel axis of input 0 if `operand`, described by `row`, is a vector with one element for each channel. -1: the
// operand is broadcast as in numpy, its axes aligned with input 0's at the right. Both ranks must be known.
int operand_channel_axis(const Node *node, const Operand *row, const Value *operand);

// Mask of the axes of input 0 along which the operand varies. Both shapes must be known.
uint32_t operand_axes(const Node *node, const Operand *row, const Value *operand);

#endif
