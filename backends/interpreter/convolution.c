// Convolutions, computed from their formulas: each element is a sum of products in the formula's order, without
// products that lie outside of a tensor. LANES neighbouring elements are computed at a time, each with the operations
// that it would have alone.
#include "ir/operators/contraction.h"

#include "backends/interpreter/dense.h"
#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/walk.h"
#include "ir/operators/window.h"
#include "ir/support/budget.h"

#include <math.h>
#include <string.h>

enum { SPATIAL = MOST_SPATIAL_AXES };

typedef struct Side {
  int64_t channels;                       // of a group
  int64_t batch, channel, place[SPATIAL]; // strides
  int64_t weights;                        // the stride of the weights along the side's channels
} Side;

// The extents of a convolution and the strides of its operands. Missing spatial axes are the first, with extent 1.
typedef struct Geometry {
  int64_t batch, groups;
  Window window[SPATIAL];
  Side large, small;
  int64_t weights_tap; // the stride between neighbouring taps
} Geometry;

static Side side_of(const Shape *shape, const Convolution *c, int64_t channels, int64_t weights) {
  const Dense d = dense_strides(shape);
  Side s = {.channels = channels, .batch = d.stride[0], .channel = d.stride[c->channels], .weights = weights};
  for (int i = 0; i < c->nspatial; i++) s.place[SPATIAL - c->nspatial + i] = d.stride[c->first_spatial + i];
  return s;
}

static Geometry geometry_of(const Node *node) {
  const Shape *large = &node_side(node, SIDE_LARGE)->shape, *small = &node_side(node, SIDE_SMALL)->shape;
  const Shape *weights = &node_side(node, SIDE_WEIGHTS)->shape;
  const Convolution c = node_convolution(node);
  const Dense d = dense_strides(weights);
  Geometry g = {
      .batch = extent_on(large, 0),
      .groups = c.groups,
      .large = side_of(large, &c, extent_on(weights, c.weights_large), d.stride[c.weights_large]),
      .small = side_of(small, &c, extent_on(weights, c.weights_small) / c.groups, d.stride[c.weights_small]),
      .weights_tap = d.stride[c.weights_kernel + c.nspatial - 1],
  };
  for (int i = 0; i < SPATIAL; i++) {
    const int spatial = i - (SPATIAL - c.nspatial);
    g.window[i] = spatial < 0 ? (Window){.stride = 1, .dilation = 1, .kernel = 1, .large = 1, .small = 1}
                              : node_window(node, spatial);
  }
  return g;
}

// A node makes one of large side, small side and weights from the other two, x and y. Along each spatial axis, the
// index of the made element and an index of y determine the index of x:
//
//   made      y         x
//   a window  a tap     the place on the large side where the window has the tap
//   a place   a tap     the window that has the tap at this place
//   a tap     a window  the place where the window has the tap
//
// A line holds the indices of y that have an element of x, in ascending order, and the indices of x.
typedef struct Line {
  int64_t count, x, x_step, y, y_step;
} Line;

static int64_t divide_up(int64_t a, int64_t b) { // a >= 0
  return (a + b - 1) / b;
}

static Line taps_of_window(const Window *w, int64_t u) {
  const Taps t = window_taps(w, u);
  return (Line){t.end - t.begin, window_place(w, u, t.begin), w->dilation, t.begin, 1};
}

static Line windows_with_tap(const Window *w, int64_t tap) {
  const int64_t first = window_place(w, 0, tap);
  const int64_t begin = first < 0 ? divide_up(-first, w->stride) : 0;
  const int64_t end = first < w->large ? least(divide_up(w->large - first, w->stride), w->small) : 0;
  return (Line){end > begin ? end - begin : 0, window_place(w, begin, tap), w->stride, begin, 1};
}

