// Shared by the tests of loop trees: graphs with data, lowering, execution, comparison of bits.
#ifndef NGRAD_TESTS_UNIT_LOOPS_CASE_H
#define NGRAD_TESTS_UNIT_LOOPS_CASE_H

#include "backends/interpreter/interpreter.h"
#include "frontend/yaml/yaml.h"
#include "ir/loops/target.h"
#include "passes/pipeline.h"
#include "passes/schedule/overrides.h"
#include "tests/loops/execute.h"
#include "tests/random_seeds.h"

#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST_TENSORS = 256 };

typedef struct LoopsCase {
  char name[256];
  Graph *graph;
  Tensor inputs[MOST_TENSORS];
  const struct Costs *costs; // NULL: usual_costs
} LoopsCase;

// Owns the graph, whose extents must all be numbers.
static inline void loops_case_init(LoopsCase *c, const char *name, Graph *g, uint64_t seed) {
  *c = (LoopsCase){.graph = g};
  snprintf(c->name, sizeof c->name, "%.255s", name);
  assert_true(g->ninputs < MOST_TENSORS && g->noutputs < MOST_TENSORS);
  for (size_t i = 0; i < g->ninputs; i++)
    assert_true(random_tensor(&seed, g->inputs[i], &c->inputs[i], &system_allocator));
}

static inline void loops_case_deinit(LoopsCase *c) {
  for (size_t i = 0; i < c->graph->ninputs; i++) tensor_free(&c->inputs[i], &system_allocator);
  graph_free(c->graph);
}

static inline void loops_bind(const char *name, Graph *g) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  if (!graph_bind_dims(g, &d) || !graph_infer(g, &d) || !graph_verify(g, &d))
    fail_msg("%s: %s", name, d.items[0].message);
  diagnostics_deinit(&d);
}

static inline Graph *loops_random_graph(uint64_t seed, const RandomGraphOptions *options) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = random_graph(&system_allocator, seed, options, &d);
  if (!g) fail_msg("seed %llu: %s", (unsigned long long)seed, d.count ? d.items[0].message : "out of memory");
  diagnostics_deinit(&d);
  return g;
}

static inline void loops_case_init_random(LoopsCase *c, uint64_t seed, const RandomGraphOptions *options) {
  char name[64];
  snprintf(name, sizeof name, "seed %llu%s", (unsigned long long)seed, options->is_focused ? ", focused" : "");
  Graph *g = loops_random_graph(seed, options);
  loops_bind(name, g);
  loops_case_init(c, name, g, seed + 1);
}

// Gives named extents small values, so that models run quickly, but more than one block of rows.
static inline void loops_shrink(Graph *g) {
  enum { FEW = 2, MANY = 70, LARGE = 100000 };
  int64_t most = 0;
  for (size_t i = 0; i < g->nvalues; i++) {
    int64_t nelems = 1;
    for (int axis = 0; axis < g->values[i]->shape.rank; axis++)
      if (!g->values[i]->shape.extent[axis].dim) nelems *= g->values[i]->shape.extent[axis].value;
    if (nelems > most) most = nelems;
  }
  for (size_t i = 0; i < g->ndims; i++) g->dims[i]->value = most > LARGE ? FEW : MANY;
}

// False: the graph's values have more elements than that, and c is not initialised.
static inline bool loops_case_init_file(LoopsCase *c, const char *path, int64_t most_nelems) {
  int64_t nelems = 0;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read_file(&system_allocator, path, NULL, &d);
  if (!g) {
    fail_msg("%s: %s", path, d.items[0].message);
    return false;
  }
  diagnostics_deinit(&d);
  loops_shrink(g);
  loops_bind(path, g);
  for (size_t i = 0; i < g->nvalues; i++) nelems += shape_nelems(&g->values[i]->shape);
  if (nelems <= most_nelems) loops_case_init(c, path, g, 1);
  else graph_free(g);
  return nelems <= most_nelems;
}

