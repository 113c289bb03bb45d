// Inference of whole graphs, and its cost.
#include "ir/operators/infer.h"
#include "ir/operators/quantize.h"
#include "tests/unit/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static Value *add_value(Graph *g, bool is_input, int rank) {
  const Shape shape = {.rank = rank,
                       .extent = {EXTENT_UNKNOWN, EXTENT_UNKNOWN, EXTENT_UNKNOWN, EXTENT_UNKNOWN, EXTENT_UNKNOWN,
                                  EXTENT_UNKNOWN, EXTENT_UNKNOWN, EXTENT_UNKNOWN}};
  Value *v = is_input ? graph_add_input(g, "in", TYPE_F32, &shape) : graph_add_value(g, "made", TYPE_NONE, &shape);
  assert_non_null(v);
  return v;
}

static Value *add_node(Graph *g, const Operator *op, Value *a, Value *b) {
  Node *node = graph_add_node(g, op, NULL, op->ninputs, op->noutputs);
  Value *out = add_value(g, false, -1);
  assert_non_null(node);
  node_set_input(node, 0, a);
  if (b) node_set_input(node, 1, b);
  node_set_output(node, 0, out);
  node_set_defaults(node);
  return out;
}

static void assert_all_known(const Graph *g) {
  for (size_t i = 0; i < g->nvalues; i++) {
    assert_true(shape_is_known(&g->values[i]->shape));
    assert_int_equal(g->values[i]->type, TYPE_F32);
  }
}

static void ranks_of_intermediates_come_from_either_side(void **state) {
  (void)state;
  for (int is_last = 0; is_last < 2; is_last++) {
    Graph *g = graph_new(&system_allocator, "test");
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Value *x = add_value(g, true, is_last ? -1 : 2), *y = add_node(g, &operators[OP_ReLU], x, NULL);
    Value *z = add_node(g, &operators[OP_ReLUBackward], y, x), *w = add_node(g, &operators[OP_Add], z, y);
    Value *known = is_last ? z : x;
    known->shape = (Shape){.rank = 2, .extent = {EXTENT(2), EXTENT(0)}};
    assert_true(graph_infer(g, &d));
    assert_all_known(g);
    assert_int_equal(extent_value(w->shape.extent[0]), 2);
    diagnostics_deinit(&d);
    graph_free(g);
  }
}

static void each_mistake_is_told_once_and_hides_no_other(void **state) {
  (void)state;
  Graph *g = graph_new(&system_allocator, "test");
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Value *x = add_value(g, true, 1), *y = add_value(g, true, 1), *unknown = add_value(g, true, -1);
  x->shape.extent[0] = EXTENT(3);
  y->shape.extent[0] = EXTENT(4);
  Value *wrong = add_node(g, &operators[OP_ReLUBackward], x, y); // told
  add_node(g, &operators[OP_ReLU], wrong, NULL);                 // nothing is known of it
  Value *right = add_node(g, &operators[OP_ReLUBackward], unknown, x);
  add_node(g, &operators[OP_Add], right, y); // told
  assert_false(graph_infer(g, &d));
  assert_int_equal(d.nerrors, 2);
  assert_int_equal(extent_value(unknown->shape.extent[0]), 3);
  diagnostics_deinit(&d);
  graph_free(g);
}

// DynamicQuantize, which comes first, has 3 scales: x has 5 elements, as others say, or 3 when nothing else does.
static void scales_say_what_no_other_node_says(void **state) {
  (void)state;
  for (int is_said = 0; is_said < 2; is_said++) {
    Graph *g = graph_new(&system_allocator, "test");
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Value *x = add_value(g, true, 1), *scales = add_value(g, true, 1), *said = add_value(g, true, 1);
    Node *node = graph_add_node(g, &operators[OP_DynamicQuantize], NULL, 3, 1);
    assert_non_null(node);
    scales->shape.extent[0] = EXTENT(3);
    node_set_input(node, 0, x);
    node_set_input(node, 1, scales);
    node_set_output(node, 0, graph_add_value(g, "quantized", TYPE_S8, NULL));
    node_set_defaults(node);
    *node_attribute_slot(node, "qtype") = (AttributeValue){.is_set = true, .s64 = QUANTIZE_PER_CHANNEL};
    *node_attribute_slot(node, "axis") = (AttributeValue){.is_set = true};
    if (is_said) said->shape.extent[0] = EXTENT(5);
    for (int i = 0; i < 3; i++) said = add_node(g, &operators[OP_ReLU], said, NULL);
    add_node(g, &operators[OP_ReLUBackward], said, x);
    assert_true(graph_infer(g, &d));
    assert_int_equal(extent_value(x->shape.extent[0]), is_said ? 5 : 3);
    assert_int_equal(extent_value(said->shape.extent[0]), is_said ? 5 : 3);
    assert_true(graph_infers_nothing_new(g, &d));
    diagnostics_deinit(&d);
    graph_free(g);
  }
}

