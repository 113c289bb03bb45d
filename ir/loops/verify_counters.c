// Verifies counters. A counter goes over an axis in pieces, each a loop or a condition that advances it: the elements
// before a cache line (peeled), whole groups of vectors, whole vectors, the tail.
#include "ir/loops/verifying.h"

int counted_direction(const Verifying *v, Var var) {
  const bool is_along_vectors = var.kind == VAR_LANE || (var.kind == VAR_COLUMN && v->is_block && v->plan->columns);
  return var.kind == VAR_OUTER ? OUTER : is_along_vectors ? v->vector : UNKNOWN_DIRECTION;
}

static bool close_counter(Verifying *v, uint32_t direction) {
  Range *r = &v->range[direction];
  const bool is_done = !r->left_below && !r->must_advance;
  if (!is_done)
    return verify_fail(v, r->counter,
                       "elements may be left after the loops over whole vectors, but the tail is missing");
  r->progress = RANGE_UNTOUCHED;
  return true;
}

// A run ends at its beginning plus the length of runs, or at the end of the axis.
static bool verify_run_end(Verifying *v, const LoopNode *n, const Frame *runs, Range *r) {
  const VarState *end = var_state(v, loop_var(VAR_RUN_END));
  const Index *next = index_of(&v->b, INDEX_ADD, n->value, runs->node->step), *x, *y;
  const bool is_end = end->is_set && end->value && index_is_least(end->value, &x, &y) && index_equals(x, next) &&
                      index_equals(y, r->to) && index_is_literal(runs->node->step);
  if (!is_end)
    return verify_fail(v, n, "VAR_RUN_END must be the smaller of the run's begin + length and the end of the axis");
  const int64_t length = runs->node->step->number;
  r->end = var_index(v, VAR_RUN_END);
  r->end_divisor = greatest_divisor(length, r->divisor);
  r->is_aligned = r->is_aligned && length % LANES == 0;
  return true;
}

// The counter goes over a run if it begins at the variable of a loop over runs, else over the whole axis.
static bool begin_counting(Verifying *v, const LoopNode *n, int direction) {
  Range *r = &v->range[direction];
  if (r->progress != RANGE_UNTOUCHED) return verify_fail(v, n, "a loop around it already goes over its axis");
  Frame *runs = runs_find(v, n->value);
  r->end = r->to;
  r->end_divisor = r->divisor;
  r->is_aligned = index_is(r->from, 0) || (v->plan->columns ? v->plan->columns : v->plan->tile) % LANES == 0;
  r->start = n->var;
  r->group = loop_var(VAR_NONE);
  const bool is_literal = index_is_literal(r->from) && index_is_literal(r->to);
  r->left_below = is_literal ? r->to->number - r->from->number + 1 : INT64_MAX;
  r->left = is_literal && !runs ? r->to->number - r->from->number : -1;
  r->depth = v->nframes;
  r->nguards = v->nguards;
  r->rest = 0;
  r->must_advance = false;
  r->line_access = 0;
  r->counter = n;
  effects_begin(v, &r->pieces);
  if (!runs)
    return index_equals(n->value, r->from) || verify_fail(v, n, "it must begin at the first index on its axis");
  if (!verify_runs(v, n, runs, r) || !verify_run_end(v, n, runs, r)) return false;
  runs->direction = direction;
  return true;
}

bool verify_counter(Verifying *v, const LoopNode *n) {
  const int direction = counted_direction(v, n->var);
  if (direction == UNKNOWN_DIRECTION)
    return verify_fail(v, n, "a counter's variable must be the outer iteration, the lane or the column");
  if (!n->value || !verify_index(v, n, n->value) || (direction == OUTER && !verify_block_range(v, n))) return false;
  if (!begin_counting(v, n, direction)) return false;
  v->range[direction].progress = RANGE_COUNTED;
  return var_set(v, n, n->var, NULL) && scope_add(v, NULL, close_counter, (uint32_t)direction);
}

// The counter's range. NULL after reporting that no piece may begin at this node.
static Range *find_counter(Verifying *v, const LoopNode *n, Var var) {
  const int direction = counted_direction(v, var);
  Range *r = direction == UNKNOWN_DIRECTION ? NULL : &v->range[direction];
  if (!r || r->progress != RANGE_COUNTED)
    verify_fail(v, n, "the counter that it continues is not declared in this list of nodes");
  else if (r->depth != v->nframes || r->nguards != v->nguards)
    verify_fail(v, n, "it must be in the same list of nodes as its counter");
  else return r;
  return NULL;
}

