// The first values of states.
#ifndef NGRAD_IR_GRAPH_INIT_H
#define NGRAD_IR_GRAPH_INIT_H

#include "ir/graph/tensor.h"

#define INIT_MOST_DEVIATIONS 4.9 // of numbers of INIT_NORMAL from 0

extern const char *const init_names[]; // by InitKind, as graph files have them

// Fills t, which has the type and extents of the graph's state of this index, by its init. Each number is a function of
// the seed, the state's index and the element's row-major index alone, so it is the same on every machine. Numbers of
// INIT_NORMAL are sums of eight uniform ones: their kurtosis is 0.15 below that of a normal distribution, and none is
// beyond INIT_MOST_DEVIATIONS.
void init_fill(const Graph *g, size_t state, uint64_t seed, Tensor *t);

#endif
