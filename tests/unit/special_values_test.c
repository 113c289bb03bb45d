// Elementwise operators, sums and quantisation on all pairs of special numbers, interpreted and compiled: both give
// NaN, an infinity, or a number of the same sign, zero's sign included. In the tails of functions, results are right to
// a few digits relative to their own size.
#include "ir/operators/operator.h"
#include "tests/unit/api_case.h"
#include "tests/unit/quick_compiler.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

// x varies along the rows and y along the columns, in which all numbers stand; b is y as a vector.
static const float numbers[] = {0,        -0.0F,     1,          -1,        INFINITY,   -INFINITY,
                                NAN,      0x1p-149F, -0x1p-149F, 0x1p-130F, -0x1p-130F, FLT_MAX,
                                -FLT_MAX, 0x1p-126F, 2.5F,       -3,        4,          -4};
enum { N = sizeof numbers / sizeof *numbers, MOST_TENSORS = 96 };

#define BACKWARD(op, attributes) "{op: " op "Backward, inputs: [x, y], attributes: {" attributes "}"
static const char *const nodes[] = {
    "{op: Abs, inputs: [x]",
    "{op: Clamp, inputs: [x], attributes: {min: -0.5, max: 0.75}",
    "{op: Clamp, inputs: [x], attributes: {min: 0, max: 0.75}",
    "{op: Elu, inputs: [x], attributes: {alpha: 0.5}",
    "{op: Erf, inputs: [x]",
    "{op: Exp, inputs: [x]",
    "{op: GELU, inputs: [x], attributes: {mode: gelu_erf}",
    "{op: GELU, inputs: [x], attributes: {mode: gelu_tanh}",
    "{op: HardSigmoid, inputs: [x], attributes: {alpha: 0.25, beta: 0.5}",
    "{op: HardSwish, inputs: [x]",
    "{op: LeakyReLU, inputs: [x], attributes: {alpha: 0.25}",
    "{op: Log, inputs: [x]",
    "{op: Mish, inputs: [x]",
    "{op: Neg, inputs: [x]",
    "{op: Pow, inputs: [x], attributes: {beta: -1.5}",
    "{op: Pow, inputs: [x], attributes: {beta: 3}",
    "{op: Reciprocal, inputs: [x]",
    "{op: ReLU, inputs: [x]",
    "{op: Round, inputs: [x]",
    "{op: RoundThrough, inputs: [x]",
    "{op: Sigmoid, inputs: [x]",
    "{op: SoftPlus, inputs: [x], attributes: {beta: -2}",
    "{op: SoftPlus, inputs: [x]",
    "{op: Sqrt, inputs: [x]",
    "{op: Sin, inputs: [x]",
    "{op: Cos, inputs: [x]",
    "{op: Square, inputs: [x]",
    "{op: Swish, inputs: [x]",
    "{op: Swish, inputs: [x], attributes: {beta: -2}",
    "{op: Swish, inputs: [x], attributes: {beta: 0}",
    "{op: Tanh, inputs: [x]",
    BACKWARD("Abs", ""),
    BACKWARD("Clamp", "min: -0.5, max: 0.75, use_dst: false"),
    BACKWARD("Clamp", "min: -0.5, max: 0.75"),
    BACKWARD("Elu", "alpha: 0.5, use_dst: false"),
    BACKWARD("Elu", "alpha: 0.5"),
    BACKWARD("GELU", "mode: gelu_erf"),
    BACKWARD("GELU", "mode: gelu_tanh"),
    BACKWARD("HardSigmoid", "alpha: 0.25, beta: 0.5"),
    BACKWARD("HardSwish", ""),
    BACKWARD("Mish", ""),
    BACKWARD("ReLU", "use_dst: false"),
    BACKWARD("ReLU", ""),
    BACKWARD("Sigmoid", "use_dst: false"),
    BACKWARD("Sigmoid", ""),
    BACKWARD("SoftPlus", "beta: -2"),
    BACKWARD("Sqrt", "use_dst: false"),
    BACKWARD("Sqrt", ""),
    BACKWARD("Tanh", "use_dst: false"),
    BACKWARD("Tanh", ""),
    "{op: Add, inputs: [x, y]",
    "{op: Subtract, inputs: [x, y]",
    "{op: Multiply, inputs: [x, y]",
    "{op: Divide, inputs: [x, y]",
    "{op: Maximum, inputs: [x, y]",
    "{op: Minimum, inputs: [x, y]",
    "{op: SquaredDifference, inputs: [x, y]",
    "{op: Power, inputs: [x, y]",
    "{op: Mod, inputs: [x, y]",
    "{op: Equal, inputs: [x, y]",
    "{op: NotEqual, inputs: [x, y]",
    "{op: Less, inputs: [x, y]",
    "{op: LessEqual, inputs: [x, y]",
    "{op: Greater, inputs: [x, y]",
    "{op: GreaterEqual, inputs: [x, y]",
    "{op: LogicalAnd, inputs: [c, e]",
    "{op: LogicalOr, inputs: [c, e]",
    "{op: LogicalNot, inputs: [e]",
    "{op: Select, inputs: [c, x, y]",
    "{op: BiasAdd, inputs: [x, b]",
    "{op: BiasAddBackward, inputs: [x]",
    "{op: PReLU, inputs: [x, y]",
    "{op: PReLUBackward, inputs: [x, y, y]",
    "{op: TypeCast, inputs: [x]",
    "{op: ReduceSum, inputs: [x], attributes: {axes: [1]}",
    "{op: ReduceSum, inputs: [row], attributes: {axes: [0]}",
    "{op: ReduceMean, inputs: [row], attributes: {axes: [0]}",
    "{op: ReduceL1, inputs: [row], attributes: {axes: [0]}",
    "{op: ReduceL2, inputs: [row], attributes: {axes: [0]}",
    "{op: ReduceL2, inputs: [x], attributes: {axes: [1]}",
    "{op: ReduceProd, inputs: [row], attributes: {axes: [0]}",
    "{op: ReduceMax, inputs: [x], attributes: {axes: [1]}",
    "{op: ReduceMin, inputs: [row], attributes: {axes: [0]}",
    "{op: Quantize, inputs: [x], attributes: {scales: [2.0]}",
    "{op: DynamicQuantize, inputs: [x, scale]",
};
enum { NNODES = sizeof nodes / sizeof *nodes };

