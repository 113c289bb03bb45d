// Products and convolutions, straight from their formulas.
#include "ir/operators/contraction.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"
#include "ir/operators/window.h"

#include <math.h>
#include <string.h>

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

// Products

// A matrix in an array that may have further axes.
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

// dst, with rows and columns of one product; `a` is [rows, depth], `b` is [columns, depth].
static void multiply(const Evaluation *e, const double *a, const double *b, const int64_t counts[3], double *dst) {
  const int64_t rows = counts[0], columns = counts[1], depth = counts[2];
  for (int64_t m = 0; m < rows; m++)
    for (int64_t n = 0; n < columns; n++) {
      Sum sum = {0};
      for (int64_t k = 0; k < depth; k++) sum_add(&sum, a[m * depth + k] * b[n * depth + k]);
      *dst++ = sum_value(&sum, e->noise);
    }
}

bool interpret_MatMul(const Evaluation *e) {
  const Node *node = e->node;
  const Shape *src = &node->inputs[0]->shape, *weights = &node->inputs[1]->shape, *dst = &node->outputs[0]->shape;
  const Product p = node_product(node);
  const Matrix a = matrix_of(src, p.src_m, p.src_k), b = matrix_of(weights, p.weights_n, p.weights_k);
  double *own_a = ARENA_ARRAY(e->scratch, double, (size_t)(a.rows * a.columns) + 1);
  double *own_b = ARENA_ARRAY(e->scratch, double, (size_t)(b.rows * b.columns) + 1);
  if (!own_a || !own_b) return false;
  Shape batch = *dst;
  batch.rank = p.nbatch;
  Walk w = walk_over(&batch);
  walk_batch(&w, 0, &p, src);
  walk_batch(&w, 1, &p, weights);
  for (; w.i < w.nelems && shape_nelems(dst); walk_step(&w)) {
    matrix_copy(&a, &e->inputs[0][w.at[0]], own_a);
    matrix_copy(&b, &e->inputs[1][w.at[1]], own_b);
    multiply(e, own_a, own_b, (int64_t[]){a.rows, b.rows, a.columns}, &e->outputs[0][w.i * a.rows * b.rows]);
  }
  if (!e->inputs[2]) return true;
  Walk at = walk_over(dst);
  walk_broadcast(&at, 0, &node->inputs[2]->shape);
  for (; at.i < at.nelems; walk_step(&at)) e->outputs[0][at.i] += e->inputs[2][at.at[0]];
  return true;
}

// Convolutions

enum { SPATIAL = MOST_SPATIAL_AXES };

// The extents of a convolution and the strides of its operands. Missing spatial axes have extent 1.
typedef struct Geometry {
  int64_t batch, groups;
  int64_t large_channels, small_channels; // of one group
  Window window[SPATIAL];
  int64_t large_batch, large_channel, large_place[SPATIAL]; // strides of the large side
  int64_t small_batch, small_channel, small_place[SPATIAL];
  int64_t weights_small, weights_large, weights_tap[SPATIAL]; // strides along the axes of the sides' channels
} Geometry;

static Geometry geometry_of(const Node *node) {
  const Shape *large = &node_side(node, SIDE_LARGE)->shape, *small = &node_side(node, SIDE_SMALL)->shape;
  const Shape *weights = &node_side(node, SIDE_WEIGHTS)->shape;
  const Convolution c = node_convolution(node);
  const Dense of_large = dense_strides(large), of_small = dense_strides(small), of_weights = dense_strides(weights);
  Geometry g = {.batch = extent_on(large, 0),
                .groups = c.groups,
                .large_channels = extent_on(weights, c.weights_large),
                .small_channels = extent_on(weights, c.weights_small) / c.groups,
                .large_batch = of_large.stride[0],
                .large_channel = of_large.stride[c.channels],
                .small_batch = of_small.stride[0],
                .small_channel = of_small.stride[c.channels],
                .weights_small = of_weights.stride[c.weights_small],
                .weights_large = of_weights.stride[c.weights_large]};
  for (int i = 0; i < SPATIAL; i++) {
    g.window[i] = (Window){.stride = 1, .dilation = 1, .kernel = 1, .large = 1, .small = 1};
    if (i >= c.nspatial) continue;
    g.window[i] = node_window(node, i);
    g.large_place[i] = of_large.stride[c.first_spatial + i];
    g.small_place[i] = of_small.stride[c.first_spatial + i];
    g.weights_tap[i] = of_weights.stride[c.weights_kernel + i];
  }
  return g;
}

