// Verifies loops and conditions: the axes and indices that they cover.
//
// A direction is covered by one loop, by a loop over runs and a loop over each run, or by a counter in pieces
// (verify_counters.c). A node in a piece of `width` indices must process all of them: a group of vectors has a loop
// over its vectors, a vector has a lane for each index, a step of several rows has loops over the rows.
#include "ir/loops/verifying.h"

// Whether a loop over a run ends at the smaller of its beginning + `length` and the end of the axis.
static bool is_end_of_run(Verifying *v, const LoopNode *n, const Index *length, const Range *r) {
  const Index *end = index_of(&v->b, INDEX_ADD, n->value, length), *x, *y;
  if (n->bound) return index_equals(n->end, end) && index_equals(n->bound, r->to);
  const VarState *least = var_state(v, loop_var(VAR_RUN_END));
  if (index_is_var(n->end, loop_var(VAR_RUN_END)))
    return least->value && index_is_least(least->value, &x, &y) && index_equals(x, end) && index_equals(y, r->to);
  return index_equals(n->end, end) && index_is_literal(length) && r->divisor % length->number == 0;
}

// A loop with step 1, over an axis or over a run of the axis.
static bool verify_for_each(Verifying *v, const LoopNode *n, int direction) {
  Range *r = &v->range[direction], piece = *r;
  if (direction >= v->k->naxes || !(v->inner >> direction & 1))
    return verify_fail(v, n, "it must go over an inner axis of the loop");
  if (r->progress != RANGE_UNTOUCHED) return verify_fail(v, n, "a loop around it already goes over its axis");
  if (!index_is(n->step, 1)) return verify_fail(v, n, "its step must be 1");
  Frame *runs = runs_find(v, n->value);
  if (runs) {
    if (!verify_runs(v, n, runs, r)) return false;
    if (!is_end_of_run(v, n, runs->node->step, r) || n->is_down)
      return verify_fail(v, n, "it must go over all indices of its run, forwards");
    runs->direction = direction;
  } else if (!index_equals(n->value, r->from) || !index_equals(n->end, r->to) || n->bound) {
    return verify_fail(v, n, "it must go over all indices on %s", direction_name(v, direction));
  }
  piece.start = n->var;
  piece.width = 1;
  return verify_piece(v, n, direction, &piece);
}

static bool verify_for_axis(Verifying *v, const LoopNode *n) {
  return verify_for_each(v, n, (int)n->var.of);
}

// Whether the length is known to be at least 1: a literal, or VAR_RUN_LENGTH under the condition that chains are short.
static bool is_run_length(const Verifying *v, const Index *i) {
  return index_is_literal(i) ? i->number >= 1 : index_is_var(i, loop_var(VAR_RUN_LENGTH)) && v->chain == CHAIN_SHORT;
}

// A loop over runs. The axis is not known yet: the inner loop over the indices of a run determines it.
static bool verify_for_runs(Verifying *v, const LoopNode *n) {
  if (!is_run_length(v, n->step)) return verify_fail(v, n, "the length of its runs may be 0, expected at least 1");
  if (n->is_down || n->bound) return verify_fail(v, n, "it must go over all runs, forwards");
  return verify_body(v, n, UNKNOWN_DIRECTION);
}

// A loop over the vectors of a group. A node in its body sets VAR_VECTOR_LANE, the vector's first index.
static bool verify_for_group(Verifying *v, const LoopNode *n) {
  if (v->vector < 0) return verify_fail(v, n, "it goes over vectors, but the loop has no axis that vectors lie along");
  Range piece = v->range[v->vector];
  const bool is_all =
      index_is(n->value, 0) && index_is_literal(n->end) && index_is(n->step, 1) && !n->bound && !n->is_down;
  if (!is_all) return verify_fail(v, n, "it must go over all vectors of its group: from 0 to a literal, with step 1");
  if (piece.progress != RANGE_PIECE || n->end->number * LANES != piece.width)
    return verify_fail(v, n, "it goes over %lld vectors, expected the group's %lld", (long long)n->end->number,
                       (long long)(piece.progress == RANGE_PIECE && piece.width > 0 ? piece.width / LANES : 0));
  piece.group = piece.start;
  piece.start = loop_var(VAR_NONE);
  piece.width = LANES;
  return verify_piece(v, n, v->vector, &piece);
}

static bool verify_for_rows(Verifying *v, const LoopNode *n) {
  Range piece = v->range[OUTER];
  const bool is_all = index_is(n->value, 0) && index_is_var(n->end, loop_var(VAR_ROWS)) && index_is(n->step, 1);
  if (!is_all || n->bound || n->is_down)
    return verify_fail(v, n, "it must go over all rows of the step: from 0 to VAR_ROWS, with step 1");
  if (piece.width != WIDTH_ROWS)
    return verify_fail(v, n,
                       "a loop over rows must be in a step of several rows, and not within another loop over rows");
  piece.width = 1;
  piece.start = n->var;
  return verify_piece(v, n, OUTER, &piece);
}

// A loop over the elements of an array of partial sums, which is no direction.
static bool verify_for_elements(Verifying *v, const LoopNode *n) {
  if (!index_is(n->value, 0) || !index_is(n->step, 1) || n->bound || n->is_down)
    return verify_fail(v, n, "it must go over all partial sums: from 0, with step 1");
  return verify_body(v, n, UNKNOWN_DIRECTION);
}

// Loops and conditions

static bool (*const loops[])(Verifying *, const LoopNode *) = {
    [VAR_AXIS] = verify_for_axis, [VAR_ROW] = verify_for_rows,       [VAR_VECTOR] = verify_for_group,
    [VAR_RUN] = verify_for_runs,  [VAR_RUN_BEGIN] = verify_for_runs, [VAR_ELEMENT] = verify_for_elements};

