// The verifiers of kernels and memory plans: they accept all that the passes make, and refuse deliberate mistakes.
#include "ir/kernel/verify.h"

#include "backends/interpreter/interpreter.h"
#include "frontend/yaml/yaml.h"
#include "ir/graph/open_dims.h"
#include "passes/memory/verify.h"
#include "passes/pipeline.h"
#include "tests/random_seeds.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "format: ngrad/1\nname: test\n"
static const int64_t many_steps = (int64_t)1 << 24;

typedef struct Lowered {
  Graph *g;
  Program *p;
  Diagnostics d;
} Lowered;

static void lower_graph(Lowered *l, Graph *g, bool no_fuse) {
  Target target = target_of_any_machine();
  target.vector_registers = 16;
  PassContext c = {.diagnostics = &l->d,
                   .allocator = &system_allocator,
                   .target = &target,
                   .evaluate = interpret_node,
                   .no_fuse = no_fuse};
  l->g = g;
  l->p = g && graph_bind_dims(g, &l->d) && graph_infer(g, &l->d) && pipeline_run(g, &c) ? pipeline_lower(g, &c) : NULL;
  if (!l->p) fail_msg("%s", l->d.nerrors ? l->d.items[0].message : "not lowered");
}

static Lowered lower_text(const char *text) {
  Lowered l = {0};
  diagnostics_init(&l.d, &system_allocator);
  lower_graph(&l, yaml_read(&system_allocator, "test.yaml", text, strlen(text), NULL, &l.d), false);
  return l;
}

static void deinit(Lowered *l) {
  program_free(l->p);
  graph_free(l->g);
  diagnostics_deinit(&l->d);
}

static void build_trees(const Lowered *l, const char *what) {
  if (!pipeline_build_trees(l->p, false)) fail_msg("%s: %s", what, l->p ? l->p->unsound : "not lowered");
}

static void memory_must_be_right(const Lowered *l, const char *what) {
  Text why;
  int64_t nsteps = many_steps;
  build_trees(l, what);
  text_init(&why, &system_allocator);
  if (!memory_verify(l->p, &nsteps, &why)) fail_msg("%s: %s", what, text_string(&why));
  text_deinit(&why);
}

static void memory_must_be_wrong(const Lowered *l, const char *expected) {
  Text why;
  int64_t nsteps = many_steps;
  text_init(&why, &system_allocator);
  assert_false(memory_verify(l->p, &nsteps, &why));
  if (!strstr(text_string(&why), expected)) assert_string_equal(text_string(&why), expected);
  text_deinit(&why);
}

static void schedule_must_be_wrong(const Schedule *s, const char *expected) {
  Text why;
  text_init(&why, &system_allocator);
  assert_false(schedule_verify(s, &why));
  if (!strstr(text_string(&why), expected)) assert_string_equal(text_string(&why), expected);
  text_deinit(&why);
}

// Memory

// m varies over one of the axes of the loop that stores it: at the next step of the other, s would be read where m is.
static void a_value_that_the_next_step_reads_is_not_written_over(void **state) {
  (void)state;
  Lowered l = lower_text(HEAD "inputs: [{name: x, type: f32, shape: [128, 5, 32]}]\n"
                              "constants: [{name: c, type: f32, shape: [], value: 48.0}]\nnodes:\n"
                              "- {op: Multiply, inputs: [x, x], outputs: [q]}\n"
                              "- {op: ReduceSum, inputs: [q], outputs: [s], attributes: {axes: [1], keep_dims: true}}\n"
                              "- {op: Divide, inputs: [s, c], outputs: [m]}\n"
                              "- {op: Multiply, inputs: [x, m], outputs: [h]}\n"
                              "- {op: ReduceSum, inputs: [h], outputs: [g], attributes: {axes: [0]}}\n"
                              "- {op: ReduceSum, inputs: [x], outputs: [d], attributes: {axes: [1], keep_dims: true}}\n"
                              "- {op: Add, inputs: [m, d], outputs: [y]}\noutputs: [y, g]\n");
  memory_must_be_right(&l, "s and m");
  deinit(&l);
}

