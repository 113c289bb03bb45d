// Recomputation (passes/recompute/): a smaller workspace with the same bits.
#include "tests/unit/state_graph.h"

enum { NGRAPHS = 36, NGROUPS = 2, MOST_NODES = 24 };

static void run_into(Tensors *t, ng_context *ctx, ng_graph *g, const ng_options *options) {
  make_tensors(t, ctx, g);
  ng_kernel *k = ng_compile(g, options);
  assert_non_null(k);
  assert_int_equal(ng_kernel_run(k, t->in, t->out, 2), NG_OK);
  ng_kernel_free(k);
}

// Whether the graph's workspace can be as small; if so, checks its plan and bits.
static bool fits(ng_context *ctx, ng_graph *g, const Tensors *whole, size_t nbytes, bool no_fuse, const char *text) {
  const ng_options options = {.isa = "scalar", .memory_nbytes = nbytes, .no_fuse = no_fuse};
  size_t found, unshared;
  ng_messages_clear(ctx);
  ng_status status = ng_graph_workspace(g, &options, &found, &unshared);
  if (status != NG_OK) {
    assert_int_equal(status, NG_WRONG);
    assert_non_null(strstr(ng_messages_text(ctx, 0), "found at least"));
    return false;
  }
  assert_true(found <= nbytes);
  const bool is_recomputed = strstr(ng_messages_text(ctx, 0), "computed again"); // else another order of kernels did it
  verify_plan(g, &options, text);
  Tensors t;
  run_into(&t, ctx, g, &options);
  for (size_t i = 0; i < ng_graph_output_count(g); i++)
    if (!has_same_bits(&whole->out[i], &t.out[i]))
      fail_msg("with a workspace of at most %zu bytes, output %s differs\n%s", nbytes, ng_graph_output(g, i).name,
               text);
  free_tensors(&t, ctx, g);
  ng_kernel *k = ng_compile(g, &options);
  assert_non_null(k);
  run_both(ctx, g, k, text, 3);
  ng_kernel_free(k);
  return is_recomputed;
}

static void random_graphs_keep_their_bits(void **state) {
  (void)state;
  size_t nfit = 0;
  assert_true(use_quick_compiler(true));
  for (uint64_t seed = 100; seed < 100 + NGRAPHS; seed++) {
    Text text;
    text_init(&text, &system_allocator);
    make_graph(&text, seed, NGROUPS, MOST_NODES);
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, text_string(&text));
    const ng_options whole_options = {.isa = "scalar", .no_fuse = seed % 3 != 0};
    size_t nbytes, unshared;
    Tensors whole;
    assert_int_equal(ng_graph_workspace(g, &whole_options, &nbytes, &unshared), NG_OK);
    run_into(&whole, ctx, g, &whole_options);
    for (size_t by = 1; by <= 8; by *= 2)
      if (nbytes > 64 * by)
        nfit +=
            fits(ctx, g, &whole, nbytes - (by == 1 ? 1 : nbytes * by / 16), whole_options.no_fuse, text_string(&text));
    free_tensors(&whole, ctx, g);
    ng_graph_free(g);
    ng_context_free(ctx);
    text_deinit(&text);
  }
  assert_true(use_quick_compiler(false));
  if (nfit < 4) fail_msg("recomputation made the workspace of only %zu graphs smaller, expected at least 4", nfit);
}

// By hand. Each value takes NBYTES, e is the caller's. While c is made from b, a lives for e: 3 values. With a made
// again before e, there are never more than 2.
enum { NBYTES = 4096 };
static const char chain[] = "format: ngrad/1\nname: chain\ninputs: [{name: x, type: f32, shape: [1024]}]\nnodes:\n"
                            "  - {op: Tanh, inputs: [x], outputs: [a]}\n"
                            "  - {op: Exp, inputs: [a], outputs: [b]}\n"
                            "  - {op: ReduceSum, inputs: [b], outputs: [s], attributes: {axes: [0], keep_dims: true}}\n"
                            "  - {op: Subtract, inputs: [b, s], outputs: [c]}\n"
                            "  - {op: Multiply, inputs: [c, b], outputs: [d]}\n"
                            "  - {op: Multiply, inputs: [d, a], outputs: [e]}\noutputs: [e]\n";

