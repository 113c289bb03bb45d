// Initial values of states.
#ifndef NGRAD_IR_GRAPH_INIT_H
#define NGRAD_IR_GRAPH_INIT_H

#include "ir/graph/tensor.h"

#define INIT_MOST_DEVIATIONS 4.9 // numbers of INIT_NORMAL have at most this distance from 0

extern const char *const init_names[]; // by InitKind, as graph files write them

// Fills t as the state's init says; t has the state's type and extents. `state` is an index in g->states. Each number
// is a function of the seed, the state's index and the element's row-major index, so it is the same on every machine.
// INIT_NORMAL adds eight uniform numbers: the sum's kurtosis is 0.15 below a normal distribution's, and no number is
// beyond INIT_MOST_DEVIATIONS.
void init_fill(const Graph *g, size_t state, uint64_t seed, Tensor *t);

#endif