// Two kernels: h goes from the first to the second through the workspace.
static Lowered two_kernels(void) {
  return lower_text(HEAD "inputs: [{name: x, type: f32, shape: [6, 40]}]\nnodes:\n"
                         "- {op: SoftMax, inputs: [x], outputs: [h], attributes: {axis: 1}}\n"
                         "- {op: SoftMax, inputs: [h], outputs: [y], attributes: {axis: 0}}\noutputs: [y]\n");
}

// Loops run in any order but that of what they need.
static void a_loop_runs_after_those_that_it_needs(void **state) {
  (void)state;
  Lowered l = two_kernels();
  const size_t second = l.p->liveness->first_loop[1];
  memory_must_be_right(&l, "two kernels");
  assert_true(l.p->liveness->needs[second] & 1);
  l.p->liveness->needs[second] = 0;
  memory_must_be_wrong(&l, "h is read, but the loop that writes it may run later");
  deinit(&l);
}

// The memory of a is b's when c is known: neither may be stored before all who read the other have.
static void a_loop_runs_after_those_whose_memory_it_takes(void **state) {
  (void)state;
  Lowered l = lower_text(HEAD "inputs: [{name: x, type: f32, shape: [64, 64]}]\nnodes:\n"
                              "- {op: SoftMax, inputs: [x], outputs: [a], attributes: {axis: 0}}\n"
                              "- {op: SoftMax, inputs: [a], outputs: [b], attributes: {axis: 1}}\n"
                              "- {op: SoftMax, inputs: [b], outputs: [c], attributes: {axis: 0}}\n"
                              "- {op: SoftMax, inputs: [c], outputs: [y], attributes: {axis: 1}}\noutputs: [y]\n");
  memory_must_be_right(&l, "a and c");
  for (size_t i = 0; i < l.p->liveness->nloops; i++) { // who reads a value still needs who stores it, but no other
    uint32_t *needs = &l.p->liveness->needs[i];
    *needs &= 1U;
  }
  memory_must_be_right(&l, "a chain"); // in a chain, each loop needs all before it
  l.p->liveness->needs[l.p->liveness->first_loop[2]] = 0;
  memory_must_be_wrong(&l, "may run later");
  deinit(&l);
}

static void loops_that_need_none_of_each_other_may_run_at_once(void **state) {
  (void)state;
  Lowered l = lower_text(HEAD "inputs: [{name: x, type: f32, shape: [64, 80]}, {name: v, type: f32, shape: [96, 32]}]\n"
                              "nodes:\n"
                              "- {op: Exp, inputs: [x], outputs: [y]}\n"
                              "- {op: Exp, inputs: [v], outputs: [w]}\n"
                              "- {op: Tanh, inputs: [w], outputs: [z]}\noutputs: [y, z, w]\n");
  const Liveness *f = l.p->liveness;
  assert_int_equal(l.p->nkernels, 2);
  assert_int_equal(f->nloops, 2);
  assert_int_equal(f->needs[1], 0);
  memory_must_be_right(&l, "two shapes");
  deinit(&l);
}

static void a_tile_leaves_its_own_part_of_a_sum(void **state) {
  (void)state;
  Lowered l = lower_text(HEAD "inputs: [{name: x, type: f32, shape: [30000]}]\n"
                              "nodes:\n"
                              "  - {op: ReduceSum, inputs: [x], outputs: [s], attributes: {axes: [0]}}\n"
                              "  - {op: Subtract, inputs: [x, s], outputs: [y]}\n"
                              "outputs: [y]\n");
  const Loop *loop = &l.p->schedules[0]->loops[0];
  assert_true(loop_tile(loop) && loop_nblocks(l.p->schedules[0]->kernel, loop) > 1);
  memory_must_be_right(&l, "a sum over a row in tiles");
  deinit(&l);
}

