// Decides which axes are outer and which are inner, and when each expression can be computed.
//
// An expression's time is (phase, sweep). A phase has side loops over few axes, which combine partial sums and compute
// values that vary over those axes only, and then at most one main loop over the whole domain. The value of an inner
// reduction is known one sweep after its operand. The value of an outer reduction is known one phase after its operand,
// when all blocks have stored their partial sums.
//
// If outer reductions keep some of the inner axes, sums are nested: a sum over the vector axis is known at the end of
// each iteration of the middle axes ("late" in its sweep), where it is added to the sums over the middle and outer
// axes.
#include "ir/kernel/scatter.h"
#include "passes/schedule/nest_sums.h"
#include "passes/schedule/sum_order_internal.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int64_t access_nelems(const Kernel *k, const Access *a) {
  return access_nelems_along(k, a, ~0U);
}

static AxisSet all_axes(const Kernel *k) {
  return (1U << k->naxes) - 1;
}

// Whether another axis of the same window is longer: the axis goes over a window's taps, the longer one over outputs.
static bool is_short_in_window(const Kernel *k, const Access *a, int axis) {
  for (size_t i = 0; i < a->nbounds; i++)
    for (int other = 0; other < k->naxes && a->bounds[i].factor[axis]; other++)
      if (a->bounds[i].factor[other] && k->axes[other].extent > k->axes[axis].extent) return true;
  return false;
}

// The axis that has the most elements with stride 1.
static int choose_vector_axis(const Kernel *k) {
  int best = k->naxes - 1;
  int64_t most = -1;
  for (int axis = k->naxes - 1; axis >= 0; axis--) {
    int64_t nelems = 0;
    for (size_t i = 0; i < k->naccesses; i++)
      if (k->accesses[i].stride[axis] == 1 && !is_short_in_window(k, &k->accesses[i], axis))
        nelems += access_nelems(k, &k->accesses[i]);
    if (nelems <= most) continue;
    most = nelems;
    best = axis;
  }
  return best;
}

// Whether an expression that depends on reduction r varies over the axes that r reduces: another sweep is needed.
static bool is_fed_back(const Kernel *k, ExprId r, bool *depends) {
  memset(depends, 0, k->nexprs * sizeof *depends);
  depends[r] = true;
  for (ExprId i = r + 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    for (int a = 0; a < 3; a++) depends[i] |= e->args[a] && depends[e->args[a]];
    if (depends[i] && (e->axes & k->exprs[r].reduced)) return true;
  }
  return false;
}

// Whether all reductions are over one axis (the result *axes), not the vector axis, that is so short that LANES columns
// of each tensor fit in the L1 cache, and some value over that axis depends on a reduction (softmax over channels).
// Then the reduced axis is the inner axis, and vectors lie along the vector axis, which is outer.
static bool has_short_columns(const Scheduling *s, AxisSet *axes, bool *depends) {
  const Kernel *k = s->k;
  AxisSet all = all_axes(k), vector = 1U << s->vector_axis;
  bool needs_sums = false; // some value over the axis depends on a reduction
  *axes = 0;
  for (ExprId r = 1; r < k->nexprs; r++) {
    const Expr *e = &k->exprs[r];
    if (e->op == EXPR_INDEX || (e->op == EXPR_LOAD && e->args[0])) return false; // not implemented for rows in lanes
    if (!expr_is_reduction(e)) continue;
    if ((*axes && e->reduced != *axes) || e->axes != (all & ~e->reduced)) return false;
    *axes = e->reduced;
    needs_sums |= is_fed_back(k, r, depends);
  }
  if (!needs_sums || *axes & vector || (*axes & (*axes - 1)) || axes_monomial(k, *axes) || k->is_f64) return false;
  if (axes_nelems(k, *axes) > LONGEST_CHAIN || k->axes[s->vector_axis].extent < LANES) return false;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    bool is_float = a->type == TYPE_F32 || a->type == TYPE_BF16 || a->type == TYPE_F16;
    if (a->nbounds || (a->stride[s->vector_axis] && (!is_float || a->stride[s->vector_axis] != 1))) return false;
  }
  return true;
}

