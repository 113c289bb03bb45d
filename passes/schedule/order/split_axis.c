// Index i of the axis becomes index i / inner on the first new axis and i % inner on the second.
#include "passes/schedule/order/scheduling.h"

#include <string.h>

bool kernel_can_split_axis(const Kernel *k, int axis) {
  if (k->naxes == MAX_AXES || k->axes[axis].monomial) return false;
  for (ExprId i = 1; i < k->nexprs; i++)
    if (k->exprs[i].op == EXPR_INDEX && k->exprs[i].axes >> axis & 1) return false;
  return true;
}

static AxisSet insert_axis(AxisSet set, int axis) {
  const AxisSet upto = (2U << axis) - 1;
  return (set & upto) | (set & ~(upto >> 1)) << 1;
}

static void insert_number(int64_t *numbers, int axis, int64_t inner) {
  memmove(&numbers[axis + 1], &numbers[axis], (size_t)(MAX_AXES - 1 - axis) * sizeof *numbers);
  numbers[axis] *= inner;
}

// Adds the bound block * inner + index in block < extent.
static void add_bound(Kernel *k, Access *a, int axis, int64_t inner, int64_t extent) {
  if (!a->stride[axis + 1]) return;
  Bound *bound = KERNEL_ARRAY(k, Bound, 1);
  if (!bound) return;
  *bound = (Bound){.extent = extent, .stride = a->stride[axis + 1], .stride_monomial = a->stride_monomial[axis + 1]};
  bound->factor[axis] = inner;
  bound->factor[axis + 1] = 1;
  a->bounds = bound;
  a->nbounds = 1;
}

static void split_access(Access *a, int axis, int64_t inner) {
  Monomial *monomial = a->stride_monomial;
  insert_number(a->stride, axis, inner);
  memmove(&monomial[axis + 1], &monomial[axis], (size_t)(MAX_AXES - 1 - axis) * sizeof *monomial);
  for (size_t i = 0; i < a->nbounds; i++) insert_number(a->bounds[i].factor, axis, inner);
}

bool kernel_split_axis(Kernel *k, int axis, int64_t inner) {
  const Axis whole = k->axes[axis];
  const char *name = arena_format(k->arena, "%s_block", whole.name);
  k->out_of_memory |= !name;
  if (!name) return false;
  memmove(&k->axes[axis + 1], &k->axes[axis], (size_t)(k->naxes - axis) * sizeof *k->axes);
  k->naxes++;
  k->axes[axis] = (Axis){.name = name, .extent = (whole.extent + inner - 1) / inner, .places = whole.places};
  k->axes[axis + 1].extent = inner;
  for (ExprId i = 1; i < k->nexprs; i++) {
    k->exprs[i].axes = insert_axis(k->exprs[i].axes, axis);
    k->exprs[i].reduced = insert_axis(k->exprs[i].reduced, axis);
  }
  for (size_t i = 0; i < k->naccesses; i++) {
    split_access(&k->accesses[i], axis, inner);
    if (whole.extent % inner) add_bound(k, &k->accesses[i], axis, inner, whole.extent);
  }
  return !k->out_of_memory;
}
