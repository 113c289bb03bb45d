// Splits an axis of a kernel into two.
#ifndef NGRAD_PASSES_SCHEDULE_SPLIT_AXIS_H
#define NGRAD_PASSES_SCHEDULE_SPLIT_AXIS_H

#include "ir/kernel/kernel.h"

// Whether the axis can be split: its extent is a literal, no expression is its index, and there is room for an axis.
bool kernel_can_split_axis(const Kernel *k, int axis);

// Makes the axis one of extent / inner blocks, and adds an axis of `inner` indices after it: later axes move up by one.
// Where that is beyond the extent, loads yield 0: they have a bound. They must have none if `inner` does not divide the
// extent. False: out of memory.
bool kernel_split_axis(Kernel *k, int axis, int64_t inner);

#endif
