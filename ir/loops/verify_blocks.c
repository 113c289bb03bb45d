// Verifies what outer iterations a block and a step compute: the block's range, indices on outer axes, calls of steps.
#include "ir/loops/verifying.h"

// The index on an outer axis is the flattened index / (elements of the axes inside of it) % extent.
bool verify_axis_index(Verifying *v, const LoopNode *n) {
  const Loop *loop = v->loop;
  int at = 0;
  AxisSet below = 0;
  while (at < loop->nouter && loop->axes[at] != (int)n->var.of) at++;
  if (at == loop->nouter) return verify_fail(v, n, "the axis of its index must be an outer axis of the loop");
  for (int i = at + 1; i < loop->nouter; i++) below |= 1U << loop->axes[i];
  const bool has_rows = is_in_row(v);
  const AxisSet own = 1U << n->var.of, rows = has_rows ? loop_row_axes(v->k, loop) : 0;
  if (!has_rows && v->range[OUTER].width == WIDTH_ROWS && !(shared_axes_of(v) & own))
    return verify_fail(v, n,
                       "the rows of a step have different indices on its axis, so it must be in a loop over rows");
  const Index *index = var_index(v, VAR_OUTER);
  if (rows & own) index = var_index(v, VAR_ROW);
  else if (has_rows) index = index_of(&v->b, INDEX_ADD, index, var_index(v, VAR_ROW));
  const bool is_first = rows & own ? !(rows & ~below & ~own) : !at;
  if (!axes_nelems(v->k, below)) return true;
  index = index_of(&v->b, INDEX_DIVIDE, index, nelems_index(v, below));
  if (!is_first) index = index_of(&v->b, INDEX_REMAINDER, index, nelems_index(v, own));
  return verify_equal(v, n, "the index on its axis", n->value, index);
}

// Blocks

static bool verify_value(Verifying *v, const LoopNode *n, VarKind kind, const Index *expected) {
  const VarState *state = var_state(v, loop_var(kind));
  if (!state->is_set || !state->value)
    return verify_fail(v, n, "variable %s of the block's range must be set before it", var_names[kind]);
  return verify_equal(v, n, var_names[kind], state->value, expected);
}

// With free axes, each index on them has `cut_blocks` blocks, and the last of these may be shorter.
static bool verify_cut_blocks(Verifying *v, const LoopNode *n, const Index *total, const Index *length) {
  TreeBuilder *b = &v->b;
  const uint32_t loop = (uint32_t)(v->loop - v->t->schedule->loops);
  const bool is_open = loop_has_open_cut_blocks(v->k, v->loop);
  const int64_t ncut_blocks = loop_ncut_blocks(v->k, v->loop);
  const Index *block = var_index(v, VAR_BLOCK), *start = var_index(v, VAR_START),
              *cut_begin = var_index(v, VAR_CUT_BEGIN);
  const Index *cut_blocks = is_open ? index_loop(b, INDEX_NCUT_BLOCKS, loop) : number_index(v, ncut_blocks);
  if (!is_open && ncut_blocks <= 1)
    return verify_value(v, n, VAR_BEGIN, index_of(b, INDEX_MULTIPLY, block, total)) &&
           verify_value(v, n, VAR_END, index_of(b, INDEX_ADD, var_index(v, VAR_BEGIN), total));
  const Index *next = least_index(v, index_of(b, INDEX_ADD, cut_begin, length), total);
  return verify_value(v, n, VAR_START,
                      index_of(b, INDEX_MULTIPLY, index_of(b, INDEX_DIVIDE, block, cut_blocks), total)) &&
         verify_value(v, n, VAR_CUT_BEGIN,
                      index_of(b, INDEX_MULTIPLY, index_of(b, INDEX_REMAINDER, block, cut_blocks), length)) &&
         verify_value(v, n, VAR_BEGIN, index_of(b, INDEX_ADD, start, cut_begin)) &&
         verify_value(v, n, VAR_END, index_of(b, INDEX_ADD, start, next));
}

