// Writes messages: fields, tensors, and nodes with their operands and attributes.
#include "frontend/onnx/writer.h"

#include "frontend/onnx/fields.h"
#include "frontend/onnx/model.h"

#include <string.h>

// The wire format

static void put_varint(Text *out, uint64_t value) {
  char bytes[10];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) bytes[count++] = (char)(value | 0x80);
  bytes[count++] = (char)value;
  text_add(out, bytes, count);
}

void onnx_put_number(Text *out, uint32_t field, uint64_t value) {
  put_varint(out, (uint64_t)field << 3 | WIRE_VARINT);
  put_varint(out, value);
}

static void put_bytes(Text *out, uint32_t field, const void *bytes, size_t nbytes) {
  put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
  put_varint(out, nbytes);
  text_add(out, bytes, nbytes);
}

void onnx_put_text(Text *out, uint32_t field, const char *text) {
  put_bytes(out, field, text, strlen(text));
}

void onnx_put_message(Text *out, uint32_t field, Text *message) {
  put_bytes(out, field, text_string(message), message->nbytes);
  out->out_of_memory |= message->out_of_memory;
  message->nbytes = 0;
}

static void put_little_endian(Text *out, uint64_t bits, size_t nbytes) {
  char bytes[8];
  for (size_t i = 0; i < nbytes; i++) bytes[i] = (char)(bits >> 8 * i);
  text_add(out, bytes, nbytes);
}

static void put_float(Text *out, double value) {
  const float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  put_little_endian(out, bits, sizeof bits);
}

// Tensors

static void put_elements(Text *out, Type type, const void *data, size_t nelems) {
  const size_t nbytes = type_nbytes(type);
  const union {
    uint16_t number;
    uint8_t bytes[2];
  } one = {.number = 1};
  if (one.bytes[0] || nbytes == 1) { // the host is little-endian, or elements are single bytes
    text_add(out, data, type_array_nbytes(type, nelems));
    return;
  }
  for (size_t i = 0; i < nelems; i++)
    for (size_t k = nbytes; k-- > 0;) text_add(out, (const char *)data + i * nbytes + k, 1);
}

void onnx_put_tensor(Text *out, uint32_t field, const char *name, Type type, const int64_t *extents, int rank,
                     const void *data) {
  Text tensor, raw;
  size_t nelems = 1;
  text_init(&tensor, out->allocator);
  text_init(&raw, out->allocator);
  for (int i = 0; i < rank; i++) {
    onnx_put_number(&tensor, TENSOR_DIMS, (uint64_t)extents[i]);
    nelems *= (size_t)extents[i];
  }
  onnx_put_number(&tensor, TENSOR_TYPE, onnx_type_number(type));
  if (name) onnx_put_text(&tensor, TENSOR_NAME, name);
  put_elements(&raw, type, data, nelems);
  onnx_put_message(&tensor, TENSOR_RAW, &raw);
  onnx_put_message(out, field, &tensor);
  text_deinit(&tensor);
  text_deinit(&raw);
}

const char *onnx_fresh(OnnxWriter *w) {
  const char *name = arena_format(w->node_names.arena, "%s%zu", w->prefix, ++w->nfresh);
  if (!name) w->node.out_of_memory = true;
  return name ? name : "";
}

const char *onnx_put_initializer(OnnxWriter *w, Type type, const int64_t *extents, int rank, const void *data) {
  const char *name = onnx_fresh(w);
  onnx_put_tensor(&w->initializers, GRAPH_INITIALIZER, name, type, extents, rank, data);
  return name;
}

const char *onnx_put_numbers(OnnxWriter *w, const int64_t *items, size_t count) {
  return onnx_put_initializer(w, TYPE_S64, &(int64_t){(int64_t)count}, 1, items);
}

const char *onnx_put_scalar(OnnxWriter *w, Type type, double value) {
  uint64_t element = 0;
  type_store(type, &element, 0, value);
  return onnx_put_initializer(w, type, NULL, 0, &element);
}

// Nodes

// Writes the label, with a number appended if another node has the same name.
static void put_node_name(OnnxWriter *w, const char *label) {
  const char *name = label;
  while (name && names_find(&w->node_names, name))
    name = arena_format(w->node_names.arena, "%s (%zu)", label, ++w->nrepeated + 1);
  if (!name || !names_set(&w->node_names, name, w)) w->node.out_of_memory = true;
  else onnx_put_text(&w->node, NODE_NAME, name);
}

