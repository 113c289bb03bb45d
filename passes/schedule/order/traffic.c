// Finds the tensors that each sweep loads, and estimates which loads of later sweeps miss the cache.
#include "passes/schedule/order/traffic.h"

#include "ir/kernel/needed.h"
#include "passes/schedule/order/scheduling.h"

#include <string.h>

void mark_sweep_loads(const Kernel *k, const Loop *loop, int sweep, ExprId known, bool *is_seen, bool *is_loaded) {
  const Available available = {.k = k, .loop = loop, .sums = sweep, .expr = known};
  memset(is_seen, 0, k->nexprs * sizeof *is_seen);
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].sweep == sweep) mark_needed(&available, loop->roots[i].expr, is_seen);
  if (!is_loaded) return;
  memset(is_loaded, 0, k->naccesses * sizeof *is_loaded);
  for (ExprId id = 1; id < k->nexprs; id++)
    if (is_seen[id] && id != known && k->exprs[id].op == EXPR_LOAD) is_loaded[k->exprs[id].access] = true;
}

static int64_t access_nbytes(const Kernel *k, AccessId id, AxisSet axes) {
  const Access *a = &k->accesses[id];
  int64_t nelems = access_nelems_along(k, a, axes);
  return access_is_mask(a) ? nelems / 8 : (int64_t)type_array_nbytes(a->type, (size_t)nelems);
}

// The fraction of an outer iteration's data that a later sweep must load again, with a cache of `cache` bytes. A cache
// that is too small holds the data loaded last: a sweep in the same direction reuses none of it, a sweep in the
// opposite direction, for which a loop needs middle axes, all of it.
static double fraction_reloaded(const Loop *loop, int64_t nbytes, int64_t cache) {
  if (nbytes <= cache) return 0;
  return loop->ninner > 1 ? (double)(nbytes - cache) / (double)nbytes : 1;
}

// The bytes that a loop moves: its stores once, its loads again for sweeps that miss the cache.
static int64_t loop_traffic(const Kernel *k, const Loop *loop, int64_t cache, bool *is_seen, bool *is_loaded,
                            int *nloads) {
  int64_t nbytes = 0, row_nbytes = 0;
  AxisSet inner = loop_inner_axes(loop);
  memset(nloads, 0, k->naccesses * sizeof *nloads);
  for (int sweep = 0; sweep < loop->nsweeps; sweep++) {
    mark_sweep_loads(k, loop, sweep, 0, is_seen, is_loaded);
    for (AccessId i = 0; i < k->naccesses; i++) nloads[i] += is_loaded[i];
  }
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_STORE) nbytes += access_nbytes(k, loop->roots[i].access, ~0U);
  for (AccessId i = 0; i < k->naccesses; i++)
    if (nloads[i] && (access_axes(k, &k->accesses[i]) & inner)) row_nbytes += access_nbytes(k, i, inner);
  double again = fraction_reloaded(loop, row_nbytes, cache);
  for (AccessId i = 0; i < k->naccesses; i++)
    if (nloads[i]) nbytes += (int64_t)((double)access_nbytes(k, i, ~0U) * (1 + again * (nloads[i] - 1)));
  return nbytes;
}

int64_t schedule_traffic(const Schedule *s, int64_t cache) {
  Kernel *k = s->kernel;
  bool *is_seen = KERNEL_ARRAY(k, bool, k->nexprs + 1), *is_loaded = KERNEL_ARRAY(k, bool, k->naccesses + 1);
  int *nloads = KERNEL_ARRAY(k, int, k->naccesses + 1);
  int64_t nbytes = 0;
  if (!is_seen || !is_loaded || !nloads) return -1;
  for (size_t i = 0; i < s->nloops; i++) nbytes += loop_traffic(k, &s->loops[i], cache, is_seen, is_loaded, nloads);
  return nbytes;
}

bool loop_tensor_nbytes(const Schedule *s, const Loop *loop, Traffic *traffic) {
  const Kernel *k = s->kernel;
  bool *is_needed = ARENA_ARRAY(k->arena, bool, k->nexprs + 1);
  bool *is_read = ARENA_ARRAY(k->arena, bool, k->naccesses + 1);
  *traffic = (Traffic){0};
  if (!is_needed || !is_read) return false;
  for (size_t i = 0; i < loop->nroots; i++) loop_mark_root(k, loop, &loop->roots[i], is_needed);
  for (ExprId id = 1; id < k->nexprs; id++)
    if (is_needed[id] && (k->exprs[id].op == EXPR_LOAD || k->exprs[id].op == EXPR_COMBINE))
      is_read[k->exprs[id].access] = true;
  for (AccessId i = 0; i < k->naccesses; i++)
    if (is_read[i]) traffic->read += access_tensor_nbytes(s, i);
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind != ROOT_REDUCE_INNER) traffic->written += access_tensor_nbytes(s, loop->roots[i].access);
  return true;
}

// Whether the loop recomputes expressions of a product, the root's operand: more than twice as often as the largest
// tensor has elements that the expression is computed from (reach, by ExprId).
static bool recomputes(const Kernel *k, const Loop *loop, const Root *root, bool *is_seen, int64_t *reach) {
  const ExprId product = root_operand(k, root);
  const Available available = {.k = k, .loop = loop, .sums = loop->nsweeps};
  memset(is_seen, 0, k->nexprs * sizeof *is_seen);
  mark_needed(&available, product, is_seen);
  for (ExprId id = 1; id < product; id++) {
    const Expr *e = &k->exprs[id];
    if (!is_seen[id]) continue;
    reach[id] = e->op == EXPR_LOAD ? access_nelems_along(k, &k->accesses[e->access], ~0U) : 0;
    for (int a = 0; a < 3 && e->args[a]; a++)
      if (reach[e->args[a]] > reach[id]) reach[id] = reach[e->args[a]];
    if (e->op != EXPR_LOAD && reach[id] && axes_nelems(k, e->axes) > 2 * reach[id]) return true;
  }
  for (int a = 0; loop_has(loop, LOOP_COLUMNS) && a < 2;
       a++) { // each micro-kernel computes a factor of vectors again, each group of columns a factor of rows
    const Expr *factor = &k->exprs[k->exprs[product].args[a]];
    const int axis = loop_vector_axis(loop);
    const bool is_vector = factor->axes >> axis & 1;
    const bool is_inner = root->kind == ROOT_REDUCE_INNER;
    if (is_vector && is_inner && schedule_rounds_in_place(k, root->expr, k->exprs[product].args[a], axis)) continue;
    if (factor->op != EXPR_LOAD && (is_vector || k->axes[axis].extent > (int64_t)2 * LANES)) return true;
  }
  return false;
}

bool schedule_recomputes(const Schedule *s) {
  Kernel *k = s->kernel;
  bool *is_seen = KERNEL_ARRAY(k, bool, k->nexprs + 1), is_any = false;
  int64_t *reach = KERNEL_ARRAY(k, int64_t, k->nexprs + 1);
  for (size_t i = 0; i < s->nloops && !k->out_of_memory; i++)
    for (size_t r = 0; r < s->loops[i].nroots; r++) {
      const Root *root = &s->loops[i].roots[r];
      if (root->kind == ROOT_STORE) continue;
      const ExprId operand = root_operand(k, root);
      const bool is_product = loop_has(&s->loops[i], LOOP_COLUMNS) && root->kind == ROOT_REDUCE_OUTER;
      is_any |= k->exprs[operand].op == EXPR_MUL && !is_product && recomputes(k, &s->loops[i], root, is_seen, reach);
    }
  return is_any;
}
