// Writes a graph as an ONNX model.
#include "frontend/onnx/onnx.h"

#include "frontend/onnx/fields.h"
#include "frontend/onnx/model.h"
#include "frontend/onnx/writer.h"
#include "ir/graph/init.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { IR_VERSION = 8 };
#define MOST_MODEL_BYTES (((size_t)1 << 31) - 1) // limit of protocol buffers

// The wire format

static void put_varint(Text *out, uint64_t value) {
  char bytes[10];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) bytes[count++] = (char)(value | 0x80);
  bytes[count++] = (char)value;
  text_add(out, bytes, count);
}

static void put_number(Text *out, uint32_t field, uint64_t value) {
  put_varint(out, (uint64_t)field << 3 | WIRE_VARINT);
  put_varint(out, value);
}

static void put_bytes(Text *out, uint32_t field, const void *bytes, size_t nbytes) {
  put_varint(out, (uint64_t)field << 3 | WIRE_BYTES);
  put_varint(out, nbytes);
  text_add(out, bytes, nbytes);
}

static void put_text(Text *out, uint32_t field, const char *text) {
  put_bytes(out, field, text, strlen(text));
}

// Writes the message as a field of `out`, and empties it.
static void put_message(Text *out, uint32_t field, Text *message) {
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

static void put_tensor(Text *out, uint32_t field, const char *name, Type type, const int64_t *extents, int rank,
                       const void *data) {
  Text tensor, raw;
  size_t nelems = 1;
  text_init(&tensor, out->allocator);
  text_init(&raw, out->allocator);
  for (int i = 0; i < rank; i++) {
    put_number(&tensor, TENSOR_DIMS, (uint64_t)extents[i]);
    nelems *= (size_t)extents[i];
  }
  put_number(&tensor, TENSOR_TYPE, onnx_type_number(type));
  if (name) put_text(&tensor, TENSOR_NAME, name);
  put_elements(&raw, type, data, nelems);
  put_message(&tensor, TENSOR_RAW, &raw);
  put_message(out, field, &tensor);
  text_deinit(&tensor);
  text_deinit(&raw);
}

FreshName onnx_fresh(OnnxWriter *w) {
  FreshName name;
  snprintf(name.text, sizeof name.text, "%s%zu", w->prefix, ++w->nfresh);
  return name;
}

FreshName onnx_add_numbers(OnnxWriter *w, const int64_t *items, size_t count) {
  const FreshName name = onnx_fresh(w);
  const int64_t extent = (int64_t)count;
  put_tensor(&w->initializers, GRAPH_INITIALIZER, name.text, TYPE_S64, &extent, 1, items);
  return name;
}

FreshName onnx_add_scalar(OnnxWriter *w, Type type, double value) {
  const FreshName name = onnx_fresh(w);
  uint64_t element = 0;
  type_store(type, &element, 0, value);
  put_tensor(&w->initializers, GRAPH_INITIALIZER, name.text, type, NULL, 0, &element);
  return name;
}

// Nodes

// Writes the label, with a number appended if another node has the same name.
static void put_node_name(OnnxWriter *w, const char *label) {
  const char *name = label;
  while (name && names_find(&w->node_names, name))
    name = arena_format(w->node_names.arena, "%s (%zu)", label, ++w->nrepeated + 1);
  if (!name || !names_set(&w->node_names, name, w)) w->node.out_of_memory = true;
  else put_text(&w->node, NODE_NAME, name);
}

void onnx_begin(OnnxWriter *w, const char *op, const char *domain) {
  w->node.nbytes = 0;
  put_text(&w->node, NODE_OP, op);
  if (*domain) put_text(&w->node, NODE_DOMAIN, domain);
  if (w->source->label) put_node_name(w, w->source->label);
}

void onnx_add_input(OnnxWriter *w, const char *name) {
  put_text(&w->node, NODE_INPUT, name);
}

void onnx_add_output(OnnxWriter *w, const char *name) {
  put_text(&w->node, NODE_OUTPUT, name);
}

static void begin_attribute(OnnxWriter *w, const char *name, OnnxKind kind) {
  put_text(&w->attribute, ATTRIBUTE_NAME, name);
  put_number(&w->attribute, ATTRIBUTE_TYPE, kind);
}

static void end_attribute(OnnxWriter *w) {
  put_message(&w->node, NODE_ATTRIBUTE, &w->attribute);
}

void onnx_add_int(OnnxWriter *w, const char *name, int64_t value) {
  begin_attribute(w, name, ONNX_INT);
  put_number(&w->attribute, ATTRIBUTE_I, (uint64_t)value);
  end_attribute(w);
}

void onnx_add_float(OnnxWriter *w, const char *name, double value) {
  begin_attribute(w, name, ONNX_FLOAT);
  put_varint(&w->attribute, ATTRIBUTE_F << 3 | WIRE_FIXED32);
  put_float(&w->attribute, value);
  end_attribute(w);
}

void onnx_add_double(OnnxWriter *w, const char *name, double value) {
  begin_attribute(w, name, ONNX_TENSOR);
  put_tensor(&w->attribute, ATTRIBUTE_T, NULL, TYPE_F64, NULL, 0, &value);
  end_attribute(w);
}

void onnx_add_text(OnnxWriter *w, const char *name, const char *value) {
  begin_attribute(w, name, ONNX_STRING);
  put_text(&w->attribute, ATTRIBUTE_S, value);
  end_attribute(w);
}

void onnx_add_ints(OnnxWriter *w, const char *name, const int64_t *items, size_t count) {
  begin_attribute(w, name, ONNX_INTS);
  for (size_t i = 0; i < count; i++) put_number(&w->attribute, ATTRIBUTE_INTS, (uint64_t)items[i]);
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

void onnx_end(OnnxWriter *w) {
  put_message(&w->nodes, GRAPH_NODE, &w->node);
}

// Values

static void put_info(Text *out, uint32_t field, const Value *v, const char *name) {
  Text shape, dim, tensor, type, info;
  Text *const all[] = {&shape, &dim, &tensor, &type, &info};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) text_init(all[i], out->allocator);
  for (int i = 0; i < v->shape.rank; i++) {
    const Extent *e = &v->shape.extent[i];
    if (e->dim) put_text(&dim, DIM_NAME, e->dim->name);
    else if (!extent_is_unknown(*e)) put_number(&dim, DIM_VALUE, (uint64_t)e->value);
    put_message(&shape, SHAPE_DIM, &dim);
  }
  put_number(&tensor, TENSOR_TYPE_ELEMENT, onnx_type_number(v->type));
  if (v->shape.rank >= 0) put_message(&tensor, TENSOR_TYPE_SHAPE, &shape);
  put_message(&type, TYPE_TENSOR, &tensor);
  put_text(&info, INFO_NAME, name);
  put_message(&info, INFO_TYPE, &type);
  put_message(out, field, &info);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) text_deinit(all[i]);
}

