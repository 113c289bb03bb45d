// Verifies the scopes, types and places of sums: over a step's elements, in registers, and over a block's iterations,
// in memory (partial sums). What is added to them, and in which order, is proved by running (ir/loops/prove.h).
#include "ir/loops/verifying.h"

// The node that declares the accumulators, or the totals, that the node takes. NULL after saying that there is none.
static const LoopNode *find_sum(Verifying *v, const LoopNode *n, const Address *at) {
  const bool is_sum = at->buffer == BUFFER_SUM || at->buffer == BUFFER_TOTAL;
  const Scoped *s = state_of(v, at->buffer, at->of);
  if (is_sum && s->is_set && !at->index) return s->node;
  verify_fail(v, n, "the sum must begin before it, in the same place");
  return NULL;
}

bool verify_begin_sum(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->to.of];
  const bool is_total = n->to.buffer == BUFFER_TOTAL, combines = e->op == EXPR_COMBINE;
  Scoped *s = state_of(v, n->to.buffer, n->to.of);
  if (!(expr_is_reduction(e) || combines) || n->count < 1 || n->to.item || n->to.index)
    return verify_fail(v, n, "it must begin accumulators, a total or a scalar of a sum");
  if (combines && (!is_total || n->count != 1 || n->is_vector != (v->t->form[n->to.of] == FORM_VECTOR)))
    return verify_fail(v, n, "it must begin one total of its partial sums, a vector if the sum is one");
  if (!is_total && !n->is_vector) return verify_fail(v, n, "accumulators must be vectors");
  if (is_total && v->k->is_f64 && n->is_vector && !combines) return verify_fail(v, n, "only sums of f32 have totals");
  if (s->is_set) return verify_fail(v, n, "the sum has already begun");
  s->node = n;
  return scope_add(v, &s->is_set);
}

bool verify_leave(Verifying *v, const LoopNode *n) {
  return find_sum(v, n, &n->to);
}

// Whether the item is one of the sum's: of the row, the vector or the element that the node is at.
static bool verify_item(Verifying *v, const LoopNode *n, const Address *at, const LoopNode *begin) {
  const Range *r = &v->range[v->vector];
  const int rows = v->loop->rows, vectors = (int)begin->count / rows;
  const LoopNode *group = r->group.kind ? var_state(v, loop_var(VAR_VECTOR))->loop : NULL;
  const bool is_of_vector = group && index_is(group->end, vectors), is_of_row = is_in_row(v) || n->is_row;
  const bool is_right[] = {[ITEM_ONLY] = begin->count == 1,
                           [ITEM_OF_ROW] = begin->count == rows && rows > 1 && is_of_row,
                           [ITEM_OF_VECTOR] = is_of_vector && vectors > 1 && rows == 1,
                           [ITEM_OF_BOTH] = is_of_vector && begin->count == vectors * rows && rows > 1 && is_of_row,
                           [ITEM_FIRST] = begin->count > 1,
                           [ITEM_OF_ELEMENT] = begin->count == tree_element_sums(v->t, at->of)};
  return is_right[at->item] || verify_fail(v, n, "it takes accumulator sum%s, but there are %lld",
                                           item_indices[at->item], (long long)begin->count);
}

static bool verify_summand(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  if (!n->is_fused) return verify_operand(v, n, n->expr, n->is_vector);
  if (e->op != EXPR_MUL || node_reduction(v->t, n) != EXPR_REDUCE_SUM || node_is_widened(v->t, n) || !n->is_vector)
    return verify_fail(v, n, "only a sum of vectors of products, in the type of the products, can be fused");
  return verify_operand(v, n, e->args[0], true) && verify_operand(v, n, e->args[1], true);
}

static bool verify_partials_of(Verifying *v, const LoopNode *n) {
  return root_of(v, ROOT_REDUCE_OUTER, node_access(n)) ||
         verify_fail(v, n, "its access is not the access of partial sums of the loop");
}

static bool verify_is_held(Verifying *v, const LoopNode *n, const Address *at) {
  return (at->buffer == BUFFER_HELD && at->of == node_access(n) && !at->item && !at->index &&
          state_of(v, BUFFER_HELD, node_access(n))->is_set) ||
         verify_fail(v, n, "its partial sums must be loaded into a register before it");
}

static bool verify_run(Verifying *v, const LoopNode *n) {
  const LoopNode *own = find_sum(v, n, &n->from), *total = own ? find_sum(v, n, &n->to) : NULL;
  if (!total) return false;
  if (n->to.buffer != BUFFER_TOTAL || n->to.of != n->from.of || n->to.item != n->from.item ||
      own->count != total->count || n->is_vector != total->is_vector || n->is_row != (v->loop->rows > 1))
    return verify_fail(v, n, "it must add all accumulators of the sum to as many totals");
  return verify_item(v, n, &n->from, own);
}

// Combines partial sums of blocks.
static bool verify_combine(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->to.of];
  const LoopNode *total = find_sum(v, n, &n->to);
  if (!total) return false;
  if (e->op != EXPR_COMBINE || node_access(n) != e->access || e->loop >= (uint32_t)(v->loop - v->t->schedule->loops) ||
      n->is_vector != total->is_vector)
    return verify_fail(v, n, "its expression must combine partial sums of an earlier loop, through the same access");
  return verify_item(v, n, &n->to, total) && (!n->is_vector || verify_lanes(v, n)) && verify_combined_address(v, n, e);
}

