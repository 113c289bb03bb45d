// A loop's tree: a step for a few outer iterations (or a tile), and a block that runs its steps.
#include "passes/schedule/recipe.h"
#include "passes/schedule/tree_passes.h"

#include <string.h>

static void find_flags(Recipe *r) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->kind == ROOT_STORE && is_optional(r, root->access))
      add(r, (LoopNode){.kind = NODE_FLAG, .flag = FLAG_WANTED, .access = root->access});
  }
}

static void build_step(Recipe *r, LoopNode **step) {
  tree_open(&r->b, step);
  need_all(r);
  if (!r->loop->tile && !has_rows(r) && !mentioned_axes(r, 0))
    add(r, (LoopNode){.kind = NODE_UNUSED, .var = {VAR_OUTER, 0}});
  find_flags(r);
  for_each_pointer(r, declare_pointer);
  for (int i = 0; i < r->loop->nreused; i++)
    add(r, (LoopNode){.kind = NODE_ROOM,
                      .room = ROOM_KEPT,
                      .expr = r->loop->reused[i].expr,
                      .nelems = loop_row_nelems(r->k, r->loop) * (r->loop->is_across ? LANES : r->loop->rows)});
  for (int sweep = 0; sweep <= r->loop->nsweeps; sweep++) {
    build_section(r, sweep);
    if (sweep < r->loop->nsweeps) build_sweep(r, sweep);
  }
  tree_close(&r->b);
}

// Blocks

static void add_index(Recipe *r, VarKind kind, const Index *value) {
  add(r, (LoopNode){.kind = NODE_INDEX, .var = {kind, 0}, .value = value});
}

static void find_range(Recipe *r) {
  const Loop *loop = r->loop;
  const Index *block = var(r, VAR_BLOCK, 0), *begin = var(r, VAR_BEGIN, 0);
  const Index *total = axes_nelems_index(r, loop_cut_axes(loop)), *length = block_length(r);
  if (!loop->nkept && !loop_has_open_chunks(r->k, loop) && loop_nblocks(r->k, loop) == 1) {
    add_index(r, VAR_BEGIN, number(r, 0));
    add_index(r, VAR_END, total);
    return;
  }
  if (loop->nkept) {
    const Index *chunks = nchunks(r, r->loop_index);
    if (index_is(chunks, 0) || index_is(chunks, 1)) {
      add_index(r, VAR_BEGIN, index_of(&r->b, INDEX_MULTIPLY, block, total));
      add_index(r, VAR_END, index_of(&r->b, INDEX_ADD, begin, total));
      return;
    }
    const Index *start = var(r, VAR_START, 0), *chunk = var(r, VAR_CHUNK, 0);
    const Index *next = index_of(&r->b, INDEX_ADD, chunk, length);
    add_index(r, VAR_START, index_of(&r->b, INDEX_MULTIPLY, index_of(&r->b, INDEX_DIVIDE, block, chunks), total));
    add_index(r, VAR_CHUNK, index_of(&r->b, INDEX_MULTIPLY, index_of(&r->b, INDEX_REMAINDER, block, chunks), length));
    add_index(r, VAR_BEGIN, index_of(&r->b, INDEX_ADD, start, chunk));
    add_index(
        r, VAR_END,
        index_of(&r->b, INDEX_ADD, start, index_choose(&r->b, index_of(&r->b, INDEX_LESS, next, total), next, total)));
    return;
  }
  const Index *next = index_of(&r->b, INDEX_ADD, begin, length);
  add_index(r, VAR_BEGIN, index_of(&r->b, INDEX_MULTIPLY, block, length));
  add_index(r, VAR_END, index_choose(&r->b, index_of(&r->b, INDEX_LESS, next, total), next, total));
}

static Address part_element(const Root *root, const Index *index) {
  return (Address){.base = BASE_PART, .access = root->access, .index = index};
}

// Where the block's partial sums are; across lanes, one for each lane, in its own memory.
static void begin_parts(Recipe *r) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const Access *a = &r->k->accesses[root->access];
    const AxisSet axes = access_axes(r->k, a);
    const bool is_across = r->loop->is_across;
    const Index *count = is_across ? number(r, axes_nelems(r->k, axes) * LANES) : axes_nelems_index(r, axes);
    add(r, (LoopNode){.kind = NODE_PARTS,
                      .access = root->access,
                      .is_vector = is_across,
                      .value = count,
                      .flag = may_be_unwanted(r, root->access) && !is_across ? FLAG_HAS_SUMS : FLAG_NONE});
    if (!axes_nelems(r->k, axes)) continue;
    open_body(r, add(r, (LoopNode){.kind = NODE_FOR,
                                   .var = {VAR_ELEMENT, 0},
                                   .value = number(r, 0),
                                   .end = count,
                                   .step = number(r, 1),
                                   .access = root->access,
                                   .flag = part_flag(r, root->access)}));
    add(r, (LoopNode){.kind = NODE_CLEAR,
                      .access = root->access,
                      .reduction = root_reduction(r, root),
                      .is_f64 = !is_across && a->type == TYPE_F64,
                      .address = part_element(root, var(r, VAR_ELEMENT, 0))});
    close_body(r);
  }
}

