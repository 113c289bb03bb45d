// Schedules of products: how they are recognised, which factors are copied, and which sums are cut into blocks.
#include "ir/kernel/sum_order.h"
#include "ir/kernel/verify.h"
#include "tests/unit/schedule_case.h"

#include <stdio.h>

static const Loop *last_loop(const Schedule *s) {
  return &s->loops[s->nloops - 1];
}

// A product is recognised by its axes: as an operator, and as a sum of broadcast products in two orders.
static void products_are_found_however_they_are_spelled(void **state) {
  static const char *const spellings[] = {
      "{name: x, type: f32, shape: [96, 600]}\n  - {name: w, type: f32, shape: [600, 128]}\nnodes:\n"
      "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n",
      "{name: x, type: f32, shape: [96, 600, 1]}\n  - {name: w, type: f32, shape: [1, 600, 128]}\nnodes:\n"
      "  - {op: Multiply, inputs: [x, w], outputs: [p]}\n"
      "  - {op: ReduceSum, inputs: [p], outputs: [y], attributes: {axes: [1]}}\n",
      "{name: w, type: f32, shape: [600, 1, 128]}\n  - {name: x, type: f32, shape: [600, 96, 1]}\nnodes:\n"
      "  - {op: Multiply, inputs: [w, x], outputs: [p]}\n"
      "  - {op: ReduceSum, inputs: [p], outputs: [y], attributes: {axes: [0]}}\n",
  };
  (void)state;
  for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
    char text[1024];
    snprintf(text, sizeof text, "format: ngrad/1\nname: test\ninputs:\n  - %soutputs: [y]\n", spellings[i]);
    Lowered l = lower(text, &usual, false);
    const Loop *loop = last_loop(only_schedule(&l));
    assert_true(loop_has(loop, LOOP_COLUMNS) && loop_sums_in_lanes(loop) && loop->roots[0].order->is_fused);
    assert_int_equal(only_schedule(&l)->kernel->axes[loop_vector_axis(loop)].extent, 128);
    assert_int_equal(loop_runs(only_schedule(&l)->kernel, loop).middle_run, LONGEST_CHAIN);
    assert_int_equal(loop_totals(loop), TYPE_F32);
    assert_true(loop->rows > 1 && loop->columns > 0);
    lowered_deinit(&l);
  }
}

// The factor along whose lanes memory is strided is copied to panels, of whole vectors.
static void strided_factors_are_kept_in_panels(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [96, 50]}\n"
                    "  - {name: w, type: f32, shape: [130, 50]}\nnodes:\n"
                    "  - {op: MatMul, inputs: [x, w], outputs: [y], attributes: {transpose_b: true}}\noutputs: [y]\n",
                    &usual, false);
  const Schedule *s = only_schedule(&l);
  assert_int_equal(s->nloops, 2);
  assert_int_equal(s->temporaries[0].nelems, 144 * 50); // 130 columns in panels of 16
  const Access *a = &s->kernel->accesses[s->loops[0].roots[0].access];
  assert_int_equal(a->panel_axis - 1, loop_vector_axis(last_loop(s)));
  assert_int_equal(a->stride[a->panel_axis - 1], 50);
  assert_true(loop_has(&s->loops[0], LOOP_ROW_COPY)); // rows of w are dense
  lowered_deinit(&l);
}

// Vectors that stay in the L1 cache for all rows are read from their tensor: vectors of a short sum, unless their pitch
// maps them to few sets of this cache.
static void vectors_of_short_sums_are_not_copied(void **state) {
  static const struct {
    int length, columns, ncopies;
  } cases[] = {{64, 1000, 0}, {512, 1000, 0}, {513, 1000, 1}, {64, 1024, 1}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [64, %d]}\n"
             "  - {name: w, type: f32, shape: [%d, %d]}\nnodes:\n"
             "  - {op: MatMul, inputs: [x, w], outputs: [y]}\noutputs: [y]\n",
             cases[i].length, cases[i].length, cases[i].columns);
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    int ncopies = 0;
    for (size_t t = 0; t < s->ntemporaries; t++) ncopies += strcmp(s->temporaries[t].name, "w") == 0;
    assert_int_equal(ncopies, cases[i].ncopies);
    lowered_deinit(&l);
  }
}

