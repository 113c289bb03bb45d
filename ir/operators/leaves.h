// What rows of the family leaves say.
#ifndef NGRAD_IR_OPERATORS_LEAVES_H
#define NGRAD_IR_OPERATORS_LEAVES_H

#include "ir/operators/operator.h"

typedef enum Reduction { REDUCTION_SUM, REDUCTION_MEAN, REDUCTION_MAX } Reduction; // AllReduce's attribute

#endif
