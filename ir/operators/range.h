// The range that the elements of random data must lie in, so that a graph computes no NaN. An input that is used as a
// variance must be positive, even if other operators are between the input and the norm.
#ifndef NGRAD_IR_OPERATORS_RANGE_H
#define NGRAD_IR_OPERATORS_RANGE_H

#include "ir/operators/operator.h"

// Sets the range of every value of a sorted graph, from outputs to inputs: the narrowest range that a user requires of
// its input, directly or through the range of its result (Operator.preserves). Also sets nproducts and is_in_chain.
void graph_find_ranges(Graph *g);

#endif
