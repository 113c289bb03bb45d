// Scheduling: a kernel's expressions become loops.
#ifndef NGRAD_PASSES_SCHEDULE_H
#define NGRAD_PASSES_SCHEDULE_H

#include "ir/kernel.h"
#include "ir/target.h"

// Fills k->loops and k->temporaries. What decides the order of additions (inner axes, blocks of outer reductions,
// accumulators) depends on the shapes alone, so results are the same bits for every target and thread count.
// False: out of memory (k->out_of_memory), or no schedule carries these reductions together; k is then spoilt.
bool kernel_schedule(Kernel *k, const Target *target);

#endif
