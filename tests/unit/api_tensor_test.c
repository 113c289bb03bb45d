// The installed API: tensors, their files, their layouts, and the distance between two tensors.
#include "tests/unit/api_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void random_data_is_the_same_everywhere(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  assert_int_equal(ng_graph_set_dim(g, "N", 2000), NG_OK);
  ng_tensor x, again, other, variance;
  assert_int_equal(ng_tensor_random(g, 0, 1, &x), NG_OK);
  assert_int_equal(ng_tensor_random(g, 0, 1, &again), NG_OK);
  assert_int_equal(ng_tensor_random(g, 0, 2, &other), NG_OK);
  assert_int_equal(ng_tensor_random(g, 3, 1, &variance), NG_OK);
  assert_memory_equal(x.data, again.data, ng_tensor_nbytes(&x));
  assert_memory_not_equal(x.data, other.data, ng_tensor_nbytes(&x));
  // From another program by the header's description.
  assert_true(ng_tensor_get(&x, 0) == -0x1.2e06cp-1);
  assert_true(ng_tensor_get(&x, 47999) == -0x1.051b4ep-3);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < ng_tensor_nelems(&x); i++) {
    double value = ng_tensor_get(&x, i);
    sum += value;
    squares += value * value;
  }
  assert_true(fabs(sum / 48000) < 0.02);
  assert_true(fabs(squares / 48000 - 1) < 0.02);
  for (int64_t i = 0; i < ng_tensor_nelems(&variance); i++)
    assert_true(ng_tensor_get(&variance, i) >= 0.5 && ng_tensor_get(&variance, i) < 2);
  ng_tensor_free(ctx, &x);
  ng_tensor_free(ctx, &again);
  ng_tensor_free(ctx, &other);
  ng_tensor_free(ctx, &variance);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// The range of random labels of five classes, where a model computes the class from a label.
static const struct {
  const char *nodes; // from `labels` to `class`, with constants one and four
  double first, last;
} label_cases[] = {
    {"{op: StaticReshape, inputs: [labels], outputs: [class], attributes: {shape: [1000], special_zero: false}}", 0, 4},
    {"{op: Subtract, inputs: [labels, one], outputs: [class]}", 1, 5}, // class 0 is the background
    {"{op: Subtract, inputs: [four, labels], outputs: [class]}", 0, 4},
    {"{op: Add, inputs: [labels, one], outputs: [class]}", 0, 3},
    {"{op: Neg, inputs: [labels], outputs: [n]}\n  - {op: Add, inputs: [four, n], outputs: [class]}", 0, 4},
    {"{op: Subtract, inputs: [labels, one], outputs: [n]}\n  - {op: Multiply, inputs: [n, four], outputs: [class]}", 1,
     2},
    {"{op: Subtract, inputs: [labels, one], outputs: [n]}\n  - {op: Maximum, inputs: [n, zero], outputs: [class]}", 0,
     5},
    {"{op: Subtract, inputs: [labels, one], outputs: [n]}\n  - {op: Minimum, inputs: [n, four], outputs: [class]}", 1,
     100},
    {"{op: Subtract, inputs: [labels, one], outputs: [n]}\n  - {op: Mod, inputs: [n, four], outputs: [class]}", 1, 100},
    {"{op: TypeCast, inputs: [labels], outputs: [{name: wide, type: s64}]}\n"
     "  - {op: TypeCast, inputs: [wide], outputs: [{name: n, type: s32}]}\n"
     "  - {op: Subtract, inputs: [n, one], outputs: [class]}",
     1, 5},
};