bool verify_update(Verifying *v, const LoopNode *n) {
  const BufferKind to = n->to.buffer;
  if (n->is_row && !node_ends_run(n)) return verify_fail(v, n, "only ends of runs are repeated for each row");
  if (n->from.buffer && (n->expr || n->is_fused))
    return verify_fail(v, n, "it adds a buffer, so it must not add a value");
  if (node_ends_run(n)) return verify_run(v, n);
  if (n->from.buffer) return verify_combine(v, n);
  if (n->is_vector != (to == BUFFER_SUM || to == BUFFER_HELD) || !n->expr)
    return verify_fail(v, n, "a vector must be added to accumulators or a register, a scalar to a scalar or element");
  if (n->has_fewer_lanes && !has_fewer_lanes(v))
    return verify_fail(v, n, "has_fewer_lanes is set, but all lanes hold elements here");
  if ((to == BUFFER_SUM || to == BUFFER_TOTAL) && v->k->exprs[n->to.of].op == EXPR_COMBINE)
    return verify_fail(v, n, "only partial sums are added to a sum of partial sums");
  if (!verify_summand(v, n) || !verify_test(v, n)) return false;
  if (to == BUFFER_PARTIALS || to == BUFFER_HELD)
    return verify_partials_of(v, n) &&
           (to == BUFFER_HELD ? verify_is_held(v, n, &n->to) : verify_partial_address(v, n, &n->to));
  const LoopNode *begin = find_sum(v, n, &n->to);
  return begin && (begin->is_vector == n->is_vector || verify_fail(v, n, "the sum is of vectors, or of scalars")) &&
         verify_item(v, n, &n->to, begin);
}

// The result is a scalar, reduced over lanes, or a vector with a sum in each lane; sums of scalars have no lanes.
bool verify_end_sum(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  const LoopNode *begin = find_sum(v, n, &n->from);
  if (!begin) return false;
  const bool has_lane_sums = v->lanes != NO_DIRECTION && !(e->reduced >> v->lanes & 1);
  const bool is_vector = n->from.buffer == BUFFER_TOTAL ? begin->is_vector : has_lane_sums;
  if (n->from.of != n->expr || n->is_vector != is_vector || (n->is_row && begin->count != v->loop->rows))
    return verify_fail(v, n, "it must take all accumulators of the sum, and all lanes unless each has a sum");
  const bool is_all = tree_element_sums(v->t, n->expr) && n->from.item == ITEM_ONLY;
  return (is_all || verify_item(v, n, &n->from, begin)) && verify_define(v, n);
}

// Partial sums of blocks

static bool verify_held(Verifying *v, const LoopNode *n, const Address *part) {
  if (v->lanes == NO_DIRECTION) return verify_fail(v, n, "it is a vector, but the loop has no axis of vectors");
  return verify_partials_of(v, n) && verify_test(v, n) && verify_partial_address(v, n, part) && verify_lanes(v, n);
}

bool verify_hold(Verifying *v, const LoopNode *n) {
  Scoped *s = state_of(v, BUFFER_HELD, node_access(n));
  if (!n->is_vector || n->to.of != node_access(n) || n->to.item || n->to.index)
    return verify_fail(v, n, "it must load one vector of partial sums");
  if (!verify_held(v, n, &n->from)) return false;
  return s->is_set ? verify_fail(v, n, "the vector is already in a register") : scope_add(v, &s->is_set);
}

static const Index *npartials(Verifying *v, AccessId id) {
  return nelems_index(v, access_axes(v->k, &v->k->accesses[id]));
}

bool verify_partials(Verifying *v, const LoopNode *n) {
  Scoped *s = state_of(v, BUFFER_PARTIALS, node_access(n));
  const Index *index = index_unfolded(&v->b, INDEX_MULTIPLY, var_index(v, VAR_BLOCK), npartials(v, node_access(n)));
  if (!v->is_block || s->is_set || n->to.of != node_access(n) || n->to.item || n->from.buffer != BUFFER_TENSOR ||
      n->from.of != node_access(n) || !verify_partials_of(v, n))
    return verify_fail(v, n, "partial sums must be declared once, in a block");
  return verify_equal(v, n, "the first of a block's partial sums", n->from.index, index) && scope_add(v, &s->is_set);
}

static bool verify_identity(Verifying *v, const LoopNode *n) {
  const LoopNode *loop = var_state(v, loop_var(VAR_ELEMENT))->loop;
  return (loop && var_state(v, loop_var(VAR_ELEMENT))->is_set &&
          index_equals(loop->end, npartials(v, node_access(n))) &&
          state_of(v, BUFFER_PARTIALS, node_access(n))->is_set && n->to.of == node_access(n) && !n->to.item &&
          index_is_var(n->to.index, loop_var(VAR_ELEMENT))) ||
         verify_fail(v, n, "it must be in a loop over all elements of the block's partial sums, at its element");
}

bool verify_store_partial(Verifying *v, const LoopNode *n) {
  if (!verify_partials_of(v, n)) return false;
  if (n->expr || n->is_vector != (n->from.buffer != BUFFER_NONE) || n->has_fewer_lanes > n->is_vector)
    return verify_fail(v, n, "it must store a vector of partial sums, or one identity");
  if (!n->from.buffer) return verify_identity(v, n);
  return verify_held(v, n, &n->to) && verify_is_held(v, n, &n->from);
}
