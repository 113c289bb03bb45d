// Small ONNX models, written node by node, and what the reader makes of them.
#ifndef NGRAD_TESTS_UNIT_ONNX_MODELS_H
#define NGRAD_TESTS_UNIT_ONNX_MODELS_H

#include "backends/interpreter/interpreter.h"
#include "frontend/yaml/yaml.h"
#include "tests/unit/onnx_message.h"

#include <math.h>

static inline void add_node(Message *graph, const char *op, const char *input, const char *output) {
  Message node = {.count = 0};
  add_text(&node, 1, input);
  add_text(&node, 2, output);
  add_text(&node, 4, op);
  add_message(graph, 1, &node);
}

static inline void add_value_of(Message *graph, uint64_t field, const char *name, const Message *rows,
                                const Message *columns) {
  Message shape = {.count = 0}, tensor = {.count = 0}, type = {.count = 0}, info = {.count = 0};
  add_message(&shape, 1, rows);
  add_message(&shape, 1, columns);
  add_number(&tensor, 1, 1);
  add_message(&tensor, 2, &shape);
  add_message(&type, 1, &tensor);
  add_text(&info, 1, name);
  add_message(&info, 2, &type);
  add_message(graph, field, &info);
}

// An output without type and shape.
static inline void add_output(Message *graph, const char *name) {
  Message info = {.count = 0};
  add_text(&info, 1, name);
  add_message(graph, 12, &info);
}

// A tensor of floats [N, 3].
static inline void add_value(Message *graph, uint64_t field, const char *name) {
  Message rows = {.count = 0}, columns = {.count = 0};
  add_text(&rows, 2, "N");
  add_number(&columns, 1, 3);
  add_value_of(graph, field, name, &rows, &columns);
}

static inline Message model_of_opset(const Message *graph, uint8_t number) {
  Message model = {.count = 0}, opset = {.count = 0};
  add_number(&model, 1, 8);
  add_number(&opset, 2, number);
  add_message(&model, 8, &opset);
  add_message(&model, 7, graph);
  return model;
}

static inline Message model_of(const Message *graph) {
  return model_of_opset(graph, 13);
}

static inline Message lone_node(const char *op) {
  Message graph = {.count = 0};
  add_node(&graph, op, "x", "y");
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  return graph;
}

static inline Message chain(const char *first, const char *second) {
  Message graph = {.count = 0};
  add_node(&graph, first, "x", "h");
  add_node(&graph, second, "h", "y");
  add_value(&graph, 11, "x");
  add_value(&graph, 12, "y");
  return model_of(&graph);
}

// The graph as text, or the messages.
static inline bool reads_as(const Message *model, const char *expected) {
  Diagnostics d;
  Text text;
  diagnostics_init(&d, &system_allocator);
  text_init(&text, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.onnx", (const char *)model->bytes, model->count, NULL, &d);
  if (g) yaml_print(g, &text);
  else diagnostics_print(&d, &text, false);
  const bool ok = strcmp(text_string(&text), expected) == 0;
  if (!ok) print_error("%s\n", text_string(&text));
  graph_free(g);
  text_deinit(&text);
  diagnostics_deinit(&d);
  return ok;
}

static inline Message float_attribute(const char *name, float number, const char *of_caller) {
  Message attribute = {.count = 0};
  add_text(&attribute, 1, name);
  if (of_caller) add_text(&attribute, 21, of_caller);
  else add_float(&attribute, 2, number);
  return attribute;
}

static inline void add_node_with(Message *graph, uint64_t field, const char *domain, const char *op, const char *input,
                                 const char *output, const Message *attributes, size_t nattributes) {
  Message node = {.count = 0};
  add_text(&node, 1, input);
  add_text(&node, 2, output);
  add_text(&node, 4, op);
  if (*domain) add_text(&node, 7, domain);
  for (size_t i = 0; i < nattributes; i++) add_message(&node, 5, &attributes[i]);
  add_message(graph, field, &node);
}

static inline void add_ints(Message *graph, const char *name, int64_t number) {
  Message tensor = {.count = 0};
  add_number(&tensor, 1, 1); // dims: [1]
  add_number(&tensor, 2, 7); // s64
  add_text(&tensor, 8, name);
  add_bytes(&tensor, 9, &number, sizeof number);
  add_message(graph, 5, &tensor);
}

static inline Message int_attribute(const char *name, uint8_t number) {
  Message attribute = {.count = 0};
  add_text(&attribute, 1, name);
  add_number(&attribute, 3, number);
  return attribute;
}

static inline Message list_attribute(const char *name, const uint8_t *numbers, size_t count) {
  Message attribute = {.count = 0};
  add_text(&attribute, 1, name);
  for (size_t i = 0; i < count; i++) add_number(&attribute, 8, numbers[i]);
  return attribute;
}

// An initializer of floats [1, 1, count].
static inline void add_floats(Message *graph, const char *name, const float *numbers, size_t count) {
  Message tensor = {.count = 0};
  add_number(&tensor, 1, 1);
  add_number(&tensor, 1, 1);
  add_number(&tensor, 1, (uint8_t)count);
  add_number(&tensor, 2, 1);
  add_text(&tensor, 8, name);
  add_bytes(&tensor, 9, numbers, count * sizeof *numbers);
  add_message(graph, 5, &tensor);
}

// y = op(c)
static inline Message model_of_floats(const char *op, const float *numbers, size_t count, const Message *attributes,
                                      size_t nattributes) {
  Message graph = {.count = 0};
  add_floats(&graph, "c", numbers, count);
  add_node_with(&graph, 1, "", op, "c", "y", attributes, nattributes);
  add_output(&graph, "y");
  return model_of(&graph);
}

static inline bool computes(const Message *model, const double *expected, size_t count) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.onnx", (const char *)model->bytes, model->count, NULL, &d);
  assert_non_null(g);
  if (!g) return false;
  Tensor y = {.type = g->outputs[0]->type, .rank = 1, .extent = {shape_nelems(&g->outputs[0]->shape)}};
  bool ok = tensor_alloc(&y, &system_allocator) && (size_t)y.extent[0] == count &&
            interpret(g, NULL, &y, &(InterpreterOptions){.allocator = &system_allocator}, &d);
  for (size_t i = 0; ok && i < count; i++) {
    const double number = type_load(y.type, y.data, i);
    ok = isnan(expected[i]) ? isnan(number) : number == expected[i];
    if (!ok) print_error("element %zu: expected %g, found %g\n", i, expected[i], number);
  }
  tensor_free(&y, &system_allocator);
  graph_free(g);
  diagnostics_deinit(&d);
  return ok;
}

#endif
