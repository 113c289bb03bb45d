// The verifier of graphs: the tests break each invariant alone, and the verifier finds it.
#include "frontend/yaml/yaml.h"
#include "ir/graph/verify.h"
#include "ir/operators/norm.h"
#include "tests/unit/failing_allocator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static const char text[] =
    "format: ngrad/1\n"
    "name: g\n"
    "dims: {N: 4}\n"
    "inputs:\n"
    "  - {name: x, type: f32, shape: [N, 8]}\n"
    "  - {name: dy, type: f32, shape: [N, 8]}\n"
    "  - {name: mean, type: f32, shape: [8]}\n"
    "  - {name: var, type: f32, shape: [8]}\n"
    "constants:\n"
    "  - {name: half, type: f32, shape: [N, 1], value: 0.5}\n"
    "  - {name: two, type: f32, shape: [2, 1, 1], values: [1, 2]}\n"
    "nodes:\n"
    "  - {op: BatchNormTrainingBackward, inputs: [x, dy, mean, var], outputs: [dx, dg, db], attributes: {epsilon: 1}}\n"
    "  - {op: Add, inputs: [dx, half], outputs: [y]}\n"
    "  - {op: Multiply, inputs: [y, two], outputs: [w]}\n"
    "  - {op: ReLU, inputs: [w], outputs: [z]}\n"
    "outputs: [z, dg, db]\n";

enum { NORM, ADD, MULTIPLY, RELU };

static Graph *read_graph(const Allocator *allocator) {
  Diagnostics d;
  diagnostics_init(&d, allocator);
  Graph *g = yaml_read(allocator, "test.yaml", text, sizeof text - 1, NULL, &d);
  if (!g) fail_msg("%s", d.items[0].message);
  diagnostics_deinit(&d);
  return g;
}

static Value *find(const Graph *g, const char *name) {
  for (size_t i = 0; i < g->nvalues; i++)
    if (strcmp(g->values[i]->name, name) == 0) return g->values[i];
  fail_msg("the graph has no value %s", name);
  return NULL;
}

static AttributeValue *attribute(const Graph *g, size_t node, const char *name) {
  return (AttributeValue *)node_attribute(g->nodes[node], name);
}

// Breaks

