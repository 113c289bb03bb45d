// Layouts, and tensors that have them.
#include "ir/graph/tensor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ORDER(...) ((Layout){{__VA_ARGS__}})

static void an_order_has_each_axis_once(void **state) {
  (void)state;
  assert_true(layout_is_valid(&ORDER(0), 0));
  assert_true(layout_is_valid(&ORDER(0), -1));
  assert_true(layout_is_valid(&ORDER(0), MAX_RANK));
  assert_true(layout_is_valid(&ORDER(1, 0), 2));
  assert_true(layout_is_valid(&ORDER(0, 2, 3, 1), 4));
  assert_true(layout_is_valid(&ORDER(7, 6, 5, 4, 3, 2, 1, 0), 8));
  assert_false(layout_is_valid(&ORDER(1, 0), 1));
  assert_false(layout_is_valid(&ORDER(1, 0), -1));
  assert_false(layout_is_valid(&ORDER(1, 0), 3)); // axis 0 twice
  assert_false(layout_is_valid(&ORDER(1, 1, 0), 3));
  assert_false(layout_is_valid(&ORDER(0, 0, 1), 3));
  assert_false(layout_is_valid(&ORDER(0, 2, 3, 1), 3));
  assert_false(layout_is_valid(&ORDER(0, 2, 4, 1), 4));
  assert_false(layout_is_valid(&ORDER(0, 255), 2));
}

static void row_major_is_all_zeros(void **state) {
  (void)state;
  Layout o = layout_of_axes((const int[]){0, 1, 2}, 3);
  assert_memory_equal(&o, &ORDER(0), sizeof o);
  assert_true(layout_is_row_major(&o));
  assert_int_equal(layout_axis(&o, 2), 2);
  o = layout_of_axes((const int[]){0, 2, 1}, 3);
  assert_false(layout_is_row_major(&o));
  assert_int_equal(layout_axis(&o, 1), 2);
}

static void strides_follow_the_order(void **state) {
  (void)state;
  int64_t stride[4];
  const int64_t extent[] = {2, 3, 4, 5}, empty[] = {2, 3, 0, 5};
  layout_strides(&ORDER(0), 4, extent, stride);
  assert_memory_equal(stride, ((const int64_t[]){60, 20, 5, 1}), sizeof stride);
  layout_strides(&ORDER(0, 2, 3, 1), 4, extent, stride);
  assert_memory_equal(stride, ((const int64_t[]){60, 1, 15, 3}), sizeof stride);
  layout_strides(&ORDER(0, 2, 3, 1), 4, empty, stride);
  assert_memory_equal(stride, ((const int64_t[]){15, 1, 15, 3}), sizeof stride);
}

// 0 to 5 as [2, 3], in memory column by column.
static void elements_are_where_the_order_says(void **state) {
  (void)state;
  float by_rows[] = {0, 1, 2, 3, 4, 5}, by_columns[6] = {0}, again[6] = {0};
  const Tensor rows = {TYPE_F32, 2, {2, 3}, by_rows, {{0}}}, columns = {TYPE_F32, 2, {2, 3}, by_columns, {{1, 0}}},
               back = {TYPE_F32, 2, {2, 3}, again, {{0}}};
  assert_int_equal(tensor_offset(&rows, 4), 4);
  assert_int_equal(tensor_offset(&columns, 4), 3); // [1, 1]
  tensor_copy(&rows, &columns);
  assert_memory_equal(by_columns, ((const float[]){0, 3, 1, 4, 2, 5}), sizeof by_columns);
  tensor_copy(&columns, &back);
  assert_memory_equal(again, by_rows, sizeof again);
}

// 1 to 6 as [2, 3] and its transpose in memory, two a byte.
static void halves_of_bytes_follow_the_order(void **state) {
  (void)state;
  uint8_t by_rows[] = {0x21, 0x43, 0x65}, by_columns[] = {0, 0, 0};
  const Tensor rows = {TYPE_U4, 2, {2, 3}, by_rows, {{0}}}, columns = {TYPE_U4, 2, {2, 3}, by_columns, {{1, 0}}};
  assert_int_equal(tensor_nbytes(&rows), 3);
  tensor_copy(&rows, &columns);
  assert_memory_equal(by_columns, ((uint8_t[]){0x41, 0x52, 0x63}), 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(halves_of_bytes_follow_the_order),
      cmocka_unit_test(an_order_has_each_axis_once),
      cmocka_unit_test(row_major_is_all_zeros),
      cmocka_unit_test(strides_follow_the_order),
      cmocka_unit_test(elements_are_where_the_order_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
