// Schedules of products that read through windows: what is copied, where vectors lie, and the taps of depthwise sums.
#include "ir/kernel/verify.h"
#include "tests/unit/schedule_case.h"

#include <stdio.h>

// A convolution reads a copy of src with its padding, so that no load has a condition, whatever its layout.
static void windows_are_copied_with_their_padding(void **state) {
  (void)state;
  for (int is_ncx = 0; is_ncx < 2; is_ncx++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%s]}\n"
             "  - {name: w, type: f32, shape: [3, 3, 20, 32]}\nnodes:\n"
             "  - {op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [2, 1], pads_begin: [1, 1], "
             "pads_end: [0, 1], dilations: [1, 1], data_format: %s}}\noutputs: [y]\n",
             is_ncx ? "2, 20, 9, 8" : "2, 9, 8, 20", is_ncx ? "NCX" : "NXC");
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    const Kernel *k = s->kernel;
    assert_int_equal(s->nloops, 2);
    assert_int_equal(s->temporaries[0].nelems, 2 * 9 * 10 * 20); // rows of stride 2: from -1 to 7; columns -1 to 8
    assert_true(loop_has(last_loop(s), LOOP_COLUMNS) && last_loop(s)->rows > 1);
    const Expr *product = &k->exprs[k->exprs[last_loop(s)->roots[0].expr].args[0]];
    for (int i = 0; i < 2; i++) assert_false(access_has_conditions(k, &k->accesses[k->exprs[product->args[i]].access]));
    lowered_deinit(&l);
  }
}

// With fewer channels than a vector has lanes, and a tensor that is dense along places, vectors lie along these: all
// channels share them, and they go forwards through the copy, whose summed channels are inside of its rows.
static void vectors_lie_along_windows_of_few_channels(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\ninputs:\n  - {name: dy, type: f32, shape: [2, 20, 9, 50]}\n"
                    "  - {name: w, type: f32, shape: [20, 3, 3, 5]}\nnodes:\n"
                    "  - {op: ConvolutionBackwardData, inputs: [dy, w], outputs: [dx], attributes: {strides: [1, 1], "
                    "pads_begin: [1, 2], pads_end: [1, 2], dilations: [1, 1], data_format: NCX, weights_format: OIX, "
                    "dst_shape: [2, 3, 9, 50]}}\noutputs: [dx]\n",
                    &usual, false);
  const Schedule *s = only_schedule(&l);
  const Kernel *k = s->kernel;
  const Loop *loop = last_loop(s);
  assert_true(loop_has(loop, LOOP_COLUMNS));
  assert_int_equal(loop->rows, 3);
  assert_int_equal(k->axes[loop_vector_axis(loop)].extent, 50);
  assert_int_equal(s->temporaries[0].nelems, 2 * 11 * 20 * 54);
  const Expr *product = &k->exprs[k->exprs[loop->roots[0].expr].args[0]];
  const Access *dy = &k->accesses[k->exprs[product->args[0]].access];
  assert_int_equal(dy->stride[loop_vector_axis(loop)], 1);
  assert_false(access_has_conditions(k, dy));
  lowered_deinit(&l);
}

// The extent of the vector axis of a convolution of images of this width, with 20 channels in.
static int64_t vector_extent(int batch, int channels, int width) {
  char text[1024];
  snprintf(text, sizeof text,
           "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%d, 20, 9, %d]}\n"
           "  - {name: w, type: f32, shape: [%d, 20, 3, 3]}\nnodes:\n"
           "  - {op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], pads_begin: [1, 1], "
           "pads_end: [1, 1], dilations: [1, 1], data_format: NCX, weights_format: OIX}}\noutputs: [y]\n",
           batch, width, channels);
  Lowered l = lower(text, &usual, false);
  const Schedule *s = only_schedule(&l);
  const int64_t extent = s->kernel->axes[loop_vector_axis(last_loop(s))].extent;
  assert_true(loop_has(last_loop(s), LOOP_COLUMNS));
  lowered_deinit(&l);
  return extent;
}

