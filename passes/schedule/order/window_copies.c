// Copies factors that products read through windows. The kernel gets a new axis for each window, over all indices that
// the window reaches. The copy has this axis and contains the padding, so that products load its elements without
// conditions, and it is dense along the axis that the products need. The factor is a load, or is computed from several
// loads through the same windows.
#include "passes/schedule/order/scheduling.h"

#include <string.h>

// The range of indices that the window reaches: the indices that a copy has.
static void find_reach(const Kernel *k, const Bound *b, int64_t *least, int64_t *most) {
  const bool has_reach = b->reach_begin < b->reach_end;
  bound_range(k, b, least, most);
  if (has_reach && b->reach_begin < *least) *least = b->reach_begin;
  if (has_reach && b->reach_end > *most) *most = b->reach_end - 1;
}

// Whether a summed axis goes backwards along the window, as in gradients by data. Then the copy is reversed, so that
// the products read it forwards. A window along which vectors go forwards is never reversed.
static bool is_backwards(const Kernel *k, const Bound *b, AxisSet summed, int vector_axis) {
  for (int axis = 0; axis < k->naxes && b->factor[vector_axis] <= 0; axis++)
    if (summed >> axis & 1 && b->factor[axis] < 0) return true;
  return false;
}

// The windows through which a factor is read.
typedef struct Windows {
  Bound bounds[MAX_RANK]; // each window once, with the strides of one of the loads
  size_t count;
  AxisSet axes;  // of the bounds
  bool *is_used; // by ExprId: the factor is computed from it
} Windows;

static bool is_same_window(const Bound *a, const Bound *b) {
  return a->offset == b->offset && a->extent == b->extent && memcmp(a->factor, b->factor, sizeof a->factor) == 0;
}

// The index of the window that equals the bound; -1: none does.
static int window_of(const Windows *w, const Bound *b) {
  for (size_t i = 0; i < w->count; i++)
    if (is_same_window(&w->bounds[i], b)) return (int)i;
  return -1;
}

// Collects the windows. False: two windows have an axis in common, or out of memory.
static bool find_windows(const Kernel *k, ExprId factor, Windows *w) {
  // The cast is valid: the flag out_of_memory is not a part of the computation.
  *w = (Windows){.is_used = KERNEL_ARRAY((Kernel *)k, bool, k->nexprs)};
  if (!w->is_used) return false;
  w->is_used[factor] = true;
  for (ExprId id = factor; id > 0; id--) {
    const Expr *e = &k->exprs[id];
    if (!w->is_used[id]) continue;
    for (int a = 0; a < 3; a++) w->is_used[e->args[a]] = true;
    const Access *a = e->op == EXPR_LOAD ? &k->accesses[e->access] : NULL;
    for (size_t i = 0; a && i < a->nbounds; i++) {
      if (a->bounds[i].stride_monomial) return false;
      if (window_of(w, &a->bounds[i]) >= 0) continue;
      if (w->count == MAX_RANK || bound_axes(&a->bounds[i]) & w->axes) return false;
      w->bounds[w->count++] = a->bounds[i];
      w->axes |= bound_axes(&a->bounds[i]);
    }
  }
  w->is_used[0] = false;
  return true;
}

// The window whose index the expression computes; -1: none.
static int window_of_index(const Kernel *k, const Windows *w, ExprId id) {
  Bound b;
  if (!bound_of_index(k, id, &b)) return -1;
  for (size_t i = 0; i < w->count; i++) {
    b.extent = w->bounds[i].extent;
    if (is_same_window(&w->bounds[i], &b)) return (int)i;
  }
  return -1;
}

// Whether each axis of a window over which the access varies is an axis of one of its bounds.
static bool is_through_windows(const Kernel *k, const Windows *w, const Access *a) {
  AxisSet axes = access_axes(k, a) & w->axes;
  for (size_t i = 0; i < a->nbounds; i++) axes &= ~bound_axes(&a->bounds[i]);
  return !axes;
}

// Whether the expression can be computed along the copy's axes if its operands can.
static bool is_movable(const Kernel *k, const Windows *w, ExprId id) {
  const Expr *e = &k->exprs[id];
  if (!(e->axes & w->axes) || window_of_index(k, w, id) >= 0) return true;
  if (e->op == EXPR_LOAD) return is_through_windows(k, w, &k->accesses[e->access]);
  return e->args[0] && e->op != EXPR_IS_KEPT && !expr_is_reduction(e);
}

