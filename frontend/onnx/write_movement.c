// Writers of casts and of operators that move elements.
#include "frontend/onnx/write_standard.h"

#include <math.h>
#include <string.h>

// Floats are rounded to even, and saturate; ONNX's Cast drops the fraction, and leaves what is out of range undefined.
// The numbers are clipped as f64, which has no 2^63 - 1: from 2^63 on, s64 gets the constant, as u64 does from 2^64 on.
void onnx_put_saturated(OnnxWriter *w, const char *v, Type from, Type to, const char *dst) {
  const bool is_wide = TYPES_64_BITS & TYPE_BIT(to);
  const double beyond = type_greatest(to);
  v = onnx_put(w, "Round", NULL, from == TYPE_F64 ? v : onnx_put_cast(w, v, TYPE_F64, NULL));
  const char *zero = onnx_put_scalar(w, TYPE_F64, 0); // of NaN
  v = onnx_put(w, "Where", NULL, onnx_put(w, "Equal", NULL, v, v), v, zero);
  const char *most = onnx_put_scalar(w, TYPE_F64, is_wide ? nextafter(beyond, 0) : beyond),
             *least = onnx_put_scalar(w, TYPE_F64, type_least(to)),
             *clipped = onnx_put(w, "Min", NULL, onnx_put(w, "Max", NULL, v, least), most),
             *result = onnx_put_cast(w, clipped, to, is_wide ? NULL : dst);
  if (!is_wide) return;
  const char *top = onnx_put_scalar(w, to, beyond);
  onnx_put(w, "Where", dst, onnx_put(w, "GreaterOrEqual", NULL, v, onnx_put_scalar(w, TYPE_F64, beyond)), top, result);
}

// Of integers, both casts keep the low bits.
bool onnx_write_cast(OnnxWriter *w, const Node *node, const char *name) {
  const Type from = node->inputs[0]->type, to = node->outputs[0]->type;
  (void)name;
  if (type_is_float(from) && TYPES_INTEGER & TYPE_BIT(to)) onnx_put_saturated(w, w->in[0], from, to, w->out[0]);
  else onnx_put_cast(w, w->in[0], to, w->out[0]);
  return true;
}

bool onnx_write_reshape(OnnxWriter *w, const Node *node, const char *name) {
  const Shape *shape = &node->outputs[0]->shape;
  const bool is_empty = onnx_shape_is_literal(shape) && shape_nelems(shape) == 0; // ONNX infers no extent beside a 0
  int64_t extents[MAX_RANK];
  for (int i = 0; is_empty && i < shape->rank; i++) extents[i] = shape->extent[i].value;
  const char *numbers = is_empty ? onnx_put_numbers(w, extents, (size_t)shape->rank)
                                 : onnx_put_items(w, node, "shape", node_attribute(node, "shape")->list.count, NULL);
  onnx_begin(w, name, w->in[0], numbers);
  if (is_empty || !node_bool(node, "special_zero")) onnx_add_int(w, "allowzero", 1);
  return onnx_end(w, w->out[0]);
}

bool onnx_write_transpose(OnnxWriter *w, const Node *node, const char *name) {
  const AttributeValue *order = node_attribute(node, "order");
  int64_t axes[MAX_RANK];
  const int rank = node->inputs[0]->shape.rank;
  if (order->list.count == 0) return onnx_write_same(w, node, name); // both reverse the axes by default
  for (int i = 0; i < rank; i++)
    axes[i] = order->list.items[i] < 0 ? order->list.items[i] + rank : order->list.items[i];
  onnx_put_transpose(w, w->in[0], axes, rank, w->out[0]);
  return true;
}

bool onnx_write_along_axis(OnnxWriter *w, const Node *node, const char *name) {
  onnx_begin_same(w, node, name);
  onnx_add_int(w, "axis", node_s64(node, "axis"));
  return onnx_end(w, w->out[0]);
}

