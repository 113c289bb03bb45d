// Gradients as graphs of their own: the names of their values, and their extents.
#include "tests/unit/api_case.h"

#include <stdio.h>

// Only the gradients of inputs and outputs have names that callers know.
static void values_may_have_names_of_gradients(void **state) {
  (void)state;
  static const struct {
    const char *middle, *gradient; // the names of a value between x and y, and of the gradient by x
  } rows[] = {{"diff_a", "diff_x"},
              {"diff_x", "diff2_x"},
              {"diff_y", "diff2_x"},
              {"diff7_y", "diff8_x"},
              {"diff1_x", "diff_x"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [8]}]\nnodes:\n"
             "  - {op: Tanh, inputs: [x], outputs: [a]}\n  - {op: Exp, inputs: [a], outputs: [%s]}\n"
             "  - {op: Square, inputs: [%s], outputs: [y]}\noutputs: [y]\n",
             rows[i].middle, rows[i].middle);
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, text), *gradient = ng_graph_gradient(g, NULL);
    if (!gradient) fail_msg("%s: %s", rows[i].middle, ng_messages_text(ctx, 0));
    assert_string_equal(ng_graph_output(gradient, 0).name, rows[i].gradient);
    ng_graph_free(gradient);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// An extent that the caller has fixed is a hint of the gradient, which may have another.
static void a_gradient_has_extents_of_its_own(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\ndims: {N: 8}\ninputs: [{name: x, type: f32, shape: [N, 4]}]\nnodes:\n"
                               "  - {op: Tanh, inputs: [x], outputs: [y]}\noutputs: [y]\n");
  assert_int_equal(ng_graph_set_dim(g, "N", 5), NG_OK);
  ng_graph *gradient = ng_graph_gradient(g, NULL);
  assert_non_null(gradient);
  ng_graph_free(g); // the gradient does not need it
  assert_int_equal(ng_graph_set_dim(gradient, "N", 7), NG_OK);
  assert_int_equal(ng_graph_bind(gradient), NG_OK);
  assert_int_equal(ng_graph_output(gradient, 0).extent[0], 7);
  ng_graph_free(gradient);
  ng_context_free(ctx);
}

static size_t count_in(ng_context *ctx, ng_graph *g, const char *format, const char *word) {
  char *text = ng_graph_show(g, format, NULL);
  size_t count = 0;
  assert_non_null(text);
  for (const char *at = text; (at = strstr(at, word)); at++) count++;
  ng_text_free(ctx, text);
  return count;
}

static size_t count_nodes(ng_context *ctx, ng_graph *g, ng_derivative form, const char *of) {
  const ng_gradient_options options = {.of = of ? &of : NULL, .nof = of != NULL, .derivative = form};
  ng_graph *made = ng_graph_gradient(g, &options);
  if (!made) fail_msg("%s", ng_messages_text(ctx, 0));
  const size_t count = count_in(ctx, made, "yaml", "  - op: ");
  ng_graph_free(made);
  return count;
}

// A gradient of a gradient has at most six times the nodes; so has the product with a Hessian, which computes the
// forward graph's values itself, beside a gradient that does, and without batch norms beside any gradient.
static void second_gradients_are_small(void **state) {
  static const struct {
    const char *path;
    int has_batch_norms;
  } models[] = {{"models/train/cnn.yaml", 0},
                {"models/train/resnet8.yaml", 1},
                {"models/train/resnet50.yaml", 1},
                {"models/train/gpt_bytes.yaml", 0}};
  (void)state;
  for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
    ng_context *ctx = new_context();
    ng_graph *g = ng_graph_read_file(ctx, models[i].path), *first = ng_graph_gradient(g, NULL);
    assert_non_null(first);
    const size_t one = count_in(ctx, first, "yaml", "  - op: "), two = count_nodes(ctx, first, NG_GRADIENT, NULL);
    const size_t whole = models[i].has_batch_norms ? count_nodes(ctx, g, NG_VJP, "loss") : one;
    const size_t hvp = count_nodes(ctx, g, NG_HVP, "loss");
    assert_true(one > 10);
    if (two > 6 * one) fail_msg("%s: %zu nodes, then %zu", models[i].path, one, two);
    if (hvp > 6 * whole) fail_msg("%s: %zu nodes, then %zu with the Hessian", models[i].path, whole, hvp);
    ng_graph_free(first);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Kernels of the derivative of a graph of three lines: inputs, nodes and outputs.
static void assert_kernels(const char *text, const ng_gradient_options *options, size_t nkernels) {
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text), *second = ng_graph_gradient(g, options);
  if (!second) fail_msg("%s", ng_messages_text(ctx, 0));
  assert_int_equal(count_in(ctx, second, "kernels", "\nkernel ") + 1, nkernels);
  ng_graph_free(second);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Second derivatives of a norm are one kernel: each tensor is read or written once.
static void second_gradients_of_norms_have_few_kernels(void **state) {
  static const struct {
    const char *shape, *statistic, *parameter, *node;
  } rows[] = {{"[1024, 768]", "[1024]", "[768]", "LayerNormBackward"},
              {"[64, 256, 56, 56]", "[256]", "[256]",
               "BatchNormTrainingBackward, attributes: {epsilon: 1.0e-5, data_format: NCX}"}};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[1024];
    snprintf(
        text, sizeof text,
        "format: ngrad/1\ninputs: [{name: x, type: f32, shape: %s}, {name: d, type: f32, shape: %s}, {name: m, type: "
        "f32, shape: %s}, {name: v, type: f32, shape: %s}, {name: g, type: f32, shape: %s}]\nnodes:\n"
        "  - {inputs: [x, d, m, v, g], outputs: [a, b, c], op: %s}\noutputs: [a, b, c]\n",
        rows[i].shape, rows[i].shape, rows[i].statistic, rows[i].statistic, rows[i].parameter, rows[i].node);
    assert_kernels(text, NULL, 1);
  }
}

// So is the product of a batch norm's Hessian with a vector, statistics included.
static void the_hessian_of_a_batch_norm_is_one_kernel(void **state) {
  static const char *const wrt[] = {"x"}, *const of[] = {"e"};
  const ng_gradient_options options = {.derivative = NG_HVP, .wrt = wrt, .nwrt = 1, .of = of, .nof = 1};
  (void)state;
  assert_kernels(
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [64, 256, 56, 56]}, {name: c, type: f32, shape: "
      "[256]}]\nnodes:\n"
      "  - {op: BatchNormForwardTraining, inputs: [x, c, c, c, c], outputs: [y, rm, rv, m, v], attributes: "
      "{epsilon: 1.0e-5, data_format: NCX}}\n"
      "  - {op: Square, inputs: [y], outputs: [s]}\n"
      "  - {op: ReduceSum, inputs: [s], outputs: [e], attributes: {axes: [0, 1, 2, 3]}}\noutputs: [e]\n",
      &options, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_may_have_names_of_gradients),
      cmocka_unit_test(a_gradient_has_extents_of_its_own),
      cmocka_unit_test(second_gradients_are_small),
      cmocka_unit_test(second_gradients_of_norms_have_few_kernels),
      cmocka_unit_test(the_hessian_of_a_batch_norm_is_one_kernel),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
