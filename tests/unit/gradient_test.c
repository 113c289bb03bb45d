// Gradients of graphs: each operator's against differences, what a gradient graph is made of, and what is wrong.
#include "frontend/api/ngrad.h"
#include "ir/operator.h"
#include "passes/gradient/gradient.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_BYTES = 4096 };

typedef struct Case {
  const char *name;   // an operator's
  const char *inputs; // of the graph; TYPE stands for several types
  const char *node;   // it makes y
} Case;

#define TENSOR(name, type, shape) "{name: " name ", type: " type ", shape: " shape "}"
#define X(shape) TENSOR("x", "TYPE", shape)
#define A(shape) TENSOR("a", "TYPE", shape)
#define B(shape) TENSOR("b", "TYPE", shape)
#define S(name, shape) ", " TENSOR(name, "f32", shape)
#define OF_X(name) "{op: " name ", inputs: [x], outputs: [y]}"
#define OF_X_WITH(name, attributes) "{op: " name ", inputs: [x], outputs: [y], attributes: {" attributes "}}"
#define OF_AB(name) "{op: " name ", inputs: [a, b], outputs: [y]}"
#define UNARY(name)                                                                                                    \
  { name, X("[3, 5]"), OF_X(name) }
#define UNARY_WITH(name, attributes)                                                                                   \
  { name, X("[3, 5]"), OF_X_WITH(name, attributes) }
#define BINARY(name)                                                                                                   \
  {name, A("[3, 5]") ", " B("[3, 5]"), OF_AB(name)}, {name, A("[3, 5]") ", " B("[5]"), OF_AB(name)},                   \
      {name, A("[5]") ", " B("[2, 3, 1]"), OF_AB(name)}, {name, A("[3, 1]") ", " B("[2, 1, 5]"), OF_AB(name)}, {       \
    name, A("[]") ", " B("[2, 3]"), OF_AB(name)                                                                        \
  }
#define REDUCTION(name)                                                                                                \
  {name, X("[2, 3, 4]"), OF_X_WITH(name, "axes: [1]")}, {name, X("[2, 3, 4]"), OF_X_WITH(name, "axes: [0]")},          \
      {name, X("[2, 3, 4]"), OF_X_WITH(name, "axes: [2, 0], keep_dims: true")},                                        \
      {name, X("[2, 3, 4]"), OF_X_WITH(name, "axes: [0, 1, 2]")}, {                                                    \
    name, X("[2, 3]"), OF_X_WITH(name, "axes: []")                                                                     \
  }

#define BATCH_NORM(shape, channels, format)                                                                            \
  {"BatchNormForwardTraining",                                                                                         \
   X(shape) S("mean", channels) S("var", channels) S("gamma", channels) S("beta", channels),                           \
   "{op: BatchNormForwardTraining, inputs: [x, mean, var, gamma, beta], outputs: [y, m, v, bm, bv], "                  \
   "attributes: {epsilon: 1.0e-3, data_format: " format "}}"},                                                         \
  {                                                                                                                    \
    "BatchNormInference", X(shape) S("gamma", channels) S("beta", channels) S("mean", channels) S("var", channels),    \
        "{op: BatchNormInference, inputs: [x, gamma, beta, mean, var], outputs: [y], "                                 \
        "attributes: {epsilon: 1.0e-3, data_format: " format "}}"                                                      \
  }
#define ROWS(name, shape, parameters, attributes)                                                                      \
  {name, X(shape) S("gamma", parameters) S("beta", parameters),                                                        \
   "{op: " name ", inputs: [x, gamma, beta], outputs: [y, m, v], attributes: {" attributes "}}"},                      \
      {name, X(shape) S("gamma", parameters) S("beta", parameters),                                                    \
       "{op: " name ", inputs: [x, gamma, beta], outputs: [y], attributes: {keep_stats: false, " attributes "}}"},     \
  {                                                                                                                    \
    name, X(shape), "{op: " name ", inputs: [x], outputs: [y, m, v], attributes: {use_affine: false, " attributes "}}" \
  }

