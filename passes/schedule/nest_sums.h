// Sums over several axes as sums of sums.
#ifndef NGRAD_PASSES_SCHEDULE_NEST_SUMS_H
#define NGRAD_PASSES_SCHEDULE_NEST_SUMS_H

#include "ir/kernel/kernel.h"

// Reductions over the vector axis and others become one over that axis alone and then over the rest: first of the
// inner axes, then of the others. Factors that do not vary over the vector axis leave its sum, so that what differs in
// them alone becomes one sum: of dy * (x - mean) over a channel's plane, for a group of channels and for gamma.
// False: out of memory.
bool kernel_nest_sums(Kernel *k, int vector_axis, AxisSet inner);

#endif
