// What random data must keep to: a variance is positive, whatever lies between it and the norm that takes it.
#ifndef NGRAD_IR_OPERATORS_RANGE_H
#define NGRAD_IR_OPERATORS_RANGE_H

#include "ir/operators/operator.h"

// What data for this input of a node must keep to, as the operator's row and the node's attributes say.
ValueRange node_input_range(const Node *node, uint32_t slot);

// Sets the range of every value of a sorted graph: what its users' rows ask of it, and what its users' results must
// keep to where the operator hands that on (Operator.keeps). A value that several use has the narrowest of their
// ranges.
void graph_find_ranges(Graph *g);

#endif
