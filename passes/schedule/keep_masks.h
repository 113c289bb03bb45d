// Masks that later sweeps and loops need again, kept as bits.
#ifndef NGRAD_PASSES_SCHEDULE_KEEP_MASKS_H
#define NGRAD_PASSES_SCHEDULE_KEEP_MASKS_H

#include "passes/schedule/schedule.h"

// In a scheduled kernel, a mask that spares a later sweep tensors which the caches no longer hold becomes a temporary
// when it is first computed: a ReLU's gradient then reads what the ReLU saw once, although batch norm's has two looks
// at its result. Changes no result. False: out of memory (k->out_of_memory).
bool kernel_keep_masks(Kernel *k, const Target *target, const ScheduleOverrides *overrides);

#endif
