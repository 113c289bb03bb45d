// Passes do not change results: each model, each golden case and many random graphs give the same results with all
// passes, without one pass, without fusion, and without any pass. All are interpreted, so a difference is in the graph.
//
// NGRAD_RANDOM_GRAPHS=1000 takes 1000 random graphs.
#include "backends/interpreter/magnitude.h"
#include "frontend/yaml/yaml.h"
#include "passes/pipeline.h"
#include "passes/schedule/overrides.h"
#include "tests/random_seeds.h"

#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { COUNT = 1500, MOST_TENSORS = 256, MOST_PASSES = 32 };

typedef struct Trial {
  const char *name;
  Graph *graph; // bound
  uint64_t random;
  Tensor inputs[MOST_TENSORS], expected[MOST_TENSORS], got[MOST_TENSORS];
  bool has_magnitudes;
  double magnitudes[MOST_TENSORS]; // of the outputs
} Trial;

static size_t nchanged[MOST_PASSES]; // graphs that a pass changed

static void count_change(void *watcher, const Graph *g, const char *pass, bool changed, double milliseconds) {
  (void)watcher, (void)g, (void)milliseconds;
  for (size_t i = 0; i < npasses; i++)
    if (strcmp(passes[i].name, pass) == 0) nchanged[i] += changed;
}

static void run(const Graph *g, const Tensor *inputs, Tensor *outputs) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  assert_true(interpret(g, inputs, outputs, &(InterpreterOptions){.allocator = &system_allocator}, &d));
  diagnostics_deinit(&d);
}

// Small extents for named ones, so that models are interpreted quickly.
static void shrink(Graph *g) {
  assert_non_null(g);
  if (!g) return; // not reached, as no reader of the code can tell
  for (size_t i = 0; i < g->ndims; i++)
    if (g->dims[i]->value < 0 || g->dims[i]->value > 4) g->dims[i]->value = 4;
}

static void trial_init(Trial *t, const char *name, Graph *g) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  *t = (Trial){.name = name, .graph = g, .random = 7};
  assert_true(g->ninputs < MOST_TENSORS && g->noutputs < MOST_TENSORS);
  if (!graph_bind_dims(g, &d) || !graph_infer(g, &d)) fail_msg("%s: %s", name, d.items[0].message);
  for (size_t i = 0; i < g->ninputs; i++)
    assert_true(random_tensor(&t->random, g->inputs[i], &t->inputs[i], &system_allocator));
  for (size_t i = 0; i < g->noutputs; i++) {
    t->expected[i] = t->got[i] = tensor_like(g->outputs[i]);
    assert_true(tensor_alloc(&t->expected[i], &system_allocator) && tensor_alloc(&t->got[i], &system_allocator));
  }
  run(g, t->inputs, t->expected);
  diagnostics_deinit(&d);
}

static void trial_deinit(Trial *t) {
  for (size_t i = 0; i < t->graph->ninputs; i++) tensor_free(&t->inputs[i], &system_allocator);
  for (size_t i = 0; i < t->graph->noutputs; i++) {
    tensor_free(&t->expected[i], &system_allocator);
    tensor_free(&t->got[i], &system_allocator);
  }
  graph_free(t->graph);
}

// As of ngrad run --compare.
static double magnitude(Trial *t, size_t k) {
  const InterpreterOptions options = {.allocator = &system_allocator};
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  if (!t->has_magnitudes)
    assert_true(interpret_magnitudes(t->graph, t->inputs, t->expected, t->magnitudes, &options, &d));
  t->has_magnitudes = true;
  diagnostics_deinit(&d);
  return t->magnitudes[k];
}

// Prints the graph before all passes, for debugging.
static void print_graph(const Trial *t) {
  Text text;
  text_init(&text, &system_allocator);
  yaml_print(t->graph, &text);
  fputs(text_string(&text), stderr);
  text_deinit(&text);
}

static void compare_output(Trial *t, size_t k, const char *how) {
  const Tensor *e = &t->expected[k], *g = &t->got[k];
  double apart = 0, norm = 0;
  int64_t n = tensor_nelems(e);
  for (int64_t i = 0; i < n; i++) {
    double x = type_load(e->type, e->data, (size_t)i), y = type_load(g->type, g->data, (size_t)i);
    if (x == y || (isnan(x) && isnan(y))) {
      if (isfinite(x)) norm += x * x;
      continue;
    }
    if (!isfinite(x) || !isfinite(y)) {
      print_graph(t);
      fail_msg("%s, %s: %s[%lld] is %g, expected %g", t->name, how, t->graph->outputs[k]->name, (long long)i, y, x);
    }
    apart += (x - y) * (x - y);
    norm += x * x;
  }
  double tolerance = type_tolerance(t->graph->outputs[k]->type);
  if (sqrt(apart) > tolerance * sqrt(norm) && sqrt(apart) > tolerance * magnitude(t, k)) {
    print_graph(t);
    fail_msg("%s, %s: output %s differs by %g in L2 norm, of a norm of %g", t->name, how, t->graph->outputs[k]->name,
             sqrt(apart), sqrt(norm));
  }
}