// The windows that have an element at this tap: from `begin` to below `end`.
static Taps windows_with_tap(const Window *w, int64_t tap) {
  const int64_t first = window_place(w, 0, tap);
  Taps t = {.begin = first < 0 ? (-first + w->stride - 1) / w->stride : 0,
            .end = first < w->large ? (w->large - first + w->stride - 1) / w->stride : 0};
  if (t.end > w->small) t.end = w->small;
  return t;
}

// Where the windows' elements at one tap lie in an array: `start` for window 0, which may not exist, and a step for
// each next window.
typedef struct Places {
  int64_t start, step[SPATIAL];
} Places;

static Places places_on_large(const Geometry *g, const int64_t stride[SPATIAL], const int64_t tap[SPATIAL]) {
  Places p = {0};
  for (int i = 0; i < SPATIAL; i++) {
    p.start += window_place(&g->window[i], 0, tap[i]) * stride[i];
    p.step[i] = g->window[i].stride * stride[i];
  }
  return p;
}

static Places places_on_small(const int64_t stride[SPATIAL]) {
  return (Places){0, {stride[0], stride[1], stride[2]}};
}

// The weight that ties a channel of the small side to one of its group's on the large side.
static Places place_of_weight(const Geometry *g, int64_t small, int64_t large, const int64_t tap[SPATIAL]) {
  Places p = {.start = small * g->weights_small + large * g->weights_large};
  for (int i = 0; i < SPATIAL; i++) p.start += tap[i] * g->weights_tap[i];
  return p;
}

// Adds x * y to a sum for each window that has an element at the tap.
static void add_tap(const Geometry *g, const int64_t tap[SPATIAL], Sum *sums, Places at_sum, const double *x,
                    Places at_x, const double *y, Places at_y) {
  Taps u[SPATIAL];
  for (int i = 0; i < SPATIAL; i++) u[i] = windows_with_tap(&g->window[i], tap[i]);
  for (int64_t a = u[0].begin; a < u[0].end; a++)
    for (int64_t b = u[1].begin; b < u[1].end; b++) {
      int64_t s = at_sum.start + a * at_sum.step[0] + b * at_sum.step[1] + u[2].begin * at_sum.step[2];
      int64_t i = at_x.start + a * at_x.step[0] + b * at_x.step[1] + u[2].begin * at_x.step[2];
      int64_t k = at_y.start + a * at_y.step[0] + b * at_y.step[1] + u[2].begin * at_y.step[2];
      for (int64_t c = u[2].begin; c < u[2].end; c++) {
        sum_add(&sums[s], x[i] * y[k]);
        s += at_sum.step[2];
        i += at_x.step[2];
        k += at_y.step[2];
      }
    }
}

// Outside of a tensor 0 is read, so that an infinite factor or NaN beside it makes the sum NaN. Sums with such terms
// are found only if a factor is of that kind.
static bool are_finite(const double *x, const Shape *shape) {
  for (int64_t i = 0; i < shape_nelems(shape); i++)
    if (!isfinite(x[i])) return false;
  return true;
}

// Adds 0 * y to a sum for each window that has no element at the tap.
static void add_windows_outside(const Geometry *g, const int64_t tap[SPATIAL], Sum *sums, Places at_sum,
                                const double *y, Places at_y) {
  Taps u[SPATIAL];
  int64_t w[SPATIAL];
  for (int i = 0; i < SPATIAL; i++) u[i] = windows_with_tap(&g->window[i], tap[i]);
  for (w[0] = 0; w[0] < g->window[0].small; w[0]++)
    for (w[1] = 0; w[1] < g->window[1].small; w[1]++)
      for (w[2] = 0; w[2] < g->window[2].small; w[2]++) {
        int64_t s = at_sum.start, k = at_y.start;
        bool is_inside = true;
        for (int i = 0; i < SPATIAL; i++) {
          s += w[i] * at_sum.step[i];
          k += w[i] * at_y.step[i];
          is_inside &= w[i] >= u[i].begin && w[i] < u[i].end;
        }
        if (!is_inside) sum_add(&sums[s], 0 * y[k]);
      }
}

