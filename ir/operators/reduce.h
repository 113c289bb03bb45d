// The axes that a reduction node reduces.
#ifndef NGRAD_IR_OPERATORS_REDUCE_H
#define NGRAD_IR_OPERATORS_REDUCE_H

#include "ir/operators/operator.h"

// Mask of the axes of src in the attribute `axes`, or for ArgMax and ArgMin in `axis`. src's rank must be known, and
// the node valid.
uint32_t reduce_axes(const Node *node);

#endif