bool onnx_write_slice(OnnxWriter *w, const Node *node, const char *name) {
  static const char *const lists[] = {"starts", "ends", "axes", "steps"};
  const size_t count = node_attribute(node, "starts")->list.count;
  static const int64_t axes[MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7}, steps[MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
  const char *in[4];
  for (size_t i = 0; i < 4; i++) in[i] = onnx_put_items(w, node, lists[i], count, i == 2 ? axes : steps);
  return onnx_put(w, name, w->out[0], w->in[0], in[0], in[1], in[2], in[3]);
}

bool onnx_write_pad(OnnxWriter *w, const Node *node, const char *name) {
  const AttributeValue *lists[] = {node_attribute(node, "pads_begin"), node_attribute(node, "pads_end")};
  const size_t rank = (size_t)node->inputs[0]->shape.rank;
  int64_t pads[2 * MAX_RANK];
  Extent extents[2 * MAX_RANK];
  if (rank == 0) return onnx_put(w, "Identity", w->out[0], w->in[0]);
  onnx_list_pads(node, rank, pads);
  for (size_t i = 0; i < 2 * rank; i++) {
    const Extent *named = lists[i / rank]->list.extents;
    extents[i] = named && named[i % rank].dim ? named[i % rank] : EXTENT(pads[i]);
  }
  const bool is_named = lists[0]->list.extents || lists[1]->list.extents;
  const char *numbers = is_named ? onnx_put_extents(w, extents, 2 * rank) : onnx_put_numbers(w, pads, 2 * rank),
             *value = onnx_put_scalar(w, node->inputs[0]->type, node_f32(node, "value"));
  return onnx_put(w, name, w->out[0], w->in[0], numbers, value);
}

// With more repeats than axes, src gets axes of extent 1 in front.
bool onnx_write_tile(OnnxWriter *w, const Node *node, const char *name) {
  const AttributeValue *repeats = node_attribute(node, "repeats");
  const size_t rank = (size_t)node->inputs[0]->shape.rank, count = repeats->list.count;
  int64_t items[MAX_RANK], axes[MAX_RANK] = {0};
  if (count > MAX_RANK) return false;
  for (size_t i = 0; i < rank; i++) items[i] = 1;
  memcpy(items + (count < rank ? rank - count : 0), repeats->list.items, count * sizeof *items);
  for (size_t i = 0; i + rank < count; i++) axes[i] = (int64_t)i;
  const char *from = onnx_put_axes(w, "Unsqueeze", w->in[0], axes, count > rank ? count - rank : 0, NULL);
  return onnx_put(w, name, w->out[0], from, onnx_put_numbers(w, items, count > rank ? count : rank));
}

// Parts that nothing uses get names, too.
bool onnx_write_split(OnnxWriter *w, const Node *node, const char *name) {
  const AttributeValue *splits = node_attribute(node, "splits");
  const char *numbers = NULL;
  const size_t count = splits->list.count ? splits->list.count : (size_t)node_s64(node, "parts");
  const int rank = node->inputs[0]->shape.rank;
  const int64_t axis = node_s64(node, "axis");
  if (!extent_is_literal(node->inputs[0]->shape.extent[axis < 0 ? axis + rank : axis])) return false;
  if (splits->list.count) numbers = onnx_put_numbers(w, splits->list.items, count);
  onnx_begin(w, name, w->in[0], numbers);
  if (!numbers && w->opset > ONNX_OPSET) onnx_add_int(w, "num_outputs", (int64_t)count);
  onnx_add_int(w, "axis", axis);
  for (size_t i = 0; i < count; i++) onnx_add_output(w, i < node->noutputs && w->out[i] ? w->out[i] : onnx_fresh(w));
  onnx_close(w);
  return true;
}

// Labels as s64, `depth` in place of negative ones.
static const char *put_labels(OnnxWriter *w, const char *labels, Type type, double depth) {
  if (type != TYPE_S64) labels = onnx_put_cast(w, labels, TYPE_S64, NULL);
  const char *other = onnx_put_scalar(w, TYPE_S64, depth), *zero = onnx_put_scalar(w, TYPE_S64, 0);
  return onnx_put(w, "Where", NULL, onnx_put(w, "Less", NULL, labels, zero), other, labels);
}

// ONNX counts negative labels from the end; here they have no 1. All systems have OneHot for s64 and f32.
bool onnx_write_one_hot(OnnxWriter *w, const Node *node, const char *name) {
  const Type type = node->outputs[0]->type;
  const double depth = (double)node_s64(node, "depth");
  const double numbers[] = {node_f32(node, "off_value"), node_f32(node, "on_value")};
  float values[2];
  const int64_t two = 2;
  if (!(TYPE_BIT(type) & TYPES_CAST)) return false;
  for (int i = 0; i < 2; i++) values[i] = (float)numbers[i];
  if (type == TYPE_F64 && ((double)values[0] != numbers[0] || (double)values[1] != numbers[1])) return false;
  const bool is_one = node->inputs[0]->shape.rank == 0; // ONNX wants an axis
  const int64_t first = 0;
  const char *labels = put_labels(w, w->in[0], node->inputs[0]->type, depth);
  if (is_one) labels = onnx_put_axes(w, "Unsqueeze", labels, &first, 1, NULL);
  const char *both = onnx_put_initializer(w, TYPE_F32, &two, 1, values), *count = onnx_put_scalar(w, TYPE_S64, depth);
  onnx_begin(w, name, labels, count, both);
  onnx_add_int(w, "axis", is_one ? 1 : node_s64(node, "axis"));
  const char *to = onnx_end(w, type == TYPE_F32 && !is_one ? w->out[0] : NULL);
  if (is_one) to = onnx_put_axes(w, "Squeeze", to, &first, 1, type == TYPE_F32 ? w->out[0] : NULL);
  if (type != TYPE_F32) onnx_put_cast(w, to, type, w->out[0]);
  return true;
}

// Every (n + 1)-th element of the two axes, flattened.
bool onnx_write_diagonal(OnnxWriter *w, const Node *node, const char *name) {
  const Shape *shape = &node->inputs[0]->shape;
  const int rank = shape->rank;
  int64_t axes[2] = {node_s64(node, "axis1"), node_s64(node, "axis2")}, order[MAX_RANK], items[MAX_RANK];
  int count = 0;
  for (int i = 0; i < 2; i++)
    if (axes[i] < 0) axes[i] += rank;
  for (int i = 0; i < rank; i++)
    if (i != axes[0] && i != axes[1]) order[count++] = i;
  order[count] = axes[0];
  order[count + 1] = axes[1];
  const Extent n = shape->extent[axes[0]];
  if (!extent_is_literal(n) || n.value == 0) return false;
  for (int i = 0; i < count; i++) {
    const Extent e = shape->extent[order[i]];
    if (extent_is_literal(e) && e.value == 0) return false;
    items[i] = 0;
  }
  items[count] = n.value * n.value;
  const char *flat =
      onnx_put_reshape(w, onnx_put_transpose(w, w->in[0], order, rank, NULL), items, (size_t)count + 1, NULL);
  const int64_t slice[] = {0, n.value * n.value, count, n.value + 1};
  const char *in[4];
  for (int i = 0; i < 4; i++) in[i] = onnx_put_numbers(w, &slice[i], 1);
  return onnx_put(w, name, w->out[0], flat, in[0], in[1], in[2], in[3]);
}

// 0, 1, ... along an axis, expanded to src's shape.
bool onnx_write_index(OnnxWriter *w, const Node *node, const char *name) {
  enum { MOST = 1 << 20 };
  const Shape *shape = &node->inputs[0]->shape;
  int64_t axis = node_s64(node, "axis"), all[MAX_RANK];
  if (axis < 0) axis += shape->rank;
  const Extent n = shape->extent[axis];
  if (!extent_is_literal(n) || n.value > MOST) return false;
  for (int i = 0; i < shape->rank; i++) all[i] = extent_value(shape->extent[i]);
  const char *row = onnx_put_range(w, TYPE_S32, n.value, shape->rank - 1 - (int)axis),
             *extents = onnx_shape_is_literal(shape) ? onnx_put_numbers(w, all, (size_t)shape->rank)
                                                     : onnx_put(w, "Shape", NULL, w->in[0]);
  return onnx_put(w, name, w->out[0], row, extents);
}

// Zeros, to which the updates are added: [rows, ...] at the positions [count, 1]. Other axes than the first are moved
// in front, and back.
bool onnx_write_gather_backward(OnnxWriter *w, const Node *node, const char *name) {
  const Shape *shape = &node->outputs[0]->shape, *indices = &node->inputs[0]->shape, *rows = &node->inputs[1]->shape;
  int64_t axis = node_s64(node, "axis"), order[MAX_RANK], back[MAX_RANK], extents[MAX_RANK], items[MAX_RANK] = {-1, 1};
  if (axis < 0) axis += shape->rank;
  if (!onnx_shape_is_literal(shape) || !onnx_shape_is_literal(indices) || shape_nelems(shape) == 0 ||
      shape_nelems(rows) == 0)
    return false;
  int count = 0, nback = 0;
  for (int i = 0; i < indices->rank; i++) order[count++] = axis + i;
  for (int i = 0; i < rows->rank; i++)
    if (i < axis || i >= axis + indices->rank) order[count++] = i;
  const char *places = onnx_put_cast(w, w->in[0], TYPE_S64, NULL),
             *updates = axis ? onnx_put_transpose(w, w->in[1], order, rows->rank, NULL) : w->in[1];
  places = onnx_put_reshape(w, places, items, 2, NULL);
  extents[0] = shape->extent[axis].value;
  for (int i = 0, k = 1; i < shape->rank; i++)
    if (i != axis) extents[k++] = shape->extent[i].value;
  memcpy(items, extents, sizeof items);
  items[0] = -1;
  updates = onnx_put_reshape(w, updates, items, (size_t)shape->rank, NULL);
  const char *zeros = onnx_put_filled(w, 0, extents, (size_t)shape->rank);
  onnx_begin(w, name, zeros, places, updates);
  onnx_add_text(w, "reduction", "add");
  const char *to = onnx_end(w, axis ? NULL : w->out[0]);
  for (int i = 0; i < shape->rank; i++) back[nback++] = i < axis ? i + 1 : i == axis ? 0 : i;
  if (axis) onnx_put_transpose(w, to, back, shape->rank, w->out[0]);
  return true;
}