static const Case cases[] = {
    UNARY("Abs"),
    UNARY_WITH("Clamp", "min: -0.5, max: 0.8"),
    UNARY_WITH("Elu", "alpha: 0.7"),
    UNARY_WITH("Elu", "alpha: -0.7"),
    UNARY("Exp"),
    UNARY_WITH("GELU", "mode: gelu_erf"),
    UNARY_WITH("GELU", "mode: gelu_tanh"),
    UNARY_WITH("HardSigmoid", "alpha: 0.4, beta: 0.5"),
    UNARY("HardSwish"),
    UNARY_WITH("LeakyReLU", "alpha: 0.1"),
    UNARY("Log"),
    UNARY("Mish"),
    UNARY_WITH("Pow", "beta: 2.5"),
    UNARY_WITH("Pow", "beta: -1"),
    UNARY("Reciprocal"),
    UNARY("ReLU"),
    UNARY("Sigmoid"),
    UNARY_WITH("SoftPlus", "beta: 2"),
    UNARY("Sqrt"),
    UNARY("Square"),
    UNARY("Tanh"),
    BINARY("Add"),
    BINARY("Subtract"),
    BINARY("Multiply"),
    BINARY("Divide"),
    BINARY("Maximum"),
    BINARY("Minimum"),
    BINARY("SquaredDifference"),
    {"Select", TENSOR("c", "boolean", "[5]") ", " A("[3, 5]") ", " B("[3, 1]"),
     "{op: Select, inputs: [c, a, b], outputs: [y]}"},
    {"Select", TENSOR("c", "boolean", "[3, 5]") ", " A("[]") ", " B("[3, 5]"),
     "{op: Select, inputs: [c, a, b], outputs: [y]}"},
    {"BiasAdd", A("[2, 3, 4]") ", " B("[3]"),
     "{op: BiasAdd, inputs: [a, b], outputs: [y], attributes: {data_format: NCX}}"},
    {"BiasAdd", A("[2, 3, 4]") ", " B("[4]"), OF_AB("BiasAdd")},
    {"PReLU", A("[2, 3, 4]") ", " B("[3]"),
     "{op: PReLU, inputs: [a, b], outputs: [y], attributes: {data_format: NCX}}"},
    {"PReLU", A("[2, 3, 3]") ", " B("[3]"),
     "{op: PReLU, inputs: [a, b], outputs: [y], attributes: {data_format: NCX, per_channel_broadcast: false}}"},
    {"PReLU", A("[2, 3, 4]") ", " B("[3, 1]"), OF_AB("PReLU")},
    {"TypeCast", TENSOR("x", "f32", "[3]"), "{op: TypeCast, inputs: [x], outputs: [{name: y, type: bf16}]}"},
    {"TypeCast", TENSOR("x", "f16", "[3]"), "{op: TypeCast, inputs: [x], outputs: [{name: y, type: f32}]}"},
    REDUCTION("ReduceSum"),
    REDUCTION("ReduceMean"),
    REDUCTION("ReduceMax"),
    REDUCTION("ReduceMin"),
    REDUCTION("ReduceProd"),
    REDUCTION("ReduceL1"),
    REDUCTION("ReduceL2"),
    {"SoftMax", X("[3, 4]"), OF_X("SoftMax")},
    {"SoftMax", X("[2, 3, 4]"),
     "{op: SoftMax, inputs: [x], outputs: [y, s], attributes: {axis: -2, mode: inf_as_zero}}"},
    {"SoftMax", TENSOR("x", "bf16", "[3, 4]"), "{op: SoftMax, inputs: [x], outputs: [{name: y, type: f32}]}"},
    {"SoftMax", TENSOR("x", "f32", "[3, 4]"), "{op: SoftMax, inputs: [x], outputs: [{name: y, type: bf16}]}"},
    {"LogSoftmax", X("[3, 4]"), OF_X("LogSoftmax")},
    {"LogSoftmax", X("[2, 3, 4]"), OF_X_WITH("LogSoftmax", "axis: 0")},
    BATCH_NORM("[3, 4, 5]", "[4]", "NCX"),
    BATCH_NORM("[3, 5, 4]", "[4]", "NXC"),
    {"BatchNormForwardTraining", X("[4, 3]") S("mean", "[3]") S("var", "[3]"),
     "{op: BatchNormForwardTraining, inputs: [x, mean, var], outputs: [y, m, v, bm, bv], attributes: {epsilon: "
     "1.0e-3}}"},
    ROWS("LayerNorm", "[3, 8]", "[8]", "epsilon: 1.0e-3"),
    ROWS("LayerNorm", "[3, 2, 4]", "[2, 4]", "begin_norm_axis: 1"),
    ROWS("LayerNorm", "[3, 2, 4]", "[8]", "begin_norm_axis: 1"),
    ROWS("GroupNorm", "[2, 6, 5]", "[6]", "groups: 2, data_format: NCX"),
    ROWS("GroupNorm", "[2, 5, 6]", "[6]", "groups: 3"),
    ROWS("InstanceNorm", "[2, 3, 5]", "[3]", "data_format: NCX"),
    ROWS("InstanceNorm", "[2, 5, 3]", "[3]", "epsilon: 1.0e-3"),
    {"RMSNorm", X("[3, 8]") S("gamma", "[8]"), "{op: RMSNorm, inputs: [x, gamma], outputs: [y]}"},
    {"RMSNorm", X("[3, 2, 4]"), OF_X_WITH("RMSNorm", "begin_norm_axis: 1")},
    {"StaticReshape", X("[2, 6]"), OF_X_WITH("StaticReshape", "shape: [3, -1], special_zero: false")},
    {"StaticTranspose", X("[2, 3, 4]"), OF_X_WITH("StaticTranspose", "order: [2, 0, 1]")},
    {"StaticTranspose", X("[2, 3]"), OF_X_WITH("StaticTranspose", "order: []")},
};
enum { NCASES = sizeof cases / sizeof *cases };

