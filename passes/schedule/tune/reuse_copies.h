// Finds copies of tensors that several kernels of one result's pieces need, so that only the first kernel copies.
#ifndef NGRAD_PASSES_SCHEDULE_TUNE_REUSE_COPIES_H
#define NGRAD_PASSES_SCHEDULE_TUNE_REUSE_COPIES_H

#include "ir/kernel/schedule.h"

// Marks each loop (Loop.is_made) that copies what a loop of an earlier piece copied to the same offset of the
// temporaries, if the copy is still there. The pieces are given in the order in which they run.
void schedule_reuse_copies(Schedule *const *pieces, size_t count);

#endif
