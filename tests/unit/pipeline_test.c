// The passes before code generation: what is fused and what is not, what is removed, which passes run, and failing
// allocations.
#include "backends/interpreter/interpreter.h"
#include "frontend/yaml/yaml.h"
#include "passes/lower/lower.h"
#include "passes/memory/map.h"
#include "passes/pipeline.h"
#include "passes/rewrite/dead_code.h"
#include "passes/schedule/kernel_pass.h"
#include "passes/schedule/order/order.h"
#include "passes/schedule/tune/tune.h"
#include "tests/random_seeds.h"
#include "tests/unit/failing_allocator.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

// Graph files without their common lines. Inputs: x, g, r of [6, 8], s, m, v of [8], o of [6, 1].
#define FILE_BEGIN                                                                                                     \
  "format: ngrad/1\nname: test\ninputs:\n"                                                                             \
  "- {name: x, type: f32, shape: [6, 8]}\n- {name: g, type: f32, shape: [6, 8]}\n"                                     \
  "- {name: r, type: f32, shape: [6, 8]}\n- {name: s, type: f32, shape: [8]}\n"                                        \
  "- {name: m, type: f32, shape: [8]}\n- {name: v, type: f32, shape: [8]}\n"                                           \
  "- {name: o, type: f32, shape: [6, 1]}\nnodes:\n"
#define NODE(op, inputs, outputs) "- {op: " op ", inputs: [" inputs "], outputs: [" outputs "]}\n"
#define BN(inputs, outputs)                                                                                            \
  "- {op: BatchNormTrainingBackward, inputs: [" inputs "], outputs: [" outputs "], attributes: {epsilon: 1}}\n"
#define SUM(src, axis, keep, dst)                                                                                      \
  "- {op: ReduceSum, inputs: [" src "], outputs: [" dst "], attributes: {axes: [" axis "], keep_dims: " keep "}}\n"
#define OUTPUTS(names) "outputs: [" names "]\n"

static Target target;

static Graph *read_text(const Allocator *allocator, const char *text) {
  Diagnostics d;
  diagnostics_init(&d, allocator);
  Graph *g = yaml_read(allocator, "test.yaml", text, strlen(text), NULL, &d);
  if (!g) fail_msg("%s", d.items[0].message);
  diagnostics_deinit(&d);
  return g;
}

static PassContext context(const Allocator *allocator, Diagnostics *d) {
  diagnostics_init(d, allocator);
  target = target_of_machine();
  target.vector_registers = 32;
  return (PassContext){.diagnostics = d, .allocator = allocator, .target = &target};
}

// "g dx y | z": the regions in the order of their last nodes; of each region, the first output of each node.
static void print_regions(const Graph *g, const Partition *p, Text *out) {
  for (uint32_t region = 0; region < g->nnodes; region++) {
    if (out->nbytes && p->first[region] != NO_NODE) text_add_string(out, " |");
    for (uint32_t i = p->first[region]; i != NO_NODE; i = p->next[i]) {
      assert_int_equal(p->region[i], region);
      assert_int_equal(p->next[i] == NO_NODE, i == region);
      text_format(out, "%s%s", out->nbytes ? " " : "", g->nodes[i]->outputs[0]->name);
    }
  }
}

// Takes a file through the passes, as the context says but for its places of memory.
static void must_become(const char *text, PassContext how, const char *regions) {
  Diagnostics d;
  PassContext c = context(&system_allocator, &d);
  c.disabled = how.disabled;
  c.ndisabled = how.ndisabled;
  c.after = how.after;
  c.no_fuse = how.no_fuse;
  if (how.target) c.target = how.target;
  Graph *g = read_text(&system_allocator, text);
  assert_true(pipeline_run(g, &c));
  assert_false(c.failed);
  Text found;
  text_init(&found, &system_allocator);
  print_regions(g, c.partition, &found);
  assert_string_equal(text_string(&found), regions);
  text_deinit(&found);
  graph_free(g);
  diagnostics_deinit(&d);
}

#define NORMALLY ((PassContext){0})

// Fusion

static const char residual_tail[] = FILE_BEGIN NODE("ReLUBackward", "x, g", "masked")
    BN("x, masked, m, v", "dx, dg, db") NODE("Add", "dx, r", "y") OUTPUTS("y, dg, db");

static void elementwise_neighbours_join_a_norm(void **state) {
  (void)state;
  must_become(residual_tail, NORMALLY, "masked dx y");
}

static void a_chain_is_one_region(void **state) {
  (void)state;
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("Add", "a, s", "b") NODE("Multiply", "b, o", "c")
                  NODE("ReLU", "c", "d") OUTPUTS("d"),
              NORMALLY, "a b c d");
}

static void nodes_that_read_the_same_join(void **state) {
  (void)state;
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("Add", "a, g", "b") NODE("Add", "a, r", "c") OUTPUTS("b, c"),
              NORMALLY, "a b c");
  must_become(FILE_BEGIN
              "- {op: ReduceL1, inputs: [g], outputs: [da], attributes: {axes: [0]}}\n" SUM("g", "0", "false", "db")
                  OUTPUTS("da, db"),
              NORMALLY, "da db");
  must_become(FILE_BEGIN BN("x, g, m, v", "dx") SUM("g", "0", "false", "db") OUTPUTS("dx, db"), NORMALLY, "dx db");
  // A norm over four elements computes in f64, the sum in f32.
  must_become("format: ngrad/1\nname: test\ninputs:\n- {name: x, type: f32, shape: [4, 8]}\n"
              "- {name: g, type: f32, shape: [4, 8]}\n- {name: m, type: f32, shape: [8]}\n"
              "- {name: v, type: f32, shape: [8]}\nnodes:\n" BN("x, g, m, v", "dx") SUM("g", "0", "false", "db")
                  OUTPUTS("dx, db"),
              NORMALLY, "dx | db");
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("ReLU", "g", "b") OUTPUTS("a, b"), NORMALLY, "a | b");
}

