// What an outer iteration loads, and how much of it at a time leaves the caches the room that its sweeps need.
#include "passes/schedule/fetch_ahead.h"

#include "passes/schedule/traffic.h"

#include <string.h>

typedef struct Fetching {
  const Kernel *k;
  const Target *target;
  const ScheduleOverrides *overrides;
  bool *is_seen, *is_loaded_now; // by ExprId; by AccessId: of a sweep
  bool *is_loaded;               // by AccessId: of all sweeps
} Fetching;

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// The tensors that an outer iteration loads a row of; *nbytes is what it loads of them.
static int count_tensors(const Fetching *f, const Loop *loop, int64_t *nbytes) {
  const Kernel *k = f->k;
  const AxisSet outer = loop_outer_axes(loop), vector = 1U << loop_vector_axis(loop);
  int count = 0;
  *nbytes = 0;
  memset(f->is_loaded, 0, k->naccesses * sizeof *f->is_loaded);
  for (int sweep = 0; sweep < loop->nsweeps; sweep++) {
    mark_sweep_loads(k, loop, sweep, 0, f->is_seen, f->is_loaded_now);
    for (AccessId i = 0; i < k->naccesses; i++) f->is_loaded[i] |= f->is_loaded_now[i];
  }
  for (AccessId i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    const AxisSet axes = access_axes(k, a);
    if (!f->is_loaded[i] || !a->value || !(axes & outer) || !(axes & vector)) continue;
    *nbytes += axes_nelems(k, axes & ~outer) * (int64_t)type_nbytes(a->type);
    count++;
  }
  return count;
}

// Outer iterations, so many that they and those at work take up half of a core's second level. With more, what is
// fetched pushes out what is still needed. Of more than two tensors some wait for a later sweep while others are
// fetched beside them: each further one was measured to cost as much as two.
static int64_t choose_iterations(const Fetching *f, const Loop *loop, int ntensors, int64_t nbytes) {
  const int64_t most = loop->rows > 1 ? 2 * (int64_t)loop->rows : 1;
  if (!nbytes) return 0;
  if (ntensors > 2) nbytes = nbytes / ntensors * (2 * ntensors - 2);
  const int64_t fit = f->target->l2_nbytes / 2 / nbytes;
  return fit > loop->rows ? least(fit - loop->rows, most) : 0;
}

// How far ahead, where outer iterations are too long to be fetched whole and there is more than caches hold: a
// processor's own prefetching begins anew with each page and with each run along the vector axis. Where a run is
// shorter than that, the fetch is for a later iteration of the last middle axis.
static void choose_distance(const Fetching *f, Loop *loop, int64_t nbytes) {
  enum { FAR = 1 << 10 }; // elements
  const Axis *axis = &f->k->axes[loop_vector_axis(loop)];
  if (loop->ninner == 1 || axis->monomial) return;
  const bool is_large = nbytes * axes_nelems(f->k, loop_outer_axes(loop)) > f->target->l2_nbytes;
  const int64_t far = schedule_number(f->overrides, SCHEDULE_AHEAD, is_large && !loop->prefetch ? FAR : 0);
  const int64_t run = axis->extent * loop->rows;
  if (far < axis->extent && loop->rows == 1) loop->ahead = (int)far;
  else if (far) loop->iterations_ahead = (int)((far + run - 1) / run);
}

static void choose(Fetching *f, Loop *loop) {
  enum { FEW_ELEMENTS = 1 << 15 };
  bool has_inner_sums = false;
  for (size_t i = 0; i < loop->nroots; i++) has_inner_sums |= loop->roots[i].kind == ROOT_REDUCE_INNER;
  const int64_t nelems = axes_nelems(f->k, loop_outer_axes(loop) | loop_inner_axes(loop));
  if (!has_inner_sums || loop->sums_middle || loop->rows_in_lanes || loop->tile || nelems <= FEW_ELEMENTS) return;
  int64_t nbytes;
  const int ntensors = count_tensors(f, loop, &nbytes);
  if (loop->nouter == 1 || loop->rows == 1)
    loop->prefetch =
        (int)schedule_number(f->overrides, SCHEDULE_PREFETCH, choose_iterations(f, loop, ntensors, nbytes));
  choose_distance(f, loop, nbytes);
}

bool kernel_fetch_ahead(Kernel *k, const Target *target, const ScheduleOverrides *overrides) {
  Fetching f = {.k = k,
                .target = target,
                .overrides = overrides,
                .is_seen = ARENA_ARRAY(k->arena, bool, k->nexprs),
                .is_loaded_now = ARENA_ARRAY(k->arena, bool, k->naccesses + 1),
                .is_loaded = ARENA_ARRAY(k->arena, bool, k->naccesses + 1)};
  if (!f.is_seen || !f.is_loaded_now || !f.is_loaded) {
    k->out_of_memory = true;
    return false;
  }
  for (size_t i = 0; i < k->nloops; i++) choose(&f, &k->loops[i]);
  return true;
}