static void must_give_the_same(Trial *t, const char *how, const char *const *disabled, size_t ndisabled, bool no_fuse) {
  Target target = target_of_machine();
  target.vector_registers = 32;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = graph_clone(t->graph);
  ScheduleOverrides overrides = {0}; // slice groups of small graphs, too
  overrides.key[SCHEDULE_SLICES].is_set = true;
  overrides.key[SCHEDULE_SLICES].value = 1;
  PassContext c = {.diagnostics = &d,
                   .allocator = &system_allocator,
                   .target = &target,
                   .overrides = &overrides,
                   .evaluate = interpret_node,
                   .disabled = disabled,
                   .ndisabled = ndisabled,
                   .no_fuse = no_fuse,
                   .watch = ndisabled ? NULL : count_change};
  if (!g || !pipeline_run(g, &c)) {
    fail_msg("%s, %s: %s", t->name, how, d.count ? d.items[0].message : "failed");
    abort(); // not reached, as no reader of the code can tell
  }
  assert_int_equal(g->noutputs, t->graph->noutputs);
  for (size_t i = 0; i < g->noutputs; i++) assert_string_equal(g->outputs[i]->name, t->graph->outputs[i]->name);
  run(g, t->inputs, t->got);
  for (size_t i = 0; i < g->noutputs; i++) compare_output(t, i, how);
  graph_free(g);
  diagnostics_deinit(&d);
}

// ./dev test leaves out one pass a graph, in turn.
static void check_all_ways(Trial *t) {
  static size_t turn;
  must_give_the_same(t, "all passes", NULL, 0, false);
  must_give_the_same(t, "no fusion", NULL, 0, true);
  const char *all[MOST_PASSES];
  turn++;
  for (size_t i = 0; i < npasses; i++) {
    all[i] = passes[i].name;
    if (takes_all() || i == turn % npasses) must_give_the_same(t, passes[i].name, &all[i], 1, false);
  }
  must_give_the_same(t, "no passes", all, npasses, false);
}

static void files_give_the_same(const char *pattern) {
  glob_t files;
  assert_int_equal(glob(pattern, 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    Diagnostics d;
    Trial t;
    diagnostics_init(&d, &system_allocator);
    Graph *g = yaml_read_file(&system_allocator, files.gl_pathv[i], NULL, &d);
    if (!g) {
      fail_msg("%s: %s", files.gl_pathv[i], d.items[0].message);
      abort(); // not reached, as no reader of the code can tell
    }
    shrink(g);
    trial_init(&t, files.gl_pathv[i], g);
    check_all_ways(&t);
    trial_deinit(&t);
    diagnostics_deinit(&d);
  }
  globfree(&files);
}

static void models_give_the_same(void **state) {
  (void)state;
  files_give_the_same("models/*.yaml");
}

static void golden_cases_give_the_same(void **state) {
  (void)state;
  files_give_the_same("tests/golden/*/*.yaml");
}

static void random_graphs_give_the_same(void **state) {
  (void)state;
  for (RandomSeeds s = random_seeds(number_of_graphs(COUNT)); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    Diagnostics d;
    Trial t;
    char name[32];
    const RandomGraphOptions options = {.most_nodes = 16, .most_nelems = 2000, .is_focused = seed % 4 == 1};
    diagnostics_init(&d, &system_allocator);
    Graph *g = random_graph(&system_allocator, seed, &options, &d);
    assert_non_null(g);
    snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
    trial_init(&t, name, g);
    check_all_ways(&t);
    trial_deinit(&t);
    diagnostics_deinit(&d);
  }
}

// Forms that random graphs hardly ever have.
static void rare_graphs_give_the_same(void **state) {
  (void)state;
  static const char *const texts[] = {
      "inputs: [{name: q, type: f32, shape: [3, 17, 9]}, {name: k, type: f32, shape: [3, 17, 9]}]\n"
      "nodes:\n- {op: MatMul, inputs: [q, k], outputs: [products], attributes: {transpose_b: true}}\n"
      "- {op: SoftMax, inputs: [products], outputs: [p], attributes: {axis: -1}}\n"
      "- {op: MatMul, inputs: [p, k], outputs: [y]}\noutputs: [y]\n", // a slice group
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char text[1024];
    Diagnostics d;
    Trial t;
    diagnostics_init(&d, &system_allocator);
    const int length = snprintf(text, sizeof text, "format: ngrad/1\nname: rare\n%s", texts[i]);
    trial_init(&t, "rare.yaml", yaml_read(&system_allocator, "rare.yaml", text, (size_t)length, NULL, &d));
    check_all_ways(&t);
    trial_deinit(&t);
    diagnostics_deinit(&d);
  }
}

static void each_pass_changed_some(void **state) {
  (void)state;
  for (size_t i = 0; i < npasses; i++)
    if (!nchanged[i]) fail_msg("pass %s changed no graph, expected at least one", passes[i].name);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(models_give_the_same),        cmocka_unit_test(golden_cases_give_the_same),
      random_unit_test(random_graphs_give_the_same), cmocka_unit_test(rare_graphs_give_the_same),
      cmocka_unit_test(each_pass_changed_some),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
