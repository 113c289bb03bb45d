// The values of the attributes of the family `leaves`.
#ifndef NGRAD_IR_OPERATORS_LEAVES_H
#define NGRAD_IR_OPERATORS_LEAVES_H

#include "ir/operators/operator.h"

typedef enum Reduction { REDUCTION_SUM, REDUCTION_MEAN, REDUCTION_MAX } Reduction; // AllReduce's attribute

#endif