static void a_graph_output_does_not_stop(void **state) {
  (void)state;
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("Add", "a, g", "b") OUTPUTS("b, a"), NORMALLY, "a b");
}

static void users_in_one_region_are_as_one(void **state) {
  (void)state;
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("Add", "a, a", "b") OUTPUTS("b"), NORMALLY, "a b");
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("ReLU", "a", "b") NODE("Add", "a, b", "c") OUTPUTS("c"), NORMALLY,
              "a b c");
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("Add", "a, g", "b") NODE("Add", "a, r", "c")
                  NODE("Multiply", "b, c", "d") OUTPUTS("d"),
              NORMALLY, "a b c d");
  must_become(FILE_BEGIN BN("x, g, m, v", "dx") NODE("ReLU", "dx", "b") NODE("Add", "dx, b", "c") OUTPUTS("c"),
              NORMALLY, "dx b c");
}

static void norms_join_where_a_schedule_carries_both(void **state) {
  (void)state;
  must_become(FILE_BEGIN BN("x, g, m, v", "a") BN("x, a, m, v", "b") OUTPUTS("b"), NORMALLY, "a b");
  must_become(FILE_BEGIN BN("x, g, m, v", "a") NODE("ReLU", "a", "b") BN("x, b, m, v", "c") OUTPUTS("c"), NORMALLY,
              "a b c");
  must_become(FILE_BEGIN BN("x, g, m, v", "a") BN("x, r, m, v", "b") NODE("Add", "a, b", "c") OUTPUTS("c"), NORMALLY,
              "a b c");
}

static void narrower_operands_join_and_statistics_do_not(void **state) {
  (void)state;
  must_become(FILE_BEGIN NODE("ReLU", "s", "a") NODE("Add", "x, a", "b") OUTPUTS("b"), NORMALLY, "a b"); // broadcast
  must_become(FILE_BEGIN NODE("ReLU", "o", "a") NODE("Multiply", "x, a", "b") OUTPUTS("b"), NORMALLY, "a b");
  must_become(FILE_BEGIN SUM("x", "1", "true", "a") NODE("Multiply", "x, a", "b") OUTPUTS("b"), NORMALLY, "a b");
  must_become(FILE_BEGIN SUM("x", "0", "false", "a") NODE("Multiply", "x, a", "b") OUTPUTS("b"), NORMALLY, "a | b");
  must_become(FILE_BEGIN BN("x, g, m, v", "dx, dg, db") NODE("ReLU", "dg", "a") OUTPUTS("dx, a, db"), NORMALLY,
              "dx | a"); // a statistic
  must_become(FILE_BEGIN BN("x, g, m, v", "dx, dg, db") NODE("ReLU", "dx", "a") NODE("Add", "a, dg", "b")
                  OUTPUTS("b, db"),
              NORMALLY, "dx | a b"); // both at once
}

static void chains_that_read_the_same_become_one_region(void **state) {
  (void)state;
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("Exp", "a", "b") NODE("Abs", "x", "c") NODE("Tanh", "c", "d")
                  OUTPUTS("b, d"),
              NORMALLY, "a b c d");
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("SoftMax", "a", "b") NODE("Abs", "x", "c")
                  NODE("SoftMax", "c", "d") OUTPUTS("b, d"),
              NORMALLY, "a b c d");
  must_become(FILE_BEGIN NODE("Add", "x, r", "y") NODE("Multiply", "y, g", "a") BN("x, a, m, v", "b")
                  NODE("ReLUBackward", "y, g", "c") BN("r, c, m, v", "d") OUTPUTS("b, d"),
              NORMALLY, "y a b c d");
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") SUM("a", "0", "false", "b") NODE("Add", "b, s", "c")
                  NODE("Add", "x, c", "d") NODE("ReLU", "d", "e") OUTPUTS("e"),
              NORMALLY, "a b | c d e"); // the second kernel needs the result of the first
}

// Half of a row's three tensors would have left a second level of 1 MB when the second and the third sweep come. The
// caches of the target have no say in this, as the regions decide the order of sums.
static void a_working_set_out_of_cache_splits_a_region(void **state) {
  (void)state;
  static const char text[] =
      "format: ngrad/1\nname: test\n"
      "inputs:\n- {name: x, type: f32, shape: [4, %d]}\n"
      "- {name: g, type: f32, shape: [4, %d]}\n- {name: r, type: f32, shape: [4, %d]}\n"
      "nodes:\n" NODE("Add", "x, g", "a") NODE("Add", "a, r", "b") NODE("SoftMax", "b", "c") OUTPUTS("c");
  enum { FITS = (512 << 10) / (3 * sizeof(float)) };
  for (int more = 0; more < 2; more++) {
    char filled[sizeof text + 64];
    snprintf(filled, sizeof filled, text, FITS + more, FITS + more, FITS + more);
    Target other = target_of_any_machine();
    for (other.l2_nbytes = 1 << 14; other.l2_nbytes <= 1 << 26; other.l2_nbytes *= 8)
      must_become(filled, (PassContext){.target = &other}, more ? "a | b c" : "a b c");
  }
}