static void put_constant(OnnxWriter *w, const Value *v, Text *infos) {
  int64_t extents[MAX_RANK];
  bool is_open = false;
  for (int i = 0; i < v->shape.rank; i++) {
    extents[i] = v->shape.extent[i].value;
    is_open |= !extent_is_literal(v->shape.extent[i]);
  }
  if (!is_open && (!v->constant->is_splat || shape_nelems(&v->shape) == 1)) {
    put_tensor(&w->initializers, GRAPH_INITIALIZER, v->name, v->type, extents, v->shape.rank, v->constant->data);
    return;
  }
  // ConstantOfShape(shape) with the number as its attribute. If extents have names, Constant of the domain "ngrad",
  // whose shape the model declares.
  const Node none = {0};
  const int64_t one = 1;
  FreshName shape;
  w->source = &none;
  if (!is_open) shape = onnx_add_numbers(w, extents, (size_t)v->shape.rank);
  onnx_begin(w, is_open ? "Constant" : "ConstantOfShape", is_open ? OWN_DOMAIN : "");
  if (!is_open) onnx_add_input(w, shape.text);
  onnx_add_output(w, v->name);
  begin_attribute(w, "value", ONNX_TENSOR);
  put_tensor(&w->attribute, ATTRIBUTE_T, NULL, v->type, &one, 1, v->constant->data);
  end_attribute(w);
  onnx_end(w);
  if (is_open && !v->is_output) put_info(infos, GRAPH_VALUE_INFO, v, v->name);
  w->has_own |= is_open;
}

// Chooses a prefix with which no value's name begins.
static void choose_prefix(OnnxWriter *w) {
  size_t length = (size_t)snprintf(w->prefix, sizeof w->prefix, "onnx_");
  for (size_t i = 0; i < w->graph->nvalues && length < sizeof w->prefix - 1;) {
    if (strncmp(w->graph->values[i]->name, w->prefix, length) == 0) {
      w->prefix[length++] = '_';
      w->prefix[length] = 0;
      i = 0;
    } else {
      i++;
    }
  }
}