// Neither factor of a long sum is copied if its elements along the sum are near each other; both are, with zeros behind
// them, if the sum has no whole blocks.
static void short_pitches_of_long_sums_are_not_copied(void **state) {
  static const struct {
    int length, columns, nloops; // loops: copies, sums of blocks, the sums of these
  } cases[] = {{4096, 96, 2}, {4099, 96, 4}, {4096, 832, 2}, {4096, 848, 4}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%d, 64]}\n"
             "  - {name: w, type: f32, shape: [%d, %d]}\nnodes:\n  - {op: MatMul, inputs: [x, w], outputs: [y], "
             "attributes: {transpose_a: true}}\noutputs: [y]\n",
             cases[i].length, cases[i].length, cases[i].columns);
    Lowered l = lower(text, &usual, false);
    assert_int_equal(only_schedule(&l)->nloops, cases[i].nloops);
    lowered_deinit(&l);
  }
}

// With few rows, each thread takes a block of columns of the factor that is read once, however few rows a step takes.
static void few_rows_share_columns(void **state) {
  static const struct {
    int rows, columns, block;
  } cases[] = {{2, 3072, 192}, {16, 3072, 192}, {16, 50257, 1733}, {48, 1000, 200}, {49, 3072, 3072}, {16, 3067, 3067}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%d, 768]}\n"
             "  - {name: w, type: f32, shape: [768, %d]}\nnodes:\n"
             "  - {op: MatMul, inputs: [x, w], outputs: [y]}\noutputs: [y]\n",
             cases[i].rows, cases[i].columns);
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    const Loop *loop = last_loop(s);
    assert_int_equal(s->kernel->axes[loop_vector_axis(loop)].extent, cases[i].block);
    if (cases[i].block < cases[i].columns)
      assert_true(loop_nblocks(s->kernel, loop) >= cases[i].columns / cases[i].block);
    assert_true(cases[i].rows > 2 || loop->vectors > 1);
    lowered_deinit(&l);
  }
}

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

static void must_add_alike(const Schedule *a, const Schedule *b) {
  assert_int_equal(a->nloops, b->nloops);
  for (size_t l = 0; l < a->nloops; l++) {
    assert_int_equal(a->loops[l].nroots, b->loops[l].nroots);
    for (size_t r = 0; r < a->loops[l].nroots; r++) {
      const SumOrder *x = a->loops[l].roots[r].order, *y = b->loops[l].roots[r].order;
      assert_true(x && y ? sum_order_equal(x, y) : !x && !y);
    }
  }
}

static const Loop *product_loop(const Schedule *s) {
  const Loop *found = NULL;
  for (size_t i = 0; i < s->nloops; i++)
    if (loop_has(&s->loops[i], LOOP_COLUMNS)) found = &s->loops[i];
  assert_non_null(found);
  return found;
}

// Rows that are contiguous, of a factor beyond the second-level cache, are fetched a step ahead if sums are short.
static void next_rows_are_fetched(void **state) {
  static const struct {
    int rows, length;
    bool is_transposed, fetches;
  } cases[] = {{8192, 64, false, true}, {1024, 64, false, false}, {8192, 640, false, false}, {8192, 64, true, false}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const int rows = cases[i].rows, length = cases[i].length;
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%d, %d]}\n"
             "  - {name: w, type: f32, shape: [%d, 32]}\nnodes:\n  - {op: MatMul, inputs: [x, w], outputs: [y], "
             "attributes: {transpose_a: %s}}\noutputs: [y]\n",
             cases[i].is_transposed ? length : rows, cases[i].is_transposed ? rows : length, length,
             cases[i].is_transposed ? "true" : "false");
    Lowered l = lower(text, &usual, false);
    assert_true(product_loop(only_schedule(&l))->fetches_rows == cases[i].fetches);
    lowered_deinit(&l);
  }
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

// The product of two matrices with K rows each, so that sums go over rows.
static Lowered lower_product(int rows, int length, int columns, const Target *target) {
  char text[512];
  snprintf(text, sizeof text,
           "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%d, %d]}\n"
           "  - {name: w, type: f32, shape: [%d, %d]}\n  - {name: b, type: f32, shape: [%d]}\nnodes:\n"
           "  - {op: MatMul, inputs: [x, w, b], outputs: [y], attributes: {transpose_a: true}}\noutputs: [y]\n",
           length, rows, length, columns, columns);
  return lower(text, target, false);
}

