// Numbers of ONNX models that the test writes byte by byte, where types, infinities and roundings matter.
#include "frontend/api/ngrad.h"
#include "tests/unit/onnx_models.h"

static void casts_to_integers_drop_the_fraction(void **state) {
  (void)state;
  const float numbers[] = {1.5F, -1.5F, 2.5F, 100.9F, -0.9F};
  const Message to_s64 = int_attribute("to", 7), to_s8 = int_attribute("to", 3);
  const Message wide = model_of_floats("Cast", numbers, 5, &to_s64, 1),
                byte = model_of_floats("Cast", numbers, 5, &to_s8, 1);
  const double expected[] = {1, -1, 2, 100, 0};
  assert_true(computes(&wide, expected, 5));
  assert_true(computes(&byte, expected, 5));
}

// y = op(c, e), c made an s32 first; no e where it is NULL.
static Message model_of_integers(const char *op, const float *numbers, size_t count, const float *exponent) {
  Message graph = {.count = 0}, node = {.count = 0}, output = {.count = 0};
  const Message to = int_attribute("to", 6);
  add_floats(&graph, "f", numbers, count);
  if (exponent) add_floats(&graph, "e", exponent, 1);
  add_node_with(&graph, 1, "", "Cast", "f", "c", &to, 1);
  add_text(&node, 1, "c");
  if (exponent) add_text(&node, 1, "e");
  add_text(&node, 2, "y");
  add_text(&node, 4, op);
  add_message(&graph, 1, &node);
  add_text(&output, 1, "y");
  add_message(&graph, 12, &output);
  return model_of(&graph);
}

static void results_in_integers_drop_the_fraction(void **state) {
  static const float half = 0.5F, rows[3][3] = {{1, 2, 2}, {-1, -2, -2}, {3, 5, 4}};
  static const struct {
    const char *op;
    int row;
    double expected[3];
    size_t count;
  } cases[] = {{"ReduceMean", 0, {1}, 1},      {"ReduceMean", 1, {-1}, 1},  {"ReduceMean", 2, {4}, 1},
               {"ReduceL2", 2, {7}, 1},        {"ReduceLogSum", 2, {2}, 1}, {"ReduceLogSumExp", 2, {5}, 1},
               {"ReduceSumSquare", 1, {9}, 1}, {"Pow", 2, {1, 2, 2}, 3},    {"Abs", 1, {1, 2, 2}, 3}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const bool is_power = strcmp(cases[i].op, "Pow") == 0;
    const Message model = model_of_integers(cases[i].op, rows[cases[i].row], 3, is_power ? &half : NULL);
    assert_true(computes(&model, cases[i].expected, cases[i].count));
  }
}

static void infinities_are_sums_of_exponentials(void **state) {
  static const float rows[3][2] = {{INFINITY, 1}, {-INFINITY, -INFINITY}, {-INFINITY, 2}};
  static const double expected[] = {(double)INFINITY, -(double)INFINITY, 2};
  (void)state;
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    const Message model = model_of_floats("ReduceLogSumExp", rows[i], 2, NULL, 0);
    assert_true(computes(&model, &expected[i], 1));
  }
}

// 300, the deviation, is in the range of f16, but not its square.
static void statistics_of_a_layer_norm_are_f32(void **state) {
  (void)state;
  const float numbers[] = {1000, 1600, 1000, 1600};
  const double expected[] = {(double)(1 / 300.0F)};
  const Message half = int_attribute("to", 10);
  Message graph = {.count = 0}, node = {.count = 0}, output = {.count = 0};
  add_floats(&graph, "c", numbers, 4);
  add_node_with(&graph, 1, "", "Cast", "c", "h", &half, 1);
  for (int i = 0; i < 2; i++) add_text(&node, 1, "h");
  add_text(&node, 2, "y");
  add_text(&node, 2, "mean");
  add_text(&node, 2, "inverse");
  add_text(&node, 4, "LayerNormalization");
  add_message(&graph, 1, &node);
  add_text(&output, 1, "inverse");
  add_message(&graph, 12, &output);
  const Message model = model_of_opset(&graph, 17);
  assert_true(computes(&model, expected, 1));
}

// The model casts c, [1, 1, count], to the type, and gives it to the operator.
static Message model_of_cast(uint8_t type, const char *op, const float *numbers, size_t count,
                             const Message *attribute) {
  const Message to = int_attribute("to", type);
  Message graph = {.count = 0}, output = {.count = 0};
  add_floats(&graph, "c", numbers, count);
  add_node_with(&graph, 1, "", "Cast", "c", "h", &to, 1);
  add_node_with(&graph, 1, "", op, "h", "y", attribute, attribute ? 1 : 0);
  add_text(&output, 1, "y");
  add_message(&graph, 12, &output);
  return model_of_opset(&graph, 14);
}

