// Verifies loops and conditions: the indices on each axis are below its extent, for all values of open dims. That they
// are all indices, each once, is proved by running (ir/loops/prove.h).
//
// A piece of an axis is a loop with one index an iteration; or it belongs to a counter, which whole vectors and then a
// tail advance; in a loop over a group of vectors, a vector has a lane for each index. A step computes one outer
// iteration, several rows, or a vector of rows in lanes.
#include "ir/loops/verifying.h"

#include "ir/operators/window.h"

// Ends

// Whether the index is at most `to`: the same; a smaller literal; the least of two indices of which one is; the end of
// a run that cannot go beyond.
static bool is_at_most(const Verifying *v, const Index *i, const Index *to, int64_t divisor) {
  if (!i || index_equals(i, to)) return i;
  if (index_is_literal(i) && index_is_literal(to)) return i->number <= to->number;
  if (i->op == INDEX_VAR && var_state(v, i->var)->value) return is_at_most(v, var_state(v, i->var)->value, to, divisor);
  if (i->op == INDEX_CHOOSE && i->args[0]->op == INDEX_LESS && index_equals(i->args[0]->args[0], i->args[1]) &&
      index_equals(i->args[0]->args[1], i->args[2]))
    return is_at_most(v, i->args[1], to, divisor) || is_at_most(v, i->args[2], to, divisor);
  if (i->op != INDEX_ADD || i->args[0]->op != INDEX_VAR) return false;
  const LoopNode *runs = var_state(v, i->args[0]->var)->loop; // of literal length, of which the axis has a multiple
  return runs && index_is_literal(runs->step) && index_equals(runs->step, i->args[1]) && index_equals(runs->end, to) &&
         index_is(runs->value, 0) && divisor % runs->step->number == 0;
}

// The loop over runs of which the node's indices are one; NULL: there is none.
static const LoopNode *runs_of(const Verifying *v, const Index *begin) {
  if (begin->op == INDEX_CHOOSE) begin = begin->args[2];
  const LoopNode *runs = begin->op == INDEX_VAR ? var_state(v, begin->var)->loop : NULL;
  return runs && (runs->var.kind == VAR_RUN || runs->var.kind == VAR_RUN_BEGIN) ? runs : NULL;
}

static bool verify_end(Verifying *v, const LoopNode *n, const Range *r, const Index *end, const Index *bound) {
  const LoopNode *runs = n->value ? runs_of(v, n->value) : NULL;
  if (runs && !index_equals(runs->end, r->to))
    return verify_fail(v, n, "the runs must cover the axis from its first index to its end");
  return is_at_most(v, end, r->to, r->divisor) || is_at_most(v, bound, r->to, r->divisor) ||
         verify_fail(v, n, "it may go beyond the end of its axis");
}

// Counters

static int counted_direction(const Verifying *v, Var var) {
  const bool is_along_vectors = var.kind == VAR_LANE || (var.kind == VAR_COLUMN && v->is_block && v->loop->columns);
  return var.kind == VAR_OUTER ? OUTER : is_along_vectors ? v->vector : NO_DIRECTION;
}

// Whether pieces of a counter that begins here have first indices that are multiples of LANES: the first indices of the
// axis, of columns, of a tile or of runs are.
static bool begins_aligned(const Verifying *v, const Index *begin) {
  const LoopNode *loop = begin->op == INDEX_VAR ? var_state(v, begin->var)->loop : NULL;
  if (index_is(begin, 0)) return true;
  if (loop) return index_is_literal(loop->step) && loop->step->number % LANES == 0 && begins_aligned(v, loop->value);
  return begin->op == INDEX_VAR && (begin->var.kind == VAR_COLUMN || begin->var.kind == VAR_BEGIN) &&
         (v->loop->columns ? v->loop->columns : loop_tile(v->loop)) % LANES == 0;
}

static bool verify_value(Verifying *v, const LoopNode *n, VarKind kind, const Index *expected) {
  const VarState *state = var_state(v, loop_var(kind));
  if (!state->is_set || !state->value)
    return verify_fail(v, n, "variable %s of the block's range must be set before it", var_info[kind].prefix);
  return verify_equal(v, n, var_info[kind].prefix, state->value, expected);
}

