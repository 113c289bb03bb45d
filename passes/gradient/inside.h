// Gradients inside of a graph: the operator Gradient (ir/operators/operators.c).
#ifndef NGRAD_PASSES_GRADIENT_INSIDE_H
#define NGRAD_PASSES_GRADIENT_INSIDE_H

#include "ir/graph/graph.h"

// Replaces each Gradient by the nodes that compute it, which may be differentiated again. The graph is valid before and
// after, but for these nodes. False after reporting why there is no gradient.
bool graph_expand_gradients(Graph *g, Diagnostics *d);

#endif