static void random_labels_are_classes(void **state) {
  (void)state;
  for (size_t n = 0; n < sizeof label_cases / sizeof *label_cases; n++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: g\n"
             "inputs: [{name: x, type: f32, shape: [1000, 5]}, {name: labels, type: s32, shape: [1000]}]\n"
             "constants:\n  - {name: one, type: s32, shape: [], value: 1}\n"
             "  - {name: zero, type: s32, shape: [], value: 0}\n  - {name: four, type: s32, shape: [], value: 4}\n"
             "nodes:\n  - %s\n  - {op: SoftmaxCrossEntropy, inputs: [x, class], outputs: [loss]}\noutputs: [loss]\n",
             label_cases[n].nodes);
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, text);
    ng_tensor labels;
    double first = INFINITY, last = -INFINITY;
    assert_int_equal(ng_tensor_random(g, 1, 1, &labels), NG_OK);
    for (int64_t i = 0; i < 1000; i++) {
      first = fmin(first, ng_tensor_get(&labels, i));
      last = fmax(last, ng_tensor_get(&labels, i));
    }
    if (first != label_cases[n].first || last != label_cases[n].last)
      fail_msg("%s: labels from %g to %g", label_cases[n].nodes, first, last);
    ng_tensor_free(ctx, &labels);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

static void npy_files_come_back_as_they_went(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  char path[] = "/tmp/ngrad_api_test_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  const ng_tensor_info info = {.name = "t", .type = NG_F32, .rank = 2, .extent = {2, 3}};
  ng_tensor t, back;
  assert_int_equal(ng_tensor_new(ctx, &info, &t), NG_OK);
  assert_int_equal((uintptr_t)t.data % 64, 0);
  for (int i = 0; i < 6; i++) {
    assert_true(((float *)t.data)[i] == 0);
    ((float *)t.data)[i] = (float)i / 3;
  }
  assert_int_equal(ng_tensor_write_npy(ctx, path, &t), NG_OK);
  const ng_tensor_info any = {.type = NG_F32, .rank = -1}, wrong = {.type = NG_F32, .rank = 2, .extent = {3, 2}};
  const ng_tensor_info f64 = {.type = NG_F64, .rank = 2, .extent = {-1, 3}};
  assert_int_equal(ng_tensor_read_npy(ctx, path, &any, 0, &back), NG_OK);
  assert_int_equal(back.rank, 2);
  assert_int_equal(back.extent[1], 3);
  assert_memory_equal(back.data, t.data, 24);
  ng_tensor_free(ctx, &back);
  ng_tensor_free(ctx, &back);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &wrong, 0, &back), NG_WRONG);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &f64, 0, &back), NG_WRONG);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &f64, 1, &back), NG_OK);
  assert_int_equal(back.type, NG_F32);
  ng_tensor_free(ctx, &back);
  ng_tensor_free(ctx, &t);
  unlink(path);
  ng_context_free(ctx);
}

// x, [2, 3], lies column by column, and so does y = x + x.
static const char by_columns[] = "format: ngrad/1\n"
                                 "inputs:\n"
                                 "  - {name: x, type: f32, shape: [2, 3], order: [1, 0]}\n"
                                 "nodes:\n"
                                 "  - op: Add\n"
                                 "    inputs: [x, x]\n"
                                 "    outputs: [{name: y, type: f32, shape: [2, 3], order: [1, 0]}]\n"
                                 "  - {op: Subtract, inputs: [y, x], outputs: [z]}\n"
                                 "outputs: [y, z]\n";

static void tensors_lie_in_the_orders_that_the_graph_says(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, by_columns);
  ng_kernel *k = must_compile(ctx, g);
  assert_memory_equal(ng_graph_output(g, 0).order, ((const unsigned char[]){1, 0}), 2);
  float x[] = {1, 4, 2, 5, 3, 6}, y[6], z[6];
  const ng_tensor in = {NG_F32, 2, {2, 3}, x, {1, 0}};
  ng_tensor out[] = {{NG_F32, 2, {2, 3}, y, {1, 0}}, {NG_F32, 2, {2, 3}, z, {0}}};
  for (int backend = 0; backend < 2; backend++) {
    memset(y, 0, sizeof y);
    memset(z, 0, sizeof z);
    assert_int_equal(backend ? ng_kernel_run(k, &in, out, 1) : ng_interpret(g, &in, out, 0), NG_OK);
    assert_memory_equal(y, ((const float[]){2, 8, 4, 10, 6, 12}), sizeof y);
    assert_memory_equal(z, ((const float[]){1, 2, 3, 4, 5, 6}), sizeof z);
  }
  assert_true(ng_tensor_get(&out[0], 1) == 4); // [0, 1]
  const ng_tensor by_rows = {NG_F32, 2, {2, 3}, x, {0}};
  assert_int_equal(ng_kernel_run(k, &by_rows, out, 1), NG_USAGE);
  const ng_tensor spelt_out[] = {out[0], {NG_F32, 2, {2, 3}, z, {0, 1}}};
  assert_int_equal(ng_kernel_run(k, &in, (ng_tensor *)spelt_out, 1), NG_OK);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// 1 to 6 by rows is the same in [2, 3] and [3, 2], wherever it lies; y is x transposed, z a constant.