// Each index on the batch axes has the same tiles.
static bool verify_tiles(Verifying *v, const LoopNode *n) {
  TreeBuilder *b = &v->b;
  const uint32_t number = (uint32_t)(v->loop - v->t->schedule->loops);
  const bool is_open = loop_has_open_cut_blocks(v->k, v->loop);
  const Index *tiles =
      is_open ? index_loop(b, INDEX_NCUT_BLOCKS, number) : number_index(v, loop_ncut_blocks(v->k, v->loop));
  const Index *length = number_index(v, loop_tile(v->loop)), *total = nelems_index(v, loop_cut_axes(v->loop));
  const Index *block = var_index(v, VAR_BLOCK), *next = index_of(b, INDEX_ADD, var_index(v, VAR_BEGIN), length);
  return verify_value(v, n, VAR_OUTER, index_of(b, INDEX_DIVIDE, block, tiles)) &&
         verify_value(v, n, VAR_BEGIN,
                      index_of(b, INDEX_MULTIPLY, index_of(b, INDEX_REMAINDER, block, tiles), length)) &&
         verify_value(v, n, VAR_END, least_index(v, next, total));
}

// VAR_BEGIN and VAR_END of the block. With batch axes, each index on them has `cut_blocks` blocks, of which the last may
// be shorter; they are counted from VAR_START.
static bool verify_block_range(Verifying *v, const LoopNode *n) {
  const Loop *loop = v->loop;
  TreeBuilder *b = &v->b;
  if (loop->nbatch && loop_tile(loop)) return verify_tiles(v, n);
  const uint32_t number = (uint32_t)(loop - v->t->schedule->loops);
  const bool is_open = loop_has_open_cut_blocks(v->k, loop), has_free = loop->nbatch;
  const bool is_cut = has_free && (is_open || loop_ncut_blocks(v->k, loop) > 1);
  const bool is_all = !has_free && !is_open && loop_nblocks(v->k, loop) == 1;
  const Index *total = nelems_index(v, loop_cut_axes(loop)), *block = var_index(v, VAR_BLOCK);
  const Index *length = has_free && !is_cut                ? total
                        : loop_has_open_length(v->k, loop) ? index_loop(b, INDEX_BLOCK_LENGTH, number)
                                                           : number_index(v, loop_block_length(v->k, loop));
  const Index *begin = is_all ? number_index(v, 0) : index_of(b, INDEX_MULTIPLY, block, length);
  const Index *start = var_index(v, VAR_START), *at = var_index(v, is_cut ? VAR_CUT_BEGIN : VAR_BEGIN);
  const Index *next = index_of(b, INDEX_ADD, at, length),
              *end = has_free && !is_cut ? next : least_index(v, next, total);
  if (!is_cut) return verify_value(v, n, VAR_BEGIN, begin) && verify_value(v, n, VAR_END, is_all ? total : end);
  const Index *cut_blocks =
      is_open ? index_loop(b, INDEX_NCUT_BLOCKS, number) : number_index(v, loop_ncut_blocks(v->k, loop));
  const Index *quotient = index_of(b, INDEX_DIVIDE, block, cut_blocks);
  const Index *remainder = index_of(b, INDEX_REMAINDER, block, cut_blocks);
  return verify_value(v, n, VAR_START, index_of(b, INDEX_MULTIPLY, quotient, total)) &&
         verify_value(v, n, VAR_CUT_BEGIN, index_of(b, INDEX_MULTIPLY, remainder, length)) &&
         verify_value(v, n, VAR_BEGIN, index_of(b, INDEX_ADD, start, at)) &&
         verify_value(v, n, VAR_END, index_of(b, INDEX_ADD, start, end));
}

// Whether the loops behind a counter of outer iterations leave none of any block. The blocks' lengths that open dims
// choose are too many to run; no run may reach one that ends between two steps.
static bool verify_rest(Verifying *v, const LoopNode *n) {
  const AxisSet cut = loop_cut_axes(v->loop);
  const int64_t factor = kernel_factor(v->k, axes_nelems(v->k, cut), axes_monomial(v->k, cut));
  int64_t rest = -1; // of the last block; -1: not known
  for (const LoopNode *next = n->next; next && rest; next = next->next) {
    if (next->kind == NODE_IF && next->test && next->test->op == INDEX_LESS &&
        index_is_var(next->test->args[0], n->var))
      rest = 0;
    const bool is_step = next->kind == NODE_FOR && next->is_counter && next->var.kind == n->var.kind;
    if (!is_step || !index_is_literal(next->step) || next->step->number < 1) continue;
    const int64_t step = next->step->number;
    if (step == 1) rest = 0;
    else if (rest > 0) rest %= step;
    else if (cut_is_multiple(&v->loop->cut, step) && (factor % step == 0 || !axes_monomial(v->k, cut)))
      rest = factor % step;
  }
  return !rest || verify_fail(v, n, "iterations may be left behind its loops at the end of a block");
}

