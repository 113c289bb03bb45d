// Random valid graphs: printing and reading, inference from less, the interpreter, kernels, and compiled code that
// must agree with the interpreter. tests/random_graph.h makes them.
//
// NGRAD_RANDOM_GRAPHS=1000 takes so many, NGRAD_RANDOM_SEED=7 begins with that seed.
#include "backends/interpreter/interpreter.h"
#include "frontend/api/ngrad.h"
#include "frontend/yaml/yaml.h"
#include "ir/operators/window.h"
#include "passes/lower/aliases.h"
#include "passes/lower/pieces.h"
#include "passes/pipeline.h"
#include "tests/noise.h"
#include "tests/random_seeds.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT = 800, COMPILED = 40, MOST_VALUES = 256 };

static const RandomGraphOptions options = {.most_nodes = 12, .most_nelems = 20000};

static Graph *make(uint64_t seed) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = random_graph(&system_allocator, seed, &options, &d);
  if (d.nerrors) print_error("seed %llu: %s\n", (unsigned long long)seed, d.items[d.count - 1].message);
  assert_non_null(g);
  assert_true(g->nvalues < MOST_VALUES);
  diagnostics_deinit(&d);
  return g;
}

static Text print(const Graph *g) {
  Text t;
  text_init(&t, &system_allocator);
  yaml_print(g, &t);
  assert_false(t.out_of_memory);
  return t;
}

// Gives named extents their numbers, and infers again.
static void bind(Graph *g) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  if (!graph_bind_dims(g, &d) || !graph_infer(g, &d) || !graph_verify(g, &d)) fail_msg("%s", d.items[0].message);
  diagnostics_deinit(&d);
}

static void every_operator_and_name_occurs(void **state) {
  (void)state;
  size_t noccurrences[OP_COUNT + 64] = {0};
  for (RandomSeeds s = random_seeds(UINT64_C(2) * COUNT); random_next_seed(&s);) {
    Graph *g = make(s.seed);
    for (size_t i = 0; i < g->nnodes; i++) {
      const Node *node = g->nodes[i];
      noccurrences[node->signature ? OP_COUNT + (node->signature - signatures) : (ptrdiff_t)node->op->id]++;
    }
    graph_free(g);
  }
  for (size_t i = 0; i < OP_COUNT + nsignatures && random_seeds_are_usual(); i++)
    if (noccurrences[i] < 20 && (i >= OP_COUNT || random_is_drawn((OperatorId)i)))
      fail_msg("%s: only %zu nodes of random graphs have this operator",
               i < OP_COUNT ? operators[i].name : signatures[i - OP_COUNT].full_name, noccurrences[i]);
}

// A draw depends on no other rows: without a row, it is the same, unless it was of that row.
static void a_row_changes_no_draw_of_others(void **state) {
  (void)state;
  enum { DRAWS = 300 };
  size_t nwon = 0;
  for (uint64_t draw = 0; draw < DRAWS; draw++) {
    const OperatorName drawn = random_draw(draw, NULL);
    if (!drawn.op) continue; // and none has won
    for (size_t i = 0; i < OP_COUNT + nsignatures; i++) {
      const char *name = i < OP_COUNT ? operators[i].name : signatures[i - OP_COUNT].full_name;
      const OperatorName without = random_draw(draw, name);
      const bool has_won = strcmp(drawn.signature ? drawn.signature->full_name : drawn.op->name, name) == 0;
      assert_int_equal(without.op == drawn.op && without.signature == drawn.signature, !has_won);
      nwon += has_won;
    }
  }
  assert_int_equal(nwon, DRAWS);
}

static void a_seed_gives_one_graph(void **state) {
  (void)state;
  Graph *a = make(1), *b = make(1), *c = make(2);
  Text text_a = print(a), text_b = print(b), text_c = print(c);
  assert_string_equal(text_string(&text_a), text_string(&text_b));
  assert_string_not_equal(text_string(&text_a), text_string(&text_c));
  text_deinit(&text_a);
  text_deinit(&text_b);
  text_deinit(&text_c);
  graph_free(a);
  graph_free(b);
  graph_free(c);
}