// Adds 0 * y to the sum of each place that the tap of a window reaches, if that window does not exist.
static void add_places_outside(const Geometry *g, const int64_t tap[SPATIAL], Sum *sums, const int64_t stride[SPATIAL],
                               double y) {
  int64_t t[SPATIAL];
  for (t[0] = 0; t[0] < g->window[0].large; t[0]++)
    for (t[1] = 0; t[1] < g->window[1].large; t[1]++)
      for (t[2] = 0; t[2] < g->window[2].large; t[2]++) {
        bool is_reached = true, is_inside = true;
        for (int i = 0; i < SPATIAL; i++) {
          const Window *w = &g->window[i];
          const int64_t distance = t[i] - window_place(w, 0, tap[i]);
          is_reached &= distance % w->stride == 0;
          is_inside &= distance >= 0 && distance / w->stride < w->small;
        }
        if (is_reached && !is_inside) sum_add(&sums[t[0] * stride[0] + t[1] * stride[1] + t[2] * stride[2]], 0 * y);
      }
}

// The next tap in row-major order; false after the last.
static bool next_tap(const Geometry *g, int64_t tap[SPATIAL]) {
  for (int i = SPATIAL - 1; i >= 0; i--) {
    if (++tap[i] < g->window[i].kernel) return true;
    tap[i] = 0;
  }
  return false;
}

// A channel of the output: a sum for each of its places, which are then stored.
typedef struct Plane {
  Sum *sums; // [extent[0], extent[1], extent[2]]
  int64_t extent[SPATIAL], stride[SPATIAL];
  size_t nelems;
} Plane;

static bool plane_init(const Evaluation *e, const Geometry *g, bool is_large, Plane *p) {
  p->nelems = 1;
  for (int i = SPATIAL - 1; i >= 0; i--) {
    p->extent[i] = is_large ? g->window[i].large : g->window[i].small;
    p->stride[i] = (int64_t)p->nelems;
    p->nelems *= (size_t)p->extent[i];
  }
  p->sums = ARENA_ARRAY(e->scratch, Sum, p->nelems + 1);
  return p->sums != NULL;
}

// Stores the sums, with the channel's bias, at these strides, and begins anew. bias NULL: none.
static void plane_store(const Evaluation *e, Plane *p, const double *bias, double *to, const int64_t stride[SPATIAL]) {
  Sum *sum = p->sums;
  for (int64_t a = 0; a < p->extent[0]; a++)
    for (int64_t b = 0; b < p->extent[1]; b++)
      for (int64_t c = 0; c < p->extent[2]; c++, sum++) {
        if (bias) sum_add(sum, *bias);
        to[a * stride[0] + b * stride[1] + c * stride[2]] = sum_value(sum, e->noise);
        *sum = (Sum){0};
      }
}

static const double *side_data(const Evaluation *e, WindowSide side) {
  for (uint32_t i = 0; i < e->node->ninputs; i++)
    if (e->node->op->inputs[i].side == side) return e->inputs[i];
  return NULL;
}

// The small side, from windows on the large one.
static bool make_small(const Evaluation *e) {
  const Geometry g = geometry_of(e->node);
  const double *large = side_data(e, SIDE_LARGE), *weights = side_data(e, SIDE_WEIGHTS),
               *bias = evaluation_input(e, "bias");
  const bool are_weights_finite = are_finite(weights, &node_side(e->node, SIDE_WEIGHTS)->shape);
  Plane plane;
  if (!plane_init(e, &g, false, &plane)) return false;
  for (int64_t n = 0; n < g.batch; n++)
    for (int64_t s = 0; s < g.groups * g.small_channels; s++) {
      const int64_t first = s / g.small_channels * g.large_channels; // of the group's channels on the large side
      for (int64_t l = 0; l < g.large_channels; l++) {
        const double *x = &large[n * g.large_batch + (first + l) * g.large_channel];
        int64_t tap[SPATIAL] = {0};
        do {
          add_tap(&g, tap, plane.sums, places_on_small(plane.stride), x, places_on_large(&g, g.large_place, tap),
                  weights, place_of_weight(&g, s, l, tap));
          if (!are_weights_finite)
            add_windows_outside(&g, tap, plane.sums, places_on_small(plane.stride), weights,
                                place_of_weight(&g, s, l, tap));
        } while (next_tap(&g, tap));
      }
      plane_store(e, &plane, bias ? &bias[s] : NULL, &e->outputs[0][n * g.small_batch + s * g.small_channel],
                  g.small_place);
    }
  return true;
}

