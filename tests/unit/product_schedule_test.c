// Schedules of products: how they are recognised, which factors are copied, and which sums are cut into blocks.
#include "ir/kernel/sum_order.h"
#include "ir/kernel/verify.h"
#include "tests/unit/schedule_case.h"

#include <stdio.h>

// A product is recognised by its axes: as an operator, and as a sum of broadcast products in two orders.
static void products_are_found_however_they_are_spelled(void **state) {
  static const char *const spellings[] = {
      "{name: x, type: f32, shape: [900, 3000]}\n  - {name: w, type: f32, shape: [3000, 972]}\nnodes:\n"
      "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n",
      "{name: x, type: f32, shape: [900, 3000, 1]}\n  - {name: w, type: f32, shape: [1, 3000, 972]}\nnodes:\n"
      "  - {op: Multiply, inputs: [x, w], outputs: [p]}\n"
      "  - {op: ReduceSum, inputs: [p], outputs: [y], attributes: {axes: [1]}}\n",
      "{name: w, type: f32, shape: [3000, 1, 972]}\n  - {name: x, type: f32, shape: [3000, 900, 1]}\nnodes:\n"
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
    assert_int_equal(only_schedule(&l)->kernel->axes[loop_vector_axis(loop)].extent, 972);
    assert_int_equal(loop_segments(loop).iterations, 1000); // three chains
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
  } cases[] = {{4096, 96, 2}, {5003, 96, 4}, {4096, 832, 2}, {4096, 848, 4}};
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

// With few steps of rows, threads divide the columns, too.
static void few_rows_share_columns(void **state) {
  static const struct {
    int rows, columns, block;
  } cases[] = {{2, 3072, 192},  {16, 3072, 96},    {16, 50257, 1733}, {48, 1000, 125},
               {49, 3072, 192}, {448, 3072, 1536}, {456, 3072, 3072}, {16, 3067, 3067}};
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

// A sum that is long beside its results is cut into its chains: of a length that divides it if there is a good one,
// else of 1024 products, the last one with zeros.
static void long_sums_are_cut_into_chains(void **state) {
  static const struct {
    int rows, length, columns, chain; // chain: 0: the whole sum
    bool is_cut;
  } cases[] = {
      {64, 25088, 64, 896, true},     {64, 100000, 64, 1000, true},   {8, 2048, 16, 1024, true},
      {768, 8192, 768, 1024, true},   {1200, 9600, 1200, 960, false}, // the chains' sums would be more than the factors
      {2048, 3072, 768, 1024, false},                                 // short beside the results
      {64, 2047, 64, 0, false},                                       // a single chain
      {64, 2053, 64, 1024, false},                                    // prime: half of the products would be of zeros
      {64, 6002, 64, 1024, true},     {64, 10006, 64, 1024, true},    // 2 * 3001, 2 * 5003: few zeros
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Lowered l = lower_product(cases[i].rows, cases[i].length, cases[i].columns, &usual);
    const Schedule *s = only_schedule(&l);
    const Loop *product = product_loop(s), *last = &s->loops[s->nloops - 1];
    const AxisSet summed = loop_inner_axes(product) & ~(1U << loop_vector_axis(product));
    assert_int_equal(axes_nelems(s->kernel, summed), cases[i].is_cut ? cases[i].chain : cases[i].length);
    assert_int_equal(loop_segments(product).iterations, cases[i].is_cut ? 0 : cases[i].chain);
    assert_int_equal(product != last, cases[i].is_cut);
    if (product != last) {
      const AxisSet blocks = loop_inner_axes(last) & ~(1U << loop_vector_axis(last));
      assert_true(loop_sums_in_lanes(last) && !loop_has(last, LOOP_COLUMNS));
      assert_int_equal(axes_nelems(s->kernel, blocks), (cases[i].length + cases[i].chain - 1) / cases[i].chain);
      assert_int_equal(loop_segments(last).iterations, 1); // adds each chain to a total
      assert_false(blocks & ~loop_outer_axes(product));    // they can run in parallel
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
    assert_true(loop->is_producer && loop->rows > 1 && loop->cut.length % loop->rows == 0);
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
    assert_int_equal(s->kernel->axes[loop_vector_axis(product_loop(s))].extent, length == 200 ? 32 : 200); // of 64
    assert_int_equal(s->nloops, 1); // factors of short rows are read where they are
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
      cmocka_unit_test(products_are_found_however_they_are_spelled),
      cmocka_unit_test(strided_factors_are_kept_in_panels),
      cmocka_unit_test(vectors_of_short_sums_are_not_copied),
      cmocka_unit_test(short_pitches_of_long_sums_are_not_copied),
      cmocka_unit_test(few_rows_share_columns),
      cmocka_unit_test(next_rows_are_fetched),
      cmocka_unit_test(long_sums_are_cut_into_chains),
      cmocka_unit_test(columns_of_large_factors_are_fetched_ahead),
      cmocka_unit_test(target_does_not_decide_the_blocks_of_sums),
      cmocka_unit_test(factors_of_rows_are_kept_in_panels),
      cmocka_unit_test(panels_are_filled_by_several_rows),
      cmocka_unit_test(results_of_short_sums_are_stored_as_vectors),
      cmocka_unit_test(blocks_of_other_sums_are_found),
      cmocka_unit_test(products_have_no_more_blocks_than_threads_share),
      cmocka_unit_test(copies_store_several_rows_into_each_panel),
      cmocka_unit_test(steps_of_short_sums_take_more_columns),
      cmocka_unit_test(factors_in_many_pages_are_prefetched),
      cmocka_unit_test(steps_have_few_rows_in_one_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
