// Pooling: each element of dst comes from a window of src. Padding has no elements: it is never a maximum, and adds
// nothing to a sum. Gradients go back to the elements of each window; where windows overlap, they are added.
#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"
#include "ir/operators/interpolate.h"
#include "ir/operators/window.h"
#include "ir/support/budget.h"

#include <math.h>

// The elements of one window.
typedef struct Pool {
  const Shape *large; // the shape of src or diff_src
  int64_t stride[MAX_RANK];
  int first, nspatial;
  Window windows[MOST_SPATIAL_AXES];
  double nelems_kernel; // of the whole kernel, on the tensor or in the padding
  int64_t *places;      // [count] offsets in src or diff_src, in the kernel's row-major order
  int64_t count;
} Pool;

// Sets all members except `places`; returns an upper bound of their number.
static int64_t pool_measure(Pool *p, const Evaluation *e) {
  *p = (Pool){.large = &node_side(e->node, SIDE_LARGE)->shape, .first = spatial_axis(e->node), .nelems_kernel = 1};
  p->nspatial = p->large->rank - 2;
  int64_t most = 1; // a window has no element twice
  for (int i = 0; i < p->nspatial; i++) {
    const Window *w = &p->windows[i];
    p->windows[i] = node_window(e->node, i);
    p->nelems_kernel *= (double)w->kernel;
    most *= w->kernel < w->large ? w->kernel : w->large;
  }
  for (int64_t axis = p->large->rank - 1, nelems = 1; axis >= 0; axis--) {
    p->stride[axis] = nelems;
    nelems *= extent_value(p->large->extent[axis]);
  }
  return shape_nelems(&node_side(e->node, SIDE_SMALL)->shape) ? most : 0;
}

static bool pool_init(Pool *p, const Evaluation *e) {
  const int64_t most = pool_measure(p, e);
  p->places = ARENA_ARRAY(e->scratch, int64_t, (size_t)most + 1);
  return p->places != NULL;
}

// Replaces each offset by the offsets of all taps along a spatial axis.
static void spread(Pool *p, const Window *w, int64_t u, int64_t stride) {
  const Taps taps = window_taps(w, u);
  const int64_t ntaps = taps.end - taps.begin;
  for (int64_t i = p->count - 1; i >= 0; i--) {
    const int64_t place = p->places[i];
    for (int64_t k = ntaps - 1; k >= 0; k--)
      p->places[i * ntaps + k] = place + window_place(w, u, taps.begin + k) * stride;
  }
  p->count *= ntaps;
}

// Finds the elements of a window. `index`: of its element on the small side, dst or diff_dst.
static void pool_find(Pool *p, const int64_t *index) {
  p->count = 1;
  p->places[0] = 0;
  for (int axis = 0; axis < p->large->rank; axis++)
    if (axis < p->first || axis >= p->first + p->nspatial) p->places[0] += index[axis] * p->stride[axis];
  for (int i = 0; i < p->nspatial; i++) spread(p, &p->windows[i], index[p->first + i], p->stride[p->first + i]);
}

// The offset of the first of the greatest elements, or of the first NaN; -1: the window has no elements.
static int64_t find_winner(const Pool *p, const double *x) {
  int64_t winner = -1;
  for (int64_t i = 0; i < p->count; i++) {
    const int64_t at = p->places[i];
    if (winner < 0 || (!isnan(x[winner]) && !(x[at] <= x[winner]))) winner = at;
  }
  return winner;
}

// IEEE 754's maximum: propagates NaN, and +0 is greater than -0.
static double greatest(const Pool *p, const double *x) {
  double y = x[p->places[0]];
  for (int64_t i = 1; i < p->count && !isnan(y); i++) {
    const double own = x[p->places[i]];
    if (!(own <= y) || (own == y && signbit(y))) y = own;
  }
  return y;
}

bool interpret_MaxPool(const Evaluation *e) {
  Pool p;
  if (!pool_init(&p, e)) return false;
  for (Walk w = walk_over(&e->node->outputs[0]->shape); w.i < w.nelems; walk_step(&w)) {
    pool_find(&p, w.index);
    e->outputs[0][w.i] = p.count ? greatest(&p, e->inputs[0]) : -type_greatest(e->node->outputs[0]->type);
  }
  return true;
}

// The number by which AvgPool divides the sum of the current window.
static double divisor(const Pool *p, const Node *node) {
  return node_bool(node, "exclude_pad") ? (double)p->count : p->nelems_kernel;
}