// Vectors lie along a window with many columns where there are few channels, however many images there are.
static void vectors_lie_along_the_longer_of_windows_and_channels(void **state) {
  (void)state;
  assert_int_equal(vector_extent(2, 17, 50), 50);
  assert_int_equal(vector_extent(2, 17, 20), 17);
  assert_int_equal(vector_extent(2, 33, 50), 33);
  assert_int_equal(vector_extent(64, 5, 50), 50);
  assert_int_equal(vector_extent(64, 5, 20), 20);
  assert_int_equal(vector_extent(64, 17, 50), 50);
}

// If a copy exceeds the L2 cache, the elements that the windows of the next row of places add are prefetched; forwards,
// and backwards along the window.
static void next_windows_are_fetched(void **state) {
  static const struct {
    const char *convolution;
    int channels, prefetch;
  } cases[] = {
      {"Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], ", 64, 1},
      {"Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], ", 4, 0},
      {"ConvTranspose, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], ", 64, 1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int n = cases[i].channels;
    const bool is_transposed = strncmp(cases[i].convolution, "ConvT", 5) == 0;
    char text[1024];
    snprintf(
        text, sizeof text,
        "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [2, %d, 64, 64]}\n"
        "  - {name: w, type: f32, shape: [%d, %d, 3, 3]}\nnodes:\n  - {op: %spads_begin: [1, 1], pads_end: [1, 1], "
        "dilations: [1, 1], data_format: NCX, weights_format: %s}}\noutputs: [y]\n",
        n, is_transposed ? n : 3, is_transposed ? 3 : n, cases[i].convolution, is_transposed ? "IOX" : "OIX");
    Lowered l = lower(text, &usual, false);
    assert_int_equal(product_loop(only_schedule(&l))->prefetch, cases[i].prefetch);
    lowered_deinit(&l);
  }
}

// A copy that is read one row off, within its memory, is not what the kernel specifies.
static void copies_that_are_read_elsewhere_are_found(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [2, 9, 8, 20]}\n"
                    "  - {name: w, type: f32, shape: [3, 3, 20, 32]}\nnodes:\n"
                    "  - {op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [2, 2], "
                    "pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]}}\noutputs: [y]\n",
                    &usual, false);
  const Schedule *s = only_schedule(&l);
  const Kernel *k = s->kernel;
  const Expr *product = &k->exprs[k->exprs[last_loop(s)->roots[0].expr].args[0]];
  Access *a = &k->accesses[k->exprs[product->args[0]].access];
  if (!a->nbounds) a = &k->accesses[k->exprs[product->args[1]].access];
  Text why;
  text_init(&why, &l.ctx->allocator);
  assert_true(schedule_verify(s, &why));
  for (size_t b = 0; b < a->nbounds; b++) {
    Bound *bound = &a->bounds[b];
    for (int axis = 0; axis < k->naxes; axis++) { // backwards: from the last index to the first
      if (!bound->factor[axis]) continue;
      bound->offset += bound->factor[axis] * (k->axes[axis].extent - 1);
      a->offset += a->stride[axis] * (k->axes[axis].extent - 1);
      bound->factor[axis] = -bound->factor[axis];
      a->stride[axis] = -a->stride[axis];
      break;
    }
  }
  assert_false(schedule_verify(s, &why));
  assert_non_null(strstr(text_string(&why), "is not the value that the kernel specifies"));
  text_deinit(&why);
  lowered_deinit(&l);
}

