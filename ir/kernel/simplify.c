// Removes unneeded expressions and axes in place.
#include "ir/kernel/simplify.h"

#include "ir/kernel/scatter.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

// Expressions

// Replaces a load that is outside of its tensor at all indices by a constant.
static void fold_outside(Kernel *k) {
  for (size_t i = 1; i < k->nexprs; i++) {
    Expr *e = &k->exprs[i];
    const Access *a = e->op == EXPR_LOAD ? &k->accesses[e->access] : NULL;
    bool is_outside = false;
    for (size_t b = 0; a && b < a->nbounds; b++) is_outside |= bound_never_holds(k, &a->bounds[b]);
    if (!is_outside) continue;
    const double number = k->is_f64 ? a->outside : (double)(float)a->outside;
    const int64_t integer = k->is_s64 ? (int64_t)number : 0;
    *e = (Expr){.op = EXPR_CONSTANT, .axes = e->axes, .number = number, .integer = integer, .label = e->label};
  }
}

void kernel_drop_unneeded(Kernel *k) {
  fold_outside(k);
  ExprId *expr = KERNEL_ARRAY(k, ExprId, k->nexprs); // by old id: the new id; 0: the expression is not needed
  AccessId *access = KERNEL_ARRAY(k, AccessId, k->naccesses + 1);
  bool *is_used = KERNEL_ARRAY(k, bool, k->naccesses + 1);
  if (!expr || !access || !is_used) return;
  for (size_t i = 0; i < k->nstores; i++) {
    expr[k->stores[i].value] = 1;
    is_used[k->stores[i].access] = true;
  }
  for (size_t i = k->nexprs; i-- > 1;) {
    if (!expr[i]) continue;
    for (int a = 0; a < 3; a++) expr[k->exprs[i].args[a]] = 1;
    if (expr_has_access(&k->exprs[i])) is_used[k->exprs[i].access] = true;
  }
  expr[0] = 0;
  AccessId naccesses = 0;
  for (size_t i = 0; i < k->naccesses; i++) {
    if (!is_used[i]) continue;
    k->accesses[naccesses] = k->accesses[i];
    access[i] = naccesses++;
  }
  ExprId nexprs = 1;
  for (size_t i = 1; i < k->nexprs; i++) {
    if (!expr[i]) continue;
    Expr e = k->exprs[i];
    for (int a = 0; a < 3; a++) e.args[a] = expr[e.args[a]];
    if (expr_has_access(&e)) e.access = access[e.access];
    k->exprs[nexprs] = e;
    expr[i] = nexprs++;
  }
  for (size_t i = 0; i < k->nstores; i++) k->stores[i] = (Store){access[k->stores[i].access], expr[k->stores[i].value]};
  k->naccesses = naccesses;
  k->nexprs = nexprs;
}

bool kernel_drop_unused(Kernel *k) {
  size_t count = 0;
  for (size_t i = 0; i < k->nstores; i++)
    if (value_is_used(k->accesses[k->stores[i].access].value)) k->stores[count++] = k->stores[i];
  if (count == k->nstores) return false;
  k->nstores = count;
  kernel_drop_unneeded(k);
  return true;
}

// Axes

static AxisSet remove_axis(AxisSet set, int axis) {
  AxisSet below = set & ((1U << axis) - 1);
  return below | (set >> (axis + 1) << axis);
}

// Removes the axis from every set of axes and every access.
static void drop_axis(Kernel *k, int axis) {
  for (size_t i = 1; i < k->nexprs; i++) {
    k->exprs[i].axes = remove_axis(k->exprs[i].axes, axis);
    k->exprs[i].reduced = remove_axis(k->exprs[i].reduced, axis);
  }
  for (size_t i = 0; i < k->naccesses; i++) {
    int64_t *stride = k->accesses[i].stride;
    Monomial *monomial = k->accesses[i].stride_monomial;
    memmove(&stride[axis], &stride[axis + 1], (size_t)(MAX_AXES - 1 - axis) * sizeof *stride);
    memmove(&monomial[axis], &monomial[axis + 1], (size_t)(MAX_AXES - 1 - axis) * sizeof *monomial);
    stride[MAX_AXES - 1] = 0;
    monomial[MAX_AXES - 1] = 0;
    for (size_t b = 0; b < k->accesses[i].nbounds; b++) {
      int64_t *factor = k->accesses[i].bounds[b].factor;
      memmove(&factor[axis], &factor[axis + 1], (size_t)(MAX_AXES - 1 - axis) * sizeof *factor);
      factor[MAX_AXES - 1] = 0;
    }
  }
  memmove(&k->axes[axis], &k->axes[axis + 1], (size_t)(MAX_AXES - 1 - axis) * sizeof *k->axes);
  k->naxes--;
}