// The distance of elements in a panel is no multiple of the stride.
static void a_panel_stays_in_its_memory(void **state) {
  (void)state;
  Lowered l =
      lower_text(HEAD "inputs:\n  - {name: x, type: f32, shape: [9]}\n  - {name: a, type: bf16, shape: [64, 17]}\n"
                      "  - {name: b, type: bf16, shape: [17, 20]}\n"
                      "nodes:\n"
                      "  - {op: MatMul, inputs: [a, b], outputs: [y]}\n"
                      "  - {op: Abs, inputs: [x], outputs: [first]}\noutputs: [first, y]\n");
  bool has_panels = false;
  for (size_t i = 0; i < l.p->nkernels; i++)
    for (size_t n = 0; n < l.p->schedules[i]->kernel->naccesses; n++)
      has_panels |= l.p->schedules[i]->kernel->accesses[n].panel_axis != 0;
  assert_true(has_panels);
  memory_must_be_right(&l, "panels");
  deinit(&l);
}

static void a_value_that_lies_elsewhere_is_found(void **state) {
  (void)state;
  Lowered l = two_kernels();
  memory_must_be_right(&l, "h");
  const Kernel *k = l.p->schedules[0]->kernel;
  const Value *h = k->accesses[k->stores[0].access].value;
  assert_true(l.p->is_in_workspace[h->index]);
  l.p->value_offset[h->index] += 64;
  memory_must_be_wrong(&l, "h ends beyond the workspace");
  deinit(&l);
}

static void a_value_that_is_written_over_is_found(void **state) {
  (void)state;
  Lowered l = two_kernels();
  build_trees(&l, "h");
  Kernel *k = l.p->schedules[0]->kernel;
  Value *h = k->accesses[k->stores[0].access].value, *y = l.g->outputs[0];
  l.p->is_in_workspace[y->index] = true; // an element further, where the next of h is still to be read
  l.p->value_offset[y->index] = l.p->value_offset[h->index] + sizeof(float);
  l.p->workspace_nbytes += sizeof(float);
  memory_must_be_wrong(&l, "h is read, but its bytes hold another tensor or nothing");
  deinit(&l);
}

static void a_value_that_is_stored_twice_is_found(void **state) {
  (void)state;
  Lowered l = two_kernels();
  build_trees(&l, "h");
  const Liveness *f = l.p->liveness;
  assert_int_equal(f->first_loop[1], 1);
  l.p->schedules[1] = l.p->schedules[0];
  l.p->trees[1] = l.p->trees[0];
  memory_must_be_wrong(&l, "h is stored again, expected once");
  deinit(&l);
}

static void blocks_that_share_a_result_are_found(void **state) {
  (void)state;
  Lowered l = two_kernels();
  const Schedule *s = l.p->schedules[0];
  Kernel *k = s->kernel;
  Access *h = &k->accesses[k->stores[0].access];
  s->loops[0].cut.length = 1;
  for (int axis = 0; axis < k->naxes; axis++)
    if (h->stride[axis] == 40) h->stride[axis] = 20;
  assert_false(pipeline_build_trees(l.p, false));
  assert_non_null(strstr(l.p->unsound, "writes an element that another block of the loop writes"));
  schedule_must_be_wrong(s, "two different indices store the same element");
  deinit(&l);
}

// Kernels

static Lowered layer_norm(void) {
  return lower_text(HEAD "inputs: [{name: x, type: f32, shape: [6, 40]}]\nnodes:\n"
                         "- {op: LayerNorm, inputs: [x], outputs: [y], "
                         "attributes: {use_affine: false, keep_stats: false}}\noutputs: [y]\n");
}