// A sum that is long beside its results is cut into blocks, of a length that divides it if there is a good one.
static void long_sums_are_cut_into_blocks(void **state) {
  static const struct {
    int rows, length, columns, block;
  } cases[] = {
      {64, 25088, 64, 512},    {64, 100000, 64, 500},    {8, 2048, 16, 512},
      {768, 8192, 768, 1024},  {1200, 9600, 1200, 1200}, // the sums of shorter blocks would be more than the factors
      {2048, 3072, 768, 3072},                           // short beside the results
      {64, 2047, 64, 2047},                              // short
      {64, 2053, 64, 685},                               // prime
      {64, 6002, 64, 3001},    {64, 10006, 64, 1001},    // 2 * 5003: neither is a good length
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Lowered l = lower_product(cases[i].rows, cases[i].length, cases[i].columns, &usual);
    const Schedule *s = only_schedule(&l);
    const Loop *product = product_loop(s), *last = &s->loops[s->nloops - 1];
    const AxisSet summed = loop_inner_axes(product) & ~(1U << loop_vector_axis(product));
    assert_int_equal(axes_nelems(s->kernel, summed), cases[i].block);
    assert_int_equal(loop_runs(s->kernel, product).middle_run, LONGEST_CHAIN);
    assert_int_equal(product == last, cases[i].block == cases[i].length);
    if (product != last) {
      const AxisSet blocks = loop_inner_axes(last) & ~(1U << loop_vector_axis(last));
      assert_true(loop_sums_in_lanes(last) && !loop_has(last, LOOP_COLUMNS));
      assert_int_equal(axes_nelems(s->kernel, blocks), (cases[i].length + cases[i].block - 1) / cases[i].block);
      assert_false(blocks & ~loop_outer_axes(product)); // they can run in parallel
    }
    lowered_deinit(&l);
  }
}

// Each block of a long sum reads columns of a factor that the caches have not seen; the first rows fetch the next ones.
static void columns_of_large_factors_are_fetched_ahead(void **state) {
  static const struct {
    int rows, length, columns;
    bool is_ahead;
  } cases[] = {{32, 25088, 96, true}, {32, 2048, 96, false}, {256, 25088, 256, false}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Lowered l = lower_product(cases[i].rows, cases[i].length, cases[i].columns, &usual);
    const Loop *loop = product_loop(only_schedule(&l));
    assert_int_equal(loop->ahead, cases[i].is_ahead ? loop->vectors * LANES : 0);
    lowered_deinit(&l);
  }
}

