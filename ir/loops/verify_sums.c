// Verifies the scopes, types and places of sums: over a step's elements, in registers, and over a block's iterations,
// in memory (partial sums). What is added to them, and in which order, is proved by running (ir/loops/prove.h).
#include "ir/loops/verifying.h"

// The NODE_BEGIN_SUM of the accumulators, or of the total, that the node takes. NULL after saying that there is none.
static const LoopNode *find_sum(Verifying *v, const LoopNode *n, SumPlace place) {
  const OfExpr *e = &v->exprs[n->expr];
  const LoopNode *begin = place == SUM_ACCUMULATOR ? (e->has_own ? e->own : NULL) : e->has_total ? e->total : NULL;
  if (begin && begin->sum == place) return begin;
  verify_fail(v, n, "the sum must begin before it, in the same place");
  return NULL;
}

bool verify_begin_sum(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  OfExpr *of = &v->exprs[n->expr];
  bool *is_there = n->sum == SUM_ACCUMULATOR ? &of->has_own : &of->has_total;
  if (!(expr_is_reduction(e) || e->op == EXPR_COMBINE) || n->sum > SUM_SCALAR || n->count < 1 ||
      (n->sum == SUM_SCALAR && n->count != 1))
    return verify_fail(v, n, "it must begin accumulators, a total or a scalar of a sum");
  if (e->op == EXPR_COMBINE &&
      (n->access != e->access || n->sum != (v->t->form[n->expr] == FORM_VECTOR ? SUM_TOTAL : SUM_SCALAR)))
    return verify_fail(v, n, "it must begin one total of its partial sums, a vector if the sum is one");
  if (n->sum == SUM_TOTAL && v->k->is_f64 && e->op != EXPR_COMBINE)
    return verify_fail(v, n, "only sums of f32 have totals");
  if (*is_there) return verify_fail(v, n, "the sum has already begun");
  if (n->sum == SUM_ACCUMULATOR) of->own = n;
  else of->total = n;
  return scope_add(v, is_there);
}

bool verify_leave(Verifying *v, const LoopNode *n) {
  return find_sum(v, n, SUM_TOTAL);
}

// Whether the accumulator is one of the sum's: of the row, the vector or the element that the node is at.
static bool verify_accumulator(Verifying *v, const LoopNode *n, const LoopNode *begin) {
  const Range *r = &v->range[v->vector];
  const int rows = v->loop->rows, vectors = begin->count / rows;
  const LoopNode *group = r->group.kind ? var_state(v, loop_var(VAR_VECTOR))->loop : NULL;
  const bool is_of_vector = group && index_is(group->end, vectors);
  const bool is_right[] = {[ACCUMULATOR_ONLY] = begin->count == 1,
                           [ACCUMULATOR_OF_ROW] = begin->count == rows && rows > 1 && is_in_row(v),
                           [ACCUMULATOR_OF_VECTOR] = is_of_vector && vectors > 1 && rows == 1,
                           [ACCUMULATOR_OF_BOTH] = is_of_vector && begin->count == vectors * rows && rows > 1 &&
                                                   (is_in_row(v) || n->is_row),
                           [ACCUMULATOR_FIRST] = begin->count > 1,
                           [ACCUMULATOR_OF_ELEMENT] = begin->count == tree_element_sums(v->t, n->expr)};
  return is_right[n->accumulator] || verify_fail(v, n, "it takes accumulator sum%s, but there are %d",
                                                 accumulator_indices[n->accumulator], begin->count);
}

static bool verify_summand(Verifying *v, const LoopNode *n) {
  const ExprId operand = node_operand(v->t, n);
  const Expr *e = &v->k->exprs[operand];
  if (!n->is_fused) return verify_operand(v, n, operand, n->is_vector);
  if (e->op != EXPR_MUL || node_reduction(v->t, n) != EXPR_REDUCE_SUM || node_is_widened(v->t, n) || !n->is_vector)
    return verify_fail(v, n, "only a sum of vectors of products, in the type of the products, can be fused");
  return verify_operand(v, n, e->args[0], true) && verify_operand(v, n, e->args[1], true);
}

static bool verify_partials_of(Verifying *v, const LoopNode *n) {
  return root_of(v, ROOT_REDUCE_OUTER, n->access) ||
         verify_fail(v, n, "its access is not the access of partial sums of the loop");
}

