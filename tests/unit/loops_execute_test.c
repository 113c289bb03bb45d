// The executor of loop trees (tests/loops) and compiled scalar C give the same bits for models, golden cases and random
// graphs. If they differ, the printer or the executor is wrong. A wrong schedule fails elsewhere: in the executor's
// checks, or as a difference from the interpreter (tests/unit/ladder.h).
//
// NGRAD_RANDOM_GRAPHS=1000 sets the number of random graphs, NGRAD_RANDOM_SEED=7 the first seed.
#include "backends/codegen/codegen.h"
#include "tests/unit/loops_case.h"
#include "tests/unit/quick_compiler.h"

enum { COUNT = 150, MOST_NELEMS = 12000000 };

// This machine; or one with tiny caches, on which small tensors are streamed, peeled and prefetched as large ones are.
static Target scalar_target(bool is_tiny) {
  Target target = target_of_machine();
  target.isa = "scalar";
  target.vector_registers = isa_find("scalar")->vector_registers;
  if (is_tiny) target.l1_nbytes = 512, target.l2_nbytes = 1024, target.llc_nbytes = 4096;
  return target;
}

static bool run_compiled(const LoopsCase *c, const Program *p, const Tensor *outputs) {
  Diagnostics d;
  CompileTimes times;
  bool compiler_failed;
  void *in[MOST_TENSORS] = {NULL}, *out[MOST_TENSORS] = {NULL};
  diagnostics_init(&d, &system_allocator);
  Compiled *compiled = codegen_compile(p, isa_find("scalar"), 0, &system_allocator, &times, &compiler_failed, &d);
  if (!compiled) fail_msg("%s: %s", c->name, d.count ? d.items[0].message : "does not compile");
  diagnostics_deinit(&d);
  for (size_t i = 0; i < c->graph->ninputs; i++) in[i] = c->inputs[i].data;
  for (size_t i = 0; i < c->graph->noutputs; i++) out[i] = outputs[i].data;
  const bool ok = compiled_run(compiled, in, out, 1, NULL);
  compiled_free(compiled);
  return ok;
}

static bool compare(const LoopsCase *c, bool no_fuse, bool is_tiny) {
  Tensor executed[MOST_TENSORS] = {{0}}, compiled[MOST_TENSORS] = {{0}};
  const Target target = scalar_target(is_tiny);
  const char *how = no_fuse ? "not fused" : "fused";
  Lowered l = loops_lower(c, &target, no_fuse, NULL);
  loops_new_outputs(c->graph, executed);
  loops_new_outputs(c->graph, compiled);
  bool ok = loops_execute(c, l.program, executed, NULL, how);
  if (ok) ok = run_compiled(c, l.program, compiled);
  if (ok) ok = loops_have_same_bits(c, executed, compiled, no_fuse ? "from C, not fused" : "from C, fused");
  loops_free_outputs(c->graph, executed);
  loops_free_outputs(c->graph, compiled);
  lowered_free(&l);
  return ok;
}

// ./dev test takes one of both, in turn.
static bool compare_both(const LoopsCase *c) {
  static int turn;
  turn++;
  if (!takes_all()) return turn % 2 ? compare(c, false, false) : compare(c, true, true);
  return compare(c, false, false) && compare(c, true, true);
}

static void models_have_the_bits_of_scalar_c(void **state) {
  (void)state;
  assert_true(for_each_file("models/*.yaml", MOST_NELEMS, compare_both) >= 20);
}

static void golden_cases_have_the_bits_of_scalar_c(void **state) {
  (void)state;
  assert_true(for_each_file("tests/golden/*/*.yaml", MOST_NELEMS, compare_both) >= 36);
}

static void large_tensors_have_the_bits_of_scalar_c(void **state) {
  (void)state;
  for_each_large_graph(compare_both);
}

static void random_graphs_have_the_bits_of_scalar_c(void **state) {
  (void)state;
  size_t nfailures = 0;
  for (RandomSeeds s = random_seeds(number_of_graphs(COUNT)); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    const RandomGraphOptions options = {.most_nodes = 8, .most_nelems = 20000, .is_focused = seed % 2};
    LoopsCase c;
    loops_case_init_random(&c, seed, &options);
    if (!compare(&c, seed % 4 == 3, seed % 3 == 0)) {
      random_tell();
      nfailures++;
    }
    loops_case_deinit(&c);
  }
  assert_int_equal(nfailures, 0);
}

