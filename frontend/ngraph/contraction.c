// Products, convolutions and pooling. Channels are the second axis.
#include "frontend/ngraph/translation.h"

enum { MOST_SPATIAL = 3 };

static int64_t product(const Shape *shape, int from, int to) {
  int64_t n = 1;
  for (int i = from; i < to; i++) n *= shape->extent[i].value;
  return n;
}

// Sums over the last `count` axes of the first operand and the first `count` axes of the second. For scalars, or count
// 0, it multiplies all pairs of elements.
bool ngraph_dot(Ngraph *x) {
  Builder *b = &x->build;
  const NgraphArgument *given = ngraph_argument(x, "reduction_axes_count");
  const Shape *m = ngraph_shape(x, 0), *n = ngraph_shape(x, 1);
  Value *left = ngraph_in(x, 0), *right = ngraph_in(x, 1);
  if (!left || !right) return false;
  const int count = given->y && given->items[0] <= MAX_RANK ? (int)given->items[0]
                    : given->y                              ? MAX_RANK + 1
                                                            : m->rank && n->rank;
  if (count > m->rank || count > n->rank || m->rank + n->rank - 2 * count > MAX_RANK)
    return ngraph_tell(x, x->at, "expected fewer axes to sum over, or operands of other ranks");
  if (left->type != right->type) return ngraph_tell(x, x->at, "expected operands of one type");
  const int free = m->rank - count;
  int64_t extents[MAX_RANK], left_extents[MAX_RANK];
  for (int i = 0; i < free; i++) extents[i] = left_extents[i] = m->extent[i].value;
  for (int i = count; i < n->rank; i++) {
    extents[free + i - count] = n->extent[i].value;
    left_extents[free + i - count] = 1;
  }
  for (int i = 0; i < count; i++)
    if (!extent_equals(m->extent[free + i], n->extent[i]))
      return ngraph_tell(x, x->at, "expected equal extents along the axes that are summed over");
  const size_t rank = (size_t)(free + n->rank - count);
  const Type type = left->type;
  const OperatorId op = count ? OP_MatMul : OP_Multiply;
  left = ngraph_carry(x, op, left);
  right = ngraph_carry(x, op, right);
  if (!count)
    return ngraph_out(x, 0,
                      build_cast(b, build_binary(b, op, ngraph_reshape(x, left, left_extents, rank), right), type));
  const int64_t rows[] = {product(m, 0, free), product(m, free, m->rank)},
                columns[] = {product(n, 0, count), product(n, count, n->rank)};
  Value *v = build_binary(b, op, ngraph_reshape(x, left, rows, 2), ngraph_reshape(x, right, columns, 2));
  return ngraph_out(x, 0, build_cast(b, ngraph_reshape(x, v, extents, rank), type));
}

// The windows of a convolution. nGraph dilates the data, then pads them. Negative padding removes elements: a Pad node
// does so, and the convolution node gets the padding that is not negative.
typedef struct Windows {
  size_t nspatial;
  int64_t stride[MOST_SPATIAL], dilation[MOST_SPATIAL], below[MOST_SPATIAL], above[MOST_SPATIAL];
  int64_t gap[MOST_SPATIAL];                        // neighbouring elements of the data become `gap` elements apart
  int64_t cut_below[MAX_RANK], cut_above[MAX_RANK]; // by axis of the data: its negative padding, or 0
} Windows;

static bool take_spatial(Ngraph *x, int rank, size_t *n) {
  if (rank < 3 || rank > 2 + MOST_SPATIAL) return ngraph_tell(x, x->at, "expected 1 to %d spatial axes", MOST_SPATIAL);
  *n = (size_t)rank - 2;
  return true;
}

