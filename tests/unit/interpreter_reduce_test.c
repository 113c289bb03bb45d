// Reductions, from their definitions: literal results for each kind of axes, and for no elements, values that are not
// finite, and terms that cancel.
#include "tests/unit/interpreter_case.h"

#define AXES(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define NO_AXES NULL, 0

// One reduction of x, whose result must be as expected.
static void must_reduce(const char *op, Type type, Shape shape, const double *x, size_t nx, const int64_t *axes,
                        size_t naxes, bool keeps, const double *y, size_t ny) {
  Case c;
  case_init(&c);
  case_input(&c, "x", type, shape, x, nx);
  Node *node = case_node(&c, op, "x", "y");
  case_set_list(node, "axes", axes, naxes);
  case_set(node, "keep_dims", keeps);
  case_expect(&c, "y", y, ny);
  case_passes(&c);
}

#define CUBE SHAPE(2, 2, 3), VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)

static void reductions_go_over_any_axes(void **state) {
  (void)state;
  must_reduce("ReduceSum", TYPE_F32, CUBE, AXES(0), false, VALUES(8, 10, 12, 14, 16, 18));
  must_reduce("ReduceSum", TYPE_F32, CUBE, AXES(1), true, VALUES(5, 7, 9, 17, 19, 21));
  must_reduce("ReduceSum", TYPE_F32, CUBE, AXES(-1), false, VALUES(6, 15, 24, 33));
  must_reduce("ReduceSum", TYPE_F32, CUBE, AXES(2, 0), true, VALUES(30, 48)); // no neighbours
  must_reduce("ReduceSum", TYPE_F32, CUBE, AXES(0, 1, 2), false, VALUES(78));
  must_reduce("ReduceMean", TYPE_F64, CUBE, AXES(1, 2), false, VALUES(3.5, 9.5));
  must_reduce("ReduceMean", TYPE_BF16, CUBE, AXES(0), true, VALUES(4, 5, 6, 7, 8, 9));
  must_reduce("ReduceMax", TYPE_F16, CUBE, AXES(0, 2), false, VALUES(9, 12));
  must_reduce("ReduceMin", TYPE_F32, CUBE, AXES(1), false, VALUES(1, 2, 3, 7, 8, 9));
  must_reduce("ReduceProd", TYPE_F32, CUBE, AXES(2), false, VALUES(6, 120, 504, 1320));
  must_reduce("ReduceProd", TYPE_F32, CUBE, AXES(0, 1, 2), true, VALUES(479001600));
  must_reduce("ReduceL1", TYPE_F32, SHAPE(2, 2), VALUES(1, -2, -3, 4), AXES(1), false, VALUES(3, 7));
  must_reduce("ReduceL2", TYPE_F32, SHAPE(2, 2), VALUES(3, -4, -5, 12), AXES(1), false, VALUES(5, 13));
}

static void without_axes_each_element_is_alone(void **state) {
  (void)state;
  static const char *const ops[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    must_reduce(ops[i], TYPE_F32, SHAPE(3), VALUES(-1, 0, 2), NO_AXES, false, VALUES(-1, 0, 2));
    must_reduce(ops[i], TYPE_F32, SHAPE(1, 3), VALUES(-1, 0, 2), AXES(0), false, VALUES(-1, 0, 2));
    must_reduce(ops[i], TYPE_F32, SCALAR, VALUES(-7), NO_AXES, true, VALUES(-7));
  }
}

static void norms_of_one_element_are_its_size(void **state) {
  (void)state;
  static const char *const ops[] = {"ReduceL1", "ReduceL2"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    must_reduce(ops[i], TYPE_F32, SHAPE(4), VALUES(-1, 0, 1e-40, -1e38), NO_AXES, false, VALUES(1, 0, 1e-40, 1e38));
    must_reduce(ops[i], TYPE_F32, SHAPE(2, 1), VALUES(-1, 2), AXES(1), true, VALUES(1, 2));
  }
}

static void of_no_elements_it_is_what_changes_nothing(void **state) {
  (void)state;
  must_reduce("ReduceMax", TYPE_F32, SHAPE(0), NO_VALUES, AXES(0), false, VALUES(-INFINITY));
  must_reduce("ReduceMin", TYPE_F32, SHAPE(0), NO_VALUES, AXES(0), false, VALUES(INFINITY));
  must_reduce("ReduceMax", TYPE_F16, SHAPE(0), NO_VALUES, AXES(0), false, VALUES(-INFINITY));
  must_reduce("ReduceMin", TYPE_BF16, SHAPE(0), NO_VALUES, AXES(0), false, VALUES(INFINITY));
  must_reduce("ReduceMax", TYPE_F64, SHAPE(0), NO_VALUES, AXES(0), false, VALUES(-INFINITY));
  must_reduce("ReduceProd", TYPE_F32, SHAPE(0, 2), NO_VALUES, AXES(0), false, VALUES(1, 1));
  must_reduce("ReduceL1", TYPE_F32, SHAPE(1, 0), NO_VALUES, AXES(1), false, VALUES(0));
  must_reduce("ReduceL2", TYPE_F32, SHAPE(1, 0), NO_VALUES, AXES(1), true, VALUES(0));
  must_reduce("ReduceSum", TYPE_F32, SHAPE(2, 0), NO_VALUES, AXES(1), false, VALUES(0, 0));
  must_reduce("ReduceMean", TYPE_F32, SHAPE(0, 2), NO_VALUES, AXES(0), true, VALUES(NAN, NAN));
  must_reduce("ReduceSum", TYPE_F32, SHAPE(2, 0), NO_VALUES, AXES(0), false, NO_VALUES);
}

