// The operator Gradient inside of a graph: its results, also where it is differentiated again, in graph files and in
// ONNX's two models of it, and what is said of wrong ones.
#include "ir/graph/type.h"
#include "tests/unit/api_case.h"
#include "tests/unit/failing_allocator.h"
#include "tests/unit/onnx_message.h"

#include <math.h>
#include <stdio.h>

enum { MOST = 8 };

// Interprets the graph: its inputs are the numbers, one after the other, and its outputs those expected.
static void must_give(ng_context *ctx, ng_graph *g, const double numbers[MOST], const double expected[MOST]) {
  ng_tensor inputs[MOST] = {{0}}, outputs[MOST] = {{0}};
  const size_t ninputs = ng_graph_input_count(g), noutputs = ng_graph_output_count(g);
  size_t used = 0, compared = 0;
  for (size_t i = 0; i < ninputs; i++) {
    const ng_tensor_info info = ng_graph_input(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &inputs[i]), NG_OK);
    for (int64_t e = 0; e < ng_tensor_nelems(&inputs[i]) && used < MOST; e++)
      type_store((Type)info.type, inputs[i].data, (size_t)e, numbers[used++]);
  }
  for (size_t i = 0; i < noutputs; i++) {
    const ng_tensor_info info = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &outputs[i]), NG_OK);
  }
  if (ng_interpret(g, inputs, outputs, 0) != NG_OK) fail_msg("%s", ng_messages_text(ctx, 0));
  for (size_t i = 0; i < noutputs; i++)
    for (int64_t e = 0; e < ng_tensor_nelems(&outputs[i]) && compared < MOST; e++) {
      const double got = ng_tensor_get(&outputs[i], e), wanted = expected[compared++];
      if (fabs(got - wanted) > 1e-9 * fabs(wanted))
        fail_msg("%s[%d]: %.17g, expected %.17g", ng_graph_output(g, i).name, (int)e, got, wanted);
    }
  for (size_t i = 0; i < ninputs; i++) ng_tensor_free(ctx, &inputs[i]);
  for (size_t i = 0; i < noutputs; i++) ng_tensor_free(ctx, &outputs[i]);
}

#define BEGIN "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [3]}, {name: w, type: f64, shape: []}]\nnodes:\n"