// A gradient by weights of a convolution of each channel by itself: the taps of a row share the loads of the gradient,
// the sum has blocks, and the channels parts, outside of the taps.
static void taps_of_single_channels_share_a_factor(void **state) {
  static const struct {
    int images, height, block;
  } cases[] = {{8, 28, 14 * 28}, {2, 14, 2 * 14 * 14}}; // the second is too short to have blocks
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

// With registers for the sums of all taps, these are the rows of a step.
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

static void target_does_not_decide_the_blocks_of_sums(void **state) {
  const Target other = {.isa = "scalar",
                        .vector_registers = 4,
                        .l1_nbytes = 16 << 10,
                        .l2_nbytes = 64 << 10,
                        .llc_nbytes = 64 << 10,
                        .threads = 1};
  (void)state;
  for (int length = 1023; length <= 6000; length += 711) {
    Lowered l = lower_product(40, length, 48, &usual), m = lower_product(40, length, 48, &other);
    const Schedule *a = only_schedule(&l), *b = only_schedule(&m);
    assert_int_equal(a->nloops, b->nloops);
    must_add_alike(a, b);
    lowered_deinit(&l);
    lowered_deinit(&m);
  }
}

// Where rows are neighbours in memory, their factor is copied to panels of rows, so that a step reads whole cache
// lines.
static void factors_of_rows_are_kept_in_panels(void **state) {
  (void)state;
  Lowered l = lower_product(272, 600, 240, &usual);
  const Schedule *s = only_schedule(&l);
  const Loop *product = product_loop(s);
  const Kernel *k = s->kernel;
  const Expr *e = &k->exprs[k->exprs[product->roots[0].expr].args[0]];
  const bool is_second = k->exprs[e->args[0]].axes >> loop_vector_axis(product) & 1;
  const Access *a = &k->accesses[k->exprs[e->args[is_second]].access];
  const int row = product->axes[product->nouter - 1], summed = product->axes[product->nouter];
  assert_null(a->value);
  assert_int_equal(a->stride[row], 1);
  assert_int_equal(a->stride[summed], k->axes[row].extent);
  assert_int_equal(k->axes[row].extent * k->axes[product->axes[product->nouter - 2]].extent, 272);
  lowered_deinit(&l);
}

// A step copies several rows, which are neighbours in a panel, and a block has whole steps.
static void panels_are_filled_by_several_rows(void **state) {
  (void)state;
  Lowered l = lower_product(300, 50, 130, &usual);
  const Schedule *s = only_schedule(&l);
  int ncopies = 0;
  for (size_t i = 0; i < s->nloops; i++) {
    const Loop *loop = &s->loops[i];
    if (s->kernel->accesses[loop->roots[0].access].panel_axis != loop_vector_axis(loop) + 1) continue;
    assert_true(loop->is_side && loop->rows > 1 && loop->cut.length % loop->rows == 0);
    ncopies++;
  }
  assert_int_equal(ncopies, 1);
  lowered_deinit(&l);
}

// Vectors lie along the results of a short sum, although they would be whole along more elements of a factor. Beside a
// long sum, results may be stored one by one.
static void results_of_short_sums_are_stored_as_vectors(void **state) {
  (void)state;
  for (int length = 200; length <= 600; length += 400) {
    Lowered l = lower_product(200, length, 64, &usual);
    const Schedule *s = only_schedule(&l);
    assert_int_equal(s->kernel->axes[loop_vector_axis(product_loop(s))].extent, length == 200 ? 64 : 200);
    assert_int_equal(s->nloops, 1); // factors of short rows are read where they are
    lowered_deinit(&l);
  }
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

// A loop that adds the sums of other blocks than were computed.
static void blocks_of_other_sums_are_found(void **state) {
  (void)state;
  Lowered l = lower_product(64, 8192, 64, &usual);
  const Schedule *s = only_schedule(&l);
  const Loop *product = product_loop(s);
  Text why;
  text_init(&why, &l.ctx->allocator);
  assert_true(schedule_verify(s, &why));
  for (size_t i = 0; i < product->nroots; i++) // the blocks leave a factor
    if (product->roots[i].kind == ROOT_STORE)
      product->roots[i].expr = s->kernel->exprs[s->kernel->exprs[product->roots[i].expr].args[0]].args[0];
  assert_false(schedule_verify(s, &why));
  assert_non_null(strstr(text_string(&why), "is not the value that the kernel specifies"));
  text_deinit(&why);
  lowered_deinit(&l);
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

// One block more than a multiple of the threads would cost the time of a whole block.
static void products_have_no_more_blocks_than_threads_share(void **state) {
  (void)state;
  static const char *const rows[] = {"1024", "256", "64", "1000"};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%s, 576]}\n"
             "  - {name: w, type: f32, shape: [576, 64]}\nnodes:\n  - {op: MatMul, inputs: [x, w], outputs: [y]}\n"
             "outputs: [y]\n",
             rows[i]);
    Lowered l = lower(text, &usual, false);
    const Schedule *s = only_schedule(&l);
    assert_in_range(loop_nblocks(s->kernel, last_loop(s)), usual.threads, 4 * usual.threads);
    lowered_deinit(&l);
  }
}

// A factor that pointwise nodes compute is computed while it is copied, once for each element of the copy. Outside of
// the tensor the copy has 0, not the formula of 0.
static void factors_are_computed_into_their_copies(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [2, 9, 8, 20]}\n"
                    "  - {name: b, type: f32, shape: [20]}\n  - {name: q, type: s8, shape: [3, 3, 20, 32]}\nnodes:\n"
                    "  - {op: Add, inputs: [x, b], outputs: [a]}\n"
                    "  - {op: Dequantize, inputs: [q], outputs: [w], attributes: {scales: [0.5], zps: [0], qtype: "
                    "per_tensor}}\n"
                    "  - {op: Convolution, inputs: [a, w], outputs: [y], attributes: {strides: [1, 1], "
                    "pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]}}\noutputs: [y]\n",
                    &usual, false);
  const Schedule *s = only_schedule(&l);
  const Kernel *k = s->kernel;
  assert_int_equal(s->nloops, 3); // copies of both factors, and the products
  assert_int_equal(s->temporaries[0].nelems + s->temporaries[1].nelems, 2 * 11 * 10 * 20 + 3 * 3 * 20 * 32);
  const Expr *product = &k->exprs[k->exprs[last_loop(s)->roots[0].expr].args[0]];
  for (int i = 0; i < 2; i++) assert_int_equal(k->exprs[product->args[i]].op, EXPR_LOAD);
  bool selects = false;
  for (size_t i = 0; i < 2; i++) selects |= k->exprs[s->loops[i].roots[0].expr].op == EXPR_SELECT;
  assert_true(selects);
  lowered_deinit(&l);
}

