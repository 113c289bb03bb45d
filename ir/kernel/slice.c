// Slices kernels before kernel_simplify_axes, while their axes are still the domain's.
#include "ir/kernel/slice.h"

#include <string.h>

static bool can_move(const Access *a, int axis) {
  for (size_t i = 0; i < a->nbounds; i++)
    if (a->bounds[i].factor[axis]) return false;
  if (!a->stride[axis]) return true;
  return a->value && !a->stride_monomial[axis] && !(type_is_packed(a->type) && a->stride[axis] % 2);
}

static bool can_cut(const Kernel *k, int axis) {
  const AxisSet own = 1U << axis;
  if (k->axes[axis].monomial || !k->axes[axis].extent) return false;
  if (k->axes[axis].extent == 1) return true;
  for (ExprId id = 1; id < k->nexprs; id++)
    if (k->exprs[id].reduced & own || (k->exprs[id].op == EXPR_INDEX && k->exprs[id].axes & own)) return false;
  for (AccessId id = 0; id < k->naccesses; id++)
    if (!can_move(&k->accesses[id], axis)) return false;
  for (size_t i = 0; i < k->nstores; i++)
    if (!k->accesses[k->stores[i].access].stride[axis]) return false;
  return true;
}

int kernel_count_cuts(const Kernel *k, int most) {
  int count = 0;
  while (count < most && can_cut(k, count)) count++;
  return count;
}

void kernel_slice(Kernel *k, const SliceGroup *slice_group) {
  const AxisSet fixed = (1U << slice_group->nfixed) - 1;
  k->slice_group = slice_group;
  for (int axis = 0; axis < slice_group->nfixed; axis++) k->axes[axis].extent = 1;
  if (slice_group->block) k->axes[slice_group->nfixed].extent = slice_group->block;
  for (ExprId id = 1; id < k->nexprs; id++) k->exprs[id].axes &= ~fixed;
  for (AccessId id = 0; id < k->naccesses; id++)
    memset(k->accesses[id].stride, 0, (size_t)slice_group->nfixed * sizeof *k->accesses[id].stride);
}
