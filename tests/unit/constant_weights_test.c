// Constant weights are moved and transposed when a graph is compiled, not at each call, and results keep their bits.
#include "tests/unit/api_case.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const passes[] = {"fold-constants", "transpose-weights"};

// The nodes of a graph with weights `w`, [n, k], which are different numbers.
static char *make_text(const char *x, int n, int k, const char *nodes) {
  char *text = malloc((size_t)n * (size_t)k * 16 + 2048);
  assert_non_null(text);
  int at =
      sprintf(text,
              "format: ngrad/1\ninputs:\n- {name: x, type: f32, shape: [%s, %d]}\n"
              "- {name: bias, type: f32, shape: [%d]}\nconstants:\n- {name: w, type: f32, shape: [%d, %d], values: [",
              x, k, n, n, k);
  for (int i = 0; i < n * k; i++) at += sprintf(text + at, "%s%d", i ? ", " : "", i * 7919 % 10007 - 5000);
  sprintf(text + at, "]}\nnodes:\n%soutputs: [y]\n", nodes);
  return text;
}

// Compares results with and without the two passes; with them, compiled code has the nodes `left` alone.
static void must_keep_bits(const char *text, size_t nleft) {
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text), *rewritten = ng_graph_run_passes(g, NULL);
  Data with, without;
  assert_non_null(rewritten);
  assert_int_equal(ng_graph_node_count(rewritten), nleft);
  for (size_t i = 0; i < ng_graph_node_count(rewritten); i++) {
    if (strcmp(ng_graph_node(rewritten, i).canonical, "MatMul") != 0) continue;
    for (size_t a = 0; a < ng_graph_node(rewritten, i).nattributes; a++) {
      const ng_attribute attribute = ng_graph_node_attribute(rewritten, i, a);
      if (strcmp(attribute.name, "transpose_b") == 0) assert_int_equal(attribute.integer, 0);
    }
  }
  assert_int_equal(data_make(&with, ctx, g), NG_OK);
  assert_int_equal(data_make(&without, ctx, g), NG_OK);
  for (int is_plain = 0; is_plain < 2; is_plain++) {
    ng_kernel *k = ng_compile(g, &(ng_options){.disable = passes, .ndisable = is_plain ? 2 : 0});
    Data *data = is_plain ? &without : &with;
    if (!k) fail_msg("%s", ng_messages_text(ctx, 0));
    assert_int_equal(ng_kernel_run(k, data->in, data->out, 2), NG_OK);
    ng_kernel_free(k);
  }
  assert_memory_equal(with.out[0].data, without.out[0].data, ng_tensor_nbytes(&with.out[0]));
  data_free(&with, ctx);
  data_free(&without, ctx);
  ng_graph_free(rewritten);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void weights_of_few_rows_are_transposed(void **state) {
  (void)state;
  static const struct {
    const char *x; // extents in front of the sum's
    int n, k;
  } rows[] = {{"1", 128, 816}, {"1", 128, 100}, {"3", 33, 300}, {"2, 7", 16, 31}, {"15", 70, 513}, {"1", 17, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char *text = make_text(rows[i].x, rows[i].n, rows[i].k,
                           "- {op: MatMul, inputs: [x, w], outputs: [p], attributes: {transpose_b: true}}\n"
                           "- {op: Add, inputs: [p, bias], outputs: [s]}\n"
                           "- {op: SoftMax, inputs: [s], outputs: [y], attributes: {axis: -1}}\n");
    must_keep_bits(text, 3);
    free(text);
  }
}

// 2^15 elements: fewer are folded whatever computes them.
static void weights_are_moved_once(void **state) {
  (void)state;
  char *text =
      make_text("2", 256, 128,
                "- {op: Slice, inputs: [w], outputs: [a], attributes: {axes: [0], starts: [0], ends: [64]}}\n"
                "- {op: Slice, inputs: [w], outputs: [b], attributes: {axes: [0], starts: [64], ends: [256]}}\n"
                "- {op: Concat, inputs: [b, a], outputs: [c], attributes: {axis: 0}}\n"
                "- {op: StaticTranspose, inputs: [c], outputs: [t], attributes: {order: [1, 0]}}\n"
                "- {op: MatMul, inputs: [x, t], outputs: [p]}\n"
                "- {op: Add, inputs: [p, bias], outputs: [y]}\n");
  must_keep_bits(text, 2);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_of_few_rows_are_transposed),
      cmocka_unit_test(weights_are_moved_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
