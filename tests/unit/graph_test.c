// Building graphs: use lists, order, named extents, and the state after replacing and removing. graph_clone_test.c
// tests clones.
#include "ir/operators/operator.h"
#include "tests/unit/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { MANY = 100000 };

static const Shape four = {.rank = 1, .extent = {{NULL, 4}}};

static Graph *new_graph(void) {
  Graph *g = graph_new(&system_allocator, "test");
  assert_non_null(g);
  return g;
}

static Value *input(Graph *g, const char *name) {
  Value *v = graph_add_input(g, name, TYPE_F32, &four);
  assert_non_null(v);
  return v;
}

static Value *value(Graph *g, const char *name) {
  Value *v = graph_add_value(g, name, TYPE_F32, &four);
  assert_non_null(v);
  return v;
}

// out = op(a, b); b NULL: op is unary.
static Node *node(Graph *g, Value *a, Value *b, Value *out) {
  const Operator *op = &operators[b ? OP_Add : OP_ReLU];
  Node *n = graph_add_node(g, op, NULL, op->ninputs, op->noutputs);
  assert_non_null(n);
  node_set_input(n, 0, a);
  if (b) node_set_input(n, 1, b);
  node_set_output(n, 0, out);
  return n;
}

static void must_sort(Graph *g) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  assert_true(graph_sort(g, &d));
  assert_int_equal(d.nerrors, 0);
  diagnostics_deinit(&d);
  for (size_t i = 0; i < g->nnodes; i++) {
    assert_int_equal(g->nodes[i]->index, i);
    for (uint32_t k = 0; k < g->nodes[i]->ninputs; k++) {
      const Node *producer = g->nodes[i]->inputs[k] ? g->nodes[i]->inputs[k]->producer : NULL;
      assert_true(!producer || producer->index < i);
    }
  }
}

// The names of the nodes' outputs, in the order of the nodes: "a b c ".
static void assert_order(const Graph *g, const char *expected) {
  char order[256] = "";
  for (size_t i = 0; i < g->nnodes; i++) {
    strncat(order, g->nodes[i]->outputs[0]->name, sizeof order - strlen(order) - 1);
    strncat(order, " ", sizeof order - strlen(order) - 1);
  }
  assert_string_equal(order, expected);
}

// The lists of all values hold each input of each node once, and nothing else.
static void assert_uses_are_whole(const Graph *g) {
  size_t nlisted = 0, ninputs = 0;
  for (size_t i = 0; i < g->nvalues; i++) {
    for (const Use *use = g->values[i]->uses; use; use = use->next, nlisted++) {
      assert_ptr_equal(use->node->inputs[use->slot], g->values[i]);
      assert_ptr_equal(*use->link, use);
    }
  }
  for (size_t i = 0; i < g->nnodes; i++)
    for (uint32_t k = 0; k < g->nodes[i]->ninputs; k++) ninputs += g->nodes[i]->inputs[k] != NULL;
  assert_int_equal(nlisted, ninputs);
}

// Values and uses

static void names_are_copied_and_indices_count(void **state) {
  (void)state;
  Graph *g = new_graph();
  char name[] = "x";
  const Value *x = input(g, name), *y = value(g, "y");
  name[0] = '?';
  assert_string_equal(x->name, "x");
  assert_true(x->is_input && !y->is_input);
  assert_int_equal(x->index, 0);
  assert_int_equal(y->index, 1);
  assert_ptr_equal(g->values[1], y);
  assert_ptr_equal(g->inputs[0], x);
  assert_int_equal(g->ninputs, 1);
  graph_free(g);
  graph_free(NULL);
}

static void uses_follow_inputs(void **state) {
  (void)state;
  Graph *g = new_graph();
  Value *x = input(g, "x"), *y = input(g, "y"), *sum = value(g, "sum");
  Node *add = node(g, x, x, sum);
  assert_int_equal(value_count_uses(x), 2); // one an operand
  assert_ptr_equal(sum->producer, add);
  node_set_input(add, 0, y);
  assert_int_equal(value_count_uses(x), 1);
  assert_int_equal(value_count_uses(y), 1);
  assert_int_equal(y->uses->slot, 0);
  node_set_input(add, 0, y); // again
  assert_int_equal(value_count_uses(y), 1);
  node_set_input(add, 0, NULL);
  node_set_input(add, 0, NULL);
  assert_null(y->uses);
  assert_uses_are_whole(g);
  graph_free(g);
}