static bool verify_next_piece(Verifying *v, const LoopNode *n, Range *r, int64_t width) {
  Range piece = *r;
  piece.width = width;
  return effects_begin_piece(v, n, &r->pieces) && verify_piece(v, n, (int)(r - v->range), &piece) &&
         effects_end_piece(v, n, &r->pieces);
}

// The outer iterations left after whole steps in the last block; other blocks have none left. 0: not known.
static int64_t find_rest(const Verifying *v, int direction, int64_t width) {
  const Loop *plan = v->plan;
  const AxisSet cut = loop_cut_axes(plan);
  if (direction != OUTER || plan->few_work || plan->most_cut_blocks || plan->block % width) return 0;
  return axes_monomial(v->k, cut) ? 0 : axes_nelems(v->k, cut) % width;
}

bool verify_for_whole(Verifying *v, const LoopNode *n) {
  Range *r = find_counter(v, n, n->var);
  if (!r) return false;
  if (r->must_advance) return verify_fail(v, n, "the counter must advance over the peeled elements before it");
  if (!index_is_literal(n->step) || n->step->number < 1)
    return verify_fail(v, n, "its step must be a positive literal");
  if (!index_equals(n->end, r->end) || n->bound || n->is_down)
    return verify_fail(v, n, "it must count upwards to the end of its axis, without a second end");
  const int64_t width = n->step->number;
  if (!verify_next_piece(v, n, r, width)) return false;
  if (r->left >= 0) r->left %= width;
  if (r->left >= 0) r->left_below = r->left ? r->left + 1 : 0;
  else if (r->end_divisor % width == 0 || r->rest == width) r->left_below = 0;
  else if (r->left_below > width) r->left_below = width;
  r->rest = find_rest(v, (int)(r - v->range), width);
  return true;
}

// Verifies a loop over vectors as it is before schedule_split_vectors: it covers the axis, with peeling and a tail.
bool verify_for_vectors(Verifying *v, const LoopNode *n) {
  const int direction = counted_direction(v, n->var);
  if (direction != v->vector || v->vector < 0 || v->lanes != direction)
    return verify_fail(v, n, "it must go over the axis that vectors lie along");
  Range *r = &v->range[direction];
  if (!n->value || !begin_counting(v, n, direction)) return false;
  if (!index_equals(n->end, r->end) || !index_is(n->step, LANES) || n->bound || n->is_down || n->flag)
    return verify_fail(v, n, "it must go over all vectors of the axis, with step LANES");
  if (!n->has_tail && (n->is_peeled || r->end_divisor % LANES))
    return verify_fail(v, n, "has_tail is unset, but the length of the axis may not be a multiple of LANES");
  if (n->is_peeled) r->line_access = n->peeled + 1;
  r->is_aligned = r->is_aligned && !n->is_peeled;
  r->left_below = (int64_t)n->count * LANES;
  const bool ok = var_set(v, n, n->var, NULL) && verify_next_piece(v, n, r, LANES);
  r->progress = RANGE_UNTOUCHED;
  return ok;
}

bool verify_tail(Verifying *v, const LoopNode *n) {
  Range *r = find_counter(v, n, n->test->args[0]->var);
  if (!r) return false;
  if (!index_equals(n->test->args[1], r->end))
    return verify_fail_index(v, n, "the end of the tail", n->test->args[1], r->end);
  if (n->otherwise) return verify_fail(v, n, "a tail must have no else branch");
  if (r->must_advance) return verify_fail(v, n, "the counter must advance over the peeled elements before it");
  const int64_t most = n->test->args[0]->var.kind == VAR_COLUMN ? v->plan->columns : LANES;
  if (r->left_below > most)
    return verify_fail(v, n, "the tail computes fewer than %lld elements, but as many or more may be left",
                       (long long)most);
  if (!verify_next_piece(v, n, r, WIDTH_UNKNOWN)) return false;
  r->left_below = 0;
  return true;
}

// The number of peeled elements is less than LANES and less than the extent.
bool verify_peel_count(Verifying *v, const LoopNode *n) {
  enum { LINE = 64 };
  Range *r = v->vector < 0 ? NULL : find_counter(v, n, loop_var(VAR_LANE));
  const Access *a = &v->k->accesses[n->address.access];
  if (!r) return false;
  const int64_t extent = v->k->axes[v->vector].extent;
  if (r->pieces.count || !index_equals(r->end, r->to))
    return verify_fail(v, n, "elements can be peeled at the beginning of a row only, and not of a run");
  if (kernel_factor(v->k, extent, v->k->axes[v->vector].monomial) < LANES || type_nbytes(a->type) * LANES < LINE ||
      a->stride[v->vector] != 1 || v->lanes != v->vector)
    return verify_fail(
        v, n, "rows can be peeled only if each reaches its next cache line, and vectors lie along their dense axis");
  r->must_advance = true;
  r->is_aligned = false;
  r->line_access = n->address.access + 1;
  r->end_divisor = 1;
  r->left = -1;
  return verify_access(v, n, n->address.access, &n->address) && var_set(v, n, n->var, NULL);
}

