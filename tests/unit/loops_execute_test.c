// Loop trees: the executor (tests/loops), which walks them without a compiler, has the bits of scalar C for models,
// golden cases and random graphs. Where they differ, the printer is wrong, or the executor; a wrong schedule is found
// by the executor's checks, or differs from the interpreter.
//
// NGRAD_RANDOM_GRAPHS=1000 takes so many, NGRAD_RANDOM_SEED=7 begins with that seed.
#include "backends/codegen/codegen.h"
#include "frontend/yaml/yaml.h"
#include "tests/unit/loops_case.h"
#include "tests/unit/quick_compiler.h"

#include <glob.h>

enum { COUNT = 150 };

static Target scalar_target(void) {
  Target target = target_of_machine();
  target.isa = "scalar";
  target.vector_registers = isa_find("scalar")->vector_registers;
  return target;
}

static bool run_compiled(const LoopsCase *c, const Program *p, const Tensor *outputs) {
  Diagnostics d;
  CompileTimes times;
  bool compiler_failed;
  void *in[MOST_TENSORS] = {NULL}, *out[MOST_TENSORS] = {NULL};
  diagnostics_init(&d, &system_allocator);
  Compiled *compiled =
      codegen_compile(p, isa_find("scalar"), false, 0, &system_allocator, &times, &compiler_failed, &d);
  if (!compiled) fail_msg("%s: %s", c->name, d.count ? d.items[0].message : "does not compile");
  diagnostics_deinit(&d);
  for (size_t i = 0; i < c->graph->ninputs; i++) in[i] = c->inputs[i].data;
  for (size_t i = 0; i < c->graph->noutputs; i++) out[i] = outputs[i].data;
  const bool ok = compiled_run(compiled, in, out, 1, NULL);
  compiled_free(compiled);
  return ok;
}

static bool compare(const LoopsCase *c, bool no_fuse) {
  Tensor executed[MOST_TENSORS] = {{0}}, compiled[MOST_TENSORS] = {{0}};
  const Target target = scalar_target();
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

// Small extents for named ones, so that models are executed quickly.
static void shrink(Graph *g) {
  enum { FEW = 2, MANY = 40, LARGE = 100000 };
  int64_t most = 0;
  for (size_t i = 0; i < g->nvalues; i++) {
    int64_t nelems = 1;
    for (int axis = 0; axis < g->values[i]->shape.rank; axis++)
      if (!g->values[i]->shape.extent[axis].dim) nelems *= g->values[i]->shape.extent[axis].value;
    if (nelems > most) most = nelems;
  }
  for (size_t i = 0; i < g->ndims; i++) g->dims[i]->value = most > LARGE ? FEW : MANY;
}

static int64_t total_nelems(const Graph *g) {
  int64_t total = 0;
  for (size_t i = 0; i < g->nvalues; i++) total += shape_nelems(&g->values[i]->shape);
  return total;
}

// False: it is too large, and not compared.
static bool compare_file(const char *path, size_t *nfailures) {
  enum { MOST = 12000000 };
  Diagnostics d;
  LoopsCase c;
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read_file(&system_allocator, path, &d);
  if (!g) {
    fail_msg("%s: %s", path, d.items[0].message);
    return false;
  }
  diagnostics_deinit(&d);
  shrink(g);
  loops_bind(path, g);
  const bool is_small = total_nelems(g) <= MOST;
  loops_case_init(&c, path, g, 1);
  if (is_small) *nfailures += !(compare(&c, false) && compare(&c, true));
  loops_case_deinit(&c);
  return is_small;
}

static size_t compare_files(const char *pattern) {
  glob_t files = {0};
  size_t ncompared = 0, nfailures = 0;
  assert_int_equal(glob(pattern, 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++) ncompared += compare_file(files.gl_pathv[i], &nfailures);
  globfree(&files);
  assert_int_equal(nfailures, 0);
  return ncompared;
}

static void models_have_the_bits_of_scalar_c(void **state) {
  (void)state;
  assert_true(compare_files("models/*.yaml") >= 20);
}

static void golden_cases_have_the_bits_of_scalar_c(void **state) {
  (void)state;
  assert_true(compare_files("tests/golden/*/*.yaml") >= 36);
}

static void random_graphs_have_the_bits_of_scalar_c(void **state) {
  (void)state;
  const uint64_t first = number_from("NGRAD_RANDOM_SEED", 0), count = number_from("NGRAD_RANDOM_GRAPHS", COUNT);
  size_t nfailures = 0;
  for (uint64_t seed = first; seed < first + count; seed++) {
    const RandomGraphOptions options = {.most_nodes = 8, .most_nelems = 20000, .is_focused = seed % 2};
    LoopsCase c;
    loops_case_init_random(&c, seed, &options);
    nfailures += !compare(&c, seed % 4 == 3);
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
      cmocka_unit_test(random_graphs_have_the_bits_of_scalar_c),
  };
  return cmocka_run_group_tests(tests, use_compiler, NULL);
}
