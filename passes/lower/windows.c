// A place on the large side is affine in the window and the tap. The window that reaches a place by a tap is affine,
// too, if the stride is 1; else it is computed by a division, and exists only if the quotient is an integer.
#include "passes/lower/windows.h"
#include "passes/lower/formulas.h"

#include "ir/operators/interpolate.h"

Windows windows_of(Lowering *l, const Node *node) {
  Windows w = {.l = l, .k = l->kernel, .first = spatial_axis(node)};
  w.nspatial = node_side(node, SIDE_LARGE)->shape.rank - 2;
  for (int i = 0; i < w.nspatial; i++) {
    const Window own = w.window[i] = node_window(node, i);
    w.part[i] = node_piece_axis(l->kernel->costs, node, l->part.piece, i);
    node_reach(l->kernel->costs, node, i, &w.reach_begin[i], &w.reach_end[i]);
    kernel_close(w.k, own.large_monomial);
    kernel_close(w.k, own.small_monomial);
    kernel_close(w.k, own.kernel_monomial);
    kernel_close(w.k, own.pad_monomial);
  }
  return w;
}

int64_t windows_greatest_place(const Costs *costs, const Node *node) {
  const Value *small = node_side(node, SIDE_SMALL);
  if (!small) return 0;
  const Strides strides = strides_of(&small->shape, &small->layout);
  int64_t greatest = 0, offset = 0;
  for (int i = 0; i < small->shape.rank - 2; i++) {
    const Window w = node_window(node, i);
    const int64_t reach = w.large + w.pad_begin + window_reach(&w);
    if (reach > greatest) greatest = reach;
    offset += w.small * strides.stride[spatial_axis(node) + i];
  }
  return !node_is_cut(costs, node) && offset > greatest ? offset : greatest;
}

bool windows_are_whole(const Windows *w, int spatial) {
  const Window *own = &w->window[spatial];
  const PieceAxis *part = &w->part[spatial];
  const int64_t last_place = part->begin + (part->extent - 1) * part->step;
  const int64_t last_tap = part->first_tap + (part->ntaps - 1) * part->tap_step;
  return part->ntaps && window_place(own, part->begin, part->first_tap) >= 0 &&
         window_place(own, last_place, last_tap) < own->large;
}

bool windows_next_tap(Windows *w) {
  for (int i = w->nspatial - 1; i >= 0; i--) {
    if (++w->number[i] < w->part[i].ntaps) return true;
    w->number[i] = 0;
  }
  return false;
}

bool windows_have_no_taps(const Windows *w) {
  bool has_none = false;
  for (int i = 0; i < w->nspatial; i++) has_none |= !w->part[i].ntaps;
  return has_none;
}

// Adds factor * tap to the bound's index.
static void add_taps(const Windows *w, int spatial, Bound *b, int64_t factor) {
  if (w->is_written) b->offset += factor * w->number[spatial];
  else b->factor[w->tap[spatial]] = factor;
}

ExprId windows_tap(const Windows *w, int spatial) {
  Kernel *k = w->k;
  const PieceAxis *part = &w->part[spatial];
  if (part->has_one_window) return ADD(expr_index(k, w->place[spatial]), NUMBER(w->window[spatial].pad_begin));
  if (w->is_written) return NUMBER(part->first_tap + part->tap_step * w->number[spatial]);
  const ExprId index = expr_index(k, w->tap[spatial]);
  if (part->tap_step == 1 && !part->first_tap) return index;
  return FMA(NUMBER(part->tap_step), index, NUMBER(part->first_tap));
}

ExprId windows_load_large(const Windows *w, const Value *v, SideAxes *axes, double outside) {
  for (int i = 0; i < w->nspatial; i++) {
    const Window *own = &w->window[i];
    const PieceAxis *part = &w->part[i];
    Bound *b = &axes->bounds[w->first + i];
    axes->axis[w->first + i] = BOUNDED;
    *b = (Bound){.offset = window_place(own, part->begin, part->first_tap)};
    b->factor[w->place[i]] = own->stride * part->step;
    add_taps(w, i, b, own->dilation * part->tap_step);
  }
  return lower_bounded_load(w->l, v, axes->axis, axes->bounds, outside, 0);
}