bool verify_block_range(Verifying *v, const LoopNode *n) {
  const Kernel *k = v->k;
  const Loop *loop = v->loop;
  TreeBuilder *b = &v->b;
  const bool is_open = loop_has_open_length(k, loop);
  const Index *total = nelems_index(v, loop_cut_axes(loop)), *begin = var_index(v, VAR_BEGIN);
  const Index *length = is_open ? index_loop(b, INDEX_BLOCK_LENGTH, (uint32_t)(loop - v->t->schedule->loops))
                                : number_index(v, loop_block_length(k, loop));
  if (loop->nfree) return verify_cut_blocks(v, n, total, length);
  if (!loop_has_open_cut_blocks(k, loop) && loop_nblocks(k, loop) == 1)
    return verify_value(v, n, VAR_BEGIN, number_index(v, 0)) && verify_value(v, n, VAR_END, total);
  return verify_value(v, n, VAR_BEGIN, index_of(b, INDEX_MULTIPLY, var_index(v, VAR_BLOCK), length)) &&
         verify_value(v, n, VAR_END, least_index(v, index_of(b, INDEX_ADD, begin, length), total));
}

// Calls of steps

// The number of outer iterations that a step computes must equal the step of the loop around its call.
static bool verify_iterations(Verifying *v, const LoopNode *n) {
  const Loop *loop = v->loop;
  const Range *r = &v->range[OUTER];
  if (!r->is_piece) return verify_fail(v, n, "a step must be called in the loop over the block's iterations");
  if (n->has_fewer_lanes) {
    const Index *remainder = index_of(&v->b, INDEX_SUBTRACT, r->end, var_index(v, VAR_OUTER));
    const bool is_remainder = v->t->tail_step && r->width == WIDTH_UNKNOWN && index_equals(n->value, remainder);
    return is_remainder || verify_fail(v, n, "a tail step must compute all iterations that are left in the block");
  }
  if (n->value || r->width != (loop->rows > 1 ? n->count : loop_has(loop, LOOP_ROW_LANES) ? LANES : 1))
    return verify_fail(v, n, "the step must compute as many iterations as its loop advances by");
  if (loop->rows > 1 ? n->count < 1 || n->count > loop->rows : n->count)
    return verify_fail(v, n, "the step has %d rows, expected at most the loop's %d", n->count, loop->rows);
  return true;
}

// The step must take the piece of the vector axis that the loop or condition around its call covers.
static bool verify_columns(Verifying *v, const LoopNode *n) {
  const Range *r = &v->range[v->vector];
  if (!n->end && !v->loop->columns) return true;
  const Index *next = index_of(&v->b, INDEX_ADD, var_index(v, VAR_COLUMN), number_index(v, v->loop->columns));
  const bool is_part = r->is_piece && r->start.kind == VAR_COLUMN &&
                       (r->width == WIDTH_UNKNOWN      ? index_equals(n->end, r->end)
                        : r->width == v->loop->columns ? index_equals(n->end, next)
                                                       : false);
  return is_part || verify_fail(v, n, "the step must take the columns of the loop or condition around its call");
}

bool verify_step_call(Verifying *v, const LoopNode *n) {
  if (!v->is_block) return verify_fail(v, n, "a step must not call a step");
  if (loop_tile(v->loop) && (n->has_fewer_lanes || n->count || n->value))
    return verify_fail(v, n, "the loop has tiles, so the step must have no rows");
  if (loop_tile(v->loop) ? !verify_block_range(v, n) : !verify_iterations(v, n)) return false;
  if (!verify_columns(v, n)) return false;
  for (size_t i = 0; i < v->loop->nroots; i++) {
    const Root *root = &v->loop->roots[i];
    const bool has_elements = axes_nelems(v->k, access_axes(v->k, &v->k->accesses[root->access])) != 0;
    if (root->kind == ROOT_REDUCE_OUTER && has_elements && !v->done[effect_of(v, root, EFFECT_PREPARED)])
      return verify_fail(v, n, "the block's partial sums must be initialised before the first step");
  }
  return effect_do(v, n, effect_of_step(v));
}