static void results_are_the_derivatives(void **state) {
  static const struct {
    const char *nodes;
    double expected[MOST];
  } rows[] = {
      // w x^3: 3 w x^2, and of its sum 6 w x and the sum of 3 x^2
      {"  - {op: Gradient, inputs: [d, x, w], outputs: [dd, dw]}\n  - {op: Gradient, inputs: [y, x], outputs: [d]}\n"
       "  - {op: Pow, inputs: [x], outputs: [p], attributes: {beta: 3}}\n"
       "  - {op: Multiply, inputs: [p, w], outputs: [y]}\noutputs: [d, dd, dw]\n",
       {6, 24, 54, 12, 24, 36, 42}},
      // by a value between: w enters at t alone; what a Gradient gives may be given twice, or be an input of another
      {"  - {op: Multiply, inputs: [x, w], outputs: [t]}\n  - {op: Square, inputs: [t], outputs: [y]}\n"
       "  - {op: Gradient, inputs: [y, t, w], outputs: [dt, dw]}\noutputs: [dt, dw]\n",
       {4, 8, 12, 56}},
      // ones, by a value itself; zeros, where nothing depends on it
      {"  - {op: Exp, inputs: [x], outputs: [y]}\n  - {op: Gradient, inputs: [y, y, w], outputs: [one, zero]}\n"
       "outputs: [one, zero]\n",
       {1, 1, 1, 0}},
      // both results are the same sum of ones
      {"  - {op: Add, inputs: [x, w], outputs: [y]}\n  - {op: Add, inputs: [y, x], outputs: [s]}\n"
       "  - {op: Gradient, inputs: [s, y], outputs: [dy]}\n  - {op: Gradient, inputs: [s, x], outputs: [dx]}\n"
       "outputs: [dx, dy]\n",
       {2, 2, 2, 1, 1, 1}},
      // one gradient by several: by an input twice, and by two operands of one sum
      {"  - {op: Square, inputs: [x], outputs: [y]}\n  - {op: Gradient, inputs: [y, x, x], outputs: [a, b]}\n"
       "outputs: [a, b]\n",
       {2, 4, 6, 2, 4, 6}},
      {"  - {op: Neg, inputs: [x], outputs: [n]}\n  - {op: Exp, inputs: [n], outputs: [p]}\n"
       "  - {op: Log, inputs: [p], outputs: [l]}\n  - {op: Add, inputs: [n, l], outputs: [s]}\n"
       "  - {op: Square, inputs: [s], outputs: [y]}\n  - {op: Gradient, inputs: [y, s, l], outputs: [a, b]}\n"
       "outputs: [a, b]\n",
       {-4, -8, -12, -4, -8, -12}},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[1024];
    ng_context *ctx = new_context();
    snprintf(text, sizeof text, BEGIN "%s", rows[i].nodes);
    ng_graph *g = must_read(ctx, text);
    must_give(ctx, g, (const double[MOST]){1, 2, 3, 2}, rows[i].expected);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

static void wrong_gradients_are_told(void **state) {
  static const struct {
    const char *nodes, *told;
  } rows[] = {
      {"  - {op: Exp, inputs: [x], outputs: [y]}\n  - {op: Gradient, inputs: [y, x], outputs: [a, b]}\n",
       "Gradient: b: expected an input to differentiate by for each result"},
      {"  - {op: Exp, inputs: [x], outputs: [y]}\n  - {op: Gradient, inputs: [y], outputs: [a]}\n",
       "Gradient: missing input by"},
      {"  - {op: LayerNorm, inputs: [x], outputs: [y, m, v], attributes: {use_affine: false, begin_norm_axis: 0}}\n"
       "  - {op: Gradient, inputs: [y, m], outputs: [a]}\n",
       "Gradient: expected no statistic to differentiate by, found m: what it is computed from is not it alone"},
      {"  - {op: TypeCast, inputs: [w], outputs: [{name: i, type: s64}]}\n"
       "  - {op: Dropout, inputs: [x, i, i, p], outputs: [z]}\n  - {op: TypeCast, inputs: [w], outputs: [{name: p, "
       "type: "
       "f32}]}\n  - {op: Gradient, inputs: [z, w], outputs: [a]}\n",
       "Dropout has no gradient by probability: the results jump where it changes; leave inputs that p depends on out "
       "of the request"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[1024];
    ng_context *ctx = new_context();
    snprintf(text, sizeof text, BEGIN "%soutputs: [a]\n", rows[i].nodes);
    assert_null(read_text(ctx, text));
    must_have_said(ctx, rows[i].told);
    ng_context_free(ctx);
  }
}

// As `ngrad grad` warns of the graph that a Gradient differentiates, and of no nodes beside.
static void steps_are_told(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, BEGIN "  - {op: Round, inputs: [x], outputs: [r]}\n"
                                     "  - {op: Multiply, inputs: [r, x], outputs: [y]}\n"
                                     "  - {op: Gradient, inputs: [y, x], outputs: [a]}\n"
                                     "  - {op: Round, inputs: [a], outputs: [other]}\noutputs: [a, other]\n");
  assert_int_equal(ng_message_count(ctx), 1);
  const ng_message told = ng_message_at(ctx, 0);
  assert_string_equal(told.text, "Round: its gradient is 0: the results change in steps");
  assert_true(!told.is_error && told.line == 4);
  must_give(ctx, g, (const double[MOST]){1.25, 2.75, -3, 0}, (const double[MOST]){1, 3, -3, 1, 3, -3});
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Many Gradients, and few whose nodes grow, are refused at the one that is too much, before they take long.
static void gradients_are_counted(void **state) {
  static const struct {
    const char *op;
    int count, line; // of Gradients; of the refused one
  } rows[] = {{"Sin", 257, 261}, {"Mish", 12, 13}, {"Tanh", 64, 16}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    static char text[1 << 15];
    size_t used = (size_t)snprintf(text, sizeof text, BEGIN "  - {op: %s, inputs: [x], outputs: [d0]}\n", rows[i].op);
    for (int k = 0; k < rows[i].count; k++)
      used += (size_t)snprintf(text + used, sizeof text - used,
                               "  - {op: Gradient, inputs: [d%d, x], outputs: [d%d]}\n", i ? k : 0, k + 1);
    snprintf(text + used, sizeof text - used, "outputs: [d%d]\n", rows[i].count);
    ng_context *ctx = new_context();
    assert_null(read_text(ctx, text));
    const ng_message told = ng_message_at(ctx, 0);
    assert_int_equal(told.line, rows[i].line);
    assert_non_null(strstr(told.text, "expected at most 256 Gradients, and 2^16 nodes with theirs, found "));
    ng_context_free(ctx);
  }
}

// Whichever allocation fails, nothing is left, and the next call succeeds.
static void without_memory_there_is_no_gradient(void **state) {
  static const char *const norms[] = {
      "BatchNormForwardTraining, inputs: [l, v, v, v, v], outputs: [n, a, b, m, s], attributes: {epsilon: 0.1}",
      "GroupNorm, inputs: [l, v, v], outputs: [n, m, s], attributes: {groups: 2}",
      "RMSNorm, inputs: [l, v], outputs: [n]"};
  (void)state;
  for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
    char text[1024];
    FailingAllocator memory;
    failing_allocator_init(&memory, NEVER_FAIL);
    snprintf(text, sizeof text,
             "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [2, 3, 4]}, {name: v, type: f32, shape: [4]}]\n"
             "constants: [{name: zero, type: f32, shape: [], value: 0}]\nnodes:\n"
             "  - {op: Greater, inputs: [x, zero], outputs: [c]}\n  - {op: Log, inputs: [x], outputs: [k]}\n"
             "  - {op: MatMul, inputs: [k, k], outputs: [p], attributes: {transpose_b: true}}\n"
             "  - {op: MatMul, inputs: [p, k], outputs: [q]}\n  - {op: Select, inputs: [c, q, x], outputs: [l]}\n"
             "  - {op: %s}\n  - {op: Gradient, inputs: [n, x, v], outputs: [d, e]}\n"
             "  - {op: Gradient, inputs: [d, x, v], outputs: [f, h]}\noutputs: [f, h]\n",
             norms[i]);
    ng_allocator allocator = {failing_resize, &memory};
    ng_context *ctx = ng_context_new(&allocator);
    ng_graph *g = NULL;
    for (size_t failing = 0; !g; failing++) {
      memory.ncalls = 0;
      memory.failing = failing;
      g = read_text(ctx, text);
      if (!g && ng_last_status(ctx) != NG_OUT_OF_MEMORY) fail_msg("%s", ng_messages_text(ctx, 0));
    }
    memory.failing = NEVER_FAIL;
    ng_graph_free(g);
    ng_context_free(ctx);
    assert_int_equal(memory.nlive, 0);
  }
}

// ONNX

static void add_node(Message *graph, const char *op, const char *const *inputs, const char *const *outputs,
                     const char *of) {
  Message node = {.count = 0}, xs = {.count = 0}, y = {.count = 0};
  for (; *inputs; inputs++) {
    add_text(&node, 1, *inputs);
    if (!xs.count) add_text(&xs, 1, "xs");
    add_text(&xs, 9, *inputs);
  }
  for (; *outputs; outputs++) add_text(&node, 2, *outputs);
  add_text(&node, 4, op);
  add_text(&y, 1, "y");
  if (of) {
    add_text(&y, 4, of);
    add_message(&node, 5, &xs);
    add_message(&node, 5, &y);
    add_text(&node, 7, "ai.onnx.preview.training");
  }
  add_message(graph, 1, &node);
}

static void add_end(Message *graph, uint64_t field, const char *name) { // a single number
  const Message shape = {.count = 0};
  Message info = {.count = 0}, type = {.count = 0}, tensor = {.count = 0};
  add_number(&tensor, 1, 1);
  add_message(&tensor, 2, &shape);
  add_message(&type, 1, &tensor);
  add_text(&info, 1, name);
  add_message(&info, 2, &type);
  add_message(graph, field, &info);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

// test_gradient_of_add and test_gradient_of_add_and_mul
static void models_of_onnx_have_gradients(void **state) {
  (void)state;
  for (int has_product = 0; has_product < 2; has_product++) {
    const char *of = has_product ? "d" : "c";
    Message graph = {.count = 0}, opset = {.count = 0}, model = {.count = 0};
    add_node(&graph, "Add", NAMES("a", "b"), NAMES("c"), NULL);
    if (has_product) add_node(&graph, "Mul", NAMES("c", "a"), NAMES("d"), NULL);
    add_node(&graph, "Gradient", NAMES("a", "b"), NAMES("da", "db"), of);
    add_end(&graph, 11, "a");
    add_end(&graph, 11, "b");
    add_end(&graph, 12, of);
    add_end(&graph, 12, "da");
    add_end(&graph, 12, "db");
    add_number(&opset, 2, 12);
    add_number(&model, 1, 7);
    add_message(&model, 8, &opset);
    add_message(&model, 7, &graph);
    ng_context *ctx = new_context();
    ng_graph *g = ng_graph_read(ctx, "test.onnx", (const char *)model.bytes, model.count, NULL);
    if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
    must_give(ctx, g, (const double[MOST]){3, 5},
              has_product ? (const double[MOST]){24, 11, 3} : (const double[MOST]){8, 1, 1});
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Gradients at other values than the tensors' own are refused.
static void onnx_names_its_own_tensors(void **state) {
  (void)state;
  Message graph = {.count = 0}, opset = {.count = 0}, model = {.count = 0};
  add_node(&graph, "Add", NAMES("a", "b"), NAMES("c"), NULL);
  add_node(&graph, "Gradient", NAMES("a"), NAMES("da", "db"), "c");
  add_end(&graph, 11, "a");
  add_end(&graph, 11, "b");
  add_end(&graph, 12, "da");
  add_number(&opset, 2, 12);
  add_number(&model, 1, 7);
  add_message(&model, 8, &opset);
  add_message(&model, 7, &graph);
  ng_context *ctx = new_context();
  assert_null(ng_graph_read(ctx, "test.onnx", (const char *)model.bytes, model.count, NULL));
  must_have_said(ctx, "Gradient da (opset 12): expected y, a tensor made before the node, and xs, 1 to 8 tensors");
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_are_the_derivatives),
      cmocka_unit_test(wrong_gradients_are_told),
      cmocka_unit_test(gradients_are_counted),
      cmocka_unit_test(steps_are_told),
      cmocka_unit_test(without_memory_there_is_no_gradient),
      cmocka_unit_test(models_of_onnx_have_gradients),
      cmocka_unit_test(onnx_names_its_own_tensors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
