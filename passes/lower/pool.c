// Lowers pooling: reductions over the taps of windows. In the padding a load yields the reduction's identity.
#include "passes/lower/formulas.h"
#include "passes/lower/windows.h"

#include <math.h>

typedef struct Pool {
  Windows w;
  Lowering *l;
  Kernel *k; // l's
  const Node *node;
  AxisSet taps;
  ExprId greatest; // the window's greatest element, if winners are found by reductions
} Pool;

static Pool pool_of(Lowering *l, const Node *node) {
  Pool p = {.w = windows_of(l, node), .l = l, .k = l->kernel, .node = node};
  for (int i = 0; i < p.w.nspatial; i++) {
    p.w.place[i] = p.w.first + i;
    p.w.tap[i] = lower_extra_axis(l, i);
    p.taps |= 1U << p.w.tap[i];
  }
  p.w.is_written = node_writes_taps(l->kernel->costs, node, l->part.piece);
  return p;
}

// Reduces `term` over the piece's taps.
static ExprId reduce_taps(Pool *p, ExprOp reduction, ExprId (*term)(const Pool *)) {
  Kernel *k = p->k;
  if (!p->w.is_written)
    return reduction == EXPR_REDUCE_SUM ? expr_sum(k, term(p), p->taps) : expr_reduce(k, reduction, term(p), p->taps);
  ExprId e = NUMBER(reductions[reduction].identity);
  do e = expr_binary(k, reductions[reduction].combine, e, term(p));
  while (windows_next_tap(&p->w));
  return e;
}

static SideAxes own_axes(void) { // each axis is the domain's axis
  SideAxes axes = {.bounds = {{0}}};
  for (int i = 0; i < MAX_RANK; i++) axes.axis[i] = i;
  return axes;
}

static ExprId load_windows(const Pool *p, const Value *v, double outside) {
  SideAxes axes = own_axes();
  return windows_load_large(&p->w, v, &axes, outside);
}

// Whether some window may have no elements: the first or last, or any if taps are farther apart than the tensor is
// long.
static bool may_be_empty(const Pool *p, int spatial) {
  const Window *w = &p->w.window[spatial];
  if (!w->small || windows_are_whole(&p->w, spatial)) return false;
  const Taps first = window_taps(w, 0), last = window_taps(w, w->small - 1);
  return first.begin == first.end || last.begin == last.end || w->dilation > w->large;
}

// The place of the first tap of window o along an axis; may be in the padding.
static ExprId first_place(const Pool *p, int spatial, ExprId o) {
  Kernel *k = p->k;
  return FMA(NUMBER(p->w.window[spatial].stride), o, NUMBER(-p->w.window[spatial].pad_begin));
}

// The first tap of window o that is inside of the tensor along an axis; beyond the last tap if none is.
static ExprId first_tap(const Pool *p, int spatial, ExprId o) {
  Kernel *k = p->k;
  return MAX(NUMBER(0), NEG(FLOOR(DIV(first_place(p, spatial, o), NUMBER(p->w.window[spatial].dilation)))));
}

// The number of taps of window o inside of the tensor along an axis; at most 0 if none is.
static ExprId count_taps(const Pool *p, int spatial, ExprId o) {
  Kernel *k = p->k;
  const Window *w = &p->w.window[spatial];
  const ExprId beyond = SUB(first_place(p, spatial, o), NUMBER(w->large));
  return SUB(MIN(NUMBER(w->kernel), NEG(FLOOR(DIV(beyond, NUMBER(w->dilation))))), first_tap(p, spatial, o));
}

// `e`, or `none` where the window has no taps inside of the tensor.
static ExprId unless_empty(const Pool *p, ExprId e, ExprId none) {
  Kernel *k = p->k;
  for (int i = 0; i < p->w.nspatial; i++)
    if (may_be_empty(p, i)) e = SELECT(GT(count_taps(p, i, lower_index(p->l, p->w.first + i)), NUMBER(0)), e, none);
  return e;
}

static ExprId load_maximum(const Pool *p) {
  return load_windows(p, p->node->inputs[0], -INFINITY);
}

void lower_MaxPool(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Pool p = pool_of(l, node);
  const ExprId lowest = NUMBER(-type_greatest(node->outputs[0]->type));
  ExprId e = lowest;
  if (!windows_have_no_taps(&p.w)) e = unless_empty(&p, reduce_taps(&p, EXPR_REDUCE_MAXIMUM, load_maximum), lowest);
  lower_result(l, node, 0, e, NULL);
}

// Whether all windows have all taps inside of the tensor; for a result on the small side, the windows and taps of the
// piece.
static bool is_whole(const Pool *p, int spatial) {
  const Window *w = &p->w.window[spatial];
  if (p->node->op->outputs[0].side == SIDE_SMALL) return windows_are_whole(&p->w, spatial);
  return window_place(w, 0, 0) >= 0 && window_place(w, w->small - 1, w->kernel - 1) < w->large;
}

