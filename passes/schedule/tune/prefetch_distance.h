// Decides how far ahead the loops of a scheduled kernel prefetch.
#ifndef NGRAD_PASSES_SCHEDULE_TUNE_PREFETCH_DISTANCE_H
#define NGRAD_PASSES_SCHEDULE_TUNE_PREFETCH_DISTANCE_H

#include "ir/kernel/schedule.h"
#include "ir/loops/target.h"
#include "passes/schedule/overrides.h"

// Fills in `prefetch`, `ahead` and `iterations_ahead` of loops with inner sums: whole outer iterations if the L2 cache
// holds these, else elements along the vector axis. Call it when the loads of each sweep are final. Changes no result.
// False: out of memory (k->out_of_memory).
bool schedule_choose_prefetch(Schedule *s, const Target *target, const ScheduleOverrides *overrides);

#endif