// Where rows lie across lanes, a block's partial sums are those of its lanes.
static void end_parts(Recipe *r) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const Access *a = &r->k->accesses[root->access];
    const Index *count = axes_nelems_index(r, access_axes(r->k, a)), *element = var(r, VAR_ELEMENT, 0);
    open_body(r, add(r, (LoopNode){.kind = NODE_FOR,
                                   .var = {VAR_ELEMENT, 0},
                                   .value = number(r, 0),
                                   .end = count,
                                   .step = number(r, 1),
                                   .access = root->access,
                                   .flag = may_be_unwanted(r, root->access) ? FLAG_HAS_SUMS : FLAG_NONE}));
    add(r, (LoopNode){
               .kind = NODE_LANE_PART,
               .access = root->access,
               .reduction = root_reduction(r, root),
               .value = index_of(&r->b, INDEX_MULTIPLY, element, number(r, LANES)),
               .address = {.base = BASE_TENSOR,
                           .access = root->access,
                           .index = index_of(&r->b, INDEX_ADD,
                                             index_of(&r->b, INDEX_MULTIPLY, var(r, VAR_BLOCK, 0), count), element)}});
    close_body(r);
  }
}

static void add_steps(Recipe *r, int rows) {
  open_body(r, add(r, (LoopNode){.kind = NODE_FOR,
                                 .var = {VAR_OUTER, 0},
                                 .end = var(r, VAR_END, 0),
                                 .step = number(r, rows),
                                 .is_whole = true}));
  add(r, (LoopNode){.kind = NODE_STEP, .count = has_rows(r) ? rows : 0});
  close_body(r);
}

static void build_block(Recipe *r) {
  const Loop *loop = r->loop;
  bool has_parts = false;
  tree_open(&r->b, &r->t->block);
  for (size_t i = 0; i < loop->nroots; i++) has_parts |= loop->roots[i].kind == ROOT_REDUCE_OUTER;
  if (!has_parts && !loop->nkept && !loop_has_open_chunks(r->k, loop) && loop_nblocks(r->k, loop) == 1)
    add(r, (LoopNode){.kind = NODE_UNUSED, .var = {VAR_BLOCK, 0}, .words = "there is but one"});
  find_range(r);
  begin_parts(r);
  if (loop->tile) {
    add(r, (LoopNode){.kind = NODE_STEP, .is_tile = true});
  } else {
    const Index *outer = var(r, VAR_OUTER, 0), *end = var(r, VAR_END, 0);
    add(r, (LoopNode){.kind = NODE_COUNTER, .var = {VAR_OUTER, 0}, .value = var(r, VAR_BEGIN, 0)});
    if (loop->is_across) {
      add_steps(r, LANES);
      open_body(r, add(r, (LoopNode){.kind = NODE_IF, .test = index_of(&r->b, INDEX_LESS, outer, end)}));
      add(r, (LoopNode){.kind = NODE_STEP, .is_part = true, .value = index_of(&r->b, INDEX_SUBTRACT, end, outer)});
      close_body(r);
      end_parts(r);
    } else {
      if (has_rows(r)) add_steps(r, loop->rows);
      add_steps(r, 1);
    }
  }
  tree_close(&r->b);
}

// Forms

static void find_forms(Recipe *r) {
  enum { MOST_INLINE = 8 }; // in a loop. 120 times tanh take gcc 10 s where they are inlined
  int nlong = 0;
  memset(r->is_needed, 0, r->k->nexprs * sizeof *r->is_needed);
  for (size_t i = 0; i < r->loop->nroots; i++) need_expr(r, root_operand(r, &r->loop->roots[i]));
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    r->t->is_made[id] = r->is_needed[id] || is_row_sum(r, id);
    nlong += r->t->is_made[id] && expr_is_long(r->k->exprs[id].op);
  }
  r->t->calls_long = nlong > MOST_INLINE;
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    const Level level = expr_level(r, id);
    r->t->form[id] = r->k->exprs[id].op == EXPR_CONSTANT ? FORM_NUMBER
                     : is_lanewise(r, id)                ? FORM_VECTOR
                     : has_rows(r) && level == LEVEL_ROW ? FORM_ROWS
                                                         : FORM_SCALAR;
  }
}

LoopTree *loop_tree(const Kernel *k, uint32_t loop, const Wants *wants, Arena *arena) {
  static const Wants none;
  Recipe r = {.b = {.arena = arena},
              .t = ARENA_NEW(arena, LoopTree),
              .k = k,
              .loop = &k->loops[loop],
              .loop_index = loop,
              .wants = wants ? wants : &none,
              .time = ARENA_ARRAY(arena, int, k->nexprs),
              .is_needed = ARENA_ARRAY(arena, bool, k->nexprs)};
  if (!r.t || !r.time || !r.is_needed) return NULL;
  *r.t = (LoopTree){.k = k,
                    .plan = r.loop,
                    .form = ARENA_ARRAY(arena, Form, k->nexprs),
                    .is_made = ARENA_ARRAY(arena, bool, k->nexprs)};
  if (!r.t->form || !r.t->is_made) return NULL;
  find_times(&r);
  find_forms(&r);
  build_step(&r, &r.t->step);
  r.is_rest = r.loop->is_across;
  if (r.is_rest) build_step(&r, &r.t->rest);
  r.is_rest = false;
  build_block(&r);
  schedule_prefetch(&r.b, k, r.loop, &r.t->step);
  schedule_split_vectors(&r.b, &r.t->step);
  schedule_stream(&r.b, k, r.loop, &r.t->step, &r.t->block);
  return r.b.out_of_memory ? NULL : r.t;
}