static bool verify_counter(Verifying *v, const LoopNode *n) {
  const int direction = counted_direction(v, n->var);
  Range *r = &v->range[direction];
  if (direction == NO_DIRECTION || r->is_counted || r->is_piece)
    return verify_fail(v, n, "a counter must go over the outer iterations or vectors, in no loop over them");
  if (!n->value || !verify_index(v, n, n->value) ||
      (direction == OUTER && !(verify_block_range(v, n) && verify_rest(v, n))))
    return false;
  const LoopNode *runs = runs_of(v, n->value);
  r->is_aligned = direction != OUTER && begins_aligned(v, n->value);
  r->start = n->var;
  r->group = loop_var(VAR_NONE);
  r->end = runs && runs->var.kind == VAR_RUN_BEGIN ? var_index(v, VAR_RUN_END) : r->to;
  return verify_index(v, n, r->end) && verify_end(v, n, r, r->end, NULL) && var_set(v, n, n->var, NULL) &&
         scope_add(v, &r->is_counted);
}

// The counter's range, for a piece of this width. False after reporting that no piece may begin here.
static bool begin_piece(Verifying *v, const LoopNode *n, Var var, int64_t width, int *direction, Range *r) {
  *direction = counted_direction(v, var);
  *r = v->range[*direction];
  if (!r->is_counted || r->is_piece || *direction == NO_DIRECTION)
    return verify_fail(v, n, "the counter that it continues is not declared before it");
  r->width = width;
  return true;
}

// Adds the number of peeled elements to the counter.
static bool verify_advance(Verifying *v, const LoopNode *n) {
  int direction;
  Range r;
  if (!begin_piece(v, n, n->var, WIDTH_LANES, &direction, &r)) return false;
  v->range[direction].is_aligned = false;
  return index_is_var(n->value->args[1], loop_var(VAR_LANES)) ||
         verify_fail(v, n, "it must advance by the number of peeled elements");
}

// The number of peeled elements is less than LANES and less than the extent.
static bool verify_peel_count(Verifying *v, const LoopNode *n) {
  int direction;
  Range r;
  const Address *at = n->value->address;
  const Var wanted = {VAR_WANTED, at->of};
  if (!begin_piece(v, n, loop_var(VAR_LANE), WIDTH_LANES, &direction, &r)) return false;
  if (kernel_factor(v->k, v->k->axes[v->vector].extent, v->k->axes[v->vector].monomial) < LANES ||
      !index_equals(r.end, r.to) || v->lanes != v->vector)
    return verify_fail(v, n, "rows can be peeled only if each reaches its next cache line");
  if (var_state(v, wanted)->is_set ? !index_is_var(n->test, wanted) : n->test != NULL)
    return verify_fail(v, n, "it must depend on VAR_WANTED if the caller may not want the output, else on nothing");
  return verify_address(v, n, at) && verify_index(v, n, n->test) && var_set(v, n, n->var, NULL);
}

// Loops

static bool begin_vectors(Verifying *v, const LoopNode *n, Range *r) {
  if (counted_direction(v, n->var) != v->vector || v->lanes != v->vector || v->vector == NO_DIRECTION)
    return verify_fail(v, n, "it must go over the axis that vectors lie along");
  if (!n->value || !index_is(n->step, LANES) || n->bound || n->is_down || n->test || r->is_counted || r->is_piece)
    return verify_fail(v, n, "it must go over all vectors of the axis, with step LANES");
  r->is_aligned = begins_aligned(v, n->value) && !n->vectors->is_peeled;
  r->start = n->var;
  r->group = loop_var(VAR_NONE);
  r->width = LANES;
  return verify_end(v, n, r, n->end, NULL) && var_set(v, n, n->var, NULL);
}

static bool begin_whole(Verifying *v, const LoopNode *n, int *direction, Range *r) {
  const int64_t width = index_is_literal(n->step) ? n->step->number : 0;
  if (width < 1 || n->test || n->bound || n->is_down)
    return verify_fail(v, n, "its step must be a positive literal, and it must not depend on a flag or second end");
  if (!begin_piece(v, n, n->var, width, direction, r)) return false;
  r->is_aligned &= width % LANES == 0;
  return verify_end(v, n, r, n->end, NULL);
}

static bool begin_each(Verifying *v, const LoopNode *n, int direction, Range *r) {
  if (direction >= v->k->naxes || !(v->inner >> direction & 1) || r->is_counted || r->is_piece || !index_is(n->step, 1))
    return verify_fail(v, n, "it must go over an inner axis of the loop, with step 1, in no loop over it");
  r->start = n->var;
  r->width = 1;
  return verify_end(v, n, r, n->end, n->bound);
}