// The large side: each element of the small one is scattered to the places of its window.
static bool make_large(const Evaluation *e) {
  const Geometry g = geometry_of(e->node);
  const double *small = side_data(e, SIDE_SMALL), *weights = side_data(e, SIDE_WEIGHTS),
               *bias = evaluation_input(e, "bias");
  const bool are_weights_finite = are_finite(weights, &node_side(e->node, SIDE_WEIGHTS)->shape);
  Plane plane;
  if (!plane_init(e, &g, true, &plane)) return false;
  for (int64_t n = 0; n < g.batch; n++)
    for (int64_t l = 0; l < g.groups * g.large_channels; l++) {
      const int64_t first = l / g.large_channels * g.small_channels; // of the group's channels on the small side
      for (int64_t s = first; s < first + g.small_channels; s++) {
        const double *y = &small[n * g.small_batch + s * g.small_channel];
        int64_t tap[SPATIAL] = {0};
        do {
          add_tap(&g, tap, plane.sums, places_on_large(&g, plane.stride, tap), y, places_on_small(g.small_place),
                  weights, place_of_weight(&g, s, l % g.large_channels, tap));
          const double weight = weights[place_of_weight(&g, s, l % g.large_channels, tap).start];
          if (!are_weights_finite) add_places_outside(&g, tap, plane.sums, plane.stride, weight);
        } while (next_tap(&g, tap));
      }
      plane_store(e, &plane, bias ? &bias[l] : NULL, &e->outputs[0][n * g.large_batch + l * g.large_channel],
                  g.large_place);
    }
  return true;
}

static bool make_weights(const Evaluation *e) {
  const Geometry g = geometry_of(e->node);
  const double *large = side_data(e, SIDE_LARGE), *small = side_data(e, SIDE_SMALL);
  const bool is_small_finite = are_finite(small, &node_side(e->node, SIDE_SMALL)->shape);
  for (int64_t s = 0; s < g.groups * g.small_channels; s++)
    for (int64_t l = 0; l < g.large_channels; l++) {
      const int64_t channel = s / g.small_channels * g.large_channels + l;
      int64_t tap[SPATIAL] = {0};
      do {
        Sum sum = {0};
        for (int64_t n = 0; n < g.batch; n++) {
          const double *y = &small[n * g.small_batch + s * g.small_channel];
          add_tap(&g, tap, &sum, (Places){0}, &large[n * g.large_batch + channel * g.large_channel],
                  places_on_large(&g, g.large_place, tap), y, places_on_small(g.small_place));
          if (!is_small_finite) add_windows_outside(&g, tap, &sum, (Places){0}, y, places_on_small(g.small_place));
        }
        e->outputs[0][place_of_weight(&g, s, l, tap).start] = sum_value(&sum, e->noise);
      } while (next_tap(&g, tap));
    }
  return true;
}

#define CONVOLUTION(name, make)                                                                                        \
  bool interpret_##name(const Evaluation *e) {                                                                         \
    return make(e);                                                                                                    \
  }

CONVOLUTION(Convolution, make_small)
CONVOLUTION(ConvolutionBackwardData, make_large)
CONVOLUTION(ConvolutionBackwardWeights, make_weights)
CONVOLUTION(ConvTranspose, make_large)
CONVOLUTION(ConvTransposeBackwardData, make_small)
CONVOLUTION(ConvTransposeBackwardWeights, make_weights)
