// Shared by the tests of schedules: graphs, lowered to kernels and their schedules.
#ifndef NGRAD_TESTS_UNIT_SCHEDULE_CASE_H
#define NGRAD_TESTS_UNIT_SCHEDULE_CASE_H

#include "frontend/api/handles.h"
#include "ir/kernel/schedule.h"
#include "ir/loops/target.h"
#include "passes/pipeline.h"
#include "passes/schedule/overrides.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const Target usual = {.isa = "avx2",
                             .vector_registers = 8,
                             .l1_nbytes = 32 << 10,
                             .l2_nbytes = 1 << 20,
                             .llc_nbytes = 32 << 20,
                             .threads = 4};

typedef struct Lowered {
  ng_context *ctx;
  ng_graph *graph;
  Graph *clone;
  Program *program;
} Lowered;

static inline Lowered lower(const char *text, const Target *target, bool no_fuse) {
  Lowered l = {.ctx = ng_context_new(NULL)};
  l.graph = ng_graph_read(l.ctx, "test.yaml", text, strlen(text), NULL);
  if (!l.graph) {
    fail_msg("%s", ng_messages_text(l.ctx, 0));
    abort(); // not reached, as no reader of the code can tell
  }
  assert_int_equal(ng_graph_bind(l.graph), NG_OK);
  l.clone = graph_clone(l.graph->graph);
  PassContext c = {
      .diagnostics = &l.ctx->diagnostics, .allocator = &l.ctx->allocator, .target = target, .no_fuse = no_fuse};
  assert_true(pipeline_run(l.clone, &c));
  l.program = pipeline_lower(l.clone, &c);
  if (!l.program) fail_msg("%s", ng_messages_text(l.ctx, 0));
  return l;
}

static inline void lowered_deinit(Lowered *l) {
  program_free(l->program);
  graph_free(l->clone);
  ng_graph_free(l->graph);
  ng_context_free(l->ctx);
}

static inline const Schedule *only_schedule(const Lowered *l) {
  assert_int_equal(l->program->nkernels, 1);
  return l->program->schedules[0];
}

static inline const Loop *last_loop(const Schedule *s) {
  return &s->loops[s->nloops - 1];
}

static inline const Loop *product_loop(const Schedule *s) {
  const Loop *found = NULL;
  for (size_t i = 0; i < s->nloops; i++)
    if (loop_has(&s->loops[i], LOOP_COLUMNS)) found = &s->loops[i];
  assert_non_null(found);
  return found;
}

static inline void must_add_alike(const Schedule *a, const Schedule *b) {
  assert_int_equal(a->nloops, b->nloops);
  for (size_t l = 0; l < a->nloops; l++) {
    assert_int_equal(a->loops[l].nroots, b->loops[l].nroots);
    for (size_t r = 0; r < a->loops[l].nroots; r++) {
      const SumOrder *x = a->loops[l].roots[r].order, *y = b->loops[l].roots[r].order;
      assert_true(x && y ? sum_order_equal(x, y) : !x && !y);
    }
  }
}

#endif
