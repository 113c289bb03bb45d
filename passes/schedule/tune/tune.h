// Scheduling, second wing: choices that depend on the target, such as rows per step, threads and prefetching. None of
// them affects the bits of results. This wing includes the target (ir/loops/target.h) and the first wing, order/; it
// makes no loop trees. Lowering calls it in passes/lower/regions.c alone, as fusion must not know the target.
#ifndef NGRAD_PASSES_SCHEDULE_TUNE_TUNE_H
#define NGRAD_PASSES_SCHEDULE_TUNE_TUNE_H

#include "ir/kernel/schedule.h"
#include "ir/loops/target.h"
#include "passes/schedule/overrides.h"

// Completes a schedule that kernel_order made: rows per step, register tiles, streamed stores, prefetching, saved masks
// and spilled vectors, offsets in the workspace. Keeps the order of additions (ir/kernel/sum_order.h). Overrides may be
// NULL. False: out of memory.
bool schedule_tune(Schedule *s, const Target *target, const ScheduleOverrides *overrides);

// The first pass of schedule_tune: everything but masks, spilled vectors, prefetching of rows, and offsets.
bool schedule_tune_loops(Schedule *s, const Target *target, const ScheduleOverrides *overrides);

#endif
