// Decides which axes are outer and which are inner.
#include "ir/kernel/scatter.h"
#include "passes/schedule/order/scheduling.h"

#include <stdint.h>
#include <string.h>

// Whether another axis of the same window is longer: the axis goes over a window's taps, the longer one over outputs.
static bool is_short_in_window(const Kernel *k, const Access *a, int axis) {
  for (size_t i = 0; i < a->nbounds; i++)
    for (int other = 0; other < k->naxes && a->bounds[i].factor[axis]; other++)
      if (a->bounds[i].factor[other] && k->axes[other].extent > k->axes[axis].extent) return true;
  return false;
}

// Whether several axes of the kernel step along one axis of some tensor.
static bool has_windows(const Kernel *k) {
  bool is_any = false;
  for (size_t i = 0; i < k->naccesses; i++)
    for (size_t b = 0; b < k->accesses[i].nbounds; b++) {
      const AxisSet axes = bound_axes(&k->accesses[i].bounds[b]);
      is_any |= (axes & (axes - 1)) != 0;
    }
  return is_any;
}

// Whether the axis goes over taps of some window.
static bool is_of_taps(const Kernel *k, int axis) {
  bool is_any = false;
  for (size_t i = 0; i < k->naccesses; i++) is_any |= is_short_in_window(k, &k->accesses[i], axis);
  return is_any;
}

// The axes of all sums that are rounded.
static AxisSet summed_axes(const Kernel *k) {
  AxisSet axes = 0;
  for (ExprId i = 1; i < k->nexprs; i++)
    if (expr_is_reduction(&k->exprs[i]) && !reduction_is_exact(k, k->exprs[i].op)) axes |= k->exprs[i].reduced;
  return axes;
}

enum { NRANKS = MAX_AXES + 3 };

// How many tensors are dense along an axis, by rank: first those that vary over all axes, then those that vary over
// the most summed axes; last, whether it is summed. Extents do not count: others than those of the sum, as the number
// of samples, decide no order.
typedef struct DenseTensors {
  int64_t count[NRANKS];
} DenseTensors;

// Adds the tensors that are dense along the axis; of a kernel without sums, their elements.
static void count_dense(const Kernel *k, AxisSet summed, int axis, bool in_windows, DenseTensors *dense) {
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    if (a->stride[axis] != 1 || (in_windows && !a->nbounds)) continue;
    const AxisSet axes = access_axes(k, a);
    const int rank = axes == all_axes(k) ? 0 : NRANKS - 2 - __builtin_popcount(axes & summed);
    dense->count[summed ? rank : 0] += summed ? 1 : access_nelems(k, a);
  }
}

static bool has_any(const DenseTensors *dense) {
  int64_t count = 0;
  for (int rank = 0; rank < NRANKS; rank++) count |= dense->count[rank];
  return count;
}

static bool has_more(const DenseTensors *a, const DenseTensors *b) {
  int rank = 0;
  while (rank < NRANKS - 1 && a->count[rank] == b->count[rank]) rank++;
  return a->count[rank] > b->count[rank];
}

// The axis along which most tensors are dense, of windows alone (also of images of a single place) or of all; no axis
// of taps. -1: there is none.
static int longest_dense_axis(const Kernel *k, bool in_windows) {
  const AxisSet summed = summed_axes(k);
  int best = -1;
  DenseTensors most = {{0}};
  for (int axis = k->naxes - 1; axis >= 0; axis--) {
    DenseTensors dense = {{0}};
    count_dense(k, summed, axis, in_windows, &dense);
    dense.count[NRANKS - 1] = has_any(&dense) && summed >> axis & 1;
    if (!has_more(&dense, &most) || is_of_taps(k, axis)) continue;
    most = dense;
    best = axis;
  }
  return best;
}

// Windows decide before other tensors: weights or results may be as many.
static int choose_vector_axis(const Kernel *k) {
  int axis = longest_dense_axis(k, true);
  if (axis < 0) axis = longest_dense_axis(k, false);
  return axis < 0 ? k->naxes - 1 : axis;
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
  if (axes_nelems(k, *axes) > k->costs->block_operands || k->axes[s->vector_axis].extent < LANES) return false;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    bool is_float = a->type == TYPE_F32 || a->type == TYPE_BF16 || a->type == TYPE_F16;
    if (a->nbounds || (a->stride[s->vector_axis] && (!is_float || a->stride[s->vector_axis] != 1))) return false;
  }
  return true;
}

