// The table of passes, and the functions that run them. Why the passes are in this order:
//   splits                 first: dead-code removes Slices of parts that nothing uses
//   dead-code              early, so that later passes do not process dead nodes
//   casts                  before passes that look at types: the remaining casts round
//   fold-constants         before simplify, whose rules look for constants
//   simplify               gives equal computations one form, which the passes below rely on
//   movement               after simplify, which removes nodes that stand between two transposes or reshapes
//   max-pool-gradients     before common-subexpressions, which shares the winners of equal windows
//   common-subexpressions  after the passes that make equal computations look equal
//   recognise              after these, so that a norm has few spellings; before fuse, which treats norm operators
//   split-groups           after common-subexpressions, which would merge the nodes of its two reads of the data
//   split-casts            after common-subexpressions, which would merge its casts; before fuse
//   reshape-layouts        after movement, which would remove its copies; before fuse, which must see them
//   quantize-scales        after common-subexpressions, which compares lists of scales but not large constants
//   transpose-weights      after common-subexpressions, which would compare tensors; before fuse, which must see shapes
//   aliases                after all rewriting passes, which change uses
//   fuse                   after all rewriting passes, which would invalidate its regions
//   slice-regions          after fuse: it groups kernels, not nodes
// Then each region is lowered to kernels and scheduled, and the memory plan assigns memory to the values between
// kernels.
#include "passes/pipeline.h"

#include "ir/graph/verify.h"
#include "ir/loops/prove.h"
#include "ir/loops/verify.h"
#include "ir/support/escape.h"
#include "passes/lower/aliases.h"
#include "passes/lower/fuse.h"
#include "passes/lower/pieces.h"
#include "passes/lower/regions.h"
#include "passes/lower/slice_regions.h"
#include "passes/memory/in_place.h"
#include "passes/memory/liveness.h"
#include "passes/memory/order_kernels.h"
#include "passes/memory/plan.h"
#include "passes/memory/verify.h"
#include "passes/memory/workspace.h"
#include "passes/recompute/recompute.h"
#include "passes/rewrite/dead_code.h"
#include "passes/rewrite/passes.h"
#include "passes/schedule/build/tree.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const Pass passes[] = {
    {"splits", pass_splits, "replace Split by a Slice for each part, and Pad along an open axis by Concat", NULL, true},
    {"dead-code", pass_dead_code, "remove nodes that no output needs", NULL, false},
    {"casts", pass_casts, "remove casts that a later cast undoes", &casts_rules, false},
    {"fold-constants", pass_fold_constants, "evaluate nodes whose inputs are all constants", NULL, false},
    {"simplify", pass_simplify, "apply algebraic identities", &simplify_rules, false},
    {"movement", pass_movement, "join, move and remove reshapes and transposes", &movement_rules, false},
    {"max-pool-gradients", pass_max_pool_gradients, "find the winners of the windows of MaxPoolBackward once", NULL,
     true},
    {"common-subexpressions", pass_common_subexpressions, "merge nodes that compute the same values", NULL, false},
    {"recognise", pass_recognise, "replace norms that are composed of simple operators by norm operators", NULL, false},
    {"split-groups", pass_split_groups, "split group norms whose channels are last in memory into sums by channel",
     NULL, false},
    {"split-casts", pass_split_casts, "cast from and to half floats in each kernel that reads them, not in one for all",
     NULL, false},
    {"reshape-layouts", pass_reshape_layouts, "copy the input of a reshape to row-major layout if its layout differs",
     NULL, true},
    {"quantize-scales", pass_quantize_scales, "turn lists of scales into constant tensors", NULL, true},
    {"transpose-weights", pass_transpose_weights,
     "transpose constant weights of products of few rows, which each call would copy", NULL, false},
    {"aliases", pass_aliases, "turn reshapes, transposes and slices into views of their operands", NULL, false},
    {"fuse", pass_fuse, "choose the nodes that become one kernel", NULL, true},
    {"slice-regions", pass_slice_regions,
     "choose kernels to run together, on one slice of their tensors after the other", NULL, false}};
const size_t npasses = sizeof passes / sizeof *passes;

// A graph that is invalid after a pass is a bug in ngrad.
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

static bool order_and_plan(Program *p, bool is_tight) {
  return order_kernels(p, is_tight) && stage_updates(p) && plan_memory(p);
}