static void uses_are_removed_from_any_place_in_a_list(void **state) {
  (void)state;
  enum { COUNT = 6 };
  for (int first = 0; first < COUNT; first++) {
    Graph *g = new_graph();
    Value *x = input(g, "x");
    for (int i = 0; i < COUNT; i++) node(g, x, NULL, value(g, "y"));
    for (int i = 0; i < COUNT; i++) {
      node_set_input(g->nodes[(first + i * 5) % COUNT], 0, NULL); // 5 and 6 have no common factor
      assert_int_equal(value_count_uses(x), COUNT - 1 - i);
      assert_uses_are_whole(g);
    }
    graph_free(g);
  }
}

static void replaced_uses_move_over(void **state) {
  (void)state;
  Graph *g = new_graph();
  Value *x = input(g, "x"), *y = input(g, "y"), *a = value(g, "a"), *b = value(g, "b");
  node(g, x, x, a);
  node(g, x, y, b);
  value_replace_uses(x, y);
  assert_null(x->uses);
  assert_int_equal(value_count_uses(y), 4);
  value_replace_uses(y, y); // nothing to do
  assert_int_equal(value_count_uses(y), 4);
  value_replace_uses(x, a);
  assert_null(a->uses);
  assert_uses_are_whole(g);
  graph_free(g);
}

static void a_value_that_another_node_makes_by_now_stays_its(void **state) {
  (void)state;
  Graph *g = new_graph();
  Value *x = input(g, "x"), *y = value(g, "y"), *z = value(g, "z");
  Node *old = node(g, x, NULL, y), *new = node(g, x, x, z);
  node_set_output(new, 0, y);
  assert_null(z->producer);
  node_set_output(old, 0, NULL); // as when it is removed
  assert_ptr_equal(y->producer, new);
  node_set_output(new, 0, NULL);
  assert_null(y->producer);
  graph_free(g);
}

static void fresh_names_are_free(void **state) {
  (void)state;
  Graph *g = new_graph();
  input(g, "x");
  input(g, "x_2");
  assert_string_equal(graph_fresh_name(g, "x"), "x_3");
  input(g, "x_3");
  assert_string_equal(graph_fresh_name(g, "x"), "x_4"); // x_3 is taken
  graph_free(g);
}

// Order

static void a_valid_order_stays(void **state) {
  (void)state;
  Graph *g = new_graph();
  Value *x = input(g, "x"), *b = value(g, "b"), *a = value(g, "a"), *d = value(g, "d"), *c = value(g, "c");
  node(g, x, NULL, b);
  node(g, x, NULL, a);
  node(g, a, b, d);
  node(g, x, NULL, c);
  must_sort(g);
  assert_order(g, "b a d c ");
  must_sort(g);
  assert_order(g, "b a d c ");
  graph_free(g);
}

static void only_what_a_node_lacks_moves_up(void **state) {
  (void)state;
  Graph *g = new_graph();
  Value *x = input(g, "x"), *a = value(g, "a"), *b = value(g, "b"), *c = value(g, "c"), *d = value(g, "d"),
        *e = value(g, "e");
  node(g, x, NULL, e);
  node(g, a, b, c); // a and b are written behind
  node(g, x, NULL, d);
  node(g, a, NULL, b);
  node(g, x, NULL, a);
  must_sort(g);
  assert_order(g, "e a b c d ");
  graph_free(g);
}

static void nodes_without_operands_and_graphs_without_nodes_are_sorted(void **state) {
  (void)state;
  Graph *g = new_graph();
  must_sort(g);
  node(g, NULL, NULL, value(g, "a"));
  node(g, NULL, NULL, value(g, "b"));
  must_sort(g);
  assert_order(g, "a b ");
  node(g, NULL, NULL, value(g, "c")); // sorting leaves a graph that can grow
  assert_order(g, "a b c ");
  graph_free(g);
}

// x -> v0 -> v1 -> ...; node i is written at place order(i).
static Graph *chain(bool is_backwards) {
  Graph *g = new_graph();
  Value *x = input(g, "x");
  Value **made = ARENA_ARRAY(&g->arena, Value *, MANY);
  assert_non_null(made);
  for (int i = 0; i < MANY; i++) made[i] = value(g, "v");
  for (int i = 0; i < MANY; i++) {
    int at = is_backwards ? MANY - 1 - i : i;
    node(g, at ? made[at - 1] : x, NULL, made[at]);
  }
  return g;
}

