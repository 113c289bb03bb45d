// For each mask, finds the sweep that computes it first, and the later sweeps that need it. If the saved mask spares a
// later sweep enough loads, the first sweep stores the mask, and the later sweeps load it.
#include "passes/schedule/tune/tune.h"

#include "passes/costs/costs.h"
#include "passes/schedule/order/traffic.h"

#include <string.h>

typedef struct LoopSweep {
  Loop *loop;
  int sweep;
  bool *is_seen; // by ExprId: the sweep computes it
} LoopSweep;

typedef struct Saving {
  Schedule *schedule;
  Kernel *k; // the schedule's
  const Target *target;
  const ScheduleOverrides *overrides;
  LoopSweep *sweeps; // of all loops, in the order in which they run
  size_t nsweeps;
  size_t noriginals;
  size_t *first;        // by mask: the index of the first sweep that computes it
  bool *is_saved;       // by mask
  AccessId *access;     // by saved mask: the access of its temporary
  ExprId *sum;          // by original inner reduction: its replacement in the current loop
  ExprId *replaced;     // memo of `replace` for the current sweep
  bool *scratch;        // by ExprId
  bool *with, *without; // by AccessId: loads if the sweep computes the mask, and if it does not
} Saving;

// Bytes, in the iterations over `axes`, that a sweep does not load if it loads the mask instead of computing it.
static int64_t spared_nbytes(Saving *s, const LoopSweep *p, ExprId mask, AxisSet axes) {
  const Kernel *k = s->k;
  int64_t nbytes = 0;
  mark_sweep_loads(k, p->loop, p->sweep, 0, s->scratch, s->with);
  mark_sweep_loads(k, p->loop, p->sweep, mask, s->scratch, s->without);
  for (AccessId i = 0; i < k->naccesses; i++)
    if (s->with[i] && !s->without[i])
      nbytes += access_nelems_along(k, &k->accesses[i], axes) * (int64_t)type_nbytes(k->accesses[i].type);
  return nbytes;
}

// Whether the mask varies over all axes of the loop, which would store the same bits several times otherwise.
static bool has_all_axes(const Kernel *k, const Loop *loop, ExprId mask) {
  return !((loop_outer_axes(loop) | loop_inner_axes(loop)) & ~k->exprs[mask].axes);
}

// Whether the spared tensors are too large for the cache in which a later sweep would find them: L2 if the sweep is in
// another loop, L1 if it is in the same loop, over the same row.
static bool is_worth_it(Saving *s, const LoopSweep *first, const LoopSweep *p, ExprId mask) {
  const Kernel *k = s->k;
  int axis = loop_vector_axis(p->loop);
  if (axis < 0 || axis != loop_vector_axis(first->loop) || loop_has(first->loop, LOOP_ROW_LANES) ||
      loop_has(p->loop, LOOP_ROW_LANES))
    return false;
  if (loop_tile(first->loop) || loop_tile(p->loop) || !has_all_axes(k, first->loop, mask)) return false;
  // Such loops compute vectors in another order.
  if (loop_sums_in_lanes(first->loop) || loop_sums_in_lanes(p->loop)) return false;
  if (first->loop->is_peeled || p->loop->is_peeled) return false; // peeled vectors may begin inside of a byte
  if (k->axes[axis].monomial && kernel_factor(k, k->axes[axis].extent, k->axes[axis].monomial) % LANES) return false;
  if (s->overrides->key[SCHEDULE_MASKS].is_set)
    return s->overrides->key[SCHEDULE_MASKS].value && spared_nbytes(s, p, mask, ~0U);
  if (k->axes[axis].extent < k->costs->mask_row) return false;
  if (p->loop != first->loop) return spared_nbytes(s, p, mask, ~0U) > s->target->l2_nbytes;
  return spared_nbytes(s, p, mask, loop_inner_axes(p->loop)) > s->target->l1_nbytes;
}

