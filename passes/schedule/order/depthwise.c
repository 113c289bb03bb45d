// Finds sums of products whose factors both vary over the vector axis, and one of which does not vary over all rows:
// weight gradients of depthwise convolutions. All taps of a window, or of one axis of the window, are rows of a
// micro-kernel, which loads the factor that lacks the rows once for all of them. If vectors lie along channels, the
// axis of channels is split, so that the data that a part reads stays in the L2 cache for all rows.
#include "passes/schedule/order/scheduling.h"

// Whether a scalar that is computed, not loaded, varies over rows and over summed axes: a micro-kernel computes such
// scalars for one row only. Example: the index that a prologue compares with a bound.
static bool computes_scalars(const Kernel *k, const Product *p, AxisSet rows) {
  for (ExprId i = 1; i < p->sum; i++) {
    const Expr *e = &k->exprs[i];
    const bool is_scalar = e->op != EXPR_LOAD && !(e->axes >> p->vector_axis & 1);
    if (is_scalar && e->axes & rows && e->axes & k->exprs[p->sum].reduced) return true;
  }
  return false;
}

Product schedule_find_depthwise(const Kernel *k, int vector_axis) {
  const Product none = {0};
  ExprId sum = 0;
  for (ExprId i = 1; i < k->nexprs; i++) {
    if (!expr_is_reduction(&k->exprs[i])) continue;
    if (sum || k->exprs[i].op != EXPR_REDUCE_SUM) return none;
    sum = i;
  }
  const Expr *e = sum ? &k->exprs[k->exprs[sum].args[0]] : NULL;
  if (!sum || e->op != EXPR_MUL) return none;
  const AxisSet of_first = k->exprs[e->args[0]].axes, of_second = k->exprs[e->args[1]].axes;
  if (!((of_first & of_second) >> vector_axis & 1)) return none;
  Product p = {.sum = sum, .row = e->args[0], .vector = e->args[1], .vector_axis = vector_axis, .is_depthwise = true};
  if (of_second & ~of_first) p.row = e->args[1], p.vector = e->args[0];
  const AxisSet rows = schedule_row_axes(k, &p);
  return rows && !computes_scalars(k, &p, rows) ? p : none;
}

bool schedule_split_channels(Scheduling *s) {
  Kernel *k = s->k;
  const int64_t part = k->costs->channels_in_part / LANES * LANES;
  Product *p = &s->product;
  const int axis = p->vector_axis;
  if (s->strategy != DEPTHWISE) return true;
  if (k->axes[axis].extent <= part || k->axes[axis].extent % part || !kernel_can_split_axis(k, axis)) return true;
  if (!schedule_split_axis(k, p, axis, part)) return false;
  schedule_set_product_axes(s);
  return true;
}
