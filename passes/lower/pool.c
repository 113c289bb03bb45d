// Lowering of pooling: reductions over the taps of windows. Padding is outside of the tensor, where a load yields what
// changes nothing.
#include "ir/operators/interpolate.h"
#include "ir/operators/window.h"
#include "passes/lower/lower.h"

#include <math.h>

#define NUMBER(number) expr_constant(k, (double)(number))
#define ADD(a, b) expr_binary(k, EXPR_ADD, a, b)
#define SUB(a, b) expr_binary(k, EXPR_SUB, a, b)
#define MUL(a, b) expr_binary(k, EXPR_MUL, a, b)
#define DIV(a, b) expr_binary(k, EXPR_DIV, a, b)
#define MAX(a, b) expr_binary(k, EXPR_MAX, a, b)
#define MIN(a, b) expr_binary(k, EXPR_MIN, a, b)
#define GT(a, b) expr_binary(k, EXPR_GT, a, b)
#define GE(a, b) expr_binary(k, EXPR_GE, a, b)
#define EQ(a, b) expr_binary(k, EXPR_EQ, a, b)
#define FMA(a, b, c) expr_fma(k, a, b, c)
#define FLOOR(a) expr_unary(k, EXPR_FLOOR, a)
#define NEG(a) expr_unary(k, EXPR_NEG, a)
#define SELECT(mask, a, b) expr_select(k, mask, a, b)

typedef struct Pool {
  Lowering *l;
  Kernel *k; // l's
  const Node *node;
  int first, nspatial;
  Window windows[MOST_SPATIAL_AXES];
  AxisSet taps;
} Pool;

// Windows are computed from extents, which must have values.
static Pool pool_of(Lowering *l, const Node *node) {
  Pool p = {.l = l, .k = l->kernel, .node = node, .first = spatial_axis(node)};
  p.nspatial = node->outputs[0]->shape.rank - 2;
  for (int i = 0; i < p.nspatial; i++) {
    const Window w = p.windows[i] = node_window(node, i);
    kernel_close(p.k, w.large_monomial | w.small_monomial | w.kernel_monomial | w.pad_monomial);
    p.taps |= 1U << lower_extra_axis(l, i);
  }
  return p;
}

static ExprId tap_of(const Pool *p, int spatial) {
  return expr_index(p->k, lower_extra_axis(p->l, spatial));
}

typedef void AlongAxis(const Pool *p, int spatial, Bound *b); // sets offset and factors

static ExprId load_along(const Pool *p, const Value *v, AlongAxis *along, double outside) {
  int axis[MAX_RANK];
  Bound bounds[MAX_RANK] = {{0}};
  for (int i = 0; i < v->shape.rank; i++) axis[i] = i;
  for (int i = 0; i < p->nspatial; i++) {
    axis[p->first + i] = BOUNDED;
    along(p, i, &bounds[p->first + i]);
  }
  return lower_bounded_load(p->l, v, axis, bounds, outside);
}

// Forward: the index on the large side, for an index on the small side and a tap.
static void along_large(const Pool *p, int spatial, Bound *b) {
  const Window *w = &p->windows[spatial];
  b->offset = -w->pad_begin;
  b->factor[p->first + spatial] = w->stride;
  b->factor[lower_extra_axis(p->l, spatial)] = w->dilation;
}

// Whether some window may have no elements. Without gaps beyond the tensor's extent, only the first or the last.
static bool may_be_empty(const Window *w) {
  const Taps first = window_taps(w, 0), last = window_taps(w, w->small - 1);
  return first.begin == first.end || last.begin == last.end || w->dilation > w->large;
}

static bool is_whole(const Window *w) { // all windows have all taps
  const Taps first = window_taps(w, 0), last = window_taps(w, w->small - 1);
  return first.begin == 0 && first.end == w->kernel && last.begin == 0 && last.end == w->kernel;
}

// The number of taps inside of the tensor along an axis, in the window of index o; none: at most 0.
static ExprId count_taps(const Pool *p, int spatial, ExprId o) {
  Kernel *k = p->k;
  const Window *w = &p->windows[spatial];
  if (is_whole(w)) return NUMBER(w->kernel);
  const ExprId first = FMA(NUMBER(w->stride), o, NUMBER(-w->pad_begin)), step = NUMBER(w->dilation);
  const ExprId begin = MAX(NUMBER(0), NEG(FLOOR(DIV(first, step))));
  return SUB(MIN(NUMBER(w->kernel), NEG(FLOOR(DIV(SUB(first, NUMBER(w->large)), step)))), begin);
}

