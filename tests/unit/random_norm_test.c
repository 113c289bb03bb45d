// The shapes of ./dev bench --random.
#include "tests/bench/random_norm.h"
#include "tests/unit/api_case.h"

#include <stdlib.h>
#include <string.h>

// Written down where they were first drawn: results of different machines are compared by these.
static void random_norm_draws_the_same_everywhere(void **state) {
  (void)state;
  static const char *const names[] = {"ln_backward_f32_55904x3939", "bn_backward_ncx_f32_20677x7x4x4",
                                      "bn_backward_nxc_f32_5x19x18x23"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_string_equal(random_norm_draw(1, i).name, names[i]);
  assert_string_equal(random_norm_draw(1, 31).name, "relu_bn_add_backward_nxc_bf16_1x9x8x1094");
  assert_string_not_equal(random_norm_draw(2, 0).name, names[0]);
}

// Extents are rounded down, so the smallest tensors may be smaller than the drawn size.
static void random_norm_stays_in_its_ranges(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 10000; i++) {
    const RandomNorm n = random_norm_draw(3, i);
    const uint64_t nbytes = random_norm_nbytes(&n);
    assert_in_range(nbytes, 3300, 1000000000);
    for (int axis = 0; axis < n.rank; axis++) assert_in_range(n.extent[axis], 1, 1000000000);
    const int64_t *e = n.extent;
    const int64_t row = n.form->layout == LAYOUT_NCX ? e[2] * e[3] : e[n.rank - 1];
    assert_in_range(row, 1, 20000);
  }
}

static void random_norm_writes_graphs(void **state) {
  (void)state;
  ng_context *ctx = ng_context_new(NULL);
  for (uint64_t i = 0; i < 32; i++) {
    const RandomNorm n = random_norm_draw(4, i);
    char *text = random_norm_graph(&n);
    assert_non_null(text);
    ng_graph *g = ng_graph_read(ctx, n.name, text, strlen(text), NULL);
    if (!g) print_message("%s", ng_messages_text(ctx, 0));
    assert_non_null(g);
    assert_string_equal(ng_graph_name(g), n.name);
    ng_graph_free(g);
    free(text);
  }
  ng_context_free(ctx);
}

static void random_norm_reads_twice_what_no_cache_holds(void **state) {
  (void)state;
  static const NormForm rows = {"ln", LAYOUT_ROWS, false, false}, first = {"ncx", LAYOUT_NCX, false, false},
                        last = {"nxc", LAYOUT_NXC, true, true};
  RandomNorm n = {.rank = 4, .extent = {10, 10, 10, 10}}; // 40,000 bytes in f32
  n.form = &rows;
  assert_int_equal(random_norm_nread_twice(&n, 1000), 0);
  n.form = &first; // 8,000 bytes a channel
  assert_int_equal(random_norm_nread_twice(&n, 8000), 0);
  assert_int_equal(random_norm_nread_twice(&n, 7999), 80000);
  n.form = &last;
  assert_int_equal(random_norm_nread_twice(&n, 80000), 0);
  assert_int_equal(random_norm_nread_twice(&n, 79999), 80000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_norm_draws_the_same_everywhere),
      cmocka_unit_test(random_norm_stays_in_its_ranges),
      cmocka_unit_test(random_norm_writes_graphs),
      cmocka_unit_test(random_norm_reads_twice_what_no_cache_holds),
  };
  return cmocka_run_group_tests_name("random_norm", tests, NULL, NULL);
}
