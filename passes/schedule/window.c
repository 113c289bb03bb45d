// Copies of tensors that products read through windows. A copy has an axis of the kernel for each window, over all
// indices that occur, so that the padding is in it: its elements need no conditions, and lie densely along the axis
// that the products need.
#include "passes/schedule/scheduling.h"

static int64_t least_index(const Kernel *k, const Bound *b, bool is_most) {
  int64_t index = b->offset;
  for (int axis = 0; axis < k->naxes; axis++) {
    const int64_t reach = b->factor[axis] * (k->axes[axis].extent - 1);
    if (is_most ? reach > 0 : reach < 0) index += reach;
  }
  return index;
}

// Whether the summed axis goes backwards along the window, as in gradients by data: then the copy does, too, so that
// the products go forwards.
static bool is_backwards(const Kernel *k, const Bound *b, AxisSet summed) {
  for (int axis = 0; axis < k->naxes; axis++)
    if (summed >> axis & 1 && b->factor[axis] < 0) return true;
  return false;
}

typedef struct Copy {
  Access from, to, use; // the tensor and the copy, along the copy's axes; the copy, along those of the products
  Bound from_bounds[MAX_RANK], use_bounds[MAX_RANK];
  int order[MAX_AXES], n; // the copy's axes, slowest first
  int place[MAX_RANK];    // by bound: the copy's axis
} Copy;