// A gradient by weights of a convolution of each channel by itself: the taps of a row share the loads of the gradient,
// the sum has blocks, and the channels parts, outside of the taps.
static void taps_of_single_channels_share_a_factor(void **state) {
  static const struct {
    int images, height, block;
  } cases[] = {{8, 28, 28 * 28}, {2, 14, 2 * 14 * 14}}; // chains of an image; the second sum is a single chain
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%d, %d, %d, 96]}\n"
             "  - {name: dy, type: f32, shape: [%d, %d, %d, 96]}\n"
             "nodes:\n  - {op: ConvolutionBackwardWeights, inputs: [x, dy], outputs: [dw], attributes: {strides: [1, "
             "1], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1], groups: 96, data_format: NXC, "
             "weights_format: XIO, weights_shape: [3, 3, 1, 96]}}\noutputs: [dw]\n",
             cases[i].images, cases[i].height, cases[i].height, cases[i].images, cases[i].height, cases[i].height);
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    const Kernel *k = s->kernel;
    const Loop *loop = &s->loops[0];
    assert_true(loop_has(loop, LOOP_TAPS) && loop->roots[0].order->is_fused && loop_row_axes(k, loop));
    assert_int_equal(loop->rows, 3);
    assert_int_equal(k->axes[loop_vector_axis(loop)].extent, 2 * LANES);
    assert_int_equal(axes_nelems(k, loop_inner_axes(loop)), cases[i].block * 2 * LANES);
    assert_int_equal(k->axes[loop->axes[loop->nouter - 2]].extent, 3); // the other taps are innermost, too
    assert_int_equal(s->nloops, cases[i].block < cases[i].images * cases[i].height * cases[i].height ? 2 : 1);
    lowered_deinit(&l);
  }
}

// With registers for the sums of all taps, these are the rows of a micro-kernel.
static void taps_of_a_window_are_rows_of_a_step(void **state) {
  Target many = usual;
  many.vector_registers = 32;
  (void)state;
  Lowered l =
      lower("format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [2, 15, 14, 96]}\n"
            "  - {name: dy, type: f32, shape: [2, 8, 14, 96]}\nnodes:\n"
            "  - {op: ConvolutionBackwardWeights, inputs: [x, dy], outputs: [dw], attributes: {strides: [2, 1], "
            "pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1], groups: 96, data_format: NXC, "
            "weights_format: XIO, weights_shape: [3, 3, 1, 96]}}\noutputs: [dw]\n",
            &many, false);
  const Schedule *s = only_schedule(&l);
  const Kernel *k = s->kernel;
  const Loop *loop = &s->loops[0];
  assert_int_equal(loop->rows, 9);
  assert_int_equal(loop->vectors, 2);
  assert_int_equal(axes_nelems(k, loop_row_axes(k, loop)), 9);
  const Access *x = &k->accesses[k->exprs[k->exprs[k->exprs[loop->roots[0].expr].args[0]].args[0]].access];
  const struct { int64_t begin, end; } interior[] = {{1, 7}, {1, 13}}; // windows of row 7 reach row 15
  assert_int_equal(x->nbounds, 2);
  for (size_t i = 0; i < sizeof interior / sizeof *interior; i++) {
    const AxisSet pixels = bound_axes(&x->bounds[i]) & loop_inner_axes(loop);
    int64_t begin = 0, end = 0;
    bound_interior(k, &x->bounds[i], __builtin_ctz(pixels), &begin, &end);
    assert_int_equal(begin, interior[i].begin);
    assert_int_equal(end, interior[i].end);
  }
  lowered_deinit(&l);
}

// The same where the vectors lie along the pixels of a row, whose sum they end in.
static void taps_of_single_planes_share_a_factor(void **state) {
  (void)state;
  Lowered l =
      lower("format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [2, 24, 29, 29]}\n"
            "  - {name: dy, type: f32, shape: [2, 24, 15, 15]}\nnodes:\n"
            "  - {op: ConvolutionBackwardWeights, inputs: [x, dy], outputs: [dw], attributes: {strides: [2, 2], "
            "pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1], groups: 24, data_format: NCX, "
            "weights_format: OIX, weights_shape: [24, 1, 3, 3]}}\noutputs: [dw]\n",
            &usual, false);
  const Schedule *s = only_schedule(&l);
  const Loop *loop = last_loop(s);
  assert_int_equal(s->nloops, 1);
  assert_true(loop_has(loop, LOOP_TAPS) && !loop_sums_in_lanes(loop) && loop_row_axes(s->kernel, loop));
  assert_int_equal(loop->rows, 3);
  assert_int_equal(s->kernel->axes[loop_vector_axis(loop)].extent, 15);
  lowered_deinit(&l);
}