void lower_MaxPool(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Pool p = pool_of(l, node);
  const ExprId lowest = NUMBER(-type_greatest(node->outputs[0]->type));
  ExprId e =
      expr_reduce(k, EXPR_REDUCE_MAXIMUM, load_along(&p, node->inputs[0], along_large, -(double)INFINITY), p.taps);
  for (int i = 0; i < p.nspatial; i++)
    if (p.windows[i].small && may_be_empty(&p.windows[i]))
      e = SELECT(GT(count_taps(&p, i, lower_index(l, p.first + i)), NUMBER(0)), e, lowest);
  lower_result(l, node, 0, e, NULL);
}

// The number by which a window's sum is divided. index: by spatial axis, of the window.
static ExprId divisor_of(const Pool *p, const ExprId *index) {
  Kernel *k = p->k;
  int64_t fixed = 1;
  ExprId counted = 0;
  for (int i = 0; i < p->nspatial; i++) {
    const Window *w = &p->windows[i];
    if (!node_bool(p->node, "exclude_pad") || is_whole(w)) {
      fixed *= w->kernel;
      continue;
    }
    const ExprId count = MAX(NUMBER(1), count_taps(p, i, index[i]));
    counted = counted ? MUL(counted, count) : count;
  }
  return !counted ? NUMBER(fixed) : MUL(counted, NUMBER(fixed));
}

void lower_AvgPool(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Pool p = pool_of(l, node);
  ExprId index[MOST_SPATIAL_AXES];
  for (int i = 0; i < p.nspatial; i++) index[i] = lower_index(l, p.first + i);
  const ExprId sum = expr_sum(k, load_along(&p, node->inputs[0], along_large, 0), p.taps);
  lower_result(l, node, 0, DIV(sum, divisor_of(&p, index)), NULL);
}

// Gradients: the domain is that of the large side. Tap k of window o is element i = o * stride + k * dilation - pad.

typedef struct Gradient {
  ExprId index[MOST_SPATIAL_AXES]; // of the window, by spatial axis; meaningless where there is no such window
  ExprId value;                    // the element of diff_dst; 0 where there is none
} Gradient;

static void along_small(const Pool *p, int spatial, Bound *b) { // with a stride of 1
  const Window *w = &p->windows[spatial];
  b->offset = w->pad_begin;
  b->factor[p->first + spatial] = 1;
  b->factor[lower_extra_axis(p->l, spatial)] = -w->dilation;
}

// i + pad - k * dilation: the window's index times the stride.
static ExprId scaled_index(const Pool *p, int spatial) {
  Kernel *k = p->k;
  const Window *w = &p->windows[spatial];
  return FMA(NUMBER(-w->dilation), tap_of(p, spatial),
             ADD(lower_index(p->l, p->first + spatial), NUMBER(w->pad_begin)));
}

// A constant varies over the axes of a load if others have to.
static ExprId load_at(const Pool *p, const Value *v, const Strides *strides, ExprId offset) {
  if (!v->constant || !v->constant->is_splat) return lower_strided_load(p->l, v, strides, v->shape.rank, offset);
  uint32_t axes = 0;
  for (int i = 0; i < v->shape.rank; i++)
    if (strides->stride[i] && extent_value(v->shape.extent[i]) != 1) axes |= 1U << i;
  return expr_constant_over(p->k, type_load(v->type, v->constant->data, 0),
                            p->l->part.broadcasts_constants ? lower_axes(p->l, axes) : 0);
}

// Windows that are more than an element apart: an element is in those of which the index is an integer.
static Gradient strided_gradient(const Pool *p, const Value *v) {
  Kernel *k = p->k;
  Gradient g;
  ExprId offset = 0;
  Strides strides = strides_of(&v->shape, &v->order);
  for (int i = 0; i < p->nspatial; i++) {
    const Window *w = &p->windows[i];
    const int axis = p->first + i;
    const ExprId o = FLOOR(DIV(scaled_index(p, i), NUMBER(w->stride)));
    g.index[i] = MAX(NUMBER(0), MIN(o, NUMBER(w->small - 1)));
    kernel_close(k, strides.monomial[axis]);
    const ExprId own = MUL(NUMBER(strides.stride[axis]), g.index[i]);
    offset = offset ? ADD(offset, own) : own;
    strides.stride[axis] = 0;
    strides.monomial[axis] = 0;
  }
  g.value = load_at(p, v, &strides, offset);
  for (int i = 0; i < p->nspatial; i++)
    g.value = SELECT(EQ(MUL(g.index[i], NUMBER(p->windows[i].stride)), scaled_index(p, i)), g.value, NUMBER(0));
  return g;
}