// The number of warnings that readers give after inference.
static size_t count_warnings(const Graph *g) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  for (size_t i = 0; i < g->nnodes; i++) {
    for (uint32_t k = 0; k < g->nodes[i]->op->nattributes; k++) // all are printed
      g->nodes[i]->attributes[k].is_default = false;
    if (g->nodes[i]->op->warn) g->nodes[i]->op->warn(g->nodes[i], &d);
  }
  const size_t count = d.nwarnings;
  diagnostics_deinit(&d);
  return count;
}

static void prints_are_fixed_points(void **state) {
  (void)state;
  for (RandomSeeds s = random_seeds(COUNT); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    Graph *g = make(seed);
    Text once = print(g);
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Graph *again = yaml_read(&system_allocator, "random.yaml", text_string(&once), once.nbytes, NULL, &d);
    if (!again) fail_msg("seed %llu: %s", (unsigned long long)seed, d.items[0].message);
    assert_int_equal(d.nerrors, 0);
    assert_int_equal(d.nwarnings, count_warnings(g));
    Text twice = print(again);
    assert_string_equal(text_string(&once), text_string(&twice));
    diagnostics_deinit(&d);
    text_deinit(&once);
    text_deinit(&twice);
    graph_free(again);
    graph_free(g);
  }
}

// Inference from less information: everything that it finds again is as before.

static void forget(uint64_t *random, const Value *v, Value *copy) {
  bool is_given = !v->producer;
  if (is_given && v->constant) return;
  if (!is_given || random_chance(random, 10)) copy->shape.rank = -1;
  for (int axis = 0; axis < copy->shape.rank; axis++)
    if (random_chance(random, 40)) copy->shape.extent[axis] = EXTENT_UNKNOWN;
}

// Inference guesses extents wrong, with a warning, if their number differs from the number of scales and nothing else
// determines them. Some extents may be known by declaration only: -1 of a reshape beside a named extent; results of
// joining, cutting, padding, scaling or windows along a named extent; extents of a convolution's gradients.
static bool follows_from_inputs(const Graph *g) {
  for (size_t i = 0; i < g->nnodes; i++) {
    OperatorId id = g->nodes[i]->op->id;
    if (id == OP_StaticReshape || id == OP_Concat || id == OP_Interpolate || id == OP_Slice || id == OP_Pad ||
        id == OP_Tile || id == OP_Split || id == OP_Gather || id == OP_GatherBackward)
      return false;
    if (node_side(g->nodes[i], SIDE_LARGE)) return false;
  }
  return true;
}

// Whether inference has found the extent, or another of its value: a formula or a name where the graph declares another
// name or a number, or, of an operand, the number that a declared result says.
static bool is_found(Extent e, Extent whole) {
  if (extent_equals(e, whole)) return true;
  return !extent_is_unknown(e) && extent_value(e) == extent_value(whole) && !extents_are_apart(e, whole);
}

static void must_agree(const Graph *g, const Graph *less, bool must_be_whole) {
  for (size_t i = 0; i < g->nvalues; i++) {
    const Shape *whole = &g->values[i]->shape, *shape = &less->values[i]->shape;
    assert_true(less->values[i]->type == g->values[i]->type);
    assert_true(shape->rank == whole->rank || (shape->rank < 0 && !must_be_whole));
    for (int axis = 0; axis < shape->rank; axis++)
      assert_true(is_found(shape->extent[axis], whole->extent[axis]) ||
                  (extent_is_unknown(shape->extent[axis]) && !must_be_whole));
  }
}

