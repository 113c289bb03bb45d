// Products and convolutions, computed from their formulas: each element is a sum of products in the formula's order,
// without products that lie outside of a tensor. LANES neighbouring elements are computed at a time, each with the
// operations that it would have alone.
#include "ir/operators/contraction.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/lanes.h"
#include "backends/interpreter/walk.h"
#include "ir/operators/window.h"
#include "ir/support/budget.h"

#include <math.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// The number of elements between neighbours along each axis of a dense row-major array.
typedef struct Dense {
  int64_t stride[MAX_RANK];
} Dense;

static Dense dense_strides(const Shape *shape) {
  Dense d = {{0}};
  int64_t stride = 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    d.stride[axis] = stride;
    stride *= extent_value(shape->extent[axis]);
  }
  return d;
}

static int64_t extent_on(const Shape *shape, int axis) {
  return axis < 0 ? 1 : extent_value(shape->extent[axis]);
}

// Copies `rows` rows of `width` elements; each element of a row becomes a lane, and further lanes are 0.
static void copy_lanes(double *to, const double *from, int64_t rows, int64_t row_stride, int64_t width,
                       int64_t lane_stride) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < LANES; j++) to[i * LANES + j] = j < width ? from[i * row_stride + j * lane_stride] : 0;
}

// Products

// A matrix in an array that may have other axes.
typedef struct Matrix {
  int64_t rows, columns, row_stride, column_stride;
} Matrix;

static Matrix matrix_of(const Shape *shape, int row_axis, int column_axis) {
  const Dense d = dense_strides(shape);
  return (Matrix){extent_on(shape, row_axis), extent_on(shape, column_axis), row_axis < 0 ? 0 : d.stride[row_axis],
                  column_axis < 0 ? 0 : d.stride[column_axis]};
}

// Copies the matrix, so that its rows are contiguous.
static void matrix_copy(const Matrix *m, const double *from, double *to) {
  for (int64_t row = 0; row < m->rows; row++)
    for (int64_t column = 0; column < m->columns; column++)
      *to++ = from[row * m->row_stride + column * m->column_stride];
}

// The track follows the batch axes of an operand.
static void walk_batch(Walk *w, int track, const Product *p, const Shape *operand) {
  const Dense d = dense_strides(operand);
  for (int i = 0; i < p->nbatch; i++) {
    const int axis = product_batch_axis(p, operand->rank, i);
    w->stride[i][track] = axis < 0 || extent_on(operand, axis) == 1 ? 0 : d.stride[axis];
  }
}

// One product. `a`: [rows, depth]; `from`: the array of matrix b; `lanes`: memory for [depth, LANES].
static void multiply(const Evaluation *e, const double *a, const Matrix *b, const double *from, int64_t rows,
                     double *lanes, double *dst) {
  const int64_t depth = b->rows, columns = b->columns;
  for (int64_t first = 0; first < columns; first += LANES) {
    const int64_t width = least(columns - first, LANES);
    copy_lanes(lanes, &from[first * b->column_stride], depth, b->row_stride, width, b->column_stride);
#pragma omp parallel for num_threads(lanes_threads(rows, depth)) schedule(static)
    for (int64_t m = 0; m < rows; m++) {
      Lanes sums = {0};
      Noise noise = noise_after(e->noise, m * width);
      lanes_add(&sums, &(Products){&a[m * depth], lanes, &(Term){0, 0}, 1, depth, 1, LANES}, e->noise);
      for (int64_t n = 0; n < width; n++) {
        const Sum sum = lanes_sum(&sums, n);
        dst[m * columns + first + n] = sum_value(&sum, e->noise ? &noise : NULL);
      }
    }
    if (e->noise) *e->noise = noise_after(e->noise, rows * width);
  }
}

