// How far ahead the loops of a scheduled kernel fetch.
#ifndef NGRAD_PASSES_SCHEDULE_FETCH_AHEAD_H
#define NGRAD_PASSES_SCHEDULE_FETCH_AHEAD_H

#include "passes/schedule/schedule.h"

// Fills in `prefetch` and `ahead` of the loops that add up rows along them: whole outer iterations where the second
// level holds these, else elements along the vector axis. What each sweep loads must be final. Results do not change.
// False: out of memory (k->out_of_memory).
bool kernel_fetch_ahead(Kernel *k, const Target *target, const ScheduleOverrides *overrides);

#endif
