// Builds the block function: the range of its outer iterations, its partial sums, and the loops that call
// micro-kernels.
#include "ir/kernel/scatter.h"
#include "passes/schedule/build/nest_builder.h"

// Sets VAR_BEGIN and VAR_END: the block's outer iterations, or elements of a tile.
static void find_range(NestBuilder *r) {
  const Loop *loop = r->loop;
  const Index *block = var(r, VAR_BLOCK, 0), *begin = var(r, VAR_BEGIN, 0);
  const Index *total = axes_nelems_index(r, loop_cut_axes(loop)), *length = block_length(r);
  if (!loop->nbatch && !loop_has_open_cut_blocks(r->k, loop) && loop_nblocks(r->k, loop) == 1) {
    set(r, loop_var(VAR_BEGIN), number(r, 0));
    set(r, loop_var(VAR_END), total);
    return;
  }
  if (loop->nbatch && loop_tile(loop)) {
    const Index *tiles = ncut_blocks(r, r->loop_index);
    set(r, loop_var(VAR_OUTER), index_of(&r->b, INDEX_DIVIDE, block, tiles));
    set(r, loop_var(VAR_BEGIN), times(r, index_of(&r->b, INDEX_REMAINDER, block, tiles), length));
    set(r, loop_var(VAR_END), least(r, plus(r, begin, length), total));
    return;
  }
  if (loop->nbatch) {
    const Index *cut_blocks = ncut_blocks(r, r->loop_index);
    if (index_is(cut_blocks, 0) || index_is(cut_blocks, 1)) {
      set(r, loop_var(VAR_BEGIN), times(r, block, total));
      set(r, loop_var(VAR_END), plus(r, begin, total));
      return;
    }
    const Index *start = var(r, VAR_START, 0), *cut_begin = var(r, VAR_CUT_BEGIN, 0);
    const Index *next = plus(r, cut_begin, length);
    set(r, loop_var(VAR_START), times(r, index_of(&r->b, INDEX_DIVIDE, block, cut_blocks), total));
    set(r, loop_var(VAR_CUT_BEGIN), times(r, index_of(&r->b, INDEX_REMAINDER, block, cut_blocks), length));
    set(r, loop_var(VAR_BEGIN), plus(r, start, cut_begin));
    set(r, loop_var(VAR_END), plus(r, start, least(r, next, total)));
    return;
  }
  const Index *next = plus(r, begin, length);
  set(r, loop_var(VAR_BEGIN), times(r, block, length));
  set(r, loop_var(VAR_END), least(r, next, total));
}

// Sets pointers to the block's partial sums and initialises them.
static void begin_partials(NestBuilder *r) {
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const Access *a = &r->k->accesses[root->access];
    const AxisSet axes = access_axes(r->k, a);
    const Index *count = axes_nelems_index(r, axes);
    const Index *index = index_unfolded(&r->b, INDEX_MULTIPLY, var(r, VAR_BLOCK, 0), count);
    add(r, (LoopNode){.kind = NODE_BUFFER,
                      .to = {.buffer = BUFFER_PARTIALS, .of = root->access},
                      .from = {.buffer = BUFFER_TENSOR, .of = root->access, .index = index},
                      .test = all_partials_test(r, root->access)});
    if (!axes_nelems(r->k, axes)) continue;
    LoopNode *elements = open_for(r, VAR_LANE, number(r, 0), count, number(r, 1));
    elements->test = partial_test(r, root->access);
    add(r, (LoopNode){.kind = NODE_STORE,
                      .to = {.buffer = BUFFER_PARTIALS, .of = root->access, .index = var(r, VAR_LANE, 0)}});
    close_body(r);
  }
}

// The rows after the last whole micro-kernel form one micro-kernel if their number is known, else each is a
// micro-kernel. 0: there are none. All blocks but the last consist of whole micro-kernels, unless open dims choose the
// length of blocks.
static int count_rest(const NestBuilder *r) {
  const Loop *loop = r->loop;
  const AxisSet cut = loop_cut_axes(loop);
  const bool is_whole = cut_is_multiple(&loop->cut, loop->rows);
  const int64_t rest = kernel_factor(r->k, axes_nelems(r->k, cut), axes_monomial(r->k, cut)) % loop->rows;
  if (!has_rows(r) || !loop_sums_in_lanes(loop)) return has_rows(r) && !loop_row_axes(r->k, loop);
  return !is_whole ? 1 : axes_monomial(r->k, cut) ? rest > 0 : (int)rest;
}