// A copy in the caches costs less than a kernel that stores a narrower type.
static void small_operands_of_narrow_types_are_computed_in_the_product(void **state) {
  (void)state;
  Lowered l = lower("format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: bf16, shape: [64, 104]}\n"
                    "  - {name: q, type: s8, shape: [104, 64]}\nnodes:\n"
                    "  - {op: Dequantize, inputs: [q], outputs: [d], attributes: {scales: [0.5], zps: [0], qtype: "
                    "per_tensor}}\n"
                    "  - {op: TypeCast, inputs: [d], outputs: [{name: w, type: bf16}]}\n"
                    "  - {op: MatMul, inputs: [x, w], outputs: [{name: y, type: bf16}]}\noutputs: [y]\n",
                    &usual, false);
  assert_int_equal(only_schedule(&l)->kernel->nnodes, 3);
  lowered_deinit(&l);
}

// Operands that something else needs, too, and operands that would be computed for each product, stay in memory.
static void operands_of_many_uses_are_kernels_of_their_own(void **state) {
  static const char *const graphs[] = {
      "nodes:\n  - {op: ReLU, inputs: [x], outputs: [a]}\n  - {op: MatMul, inputs: [a, w], outputs: [y]}\n"
      "outputs: [y, a]\n",
      "nodes:\n  - {op: ReLU, inputs: [x], outputs: [a]}\n  - {op: MatMul, inputs: [a, a], outputs: [y]}\n"
      "outputs: [y]\n",
      "nodes:\n  - {op: ReLU, inputs: [x], outputs: [a]}\n  - {op: MatMul, inputs: [a, w], outputs: [z]}\n"
      "  - {op: Add, inputs: [z, a], outputs: [y]}\noutputs: [y]\n",
      "nodes:\n  - {op: StaticReshape, inputs: [x], outputs: [i], attributes: {shape: [1, 8, 8, 64], special_zero: "
      "false}}\n"
      "  - {op: StaticReshape, inputs: [w], outputs: [k], attributes: {shape: [8, 8, 1, 64], special_zero: false}}\n"
      "  - {op: GELU, inputs: [i], outputs: [a]}\n"
      "  - {op: Convolution, inputs: [a, k], outputs: [y], attributes: {strides: [1, 1], pads_begin: [3, 3], "
      "pads_end: [4, 4], dilations: [1, 1], groups: 64}}\noutputs: [y]\n",
  };
  (void)state;
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [64, 64]}\n"
             "  - {name: w, type: f32, shape: [64, 64]}\n%s",
             graphs[i]);
    Lowered l = lower(text, &usual, false);
    assert_true(l.program->nkernels >= 2);
    lowered_deinit(&l);
  }
}

static size_t count_roots(const Loop *loop, RootKind kind) {
  size_t count = 0;
  for (size_t i = 0; i < loop->nroots; i++) count += loop->roots[i].kind == kind;
  return count;
}

// Sums over rows of the results are taken in the product's loop, in blocks that neither target nor extents decide.
static void sums_over_rows_are_taken_where_products_are(void **state) {
  static const char *const cases[] = {"8", "100", "1000", "25088"};
  static const Target wide = {.isa = "avx512",
                              .vector_registers = 32,
                              .l1_nbytes = 48 << 10,
                              .l2_nbytes = 2 << 20,
                              .llc_nbytes = 32 << 20,
                              .threads = 64};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%s, 60]}\n"
             "  - {name: h, type: f32, shape: [%s, 40]}\n  - {name: w, type: f32, shape: [60, 40]}\nnodes:\n"
             "  - {op: MatMul, inputs: [x, w], outputs: [da]}\n"
             "  - {op: ReLUBackward, inputs: [h, da], outputs: [dh], attributes: {use_dst: false}}\n"
             "  - {op: ReduceSum, inputs: [dh], outputs: [db], attributes: {axes: [0]}}\noutputs: [dh, db]\n",
             cases[i], cases[i]);
    Lowered l = lower(text, &usual, false), m = lower(text, &wide, false);
    const Loop *a = product_loop(only_schedule(&l)), *b = product_loop(only_schedule(&m));
    assert_int_equal(count_roots(a, ROOT_REDUCE_OUTER), 1);
    assert_int_equal(count_roots(a, ROOT_STORE), 1);
    assert_true(a->cut.length > 16 && a->cut.length <= LONGEST_CHAIN && !a->cut.few_work);
    must_add_alike(only_schedule(&l), only_schedule(&m));
    assert_int_not_equal(a->rows, b->rows);
    lowered_deinit(&l);
    lowered_deinit(&m);
  }
}