// Finds the masks worth saving, and the first sweep that computes each.
static void find_masks(Saving *s) {
  for (ExprId id = 1; id < s->noriginals; id++) {
    if (!expr_is_mask(s->k, id)) continue;
    const LoopSweep *first = NULL;
    for (size_t i = 0; i < s->nsweeps; i++) {
      const LoopSweep *p = &s->sweeps[i];
      if (!p->is_seen[id]) continue;
      if (!first) s->first[id] = i;
      else s->is_saved[id] |= is_worth_it(s, first, p, id);
      first = first ? first : p;
    }
  }
}

// Whether the mask can be in a local array of the micro-kernel, which stays in the caches: no other loop needs the
// mask, and the mask of an outer iteration is small.
static bool is_steps_own(const Saving *s, ExprId mask, int64_t nbytes, Monomial monomial) {
  const Loop *loop = s->sweeps[s->first[mask]].loop;
  bool is_elsewhere = false;
  for (size_t i = 0; i < s->nsweeps; i++) is_elsewhere |= s->sweeps[i].is_seen[mask] && s->sweeps[i].loop != loop;
  return !is_elsewhere && loop->rows == 1 && !monomial && nbytes <= s->k->costs->mask_nbytes &&
         (s->target->code == CODE_OF_ISAS || nbytes <= s->k->costs->scalar_nbytes);
}

// Adds the temporary and the store of a mask: rows of bits, padded to whole vectors, with the loop's axes in the loop's
// order.
static bool save(Saving *s, ExprId mask) {
  Kernel *k = s->k;
  const LoopSweep *p = &s->sweeps[s->first[mask]];
  const Loop *loop = p->loop;
  AxisSet axes = k->exprs[mask].axes;
  bool is_own = false;
  int v = loop_vector_axis(loop);
  Access a = {.type = TYPE_BOOLEAN};
  int64_t stride = (k->axes[v].extent + LANES - 1) / LANES * (LANES / 8);
  Monomial monomial = k->axes[v].monomial;
  a.stride[v] = 1;
  for (int i = loop->nouter + loop->ninner - 2; i >= 0; i--) {
    int axis = loop->axes[i];
    if (i == loop->nouter - 1 && (is_own = is_steps_own(s, mask, stride, monomial))) break;
    if (!(axes >> axis & 1)) continue;
    a.stride[axis] = stride;
    a.stride_monomial[axis] = monomial;
    stride *= k->axes[axis].extent;
    monomial += k->axes[axis].monomial;
  }
  a.temporary = schedule_add_temporary(s->schedule, "mask", TYPE_BOOLEAN, stride);
  s->access[mask] = kernel_add_access(k, &a);
  if (k->out_of_memory || !loop_add_root(k, p->loop, (Root){ROOT_STORE, p->sweep, mask, s->access[mask], false, 0}))
    return false;
  s->schedule->temporaries[a.temporary].monomial = monomial;
  s->schedule->temporaries[a.temporary].is_own = is_own;
  for (size_t i = p->loop->nroots - 1; i && p->loop->roots[i - 1].sweep > p->sweep; i--) { // roots are sorted by sweep
    Root root = p->loop->roots[i];
    p->loop->roots[i] = p->loop->roots[i - 1];
    p->loop->roots[i - 1] = root;
  }
  return true;
}

// The expression as sweep `at` computes it: with loads of saved masks.
static ExprId replace(Saving *s, size_t at, ExprId id) { // NOLINT(misc-no-recursion): a few dozen deep at most
  Kernel *k = s->k;
  if (!id || s->replaced[id]) return id ? s->replaced[id] : 0;
  ExprId result = id, args[3];
  const Expr e = k->exprs[id];
  if (s->sum[id]) result = s->sum[id];
  else if (s->is_saved[id] && s->first[id] < at) result = expr_load(k, s->access[id]);
  else if (e.args[0]) {
    for (int a = 0; a < 3; a++) args[a] = replace(s, at, e.args[a]);
    if (memcmp(args, e.args, sizeof args) != 0) result = expr_label(k, expr_with_arguments(k, &e, args), e.label);
  }
  return s->replaced[id] = result;
}

