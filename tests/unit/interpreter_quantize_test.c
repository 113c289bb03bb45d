// Quantisation: results worked out by hand.
#include "ir/operators/quantize.h"

#include "tests/unit/interpreter_case.h"

static AttributeValue *attribute(Node *node, const char *name) {
  AttributeValue *value = node_attribute_slot(node, name);
  value->is_set = true;
  return value;
}

static Node *scaled(Case *c, const char *op, const char *src, const char *dst, Type type, const double *scale,
                    const int64_t *zp) {
  Node *node = case_node(c, op, src, dst);
  case_value(c, dst)->type = type;
  attribute(node, "scales")->numbers.items = scale;
  attribute(node, "scales")->numbers.count = 1;
  attribute(node, "zps")->list.items = zp;
  attribute(node, "zps")->list.count = zp != NULL;
  return node;
}

static const double one = 1, two = 2, half = 0.5;
static const int64_t three = 3;

static void zero_points_are_added_before_rounding(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(6), VALUES(1, 3, 5, -1, 500, -500));
  case_input(&c, "odd", TYPE_F32, SHAPE(4), VALUES(NAN, INFINITY, -INFINITY, 2.5));
  scaled(&c, "Quantize", "x", "a", TYPE_S8, &two, &three);
  scaled(&c, "Quantize", "x", "b", TYPE_U8, &two, &three);
  scaled(&c, "Quantize", "odd", "d", TYPE_S8, &one, NULL);
  case_expect(&c, "a", VALUES(4, 4, 6, 2, 127, -128));
  case_expect(&c, "b", VALUES(4, 4, 6, 2, 253, 0));
  case_expect(&c, "d", VALUES(0, 127, -128, 2));
  case_passes(&c);
}

static void floats_of_8_bits_have_few_values(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(6), VALUES(1, 448, 464, 465, -1000, 0.001));
  scaled(&c, "Quantize", "x", "a", TYPE_F8_E4M3, &one, NULL);
  scaled(&c, "Quantize", "x", "b", TYPE_F8_E5M2, &half, NULL);
  case_expect(&c, "a", VALUES(1, 448, 448, NAN, NAN, 0x1p-9));
  case_expect(&c, "b", VALUES(2, 896, 896, 896, -2048, 0x1p-9));
  case_passes(&c);
}

static void numbers_come_back_unrounded(void **state) {
  (void)state;
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_U8, SHAPE(3), VALUES(0, 3, 255));
  scaled(&c, "Dequantize", "x", "a", TYPE_F32, &half, &three);
  case_expect(&c, "a", VALUES(-1.5, 0, 126));
  case_passes(&c);
}

static void each_channel_has_its_scale(void **state) {
  (void)state;
  static const double scales[] = {1, 10, 100};
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(2, 3), VALUES(1, 20, 300, 4, 50, 600));
  case_input(&c, "s", TYPE_F32, SHAPE(3), VALUES(1, 10, 100));
  case_input(&c, "z", TYPE_S32, SHAPE(1), VALUES(5));
  Node *a = scaled(&c, "Quantize", "x", "a", TYPE_S8, scales, NULL);
  attribute(a, "scales")->numbers.count = 3;
  attribute(a, "qtype")->s64 = QUANTIZE_PER_CHANNEL;
  Node *b = case_node(&c, "DynamicQuantize", "x s z", "b"), *d = case_node(&c, "DynamicDequantize", "b s z", "d");
  case_value(&c, "b")->type = TYPE_U8;
  attribute(b, "qtype")->s64 = attribute(d, "qtype")->s64 = QUANTIZE_PER_CHANNEL;
  case_expect(&c, "a", VALUES(1, 2, 3, 4, 5, 6));
  case_expect(&c, "b", VALUES(6, 7, 8, 9, 10, 11));
  case_expect(&c, "d", VALUES(1, 20, 300, 4, 50, 600));
  case_passes(&c);
}

static void each_group_has_its_scale(void **state) {
  (void)state;
  static const int64_t group[] = {1, 2};
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_S8, SHAPE(2, 4), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
  case_input(&c, "s", TYPE_F32, SHAPE(2, 2), VALUES(1, 10, 100, 1000));
  case_input(&c, "z", TYPE_S8, SHAPE(2, 2), VALUES(0, 1, 2, 3));
  Node *a = case_node(&c, "DynamicDequantize", "x s z", "a");
  attribute(a, "qtype")->s64 = QUANTIZE_PER_GROUP;
  attribute(a, "group_shape")->list.items = group;
  attribute(a, "group_shape")->list.count = 2;
  case_expect(&c, "a", VALUES(1, 2, 20, 30, 300, 400, 4000, 5000));
  case_passes(&c);
}

static void four_bits_saturate_and_come_in_pairs(void **state) {
  (void)state;
  static const int64_t group[] = {1, 2};
  Case c;
  case_init(&c);
  case_input(&c, "x", TYPE_F32, SHAPE(9), VALUES(1, 3, 5, -1, 500, -500, NAN, INFINITY, -INFINITY));
  case_input(&c, "w", TYPE_S4, SHAPE(1, 3), VALUES(-8, 7, -1));
  case_input(&c, "s", TYPE_F32, SHAPE(1), VALUES(2));
  case_input(&c, "z", TYPE_S4, SHAPE(1), VALUES(-3));
  scaled(&c, "Quantize", "x", "a", TYPE_S4, &two, &three);
  scaled(&c, "Quantize", "x", "b", TYPE_U4, &two, &three);
  scaled(&c, "Dequantize", "w", "d", TYPE_F32, &half, &three);
  case_node(&c, "DynamicQuantize", "x s z", "e");
  case_value(&c, "e")->type = TYPE_U4;
  case_expect(&c, "a", VALUES(4, 4, 6, 2, 7, -8, 0, 7, -8));
  case_expect(&c, "b", VALUES(4, 4, 6, 2, 15, 0, 0, 15, 0));
  case_expect(&c, "d", VALUES(-5.5, 2, -2));
  case_expect(&c, "e", VALUES(0, 0, 0, 0, 15, 0, 0, 15, 0));
  case_passes(&c);
  case_init(&c);
  case_input(&c, "v", TYPE_U4, SHAPE(3, 2), VALUES(15, 0, 1, 2, 3, 4));
  case_input(&c, "s", TYPE_F32, SHAPE(3, 1), VALUES(1, 10, 100));
  case_input(&c, "z", TYPE_S4, SHAPE(3, 1), VALUES(-1, 1, 2));
  Node *a = case_node(&c, "DynamicDequantize", "v s z", "a");
  attribute(a, "qtype")->s64 = QUANTIZE_PER_GROUP;
  attribute(a, "group_shape")->list.items = group;
  attribute(a, "group_shape")->list.count = 2;
  case_expect(&c, "a", VALUES(16, 1, 0, 10, 100, 200));
  case_passes(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(zero_points_are_added_before_rounding),
      cmocka_unit_test(floats_of_8_bits_have_few_values),
      cmocka_unit_test(numbers_come_back_unrounded),
      cmocka_unit_test(each_channel_has_its_scale),
      cmocka_unit_test(each_group_has_its_scale),
      cmocka_unit_test(four_bits_saturate_and_come_in_pairs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
