// First values of states. The literal numbers were computed by another implementation of Philox, which gives the known
// answer of its authors: 0x6627e8d5, ... for a counter and key of zeros.
#include "ir/graph/init.h"
#include "ir/support/philox.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void philox_gives_the_known_answer(void **state) {
  (void)state;
  uint32_t counter[4] = {0};
  const uint32_t expected[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  philox(counter, 0);
  assert_memory_equal(counter, expected, sizeof expected);
}

// The first value of the last of three states of one kind, so that its index is 2.
static void fill(Init init, uint64_t seed, Type type, int64_t nelems, void *data) {
  Graph *g = graph_new(&system_allocator, "test");
  const Shape shape = {1, {EXTENT(nelems)}};
  assert_non_null(g);
  assert_non_null(graph_add_state(g, "a", type, &shape, &init));
  assert_non_null(graph_add_state(g, "b", type, &shape, &init));
  assert_non_null(graph_add_state(g, "c", type, &shape, &init));
  Tensor t = tensor_like(g->inputs[2]);
  t.data = data;
  init_fill(g, 2, seed, &t);
  graph_free(g);
}

static void numbers_are_those_of_another_implementation(void **state) {
  (void)state;
  const double normal[] = {-1.8357156980274933, -1.2003568701707636, 0.5296588004916595};
  double x[3];
  fill((Init){.kind = INIT_NORMAL, .deviation = 1}, 7, TYPE_F64, 3, x);
  assert_memory_equal(x, normal, sizeof x);
  fill((Init){.kind = INIT_NORMAL, .deviation = 0.5}, 7, TYPE_F64, 3, x);
  for (int i = 0; i < 3; i++) assert_true(x[i] == normal[i] / 2);
  fill((Init){.kind = INIT_ONES}, 7, TYPE_F64, 3, x);
  assert_true(x[0] == 1 && x[1] == 1 && x[2] == 1);
  fill((Init){.kind = INIT_ZEROS}, 7, TYPE_F64, 3, x);
  assert_true(x[0] == 0 && x[1] == 0 && x[2] == 0);
}

static void uniform_numbers_lie_in_their_interval(void **state) {
  enum { COUNT = 4096 };
  (void)state;
  static float x[COUNT], y[COUNT];
  fill((Init){.kind = INIT_UNIFORM, .low = -0.25, .high = 0.25}, 3, TYPE_F32, COUNT, x);
  fill((Init){.kind = INIT_FAN_IN, .fan_in = 16}, 3, TYPE_F32, COUNT, y);
  assert_memory_equal(x, y, sizeof x);
  double sum = 0, squares = 0;
  for (int i = 0; i < COUNT; i++) {
    assert_true(x[i] >= -0.25F && x[i] <= 0.25F);
    sum += (double)x[i];
    squares += (double)x[i] * (double)x[i];
  }
  assert_true(fabs(sum / COUNT) < 0.01);
  assert_true(fabs(squares / COUNT - 0.25 / 12) < 0.001);
}

static void an_interval_may_be_longer_than_the_greatest_number(void **state) {
  enum { COUNT = 64 };
  (void)state;
  double x[COUNT], y[COUNT];
  fill((Init){.kind = INIT_UNIFORM, .low = -1e308, .high = 1e308}, 3, TYPE_F64, COUNT, x);
  fill((Init){.kind = INIT_UNIFORM, .low = -1, .high = 1}, 3, TYPE_F64, COUNT, y);
  for (int i = 0; i < COUNT; i++) assert_true(fabs(x[i] / 1e308 - y[i]) < 1e-12);
}

static void an_element_depends_on_its_row_major_index_only(void **state) {
  (void)state;
  Graph *g = graph_new(&system_allocator, "test");
  const Shape shape = {2, {EXTENT(2), EXTENT(3)}};
  const Init init = {.kind = INIT_UNIFORM, .low = 0, .high = 1};
  float rows[6], columns[6];
  assert_non_null(graph_add_state(g, "a", TYPE_F32, &shape, &init));
  Tensor t = tensor_like(g->inputs[0]);
  t.data = rows;
  init_fill(g, 0, 1, &t);
  t.data = columns;
  t.layout = layout_of_axes((int[]){1, 0}, 2);
  init_fill(g, 0, 1, &t);
  for (int i = 0; i < 6; i++) assert_true(rows[i] == columns[i % 3 * 2 + i / 3]);
  graph_free(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(philox_gives_the_known_answer),
      cmocka_unit_test(numbers_are_those_of_another_implementation),
      cmocka_unit_test(uniform_numbers_lie_in_their_interval),
      cmocka_unit_test(an_interval_may_be_longer_than_the_greatest_number),
      cmocka_unit_test(an_element_depends_on_its_row_major_index_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
