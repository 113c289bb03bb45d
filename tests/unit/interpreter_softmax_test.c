// Softmax and its gradients, from their definitions.
#include "tests/unit/interpreter_case.h"

static void softmax_of_rows_and_columns(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F64, SHAPE(1, 3), VALUES(1, -2, 3));
  case_input(&c, "z", TYPE_F64, SHAPE(2, 2), VALUES(log(3), 5, 0, 5));
  case_node(&c, "SoftMax", "x", "y stats"); // axis 1 unless given
  case_node(&c, "LogSoftmax", "x", "log");
  case_set(case_node(&c, "SoftMax", "z", "columns column_stats"), "axis", -2);
  case_set(case_node(&c, "LogSoftmax", "z", "column_logs"), "axis", 0);
  case_expect(&c, "y", VALUES(0.11849965, 0.00589975, 0.87560060));
  case_expect(&c, "stats", VALUES(3.13284523));
  case_expect(&c, "log", VALUES(1 - 3.13284523, -2 - 3.13284523, 3 - 3.13284523));
  case_expect(&c, "columns", VALUES(0.75, 0.5, 0.25, 0.5));
  case_expect(&c, "column_stats", VALUES(log(4), 5 + log(2)));
  case_expect(&c, "column_logs", VALUES(log(0.75), log(0.5), log(0.25), log(0.5)));
  c.tolerance = 1e-7;
  case_passes(&c);
}

static void large_numbers_do_not_overflow(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F64, SHAPE(2, 2), VALUES(1e300, 1e300, -1e300, 1e300));
  case_node(&c, "SoftMax", "x", "y stats");
  case_node(&c, "LogSoftmax", "x", "log");
  case_expect(&c, "y", VALUES(0.5, 0.5, 0, 1));
  case_expect(&c, "stats", VALUES(1e300, 1e300));
  case_expect(&c, "log", VALUES(-log(2), -log(2), -2e300, 0));
  case_passes(&c);
}

static void infinities_and_nans_stay_in_their_row(void **state) {
  (void)state;
  const double inf = INFINITY;
  for (int inf_as_zero = 0; inf_as_zero < 2; inf_as_zero++) {
    Case c;
    case_init(&c);
    case_input(&c, "x", TYPE_F32, SHAPE(5, 2), VALUES(-inf, -inf, -inf, 1, inf, 1, NAN, 1, 2, 2));
    case_set(case_node(&c, "SoftMax", "x", "y stats"), "mode", inf_as_zero);
    double of_nothing = inf_as_zero ? 0 : NAN;
    case_expect(&c, "y", VALUES(of_nothing, of_nothing, 0, 1, NAN, NAN, NAN, NAN, 0.5, 0.5));
    case_expect(&c, "stats", VALUES(of_nothing, 1, NAN, NAN, 2 + log(2)));
    case_passes(&c);
  }
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 2), VALUES(-inf, -inf, 0, -inf));
  case_node(&c, "LogSoftmax", "x", "y");
  case_expect(&c, "y", VALUES(NAN, NAN, 0, -inf));
  case_passes(&c);
}

static void an_axis_without_elements_has_statistics(void **state) {
  (void)state;
  for (int inf_as_zero = 0; inf_as_zero < 2; inf_as_zero++) {
    Case c;
    case_init(&c);
    case_input(&c, "x", TYPE_F32, SHAPE(2, 0), NO_VALUES);
    case_set(case_node(&c, "SoftMax", "x", "y stats"), "mode", inf_as_zero);
    double stats = inf_as_zero ? 0 : -INFINITY;
    case_expect(&c, "y", NO_VALUES);
    case_expect(&c, "stats", VALUES(stats, stats));
    case_passes(&c);
  }
}

static void gradients_of_rows_and_columns(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "dy", TYPE_F32, SHAPE(1, 3), VALUES(1, 2, 3));
  case_input(&c, "y", TYPE_F32, SHAPE(1, 3), VALUES(0.25, 0.25, 0.5));
  case_input(&c, "log", TYPE_F32, SHAPE(1, 3), VALUES(log(0.25), log(0.25), log(0.5)));
  case_node(&c, "SoftMaxBackward", "dy y", "dx");
  case_node(&c, "LogSoftmaxBackward", "dy log", "dx_log");
  case_set(case_node(&c, "SoftMaxBackward", "dy y", "alone"), "axis", 0);
  case_set(case_node(&c, "LogSoftmaxBackward", "dy log", "alone_log"), "axis", 0);
  case_expect(&c, "dx", VALUES(-0.3125, -0.0625, 0.375));
  case_expect(&c, "dx_log", VALUES(-0.5, 0.5, 0));
  case_expect(&c, "alone", VALUES(0.1875, 0.375, 0.75)); // y * (dy - dy * y)
  case_expect(&c, "alone_log", VALUES(0.75, 1.5, 1.5));
  c.tolerance = 1e-7;
  case_passes(&c);
}

static void types_may_differ_from_f32s(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_BF16, SHAPE(1, 3), VALUES(0, 0, 0));
  case_input(&c, "f", TYPE_F32, SHAPE(1, 3), VALUES(0, 0, 0));
  case_node(&c, "SoftMax", "x", "wide");
  case_node(&c, "SoftMax", "f", "narrow");
  case_value(&c, "wide")->type = TYPE_F32;
  case_value(&c, "narrow")->type = TYPE_BF16;
  case_expect(&c, "wide", VALUES(1.0 / 3, 1.0 / 3, 1.0 / 3));
  case_expect(&c, "narrow", VALUES(1.0 / 3, 1.0 / 3, 1.0 / 3));
  case_passes(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(softmax_of_rows_and_columns),
      cmocka_unit_test(large_numbers_do_not_overflow),
      cmocka_unit_test(infinities_and_nans_stay_in_their_row),
      cmocka_unit_test(an_axis_without_elements_has_statistics),
      cmocka_unit_test(gradients_of_rows_and_columns),
      cmocka_unit_test(types_may_differ_from_f32s),
  };
  return cmocka_run_group_tests_name("interpreter_softmax", tests, NULL, NULL);
}
