// The walk over a shape with arrays that lack some of its axes, and the compensated sum.
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"
#include "tests/unit/interpreter_case.h"

// The track's places along a walk of `count` steps.
static void walk_is_at(Walk w, int track, const int64_t *places, int64_t count) {
  assert_int_equal(w.nelems, count);
  for (; w.i < w.nelems; walk_step(&w)) assert_int_equal(w.at[track], places[w.i]);
}
#define PLACES(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static void tracks_follow_broadcast_operands(void **state) {
  (void)state;
  const Shape shape = SHAPE(2, 1, 3), same = shape, row = SHAPE(3), column = SHAPE(2, 1, 1);
  Walk w = walk_over(&shape);
  walk_broadcast(&w, 0, &same);
  walk_broadcast(&w, 1, &row);
  walk_broadcast(&w, 2, &column);
  walk_is_at(w, 0, PLACES(0, 1, 2, 3, 4, 5));
  walk_is_at(w, 1, PLACES(0, 1, 2, 0, 1, 2));
  walk_is_at(w, 2, PLACES(0, 0, 0, 1, 1, 1));
}

static void tracks_follow_arrays_of_some_axes(void **state) {
  (void)state;
  const Shape shape = SHAPE(2, 2, 2);
  Walk w = walk_over(&shape);
  assert_int_equal(walk_axes(&w, 0, 1U << 1), 2);
  assert_int_equal(walk_axes(&w, 1, 1U << 0 | 1U << 2), 4);
  assert_int_equal(walk_axes(&w, 2, 0), 1);
  walk_is_at(w, 0, PLACES(0, 0, 1, 1, 0, 0, 1, 1));
  walk_is_at(w, 1, PLACES(0, 1, 0, 1, 2, 3, 2, 3));
  walk_is_at(w, 2, PLACES(0, 0, 0, 0, 0, 0, 0, 0));
}

static void scalars_have_one_element_and_empty_shapes_none(void **state) {
  (void)state;
  const Shape scalar = SCALAR, empty = SHAPE(2, 0, 3);
  Walk w = walk_over(&scalar);
  walk_broadcast(&w, 0, &scalar);
  walk_is_at(w, 0, PLACES(0));
  w = walk_over(&empty);
  walk_broadcast(&w, 0, &empty);
  assert_int_equal(w.nelems, 0);
  assert_int_equal(walk_axes(&w, 1, 1U << 0 | 1U << 2), 6);
}

static double sum_of(const double *terms, size_t count) {
  Sum s = {0};
  for (size_t i = 0; i < count; i++) sum_add(&s, terms[i]);
  return sum_value(&s, NULL);
}

static void sums_keep_what_rounding_drops(void **state) {
  (void)state;
  assert_true(sum_of(NO_VALUES) == 0);
  assert_true(sum_of(VALUES(1, 1e100, 1, -1e100)) == 2);
  assert_true(sum_of(VALUES(1e100, 1, -1e100, 1)) == 2);
  Sum tenths = {0};
  for (int i = 0; i < 1000000; i++) sum_add(&tenths, 0.1);
  assert_true(sum_value(&tenths, NULL) == 100000.0);
}

static void sums_follow_ieee(void **state) {
  (void)state;
  assert_true(sum_of(VALUES(1, INFINITY, 2)) == (double)INFINITY);
  assert_true(sum_of(VALUES(1, -INFINITY, 2)) == -(double)INFINITY);
  assert_true(isnan(sum_of(VALUES(INFINITY, 1, -INFINITY))));
  assert_true(isnan(sum_of(VALUES(1, NAN, 2))));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tracks_follow_broadcast_operands),
      cmocka_unit_test(tracks_follow_arrays_of_some_axes),
      cmocka_unit_test(scalars_have_one_element_and_empty_shapes_none),
      cmocka_unit_test(sums_keep_what_rounding_drops),
      cmocka_unit_test(sums_follow_ieee),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
