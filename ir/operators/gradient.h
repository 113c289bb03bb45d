// The operator Gradient: of = a tensor, by = tensors that it depends on; results: the gradients of the sum of `of`.
#ifndef NGRAD_IR_OPERATORS_GRADIENT_H
#define NGRAD_IR_OPERATORS_GRADIENT_H

#include "ir/operators/operator.h"

extern const Operator gradient_operator;

#endif
