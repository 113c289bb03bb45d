// Lowers loads with bounds: along a tensor's axis whose index is a sum over several axes of the kernel, or may be
// outside of the tensor.
#include "passes/lower/lower.h"

enum { MOST_BOUNDS = MAX_RANK };

// A splat constant has no memory: the number, or `outside` where a computed test says that the index is not inside.
static ExprId constant_load(Lowering *l, const Value *v, const Access *a) {
  Kernel *k = l->kernel;
  const AxisSet axes = l->part.broadcasts_constants ? access_axes(k, a) : 0;
  ExprId e = expr_constant_over(k, type_load(v->type, v->constant->data, 0), axes);
  for (size_t i = 0; i < a->nbounds; i++)
    if (!bound_always_holds(k, &a->bounds[i])) e = lower_inside(l, &a->bounds[i], e, a->outside);
  return e;
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
    Bound b = {0};
    if (axis[i] >= 0) b.factor[axis[i]] = extent_value(v->shape.extent[i]) != 1;
    else b = bounds[i];
    b.extent = extent_value(v->shape.extent[i]);
    b.stride = own.stride[i];
    b.stride_monomial = own.monomial[i];
    if (axis[i] == BOUNDED) kernel_close(k, b.offset_monomial + extent_monomial(v->shape.extent[i]));
    access_add_steps(k, &a, &b, axis[i] == BOUNDED);
    if (axis[i] == BOUNDED) made[a.nbounds++] = b;
  }
  if (v->constant && v->constant->is_splat) return constant_load(l, v, &a);
  const AccessId access = kernel_add_access(k, &a);
  return expr_label(k, offset ? expr_load_at(k, access, offset) : expr_load(k, access), v->name);
}