static Lowered lower_norm_of_convolution(const char *outputs) {
  char text[1024];
  snprintf(text, sizeof text,
           "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [2, 60, 60, 20]}\n"
           "  - {name: w, type: f32, shape: [3, 3, 20, 32]}\n  - {name: rm, type: f32, shape: [32]}\n"
           "  - {name: rv, type: f32, shape: [32]}\nnodes:\n"
           "  - {op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], "
           "pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]}}\n"
           "  - {op: BatchNormForwardTraining, inputs: [y, rm, rv], outputs: [z, nm, nv, m, v], attributes: {epsilon: "
           "1e-5, momentum: 0.1}}\noutputs: [%s]\n",
           outputs);
  return lower(text, &usual, false);
}

// Results that later sums need, too, are in memory once: where the graph's result is, or in a temporary.
static void results_are_loaded_again_from_where_they_are_stored(void **state) {
  (void)state;
  for (int is_output = 0; is_output < 2; is_output++) {
    Lowered l = lower_norm_of_convolution(is_output ? "z, m, v, y" : "z, m, v");
    const Schedule *s = only_schedule(&l);
    const Loop *product = product_loop(s);
    assert_int_equal(count_roots(product, ROOT_REDUCE_OUTER), 1);
    assert_int_equal(count_roots(product, ROOT_STORE), 1);
    assert_true(product != last_loop(s) && !loop_sums_in_lanes(last_loop(s)));
    for (size_t i = 0; i < product->nroots; i++) {
      const Root *root = &product->roots[i];
      if (root->kind == ROOT_STORE) assert_int_equal(s->kernel->accesses[root->access].value != NULL, is_output);
    }
    lowered_deinit(&l);
  }
}

// A loop that reads a result of the kernel before a loop has stored it.
static void results_that_are_read_too_early_are_found(void **state) {
  (void)state;
  Lowered l = lower_norm_of_convolution("z, m, v, y");
  Schedule *s = l.program->schedules[0];
  Text why;
  text_init(&why, &l.ctx->allocator);
  assert_true(schedule_verify(s, &why));
  Loop *product = &s->loops[product_loop(s) - s->loops];
  for (size_t i = 0; i < product->nroots; i++)
    if (product->roots[i].kind == ROOT_STORE) product->roots[i] = product->roots[--product->nroots];
  assert_false(schedule_verify(s, &why));
  assert_non_null(strstr(text_string(&why), "which no earlier loop stores"));
  text_deinit(&why);
  lowered_deinit(&l);
}