static ExprId find_expr(const Kernel *k, ExprOp op) {
  ExprId id = 1;
  while (id < k->nexprs && k->exprs[id].op != op) id++;
  assert_in_range(id, 1, k->nexprs - 1);
  return id;
}

static void an_update_that_is_stored_before_its_state_is_read_is_found(void **state) {
  (void)state;
  Lowered l = lower_text(HEAD "inputs: []\nstate: [{name: w, type: f32, shape: [5, 5], init: zeros}]\nnodes:\n"
                              "- {op: StaticTranspose, inputs: [w], outputs: [t], attributes: {order: [1, 0]}}\n"
                              "outputs: []\nupdates: {w: t}\n");
  const Value *t = l.p->graph->outputs[0];
  memory_must_be_right(&l, "the update");
  assert_true(l.p->is_staged[t->index]);
  l.p->is_staged[t->index] = l.p->is_in_workspace[t->index] = false;
  memory_must_be_wrong(&l, "w is read, but its bytes hold another tensor or nothing");
  deinit(&l);
}

static void spoilt_expressions_are_found(void **state) {
  (void)state;
  Lowered l = layer_norm();
  const Schedule *s = l.p->schedules[0];
  const Kernel *k = s->kernel;
  Expr *e = &k->exprs[find_expr(k, EXPR_SUB)], before = *e;
  e->args[1] = (ExprId)(e - k->exprs);
  schedule_must_be_wrong(s, ", expected an expression before it");
  e->args[1] = 0;
  schedule_must_be_wrong(s, " is missing");
  *e = before;
  e->axes = 0;
  schedule_must_be_wrong(s, ", expected the axes of its arguments: ");
  *e = before;
  Expr *sum = &k->exprs[find_expr(k, EXPR_REDUCE_SUM)];
  sum->reduced |= 1U << 5;
  schedule_must_be_wrong(s, ", over which its operand does not vary");
  ((Kernel *)k)->is_s64 = true;
  schedule_must_be_wrong(s, "kernels that compute in s64 have none");
  deinit(&l);
}

static void spoilt_accesses_are_found(void **state) {
  (void)state;
  Lowered l = layer_norm();
  const Schedule *s = l.p->schedules[0];
  const Kernel *k = s->kernel;
  Access *x = &k->accesses[k->exprs[find_expr(k, EXPR_LOAD)].access];
  x->offset = 1;
  schedule_must_be_wrong(s, "it reaches elements ");
  x->offset = 0;
  x->type = TYPE_BF16;
  schedule_must_be_wrong(s, "expected the tensor's: ");
  x->type = TYPE_F32;
  Shape *shape = &((Value *)x->value)->shape;
  shape->extent[0].value--;
  schedule_must_be_wrong(s, "it reaches elements 0 to ");
  deinit(&l);
}

// The result has no channels, so nothing tells its two groups apart.
static void results_without_elements_are_sound(void **state) {
  (void)state;
  Lowered l = lower_text(HEAD "inputs: [{name: x, type: f32, shape: [4, 30, 8]}]\n"
                              "constants: [{name: w, type: f32, shape: [1, 0, 8], value: 0.5}]\nnodes:\n"
                              "- {op: ConvTranspose, inputs: [x, w], outputs: [y], attributes: {strides: [1], "
                              "pads_begin: [0], pads_end: [0], dilations: [1], groups: 2, data_format: NXC, "
                              "weights_format: XOI}}\noutputs: [y]\n"); // aborts if the kernel is invalid
  memory_must_be_right(&l, "y");
  deinit(&l);
}

