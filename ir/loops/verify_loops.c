// Verifies loops and conditions: the axes and indices that they cover.
//
// A direction is covered by one loop, by a loop over runs and a loop over each run, or by a counter in pieces
// (verify_counters.c). A node in a piece of `width` indices must process all of them: a group of vectors has a loop
// over its vectors, a vector has a lane for each index, a step of several rows has loops over the rows.
#include "ir/loops/verifying.h"

static bool fail_indices(Verifying *v, const LoopNode *n, int direction) {
  return verify_fail(v, n, "it must go over all indices on %s", direction_name(v, direction));
}

// Finds what a loop goes over, or the first of its parts: an axis or a run of the axis.
static bool begin_parts(Verifying *v, const LoopNode *n, int direction, Range *r) {
  Frame *runs = runs_find(v, n->value);
  r->begin = n->value;
  r->length = runs ? runs->node->step : NULL;
  r->reached = 0;
  if (!runs) return index_equals(n->value, r->from) || fail_indices(v, n, direction);
  if (!verify_runs(v, n, runs, r)) return false;
  runs->direction = direction;
  return true;
}

// Whether the loop, or a part of it, ends at the smaller of the run's beginning + length and `end`.
static bool ends_run(Verifying *v, const LoopNode *n, const Range *r, const Index *end) {
  const Index *own = index_of(&v->b, INDEX_ADD, r->begin, r->length);
  const bool is_cut = index_is_var(n->end, loop_var(VAR_RUN_END)) &&
                      index_equals(var_state(v, loop_var(VAR_RUN_END))->value, least_index(v, own, r->to));
  if (!is_cut && !index_equals(n->end, own)) return false;
  if (n->bound) return index_equals(n->bound, end);
  return end == r->to && (is_cut || (index_is_literal(r->length) && r->divisor % r->length->number == 0));
}

static bool is_last_part(Verifying *v, const LoopNode *n, const Range *r) {
  return r->length ? ends_run(v, n, r, r->to) : index_equals(n->end, r->to) && !n->bound;
}

// A part that is not the last begins where the part before it ends, and ends at a literal.
static bool verify_part(Verifying *v, const LoopNode *n, int direction, Range *r) {
  const Index *end = r->length ? n->bound : n->end, *from = number_index(v, r->reached);
  const bool is_zero = index_is(r->begin, 0);
  const Index *begin = !r->is_parted ? r->begin
                       : is_zero     ? from
                                     : index_choose(&v->b, index_of(&v->b, INDEX_LESS, r->begin, from), from, r->begin);
  if (!index_equals(n->value, begin))
    return verify_fail(v, n, "it must begin where the part of the axis before it ends");
  r->is_parted = !is_last_part(v, n, r);
  if (!r->is_parted) return true;
  const bool is_end = index_is_literal(end) && index_is_literal(r->to) && end->number > r->reached &&
                      end->number < r->to->number && (r->length ? ends_run(v, n, r, end) : !n->bound);
  if (!is_end) return fail_indices(v, n, direction);
  r->reached = end->number;
  return (n->next && n->next->kind == NODE_FOR && n->next->var.kind == n->var.kind && n->next->var.of == n->var.of) ||
         verify_fail(v, n, "the part of the axis behind it must be the next node");
}

// A loop with step 1, over an axis or a run of the axis, or over a part of them.
static bool begin_each(Verifying *v, const LoopNode *n, int direction, Piece *piece) {
  Range *r = &v->range[direction];
  if (direction >= v->k->naxes || !(v->inner >> direction & 1))
    return verify_fail(v, n, "it must go over an inner axis of the loop");
  if (r->is_counted || r->is_piece) return verify_fail(v, n, "a loop around it already goes over its axis");
  if (!index_is(n->step, 1)) return verify_fail(v, n, "its step must be 1");
  const bool is_first = !r->is_parted;
  if (is_first && !begin_parts(v, n, direction, r)) return false;
  if (!verify_part(v, n, direction, r)) return false;
  if (n->is_down && (r->length || r->is_parted || !is_first))
    return verify_fail(v, n, "it goes over a run or a part of an axis, so it must go forwards");
  if (is_first && r->is_parted && !effects_begin(v, &r->pieces)) return false;
  *piece = (Piece){.direction = direction, .range = *r, .pieces = is_first && !r->is_parted ? NULL : &r->pieces};
  piece->range.start = n->var;
  piece->range.width = 1;
  return true;
}

static bool begin_axis(Verifying *v, const LoopNode *n, Piece *piece) {
  return begin_each(v, n, (int)n->var.of, piece);
}

static bool begin_lane(Verifying *v, const LoopNode *n, Piece *piece) {
  return begin_each(v, n, v->vector, piece);
}

// A loop over runs. The axis is not known yet: the inner loop over the indices of a run determines it. The length of a
// run is a literal, or VAR_RUN_LENGTH under the condition that chains are short, and so at least 1.
static bool begin_runs(Verifying *v, const LoopNode *n, Piece *piece) {
  const bool is_length = index_is_literal(n->step) ? n->step->number >= 1
                                                   : index_is_var(n->step, loop_var(VAR_RUN_LENGTH)) &&
                                                         (v->chain == CHAIN_SHORT || loop_sums_in_lanes(v->loop));
  *piece = (Piece){.direction = UNKNOWN_DIRECTION};
  if (!is_length) return verify_fail(v, n, "the length of its runs may be 0, expected at least 1");
  return (!n->is_down && !n->bound) || verify_fail(v, n, "it must go over all runs, forwards");
}

