// Pooling and its gradient, for windows of every kind: sum(y * dy) and sum(x * dx) are equal, since average pooling is
// linear, and max pooling copies elements that its gradient finds again.
#include "tests/unit/api_case.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct Windows {
  int extent, kernel, stride, dilation, pads_begin, pads_end;
  const char *auto_pad, *rounding;
} Windows;

// The graph with outputs y, the sum of y * dy and the sum of x * dx. The other axis has windows of its own.
static void write_graph(const Windows *w, bool is_max, bool is_ncx, bool excludes, char *text, size_t nbytes) {
  char windows[256], own[64], shape[64], src_shape[96] = "";
  snprintf(shape, sizeof shape, is_ncx ? "[2, 3, %d, 5]" : "[2, %d, 5, 3]", w->extent);
  if (!is_max) snprintf(src_shape, sizeof src_shape, ", src_shape: %s", shape);
  snprintf(windows, sizeof windows,
           "kernel: [%d, 2], strides: [%d, 1], pads_begin: [%d, 0], pads_end: [%d, 1], auto_pad: %s, data_format: %s",
           w->kernel, w->stride, w->pads_begin, w->pads_end, w->auto_pad, is_ncx ? "NCX" : "NXC");
  if (is_max) snprintf(own, sizeof own, "dilations: [%d, 2]", w->dilation);
  else snprintf(own, sizeof own, "exclude_pad: %s", excludes ? "true" : "false");
  snprintf(text, nbytes,
           "format: ngrad/1\n"
           "inputs:\n"
           "  - {name: x, type: f64, shape: %s}\n"
           "  - {name: dy, type: f64, shape: [_, _, _, _]}\n"
           "nodes:\n"
           "  - {op: %s, inputs: [x], outputs: [y], attributes: {%s, %s, rounding_type: %s}}\n"
           "  - {op: %sBackward, inputs: [%s], outputs: [dx], attributes: {%s, %s%s}}\n"
           "  - {op: Multiply, inputs: [y, dy], outputs: [ydy], attributes: {auto_broadcast: none}}\n"
           "  - {op: Multiply, inputs: [x, dx], outputs: [xdx], attributes: {auto_broadcast: none}}\n"
           "  - {op: ReduceSum, inputs: [ydy], outputs: [forward], attributes: {axes: [0, 1, 2, 3]}}\n"
           "  - {op: ReduceSum, inputs: [xdx], outputs: [backward], attributes: {axes: [0, 1, 2, 3]}}\n"
           "outputs: [y, forward, backward]\n",
           shape, is_max ? "MaxPool" : "AvgPool", windows, own, w->rounding, is_max ? "MaxPool" : "AvgPool",
           is_max ? "x, dy" : "dy", windows, own, src_shape);
}

// The result of MaxPool for a window without elements depends on no element.
static bool has_empty_window(const ng_tensor *y) {
  for (size_t i = 0; i < ng_tensor_nbytes(y) / sizeof(double); i++)
    if (ng_tensor_get(y, (int64_t)i) == -DBL_MAX) return true;
  return false;
}

// Returns whether there are such windows.
static bool products_are_equal(ng_context *ctx, const char *text) {
  Data data;
  ng_graph *g = read_text(ctx, text);
  if (!g) {
    const char *message = ng_message_at(ctx, 0).text; // no window fits, or one is without elements
    if (!strstr(message, "of a window") && !strstr(message, "window has no elements"))
      fail_msg("%s\n%s", message, text);
    ng_messages_clear(ctx);
    return false;
  }
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  assert_int_equal(ng_interpret(g, data.in, data.out, 0), NG_OK);
  const double forward = ng_tensor_get(&data.out[1], 0), backward = ng_tensor_get(&data.out[2], 0);
  const bool is_empty = has_empty_window(&data.out[0]);
  if (!is_empty && !(fabs(forward - backward) < 1e-12))
    fail_msg("sums of forward and backward differ: %.17g and %.17g\n%s", forward, backward, text);
  data_free(&data, ctx);
  ng_graph_free(g);
  return !is_empty;
}

static size_t count_equal(const Windows *w) {
  size_t count = 0;
  ng_context *ctx = new_context();
  for (int variant = 0; variant < 6; variant++) {
    char text[2048];
    write_graph(w, variant < 2, variant & 1, variant < 4, text, sizeof text);
    count += products_are_equal(ctx, text);
  }
  ng_context_free(ctx);
  return count;
}

static void padding_strides_and_rounding_fit_the_gradient(void **state) {
  (void)state;
  size_t count = 0;
  for (int at = 0; at < 4 * 3 * 3 * 2 * 2 * 3 * 2; at++) {
    const Windows w = {.extent = 1 + at % 4 * 2,
                       .kernel = 1 + at / 4 % 3,
                       .stride = 1 + at / 12 % 3,
                       .dilation = 1 + at / 36 % 2,
                       .pads_begin = at / 72 % 2,
                       .pads_end = at / 144 % 3,
                       .auto_pad = "None",
                       .rounding = at / 432 % 2 ? "ceil" : "floor"};
    count += count_equal(&w);
  }
  assert_true(count > 3000);
}

static void automatic_padding_fits_the_gradient(void **state) {
  (void)state;
  static const char *const auto_pads[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
  size_t count = 0;
  for (int at = 0; at < 4 * 4 * 3 * 2 * 3; at++) {
    const Windows w = {.extent = 4 + at % 4,
                       .kernel = 1 + at / 4 % 4,
                       .stride = 1 + at / 16 % 3,
                       .dilation = 1,
                       .pads_begin = 3,
                       .rounding = at / 48 % 2 ? "ceil" : "floor",
                       .auto_pad = auto_pads[at / 96 % 3]};
    count += count_equal(&w);
  }
  assert_true(count > 1000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(padding_strides_and_rounding_fit_the_gradient),
      cmocka_unit_test(automatic_padding_fits_the_gradient),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