// The divisor of a window's sum. `index`: the window's index, by spatial axis.
static ExprId divisor_of(const Pool *p, const ExprId *index) {
  Kernel *k = p->k;
  double fixed = 1; // a double, as kernels far longer than the tensor may exceed an integer
  ExprId counted = 0;
  for (int i = 0; i < p->w.nspatial; i++) {
    const Window *w = &p->w.window[i];
    if (!node_bool(p->node, "exclude_pad") || is_whole(p, i)) {
      const bool counts = node_bool(p->node, "exclude_pad") && p->node->op->outputs[0].side == SIDE_SMALL;
      fixed *= (double)(counts ? p->w.part[i].ntaps : w->kernel);
      continue;
    }
    const ExprId count = MAX(NUMBER(1), count_taps(p, i, index[i]));
    counted = counted ? MUL(counted, count) : count;
  }
  return !counted ? NUMBER(fixed) : MUL(counted, NUMBER(fixed));
}

static ExprId load_summand(const Pool *p) {
  return load_windows(p, p->node->inputs[0], 0);
}

void lower_AvgPool(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Pool p = pool_of(l, node);
  ExprId index[MOST_SPATIAL_AXES] = {0};
  for (int i = 0; i < p.w.nspatial; i++) index[i] = lower_index(l, p.w.first + i);
  const ExprId sum = windows_have_no_taps(&p.w) ? NUMBER(0) : reduce_taps(&p, EXPR_REDUCE_SUM, load_summand);
  lower_result(l, node, 0, DIV(sum, divisor_of(&p, index)), NULL);
}

// Gradients. The domain is the large side's.

typedef struct Gradient {
  ExprId index[MOST_SPATIAL_AXES]; // the window's index, by spatial axis; meaningless where there is no window
  ExprId value;                    // the window's element of diff_dst; 0 where there is no window
} Gradient;

static Gradient gradient_of(const Pool *p, const Value *diff_dst) {
  Gradient g = {.value = 0};
  SideAxes axes = own_axes();
  g.value = windows_load_small(&p->w, diff_dst, &axes, g.index);
  return g;
}

// The window's element of diff_dst, divided by its number of taps; undivided if the number is a constant.
static ExprId load_quotient(const Pool *p) {
  Kernel *k = p->k;
  const Gradient g = gradient_of(p, p->node->inputs[0]);
  const ExprId divisor = divisor_of(p, g.index);
  const bool is_fixed = !k->out_of_memory && k->exprs[divisor].op == EXPR_CONSTANT;
  return windows_select(&p->w, is_fixed ? g.value : DIV(g.value, divisor));
}

void lower_AvgPoolBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Pool p = pool_of(l, node);
  ExprId e = NUMBER(0);
  if (!windows_have_no_taps(&p.w)) {
    const ExprId divisor = divisor_of(&p, gradient_of(&p, node->inputs[0]).index);
    e = reduce_taps(&p, EXPR_REDUCE_SUM, load_quotient);
    if (!k->out_of_memory && k->exprs[divisor].op == EXPR_CONSTANT) e = DIV(e, divisor);
  }
  lower_result(l, node, 0, e, NULL);
}

// The winner of a window is the first of its greatest elements in row-major order, or its first NaN.

static int64_t count_taps_of(const Pool *p) {
  int64_t ntaps = 1;
  for (int i = 0; i < p->w.nspatial; i++) ntaps *= p->w.window[i].kernel;
  return ntaps;
}

// A tap of the current window that is compared with the taps before, with an expression of its own.
typedef struct Rival {
  const Pool *pool;
  int64_t order; // the tap's number in row-major order
  int64_t tap[MOST_SPATIAL_AXES];
} Rival;

// False: the kernel's piece does not have the tap.
static bool set_rival(Rival *rival, int64_t order) {
  const Windows *w = &rival->pool->w;
  bool is_there = true;
  rival->order = order;
  for (int i = w->nspatial - 1; i >= 0; i--) {
    const PieceAxis *part = &w->part[i];
    const int64_t tap = rival->tap[i] = order % w->window[i].kernel;
    order /= w->window[i].kernel;
    is_there &= tap >= part->first_tap && tap < part->first_tap + part->ntaps;
  }
  return is_there;
}

// The rival's element; in the padding, a number that never wins.
static ExprId load_rival(const Rival *rival) {
  const Windows *w = &rival->pool->w;
  SideAxes axes = own_axes();
  for (int i = 0; i < w->nspatial; i++) {
    Bound *b = &axes.bounds[w->first + i];
    axes.axis[w->first + i] = BOUNDED;
    b->offset = window_place(&w->window[i], w->part[i].begin, rival->tap[i]);
    b->factor[w->place[i]] = w->window[i].stride;
  }
  return lower_bounded_load(w->l, rival->pool->node->inputs[0], axes.axis, axes.bounds, -(double)INFINITY, 0);
}

typedef struct Lead { // among the taps so far
  ExprId greatest, winner;
} Lead;