// Whether the axis and the next one can be one: nothing varies over, reduces or tests only one of them, and wherever
// tensors are stepped through, a step along the axis is a whole pass along the next one.
static bool can_merge_axes(const Kernel *k, int axis) {
  AxisSet both = 3U << axis;
  for (size_t i = 1; i < k->nexprs; i++) {
    AxisSet axes = k->exprs[i].axes & both, reduced = k->exprs[i].reduced & both;
    if ((axes && axes != both) || (reduced && reduced != both)) return false;
  }
  for (size_t i = 0; i < k->naccesses; i++) {
    const int64_t *stride = k->accesses[i].stride;
    const Monomial *monomial = k->accesses[i].stride_monomial;
    if (stride[axis] != stride[axis + 1] * k->axes[axis + 1].extent) return false;
    if (stride[axis] && monomial[axis] != monomial[axis + 1] + k->axes[axis + 1].monomial) return false;
    for (size_t b = 0; b < k->accesses[i].nbounds; b++) {
      const int64_t *factor = k->accesses[i].bounds[b].factor;
      if (factor[axis] != factor[axis + 1] * k->axes[axis + 1].extent) return false;
    }
  }
  return true;
}

// Replaces a reduction whose axes have all been removed by its operand.
static void forward_empty_reductions(Kernel *k) {
  for (size_t i = 1; i < k->nexprs; i++) {
    Expr *e = &k->exprs[i];
    for (int a = 0; a < 3; a++) {
      const Expr *arg = &k->exprs[e->args[a]];
      if (e->args[a] && expr_is_reduction(arg) && !arg->reduced) e->args[a] = arg->args[0];
    }
  }
  for (size_t i = 0; i < k->nstores; i++) {
    const Expr *e = &k->exprs[k->stores[i].value];
    if (expr_is_reduction(e) && !e->reduced) k->stores[i].value = e->args[0];
  }
}

static AxisSet swap_bits(AxisSet set, int axis) {
  AxisSet both = 3U << axis, own = set & both;
  return (set & ~both) | ((own << 1 | own >> 1) & both);
}

static void swap_numbers(int64_t *number, int axis) {
  const int64_t own = number[axis];
  number[axis] = number[axis + 1];
  number[axis + 1] = own;
}

static void swap_axes(Kernel *k, int axis) { // swaps it with the next axis
  for (size_t i = 1; i < k->nexprs; i++) {
    k->exprs[i].axes = swap_bits(k->exprs[i].axes, axis);
    k->exprs[i].reduced = swap_bits(k->exprs[i].reduced, axis);
  }
  for (size_t i = 0; i < k->naccesses; i++) {
    swap_numbers(k->accesses[i].stride, axis);
    for (size_t b = 0; b < k->accesses[i].nbounds; b++) swap_numbers(k->accesses[i].bounds[b].factor, axis);
    Monomial *monomial = k->accesses[i].stride_monomial, own_monomial = monomial[axis];
    monomial[axis] = monomial[axis + 1];
    monomial[axis + 1] = own_monomial;
  }
  Axis own = k->axes[axis];
  k->axes[axis] = k->axes[axis + 1];
  k->axes[axis + 1] = own;
}

// Whether some reduction reduces both axes.
static bool are_summed_together(const Kernel *k, AxisSet axes) {
  bool is_any = false;
  for (ExprId i = 1; i < k->nexprs; i++) is_any |= (k->exprs[i].reduced & axes) == axes;
  return is_any;
}

