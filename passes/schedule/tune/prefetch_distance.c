// Decides prefetch distances from the bytes that an outer iteration loads: prefetched data must not evict data that the
// current iteration still needs.
#include "passes/schedule/tune/tune.h"

#include "ir/kernel/needed.h"
#include "passes/costs/costs.h"

#include <string.h>

typedef struct Fetching {
  const Kernel *k;
  const Target *target;
  const ScheduleOverrides *overrides;
  bool *is_needed; // by ExprId: some sweep computes it
  bool *is_loaded; // by AccessId: some sweep loads it
} Fetching;

// The number of tensors that an outer iteration loads a row from; *nbytes: the bytes of these rows.
static int count_tensors(const Fetching *f, const Loop *loop, int64_t *nbytes) {
  const Kernel *k = f->k;
  const AxisSet outer = loop_outer_axes(loop), vector = 1U << loop_vector_axis(loop);
  int count = 0;
  *nbytes = 0;
  memset(f->is_loaded, 0, k->naccesses * sizeof *f->is_loaded);
  memset(f->is_needed, 0, k->nexprs * sizeof *f->is_needed);
  for (size_t i = 0; i < loop->nroots; i++) loop_mark_root(k, loop, &loop->roots[i], f->is_needed);
  for (ExprId id = 1; id < k->nexprs; id++)
    if (f->is_needed[id] && k->exprs[id].op == EXPR_LOAD) f->is_loaded[k->exprs[id].access] = true;
  for (AccessId i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    const AxisSet axes = access_axes(k, a);
    if (!f->is_loaded[i] || !a->value || !(axes & outer) || !(axes & vector)) continue;
    *nbytes += access_nelems_along(k, a, ~outer) * (int64_t)type_nbytes(a->type);
    count++;
  }
  return count;
}

// The outer iterations of as many micro-kernels as reach the distance, but only so many that their data fills, with
// that of the current micro-kernel, half of the L2 cache: more would evict data that is still needed. Each tensor after
// the second counts as two, as measured: its prefetched rows wait for a later sweep while other tensors are prefetched.
static int64_t choose_iterations(const Fetching *f, const Loop *loop, int ntensors, int64_t nbytes) {
  if (!nbytes) return 0;
  const AxisSet inner = loop_inner_axes(loop);
  const int64_t step = loop->rows * axes_nelems(f->k, inner), distance = f->k->costs->fetch_distance;
  const int64_t nsteps = axes_monomial(f->k, inner) || distance <= step ? 1 : (distance + step - 1) / step;
  if (ntensors > 2) nbytes = nbytes / ntensors * (2 * ntensors - 2);
  const int64_t fit = f->target->l2_nbytes / 2 / nbytes;
  if (fit <= loop->rows) return 0;
  return fit - loop->rows < nsteps * loop->rows ? fit - loop->rows : nsteps * loop->rows;
}

// The distance of prefetches within an outer iteration, if the iteration is too long to be prefetched whole and the
// data does not fit in the caches. The hardware prefetcher starts again at each page and at each run along the vector
// axis. If a run is shorter than the distance, a later iteration of the last middle axis is prefetched.
static void choose_distance(const Fetching *f, Loop *loop, int64_t nbytes) {
  const Axis *axis = &f->k->axes[loop_vector_axis(loop)];
  if (loop->ninner == 1 || axis->monomial) return;
  const bool is_large = nbytes * axes_nelems(f->k, loop_outer_axes(loop)) > f->target->l2_nbytes;
  const int64_t chosen = is_large && !loop->prefetch ? f->k->costs->fetch_distance : 0;
  const int64_t distance = schedule_number(f->overrides, SCHEDULE_AHEAD, chosen);
  const int64_t run = axis->extent * loop->rows;
  if (distance < axis->extent && loop->rows == 1) loop->ahead = (int)distance;
  else if (distance) loop->iterations_ahead = (int)((distance + run - 1) / run);
}

static void choose(Fetching *f, Loop *loop) {
  const bool has_inner_sums = loop_has_roots(loop, ROOT_REDUCE_INNER);
  const int64_t nelems = axes_nelems(f->k, loop_outer_axes(loop) | loop_inner_axes(loop));
  if (!has_inner_sums || loop_sums_in_lanes(loop) || loop_has(loop, LOOP_ROW_LANES) || loop_tile(loop) ||
      nelems <= f->k->costs->fetch_nelems)
    return;
  if (loop_has(loop, LOOP_TAPS)) return; // micro-kernels for later taps find the first tap's data in the caches
  int64_t nbytes;
  const int ntensors = count_tensors(f, loop, &nbytes);
  if (loop->nouter == 1 || loop->rows == 1)
    loop->prefetch =
        (int)schedule_number(f->overrides, SCHEDULE_PREFETCH, choose_iterations(f, loop, ntensors, nbytes));
  choose_distance(f, loop, nbytes);
}

bool schedule_choose_prefetch(Schedule *s, const Target *target, const ScheduleOverrides *overrides) {
  Kernel *k = s->kernel;
  Fetching f = {.k = k,
                .target = target,
                .overrides = overrides,
                .is_needed = KERNEL_ARRAY(k, bool, k->nexprs),
                .is_loaded = KERNEL_ARRAY(k, bool, k->naccesses + 1)};
  if (!f.is_needed || !f.is_loaded) return false;
  for (size_t i = 0; i < s->nloops; i++) choose(&f, &s->loops[i]);
  return true;
}
