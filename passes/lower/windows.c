// Places on the large side are affine in the window and the tap. So is the window of a place and a tap, if windows are
// one element apart; else it is computed, and is one only if it comes out as an integer.
#include "passes/lower/windows.h"

#include "ir/operators/interpolate.h"

#define NUMBER(number) expr_constant(k, (double)(number))

Windows windows_of(Lowering *l, const Node *node) {
  Windows w = {.l = l, .k = l->kernel, .first = spatial_axis(node)};
  w.nspatial = node_side(node, SIDE_LARGE)->shape.rank - 2;
  for (int i = 0; i < w.nspatial; i++) {
    const Window own = w.window[i] = node_window(node, i);
    kernel_close(w.k, own.large_monomial);
    kernel_close(w.k, own.small_monomial);
    kernel_close(w.k, own.kernel_monomial);
    kernel_close(w.k, own.pad_monomial);
  }
  return w;
}

int64_t windows_greatest_place(const Node *node) {
  const Value *small = node_side(node, SIDE_SMALL);
  if (!small) return 0;
  const Strides strides = strides_of(&small->shape, &small->order);
  int64_t greatest = 0, offset = 0;
  for (int i = 0; i < small->shape.rank - 2; i++) {
    const Window w = node_window(node, i);
    const int64_t reach = w.large + w.pad_begin + window_reach(&w);
    if (reach > greatest) greatest = reach;
    offset += w.small * strides.stride[spatial_axis(node) + i];
  }
  return node->op->outputs[0].side == SIDE_LARGE && offset > greatest ? offset : greatest;
}

ExprId windows_tap(const Windows *w, int spatial) {
  return expr_index(w->k, w->tap[spatial]);
}

ExprId windows_load_large(const Windows *w, const Value *v, SideAxes *axes, double outside) {
  for (int i = 0; i < w->nspatial; i++) {
    const Window *own = &w->window[i];
    Bound *b = &axes->bounds[w->first + i];
    axes->axis[w->first + i] = BOUNDED;
    *b = (Bound){.offset = -own->pad_begin};
    b->factor[w->place[i]] = own->stride;
    b->factor[w->tap[i]] = own->dilation;
  }
  return lower_bounded_load(w->l, v, axes->axis, axes->bounds, outside, 0);
}

// place + pad - dilation * tap: the window's index times the stride.
static ExprId scaled_index(const Windows *w, int spatial) {
  Kernel *k = w->k;
  const Window *own = &w->window[spatial];
  const ExprId place = expr_binary(k, EXPR_ADD, expr_index(k, w->place[spatial]), NUMBER(own->pad_begin));
  return expr_fma(k, NUMBER(-own->dilation), windows_tap(w, spatial), place);
}

static ExprId load_computed(const Windows *w, const Value *v, SideAxes *axes, ExprId *index) {
  Kernel *k = w->k;
  const Strides strides = strides_of(&v->shape, &v->order);
  ExprId offset = 0;
  for (int i = 0; i < w->nspatial; i++) {
    const Window *own = &w->window[i];
    const int axis = w->first + i;
    axes->axis[axis] = COMPUTED;
    kernel_close(k, strides.monomial[axis]);
    const ExprId u = expr_unary(k, EXPR_FLOOR, expr_binary(k, EXPR_DIV, scaled_index(w, i), NUMBER(own->stride)));
    index[i] = expr_binary(k, EXPR_MAX, NUMBER(0), expr_binary(k, EXPR_MIN, u, NUMBER(own->small - 1)));
    const ExprId stride = NUMBER(strides.stride[axis]);
    offset = offset ? expr_fma(k, stride, index[i], offset) : expr_binary(k, EXPR_MUL, stride, index[i]);
  }
  ExprId e = lower_bounded_load(w->l, v, axes->axis, axes->bounds, 0, offset);
  for (int i = 0; i < w->nspatial; i++) {
    const ExprId scaled = expr_binary(k, EXPR_MUL, index[i], NUMBER(w->window[i].stride));
    e = expr_select(k, expr_binary(k, EXPR_EQ, scaled, scaled_index(w, i)), e, NUMBER(0));
  }
  return e;
}

ExprId windows_load_small(const Windows *w, const Value *v, SideAxes *axes, ExprId *index) {
  bool is_computed = false;
  for (int i = 0; i < w->nspatial; i++) is_computed |= w->window[i].stride != 1;
  if (is_computed) return load_computed(w, v, axes, index);
  for (int i = 0; i < w->nspatial; i++) {
    const Window *own = &w->window[i];
    Bound *b = &axes->bounds[w->first + i];
    axes->axis[w->first + i] = BOUNDED;
    *b = (Bound){.offset = own->pad_begin};
    b->factor[w->place[i]] = 1;
    b->factor[w->tap[i]] = -own->dilation;
    index[i] = scaled_index(w, i);
  }
  return lower_bounded_load(w->l, v, axes->axis, axes->bounds, 0, 0);
}
