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
#include "ir/kernel/verify.h"
#include "ir/support/escape.h"
#include "passes/lower/fuse.h"
#include "passes/lower/lower.h"
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
#include "passes/schedule/schedule.h"
#include "passes/schedule/tree.h"

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
    c->failed = true;
    error_out_of_memory(c->diagnostics);
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

// From regions to kernels

// Names all lines that the node came from. `what` NULL: out of memory.
static void fail_at(PassContext *c, const Node *node, const char *what) {
  Text text;
  c->failed = true;
  text_init(&text, c->allocator);
  node_print(node, &text);
  if (!what || text.out_of_memory) error_out_of_memory(c->diagnostics);
  else error_at(c->diagnostics, node->position, "%s: %s", text_string(&text), what);
  text_deinit(&text);
}

// A kernel or plan that is not sound is a mistake in ngrad.
static bool settle(PassContext *c, bool is_sound, Text *why) {
  if (!is_sound && !why->out_of_memory) {
    fprintf(stderr, "internal error: %s", text_string(why));
    abort();
  }
  if (!is_sound) error_out_of_memory(c->diagnostics);
  c->failed |= !is_sound;
  text_deinit(why);
  return is_sound;
}

static bool verify_kernel(const Kernel *k, PassContext *c, const char *after) {
  Text why;
  text_init(&why, c->allocator);
  text_add_string(&why, "the kernel of ");
  kernel_print_nodes(k, &why);
  text_format(&why, " is not sound after %s: ", after);
  return settle(c, kernel_verify(k, &why), &why);
}

#ifdef NGRAD_CHECKED
static bool verify_memory(const Program *p, PassContext *c) {
  enum { STEPS = 1 << 20 };
  int64_t nsteps = STEPS;
  Text why;
  text_init(&why, c->allocator);
  text_add_string(&why, "the memory plan is not sound: ");
  return settle(c, memory_verify(p, &nsteps, &why), &why);
}
#endif

static Kernel *scheduled_region(Program *p, Node *const *nodes, size_t nnodes, LoweredPart part, int vector_axis,
                                const LowerScratch *scratch, PassContext *c) {
  Kernel *k = lower_region(&p->arena, p->graph, nodes, nnodes, part, scratch);
  if (!k) {
    c->failed = true;
    error_out_of_memory(c->diagnostics);
    return NULL;
  }
  if (k->closed) {
    const char *name = k->closed->name;
    fail_at(c, k->closing,
            arena_format(&p->arena, "%s cannot stay open here; --dim %s=%lld bakes it in", name, name,
                         (long long)k->closed->value));
    return NULL;
  }
  if (!verify_kernel(k, c, "lowering")) return NULL;
  if (vector_axis >= k->naxes) return NULL;
  if (kernel_order(k, vector_axis, c->overrides) && verify_kernel(k, c, "the order of sums") &&
      kernel_tune(k, c->target, c->overrides))
    return verify_kernel(k, c, "tuning") ? k : NULL;
  if (k->out_of_memory) {
    c->failed = true;
    error_out_of_memory(c->diagnostics);
  }
  return NULL;
}

// A kernel for all these results of a node, or the first has one of its own. Constants that count as one number each
// leave sums over some of the axes that others go over; those of a tensor that is loaded are always alike. Sums of sums
// over two axes may want vectors along the first, though no tensor lies so.
static bool add_kernels_of_node(Program *p, Node *node, uint32_t slots, const LowerScratch *scratch, PassContext *c) {
  uint32_t first = slots & -slots;
  Kernel *k = scheduled_region(p, &node, 1, (LoweredPart){.slots = slots}, BEST_AXIS, scratch, c);
  const LoweredPart spread = {.slots = slots, .spreads_constants = true};
  for (int axis = BEST_AXIS; !k && !c->failed && first == slots && axis < MAX_AXES; axis++)
    k = scheduled_region(p, &node, 1, spread, axis, scratch, c);
  if (c->failed) return false;
  if (k) {
    p->kernels[p->nkernels++] = k;
    return true;
  }
  if (first != slots)
    return add_kernels_of_node(p, node, first, scratch, c) && add_kernels_of_node(p, node, slots & ~first, scratch, c);
  fail_at(c, node, "no schedule for these shapes");
  return false;
}