bool is_within_tensor(const Kernel *k, AxisSet axes) {
  for (size_t i = 0; i < k->naccesses; i++)
    if (k->accesses[i].value && !k->accesses[i].nbounds && !(axes & ~access_axes(k, &k->accesses[i]))) return true;
  return false;
}

// Whether several axes of the kernel step along one axis of a tensor.
static bool has_windows(const Kernel *k) {
  bool is_any = false;
  for (size_t i = 0; i < k->naccesses; i++)
    for (size_t b = 0; b < k->accesses[i].nbounds; b++) {
      const AxisSet axes = bound_axes(&k->accesses[i].bounds[b]);
      is_any |= (axes & (axes - 1)) != 0;
    }
  return is_any;
}

// Whether all sums are over the same axes (the result *axes), without the vector axis, and no tensor varies over all
// axes: operands are products of smaller tensors, or windows. Then each vector of results is summed in registers. If a
// tensor varies over all axes, the loop reads it once, row after row, and adds each row to partial sums in the L1
// cache. For windows, partial sums would be as many as the results, so that short vectors in registers are better.
static bool has_middle_sums(const Scheduling *s, AxisSet *axes, bool *depends) {
  enum { FEW_ROWS = 16 }; // fewer are too few to run in parallel
  const Kernel *k = s->k;
  const AxisSet all = all_axes(k), vector = 1U << s->vector_axis;
  *axes = 0;
  for (ExprId r = 1; r < k->nexprs; r++) {
    const Expr *e = &k->exprs[r];
    if (!expr_is_reduction(e)) continue;
    if ((*axes && e->reduced != *axes) || e->axes != (all & ~e->reduced) || is_fed_back(k, r, depends)) return false;
    *axes = e->reduced;
  }
  if (!*axes || *axes & vector || axes_monomial(k, *axes) || is_within_tensor(k, all)) return false;
  for (size_t i = 0; i < k->nstores; i++)
    if (store_axes(k, &k->stores[i]) != (all & ~*axes)) return false;
  const AxisSet rows = all & ~*axes & ~vector;
  if (has_windows(k) && rows) return axes_nelems(k, *axes) > 0;
  return k->axes[s->vector_axis].extent >= LANES && axes_nelems(k, rows) >= FEW_ROWS && axes_nelems(k, *axes) > 0;
}

void schedule_set_product_axes(Scheduling *s) {
  const Kernel *k = s->k;
  const Product *p = s->product.sum ? &s->product : &s->depthwise;
  assert(p->vector_axis >= 0); // there is a product
  s->sums_middle = true;
  s->vector_axis = p->vector_axis;
  s->inner = k->exprs[p->sum].reduced | 1U << s->vector_axis;
  s->outer = all_axes(k) & ~s->inner;
  s->free_axes = s->outer & (p->is_depthwise ? ~schedule_row_axes(k, p)
                             : p->rows       ? ~p->rows
                                             : k->exprs[p->vector].axes);
}

void schedule_leave_product(Scheduling *s) {
  s->sums_middle = false;
  s->inner = 1U << s->vector_axis;
}