static bool take_windows(Ngraph *x, int rank, Windows *w) {
  *w = (Windows){.nspatial = 0};
  if (!take_spatial(x, rank, &w->nspatial)) return false;
  const size_t n = w->nspatial;
  if (!ngraph_numbers(x, "window_movement_strides", n, 1, w->stride) ||
      !ngraph_numbers(x, "window_dilation_strides", n, 1, w->dilation) ||
      !ngraph_numbers(x, "padding_below", n, 0, w->below) || !ngraph_numbers(x, "padding_above", n, 0, w->above) ||
      !ngraph_numbers(x, "data_dilation_strides", n, 1, w->gap))
    return false;
  for (size_t i = 0; i < n; i++) {
    if (w->gap[i] < 1 || w->gap[i] > INT32_MAX) return ngraph_tell(x, x->at, "expected dilation strides above 0");
    if (w->below[i] < 0) w->cut_below[i + 2] = w->below[i];
    if (w->above[i] < 0) w->cut_above[i + 2] = w->above[i];
    if (w->below[i] < 0) w->below[i] = 0;
    if (w->above[i] < 0) w->above[i] = 0;
  }
  return true;
}

// The extents of the data after dilation and negative padding.
static bool dilated_shape(Ngraph *x, const Windows *w, const Shape *data, int64_t *extents) {
  Shape shape = *data;
  for (int i = 0; i < data->rank; i++) {
    const int64_t extent = data->extent[i].value, gap = i < 2 ? 1 : w->gap[i - 2];
    Shape inside = *data;
    inside.extent[i] = EXTENT(extent > MAX_ELEMENTS / gap ? MAX_ELEMENTS : extent * gap);
    if (shape_nelems(&inside) < 0) return ngraph_tell(x, x->at, "expected fewer than 2^47 elements");
    extents[i] = (extent ? (extent - 1) * gap + 1 : 0) + w->cut_below[i] + w->cut_above[i];
    if (extents[i] < 0)
      return ngraph_tell(x, x->at, "axis %d: expected an extent of at least 0 after negative padding, found %lld", i,
                         (long long)extents[i]);
    shape.extent[i] = EXTENT(extents[i]);
  }
  return shape_nelems(&shape) >= 0 || ngraph_tell(x, x->at, "expected fewer than 2^47 elements");
}

// The data after dilation and negative padding.
static Value *dilate(Ngraph *x, const Windows *w, Value *v) {
  int64_t interior[MAX_RANK] = {0}, extents[MAX_RANK];
  for (size_t i = 0; i < w->nspatial; i++) interior[i + 2] = w->gap[i] - 1;
  return v && dilated_shape(x, w, &v->shape, extents) ? ngraph_pad(x, v, w->cut_below, w->cut_above, interior, 0)
                                                      : NULL;
}

static bool set_windows(Ngraph *x, Node *node, const Windows *w) {
  const size_t n = w->nspatial;
  return build_set_list(&x->build, node, "strides", w->stride, n) &&
         build_set_list(&x->build, node, "pads_begin", w->below, n) &&
         build_set_list(&x->build, node, "pads_end", w->above, n) && build_set_choice(node, "auto_pad", "None") &&
         build_set_choice(node, "data_format", "NCX");
}

static bool set_convolution(Ngraph *x, Node *node, const Windows *w) {
  return set_windows(x, node, w) && build_set_list(&x->build, node, "dilations", w->dilation, w->nspatial) &&
         build_set_choice(node, "weights_format", "OIX");
}

bool ngraph_convolution(Ngraph *x) {
  Windows w;
  if (!take_windows(x, ngraph_shape(x, 0)->rank, &w)) return false;
  Value *const in[] = {dilate(x, &w, ngraph_in(x, 0)), ngraph_in(x, 1)};
  Node *node = build_node(&x->build, OP_Convolution, 2, in);
  return set_convolution(x, node, &w) && ngraph_out(x, 0, build_one(&x->build, node));
}

// Inputs: the filters, the result's gradient. The node computes the gradient of the dilated data. A Pad restores the
// elements that negative padding removed, with gradient 0; a Slice drops the zeros between elements of the data.
bool ngraph_convolution_backprop_data(Ngraph *x) {
  Windows w;
  Shape data;
  int64_t extents[MAX_RANK], none[MAX_RANK] = {0}, steps[MAX_RANK], below[MAX_RANK], above[MAX_RANK];
  Value *const in[] = {ngraph_in(x, 1), ngraph_in(x, 0)};
  if (!ngraph_extents(x, "data_batch_shape", &data) || !take_windows(x, data.rank, &w) ||
      !dilated_shape(x, &w, &data, extents))
    return false;
  Node *node = build_node(&x->build, OP_ConvolutionBackwardData, 2, in);
  if (!set_convolution(x, node, &w) || !build_set_list(&x->build, node, "dst_shape", extents, (size_t)data.rank))
    return false;
  Value *v = build_one(&x->build, node);
  for (int i = 0; i < data.rank; i++) {
    below[i] = -w.cut_below[i];
    above[i] = -w.cut_above[i];
    extents[i] += below[i] + above[i];
    steps[i] = i < 2 ? 1 : w.gap[i - 2];
  }
  v = ngraph_pad(x, v, below, above, none, 0);
  return ngraph_out(x, 0, ngraph_slice(x, v, none, extents, steps));
}

