// What every layer asks of a reduction node: which axes it reduces.
#ifndef NGRAD_IR_OPERATORS_REDUCE_H
#define NGRAD_IR_OPERATORS_REDUCE_H

#include "ir/operators/operator.h"

// Mask of the axes of src that the attribute `axes` names. Src's rank must be known, and the node valid.
uint32_t reduce_axes(const Node *node);

#endif