uint64_t scratch_of_product(const Evaluation *e) {
  if (!shape_nelems(&e->node->outputs[0]->shape)) return 0; // there may be more of a factor's rows than memory
  const Product p = node_product(e->node);
  const Shape *src = &e->node->inputs[0]->shape;
  const uint64_t depth = (uint64_t)extent_on(src, p.src_k), rows = (uint64_t)extent_on(src, p.src_m);
  return nbytes_multiply(nbytes_multiply(nbytes_add(rows, LANES), nbytes_add(depth, 1)), sizeof(double));
}

bool interpret_MatMul(const Evaluation *e) {
  const Node *node = e->node;
  const Shape *src = &node->inputs[0]->shape, *weights = &node->inputs[1]->shape, *dst = &node->outputs[0]->shape;
  if (!shape_nelems(dst)) return true;
  const Product p = node_product(node);
  const Matrix a = matrix_of(src, p.src_m, p.src_k), b = matrix_of(weights, p.weights_k, p.weights_n);
  double *rows = ARENA_ARRAY(e->scratch, double, (size_t)(a.rows * a.columns) + 1);
  double *lanes = ARENA_ARRAY(e->scratch, double, (size_t)(b.rows + 1) * LANES);
  if (!rows || !lanes) return false;
  Shape batch = *dst;
  batch.rank = p.nbatch;
  Walk w = walk_over(&batch);
  walk_batch(&w, 0, &p, src);
  walk_batch(&w, 1, &p, weights);
  for (; w.i < w.nelems; walk_step(&w)) {
    matrix_copy(&a, &e->inputs[0][w.at[0]], rows);
    multiply(e, rows, &b, &e->inputs[1][w.at[1]], a.rows, lanes, &e->outputs[0][w.i * a.rows * b.columns]);
  }
  if (!e->inputs[2]) return true;
  Walk at = walk_over(dst);
  walk_broadcast(&at, 0, &node->inputs[2]->shape);
  for (; at.i < at.nelems; walk_step(&at)) e->outputs[0][at.i] += e->inputs[2][at.at[0]];
  return true;
}

// Convolutions

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

// The terms of the calling thread's element.
static Term *own_terms(const Making *m) {
  return &m->terms[lanes_thread() * m->most_terms];
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
static void make_row(const Making *m, const double *x, int64_t at[SPATIAL], const Side *side, const double *bias,
                     int64_t width, Noise *noise, double *to) {
  Term *terms = own_terms(m);
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

// Makes `width` channels of a side. x, bias, to: at the first of these channels.
static void make_channels(const Evaluation *e, const Making *m, const double *x, const double *bias, int64_t width,
                          double *to) {
  const Geometry *g = &m->g;
  const Side *side = m->made == SIDE_SMALL ? &g->small : &g->large,
             *other = m->made == SIDE_SMALL ? &g->large : &g->small;
  const int64_t nrows = m->extent[0] * m->extent[1], nplaces = g->batch * nrows * m->extent[2];
  const int64_t nsums = m->extent[2] * width;
#pragma omp parallel for num_threads(making_threads(m, nplaces)) schedule(static)
  for (int64_t row = 0; row < nplaces / m->extent[2]; row++) {
    int64_t at[SPATIAL] = {row % nrows / m->extent[1], row % m->extent[1]};
    Noise noise = noise_after(e->noise, row * nsums);
    make_row(m, &x[row / nrows * other->batch], at, side, bias, width, e->noise ? &noise : NULL,
             &to[row / nrows * side->batch]);
  }
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

// Adds the products of one image to sums of `width` channels of the small side.
static void add_image(Making *m, const double *large, const double *small, int64_t width,
                      Lanes *sums /* [taps, channels of the large side] */) {
  const Side *side = &m->g.small;
  copy_lanes(m->y, small, m->nrows, side->place[SPATIAL - 1], width, side->channel);
  find_unbounded(m);
  int64_t tap[SPATIAL] = {0};
  do {
    const int64_t count = find_terms(m, tap, m->terms), nchannels = m->g.large.channels;
#pragma omp parallel for num_threads(lanes_threads(nchannels, count)) schedule(static)
    for (int64_t i = 0; i < nchannels; i++) add_products(m, &large[i * m->x_channel], tap, m->terms, count, &sums[i]);
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