// The inner axes are the axes of some reduction over the vector axis, preferably a reduction that the next sweep needs,
// and one over few elements. Reductions over other axes become outer reductions, which take a whole loop.
static bool choose_axes(Scheduling *s) {
  enum { FEW_ROWS = 4, MUCH_WORK = 1 << 16 }; // fewer rows than FEW_ROWS with MUCH_WORK elements leave threads idle
  Kernel *k = s->k;
  AxisSet vector = 1U << s->vector_axis;
  bool *depends = ARENA_ARRAY(k->arena, bool, k->nexprs);
  if (!depends) {
    k->out_of_memory = true;
    return false;
  }
  s->inner = vector;
  bool is_found_fed_back = false, is_found = false;
  for (ExprId r = 1; r < k->nexprs; r++) {
    const Expr *e = &k->exprs[r];
    if (!expr_is_reduction(e) || !(e->reduced & vector)) continue;
    bool fed_back = is_fed_back(k, r, depends);
    bool is_better = !is_found || (fed_back && !is_found_fed_back) ||
                     (fed_back == is_found_fed_back && axes_nelems(k, e->reduced) < axes_nelems(k, s->inner));
    if (!is_better) continue;
    is_found = true;
    is_found_fed_back = fed_back;
    s->inner = e->reduced;
  }
  AxisSet all = all_axes(k), columns;
  if (s->product.sum) {
    schedule_set_product_axes(s);
    return true;
  }
  if (schedule_number(s->overrides, SCHEDULE_LANES, true) && has_short_columns(s, &columns, depends)) {
    s->is_column = true;
    s->inner = columns;
    s->outer = all & ~columns;
    s->free_axes = s->outer & ~vector;
    return true;
  }
  if (schedule_number(s->overrides, SCHEDULE_MIDDLE, true) && has_middle_sums(s, &columns, depends)) {
    s->sums_middle = true;
    s->inner = columns | vector;
    s->outer = all & ~s->inner;
    s->depthwise = schedule_find_depthwise(k, s->vector_axis);
    if (!s->depthwise.sum) return true;
    s->depthwise.is_long = schedule_number(s->overrides, SCHEDULE_SPLIT, true) &&
                           schedule_is_long_sum(k, &s->depthwise, &s->depthwise.is_padded);
    schedule_set_product_axes(s);
    return true;
  }
  if (axes_nelems(k, all & ~s->inner) < FEW_ROWS && s->inner != vector && axes_nelems(k, all) >= MUCH_WORK)
    s->inner = vector; // too few rows to run in parallel
  s->outer = all & ~s->inner;
  if (!s->outer && s->inner != vector) { // no outer axis, but several inner ones: only the vector axis stays inner
    s->inner = vector;
    s->outer = all & ~vector;
  }
  s->is_tiled = !s->outer;
  const Product p = schedule_find_depthwise(k, s->vector_axis);
  if (p.sum && k->exprs[p.sum].reduced == s->inner && has_windows(k)) {
    s->depthwise = p;
    s->free_axes = s->outer & ~schedule_row_axes(k, &p);
  }
  return true;
}

static AxisSet middle_axes(const Scheduling *s) {
  return s->inner & ~(1U << s->vector_axis);
}

// A sum over the vector axis, which ends in each iteration of the middle axes.
static bool is_nested_reduction(const Scheduling *s, const Expr *e) {
  return s->is_nested && e->reduced == 1U << s->vector_axis;
}

int last_axis(const Scheduling *s) {
  return s->is_column ? __builtin_ctz(s->inner) : s->vector_axis;
}

static bool is_inner_reduction(const Scheduling *s, const Expr *e) {
  if (s->product.sum) return e->reduced == s->k->exprs[s->product.sum].reduced;
  if (s->sums_middle) return e->reduced == middle_axes(s);
  if (s->is_nested) return is_nested_reduction(s, e) || e->reduced == middle_axes(s);
  return !s->is_tiled && e->reduced == s->inner;
}

bool is_outer_reduction(const Scheduling *s, const Expr *e) {
  return expr_is_reduction(e) && !is_inner_reduction(s, e);
}

// Whether all outer reductions fit one loop: they must reduce the same outer axes, vary over all others, and reduce
// either all inner axes or none.
static bool check_reductions(Scheduling *s) {
  const Kernel *k = s->k;
  AxisSet removed = 0;
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    if (!expr_is_reduction(e) || is_inner_reduction(s, e)) continue;
    bool has_vector = e->reduced >> s->vector_axis & 1;
    if (!s->is_tiled && !(e->reduced & s->outer)) return false;
    if (has_vector ? (e->reduced & s->inner) != s->inner : (e->reduced & s->inner) != 0) return false;
    if (removed && removed != (e->reduced & s->outer)) return false;
    removed = e->reduced & s->outer;
  }
  if (removed) s->free_axes = s->outer & ~removed;
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    if (expr_is_reduction(e) && !is_inner_reduction(s, e) && (s->free_axes & ~e->axes)) return false;
  }
  return true;
}

// Splits sums into nested ones if the reductions do not fit one loop as they are.
static bool agree_reductions(Scheduling *s) {
  if (check_reductions(s)) return true;
  if (s->is_tiled || !middle_axes(s)) return false;
  s->is_nested = true;
  return kernel_nest_sums(s->k, s->vector_axis, s->inner) && check_reductions(s);
}

