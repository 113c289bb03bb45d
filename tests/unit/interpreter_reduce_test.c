// Reductions, from their definitions: literal sums and means, over each kind of axes, of nothing, of what cancels.
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
}

static void without_axes_each_element_is_alone(void **state) {
  (void)state;
  static const char *const ops[] = {"ReduceSum", "ReduceMean"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    must_reduce(ops[i], TYPE_F32, SHAPE(3), VALUES(-1, 0, 2), NO_AXES, false, VALUES(-1, 0, 2));
    must_reduce(ops[i], TYPE_F32, SHAPE(1, 3), VALUES(-1, 0, 2), AXES(0), false, VALUES(-1, 0, 2));
    must_reduce(ops[i], TYPE_F32, SCALAR, VALUES(-7), NO_AXES, true, VALUES(-7));
  }
}

static void of_no_elements_a_sum_is_zero_and_a_mean_nothing(void **state) {
  (void)state;
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
}

static void sums_lose_nothing_to_cancellation(void **state) {
  (void)state;
  must_reduce("ReduceSum", TYPE_F64, SHAPE(4), VALUES(1, 1e100, 1, -1e100), AXES(0), false, VALUES(2));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reductions_go_over_any_axes),
      cmocka_unit_test(without_axes_each_element_is_alone),
      cmocka_unit_test(of_no_elements_a_sum_is_zero_and_a_mean_nothing),
      cmocka_unit_test(what_is_not_finite_reaches_its_own_sum_alone),
      cmocka_unit_test(sums_lose_nothing_to_cancellation),
  };
  return cmocka_run_group_tests_name("interpreter_reduce", tests, NULL, NULL);
}
