// Lowering of loads along axes that several axes of the kernel step along, or that these leave.
#include "passes/lower/lower.h"

#include <string.h>

enum { MOST_BOUNDS = MAX_RANK };

// A constant with one value has no memory: whether an index is inside of the tensor is computed.
static ExprId select_inside(Lowering *l, const Bound *b, ExprId e, ExprId outside) {
  Kernel *k = l->kernel;
  ExprId index = expr_constant(k, (double)b->offset);
  for (int axis = 0; axis < k->naxes; axis++)
    if (b->factor[axis]) index = expr_fma(k, expr_constant(k, (double)b->factor[axis]), expr_index(k, axis), index);
  const ExprId zero = expr_constant(k, 0), extent = expr_constant(k, (double)b->extent);
  e = expr_select(k, expr_binary(k, EXPR_GT, extent, index), e, outside);
  return expr_select(k, expr_binary(k, EXPR_GE, index, zero), e, outside);
}

static ExprId constant_load(Lowering *l, const Value *v, const Access *a) {
  Kernel *k = l->kernel;
  const AxisSet axes = l->part.broadcasts_constants ? access_axes(k, a) : 0;
  const ExprId outside = expr_constant(k, a->outside);
  ExprId e = expr_constant_over(k, type_load(v->type, v->constant->data, 0), axes);
  for (size_t i = 0; i < a->nbounds; i++)
    if (!bound_always_holds(k, &a->bounds[i])) e = select_inside(l, &a->bounds[i], e, outside);
  return e;
}

// Sets the access's strides along the axes of the kernel that an axis of the value steps along.
static void add_steps(Kernel *k, Access *a, Bound *b, Monomial monomial, bool is_bounded) {
  a->offset += b->stride * b->offset;
  for (int on = 0; on < k->naxes; on++) {
    if (k->axes[on].extent == 1 && !k->axes[on].monomial) b->factor[on] = 0; // the load does not vary over it
    if (!b->factor[on]) continue;
    if (is_bounded) kernel_close(k, k->axes[on].monomial);
    a->stride[on] += b->stride * b->factor[on];
    a->stride_monomial[on] = monomial;
  }
}

ExprId lower_bounded_load(Lowering *l, const Value *v, const int *axis, const Bound *bounds, double outside,
                          ExprId offset) {
  Kernel *k = l->kernel;
  const Strides own = strides_of(&v->shape, &v->order);
  Bound made[MOST_BOUNDS];
  Access a = {.value = (Value *)v, .type = v->type, .bounds = made, .outside = outside};
  for (int i = 0; i < v->shape.rank; i++) {
    if (axis[i] == COMPUTED) continue;
    Bound b = {.extent = extent_value(v->shape.extent[i]), .stride = own.stride[i]};
    if (axis[i] >= 0) b.factor[axis[i]] = extent_value(v->shape.extent[i]) != 1;
    else {
      memcpy(b.factor, bounds[i].factor, sizeof b.factor);
      b.offset = bounds[i].offset;
    }
    if (axis[i] == BOUNDED) {
      kernel_close(k, own.monomial[i]);
      kernel_close(k, extent_monomial(v->shape.extent[i]));
    }
    add_steps(k, &a, &b, axis[i] == BOUNDED ? 0 : own.monomial[i], axis[i] == BOUNDED);
    if (axis[i] == BOUNDED) made[a.nbounds++] = b;
  }
  if (v->constant && v->constant->is_splat) return constant_load(l, v, &a);
  const AccessId access = kernel_add_access(k, &a);
  return expr_label(k, offset ? expr_load_at(k, access, offset) : expr_load(k, access), v->name);
}