// Windows are `stride` positions apart, so only each `step`-th tap is at this position in some window.
static Line taps_at_place(const Window *w, int64_t place) {
  const int64_t distance = place - window_place(w, 0, 0), last = (w->small - 1) * w->stride; // from window 0's tap 0
  const int64_t step = window_tap_step(w), end = least(distance / w->dilation + 1, w->kernel);
  const int64_t begin = window_tap_at(w, place, distance > last ? divide_up(distance - last, w->dilation) : 0);
  if (begin >= end) return (Line){.y_step = step};
  return (Line){(end - begin - 1) / step + 1, (distance - begin * w->dilation) / w->stride,
                -w->dilation * step / w->stride, begin, step};
}

// The line for index `at` of the made operand.
static Line line_at(const Window *w, WindowSide made, int64_t at) {
  if (made == SIDE_WEIGHTS) return windows_with_tap(w, at);
  return made == SIDE_SMALL ? taps_of_window(w, at) : taps_at_place(w, at);
}

enum { OUTSIDE = -1, UNREACHED = -2 }; // an index of x outside of x; no index, whatever x's extents are

// The index of x for any index of y, or one of the above.
static int64_t index_of_x(const Window *w, WindowSide made, int64_t at, int64_t y) {
  if (made == SIDE_LARGE) {
    const int64_t distance = at - window_place(w, 0, y);
    if (distance % w->stride != 0) return UNREACHED;
    return distance >= 0 && distance / w->stride < w->small ? distance / w->stride : OUTSIDE;
  }
  const int64_t place = made == SIDE_SMALL ? window_place(w, at, y) : window_place(w, y, at);
  return place >= 0 && place < w->large ? place : OUTSIDE;
}

// How the operand is made. Elements of y are copied in groups of LANES channels of the made operand, one row for each
// index of y.
typedef struct Making {
  Geometry g;
  WindowSide made;
  bool has_squares;
  int64_t extent[SPATIAL]; // of the made operand
  int64_t x_stride[SPATIAL], x_channel;
  int64_t nchannels;                  // of x and y; each sum goes over them
  int64_t nrows, row_extent[SPATIAL]; // of y, for one channel
  double *y;                          // [nchannels, nrows, LANES]
  int64_t *unbounded, nunbounded;     // rows of y, of all channels, that have an infinite or NaN element
  int64_t most_terms;                 // of one element and one channel, without terms outside of x
  Term *terms;                        // [MOST_THREADS, most_terms]
} Making;

static int64_t product_of(const int64_t extent[SPATIAL]) {
  return extent[0] * extent[1] * extent[2];
}

// Sets all members except the arrays.
static void making_measure(const Evaluation *e, WindowSide made, Making *m) {
  *m = (Making){.g = geometry_of(e->node), .made = made, .has_squares = e->noise, .nchannels = 1};
  const Side *x = made == SIDE_LARGE ? &m->g.small : &m->g.large;
  if (made != SIDE_WEIGHTS) m->nchannels = x->channels;
  m->x_channel = x->channel;
  m->most_terms = 1; // also for axes before an axis without terms
  for (int i = 0; i < SPATIAL; i++) {
    const Window *w = &m->g.window[i];
    m->extent[i] = made == SIDE_SMALL ? w->small : made == SIDE_LARGE ? w->large : w->kernel;
    m->x_stride[i] = x->place[i];
    m->row_extent[i] = made == SIDE_WEIGHTS ? w->small : w->kernel;
    const int64_t most = least(m->row_extent[i], made == SIDE_LARGE ? w->small : w->large); // no index occurs twice
    if (most && m->nchannels) m->most_terms *= most;
  }
  m->nrows = m->nchannels ? product_of(m->row_extent) : 0; // without channels, the product of the extents may overflow
}

static bool making_init(const Evaluation *e, WindowSide made, Making *m) {
  making_measure(e, made, m);
  m->y = ARENA_ARRAY(e->scratch, double, (size_t)(m->nchannels * m->nrows) * LANES + 1);
  m->unbounded = ARENA_ARRAY(e->scratch, int64_t, (size_t)(m->nchannels * m->nrows) + 1);
  m->terms = ARENA_ARRAY(e->scratch, Term, (size_t)m->most_terms * MOST_THREADS);
  return m->y && m->unbounded && m->terms;
}

