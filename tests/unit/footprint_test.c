// The interpreter's estimate of its memory, for every operator: at least the memory that it takes, and not much more.
#include "backends/interpreter/interpreter.h"
#include "frontend/yaml/yaml.h"
#include "tests/random_seeds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { HEADER = 64, SLACK = 16 << 10 }; // SLACK: for cells, and for the least that arenas allocate

typedef struct Meter {
  size_t used, most; // bytes
} Meter;

// As system_allocator, with the size of each block in front of it.
static void *metered_resize(void *context, void *p, size_t nbytes) {
  Meter *m = context;
  char *block = p ? (char *)p - HEADER : NULL;
  if (block) m->used -= *(size_t *)(void *)block;
  if (!nbytes) {
    free(block);
    return NULL;
  }
  block = realloc(block, nbytes + HEADER);
  assert_non_null(block);
  *(size_t *)(void *)block = nbytes;
  m->used += nbytes;
  if (m->used > m->most) m->most = m->used;
  return block + HEADER;
}

static size_t measure(const Graph *g, const Tensor *inputs, Tensor *outputs, Diagnostics *d) {
  Meter meter = {0};
  const Allocator metered = {metered_resize, &meter};
  assert_true(interpret(g, inputs, outputs, &(InterpreterOptions){.allocator = &metered}, d));
  assert_int_equal(meter.used, 0);
  return meter.most;
}

static void check_graph(Graph *g, uint64_t *random) {
  enum { MOST = 64 };
  Tensor inputs[MOST] = {0}, outputs[MOST] = {0};
  uint64_t estimate;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  assert_true(graph_bind_dims(g, &d) && graph_infer(g, &d));
  assert_true(g->ninputs <= MOST && g->noutputs <= MOST);
  for (size_t i = 0; i < g->ninputs; i++)
    assert_true(random_tensor(random, g->inputs[i], &inputs[i], &system_allocator));
  for (size_t i = 0; i < g->noutputs; i++) {
    outputs[i] = tensor_like(g->outputs[i]);
    assert_true(tensor_alloc(&outputs[i], &system_allocator));
  }
  assert_true(interpreter_nbytes(g, &system_allocator, &estimate));
  const size_t used = measure(g, inputs, outputs, &d);
  const char *op = g->nodes[0]->op->name;
  if (used > estimate + SLACK)
    fail_msg("%s takes %zu bytes, more than the estimate of %zu", op, used, (size_t)estimate);
  if (estimate > 3 * (used + SLACK))
    fail_msg("%s takes %zu bytes, far less than the estimate of %zu", op, used, (size_t)estimate);
  for (size_t i = 0; i < g->ninputs; i++) tensor_free(&inputs[i], &system_allocator);
  for (size_t i = 0; i < g->noutputs; i++) tensor_free(&outputs[i], &system_allocator);
  diagnostics_deinit(&d);
}

static void estimates_hold_for_every_operator(void **state) {
  (void)state;
  enum { COUNT = 2000 };
  const RandomGraphOptions options = {.most_nodes = 1, .most_nelems = 20000};
  uint64_t random = 1;
  for (RandomSeeds s = random_seeds(COUNT); random_next_seed(&s);) {
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Graph *g = random_graph(&system_allocator, s.seed, &options, &d);
    assert_non_null(g);
    check_graph(g, &random);
    graph_free(g);
    diagnostics_deinit(&d);
  }
}

// Nothing is added where no element is made, however many rows or taps there are.
static void nothing_is_needed_for_sums_of_nothing(void **state) {
  (void)state;
#define INPUTS(first, second) "inputs: [{name: a, type: f32, shape: " first "}, {name: b, type: " second "}]\n"
#define NODE(op, of, attributes)                                                                                       \
  "nodes: [{op: " op ", inputs: " of ", outputs: [y], attributes: {" attributes "}}]\noutputs: [y]\n"
  static const char *const graphs[] = {
      INPUTS("[0, 1099511627776]", "f32, shape: [1099511627776, 0]") NODE("MatMul", "[a, b]", ""),
      INPUTS("[0, 4, 1099511627776]", "f32, shape: [0, 1099511627776, 2]") NODE("MatMul", "[a, b]", ""),
      INPUTS("[0, 1, 65536, 65536]", "f32, shape: [1]")
          NODE("AvgPool", "[a]",
               "kernel: [65536, 65536], strides: [1, 1], pads_begin: [0, 0], pads_end: [0, 0], data_format: NCX, "
               "exclude_pad: true"),
      INPUTS("[1, 0, 8]", "f32, shape: [1, 8, 9]")
          NODE("ConvolutionBackwardWeights", "[a, b]",
               "strides: [1], pads_begin: [0], pads_end: [1073741824], dilations: [1], data_format: NCX, "
               "weights_format: OIX, weights_shape: [8, 0, 1073741824]"),
      INPUTS("[100000, 0]", "s32, shape: [100000]") NODE("SoftmaxCrossEntropy", "[a, b]", "reduction: none"),
  };
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    char text[2048];
    uint64_t random = 1;
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    snprintf(text, sizeof text, "format: ngrad/1\nname: nothing\n%s", graphs[i]);
    Graph *g = yaml_read(&system_allocator, "nothing.yaml", text, strlen(text), NULL, &d);
    assert_non_null(g);
    check_graph(g, &random);
    graph_free(g);
    diagnostics_deinit(&d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {random_unit_test(estimates_hold_for_every_operator),
                                     cmocka_unit_test(nothing_is_needed_for_sums_of_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
