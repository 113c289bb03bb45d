// What the choice of axes means: which reductions end inside an outer iteration, which stores go to producer loops, and
// the axes of a product's loops.
#include "passes/schedule/order/scheduling.h"

#include <assert.h>

int64_t access_nelems(const Kernel *k, const Access *a) {
  return access_nelems_along(k, a, ~0U);
}

int dense_axis_of(const Kernel *k, const Access *a) {
  int found = -1;
  for (int axis = 0; axis < k->naxes; axis++)
    if (a->stride[axis] == 1) found = axis;
  return found;
}

bool is_within_tensor(const Kernel *k, AxisSet axes) {
  for (size_t i = 0; i < k->naccesses; i++)
    if (k->accesses[i].value && !k->accesses[i].nbounds && !(axes & ~access_axes(k, &k->accesses[i]))) return true;
  return false;
}

// The axes whose indices may be the rows of a micro-kernel: the innermost axes, up to taps_in_step indices together; 0:
// none.
AxisSet schedule_row_axes(const Kernel *k, const Product *p) {
  const AxisSet rows = k->exprs[p->sum].axes & ~k->exprs[p->vector].axes;
  AxisSet found = 0;
  for (int axis = k->naxes - 1; axis >= 0; axis--) {
    const int64_t extent = k->axes[axis].extent;
    if (!(rows >> axis & 1) || extent <= 1) continue;
    if (!k->axes[axis].monomial && extent * axes_nelems(k, found) <= k->costs->taps_in_step) found |= 1U << axis;
    else if (found) break;
  }
  return found;
}

void schedule_set_product_axes(Scheduling *s) {
  const Kernel *k = s->k;
  const Product *p = &s->product;
  assert(p->vector_axis >= 0); // there is a product
  s->strategy = p->is_depthwise ? DEPTHWISE : OF_PRODUCTS;
  s->vector_axis = p->vector_axis;
  s->inner = k->exprs[p->sum].reduced | 1U << s->vector_axis;
  s->outer = all_axes(k) & ~s->inner;
  s->batch_axes = s->outer & (p->is_depthwise ? ~schedule_row_axes(k, p)
                              : p->rows       ? ~p->rows
                                              : k->exprs[p->vector].axes);
}

// Of an axis that is split, the part inside of blocks keeps the axis's meaning.
bool schedule_split_axis(Kernel *k, Product *p, int axis, int64_t inner) {
  if (!kernel_split_axis(k, axis, inner)) return false;
  p->vector_axis += p->vector_axis >= axis;
  p->panel_axis += p->panel_axis > axis;
  p->cut.axis += p->cut.axis >= axis;
  return true;
}

AxisSet schedule_middle_axes(const Scheduling *s) {
  return s->inner & ~(1U << s->vector_axis);
}

bool is_nested_reduction(const Scheduling *s, const Expr *e) {
  return s->strategy == NESTED && e->reduced == 1U << s->vector_axis;
}

int last_axis(const Scheduling *s) {
  return s->strategy == OF_COLUMNS ? __builtin_ctz(s->inner) : s->vector_axis;
}

bool is_inner_reduction(const Scheduling *s, const Expr *e) {
  if (has_contraction(s)) return e->reduced == s->k->exprs[s->product.sum].reduced;
  if (sums_in_lanes(s)) return e->reduced == schedule_middle_axes(s);
  if (s->strategy == NESTED) return is_nested_reduction(s, e) || e->reduced == schedule_middle_axes(s);
  return s->strategy != TILED && e->reduced == s->inner;
}

bool is_outer_reduction(const Scheduling *s, const Expr *e) {
  return expr_is_reduction(e) && !is_inner_reduction(s, e);
}

AxisSet axes_of_vectors(const Scheduling *s) {
  return sums_in_lanes(s) ? 1U << s->vector_axis : s->inner;
}

AxisSet store_axes(const Kernel *k, const Store *store) {
  return root_axes(k, &(Root){.kind = ROOT_STORE, .expr = store->value, .access = store->access});
}

bool is_produced_store(const Scheduling *s, const Store *store) {
  const AxisSet axes = store_axes(s->k, store), inner = axes & s->inner;
  const bool is_along_all =
      !(s->outer & ~axes) && (!inner || inner == axes_of_vectors(s) || s->plan[store->value].is_after_nested);
  return s->k->naxes && (!(axes & s->cut) || !is_along_all);
}
