// Copies that the kernels of a result's pieces share.
#ifndef NGRAD_PASSES_SCHEDULE_SHARE_H
#define NGRAD_PASSES_SCHEDULE_SHARE_H

#include "ir/kernel/schedule.h"

// Marks the loops of pieces, given in the order in which they run, that copy what a loop of an earlier piece has copied
// to the same place of the kernels' temporaries, and not overwritten since.
void schedule_share_copies(Schedule *const *pieces, size_t count);

#endif
