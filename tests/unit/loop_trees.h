// Graphs, lowered: those of files, and random ones.
#ifndef NGRAD_TESTS_UNIT_LOOP_TREES_H
#define NGRAD_TESTS_UNIT_LOOP_TREES_H

#include "backends/interpreter/interpreter.h"
#include "frontend/yaml/yaml.h"
#include "ir/graph/open_dims.h"
#include "ir/loops/target.h"
#include "ir/loops/verify.h"
#include "ir/operators/infer.h"
#include "passes/pipeline.h"
#include "passes/schedule/overrides.h"
#include "tests/random_seeds.h"

#include <glob.h>
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

static CodeForm code_of_trees; // of the programs that begin

static inline void begin(Lowered *l) {
  memset(l, 0, sizeof *l);
  l->code = code_of_trees;
  diagnostics_init(&l->d, &system_allocator);
}

static inline void deinit(Lowered *l) {
  program_free(l->p);
  graph_free(l->open);
  graph_free(l->g);
  diagnostics_deinit(&l->d);
}

// Graphs

typedef void ProgramTest(Lowered *l, const char *what);

static inline void set_randomly(ScheduleOverrides *overrides, uint64_t seed) {
  uint64_t random = seed;
  for (int key = 0; key < SCHEDULE_KEYS; key++) {
    const ScheduleKeyInfo *info = &schedule_keys[key];
    const int64_t most = info->most < 200 ? info->most : 200;
    if (!random_chance(&random, 30)) continue;
    overrides->key[key].is_set = true;
    overrides->key[key].value = info->least + (int64_t)random_below(&random, (size_t)(most - info->least + 1));
  }
}

// Makes one extent a dim, wherever it is; false where the graph then is none.
static inline bool open_extent(Graph *g, uint64_t seed, Diagnostics *d) {
  uint64_t random = seed;
  if (!g->ninputs) return false;
  const Shape *s = &g->inputs[random_below(&random, g->ninputs)]->shape;
  const int64_t extent = s->rank > 0 ? s->extent[random_below(&random, (size_t)s->rank)].value : 0;
  Dim *dim = ARENA_NEW(&g->arena, Dim);
  Dim **dims = ARENA_ARRAY(&g->arena, Dim *, 1);
  if (extent < 2 || !dim || !dims || g->ndims) return false;
  *dim = (Dim){.name = "N", .value = extent};
  dims[0] = dim;
  g->dims = dims;
  g->ndims = g->dims_capacity = 1;
  for (size_t i = 0; i < g->nvalues; i++)
    for (int axis = 0; axis < g->values[i]->shape.rank; axis++) {
      Extent *e = &g->values[i]->shape.extent[axis];
      if (g->values[i]->producer) *e = EXTENT_UNKNOWN;
      else if (e->value == extent) *e = (Extent){dim, -1};
    }
  return graph_infer(g, d);
}

// Of a quarter of the seeds open graphs; every other one with a schedule that is set at random.
static inline bool with_random_trees(uint64_t seed, ProgramTest *test) {
  const RandomGraphOptions options = {
      .most_nodes = 16, .most_nelems = seed % 3 ? 2000 : 200000, .is_focused = seed % 5 == 0};
  Lowered l;
  char what[32];
  begin(&l);
  if (seed % 2) set_randomly(&l.overrides, seed);
  snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
  Graph *g = random_graph(&system_allocator, seed, &options, &l.d);
  const bool is_open = seed % 4 > 1 && g && open_extent(g, seed, &l.d);
  if (is_open || seed % 4 < 2) lower_graph(&l, g, is_open, seed % 8 == 7);
  else l.g = g;
  const bool has_open = is_open && l.p;
  test(&l, what);
  deinit(&l);
  return has_open;
}

// With literal extents, and with open dims. Returns the number of programs.
static inline size_t with_trees_of(const char *pattern, ProgramTest *test) {
  glob_t files = {0};
  size_t count = 0;
  assert_int_equal(glob(pattern, 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++)
    for (int is_open = 0; is_open < 2; is_open++) {
      Lowered l;
      begin(&l);
      lower_graph(&l, yaml_read_file(&system_allocator, files.gl_pathv[i], NULL, &l.d), is_open, false);
      test(&l, files.gl_pathv[i]);
      count++;
      deinit(&l);
    }
  globfree(&files);
  return count;
}

#endif
