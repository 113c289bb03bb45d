// Clones of graphs: they print the same text, and share no memory with the original.
#include "frontend/yaml/yaml.h"
#include "ir/graph/graph.h"
#include "ir/graph/verify.h"
#include "tests/unit/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char text[] = "format: ngrad/1\n"
                           "name: clone me\n"
                           "dims: {N: 4, M: ~}\n"
                           "inputs: [{name: x, type: f32, shape: [N, M]}, {name: b, type: f32, shape: [M]}]\n"
                           "constants: [{name: half, type: f32, shape: [], value: 0.5}]\n"
                           "nodes:\n"
                           "  - {op: Multiply, inputs: [x, half], outputs: [y], attributes: {auto_broadcast: numpy}}\n"
                           "  - {op: Add, inputs: [y, b], outputs: [z]}\n"
                           "outputs: [z, x, y]\n";

static Graph *read_graph(const Allocator *allocator, Diagnostics *d) {
  return yaml_read(allocator, "test.yaml", text, sizeof text - 1, NULL, d);
}

static void print(const Graph *g, Text *out) {
  text_init(out, &system_allocator);
  yaml_print(g, out);
}

static void a_clone_prints_and_verifies_as_its_original(void **state) {
  (void)state;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = read_graph(&system_allocator, &d), *copy = graph_clone(g);
  assert_non_null(copy);
  Text original, cloned;
  print(g, &original);
  print(copy, &cloned);
  assert_string_equal(text_string(&original), text_string(&cloned));
  assert_true(graph_verify(copy, &d));
  for (size_t i = 0; i < g->nvalues; i++) {
    assert_ptr_not_equal(copy->values[i], g->values[i]);
    assert_int_equal(copy->values[i]->index, i);
    assert_int_equal(value_count_uses(copy->values[i]), value_count_uses(g->values[i]));
  }
  text_deinit(&original);
  text_deinit(&cloned);
  graph_free(copy);
  graph_free(g);
  diagnostics_deinit(&d);
}

static void rewriting_a_clone_leaves_its_original_alone(void **state) {
  (void)state;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = read_graph(&system_allocator, &d), *copy = graph_clone(g);
  Text before, after;
  print(g, &before);
  node_set_input(copy->nodes[1], 0, copy->inputs[0]);
  copy->nnodes = 1;
  copy->noutputs = 1;
  copy->values[0]->type = TYPE_F64;
  copy->ndims = 0;
  assert_true(graph_verify(g, &d));
  graph_free(copy);
  print(g, &after);
  assert_string_equal(text_string(&before), text_string(&after));
  text_deinit(&before);
  text_deinit(&after);
  graph_free(g);
  diagnostics_deinit(&d);
}

static void a_clone_without_memory_is_none(void **state) {
  (void)state;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  FailingAllocator memory;
  failing_allocator_init(&memory, NEVER_FAIL);
  Graph *g = read_graph(&memory.allocator, &d), *copy = NULL;
  size_t nlive = memory.nlive;
  for (memory.failing = 0; !copy; memory.failing++) {
    memory.ncalls = 0;
    copy = graph_clone(g);
    if (!copy) assert_int_equal(memory.nlive, nlive);
  }
  graph_free(copy);
  assert_int_equal(memory.nlive, nlive);
  graph_free(g);
  diagnostics_deinit(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_clone_prints_and_verifies_as_its_original),
      cmocka_unit_test(rewriting_a_clone_leaves_its_original_alone),
      cmocka_unit_test(a_clone_without_memory_is_none),
  };
  return cmocka_run_group_tests_name("graph clone", tests, NULL, NULL);
}
