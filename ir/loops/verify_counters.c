// Verifies counters. A counter goes over an axis in pieces, each a loop or a condition that advances it: the elements
// before a cache line (peeled), whole groups of vectors, whole vectors, the tail.
#include "ir/loops/verifying.h"

#include "ir/operators/window.h"

int counted_direction(const Verifying *v, Var var) {
  const bool is_along_vectors = var.kind == VAR_LANE || (var.kind == VAR_COLUMN && v->is_block && v->loop->columns);
  return var.kind == VAR_OUTER ? OUTER : is_along_vectors ? v->vector : NO_DIRECTION;
}

// A run ends at its beginning plus the length of runs, or at the end of the axis.
static bool verify_run_end(Verifying *v, const LoopNode *n, const Frame *runs, Range *r) {
  const VarState *end = var_state(v, loop_var(VAR_RUN_END));
  const Index *next = index_of(&v->b, INDEX_ADD, n->value, runs->node->step);
  if (!end->is_set || !index_is_literal(runs->node->step) || !index_equals(end->value, least_index(v, next, r->to)))
    return verify_fail(v, n, "VAR_RUN_END must be the smaller of the run's begin + length and the end of the axis");
  const int64_t length = runs->node->step->number;
  r->end = var_index(v, VAR_RUN_END);
  r->end_divisor = greatest_divisor(length, r->divisor);
  r->is_aligned = r->is_aligned && length % LANES == 0;
  return true;
}

// The counter goes over a run if it begins at the variable of a loop over runs, else over the whole axis.
static bool begin_counting(Verifying *v, const LoopNode *n, int direction, Range *r) {
  if (r->is_counted || r->is_piece) return verify_fail(v, n, "a loop around it already goes over its axis");
  Frame *runs = runs_find(v, n->value);
  const bool is_literal = index_is_literal(r->from) && index_is_literal(r->to);
  r->end = r->to;
  r->end_divisor = r->divisor;
  r->is_aligned = index_is(r->from, 0) || (v->loop->columns ? v->loop->columns : loop_tile(v->loop)) % LANES == 0;
  r->start = n->var;
  r->group = loop_var(VAR_NONE);
  r->left_below = is_literal ? r->to->number - r->from->number + 1 : INT64_MAX;
  r->rest = is_literal && !runs ? r->to->number - r->from->number : -1;
  r->depth = v->nframes;
  r->nguards = v->nguards;
  r->must_advance = false;
  r->line_access = 0;
  if (!effects_begin(v, &r->pieces)) return false;
  if (!runs)
    return index_equals(n->value, r->from) || verify_fail(v, n, "it must begin at the first index on its axis");
  if (!verify_runs(v, n, runs, r) || !verify_run_end(v, n, runs, r)) return false;
  runs->direction = direction;
  return true;
}

bool verify_counter(Verifying *v, const LoopNode *n) {
  const int direction = counted_direction(v, n->var);
  Range *r = &v->range[direction];
  if (direction == NO_DIRECTION)
    return verify_fail(v, n, "a counter's variable must be the outer iteration, the lane or the column");
  if (!n->value || !verify_index(v, n, n->value) || (direction == OUTER && !verify_block_range(v, n))) return false;
  return begin_counting(v, n, direction, r) && var_set(v, n, n->var, NULL) &&
         scope_add_open(v, &r->is_counted, &r->is_left, n,
                        "elements may be left after the loops over whole vectors, but the tail is missing");
}

// Finds the counter's range, and sets up the next piece of it. NULL after reporting that no piece may begin here.
static Range *next_piece(Verifying *v, const LoopNode *n, Var var, int64_t width, Piece *piece) {
  const int direction = counted_direction(v, var);
  Range *r = &v->range[direction];
  if (!r->is_counted || r->is_piece)
    verify_fail(v, n, "the counter that it continues is not declared in this list of nodes");
  else if (r->depth != v->nframes || r->nguards != v->nguards)
    verify_fail(v, n, "it must be in the same list of nodes as its counter");
  else {
    *piece = (Piece){.direction = direction, .range = *r, .pieces = &r->pieces};
    piece->range.width = width;
    return r;
  }
  return NULL;
}

static bool verify_advanced(Verifying *v, const LoopNode *n, const Range *r) {
  return !r->must_advance || verify_fail(v, n, "the counter must advance over the peeled elements before it");
}

// The elements left after whole steps: this many, or none. -1: not known. The last block may have outer iterations
// left, other blocks have none; that no block has any is not concluded, as no tree relies on it.
static int64_t find_rest(const Verifying *v, const Range *r, int64_t width) {
  const Loop *loop = v->loop;
  const AxisSet cut = loop_cut_axes(loop);
  if (r->rest >= 0) return r->rest % width;
  if (r->end_divisor % width == 0) return 0;
  if (r != &v->range[OUTER] || !cut_is_multiple(&loop->cut, width)) return -1;
  const int64_t rest = axes_nelems(v->k, cut) % width;
  return axes_monomial(v->k, cut) || !rest ? -1 : rest;
}