// The gradient by weights has rows of channels, which are neighbours (NXC), or sums pixels that are (NCX). Copies keep
// them so.
static void copies_of_windows_keep_what_is_dense(void **state) {
  (void)state;
  for (int is_ncx = 0; is_ncx < 2; is_ncx++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%s]}\n"
             "  - {name: dy, type: f32, shape: [%s]}\nnodes:\n"
             "  - {op: ConvolutionBackwardWeights, inputs: [x, dy], outputs: [dw], attributes: {strides: [1, 1], "
             "pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1], weights_shape: [%s], data_format: %s, "
             "weights_format: %s}}\noutputs: [dw]\n",
             is_ncx ? "8, 24, 28, 28" : "8, 28, 28, 24", is_ncx ? "8, 40, 28, 28" : "8, 28, 28, 40",
             is_ncx ? "40, 24, 3, 3" : "3, 3, 24, 40", is_ncx ? "NCX" : "NXC", is_ncx ? "OIX" : "XIO");
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    const Kernel *k = s->kernel;
    const Loop *product = product_loop(s);
    const Expr *e = &k->exprs[k->exprs[product->roots[0].expr].args[0]];
    const AxisSet summed = loop_inner_axes(product) & ~(1U << loop_vector_axis(product));
    assert_in_range(axes_nelems(k, summed), 256, 2048);
    for (int i = 0; i < 2; i++) assert_false(access_has_conditions(k, &k->accesses[k->exprs[e->args[i]].access]));
    lowered_deinit(&l);
  }
}

// Also of one image, whose slowest axis is a window's.
static void windows_of_one_image_are_copied(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [1, 9, 8, 20]}\n"
                    "  - {name: w, type: f32, shape: [3, 3, 20, 32]}\nnodes:\n"
                    "  - {op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], "
                    "pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]}}\noutputs: [y]\n",
                    &usual, false);
  const Schedule *s = only_schedule(&l);
  assert_int_equal(s->nloops, 2);
  assert_int_equal(s->temporaries[0].nelems, 11 * 10 * 20);
  assert_true(last_loop(s)->rows > 1); // no conditions
  lowered_deinit(&l);
}

// But results that are far apart are stored for one group of columns at a time, for all rows of a block: with a stride
// of 2, channels first, they are next to each other neither along channels nor along places.
static void scattered_results_are_stored_by_groups_of_columns(void **state) {
  (void)state;
  for (int stride = 1; stride <= 2; stride++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: dy, type: f32, shape: [2, 64, 14, 14]}\n"
             "  - {name: w, type: f32, shape: [64, 128, 3, 3]}\nnodes:\n"
             "  - {op: ConvolutionBackwardData, inputs: [dy, w], outputs: [dx], attributes: {strides: [%d, %d], "
             "pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1], data_format: NCX, weights_format: OIX, "
             "dst_shape: [2, 128, %d, %d]}}\noutputs: [dx]\n",
             stride, stride, 14 * stride, 14 * stride);
    Lowered l = lower(text, &usual, false);
    assert_int_equal(l.program->nkernels, stride * stride);
    for (size_t i = 0; i < l.program->nkernels; i++) {
      const Loop *loop = last_loop(l.program->schedules[i]);
      assert_true(loop_has(loop, LOOP_COLUMNS));
      assert_int_equal(loop->columns == (int64_t)loop->vectors * LANES, stride == 2);
    }
    lowered_deinit(&l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows_are_copied_with_their_padding),
      cmocka_unit_test(vectors_lie_along_windows_of_few_channels),
      cmocka_unit_test(vectors_lie_along_the_longer_of_windows_and_channels),
      cmocka_unit_test(next_windows_are_fetched),
      cmocka_unit_test(copies_that_are_read_elsewhere_are_found),
      cmocka_unit_test(taps_of_single_channels_share_a_factor),
      cmocka_unit_test(taps_of_a_window_are_rows_of_a_step),
      cmocka_unit_test(taps_of_single_planes_share_a_factor),
      cmocka_unit_test(copies_of_windows_keep_what_is_dense),
      cmocka_unit_test(windows_of_one_image_are_copied),
      cmocka_unit_test(scattered_results_are_stored_by_groups_of_columns),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
