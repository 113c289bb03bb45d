// Schedules of products with other nodes: computed factors, sums over rows of the results, and results that are stored
// first.
#include "ir/kernel/verify.h"
#include "tests/unit/schedule_case.h"

#include <stdio.h>

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
  static const struct {
    const char *rows;
    int64_t block; // a 64th of the rows, rounded up to a multiple of 16, but 64 to 256
  } cases[] = {{"8", 64}, {"100", 64}, {"4096", 64}, {"4097", 80}, {"10000", 160}, {"25088", 256}};
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
             cases[i].rows, cases[i].rows);
    Lowered l = lower(text, &usual, false), m = lower(text, &wide, false);
    const Loop *a = product_loop(only_schedule(&l)), *b = product_loop(only_schedule(&m));
    assert_int_equal(count_roots(a, ROOT_REDUCE_OUTER), 1);
    assert_int_equal(count_roots(a, ROOT_STORE), 1);
    assert_int_equal(a->cut.length, cases[i].block);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(factors_are_computed_into_their_copies),
      cmocka_unit_test(small_operands_of_narrow_types_are_computed_in_the_product),
      cmocka_unit_test(operands_of_many_uses_are_kernels_of_their_own),
      cmocka_unit_test(sums_over_rows_are_taken_where_products_are),
      cmocka_unit_test(results_are_loaded_again_from_where_they_are_stored),
      cmocka_unit_test(results_that_are_read_too_early_are_found),
      cmocka_unit_test(other_sums_are_kernels_of_their_own),
      cmocka_unit_test(sums_are_stored_before_many_tensors_are_combined),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
