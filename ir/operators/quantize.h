// Properties of quantisation nodes: which scale and zero point an element of src has.
#ifndef NGRAD_IR_OPERATORS_QUANTIZE_H
#define NGRAD_IR_OPERATORS_QUANTIZE_H

#include "ir/operators/operator.h"

// The values of the attribute `qtype`.
enum { QUANTIZE_PER_TENSOR, QUANTIZE_PER_CHANNEL, QUANTIZE_PER_GROUP };

// The axis of an operand with `nelems` scales or zero points that corresponds to this axis of src: index i on src's
// axis has index i / *step on the operand's axis. -1: the operand does not vary along src's axis. The node must be
// verified.
int scaling_axis(const Node *node, int64_t nelems, int axis, int64_t *step);

// The number of scales or zero points of a per-channel operand, if there are at least two, but fewer than channels.
// Channel i then has scale i modulo the number; it has zero point i, or 0 if the operand has no element i.
// 0: the operand has an element for each channel, or one element for all.
int64_t scaling_period(const Node *node, const Shape *operand);

// An upper bound on the integers that a kernel computes to find a scale or zero point that several indices of an axis
// share. 0: no scale or zero point is shared, or the node is no quantisation.
int64_t scaling_greatest_place(const Node *node);

#endif