// x0 + x1 + ... + x19: two operands and a result for the first node from the end, and an operand for each before it.
static void a_region_streams_no_more_tensors_than_prefetchers_follow(void **state) {
  (void)state;
  enum { INPUTS = 36 };
  Text text, regions;
  text_init(&text, &system_allocator);
  text_init(&regions, &system_allocator);
  text_add_string(&text, "format: ngrad/1\nname: test\ninputs:\n");
  for (int i = 0; i < INPUTS; i++) text_format(&text, "- {name: x%d, type: f32, shape: [6, 8]}\n", i);
  text_add_string(&text, "nodes:\n- {op: Add, inputs: [x0, x1], outputs: [t1]}\n");
  for (int i = 2; i < INPUTS; i++) text_format(&text, "- {op: Add, inputs: [t%d, x%d], outputs: [t%d]}\n", i - 1, i, i);
  text_format(&text, "outputs: [t%d]\n", INPUTS - 1);
  for (int i = 1; i < INPUTS; i++) text_format(&regions, "%st%d", i == 1 ? "" : i == 6 ? " | " : " ", i);
  must_become(text_string(&text), NORMALLY, text_string(&regions)); // 30 inputs, t5 and t35
  text_deinit(&regions);
  text_deinit(&text);
}

// Sums over columns need sums over rows: the regions are cut between them, and neighbours of each sum stay with it.
static void sums_that_cannot_be_together_keep_their_neighbours(void **state) {
  (void)state;
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("SoftMax", "a", "b")
                  NODE("Abs", "b", "c") "- {op: SoftMax, inputs: [c], outputs: [d], attributes: {axis: 0}}\n" NODE(
                      "Tanh", "d", "e") OUTPUTS("e"),
              NORMALLY, "a b | c d e");
}

// A node's axis attribute counts axes of its own shape, and would mean another axis of the wider shape.
static void what_names_an_axis_does_not_spread(void **state) {
  (void)state;
  must_become("format: ngrad/1\nname: test\n"
              "inputs: [{name: x, type: s32, shape: [3, 5, 4]}, {name: s, type: f32, shape: [5, 4]}]\n"
              "nodes: [{op: GenIndex, inputs: [s], outputs: [a], attributes: {axis: 0}},\n"
              "        {op: Add, inputs: [x, a], outputs: [b]}]\n" OUTPUTS("b"),
              NORMALLY, "a | b");
}

// A kernel splits the channels' axis into groups once.
static void norms_of_other_groups_stay_apart(void **state) {
  (void)state;
#define GROUP_NORM(groups, dst)                                                                                        \
  "- {op: GroupNorm, inputs: [x], outputs: [" dst "],"                                                                 \
  " attributes: {groups: " groups ", keep_stats: false, use_affine: false}}\n"
  must_become(FILE_BEGIN GROUP_NORM("2", "a") GROUP_NORM("2", "b") OUTPUTS("a, b"), NORMALLY, "a b");
  must_become(FILE_BEGIN GROUP_NORM("2", "a") GROUP_NORM("4", "b") OUTPUTS("a, b"), NORMALLY, "a | b");
#undef GROUP_NORM
}

// Not even when a node that reads the same data brings its own region along.
static void pieces_stand_alone(void **state) {
  (void)state;
  must_become(
      FILE_BEGIN NODE("ReLU", "x", "a") "- {op: Concat, inputs: [x], outputs: [c], attributes: {axis: 1}}\n" NODE(
          "Multiply", "a, g", "b") NODE("Add", "b, x", "d") NODE("Multiply", "x, c", "e") NODE("Add", "d, e", "f")
          OUTPUTS("f"),
      NORMALLY, "c | a b d e f");
}

// The batch norm makes the domain of a as [1, 8], in which the layer norm's first axis would be another.
static void a_domain_of_more_axes_is_another(void **state) {
  (void)state;
  must_become("format: ngrad/1\nname: test\ninputs:\n- {name: x, type: f32, shape: [1, 8]}\n"
              "- {name: m, type: f32, shape: [8]}\n- {name: v, type: f32, shape: [8]}\nnodes:\n"
              "- {op: BatchNormInferenceBackward, inputs: [x, x, m, v, v], outputs: [dx, dg, db],"
              " attributes: {epsilon: 1, data_format: NXC}}\n" NODE(
                  "AbsBackward", "v, v", "a") "- {op: LayerNorm, inputs: [db], outputs: [y, ym, yv],"
                                              " attributes: {keep_stats: true, use_affine: false}}\n" OUTPUTS("a, y"),
              NORMALLY, "dx a | y");
}

static void regions_stand_at_their_last_nodes(void **state) {
  (void)state;
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("ReLU", "s", "b") NODE("Add", "a, b", "c") OUTPUTS("c"), NORMALLY,
              "a b c");
}

