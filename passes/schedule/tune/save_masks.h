// Saves masks as bits in a temporary, for later sweeps and loops that need them again.
#ifndef NGRAD_PASSES_SCHEDULE_TUNE_SAVE_MASKS_H
#define NGRAD_PASSES_SCHEDULE_TUNE_SAVE_MASKS_H

#include "ir/kernel/schedule.h"
#include "ir/loops/target.h"
#include "passes/schedule/overrides.h"

// Stores a mask when it is first computed, if a later sweep that loads the mask avoids loading tensors that have left
// the caches. Example: batch norm's gradient after ReLU's has two sweeps over ReLU's gradient; with the mask saved,
// only the first sweep loads ReLU's input. Changes no result. False: out of memory (k->out_of_memory).
bool schedule_save_masks(Schedule *schedule, const Target *target, const ScheduleOverrides *overrides);

#endif
