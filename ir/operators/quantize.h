// Properties of quantisation nodes: the scale and zero point of each element.
#ifndef NGRAD_IR_OPERATORS_QUANTIZE_H
#define NGRAD_IR_OPERATORS_QUANTIZE_H

#include "ir/operators/operator.h"

enum { QUANTIZE_PER_TENSOR, QUANTIZE_PER_CHANNEL, QUANTIZE_PER_GROUP };

// The axis of an operand with `nelems` scales or zero points that corresponds to src's axis: index i of src takes the
// operand's index i / *step. -1: the operand does not vary along this axis. The node must be verified.
int scaling_axis(const Node *node, int64_t nelems, int axis, int64_t *step);

// The number of scales or zero points of an operand, if there is more than one and fewer than indices on src's axis:
// index i then has scale i modulo the number, and zero point i, or 0 beyond the last. 0: there is one for each index,
// or one for all.
int64_t scaling_period(const Node *node, const Shape *operand);

// An upper bound on the integers in computing the index of a scale or zero point that several indices of an axis share;
// 0: there are none, or the node is no quantisation.
int64_t scaling_greatest_place(const Node *node);

#endif