static void masks_and_small_integers_are_operands(void **state) {
  (void)state;
  const float ones[] = {1, 1, 1, 1}, numbers[] = {-3, 2, -128};
  const double below[] = {1, 0, 0, 0}, positive[] = {0, 2, 0};
  const Message lower = int_attribute("upper", 0);
  const Message mask = model_of_cast(9, "Trilu", ones, 4, &lower), byte = model_of_cast(3, "Relu", numbers, 3, NULL),
                word = model_of_cast(6, "Relu", numbers, 3, NULL);
  assert_true(computes(&mask, below, 4));
  assert_true(computes(&byte, positive, 3));
  assert_true(computes(&word, positive, 3));
}

static void padding_may_be_infinite(void **state) {
  (void)state;
  const float numbers[] = {1, 2};
  const double expected[] = {-INFINITY, 1, 2};
  static const uint8_t before[] = {0, 0, 1, 0, 0, 0};
  const Message attributes[] = {list_attribute("pads", before, 6), float_attribute("value", -INFINITY, NULL)};
  Message model = model_of_floats("Pad", numbers, 2, attributes, 2);
  model.bytes[5] = 2; // its opset
  assert_true(computes(&model, expected, 3));
}

static void nan_stays_nan(void **state) {
  (void)state;
  const float numbers[] = {NAN, 3, -3};
  const Message bounds[] = {float_attribute("min", -1, NULL), float_attribute("max", 1, NULL)};
  Message sign = model_of_floats("Sign", numbers, 3, NULL, 0), clip = model_of_floats("Clip", numbers, 3, bounds, 2);
  const double expected[] = {(double)NAN, 1, -1};
  assert_true(computes(&sign, expected, 3));
  clip.bytes[5] = 10; // its opset: the bounds are attributes
  assert_true(computes(&clip, expected, 3));
}

// The last window begins in front of the padding at the end, and the places behind that padding do not count.
static void pooling_rounds_up_to_windows_that_begin_inside(void **state) {
  (void)state;
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  const uint8_t two[] = {2}, ones[] = {1, 1}, three[] = {3};
  const Message beside[] = {list_attribute("kernel_shape", two, 1), list_attribute("strides", two, 1),
                            list_attribute("pads", ones, 2), int_attribute("ceil_mode", 1)};
  const Message beyond[] = {list_attribute("kernel_shape", three, 1), list_attribute("strides", two, 1),
                            list_attribute("pads", ones, 2), int_attribute("ceil_mode", 1),
                            int_attribute("count_include_pad", 1)};
  const Message greatest = model_of_floats("MaxPool", numbers, 5, beside, 4),
                mean = model_of_floats("AveragePool", numbers, 6, beyond, 5);
  assert_true(computes(&greatest, (const double[]){1, 3, 5}, 3));
  assert_true(computes(&mean, (const double[]){1, 3, 5, 3}, 4)); // the last is (6 + 0) / 2
}

// x.gather(1, x.argmax(1)), as losses take the numbers of labels: the rows are a batch, which has a name.
static void elements_are_gathered_from_rows_of_a_named_batch(void **state) {
  (void)state;
  const Message axis = int_attribute("axis", 1);
  Message graph = {.count = 0}, gather = {.count = 0};
  add_node_with(&graph, 1, "", "ArgMax", "x", "i", &axis, 1);
  add_text(&gather, 1, "x");
  add_text(&gather, 1, "i");
  add_text(&gather, 2, "y");
  add_text(&gather, 4, "GatherElements");
  add_message(&gather, 5, &axis);
  add_message(&graph, 1, &gather);
  add_value(&graph, 11, "x");
  add_output(&graph, "y");
  const Message model = model_of(&graph);
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "test.onnx", (const char *)model.bytes, model.count, NULL);
  float x[] = {1, 3, 2, -1, -3, -2, 0, 7, 8}, y[] = {0, 0, 0};
  assert_non_null(g);
  assert_int_equal(ng_graph_set_input_shape(g, 0, 2, (const int64_t[]){3, 3}), NG_OK);
  assert_int_equal(ng_interpret(g, &(ng_tensor){.type = NG_F32, .rank = 2, .extent = {3, 3}, .data = x},
                                &(ng_tensor){.type = NG_F32, .rank = 2, .extent = {3, 1}, .data = y}, 0),
                   NG_OK);
  assert_true(y[0] == 3 && y[1] == -1 && y[2] == 8);
  ng_graph_free(g);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(casts_to_integers_drop_the_fraction),
      cmocka_unit_test(results_in_integers_drop_the_fraction),
      cmocka_unit_test(infinities_are_sums_of_exponentials),
      cmocka_unit_test(statistics_of_a_layer_norm_are_f32),
      cmocka_unit_test(masks_and_small_integers_are_operands),
      cmocka_unit_test(padding_may_be_infinite),
      cmocka_unit_test(nan_stays_nan),
      cmocka_unit_test(pooling_rounds_up_to_windows_that_begin_inside),
      cmocka_unit_test(elements_are_gathered_from_rows_of_a_named_batch),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
