// A test case for the interpreter: a small graph written as literals, run, and compared with literals.
//
//   Case c;
//   case_init(&c);
//   case_input(&c, "x", TYPE_F32, SHAPE(2), VALUES(1, -2));
//   case_node(&c, "ReLU", "x", "y");
//   case_expect(&c, "y", VALUES(1, 0));
//   case_passes(&c);
#ifndef NGRAD_TESTS_UNIT_INTERPRETER_CASE_H
#define NGRAD_TESTS_UNIT_INTERPRETER_CASE_H

#include "backends/interpreter/interpreter.h"
#include "ir/graph/verify.h"
#include "ir/operators/infer.h"
#include "ir/operators/norm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_IN_CASE = 8, MOST_EXPECTED = 16 };

typedef struct Case {
  Graph *graph;
  Diagnostics diagnostics;
  InterpreterOptions options;
  Tensor inputs[MOST_IN_CASE];
  struct {
    Value *value;
    double values[MOST_EXPECTED];
    size_t count;
    bool is_anything;
  } expected[MOST_IN_CASE]; // parallel to the graph's outputs
  double tolerance;         // 0: the expected value rounded to the output's type, and nothing else
} Case;

// The extents of a shape; SCALAR has none.
#define SHAPE(...) case_shape((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define SCALAR ((Shape){.rank = 0})
#define VALUES(...) (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double)
#define NO_VALUES (const double[]){0}, 0
#define ANY_VALUES NULL, 0

static inline Shape case_shape(const int64_t *extents, size_t rank) {
  Shape s = {.rank = (int)rank};
  for (size_t i = 0; i < rank; i++) s.extent[i] = EXTENT(extents[i]);
  return s;
}

static inline void case_init(Case *c) {
  *c = (Case){.graph = graph_new(&system_allocator, "case"), .options = {.allocator = &system_allocator}};
  diagnostics_init(&c->diagnostics, &system_allocator);
  assert_non_null(c->graph);
}

static inline void case_free(Case *c) {
  for (size_t i = 0; i < c->graph->ninputs; i++) tensor_free(&c->inputs[i], &system_allocator);
  graph_free(c->graph);
  diagnostics_deinit(&c->diagnostics);
}

static inline void case_input(Case *c, const char *name, Type type, Shape shape, const double *values, size_t count) {
  assert_true(c->graph->ninputs < MOST_IN_CASE);
  Tensor *t = &c->inputs[c->graph->ninputs];
  Value *v = graph_add_input(c->graph, name, type, &shape);
  assert_non_null(v);
  *t = tensor_like(v);
  assert_int_equal(tensor_nelems(t), count);
  assert_true(tensor_alloc(t, &system_allocator));
  for (size_t i = 0; i < count; i++) type_store(type, t->data, i, values[i]);
}

static inline Value *case_value(Case *c, const char *name) {
  for (size_t i = 0; i < c->graph->nvalues; i++)
    if (strcmp(c->graph->values[i]->name, name) == 0) return c->graph->values[i];
  Value *v = graph_add_value(c->graph, name, TYPE_NONE, NULL);
  assert_non_null(v);
  return v;
}

// A node under one of its names; operands in that name's order, separated by spaces; ~: an absent operand.
static inline Node *case_node(Case *c, const char *op, const char *inputs, const char *outputs) {
  OperatorName name = operator_find(op);
  assert_non_null(name.op);
  Node *node = graph_add_node(c->graph, name.op, name.signature, name.op->ninputs, name.op->noutputs);
  assert_non_null(node);
  char words[2][128], *rest = NULL;
  snprintf(words[0], sizeof words[0], "%s", inputs);
  snprintf(words[1], sizeof words[1], "%s", outputs);
  uint32_t i = 0;
  for (char *word = strtok_r(words[0], " ", &rest); word; word = strtok_r(NULL, " ", &rest), i++)
    if (word[0] != '~') node_set_input(node, named_input(name, i).slot, case_value(c, word));
  i = 0;
  for (char *word = strtok_r(words[1], " ", &rest); word; word = strtok_r(NULL, " ", &rest), i++)
    if (word[0] != '~') node_set_output(node, named_output(name, i).slot, case_value(c, word));
  return node;
}