static void give_two_values_one_name(Graph *g) {
  find(g, "y")->name = "dx";
}
static void give_a_value_another_index(Graph *g) {
  find(g, "y")->index = 0;
}
static void give_a_value_an_index_beyond(Graph *g) {
  find(g, "y")->index = 1000;
}
static void give_a_node_another_index(Graph *g) {
  g->nodes[ADD]->index = 3;
}
static void swap_nodes(Graph *g) {
  Node *node = g->nodes[ADD];
  g->nodes[ADD] = g->nodes[MULTIPLY];
  g->nodes[MULTIPLY] = node;
  for (uint32_t i = 0; i < g->nnodes; i++) g->nodes[i]->index = i;
}
static void make_a_node_its_own_producer(Graph *g) {
  node_set_input(g->nodes[RELU], 0, find(g, "z"));
}
static void take_an_input(Graph *g) {
  node_set_input(g->nodes[NORM], 2, NULL);
}
static void take_an_output(Graph *g) {
  node_set_output(g->nodes[NORM], 0, NULL);
}
static void take_two_operands(Graph *g) {
  node_set_input(g->nodes[ADD], 0, NULL);
  node_set_input(g->nodes[ADD], 1, NULL);
}
static void shorten_the_inputs(Graph *g) {
  node_set_input(g->nodes[ADD], 1, NULL);
  g->nodes[ADD]->ninputs = 1;
}
static void lengthen_the_outputs(Graph *g) {
  g->nodes[ADD]->noutputs = 2;
}
static void sign_as_another_operator(Graph *g) {
  g->nodes[ADD]->signature = &signatures[0];
}
static void use_without_listing(Graph *g) {
  g->nodes[ADD]->inputs[1] = find(g, "mean");
}
static void list_without_using(Graph *g) {
  g->nodes[ADD]->inputs[1] = NULL;
  g->nodes[ADD]->op = &operators[OP_ReLU];
  g->nodes[ADD]->ninputs = 1;
}
static void lose_a_use(Graph *g) {
  find(g, "half")->uses = NULL;
}
static void list_a_use_twice(Graph *g) {
  Use *use = find(g, "half")->uses; // a ring that looks whole from each place
  use->next = use;
}
static void link_a_use_wrongly(Graph *g) {
  static Use *nowhere;
  find(g, "half")->uses->link = &nowhere;
}
static void use_in_a_removed_node(Graph *g) {
  Node *node = graph_add_node(g, &operators[OP_ReLU], NULL, 1, 1);
  node_set_input(node, 0, find(g, "x"));
  g->nnodes--;
}
static void make_by_a_removed_node(Graph *g) {
  Node *node = graph_add_node(g, &operators[OP_ReLU], NULL, 1, 1);
  node_set_output(node, 0, find(g, "y"));
  g->nnodes--;
}
static void claim_another_nodes_value(Graph *g) {
  find(g, "w")->producer = g->nodes[ADD];
}
static void claim_another_slot(Graph *g) {
  find(g, "dg")->output_slot = 2;
}
static void give_no_origin(Graph *g) {
  find(g, "half")->constant = NULL;
}
static void give_two_origins(Graph *g) {
  find(g, "y")->constant = find(g, "half")->constant;
}
static void make_an_input(Graph *g) {
  find(g, "y")->is_input = true;
}
static void forget_the_type_of_an_input(Graph *g) {
  find(g, "x")->type = TYPE_NONE;
}
static void forget_the_type_of_a_result(Graph *g) {
  find(g, "z")->type = TYPE_NONE;
}
static void forget_the_rank_of_a_result(Graph *g) {
  find(g, "z")->shape.rank = -1;
}
static void give_a_rank_beyond(Graph *g) {
  find(g, "z")->shape.rank = MAX_RANK + 1;
}
static void give_a_negative_extent(Graph *g) {
  find(g, "z")->shape.extent[0] = EXTENT(-5);
}
static void give_a_wrong_type(Graph *g) {
  find(g, "z")->type = TYPE_F64;
}
static void give_a_wrong_extent(Graph *g) {
  find(g, "y")->shape.extent[1] = EXTENT(9);
}
static void forget_an_extent(Graph *g) {
  find(g, "dx")->shape.extent[0] = EXTENT_UNKNOWN;
}
static void unset_an_attribute(Graph *g) {
  attribute(g, NORM, "epsilon")->is_set = false;
}
static void give_epsilon_zero(Graph *g) {
  attribute(g, NORM, "epsilon")->f32 = 0;
}
static void give_epsilon_nan(Graph *g) {
  attribute(g, NORM, "epsilon")->f32 = NAN;
}
static void choose_what_there_is_not(Graph *g) {
  attribute(g, NORM, "data_format")->s64 = 2;
}
static void choose_less_than_nothing(Graph *g) {
  attribute(g, ADD, "auto_broadcast")->s64 = -1;
}
static void forget_an_extent_of_a_constant(Graph *g) {
  find(g, "half")->shape.extent[1] = EXTENT_UNKNOWN;
}
static void name_an_extent_of_elements(Graph *g) {
  find(g, "two")->shape.extent[0] = (Extent){g->dims[0], -1};
}
static void list_an_input_twice(Graph *g) {
  g->inputs[1] = g->inputs[0];
}
static void list_an_input_that_is_none(Graph *g) {
  g->inputs[1] = find(g, "y");
}
static void leave_an_input_unlisted(Graph *g) {
  g->ninputs--;
}
static void leave_an_output_unlisted(Graph *g) {
  g->noutputs--;
}
static void list_an_output_that_is_none(Graph *g) {
  find(g, "dg")->is_output = false;
}
static void list_an_output_that_nothing_makes(Graph *g) {
  graph_add_output(g, graph_add_value(g, "nothing", TYPE_F32, NULL));
}
static void use_a_value_of_another_graph(Graph *g) {
  static Value stranger = {.name = "stranger", .type = TYPE_F32, .is_input = true};
  stranger.uses = NULL;
  node_set_input(g->nodes[ADD], 1, &stranger);
}