static bool choose_scatter_axes(Scheduling *s, const Scatter *scatter) {
  s->is_scatter = s->sums_middle = true;
  s->vector_axis = scatter->columns;
  s->inner = 1U << scatter->summed | 1U << scatter->columns;
  s->outer = all_axes(s->k) & ~s->inner;
  s->free_axes = s->outer & ~(1U << scatter->rows);
  return agree_reductions(s);
}

bool schedule_choose_axes(Scheduling *s) {
  Scatter scatter;
  if (kernel_find_scatter(s->k, &scatter)) return choose_scatter_axes(s, &scatter);
  Product product = {0};
  if (schedule_number(s->overrides, SCHEDULE_MIDDLE, true)) product = schedule_find_product(s->k);
  product.is_long = product.sum && schedule_number(s->overrides, SCHEDULE_SPLIT, true) &&
                    schedule_is_long_sum(s->k, &product, &product.is_padded);
  if (product.is_long && product.rows) product = (Product){0}; // results that are sums of blocks are no rows of a step
  if (product.sum && (s->vector_axis == BEST_AXIS || s->vector_axis == product.vector_axis)) {
    s->product = product;
    s->vector_axis = product.vector_axis;
  }
  if (s->vector_axis == BEST_AXIS) s->vector_axis = choose_vector_axis(s->k);
  return choose_axes(s) && agree_reductions(s);
}

static Time later(Time a, Time b) {
  if (a.phase != b.phase) return a.phase > b.phase ? a : b;
  return a.sweep > b.sweep ? a : b;
}

// Sets is_late: an expression that depends on a nested sum is known at the end of each iteration of the middle axes.
// False: the expression would be needed elsewhere.
static bool find_lateness(Scheduling *s, ExprId id, Time t) {
  const Expr *e = &s->k->exprs[id];
  for (int a = 0; a < 3 && e->args[a]; a++) {
    if (!s->is_late[e->args[a]]) continue;
    Time arg = s->time[e->args[a]];
    if (arg.phase < t.phase || arg.sweep < t.sweep) return false;
    s->is_late[id] = !expr_is_reduction(e);
  }
  bool is_over_middle = s->is_nested && expr_is_reduction(e) && e->reduced == middle_axes(s);
  if (is_over_middle && !s->is_late[e->args[0]]) return false;
  s->is_late[id] |= expr_is_reduction(e) && is_nested_reduction(s, e);
  return !s->is_late[id] || (e->axes & s->inner) == middle_axes(s);
}

// Whether an operand of sums over middle axes is a small table, worth computing once in a side loop: Interpolate's
// weights along an axis.
static bool is_table(const Scheduling *s, ExprId id) {
  enum { MOST_NELEMS = 1 << 13, LEAST_USES = 64 }; // 32 kB of f32, in the L1 cache; uses of each element
  const Kernel *k = s->k;
  const AxisSet axes = k->exprs[id].axes;
  const int64_t nelems = axes_nelems(k, axes);
  return s->sums_middle && !s->is_scatter && (axes & middle_axes(s)) && !(axes >> s->vector_axis & 1) &&
         nelems <= MOST_NELEMS && !axes_monomial(k, axes) && nelems * LEAST_USES <= axes_nelems(k, all_axes(k));
}

// Marks a result of a product's loop that a later phase needs; for a mask, marks the results that the mask is computed
// from. False: the value is not one that a later phase can load.
static bool load_again(Scheduling *s, ExprId id) {
  const Expr *e = &s->k->exprs[id];
  if (!s->product.rows || e->axes != s->k->exprs[s->product.sum].axes) return false;
  if (!expr_info[e->op].is_mask) {
    s->is_result[id] = true;
    return true;
  }
  for (int a = 0; a < 3 && e->args[a]; a++) {
    const ExprId arg = e->args[a];
    if (!s->needs_row[arg]) continue;
    if (expr_info[s->k->exprs[arg].op].is_mask || !load_again(s, arg)) return false;
  }
  return true;
}