// Forty functions of x, their sum, and the sum times each of them: when the products join the region, the producers of
// their operands have not joined yet, but will.
static void values_of_the_region_itself_are_no_streams(void **state) {
  (void)state;
  enum { NVALUES = 40 };
  Text text, regions;
  text_init(&text, &system_allocator);
  text_init(&regions, &system_allocator);
  text_add_string(&text, FILE_BEGIN);
  for (int i = 0; i < NVALUES; i++)
    text_format(&text, "- {op: Elu, inputs: [x], outputs: [v%d], attributes: {alpha: %d}}\n", i, i + 2);
  text_add_string(&text, NODE("Add", "v0, v1", "s1"));
  for (int i = 2; i < NVALUES; i++) text_format(&text, NODE("Add", "s%d, v%d", "s%d"), i - 1, i, i);
  text_format(&text, NODE("Subtract", "s%d, v0", "w0"), NVALUES - 1);
  for (int i = 1; i < NVALUES; i++) text_format(&text, NODE("Multiply", "w%d, v%d", "w%d"), i - 1, i, i);
  text_format(&text, OUTPUTS("w%d"), NVALUES - 1);
  for (int i = 0; i < NVALUES; i++) text_format(&regions, "%sv%d", i ? " " : "", i);
  for (int i = 1; i < NVALUES; i++) text_format(&regions, " s%d", i);
  for (int i = 0; i < NVALUES; i++) text_format(&regions, " w%d", i);
  must_become(text_string(&text), NORMALLY, text_string(&regions));
  text_deinit(&regions);
  text_deinit(&text);
}

#define NORMS(type, shape, backward)                                                                                   \
  "format: ngrad/1\nname: test\ninputs:\n- {name: x, type: " type ", shape: " shape "}\n- {name: g, type: " type       \
  ", shape: " shape "}\nnodes:\n"                                                                                      \
  "- {op: LayerNorm, inputs: [x], outputs: [y, {name: mean, type: " type "}, {name: var, type: " type "}], "           \
  "attributes: {use_affine: false}}\n"                                                                                 \
  "- {op: " backward ", inputs: [x, g, mean, var], outputs: [dx]"

// A norm and its gradient are one kernel only if the statistics have the type of the computation: the gradient takes
// other types rounded.
static void statistics_pass_between_norms_of_the_same_axes(void **state) {
  (void)state;
  static const char in_line[] = NORMS("f32", "[6, 8]", "LayerNormBackward") ", attributes: {use_affine: false}}\n";
  static const char rounded[] = NORMS("bf16", "[6, 8]", "LayerNormBackward") ", attributes: {use_affine: false}}\n";
  static const char across[] = NORMS("f32", "[4, 4]", "BatchNormTrainingBackward") ", attributes: {epsilon: 1}}\n";
  static const struct {
    const char *nodes, *outputs, *regions;
  } cases[] = {{in_line, OUTPUTS("y, dx"), "y dx"},
               {in_line, OUTPUTS("dx, mean"), "y dx"},
               {rounded, OUTPUTS("y, dx"), "y dx"},
               {across, OUTPUTS("y, dx"), "y | dx"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Text text;
    text_init(&text, &system_allocator);
    text_format(&text, "%s%s", cases[i].nodes, cases[i].outputs);
    must_become(text_string(&text), NORMALLY, cases[i].regions);
    text_deinit(&text);
  }
}

static void no_fuse_keeps_each_node_apart(void **state) {
  (void)state;
  must_become(residual_tail, (PassContext){.no_fuse = true}, "masked | dx | y");
}

// Dead code

static void what_no_output_needs_goes(void **state) {
  (void)state;
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") NODE("Add", "a, g", "b") NODE("ReLU", "b", "unused") OUTPUTS("a"),
              NORMALLY, "a");
  must_become(FILE_BEGIN BN("x, g, m, v", "dx, dg, db") NODE("ReLU", "dx", "a") OUTPUTS("db"), NORMALLY,
              "dx"); // one is enough
  must_become(FILE_BEGIN NODE("ReLU", "x", "a") OUTPUTS("x"), NORMALLY, "");
}

static void dead_values_and_constants_go_and_inputs_stay(void **state) {
  (void)state;
  Diagnostics d;
  PassContext c = context(&system_allocator, &d);
  Graph *g = read_text(&system_allocator,
                       "format: ngrad/1\nname: test\n"
                       "inputs: [{name: x, type: f32, shape: []}, {name: y, type: f32, shape: []}]\n"
                       "constants:\n"
                       "- {name: used, type: f32, shape: [], value: 1}\n"
                       "- {name: out, type: f32, shape: [], value: 1}\n"
                       "- {name: unused, type: f32, shape: [], value: 1}\n"
                       "- {name: by_dead, type: f32, shape: [], value: 1}\n"
                       "nodes:\n" NODE("Add", "y, by_dead", "a") NODE("Add", "x, used", "b") OUTPUTS("b, out"));
  assert_true(pass_dead_code(g, &c));
  assert_true(graph_verify(g, &d));
  assert_int_equal(g->nnodes, 1);
  assert_int_equal(g->ninputs, 2);
  assert_int_equal(g->nvalues, 5);
  static const char *const left[] = {"x", "y", "used", "out", "b"};
  for (size_t i = 0; i < g->nvalues; i++) assert_string_equal(g->values[i]->name, left[i]);
  assert_null(g->values[1]->uses);
  assert_false(pass_dead_code(g, &c)); // nothing is left to do
  graph_free(g);
  diagnostics_deinit(&d);
}