bool verify_update(Verifying *v, const LoopNode *n) {
  const bool is_vector = n->sum == SUM_ACCUMULATOR || n->sum == SUM_PARTIAL_REGISTER;
  if (n->is_vector != is_vector || n->sum == SUM_TOTAL || !n->expr)
    return verify_fail(v, n, "a vector must be added to accumulators or a register, a scalar to a scalar or element");
  if (n->has_fewer_lanes && !has_fewer_lanes(v))
    return verify_fail(v, n, "has_fewer_lanes is set, but all lanes hold elements here");
  if (!verify_summand(v, n) || !verify_flag(v, n)) return false;
  if (n->sum == SUM_ACCUMULATOR || n->sum == SUM_SCALAR) {
    const LoopNode *begin = find_sum(v, n, n->sum);
    return begin && verify_accumulator(v, n, begin);
  }
  if (!verify_partials_of(v, n)) return false;
  if (n->accumulator != ACCUMULATOR_ONLY) return verify_fail(v, n, "partial sums have one accumulator");
  if (n->sum == SUM_PARTIAL_ELEMENT) return verify_partial_address(v, n);
  return v->accesses[n->access].is_held ||
         verify_fail(v, n, "its partial sums must be loaded into a register before it");
}

// Ends of runs and sums

bool verify_end_run(Verifying *v, const LoopNode *n) {
  const LoopNode *own = find_sum(v, n, SUM_ACCUMULATOR), *total = own ? find_sum(v, n, SUM_TOTAL) : NULL;
  if (!total) return false;
  if (own->count != total->count || n->is_row != (v->loop->rows > 1))
    return verify_fail(v, n, "it must add all accumulators of the sum to as many totals");
  return n->is_row && n->accumulator == ACCUMULATOR_OF_ROW
             ? own->count == v->loop->rows || verify_fail(v, n, "it must take the accumulator of each row")
             : verify_accumulator(v, n, own);
}

// The result is a scalar, reduced over lanes, or a vector with a sum in each lane; SUM_SCALAR has no lanes.
bool verify_end_sum(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  const LoopNode *begin = find_sum(v, n, n->sum);
  if (!begin) return false;
  const bool has_lane_sums = v->lanes != NO_DIRECTION && !(e->reduced >> v->lanes & 1);
  const bool is_vector = e->op == EXPR_COMBINE ? n->sum == SUM_TOTAL : n->sum != SUM_SCALAR && has_lane_sums;
  if (n->is_vector != is_vector || (n->is_row && begin->count != v->loop->rows))
    return verify_fail(v, n, "it must take all accumulators of the sum, and all lanes unless each has a sum");
  const bool is_each = n->is_row && n->accumulator == ACCUMULATOR_OF_ROW;
  const bool is_all = tree_element_sums(v->t, n->expr) && n->accumulator == ACCUMULATOR_ONLY;
  return (is_each || is_all || verify_accumulator(v, n, begin)) && verify_define(v, n);
}

// Partial sums of blocks

bool verify_combine(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  if (e->op != EXPR_COMBINE || n->access != e->access || e->loop >= (uint32_t)(v->loop - v->t->schedule->loops))
    return verify_fail(v, n, "its expression must combine partial sums of an earlier loop, through the same access");
  return find_sum(v, n, n->is_vector ? SUM_TOTAL : SUM_SCALAR) && (!n->is_vector || verify_lanes(v, n)) &&
         verify_combined_address(v, n, e);
}

static bool verify_held(Verifying *v, const LoopNode *n) {
  if (v->lanes == NO_DIRECTION) return verify_fail(v, n, "it is a vector, but the loop has no axis of vectors");
  return verify_partials_of(v, n) && verify_flag(v, n) && verify_partial_address(v, n) && verify_lanes(v, n);
}

bool verify_load_partial(Verifying *v, const LoopNode *n) {
  bool *is_held = &v->accesses[n->access].is_held;
  return verify_held(v, n) &&
         (*is_held ? verify_fail(v, n, "the vector is already in a register") : scope_add(v, is_held));
}

bool verify_store_partial(Verifying *v, const LoopNode *n) {
  return verify_held(v, n) && (v->accesses[n->access].is_held ||
                               verify_fail(v, n, "its partial sums must be loaded into a register before it"));
}

static const Index *npartials(Verifying *v, AccessId id) {
  return nelems_index(v, access_axes(v->k, &v->k->accesses[id]));
}

bool verify_partials(Verifying *v, const LoopNode *n) {
  bool *has_partials = &v->accesses[n->access].has_partials;
  if (!v->is_block || *has_partials || !verify_partials_of(v, n))
    return verify_fail(v, n, "partial sums must be declared once, in a block");
  return verify_equal(v, n, "the number of a block's partial sums", n->value, npartials(v, n->access)) &&
         scope_add(v, has_partials);
}

bool verify_init_partial(Verifying *v, const LoopNode *n) {
  const LoopNode *loop = var_state(v, loop_var(VAR_ELEMENT))->loop;
  if (!verify_partials_of(v, n)) return false;
  return (loop && var_state(v, loop_var(VAR_ELEMENT))->is_set && index_equals(loop->end, npartials(v, n->access)) &&
          v->accesses[n->access].has_partials && n->address.base == BASE_PARTIAL && n->address.access == n->access &&
          index_is_var(n->address.index, loop_var(VAR_ELEMENT))) ||
         verify_fail(v, n, "it must be in a loop over all elements of the block's partial sums, at its element");
}
