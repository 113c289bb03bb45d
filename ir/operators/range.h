// Ranges for random data. An input that becomes a variance must be positive, also when other operators lie between the
// input and the norm.
#ifndef NGRAD_IR_OPERATORS_RANGE_H
#define NGRAD_IR_OPERATORS_RANGE_H

#include "ir/operators/operator.h"

// The range that this input of a node must lie in, by the operator's row and the node's attributes.
ValueRange node_input_range(const Node *node, uint32_t slot);

// Sets the range of every value of a sorted graph, from outputs to inputs: the narrowest of what each user requires of
// the input itself and what its result's range requires of it (Operator.preserves). Marks those of a graph with a long
// chain of products.
void graph_find_ranges(Graph *g);

#endif