#define BREAK(f, message)                                                                                              \
  { f, #f, message }
static const struct {
  void (*spoil)(Graph *g);
  const char *name, *message;
} breaks[] = {
    BREAK(give_two_values_one_name, "two values are named dx"),
    BREAK(give_a_value_another_index, "y: its index in the graph is another value's"),
    BREAK(give_a_value_an_index_beyond, "y: its index in the graph is another value's"),
    BREAK(give_a_node_another_index, "y: its producer does not list it as an output"),
    BREAK(swap_nodes, "Multiply: must come after the producer of its input y"),
    BREAK(make_a_node_its_own_producer, "ReLU: must come after the producer of its input z"),
    BREAK(take_an_input, "BatchNormTrainingBackward: missing input mean"),
    BREAK(take_an_output, "BatchNormTrainingBackward: missing output diff_src"),
    BREAK(take_two_operands, "Add: missing input src_0"),
    BREAK(shorten_the_inputs, "Add: has 1 inputs and 1 outputs, expected 2 and 1"),
    BREAK(lengthen_the_outputs, "Add: has 2 inputs and 2 outputs, expected 2 and 1"),
    BREAK(sign_as_another_operator,
          "BatchNormTrainingBackprop: its signature is another operator's, expected one of Add"),
    BREAK(use_without_listing, "half: its list of uses does not match the inputs of nodes"),
    BREAK(list_without_using, "half: its list of uses does not match the inputs of nodes"),
    BREAK(lose_a_use, "g: nodes have inputs whose values do not list these uses"),
    BREAK(list_a_use_twice, "half: its list of uses does not match the inputs of nodes"),
    BREAK(link_a_use_wrongly, "half: its list of uses does not match the inputs of nodes"),
    BREAK(use_in_a_removed_node, "x: its list of uses does not match the inputs of nodes"),
    BREAK(make_by_a_removed_node, "y: its producer does not list it as an output"),
    BREAK(claim_another_nodes_value, "w: its producer does not list it as an output"),
    BREAK(claim_another_slot, "dg: its producer does not list it as an output"),
    BREAK(give_no_origin, "Add: no node, graph input or constant provides its input half"),
    BREAK(give_two_origins, "y: expected exactly one origin: a node, the graph's inputs or a constant"),
    BREAK(make_an_input, "y: expected exactly one origin: a node, the graph's inputs or a constant"),
    BREAK(forget_the_type_of_an_input, "x: expected a type"),
    BREAK(forget_the_type_of_a_result,
          "ReLU: the type of z does not follow from the inputs, expected it to be declared"),
    BREAK(forget_the_rank_of_a_result,
          "ReLU: the rank of z does not follow from the inputs, expected it to be declared"),
    BREAK(give_a_rank_beyond, "z: expected at most 8 axes and no negative extent"),
    BREAK(give_a_negative_extent, "z: expected at most 8 axes and no negative extent"),
    BREAK(give_a_wrong_type, "ReLU: w is f32 and z is f64: expected one type"),
    BREAK(give_a_wrong_extent, "Add: axis 1 of y [N, 9] and axis 1 of dx [N, 8]: expected the same extent"),
    BREAK(forget_an_extent, "BatchNormTrainingBackward: dx is not fully inferred"),
    BREAK(unset_an_attribute, "BatchNormTrainingBackward: missing attribute epsilon"),
    BREAK(give_epsilon_zero, "BatchNormTrainingBackward: expected a positive epsilon"),
    BREAK(give_epsilon_nan, "BatchNormTrainingBackward: expected a positive epsilon"),
    BREAK(choose_what_there_is_not, "BatchNormTrainingBackward: expected one of the choices of data_format"),
    BREAK(choose_less_than_nothing, "Add: expected one of the choices of auto_broadcast"),
    BREAK(forget_an_extent_of_a_constant, "constant half: expected a shape without unknown extents, found [N, _]"),
    BREAK(name_an_extent_of_elements, "constant two: expected a shape without unknown extents, found [N, 1, 1]"),
    BREAK(list_an_input_twice, "x: the graph lists it as an input twice, or it is not marked as an input"),
    BREAK(list_an_input_that_is_none, "y: the graph lists it as an input twice, or it is not marked as an input"),
    BREAK(leave_an_input_unlisted, "g: a value is marked as input or output, but the graph does not list it"),
    BREAK(leave_an_output_unlisted, "g: a value is marked as input or output, but the graph does not list it"),
    BREAK(list_an_output_that_is_none, "dg: expected an output that a node, input or constant provides"),
    BREAK(list_an_output_that_nothing_makes, "nothing: expected an output that a node, input or constant provides"),
    BREAK(use_a_value_of_another_graph, "Add: has an operand that is no value of this graph: stranger"),
};

static void each_broken_invariant_is_found(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Graph *g = read_graph(&system_allocator);
    assert_true(graph_verify(g, &d));
    assert_int_equal(d.nerrors, 0);
    breaks[i].spoil(g);
    if (graph_verify(g, &d)) fail_msg("%s: the verifier accepts the graph, expected a message", breaks[i].name);
    assert_true(d.count > 0);
    if (strcmp(d.items[0].message, breaks[i].message) != 0)
      fail_msg("%s: expected %s, found %s", breaks[i].name, breaks[i].message, d.items[0].message);
    diagnostics_deinit(&d);
    graph_free(g);
  }
}

