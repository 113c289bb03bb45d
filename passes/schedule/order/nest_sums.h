// Splits sums over several axes into sums of sums.
#ifndef NGRAD_PASSES_SCHEDULE_ORDER_NEST_SUMS_H
#define NGRAD_PASSES_SCHEDULE_ORDER_NEST_SUMS_H

#include "ir/kernel/kernel.h"

// Replaces each reduction over the vector axis and others by nested ones: over the vector axis, then over the other
// inner axes, then over the rest. Factors that do not vary over the vector axis are moved out of the sum over it, so
// that sums that differ only in such factors use the same inner sum. Example: group norm's gradient sums dy * (x -
// mean) over a channel's plane once, for the group's statistics and for diff_gamma. False: out of memory.
bool kernel_nest_sums(Kernel *k, int vector_axis, AxisSet inner);

#endif
