// Indices that go through bounds: the test of a bound, strides along the axes that a bound has, and views, which map an
// operand's axes to the kernel's.
#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

#include <string.h>

static ExprId bound_index(Kernel *k, const Bound *b) {
  ExprId index = NUMBER(b->offset);
  for (int axis = 0; axis < k->naxes; axis++)
    if (b->factor[axis]) index = FMA(NUMBER(b->factor[axis]), expr_index(k, axis), index);
  return index;
}

ExprId lower_inside(Lowering *l, const Bound *b, ExprId e, double outside) {
  Kernel *k = l->kernel;
  const ExprId index = bound_index(k, b), zero = NUMBER(0), other = NUMBER(outside);
  e = SELECT(GT(NUMBER(b->extent), index), e, other);
  return SELECT(GE(index, zero), e, other);
}

// Adds to the offset, which is a literal times one monomial.
static void add_offset(Kernel *k, Access *a, int64_t offset, Monomial monomial) {
  if (!offset) return;
  if (a->offset && a->offset_monomial != monomial) kernel_close(k, a->offset_monomial + monomial);
  a->offset += offset;
  a->offset_monomial = monomial;
}

void access_add_steps(Kernel *k, Access *a, Bound *b, bool is_bounded) {
  add_offset(k, a, b->stride * b->offset, b->stride_monomial + b->offset_monomial);
  for (int on = 0; on < k->naxes; on++) {
    if (k->axes[on].extent == 1 && !k->axes[on].monomial) b->factor[on] = 0; // axes of extent 1 do not vary
    if (!b->factor[on]) continue;
    if (is_bounded) kernel_close(k, k->axes[on].monomial);
    a->stride[on] += b->stride * b->factor[on];
    a->stride_monomial[on] = b->stride_monomial;
  }
}

void view_place(const Lowering *l, Access *a) {
  View *view = l->view;
  Access on = *a;
  memset(on.stride, 0, sizeof on.stride);
  memset(on.stride_monomial, 0, sizeof on.stride_monomial);
  on.bounds = view->made;
  for (int i = 0; i < l->domain.rank; i++) {
    Bound b = {
        .extent = extent_value(l->domain.extent[i]), .stride = a->stride[i], .stride_monomial = a->stride_monomial[i]};
    if (!a->stride[i]) continue;
    if (view->axis[i] >= 0) b.factor[view->axis[i]] = 1;
    else {
      memcpy(b.factor, view->bounds[i].factor, sizeof b.factor);
      b.offset = view->bounds[i].offset;
      b.offset_monomial = view->bounds[i].offset_monomial;
    }
    const bool is_bounded = view->axis[i] == BOUNDED;
    if (is_bounded) kernel_close(l->kernel, extent_monomial(l->domain.extent[i]));
    access_add_steps(l->kernel, &on, &b, is_bounded);
    if (is_bounded) on.bounds[on.nbounds++] = b;
  }
  *a = on;
}

ExprId view_index(const Lowering *l, int axis) {
  Kernel *k = l->kernel;
  if (extent_value(l->domain.extent[axis]) == 1) return NUMBER(0);
  const int on = l->view->axis[axis];
  return on >= 0 ? expr_index(k, on) : bound_index(k, &l->view->bounds[axis]);
}
