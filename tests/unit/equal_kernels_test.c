// Kernels that differ only in their operands share functions: a network of more equal layers has no more functions, and
// the interpreter's results.
#include "tests/unit/api_case.h"
#include "tests/unit/quick_compiler.h"

#include "ir/support/text.h"

#include <stdlib.h>

enum { MOST_LAYERS = 40 };

// Layers x <- softmax(x w + b), each with weights of its own. Extents of the rows are open, for `layout` to compute.
static ng_graph *layers(ng_context *ctx, int nlayers, const char *rows) {
  Text text;
  text_init(&text, &system_allocator);
  text_format(&text,
              "format: ngrad/1\nname: layers\ndims: {N: 7}\ninputs:\n  - {name: x0, type: f32, shape: [%s, 20]}\n",
              rows);
  for (int i = 0; i < nlayers; i++)
    text_format(&text, "  - {name: w%d, type: f32, shape: [20, 20]}\n  - {name: b%d, type: f32, shape: [20]}\n", i, i);
  text_add_string(&text, "nodes:\n");
  for (int i = 0; i < nlayers; i++)
    text_format(&text,
                "  - {op: MatMul, inputs: [x%d, w%d, b%d], outputs: [y%d]}\n"
                "  - {op: SoftMax, inputs: [y%d], outputs: [x%d], attributes: {axis: -1}}\n",
                i, i, i, i, i, i + 1);
  text_format(&text, "outputs: [x%d]\n", nlayers);
  ng_graph *g = must_read(ctx, text_string(&text));
  text_deinit(&text);
  return g;
}

static size_t count_functions(const char *source) {
  size_t count = 0;
  for (const char *at = source; (at = strstr(at, "(const void *args, size_t block) {")); at++) count++;
  return count;
}

static size_t count_emitted(int nlayers, const char *rows) {
  ng_context *ctx = new_context();
  ng_graph *g = layers(ctx, nlayers, rows);
  char *source, *header;
  assert_int_equal(ng_emit(g, &(ng_options){.isa = "scalar"}, &source, &header), NG_OK);
  const size_t count = count_functions(source);
  ng_text_free(ctx, source);
  ng_text_free(ctx, header);
  ng_graph_free(g);
  ng_context_free(ctx);
  return count;
}

static void more_layers_have_no_more_functions(void **state) {
  (void)state;
  static const char *const rows[] = {"7", "N"};
  for (int i = 0; i < 2; i++) {
    const size_t few = count_emitted(4, rows[i]);
    assert_true(few > 0);
    assert_int_equal(count_emitted(5, rows[i]), few);
    assert_int_equal(count_emitted(MOST_LAYERS, rows[i]), few);
  }
}

static void layers_that_share_functions_compute_the_same(void **state) {
  (void)state;
  enum { MOST_INPUTS = 1 + 2 * MOST_LAYERS };
  static const int counts[] = {1, 2, 5, MOST_LAYERS};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    ng_context *ctx = new_context();
    ng_graph *g = layers(ctx, counts[c], "7");
    const ng_tensor_info info = {.type = NG_F32, .rank = 2, .extent = {7, 20}};
    ng_tensor inputs[MOST_INPUTS], actual, expected;
    ng_difference difference;
    ng_kernel *k = must_compile(ctx, g);
    const size_t ninputs = 1 + 2 * (size_t)counts[c];
    for (size_t i = 0; i < ninputs; i++) assert_int_equal(ng_tensor_random(g, i, 1, &inputs[i]), NG_OK);
    assert_int_equal(ng_tensor_new(ctx, &info, &actual), NG_OK);
    assert_int_equal(ng_tensor_new(ctx, &info, &expected), NG_OK);
    assert_int_equal(ng_kernel_run(k, inputs, &actual, 2), NG_OK);
    assert_int_equal(ng_interpret(g, inputs, &expected, 0), NG_OK);
    assert_int_equal(ng_tensor_compare(ctx, &actual, &expected, -1, &difference), NG_OK);
    for (size_t i = 0; i < ninputs; i++) ng_tensor_free(ctx, &inputs[i]);
    ng_tensor_free(ctx, &actual);
    ng_tensor_free(ctx, &expected);
    ng_kernel_free(k);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(more_layers_have_no_more_functions),
      cmocka_unit_test(layers_that_share_functions_compute_the_same),
  };
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
