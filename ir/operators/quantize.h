// What later stages ask of quantisation: a scale and a zero point for each element.
#ifndef NGRAD_IR_OPERATORS_QUANTIZE_H
#define NGRAD_IR_OPERATORS_QUANTIZE_H

#include "ir/operators/operator.h"

enum { QUANTIZE_PER_TENSOR, QUANTIZE_PER_CHANNEL, QUANTIZE_PER_GROUP };

// Of a verified node, the axis of an operand with scales or zero points that goes along this axis of src, where
// element i's is at i / *step; -1: it does not vary. `nelems`: how many there are.
int scaling_axis(const Node *node, int64_t nelems, int axis, int64_t *step);

#endif