static void must_have_warned(ng_context *ctx, const char *begin) {
  assert_int_equal(ng_message_count(ctx), 1);
  const ng_message m = ng_message_at(ctx, 0);
  if (strncmp(m.text, begin, strlen(begin)) != 0) assert_string_equal(m.text, begin);
  assert_false(m.is_error);
  ng_messages_clear(ctx);
}

static void a_chain_shrinks_to_its_least(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, chain);
  size_t nbytes, unshared;
  ng_options options = {.isa = "scalar", .no_fuse = 1};
  assert_int_equal(ng_graph_workspace(g, &options, &nbytes, &unshared), NG_OK);
  assert_int_equal(nbytes, 3 * NBYTES + 64);
  options.memory_nbytes = nbytes; // it fits as it is
  assert_int_equal(ng_graph_workspace(g, &options, &nbytes, &unshared), NG_OK);
  assert_int_equal(ng_message_count(ctx), 0);
  options.memory_nbytes = nbytes - 1;
  assert_int_equal(ng_graph_workspace(g, &options, &nbytes, &unshared), NG_OK);
  assert_int_equal(nbytes, 2 * NBYTES + 64);
  must_have_warned(ctx, "the workspace is 8256 bytes instead of 12352 (33.2 % less), as 1 value is computed again");
  options.memory_nbytes = (size_t)2 * NBYTES;
  assert_int_equal(ng_graph_workspace(g, &options, &nbytes, &unshared), NG_WRONG);
  must_have_said(ctx,
                 "expected a workspace of at most 8192 bytes, found at least 8256, even if values are computed again; "
                 "most are in use during Subtract (line 8)");
  ng_graph_free(g);
  ng_context_free(ctx);
}

// A training step by hand. The order in which kernels free most takes more than the graph's own, as the products'
// temporaries live beside more values then.
static const char step[] = "format: ngrad/1\nname: step\ninputs:\n  - {name: x, type: f32, shape: [4, 6]}\n"
                           "  - {name: target, type: f32, shape: [4, 3]}\nstate:\n"
                           "  - {name: b, type: f32, shape: [8], init: zeros}\n"
                           "  - {name: w, type: f32, shape: [8, 3], init: zeros}\n"
                           "  - {name: v, type: f32, shape: [6, 8], init: zeros}\nnodes:\n"
                           "  - {op: MatMul, inputs: [x, v, b], outputs: [h]}\n"
                           "  - {op: Tanh, inputs: [h], outputs: [a]}\n"
                           "  - {op: MatMul, inputs: [a, w], outputs: [y]}\n"
                           "  - {op: SoftMax, inputs: [y], outputs: [p], attributes: {axis: 1}}\n"
                           "  - {op: Subtract, inputs: [p, target], outputs: [d]}\n"
                           "  - {op: MatMul, inputs: [d, w], outputs: [da], attributes: {transpose_b: true}}\n"
                           "  - {op: MatMul, inputs: [a, d], outputs: [dw], attributes: {transpose_a: true}}\n"
                           "  - {op: Multiply, inputs: [da, a], outputs: [dh]}\n"
                           "  - {op: ReduceSum, inputs: [dh], outputs: [db], attributes: {axes: [0]}}\n"
                           "  - {op: MatMul, inputs: [x, dh], outputs: [dv], attributes: {transpose_a: true}}\n"
                           "  - {op: Add, inputs: [v, dv], outputs: [v_next]}\n"
                           "  - {op: Add, inputs: [b, db], outputs: [b_next]}\n"
                           "  - {op: Add, inputs: [w, dw], outputs: [w_next]}\n"
                           "outputs: []\nupdates: {v: v_next, w: w_next, b: b_next}\n";

static void what_fits_without_a_ceiling_fits_below_it(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, step);
  size_t nbytes, found, unshared;
  ng_options options = {.isa = "scalar"};
  assert_int_equal(ng_graph_workspace(g, &options, &nbytes, &unshared), NG_OK);
  options.memory_nbytes = nbytes;
  assert_int_equal(ng_graph_workspace(g, &options, &found, &unshared), NG_OK);
  assert_int_equal(found, nbytes);
  assert_int_equal(ng_message_count(ctx), 0);
  options.memory_nbytes = 1;
  assert_int_equal(ng_graph_workspace(g, &options, &found, &unshared), NG_WRONG);
  char least[256];
  snprintf(
      least, sizeof least,
      "expected a workspace of at most 1 bytes, found at least %zu, even if values are computed again; most are in "
      "use during MatMul (line 16), Multiply (line 18), ReduceSum (line 19)",
      nbytes);
  must_have_said(ctx, least);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// The norm's kernel is in f64: f and q are computed from n before it is rounded. While c is made, q