// Whether all sums are over the same axes (the result *axes), without the vector axis, and no tensor varies over all
// axes: operands are products of smaller tensors, or windows. Then each vector of results is summed in registers. If a
// tensor varies over all axes, the loop reads it once, row after row, and adds each row to partial sums in the L1
// cache. For windows, partial sums would be as many as the results, so that short vectors in registers are better.
static bool has_middle_sums(const Scheduling *s, AxisSet *axes, bool *depends) {
  const Kernel *k = s->k;
  const AxisSet all = all_axes(k), vector = 1U << s->vector_axis;
  *axes = 0;
  for (ExprId r = 1; r < k->nexprs; r++) {
    const Expr *e = &k->exprs[r];
    if (!expr_is_reduction(e)) continue;
    if ((*axes && e->reduced != *axes) || e->axes != (all & ~e->reduced) || is_fed_back(k, r, depends)) return false;
    *axes = e->reduced;
  }
  if (!*axes || *axes & vector || is_within_tensor(k, all)) return false;
  for (size_t i = 0; i < k->nstores; i++)
    if (store_axes(k, &k->stores[i]) != (all & ~*axes)) return false;
  return axes_nelems(k, *axes) > 0;
}

// Whether the kernel is a single row, of several axes, or so short that rows of its kind may lie in lanes. Long rows of
// one axis are divided into tiles, for threads. Each sum depends on tensors.
static bool is_lone_row(const Kernel *k, AxisSet all, bool *depends) {
  bool has_sums = false, have_rows = true;
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    depends[i] = e->op == EXPR_LOAD && access_axes(k, &k->accesses[e->access]);
    for (int a = 0; a < 3; a++) depends[i] |= e->args[a] && depends[e->args[a]];
    has_sums |= expr_is_reduction(e);
    have_rows &= depends[i] || !expr_is_reduction(e);
  }
  if (!has_sums || !have_rows) return false;
  if (all & (all - 1)) return k->is_row;
  return !axes_monomial(k, all) && axes_nelems(k, all) <= k->costs->lanes_width;
}

// Adds an axis with a single index, over which all that varies over the kernel's axis varies, too: a single row has the
// bits that it has among others.
static void add_rows(Scheduling *s) {
  Kernel *k = s->k;
  const int axis = k->naxes;
  if (axis == MAX_AXES) return;
  k->axes[k->naxes++] = (Axis){.name = "row", .extent = 1};
  for (size_t i = 0; i < k->naccesses; i++)
    if (access_axes(k, &k->accesses[i])) access_take_unit_axis(&k->accesses[i], axis);
  kernel_spread_axis(k, axis);
}

// Whether the kernel has few sums, all over the same axes, of very many elements. Their rows are cut into tiles, for
// threads. A tile is a segment of the row, so that this decides no bits; shorter rows have segments of several rows.
static bool has_few_long_sums(const Scheduling *s) {
  const Kernel *k = s->k;
  const Costs *c = k->costs;
  const AxisSet all = all_axes(k), vector = 1U << s->vector_axis;
  AxisSet reduced = 0;
  for (ExprId r = 1; r < k->nexprs; r++) {
    if (!expr_is_reduction(&k->exprs[r])) continue;
    if (reduced && k->exprs[r].reduced != reduced) return false;
    reduced = k->exprs[r].reduced;
  }
  for (size_t i = 0; i < k->naccesses; i++)
    if (k->accesses[i].nbounds) return false;
  const bool are_runs = reduced == vector || k->axes[s->vector_axis].extent > (int64_t)LONGEST_SEGMENT / 2 * LANES;
  return reduced & vector && are_runs && !k->slice_group && !axes_monomial(k, all) &&
         axes_nelems(k, all & ~reduced) < c->tiled_sums && axes_nelems(k, reduced) >= c->tiled_nelems;
}

// The axes of some reduction over the vector axis, preferably a reduction that the next sweep needs, and one over few
// elements; the vector axis, if there is none.
static AxisSet find_inner_axes(const Kernel *k, AxisSet vector, bool *depends) {
  AxisSet inner = vector;
  bool is_found_fed_back = false, is_found = false;
  for (ExprId r = 1; r < k->nexprs; r++) {
    const Expr *e = &k->exprs[r];
    if (!expr_is_reduction(e) || !(e->reduced & vector)) continue;
    bool fed_back = is_fed_back(k, r, depends);
    bool is_better = !is_found || (fed_back && !is_found_fed_back) ||
                     (fed_back == is_found_fed_back && axes_nelems(k, e->reduced) < axes_nelems(k, inner));
    if (!is_better) continue;
    is_found = true;
    is_found_fed_back = fed_back;
    inner = e->reduced;
  }
  return inner;
}

