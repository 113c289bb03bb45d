// The elementwise operators on literal values.
#include "tests/unit/interpreter_case.h"

static void unary(const char *op, Type type, const double *src, size_t nsrc, const double *dst, size_t ndst) {
  Case c;
  case_init(&c);
  case_input(&c, "x", type, SHAPE((int64_t)nsrc), src, nsrc);
  case_node(&c, op, "x", "y");
  case_expect(&c, "y", dst, ndst);
  case_passes(&c);
}

static void binary(const char *op, Shape shape_a, const double *a, size_t na, Shape shape_b, const double *b, size_t nb,
                   const double *dst, size_t ndst) {
  Case c;
  case_init(&c);
  case_input(&c, "a", TYPE_F64, shape_a, a, na);
  case_input(&c, "b", TYPE_F64, shape_b, b, nb);
  case_node(&c, op, "a b", "y");
  case_expect(&c, "y", dst, ndst);
  case_passes(&c);
}

static const Type float_types[] = {TYPE_F64, TYPE_F32, TYPE_F16, TYPE_BF16};
enum { NFLOAT_TYPES = sizeof float_types / sizeof *float_types };

static void relu_keeps_what_is_positive(void **state) {
  (void)state;
  for (size_t i = 0; i < NFLOAT_TYPES; i++)
    unary("ReLU", float_types[i], VALUES(1.5, -2, 0, 256, -0.25), VALUES(1.5, 0, 0, 256, 0));
}

static void relu_of_special_values(void **state) {
  (void)state;
  for (size_t i = 0; i < NFLOAT_TYPES; i++)
    unary("ReLU", float_types[i], VALUES(NAN, INFINITY, -INFINITY, -0.0), VALUES(NAN, INFINITY, 0, 0));
}

static void relu_of_a_scalar_and_of_nothing(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "scalar", TYPE_F32, SCALAR, VALUES(-3));
  case_input(&c, "nothing", TYPE_F32, SHAPE(2, 0, 3), NO_VALUES);
  case_node(&c, "ReLU", "scalar", "y");
  case_node(&c, "ReLU", "nothing", "z");
  case_expect(&c, "y", VALUES(0));
  case_expect(&c, "z", NO_VALUES);
  case_passes(&c);
}

static void relu_backward(bool use_dst, Type type) {
  Case c;
  case_init(&c);
  case_input(&c, "data", type, SHAPE(2, 4), VALUES(1, -1, 0, -0.0, NAN, INFINITY, -INFINITY, 0.5));
  case_input(&c, "dy", type, SHAPE(2, 4), VALUES(2, 3, 4, 5, 6, 7, NAN, NAN));
  case_set(case_node(&c, "ReLUBackward", "data dy", "dx"), "use_dst", use_dst);
  case_expect(&c, "dx", VALUES(2, 0, 0, 0, 0, 7, 0, NAN));
  case_passes(&c);
}

static void relu_backward_passes_where_data_is_positive(void **state) {
  (void)state;
  for (size_t i = 0; i < NFLOAT_TYPES; i++) {
    relu_backward(true, float_types[i]);
    relu_backward(false, float_types[i]);
  }
}

static void binary_operators_on_equal_shapes(void **state) {
  (void)state;
  binary("Add", SHAPE(3), VALUES(1, 2, -3), SHAPE(3), VALUES(10, 0.5, 3), VALUES(11, 2.5, 0));
  binary("Subtract", SHAPE(3), VALUES(1, 2, -3), SHAPE(3), VALUES(10, 0.5, -3), VALUES(-9, 1.5, 0));
  binary("Multiply", SHAPE(3), VALUES(1, 2, -3), SHAPE(3), VALUES(10, 0.5, 3), VALUES(10, 1, -9));
}

