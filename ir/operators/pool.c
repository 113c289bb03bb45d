// Inference and check functions of pooling.
#include "ir/operators/pool.h"

#include "ir/operators/interpolate.h"
#include "ir/operators/rules.h"
#include "ir/operators/window.h"

enum { AXES_BESIDE = 2, SHAPE_TEXT = 160 }; // axes that are not spatial: batch and channel

bool pool_rounding(const Node *node, int64_t *rounding) {
  const int nspatial = node_side(node, SIDE_LARGE)->shape.rank - AXES_BESIDE;
  bool is_up = false, is_down = false; // on some axis, where the two differ
  for (int i = 0; i < nspatial; i++) {
    const Window w = node_window(node, i);
    if (w.large < 0 || w.small < 0) continue;
    const int64_t padded = w.large + w.pad_begin + w.pad_end, last = (w.small - 1) * w.stride + window_reach(&w);
    is_up |= last > padded; // where the last window ends
    is_down |= last < padded && last + w.stride > padded;
  }
  *rounding = is_up ? ROUNDING_CEIL : ROUNDING_FLOOR;
  return !(is_up && is_down);
}

static bool has_no_taps(const Window *w, int64_t u) {
  const Taps taps = window_taps(w, u);
  return taps.begin == taps.end;
}

// With exclude_pad each window needs an element, as it divides by its number of elements. Only the first and last
// windows of an axis can be empty: AvgPool has no dilation.
static bool infer_divisor(Inference *inf, const Node *node, int spatial) {
  const Value *large = node_side(node, SIDE_LARGE), *small = node_side(node, SIDE_SMALL);
  const int axis = spatial_axis(node) + spatial;
  char shape[SHAPE_TEXT];
  if (!extent_is_literal(large->shape.extent[axis]) || !extent_is_literal(small->shape.extent[axis])) return true;
  const Window w = node_window(node, spatial);
  if (w.small == 0 || (!has_no_taps(&w, 0) && !has_no_taps(&w, w.small - 1))) return true;
  return infer_error(inf,
                     "axis %d of %s %s with padding %lld and %lld: the %s window has no elements, expected at least 1 "
                     "with exclude_pad, which divides by their number",
                     axis, large->name, shape_string(&large->shape, shape, sizeof shape), (long long)w.pad_begin,
                     (long long)w.pad_end, has_no_taps(&w, 0) ? "first" : "last");
}

bool infer_pool(Inference *inf, Node *node) {
  if (!infer_window_ranks(inf, node)) return false;
  Value *large = node_side(node, SIDE_LARGE), *small = node_side(node, SIDE_SMALL);
  const int rank = large->shape.rank, first = spatial_axis(node), end = first + rank - AXES_BESIDE;
  char shape[SHAPE_TEXT];
  for (int axis = 0; axis < rank; axis++) {
    const bool is_spatial = axis >= first && axis < end;
    if (!is_spatial && !infer_same_extent(inf, large, axis, small, axis)) return false;
    if (is_spatial && extent_equals(large->shape.extent[axis], EXTENT(0)))
      return infer_error(inf, "%s %s: expected at least 1 element on axis %d", large->name,
                         shape_string(&large->shape, shape, sizeof shape), axis);
  }
  if (!infer_windows(inf, node)) return false;
  const bool excludes =
      operator_has_attribute(node->op, "exclude_pad") && node_bool(node, "exclude_pad") && window_is_valid(node);
  for (int i = 0; excludes && i < rank - AXES_BESIDE; i++)
    if (!infer_divisor(inf, node, i)) return false;
  return true;
}

#define MOST_TAPS (INT64_C(1) << 53) // kernels number taps in f64, which represents all integers up to this

// Sets the number of taps of a window. False after reporting more taps than kernels can number.
static bool infer_ntaps(Inference *inf, const Node *node, int64_t *ntaps) {
  const AttributeValue *kernel = node_attribute(node, "kernel");
  *ntaps = 1;
  if (!window_is_valid(node)) return true;
  for (size_t i = 0; i < kernel->list.count; i++) {
    if (kernel->list.items[i] > MOST_TAPS / *ntaps)
      return infer_error(inf, "kernel: expected at most 2^53 elements in a window, as kernels number them in f64");
    *ntaps *= kernel->list.items[i];
  }
  return true;
}

bool infer_max_pool_backward(Inference *inf, Node *node) {
  int64_t ntaps;
  return infer_same_shape(inf, node->inputs[0], node->outputs[0]) && infer_pool(inf, node) &&
         infer_ntaps(inf, node, &ntaps);
}