void onnx_add_input(OnnxWriter *w, const char *name) {
  onnx_put_text(&w->node, NODE_INPUT, name);
}

static void begin(OnnxWriter *w, const char *op, const char *domain) {
  w->node.nbytes = 0;
  onnx_put_text(&w->node, NODE_OP, op);
  if (domain) onnx_put_text(&w->node, NODE_DOMAIN, domain);
  if (w->source->label) put_node_name(w, w->source->label);
}

void onnx_begin_list(OnnxWriter *w, const char *const *op_and_inputs) {
  begin(w, *op_and_inputs, NULL);
  while (*++op_and_inputs) onnx_add_input(w, *op_and_inputs);
}

void onnx_begin_own(OnnxWriter *w, const char *op) {
  begin(w, op, OWN_DOMAIN);
  w->has_own = true;
}

void onnx_add_output(OnnxWriter *w, const char *name) {
  onnx_put_text(&w->node, NODE_OUTPUT, name);
}

static void begin_attribute(OnnxWriter *w, const char *name, OnnxKind kind) {
  onnx_put_text(&w->attribute, ATTRIBUTE_NAME, name);
  onnx_put_number(&w->attribute, ATTRIBUTE_TYPE, kind);
}

static void end_attribute(OnnxWriter *w) {
  onnx_put_message(&w->node, NODE_ATTRIBUTE, &w->attribute);
}

void onnx_add_int(OnnxWriter *w, const char *name, int64_t value) {
  begin_attribute(w, name, ONNX_INT);
  onnx_put_number(&w->attribute, ATTRIBUTE_I, (uint64_t)value);
  end_attribute(w);
}

void onnx_add_float(OnnxWriter *w, const char *name, double value) {
  begin_attribute(w, name, ONNX_FLOAT);
  put_varint(&w->attribute, ATTRIBUTE_F << 3 | WIRE_FIXED32);
  put_float(&w->attribute, value);
  end_attribute(w);
}

void onnx_add_tensor(OnnxWriter *w, const char *name, Type type, const int64_t *extents, int rank, const void *data) {
  begin_attribute(w, name, ONNX_TENSOR);
  onnx_put_tensor(&w->attribute, ATTRIBUTE_T, NULL, type, extents, rank, data);
  end_attribute(w);
}

void onnx_add_double(OnnxWriter *w, const char *name, double value) {
  onnx_add_tensor(w, name, TYPE_F64, NULL, 0, &value);
}

void onnx_add_text(OnnxWriter *w, const char *name, const char *value) {
  begin_attribute(w, name, ONNX_STRING);
  onnx_put_text(&w->attribute, ATTRIBUTE_S, value);
  end_attribute(w);
}

void onnx_add_ints(OnnxWriter *w, const char *name, const int64_t *items, size_t count) {
  begin_attribute(w, name, ONNX_INTS);
  for (size_t i = 0; i < count; i++) onnx_put_number(&w->attribute, ATTRIBUTE_INTS, (uint64_t)items[i]);
  end_attribute(w);
}

void onnx_add_floats(OnnxWriter *w, const char *name, const double *items, size_t count) {
  begin_attribute(w, name, ONNX_FLOATS);
  for (size_t i = 0; i < count; i++) {
    put_varint(&w->attribute, ATTRIBUTE_FLOATS << 3 | WIRE_FIXED32);
    put_float(&w->attribute, items[i]);
  }
  end_attribute(w);
}

void onnx_add_axes(OnnxWriter *w, const char *op, const int64_t *axes, size_t count, bool keeps_dims) {
  enum { OTHERS_OPSET = 18 };
  const bool is_input = strcmp(op, "ReduceSum") == 0 || w->opset >= OTHERS_OPSET;
  if (is_input) onnx_add_input(w, onnx_put_numbers(w, axes, count));
  else onnx_add_ints(w, "axes", axes, count);
  onnx_add_int(w, "keepdims", keeps_dims);
}

const char *onnx_end(OnnxWriter *w, const char *to) {
  if (!to) to = onnx_fresh(w);
  onnx_add_output(w, to);
  onnx_close(w);
  return to;
}

void onnx_close(OnnxWriter *w) {
  onnx_put_message(&w->nodes, GRAPH_NODE, &w->node);
}