static void binary_operators_follow_ieee(void **state) {
  (void)state;
  binary("Add", SHAPE(4), VALUES(NAN, INFINITY, INFINITY, -0.0), SHAPE(4), VALUES(1, 1, -INFINITY, -0.0),
         VALUES(NAN, INFINITY, NAN, -0.0));
  binary("Subtract", SHAPE(4), VALUES(1, INFINITY, 1, 0), SHAPE(4), VALUES(NAN, INFINITY, INFINITY, 0),
         VALUES(NAN, NAN, -INFINITY, 0));
  binary("Multiply", SHAPE(4), VALUES(NAN, INFINITY, INFINITY, -0.0), SHAPE(4), VALUES(0, 0, -2, 5),
         VALUES(NAN, NAN, -INFINITY, -0.0));
}

static void either_side_broadcasts(void **state) {
  (void)state;
  binary("Subtract", SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6), SHAPE(3), VALUES(10, 20, 30),
         VALUES(-9, -18, -27, -6, -15, -24));
  binary("Subtract", SHAPE(3), VALUES(10, 20, 30), SHAPE(2, 3), VALUES(1, 2, 3, 4, 5, 6), VALUES(9, 18, 27, 6, 15, 24));
  binary("Add", SHAPE(2, 1), VALUES(1, 2), SHAPE(1, 3), VALUES(10, 20, 30), VALUES(11, 21, 31, 12, 22, 32));
  binary("Add", SHAPE(2, 1, 2), VALUES(1, 2, 3, 4), SHAPE(3, 1), VALUES(10, 20, 30),
         VALUES(11, 12, 21, 22, 31, 32, 13, 14, 23, 24, 33, 34));
  binary("Multiply", SCALAR, VALUES(2), SHAPE(2, 2), VALUES(1, 2, 3, 4), VALUES(2, 4, 6, 8));
  binary("Multiply", SHAPE(2, 2), VALUES(1, 2, 3, 4), SHAPE(1), VALUES(2), VALUES(2, 4, 6, 8));
  binary("Multiply", SCALAR, VALUES(2), SCALAR, VALUES(3), VALUES(6));
  binary("Add", SHAPE(1, 1, 1, 1, 1, 1, 1, 2), VALUES(1, 2), SHAPE(2, 1, 1, 1, 1, 1, 1, 1), VALUES(10, 20),
         VALUES(11, 12, 21, 22));
}

static void nothing_broadcasts_to_nothing(void **state) {
  (void)state;
  binary("Add", SHAPE(0, 3), NO_VALUES, SHAPE(3), VALUES(1, 2, 3), NO_VALUES);
  binary("Add", SHAPE(1), VALUES(1), SHAPE(0), NO_VALUES, NO_VALUES);
}

static void without_broadcasting_shapes_are_equal(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "a", TYPE_F32, SHAPE(1, 2), VALUES(1, 2));
  case_input(&c, "b", TYPE_F32, SHAPE(1, 2), VALUES(3, 5));
  case_set(case_node(&c, "Add", "a b", "y"), "auto_broadcast", 1);
  case_expect(&c, "y", VALUES(4, 7));
  case_passes(&c);
}

static void mixed_types_give_f32(void **state) {
  (void)state;
  const Type narrow[] = {TYPE_F16, TYPE_BF16};
  const char *const operators_tested[] = {"Add", "Subtract", "Multiply"};
  const double expected[] = {1 + 0x1p-20, 1 - 0x1p-20, 0x1p-20};
  for (size_t i = 0; i < 6; i++) {
    Case c;
    case_init(&c);
    case_input(&c, "a", narrow[i % 2], SHAPE(1), VALUES(1));
    case_input(&c, "b", TYPE_F32, SHAPE(1), VALUES(0x1p-20));
    case_node(&c, operators_tested[i / 2], "a b", "y");
    case_expect(&c, "y", &expected[i / 2], 1);
    case_finish(&c);
    assert_int_equal(c.graph->outputs[0]->type, TYPE_F32);
    assert_true(case_run(&c, &c.diagnostics));
    case_free(&c);
  }
}