// What is read of x, with the extent of its rows replaced by another one, must be found to be beyond.
static void rows_must_be_missing(const char *text, Extent (*other)(const Graph *g), const char *told) {
  Lowered l = {0};
  PassContext c = {.diagnostics = &l.d, .allocator = &system_allocator, .evaluate = interpret_node};
  const Target target = target_of_any_machine();
  diagnostics_init(&l.d, &system_allocator);
  Graph *closed = yaml_read(&system_allocator, "test.yaml", text, strlen(text), NULL, &l.d);
  c.target = &target;
  l.g = graph_with_open_dims(closed, &l.d);
  assert_true(l.g && pipeline_run(l.g, &c));
  l.p = pipeline_lower(l.g, &c);
  assert_non_null(l.p);
  const Schedule *s = l.p->schedules[0];
  const Access *x = &s->kernel->accesses[s->kernel->exprs[find_expr(s->kernel, EXPR_LOAD)].access];
  ((Value *)x->value)->shape.extent[0] = other(l.g);
  schedule_must_be_wrong(s, told);
  deinit(&l);
  graph_free(closed);
}

static Extent the_number_64(const Graph *g) {
  (void)g;
  return EXTENT(64);
}

static Extent the_sum(const Graph *g) {
  return (Extent){g->dims[graph_narguments(g)], -1};
}

// x has 64 rows, and the kernel reads N of them, whose hint is 64. Or it has N - 3 rows, which are not negative, but
// fewer than N.
static void accesses_are_inside_for_all_values_of_open_dims(void **state) {
  (void)state;
  rows_must_be_missing(HEAD "dims: {N: 64}\ninputs: [{name: x, type: f32, shape: [N, 40]}]\nnodes:\n"
                            "- {op: Exp, inputs: [x], outputs: [y]}\noutputs: [y]\n",
                       the_number_64, "it reaches elements 0 to 2559, expected 0 to 2559 for all values of open dims");
  rows_must_be_missing(
      HEAD
      "dims: {N: 64}\ninputs: [{name: x, type: f32, shape: [N, 40]}, {name: z, type: f32, shape: [N - 3]}]\nnodes:\n"
      "- {op: Exp, inputs: [x], outputs: [y]}\noutputs: [y, z]\n",
      the_sum, "it reaches elements 0 to 2559, expected 0 to 2439 for all values of open dims");
}

static void spoilt_loops_are_found(void **state) {
  (void)state;
  Lowered l = layer_norm();
  const Schedule *s = l.p->schedules[0];
  Loop *loop = &s->loops[0];
  Root *store = &loop->roots[loop->nroots - 1];
  assert_int_equal(store->kind, ROOT_STORE);
  store->sweep = loop->nsweeps;
  schedule_must_be_wrong(s, "(y): the loops store it 0 times, expected once");
  store->sweep = loop->nsweeps - 1;
  loop->roots[loop->nroots - 2] = *store; // instead of a sum
  schedule_must_be_wrong(s, "(y): the loops store it 2 times, expected once");
  deinit(&l);
}

static void nests_that_do_not_suit_their_loops_are_found(void **state) {
  static const struct {
    LoopLevel levels[7];
    const char *wrong;
  } cases[] = {
      {{LOOP_CUT, LOOP_ROWS, LOOP_LANES, LOOP_LANES}, "loop 0: two levels of its nest go over the same axis"},
      {{LOOP_CUT, LOOP_ROWS, LOOP_MIDDLE}, "loop 0: no level of its nest goes over one of its axes"},
      {{LOOP_CUT, LOOP_COLUMNS, LOOP_ROWS, LOOP_LANES}, "factors of some sum vary over more axes"},
      {{LOOP_CUT, LOOP_TAPS, LOOP_LANES}, "factors of some sum vary over more axes"},
  };
  (void)state;
  Lowered l = layer_norm();
  Loop *loop = &l.p->schedules[0]->loops[0];
  const LoopLevel *levels = loop->levels;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    loop->levels = cases[i].levels;
    schedule_must_be_wrong(l.p->schedules[0], cases[i].wrong);
  }
  loop->levels = levels;
  deinit(&l);
}