static void long_chains_are_sorted_without_recursion(void **state) {
  (void)state;
  for (int is_backwards = 0; is_backwards < 2; is_backwards++) {
    Graph *g = chain(is_backwards);
    must_sort(g);
    assert_ptr_equal(g->nodes[0]->inputs[0], g->inputs[0]);
    assert_uses_are_whole(g);
    graph_free(g);
  }
}

static void wide_graphs_are_sorted(void **state) {
  (void)state;
  Graph *g = new_graph();
  Value *x = input(g, "x"), *y = value(g, "y");
  for (int i = 0; i < MANY; i++) node(g, y, NULL, value(g, "v"));
  node(g, x, NULL, y);
  must_sort(g);
  assert_int_equal(value_count_uses(y), MANY);
  assert_ptr_equal(y->producer, g->nodes[0]);
  graph_free(g);
}

static void must_be_cyclic(Graph *g, const char *message) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Node **nodes = g->nodes;
  assert_false(graph_sort(g, &d));
  assert_ptr_equal(g->nodes, nodes); // unchanged
  assert_int_equal(d.nerrors, 1);
  assert_string_equal(d.items[0].message, message);
  diagnostics_deinit(&d);
  graph_free(g);
}

static void cycles_are_named(void **state) {
  (void)state;
  Graph *g = new_graph();
  Value *a = value(g, "a"), *b, *c, *x;
  node(g, a, NULL, a);
  must_be_cyclic(g, "cycle: each of these depends on the next, and the last on the first: a");

  g = new_graph();
  a = value(g, "a"), b = value(g, "b");
  node(g, b, NULL, a);
  node(g, a, NULL, b);
  must_be_cyclic(g, "cycle: each of these depends on the next, and the last on the first: b, a");

  g = new_graph();
  a = value(g, "a"), b = value(g, "b"), c = value(g, "c"), x = input(g, "x");
  node(g, x, c, a); // nodes that depend on the cycle are not named
  node(g, a, NULL, b);
  node(g, b, x, c);
  node(g, c, c, value(g, "outside"));
  must_be_cyclic(g, "cycle: each of these depends on the next, and the last on the first: b, c, a");
}

static void a_cycle_behind_other_nodes_is_named_alone(void **state) {
  (void)state;
  Graph *g = new_graph();
  Value *a = value(g, "a"), *b = value(g, "b"), *user = value(g, "user"), *last = value(g, "last");
  node(g, user, NULL, last);
  node(g, a, NULL, user);
  node(g, b, NULL, a);
  node(g, a, NULL, b);
  must_be_cyclic(g, "cycle: each of these depends on the next, and the last on the first: b, a");
}

static void of_a_long_cycle_a_few_are_named(void **state) {
  (void)state;
  Graph *g = chain(false);
  node_set_input(g->nodes[0], 0, g->nodes[MANY - 1]->outputs[0]);
  must_be_cyclic(g, "cycle: each of these depends on the next, and the last on the first: v, v, v, v, v, v, v, v, ...");
}

static void a_sort_without_memory_leaves_the_graph(void **state) {
  (void)state;
  for (int is_cyclic = 0; is_cyclic < 2; is_cyclic++) {
    bool is_done = false;
    for (size_t n = 0; !is_done; n++) {
      FailingAllocator memory;
      Diagnostics d;
      failing_allocator_init(&memory, NEVER_FAIL);
      Graph *g = graph_new(&memory.allocator, "test");
      diagnostics_init(&d, &memory.allocator);
      Value *x = input(g, "x"), *before = x;
      for (int i = 0; i < 600; i++) { // more than a block's rest holds
        Value *v = value(g, "v");
        node(g, before, NULL, v);
        before = v;
      }
      if (is_cyclic) node_set_input(g->nodes[0], 0, before);
      Node **nodes = g->nodes;
      memory.failing = memory.ncalls + n;
      bool ok = graph_sort(g, &d);
      is_done = memory.ncalls <= memory.failing;
      assert_true(is_done ? ok == !is_cyclic && !d.out_of_memory : !ok && d.out_of_memory);
      if (!ok) assert_ptr_equal(g->nodes, nodes);
      diagnostics_deinit(&d);
      graph_free(g);
      assert_int_equal(memory.nlive, 0);
      assert_true(n < 100);
    }
  }
}