typedef struct Trial {
  ng_context *ctx;
  ng_graph *graph;
  ng_tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS], expected[MOST_TENSORS];
} Trial;

static void trial_init(Trial *t) {
  static char text[1 << 15];
  size_t at = (size_t)snprintf(text, sizeof text,
                               "format: ngrad/1\nname: special\ninputs:\n  - {name: x, type: f32, shape: [%d, %d]}\n"
                               "  - {name: y, type: f32, shape: [%d, %d]}\n  - {name: row, type: f32, shape: [1, %d]}\n"
                               "  - {name: b, type: f32, shape: [%d]}\n  - {name: scale, type: f32, shape: [1]}\n"
                               "nodes:\n  - {op: GreaterEqual, inputs: [x, y], outputs: [c]}\n"
                               "  - {op: Less, inputs: [y, x], outputs: [e]}\n",
                               N, N, N, N, N, N);
  for (size_t i = 0; i < NNODES; i++) {
    const char *type = strstr(nodes[i], "uantize") ? "f8_e5m2" : strstr(nodes[i], "TypeCast") ? "bf16" : NULL;
    char name[64];
    snprintf(name, sizeof name, type ? "{name: o%zu, type: %s}" : "o%zu", i, type);
    at += (size_t)snprintf(text + at, sizeof text - at, "  - %s, outputs: [%s%s]}\n", nodes[i], name,
                           strstr(nodes[i], "PReLUBackward") ? ", slope" : "");
  }
  at += (size_t)snprintf(text + at, sizeof text - at, "outputs: [slope");
  for (size_t i = 0; i < NNODES; i++) at += (size_t)snprintf(text + at, sizeof text - at, ", o%zu", i);
  snprintf(text + at, sizeof text - at, "]\n");
  *t = (Trial){.ctx = new_context()};
  t->graph = must_read(t->ctx, text);
  for (size_t i = 0; i < ng_graph_input_count(t->graph); i++) {
    ng_tensor_info info = ng_graph_input(t->graph, i);
    assert_int_equal(ng_tensor_new(t->ctx, &info, &t->inputs[i]), NG_OK);
    float *data = t->inputs[i].data;
    for (size_t e = 0; e < ng_tensor_nbytes(&t->inputs[i]) / sizeof *data; e++)
      data[e] = strcmp(info.name, "scale") == 0 ? 2 : numbers[strcmp(info.name, "x") == 0 ? e / N : e % N];
  }
  for (size_t i = 0; i < ng_graph_output_count(t->graph); i++) {
    ng_tensor_info info = ng_graph_output(t->graph, i);
    assert_int_equal(ng_tensor_new(t->ctx, &info, &t->outputs[i]), NG_OK);
    assert_int_equal(ng_tensor_new(t->ctx, &info, &t->expected[i]), NG_OK);
  }
}