static void write_case(const Case *c, const char *type, char text[TEXT_BYTES]) {
  int used = snprintf(text, TEXT_BYTES, "format: ngrad/1\ninputs: [");
  for (const char *from = c->inputs; *from;) {
    const char *placeholder = strstr(from, "TYPE");
    int before = placeholder ? (int)(placeholder - from) : (int)strlen(from);
    used += snprintf(text + used, TEXT_BYTES - (size_t)used, "%.*s%s", before, from, placeholder ? type : "");
    from += before + (placeholder ? 4 : 0);
  }
  used += snprintf(text + used, TEXT_BYTES - (size_t)used, "]\nnodes:\n  - %s\noutputs: [y]\n", c->node);
  assert_true(used < TEXT_BYTES);
}

static ng_graph *read_graph(ng_context *ctx, const char *text) {
  ng_graph *g = ng_graph_read(ctx, "forward", text, strlen(text), NULL);
  if (!g) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  return g;
}

static const GradientRule *const rules[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = &gradient_##name,
#include "ir/operators.def"
#undef OP
};

static bool has_case(const char *name) {
  for (size_t i = 0; i < NCASES; i++)
    if (strcmp(cases[i].name, name) == 0) return true;
  return false;
}

static void every_operator_has_a_gradient_with_a_case_or_a_reason(void **state) {
  (void)state;
  for (size_t i = 0; i < OP_COUNT; i++) {
    assert_true((rules[i]->make != NULL) != (rules[i]->why_not != NULL));
    if ((rules[i]->make != NULL) != has_case(operators[i].name)) fail_msg("%s: no case", operators[i].name);
  }
}

// What batch norm mixes the batch's statistics into has no gradient.
static bool is_running_statistic(const ng_graph *g, size_t i, const char *text) {
  const char *name = ng_graph_input(g, i).name;
  return strstr(text, "BatchNormForwardTraining") && (strcmp(name, "mean") == 0 || strcmp(name, "var") == 0);
}

static void must_pass(ng_graph *g, ng_context *ctx, const char *text) {
  ng_gradcheck_result results[16];
  assert_true(ng_graph_input_count(g) <= 16);
  ng_status status = ng_gradcheck(g, NULL, results);
  if (status != NG_OK && status != NG_DIFFERENT) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  for (size_t i = 0; i < ng_graph_input_count(g); i++) {
    const ng_gradcheck_result *r = &results[i];
    if (r->nchecked && !r->is_within)
      fail_msg("%s[%lld]: %.12g, expected %.12g\n%s", ng_graph_input(g, i).name, (long long)r->worst_element,
               r->gradient, r->expected, text);
    bool is_differentiable = ng_graph_input(g, i).type != NG_BOOLEAN && !is_running_statistic(g, i, text);
    assert_int_equal(r->nchecked, is_differentiable ? r->nelems : 0);
    assert_true(r->nskipped == 0); // no data of these is near a kink
  }
  assert_int_equal(status, NG_OK);
}

static void gradients_of_operators_are_those_of_differences(void **state) {
  (void)state;
  for (size_t i = 0; i < NCASES; i++) {
    char text[TEXT_BYTES];
    write_case(&cases[i], "f32", text);
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_graph(ctx, text);
    must_pass(g, ctx, text);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// They read back as they were printed, and kernels can be made of them.
static void gradients_of_any_type_are_graphs(void **state) {
  (void)state;
  static const char *const types[] = {"f64", "f32", "f16", "bf16"};
  for (size_t i = 0; i < 4 * NCASES; i++) {
    char text[TEXT_BYTES], *source, *header;
    write_case(&cases[i / 4], types[i % 4], text);
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
    if (!gradient) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
    char *printed = ng_graph_show(gradient, "yaml", NULL);
    if (ng_emit(gradient, NULL, &source, &header) != NG_OK) fail_msg("%s\n%s", ng_messages_text(ctx, 0), printed);
    assert_string_equal(ng_messages_text(ctx, 0), "");
    ng_text_free(ctx, source);
    ng_text_free(ctx, header);
    ng_text_free(ctx, printed);
    ng_graph_free(gradient);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_operator_has_a_gradient_with_a_case_or_a_reason),
      cmocka_unit_test(gradients_of_operators_are_those_of_differences),
      cmocka_unit_test(gradients_of_any_type_are_graphs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