static void long_dead_chains_go_in_one_sweep(void **state) {
  (void)state;
  enum { MANY = 100000 };
  Diagnostics d;
  PassContext c = context(&system_allocator, &d);
  Graph *g = graph_new(&system_allocator, "test");
  const Shape shape = {.rank = 1, .extent = {EXTENT(4)}};
  Value *x = graph_add_input(g, "x", TYPE_F32, &shape), *v = x;
  for (int i = 0; i < MANY; i++) {
    Node *node = graph_add_node(g, &operators[OP_ReLU], NULL, 1, 1);
    node_set_input(node, 0, v);
    node_set_output(node, 0, v = graph_add_value(g, "v", TYPE_F32, &shape));
  }
  assert_true(graph_add_output(g, x));
  assert_true(pass_dead_code(g, &c));
  assert_int_equal(g->nnodes, 0);
  assert_int_equal(g->nvalues, 1);
  graph_free(g);
  diagnostics_deinit(&d);
}

// The runner

static const char with_dead[] =
    FILE_BEGIN NODE("ReLU", "x", "a") NODE("ReLU", "a", "b") NODE("ReLU", "r", "dead") OUTPUTS("b");

static void disabled_passes_do_not_run(void **state) {
  (void)state;
  static const char *const dead_code[] = {"dead-code"}, *const fuse[] = {"fuse"}, *const both[] = {"fuse", "dead-code"},
                           *const none[] = {"no such pass"};
  must_become(with_dead, NORMALLY, "a b");
  must_become(with_dead, (PassContext){.disabled = dead_code, .ndisabled = 1}, "a b | dead");
  must_become(with_dead, (PassContext){.disabled = fuse, .ndisabled = 1}, "a | b");
  must_become(with_dead, (PassContext){.disabled = both, .ndisabled = 2}, "a | b | dead");
  must_become(with_dead, (PassContext){.disabled = none, .ndisabled = 1}, "a b");
}

static void nothing_runs_after_the_last_pass_asked_for(void **state) {
  (void)state;
  static const char *const dead_code[] = {"dead-code"};
  for (int is_disabled = 0; is_disabled < 2; is_disabled++) {
    Diagnostics d;
    PassContext c = context(&system_allocator, &d);
    c.after = "dead-code";
    c.disabled = dead_code;
    c.ndisabled = is_disabled ? 1 : 0;
    Graph *g = read_text(&system_allocator, with_dead);
    assert_true(pipeline_run(g, &c));
    assert_int_equal(g->nnodes, is_disabled ? 3 : 2);
    assert_null(c.partition);
    graph_free(g);
    diagnostics_deinit(&d);
  }
}

static void passes_have_names_and_docs(void **state) {
  (void)state;
  assert_string_equal(passes[0].name, "splits");
  assert_string_equal(passes[npasses - 1].name, "slice-regions");
  for (size_t i = 0; i < npasses; i++) {
    assert_true(passes[i].run && passes[i].doc && *passes[i].doc);
    for (size_t k = 0; k < i; k++) assert_string_not_equal(passes[i].name, passes[k].name);
    assert_null(kernel_pass_find(passes[i].name));
  }
  for (size_t i = 0; kernel_pass_at(i); i++) {
    const KernelPass *pass = kernel_pass_at(i);
    assert_true(!pass->order != !pass->tune && pass->doc && *pass->doc);
    assert_ptr_equal(kernel_pass_find(pass->name), pass); // no other pass has the name
  }
}

// Kernels

static void each_region_is_a_kernel(void **state) {
  (void)state;
  Diagnostics d;
  for (int no_fuse = 0; no_fuse < 2; no_fuse++) {
    PassContext c = context(&system_allocator, &d);
    c.no_fuse = no_fuse;
    Graph *g = read_text(&system_allocator, residual_tail);
    assert_true(pipeline_run(g, &c));
    Program *p = pipeline_lower(g, &c);
    assert_non_null(p);
    assert_int_equal(p->nkernels, no_fuse ? 3 : 1);
    assert_ptr_equal(p->graph, g);
    for (size_t i = 0; i < p->nkernels; i++) assert_true(p->schedules[i]->nloops > 0);
    for (size_t i = 0; i < g->nvalues; i++) {
      bool is_between = strcmp(g->values[i]->name, "masked") == 0 || strcmp(g->values[i]->name, "dx") == 0;
      assert_int_equal(p->is_in_workspace[i], no_fuse && is_between);
    }
    program_free(p);
    graph_free(g);
    diagnostics_deinit(&d);
  }
}

static void graphs_without_nodes_are_programs_without_kernels(void **state) {
  (void)state;
  Diagnostics d;
  PassContext c = context(&system_allocator, &d);
  Graph *g = read_text(&system_allocator, FILE_BEGIN OUTPUTS("x"));
  assert_true(pipeline_run(g, &c));
  Program *p = pipeline_lower(g, &c);
  assert_non_null(p);
  assert_int_equal(p->nkernels, 0);
  assert_int_equal(p->workspace_nbytes, 0);
  program_free(p);
  program_free(NULL);
  graph_free(g);
  diagnostics_deinit(&d);
}