static void what_is_not_finite_reaches_its_own_sum_alone(void **state) {
  (void)state;
  const double inf = INFINITY;
  must_reduce("ReduceSum", TYPE_F32, SHAPE(4, 2), VALUES(1, NAN, inf, 2, inf, -inf, 3, 4), AXES(1), false,
              VALUES(NAN, inf, NAN, 7));
  must_reduce("ReduceMean", TYPE_F32, SHAPE(2, 2), VALUES(1, -inf, 3, 4), AXES(1), false, VALUES(-inf, 3.5));
  // A NaN counts at any position; the maximum of infinities alone is an infinity.
  must_reduce("ReduceMax", TYPE_F32, SHAPE(4, 2), VALUES(NAN, 1, 1, NAN, -inf, -inf, 3, -inf), AXES(1), false,
              VALUES(NAN, NAN, -inf, 3));
  must_reduce("ReduceMin", TYPE_F32, SHAPE(4, 2), VALUES(NAN, 1, 1, NAN, inf, inf, 3, -inf), AXES(1), false,
              VALUES(NAN, NAN, inf, -inf));
  must_reduce("ReduceProd", TYPE_F32, SHAPE(3, 2), VALUES(inf, -2, inf, 0, NAN, 1), AXES(1), false,
              VALUES(-inf, NAN, NAN));
  must_reduce("ReduceL1", TYPE_F32, SHAPE(2, 2), VALUES(-inf, 1, NAN, 1), AXES(1), false, VALUES(inf, NAN));
  must_reduce("ReduceL2", TYPE_F32, SHAPE(2, 2), VALUES(-inf, 1, NAN, 1), AXES(1), false, VALUES(inf, NAN));
}

static void zeros_are_in_order(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F64, SHAPE(3, 2), VALUES(-0.0, 0.0, 0.0, -0.0, -0.0, -0.0));
  case_set_list(case_node(&c, "ReduceMax", "x", "high"), "axes", AXES(1)); // kept, not copied
  case_set_list(case_node(&c, "ReduceMin", "x", "low"), "axes", AXES(1));
  for (size_t i = 0; i < 2; i++) node_set_defaults(c.graph->nodes[i]);
  double high[3], low[3];
  for (size_t i = 0; i < 2; i++) {
    const double *inputs[] = {c.inputs[0].data};
    double *outputs[] = {i ? low : high};
    Diagnostics *d = &c.diagnostics;
    assert_true(graph_sort(c.graph, d) && graph_infer(c.graph, d));
    assert_true(interpret_node(c.graph->nodes[i], inputs, outputs, &system_allocator));
  }
  assert_false(signbit(high[0]) || signbit(high[1]) || !signbit(high[2]));
  assert_true(signbit(low[0]) && signbit(low[1]) && signbit(low[2]));
  case_free(&c);
}

static void products_pass_through_what_f32_does_not_hold(void **state) {
  (void)state;
  must_reduce("ReduceProd", TYPE_F32, SHAPE(4), VALUES(0x1p100, 0x1p100, 0x1p-100, 0x1p-99), AXES(0), false, VALUES(2));
}

static void sums_lose_nothing_to_cancellation(void **state) {
  (void)state;
  must_reduce("ReduceSum", TYPE_F64, SHAPE(4), VALUES(1, 1e100, 1, -1e100), AXES(0), false, VALUES(2));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reductions_go_over_any_axes),
      cmocka_unit_test(without_axes_each_element_is_alone),
      cmocka_unit_test(norms_of_one_element_are_its_size),
      cmocka_unit_test(of_no_elements_it_is_what_changes_nothing),
      cmocka_unit_test(what_is_not_finite_reaches_its_own_sum_alone),
      cmocka_unit_test(zeros_are_in_order),
      cmocka_unit_test(products_pass_through_what_f32_does_not_hold),
      cmocka_unit_test(sums_lose_nothing_to_cancellation),
  };
  return cmocka_run_group_tests_name("interpreter_reduce", tests, NULL, NULL);
}
