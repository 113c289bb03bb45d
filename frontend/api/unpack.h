// Weights in packed types, for training.
#ifndef NGRAD_FRONTEND_API_UNPACK_H
#define NGRAD_FRONTEND_API_UNPACK_H

#include "ir/graph/graph.h"

// Evaluates nodes that make floats of constants in TYPES_QUANTIZED; what other nodes take of them becomes initializers.
// False: out of memory, and the graph is only good for graph_free.
bool graph_unpack_weights(Graph *g);

#endif
