// Nodes, initializers and properties that the writers of ONNX's operators share.
#include "frontend/onnx/formula.h"
#include "frontend/onnx/write_standard.h"

#include <string.h>

bool onnx_choice_is(const Node *node, const char *attribute, const char *choice) {
  const AttributeValue *value = node_attribute(node, attribute);
  return strcmp(node->op->attributes[value - node->attributes].choices[value->s64], choice) == 0;
}

const char *onnx_put(OnnxWriter *w, const char *op, const char *a, const char *b, const char *to) {
  if (!to) to = onnx_keep(w, onnx_fresh(w));
  onnx_begin(w, op, "");
  onnx_add_input(w, a);
  if (b) onnx_add_input(w, b);
  onnx_add_output(w, to);
  onnx_end(w);
  return to;
}

const char *onnx_put_cast(OnnxWriter *w, const char *from, Type type, const char *to) {
  if (!to) to = onnx_keep(w, onnx_fresh(w));
  onnx_begin(w, "Cast", "");
  onnx_add_input(w, from);
  onnx_add_int(w, "to", (int64_t)onnx_type_number(type));
  onnx_add_output(w, to);
  onnx_end(w);
  return to;
}

const char *onnx_put_transpose(OnnxWriter *w, const char *from, const int64_t *order, int rank, const char *to) {
  if (!to) to = onnx_keep(w, onnx_fresh(w));
  onnx_begin(w, "Transpose", "");
  onnx_add_input(w, from);
  onnx_add_ints(w, "perm", order, (size_t)rank);
  onnx_add_output(w, to);
  onnx_end(w);
  return to;
}

const char *onnx_put_numbers(OnnxWriter *w, const int64_t *items, size_t count) {
  return onnx_keep(w, onnx_add_numbers(w, items, count));
}

const char *onnx_put_scalar(OnnxWriter *w, Type type, double value) {
  return onnx_keep(w, onnx_add_scalar(w, type, value));
}

const char *onnx_put_axes(OnnxWriter *w, const char *op, const char *from, const int64_t *axes, size_t count,
                          const char *to) {
  if (count == 0 && !to) return from;
  return count ? onnx_put(w, op, from, onnx_put_numbers(w, axes, count), to) : onnx_put(w, "Identity", from, NULL, to);
}

const char *onnx_put_reshape(OnnxWriter *w, const char *from, const int64_t *items, size_t count, const char *to) {
  return onnx_put(w, "Reshape", from, onnx_put_numbers(w, items, count), to);
}

const char *onnx_put_where(OnnxWriter *w, const char *condition, const char *a, const char *b, const char *to) {
  if (!to) to = onnx_keep(w, onnx_fresh(w));
  onnx_begin(w, "Where", "");
  onnx_add_input(w, condition);
  onnx_add_input(w, a);
  onnx_add_input(w, b);
  onnx_add_output(w, to);
  onnx_end(w);
  return to;
}

void onnx_list_pads(const Node *node, size_t naxes, int64_t pads[2 * MAX_RANK]) {
  const AttributeValue *begin = node_attribute(node, "pads_begin"), *end = node_attribute(node, "pads_end");
  for (size_t i = 0; i < naxes; i++) {
    pads[i] = begin->list.count ? begin->list.items[i] : 0;
    pads[naxes + i] = end->list.count ? end->list.items[i] : 0;
  }
}

bool onnx_is_float(double number) {
  return (double)(float)number == number;
}

bool onnx_shape_is_literal(const Shape *shape) {
  for (int i = 0; i < shape->rank; i++)
    if (!extent_is_literal(shape->extent[i])) return false;
  return shape->rank >= 0;
}

const char *onnx_put_shape(OnnxWriter *w, const char *from, const Shape *shape, bool keeps_first, const char *to) {
  int64_t items[MAX_RANK] = {0};
  int nopen = 0;
  bool is_empty = false;
  for (int i = 0; i < shape->rank; i++) {
    const bool is_open = !extent_is_literal(shape->extent[i]);
    items[i] = is_open && i == 0 && keeps_first ? 0 : is_open ? -1 : shape->extent[i].value;
    nopen += items[i] == -1;
    if (i == 0 && is_open && keeps_first) continue;
    is_empty |= items[i] == 0;
  }
  if (nopen > 1 || (nopen && is_empty)) return NULL;
  if (!to) to = onnx_keep(w, onnx_fresh(w));
  const char *numbers = onnx_put_numbers(w, items, (size_t)shape->rank);
  onnx_begin(w, "Reshape", "");
  onnx_add_input(w, from);
  onnx_add_input(w, numbers);
  if (is_empty) onnx_add_int(w, "allowzero", 1);
  onnx_add_output(w, to);
  onnx_end(w);
  return to;
}

const char *onnx_put_channels_first(OnnxWriter *w, const char *from, int rank, const char *to) {
  int64_t order[MAX_RANK] = {0, rank - 1};
  for (int i = 2; i < rank; i++) order[i] = i - 1;
  return onnx_put_transpose(w, from, order, rank, to);
}

const char *onnx_put_channels_last(OnnxWriter *w, const char *from, int rank, const char *to) {
  int64_t order[MAX_RANK] = {0};
  for (int i = 1; i < rank; i++) order[i] = i + 1 < rank ? i + 1 : 1;
  return onnx_put_transpose(w, from, order, rank, to);
}

bool onnx_write_formula(OnnxWriter *w, const Node *node, const char *text) {
  Formula f;
  (void)node;
  formula_init(&f, w);
  formula_write(&f, text);
  return true;
}

bool onnx_write_same(OnnxWriter *w, const Node *node, const char *name) {
  onnx_begin(w, name, "");
  for (uint32_t i = 0; i < node->ninputs; i++) onnx_add_input(w, node->inputs[i] ? w->in[i] : "");
  onnx_add_output(w, w->out[0]);
  onnx_end(w);
  return true;
}
