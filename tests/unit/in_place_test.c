// Updates in place: a call in which states and their updates share memory leaves the same bits as a call with separate
// memory.
#include "tests/unit/state_graph.h"

enum { NGRAPHS = 4, NGROUPS = 12 };

static void check_graph(const char *text, const ng_options *options) {
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  ng_kernel *k = ng_compile(g, options);
  assert_non_null(k);
  for (int threads = 1; threads <= 3; threads++) run_both(ctx, g, k, text, threads);
  verify_plan(g, options, text);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void updates_in_place_leave_the_same_bits(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < NGRAPHS; seed++) {
    Text text;
    text_init(&text, &system_allocator);
    make_graph(&text, seed, NGROUPS, 8);
    assert_true(use_quick_compiler(true));
    check_graph(text_string(&text), &(ng_options){.isa = "scalar", .no_fuse = seed % 2});
    assert_true(use_quick_compiler(false));
    if (seed % 2 == 0) check_graph(text_string(&text), NULL);
    text_deinit(&text);
  }
}

// Plans, worked out by hand

static size_t workspace_of(const char *text, const char *updates) {
  ng_context *ctx = new_context();
  size_t nbytes, unshared;
  char whole[1024];
  snprintf(whole, sizeof whole,
           "format: ngrad/1\nname: g\ninputs:\n  - {name: x, type: f32, shape: [64, 32]}\nstate:\n"
           "  - {name: a, type: f32, shape: [32, 32], init: zeros}\n"
           "  - {name: b, type: f32, shape: [32, 32], init: zeros}\n"
           "nodes:\n%soutputs: []\nupdates: {%s}\n",
           text, updates);
  ng_graph *g = must_read(ctx, whole);
  assert_int_equal(ng_graph_workspace(g, &(ng_options){.isa = "scalar"}, &nbytes, &unshared), NG_OK);
  verify_plan(g, NULL, whole);
  ng_graph_free(g);
  ng_context_free(ctx);
  return nbytes;
}

static void an_update_takes_workspace_only_where_its_state_is_read_too_late(void **state) {
  (void)state;
  enum { NBYTES = 32 * 32 * 4 };
  const char *next = "  - {op: Tanh, inputs: [a], outputs: [t]}\n",
             *none = "  - {op: Tanh, inputs: [b], outputs: [t]}\n";
  assert_int_equal(workspace_of(next, "a: t"), 0);
  assert_int_equal(
      workspace_of("  - {op: StaticTranspose, inputs: [a], outputs: [t], attributes: {order: [1, 0]}}\n", "a: t"),
      NBYTES);
  assert_int_equal(workspace_of(none, "a: b"), 0);                // no call changes b
  assert_int_equal(workspace_of(none, "a: b, b: t"), NBYTES);     // t is stored, and b copied to a
  assert_int_equal(workspace_of(next, "a: t, b: a"), NBYTES);     // the same the other way round
  assert_int_equal(workspace_of(none, "a: b, b: a"), 2 * NBYTES); // a swap
  assert_int_equal(workspace_of("  - {op: Multiply, inputs: [a, a], outputs: [t]}\n", "a: t, b: t"), 0);
}

static void only_a_state_and_its_own_update_may_share_memory(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\nname: g\ninputs:\n  - {name: x, type: f32, shape: [8]}\nstate:\n"
                               "  - {name: a, type: f32, shape: [8], init: zeros}\n"
                               "  - {name: b, type: f32, shape: [8], init: zeros}\n"
                               "nodes:\n  - {op: Add, inputs: [a, x], outputs: [t]}\n"
                               "  - {op: Add, inputs: [b, t], outputs: [u]}\noutputs: [u]\nupdates: {a: t, b: u}\n");
  ng_kernel *k = must_compile(ctx, g);
  Tensors t = {0};
  ng_tensor outputs[MOST_TENSORS];
  make_tensors(&t, ctx, g);
  alias_updates(g, &t, outputs);
  assert_null(ng_kernel_refusal(k, t.in, outputs));
  outputs[0].data = t.in[1].data; // an output that is no update
  assert_non_null(ng_kernel_refusal(k, t.in, outputs));
  outputs[0].data = t.out[0].data;
  outputs[1].data = t.in[2].data; // another state's
  assert_non_null(ng_kernel_refusal(k, t.in, outputs));
  outputs[1].data = (float *)t.in[1].data + 1;
  assert_non_null(ng_kernel_refusal(k, t.in, outputs));
  assert_int_equal(ng_interpret(g, t.in, t.out, 0), NG_OK);
  free_tensors(&t, ctx, g);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(updates_in_place_leave_the_same_bits),
      cmocka_unit_test(an_update_takes_workspace_only_where_its_state_is_read_too_late),
      cmocka_unit_test(only_a_state_and_its_own_update_may_share_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