static void integers_are_exact_and_saturate(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "a", TYPE_S32, SHAPE(4), VALUES(16777217, INT32_MAX, INT32_MIN, -5));
  case_input(&c, "b", TYPE_S32, SHAPE(4), VALUES(0, 1, 1, 7));
  case_node(&c, "Add", "a b", "sum");
  case_node(&c, "Subtract", "a b", "difference");
  case_node(&c, "Subtract", "sum b", "back"); // what saturated does not come back
  case_expect(&c, "sum", VALUES(16777217, INT32_MAX, (double)INT32_MIN + 1, 2));
  case_expect(&c, "difference", VALUES(16777217, INT32_MAX - 1, INT32_MIN, -12));
  case_expect(&c, "back", VALUES(16777217, INT32_MAX - 1, INT32_MIN, -5));
  case_passes(&c);
}

static void type_cast(Type from, Type to, const double *src, size_t nsrc, const double *dst, size_t ndst) {
  Case c;
  case_init(&c);
  case_input(&c, "x", from, SHAPE((int64_t)nsrc), src, nsrc);
  case_value(&c, "y")->type = to;
  case_node(&c, "TypeCast", "x", "y");
  case_expect(&c, "y", dst, ndst);
  case_passes(&c);
}

static void type_cast_rounds_to_nearest_even(void **state) {
  (void)state;
  type_cast(TYPE_F32, TYPE_BF16, VALUES(1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1.8p-8, 0x1.FFp127),
            VALUES(1, 1 + 0x2p-7, 1 + 0x1p-7, INFINITY));
  type_cast(TYPE_F32, TYPE_F16, VALUES(1 + 0x1p-11, 1 + 0x3p-11, 65519, 65520, 0x1p-25, 0x1.8p-25),
            VALUES(1, 1 + 0x2p-10, 65504, INFINITY, 0, 0x1p-24));
  type_cast(TYPE_F64, TYPE_F32, VALUES(1 + 0x1p-24, 1 + 0x3p-24, 1e300, -1e-300),
            VALUES(1, 1 + 0x1p-22, INFINITY, -0.0));
  const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 0.5};
  for (size_t i = 0; i < NFLOAT_TYPES; i++) {
    if (float_types[i] == TYPE_F32) continue;
    type_cast(TYPE_F32, float_types[i], special, 5, special, 5);
    type_cast(float_types[i], TYPE_F32, special, 5, special, 5);
  }
}

// Between nodes nothing else is rounded: the sum of three rounds once. A cast in between shows the difference.
static void only_casts_and_outputs_round(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "one", TYPE_F32, SHAPE(1), VALUES(1));
  case_input(&c, "tiny", TYPE_F32, SHAPE(1), VALUES(0x1p-24));
  case_node(&c, "Add", "one tiny", "exact");
  case_node(&c, "Add", "exact tiny", "twice");
  case_value(&c, "cast")->type = TYPE_F16;
  case_node(&c, "TypeCast", "exact", "cast");
  case_node(&c, "Add", "cast tiny", "once");
  case_expect(&c, "twice", VALUES(1 + 0x1p-23));
  case_expect(&c, "once", VALUES(1)); // 1 + 2^-24, a tie that goes to even
  case_passes(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(relu_keeps_what_is_positive),
      cmocka_unit_test(relu_of_special_values),
      cmocka_unit_test(relu_of_a_scalar_and_of_nothing),
      cmocka_unit_test(relu_backward_passes_where_data_is_positive),
      cmocka_unit_test(binary_operators_on_equal_shapes),
      cmocka_unit_test(binary_operators_follow_ieee),
      cmocka_unit_test(either_side_broadcasts),
      cmocka_unit_test(nothing_broadcasts_to_nothing),
      cmocka_unit_test(without_broadcasting_shapes_are_equal),
      cmocka_unit_test(mixed_types_give_f32),
      cmocka_unit_test(integers_are_exact_and_saturate),
      cmocka_unit_test(type_cast_rounds_to_nearest_even),
      cmocka_unit_test(only_casts_and_outputs_round),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