static void find_unbounded(Making *m) {
  m->nunbounded = 0;
  for (int64_t row = 0; row < m->nchannels * m->nrows; row++) {
    bool is_finite = true;
    for (int j = 0; j < LANES; j++) is_finite &= isfinite(m->y[row * LANES + j]);
    if (!is_finite) m->unbounded[m->nunbounded++] = row;
  }
}

// Finds the terms of the element with these indices; returns their number.
static int64_t find_terms(const Making *m, const int64_t at[SPATIAL], Term *terms) {
  int64_t count = 1;
  terms[0] = (Term){0, 0};
  for (int axis = 0; axis < SPATIAL; axis++) {
    const Line l = line_at(&m->g.window[axis], m->made, at[axis]);
    for (int64_t i = count - 1; i >= 0; i--) { // in place, so from the end
      const int64_t x = terms[i].x, y = terms[i].y * m->row_extent[axis];
      for (int64_t k = l.count - 1; k >= 0; k--)
        terms[i * l.count + k] = (Term){x + (l.x + k * l.x_step) * m->x_stride[axis], y + (l.y + k * l.y_step) * LANES};
    }
    count *= l.count;
  }
  return count;
}

// Adds products with elements outside of x, which are 0: a factor that is not finite makes NaN.
static void add_outside(const Making *m, const int64_t at[SPATIAL], Lanes *sums) {
  for (int64_t k = 0; k < m->nunbounded; k++) {
    bool is_outside = false, is_reached = true;
    int64_t row = m->unbounded[k];
    for (int i = SPATIAL - 1; i >= 0; i--) {
      const int64_t x = index_of_x(&m->g.window[i], m->made, at[i], row % m->row_extent[i]);
      is_outside |= x == OUTSIDE;
      is_reached &= x != UNREACHED;
      row /= m->row_extent[i];
    }
    const Term term = {0, m->unbounded[k] * LANES};
    if (is_outside && is_reached) lanes_add(sums, &(Products){&(double){0}, m->y, &term, 1, 1, 0, 0}, m->has_squares);
  }
}

// Adds all products of an element.
static void add_products(const Making *m, const double *x, const int64_t at[SPATIAL], const Term *terms, int64_t count,
                         Lanes *sums) {
  const Products p = {x, m->y, terms, count, m->nchannels, m->x_channel, m->nrows * LANES};
  lanes_add(sums, &p, m->has_squares);
  if (m->nunbounded) add_outside(m, at, sums);
}

// The next index in row-major order; false after the last.
static bool next_index(const int64_t extent[SPATIAL], int64_t at[SPATIAL]) {
  for (int i = SPATIAL - 1; i >= 0; i--) {
    if (++at[i] < extent[i]) return true;
    at[i] = 0;
  }
  return false;
}

static const double *side_data(const Evaluation *e, WindowSide side) {
  for (uint32_t i = 0; i < e->node->ninputs; i++)
    if (e->node->op->inputs[i].side == side) return e->inputs[i];
  return NULL;
}

// Makes `width` channels of a row of places of a side. x: channels of the other side of the row's image; bias NULL:
// none.
static void make_row(const Making *m, Term *terms, const double *x, int64_t at[SPATIAL], const Side *side,
                     const double *bias, int64_t width, Noise *noise, double *to) {
  for (at[SPATIAL - 1] = 0; at[SPATIAL - 1] < m->extent[SPATIAL - 1]; at[SPATIAL - 1]++) {
    Lanes sums = {0};
    if (m->nchannels) add_products(m, x, at, terms, find_terms(m, at, terms), &sums);
    const int64_t place = at[0] * side->place[0] + at[1] * side->place[1] + at[2] * side->place[2];
    for (int64_t i = 0; i < width; i++) {
      Sum sum = lanes_sum(&sums, i);
      if (bias) sum_add(&sum, bias[i]);
      to[i * side->channel + place] = sum_value(&sum, noise);
    }
  }
}