// The rival wins if it is greater, or the first NaN.
static Lead compete(const Rival *rival, Lead lead) {
  Kernel *k = rival->pool->k;
  const ExprId x = load_rival(rival), order = NUMBER(rival->order);
  const ExprId is_number = EQ(lead.greatest, lead.greatest), keeps = GE(lead.greatest, x);
  return (Lead){SELECT(is_number, SELECT(keeps, lead.greatest, x), lead.greatest),
                SELECT(is_number, SELECT(keeps, lead.winner, order), lead.winner)};
}

// The number of the window's first tap inside of the tensor, which wins if no element is above -inf.
static ExprId first_number(const Pool *p) {
  Kernel *k = p->k;
  ExprId order = NUMBER(0);
  for (int i = 0; i < p->w.nspatial; i++) {
    const bool is_known = windows_are_whole(&p->w, i);
    const ExprId tap = is_known ? NUMBER(p->w.part[i].first_tap) : first_tap(p, i, lower_index(p->l, p->w.first + i));
    order = FMA(NUMBER(p->w.window[i].kernel), order, tap);
  }
  return order;
}

// The number of the current tap, in row-major order.
static ExprId tap_number(const Pool *p) {
  Kernel *k = p->k;
  ExprId order = windows_tap(&p->w, 0);
  for (int i = 1; i < p->w.nspatial; i++) order = FMA(NUMBER(p->w.window[i].kernel), order, windows_tap(&p->w, i));
  return order;
}

// The negated number of the tap if its element equals the window's greatest, or both are NaN; else -inf. Elements in
// the padding never match: they are NaN if the greatest is a number, and a number if the greatest is NaN.
static ExprId load_candidate(const Pool *p) {
  Kernel *k = p->k;
  const Value *src = p->node->inputs[0];
  const ExprId own = NEG(tap_number(p)), none = NUMBER(-INFINITY), greatest = p->greatest;
  const ExprId x = load_windows(p, src, (double)NAN), number = load_windows(p, src, 0);
  return SELECT(EQ(greatest, greatest), SELECT(EQ(x, greatest), own, none), SELECT(EQ(number, number), none, own));
}

// For many taps, two reductions: the greatest element, unless it is an input, then the first tap that has it.
static void lower_many_taps(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Pool p = pool_of(l, node);
  ExprId first = NUMBER(count_taps_of(&p));
  if (!windows_have_no_taps(&p.w)) {
    const Value *given = node->inputs[1];
    p.greatest = given ? lower_value(l, given) : reduce_taps(&p, EXPR_REDUCE_MAXIMUM, load_maximum);
    first = MIN(NEG(reduce_taps(&p, EXPR_REDUCE_MAXIMUM, load_candidate)), first);
  }
  lower_result(l, node, 0, first, NULL);
}

void lower_MaxPoolWinners(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  if (!node_has_few_taps(node)) {
    lower_many_taps(l, node);
    return;
  }
  Pool p = {.w = windows_of(l, node), .l = l, .k = k, .node = node};
  const int64_t ntaps = count_taps_of(&p);
  bool are_whole = true;
  for (int i = 0; i < p.w.nspatial; i++) {
    p.w.place[i] = p.w.first + i;
    are_whole &= windows_are_whole(&p.w, i);
  }
  Rival rival = {.pool = &p};
  Lead lead = {0};
  if (!are_whole) lead = (Lead){NUMBER(-INFINITY), first_number(&p)};
  for (int64_t order = 0; order < ntaps; order++)
    if (set_rival(&rival, order))
      lead = lead.winner ? compete(&rival, lead) : (Lead){load_rival(&rival), NUMBER(order)};
  lower_result(l, node, 0, are_whole ? lead.winner : unless_empty(&p, lead.winner, NUMBER(ntaps)), NULL);
}

static ExprId load_won(const Pool *p) {
  Kernel *k = p->k;
  const ExprId order = tap_number(p);
  const ExprId winner = gradient_of(p, p->node->inputs[0]).value, own = gradient_of(p, p->node->inputs[1]).value;
  return windows_select(&p->w, SELECT(EQ(winner, order), own, NUMBER(0)));
}

void lower_MaxPoolScatter(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Pool p = pool_of(l, node);
  lower_result(l, node, 0, windows_have_no_taps(&p.w) ? NUMBER(0) : reduce_taps(&p, EXPR_REDUCE_SUM, load_won), NULL);
}

// The element at the current tap if it is the winner, else 0.
static ExprId load_winner(const Pool *p) {
  Kernel *k = p->k;
  const ExprId winner = lower_value(p->l, p->node->inputs[0]);
  return SELECT(EQ(winner, tap_number(p)), load_windows(p, p->node->inputs[1], 0), NUMBER(0));
}

void lower_MaxPoolGather(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  Pool p = pool_of(l, node);
  lower_result(l, node, 0, windows_have_no_taps(&p.w) ? NUMBER(0) : reduce_taps(&p, EXPR_REDUCE_SUM, load_winner),
               NULL);
}

void lower_MaxPoolBackward(Lowering *l, const Node *node) {
  (void)node; // pass `max-pool-gradients` has replaced the node
  l->kernel->unsupported = "it is computed as MaxPoolWinners and MaxPoolScatter";
}