static Gradient gradient_of(const Pool *p, const Value *diff_dst) {
  bool is_strided = false;
  for (int i = 0; i < p->nspatial; i++) is_strided |= p->windows[i].stride != 1;
  if (is_strided) return strided_gradient(p, diff_dst);
  Gradient g = {.value = load_along(p, diff_dst, along_small, 0)};
  for (int i = 0; i < p->nspatial; i++) g.index[i] = scaled_index(p, i);
  return g;
}

void lower_AvgPoolBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Pool p = pool_of(l, node);
  const Gradient g = gradient_of(&p, node->inputs[0]);
  const ExprId divisor = divisor_of(&p, g.index);
  const bool is_fixed = !k->out_of_memory && k->exprs[divisor].op == EXPR_CONSTANT;
  const ExprId e = is_fixed ? DIV(expr_sum(k, g.value, p.taps), divisor) : expr_sum(k, DIV(g.value, divisor), p.taps);
  lower_result(l, node, 0, e, NULL);
}

// The winner of a window is the first of its greatest elements in row-major order, or its first NaN.

enum { MOST_RIVALS = 128 }; // taps of a window, each with loads and comparisons of its own

// Element number `rival` of the window of which the current element is the current tap.
typedef struct Rival {
  const Pool *pool;
  int64_t tap[MOST_SPATIAL_AXES];
} Rival;

static ExprId load_rival(const Rival *rival, const Value *v, double outside) {
  const Pool *p = rival->pool;
  int axis[MAX_RANK];
  Bound bounds[MAX_RANK] = {{0}};
  for (int i = 0; i < v->shape.rank; i++) axis[i] = i;
  for (int i = 0; i < p->nspatial; i++) {
    const Window *w = &p->windows[i];
    Bound *b = &bounds[p->first + i];
    axis[p->first + i] = BOUNDED;
    b->offset = w->dilation * rival->tap[i];
    b->factor[p->first + i] = 1;
    b->factor[lower_extra_axis(p->l, i)] = -w->dilation;
  }
  return lower_bounded_load(p->l, v, axis, bounds, outside);
}

// `won`, or 0 if the rival has precedence. Outside of the tensor, `known` is less than all numbers, and comparisons
// with `number`, a NaN there, are false.
static ExprId compete(const Rival *rival, int64_t order, ExprId place, ExprId x, ExprId won) {
  const Pool *p = rival->pool;
  Kernel *k = p->k;
  const Value *src = p->node->inputs[0];
  const ExprId known = load_rival(rival, src, -(double)INFINITY), number = load_rival(rival, src, (double)NAN);
  const ExprId zero = NUMBER(0), is_number = EQ(known, known);
  const ExprId before = SELECT(is_number, SELECT(GE(number, x), zero, won), zero);
  const ExprId after = SELECT(is_number, SELECT(GT(number, x), zero, won), SELECT(EQ(x, x), zero, won));
  return SELECT(GT(place, NUMBER(order)), before, SELECT(GT(NUMBER(order), place), after, won));
}

void lower_MaxPoolBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Pool p = pool_of(l, node);
  const ExprId x = lower_value(l, node->inputs[0]);
  ExprId won = gradient_of(&p, node->inputs[1]).value, place = NUMBER(0);
  Rival rival = {.pool = &p};
  int64_t ntaps = 1;
  for (int i = 0; i < p.nspatial; i++) {
    place = FMA(NUMBER(p.windows[i].kernel), place, tap_of(&p, i));
    ntaps *= p.windows[i].kernel;
  }
  for (int64_t order = 0; order < ntaps && order < MOST_RIVALS; order++) {
    int64_t left = order;
    for (int i = p.nspatial - 1; i >= 0; i--) {
      rival.tap[i] = left % p.windows[i].kernel;
      left /= p.windows[i].kernel;
    }
    won = compete(&rival, order, place, x, won);
  }
  lower_result(l, node, 0, expr_sum(k, won, p.taps), NULL);
}