static uint32_t made_slots(const Node *node) {
  uint32_t slots = 0;
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (node->outputs[i]) slots |= 1U << i;
  return slots;
}

// Each input by itself becomes a part of the output.
static bool add_kernels_of_pieces(Program *p, Node *node, const LowerScratch *scratch, PassContext *c) {
  for (uint32_t i = 0; i < node->ninputs; i++) {
    Kernel *k = scheduled_region(p, &node, 1, (LoweredPart){.slots = UINT32_MAX, .piece = i}, BEST_AXIS, scratch, c);
    if (!k) return false;
    p->kernels[p->nkernels++] = k;
  }
  return true;
}

// One kernel, or, where no schedule carries all of a region, one a node.
static bool add_kernels(Program *p, Node *const *nodes, size_t nnodes, const LowerScratch *scratch, PassContext *c) {
  if (nodes[0]->op->traits & TRAIT_PIECES) return add_kernels_of_pieces(p, nodes[0], scratch, c);
  if (nnodes == 1) return add_kernels_of_node(p, nodes[0], made_slots(nodes[0]), scratch, c);
  Kernel *k = scheduled_region(p, nodes, nnodes, WHOLE, BEST_AXIS, scratch, c);
  if (c->failed) return false;
  if (k) {
    p->kernels[p->nkernels++] = k;
    return true;
  }
  for (size_t i = 0; i < nnodes; i++)
    if (!add_kernels(p, &nodes[i], 1, scratch, c)) return false;
  return true;
}

static bool lower_all(Program *p, PassContext *c) {
  const Graph *g = p->graph;
  const Partition *regions = p->partition;
  Node **nodes = ARENA_ARRAY(&p->arena, Node *, g->nnodes);
  LowerScratch scratch;
  if (!nodes || !lower_scratch_init(&scratch, &p->arena, g)) {
    c->failed = true;
    return error_out_of_memory(c->diagnostics);
  }
  for (uint32_t region = 0; region < g->nnodes; region++) {
    size_t count = 0;
    for (uint32_t i = regions->first[region]; i != NO_NODE; i = regions->next[i]) nodes[count++] = g->nodes[i];
    if (count && !add_kernels(p, nodes, count, &scratch, c)) return false;
  }
  for (size_t i = p->nkernels; i-- > 0;)
    for (size_t n = 0; n < p->kernels[i]->nnodes; n++) p->first_kernel[p->kernels[i]->nodes[n]->index] = (uint32_t)i;
  if (!plan_memory(p)) {
    c->failed = true;
    return error_out_of_memory(c->diagnostics);
  }
#ifdef NGRAD_CHECKED
  return verify_memory(p, c);
#else
  return true;
#endif
}

Program *pipeline_lower(Graph *g, PassContext *c) {
  Arena arena;
  arena_init(&arena, c->allocator);
  Program *p = ARENA_NEW(&arena, Program);
  if (p) {
    size_t most = g->nvalues + 1; // a result may have one of its own, and so may an input
    for (size_t i = 0; i < g->nnodes; i++) most += g->nodes[i]->ninputs;
    p->graph = g;
    p->partition = c->partition;
    p->loop_tree = loop_tree;
    p->kernels = ARENA_ARRAY(&arena, Kernel *, most);
    p->first_kernel = ARENA_ARRAY(&arena, uint32_t, g->nnodes);
    p->value_offset = ARENA_ARRAY(&arena, size_t, g->nvalues + 1);
    p->is_in_workspace = ARENA_ARRAY(&arena, bool, g->nvalues + 1);
  }
  if (!p || !p->kernels || !p->first_kernel || !p->value_offset || !p->is_in_workspace) {
    c->failed = true;
    error_out_of_memory(c->diagnostics);
    arena_deinit(&arena);
    return NULL;
  }
  p->arena = arena;
  if (lower_all(p, c)) return p;
  program_free(p);
  return NULL;
}