// Sums along the vector axis, sums over results of several kernels, and sums within groups of channels.
static void other_sums_are_kernels_of_their_own(void **state) {
  static const char *const graphs[] = {
      "  - {op: MatMul, inputs: [a, b], outputs: [y]}\n  - {op: SoftMax, inputs: [y], outputs: [z], attributes: {axis: "
      "-1}}\n",
      "  - {op: MatMul, inputs: [b, a], outputs: [y], attributes: {transpose_a: true, transpose_b: true}}\n"
      "  - {op: ReduceSum, inputs: [y], outputs: [z], attributes: {axes: [0, 1]}}\n",
      "  - {op: ConvolutionBackwardData, inputs: [x, w], outputs: [y], attributes: {strides: [2, 2], pads_begin: [1, "
      "1], pads_end: [1, 1], dilations: [1, 1], dst_shape: [2, 16, 16, 32]}}\n"
      "  - {op: ReduceSum, inputs: [y], outputs: [z], attributes: {axes: [0, 1, 2]}}\n",
      "  - {op: Convolution, inputs: [x, v], outputs: [y], attributes: {strides: [1, 1], pads_begin: [1, 1], pads_end: "
      "[1, 1], dilations: [1, 1], groups: 2}}\n"
      "  - {op: GroupNorm, inputs: [y], outputs: [z], attributes: {groups: 4, use_affine: false, keep_stats: false}}\n",
  };
  static const int nkernels[] = {2, 2, 5, 2};
  (void)state;
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    char text[2048];
    snprintf(
        text, sizeof text,
        "format: ngrad/1\nname: test\ninputs:\n  - {name: a, type: f32, shape: [96, 60]}\n"
        "  - {name: b, type: f32, shape: [60, 40]}\n  - {name: x, type: f32, shape: [2, 8, 8, 20]}\n"
        "  - {name: w, type: f32, shape: [3, 3, 32, 20]}\n  - {name: v, type: f32, shape: [3, 3, 10, 32]}\nnodes:\n"
        "%soutputs: [z, y]\n",
        graphs[i]);
    Lowered l = lower(text, &usual, false);
    assert_int_equal(l.program->nkernels, nkernels[i]);
    lowered_deinit(&l);
  }
}

// Gradient by weights: an iteration of a copy stores into all panels, and a step takes several iterations.
static void copies_store_several_rows_into_each_panel(void **state) {
  (void)state;
  Lowered l =
      lower("format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [300, 512]}\n"
            "  - {name: dy, type: f32, shape: [300, 640]}\nnodes:\n"
            "  - {op: MatMul, inputs: [x, dy], outputs: [dw], attributes: {transpose_a: true}}\noutputs: [dw]\n",
            &usual, false);
  const Schedule *s = only_schedule(&l);
  assert_int_equal(s->nloops, 3);
  for (size_t i = 0; i < 2; i++) {
    const Loop *loop = &s->loops[i];
    assert_int_equal(axes_nelems(s->kernel, loop_outer_axes(loop)), 300);
    assert_true(loop->rows > 1);
    assert_int_equal(loop->cut.length % loop->rows, 0);
  }
  lowered_deinit(&l);
}

// Short sums leave room for more columns of the factor of vectors in the caches.
static void steps_of_short_sums_take_more_columns(void **state) {
  static const int sums[] = {1024, 100, 8};
  int64_t least = 0;
  (void)state;
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%d, 768]}\n"
             "  - {name: dy, type: f32, shape: [%d, 9001]}\nnodes:\n"
             "  - {op: MatMul, inputs: [x, dy], outputs: [dw], attributes: {transpose_a: true}}\noutputs: [dw]\n",
             sums[i], sums[i]);
    Lowered l = lower(text, &usual, false);
    const Loop *loop = last_loop(only_schedule(&l));
    assert_true(loop->columns > least && loop->columns % ((int64_t)loop->vectors * LANES) == 0);
    least = loop->columns;
    lowered_deinit(&l);
  }
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

// An optimizer reads and writes many tensors beside a gradient, which is stored first; SGD does not.
static void sums_are_stored_before_many_tensors_are_combined(void **state) {
  (void)state;
  for (int columns = 128; columns <= 512; columns *= 4) // small results stay in the caches
    for (int is_adam = 0; is_adam < 2; is_adam++) {
      char text[1024];
      snprintf(text, sizeof text,
               "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [64, 1024]}\n"
               "  - {name: dy, type: f32, shape: [64, %d]}\n  - {name: w, type: f32, shape: [1024, %d]}\n"
               "  - {name: m, type: f32, shape: [1024, %d]}\n  - {name: v, type: f32, shape: [1024, %d]}\n"
               "  - {name: rate, type: f32, shape: []}\n  - {name: step, type: s32, shape: []}\nnodes:\n"
               "  - {op: MatMul, inputs: [x, dy], outputs: [dw], attributes: {transpose_a: true}}\n%soutputs: [next]\n",
               columns, columns, columns, columns,
               is_adam ? "  - {op: AdamW, inputs: [w, dw, m, v, rate, step], outputs: [next, mean, variance]}\n"
                       : "  - {op: SGD, inputs: [w, dw, rate], outputs: [next]}\n");
      Lowered l = lower(text, &usual, false);
      const Schedule *s = only_schedule(&l);
      assert_int_equal(product_loop(s) != last_loop(s), is_adam && columns == 512);
      lowered_deinit(&l);
    }
}