static int making_threads(const Making *m, int64_t nplaces) {
  return lanes_threads(nplaces, m->nchannels * m->most_terms);
}

typedef struct Channels { // of a side, that are made
  const Evaluation *e;
  const Making *m;
  const Side *side, *other;
  const double *x, *bias;
  int64_t width;
  double *to;
} Channels;

static void make_rows(const LanesLoop *loop, int64_t begin, int64_t end, int thread) {
  const Channels *c = loop->args;
  const Making *m = c->m;
  const int64_t nrows = m->extent[0] * m->extent[1], nsums = m->extent[2] * c->width;
  for (int64_t row = begin; row < end; row++) {
    int64_t at[SPATIAL] = {row % nrows / m->extent[1], row % m->extent[1]};
    Noise noise = noise_after(c->e->noise, row * nsums);
    make_row(m, &m->terms[thread * m->most_terms], &c->x[row / nrows * c->other->batch], at, c->side, c->bias, c->width,
             c->e->noise ? &noise : NULL, &c->to[row / nrows * c->side->batch]);
  }
}

// Makes `width` channels of a side. x, bias, to: at the first of these channels.
static void make_channels(const Evaluation *e, const Making *m, const double *x, const double *bias, int64_t width,
                          double *to) {
  const Geometry *g = &m->g;
  const bool is_small = m->made == SIDE_SMALL;
  Channels c = {e, m, is_small ? &g->small : &g->large, is_small ? &g->large : &g->small, x, bias, width, NULL};
  c.to = to;
  const int64_t nplaces = g->batch * m->extent[0] * m->extent[1] * m->extent[2];
  lanes_for(&(LanesLoop){nplaces / m->extent[2], making_threads(m, nplaces), make_rows, &c});
  if (e->noise) *e->noise = noise_after(e->noise, nplaces * width);
}

static bool has_elements(const Node *node, WindowSide side) {
  return shape_nelems(&node_side(node, side)->shape) != 0;
}

// Whether products are added. If not, the batch or the taps may be very many.
static bool has_products(const Node *node) {
  const WindowSide made = node->op->outputs[0].side;
  return has_elements(node, made) && (made != SIDE_WEIGHTS || has_elements(node, SIDE_SMALL));
}

// Makes one side from the other side and the weights.
static bool make_side(const Evaluation *e, WindowSide made) {
  Making m;
  if (!has_products(e->node)) return true;
  if (!making_init(e, made, &m)) return false;
  const Geometry *g = &m.g;
  const Side *side = made == SIDE_SMALL ? &g->small : &g->large, *other = made == SIDE_SMALL ? &g->large : &g->small;
  const double *x = side_data(e, made == SIDE_SMALL ? SIDE_LARGE : SIDE_SMALL), *weights = side_data(e, SIDE_WEIGHTS);
  const double *bias = evaluation_input(e, "bias");
  for (int64_t group = 0; group < g->groups; group++)
    for (int64_t first = 0; first < side->channels; first += LANES) {
      const int64_t width = least(side->channels - first, LANES), channel = group * side->channels + first;
      const double *from = &weights[group * g->small.channels * g->small.weights + first * side->weights];
      for (int64_t i = 0; i < other->channels; i++)
        copy_lanes(&m.y[i * m.nrows * LANES], &from[i * other->weights], m.nrows, g->weights_tap, width, side->weights);
      find_unbounded(&m);
      make_channels(e, &m, &x[group * other->channels * other->channel], bias ? &bias[channel] : NULL, width,
                    &e->outputs[0][channel * side->channel]);
    }
  return true;
}

static bool make_small(const Evaluation *e) {
  return make_side(e, SIDE_SMALL);
}

static bool make_large(const Evaluation *e) {
  return make_side(e, SIDE_LARGE);
}

typedef struct Adding { // the products of a tap of an image
  const Making *m;
  const double *large;
  const int64_t *tap;
  int64_t count; // of terms
  Lanes *sums;   // [channels of the large side]
} Adding;

