// Plans are small: the largest tensor that a kernel reads, writes or reduces to bounds the memory of its temporaries,
// for all ways to broadcast and for all values of open dims.
#include "frontend/api/handles.h"
#include "ir/graph/open_dims.h"
#include "passes/pipeline.h"
#include "tests/random_graph.h"
#include "tests/unit/api_case.h"

#include <stdio.h>
#include <stdlib.h>

enum { NDIMS = 3, MOST_NODES = 9, FACTOR = 24, FEW = 1 << 20 };

static const Target usual = {.isa = "avx2",
                             .vector_registers = 8,
                             .l1_nbytes = 32 << 10,
                             .l2_nbytes = 1 << 20,
                             .llc_nbytes = 32 << 20,
                             .threads = 4};

// Random graphs of values of rank 3; each axis of a value is full or has extent 1

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005U + 1442695040888963407U;
  return *state >> 33;
}

static void add_node(Text *t, uint64_t *state, int i, int nvalues) {
  static const char *const binary[] = {"Multiply", "Add", "Subtract"}, *const sums[] = {"ReduceSum", "ReduceMax"};
  static const char *const axes[] = {"0", "1", "2", "0, 1", "1, 2", "0, 2", "0, 1, 2"};
  const int a = (int)(next_random(state) % (uint64_t)nvalues), b = (int)(next_random(state) % (uint64_t)nvalues);
  switch (next_random(state) % 4) {
  case 0:
    text_format(t, "  - {op: %s, inputs: [v%d], outputs: [v%d], attributes: {axes: [%s], keep_dims: true}}\n",
                sums[next_random(state) % 2], nvalues - 1, i, axes[next_random(state) % 7]);
    return;
  case 1: text_format(t, "  - {op: Exp, inputs: [v%d], outputs: [v%d]}\n", nvalues - 1, i); return;
  default:
    text_format(t, "  - {op: %s, inputs: [v%d, v%d], outputs: [v%d]}\n", binary[next_random(state) % 3], a, b, i);
  }
}

static void make_graph(Text *t, uint64_t seed, bool is_open) {
  static const int extents[] = {3, 64, 700, 4096, 30000};
  uint64_t state = seed * 7919 + 1;
  int extent[NDIMS];
  for (int i = 0; i < NDIMS; i++) extent[i] = is_open ? 7 + 20 * i : extents[next_random(&state) % 5];
  text_format(t, "format: ngrad/1\nname: random\n");
  if (is_open) text_format(t, "dims: {A: %d, B: %d, C: %d}\n", extent[0], extent[1], extent[2]);
  text_add_string(t, "inputs:\n");
  for (int i = 0; i < NDIMS; i++) {
    text_format(t, "  - {name: v%d, type: f32, shape: [", i);
    for (int axis = 0; axis < NDIMS; axis++) {
      text_add_string(t, axis ? ", " : "");
      if (next_random(&state) % 2 == 0) text_add_string(t, "1");
      else if (is_open) text_format(t, "%c", "ABC"[axis]);
      else text_format(t, "%d", extent[axis]);
    }
    text_add_string(t, "]}\n");
  }
  const int nnodes = 2 + (int)(next_random(&state) % MOST_NODES);
  text_add_string(t, "nodes:\n");
  for (int i = 0; i < nnodes; i++) add_node(t, &state, NDIMS + i, NDIMS + i);
  const int other = NDIMS + (int)(next_random(&state) % (uint64_t)nnodes), last = NDIMS + nnodes - 1;
  text_format(t, other == last ? "outputs: [v%d]\n" : "outputs: [v%d, v%d]\n", last, other);
}

// Sizes at values of the dims

static int64_t chunks_at(const Graph *g, const Kernel *k, const Loop *loop, const int64_t *values) {
  const AxisSet cut = loop_cut_axes(loop);
  const int64_t total = open_number(g, axes_nelems(k, cut), axes_monomial(k, cut), values);
  const int64_t length = cut_length(&loop->cut, total);
  return (total + length - 1) / length;
}

// Bytes of a temporary. If it holds partial sums, sets *result to the bytes of their total.
static int64_t temporary_at(const Graph *g, const Schedule *s, const Temporary *t, const int64_t *values,
                            int64_t *result) {
  const int64_t nbytes = (int64_t)type_nbytes(t->type);
  const Kernel *k = s->kernel;
  *result = 0;
  if (t->reduction == EXPR_NONE) return open_number(g, t->nelems, t->monomial, values) * nbytes;
  const Loop *loop = &s->loops[t->loop];
  const AxisSet kept = loop_outer_axes(loop) & ~loop_cut_axes(loop);
  if (!loop_nblocks(k, loop)) return 0;
  const int64_t each = open_number(g, t->nelems / loop_nblocks(k, loop), t->monomial, values);
  const int64_t own = each * open_number(g, axes_nelems(k, kept), axes_monomial(k, kept), values);
  *result = own * (int64_t)sizeof(float);
  return own * chunks_at(g, k, loop, values) * nbytes;
}

