// Properties of quantisation nodes: which scale and zero point each element has.
#ifndef NGRAD_IR_OPERATORS_QUANTIZE_H
#define NGRAD_IR_OPERATORS_QUANTIZE_H

#include "ir/operators/operator.h"

enum { QUANTIZE_PER_TENSOR, QUANTIZE_PER_CHANNEL, QUANTIZE_PER_GROUP };

// Which axis of an operand with `nelems` scales or zero points corresponds to this axis of src: index i of src has
// the operand's index i / *step. -1: the operand does not vary along it. For verified nodes.
int scaling_axis(const Node *node, int64_t nelems, int axis, int64_t *step);

#endif