// Adds a loop that calls the micro-kernel for `rows` outer iterations at a time, while at least that many are left.
static void add_calls(NestBuilder *r, int rows, const Index *columns_end) {
  if (!rows) return;
  open_body(r, add(r, (LoopNode){.kind = NODE_FOR,
                                 .var = {VAR_OUTER, 0},
                                 .end = var(r, VAR_END, 0),
                                 .step = number(r, rows),
                                 .is_counter = true}));
  add(r, (LoopNode){.kind = NODE_CALL, .count = has_rows(r) ? rows : 0, .end = columns_end});
  close_body(r);
}

// The micro-kernels of a block, or of a part of its columns, which ends at `columns_end`.
static void build_calls(NestBuilder *r, const NestLevel *level, const Index *columns_end) {
  const Index *outer = var(r, VAR_OUTER, 0), *end = var(r, VAR_END, 0);
  add(r, (LoopNode){.kind = NODE_INDEX, .var = {VAR_OUTER, 0}, .value = var(r, VAR_BEGIN, 0), .is_counter = true});
  add_calls(r, level->role == ROLE_LANES ? LANES : (int)level->factor, columns_end);
  add_calls(r, count_rest(r), columns_end);
  if (level->role != ROLE_LANES) return;
  open_if(r, index_of(&r->b, INDEX_LESS, outer, end));
  add(r, (LoopNode){.kind = NODE_CALL, .has_fewer_lanes = true, .value = minus(r, end, outer)});
  close_body(r);
}

static void build_outer_level(NestBuilder *r, int at, const Index *columns_end);

// The vector axis, cut into the columns of a micro-kernel.
static void build_columns(NestBuilder *r, int at) {
  const NestLevel *level = &r->nest.levels[at];
  const Axis *axis = &r->k->axes[vector_axis(r)];
  const Index *c = var(r, VAR_COLUMN, 0), *extent = axes_nelems_index(r, 1U << vector_axis(r));
  const Index *columns = number(r, level->factor);
  add(r, (LoopNode){.kind = NODE_INDEX, .var = loop_var(VAR_COLUMN), .value = number(r, 0), .is_counter = true});
  if (axis->monomial || axis->extent >= level->factor) {
    open_body(
        r,
        add(r, (LoopNode){
                   .kind = NODE_FOR, .var = loop_var(VAR_COLUMN), .end = extent, .step = columns, .is_counter = true}));
    build_outer_level(r, at + 1, plus(r, c, columns));
    close_body(r);
  }
  if (kernel_factor(r->k, axis->extent, axis->monomial) % level->factor == 0) return;
  open_if(r, index_of(&r->b, INDEX_LESS, c, extent));
  build_outer_level(r, at + 1, extent);
  close_body(r);
}

// A level outside of a micro-kernel. The caller of a block has chosen indices on the batch axes, and a part of the cut
// axes.
static void build_outer_level(NestBuilder *r, int at, const Index *columns_end) {
  const NestLevel *level = &r->nest.levels[at];
  const bool are_columns = r->loop->columns && level->first >= r->loop->nouter;
  if (at == r->nest.inside) add(r, (LoopNode){.kind = NODE_CALL}); // a tile
  else if (level->role == ROLE_CUT && are_columns) build_columns(r, at);
  else if (level->role == ROLE_BATCH || level->role == ROLE_CUT) build_outer_level(r, at + 1, columns_end);
  else build_calls(r, level, columns_end);
}

// A block of a scatter goes over all indices, and adds the operands whose index is a row of the block.
static void build_scatter(NestBuilder *r, const Scatter *scatter) {
  declare_wanted(r, scatter->to);
  const bool is_open = open_wanted(r, scatter->to);
  const Address to = {.buffer = BUFFER_TENSOR, .of = scatter->to};
  add(r, (LoopNode){.kind = NODE_SCATTER, .to = to, .expr = scatter->sum});
  if (is_open) close_body(r);
}

void build_block(NestBuilder *r) {
  Scatter scatter;
  tree_open(&r->b, &r->t->block);
  find_range(r);
  begin_partials(r);
  if (kernel_find_scatter(r->k, &scatter)) build_scatter(r, &scatter);
  else build_outer_level(r, 0, NULL);
  tree_close(&r->b);
}
