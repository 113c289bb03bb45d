// Decides which vectors a sweep stores in local memory, so that later sweeps load them instead of computing them again.
#ifndef NGRAD_PASSES_SCHEDULE_TUNE_SPILL_H
#define NGRAD_PASSES_SCHEDULE_TUNE_SPILL_H

#include "ir/kernel/schedule.h"

// Fills in Loop.spills, after all other decisions about the loops. Spills results of elementary functions that later
// sweeps need, if those of a step take at most spill_nbytes for each expression, and in scalar C at most scalar_nbytes
// together. Changes no result. False: out of memory.
bool schedule_spill_vectors(Schedule *s, bool is_scalar);

#endif
