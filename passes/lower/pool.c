// Lowering of pooling: reductions over the taps of windows. Padding is outside of the tensor, where a load yields what
// changes nothing.
#include "passes/lower/windows.h"

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
  Windows w;
  Lowering *l;
  Kernel *k; // l's
  const Node *node;
  AxisSet taps;
} Pool;

static Pool pool_of(Lowering *l, const Node *node) {
  Pool p = {.w = windows_of(l, node), .l = l, .k = l->kernel, .node = node};
  for (int i = 0; i < p.w.nspatial; i++) {
    p.w.place[i] = p.w.first + i;
    p.w.tap[i] = lower_extra_axis(l, i);
    p.taps |= 1U << p.w.tap[i];
  }
  return p;
}

static SideAxes own_axes(void) { // each axis along the domain's
  SideAxes axes = {.bounds = {{0}}};
  for (int i = 0; i < MAX_RANK; i++) axes.axis[i] = i;
  return axes;
}

static ExprId load_windows(const Pool *p, const Value *v, double outside) {
  SideAxes axes = own_axes();
  return windows_load_large(&p->w, v, &axes, outside);
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
  const Window *w = &p->w.window[spatial];
  if (is_whole(w)) return NUMBER(w->kernel);
  const ExprId first = FMA(NUMBER(w->stride), o, NUMBER(-w->pad_begin)), step = NUMBER(w->dilation);
  const ExprId begin = MAX(NUMBER(0), NEG(FLOOR(DIV(first, step))));
  return SUB(MIN(NUMBER(w->kernel), NEG(FLOOR(DIV(SUB(first, NUMBER(w->large)), step)))), begin);
}

void lower_MaxPool(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Pool p = pool_of(l, node);
  const ExprId lowest = NUMBER(-type_greatest(node->outputs[0]->type));
  ExprId e = expr_reduce(k, EXPR_REDUCE_MAXIMUM, load_windows(&p, node->inputs[0], -(double)INFINITY), p.taps);
  for (int i = 0; i < p.w.nspatial; i++)
    if (p.w.window[i].small && may_be_empty(&p.w.window[i]))
      e = SELECT(GT(count_taps(&p, i, lower_index(l, p.w.first + i)), NUMBER(0)), e, lowest);
  lower_result(l, node, 0, e, NULL);
}

// The number by which a window's sum is divided. index: by spatial axis, of the window.
static ExprId divisor_of(const Pool *p, const ExprId *index) {
  Kernel *k = p->k;
  int64_t fixed = 1;
  ExprId counted = 0;
  for (int i = 0; i < p->w.nspatial; i++) {
    const Window *w = &p->w.window[i];
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
  for (int i = 0; i < p.w.nspatial; i++) index[i] = lower_index(l, p.w.first + i);
  const ExprId sum = expr_sum(k, load_windows(&p, node->inputs[0], 0), p.taps);
  lower_result(l, node, 0, DIV(sum, divisor_of(&p, index)), NULL);
}

// Gradients: the domain is that of the large side.

typedef struct Gradient {
  ExprId index[MOST_SPATIAL_AXES]; // of the window, by spatial axis; meaningless where there is no such window
  ExprId value;                    // the element of diff_dst; 0 where there is none
} Gradient;

static Gradient gradient_of(const Pool *p, const Value *diff_dst) {
  Gradient g = {.value = expr_constant(p->k, 0)};
  SideAxes axes = own_axes();
  if (windows_have_no_taps(&p->w)) return g;
  g.value = windows_load_small(&p->w, diff_dst, &axes, g.index);
  return g;
}

void lower_AvgPoolBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Pool p = pool_of(l, node);
  const Gradient g = gradient_of(&p, node->inputs[0]);
  if (windows_have_no_taps(&p.w)) {
    lower_result(l, node, 0, g.value, NULL);
    return;
  }
  const ExprId divisor = divisor_of(&p, g.index);
  const bool is_fixed = !k->out_of_memory && k->exprs[divisor].op == EXPR_CONSTANT;
  const ExprId own = windows_select(&p.w, is_fixed ? g.value : DIV(g.value, divisor));
  const ExprId sum = expr_sum(k, own, p.taps), e = is_fixed ? DIV(sum, divisor) : sum;
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
  const Windows *w = &rival->pool->w;
  SideAxes axes = own_axes();
  for (int i = 0; i < w->nspatial; i++) {
    const int64_t dilation = w->window[i].dilation;
    const PieceAxis *part = &w->part[i];
    Bound *b = &axes.bounds[w->first + i];
    axes.axis[w->first + i] = BOUNDED;
    b->offset = part->begin + dilation * (rival->tap[i] - part->first_tap);
    b->factor[w->place[i]] = part->step;
    b->factor[w->tap[i]] = -dilation * part->tap_step;
  }
  return lower_bounded_load(w->l, v, axes.axis, axes.bounds, outside, 0);
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
  if (windows_have_no_taps(&p.w)) {
    lower_result(l, node, 0, won, NULL);
    return;
  }
  Rival rival = {.pool = &p};
  int64_t ntaps = 1;
  for (int i = 0; i < p.w.nspatial; i++) {
    place = FMA(NUMBER(p.w.window[i].kernel), place, windows_tap(&p.w, i));
    ntaps *= p.w.window[i].kernel;
  }
  if (ntaps > MOST_RIVALS) k->unsupported = "its gradient is computed for kernels of at most 128 elements";
  for (int64_t order = 0; order < ntaps && !k->unsupported; order++) {
    int64_t left = order;
    for (int i = p.w.nspatial - 1; i >= 0; i--) {
      rival.tap[i] = left % p.w.window[i].kernel;
      left /= p.w.window[i].kernel;
    }
    won = compete(&rival, order, place, x, won);
  }
  lower_result(l, node, 0, expr_sum(k, windows_select(&p.w, won), p.taps), NULL);
}