// Whether the factor can be computed along the copy's axes: all its expressions can, except operands of windows'
// indices, which are not needed there. Sets is_used to the expressions that are needed.
static bool are_movable(const Kernel *k, Windows *w, ExprId factor) {
  bool *is_needed = ARENA_ARRAY(k->arena, bool, k->nexprs);
  if (!is_needed) return false;
  is_needed[factor] = true;
  for (ExprId id = factor; id > 0; id--) {
    const Expr *e = &k->exprs[id];
    if (!is_needed[id]) continue;
    if (!is_movable(k, w, id)) return false;
    for (int a = 0; a < 3 && e->axes & w->axes && window_of_index(k, w, id) < 0; a++) is_needed[e->args[a]] = true;
  }
  is_needed[0] = false;
  w->is_used = is_needed;
  return true;
}

bool schedule_reads_windows(const Kernel *k, ExprId id) {
  Windows w;
  return !find_windows(k, id, &w) || w.count;
}

typedef struct Copy {
  Windows w;
  Access to, use; // the copy's accesses: along its own axes (to), along the products' axes (use)
  Bound use_bounds[MAX_RANK];
  int axes[MAX_AXES], n;                   // the copy's axes, outermost first
  int axis_of[MAX_RANK];                   // by window: the copy's axis
  int64_t first[MAX_RANK], step[MAX_RANK]; // by window: index i on the copy's axis is index first + i * step of it
} Copy;