static bool lower_all(Program *p, PassContext *c) {
  if (!lower_regions(p, c)) return false;
  if (!order_and_plan(p, false)) return pass_out_of_memory(c);
  // The tight order is meant for recomputation; without recomputation its plan may need more bytes, so both sizes are
  // known.
  const size_t nbytes = p->workspace_nbytes;
  if (c->memory_nbytes && nbytes > c->memory_nbytes && !order_and_plan(p, true)) return pass_out_of_memory(c);
  if (!fit_memory(p, nbytes, c)) return false;
  return (find_liveness(p) && lay_out_workspace(p)) || pass_out_of_memory(c);
}

Program *pipeline_lower(Graph *g, PassContext *c) {
  assert(c->partition);
  Arena arena;
  arena_init(&arena, c->allocator);
  Program *p = ARENA_NEW(&arena, Program);
  if (p) {
    size_t most = 1; // each result may need a kernel for each piece
    for (size_t i = 0; i < g->nnodes; i++)
      most += (size_t)g->nodes[i]->noutputs * node_npieces(costs_or_usual(c->costs), g->nodes[i]);
    p->graph = g;
    p->partition = c->partition;
    p->schedules = ARENA_ARRAY(&arena, Schedule *, most);
    p->first_kernel = ARENA_ARRAY(&arena, uint32_t, g->nnodes);
    p->value_offset = ARENA_ARRAY(&arena, size_t, g->nvalues + 1);
    p->is_in_workspace = ARENA_ARRAY(&arena, bool, g->nvalues + 1);
  }
  if (!p || !p->schedules || !p->first_kernel || !p->value_offset || !p->is_in_workspace) {
    pass_out_of_memory(c);
    arena_deinit(&arena);
    return NULL;
  }
  p->arena = arena;
  if (lower_all(p, c)) return p;
  program_free(p);
  return NULL;
}

// Loop trees

// Takes the text. False, and sets p->unsound, if something is not sound.
static bool require_sound(Program *p, bool is_sound, const char *pass, Text *why) {
  if (!is_sound && !why->out_of_memory)
    p->unsound =
        arena_format(&p->arena, "%s%s%s%s", pass ? "after " : "", pass ? pass : "", pass ? ": " : "", text_string(why));
  text_deinit(why);
  return is_sound;
}

static bool verify_tree(Program *p, const LoopTree *t) {
  Text why;
  text_init(&why, p->arena.allocator);
  const bool is_sound = loops_verify(t, &why);
  return require_sound(p, is_sound, t->spoilt_by, &why);
}

// Runs as many kernels as a millisecond or two allow; in checked builds, more.
static bool prove_trees(Program *p) {
#ifdef NGRAD_CHECKED
  int64_t nsteps = 1 << 20;
#else
  int64_t nsteps = 1 << 16;
#endif
  Text why;
  text_init(&why, p->arena.allocator);
  const bool is_sound = program_prove(p, &nsteps, &why);
  return require_sound(p, is_sound, NULL, &why);
}

static bool verify_memory(Program *p) {
#ifdef NGRAD_CHECKED
  int64_t nsteps = 1 << 22;
  Text why;
  text_init(&why, p->arena.allocator);
  return require_sound(p, memory_verify(p, &nsteps, &why), "memory planning", &why);
#else
  return p; // tests do
#endif
}

static bool build_trees_of(Program *p, size_t kernel) {
  const Schedule *s = p->schedules[kernel];
  const Liveness *f = p->liveness;
  const Wants optional = {f->is_optional, f->may_be_unwanted + f->first_temporary[kernel]};
  for (uint32_t loop = 0; loop < s->nloops; loop++) {
    LoopTree *t = loop_tree(s, loop, p->has_optional_outputs ? &optional : NULL, &p->tree_arena);
    p->trees[f->first_loop[kernel] + loop] = t;
    if (!t || !verify_tree(p, t)) return false;
  }
  return true;
}

bool pipeline_build_trees(Program *p, bool has_optional_outputs) {
  if (p->trees && p->has_optional_outputs == has_optional_outputs) return true;
  if (p->trees) arena_deinit(&p->tree_arena);
  arena_init(&p->tree_arena, p->arena.allocator);
  p->has_optional_outputs = has_optional_outputs;
  p->unsound = NULL;
  p->trees = ARENA_ARRAY(&p->tree_arena, LoopTree *, p->liveness->nloops + 1);
  bool ok = p->trees;
  for (size_t i = 0; i < p->nkernels && ok; i++) ok = build_trees_of(p, i);
  if (ok && prove_trees(p) && verify_memory(p)) return true;
  arena_deinit(&p->tree_arena);
  p->trees = NULL;
  return false;
}
