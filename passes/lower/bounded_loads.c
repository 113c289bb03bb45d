// Lowers loads with bounds: along a tensor's axis whose index is a sum over several axes of the kernel, or may be
// outside of the tensor.
#include "passes/lower/lower.h"

#include <string.h>

enum { MOST_BOUNDS = MAX_RANK };

static ExprId bound_index(Kernel *k, const Bound *b) {
  ExprId index = expr_constant(k, (double)b->offset);
  for (int axis = 0; axis < k->naxes; axis++)
    if (b->factor[axis]) index = expr_fma(k, expr_constant(k, (double)b->factor[axis]), expr_index(k, axis), index);
  return index;
}

ExprId lower_inside(Lowering *l, const Bound *b, ExprId e, double outside) {
  Kernel *k = l->kernel;
  const ExprId index = bound_index(k, b), zero = expr_constant(k, 0), other = expr_constant(k, outside);
  e = expr_select(k, expr_binary(k, EXPR_GT, expr_constant(k, (double)b->extent), index), e, other);
  return expr_select(k, expr_binary(k, EXPR_GE, index, zero), e, other);
}

// A splat constant has no memory: the number, or `outside` where a computed test says that the index is not inside.
static ExprId constant_load(Lowering *l, const Value *v, const Access *a) {
  Kernel *k = l->kernel;
  const AxisSet axes = l->part.broadcasts_constants ? access_axes(k, a) : 0;
  ExprId e = expr_constant_over(k, type_load(v->type, v->constant->data, 0), axes);
  for (size_t i = 0; i < a->nbounds; i++)
    if (!bound_always_holds(k, &a->bounds[i])) e = lower_inside(l, &a->bounds[i], e, a->outside);
  return e;
}

// Adds to the offset, which is a literal times one monomial.
static void add_offset(Kernel *k, Access *a, int64_t offset, Monomial monomial) {
  if (!offset) return;
  if (a->offset && a->offset_monomial != monomial) kernel_close(k, a->offset_monomial + monomial);
  a->offset += offset;
  a->offset_monomial = monomial;
}

// Sets the access's strides along the kernel's axes that have a factor in the bound.
static void add_steps(Kernel *k, Access *a, Bound *b, Monomial monomial, bool is_bounded) {
  add_offset(k, a, b->stride * b->offset, monomial);
  for (int on = 0; on < k->naxes; on++) {
    if (k->axes[on].extent == 1 && !k->axes[on].monomial) b->factor[on] = 0; // axes of extent 1 do not vary
    if (!b->factor[on]) continue;
    if (is_bounded) kernel_close(k, k->axes[on].monomial);
    a->stride[on] += b->stride * b->factor[on];
    a->stride_monomial[on] = monomial;
  }
}

void view_place(const Lowering *l, Access *a) {
  View *view = l->view;
  Access on = *a;
  memset(on.stride, 0, sizeof on.stride);
  memset(on.stride_monomial, 0, sizeof on.stride_monomial);
  on.bounds = view->made;
  for (int i = 0; i < l->domain.rank; i++) {
    Bound b = {.extent = extent_value(l->domain.extent[i]), .stride = a->stride[i]};
    if (!a->stride[i]) continue;
    if (view->axis[i] >= 0) b.factor[view->axis[i]] = 1;
    else {
      memcpy(b.factor, view->bounds[i].factor, sizeof b.factor);
      b.offset = view->bounds[i].offset;
    }
    const bool is_bounded = view->axis[i] == BOUNDED;
    if (is_bounded) kernel_close(l->kernel, a->stride_monomial[i] + extent_monomial(l->domain.extent[i]));
    add_steps(l->kernel, &on, &b, is_bounded ? 0 : a->stride_monomial[i], is_bounded);
    if (is_bounded) on.bounds[on.nbounds++] = b;
  }
  *a = on;
}

ExprId view_index(const Lowering *l, int axis) {
  Kernel *k = l->kernel;
  if (extent_value(l->domain.extent[axis]) == 1) return expr_constant(k, 0);
  const int on = l->view->axis[axis];
  return on >= 0 ? expr_index(k, on) : bound_index(k, &l->view->bounds[axis]);
}

ExprId lower_bounded_load(Lowering *l, const Value *v, const int *axis, const Bound *bounds, double outside,
                          ExprId offset) {
  Kernel *k = l->kernel;
  if (v->producer && l->is_inside[v->producer->index]) {
    if (offset) k->unsupported = "an operand is computed and loaded at computed places";
    return lower_prologue(l, v, axis, bounds, outside);
  }
  const Strides own = value_strides(v);
  Bound made[MOST_BOUNDS];
  Access a = value_access(v);
  a.bounds = made;
  a.outside = outside;
  for (int i = 0; i < v->shape.rank; i++) {
    if (axis[i] == COMPUTED) continue;
    Bound b = {.extent = extent_value(v->shape.extent[i]), .stride = own.stride[i]};
    if (axis[i] >= 0) b.factor[axis[i]] = extent_value(v->shape.extent[i]) != 1;
    else {
      b = bounds[i];
      b.extent = extent_value(v->shape.extent[i]);
      b.stride = own.stride[i];
    }
    if (axis[i] == BOUNDED) {
      kernel_close(k, own.monomial[i]);
      kernel_close(k, extent_monomial(v->shape.extent[i]));
    }
    add_steps(k, &a, &b, axis[i] == BOUNDED ? 0 : own.monomial[i], axis[i] == BOUNDED);
    if (axis[i] == BOUNDED) made[a.nbounds++] = b;
  }
  if (a.nbounds) kernel_close(k, a.offset_monomial);
  if (v->constant && v->constant->is_splat) return constant_load(l, v, &a);
  const AccessId access = kernel_add_access(k, &a);
  return expr_label(k, offset ? expr_load_at(k, access, offset) : expr_load(k, access), v->name);
}