bool verify_peel(Verifying *v, const LoopNode *n) {
  Range *r = find_counter(v, n, loop_var(VAR_LANE));
  if (!r) return false;
  if (n->otherwise) return verify_fail(v, n, "peeling must have no else branch");
  if (!r->must_advance || r->pieces.count)
    return verify_fail(v, n, "the peeled elements must be the first piece of a row, after their number is computed");
  return verify_next_piece(v, n, r, WIDTH_LANES);
}

bool verify_advance(Verifying *v, const LoopNode *n) {
  Range *r = find_counter(v, n, n->var);
  if (!r) return false;
  if (!r->must_advance || r->pieces.count != 1 || !index_is_var(n->value, loop_var(VAR_LANES)))
    return verify_fail(v, n, "it must advance by the number of peeled elements, directly after these");
  r->must_advance = false;
  return true;
}

// Calls of steps

// The number of outer iterations that a step computes must equal the step of the loop around its call.
static bool verify_iterations(Verifying *v, const LoopNode *n) {
  const Loop *plan = v->plan;
  const Range *r = &v->range[OUTER];
  if (n->is_tile || r->progress != RANGE_PIECE)
    return verify_fail(v, n, "a step must be called in the loop over the block's iterations");
  if (n->has_fewer_lanes) {
    const Index *remainder = index_of(&v->b, INDEX_SUBTRACT, r->end, var_index(v, VAR_OUTER));
    const bool is_remainder = v->t->tail_step && r->width == WIDTH_UNKNOWN && index_equals(n->value, remainder);
    return is_remainder || verify_fail(v, n, "a tail step must compute all iterations that are left in the block");
  }
  if (n->value || r->width != (plan->rows > 1 ? n->count : plan->rows_in_lanes ? LANES : 1))
    return verify_fail(v, n, "the step must compute as many iterations as its loop advances by");
  if (plan->rows > 1 ? n->count < 1 || n->count > plan->rows : n->count)
    return verify_fail(v, n, "the step has %d rows, expected at most the loop's %d", n->count, plan->rows);
  return true;
}

// The step must take the piece of the vector axis that the loop or condition around its call covers.
static bool verify_columns(Verifying *v, const LoopNode *n) {
  const Range *r = v->vector < 0 ? NULL : &v->range[v->vector];
  if (n->has_columns != (v->plan->columns != 0))
    return verify_fail(v, n, "has_columns must be set if, and only if, steps take parts of the vector axis");
  if (!n->has_columns) return true;
  const Index *next = index_of(&v->b, INDEX_ADD, var_index(v, VAR_COLUMN), number_index(v, v->plan->columns));
  const bool is_part = r && r->progress == RANGE_PIECE && r->start.kind == VAR_COLUMN && n->end &&
                       (r->width == WIDTH_UNKNOWN      ? index_equals(n->end, r->end)
                        : r->width == v->plan->columns ? index_equals(n->end, next)
                                                       : false);
  return is_part || verify_fail(v, n, "the step must take the columns of the loop or condition around its call");
}

bool verify_step_call(Verifying *v, const LoopNode *n) {
  if (!v->is_block) return verify_fail(v, n, "a step must not call a step");
  if (v->plan->tile && (!n->is_tile || n->has_fewer_lanes || n->count || n->value))
    return verify_fail(v, n, "the loop has tiles, so the step must take a tile and no rows");
  if (v->plan->tile ? !verify_block_range(v, n) : !verify_iterations(v, n)) return false;
  if (!verify_columns(v, n)) return false;
  for (uint32_t i = 0; i < v->plan->nroots; i++) {
    const Root *root = &v->plan->roots[i];
    const bool has_elements = axes_nelems(v->k, access_axes(v->k, &v->k->accesses[root->access])) != 0;
    if (root->kind == ROOT_REDUCE_OUTER && has_elements && !v->count[effect_of(i, EFFECT_PREPARED)])
      return verify_fail(v, n, "the block's partial sums must be initialised before the first step");
  }
  return effect_do(v, n, effect_of_step(v));
}