// y, declared as [1], is x without two elements; x is also an operand whose result is [height] or of unknown extent.
static void a_declared_number_hides_no_name_of_an_operand(void **state) {
  (void)state;
  for (int has_name = 0; has_name < 2; has_name++) {
    Graph *g = graph_new(&system_allocator, "test");
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Dim *height = graph_add_dim(g, "height", 3);
    Value *x = add_value(g, true, 1), *y = add_node(g, &operators[OP_Pad], x, NULL);
    assert_true(node_set_list(g, y->producer, "pads_begin", &(int64_t){-1}, 1));
    assert_true(node_set_list(g, y->producer, "pads_end", &(int64_t){-1}, 1));
    y->shape = (Shape){.rank = 1, .extent = {EXTENT(1)}};
    Value *other = add_node(g, &operators[OP_ReLU], x, NULL);
    if (has_name) other->shape = (Shape){.rank = 1, .extent = {{.dim = height}}};
    if (!graph_infer(g, &d)) fail_msg("%s", d.items[0].message);
    assert_true(x->shape.extent[0].dim == (has_name ? height : NULL));
    assert_int_equal(extent_value(x->shape.extent[0]), 3);
    assert_true(graph_infers_nothing_new(g, &d));
    diagnostics_deinit(&d);
    graph_free(g);
  }
}

static void too_many_elements_are_told(void **state) {
  (void)state;
  Graph *g = graph_new(&system_allocator, "test");
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Value *x = add_value(g, true, 2), *y = add_value(g, true, 2);
  x->shape = (Shape){.rank = 2, .extent = {EXTENT((int64_t)1 << 24), EXTENT(1)}};
  y->shape = (Shape){.rank = 2, .extent = {EXTENT(1), EXTENT((int64_t)1 << 23)}};
  add_node(g, &operators[OP_Add], x, y);
  assert_false(graph_infer(g, &d));
  assert_int_equal(d.nerrors, 1);
  assert_string_equal(d.items[0].message, "made: too many elements, expected fewer than 2^47");
  diagnostics_deinit(&d);
  graph_free(g);
}

// The cost of inference, in calls of operators' infer functions.

enum { MANY = 100000 };
static size_t nsteps;
static Operator counting; // ReLUBackward, counting

static bool counting_infer(Inference *inf, Node *node) {
  nsteps++;
  return operators[OP_ReLUBackward].infer(inf, node);
}

static Graph *counting_graph(void) {
  counting = operators[OP_ReLUBackward];
  counting.infer = counting_infer;
  nsteps = 0;
  Graph *g = graph_new(&system_allocator, "test");
  assert_non_null(g);
  return g;
}

// A node's infer function is called once, and again when the type, rank or extents of one of its three operands become
// known.
static void must_take_steps(Graph *g, size_t most_changes) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  assert_true(graph_infer(g, &d));
  assert_all_known(g);
  assert_true(nsteps <= g->nnodes * (1 + 3 * most_changes));
  nsteps = 0;
  assert_true(graph_infers_nothing_new(g, &d));
  assert_int_equal(nsteps, g->nnodes);
  diagnostics_deinit(&d);
  graph_free(g);
}

// v0 -> v1 -> ...; only the first or the last value's shape is known.
static void a_chain_is_inferred_in_linear_time(void **state) {
  (void)state;
  for (int is_last = 0; is_last < 2; is_last++) {
    Graph *g = counting_graph();
    Value *first = add_value(g, true, -1), *v = first;
    for (int i = 0; i < MANY; i++) v = add_node(g, &counting, v, v);
    *(is_last ? &v->shape : &first->shape) = (Shape){.rank = 2, .extent = {EXTENT(4), EXTENT(8)}};
    must_take_steps(g, 1);
  }
}