static bool is_all(const LoopNode *n) {
  return index_is(n->value, 0) && index_is(n->step, 1) && !n->bound && !n->is_down;
}

// A loop over the vectors of a group. A node in its body sets VAR_VECTOR_LANE, the vector's first index.
static bool begin_group(Verifying *v, const LoopNode *n, Range *r) {
  if (!is_all(n) || !index_is_literal(n->end) || !r->is_piece || n->end->number * LANES != r->width)
    return verify_fail(v, n, "it must go over all vectors of its group: from 0 to their number, with step 1");
  r->group = r->start;
  r->start = loop_var(VAR_NONE);
  r->width = LANES;
  return true;
}

static bool begin_rows(Verifying *v, const LoopNode *n, Range *r) {
  if (!is_all(n) || !index_is_var(n->end, loop_var(VAR_ROWS)) || r->width != WIDTH_ROWS)
    return verify_fail(v, n, "it must go over all rows of the step: from 0 to VAR_ROWS, with step 1");
  r->width = 1;
  r->start = n->var;
  return true;
}

bool begin_for(Verifying *v, const LoopNode *n, int *direction, Range *r) {
  *direction = NO_DIRECTION;
  if (!verify_test(v, n) || !verify_index(v, n, n->value) || !verify_index(v, n, n->end) ||
      !verify_index(v, n, n->step) || !verify_index(v, n, n->bound))
    return false;
  if (!n->step || !n->end) return verify_fail(v, n, "a loop must have an end and a step");
  if (n->is_counter && !n->vectors) return begin_whole(v, n, direction, r);
  const bool is_each = n->var.kind == VAR_AXIS && !n->vectors;
  *direction = n->var.kind == VAR_ROW ? OUTER : is_each ? (int)n->var.of : v->vector;
  *r = v->range[*direction];
  if (n->vectors) return begin_vectors(v, n, r);
  if (!var_set(v, n, n->var, NULL)) return false;
  var_state(v, n->var)->loop = n;
  switch (n->var.kind) {
  case VAR_AXIS: return begin_each(v, n, *direction, r);
  case VAR_LANE: return begin_each(v, n, v->vector, r);
  case VAR_ROW: return begin_rows(v, n, r);
  case VAR_VECTOR: return begin_group(v, n, r);
  case VAR_RUN:
  case VAR_RUN_BEGIN: *direction = NO_DIRECTION; return true;
  case VAR_ELEMENT:
  case VAR_COMBINED_BLOCK:
    *direction = NO_DIRECTION;
    return is_all(n) || verify_fail(v, n, "it must go over all partial sums: from 0, with step 1");
  default: return verify_fail(v, n, "a loop's variable must be an axis, row, vector, run, lane or element");
  }
}

// A tail, or peeled elements.
bool begin_if(Verifying *v, const LoopNode *n, int *direction, Range *r) {
  const Index *test = n->test, *x = test->op == INDEX_LESS ? test->args[0] : NULL;
  *direction = NO_DIRECTION;
  if (index_is_var(test, loop_var(VAR_LANES)) && !n->otherwise)
    return begin_piece(v, n, loop_var(VAR_LANE), WIDTH_LANES, direction, r);
  if (!x || x->op != INDEX_VAR || counted_direction(v, x->var) == NO_DIRECTION || n->otherwise) return true;
  return begin_piece(v, n, x->var, WIDTH_UNKNOWN, direction, r) && verify_end(v, n, r, test->args[1], NULL);
}

// Constants

// The index on an outer axis is the flattened index / (elements of the axes inside of it) % extent.
static bool verify_axis_index(Verifying *v, const LoopNode *n) {
  const Loop *loop = v->loop;
  int at = 0;
  AxisSet below = 0;
  while (at < loop->nouter && loop->axes[at] != (int)n->var.of) at++;
  if (at == loop->nouter) return verify_fail(v, n, "the axis of its index must be an outer axis of the loop");
  for (int i = at + 1; i < loop->nouter; i++) below |= 1U << loop->axes[i];
  const AxisSet own = 1U << n->var.of, rows = is_in_row(v) ? loop_row_axes(v->k, loop) : 0;
  const Index *index = var_index(v, rows & own ? VAR_ROW : VAR_OUTER);
  if (is_in_row(v) && !(rows & own)) index = index_of(&v->b, INDEX_ADD, index, var_index(v, VAR_ROW));
  const bool is_first = rows & own ? !(rows & ~below & ~own) : !at;
  if (!axes_nelems(v->k, below)) return true;
  index = index_of(&v->b, INDEX_DIVIDE, index, nelems_index(v, below));
  if (!is_first) index = index_of(&v->b, INDEX_REMAINDER, index, nelems_index(v, own));
  return verify_equal(v, n, "the index on its axis", n->value, index);
}

