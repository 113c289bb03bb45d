// The verifier of graphs: every stage after reading may rely on what it checks.
//
// Each node has the right number of operands, its attributes are set and in range, and its types and shapes are those
// that inference gives, with nothing left to refine; nodes are in topological order; names are unique; use lists are
// complete.
#ifndef NGRAD_IR_GRAPH_VERIFY_H
#define NGRAD_IR_GRAPH_VERIFY_H

#include "ir/graph/graph.h"

// After reading, a failure is an error in the user's graph, which d reports. After a pass it is a bug in ngrad: the
// caller prints the messages and aborts. Does not change the graph.
bool graph_verify(Graph *g, Diagnostics *d);

#endif
