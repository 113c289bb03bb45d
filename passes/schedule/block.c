// Builds the block function: the range of its outer iterations, its partial sums, and the loops that call steps.
#include "passes/schedule/recipe.h"

static void add_index(Recipe *r, VarKind kind, const Index *value) {
  add(r, (LoopNode){.kind = NODE_INDEX, .var = {kind, 0}, .value = value});
}

static void find_range(Recipe *r) {
  const Loop *loop = r->loop;
  const Index *block = var(r, VAR_BLOCK, 0), *begin = var(r, VAR_BEGIN, 0);
  const Index *total = axes_nelems_index(r, loop_cut_axes(loop)), *length = block_length(r);
  if (!loop->nfree && !loop_has_open_cut_blocks(r->k, loop) && loop_nblocks(r->k, loop) == 1) {
    add_index(r, VAR_BEGIN, number(r, 0));
    add_index(r, VAR_END, total);
    return;
  }
  if (loop->nfree) {
    const Index *cut_blocks = ncut_blocks(r, r->loop_index);
    if (index_is(cut_blocks, 0) || index_is(cut_blocks, 1)) {
      add_index(r, VAR_BEGIN, times(r, block, total));
      add_index(r, VAR_END, plus(r, begin, total));
      return;
    }
    const Index *start = var(r, VAR_START, 0), *cut_begin = var(r, VAR_CUT_BEGIN, 0);
    const Index *next = plus(r, cut_begin, length);
    add_index(r, VAR_START, times(r, index_of(&r->b, INDEX_DIVIDE, block, cut_blocks), total));
    add_index(r, VAR_CUT_BEGIN, times(r, index_of(&r->b, INDEX_REMAINDER, block, cut_blocks), length));
    add_index(r, VAR_BEGIN, plus(r, start, cut_begin));
    add_index(r, VAR_END, plus(r, start, least(r, next, total)));
    return;
  }
  const Index *next = plus(r, begin, length);
  add_index(r, VAR_BEGIN, times(r, block, length));
  add_index(r, VAR_END, least(r, next, total));
}

static Address partial_element(const Root *root, const Index *index) {
  return (Address){.base = BASE_PARTIAL, .access = root->access, .index = index};
}

void open_partial_sums(Recipe *r, AccessId id, const Index *count, Flag flag) {
  LoopNode *loop = open_for(r, VAR_ELEMENT, number(r, 0), count, number(r, 1));
  loop->access = id;
  loop->flag = flag;
}

// Sets pointers to the block's partial sums and initialises them. With rows in lanes, a local array has a partial sum
// for each lane.
static void begin_partials(Recipe *r) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const Access *a = &r->k->accesses[root->access];
    const AxisSet axes = access_axes(r->k, a);
    const bool are_lanes = r->info->rows_in_lanes;
    const Index *count = are_lanes ? number(r, axes_nelems(r->k, axes) * LANES) : axes_nelems_index(r, axes);
    add(r, (LoopNode){.kind = NODE_PARTIALS,
                      .access = root->access,
                      .is_vector = are_lanes,
                      .value = count,
                      .flag = may_be_unwanted(r, root->access) && !are_lanes ? FLAG_HAS_ALL_PARTIALS : FLAG_NONE});
    if (!axes_nelems(r->k, axes)) continue;
    open_partial_sums(r, root->access, count, partial_flag(r, root->access));
    add(r, (LoopNode){.kind = NODE_INIT_PARTIAL,
                      .access = root->access,
                      .address = partial_element(root, var(r, VAR_ELEMENT, 0))});
    close_body(r);
  }
}

void begin_steps(Recipe *r) {
  add(r, (LoopNode){.kind = NODE_COUNTER, .var = {VAR_OUTER, 0}, .value = var(r, VAR_BEGIN, 0)});
}

void add_steps(Recipe *r, int rows, const Index *columns_end) {
  open_body(r, add(r, (LoopNode){.kind = NODE_FOR,
                                 .var = {VAR_OUTER, 0},
                                 .end = var(r, VAR_END, 0),
                                 .step = number(r, rows),
                                 .is_whole = true}));
  add(r, (LoopNode){.kind = NODE_STEP, .count = has_rows(r) ? rows : 0, .end = columns_end});
  close_body(r);
}

void build_block(Recipe *r) {
  const Loop *loop = r->loop;
  bool has_partials = false;
  tree_open(&r->b, &r->t->block);
  for (size_t i = 0; i < loop->nroots; i++) has_partials |= loop->roots[i].kind == ROOT_REDUCE_OUTER;
  if (!has_partials && !loop->nfree && !loop_has_open_cut_blocks(r->k, loop) && loop_nblocks(r->k, loop) == 1)
    add(r, (LoopNode){.kind = NODE_UNUSED, .var = {VAR_BLOCK, 0}});
  find_range(r);
  begin_partials(r);
  r->info->build_steps(r);
  tree_close(&r->b);
}