// Adds an axis to the kernel for each bound of the access.
static void add_places(Kernel *k, const Access *a, AxisSet summed, Copy *c) {
  static const char *const names[MAX_RANK] = {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"};
  for (size_t i = 0; i < a->nbounds; i++) {
    const Bound *b = &a->bounds[i];
    const int64_t least = least_index(k, b, false), most = least_index(k, b, true);
    const bool reverses = is_backwards(k, b, summed);
    const int64_t step = reverses ? -1 : 1, first = reverses ? most : least;
    const int axis = c->place[i] = kernel_add_axis(k, names[i], most - least + 1, 0);
    if (k->out_of_memory) return;
    Bound *from = &c->from_bounds[i], *use = &c->use_bounds[i];
    *from = (Bound){.offset = first, .extent = b->extent, .stride = b->stride};
    from->factor[axis] = step;
    c->from.offset += b->stride * (first - b->offset);
    c->from.stride[axis] = b->stride * step;
    *use = (Bound){.offset = (b->offset - first) * step, .extent = most - least + 1};
    for (int on = 0; on < k->naxes; on++) use->factor[on] = b->factor[on] * step;
    c->order[c->n++] = axis;
  }
}

// Lays the copy out densely, and finds the strides with which the products go through it.
static int64_t lay_out(const Kernel *k, const Access *a, Copy *c) {
  int64_t next = 1;
  for (int i = c->n - 1; i >= 0; i--) {
    c->to.stride[c->order[i]] = next;
    next *= k->axes[c->order[i]].extent;
  }
  for (int axis = 0; axis < k->naxes; axis++) c->use.stride[axis] = c->to.stride[axis];
  for (size_t i = 0; i < a->nbounds; i++) {
    const int64_t stride = c->use_bounds[i].stride = c->to.stride[c->place[i]];
    c->use.stride[c->place[i]] = 0;
    c->use.offset += stride * c->use_bounds[i].offset;
    for (int axis = 0; axis < k->naxes; axis++)
      if (c->use_bounds[i].factor[axis]) c->use.stride[axis] = stride * c->use_bounds[i].factor[axis];
  }
  return next;
}

static AxisSet window_axes(const Access *a) {
  AxisSet axes = 0;
  for (size_t i = 0; i < a->nbounds; i++) axes |= bound_axes(&a->bounds[i]);
  return axes;
}

// The axis along which the copy is dense, apart from the windows': that of the vectors. For rows it is the tensor's own
// dense axis; if that is one of summed windows, none; else the one with most elements, preferably a summed one. -1:
// there is none.
static int find_dense_axis(const Kernel *k, const Product *p, ExprId id) {
  const Access *a = &k->accesses[k->exprs[id].access];
  const AxisSet others = access_axes(k, a) & ~window_axes(a), summed = k->exprs[p->sum].reduced;
  int best = -1;
  if (id == p->vector) return others >> p->vector_axis & 1 ? p->vector_axis : -1;
  for (int axis = k->naxes - 1; axis >= 0; axis--) {
    if (a->stride[axis] != 1 || k->axes[axis].monomial) continue;
    if (others >> axis & 1) return axis;
    if (summed >> axis & 1) return -1;
  }
  for (int axis = k->naxes - 1; axis >= 0; axis--) {
    if (!(others >> axis & 1) || k->axes[axis].monomial) continue;
    const bool is_summed = summed >> axis & 1, is_best_summed = best >= 0 && summed >> best & 1;
    if (best < 0 || is_summed > is_best_summed ||
        (is_summed == is_best_summed && k->axes[axis].extent > k->axes[best].extent))
      best = axis;
  }
  return best;
}

bool schedule_copies_window(const Kernel *k, const Product *p, ExprId id) {
  const Expr *e = &k->exprs[id];
  if (e->op != EXPR_LOAD || e->args[0]) return false;
  const Access *a = &k->accesses[e->access];
  const int last = find_dense_axis(k, p, id);
  int first = 0;
  if (!a->nbounds || !a->value || k->naxes + (int)a->nbounds > MAX_AXES) return false;
  while (first < k->naxes && !(e->axes >> first & 1)) first++;
  for (int axis = 0; axis < k->naxes; axis++)
    if (e->axes >> axis & 1 && axis != first && k->axes[axis].monomial) return false;
  if (id == p->vector && last < 0) return false;
  for (size_t i = 0; i < a->nbounds; i++)
    if (a->bounds[i].factor[first] && k->axes[first].monomial) return false;
  return access_has_conditions(k, a) || (last >= 0 && a->stride[last] != 1) ||
         (a->type != TYPE_F32 && a->type != TYPE_F64);
}

bool schedule_copy_window(Scheduling *s, ExprId id) {
  Kernel *k = s->k;
  const Expr e = k->exprs[id];
  const Access a = k->accesses[e.access];
  const AxisSet summed = k->exprs[s->product.sum].reduced;
  const int last = find_dense_axis(k, &s->product, id);
  Copy c = {.from = {.value = a.value, .type = a.type, .offset = a.offset, .outside = a.outside}};
  const AxisSet others = access_axes(k, &a) & ~window_axes(&a);
  for (int axis = 0; axis < k->naxes; axis++) {
    if (!(others >> axis & 1)) continue;
    c.from.stride[axis] = a.stride[axis];
    c.from.stride_monomial[axis] = a.stride_monomial[axis];
    if (axis != last) c.order[c.n++] = axis;
  }
  add_places(k, &a, summed, &c);
  if (last >= 0) c.order[c.n++] = last;
  if (k->out_of_memory) return false;
  const int64_t nelems = lay_out(k, &a, &c);
  c.from.bounds = c.from_bounds;
  c.use.bounds = c.use_bounds;
  c.from.nbounds = c.use.nbounds = a.nbounds;
  c.to.type = c.use.type = k->is_f64 ? TYPE_F64 : TYPE_F32;
  c.to.temporary = c.use.temporary =
      schedule_add_temporary(s->schedule, e.label ? e.label : "window", c.to.type, nelems);
  if (k->out_of_memory) return false;
  s->schedule->temporaries[c.to.temporary].monomial = k->axes[c.order[0]].monomial;
  s->copied[id] = expr_label(k, expr_load(k, kernel_add_access(k, &c.from)), e.label);
  s->copy_access[id] = kernel_add_access(k, &c.to);
  s->kept_access[id] = kernel_add_access(k, &c.use);
  s->is_kept_value[id] = true;
  return !k->out_of_memory;
}
