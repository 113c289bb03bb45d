// Scheduling, second wing: choices that depend on the target, such as rows per micro-kernel, threads and prefetching.
// None of them affects the bits of results. This wing includes the target (ir/loops/target.h) and the first wing,
// order/; it makes no loop trees. Lowering calls it in passes/lower/regions.c alone, as fusion must not know the
// target.
#ifndef NGRAD_PASSES_SCHEDULE_TUNE_TUNE_H
#define NGRAD_PASSES_SCHEDULE_TUNE_TUNE_H

#include "ir/kernel/schedule.h"
#include "ir/loops/target.h"
#include "passes/schedule/overrides.h"

// Completes a schedule that kernel_order made: rows per micro-kernel, register tiles, streamed stores, prefetching,
// saved masks and spilled vectors, offsets in the workspace. Keeps the order of additions (ir/kernel/sum_order.h).
// Overrides may be NULL. False: out of memory.
bool schedule_tune(Schedule *s, const Target *target, const ScheduleOverrides *overrides);

// Copies of tensors that several kernels of one result's pieces need: marks each loop (Loop.is_reused) that copies what
// a loop of an earlier piece copied to the same offset of the temporaries, if the copy is still there. The pieces are
// given in the order in which they run.
void schedule_reuse_copies(Schedule *const *pieces, size_t count);

// Passes, for tune_passes.c. None changes a result. False: out of memory.

// Everything but masks, spilled vectors, prefetching of rows, and offsets.
bool schedule_tune_loops(Schedule *s, const Target *target, const ScheduleOverrides *overrides);
// Stores a mask as bits when it is first computed, if a later sweep that loads the mask avoids loading tensors that
// have left the caches. Example: batch norm's gradient after ReLU's has two sweeps over ReLU's gradient; with the mask
// saved, only the first sweep loads ReLU's input.
bool schedule_save_masks(Schedule *s, const Target *target, const ScheduleOverrides *overrides);
// Fills in Loop.spills, after all other decisions about the loops. Spills results of elementary functions that later
// sweeps need, if those of a micro-kernel take at most spill_nbytes for each expression, and in scalar C at most
// scalar_nbytes together.
bool schedule_spill_vectors(Schedule *s, const Target *target, const ScheduleOverrides *overrides);
// Fills in `prefetch`, `ahead` and `iterations_ahead` of loops with inner sums: whole outer iterations if the L2 cache
// holds these, else elements along the vector axis. Call it when the loads of each sweep are final.
bool schedule_choose_prefetch(Schedule *s, const Target *target, const ScheduleOverrides *overrides);

#endif