static void inference_from_less_finds_the_same_or_leaves_it_open(void **state) {
  (void)state;
  uint64_t random = 1;
  for (RandomSeeds s = random_seeds(COUNT); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    Graph *g = make(seed);
    for (int is_partial = 0; is_partial < 2 && !count_warnings(g); is_partial++) {
      Graph *less = graph_clone(g);
      for (size_t i = 0; i < g->nvalues; i++)
        if (is_partial || g->values[i]->producer) forget(&random, g->values[i], less->values[i]);
      Diagnostics d;
      diagnostics_init(&d, &system_allocator);
      if (!graph_infer(less, &d)) fail_msg("seed %llu: %s", (unsigned long long)seed, d.items[0].message);
      must_agree(g, less, !is_partial && follows_from_inputs(g));
      assert_true(graph_infers_nothing_new(less, &d));
      diagnostics_deinit(&d);
      graph_free(less);
    }
    graph_free(g);
  }
}

// Kernels

// Each value that some kernel reads from memory has been stored before, once, in a place of its own.
static void check_program(const Program *p) {
  const Graph *g = p->graph;
  bool is_stored[MOST_VALUES] = {0}, is_computed[MOST_VALUES] = {0}; // by value, by node
  size_t first[MOST_VALUES] = {0}, last[MOST_VALUES] = {0};          // kernels that write and read a value
  size_t nnodes = 0;
  for (size_t i = 0; i < p->nkernels; i++) {
    const Kernel *k = p->schedules[i]->kernel;
    const bool has_pieces = nodes_npieces(k->costs, k->nodes, k->nnodes) > 1; // each piece stores its part
    for (size_t n = 0; n < k->nnodes; n++) { // several kernels may share out the results of one node
      nnodes += !is_computed[k->nodes[n]->index];
      assert_true(k->nnodes == 1 || has_pieces || !is_computed[k->nodes[n]->index]);
      is_computed[k->nodes[n]->index] = true;
    }
    bool is_written[MOST_VALUES] = {0};
    for (size_t a = 0; a < k->naccesses; a++)
      if (k->accesses[a].value) last[k->accesses[a].value->index] = i;
    for (size_t s = 0; s < k->nstores; s++) is_written[k->accesses[k->stores[s].access].value->index] = true;
    for (size_t a = 0; a < k->naccesses; a++) {
      const Value *v = k->accesses[a].value;
      if (v && v->producer && !is_written[v->index]) assert_true(is_stored[v->index]);
    }
    for (size_t v = 0; v < g->nvalues; v++) {
      assert_false(is_written[v] && is_stored[v] && !has_pieces);
      is_stored[v] |= is_written[v];
      if (is_written[v]) first[v] = i;
    }
  }
  for (size_t i = 0; i < g->nnodes; i++) nnodes += node_is_alias(g->nodes[i]);
  assert_int_equal(nnodes, g->nnodes);
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (v->is_output && v->producer) assert_true(is_stored[i]);
    assert_int_equal(p->is_in_workspace[i], is_stored[i] && !v->is_output);
    if (!p->is_in_workspace[i]) continue;
    size_t end = p->value_offset[i] + (size_t)shape_nelems(&v->shape) * type_nbytes(v->type);
    assert_true(end <= p->workspace_nbytes && p->workspace_nbytes <= p->unshared_nbytes);
    for (size_t k = 0; k < g->nvalues; k++) { // in the same place at different times, or in place
      bool overlaps = k != i && p->is_in_workspace[k] && p->value_offset[k] >= p->value_offset[i] &&
                      p->value_offset[k] < end && shape_nelems(&g->values[k]->shape);
      if (!overlaps) continue;
      bool may_be_same = p->value_offset[k] == p->value_offset[i];
      assert_true(last[i] < first[k] || last[k] < first[i] ||
                  (may_be_same && (last[i] == first[k] || last[k] == first[i])));
    }
  }
}