static void must_be_small(const Program *p, const int64_t *values, const char *text) {
  const Graph *g = p->graph;
  for (size_t i = 0; i < p->nkernels; i++) {
    const Schedule *schedule = p->schedules[i];
    const Kernel *k = schedule->kernel;
    int64_t largest = 0, own = 0;
    for (size_t a = 0; a < k->naccesses; a++) {
      const Value *v = k->accesses[a].value;
      const int64_t nelems = v ? open_number(g, shape_nelems(&v->shape), shape_monomial(&v->shape), values) : 0;
      if (nelems * 4 > largest) largest = nelems * 4;
    }
    for (size_t t = 0; t < schedule->ntemporaries; t++) {
      int64_t result;
      own += temporary_at(g, schedule, &schedule->temporaries[t], values, &result);
      if (result > largest) largest = result;
    }
    if (own <= FACTOR * largest + FEW) continue;
    print_error("%s", text);
    for (size_t d = 0; d < g->ndims; d++) print_error("# %s = %lld\n", g->dims[d]->name, (long long)values[d]);
    fail_msg("kernel %zu: temporaries of %lld bytes, but the largest tensor has %lld bytes", i, (long long)own,
             (long long)largest);
  }
}

static bool must_have_small_plan(uint64_t seed, bool is_open) {
  static const int64_t values[][NDIMS] = {
      {7, 27, 47},       {1, 1, 1},         {30000, 3, 3},     {3, 30000, 3},      {3, 3, 30000},
      {3, 30000, 30000}, {30000, 3, 30000}, {30000, 30000, 3}, {4096, 4096, 4096}, {30000, 30000, 30000}};
  ng_context *ctx = new_context();
  Text text;
  text_init(&text, &system_allocator);
  make_graph(&text, seed, is_open);
  ng_graph *g = must_read(ctx, text_string(&text));
  Graph *open = is_open ? graph_with_open_dims(g->graph, &ctx->diagnostics) : NULL;
  Graph *clone = graph_clone(open ? open : g->graph);
  PassContext c = {.diagnostics = &ctx->diagnostics, .allocator = &ctx->allocator, .target = &usual};
  assert_true(pipeline_run(clone, &c));
  Program *p = pipeline_lower(clone, &c); // NULL: some extent cannot stay open
  for (size_t i = 0; p && i < (is_open ? sizeof values / sizeof *values : 1); i++)
    must_be_small(p, values[i], text_string(&text));
  const bool has_program = p != NULL;
  program_free(p);
  graph_free(clone);
  graph_free(open);
  ng_graph_free(g);
  text_deinit(&text);
  ng_context_free(ctx);
  return has_program;
}

static void plans_are_small_beside_tensors(void **state) {
  (void)state;
  const uint64_t count = number_of_graphs(3000);
  for (uint64_t seed = 0; seed < count; seed++) assert_true(must_have_small_plan(seed, false));
}

static void plans_with_open_extents_are_small(void **state) {
  (void)state;
  const uint64_t count = number_of_graphs(3000);
  size_t nprograms = 0;
  for (uint64_t seed = 0; seed < count; seed++) nprograms += must_have_small_plan(seed, true);
  assert_true(nprograms > count / 2);
}

// The sum over the middle of a product spread over three axes: its workspace is a copy of one factor, in panels.
static void a_spread_product_is_summed_without_partial_sums(void **state) {
  (void)state;
  static const char text[] = "format: ngrad/1\nname: spread\n"
                             "inputs: [{name: a, type: f32, shape: [4096, 4096, 1]},"
                             " {name: b, type: f32, shape: [1, 4096, 4096]}]\n"
                             "nodes:\n  - {op: Multiply, inputs: [a, b], outputs: [q]}\n"
                             "  - {op: ReduceSum, inputs: [q], outputs: [y], attributes: {axes: [1]}}\n"
                             "outputs: [y]\n";
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  size_t nbytes, unshared;
  assert_int_equal(ng_graph_workspace(g, NULL, &nbytes, &unshared), NG_OK);
  assert_in_range(nbytes, 0, ((size_t)4096 * 4096 * sizeof(float)) + (1 << 16));
  ng_graph_free(g);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_are_small_beside_tensors),
      cmocka_unit_test(plans_with_open_extents_are_small),
      cmocka_unit_test(a_spread_product_is_summed_without_partial_sums),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