bool verify_for(Verifying *v, const LoopNode *n) {
  const size_t nscoped = v->nscoped;
  if (n->flag && !verify_flag(v, n, n->flag, n->access)) return false;
  if (!verify_index(v, n, n->value) || !verify_index(v, n, n->end) || !verify_index(v, n, n->step) ||
      !verify_index(v, n, n->bound))
    return false;
  if (!n->step || !n->end) return verify_fail(v, n, "a loop must have an end and a step");
  if (n->is_vectors) return verify_for_vectors(v, n);
  if (n->is_whole)
    return n->flag ? verify_fail(v, n, "a loop that continues a counter must not depend on a flag")
                   : verify_for_whole(v, n);
  const bool is_lane = n->var.kind == VAR_LANE && v->vector >= 0;
  if (n->var.kind > VAR_ELEMENT || (!is_lane && !loops[n->var.kind]))
    return verify_fail(v, n, "a loop's variable must be an axis, row, vector, run, lane or element");
  Pieces done;
  effects_begin(v, &done);
  if (n->flag && !guard_push(v, n, n->flag, n->access)) return false;
  const bool ok =
      var_set(v, n, n->var, NULL) && (is_lane ? verify_for_each(v, n, v->vector) : loops[n->var.kind](v, n));
  v->nguards -= n->flag != FLAG_NONE;
  return ok && (!n->flag || effects_are_of(v, n, &done, n->access)) && scope_close(v, nscoped);
}

static bool verify_under_flag(Verifying *v, const LoopNode *n) {
  Pieces pieces;
  if (n->otherwise || !n->flag)
    return verify_fail(v, n, "a condition must have a test, or else a flag and no else branch");
  if (!verify_flag(v, n, n->flag, n->access) || !guard_push(v, n, n->flag, n->access)) return false;
  effects_begin(v, &pieces);
  const bool ok = verify_nodes(v, n->body);
  v->nguards--;
  return ok && effects_are_of(v, n, &pieces, n->access);
}

static bool verify_branches(Verifying *v, const LoopNode *n) {
  const Chain chain = v->chain;
  const Index *test = n->test;
  const bool is_of_chain = test->op == INDEX_MORE && index_is_var(test->args[0], loop_var(VAR_CHAIN)) &&
                           index_is(test->args[1], LONGEST_RUN);
  Pieces pieces;
  effects_begin(v, &pieces);
  if (!guard_push(v, n, FLAG_NONE, 0)) return false;
  if (is_of_chain) v->chain = CHAIN_LONG;
  bool ok = effects_begin_piece(v, n, &pieces) && verify_nodes(v, n->body) && effects_end_piece(v, n, &pieces);
  if (is_of_chain) v->chain = CHAIN_SHORT;
  ok = ok && effects_begin_piece(v, n, &pieces) && verify_nodes(v, n->otherwise) && effects_end_piece(v, n, &pieces);
  v->chain = chain;
  v->nguards--;
  return ok;
}

bool verify_if(Verifying *v, const LoopNode *n) {
  if (!n->test) return verify_under_flag(v, n);
  if (!verify_index(v, n, n->test)) return false;
  const Index *x = n->test->op == INDEX_LESS ? n->test->args[0] : NULL;
  if (x && x->op == INDEX_VAR && counted_direction(v, x->var) != UNKNOWN_DIRECTION) return verify_tail(v, n);
  if (index_is_var(n->test, loop_var(VAR_LANES))) return verify_peel(v, n);
  return verify_branches(v, n);
}

// Constants inside of a piece

static bool verify_vector_lane(Verifying *v, const LoopNode *n) {
  Range *r = v->vector < 0 ? NULL : &v->range[v->vector];
  if (!r || !r->group.kind || r->start.kind)
    return verify_fail(v, n, "VAR_VECTOR_LANE must be set in a loop over a group of vectors");
  Linear is = linear_of(v, n->value), expected = {0};
  linear_add_var(&expected, r->group.kind, r->group.of, 1, 0);
  linear_add_var(&expected, VAR_VECTOR, 0, LANES, 0);
  r->start = n->var; // verify_piece restores it at the end of the loop
  return linear_equals(&is, &expected) ||
         verify_fail(v, n, "the vectors of a group must be adjacent: the group's first index + vector * LANES");
}

static bool verify_tail_lanes(Verifying *v, const LoopNode *n) {
  Range *r = v->vector < 0 ? NULL : &v->range[v->vector];
  if (!r || r->progress != RANGE_PIECE || r->width != WIDTH_UNKNOWN)
    return verify_fail(v, n, "VAR_LANES must be set in the tail of a counter");
  const Index *remainder = index_of(&v->b, INDEX_SUBTRACT, r->end, var_index(v, VAR_LANE));
  if (!index_equals(n->value, remainder))
    return verify_fail_index(v, n, "the number of elements left", n->value, remainder);
  r->width = WIDTH_LANES;
  return true;
}

static bool (*const of_vars[])(Verifying *, const LoopNode *) = {
    [VAR_AXIS] = verify_axis_index, [VAR_VECTOR_LANE] = verify_vector_lane, [VAR_LANES] = verify_tail_lanes,
    [VAR_CHAIN] = verify_chain,     [VAR_RUN_LENGTH] = verify_run_length,   [VAR_ELEMENT] = NULL};

bool verify_set_index(Verifying *v, const LoopNode *n) {
  if (!n->value) return verify_fail(v, n, "it must have a value");
  if (!verify_index(v, n, n->value) || !var_set(v, n, n->var, n->value)) return false;
  return !of_vars[n->var.kind] || of_vars[n->var.kind](v, n);
}
