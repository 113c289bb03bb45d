// Scheduling, first part: chooses the order of additions. The order depends only on the graph, never on the target;
// tune.h declares the second part, which depends on the target.
#ifndef NGRAD_PASSES_SCHEDULE_ORDER_KERNEL_H
#define NGRAD_PASSES_SCHEDULE_ORDER_KERNEL_H

#include "ir/kernel/schedule.h"
#include "passes/schedule/overrides.h"

// Makes a schedule, in the kernel's arena, with everything that affects the bits of results: which sums are in one
// sweep, the vector axis, the lengths of chains, blocks and tiles, and which products are fused into sums. All of these
// follow from shapes and types, not from the target. Vectors lie along vector_axis; BEST_AXIS: along the axis that
// suits a product or scatter, else that has the most elements with stride 1. NULL: out of memory (k->out_of_memory), or
// no schedule suits all reductions of the kernel; the kernel must not be used any more. Overrides may be NULL.
enum { BEST_AXIS = -1 };
Schedule *kernel_order(Kernel *k, int vector_axis, const ScheduleOverrides *overrides);

#endif