static void kernels_store_what_others_read(void **state) {
  (void)state;
  Target target = target_of_machine();
  target.vector_registers = 32;
  for (RandomSeeds s = random_seeds(COUNT); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
      Graph *g = make(seed);
      Diagnostics d;
      diagnostics_init(&d, &system_allocator);
      bind(g);
      PassContext c = {.diagnostics = &d, .allocator = &system_allocator, .target = &target, .no_fuse = no_fuse};
      assert_true(pipeline_run(g, &c));
      Program *p = pipeline_lower(g, &c);
      if (d.nerrors) print_error("seed %llu: %s\n", (unsigned long long)seed, d.items[0].message);
      assert_non_null(p);
      check_program(p);
      for (size_t k = 0; no_fuse && k < p->nkernels; k++) assert_int_equal(p->schedules[k]->kernel->nnodes, 1);
      program_free(p);
      diagnostics_deinit(&d);
      graph_free(g);
    }
  }
}

// Compiled code against the interpreter: tests/noise.h is the measure.

enum { NOISES = 4 };

typedef struct Trial {
  uint64_t seed, random;
  Graph *graph; // bound
  Text text;    // as it was before
  Tensor inputs[MOST_VALUES], expected[MOST_VALUES], got[MOST_VALUES];
  Arena arena;                              // the noisy values
  const double *noisy[NOISES][MOST_VALUES]; // by output
  size_t ncompared, nskipped, nfailures;
} Trial;

static size_t nelems_of(const Value *v) {
  return (size_t)shape_nelems(&v->shape);
}

static void run_noisy(Trial *t, const double **outputs) {
  Noise n = {
      .graph = t->graph, .inputs = t->inputs, .arena = &t->arena, .random = random_next(&t->random), .strength = 1};
  assert_true(noise_run(&n, outputs));
}

static void trial_init(Trial *t, uint64_t seed) {
  *t = (Trial){.seed = seed, .random = seed + 1, .graph = make(seed)};
  Graph *g = t->graph;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  arena_init(&t->arena, &system_allocator);
  t->text = print(g);
  bind(g);
  for (size_t i = 0; i < g->ninputs; i++)
    assert_true(random_tensor(&t->random, g->inputs[i], &t->inputs[i], &system_allocator));
  for (size_t i = 0; i < g->noutputs; i++) {
    t->expected[i] = t->got[i] = tensor_like(g->outputs[i]);
    assert_true(tensor_alloc(&t->expected[i], &system_allocator) && tensor_alloc(&t->got[i], &system_allocator));
  }
  assert_true(interpret(g, t->inputs, t->expected, &(InterpreterOptions){.allocator = &system_allocator}, &d));
  diagnostics_deinit(&d);
}

static void trial_deinit(Trial *t) {
  for (size_t i = 0; i < t->graph->ninputs; i++) tensor_free(&t->inputs[i], &system_allocator);
  for (size_t i = 0; i < t->graph->noutputs; i++) {
    tensor_free(&t->expected[i], &system_allocator);
    tensor_free(&t->got[i], &system_allocator);
  }
  arena_deinit(&t->arena);
  text_deinit(&t->text);
  graph_free(t->graph);
}

static void the_interpreter_runs_them(void **state) {
  (void)state;
  for (RandomSeeds s = random_seeds(COUNT); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    Trial t;
    trial_init(&t, seed);
    trial_deinit(&t);
  }
}

// Whether element i is the same in all noisy runs as far as being finite goes.
static bool is_stable(const Trial *t, size_t k, size_t i, double expected) {
  for (int n = 0; n < NOISES; n++) {
    double noisy = t->noisy[n][k][i];
    if (isfinite(noisy) != isfinite(expected) || isnan(noisy) != isnan(expected)) return false;
  }
  return true;
}

