// Decides which vectors a sweep stores in local memory, so that later sweeps load them instead of computing them again.
#ifndef NGRAD_PASSES_SCHEDULE_SPILL_H
#define NGRAD_PASSES_SCHEDULE_SPILL_H

#include "ir/kernel/schedule.h"

// Fills in Loop.spills, after everything else of the loops is decided: vectors of elementary functions that later
// sweeps need too, if those of a step fit into a part of the L1 cache. Does not change results. False: out of memory.
bool schedule_spill_vectors(Schedule *s);

#endif