// Whether an earlier access has the same strides along the axis and the next one.
static bool has_known_layout(const Kernel *k, const Access *a, int axis) {
  bool is_known = false;
  for (const Access *other = k->accesses; other < a; other++)
    is_known |= other->type != TYPE_NONE && memcmp(&other->stride[axis], &a->stride[axis], 2 * sizeof *a->stride) == 0;
  return is_known;
}

// Whether the axis has the smaller stride, compared with the next axis, in most of the accessed memory, counted in
// elements; but of two axes of one sum, in most layouts, so that its order depends neither on other extents nor on how
// many tensors an operand is computed from.
static bool belongs_inside(const Kernel *k, int axis) {
  const bool is_order = are_summed_together(k, 3U << axis);
  int64_t inside = 0;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    int64_t own = llabs(a->stride[axis]), next = llabs(a->stride[axis + 1]);
    if (!own || !next || own == next || a->type == TYPE_NONE) continue;
    const int64_t weight = is_order ? !has_known_layout(k, a, axis) : access_nelems_along(k, a, ~0U);
    inside += own < next ? weight : -weight;
  }
  return inside > 0;
}

// Sorts the axes by the layout of most of the accessed memory, so that inner loops have small strides.
static void order_axes(Kernel *k) {
  for (int round = 1; round < k->naxes; round++) // fixed rounds: pairwise majorities need not be transitive
    for (int axis = 0; axis + 1 < k->naxes; axis++)
      if (belongs_inside(k, axis)) swap_axes(k, axis);
}

// Drops bounds that always hold, except those of windows and reversed axes.
static void drop_bounds(Kernel *k, Access *a) {
  size_t count = 0;
  for (size_t i = 0; i < a->nbounds; i++) {
    const Bound *b = &a->bounds[i];
    const AxisSet axes = bound_axes(b);
    const bool is_plain = !(axes & (axes - 1)) && (!axes || b->factor[__builtin_ctz(axes)] > 0);
    if (!is_plain || !bound_always_holds(k, b)) a->bounds[count++] = *b;
  }
  a->nbounds = count;
}

// Whether the axis is that of the rows of a product (lower_unit_rows).
static bool has_rows(const Kernel *k, int axis) {
  bool is_any = false;
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i], *product = &k->exprs[e->args[0]];
    is_any |= e->op == EXPR_REDUCE_SUM && product->op == EXPR_MUL &&
              (k->exprs[product->args[0]].axes ^ k->exprs[product->args[1]].axes) >> axis & 1;
  }
  return is_any;
}

// Whether the first axis has a single index, over which each sum of tensors varies: a batch of one sample.
static bool is_single_row(const Kernel *k) {
  bool has_sums = false, is_summed = false;
  for (ExprId i = 1; i < k->nexprs; i++) {
    has_sums |= expr_is_reduction(&k->exprs[i]);
    is_summed |= k->exprs[i].reduced & 1;
  }
  return has_sums && !is_summed && k->naxes && k->axes[0].extent == 1 && !k->axes[0].monomial;
}

void kernel_simplify_axes(Kernel *k) {
  assert(k->naxes >= 0 && k->naxes <= MAX_AXES);
  k->is_row = is_single_row(k);
  for (int axis = k->naxes - 1; axis >= 0; axis--)
    if (k->axes[axis].extent == 1 && !has_rows(k, axis)) drop_axis(k, axis);
  for (size_t i = 0; i < k->naccesses; i++) drop_bounds(k, &k->accesses[i]);
  forward_empty_reductions(k);
  order_axes(k);
  for (int axis = k->naxes - 2; axis >= 0; axis--) {
    if (!can_merge_axes(k, axis)) continue;
    k->axes[axis + 1].extent *= k->axes[axis].extent;
    k->axes[axis + 1].monomial += k->axes[axis].monomial;
    k->axes[axis + 1].name = k->axes[axis].name;
    k->axes[axis + 1].places = places_join(k->axes[axis].places, k->axes[axis + 1].places);
    drop_axis(k, axis);
  }
  kernel_add_scatter_columns(k);
}
