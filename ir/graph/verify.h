// The verifier: what every stage after reading may rely on.
//
// Each node's operands are there in the right number, its attributes set and in range, its types and shapes are
// those that inference gives (and it has nothing left to refine); nodes stand in topological order; names are unique;
// use lists are complete.
#ifndef NGRAD_IR_GRAPH_VERIFY_H
#define NGRAD_IR_GRAPH_VERIFY_H

#include "ir/graph/graph.h"

// After reading, contradictions are the user's and come back as messages. After a pass they are ngrad's own
// mistakes: the caller prints the graph and aborts.
bool graph_verify(Graph *g, Diagnostics *d);

#endif
