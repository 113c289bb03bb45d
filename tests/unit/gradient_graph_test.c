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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_may_have_names_of_gradients),
      cmocka_unit_test(a_gradient_has_extents_of_its_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