// Prints a failure, after the graph if the failure is the first. The test goes on with other graphs.
static void tell(Trial *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(Trial *t, const char *format, ...) {
  if (t->nfailures++ == 0) random_tell();
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputs("\n", stderr);
}

static void compare_output(Trial *t, size_t k, const char *how) {
  const Value *v = t->graph->outputs[k];
  double apart = 0, norm = 0, noise[NOISES] = {0}, most = 0;
  size_t n = nelems_of(v);
  for (size_t i = 0; i < n; i++) {
    double e = type_load(v->type, t->expected[k].data, i), a = type_load(v->type, t->got[k].data, i);
    if (!is_stable(t, k, i, e)) {
      t->nskipped++;
      continue;
    }
    t->ncompared++;
    if (!isfinite(e) || !isfinite(a)) {
      if (a == e || (isnan(a) && isnan(e))) continue;
      tell(t, "%s: %s[%zu] is %g, expected %g", how, v->name, i, a, e);
      return;
    }
    apart += (a - e) * (a - e);
    norm += e * e;
    for (int r = 0; r < NOISES; r++) noise[r] += (t->noisy[r][k][i] - e) * (t->noisy[r][k][i] - e);
  }
  for (int r = 0; r < NOISES; r++) most = fmax(most, noise[r]);
  double tolerance = 8 * sqrt(most) + 2 * noise_rounding(v->type) * sqrt(norm);
  if (sqrt(apart) > tolerance)
    tell(t, "%s: %s is %g away, expected at most %g (norm %g)", how, v->name, sqrt(apart), tolerance, sqrt(norm));
}

static ng_tensor api_tensor(const Tensor *t) {
  ng_tensor out = {.type = (ng_type)t->type, .rank = t->rank, .data = t->data};
  memcpy(out.order, t->layout.axis, sizeof out.order);
  memcpy(out.extent, t->extent, sizeof out.extent);
  return out;
}

static void compile_and_compare(Trial *t, const ng_options *how, const char *what) {
  ng_tensor inputs[MOST_VALUES], outputs[MOST_VALUES];
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "random.yaml", text_string(&t->text), t->text.nbytes, NULL);
  ng_kernel *kernel = g ? ng_compile(g, how) : NULL;
  if (!kernel) {
    tell(t, "%s: does not compile: %s", what, ng_messages_text(ctx, 0));
    ng_graph_free(g);
    ng_context_free(ctx);
    return;
  }
  for (size_t i = 0; i < t->graph->ninputs; i++) inputs[i] = api_tensor(&t->inputs[i]);
  for (size_t i = 0; i < t->graph->noutputs; i++) {
    memset(t->got[i].data, 0xA5, tensor_nbytes(&t->got[i]));
    outputs[i] = api_tensor(&t->got[i]);
  }
  const ng_status status = ng_graph_check_indices(g, inputs);
  assert_int_equal(ng_kernel_run(kernel, inputs, outputs, 1 + (int)(t->seed % 3)), status);
  for (size_t k = 0; k < t->graph->noutputs && status == NG_OK; k++) compare_output(t, k, what);
  ng_kernel_free(kernel);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void compiled_graphs_agree_with_the_interpreter(void **state) {
  (void)state;
  size_t ncompared = 0, nskipped = 0, nfailures = 0;
  assert_true(use_quick_compiler(!takes_all()));
  for (RandomSeeds s = random_seeds(number_of_graphs(COMPILED)); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    Trial t;
    trial_init(&t, seed);
    for (int n = 0; n < NOISES; n++) run_noisy(&t, t.noisy[n]);
    compile_and_compare(&t, NULL, "fused");
    compile_and_compare(&t, &(ng_options){.no_fuse = 1}, "not fused");
    ncompared += t.ncompared;
    nskipped += t.nskipped;
    nfailures += t.nfailures;
    trial_deinit(&t);
  }
  assert_int_equal(nfailures, 0);
  assert_true(nskipped <= ncompared / 20); // else this tests too little
}

int main(void) {
  const struct CMUnitTest tests[] = {
      random_unit_test(every_operator_and_name_occurs),
      cmocka_unit_test(a_row_changes_no_draw_of_others),
      cmocka_unit_test(a_seed_gives_one_graph),
      random_unit_test(prints_are_fixed_points),
      random_unit_test(inference_from_less_finds_the_same_or_leaves_it_open),
      random_unit_test(the_interpreter_runs_them),
      random_unit_test(kernels_store_what_others_read),
      random_unit_test(compiled_graphs_agree_with_the_interpreter),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
