// The graph verifier. Every stage after reading relies on the properties that it checks.
//
// In a valid graph each node has the right number of operands, its attributes are set and in range, and inference has
// nothing to refine in its types and shapes; nodes are in topological order; names are unique; use lists are complete.
#ifndef NGRAD_IR_GRAPH_VERIFY_H
#define NGRAD_IR_GRAPH_VERIFY_H

#include "ir/graph/graph.h"

// After reading, a failure is an error in the user's graph, which d reports. After a pass it is a bug in ngrad: the
// caller prints the messages and aborts. Does not change the graph.
bool graph_verify(Graph *g, Diagnostics *d);

#endif