// Chooses the inner axes (find_inner_axes). Reductions over other axes become outer reductions, which take a whole
// loop.
static bool choose_axes(Scheduling *s) {
  Kernel *k = s->k;
  AxisSet all = all_axes(k), vector = 1U << s->vector_axis, columns;
  bool *depends = KERNEL_ARRAY(k, bool, k->nexprs);
  if (!depends) return false;
  s->inner = find_inner_axes(k, vector, depends);
  if (s->product.sum) {
    schedule_set_product_axes(s);
    return true;
  }
  if (schedule_number(s->overrides, SCHEDULE_LANES, true) && has_short_columns(s, &columns, depends)) {
    s->strategy = OF_COLUMNS;
    s->inner = columns;
    s->outer = all & ~columns;
    s->batch_axes = s->outer & ~vector;
    return true;
  }
  if (schedule_number(s->overrides, SCHEDULE_MIDDLE, true) && has_middle_sums(s, &columns, depends)) {
    s->strategy = IN_LANES;
    s->inner = columns | vector;
    if (s->inner == all) add_rows(s);
    s->outer = all_axes(k) & ~s->inner;
    s->product = schedule_find_depthwise(k, s->vector_axis);
    if (!s->product.sum) return true;
    schedule_cut_long_sum(s, &s->product);
    schedule_set_product_axes(s);
    return true;
  }
  if (s->inner == all && is_lone_row(k, all, depends)) add_rows(s);
  s->outer = all_axes(k) & ~s->inner;
  if (!s->outer && s->inner != vector) { // no outer axis, but several inner ones: only the vector axis stays inner
    s->inner = vector;
    s->outer = all & ~vector;
  }
  if (has_few_long_sums(s)) {
    s->inner = vector;
    s->outer = s->batch_axes = all_axes(k) & ~vector;
    s->strategy = TILED;
    return true;
  }
  if (!s->outer) s->strategy = TILED;
  const Product p = schedule_find_depthwise(k, s->vector_axis);
  if (p.sum && k->exprs[p.sum].reduced == s->inner && has_windows(k)) {
    s->strategy = DEPTHWISE_ROWS;
    s->product = p;
    s->batch_axes = s->outer & ~schedule_row_axes(k, &p);
  }
  return true;
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
    if (s->strategy != TILED && !(e->reduced & s->outer)) return false;
    if (has_vector ? (e->reduced & s->inner) != s->inner : (e->reduced & s->inner) != 0) return false;
    if (removed && removed != (e->reduced & s->outer)) return false;
    removed = e->reduced & s->outer;
  }
  if (removed) s->batch_axes = s->outer & ~removed;
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    if (expr_is_reduction(e) && !is_inner_reduction(s, e) && (s->batch_axes & ~e->axes)) return false;
  }
  return true;
}

// Splits sums into nested ones if the reductions do not fit one loop as they are.
bool schedule_nest_sums(Scheduling *s) {
  if (!s->k->naxes || check_reductions(s)) return true;
  if (s->strategy == TILED || !schedule_middle_axes(s)) return false;
  s->strategy = NESTED;
  return kernel_nest_sums(s->k, s->vector_axis, s->inner) && check_reductions(s);
}

static void choose_scatter_axes(Scheduling *s, const Scatter *scatter) {
  s->strategy = SCATTERED;
  s->vector_axis = scatter->columns;
  s->inner = 1U << scatter->summed | 1U << scatter->columns;
  s->outer = all_axes(s->k) & ~s->inner;
  s->batch_axes = s->outer & ~(1U << scatter->rows);
}

// Whether all sums are over rows, so few that they are few blocks, and their results are vectors of columns.
static bool sums_few_rows(const Kernel *k, int vector_axis) {
  const int64_t many = 4 * k->costs->block_operands;
  bool has_sums = false, has_rows = true;
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    if (!expr_is_reduction(e)) continue;
    has_sums = true;
    has_rows &= e->axes == 1U << vector_axis && axes_nelems(k, e->reduced) <= many;
  }
  return has_sums && has_rows;
}

// Splits the columns of sums over few rows into blocks, for threads. Decides no bits.
static bool split_summed_columns(Scheduling *s) {
  Kernel *k = s->k;
  const int axis = s->vector_axis;
  const int64_t extent = k->axes[axis].extent, most = k->costs->summed_columns;
  if (!sums_few_rows(k, axis) || extent <= most || !kernel_can_split_axis(k, axis)) return true;
  int64_t block = most / LANES * LANES;
  while (block > most / 4 && extent % block) block -= LANES;
  if (block <= most / 4) return true;
  s->vector_axis++;
  return kernel_split_axis(k, axis, block);
}

bool schedule_choose_axes(Scheduling *s) {
  Scatter scatter;
  if (!s->k->naxes) return true;
  if (kernel_find_scatter(s->k, &scatter)) {
    choose_scatter_axes(s, &scatter);
    return true;
  }
  Product product = {0};
  const bool has_elements = axes_nelems(s->k, all_axes(s->k)) > 0; // else factors would be copied for nothing
  if (has_elements && schedule_number(s->overrides, SCHEDULE_MIDDLE, true)) product = schedule_find_product(s->k);
  schedule_cut_long_sum(s, &product);
  if (product.rows) product.cut = (SumCut){0}; // results that are sums of blocks are no rows of a micro-kernel
  if (product.sum && (s->vector_axis == BEST_AXIS || s->vector_axis == product.vector_axis)) {
    s->product = product;
    s->vector_axis = product.vector_axis;
  }
  if (s->vector_axis == BEST_AXIS) s->vector_axis = choose_vector_axis(s->k);
  return (s->product.sum || split_summed_columns(s)) && choose_axes(s);
}