static void building_without_memory_gives_null(void **state) {
  (void)state;
  bool is_done = false;
  for (size_t n = 0; !is_done; n++) {
    FailingAllocator memory;
    failing_allocator_init(&memory, n);
    Graph *g = graph_new(&memory.allocator, "test");
    size_t nnulls = g == NULL;
    for (int i = 0; g && i < 200; i++) {
      size_t nvalues = g->nvalues, nnodes = g->nnodes, ninputs = g->ninputs, ndims = g->ndims;
      Value *v = graph_add_input(g, "x", TYPE_F32, &four);
      Node *made = graph_add_node(g, &operators[OP_Add], NULL, 2, 1);
      bool is_output = v && graph_add_output(g, v);
      Dim *dim = graph_add_dim(g, "N", 4);
      if (!v || !made || !is_output || !dim || !graph_fresh_name(g, "y")) nnulls++;
      assert_int_equal(g->nvalues, nvalues + (v != NULL));
      assert_int_equal(g->ninputs, ninputs + (v != NULL));
      assert_int_equal(g->nnodes, nnodes + (made != NULL));
      assert_int_equal(g->ndims, ndims + (dim != NULL));
    }
    is_done = memory.ncalls <= n;
    assert_true((nnulls == 0) == is_done);
    graph_free(g);
    assert_int_equal(memory.nlive, 0);
    assert_true(n < 1000);
  }
}

// Extents and shapes

static void extents_are_known_named_or_unknown(void **state) {
  (void)state;
  Graph *g = new_graph();
  Extent n = {graph_add_dim(g, "N", 7), -1}, m = {graph_add_dim(g, "M", -1), -1};
  assert_true(extent_is_unknown(EXTENT_UNKNOWN) && !extent_is_literal(EXTENT_UNKNOWN));
  assert_true(extent_is_literal(EXTENT(0)) && !extent_is_unknown(EXTENT(0)));
  assert_true(!extent_is_literal(n) && !extent_is_unknown(n) && !extent_is_unknown(m));
  assert_int_equal(extent_value(n), 7);
  assert_int_equal(extent_value(m), -1);
  assert_int_equal(extent_value(EXTENT_UNKNOWN), -1);
  assert_true(extent_equals(n, n) && extent_equals(m, m) && extent_equals(EXTENT(7), EXTENT(7)));
  assert_false(extent_equals(n, EXTENT(7))); // it may be given another value
  assert_false(extent_equals(n, m));
  assert_false(extent_equals(EXTENT_UNKNOWN, EXTENT_UNKNOWN));
  assert_ptr_equal(graph_find_dim(g, "M"), m.dim);
  assert_null(graph_find_dim(g, "K"));
  graph_free(g);
}

static void elements_are_counted_up_to_the_limit(void **state) {
  (void)state;
  const int64_t half = (int64_t)1 << 23;
  static const Shape unknown = {.rank = -1};
  assert_int_equal(shape_nelems(&(Shape){.rank = 0}), 1);
  assert_int_equal(shape_nelems(&(Shape){.rank = 3, .extent = {EXTENT(2), EXTENT(3), EXTENT(5)}}), 30);
  assert_int_equal(shape_nelems(&(Shape){.rank = 2, .extent = {EXTENT(0), EXTENT(MAX_ELEMENTS - 1)}}), 0);
  assert_int_equal(shape_nelems(&(Shape){.rank = 2, .extent = {EXTENT(half), EXTENT(half)}}), half * half);
  assert_int_equal(shape_nelems(&(Shape){.rank = 3, .extent = {EXTENT(half), EXTENT(half), EXTENT(2)}}), -1);
  assert_int_equal(shape_nelems(&(Shape){.rank = 4, .extent = {EXTENT(half), EXTENT(half), EXTENT(2), EXTENT(0)}}), -1);
  assert_int_equal(shape_nelems(&(Shape){.rank = 2, .extent = {EXTENT(2), EXTENT_UNKNOWN}}), -1);
  assert_int_equal(shape_nelems(&unknown), -1);
  assert_true(shape_is_known(&(Shape){.rank = 0}) && !shape_is_known(&unknown));
}

