// Splits sums over several axes into sums of sums.
#ifndef NGRAD_PASSES_SCHEDULE_NEST_SUMS_H
#define NGRAD_PASSES_SCHEDULE_NEST_SUMS_H

#include "ir/kernel/kernel.h"

// Replaces each reduction over the vector axis and others by nested ones: over the vector axis, then over the other
// inner axes, then over the rest. Factors that do not vary over the vector axis are taken out of its sum, so that sums
// that differed in such factors share it. In group norm's gradient, dy * (x - mean) is summed over a channel's plane
// once, for the statistics of the group and for diff_gamma. False: out of memory.
bool kernel_nest_sums(Kernel *k, int vector_axis, AxisSet inner);

#endif
