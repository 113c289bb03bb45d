// What a sweep computes at cost and leaves for later ones.
#ifndef NGRAD_PASSES_REUSE_H
#define NGRAD_PASSES_REUSE_H

#include "ir/kernel.h"

// Fills loop->reused of a loop whose sweeps and rows are known: vectors of elementary functions that later sweeps need,
// too, where a step's fit into a share of the first level. Does not change results. False: out of memory.
bool loop_reuse_vectors(Kernel *k, Loop *loop);

#endif
