// Properties of quantisation nodes: which scale and zero point each element has.
#ifndef NGRAD_IR_OPERATORS_QUANTIZE_H
#define NGRAD_IR_OPERATORS_QUANTIZE_H

#include "ir/operators/operator.h"

enum { QUANTIZE_PER_TENSOR, QUANTIZE_PER_CHANNEL, QUANTIZE_PER_GROUP };

// Which axis of an operand with `nelems` scales or zero points corresponds to this axis of src: index i of src has
// the operand's index i / *step. -1: the operand does not vary along it. For verified nodes.
int scaling_axis(const Node *node, int64_t nelems, int axis, int64_t *step);

// The number of elements of an operand with fewer elements than its axis of src has, but more than one: index i has
// scale i modulo that number, and zero point i, or 0 when there is none. 0: there is one for each index, or one for
// all.
int64_t scaling_period(const Node *node, const Shape *operand);

// An upper bound of the integers that occur in computing where a scale or zero point stands that serves several indices
// of an axis; 0: there are none, or the node quantises nothing.
int64_t scaling_greatest_place(const Node *node);

#endif