static void add_channels(const LanesLoop *loop, int64_t begin, int64_t end, int thread) {
  const Adding *a = loop->args;
  (void)thread;
  for (int64_t i = begin; i < end; i++)
    add_products(a->m, &a->large[i * a->m->x_channel], a->tap, a->m->terms, a->count, &a->sums[i]);
}

// Adds the products of one image to sums of `width` channels of the small side.
static void add_image(Making *m, const double *large, const double *small, int64_t width,
                      Lanes *sums /* [taps, channels of the large side] */) {
  const Side *side = &m->g.small;
  copy_lanes(m->y, small, m->nrows, side->place[SPATIAL - 1], width, side->channel);
  find_unbounded(m);
  int64_t tap[SPATIAL] = {0};
  do {
    const int64_t nchannels = m->g.large.channels;
    const Adding a = {m, large, tap, find_terms(m, tap, m->terms), sums};
    lanes_for(&(LanesLoop){nchannels, lanes_threads(nchannels, a.count), add_channels, &a});
    sums += nchannels;
  } while (next_index(m->extent, tap));
}

static bool make_weights(const Evaluation *e) {
  Making m;
  if (!has_products(e->node)) {
    memset(e->outputs[0], 0, (size_t)shape_nelems(&e->node->outputs[0]->shape) * sizeof(double));
    return true;
  }
  if (!making_init(e, SIDE_WEIGHTS, &m)) return false;
  const Geometry *g = &m.g;
  const Side *l = &g->large, *s = &g->small;
  const double *large = side_data(e, SIDE_LARGE), *small = side_data(e, SIDE_SMALL);
  const int64_t ntaps = product_of(m.extent), nsums = ntaps * l->channels;
  Lanes *sums = ARENA_ARRAY(e->scratch, Lanes, (size_t)nsums + 1);
  if (!sums) return false;
  for (int64_t group = 0; group < g->groups; group++)
    for (int64_t first = 0; first < s->channels; first += LANES) {
      const int64_t width = least(s->channels - first, LANES), channel = group * s->channels + first;
      for (int64_t i = 0; i < nsums; i++) sums[i] = (Lanes){0};
      for (int64_t n = 0; n < g->batch; n++)
        add_image(&m, &large[n * l->batch + group * l->channels * l->channel],
                  &small[n * s->batch + channel * s->channel], width, sums);
      for (int64_t i = 0; i < nsums; i++)
        for (int64_t j = 0; j < width; j++) {
          const Sum sum = lanes_sum(&sums[i], j);
          e->outputs[0][(channel + j) * s->weights + i % l->channels * l->weights + i / l->channels * g->weights_tap] =
              sum_value(&sum, e->noise);
        }
    }
  return true;
}

uint64_t scratch_of_convolution(const Evaluation *e) {
  Making m;
  const WindowSide made = e->node->op->outputs[0].side;
  if (!has_products(e->node)) return 0;
  making_measure(e, made, &m);
  const uint64_t row_nbytes = LANES * sizeof(double) + sizeof(int64_t); // of y and of unbounded
  uint64_t nbytes = nbytes_multiply(nbytes_multiply((uint64_t)m.nchannels, (uint64_t)m.nrows), row_nbytes);
  nbytes = nbytes_add(nbytes, nbytes_multiply((uint64_t)m.most_terms, MOST_THREADS * sizeof(Term)));
  if (made != SIDE_WEIGHTS) return nbytes;
  const uint64_t nsums = nbytes_multiply((uint64_t)product_of(m.extent), (uint64_t)m.g.large.channels);
  return nbytes_add(nbytes, nbytes_multiply(nsums, sizeof(Lanes)));
}

INTERPRET(Convolution, make_small(e))
INTERPRET(ConvolutionBackwardData, make_large(e))
INTERPRET(ConvolutionBackwardWeights, make_weights(e))
INTERPRET(ConvTranspose, make_large(e))
INTERPRET(ConvTransposeBackwardData, make_small(e))
INTERPRET(ConvTransposeBackwardWeights, make_weights(e))