static bool verify_vector_lane(Verifying *v, const LoopNode *n) {
  Range *r = &v->range[v->vector];
  if (!r->group.kind || r->start.kind)
    return verify_fail(v, n, "VAR_VECTOR_LANE must be set in a loop over a group of vectors");
  Linear is = linear_of(v, n->value), expected = {0};
  linear_add_var(&expected, r->group.kind, r->group.of, 1, 0);
  linear_add_var(&expected, VAR_VECTOR, 0, LANES, 0);
  r->start = n->var; // restored at the end of the loop
  return linear_equals(&is, &expected) ||
         verify_fail(v, n, "the vectors of a group must be adjacent: the group's first index + vector * LANES");
}

static bool verify_tail_lanes(Verifying *v, const LoopNode *n) {
  Range *r = &v->range[v->vector];
  if (!r->is_piece || r->width != WIDTH_UNKNOWN)
    return verify_fail(v, n, "VAR_LANES must be set in the tail of a counter");
  r->width = WIDTH_LANES;
  return verify_equal(v, n, "the number of elements left", n->value,
                      index_of(&v->b, INDEX_SUBTRACT, r->end, var_index(v, VAR_LANE)));
}

bool verify_set_index(Verifying *v, const LoopNode *n) {
  if (!n->value) return verify_fail(v, n, "it must have a value");
  if (n->is_counter)
    return n->value->op == INDEX_ADD && index_is_var(n->value->args[0], n->var) ? verify_advance(v, n)
                                                                                : verify_counter(v, n);
  if (n->value->op == INDEX_TO_LINE) return verify_index(v, n, n->value) && verify_peel_count(v, n);
  if (n->test) return verify_fail(v, n, "only the number of peeled elements may depend on a test");
  if (n->var.kind == VAR_WANTED || n->var.kind == VAR_STREAMED)
    return verify_index(v, n, n->value) && verify_flag(v, n) && var_set(v, n, n->var, n->value);
  if (!verify_index(v, n, n->value) || !var_set(v, n, n->var, n->value)) return false;
  return n->var.kind == VAR_AXIS          ? verify_axis_index(v, n)
         : n->var.kind == VAR_VECTOR_LANE ? verify_vector_lane(v, n)
         : n->var.kind == VAR_LANES       ? verify_tail_lanes(v, n)
                                          : true;
}

// Calls of steps

// A step computes as many outer iterations as the loop around its call advances by; a tail step, those that are left.
static bool verify_iterations(Verifying *v, const LoopNode *n) {
  const Loop *loop = v->loop;
  const Range *r = &v->range[OUTER];
  const Index *rest = index_of(&v->b, INDEX_SUBTRACT, r->end, var_index(v, VAR_OUTER));
  if (!r->is_piece) return verify_fail(v, n, "a step must be called in the loop over the block's iterations");
  if (n->has_fewer_lanes && v->t->tail_step)
    return (r->width == WIDTH_UNKNOWN && index_equals(n->value, rest)) ||
           verify_fail(v, n, "a tail step must compute all iterations that are left in the block");
  const int64_t width = loop->rows > 1 ? n->count : loop_has(loop, LOOP_ROW_LANES) ? LANES : 1;
  return (!n->has_fewer_lanes && !n->value && r->width == width && n->count <= loop->rows &&
          !n->count == (loop->rows <= 1)) ||
         verify_fail(v, n, "the step must compute as many iterations as its loop advances by");
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

bool verify_call(Verifying *v, const LoopNode *n) {
  if (!v->is_block) return verify_fail(v, n, "a step must not call a step");
  if (loop_tile(v->loop) && (n->has_fewer_lanes || n->count || n->value))
    return verify_fail(v, n, "the loop has tiles, so the step must have no rows");
  for (size_t i = 0; i < v->loop->nroots; i++)
    if (v->loop->roots[i].kind == ROOT_REDUCE_OUTER && !state_of(v, BUFFER_PARTIALS, v->loop->roots[i].access)->is_set)
      return verify_fail(v, n, "the block's partial sums must be declared before the first step");
  return (loop_tile(v->loop) ? verify_block_range(v, n) : verify_iterations(v, n)) && verify_columns(v, n);
}