// The map of memory counts each line that a living tenant covers once, also where a result overwrites an operand.
static void must_count_lines(const Program *p) {
  MemoryMap m;
  assert_true(memory_map_init(&m, p, NULL));
  bool *covers = calloc(p->workspace_nbytes / LINE_NBYTES + 2, 1);
  assert_non_null(covers);
  for (uint32_t i = 0; i < p->nkernels; i++) {
    size_t nlines = 0;
    memset(covers, 0, p->workspace_nbytes / LINE_NBYTES + 2);
    for (size_t t = 0; t < m.count; t++) {
      const Tenant *tenant = &m.tenants[t];
      if (tenant->first > i || tenant->last < i) continue;
      for (size_t line = tenant->offset / LINE_NBYTES; line < (tenant->offset + tenant->nbytes) / LINE_NBYTES; line++) {
        nlines += !covers[line];
        covers[line] = true;
      }
    }
    assert_int_equal(m.live[i], nlines * LINE_NBYTES);
    assert_true(m.live[m.peak] >= m.live[i]);
  }
  free(covers);
  memory_map_deinit(&m);
}

// Each region that fuse makes has a schedule as one kernel.
static void every_region_has_a_kernel(void **state) {
  (void)state;
  static const RandomGraphOptions options = {.most_nodes = 24, .most_nelems = 3000};
  for (RandomSeeds s = random_seeds(number_of_graphs(1000)); random_next_seed(&s);) {
    Diagnostics d;
    PassContext c = context(&system_allocator, &d);
    Graph *g = random_graph(&system_allocator, s.seed, &options, &d);
    assert_true(g && graph_bind_dims(g, &d) && graph_infer(g, &d) && pipeline_run(g, &c));
    Program *p = pipeline_lower(g, &c);
    if (!p) fail_msg("%s", d.items[0].message);
    const uint32_t *region = c.partition->region;
    for (size_t i = 0; p && i < g->nnodes; i++)
      for (const Use *use = g->nodes[i]->outputs[0]->uses; use; use = use->next) {
        const uint32_t user = use->node->index;
        if (p->first_kernel[i] == UINT32_MAX && p->first_kernel[user] == UINT32_MAX) continue; // aliases
        assert_int_equal(p->first_kernel[i] == p->first_kernel[user], region[i] == region[user]);
      }
    if (p) must_count_lines(p);
    program_free(p);
    graph_free(g);
    diagnostics_deinit(&d);
  }
}

// Reasons why kernels are not fused

static void must_tell(const char *text, const char *told) {
  Diagnostics d;
  PassContext c = context(&system_allocator, &d);
  Graph *g = read_text(&system_allocator, text);
  assert_true(pipeline_run(g, &c));
  Program *p = pipeline_lower(g, &c);
  Text out, found;
  text_init(&out, &system_allocator);
  text_init(&found, &system_allocator);
  program_print(p, &out);
  for (const char *at = text_string(&out); (at = strstr(at, "  not with ")); at++) {
    at += strlen("  not with ");
    text_format(&found, "%s%.*s", found.nbytes ? "\n" : "", (int)strcspn(at, "\n"), at);
  }
  assert_string_equal(text_string(&found), told);
  text_deinit(&found);
  text_deinit(&out);
  program_free(p);
  graph_free(g);
  diagnostics_deinit(&d);
}

#define WITH(op, inputs, outputs, attributes)                                                                          \
  "- {op: " op ", inputs: [" inputs "], outputs: [" outputs "], attributes: {" attributes "}}\n"

// Lines of a file that begins with FILE_BEGIN are counted from 12 on.
static void kernels_tell_why_they_stopped_growing(void **state) {
  (void)state;
  must_tell(residual_tail, "");
  must_tell(FILE_BEGIN NODE("ReLU", "x", "a") SUM("a", "0", "false", "b") NODE("Add", "x, b", "c") OUTPUTS("c"),
            "kernel 0, ReLU (line 12): ReduceSum, in the same kernel, cannot be fused: b has other axes than "
            "the data and must go through memory");
  must_tell(FILE_BEGIN NODE("SoftMax", "x", "a") WITH("SoftMax", "a", "b", "axis: 0") OUTPUTS("b"),
            "kernel 0, SoftMax (line 12): no order of loops finishes the sums of both before they are needed");
  must_tell(FILE_BEGIN NODE("ReLU", "x", "a") WITH("StaticTranspose", "a", "b", "order: [1, 0]") OUTPUTS("b"),
            "kernel 0, ReLU (line 12): it iterates over [6, 8], the other over [8, 6]");
  must_tell(FILE_BEGIN NODE("ReLU", "x", "a") WITH("StaticTranspose", "a", "b", "order: [1, 0]")
                SUM("b", "0", "true", "t") WITH("StaticReshape", "t", "c", "shape: [6, 1], special_zero: false")
                    NODE("Add", "a, c", "d") OUTPUTS("d"),
            "kernel 0, ReLU (line 12): it iterates over [6, 8], the other over [8, 6]\n"
            "kernel 1, StaticTranspose (line 13): sums would be added in another order in one kernel than on their "
            "own\n"
            "kernel 0, ReLU (line 12): StaticTranspose, in an earlier kernel, needs a\n"
            "kernel 2, ReduceSum (line 14): t is read in place of the result of StaticReshape (line 15)");
  must_tell(FILE_BEGIN WITH("Concat", "x, g", "a", "axis: 0") NODE("ReLU", "a", "b") OUTPUTS("b"),
            "kernel 0, Concat (line 12): one of the two is never fused: its iteration domain differs from its "
            "neighbours'");
}

