// The printed memory plan, with numbers worked out by hand.
#include "tests/unit/api_case.h"

#include <stdlib.h>

// A float of 100 elements takes seven cache lines. Kernel 0 makes a, kernel 1 b beside it, kernel 2 c in the place of
// a.
static const char graph[] =
    "format: ngrad/1\nname: a < b\ninputs:\n  - {name: x, type: f32, shape: [100]}\n"
    "state:\n  - {name: w, type: f32, shape: [100], init: zeros}\n"
    "  - {name: v, type: f32, shape: [100], init: zeros}\n"
    "  - {name: q, type: f32, shape: [10, 10], init: zeros}\n"
    "constants: [{name: rate, type: f32, shape: [], value: 0.5}]\nnodes:\n"
    "  - {op: Tanh, inputs: [x], outputs: [a]}\n"
    "  - {op: Exp, inputs: [a], outputs: [b]}\n"
    "  - {op: Multiply, inputs: [a, b], outputs: [c]}\n"
    "  - {op: StaticTranspose, inputs: [q], outputs: [p], attributes: {order: [1, 0]}}\n"
    "  - {op: Momentum, inputs: [w, c, v, rate], outputs: [w1, v1], attributes: {momentum: 0.9}}\n"
    "outputs: []\nupdates: {w: w1, v: v1, q: p}\n";

static char *show(const char *format) {
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, graph);
  char *text = ng_graph_show(g, format, &(ng_options){.isa = "scalar", .no_fuse = 1});
  assert_non_null(text);
  char *copy = strdup(text);
  assert_non_null(copy);
  ng_text_free(ctx, text);
  ng_graph_free(g);
  ng_context_free(ctx);
  return copy;
}

static void a_table_tells_what_lives_where(void **state) {
  (void)state;
  char *text = show("memory");
  assert_string_equal(text, "       bytes  block\n"
                            "         896  parameters\n"
                            "         448  optimizer\n"
                            "         896  workspace, 1792 without reuse\n"
                            "        2240  total, 3136 without reuse\n"
                            "\n"
                            "       bytes       offset  kernels      value\n"
                            "         448            0  0 to 2       a, line 11\n"
                            "         448          448  1 to 2       b, line 12\n"
                            "         448            0  2 to 4       c, line 13\n"
                            "         448          448  3 to 4       p, to be copied, line 14\n"
                            "\n"
                            "peak: 896 bytes at kernel 1, Exp (line 12)\n");
  free(text);
}

static size_t count(const char *text, const char *part) {
  size_t n = 0;
  while ((text = strstr(text, part)) != NULL) {
    n++;
    text++;
  }
  return n;
}

static void a_picture_has_a_rectangle_for_each_value(void **state) {
  (void)state;
  char *text = show("memory-svg");
  assert_int_equal(count(text, "class=\"tenant "), 4);
  assert_int_equal(count(text, "a &#60; b"), 1);
  assert_int_equal(count(text, "<title>b, line 12: 448 bytes at 448, kernels 1 to 2</title>"), 1);
  assert_int_equal(count(text, "<script"), 0);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_table_tells_what_lives_where),
      cmocka_unit_test(a_picture_has_a_rectangle_for_each_value),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