// A chain through nodes that each have two of its values as inputs, written in an order that goes to and fro.
static void a_zigzag_is_inferred_in_linear_time(void **state) {
  (void)state;
  Graph *g = counting_graph();
  Value **v = ARENA_ARRAY(&g->arena, Value *, MANY + 1);
  for (int i = 0; i <= MANY; i++) v[i] = add_value(g, true, -1);
  for (int i = 0; i < MANY; i++) {
    int at = i % 2 ? MANY - i : i; // the even ones upwards, the odd ones downwards
    add_node(g, &counting, v[at], v[at + 1]);
  }
  v[MANY]->shape = (Shape){.rank = 1, .extent = {EXTENT(4)}};
  must_take_steps(g, 2);
}

// Eight extents, each known in another place of a chain: every value learns eight times.
static void extents_that_come_one_by_one_are_inferred_in_linear_time(void **state) {
  (void)state;
  Graph *g = counting_graph();
  Value **v = ARENA_ARRAY(&g->arena, Value *, MANY + 1);
  for (int i = 0; i <= MANY; i++) v[i] = add_value(g, true, MAX_RANK);
  for (int i = 0; i < MANY; i++) add_node(g, &counting, v[i], v[i + 1]);
  for (int axis = 0; axis < MAX_RANK; axis++) v[(size_t)axis * (MANY / 7)]->shape.extent[axis] = EXTENT(2);
  must_take_steps(g, MAX_RANK + 2);
}

static void a_value_of_many_users_is_inferred_in_linear_time(void **state) {
  (void)state;
  Graph *g = counting_graph();
  Value *v = add_value(g, true, MAX_RANK), *other[MANY / 1000];
  for (int i = 0; i < MANY; i++) {
    Value *beside = add_value(g, true, MAX_RANK);
    add_node(g, &counting, v, beside);
    if (i % 1000 == 999) other[i / 1000] = beside;
  }
  for (int axis = 0; axis < MAX_RANK; axis++) other[99 - 12 * axis]->shape.extent[axis] = EXTENT(2);
  must_take_steps(g, MAX_RANK + 2);
}

static void inference_without_memory_is_an_error(void **state) {
  (void)state;
  bool is_done = false;
  for (size_t n = 0; !is_done; n++) {
    FailingAllocator memory;
    Diagnostics d;
    failing_allocator_init(&memory, NEVER_FAIL);
    diagnostics_init(&d, &memory.allocator);
    Graph *g = graph_new(&memory.allocator, "test");
    Value *v = add_value(g, true, 1), *wrong = add_value(g, true, 1);
    v->shape.extent[0] = EXTENT(3);
    wrong->shape.extent[0] = EXTENT(4);
    add_node(g, &operators[OP_Add], v, wrong); // a message takes memory too
    for (int i = 0; i < 600; i++) v = add_node(g, &operators[OP_ReLU], v, NULL);
    memory.failing = memory.ncalls + n;
    assert_false(graph_infer(g, &d));
    is_done = memory.ncalls <= memory.failing;
    assert_int_equal(d.out_of_memory, !is_done);
    assert_true(d.out_of_memory || d.nerrors == 1);
    diagnostics_deinit(&d);
    graph_free(g);
    assert_int_equal(memory.nlive, 0);
    assert_true(n < 100);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_of_intermediates_come_from_either_side),
      cmocka_unit_test(each_mistake_is_told_once_and_hides_no_other),
      cmocka_unit_test(scales_say_what_no_other_node_says),
      cmocka_unit_test(a_declared_number_hides_no_name_of_an_operand),
      cmocka_unit_test(too_many_elements_are_told),
      cmocka_unit_test(a_chain_is_inferred_in_linear_time),
      cmocka_unit_test(a_zigzag_is_inferred_in_linear_time),
      cmocka_unit_test(extents_that_come_one_by_one_are_inferred_in_linear_time),
      cmocka_unit_test(a_value_of_many_users_is_inferred_in_linear_time),
      cmocka_unit_test(inference_without_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