// Adds an axis to the kernel for the window.
static void add_window_axis(Kernel *k, AxisSet summed, int vector_axis, Copy *c, size_t i) {
  static const char *const names[MAX_RANK] = {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"};
  const Bound *b = &c->w.bounds[i];
  int64_t least, most;
  find_reach(k, b, &least, &most);
  const bool reverses = is_backwards(k, b, summed, vector_axis);
  const int64_t step = c->step[i] = reverses ? -1 : 1, first = c->first[i] = reverses ? most : least;
  c->axis_of[i] = kernel_add_axis(k, names[i], most - least + 1, 0);
  if (k->out_of_memory) return;
  Bound *use = &c->use_bounds[i];
  *use = (Bound){.offset = (b->offset - first) * step, .extent = most - least + 1};
  for (int on = 0; on < k->naxes; on++) use->factor[on] = b->factor[on] * step;
  c->axes[c->n++] = c->axis_of[i];
}

static void add_axes(Copy *c, AxisSet axes) {
  for (; axes; axes &= axes - 1) c->axes[c->n++] = __builtin_ctz(axes);
}

// Chooses the layout of the copy, and adds its axes for windows to the kernel. If vectors lie along a window, its axis
// is the last, and summed axes come just before it: then the elements that a row of results needs are contiguous.
static void lay_out_axes(Kernel *k, const Product *p, AxisSet axes, int last, Copy *c) {
  const AxisSet summed = k->exprs[p->sum].reduced, vectors = last >= 0 ? 1U << last : 0;
  AxisSet behind = 0;
  for (int axis = 0; axis < k->naxes; axis++)
    if (vectors & c->w.axes && (axes & summed) >> axis & 1 && !k->axes[axis].monomial) behind |= 1U << axis;
  add_axes(c, axes & ~behind & ~vectors);
  for (size_t i = 0; i < c->w.count && !k->out_of_memory; i++)
    if (!(bound_axes(&c->w.bounds[i]) & vectors)) add_window_axis(k, summed, p->vector_axis, c, i);
  add_axes(c, behind);
  for (size_t i = 0; i < c->w.count && !k->out_of_memory; i++)
    if (bound_axes(&c->w.bounds[i]) & vectors) add_window_axis(k, summed, p->vector_axis, c, i);
  add_axes(c, axes & vectors);
}

// Sets the strides of the dense copy, along its own axes and along the products' axes. Returns its number of elements.
static int64_t lay_out(const Kernel *k, Copy *c) {
  int64_t next = 1;
  for (int i = c->n - 1; i >= 0; i--) {
    c->to.stride[c->axes[i]] = next;
    next *= k->axes[c->axes[i]].extent;
  }
  for (int axis = 0; axis < k->naxes; axis++) c->use.stride[axis] = c->to.stride[axis];
  for (size_t i = 0; i < c->w.count; i++) {
    const int64_t stride = c->use_bounds[i].stride = c->to.stride[c->axis_of[i]];
    c->use.stride[c->axis_of[i]] = 0;
    c->use.offset += stride * c->use_bounds[i].offset;
    for (int axis = 0; axis < k->naxes; axis++)
      if (c->use_bounds[i].factor[axis]) c->use.stride[axis] = stride * c->use_bounds[i].factor[axis];
  }
  return next;
}

// The load through windows as a load along the copy's axes.
static ExprId move_load(Kernel *k, const Copy *c, const Expr *e, ExprId offset) {
  Bound bounds[MAX_RANK];
  Access a = k->accesses[e->access];
  for (size_t i = 0; i < a.nbounds; i++) {
    const Bound *own = &k->accesses[e->access].bounds[i];
    const int n = window_of(&c->w, own), axis = c->axis_of[n];
    for (int on = 0; on < k->naxes; on++)
      if (own->factor[on]) a.stride[on] = 0;
    bounds[i] = (Bound){.offset = c->first[n], .extent = own->extent, .stride = own->stride};
    bounds[i].factor[axis] = c->step[n];
    a.offset += own->stride * (c->first[n] - own->offset);
    a.stride[axis] = own->stride * c->step[n];
  }
  a.bounds = bounds;
  const AccessId access = kernel_add_access(k, &a);
  return offset ? expr_load_at(k, access, offset) : expr_load(k, access);
}

// The factor as the copy computes it: with the copy's axes instead of the windows' axes.
static ExprId move_factor(Kernel *k, const Copy *c, ExprId factor) {
  const Windows *w = &c->w;
  ExprId *moved = KERNEL_ARRAY(k, ExprId, factor + 1);
  for (ExprId id = 1; id <= factor && !k->out_of_memory; id++) {
    const Expr e = k->exprs[id];
    if (!w->is_used[id]) continue;
    const int n = e.axes & w->axes ? window_of_index(k, w, id) : -1;
    moved[id] = id;
    if (!(e.axes & w->axes)) continue;
    const ExprId args[3] = {moved[e.args[0]], moved[e.args[1]], moved[e.args[2]]};
    if (n >= 0)
      moved[id] = expr_fma(k, expr_constant(k, (double)c->step[n]), expr_index(k, c->axis_of[n]),
                           expr_constant(k, (double)c->first[n]));
    else if (e.op == EXPR_LOAD) moved[id] = move_load(k, c, &e, args[0]);
    else moved[id] = expr_with_arguments(k, &e, args);
    expr_label(k, moved[id], e.label);
  }
  return k->out_of_memory ? 0 : moved[factor];
}

// Whether the factor loads a tensor with stride 1 along the axis.
static bool loads_along(const Kernel *k, const Windows *w, ExprId factor, int axis) {
  for (ExprId id = 1; id <= factor; id++)
    if (w->is_used[id] && k->exprs[id].op == EXPR_LOAD && k->accesses[k->exprs[id].access].stride[axis] == 1)
      return true;
  return false;
}

// Whether the axis steps by 1 in each window that it is an axis of.
static bool is_step_of_one(const Windows *w, int axis) {
  for (size_t i = 0; i < w->count; i++)
    if (w->bounds[i].factor[axis] && w->bounds[i].factor[axis] != 1) return false;
  return true;
}

// The axis along which the copy is dense; -1: none. For the factor of vectors, the vector axis. For the factor of rows,
// the axis outside of windows along which its tensors are dense. If its tensors are dense along a summed axis of a
// window, none. Otherwise the longest summed axis outside of windows, if it has at least LANES indices.
static int find_dense_axis(const Kernel *k, const Product *p, ExprId id, const Windows *w) {
  const AxisSet others = k->exprs[id].axes & ~w->axes, summed = k->exprs[p->sum].reduced;
  int best = -1;
  if (id == p->vector) return is_step_of_one(w, p->vector_axis) ? p->vector_axis : -1;
  for (int axis = k->naxes - 1; axis >= 0; axis--) {
    if (!loads_along(k, w, id, axis) || k->axes[axis].monomial) continue;
    if (others >> axis & 1) return axis;
    if (summed >> axis & 1) return -1;
  }
  for (int axis = k->naxes - 1; axis >= 0; axis--)
    if ((others & summed) >> axis & 1 && !k->axes[axis].monomial &&
        k->axes[axis].extent > (best < 0 ? LANES - 1 : k->axes[best].extent))
      best = axis;
  return best;
}

// Whether the factor needs a copy: it is computed, or the load has conditions, is not dense, or has another type than
// f32 and f64.
static bool needs_copy(const Kernel *k, const Expr *e, int dense_axis) {
  const Access *a = &k->accesses[e->access];
  if (e->op != EXPR_LOAD) return true;
  return access_has_conditions(k, a) || (dense_axis >= 0 && a->stride[dense_axis] != 1) ||
         (a->type != TYPE_F32 && a->type != TYPE_F64);
}

// Whether padding and gaps make a copy much larger than all tensors of the kernel.
static bool is_too_large(const Kernel *k, const Expr *factor, const Windows *w) {
  const int64_t times = k->costs->window_copy_times;
  int64_t nelems = axes_nelems(k, factor->axes & ~w->axes), largest = k->costs->window_copy / times;
  for (AccessId i = 0; i < k->naccesses; i++) {
    const int64_t own = k->accesses[i].value ? shape_nelems(&k->accesses[i].value->shape) : 0;
    if (own > largest) largest = own;
  }
  for (size_t i = 0; i < w->count; i++) {
    int64_t least, most;
    find_reach(k, &w->bounds[i], &least, &most);
    if (nelems > times * largest / (most - least + 1)) return true;
    nelems *= most - least + 1;
  }
  return false;
}

bool schedule_copies_window(const Kernel *k, const Product *p, ExprId id) {
  const Expr *e = &k->exprs[id];
  Windows w;
  int first = 0;
  if (!p->copies_windows || (e->op == EXPR_LOAD && p->in_place)) return false;
  if (e->op == EXPR_LOAD && (e->args[0] || !k->accesses[e->access].value)) return false;
  if (!find_windows(k, id, &w) || !w.count || k->naxes + (int)w.count > MAX_AXES || !are_movable(k, &w, id))
    return false;
  const int last = find_dense_axis(k, p, id, &w);
  while (first < k->naxes && !(e->axes >> first & 1)) first++;
  for (int axis = 0; axis < k->naxes; axis++) // only the outermost axis may be open, and never a window's
    if (e->axes >> axis & 1 && (axis != first || axis == last) && k->axes[axis].monomial) return false;
  if (id == p->vector && last < 0) return false;
  return needs_copy(k, e, last) && !is_too_large(k, e, &w);
}

bool schedule_copy_windows(Scheduling *s) {
  s->product.copies_windows = true;
  s->product.in_place = s->overrides->for_size;
  return true;
}

bool schedule_copy_window(Scheduling *s, ExprId id) {
  Kernel *k = s->k;
  const Expr e = k->exprs[id];
  Copy c = {.n = 0};
  if (!find_windows(k, id, &c.w) || !are_movable(k, &c.w, id)) {
    k->out_of_memory = true; // schedule_copies_window found both to be true
    return false;
  }
  const int last = find_dense_axis(k, &s->product, id, &c.w);
  lay_out_axes(k, &s->product, e.axes & ~c.w.axes, last, &c);
  if (k->out_of_memory) return false;
  const int64_t nelems = lay_out(k, &c);
  c.use.bounds = c.use_bounds;
  c.use.nbounds = c.w.count;
  c.to.type = c.use.type = kernel_type(k);
  c.to.temporary = c.use.temporary =
      schedule_add_temporary(s->schedule, e.label ? e.label : "window", c.to.type, nelems);
  if (k->out_of_memory) return false;
  s->schedule->temporaries[c.to.temporary].monomial = k->axes[c.axes[0]].monomial;
  s->plan[id].copied = expr_label(k, move_factor(k, &c, id), e.label);
  s->plan[id].copy = kernel_add_access(k, &c.to);
  s->plan[id].materialised = kernel_add_access(k, &c.use);
  s->plan[id].is_materialised = true;
  return !k->out_of_memory;
}
