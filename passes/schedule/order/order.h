// Scheduling, first wing: chooses the order of additions, and so the bits of results. The order depends only on the
// kernel's shapes and types: this wing includes ir/kernel and passes/costs, never a target, a loop tree or another
// wing. Fusion asks it, too, which kernels have equal orders (sum_forms.h), and what memory they move (traffic.h).
#ifndef NGRAD_PASSES_SCHEDULE_ORDER_ORDER_H
#define NGRAD_PASSES_SCHEDULE_ORDER_ORDER_H

#include "ir/kernel/schedule.h"
#include "passes/schedule/overrides.h"

// Makes a schedule, in the kernel's arena, with everything that affects the bits of results: which sums are in one
// sweep, the vector axis, the lengths of chains, blocks and tiles, and which products are fused into sums. All of these
// follow from shapes and types, not from the target. Vectors lie along vector_axis; BEST_AXIS: along the axis that
// suits a product or scatter, else that has the most elements with stride 1. NULL: out of memory (k->out_of_memory), or
// no schedule suits all reductions of the kernel; the kernel must not be used any more. Overrides may be NULL.
enum { BEST_AXIS = -1 };
Schedule *kernel_order(Kernel *k, int vector_axis, const ScheduleOverrides *overrides);

extern const LoopLevel schedule_rows[]; // the nest of loops whose vectors lie along rows

#endif