// Writes an output. A value that the graph lists a second time gets a new name.
static void put_output(OnnxWriter *w, size_t i, Text *outputs) {
  const Value *v = w->graph->outputs[i];
  const Node none = {0};
  if (v->first_output == i) {
    put_info(outputs, GRAPH_OUTPUT, v, v->name);
    return;
  }
  const FreshName name = onnx_fresh(w);
  w->source = &none;
  onnx_begin(w, "Identity", "");
  onnx_add_input(w, v->name);
  onnx_add_output(w, name.text);
  onnx_end(w);
  put_info(outputs, GRAPH_OUTPUT, v, name.text);
}

static void put_graph(OnnxWriter *w, Text *out) {
  const Graph *g = w->graph;
  Text infos;
  text_init(&infos, out->allocator);
  for (size_t i = 0; i < g->ninputs; i++) put_info(&infos, GRAPH_INPUT, g->inputs[i], g->inputs[i]->name);
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (v->constant && (v->uses || v->is_output)) put_constant(w, v, &infos);
    else if (v->producer && !v->is_output) put_info(&infos, GRAPH_VALUE_INFO, v, v->name);
  }
  for (size_t i = 0; i < g->nnodes; i++) {
    w->source = g->nodes[i];
    if (!onnx_write_standard(w, g->nodes[i])) onnx_write_own(w, g->nodes[i]);
  }
  for (size_t i = 0; i < g->noutputs; i++) put_output(w, i, &infos);
  text_add(out, text_string(&w->nodes), w->nodes.nbytes);
  put_text(out, GRAPH_NAME, g->name);
  text_add(out, text_string(&w->initializers), w->initializers.nbytes);
  text_add(out, text_string(&infos), infos.nbytes);
  out->out_of_memory |= w->nodes.out_of_memory || w->initializers.out_of_memory || w->node.out_of_memory ||
                        w->attribute.out_of_memory || infos.out_of_memory;
  text_deinit(&infos);
}

// The model

static void put_opset(Text *out, const char *domain, uint64_t version) {
  Text opset;
  text_init(&opset, out->allocator);
  put_text(&opset, OPSET_DOMAIN, domain);
  put_number(&opset, OPSET_VERSION, version);
  put_message(out, MODEL_OPSET, &opset);
  text_deinit(&opset);
}

// Properties for information that ONNX lacks: the states of a step, and the default values of dims.
static void put_property(Text *out, const char *kind, const char *name, const char *value) {
  Text entry, key;
  text_init(&entry, out->allocator);
  text_init(&key, out->allocator);
  text_format(&key, "%s %s", kind, name);
  put_message(&entry, ENTRY_KEY, &key);
  put_text(&entry, ENTRY_VALUE, value);
  put_message(out, MODEL_PROPERTY, &entry);
  text_deinit(&entry);
  text_deinit(&key);
}

static void put_properties(const Graph *g, Text *out) {
  for (size_t i = 0; i < g->ndims; i++) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)g->dims[i]->value);
    if (g->dims[i]->value >= 0) put_property(out, "dim", g->dims[i]->name, number);
  }
  for (size_t i = 0; i < g->nstates; i++) {
    const State *s = &g->states[i];
    put_property(out, "init", g->inputs[s->input]->name, init_names[s->init.kind]);
    if (s->output >= 0) put_property(out, "update", g->inputs[s->input]->name, g->outputs[s->output]->name);
  }
}

bool onnx_write(const Graph *g, Text *out, Diagnostics *d) {
  Arena arena;
  OnnxWriter w = {.graph = g};
  Text graph, *const all[] = {&w.nodes, &w.initializers, &w.node, &w.attribute, &graph};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) text_init(all[i], out->allocator);
  arena_init(&arena, out->allocator);
  names_init(&w.node_names, &arena);
  choose_prefix(&w);
  put_graph(&w, &graph);
  put_number(out, MODEL_IR_VERSION, IR_VERSION);
  put_text(out, MODEL_PRODUCER, "ngrad");
  put_message(out, MODEL_GRAPH, &graph);
  put_opset(out, "", ONNX_OPSET);
  if (w.has_own) put_opset(out, OWN_DOMAIN, OWN_OPSET);
  put_properties(g, out);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) text_deinit(all[i]);
  arena_deinit(&arena);
  if (out->out_of_memory) return error_out_of_memory(d);
  if (out->nbytes > MOST_MODEL_BYTES)
    return error_at(d, (Position){g->source, 0, 0}, "the model would have %zu bytes, ONNX's files have less than 2 GiB",
                    out->nbytes);
  return true;
}