static void reshapes_and_transposes_mind_orders(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\n"
                               "inputs: [{name: x, type: f32, shape: [2, 3], order: [1, 0]}]\n"
                               "constants: [{name: c, type: f32, shape: [2, 3], values: [1, 2, 3, 4, 5, 6]}]\n"
                               "nodes:\n"
                               "  - op: StaticReshape\n"
                               "    inputs: [x]\n"
                               "    outputs: [{name: r, shape: [3, 2], order: [1, 0]}]\n"
                               "    attributes: {shape: [3, 2], special_zero: false}\n"
                               "  - {op: StaticTranspose, inputs: [x], outputs: [y], attributes: {order: [1, 0]}}\n"
                               "  - {op: ReLU, inputs: [c], outputs: [{name: z, shape: [2, 3], order: [1, 0]}]}\n"
                               "outputs: [r, y, z]\n");
  ng_kernel *k = must_compile(ctx, g);
  float x[] = {1, 4, 2, 5, 3, 6}, r[6], y[6], z[6];
  const ng_tensor in = {NG_F32, 2, {2, 3}, x, {1, 0}};
  ng_tensor out[] = {{NG_F32, 2, {3, 2}, r, {1, 0}}, {NG_F32, 2, {3, 2}, y, {0}}, {NG_F32, 2, {2, 3}, z, {1, 0}}};
  for (int backend = 0; backend < 2; backend++) {
    assert_int_equal(backend ? ng_kernel_run(k, &in, out, 1) : ng_interpret(g, &in, out, 0), NG_OK);
    assert_memory_equal(r, ((const float[]){1, 3, 5, 2, 4, 6}), sizeof r);
    assert_memory_equal(y, ((const float[]){1, 4, 2, 5, 3, 6}), sizeof y);
    assert_memory_equal(z, ((const float[]){1, 4, 2, 5, 3, 6}), sizeof z);
  }
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void npy_files_hold_elements_whatever_their_order(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  char path[] = "/tmp/ngrad_api_test_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  float columns[] = {1, 4, 2, 5, 3, 6}, rows[] = {1, 2, 3, 4, 5, 6};
  const ng_tensor t = {NG_F32, 2, {2, 3}, columns, {1, 0}}, plain = {NG_F32, 2, {2, 3}, rows, {0}};
  const ng_tensor_info by_rows = {.type = NG_F32, .rank = 2, .extent = {2, 3}},
                       as_it_was = {.type = NG_F32, .rank = 2, .extent = {2, 3}, .order = {1, 0}},
                       wrong = {.type = NG_F32, .rank = 2, .extent = {2, 3}, .order = {1, 1}};
  ng_tensor back;
  ng_difference d;
  assert_int_equal(ng_tensor_write_npy(ctx, path, &t), NG_OK);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &by_rows, 0, &back), NG_OK);
  assert_memory_equal(back.data, rows, sizeof rows);
  ng_tensor_free(ctx, &back);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &as_it_was, 0, &back), NG_OK);
  assert_memory_equal(back.data, columns, sizeof columns);
  assert_int_equal(ng_tensor_compare(ctx, &back, &plain, 0, &d), NG_OK);
  back.order[0] = 0, back.order[1] = 7;
  assert_int_equal(ng_tensor_compare(ctx, &back, &plain, 0, &d), NG_USAGE);
  assert_int_equal(ng_tensor_write_npy(ctx, path, &back), NG_USAGE);
  ng_tensor_free(ctx, &back);
  assert_int_equal(ng_tensor_read_npy(ctx, path, &wrong, 0, &back), NG_USAGE);
  assert_int_equal(ng_tensor_new(ctx, &wrong, &back), NG_USAGE);
  unlink(path);
  ng_context_free(ctx);
}

