// Completes a schedule for a target. Why the passes are in this order:
//   by-element        first: it changes what lies in lanes
//   tune-loops        before the others, which need the rows of a micro-kernel and the sweeps
//   whole-bytes       when blocks have their final length
//   save-masks        before spill-vectors and prefetch, as it changes what sweeps load
//   place-temporaries last, as save-masks adds temporaries
#include "passes/schedule/tune/tune.h"

#include "passes/costs/costs.h"
#include "passes/schedule/kernel_pass.h"
#include "passes/schedule/order/order.h"

// Elements that a loop computes together: results of a product that are in registers share the scalar of the row.
static int choose_elements(const Kernel *k, const Loop *loop, const ScheduleOverrides *overrides) {
  const Axis *axis = loop_has(loop, LOOP_COLUMNS) ? &k->axes[loop_vector_axis(loop)] : NULL;
  if (!axis || axis->monomial || overrides->key[SCHEDULE_ROWS].is_set) return 1;
  return axis->extent % 4 == 0 ? 4 : axis->extent % 2 == 0 ? 2 : 1;
}

// In scalar C, rows that would lie in lanes are computed one after the other: copies of them and a vector of each
// element, spilled and summed, would take more than 5 kB of the stack. That leaves their sums as they are: a lane adds
// the elements of its row to LANES accumulators in turn, as vectors along the row do. For little code, loops go over
// elements one by one.
static bool take_rows(Schedule *s, const Target *target, const ScheduleOverrides *overrides) {
  for (Loop *loop = s->loops; target->code != CODE_OF_ISAS && loop < s->loops + s->nloops; loop++) {
    const bool is_same_sum = !loop_has_roots(loop, ROOT_REDUCE_INNER) || loop_sums_rows(loop);
    if (loop_has(loop, LOOP_ROW_ELEMENTS) && is_same_sum) loop->levels = schedule_rows;
    if (target->code == CODE_SMALL && !loop_has(loop, LOOP_ROW_LANES))
      loop->by_element = choose_elements(s->kernel, loop, overrides);
  }
  return true;
}

// Loops whose blocks store halves of the same byte run on one thread.
static bool keep_bytes_whole(Schedule *s, const Target *target, const ScheduleOverrides *overrides) {
  (void)target, (void)overrides;
  for (Loop *loop = s->loops; loop < s->loops + s->nloops; loop++)
    for (size_t i = 0; i < loop->nroots; i++) {
      const Root *root = &loop->roots[i];
      if (root->kind != ROOT_STORE || !loop_shares_bytes(s->kernel, loop, &s->kernel->accesses[root->access])) continue;
      loop->is_serial = true;
      loop->serial_work = 0;
    }
  return true;
}

static bool place_temporaries(Schedule *s, const Target *target, const ScheduleOverrides *overrides) {
  size_t offset = 0;
  (void)target, (void)overrides;
  for (size_t i = 0; i < s->ntemporaries; i++) {
    s->temporaries[i].offset = offset;
    if (s->temporaries[i].is_own) continue;
    offset += whole_lines((size_t)s->temporaries[i].nelems * type_nbytes(s->temporaries[i].type));
  }
  return true;
}

const KernelPass tune_passes[] = {
    {"by-element", NULL, take_rows, "in scalar C, let vectors lie along rows; for little code, elements one by one",
     NEEDED},
    {"tune-loops", NULL, schedule_tune_loops,
     "choose rows of a micro-kernel, register tiles, blocks, threads and streamed stores", NEEDED},
    {"whole-bytes", NULL, keep_bytes_whole, "run loops whose blocks share bytes on one thread", NEEDED},
    {"save-masks", NULL, schedule_save_masks, "save masks that spare later sweeps a tensor", FOR_SPEED},
    {"spill-vectors", NULL, schedule_spill_vectors, "save costly vectors that later sweeps need", FOR_SPEED},
    {"prefetch", NULL, schedule_choose_prefetch, "choose how far ahead rows are prefetched", FOR_SPEED},
    {"place-temporaries", NULL, place_temporaries, "place temporaries in the workspace", NEEDED}};
const size_t ntune_passes = sizeof tune_passes / sizeof *tune_passes;

bool schedule_tune(Schedule *s, const Target *target, const ScheduleOverrides *overrides) {
  static const ScheduleOverrides none;
  if (!overrides) overrides = &none;
  for (size_t i = 0; i < ntune_passes; i++) {
    const KernelPass *pass = &tune_passes[i];
    if (kernel_pass_runs(pass, overrides) && !pass->tune(s, target, overrides)) return false;
    if (!schedule_keep_text(s, overrides, pass->name)) return false;
  }
  return !s->kernel->out_of_memory;
}
