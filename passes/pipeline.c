// The order of passes, and the runner. The order is the design:
//   dead-code              first, so that nothing below works for nothing
//   casts                  before all that looks at types: what is left of them is there to round
//   fold-constants         before simplify, whose rules look for numbers
//   simplify               one spelling of each thing, for all that compares below
//   movement               after simplify, which takes away what stands between two that cancel
//   common-subexpressions  when equal things have become alike
//   recognise              sees each norm once, in few spellings; before fuse, which knows the operators
//   split-groups           after common-subexpressions, which would join what its two looks at the data compute
//   reshape-orders         after movement, which would take its copies away; before fuse, which must see them
//   quantize-scales        after common-subexpressions, which would not see that two lists are alike
//   fuse                   last of the graph passes: it only marks regions, which later rewriting would make untrue
// and then each region is lowered to one kernel and scheduled, and what kernels hand to each other gets its place.
#include "passes/pipeline.h"

#include "ir/graph/verify.h"
#include "ir/loops/verify.h"
#include "ir/support/escape.h"
#include "passes/lower/fuse.h"
#include "passes/lower/regions.h"
#include "passes/memory/plan.h"
#include "passes/memory/verify.h"
#include "passes/rewrite/casts.h"
#include "passes/rewrite/common_subexpressions.h"
#include "passes/rewrite/dead_code.h"
#include "passes/rewrite/fold_constants.h"
#include "passes/rewrite/movement.h"
#include "passes/rewrite/quantize_scales.h"
#include "passes/rewrite/recognise/recognise.h"
#include "passes/rewrite/reshape_orders.h"
#include "passes/rewrite/simplify.h"
#include "passes/rewrite/split_groups.h"
#include "passes/schedule/tree.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const Pass passes[] = {
    {"dead-code", pass_dead_code, "remove nodes that no output needs", NULL, false},
    {"casts", pass_casts, "remove casts that a later one undoes", &casts_rules, false},
    {"fold-constants", pass_fold_constants, "compute what follows from constants alone", NULL, false},
    {"simplify", pass_simplify, "apply algebraic identities", &simplify_rules, false},
    {"movement", pass_movement, "join, move and remove reshapes and transposes", &movement_rules, false},
    {"common-subexpressions", pass_common_subexpressions, "compute once what is computed twice", NULL, false},
    {"recognise", pass_recognise, "make norms that are spelled out their operators", NULL, false},
    {"split-groups", pass_split_groups, "take group norms and their gradients with channels last in steps by channel",
     NULL, false},
    {"reshape-orders", pass_reshape_orders, "copy what a reshape takes where it is not row-major", NULL, true},
    {"quantize-scales", pass_quantize_scales, "make constants of lists of scales", NULL, true},
    {"fuse", pass_fuse, "mark the nodes that become one kernel", NULL, true}};
const size_t npasses = sizeof passes / sizeof *passes;

// A graph that a pass has spoilt is a mistake in ngrad.
static void verify_after(Graph *g, PassContext *c, const char *pass) {
  Diagnostics d;
  diagnostics_init(&d, c->allocator);
  bool ok = graph_verify(g, &d);
  if (d.out_of_memory) {
    pass_out_of_memory(c);
  } else if (!ok) {
    Text text;
    text_init(&text, c->allocator);
    text_add_string(&text, "internal error: the graph ");
    text_add_user_string(&text, SINK_TERMINAL, g->name);
    text_format(&text, " is not valid after pass %s\n", pass);
    diagnostics_print(&d, &text, false);
    fputs(text_string(&text), stderr);
    abort();
  }
  diagnostics_deinit(&d);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

bool pipeline_run(Graph *g, PassContext *c) {
  c->partition = NULL;
  for (size_t i = 0; i < npasses && !c->failed; i++) {
    bool runs = passes[i].is_needed || !pass_is_disabled(c, passes[i].name);
    double start = now_ms();
    bool changed = runs && passes[i].run(g, c);
    double took = now_ms() - start;
    if (changed && !c->failed) verify_after(g, c, passes[i].name);
    if (c->watch && !c->failed) c->watch(c->watcher, g, passes[i].name, changed, took);
    if (c->after && strcmp(c->after, passes[i].name) == 0) break;
  }
  return !c->failed;
}

// From the graph to a program

#ifdef NGRAD_CHECKED
static bool verify_memory(const Program *p, PassContext *c) {
  enum { STEPS = 1 << 20 };
  int64_t nsteps = STEPS;
  Text why;
  text_init(&why, c->allocator);
  text_add_string(&why, "the memory plan is not sound: ");
  return pass_require(c, memory_verify(p, &nsteps, &why), &why);
}
#endif

// A tree for who prints or executes it.
static LoopTree *sound_tree(const Kernel *k, uint32_t loop, const Wants *wants, Arena *arena) {
  LoopTree *t = loop_tree(k, loop, wants, arena);
  Text why;
  text_init(&why, arena->allocator);
  const bool is_sound = t && loops_verify(t, &why);
  if (t && !is_sound && !why.out_of_memory) {
    fprintf(stderr, "internal error: %s", text_string(&why));
    abort();
  }
  text_deinit(&why);
  return is_sound ? t : NULL;
}

static bool lower_all(Program *p, PassContext *c) {
  if (!lower_regions(p, c)) return false;
  if (!plan_memory(p)) return pass_out_of_memory(c);
#ifdef NGRAD_CHECKED
  return verify_memory(p, c);
#else
  return true;
#endif
}

Program *pipeline_lower(Graph *g, PassContext *c) {
  assert(c->partition);
  Arena arena;
  arena_init(&arena, c->allocator);
  Program *p = ARENA_NEW(&arena, Program);
  if (p) {
    size_t most = g->nvalues + 1; // a result may have one of its own, and so may an input
    for (size_t i = 0; i < g->nnodes; i++) most += g->nodes[i]->ninputs;
    p->graph = g;
    p->partition = c->partition;
    p->loop_tree = sound_tree;
    p->kernels = ARENA_ARRAY(&arena, Kernel *, most);
    p->first_kernel = ARENA_ARRAY(&arena, uint32_t, g->nnodes);
    p->value_offset = ARENA_ARRAY(&arena, size_t, g->nvalues + 1);
    p->is_in_workspace = ARENA_ARRAY(&arena, bool, g->nvalues + 1);
  }
  if (!p || !p->kernels || !p->first_kernel || !p->value_offset || !p->is_in_workspace) {
    pass_out_of_memory(c);
    arena_deinit(&arena);
    return NULL;
  }
  p->arena = arena;
  if (lower_all(p, c)) return p;
  program_free(p);
  return NULL;
}
