// Splits an axis of a kernel into two.
#ifndef NGRAD_PASSES_SCHEDULE_ORDER_SPLIT_AXIS_H
#define NGRAD_PASSES_SCHEDULE_ORDER_SPLIT_AXIS_H

#include "ir/kernel/kernel.h"

// Whether the axis can be split: its extent is a literal, no expression is its index, and the kernel has fewer than
// MAX_AXES axes.
bool kernel_can_split_axis(const Kernel *k, int axis);

// Splits the axis into (block, index in block): the axis gets extent / inner indices, rounded up, and a new axis of
// `inner` indices follows it, so that the numbers of later axes grow by one. If `inner` does not divide the extent,
// loads get a bound, so that they yield 0 beyond the extent; loads along the axis must have no bounds before. False:
// out of memory.
bool kernel_split_axis(Kernel *k, int axis, int64_t inner);

#endif
