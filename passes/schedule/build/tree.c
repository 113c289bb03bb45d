// Builds a loop's tree, and runs the passes over trees.
#include "passes/schedule/build/tree.h"

#include "ir/kernel/scatter.h"
#include "ir/loops/verify.h"
#include "passes/schedule/build/nest_builder.h"
#include "passes/schedule/build/tree_passes.h"

#include <string.h>

// Finds the variable that holds each expression: a number, a scalar, one for each row, or a vector.
static void find_forms(NestBuilder *r) {
  int nlong = 0;
  memset(r->is_needed, 0, r->k->nexprs * sizeof *r->is_needed);
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) need_expr(r, root_operand(r->k, root));
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    r->t->is_made[id] = r->is_needed[id] || is_row_sum(r, id);
    nlong += r->t->is_made[id] && expr_is_long(r->k->exprs[id].op);
  }
  r->t->calls_long = nlong > r->k->costs->inline_functions;
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    const Level level = expr_level(r, id);
    r->t->form[id] = r->k->exprs[id].op == EXPR_CONSTANT ? FORM_NUMBER
                     : is_lanewise(r, id)                ? FORM_VECTOR
                     : has_rows(r) && level == LEVEL_ROW ? FORM_ROWS
                                                         : FORM_SCALAR;
  }
}

// Of an axis whose index is the same in all rows, scalars are in arrays of rows all the same.
static void find_values_of_rows(NestBuilder *r) {
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    const Expr *e = &r->k->exprs[id];
    r->is_of_row[id] = varies_by_row(r, e->axes) || r->t->form[id] == FORM_ROWS;
    for (int a = 0; a < 3 && !expr_is_reduction(e); a++) r->is_of_row[id] |= r->is_of_row[e->args[a]];
  }
}

// Checked builds verify the tree after each pass.
static const struct TreePass {
  const char *name;
  void (*run)(TreeBuilder *b, LoopTree *t);
} tree_passes[] = {
    {"prefetching", schedule_insert_prefetches},  {"splitting vectors", schedule_split_vectors},
    {"leaving registers", schedule_add_barriers}, {"gathering rows", schedule_gather_rows},
    {"streaming", schedule_stream_stores},        {"splitting interiors", schedule_split_interiors},
};

static void run_passes(NestBuilder *r) {
  const size_t count = r->loop->by_element ? 0 : sizeof tree_passes / sizeof *tree_passes;
  for (size_t i = 0; i < count && !r->b.out_of_memory; i++) {
    tree_passes[i].run(&r->b, r->t);
#ifdef NGRAD_CHECKED
    Text why;
    text_init(&why, r->b.arena->allocator);
    const bool is_sound = r->b.out_of_memory || r->t->spoilt_by || loops_verify(r->t, &why) || why.out_of_memory;
    if (!is_sound) r->t->spoilt_by = tree_passes[i].name;
    text_deinit(&why);
#endif
  }
}

LoopTree *loop_tree(const Schedule *s, uint32_t loop, const Wants *wants, Arena *arena) {
  static const Wants none;
  const Kernel *k = s->kernel;
  NestBuilder r = {.b = {.arena = arena},
                   .t = ARENA_NEW(arena, LoopTree),
                   .schedule = s,
                   .k = k,
                   .loop = &s->loops[loop],
                   .loop_index = loop,
                   .wants = wants ? wants : &none,
                   .ready = ARENA_ARRAY(arena, int, k->nexprs),
                   .is_of_row = ARENA_ARRAY(arena, bool, k->nexprs),
                   .is_needed = ARENA_ARRAY(arena, bool, k->nexprs)};
  if (!r.t || !r.ready || !r.is_of_row || !r.is_needed) return NULL;
  *r.t = (LoopTree){.schedule = s,
                    .k = k,
                    .loop = r.loop,
                    .form = ARENA_ARRAY(arena, Form, k->nexprs),
                    .is_made = ARENA_ARRAY(arena, bool, k->nexprs)};
  if (!r.t->form || !r.t->is_made) return NULL;
  r.segments = loop_segments(r.loop);
  r.nest = loop_nest(k, r.loop, &r.segments);
  find_ready(&r);
  find_forms(&r);
  find_values_of_rows(&r);
  if (!kernel_is_scatter(k)) build_micro_kernel(&r, &r.t->step);
  r.is_tail = loop_has(r.loop, LOOP_ROW_LANES);
  if (r.is_tail) build_micro_kernel(&r, &r.t->tail_step);
  r.is_tail = false;
  build_block(&r);
  run_passes(&r);
  return r.b.out_of_memory ? NULL : r.t;
}
