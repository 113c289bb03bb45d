// Emitted files have a bounded number of bytes, for all windows, so that compilers take bounded time.
#include "tests/unit/api_case.h"

#include <stdio.h>

#define POOL_AS(format, extents, kernel, pads, ones)                                                                   \
  "format: ngrad/1\nname: pool\ninputs:\n"                                                                             \
  "  - {name: src, type: f32, shape: " extents "}\n  - {name: diff_dst, type: f32, shape: " extents "}\n"              \
  "nodes:\n  - op: MaxPoolBackward\n    inputs: [src, diff_dst]\n    outputs: [diff_src]\n"                            \
  "    attributes: {strides: " ones ", kernel: " kernel ", pads_begin: " pads ", pads_end: " pads                      \
  ", data_format: " format "}\n"                                                                                       \
  "outputs: [diff_src]\n"

#define AVERAGE_GRADIENT(extents, of, kernel, pads, strides)                                                           \
  "format: ngrad/1\nname: pool\ninputs: [{name: diff_dst, type: f32, shape: " extents "}]\n"                           \
  "nodes:\n  - op: AvgPoolBackward\n    inputs: [diff_dst]\n    outputs: [diff_src]\n"                                 \
  "    attributes: {strides: " strides ", kernel: " kernel ", pads_begin: " pads ", pads_end: " pads                   \
  ", data_format: NCX, exclude_pad: true, src_shape: " of "}\noutputs: [diff_src]\n"

#define POOL(extents, kernel, pads, ones) POOL_AS("NXC", extents, kernel, pads, ones)

static const char perceptron[] = "format: ngrad/1\nname: perceptron\ninputs:\n"
                                 "  - {name: x, type: f32, shape: [32, 64]}\n"
                                 "  - {name: labels, type: s32, shape: [32]}\n"
                                 "state:\n"
                                 "  - {name: w1, type: f32, shape: [64, 32], init: {fan_in: 64}}\n"
                                 "  - {name: b1, type: f32, shape: [32], init: {fan_in: 64}}\n"
                                 "  - {name: w2, type: f32, shape: [32, 10], init: {fan_in: 32}}\n"
                                 "  - {name: b2, type: f32, shape: [10], init: {fan_in: 32}}\n"
                                 "nodes:\n"
                                 "  - {op: MatMul, inputs: [x, w1, b1], outputs: [hidden]}\n"
                                 "  - {op: ReLU, inputs: [hidden], outputs: [active]}\n"
                                 "  - {op: MatMul, inputs: [active, w2, b2], outputs: [logits]}\n"
                                 "  - {op: SoftmaxCrossEntropy, inputs: [logits, labels], outputs: [loss]}\n"
                                 "outputs: [loss]\n";

// The bytes of the source for these instruction sets; NULL: all.
static size_t count_bytes(ng_context *ctx, ng_graph *g, const char *isas) {
  char *source, *header;
  assert_int_equal(ng_emit(g, &(ng_options){.isa = isas}, &source, &header), NG_OK);
  const size_t nbytes = strlen(source);
  ng_text_free(ctx, source);
  ng_text_free(ctx, header);
  return nbytes;
}

#define KB (size_t)1000

static void pools_of_any_window_have_few_bytes(void **state) {
  (void)state;
  static const struct {
    const char *graph;
    size_t one, all; // most bytes: for scalar C, for all instruction sets
  } rows[] = {
      {POOL("[1, 32, 32, 64]", "[5, 5]", "[2, 2]", "[1, 1]"), 31 * KB, 41 * KB},
      {POOL("[1, 32, 32, 64]", "[7, 7]", "[3, 3]", "[1, 1]"), 22 * KB, 41 * KB},
      {POOL_AS("NCX", "[1, 64, 32, 32]", "[7, 7]", "[3, 3]", "[1, 1]"), 28 * KB, 44 * KB},
      {POOL("[1, 32, 32, 64]", "[13, 13]", "[6, 6]", "[1, 1]"), 24 * KB, 41 * KB},
      {POOL("[1, 16, 16, 16, 16]", "[5, 5, 5]", "[2, 2, 2]", "[1, 1, 1]"), 22 * KB, 41 * KB},
      {POOL("[1, 16, 16, 16, 16]", "[3, 3, 3]", "[1, 1, 1]", "[1, 1, 1]"), 33 * KB, 43 * KB},
      // Many taps in each of 27 pieces, which share the budget of 64 pieces without written taps.
      {AVERAGE_GRADIENT("[2, 32, 22, 22]", "[2, 32, 64, 64]", "[13, 13]", "[6, 6]", "[3, 3]"), 310 * KB, 320 * KB},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, rows[i].graph);
    assert_in_range(count_bytes(ctx, g, "scalar"), 1, rows[i].one);
    assert_in_range(count_bytes(ctx, g, NULL), 1, rows[i].all);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

static void a_perceptrons_step_has_few_bytes(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, perceptron), *step = ng_graph_train(g, NULL);
  assert_non_null(step);
  assert_in_range(count_bytes(ctx, step, NULL), 1, 108 * KB);
  ng_graph_free(step);
  ng_graph_free(g);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pools_of_any_window_have_few_bytes),
      cmocka_unit_test(a_perceptrons_step_has_few_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