// A scheduled kernel reads the partial sums of its blocks: no kernel without a schedule does.
static void a_kernel_without_a_schedule_reads_no_partial_sums(void **state) {
  (void)state;
  Lowered l = lower_text(HEAD "inputs: [{name: x, type: f32, shape: [600, 40]}]\nnodes:\n"
                              "- {op: ReduceSum, inputs: [x], outputs: [s], attributes: {axes: [0]}}\noutputs: [s]\n");
  Text why;
  text_init(&why, &system_allocator);
  assert_true(schedule_verify(l.p->schedules[0], &why));
  assert_false(kernel_verify(l.p->schedules[0]->kernel, &why));
  assert_non_null(strstr(text_string(&why), "(combine): only a scheduled kernel has partial results"));
  text_deinit(&why);
  deinit(&l);
}

static Root *find_root(const Schedule *s, RootKind kind) {
  for (size_t i = 0; i < s->nloops; i++)
    for (size_t r = 0; r < s->loops[i].nroots; r++)
      if (s->loops[i].roots[r].kind == kind) return &s->loops[i].roots[r];
  fail_msg("the loop has no root of this kind");
  return NULL;
}

// The value that a root stores, and the value that it adds to a partial sum.
static void stores_of_other_values_are_found(void **state) {
  (void)state;
  static const char *const wrong = "is not the value that the kernel specifies";
  Lowered l = layer_norm();
  const Schedule *s = l.p->schedules[0];
  Root *store = find_root(s, ROOT_STORE);
  store->expr = s->kernel->exprs[store->expr].args[0];
  schedule_must_be_wrong(s, wrong);
  deinit(&l);
  l = lower_text(HEAD "inputs: [{name: x, type: f32, shape: [600, 40]}]\nnodes:\n"
                      "- {op: Exp, inputs: [x], outputs: [e]}\n"
                      "- {op: ReduceSum, inputs: [e], outputs: [t], attributes: {axes: [0]}}\noutputs: [t]\n");
  s = l.p->schedules[0];
  Root *part = find_root(s, ROOT_REDUCE_OUTER);
  part->expr = s->kernel->exprs[part->expr].args[0];
  schedule_must_be_wrong(s, wrong);
  deinit(&l);
}

static void sums_over_rows_in_lanes_are_found(void **state) {
  static const LoopLevel rows_in_lanes[] = {LOOP_CUT, LOOP_ROW_LANES, LOOP_ROW_ELEMENTS, LOOP_END};
  (void)state;
  Lowered l = lower_text(HEAD "inputs: [{name: x, type: f32, shape: [600, 40]}]\nnodes:\n"
                              "- {op: ReduceSum, inputs: [x], outputs: [t], attributes: {axes: [0]}}\noutputs: [t]\n");
  l.p->schedules[0]->loops[0].levels = rows_in_lanes;
  schedule_must_be_wrong(l.p->schedules[0], "loop 0: rows are in lanes, but it has sums over rows");
  deinit(&l);
}

static void chains_that_are_too_long_are_found(void **state) {
  (void)state;
  Lowered l =
      lower_text(HEAD "inputs: [{name: x, type: f32, shape: [600, 30000]}]\nnodes:\n"
                      "- {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\n"
                      "- {op: ReduceSum, inputs: [y], outputs: [s], attributes: {axes: [0]}}\noutputs: [y, s]\n");
  const Schedule *s = l.p->schedules[0];
  Loop *loop = &s->loops[0];
  Root *sum = loop->roots, *total = find_root(s, ROOT_REDUCE_OUTER);
  while (!sum->order || !sum_order_has_segments(sum->order)) sum++;
  if (!total->order) abort(); // not reached, as no reader of the code can tell
  const SumOrder of_sum = *sum->order, of_total = *total->order;
  SumOrder spoilt = of_sum;
  sum->order = &spoilt;
  assert_int_equal(of_sum.segments.elements, LONGEST_SEGMENT * LANES);
  spoilt.levels[0].cut.length--;
  schedule_must_be_wrong(s, "the loop's order of additions is not the reduction's");
  spoilt = of_sum;
  spoilt.levels[2].type = TYPE_F32;
  schedule_must_be_wrong(s, "the loop's order of additions is not the reduction's");
  spoilt = of_sum;
  spoilt.levels[0].cut.length = 0; // 1875 vectors
  spoilt.nlevels--;
  schedule_must_be_wrong(s, "the loop's order of additions is not the reduction's");
  sum->order = NULL;
  schedule_must_be_wrong(s, "expected an order of additions for each reduction, and for nothing else");
  sum->order = &of_sum;
  loop->cut.length = LONGEST_CHAIN + 1;
  schedule_must_be_wrong(s, "the loop's order of additions is not the reduction's");
  spoilt = of_total;
  spoilt.levels[0].cut = loop->cut;
  total->order = &spoilt;
  schedule_must_be_wrong(s, "take 257 operands one after the other, expected at most 256");
  deinit(&l);
}