static Graph *read_product(int rows, int length, int columns, int is_transposed, int has_batch) {
  char text[512], batch[8] = "";
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  if (has_batch) snprintf(batch, sizeof batch, "2, ");
  const int n = snprintf(
      text, sizeof text,
      "format: ngrad/1\nname: product\ninputs: [{name: x, type: f32, shape: [%s%d, %d]}, "
      "{name: w, type: f32, shape: [%d, %d]}, {name: b, type: f32, shape: [%d]}]\n"
      "nodes: [{op: MatMul, inputs: [x, w, b], outputs: [y], attributes: {transpose_a: %s, transpose_b: %s}},\n"
      "  {op: GELU, inputs: [y], outputs: [z]}]\noutputs: [y, z]\n",
      batch, is_transposed & 1 ? length : rows, is_transposed & 1 ? rows : length, is_transposed & 2 ? columns : length,
      is_transposed & 2 ? length : columns, columns, is_transposed & 1 ? "true" : "false",
      is_transposed & 2 ? "true" : "false");
  Graph *g = yaml_read(&system_allocator, "product.yaml", text, (size_t)n, NULL, &d);
  if (!g) fail_msg("%s", d.items[0].message);
  diagnostics_deinit(&d);
  return g;
}

// Sums of 0, 1 and about as many products as a chain and a block have, of about as many rows and columns as a step has.
static void products_have_the_bits_of_scalar_c(void **state) {
  static const int lengths[] = {0, 1, 2, 255, 256, 257, 1024, 2047, 2048, 2053, 2310, 3072, 4099};
  static const int sides[] = {4, 7, 8, 9, 15, 16, 17, 24, 32, 33, 48};
  enum { NLENGTHS = sizeof lengths / sizeof *lengths, NSIDES = sizeof sides / sizeof *sides, TIMES = 1 };
  (void)state;
  uint64_t random = number_from("NGRAD_RANDOM_SEED", 0);
  size_t nfailures = 0;
  for (size_t i = 0; i < (size_t)NLENGTHS * TIMES; i++) {
    const int rows = sides[random_below(&random, NSIDES)], columns = sides[random_below(&random, NSIDES)];
    LoopsCase c;
    Graph *g = read_product(rows, lengths[i % NLENGTHS], columns, (int)random_below(&random, 4),
                            (int)random_below(&random, 4) == 0);
    char name[64];
    snprintf(name, sizeof name, "product of %d x %d x %d", rows, lengths[i % NLENGTHS], columns);
    loops_bind(name, g);
    loops_case_init(&c, name, g, i);
    nfailures += !compare_both(&c);
    loops_case_deinit(&c);
  }
  assert_int_equal(nfailures, 0);
}

// Sums of fewer products than rows that a step copies into panels, of as many, and of more.
static void panels_have_the_bits_of_scalar_c(void **state) {
  static const int lengths[] = {0, 1, 7, 8, 9, 17};
  enum { NLENGTHS = sizeof lengths / sizeof *lengths, MANY_ROWS = 259 }; // MANY_ROWS: worth a copy
  (void)state;
  size_t nfailures = 0;
  for (size_t i = 0; i < NLENGTHS; i++) {
    LoopsCase c;
    Graph *g = read_product(MANY_ROWS, lengths[i], i % 2 ? 33 : 32, (int)i % 2, i == 4);
    char name[64];
    snprintf(name, sizeof name, "product of %d rows of %d", MANY_ROWS, lengths[i]);
    loops_bind(name, g);
    loops_case_init(&c, name, g, i);
    nfailures += !compare_both(&c);
    loops_case_deinit(&c);
  }
  assert_int_equal(nfailures, 0);
}

static int use_compiler(void **state) {
  (void)state;
  return use_quick_compiler(true) ? 0 : -1;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(models_have_the_bits_of_scalar_c),
      cmocka_unit_test(golden_cases_have_the_bits_of_scalar_c),
      cmocka_unit_test(large_tensors_have_the_bits_of_scalar_c),
      cmocka_unit_test(products_have_the_bits_of_scalar_c),
      cmocka_unit_test(panels_have_the_bits_of_scalar_c),
      random_unit_test(random_graphs_have_the_bits_of_scalar_c),
  };
  return cmocka_run_group_tests(tests, use_compiler, NULL);
}
