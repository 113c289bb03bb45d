// Gradients of graphs: each operator's against finite differences, the nodes of a gradient graph, and errors.
#include "frontend/api/ngrad.h"
#include "frontend/yaml/yaml.h"
#include "ir/operators/operator.h"
#include "passes/gradient/gradient.h"
#include "tests/random_seeds.h"
#include "tests/unit/failing_allocator.h"
#include "tests/unit/gradient_cases.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_BYTES = 4096 };

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

static bool has_case(const char *name) {
  for (size_t i = 0; i < NCASES; i++)
    if (strcmp(cases[i].name, name) == 0) return true;
  return false;
}

static void every_operator_has_a_gradient_with_a_case_or_a_reason(void **state) {
  (void)state;
  for (size_t i = 0; i < OP_COUNT; i++) {
    const bool is_derived = gradient_rules[i]->make || gradient_rules[i]->expand;
    assert_true(is_derived != (gradient_rules[i]->of_all.why != NULL));
    const bool takes_all_results = i == OP_Split || operators[i].norm_scope;
    for (uint32_t k = 1; k < operators[i].noutputs && gradient_rules[i]->make && !takes_all_results; k++)
      assert_true(operators[i].outputs[k].is_statistic);  // a rule is given the first result's gradient alone
    if (operators[i].traits & TRAIT_COLLECTIVE) continue; // leaves_test.c
    if (gradient_rules[i]->is_identity) continue;         // not that of differences: gradient_edges.h
    if (is_derived != has_case(operators[i].name))
      fail_msg("%s: expected a case if, and only if, the operator has a gradient", operators[i].name);
  }
}

// Running statistics, which a batch norm updates, and probabilities have no gradient.
static bool has_gradient(const ng_graph *g, size_t i, const char *text) {
  const char *name = ng_graph_input(g, i).name;
  bool is_running = strstr(text, "BatchNormForwardTraining") && (strcmp(name, "mean") == 0 || strcmp(name, "var") == 0);
  bool is_probability = strstr(text, "Dropout") && strcmp(name, "p") == 0;
  return type_is_float((Type)ng_graph_input(g, i).type) && !is_running && !is_probability;
}

