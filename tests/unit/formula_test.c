// Formulas of extents: their arithmetic, their normal form, and their bounds.
#include "ir/graph/extents.h"
#include "tests/unit/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct Fixture {
  Graph *g;
  Extent n, t;
} Fixture;

static int setup(void **state) {
  static Fixture f;
  f.g = graph_new(&system_allocator, "test");
  f.n = (Extent){graph_add_dim(f.g, "N", 3), -1};
  f.t = (Extent){graph_add_dim(f.g, "T", 5), -1};
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  graph_free(((Fixture *)*state)->g);
  return 0;
}

static Extent sum(Fixture *f, Extent a, int64_t times, Extent b) {
  Extent e;
  assert_true(extent_add(f->g, a, times, b, &e));
  return e;
}

static Extent product(Fixture *f, Extent a, Extent b) {
  Extent e;
  assert_true(extent_multiply(f->g, a, b, &e));
  return e;
}

static Extent quotient(Fixture *f, Extent a, Extent b) {
  Extent e;
  assert_true(extent_divide(f->g, a, b, &e));
  return e;
}

static void equal_sums_have_one_form(void **state) {
  Fixture *f = *state;
  const Extent a = sum(f, sum(f, f->t, 1, EXTENT(1)), 1, f->t), b = sum(f, EXTENT(1), 2, f->t);
  assert_string_equal(a.dim->name, "2 * T + 1");
  assert_true(extent_equals(a, b));
  assert_int_equal(extent_value(a), 11);
  assert_true(extents_are_apart(a, sum(f, a, 1, EXTENT(4))));
  assert_false(extents_are_apart(a, f->n)); // which depends on N and T
  assert_string_equal(product(f, f->t, f->n).dim->name, "N * T");
  assert_string_equal(sum(f, product(f, f->t, f->t), -3, f->n).dim->name, "T * T - 3 * N");
}

static void sums_that_are_simpler_are_simplified(void **state) {
  Fixture *f = *state;
  const Extent more = sum(f, f->t, 1, EXTENT(1));
  assert_ptr_equal(sum(f, more, -1, EXTENT(1)).dim, f->t.dim);
  assert_true(extent_equals(sum(f, more, -1, f->t), EXTENT(1)));
  assert_true(extent_equals(sum(f, f->t, -1, f->t), EXTENT(0)));
  assert_true(extent_equals(product(f, more, EXTENT(0)), EXTENT(0)));
  assert_true(extent_equals(product(f, EXTENT(2), EXTENT(3)), EXTENT(6)));
}

static void quotients_are_exact_or_unknown(void **state) {
  Fixture *f = *state;
  const Extent more = sum(f, f->t, 1, EXTENT(1)), all = product(f, product(f, more, f->n), EXTENT(6));
  assert_string_equal(all.dim->name, "6 * N * T + 6 * N");
  assert_true(extent_equals(quotient(f, all, more), product(f, f->n, EXTENT(6))));
  assert_true(extent_equals(quotient(f, all, product(f, f->n, EXTENT(3))), product(f, more, EXTENT(2))));
  assert_true(extent_is_unknown(quotient(f, all, EXTENT(4))));
  assert_true(extent_is_unknown(quotient(f, all, f->t)));
  assert_true(extent_is_unknown(quotient(f, all, EXTENT(0))));
  assert_true(extent_is_unknown(quotient(f, f->n, more)));
}

static void only_numbers_are_rounded_down(void **state) {
  Fixture *f = *state;
  Formula a;
  Extent e = EXTENT_UNKNOWN;
  assert_true(formula_of(product(f, f->t, EXTENT(4)), &a));
  assert_true(formula_add(&a, &(Formula){.nterms = 1, .terms = {{.factor = 1}}}, -3));
  assert_true(formula_floor(&a, 2) && graph_extent(f->g, &a, &e));
  assert_non_null(e.dim);
  if (!e.dim) return;                            // for the analyzer
  assert_string_equal(e.dim->name, "2 * T - 2"); // -3 / 2 is -1.5
  assert_false(formula_floor(&a, 4));
}

static void what_is_out_of_bounds_is_unknown(void **state) {
  Fixture *f = *state;
  Extent e = f->t;
  for (int i = 1; i < MAX_DEGREE; i++) e = product(f, e, f->t);
  assert_false(extent_is_unknown(e));
  assert_true(extent_is_unknown(product(f, e, f->t)));
  assert_true(extent_is_unknown(sum(f, EXTENT(0), -1, f->t)));
  assert_true(extent_is_unknown(sum(f, EXTENT(2), -1, EXTENT(3))));
  assert_true(extent_is_unknown(product(f, product(f, f->t, EXTENT(MAX_ELEMENTS - 1)), EXTENT(2))));
  assert_true(extent_is_unknown(sum(f, f->t, INT64_MAX, f->t)));
  assert_true(extent_is_unknown(sum(f, f->t, 1, EXTENT_UNKNOWN)));
  e = EXTENT(1);
  Extent power = f->t;
  for (int i = 1; i < MAX_TERMS; i++, power = product(f, power, f->t)) e = sum(f, e, 1, power);
  assert_false(extent_is_unknown(e));
  assert_true(extent_is_unknown(sum(f, e, 1, f->n)));
}

static void values_that_are_negative_or_too_large_are_none(void **state) {
  Fixture *f = *state;
  const Extent less = sum(f, f->t, -6, EXTENT(1)), large = product(f, f->t, f->n);
  assert_int_equal(extent_value(less), -1);
  graph_find_dim(f->g, "T")->value = 6;
  assert_int_equal(extent_value(less), 0);
  graph_find_dim(f->g, "T")->value = MAX_ELEMENTS - 1;
  assert_int_equal(extent_value(less), MAX_ELEMENTS - 7);
  assert_int_equal(extent_value(large), -1);
  graph_find_dim(f->g, "N")->value = MAX_ELEMENTS - 1;
  assert_int_equal(extent_value(large), -1);
  graph_find_dim(f->g, "N")->value = -1;
  assert_int_equal(extent_value(large), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(equal_sums_have_one_form, setup, teardown),
      cmocka_unit_test_setup_teardown(sums_that_are_simpler_are_simplified, setup, teardown),
      cmocka_unit_test_setup_teardown(quotients_are_exact_or_unknown, setup, teardown),
      cmocka_unit_test_setup_teardown(only_numbers_are_rounded_down, setup, teardown),
      cmocka_unit_test_setup_teardown(what_is_out_of_bounds_is_unknown, setup, teardown),
      cmocka_unit_test_setup_teardown(values_that_are_negative_or_too_large_are_none, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