// An inner sum of the loop is now that of another expression.
static void replace_sum(Schedule *schedule, const Loop *loop, ExprId before, ExprId now) {
  for (ScheduledSum *sum = schedule->sums; sum < schedule->sums + schedule->nsums; sum++)
    if (&schedule->loops[sum->loop] == loop && sum->inner == before) sum->inner = now;
}

// Has what the sweep stores and adds up take the saved masks. Later sweeps of the loop take the sums that result.
static void replace_roots(Saving *s, size_t at) {
  const LoopSweep *p = &s->sweeps[at];
  if (p->sweep == 0) memset(s->sum, 0, s->noriginals * sizeof *s->sum);
  memset(s->replaced, 0, s->noriginals * sizeof *s->replaced);
  for (Root *root = p->loop->roots; root < p->loop->roots + p->loop->nroots; root++) {
    if (root->sweep != p->sweep) continue;
    const ExprId before = root->expr;
    root->expr = replace(s, at, before);
    if (root->kind == ROOT_REDUCE_INNER) replace_sum(s->schedule, p->loop, before, root->expr);
  }
  for (ExprId id = 1; id < s->noriginals; id++)
    if (expr_is_reduction(&s->k->exprs[id]) && s->replaced[id]) s->sum[id] = s->replaced[id];
}

static bool find_sweeps(Saving *s) {
  const Kernel *k = s->k;
  const Schedule *schedule = s->schedule;
  for (size_t i = 0; i < schedule->nloops; i++)
    for (int sweep = 0; sweep < schedule->loops[i].nsweeps; sweep++) {
      LoopSweep *p = &s->sweeps[s->nsweeps++];
      *p = (LoopSweep){&schedule->loops[i], sweep, KERNEL_ARRAY(s->k, bool, k->nexprs)};
      if (!p->is_seen) return false;
      mark_sweep_loads(k, p->loop, sweep, 0, p->is_seen, NULL);
    }
  return true;
}

static bool allocate(Saving *s) {
  size_t n = s->noriginals, nsweeps = 0;
  for (size_t i = 0; i < s->schedule->nloops; i++) nsweeps += (size_t)s->schedule->loops[i].nsweeps;
  s->sweeps = KERNEL_ARRAY(s->k, LoopSweep, nsweeps + 1);
  s->first = KERNEL_ARRAY(s->k, size_t, n);
  s->is_saved = KERNEL_ARRAY(s->k, bool, n);
  s->access = KERNEL_ARRAY(s->k, AccessId, n);
  s->sum = KERNEL_ARRAY(s->k, ExprId, n);
  s->replaced = KERNEL_ARRAY(s->k, ExprId, n);
  s->scratch = KERNEL_ARRAY(s->k, bool, n);
  s->with = KERNEL_ARRAY(s->k, bool, s->k->naccesses + 1);
  s->without = KERNEL_ARRAY(s->k, bool, s->k->naccesses + 1);
  return s->sweeps && s->first && s->is_saved && s->access && s->sum && s->replaced && s->scratch && s->with &&
         s->without && find_sweeps(s);
}

bool schedule_save_masks(Schedule *schedule, const Target *target, const ScheduleOverrides *overrides) {
  Kernel *k = schedule->kernel;
  bool has_masks = false, is_any_saved = false;
  for (ExprId id = 1; id < k->nexprs; id++) has_masks |= expr_is_mask(k, id);
  if (!has_masks) return true;
  Saving s = {.schedule = schedule, .k = k, .target = target, .overrides = overrides, .noriginals = k->nexprs};
  if (!allocate(&s)) return false;
  find_masks(&s);
  for (ExprId id = 1; id < s.noriginals; id++) {
    if (!s.is_saved[id]) continue;
    is_any_saved = true;
    if (!save(&s, id)) return false;
  }
  for (size_t i = 0; is_any_saved && i < s.nsweeps; i++) replace_roots(&s, i);
  return !k->out_of_memory;
}