bool ngraph_convolution_backprop_filters(Ngraph *x) {
  Windows w;
  Shape filters;
  int64_t extents[MAX_RANK];
  if (!ngraph_extents(x, "filters_shape", &filters) || !take_windows(x, filters.rank, &w)) return false;
  if (ngraph_shape(x, 0)->rank != filters.rank)
    return ngraph_tell(x, x->at, "expected data of as many axes as filters");
  for (int i = 0; i < filters.rank; i++) extents[i] = filters.extent[i].value;
  Value *const in[] = {dilate(x, &w, ngraph_in(x, 0)), ngraph_in(x, 1)};
  Node *node = build_node(&x->build, OP_ConvolutionBackwardWeights, 2, in);
  return set_convolution(x, node, &w) &&
         build_set_list(&x->build, node, "weights_shape", extents, (size_t)filters.rank) &&
         ngraph_out(x, 0, build_one(&x->build, node));
}

// Pooling

static bool set_pool(Ngraph *x, Node *node, int rank) {
  Windows w = {.nspatial = 0};
  int64_t kernel[MOST_SPATIAL];
  if (!take_spatial(x, rank, &w.nspatial)) return false;
  const size_t n = w.nspatial;
  return ngraph_numbers(x, "window_shape", n, 1, kernel) &&
         ngraph_numbers(x, "window_movement_strides", n, 1, w.stride) &&
         ngraph_numbers(x, "padding_below", n, 0, w.below) && ngraph_numbers(x, "padding_above", n, 0, w.above) &&
         set_windows(x, node, &w) && build_set_list(&x->build, node, "kernel", kernel, n);
}

static void set_padding(Ngraph *x, Node *node) {
  build_set(node, "exclude_pad")->boolean = ngraph_argument(x, "include_padding_in_avg_computation")->number == 0;
}

bool ngraph_pool(Ngraph *x) {
  Value *v = ngraph_in(x, 0);
  Node *node = build_node(&x->build, x->row->op, 1, &v);
  if (!v || !set_pool(x, node, v->shape.rank)) return false;
  build_set_choice(node, "rounding_type", ngraph_argument(x, "ceil_mode")->number != 0 ? "ceil" : "floor");
  if (x->row->op == OP_AvgPool) set_padding(x, node);
  return ngraph_out(x, 0, build_one(&x->build, node));
}

bool ngraph_avg_pool_backprop(Ngraph *x) {
  Value *v = ngraph_in(x, 0);
  Shape data;
  int64_t extents[MAX_RANK];
  Node *node = build_node(&x->build, OP_AvgPoolBackward, 1, &v);
  if (!ngraph_extents(x, "forward_arg_shape", &data) || !set_pool(x, node, data.rank)) return false;
  for (int i = 0; i < data.rank; i++) extents[i] = data.extent[i].value;
  set_padding(x, node);
  return build_set_list(&x->build, node, "src_shape", extents, (size_t)data.rank) &&
         ngraph_out(x, 0, build_one(&x->build, node));
}

// Inputs: the data, the result's gradient, and possibly the result, which is ignored because it follows from the data.
bool ngraph_max_pool_backprop(Ngraph *x) {
  Value *const in[] = {ngraph_in(x, 0), ngraph_in(x, 1)};
  Node *node = build_node(&x->build, OP_MaxPoolBackward, 2, in);
  return node && set_pool(x, node, in[0]->shape.rank) && ngraph_out(x, 0, build_one(&x->build, node));
}
