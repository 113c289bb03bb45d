// Visits the sweeps in order. The first sweep that computes a vector that is costly to recompute spills it; later
// sweeps load it.
#include "passes/schedule/tune/tune.h"

#include "ir/kernel/needed.h"
#include "passes/costs/costs.h"
#include "passes/schedule/order/traffic.h"

typedef struct Reuse {
  Kernel *k;
  Loop *loop;
  int most;        // spills
  int *first;      // by ExprId: the first sweep that computes it; nsweeps: no sweep does
  bool *is_seen;   // by ExprId: the current sweep computes it
  bool *is_costly; // by ExprId
} Reuse;

// Elementary functions and random numbers.
static bool is_costly_operator(ExprOp op) {
  return expr_info[op].is_elementary || op == EXPR_IS_KEPT;
}

// Sets is_costly: a costly operator must be evaluated to compute the expression from spilled vectors and finished sums.
static void find_costs(Reuse *r) {
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    const Expr *e = &r->k->exprs[id];
    r->is_costly[id] = is_costly_operator(e->op);
    for (int a = 0; a < 3; a++) r->is_costly[id] |= e->args[a] && r->is_costly[e->args[a]];
    if (expr_is_reduction(e) || loop_spilling_sweep(r->loop, id) < r->loop->nsweeps) r->is_costly[id] = false;
  }
}

static bool is_root_operand(const Reuse *r, ExprId id, int sweep) {
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (r->loop->roots[i].sweep == sweep && r->loop->roots[i].expr == id) return true;
  return false;
}

// Whether the sweep uses the vector in an expression that no earlier sweep computed. (If an earlier sweep computed the
// user, the user is spilled instead.)
static bool has_new_user(const Reuse *r, ExprId id, int sweep) {
  for (ExprId user = id + 1; user < r->k->nexprs; user++)
    for (int a = 0; a < 3; a++)
      if (r->k->exprs[user].args[a] == id && r->is_seen[user] && r->first[user] == sweep) return true;
  return is_root_operand(r, id, sweep);
}

// Spills vectors that an earlier sweep computed and that this one needs again.
static void reuse_in_sweep(Reuse *r, int sweep) {
  const int last = r->loop->axes[r->loop->nouter];
  mark_sweep_loads(r->k, r->loop, sweep, 0, r->is_seen, NULL);
  for (ExprId id = 1; id < r->k->nexprs; id++)
    if (r->is_seen[id] && r->first[id] > sweep) r->first[id] = sweep;
  for (ExprId id = 1; id < r->k->nexprs && r->loop->nspills < r->most; id++) {
    const Expr *e = &r->k->exprs[id];
    if (!r->is_seen[id] || r->first[id] >= sweep || loop_spilling_sweep(r->loop, id) < r->loop->nsweeps) continue;
    if (expr_is_mask(r->k, id) || !(e->axes >> last & 1) || !(e->axes & loop_outer_axes(r->loop))) continue;
    find_costs(r);
    if (r->is_costly[id] && has_new_user(r, id, sweep)) r->loop->spills[r->loop->nspills++] = (Spill){id, r->first[id]};
  }
}

// How many vectors a micro-kernel may spill, of `nbytes` bytes each.
static int most_spills(const Costs *costs, bool is_scalar, int64_t nbytes) {
  if (nbytes > costs->spill_nbytes) return 0;
  if (!is_scalar || nbytes * MOST_SPILLS <= costs->scalar_nbytes) return MOST_SPILLS;
  return (int)(costs->scalar_nbytes / nbytes);
}

static bool reuse_in_loop(Kernel *k, Loop *loop, bool is_scalar) {
  if (loop->nsweeps < 2 || loop->ninner != 1 || !loop->nouter || k->is_f64) return true;
  if (axes_monomial(k, loop_inner_axes(loop))) return true;
  const int64_t width = loop_row_nelems(k, loop), rows = loop_has(loop, LOOP_ROW_LANES) ? LANES : loop->rows;
  const int most = most_spills(k->costs, is_scalar, width * rows * (int64_t)sizeof(float));
  if (!most) return true;
  Reuse r = {.k = k, .loop = loop, .most = most, .first = KERNEL_ARRAY(k, int, k->nexprs)};
  r.is_seen = KERNEL_ARRAY(k, bool, k->nexprs);
  r.is_costly = KERNEL_ARRAY(k, bool, k->nexprs);
  if (!r.first || !r.is_seen || !r.is_costly) return false;
  for (ExprId id = 0; id < k->nexprs; id++) r.first[id] = loop->nsweeps;
  for (int sweep = 0; sweep < loop->nsweeps; sweep++) reuse_in_sweep(&r, sweep);
  return true;
}

bool schedule_spill_vectors(Schedule *s, const Target *target, const ScheduleOverrides *overrides) {
  (void)overrides;
  Kernel *k = s->kernel;
  bool has_costly = false;
  for (ExprId id = 1; id < k->nexprs; id++) has_costly |= is_costly_operator(k->exprs[id].op);
  if (!has_costly) return true;
  for (size_t i = 0; i < s->nloops; i++)
    if (!reuse_in_loop(k, &s->loops[i], target->code != CODE_OF_ISAS)) return false;
  return true;
}