// Kernels from passes

static void random_graphs_are_sound(void **state) {
  (void)state;
  static const RandomGraphOptions options = {.most_nodes = 16, .most_nelems = 2000};
  for (RandomSeeds s = random_seeds(600); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    Lowered l = {0};
    char what[32];
    diagnostics_init(&l.d, &system_allocator);
    lower_graph(&l, random_graph(&system_allocator, seed, &options, &l.d), seed % 8 == 7);
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
    memory_must_be_right(&l, what);
    deinit(&l);
  }
}

static void graphs_of_the_repository_are_sound(void **state) {
  (void)state;
  static const char *const patterns[] = {"tests/golden/*/*.yaml", "tests/conformance/*.yaml", "models/*.yaml"};
  glob_t files = {0};
  size_t count = 0;
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &files);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    Lowered l = {0};
    diagnostics_init(&l.d, &system_allocator);
    Graph *g = yaml_read_file(&system_allocator, files.gl_pathv[i], NULL, &l.d);
    if (!g) fail_msg("%s: %s", files.gl_pathv[i], l.d.items[0].message);
    lower_graph(&l, g, false);
    memory_must_be_right(&l, files.gl_pathv[i]);
    count++;
    deinit(&l);
  }
  globfree(&files);
  assert_true(count > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_value_that_the_next_step_reads_is_not_written_over),
      cmocka_unit_test(a_loop_runs_after_those_that_it_needs),
      cmocka_unit_test(a_loop_runs_after_those_whose_memory_it_takes),
      cmocka_unit_test(loops_that_need_none_of_each_other_may_run_at_once),
      cmocka_unit_test(a_tile_leaves_its_own_part_of_a_sum),
      cmocka_unit_test(a_panel_stays_in_its_memory),
      cmocka_unit_test(a_value_that_lies_elsewhere_is_found),
      cmocka_unit_test(a_value_that_is_written_over_is_found),
      cmocka_unit_test(a_value_that_is_stored_twice_is_found),
      cmocka_unit_test(blocks_that_share_a_result_are_found),
      cmocka_unit_test(an_update_that_is_stored_before_its_state_is_read_is_found),
      cmocka_unit_test(spoilt_expressions_are_found),
      cmocka_unit_test(spoilt_accesses_are_found),
      cmocka_unit_test(results_without_elements_are_sound),
      cmocka_unit_test(accesses_are_inside_for_all_values_of_open_dims),
      cmocka_unit_test(spoilt_loops_are_found),
      cmocka_unit_test(nests_that_do_not_suit_their_loops_are_found),
      cmocka_unit_test(a_kernel_without_a_schedule_reads_no_partial_sums),
      cmocka_unit_test(stores_of_other_values_are_found),
      cmocka_unit_test(sums_over_rows_in_lanes_are_found),
      cmocka_unit_test(chains_that_are_too_long_are_found),
      random_unit_test(random_graphs_are_sound),
      cmocka_unit_test(graphs_of_the_repository_are_sound),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