static void trial_deinit(Trial *t) {
  for (size_t i = 0; i < ng_graph_input_count(t->graph); i++) ng_tensor_free(t->ctx, &t->inputs[i]);
  for (size_t i = 0; i < ng_graph_output_count(t->graph); i++) {
    ng_tensor_free(t->ctx, &t->outputs[i]);
    ng_tensor_free(t->ctx, &t->expected[i]);
  }
  ng_graph_free(t->graph);
  ng_context_free(t->ctx);
}

static bool is_of_one_class(double x, double y) {
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  return !isinf(x) == !isinf(y) && !signbit(x) == !signbit(y);
}

// In f32 a product of PReLUBackward's slope underflows to a zero whose sum is +0, in f64 not; and no square root is as
// large as the greatest f32.
static bool is_out_of_range(size_t k, float x, float y) {
  bool is_root = k > 0 && strncmp(nodes[k - 1], "{op: SqrtBackward", 17) == 0;
  return k == 0 ? x * y == 0 && x != 0 && y != 0 : is_root && fabsf(x) == FLT_MAX;
}

static size_t count_differences(const Trial *t, const char *how) {
  size_t ndifferences = 0;
  for (size_t k = 0; k < ng_graph_output_count(t->graph); k++) {
    ng_tensor_info info = ng_graph_output(t->graph, k);
    int64_t nelems = 1;
    for (int axis = 0; axis < info.rank; axis++) nelems *= info.extent[axis];
    for (int64_t e = 0; e < nelems; e++) {
      double x = ng_tensor_get(&t->outputs[k], e), y = ng_tensor_get(&t->expected[k], e);
      if (is_of_one_class(x, y) || is_out_of_range(k, numbers[e / N % N], numbers[e % N])) continue;
      print_error("%s: %s}: [%lld] is %g, interpreted %g; x %g, y %g\n", how, k ? nodes[k - 1] : "slope", (long long)e,
                  x, y, (double)numbers[e / N % N], (double)numbers[e % N]);
      ndifferences++;
    }
  }
  return ndifferences;
}

static void both_backends_give_the_same_signs(void **state) {
  (void)state;
  static const char *const isas[] = {NULL, "scalar"};
  size_t ndifferences = 0;
  Trial t;
  trial_init(&t);
  assert_int_equal(ng_interpret(t.graph, t.inputs, t.expected, 0), NG_OK);
  for (int i = 0; i < 4; i++) {
    ng_kernel *kernel = ng_compile(t.graph, &(ng_options){.isa = isas[i % 2], .no_fuse = i / 2});
    if (!kernel) fail_msg("%s", ng_messages_text(t.ctx, 0));
    assert_int_equal(ng_kernel_run(kernel, t.inputs, t.outputs, 0), NG_OK);
    ndifferences += count_differences(&t, isas[i % 2] ? isas[i % 2] : "compiled");
    ng_kernel_free(kernel);
  }
  trial_deinit(&t);
  assert_int_equal(ndifferences, 0);
}

// The same numbers as a row's scalars, which C's own operators compute with: each result is multiplied by a row of
// ones.

static bool is_of_numbers(const char *node) {
  const bool has_numbers = strstr(node, "inputs: [x]") || strstr(node, "inputs: [x, y]");
  return has_numbers && !strstr(node, "axes:") && !strstr(node, "BiasAdd") && !strstr(node, "PReLU") &&
         !strstr(node, "uantize") && !strstr(node, "TypeCast") && !strstr(node, "Equal") && !strstr(node, "Less") &&
         !strstr(node, "Greater");
}

enum { WIDTH = 17 };