static void independent_mistakes_are_all_told(void **state) {
  (void)state;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = read_graph(&system_allocator);
  take_two_operands(g);
  give_epsilon_zero(g);
  forget_the_rank_of_a_result(g);
  give_two_values_one_name(g);
  assert_false(graph_verify(g, &d));
  assert_int_equal(d.nerrors, 5);
  diagnostics_deinit(&d);
  graph_free(g);
}

static void must_be_valid(Graph *g) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  bool ok = graph_verify(g, &d);
  if (!ok) fail_msg("%s", d.items[0].message);
  assert_int_equal(d.nerrors + d.nwarnings, 0);
  diagnostics_deinit(&d);
}

static void what_a_pass_may_leave_is_valid(void **state) {
  (void)state;
  Graph *g = read_graph(&system_allocator);
  graph_add_value(g, "dead", TYPE_NONE, NULL); // nothing makes or needs it
  must_be_valid(g);
  graph_add_output(g, find(g, "z")); // once more
  graph_add_output(g, find(g, "x")); // an input, a constant
  graph_add_output(g, find(g, "half"));
  must_be_valid(g);
  node_set_output(g->nodes[RELU], 0, NULL); // a node that another has taken the place of
  node_set_output(g->nodes[RELU], 0, find(g, "z"));
  must_be_valid(g);
  graph_free(g);
}

static void graphs_without_nodes_are_valid(void **state) {
  (void)state;
  Graph *g = graph_new(&system_allocator, "empty");
  must_be_valid(g);
  graph_free(g);
}

static void unknown_extents_are_valid_where_nothing_tells_them(void **state) {
  (void)state;
  static const char *const names[] = {"x", "dy", "dx", "y"};
  Graph *g = read_graph(&system_allocator);
  node_set_input(g->nodes[ADD], 1, find(g, "dx"));
  for (size_t i = 0; i < 4; i++) find(g, names[i])->shape.extent[0] = EXTENT_UNKNOWN;
  find(g, "w")->shape.extent[1] = find(g, "z")->shape.extent[1] = EXTENT_UNKNOWN;
  must_be_valid(g);
  graph_free(g);
}

static void many_nodes_and_outputs_are_verified_in_time(void **state) {
  (void)state;
  enum { MANY = 100000 };
  Graph *g = graph_new(&system_allocator, "many");
  const Shape shape = {.rank = 1, .extent = {EXTENT(4)}};
  Value *x = graph_add_input(g, "x", TYPE_F32, &shape);
  for (int i = 0; i < MANY; i++) {
    char name[32];
    snprintf(name, sizeof name, "v%d", i);
    Node *node = graph_add_node(g, &operators[OP_ReLU], NULL, 1, 1);
    Value *v = graph_add_value(g, name, TYPE_F32, &shape);
    node_set_input(node, 0, x);
    node_set_output(node, 0, v);
    assert_true(graph_add_output(g, v));
  }
  must_be_valid(g); // or the runner's time limit
  graph_free(g);
}

static void verifying_without_memory_is_an_error(void **state) {
  (void)state;
  bool is_done = false;
  for (size_t n = 0; !is_done; n++) {
    FailingAllocator memory;
    Diagnostics d;
    failing_allocator_init(&memory, NEVER_FAIL);
    Graph *g = read_graph(&memory.allocator);
    diagnostics_init(&d, &memory.allocator);
    memory.failing = memory.ncalls + n;
    bool ok = graph_verify(g, &d);
    is_done = memory.ncalls <= memory.failing;
    assert_true(ok == is_done && d.out_of_memory == !is_done);
    assert_int_equal(d.nerrors, 0);
    diagnostics_deinit(&d);
    graph_free(g);
    assert_int_equal(memory.nlive, 0);
    assert_true(n < 100);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_broken_invariant_is_found),
      cmocka_unit_test(independent_mistakes_are_all_told),
      cmocka_unit_test(what_a_pass_may_leave_is_valid),
      cmocka_unit_test(graphs_without_nodes_are_valid),
      cmocka_unit_test(unknown_extents_are_valid_where_nothing_tells_them),
      cmocka_unit_test(many_nodes_and_outputs_are_verified_in_time),
      cmocka_unit_test(verifying_without_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