// place + pad - dilation * tap = the window's index * stride. For kernels whose places are not cut into pieces.
static ExprId scaled_index(const Windows *w, int spatial) {
  Kernel *k = w->k;
  const Window *own = &w->window[spatial];
  const ExprId place = ADD(expr_index(k, w->place[spatial]), NUMBER(own->pad_begin));
  return FMA(NUMBER(-own->dilation), windows_tap(w, spatial), place);
}

// Whether all places of the kernel have all its taps.
static bool are_cut(const Windows *w) {
  bool are = true;
  for (int i = 0; i < w->nspatial; i++) are &= w->part[i].step == w->window[i].stride || w->part[i].has_one_window;
  return are;
}

static ExprId window_index(const Windows *w, int spatial) {
  Kernel *k = w->k;
  return FLOOR(DIV(scaled_index(w, spatial), NUMBER(w->window[spatial].stride)));
}

static ExprId load_computed(const Windows *w, const Value *v, SideAxes *axes, ExprId *index) {
  Kernel *k = w->k;
  const Strides strides = strides_of(&v->shape, &v->layout);
  ExprId offset = 0;
  for (int i = 0; i < w->nspatial; i++) {
    const Window *own = &w->window[i];
    const int axis = w->first + i;
    axes->axis[axis] = COMPUTED;
    kernel_close(k, strides.monomial[axis]);
    const ExprId last = NUMBER(own->small - 1);
    index[i] = MAX(NUMBER(0), MIN(window_index(w, i), last));
    const ExprId stride = NUMBER(strides.stride[axis]);
    offset = offset ? FMA(stride, index[i], offset) : MUL(stride, index[i]);
  }
  ExprId e = lower_bounded_load(w->l, v, axes->axis, axes->bounds, 0, offset);
  for (int i = 0; i < w->nspatial; i++) e = SELECT(EQ(index[i], window_index(w, i)), e, NUMBER(0));
  return e;
}

ExprId windows_load_small(const Windows *w, const Value *v, SideAxes *axes, ExprId *index) {
  if (!are_cut(w)) return load_computed(w, v, axes, index);
  Kernel *k = w->k;
  for (int i = 0; i < w->nspatial; i++) {
    const Window *own = &w->window[i];
    const PieceAxis *part = &w->part[i];
    Bound *b = &axes->bounds[w->first + i];
    *b = (Bound){.reach_begin = w->reach_begin[i], .reach_end = w->reach_end[i]};
    axes->axis[w->first + i] = part->has_one_window ? STEPPED : BOUNDED;
    index[i] = NUMBER(0);
    if (part->has_one_window) continue;
    const int64_t factor = -own->dilation * part->tap_step / own->stride;
    b->offset = (part->begin + own->pad_begin - own->dilation * part->first_tap) / own->stride;
    b->factor[w->place[i]] = 1;
    add_taps(w, i, b, factor);
    index[i] = ADD(expr_index(k, w->place[i]), NUMBER(b->offset));
    if (!w->is_written) index[i] = FMA(NUMBER(factor), expr_index(k, w->tap[i]), index[i]);
  }
  return lower_bounded_load(w->l, v, axes->axis, axes->bounds, 0, 0);
}

ExprId windows_select(const Windows *w, ExprId e) {
  Kernel *k = w->k;
  for (int i = 0; i < w->nspatial && !are_cut(w); i++) {
    const ExprId scaled = MUL(window_index(w, i), NUMBER(w->window[i].stride));
    e = SELECT(EQ(scaled, scaled_index(w, i)), e, NUMBER(0));
  }
  return e;
}