// Fails unless all files are valid; returns the number of small enough files.
static inline size_t for_each_file(const char *pattern, int64_t most_nelems, bool (*is_right)(const LoopsCase *c)) {
  glob_t files = {0};
  size_t count = 0, nfailures = 0;
  assert_int_equal(glob(pattern, 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    LoopsCase c;
    if (!loops_case_init_file(&c, files.gl_pathv[i], most_nelems)) continue;
    nfailures += !is_right(&c);
    count++;
    loops_case_deinit(&c);
  }
  globfree(&files);
  assert_int_equal(nfailures, 0);
  return count;
}

// Graphs with shapes that are rare among random ones: long rows that start within cache lines, and so are peeled, one
// in a step or several; several outer axes, or several runs in a row, with prefetches.
static inline void for_each_large_graph(bool (*is_right)(const LoopsCase *c)) {
  static const char *const texts[] = {
      "inputs: [{name: x, type: f32, shape: [9, 5003]}]\n"
      "nodes: [{op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}]\noutputs: [y]\n",
      "inputs: [{name: x, type: f32, shape: [40, 30, 401], order: [1, 0, 2]}]\n"
      "nodes: [{op: LogSoftmax, inputs: [x], outputs: [y], attributes: {axis: 2}}]\noutputs: [y]\n",
      "inputs:\n- {name: x, type: f32, shape: [6, 7, 1901]}\n- {name: dy, type: f32, shape: [6, 7, 1901]}\n"
      "- {name: mean, type: f32, shape: [7]}\n- {name: var, type: f32, shape: [7]}\n"
      "- {name: gamma, type: f32, shape: [7]}\n"
      "nodes: [{op: BatchNormTrainingBackward, inputs: {src: x, diff_dst: dy, mean: mean, variance: var,\n"
      "  gamma: gamma}, outputs: {diff_src: dx, diff_gamma: dgamma, diff_beta: dbeta},\n"
      "  attributes: {data_format: NCX, epsilon: 1.0e-5}}]\noutputs: [dx, dgamma, dbeta]\n",
      "inputs: [{name: c, type: f32, shape: [1901]}, {name: x, type: f32, shape: [6, 7, 1901]}]\n"
      "nodes:\n- {op: Multiply, inputs: [c, x], outputs: [p]}\n"
      "- {op: ReduceSum, inputs: [p], outputs: [y], attributes: {axes: [0, 2]}}\noutputs: [y]\n",
      "inputs:\n- {name: x, type: f32, shape: [23, 301]}\n- {name: dy, type: f32, shape: [23, 301]}\n"
      "- {name: mean, type: f32, shape: [23]}\n- {name: var, type: f32, shape: [23]}\n"
      "- {name: gamma, type: f32, shape: [301]}\nnodes: [{op: LayerNormBackward, inputs: {src: x, diff_dst: dy,\n"
      "  mean: mean, variance: var, gamma: gamma}, outputs: {diff_src: dx, diff_gamma: dgamma, diff_beta: dbeta},\n"
      "  attributes: {epsilon: 1.0e-5}}]\noutputs: [dx, dgamma, dbeta]\n",
  };
  size_t nfailures = 0;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char text[1024];
    Diagnostics d;
    LoopsCase c;
    const int length = snprintf(text, sizeof text, "format: ngrad/1\nname: large\n%s", texts[i]);
    diagnostics_init(&d, &system_allocator);
    Graph *g = yaml_read(&system_allocator, "large.yaml", text, (size_t)length, NULL, &d);
    if (!g) {
      fail_msg("%s", d.items[0].message);
      return;
    }
    diagnostics_deinit(&d);
    loops_case_init(&c, g->nodes[0]->op->name, g, i);
    nfailures += !is_right(&c);
    loops_case_deinit(&c);
  }
  assert_int_equal(nfailures, 0);
}

// Uninitialised outputs, filled with the same bytes each time, so that elements that are not written compare equal.
static inline void loops_new_outputs(const Graph *g, Tensor *outputs) {
  for (size_t i = 0; i < g->noutputs; i++) {
    outputs[i] = tensor_like(g->outputs[i]);
    assert_true(tensor_alloc(&outputs[i], &system_allocator));
    memset(outputs[i].data, 0xA5, tensor_nbytes(&outputs[i]));
  }
}

static inline void loops_free_outputs(const Graph *g, Tensor *outputs) {
  for (size_t i = 0; i < g->noutputs; i++) tensor_free(&outputs[i], &system_allocator);
}

typedef struct Lowered {
  Graph *graph; // after the passes
  Program *program;
} Lowered;

// overrides NULL: none.
static inline Lowered loops_lower(const LoopsCase *c, const Target *target, bool no_fuse,
                                  const ScheduleOverrides *overrides) {
  Lowered l = {graph_clone(c->graph), NULL};
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  PassContext context = {.diagnostics = &d,
                         .allocator = &system_allocator,
                         .target = target,
                         .overrides = overrides,
                         .costs = c->costs,
                         .evaluate = interpret_node,
                         .no_fuse = no_fuse};
  if (l.graph && pipeline_run(l.graph, &context)) l.program = pipeline_lower(l.graph, &context);
  if (!l.program) {
    fail_msg("%s: %s", c->name, d.count ? d.items[0].message : "out of memory");
    abort(); // not reached, as no reader of the code can tell
  }
  diagnostics_deinit(&d);
  return l;
}

static inline void lowered_free(Lowered *l) {
  program_free(l->program);
  graph_free(l->graph);
}

// Builds the program's trees, for calls that want every output, unless they are built. False after printing why.
static inline bool loops_execute(const LoopsCase *c, Program *p, const Tensor *outputs, const ExecuteOptions *options,
                                 const char *how) {
  Text why;
  text_init(&why, &system_allocator);
  const bool ok =
      p && pipeline_build_trees(p, p->has_optional_outputs) && execute_program(p, c->inputs, outputs, options, &why);
  if (!ok) print_error("%s, %s: %s\n", c->name, how, p && p->unsound ? p->unsound : text_string(&why));
  text_deinit(&why);
  return ok;
}

// Whether all outputs have the same bits (any NaN equals any other); outputs without data are skipped. False after
// printing the first difference.
static inline bool loops_have_same_bits(const LoopsCase *c, const Tensor *got, const Tensor *expected,
                                        const char *how) {
  for (size_t k = 0; k < c->graph->noutputs; k++) {
    const Tensor *a = &got[k], *e = &expected[k];
    if (!a->data || !e->data || memcmp(a->data, e->data, tensor_nbytes(a)) == 0) continue;
    for (int64_t i = 0; i < tensor_nelems(a); i++) {
      const double x = type_load(a->type, a->data, (size_t)i), y = type_load(e->type, e->data, (size_t)i);
      if ((isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y))) continue;
      print_error("%s: %s[%lld] is %.17g, expected %.17g %s\n", c->name, c->graph->outputs[k]->name, (long long)i, x, y,
                  how);
      return false;
    }
  }
  return true;
}

#endif