// Fails unless the program's text contains these lines.
static void must_print(const char *text, const char *lines) {
  Diagnostics d;
  PassContext c = context(&system_allocator, &d);
  Graph *g = read_text(&system_allocator, text);
  assert_true(pipeline_run(g, &c));
  Program *p = pipeline_lower(g, &c);
  Text out;
  text_init(&out, &system_allocator);
  program_print(p, &out);
  if (!strstr(text_string(&out), lines))
    fail_msg("found the program\n%s\nexpected it to contain\n%s", text_string(&out), lines);
  text_deinit(&out);
  program_free(p);
  graph_free(g);
  diagnostics_deinit(&d);
}

static const char padded_convolution[] =
    "format: ngrad/1\n"
    "inputs: [{name: x, type: f32, shape: [2, 9, 9, 8]}, {name: w, type: f32, shape: [3, 3, 8, 64]}]\n"
    "nodes:\n"
    "- {op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], pads_begin: [1, 1], "
    "pads_end: [1, 1], dilations: [1, 1]}}\n"
    "outputs: [y]\n";

// Each tensor counts once, however many sweeps read it: 6 x 8 elements of 4 bytes are 192, 8 are 32, 6 are 24.
static void kernels_count_bytes_as_one_does_by_hand(void **state) {
  (void)state;
  must_print(residual_tail, "  reads x g m v r: 640 bytes\n  writes dg db y: 256 bytes\n");
  must_print(FILE_BEGIN NODE("Add", "x, s", "a") NODE("Multiply", "a, o", "b") SUM("b", "0", "false", "c")
                 OUTPUTS("b, c"),
             "  reads x s o: 248 bytes\n  writes b c: 224 bytes\n");
  must_print(FILE_BEGIN WITH("StaticTranspose", "x", "a", "order: [1, 0]") NODE("ReLU", "a", "b") OUTPUTS("b"),
             "  reads x: 192 bytes\n  writes b: 192 bytes\n");
  must_print(FILE_BEGIN "- {op: TypeCast, inputs: [x], outputs: [{name: h, type: bf16}]}\n" SUM("h", "1", "true", "a")
                 OUTPUTS("h, a"),
             "  reads x: 192 bytes\n  writes h a: 108 bytes\n"); // half as much, and six numbers of two bytes
  must_print(FILE_BEGIN WITH("Concat", "x, g", "a", "axis: 0") OUTPUTS("a"), // a half of it by each of two kernels
             "  reads x: 192 bytes\n  writes a: 192 bytes\n");
  must_print(padded_convolution, // whose x is copied: 2 x 9 x 9 x 8 elements, 3 x 3 x 8 x 64 and 2 x 9 x 9 x 64
             "  reads w x: 23616 bytes\n  writes y: 41472 bytes\n  windows of x[d1 + d4 - 1 in 0..9, d2 + d5 - 1 in "
             "0..9], else 0.0\n");
}

// Failing allocations: the n-th from here, for every n. True when all went well, for there were no more than n.
static bool runs_with_failing(Graph *g, FailingAllocator *memory, size_t n, bool no_fuse) {
  Diagnostics d;
  PassContext c = context(&memory->allocator, &d);
  c.no_fuse = no_fuse;
  memory->failing = memory->ncalls + n;
  bool ran = pipeline_run(g, &c);
  Program *p = ran ? pipeline_lower(g, &c) : NULL;
  bool is_done = memory->ncalls <= memory->failing;
  assert_true(is_done ? p && !c.failed : !p && c.failed);
  assert_int_equal(d.out_of_memory, !is_done);
  assert_int_equal(d.nerrors, 0);
  program_free(p);
  diagnostics_deinit(&d);
  return is_done;
}

static void failing_allocations_are_errors(void **state) {
  (void)state;
  static const RandomGraphOptions options = {.most_nodes = 12, .most_nelems = 20000};
  for (RandomSeeds s = random_seeds(40); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    bool is_done = false;
    for (size_t n = 0; !is_done; n += takes_all() ? 1 : 5) {
      FailingAllocator memory;
      Diagnostics d;
      failing_allocator_init(&memory, NEVER_FAIL);
      diagnostics_init(&d, &memory.allocator);
      Graph *g = random_graph(&memory.allocator, seed, &options, &d);
      assert_true(g && graph_bind_dims(g, &d) && graph_infer(g, &d));
      is_done = runs_with_failing(g, &memory, n, seed % 2);
      diagnostics_deinit(&d);
      graph_free(g);
      assert_int_equal(memory.nlive, 0);
      assert_true(n < 1000);
    }
  }
}

// The graph after all passes, with the n-th allocation failing; NULL: out of memory, which was reported.
static char *becomes_with_failing(const char *file, size_t n, Text *text) {
  FailingAllocator memory;
  Diagnostics d, passes_d;
  failing_allocator_init(&memory, NEVER_FAIL);
  diagnostics_init(&d, &memory.allocator);
  Graph *g = yaml_read_file(&memory.allocator, file, NULL, &d);
  assert_true(g && graph_infer(g, &d));
  PassContext c = context(&memory.allocator, &passes_d);
  c.evaluate = interpret_node;
  c.fast_math = true; // more rules
  if (n != NEVER_FAIL) memory.failing = memory.ncalls + n;
  bool ran = pipeline_run(g, &c);
  bool has_failed = memory.ncalls > memory.failing;
  memory.failing = NEVER_FAIL;
  assert_int_equal(ran, !has_failed);
  assert_int_equal(c.failed, has_failed);
  assert_int_equal(passes_d.out_of_memory, has_failed);
  assert_int_equal(passes_d.nerrors, 0);
  if (ran) yaml_print(g, text);
  graph_free(g);
  diagnostics_deinit(&passes_d);
  diagnostics_deinit(&d);
  assert_int_equal(memory.nlive, 0);
  return ran ? (char *)text_string(text) : NULL;
}