bool begin_whole(Verifying *v, const LoopNode *n, Piece *piece) {
  const int64_t width = index_is_literal(n->step) ? n->step->number : 0;
  if (width < 1) return verify_fail(v, n, "its step must be a positive literal");
  Range *r = next_piece(v, n, n->var, width, piece);
  if (!r || !verify_advanced(v, n, r)) return false;
  if (!index_equals(n->end, r->end) || n->bound || n->is_down)
    return verify_fail(v, n, "it must count upwards to the end of its axis, without a second end");
  r->rest = find_rest(v, r, width);
  r->is_left = r->rest != 0;
  if (r->rest >= 0) r->left_below = r->is_left ? r->rest + 1 : 0;
  else if (r->left_below > width) r->left_below = width;
  return true;
}

bool begin_vectors(Verifying *v, const LoopNode *n, Piece *piece) {
  const int direction = counted_direction(v, n->var);
  Range *r = &piece->range;
  if (direction != v->vector || v->lanes != direction || direction == NO_DIRECTION)
    return verify_fail(v, n, "it must go over the axis that vectors lie along");
  *piece = (Piece){.direction = direction, .range = v->range[direction]};
  if (!n->value || !begin_counting(v, n, direction, r)) return false;
  if (!index_equals(n->end, r->end) || !index_is(n->step, LANES) || n->bound || n->is_down || n->flag)
    return verify_fail(v, n, "it must go over all vectors of the axis, with step LANES");
  if (!n->has_tail && (n->is_peeled || r->end_divisor % LANES))
    return verify_fail(v, n, "has_tail is unset, but the length of the axis may not be a multiple of LANES");
  if (n->is_peeled) r->line_access = n->peeled + 1;
  r->is_aligned = r->is_aligned && !n->is_peeled;
  r->left_below = (int64_t)n->count * LANES;
  r->width = LANES;
  return var_set(v, n, n->var, NULL);
}

bool begin_tail(Verifying *v, const LoopNode *n, Piece *piece) {
  Range *r = next_piece(v, n, n->test->args[0]->var, WIDTH_UNKNOWN, piece);
  if (!r || !verify_equal(v, n, "the end of the tail", n->test->args[1], r->end)) return false;
  if (n->otherwise) return verify_fail(v, n, "a tail must have no else branch");
  if (!verify_advanced(v, n, r)) return false;
  const int64_t most = n->test->args[0]->var.kind == VAR_COLUMN ? v->loop->columns : LANES;
  if (r->left_below > most)
    return verify_fail(v, n, "the tail computes fewer than %lld elements, but as many or more may be left",
                       (long long)most);
  r->left_below = 0;
  r->is_left = false;
  return true;
}

// The number of peeled elements is less than LANES and less than the extent.
bool verify_peel_count(Verifying *v, const LoopNode *n) {
  Piece peeled;
  Range *r = next_piece(v, n, loop_var(VAR_LANE), WIDTH_LANES, &peeled);
  const Access *a = &v->k->accesses[n->address.access];
  if (!r) return false;
  if (r->pieces.first || !index_equals(r->end, r->to))
    return verify_fail(v, n, "elements can be peeled at the beginning of a row only, and not of a run");
  if (kernel_factor(v->k, v->k->axes[v->vector].extent, v->k->axes[v->vector].monomial) < LANES ||
      type_nbytes(a->type) * LANES < LINE_NBYTES || a->stride[v->vector] != 1 || v->lanes != v->vector)
    return verify_fail(
        v, n, "rows can be peeled only if each reaches its next cache line, and vectors lie along their dense axis");
  const bool may_be_null = v->memory[n->address.access].is_wanted_found && !is_guarded(v, FLAG_WANTED, n->access);
  if (n->access != n->address.access || n->flag != (may_be_null ? FLAG_WANTED : FLAG_NONE))
    return verify_fail(v, n, "it must depend on FLAG_WANTED if the caller may not want the output, else on nothing");
  r->must_advance = true;
  r->is_aligned = false;
  r->line_access = n->address.access + 1;
  r->end_divisor = 1;
  r->rest = -1;
  return verify_access(v, n, n->address.access) && var_set(v, n, n->var, NULL);
}

bool begin_peel(Verifying *v, const LoopNode *n, Piece *piece) {
  const Range *r = next_piece(v, n, loop_var(VAR_LANE), WIDTH_LANES, piece);
  if (!r) return false;
  if (n->otherwise) return verify_fail(v, n, "peeling must have no else branch");
  return (r->must_advance && !r->pieces.first) ||
         verify_fail(v, n, "the peeled elements must be the first piece of a row, after their number is computed");
}

bool verify_advance(Verifying *v, const LoopNode *n) {
  Piece peeled;
  Range *r = next_piece(v, n, n->var, WIDTH_LANES, &peeled);
  if (!r) return false;
  if (!r->must_advance || !r->pieces.first || !index_is_var(n->value, loop_var(VAR_LANES)))
    return verify_fail(v, n, "it must advance by the number of peeled elements, directly after these");
  r->must_advance = false;
  return true;
}