static void must_pass(ng_graph *g, ng_context *ctx, const char *text) {
  ng_gradcheck_result results[16];
  assert_true(ng_graph_input_count(g) <= 16);
  const char *wrt[16]; // statistics are differentiated by on request only
  size_t nwrt = 0;
  for (size_t i = 0; i < ng_graph_input_count(g) && (strstr(text, "Norm") || strstr(text, "NORM")); i++)
    if (has_gradient(g, i, text)) wrt[nwrt++] = ng_graph_input(g, i).name;
  ng_status status =
      ng_gradcheck(g, &(ng_gradcheck_options){.gradient = {.wrt = nwrt ? wrt : NULL, .nwrt = nwrt}}, results);
  if (status != NG_OK && status != NG_DIFFERENT) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  for (size_t i = 0; i < ng_graph_input_count(g); i++) {
    const ng_gradcheck_result *r = &results[i];
    if (r->nchecked && !r->is_within)
      fail_msg("%s[%lld]: %.12g, expected %.12g\n%s", ng_graph_input(g, i).name, (long long)r->worst_element,
               r->gradient, r->expected, text);
    assert_int_equal(r->nchecked, has_gradient(g, i, text) ? r->nelems : 0);
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

// Printed gradients read back unchanged, and compile.
static void gradients_of_any_type_are_graphs(void **state) {
  (void)state;
  static const char *const types[] = {"f64", "f32", "f16", "bf16"};
  const size_t ntypes = sizeof types / sizeof *types;
  for (size_t i = 0; i < ntypes * NCASES; i++) {
    if (!takes_all() && i % ntypes != i / ntypes % ntypes) continue;
    char text[TEXT_BYTES], *source, *header;
    write_case(&cases[i / ntypes], types[i % ntypes], text);
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

// Nothing of a gradient graph is there for nothing.
static void gradients_hold_nothing_dead(void **state) {
  (void)state;
  const ng_options after_dead_code = {.after = "dead-code"};
  for (size_t i = 0; i < NCASES; i++) {
    char text[TEXT_BYTES];
    write_case(&cases[i], "f32", text);
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
    ng_graph_free(g); // the gradient does not need the graph
    assert_non_null(gradient);
    char *written = ng_graph_show(gradient, "yaml", NULL), *left = ng_graph_show(gradient, "yaml", &after_dead_code);
    assert_string_equal(written, left);
    ng_text_free(ctx, written);
    ng_text_free(ctx, left);
    ng_graph_free(gradient);
    ng_context_free(ctx);
  }
}

// Models

typedef struct Model {
  const char *forward, *by_hand; // paths; by_hand: its gradient
  const char *wrt[8], *of[8];
} Model;

static const Model models[] = {
    {"models/resnet50_residual_forward.yaml",
     "models/resnet50_residual_tail_backward.yaml",
     {"branch", "gamma", "beta"},
     {"x", "y"}},
    {"models/transformer_mlp_forward.yaml",
     "models/transformer_mlp_backward.yaml",
     {"h", "bias", "p", "skip", "gamma", "beta"},
     {"activated", "y"}},
};
enum { NMODELS = sizeof models / sizeof *models };

static ng_gradient_options options_of_model(const Model *m) {
  ng_gradient_options o = {.wrt = m->wrt, .of = m->of};
  while (m->wrt[o.nwrt]) o.nwrt++;
  while (m->of[o.nof]) o.nof++;
  return o;
}

static ng_graph *read_model(ng_context *ctx, const char *path, int64_t n) {
  ng_graph *g = ng_graph_read_file(ctx, path);
  if (!g || ng_graph_set_dim(g, "N", n) != NG_OK) fail_msg("%s", ng_messages_text(ctx, 0));
  return g;
}

static void gradients_of_models_are_those_of_differences(void **state) {
  (void)state;
  for (size_t i = 0; i < NMODELS; i += takes_all() ? 1 : 3) {
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_model(ctx, models[i].forward, 1);
    ng_gradcheck_options options = {.gradient = options_of_model(&models[i])};
    ng_gradcheck_result results[16];
    if (ng_gradcheck(g, &options, results) != NG_OK) fail_msg("%s", models[i].forward);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Makes the graph's outputs on random data, by the interpreter or by kernels.
static void run_graph(ng_graph *g, ng_context *ctx, bool by_kernels, ng_tensor *outputs) {
  size_t ninputs = ng_graph_input_count(g), noutputs = ng_graph_output_count(g);
  ng_tensor inputs[16];
  assert_true(ninputs <= 16 && noutputs <= 16);
  for (size_t i = 0; i < ninputs; i++) assert_int_equal(ng_tensor_random(g, i, 1, &inputs[i]), NG_OK);
  for (size_t i = 0; i < noutputs; i++) {
    ng_tensor_info info = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &outputs[i]), NG_OK);
  }
  if (by_kernels) {
    ng_kernel *k = ng_compile(g, NULL);
    if (!k) fail_msg("%s", ng_messages_text(ctx, 0));
    assert_int_equal(ng_kernel_run(k, inputs, outputs, 2), NG_OK);
    ng_kernel_free(k);
  } else {
    assert_int_equal(ng_interpret(g, inputs, outputs, 0), NG_OK);
  }
  for (size_t i = 0; i < ninputs; i++) ng_tensor_free(ctx, &inputs[i]);
}

static void both_backends_run_the_gradients_of_models(void **state) {
  (void)state;
  for (size_t i = 0; i < NMODELS; i++) {
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_model(ctx, models[i].forward, 3);
    ng_gradient_options options = options_of_model(&models[i]);
    ng_graph *gradient = ng_graph_gradient(g, &options);
    ng_tensor expected[16], made[16];
    run_graph(gradient, ctx, false, expected);
    run_graph(gradient, ctx, true, made);
    for (size_t k = 0; k < ng_graph_output_count(gradient); k++) {
      ng_difference difference;
      assert_int_equal(ng_tensor_compare(ctx, &made[k], &expected[k], -1, &difference), NG_OK);
      ng_tensor_free(ctx, &made[k]);
      ng_tensor_free(ctx, &expected[k]);
    }
    ng_graph_free(gradient);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Both backends agree as far as f64 goes. The interpreter rounds no value between nodes, whatever its type.
static void must_agree_in_f64(ng_context *ctx, ng_graph *g, const char *text) {
  ng_tensor expected[16], made[16];
  if (!g) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  run_graph(g, ctx, false, expected);
  run_graph(g, ctx, true, made);
  for (size_t k = 0; k < ng_graph_output_count(g); k++) {
    const double tolerance = made[k].type == NG_F64 ? 1e-12 : 1e-6;
    ng_difference difference;
    if (ng_tensor_compare(ctx, &made[k], &expected[k], tolerance, &difference) != NG_OK)
      fail_msg("%s: %g\n%s", ng_graph_output(g, k).name, difference.relative_l2, text);
    ng_tensor_free(ctx, &made[k]);
    ng_tensor_free(ctx, &expected[k]);
  }
  ng_graph_free(g);
}

static void compiled_gradients_of_f64_are_precise(void **state) {
  (void)state;
  for (size_t i = 0; i < NCASES; i++) {
    const char *family = operator_find(cases[i].name).op->family;
    const bool is_everyday =
        strcmp(family, "norm") == 0 || strcmp(family, "loss") == 0 || strcmp(family, "softmax") == 0;
    if (!is_everyday && !takes_all()) continue;
    char text[TEXT_BYTES];
    write_case(&cases[i], "f64", text);
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_graph(ctx, text);
    must_agree_in_f64(ctx, ng_graph_gradient(g, NULL), text);
    must_agree_in_f64(ctx, g, text);
    ng_context_free(ctx);
  }
}

// Statistics of f64 data are f64: a gradient that reads them is as precise.
static void gradients_read_statistics_in_f64(void **state) {
  (void)state;
  static const char *const norms[][2] = {
      {"LayerNorm", ""}, {"GroupNorm", ", groups: 2"}, {"InstanceNorm", ""}, {"LayerNorm", ", begin_norm_axis: 1"}};
  for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
    char text[TEXT_BYTES];
    snprintf(
        text, sizeof text,
        "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [3, 5, 4]}, {name: dy, type: f64, shape: [3, 5, 4]}]\n"
        "nodes:\n  - {op: %s, inputs: [x], outputs: [y, m, v], attributes: {use_affine: false%s}}\n"
        "  - {op: %sBackward, inputs: [x, dy, m, v], outputs: [dx], attributes: {use_affine: false%s}}\n"
        "outputs: [dx]\n",
        norms[i][0], norms[i][1], norms[i][0], norms[i][1]);
    ng_context *ctx = ng_context_new(NULL);
    must_agree_in_f64(ctx, read_graph(ctx, text), text);
    ng_context_free(ctx);
  }
}

static int count_kernels(ng_graph *g, ng_context *ctx) {
  char *text = ng_graph_show(g, "kernels", NULL);
  int count = 0;
  assert_non_null(text);
  for (const char *at = text; (at = strstr(at, "kernel ")); at++) count += at == text || at[-1] == '\n';
  ng_text_free(ctx, text);
  return count;
}

static void gradients_have_as_many_kernels_as_those_written_by_hand(void **state) {
  (void)state;
  for (size_t i = 0; i < NMODELS; i++) {
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_model(ctx, models[i].forward, 16), *by_hand = read_model(ctx, models[i].by_hand, 16);
    ng_gradient_options options = options_of_model(&models[i]);
    ng_graph *gradient = ng_graph_gradient(g, &options);
    assert_non_null(gradient);
    assert_int_equal(ng_graph_node_count(gradient), ng_graph_node_count(by_hand));
    assert_int_equal(count_kernels(gradient, ctx), count_kernels(by_hand, ctx));
    ng_graph_free(gradient);
    ng_graph_free(by_hand);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// The check itself

static ng_status check_text(const char *text, const ng_gradcheck_options *options, ng_gradcheck_result *results) {
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text);
  ng_status status = ng_gradcheck(g, options, results);
  ng_graph_free(g);
  ng_context_free(ctx);
  return status;
}

// ln(1 + e^0) / 0 is infinite, so there are no finite differences.
static void gradcheck_names_the_worst_element(void **state) {
  (void)state;
  ng_gradcheck_result r;
  const char *text = "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3, 5]}]\n"
                     "nodes:\n  - {op: SoftPlus, inputs: [x], outputs: [y], attributes: {beta: 0}}\noutputs: [y]\n";
  assert_int_equal(check_text(text, NULL, &r), NG_DIFFERENT);
  assert_int_equal(r.nelems, 15);
  assert_int_equal(r.nchecked, 15);
  assert_int_equal(r.nskipped, 0);
  assert_false(r.is_within);
  assert_int_equal(r.worst_element, 0);
  assert_true(isinf(r.largest_error) && isnan(r.expected) && isfinite(r.gradient));
}

// One number changes very many others, and some of these cross zero at every step size. Then the check skips it.
static void gradcheck_skips_kinks_and_says_so(void **state) {
  (void)state;
  ng_gradcheck_result r[2];
  const char *text =
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [200000]}, {name: b, type: f32, shape: []}]\n"
      "nodes:\n  - {op: Add, inputs: [x, b], outputs: [z]}\n"
      "  - {op: ReLU, inputs: [z], outputs: [y]}\noutputs: [y]\n";
  assert_int_equal(check_text(text, NULL, r), NG_DIFFERENT);
  assert_true(r[0].is_within && r[0].nskipped == 0);
  assert_true(r[0].nchecked > 0 && r[0].nchecked < r[0].nelems);
  assert_true(!r[1].is_within && r[1].nchecked == 1 && r[1].nskipped == 1);
}

static void elements_that_are_alike_share_a_gradient(void **state) {
  (void)state;
  const char *text = "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [4]}]\n"
                     "nodes:\n  - {op: ReduceMax, inputs: [x], outputs: [y], attributes: {axes: [0]}}\noutputs: [y]\n";
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
  float x[] = {1, 7, -2, 7}, dy = 3, dx[4];
  ng_tensor inputs[] = {{.type = NG_F32, .rank = 1, .extent = {4}, .data = x}, {.type = NG_F32, .data = &dy}};
  assert_int_equal(ng_graph_input_count(gradient), 2); // the greatest element is found again
  ng_tensor output = {.type = NG_F32, .rank = 1, .extent = {4}, .data = dx};
  assert_int_equal(ng_interpret(gradient, inputs, &output, 0), NG_OK);
  const float expected[] = {0, 1.5F, 0, 1.5F};
  assert_memory_equal(dx, expected, sizeof dx);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// The product of the others, where none, one or two of them are zero.
static void products_with_zeros_have_gradients(void **state) {
  (void)state;
  const char *text = "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3, 3]}]\n"
                     "nodes:\n  - {op: ReduceProd, inputs: [x], outputs: [y], attributes: {axes: [1]}}\noutputs: [y]\n";
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
  float x[] = {2, 3, 4, 2, 0, 4, 0, 5, 0}, dy[] = {1, 10, 1}, dx[9];
  ng_tensor inputs[] = {{.type = NG_F32, .rank = 2, .extent = {3, 3}, .data = x},
                        {.type = NG_F32, .rank = 1, .extent = {3}, .data = dy}};
  ng_tensor output = {.type = NG_F32, .rank = 2, .extent = {3, 3}, .data = dx};
  assert_int_equal(ng_interpret(gradient, inputs, &output, 0), NG_OK);
  const float expected[] = {12, 8, 6, 0, 80, 0, 0, 0, 0};
  for (int i = 0; i < 9; i++) assert_true(dx[i] == expected[i]);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// A graph that has no gradient is wrong, and nothing else is told.
static void what_cannot_be_differentiated_is_told_once(void **state) {
  (void)state;
  static const char *const texts[] = {
      "format: ngrad/1\ndims: {B: 2}\ninputs: [{name: x, type: f32, shape: [4, B]}]\nnodes:\n"
      "  - {op: Slice, inputs: [x], outputs: [{name: y, type: f32, shape: [4, 2]}], attributes: {starts: [0], ends: "
      "[2], "
      "axes: [1]}}\noutputs: [y]\n",
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3]}]\n"
      "constants: [{name: rate, type: f32, shape: [], value: 1}]\n"
      "nodes:\n  - {op: SGD, inputs: [x, x, rate], outputs: [y]}\noutputs: [y]\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_graph(ctx, texts[i]);
    assert_null(ng_graph_gradient(g, NULL));
    assert_int_equal(ng_last_status(ctx), NG_WRONG);
    assert_int_equal(ng_message_count(ctx), 1);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// A mean over ignored labels alone is 0 / 0, and so is one over labels without class: random data has neither, also
// where other operators compute the loss, or the labels' places.
static void random_labels_count(void **state) {
  (void)state;
  static const char *const texts[] = {
      "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [1, 3]}, {name: l, type: s32, shape: [1]}]\nnodes:\n"
      "  - {op: SoftmaxCrossEntropy, inputs: [x, l], outputs: [y], attributes: {ignore_index: 0}}\noutputs: [y]\n",
      "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [1, 3]}, {name: l, type: s64, shape: [1]}]\n"
      "constants: [{name: ignored, type: s64, shape: [], value: 0}]\nnodes:\n"
      "  - {op: OneHot, inputs: [l], outputs: [{name: own, type: f64}], attributes: {depth: 3}}\n"
      "  - {op: NotEqual, inputs: [l, ignored], outputs: [counts]}\n"
      "  - {op: TypeCast, inputs: [counts], outputs: [{name: count, type: f64}]}\n"
      "  - {op: Multiply, inputs: [own, count], outputs: [weight]}\n"
      "  - {op: Multiply, inputs: [x, weight], outputs: [costs]}\n"
      "  - {op: ReduceSum, inputs: [costs], outputs: [cost], attributes: {axes: [0, 1]}}\n"
      "  - {op: ReduceSum, inputs: [weight], outputs: [total], attributes: {axes: [0, 1]}}\n"
      "  - {op: Divide, inputs: [cost, total], outputs: [y]}\noutputs: [y]\n",
      // indices along an axis, as readers write them: negative ones count from the end
      "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [2, 3]}, {name: l, type: s64, shape: [2, 1]}]\n"
      "constants: [{name: n, type: s64, shape: [], value: 3}, {name: zero, type: s64, shape: [], value: 0}, "
      "{name: rows, type: s64, shape: [2, 1], values: [[0], [3]]}]\nnodes:\n"
      "  - {op: Add, inputs: [l, n], outputs: [from_end]}\n"
      "  - {op: Less, inputs: [l, zero], outputs: [is_negative]}\n"
      "  - {op: Select, inputs: [is_negative, from_end, l], outputs: [from_start]}\n"
      "  - {op: Add, inputs: [from_start, rows], outputs: [place]}\n"
      "  - {op: StaticReshape, inputs: [x], outputs: [flat], attributes: {shape: [6], special_zero: false}}\n"
      "  - {op: Gather, inputs: [flat, place], outputs: [y]}\noutputs: [y]\n",
      // row * 2 + column, of labels that are missing where they are negative
      "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [6]}, {name: l, type: s32, shape: [2]}]\n"
      "constants: [{name: n, type: s64, shape: [], value: 2}, {name: zero, type: s64, shape: [], value: 0}, "
      "{name: columns, type: s64, shape: [2], values: [0, 1]}]\nnodes:\n"
      "  - {op: TypeCast, inputs: [l], outputs: [{name: wide, type: s64}]}\n"
      "  - {op: Maximum, inputs: [wide, zero], outputs: [row]}\n"
      "  - {op: Multiply, inputs: [n, row], outputs: [begin]}\n"
      "  - {op: Add, inputs: [begin, columns], outputs: [place]}\n"
      "  - {op: Gather, inputs: [x, place], outputs: [y]}\noutputs: [y]\n",
      "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [2, 3]}, {name: l, type: s64, shape: [2]}]\n"
      "constants: [{name: missing, type: s64, shape: [], value: -100}, {name: zero, type: s64, shape: [], value: 0}]\n"
      "nodes:\n  - {op: Equal, inputs: [l, missing], outputs: [is_missing]}\n"
      "  - {op: Select, inputs: [is_missing, zero, l], outputs: [own]}\n"
      "  - {op: SoftmaxCrossEntropy, inputs: [x, own], outputs: [y]}\noutputs: [y]\n",
  };
  for (uint64_t seed = 0; seed < 40; seed++)
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
      ng_gradcheck_result results[2];
      assert_int_equal(check_text(texts[i], &(ng_gradcheck_options){.seed = seed}, results), NG_OK);
    }
}

// A label that is no class makes the gradients of its row and of all weights NaN. Here the graph computes labels, as
// runs refuse such inputs.
static void labels_without_class_have_no_gradient(void **state) {
  (void)state;
  const char *text =
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [2, 2]}, {name: l, type: f32, shape: [2]}, "
      "{name: w, type: f32, shape: [2]}]\nnodes:\n"
      "  - {op: TypeCast, inputs: [l], outputs: [{name: labels, type: s64}]}\n"
      "  - {op: SoftmaxCrossEntropy, inputs: [x, labels, w], outputs: [y], attributes: {reduction: sum}}\n"
      "outputs: [y]\n";
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, &(ng_gradient_options){.save_least = 1});
  float x[4] = {0}, l[] = {0, 2}, w[] = {1, 3}, dy = 2, dx[4], dw[2];
  const ng_tensor inputs[] = {{.type = NG_F32, .rank = 2, .extent = {2, 2}, .data = x},
                              {.type = NG_F32, .rank = 1, .extent = {2}, .data = l},
                              {.type = NG_F32, .rank = 1, .extent = {2}, .data = w},
                              {.type = NG_F32, .data = &dy}};
  ng_tensor outputs[] = {{.type = NG_F32, .rank = 2, .extent = {2, 2}, .data = dx},
                         {.type = NG_F32, .rank = 1, .extent = {2}, .data = dw}};
  assert_int_equal(ng_graph_input_count(gradient), 4);
  assert_int_equal(ng_interpret(gradient, inputs, outputs, 0), NG_OK);
  assert_true(dx[0] == -1 && dx[1] == 1 && isnan(dx[2]) && isnan(dx[3]) && isnan(dw[0]) && isnan(dw[1]));
  l[1] = 1;
  assert_int_equal(ng_interpret(gradient, inputs, outputs, 0), NG_OK);
  assert_true(dx[2] == 3 && dx[3] == -3 && fabs(dw[0] - 2 * M_LN2) < 1e-6 && fabs(dw[1] - 2 * M_LN2) < 1e-6);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// As a quotient by a norm is defined to be 0 where the norm is, so is its gradient.
static void quotients_by_a_norm_of_zero_have_the_gradient_0(void **state) {
  (void)state;
  const char *text =
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [2, 2]}]\n"
      "constants: [{name: zero, type: f32, shape: [], value: 0}, {name: one, type: f32, shape: [], value: 1}]\n"
      "nodes:\n  - {op: ReduceL2, inputs: [x], outputs: [n], attributes: {axes: [1], keep_dims: true}}\n"
      "  - {op: Equal, inputs: [n, zero], outputs: [is_zero]}\n"
      "  - {op: Select, inputs: [is_zero, one, n], outputs: [divisor]}\n"
      "  - {op: Divide, inputs: [x, divisor], outputs: [quotient]}\n"
      "  - {op: Select, inputs: [is_zero, zero, quotient], outputs: [y]}\noutputs: [y]\n";
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
  const float x[] = {0, -0.0F, 3, 4}, n[] = {0, 5}, divisor[] = {1, 5}, quotient[] = {0, 0, 0.6F, 0.8F};
  const float dy[] = {1, 2, 5, 10}, expected[] = {0, 0, -0.32F, 0.24F}; // (dy - y * (dy . y)) / n
  const uint8_t is_zero[] = {1, 0};
  const struct {
    const char *name;
    const void *data;
  } given[] = {{"x", x}, {"n", n}, {"divisor", divisor}, {"quotient", quotient}, {"is_zero", is_zero}, {"diff_y", dy}};
  ng_tensor inputs[8], output;
  for (size_t i = 0; i < ng_graph_input_count(gradient); i++) {
    const ng_tensor_info info = ng_graph_input(gradient, i);
    size_t k = 0;
    while (strcmp(given[k].name, info.name) != 0) k++;
    assert_int_equal(ng_tensor_new(ctx, &info, &inputs[i]), NG_OK);
    memcpy(inputs[i].data, given[k].data, ng_tensor_nbytes(&inputs[i]));
  }
  const ng_tensor_info info = ng_graph_output(gradient, 0);
  assert_int_equal(ng_tensor_new(ctx, &info, &output), NG_OK);
  assert_int_equal(ng_interpret(gradient, inputs, &output, 0), NG_OK);
  for (int64_t e = 0; e < 4; e++) assert_true(fabs(ng_tensor_get(&output, e) - (double)expected[e]) < 1e-6);
  for (size_t i = 0; i < ng_graph_input_count(gradient); i++) ng_tensor_free(ctx, &inputs[i]);
  ng_tensor_free(ctx, &output);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// RoundThrough passes gradients on, and one warning says so.
static void the_identity_is_told_once(void **state) {
  (void)state;
  const char *text = "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3]}]\n"
                     "nodes:\n  - {op: RoundThrough, inputs: [x], outputs: [r]}\n"
                     "  - {op: Square, inputs: [r], outputs: [s]}\n"
                     "  - {op: RoundThrough, inputs: [s], outputs: [y]}\noutputs: [y]\n";
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
  assert_non_null(gradient);
  assert_int_equal(ng_message_count(ctx), 1);
  assert_non_null(strstr(ng_messages_text(ctx, 0),
                         "warning: RoundThrough: its gradient is that of the identity, and so "
                         "is that of 1 other node: the results change in steps"));
  ng_tensor output = {.type = NG_F32, .rank = 1, .extent = {3}, .data = (float[3]){0}};
  ng_tensor inputs[2] = {{.type = NG_F32, .rank = 1, .extent = {3}, .data = (float[]){1.25F, -2.5F, 3.5F}},
                         {.type = NG_F32, .rank = 1, .extent = {3}, .data = (float[]){1, 1, 10}}};
  assert_int_equal(ng_graph_input_count(gradient), 2);
  if (strcmp(ng_graph_input(gradient, 0).name, "x") != 0) inputs[0].data = (float[]){1, -2, 4}; // r is saved
  assert_int_equal(ng_interpret(gradient, inputs, &output, 0), NG_OK);
  assert_true(ng_tensor_get(&output, 0) == 2 && ng_tensor_get(&output, 1) == -4 && ng_tensor_get(&output, 2) == 80);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Nothing flows through Round: the gradient is 0, and one warning says so.
static void steps_are_told_once(void **state) {
  (void)state;
  const char *text = "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3]}]\n"
                     "nodes:\n  - {op: Round, inputs: [x], outputs: [r]}\n"
                     "  - {op: Square, inputs: [r], outputs: [s]}\n"
                     "  - {op: Round, inputs: [s], outputs: [t]}\n"
                     "  - {op: Mod, inputs: [x, x], outputs: [m]}\n"
                     "  - {op: Round, inputs: [m], outputs: [y]}\noutputs: [t, y]\n";
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
  assert_non_null(gradient);
  assert_int_equal(ng_message_count(ctx), 1);
  assert_non_null(
      strstr(ng_messages_text(ctx, 0),
             "warning: Round: its gradient is 0, and so is that of 1 other node: the results change in steps"));
  ng_tensor output = {.type = NG_F32, .rank = 1, .extent = {3}, .data = (float[]){1, 1, 1}};
  assert_int_equal(ng_graph_input_count(gradient), 0);
  assert_int_equal(ng_interpret(gradient, NULL, &output, 0), NG_OK);
  for (int64_t i = 0; i < 3; i++) assert_true(ng_tensor_get(&output, i) == 0);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Random graphs

// Where the graph's results are numbers. Beside a small divisor, every step of a difference goes over many jumps of a
// remainder.
static void must_be_right(const char *text) {
  enum { MOST_INPUTS = 64 };
  if (strstr(text, "op: Mod")) return;
  ng_gradcheck_result results[MOST_INPUTS] = {{0}};
  ng_status status = check_text(text, NULL, results);
  bool has_numbers = true;
  for (size_t i = 0; i < MOST_INPUTS; i++) has_numbers &= isfinite(results[i].expected);
  if (status != NG_OK && (status != NG_DIFFERENT || has_numbers)) fail_msg("%s", text);
}

static void random_graphs_have_gradients_or_reasons(void **state) {
  (void)state;
  const uint64_t count = number_of_graphs(600);
  const RandomGraphOptions options = {.most_nodes = 5, .most_nelems = 512};
  uint64_t ndifferentiated = 0;
  for (RandomSeeds s = random_seeds(count); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    Diagnostics d;
    GradientEnds ends;
    Text text, again;
    diagnostics_init(&d, &system_allocator);
    text_init(&text, &system_allocator);
    text_init(&again, &system_allocator);
    Graph *g = random_graph(&system_allocator, seed, &options, &d);
    assert_non_null(g);
    Graph *gradient = graph_gradient(g, &(GradientRequest){0}, &ends, &d);
    assert_true((gradient == NULL) == (d.nerrors > 0));
    if (gradient) {
      yaml_print(gradient, &text);
      Graph *read = yaml_read(&system_allocator, "gradient", text_string(&text), text.nbytes, NULL, &d);
      if (!read) {
        diagnostics_print(&d, &again, false);
        fail_msg("seed %d\n%s\n%s", (int)seed, text_string(&again), text_string(&text));
      }
      yaml_print(read, &again);
      assert_string_equal(text_string(&text), text_string(&again));
      graph_free(read);
      text_deinit(&text);
      text_init(&text, &system_allocator);
      yaml_print(g, &text);
      must_be_right(text_string(&text));
      ndifferentiated++;
    }
    graph_free(gradient);
    graph_free(g);
    text_deinit(&text);
    text_deinit(&again);
    diagnostics_deinit(&d);
  }
  assert_true(ndifferentiated >= count / 6);
}

// Whichever allocation fails, nothing is left, and the next call succeeds.
static void without_memory_there_is_no_gradient(void **state) {
  (void)state;
  const char *text =
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [2, 3]}, {name: b, type: f32, shape: [3]}]\n"
      "nodes:\n  - {op: Add, inputs: [x, b], outputs: [z]}\n"
      "  - {op: ReduceMean, inputs: [z], outputs: [m], attributes: {axes: [1]}}\n"
      "  - {op: LeakyReLU, inputs: [m], outputs: [y], attributes: {alpha: 0.1}}\noutputs: [y]\n";
  FailingAllocator memory;
  failing_allocator_init(&memory, NEVER_FAIL);
  ng_allocator allocator = {failing_resize, &memory};
  ng_context *ctx = ng_context_new(&allocator);
  ng_graph *g = read_graph(ctx, text), *gradient = NULL;
  for (size_t failing = 0; !gradient; failing++) {
    memory.ncalls = 0;
    memory.failing = failing;
    gradient = ng_graph_gradient(g, NULL);
    if (!gradient) assert_int_equal(ng_last_status(ctx), NG_OUT_OF_MEMORY);
  }
  ng_gradcheck_result results[2];
  ng_status status = NG_OUT_OF_MEMORY;
  for (size_t failing = 0; status != NG_OK; failing++) {
    memory.ncalls = 0;
    memory.failing = failing;
    status = ng_gradcheck(g, NULL, results);
    assert_true(status == NG_OK || status == NG_OUT_OF_MEMORY);
  }
  memory.failing = NEVER_FAIL;
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
  assert_int_equal(memory.nlive, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_operator_has_a_gradient_with_a_case_or_a_reason),
      cmocka_unit_test(gradients_of_operators_are_those_of_differences),
      cmocka_unit_test(gradients_of_any_type_are_graphs),
      cmocka_unit_test(gradients_hold_nothing_dead),
      cmocka_unit_test(gradients_of_models_are_those_of_differences),
      cmocka_unit_test(both_backends_run_the_gradients_of_models),
      cmocka_unit_test(compiled_gradients_of_f64_are_precise),
      cmocka_unit_test(gradients_read_statistics_in_f64),
      cmocka_unit_test(gradients_have_as_many_kernels_as_those_written_by_hand),
      cmocka_unit_test(gradcheck_names_the_worst_element),
      cmocka_unit_test(gradcheck_skips_kinks_and_says_so),
      cmocka_unit_test(elements_that_are_alike_share_a_gradient),
      cmocka_unit_test(products_with_zeros_have_gradients),
      cmocka_unit_test(what_cannot_be_differentiated_is_told_once),
      cmocka_unit_test(random_labels_count),
      cmocka_unit_test(labels_without_class_have_no_gradient),
      cmocka_unit_test(quotients_by_a_norm_of_zero_have_the_gradient_0),
      cmocka_unit_test(the_identity_is_told_once),
      cmocka_unit_test(steps_are_told_once),
      random_unit_test(random_graphs_have_gradients_or_reasons),
      cmocka_unit_test(without_memory_there_is_no_gradient),
  };
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