static ng_difference compare(ng_context *ctx, ng_type type, const void *actual, const double *expected, int64_t count,
                             ng_status status) {
  union {
    const void *read;
    void *data;
  } a = {actual}, e = {expected};
  const ng_tensor actual_tensor = {type, 1, {count}, a.data}, expected_tensor = {NG_F64, 1, {count}, e.data};
  ng_difference d;
  assert_int_equal(ng_tensor_compare(ctx, &actual_tensor, &expected_tensor, -1, &d), status);
  return d;
}

static void an_element_near_zero_is_not_far_off(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  const float near[] = {3, -4, 0x1p-20F}, far[] = {3, -4, 0.5F}, same[] = {1, 0};
  ng_difference d = compare(ctx, NG_F32, near, (double[]){3, -4, 0}, 3, NG_OK);
  assert_true(d.largest_ulp > 1e30); // in units of the least subnormal
  assert_true(fabs(d.largest_error / (0x1p-20 / (5 / sqrt(3))) - 1) < 1e-9);
  d = compare(ctx, NG_F32, far, (double[]){3, -4, 0}, 3, NG_DIFFERENT);
  assert_true(fabs(d.largest_error / (0.5 / (5 / sqrt(3))) - 1) < 1e-9);
  assert_true(fabs(compare(ctx, NG_F32, near, (double[]){3, -5, 0}, 3, NG_DIFFERENT).largest_error - 0.2) < 1e-9);
  assert_true(compare(ctx, NG_F32, same, (double[]){1, 0}, 2, NG_OK).largest_error == 0);
  assert_true(isinf(compare(ctx, NG_F32, same, (double[]){0, 0}, 2, NG_DIFFERENT).largest_error));
  assert_true(isinf(compare(ctx, NG_F32, same, (double[]){NAN, 0}, 2, NG_DIFFERENT).largest_error));
  assert_true(compare(ctx, NG_F32, same, NULL, 0, NG_OK).largest_error == 0);
  ng_context_free(ctx);
}

static void distances_are_in_units_of_the_actual_type(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  const float next[] = {1, 0x1.000002p0F, -2};
  ng_difference d = compare(ctx, NG_F32, next, (double[]){1, 1, -2}, 3, NG_OK);
  assert_true(d.largest_ulp == 1);
  assert_int_equal(d.worst_element, 1);
  assert_true(d.tolerance == 1e-5);
  assert_true(fabs(d.relative_l2 / (0x1p-23 / sqrt(6)) - 1) < 1e-9);
  const uint16_t bf16_one[] = {0x3F81}, f16_one[] = {0x3C01}, f16_least[] = {0x0001};
  assert_true(compare(ctx, NG_BF16, bf16_one, (double[]){1}, 1, NG_OK).largest_ulp == 1);
  assert_true(compare(ctx, NG_F16, f16_one, (double[]){1}, 1, NG_OK).largest_ulp == 1);
  assert_true(compare(ctx, NG_F16, f16_least, (double[]){0x1p-25}, 1, NG_DIFFERENT).largest_ulp == 0.5);
  const float zero[] = {0};
  d = compare(ctx, NG_F32, zero, (double[]){0}, 1, NG_OK);
  assert_true(d.relative_l2 == 0 && d.largest_ulp == 0 && d.worst_element == -1);
  const float tiny[] = {0x1p-149F};
  d = compare(ctx, NG_F32, tiny, (double[]){0}, 1, NG_DIFFERENT);
  assert_true(isinf(d.relative_l2) && d.largest_ulp == 1);
  const double huge[] = {1e300, 1e300};
  d = compare(ctx, NG_F64, huge, (double[]){1e300, -1e300}, 2, NG_DIFFERENT);
  assert_true(fabs(d.relative_l2 - sqrt(2)) < 1e-12);
  compare(ctx, NG_F32, zero, (double[]){0}, 0, NG_OK);
  ng_context_free(ctx);
}