// An attribute by its canonical name; booleans and choices are numbers too.
static inline void case_set(Node *node, const char *name, double number) {
  uint32_t i = 0;
  while (strcmp(node->op->attributes[i].name, name) != 0) assert_true(++i < node->op->nattributes);
  AttributeValue *value = &node->attributes[i];
  value->is_set = true;
  switch (node->op->attributes[i].kind) {
  case ATTRIBUTE_BOOL: value->boolean = number != 0; break;
  case ATTRIBUTE_F32: value->f32 = number; break;
  default: value->s64 = (int64_t)number; break;
  }
}

// An attribute that is a list; the items outlive the case.
static inline void case_set_list(Node *node, const char *name, const int64_t *items, size_t count) {
  uint32_t i = 0;
  while (strcmp(node->op->attributes[i].name, name) != 0) assert_true(++i < node->op->nattributes);
  node->attributes[i] = (AttributeValue){.is_set = true, .list = {items, count}};
}

// Makes a value an output of the graph, with its expected elements.
static inline void case_expect(Case *c, const char *name, const double *values, size_t count) {
  size_t k = c->graph->noutputs;
  assert_true(k < MOST_IN_CASE && count <= MOST_EXPECTED);
  c->expected[k].value = case_value(c, name);
  c->expected[k].is_anything = !values;
  c->expected[k].count = count;
  if (count) memcpy(c->expected[k].values, values, count * sizeof *values);
  assert_true(graph_add_output(c->graph, c->expected[k].value));
}

static inline void case_print_errors(Case *c) {
  Text text;
  text_init(&text, &system_allocator);
  diagnostics_print(&c->diagnostics, &text, false);
  if (text.nbytes) print_error("%s", text_string(&text));
  text_deinit(&text);
}

// Does the work of a reader: defaults, the operators' checks, order, inference, verification.
static inline void case_finish(Case *c) {
  bool ok = true;
  for (size_t i = 0; i < c->graph->nnodes; i++) {
    Node *node = c->graph->nodes[i];
    node_set_defaults(node);
    if (node->op->check && !node->op->check(node, &c->diagnostics)) ok = false;
  }
  ok = ok && graph_sort(c->graph, &c->diagnostics) && graph_infer(c->graph, &c->diagnostics) &&
       graph_verify(c->graph, &c->diagnostics);
  if (!ok) case_print_errors(c);
  assert_true(ok);
}

static inline bool case_is_near(double got, double expected, Type type, double tolerance) {
  if (isnan(expected)) return isnan(got);
  if (tolerance == 0 || isinf(expected)) {
    double rounded = type_round(type, expected);
    return got == rounded && !signbit(got) == !signbit(rounded);
  }
  return fabs(got - expected) <= tolerance;
}

static inline void case_compare(const Case *c, size_t k, const Tensor *got) {
  const Value *v = c->expected[k].value;
  if (c->expected[k].is_anything) return;
  assert_int_equal(tensor_nelems(got), c->expected[k].count);
  for (size_t i = 0; i < c->expected[k].count; i++) {
    double element = type_load(got->type, got->data, i), expected = c->expected[k].values[i];
    if (!case_is_near(element, expected, got->type, c->tolerance))
      fail_msg("%s[%zu]: expected %.17g, found %.17g (%s)", v->name, i, expected, element, type_name(got->type));
  }
}

// Runs a finished case with the allocator of its options. True: the interpreter succeeded, and the results are right.
static inline bool case_run(Case *c, Diagnostics *d) {
  Tensor outputs[MOST_IN_CASE];
  for (size_t k = 0; k < c->graph->noutputs; k++) {
    outputs[k] = tensor_like(c->graph->outputs[k]);
    assert_true(tensor_alloc(&outputs[k], &system_allocator));
    memset(outputs[k].data, 0xA5, tensor_nbytes(&outputs[k]));
  }
  bool done = interpret(c->graph, c->inputs, outputs, &c->options, d);
  for (size_t k = 0; k < c->graph->noutputs; k++) {
    if (done) case_compare(c, k, &outputs[k]);
    tensor_free(&outputs[k], &system_allocator);
  }
  return done;
}

static inline void case_passes(Case *c) {
  case_finish(c);
  bool done = case_run(c, &c->diagnostics);
  if (!done) case_print_errors(c);
  assert_true(done);
  case_free(c);
}

#endif