bool interpret_AvgPool(const Evaluation *e) {
  Pool p;
  if (!pool_init(&p, e)) return false;
  for (Walk w = walk_over(&e->node->outputs[0]->shape); w.i < w.nelems; walk_step(&w)) {
    Sum sum = {0};
    pool_find(&p, w.index);
    for (int64_t i = 0; i < p.count; i++) sum_add(&sum, e->inputs[0][p.places[i]]);
    e->outputs[0][w.i] = sum_value(&sum, e->noise) / divisor(&p, e->node);
  }
  return true;
}

uint64_t scratch_of_pool(const Evaluation *e) {
  Pool p;
  return nbytes_multiply((uint64_t)pool_measure(&p, e), sizeof *p.places);
}

uint64_t scratch_of_pool_sums(const Evaluation *e) {
  return nbytes_add(scratch_of_pool(e), scratch_of_sums(e));
}

bool interpret_MaxPoolBackward(const Evaluation *e) {
  Pool p;
  Sum *sums = sums_of_output(e, 0);
  if (!sums || !pool_init(&p, e)) return false;
  for (Walk w = walk_over(&e->node->inputs[1]->shape); w.i < w.nelems; walk_step(&w)) {
    pool_find(&p, w.index);
    const int64_t winner = find_winner(&p, e->inputs[0]);
    if (winner >= 0) sum_add(&sums[winner], e->inputs[1][w.i]);
  }
  return sums_store(e, 0, sums);
}

// The number of the tap at offset `place`, in the window with this index.
static int64_t tap_at(const Pool *p, const int64_t *index, int64_t place) {
  int64_t number = 0;
  for (int i = 0; i < p->nspatial; i++) {
    const Window *w = &p->windows[i];
    const int axis = p->first + i;
    const int64_t at = place / p->stride[axis] % extent_value(p->large->extent[axis]);
    number = number * w->kernel + (at - window_place(w, index[axis], 0)) / w->dilation;
  }
  return number;
}

bool interpret_MaxPoolWinners(const Evaluation *e) {
  Pool p;
  if (!pool_init(&p, e)) return false;
  for (Walk w = walk_over(&e->node->outputs[0]->shape); w.i < w.nelems; walk_step(&w)) {
    pool_find(&p, w.index);
    const int64_t winner = find_winner(&p, e->inputs[0]);
    evaluation_put_integer(e, w.i, winner < 0 ? (int64_t)p.nelems_kernel : tap_at(&p, w.index, winner));
  }
  return true;
}

bool interpret_MaxPoolScatter(const Evaluation *e) {
  Pool p;
  Sum *sums = sums_of_output(e, 0);
  if (!sums || !pool_init(&p, e)) return false;
  for (Walk w = walk_over(&e->node->inputs[1]->shape); w.i < w.nelems; walk_step(&w)) {
    pool_find(&p, w.index);
    for (int64_t i = 0; i < p.count; i++)
      if (tap_at(&p, w.index, p.places[i]) == evaluation_integer(e, 0, w.i))
        sum_add(&sums[p.places[i]], e->inputs[1][w.i]);
  }
  return sums_store(e, 0, sums);
}

bool interpret_MaxPoolGather(const Evaluation *e) {
  Pool p;
  if (!pool_init(&p, e)) return false;
  for (Walk w = walk_over(&e->node->outputs[0]->shape); w.i < w.nelems; walk_step(&w)) {
    pool_find(&p, w.index);
    e->outputs[0][w.i] = 0;
    for (int64_t i = 0; i < p.count; i++)
      if (tap_at(&p, w.index, p.places[i]) == evaluation_integer(e, 0, w.i))
        e->outputs[0][w.i] = e->inputs[1][p.places[i]];
  }
  return true;
}

bool interpret_AvgPoolBackward(const Evaluation *e) {
  Pool p;
  Sum *sums = sums_of_output(e, 0);
  if (!sums || !pool_init(&p, e)) return false;
  for (Walk w = walk_over(&e->node->inputs[0]->shape); w.i < w.nelems; walk_step(&w)) {
    pool_find(&p, w.index);
    for (int64_t i = 0; i < p.count; i++) sum_add(&sums[p.places[i]], e->inputs[0][w.i] / divisor(&p, e->node));
  }
  return sums_store(e, 0, sums);
}