// No pass mistakes a failed allocation for a missing value.
static void passes_tell_or_do_all(void **state) {
  (void)state;
  glob_t files;
  assert_int_equal(glob("tests/golden/*/*.yaml", 0, NULL, &files), 0);
  assert_int_equal(glob("models/*.yaml", GLOB_APPEND, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    Text all;
    text_init(&all, &system_allocator);
    const char *expected = becomes_with_failing(files.gl_pathv[i], NEVER_FAIL, &all), *found = NULL;
    for (size_t n = 0; !found; n++) {
      Text text;
      text_init(&text, &system_allocator);
      found = becomes_with_failing(files.gl_pathv[i], n, &text);
      if (found) assert_string_equal(found, expected);
      text_deinit(&text);
      assert_true(n < 10000);
    }
    text_deinit(&all);
  }
  globfree(&files);
}

// An arena asks for memory once a block. With room for so many bytes left, the first allocation that does not fit
// fails; true when all did.
static bool schedules_in(const Graph *g, size_t nbytes) {
  enum { BLOCK = 1 << 16, MOST_VALUES = 64 };
  FailingAllocator memory;
  Arena arena;
  ExprId value_expr[MOST_VALUES] = {0};
  bool is_inside[MOST_VALUES] = {false};
  bool is_prologue[MOST_VALUES] = {false};
  const LowerScratch scratch = {value_expr, is_inside, is_prologue, &usual_costs};
  assert_true(g->nvalues < MOST_VALUES && g->nnodes < MOST_VALUES);
  failing_allocator_init(&memory, NEVER_FAIL);
  arena_init(&arena, &memory.allocator);
  assert_true(arena_alloc(&arena, BLOCK) && nbytes <= BLOCK);
  arena.next = arena.end - nbytes;
  memory.failing = memory.ncalls;
  Kernel *k = lower_region(&arena, g, g->nodes, g->nnodes, (LoweredPart){.slots = UINT32_MAX}, &scratch);
  Schedule *s = k ? kernel_order(k, BEST_AXIS, NULL) : NULL;
  bool ok = s && schedule_tune(s, &target, NULL), is_done = memory.ncalls == memory.failing;
  assert_int_equal(ok, is_done);
  if (k) assert_int_equal(k->out_of_memory, !is_done); // else it would be told as a mistake in the graph
  arena_deinit(&arena);
  assert_int_equal(memory.nlive, 0);
  return is_done;
}

static void every_allocation_of_a_schedule_may_fail(void **state) {
  (void)state;
  enum { STEP = 16 }; // arenas round up to multiples of this
  Diagnostics d;
  context(&system_allocator, &d);
  Graph *g = read_text(&system_allocator, residual_tail);
  for (size_t nbytes = 0; !schedules_in(g, nbytes);) nbytes += STEP;
  graph_free(g);
  diagnostics_deinit(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elementwise_neighbours_join_a_norm),
      cmocka_unit_test(a_chain_is_one_region),
      cmocka_unit_test(nodes_that_read_the_same_join),
      cmocka_unit_test(a_graph_output_does_not_stop),
      cmocka_unit_test(users_in_one_region_are_as_one),
      cmocka_unit_test(norms_join_where_a_schedule_carries_both),
      cmocka_unit_test(narrower_operands_join_and_statistics_do_not),
      cmocka_unit_test(chains_that_read_the_same_become_one_region),
      cmocka_unit_test(a_working_set_out_of_cache_splits_a_region),
      cmocka_unit_test(a_region_streams_no_more_tensors_than_prefetchers_follow),
      cmocka_unit_test(sums_that_cannot_be_together_keep_their_neighbours),
      cmocka_unit_test(what_names_an_axis_does_not_spread),
      cmocka_unit_test(norms_of_other_groups_stay_apart),
      cmocka_unit_test(pieces_stand_alone),
      cmocka_unit_test(a_domain_of_more_axes_is_another),
      cmocka_unit_test(regions_stand_at_their_last_nodes),
      cmocka_unit_test(values_of_the_region_itself_are_no_streams),
      cmocka_unit_test(statistics_pass_between_norms_of_the_same_axes),
      cmocka_unit_test(no_fuse_keeps_each_node_apart),
      cmocka_unit_test(what_no_output_needs_goes),
      cmocka_unit_test(dead_values_and_constants_go_and_inputs_stay),
      cmocka_unit_test(long_dead_chains_go_in_one_sweep),
      cmocka_unit_test(disabled_passes_do_not_run),
      cmocka_unit_test(nothing_runs_after_the_last_pass_asked_for),
      cmocka_unit_test(passes_have_names_and_docs),
      cmocka_unit_test(each_region_is_a_kernel),
      cmocka_unit_test(graphs_without_nodes_are_programs_without_kernels),
      random_unit_test(every_region_has_a_kernel),
      cmocka_unit_test(kernels_tell_why_they_stopped_growing),
      cmocka_unit_test(kernels_count_bytes_as_one_does_by_hand),
      random_unit_test(failing_allocations_are_errors),
      cmocka_unit_test(passes_tell_or_do_all),
      cmocka_unit_test(every_allocation_of_a_schedule_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
