// Decides when each expression can be computed.
//
// An expression's time is (phase, sweep). A phase has producer loops over few axes, which combine partial sums and
// compute values that vary over those axes only, and then at most one main loop over the whole domain. The value of an
// inner reduction is known one sweep after its operand. The value of an outer reduction is known one phase after its
// operand, when all blocks have stored their partial sums.
//
// If outer reductions keep some of the inner axes, sums are nested: a sum over the vector axis is known at the end of
// each iteration of the middle axes ("late" in its sweep), where it is added to the sums over the middle and outer
// axes.
#include "passes/schedule/order/scheduling.h"

static Time later(Time a, Time b) {
  if (a.phase != b.phase) return a.phase > b.phase ? a : b;
  return a.sweep > b.sweep ? a : b;
}

// Sets is_after_nested: an expression that depends on a nested sum is known at the end of each iteration of the middle
// axes. False: the expression would be needed elsewhere.
static bool find_lateness(Scheduling *s, ExprId id, Time t) {
  const Expr *e = &s->k->exprs[id];
  for (int a = 0; a < 3 && e->args[a]; a++) {
    if (!s->plan[e->args[a]].is_after_nested) continue;
    Time arg = s->plan[e->args[a]].time;
    if (arg.phase < t.phase || arg.sweep < t.sweep) return false;
    s->plan[id].is_after_nested = !expr_is_reduction(e);
  }
  bool is_over_middle = s->strategy == NESTED && expr_is_reduction(e) && e->reduced == schedule_middle_axes(s);
  if (is_over_middle && !s->plan[e->args[0]].is_after_nested) return false;
  s->plan[id].is_after_nested |= expr_is_reduction(e) && is_nested_reduction(s, e);
  return !s->plan[id].is_after_nested || (e->axes & s->inner) == schedule_middle_axes(s);
}

// Whether an operand of sums over middle axes is a small table, worth computing once in a producer loop: Interpolate's
// weights along an axis.
static bool is_table(const Scheduling *s, ExprId id) {
  const Kernel *k = s->k;
  const AxisSet axes = k->exprs[id].axes;
  const int64_t nelems = axes_nelems(k, axes);
  return sums_in_lanes(s) && s->strategy != SCATTERED && (axes & schedule_middle_axes(s)) &&
         !(axes >> s->vector_axis & 1) && nelems <= k->costs->table_nelems && !axes_monomial(k, axes) &&
         nelems * k->costs->table_uses <= axes_nelems(k, all_axes(k));
}

int64_t schedule_largest_tensor(const Kernel *k) {
  int64_t largest = 1;
  for (size_t i = 0; i < k->naccesses; i++)
    if (k->accesses[i].value && shape_nelems(&k->accesses[i].value->shape) > largest)
      largest = shape_nelems(&k->accesses[i].value->shape);
  return largest;
}

// Whether the value, if it were computed before the loop that sums over middle axes, would need more memory than every
// tensor: for few rows, it is computed again in each.
static bool is_large(const Scheduling *s, ExprId id) {
  const Kernel *k = s->k;
  const AxisSet axes = k->exprs[id].axes;
  return sums_in_lanes(s) && !has_contraction(s) && !s->plan[id].needs_combine && !axes_monomial(k, axes) &&
         axes_nelems(k, axes) > k->costs->table_nelems && axes_nelems(k, axes) > schedule_largest_tensor(k);
}

// Marks a result of a product's loop that a later phase needs; for a mask, marks the results that the mask is computed
// from. False: the value is not one that a later phase can load.
static bool load_again(Scheduling *s, ExprId id) {
  const Expr *e = &s->k->exprs[id];
  if (!s->product.rows || e->axes != s->k->exprs[s->product.sum].axes) return false;
  if (!expr_info[e->op].is_mask) {
    s->plan[id].is_result = true;
    return true;
  }
  for (int a = 0; a < 3 && e->args[a]; a++) {
    const ExprId arg = e->args[a];
    if (!s->plan[arg].needs_inner) continue;
    if (expr_info[s->k->exprs[arg].op].is_mask || !load_again(s, arg)) return false;
  }
  return true;
}

