// What the tests of loop trees share: a graph with data, its kernels, and what the executor makes of them.
#ifndef NGRAD_TESTS_UNIT_LOOPS_CASE_H
#define NGRAD_TESTS_UNIT_LOOPS_CASE_H

#include "backends/interpreter/interpreter.h"
#include "passes/pipeline.h"
#include "passes/schedule/schedule.h"
#include "tests/loops/execute.h"
#include "tests/random_graph.h"

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
} LoopsCase;

// Takes the graph, whose extents all have numbers.
static inline void loops_case_init(LoopsCase *c, const char *name, Graph *g, uint64_t seed) {
  *c = (LoopsCase){.graph = g};
  snprintf(c->name, sizeof c->name, "%s", name);
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

static inline uint64_t number_from(const char *variable, uint64_t otherwise) {
  const char *text = getenv(variable);
  return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static inline void loops_case_init_random(LoopsCase *c, uint64_t seed, const RandomGraphOptions *options) {
  char name[64];
  snprintf(name, sizeof name, "seed %llu%s", (unsigned long long)seed, options->is_focused ? ", focused" : "");
  Graph *g = loops_random_graph(seed, options);
  loops_bind(name, g);
  loops_case_init(c, name, g, seed + 1);
}

// Outputs that nobody has written: the same bytes each time, which are seen where something is left of them.
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
                         .evaluate = interpret_node,
                         .no_fuse = no_fuse};
  if (l.graph && pipeline_run(l.graph, &context)) l.program = pipeline_lower(l.graph, &context);
  if (!l.program) fail_msg("%s: %s", c->name, d.count ? d.items[0].message : "out of memory");
  diagnostics_deinit(&d);
  return l;
}

static inline void lowered_free(Lowered *l) {
  program_free(l->program);
  graph_free(l->graph);
}

// False after telling why.
static inline bool loops_execute(const LoopsCase *c, const Program *p, const Tensor *outputs,
                                 const ExecuteOptions *options, const char *how) {
  Text why;
  text_init(&why, &system_allocator);
  const bool ok = execute_program(p, c->inputs, outputs, options, &why);
  if (!ok) print_error("%s, %s: %s\n", c->name, how, text_string(&why));
  text_deinit(&why);
  return ok;
}

// The same bits, but for NaNs, which are alike. False after telling where they are not; outputs without data are none.
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