Type pool_type_of_winners(const Node *node) {
  const AttributeValue *kernel = node_attribute(node, "kernel");
  int64_t ntaps = 1; // at most 2^53, see infer_ntaps
  for (size_t i = 0; i < kernel->list.count; i++) ntaps *= kernel->list.items[i];
  return ntaps < UINT8_MAX ? TYPE_U8 : ntaps <= INT32_MAX ? TYPE_S32 : TYPE_S64;
}

bool infer_max_pool_winners(Inference *inf, Node *node) {
  int64_t ntaps;
  if (!infer_pool(inf, node) || !infer_ntaps(inf, node, &ntaps)) return false;
  if (node->inputs[1] && !infer_same_shape(inf, node->inputs[1], node->outputs[0])) return false;
  if (!window_is_valid(node)) return true;
  return infer_type(inf, node->outputs[0], pool_type_of_winners(node));
}

bool infer_max_pool_scatter(Inference *inf, Node *node) {
  int64_t ntaps;
  return infer_same_shape(inf, node->inputs[0], node->inputs[1]) && infer_pool(inf, node) &&
         infer_ntaps(inf, node, &ntaps);
}

bool infer_max_pool_gather(Inference *inf, Node *node) {
  int64_t ntaps;
  return infer_same_shape(inf, node->inputs[0], node->outputs[0]) && infer_pool(inf, node) &&
         infer_ntaps(inf, node, &ntaps);
}

bool check_max_pool_scatter(Node *node, Diagnostics *d) {
  char title[NODE_TITLE_BYTES];
  if (!check_window(node, d)) return false;
  if (node->outputs[0]->shape.rank >= 0) return true;
  return error_at(d, node->position, "%s: expected a shape declared for %s, which does not follow from that of %s",
                  node_title(node, title), node->outputs[0]->name, node->inputs[1]->name);
}

static bool is_extent(int64_t number) {
  return number >= 0 && number < MAX_ELEMENTS;
}

// Reports that diff_src's extent on `axis` differs from src_shape's.
static bool src_shape_error(Inference *inf, const Value *diff_src, const Shape *given, int axis) {
  char found[SHAPE_TEXT], expected[SHAPE_TEXT];
  return infer_error(inf, "%s %s: expected extent %lld on axis %d, as src_shape is %s", diff_src->name,
                     shape_string(&diff_src->shape, found, sizeof found), (long long)given->extent[axis].value, axis,
                     shape_string(given, expected, sizeof expected));
}

// Infers the shape of diff_src from the operand, if it is a constant, or from the attribute.
static bool infer_src_shape(Inference *inf, const Node *node) {
  Value *operand = node->inputs[1], *diff_src = node->outputs[0];
  const int rank = diff_src->shape.rank;
  const AttributeValue *given = node_attribute(node, "src_shape");
  if (operand && (!infer_rank(inf, operand, 1) || !infer_extent_beside(inf, operand, 0, EXTENT(rank), diff_src)))
    return false;
  if (operand ? !operand->constant : !given->list.count) return true;
  if (!operand && given->list.count != (size_t)rank)
    return infer_error(inf, "src_shape: expected a number for each axis of %s, %d, found %zu", diff_src->name, rank,
                       given->list.count);
  Shape shape = {.rank = rank};
  for (int axis = 0; axis < rank; axis++) {
    const size_t at = operand && operand->constant->is_splat ? 0 : (size_t)axis;
    const int64_t number =
        operand ? (int64_t)type_load(operand->type, operand->constant->data, at) : given->list.items[axis];
    if (!is_extent(number))
      return infer_error(inf, "src_shape: expected extents from 0 to below 2^47, found %lld", (long long)number);
    shape.extent[axis] = EXTENT(number);
  }
  for (int axis = 0; axis < rank; axis++) {
    const Extent found = diff_src->shape.extent[axis];
    if (!extent_is_unknown(found) && !extent_equals(found, shape.extent[axis]))
      return src_shape_error(inf, diff_src, &shape, axis);
    if (!infer_extent(inf, diff_src, axis, shape.extent[axis])) return false;
  }
  return true;
}

bool infer_avg_pool_backward(Inference *inf, Node *node) {
  return infer_window_ranks(inf, node) && infer_src_shape(inf, node) && infer_pool(inf, node);
}

bool check_avg_pool_backward(Node *node, Diagnostics *d) {
  char title[NODE_TITLE_BYTES];
  if (!check_window(node, d)) return false;
  if (node->inputs[1] || node_attribute(node, "src_shape")->list.count || node->outputs[0]->shape.rank >= 0)
    return true;
  return error_at(d, node->position,
                  "%s: expected src_shape, or a shape declared for %s, which does not follow from that of %s",
                  node_title(node, title), node->outputs[0]->name, node->inputs[0]->name);
}