// An outer reduction over the vector axis sums each row first. False: a later phase would need a row's sum that is not
// stored, or the product is not the first sum.
static bool find_times(Scheduling *s) {
  const Kernel *k = s->k;
  s->cut = s->is_tiled ? s->inner : s->outer & ~s->free_axes;
  for (ExprId i = 1; i < s->noriginals; i++) {
    const Expr *e = &k->exprs[i];
    Time t = {0, 0};
    if (!s->is_of_part[i]) continue;
    for (int a = 0; a < 3 && e->args[a]; a++) {
      t = later(t, s->time[e->args[a]]);
      s->needs_combine[i] |= s->needs_combine[e->args[a]];
    }
    for (int a = 0; a < 3 && e->args[a]; a++)
      if (s->needs_row[e->args[a]] && s->time[e->args[a]].phase == t.phase) s->needs_row[i] = true;
      else if (s->needs_row[e->args[a]] && !load_again(s, e->args[a])) return false;
    if (!find_lateness(s, i, t)) return false;
    if (expr_is_reduction(e) && is_inner_reduction(s, e)) {
      t.sweep += !s->is_late[i] && !s->sums_middle;
      s->needs_row[i] = true;
    } else if (expr_is_reduction(e)) {
      t = (Time){t.phase + 1, 0};
      s->needs_combine[i] = true;
      s->needs_row[i] = false; // the blocks' partial sums are in memory
    }
    s->time[i] = t;
    s->is_narrow[i] = !(e->axes & s->cut) || is_table(s, i);
  }
  return true;
}

// The inner axes of values that a main loop computes as vectors.
static AxisSet axes_of_vectors(const Scheduling *s) {
  return s->sums_middle ? 1U << s->vector_axis : s->inner;
}

AxisSet store_axes(const Kernel *k, const Store *store) {
  return root_axes(k, &(Root){.kind = ROOT_STORE, .expr = store->value, .access = store->access});
}

// True for stores that vary over no cut axis, and for stores that a main loop would repeat along some axis.
bool is_side_store(const Scheduling *s, const Store *store) {
  const AxisSet axes = store_axes(s->k, store), inner = axes & s->inner;
  const bool is_along_all = !(s->outer & ~axes) && (!inner || inner == axes_of_vectors(s) || s->is_late[store->value]);
  return s->k->naxes && (!(axes & s->cut) || !is_along_all);
}

// Whether a main loop can store or sum a value that varies over these inner axes: as vectors, per row, or (late values)
// at the end of each iteration of the middle axes.
static bool is_root_along(const Scheduling *s, ExprId value, AxisSet inner) {
  return s->is_late[value] ? inner == middle_axes(s) : !inner || inner >> last_axis(s) & 1;
}

// Whether a main loop can add a value to partial sums. It cannot if the value is a vector that does not vary over all
// middle axes: a loop over vectors adds in each iteration of all middle axes, so that the value would be added several
// times.
static bool can_be_added(const Scheduling *s, const Expr *sum) {
  const AxisSet inner = s->k->exprs[sum->args[0]].axes & s->inner;
  if (!is_root_along(s, sum->args[0], inner)) return false;
  return !is_outer_reduction(s, sum) || s->is_late[sum->args[0]] || !inner || inner == axes_of_vectors(s);
}

// Whether some loop can compute each store and sum. Side loops cannot compute values that depend on a row's sum. Main
// loops can store values over middle axes, without the vector axis, only if the values are late.
static bool check_roots(const Scheduling *s) {
  const Kernel *k = s->k;
  for (ExprId i = 1; i < s->noriginals; i++)
    if (s->is_of_part[i] && expr_is_reduction(&k->exprs[i]) && !can_be_added(s, &k->exprs[i])) return false;
  for (size_t i = 0; i < k->nstores; i++) {
    ExprId value = k->stores[i].value;
    AxisSet own = store_axes(k, &k->stores[i]) & s->inner;
    if (is_side_store(s, &k->stores[i]) ? s->needs_row[value] : !is_root_along(s, value, own)) return false;
  }
  return true;
}

bool schedule_find_times(Scheduling *s) {
  if (!find_times(s) || !check_roots(s)) return false;
  return !s->product.rows || s->time[s->product.sum].phase == 0;
}
