// Graphs, lowered, and the trees of their loops.
#ifndef NGRAD_TESTS_UNIT_LOOP_TREES_H
#define NGRAD_TESTS_UNIT_LOOP_TREES_H

#include "backends/interpreter/interpreter.h"
#include "frontend/yaml/yaml.h"
#include "ir/graph/open_dims.h"
#include "ir/loops/target.h"
#include "ir/loops/verify.h"
#include "ir/operators/infer.h"
#include "passes/pipeline.h"
#include "passes/schedule/build/tree.h"
#include "passes/schedule/overrides.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Programs

typedef struct Lowered {
  Graph *g, *open;
  Program *p; // NULL: no program that leaves the extents open
  Diagnostics d;
  ScheduleOverrides overrides;
  CodeForm code;
} Lowered;

static inline void lower_graph(Lowered *l, Graph *g, bool is_open, bool no_fuse) {
  Target target = target_of_any_machine();
  target.vector_registers = 16;
  target.code = l->code;
  PassContext c = {.diagnostics = &l->d,
                   .allocator = &system_allocator,
                   .target = &target,
                   .overrides = &l->overrides,
                   .evaluate = interpret_node,
                   .no_fuse = no_fuse};
  l->g = g;
  if (!g) fail_msg("%s", l->d.items[0].message);
  l->open = is_open ? graph_with_open_dims(g, &l->d) : NULL;
  if (is_open && !l->open) return;
  Graph *lowered = graph_clone(l->open ? l->open : g);
  if (l->open ? true : graph_bind_dims(lowered, &l->d) && graph_infer(lowered, &l->d))
    l->p = pipeline_run(lowered, &c) ? pipeline_lower(lowered, &c) : NULL;
  if (!l->p && !l->open) fail_msg("%s", l->d.nerrors ? l->d.items[0].message : "not lowered");
  if (l->open) graph_free(l->open);
  l->open = lowered;
}

static inline void begin(Lowered *l) {
  memset(l, 0, sizeof *l);
  diagnostics_init(&l->d, &system_allocator);
}

static inline void deinit(Lowered *l) {
  program_free(l->p);
  graph_free(l->open);
  graph_free(l->g);
  diagnostics_deinit(&l->d);
}

// Trees

typedef void (*TreeTest)(LoopTree *t, Arena *arena, const char *what);

// Each loop's tree for a call that wants all outputs, and for one that may leave out any.
static inline size_t for_each_tree(const Lowered *l, const char *what, TreeTest test) {
  size_t count = 0;
  if (!l->p) return 0;
  bool *any = calloc(l->open->nvalues + 1, sizeof *any);
  assert_non_null(any);
  for (size_t i = 0; i < l->open->noutputs; i++) any[l->open->outputs[i]->index] = true;
  for (size_t i = 0; i < l->p->nkernels; i++) {
    const Schedule *schedule = l->p->schedules[i];
    bool *unwanted = calloc(schedule->ntemporaries + 1, sizeof *unwanted);
    assert_non_null(unwanted);
    for (size_t t = 0; t < schedule->ntemporaries; t++) unwanted[t] = schedule->temporaries[t].reduction != EXPR_NONE;
    const Wants wants[] = {{NULL, NULL}, {any, unwanted}};
    for (uint32_t loop = 0; loop < schedule->nloops; loop++)
      for (int w = 0; w < 2; w++) {
        Arena arena;
        arena_init(&arena, &system_allocator);
        LoopTree *t = loop_tree(schedule, loop, &wants[w], &arena);
        assert_non_null(t);
        test(t, &arena, what);
        arena_deinit(&arena);
        count++;
      }
    free(unwanted);
  }
  free(any);
  return count;
}

#endif
