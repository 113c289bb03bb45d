// Writers of resampling.
#include "frontend/onnx/write_standard.h"
#include "ir/operators/interpolate.h"

bool onnx_write_interpolate(OnnxWriter *w, const Node *node, const char *name) {
  const Shape *src = &node->inputs[0]->shape, *dst = &node->outputs[0]->shape;
  const int rank = src->rank;
  int64_t sizes[MAX_RANK] = {0};
  if (!onnx_shape_is_literal(src) || !onnx_shape_is_literal(dst) || shape_nelems(dst) == 0) return false;
  sizes[0] = dst->extent[0].value;
  sizes[1] = dst->extent[onnx_are_last(node) ? rank - 1 : 1].value;
  for (int i = 2; i < rank; i++) sizes[i] = dst->extent[onnx_are_last(node) ? i - 1 : i].value;
  const char *from = onnx_put_data(w, node, w->in[0]), *to = onnx_begin_data(w, node),
             *numbers = onnx_put_numbers(w, sizes, (size_t)rank);
  const bool is_nearest = onnx_choice_is(node, "mode", "nearest");
  onnx_begin(w, name, from, "", "", numbers);
  onnx_add_text(w, "mode", is_nearest ? "nearest" : "linear");
  if (is_nearest) onnx_add_text(w, "nearest_mode", "round_prefer_ceil");
  onnx_add_text(w, "coordinate_transformation_mode",
                onnx_choice_is(node, "coordinate_transformation_mode", "align_corners") ? "align_corners"
                                                                                        : "half_pixel");
  return onnx_end_data(w, node, onnx_end(w, to));
}

// The matrix [output, input] of the weights with which inputs are added to outputs along an axis.
static const char *put_weights(OnnxWriter *w, const Resampling *r) {
  enum { MOST = 1 << 22 };
  const int64_t extents[] = {r->output, r->input};
  if (r->input < 1 || r->output > MOST / r->input) return NULL;
  void *data = arena_array(w->node_names.arena, (size_t)(r->output * r->input + 1), type_nbytes(w->type));
  if (!data) return NULL;
  for (int64_t i = 0; i < r->output * r->input; i++) type_store(w->type, data, (size_t)i, 0);
  for (int64_t o = 0; o < r->output; o++) {
    const int64_t last = (r->input - 1) * r->divisor, given = r->factor * o + r->offset,
                  place = given < 0      ? 0
                          : given > last ? last
                                         : given,
                  floored = place / r->divisor;
    const double part = (double)(place % r->divisor) / (double)r->divisor;
    const int64_t at = o * r->input + (r->is_nearest && part >= 0.5 ? floored + 1 : floored);
    type_store(w->type, data, (size_t)at, r->is_nearest ? 1 : 1 - part);
    if (!r->is_nearest && part > 0) type_store(w->type, data, (size_t)at + 1, part);
  }
  return onnx_put_initializer(w, w->type, extents, 2, data);
}

// Along each axis, the product with the matrix of weights: the axis is moved behind all others, and back.
bool onnx_write_interpolate_backward(OnnxWriter *w, const Node *node, const char *name) {
  const int rank = node->inputs[0]->shape.rank;
  if (!onnx_shape_is_literal(&node->inputs[0]->shape) || !onnx_shape_is_literal(&node->inputs[1]->shape) ||
      shape_nelems(&node->inputs[1]->shape) == 0)
    return false;
  const char *v = w->in[1];
  for (int i = 0; i < rank - 2; i++) {
    const Resampling r = node_resampling(node, i);
    const int axis = spatial_axis(node) + i;
    int64_t order[MAX_RANK];
    for (int k = 0; k < rank; k++) order[k] = k;
    order[axis] = rank - 1;
    order[rank - 1] = axis;
    const bool is_last = i == rank - 3, is_behind = axis == rank - 1;
    const char *weights = put_weights(w, &r), *to = is_last ? w->out[0] : NULL;
    if (!weights) return false;
    if (!is_behind) v = onnx_put_transpose(w, v, order, rank, NULL);
    v = onnx_put(w, name, is_behind ? to : NULL, v, weights);
    if (!is_behind) v = onnx_put_transpose(w, v, order, rank, to);
  }
  return true;
}