static void what_is_quantised_may_be_a_step_off(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  const int8_t s8[] = {100, -3};
  const uint8_t e4m3[] = {0x7E, 0x01, 0x40}, e5m2[] = {0x7B, 0x01}, u4[] = {0xF0}; // 448, 2^-9, 2; 57344, 2^-16; 0, 15
  ng_difference d = compare(ctx, NG_S8, s8, (double[]){101, -3}, 2, NG_OK);
  assert_true(d.largest_ulp == 1 && d.most_ulp == 1 && isinf(d.tolerance));
  assert_true(compare(ctx, NG_S8, s8, (double[]){102, -3}, 2, NG_DIFFERENT).largest_ulp == 2);
  assert_true(compare(ctx, NG_F8_E4M3, e4m3, (double[]){416, 0x1p-8, 2}, 3, NG_OK).largest_ulp == 1);
  assert_true(compare(ctx, NG_F8_E4M3, e4m3, (double[]){448, 0x3p-9, 2}, 3, NG_DIFFERENT).largest_ulp == 2);
  assert_true(compare(ctx, NG_F8_E4M3, e4m3, (double[]){448, 0x1p-9, 1.75}, 3, NG_DIFFERENT).largest_ulp == 2);
  assert_true(compare(ctx, NG_F8_E5M2, e5m2, (double[]){49152, 0}, 2, NG_OK).largest_ulp == 1);
  assert_true(compare(ctx, NG_U4, u4, (double[]){1, 14}, 2, NG_OK).largest_ulp == 1);
  assert_true(compare(ctx, NG_U4, u4, (double[]){2, 15}, 2, NG_DIFFERENT).largest_ulp == 2);
  assert_true(isinf(compare(ctx, NG_F32, (float[]){1}, (double[]){1}, 1, NG_OK).most_ulp));
  const ng_tensor a = {NG_S8, 1, {2}, (int8_t[]){100, 1}}, b = {NG_S8, 1, {2}, (int8_t[]){100, 2}};
  assert_int_equal(ng_tensor_compare(ctx, &a, &b, 0, &d), NG_DIFFERENT); // no tolerance is none
  ng_context_free(ctx);
}

static void what_is_not_finite_must_be_alike(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  const float nan[] = {1, NAN}, infinite[] = {1, INFINITY};
  assert_true(compare(ctx, NG_F32, nan, (double[]){1, NAN}, 2, NG_OK).largest_ulp == 0);
  assert_true(compare(ctx, NG_F32, infinite, (double[]){1, INFINITY}, 2, NG_OK).largest_ulp == 0);
  assert_true(compare(ctx, NG_F32, infinite, (double[]){1, 1e39}, 2, NG_OK).largest_ulp == 0);
  assert_true(isinf(compare(ctx, NG_F32, nan, (double[]){1, 2}, 2, NG_DIFFERENT).relative_l2));
  assert_true(isinf(compare(ctx, NG_F32, infinite, (double[]){1, -INFINITY}, 2, NG_DIFFERENT).largest_ulp));
  assert_int_equal(compare(ctx, NG_F32, infinite, (double[]){1, NAN}, 2, NG_DIFFERENT).worst_element, 1);
  float values[2] = {0};
  const ng_tensor two = {NG_F32, 1, {2}, values}, one = {NG_F32, 1, {1}, values};
  ng_difference d;
  assert_int_equal(ng_tensor_compare(ctx, &two, &one, -1, &d), NG_WRONG);
  assert_int_equal(ng_message_count(ctx), 1);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_data_is_the_same_everywhere),
      cmocka_unit_test(random_labels_are_classes),
      cmocka_unit_test(npy_files_come_back_as_they_went),
      cmocka_unit_test(tensors_lie_in_the_orders_that_the_graph_says),
      cmocka_unit_test(reshapes_and_transposes_mind_orders),
      cmocka_unit_test(npy_files_hold_elements_whatever_their_order),
      cmocka_unit_test(an_element_near_zero_is_not_far_off),
      cmocka_unit_test(distances_are_in_units_of_the_actual_type),
      cmocka_unit_test(what_is_quantised_may_be_a_step_off),
      cmocka_unit_test(what_is_not_finite_must_be_alike),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
