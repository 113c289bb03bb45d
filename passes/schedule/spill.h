// What a sweep computes at cost and leaves for later ones.
#ifndef NGRAD_PASSES_SCHEDULE_SPILL_H
#define NGRAD_PASSES_SCHEDULE_SPILL_H

#include "ir/kernel/kernel.h"

// Fills loops' reused, when all else of them is known: vectors of elementary functions that later sweeps need,
// too, where a step's fit into a share of the first level. Does not change results. False: out of memory.
bool kernel_spill_vectors(Kernel *k);

#endif