// lives for e.
static const char wide[] = "format: ngrad/1\nname: wide\ninputs: [{name: x, type: f32, shape: [64, 33]}]\n"
                           "constants: [{name: half, type: f32, shape: [], value: 0.7}]\nnodes:\n"
                           "  - {op: ReduceL2, inputs: [x], outputs: [n], attributes: {axes: [1], keep_dims: true}}\n"
                           "  - {op: Add, inputs: [n, half], outputs: [f]}\n"
                           "  - {op: Divide, inputs: [x, f], outputs: [q]}\n"
                           "  - {op: ReduceSum, inputs: [q], outputs: [s], attributes: {axes: [0, 1]}}\n"
                           "  - {op: Multiply, inputs: [x, s], outputs: [b]}\n"
                           "  - {op: MatMul, inputs: [b, b], outputs: [c], attributes: {transpose_b: true}}\n"
                           "  - {op: MatMul, inputs: [c, x], outputs: [d]}\n"
                           "  - {op: Multiply, inputs: [d, q], outputs: [e]}\noutputs: [e, n]\n";

// Fits into less memory, with the same bits.
static void must_shrink(const char *text) {
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  const ng_options options = {.isa = "scalar"};
  size_t nbytes, unshared, nfit = 0;
  Tensors whole;
  assert_int_equal(ng_graph_workspace(g, &options, &nbytes, &unshared), NG_OK);
  run_into(&whole, ctx, g, &options);
  for (size_t i = 1; i <= 8; i++) nfit += fits(ctx, g, &whole, nbytes - nbytes * i / 16, false, text);
  assert_true(nfit);
  free_tensors(&whole, ctx, g);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void unrounded_operands_stay_unrounded(void **state) {
  (void)state;
  must_shrink(wide);
}

// The kernel of the mask m has the sums of p. A kernel that computes m again has none.
static void masks_beside_sums_are_computed_again(void **state) {
  (void)state;
  must_shrink("format: ngrad/1\nname: masked\ninputs:\n  - {name: x, type: f32, shape: [4, 16, 16]}\n"
              "  - {name: v, type: f32, shape: [4, 16, 16]}\n"
              "constants: [{name: half, type: f32, shape: [], value: 0.5}]\nnodes:\n"
              "  - {op: GenIndex, inputs: [x], outputs: [row], attributes: {axis: 1}}\n"
              "  - {op: GenIndex, inputs: [x], outputs: [column], attributes: {axis: 2}}\n"
              "  - {op: GreaterEqual, inputs: [row, column], outputs: [m]}\n"
              "  - {op: Select, inputs: [m, x, half], outputs: [s]}\n"
              "  - {op: SoftMax, inputs: [s], outputs: [p], attributes: {axis: 2}}\n"
              "  - {op: MatMul, inputs: [p, v], outputs: [c]}\n"
              "  - {op: MatMul, inputs: [c, v], outputs: [d]}\n"
              "  - {op: Select, inputs: [m, d, half], outputs: [e]}\noutputs: [e]\n");
}

static void an_open_extent_needs_a_number(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\nname: open\ndims: {N: 8}\n"
                               "inputs: [{name: x, type: f32, shape: [N, 4]}]\nnodes:\n"
                               "  - {op: Tanh, inputs: [x], outputs: [a]}\noutputs: [a]\n");
  char *source, *header;
  assert_int_equal(ng_emit(g, &(ng_options){.memory_nbytes = 64}, &source, &header), NG_WRONG);
  must_have_said(ctx, "the size of the workspace depends on N, expected a number for it: --dim N=8");
  ng_graph_free(g);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_graphs_keep_their_bits),
      cmocka_unit_test(a_chain_shrinks_to_its_least),
      cmocka_unit_test(what_fits_without_a_ceiling_fits_below_it),
      cmocka_unit_test(unrounded_operands_stay_unrounded),
      cmocka_unit_test(masks_beside_sums_are_computed_again),
      cmocka_unit_test(an_open_extent_needs_a_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