// A factor that few rows read from memory, in pieces of pages, is prefetched.
static void factors_in_many_pages_are_prefetched(void **state) {
  static const struct {
    int rows, columns;
    bool is_far;
  } cases[] = {{16, 3072, true}, {16, 1000, false}, {256, 3072, false}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [%d, 768]}\n"
             "  - {name: w, type: f32, shape: [768, %d]}\nnodes:\n"
             "  - {op: MatMul, inputs: [x, w], outputs: [y]}\noutputs: [y]\n",
             cases[i].rows, cases[i].columns);
    Lowered l = lower(text, &usual, false);
    assert_int_equal(last_loop(only_schedule(&l))->ahead > 0, cases[i].is_far);
    lowered_deinit(&l);
  }
}

// A step has no more rows than the first-level cache has ways if their factors are multiples of a page apart.
static void steps_have_few_rows_in_one_set(void **state) {
  static const struct {
    int length;
    bool is_aliased;
  } cases[] = {{1000, false}, {1024, true}, {1536, false}, {3072, true}};
  (void)state;
  Target target = usual;
  target.vector_registers = 32;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[512];
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: test\ninputs:\n  - {name: x, type: f32, shape: [1400, %d]}\n"
             "  - {name: w, type: f32, shape: [%d, 512]}\nnodes:\n"
             "  - {op: MatMul, inputs: [x, w], outputs: [y]}\noutputs: [y]\n",
             cases[i].length, cases[i].length);
    Lowered l = lower(text, &target, false);
    assert_int_equal(last_loop(only_schedule(&l))->rows, cases[i].is_aliased ? 8 : 14);
    lowered_deinit(&l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_of_short_sums_take_more_columns),
      cmocka_unit_test(scattered_results_are_stored_by_groups_of_columns),
      cmocka_unit_test(sums_are_stored_before_many_tensors_are_combined),
      cmocka_unit_test(factors_in_many_pages_are_prefetched),
      cmocka_unit_test(steps_have_few_rows_in_one_set),
      cmocka_unit_test(panels_are_filled_by_several_rows),
      cmocka_unit_test(copies_store_several_rows_into_each_panel),
      cmocka_unit_test(products_are_found_however_they_are_spelled),
      cmocka_unit_test(strided_factors_are_kept_in_panels),
      cmocka_unit_test(vectors_of_short_sums_are_not_copied),
      cmocka_unit_test(short_pitches_of_long_sums_are_not_copied),
      cmocka_unit_test(few_rows_share_columns),
      cmocka_unit_test(factors_of_rows_are_kept_in_panels),
      cmocka_unit_test(results_of_short_sums_are_stored_as_vectors),
      cmocka_unit_test(windows_are_copied_with_their_padding),
      cmocka_unit_test(vectors_lie_along_windows_of_few_channels),
      cmocka_unit_test(vectors_lie_along_the_longer_of_windows_and_channels),
      cmocka_unit_test(copies_of_windows_keep_what_is_dense),
      cmocka_unit_test(next_rows_are_fetched),
      cmocka_unit_test(next_windows_are_fetched),
      cmocka_unit_test(copies_that_are_read_elsewhere_are_found),
      cmocka_unit_test(long_sums_are_cut_into_blocks),
      cmocka_unit_test(columns_of_large_factors_are_fetched_ahead),
      cmocka_unit_test(taps_of_single_channels_share_a_factor),
      cmocka_unit_test(taps_of_a_window_are_rows_of_a_step),
      cmocka_unit_test(taps_of_single_planes_share_a_factor),
      cmocka_unit_test(target_does_not_decide_the_blocks_of_sums),
      cmocka_unit_test(blocks_of_other_sums_are_found),
      cmocka_unit_test(windows_of_one_image_are_copied),
      cmocka_unit_test(products_have_no_more_blocks_than_threads_share),
      cmocka_unit_test(factors_are_computed_into_their_copies),
      cmocka_unit_test(small_operands_of_narrow_types_are_computed_in_the_product),
      cmocka_unit_test(operands_of_many_uses_are_kernels_of_their_own),
      cmocka_unit_test(sums_over_rows_are_taken_where_products_are),
      cmocka_unit_test(results_are_loaded_again_from_where_they_are_stored),
      cmocka_unit_test(results_that_are_read_too_early_are_found),
      cmocka_unit_test(other_sums_are_kernels_of_their_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