static ng_graph *read_scalars(ng_context *ctx) {
  static char text[1 << 15], outputs[1 << 12];
  size_t at = (size_t)snprintf(text, sizeof text,
                               "format: ngrad/1\nname: scalars\ninputs:\n  - {name: x, type: f32, shape: [%d, 1]}\n"
                               "  - {name: y, type: f32, shape: [%d, 1]}\n"
                               "  - {name: ones, type: f32, shape: [1, %d]}\nnodes:\n",
                               N * N, N * N, WIDTH);
  size_t named = 0;
  for (size_t n = 0; n < NNODES; n++) {
    if (!is_of_numbers(nodes[n])) continue;
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "  - %s, outputs: [s%zu]}\n  - {op: Multiply, inputs: [ones, s%zu], outputs: [o%zu]}\n",
                           nodes[n], n, n, n);
    named += (size_t)snprintf(outputs + named, sizeof outputs - named, "%so%zu", named ? ", " : "", n);
  }
  snprintf(text + at, sizeof text - at, "outputs: [%s]\n", outputs);
  return must_read(ctx, text);
}

static size_t count_wrong_scalars(const ng_tensor *got, const ng_tensor *right, const char *how, const char *node) {
  size_t ndifferences = 0;
  for (int64_t e = 0; e < ng_tensor_nelems(got); e++) {
    const float x = numbers[e / WIDTH / N], y = numbers[e / WIDTH % N];
    const bool is_out = strncmp(node, "{op: SqrtBackward", 17) == 0 && fabsf(x) == FLT_MAX;
    if (is_of_one_class(ng_tensor_get(got, e), ng_tensor_get(right, e)) || is_out) continue;
    print_error("%s: %s}: %g, interpreted %g; x %g, y %g\n", how, node, ng_tensor_get(got, e), ng_tensor_get(right, e),
                (double)x, (double)y);
    ndifferences++;
  }
  return ndifferences;
}

static void scalars_have_the_same_signs(void **state) {
  (void)state;
  static const char *const isas[] = {NULL, "scalar"};
  static float x[N * N], y[N * N], ones[WIDTH];
  size_t ndifferences = 0;
  ng_context *ctx = new_context();
  ng_graph *g = read_scalars(ctx);
  for (size_t e = 0; e < (size_t)N * N; e++) {
    x[e] = numbers[e / N];
    y[e] = numbers[e % N];
  }
  for (size_t e = 0; e < WIDTH; e++) ones[e] = 1;
  const ng_tensor inputs[] = {ng_tensor_view(ng_graph_input(g, 0), x), ng_tensor_view(ng_graph_input(g, 1), y),
                              ng_tensor_view(ng_graph_input(g, 2), ones)};
  ng_tensor right[NNODES], got[NNODES];
  for (size_t i = 0; i < ng_graph_output_count(g); i++) {
    const ng_tensor_info info = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &right[i]), NG_OK);
    assert_int_equal(ng_tensor_new(ctx, &info, &got[i]), NG_OK);
  }
  assert_int_equal(ng_interpret(g, inputs, right, 0), NG_OK);
  for (int i = 0; i < 2; i++) {
    ng_kernel *kernel = ng_compile(g, &(ng_options){.isa = isas[i]});
    if (!kernel) fail_msg("%s", ng_messages_text(ctx, 0));
    assert_int_equal(ng_kernel_run(kernel, inputs, got, 0), NG_OK);
    for (size_t n = 0, o = 0; n < NNODES; n++) {
      if (!is_of_numbers(nodes[n])) continue;
      ndifferences += count_wrong_scalars(&got[o], &right[o], isas[i] ? isas[i] : "compiled", nodes[n]);
      o++;
    }
    ng_kernel_free(kernel);
  }
  for (size_t i = 0; i < ng_graph_output_count(g); i++) {
    ng_tensor_free(ctx, &right[i]);
    ng_tensor_free(ctx, &got[i]);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
  assert_int_equal(ndifferences, 0);
}

static void no_elementwise_operator_is_left_out(void **state) {
  (void)state;
  for (size_t id = 0; id < OP_COUNT; id++) {
    char name[64];
    bool is_there = strcmp(operators[id].family, "elementwise") != 0;
    snprintf(name, sizeof name, "{op: %s,", operators[id].name);
    for (size_t i = 0; i < NNODES; i++) is_there |= strncmp(nodes[i], name, strlen(name)) == 0;
    if (!is_there) fail_msg("operator %s has no row of special values", operators[id].name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_elementwise_operator_is_left_out),
      cmocka_unit_test(scalars_have_the_same_signs),
      cmocka_unit_test(both_backends_give_the_same_signs),
  };
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