static void shapes_are_printed_and_cut(void **state) {
  (void)state;
  Graph *g = new_graph();
  const Shape shape = {.rank = 3, .extent = {{graph_add_dim(g, "N", -1), -1}, EXTENT_UNKNOWN, EXTENT(768)}};
  const char whole[] = "[N, _, 768]";
  Text text;
  text_init(&text, &system_allocator);
  shape_print(&shape, &text);
  assert_string_equal(text_string(&text), whole);
  text_deinit(&text);
  for (size_t nbytes = 1; nbytes <= sizeof whole; nbytes++) {
    char *buffer = malloc(nbytes); // of its length, so that writing behind it shows
    assert_string_equal(shape_string(&shape, buffer, nbytes), nbytes == sizeof whole ? whole : buffer);
    assert_int_equal(strlen(buffer), nbytes - 1);
    assert_memory_equal(buffer, whole, nbytes - 1);
    free(buffer);
  }
  char buffer[8];
  assert_string_equal(shape_string(&(Shape){.rank = -1}, buffer, sizeof buffer), "?");
  assert_string_equal(shape_string(&(Shape){.rank = 0}, buffer, sizeof buffer), "[]");
  graph_free(g);
}

static void bound_dims_are_numbers(void **state) {
  (void)state;
  Graph *g = new_graph();
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Extent n = {graph_add_dim(g, "N", 7), -1};
  const Value *x = graph_add_input(g, "x", TYPE_F32, &(Shape){.rank = 3, .extent = {n, EXTENT_UNKNOWN, EXTENT(2)}});
  const Value *y = graph_add_value(g, "y", TYPE_F32, NULL);
  assert_true(graph_bind_dims(g, &d));
  assert_true(extent_equals(x->shape.extent[0], EXTENT(7)));
  assert_true(extent_is_unknown(x->shape.extent[1]));
  assert_int_equal(y->shape.rank, -1);
  assert_int_equal(g->ndims, 0);
  assert_true(graph_bind_dims(g, &d)); // once more does nothing
  diagnostics_deinit(&d);
  graph_free(g);
}

static void dims_without_values_and_with_too_large_ones_are_told(void **state) {
  (void)state;
  Graph *g = new_graph();
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Extent n = {graph_add_dim(g, "N", -1), -1}, k = {graph_add_dim(g, "K", 2), -1};
  Dim *m = graph_add_dim(g, "M", -1);
  const Value *x = graph_add_input(g, "x", TYPE_F32, &(Shape){.rank = 2, .extent = {n, k}});
  assert_false(graph_bind_dims(g, &d));
  assert_int_equal(d.nerrors, 2);
  assert_string_equal(d.items[0].message, "N has no value, expected one in dims or by --dim N=NUMBER");
  assert_string_equal(d.items[1].message, "M has no value, expected one in dims or by --dim M=NUMBER");
  assert_int_equal(g->ndims, 3);
  assert_ptr_equal(x->shape.extent[1].dim, k.dim); // nothing is bound
  m->value = 1;
  graph_find_dim(g, "N")->value = MAX_ELEMENTS - 1;
  assert_false(graph_bind_dims(g, &d));
  assert_string_equal(d.items[2].message, "x: too many elements, expected fewer than 2^47");
  diagnostics_deinit(&d);
  graph_free(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_copied_and_indices_count),
      cmocka_unit_test(uses_follow_inputs),
      cmocka_unit_test(uses_are_removed_from_any_place_in_a_list),
      cmocka_unit_test(replaced_uses_move_over),
      cmocka_unit_test(a_value_that_another_node_makes_by_now_stays_its),
      cmocka_unit_test(fresh_names_are_free),
      cmocka_unit_test(a_valid_order_stays),
      cmocka_unit_test(only_what_a_node_lacks_moves_up),
      cmocka_unit_test(nodes_without_operands_and_graphs_without_nodes_are_sorted),
      cmocka_unit_test(long_chains_are_sorted_without_recursion),
      cmocka_unit_test(wide_graphs_are_sorted),
      cmocka_unit_test(cycles_are_named),
      cmocka_unit_test(a_cycle_behind_other_nodes_is_named_alone),
      cmocka_unit_test(of_a_long_cycle_a_few_are_named),
      cmocka_unit_test(a_sort_without_memory_leaves_the_graph),
      cmocka_unit_test(building_without_memory_gives_null),
      cmocka_unit_test(extents_are_known_named_or_unknown),
      cmocka_unit_test(elements_are_counted_up_to_the_limit),
      cmocka_unit_test(shapes_are_printed_and_cut),
      cmocka_unit_test(bound_dims_are_numbers),
      cmocka_unit_test(dims_without_values_and_with_too_large_ones_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