static bool is_all(const LoopNode *n) {
  return index_is(n->value, 0) && index_is(n->step, 1) && !n->bound && !n->is_down;
}

// A loop over the vectors of a group. A node in its body sets VAR_VECTOR_LANE, the vector's first index.
static bool begin_group(Verifying *v, const LoopNode *n, Piece *piece) {
  const Range *r = &v->range[v->vector];
  if (!is_all(n) || !index_is_literal(n->end))
    return verify_fail(v, n, "it must go over all vectors of its group: from 0 to a literal, with step 1");
  if (!r->is_piece || n->end->number * LANES != r->width)
    return verify_fail(v, n, "it goes over %lld vectors, expected the group's %lld", (long long)n->end->number,
                       (long long)(r->is_piece && r->width > 0 ? r->width / LANES : 0));
  *piece = (Piece){.direction = v->vector, .range = *r};
  piece->range.group = r->start;
  piece->range.start = loop_var(VAR_NONE);
  piece->range.width = LANES;
  return true;
}

static bool begin_rows(Verifying *v, const LoopNode *n, Piece *piece) {
  if (!is_all(n) || !index_is_var(n->end, loop_var(VAR_ROWS)))
    return verify_fail(v, n, "it must go over all rows of the step: from 0 to VAR_ROWS, with step 1");
  *piece = (Piece){.direction = OUTER, .range = v->range[OUTER]};
  if (piece->range.width != WIDTH_ROWS)
    return verify_fail(v, n,
                       "a loop over rows must be in a step of several rows, and not within another loop over rows");
  piece->range.width = 1;
  piece->range.start = n->var;
  return true;
}

// A loop over the elements of an array of partial sums, or over the blocks that partial sums are of: no directions.
static bool begin_elements(Verifying *v, const LoopNode *n, Piece *piece) {
  *piece = (Piece){.direction = UNKNOWN_DIRECTION};
  return is_all(n) || verify_fail(v, n, "it must go over all partial sums: from 0, with step 1");
}

static bool (*const loops[VAR_ELEMENT + 1])(Verifying *, const LoopNode *, Piece *) = {
    [VAR_AXIS] = begin_axis,        [VAR_LANE] = begin_lane,
    [VAR_ROW] = begin_rows,         [VAR_VECTOR] = begin_group,
    [VAR_RUN] = begin_runs,         [VAR_RUN_BEGIN] = begin_runs,
    [VAR_ELEMENT] = begin_elements, [VAR_COMBINED_BLOCK] = begin_elements,
};

bool begin_for(Verifying *v, const LoopNode *n, Piece *piece) {
  if (!verify_flag(v, n) || !verify_index(v, n, n->value) || !verify_index(v, n, n->end) ||
      !verify_index(v, n, n->step) || !verify_index(v, n, n->bound))
    return false;
  if (!n->step || !n->end) return verify_fail(v, n, "a loop must have an end and a step");
  if (n->is_vectors) return begin_vectors(v, n, piece);
  if (n->is_whole && n->flag) return verify_fail(v, n, "a loop that continues a counter must not depend on a flag");
  if (n->is_whole) return begin_whole(v, n, piece);
  if (!loops[n->var.kind])
    return verify_fail(v, n, "a loop's variable must be an axis, row, vector, run, lane or element");
  return var_set(v, n, n->var, NULL) && loops[n->var.kind](v, n, piece);
}

bool is_piece_of_counter(const Verifying *v, const LoopNode *n) {
  const Index *x = n->test->op == INDEX_LESS ? n->test->args[0] : NULL;
  return index_is_var(n->test, loop_var(VAR_LANES)) ||
         (x && x->op == INDEX_VAR && counted_direction(v, x->var) != NO_DIRECTION);
}

bool begin_if(Verifying *v, const LoopNode *n, Piece *piece) {
  return n->test->op == INDEX_LESS ? begin_tail(v, n, piece) : begin_peel(v, n, piece);
}

// Constants inside of a piece

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

static bool verify_chain(Verifying *v, const LoopNode *n) {
  if (v->vector == NO_DIRECTION || !loop_runs(v->k, v->loop).is_open)
    return verify_fail(v, n, "VAR_CHAIN is only for loops whose runs depend on open dims");
  return verify_equal(v, n, "the length of a chain", n->value, index_chain(&v->b, nelems_index(v, 1U << v->vector)));
}

static bool verify_run_length(Verifying *v, const LoopNode *n) {
  const Loop *loop = v->loop;
  if (!loop_sums_in_lanes(loop)) return verify_equal(v, n, "the length of a run", n->value, index_run_length(&v->b));
  const int depth = loop_runs(v->k, loop).depth;
  return verify_equal(v, n, "the iterations in a chain", n->value,
                      index_chain_iterations(&v->b, nelems_index(v, 1U << loop->axes[loop->nouter + depth]),
                                             loop_operands_inside(v->k, loop, depth)));
}

static bool (*const of_vars[VAR_ELEMENT + 1])(Verifying *, const LoopNode *) = {
    [VAR_AXIS] = verify_axis_index, [VAR_VECTOR_LANE] = verify_vector_lane, [VAR_LANES] = verify_tail_lanes,
    [VAR_CHAIN] = verify_chain,     [VAR_RUN_LENGTH] = verify_run_length,
};

bool verify_set_index(Verifying *v, const LoopNode *n) {
  if (!n->value) return verify_fail(v, n, "it must have a value");
  if (!verify_index(v, n, n->value) || !var_set(v, n, n->var, n->value)) return false;
  return !of_vars[n->var.kind] || of_vars[n->var.kind](v, n);
}