// An outer reduction over the vector axis sums each row first. False: a later phase would need a row's sum that is not
// stored, or the product is not the first sum.
static bool find_times(Scheduling *s) {
  const Kernel *k = s->k;
  s->cut = (s->outer & ~s->batch_axes) | (s->strategy == TILED ? s->inner : 0);
  for (ExprId i = 1; i < s->noriginals; i++) {
    const Expr *e = &k->exprs[i];
    Time t = {0, 0};
    if (!s->plan[i].is_of_part) continue;
    for (int a = 0; a < 3 && e->args[a]; a++) {
      t = later(t, s->plan[e->args[a]].time);
      s->plan[i].needs_combine |= s->plan[e->args[a]].needs_combine;
    }
    for (int a = 0; a < 3 && e->args[a]; a++)
      if (s->plan[e->args[a]].needs_inner && s->plan[e->args[a]].time.phase == t.phase) s->plan[i].needs_inner = true;
      else if (s->plan[e->args[a]].needs_inner && !load_again(s, e->args[a])) return false;
    if (!find_lateness(s, i, t)) return false;
    if (expr_is_reduction(e) && is_inner_reduction(s, e)) {
      t.sweep += !s->plan[i].is_after_nested && !sums_in_lanes(s);
      s->plan[i].needs_inner = true;
    } else if (expr_is_reduction(e)) {
      t = (Time){t.phase + 1, 0};
      s->plan[i].needs_combine = true;
      s->plan[i].needs_inner = false; // the blocks' partial sums are in memory
    }
    s->plan[i].time = t;
    s->plan[i].is_hoistable = (!(e->axes & s->cut) && !is_large(s, i)) || is_table(s, i);
  }
  return true;
}

// Whether a main loop can store or sum a value that varies over these inner axes: as vectors, per row, or (late values)
// at the end of each iteration of the middle axes.
static bool is_root_along(const Scheduling *s, ExprId value, AxisSet inner) {
  return s->plan[value].is_after_nested ? inner == schedule_middle_axes(s) : !inner || inner >> last_axis(s) & 1;
}

// Whether a main loop can add a value to partial sums. It cannot if the value is a vector that does not vary over all
// middle axes: a loop over vectors adds in each iteration of all middle axes, so that the value would be added several
// times.
static bool can_be_added(const Scheduling *s, const Expr *sum) {
  const AxisSet inner = s->k->exprs[sum->args[0]].axes & s->inner;
  if (!is_root_along(s, sum->args[0], inner)) return false;
  return !is_outer_reduction(s, sum) || s->plan[sum->args[0]].is_after_nested || !inner || inner == axes_of_vectors(s);
}

// Whether some loop can compute each store and sum. Producer loops cannot compute values that depend on a row's sum.
// Main loops can store values over middle axes, without the vector axis, only if the values are late.
static bool check_roots(const Scheduling *s) {
  const Kernel *k = s->k;
  for (ExprId i = 1; i < s->noriginals; i++)
    if (s->plan[i].is_of_part && expr_is_reduction(&k->exprs[i]) && !can_be_added(s, &k->exprs[i])) return false;
  for (size_t i = 0; i < k->nstores; i++) {
    ExprId value = k->stores[i].value;
    AxisSet own = store_axes(k, &k->stores[i]) & s->inner;
    if (is_produced_store(s, &k->stores[i]) ? s->plan[value].needs_inner : !is_root_along(s, value, own)) return false;
  }
  return true;
}

bool schedule_find_times(Scheduling *s) {
  if (!find_times(s) || !check_roots(s)) return false;
  return !s->product.rows || s->plan[s->product.sum].time.phase == 0;
}
