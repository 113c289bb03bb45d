// Verifies the scopes, types and places of sums: over a step's elements, in registers, and over a block's iterations,
// in memory (partial sums). What is added to them, and in which order, is proved by running (ir/loops/prove.h).
#include "ir/loops/verifying.h"

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

bool verify_barrier(Verifying *v, const LoopNode *n) {
  return (n->to.buffer == BUFFER_TOTAL && state_of(v, BUFFER_TOTAL, n->to.of)->is_set) ||
         verify_fail(v, n, "the totals must be declared before it");
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

static const LoopNode *declaration(const Verifying *v, const Address *at) {
  return state_of(v, at->buffer, at->of)->node;
}

// Adds accumulators to totals.
static bool verify_run(Verifying *v, const LoopNode *n) {
  const LoopNode *own = declaration(v, &n->from), *total = declaration(v, &n->to);
  return (n->to.buffer == BUFFER_TOTAL && n->to.of == n->from.of && n->to.item == n->from.item &&
          own->count == total->count && n->is_vector == total->is_vector) ||
         verify_fail(v, n, "it must add all accumulators of the sum to as many totals");
}

// Combines partial sums of blocks.
static bool verify_combine(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->to.of];
  if (n->to.buffer != BUFFER_TOTAL || e->op != EXPR_COMBINE || n->from.buffer != BUFFER_TENSOR ||
      n->from.of != e->access || e->loop >= (uint32_t)(v->loop - v->t->schedule->loops) ||
      n->is_vector != declaration(v, &n->to)->is_vector)
    return verify_fail(v, n, "its expression must combine partial sums of an earlier loop, through the same access");
  const Loop *maker = &v->t->schedule->loops[e->loop];
  const LoopNode *loop = var_state(v, loop_var(VAR_COMBINED_BLOCK))->loop;
  const Index *count = number_index(v, loop_ncombined(v->k, maker, e));
  if (loop_has_open_cut_blocks(v->k, maker))
    count = index_of(&v->b, INDEX_MULTIPLY, count, index_loop(&v->b, INDEX_NCUT_BLOCKS, e->loop));
  return verify_address(v, n, &n->from) && loop && verify_equal(v, n, "the number of blocks", loop->end, count);
}

// Adds a value.
static bool verify_addend(Verifying *v, const LoopNode *n) {
  const BufferKind to = n->to.buffer;
  const bool is_sum = to == BUFFER_SUM || to == BUFFER_TOTAL;
  if (n->is_vector != (to == BUFFER_SUM || to == BUFFER_HELD) || !n->expr)
    return verify_fail(v, n, "a vector must be added to accumulators or a register, a scalar to a scalar or element");
  if (is_sum && (v->k->exprs[n->to.of].op == EXPR_COMBINE || declaration(v, &n->to)->is_vector != n->is_vector))
    return verify_fail(v, n, "only partial sums are added to a sum of them, and scalars to scalars");
  if (n->has_fewer_lanes && !has_fewer_lanes(v))
    return verify_fail(v, n, "has_fewer_lanes is set, but all lanes hold elements here");
  return verify_summand(v, n) && (is_sum || verify_partials_of(v, n));
}

bool verify_update(Verifying *v, const LoopNode *n) {
  const bool is_register = buffer_info[n->to.buffer].space == SPACE_REGISTERS;
  if (!is_register && n->to.buffer != BUFFER_PARTIALS)
    return verify_fail(v, n, "it must add to a sum, or to partial sums");
  if (!verify_test(v, n) || !(is_register || n->from.buffer ? verify_base(v, n, &n->to) : verify_address(v, n, &n->to)))
    return false;
  if (!n->from.buffer) return verify_addend(v, n);
  if (n->expr || n->is_fused) return verify_fail(v, n, "it adds a buffer, so it must not add a value");
  return node_ends_run(n) ? verify_base(v, n, &n->from) && verify_run(v, n) : verify_combine(v, n);
}

// The result is a scalar, reduced over lanes, or a vector with a sum in each lane; sums of scalars have no lanes.
bool verify_end_sum(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  if (!verify_base(v, n, &n->from)) return false;
  const LoopNode *begin = declaration(v, &n->from);
  const bool has_lane_sums = v->lanes != NO_DIRECTION && !(e->reduced >> v->lanes & 1);
  const bool is_vector = n->from.buffer == BUFFER_TOTAL ? begin->is_vector : has_lane_sums;
  return (n->from.of == n->expr && !n->test && n->is_vector == is_vector &&
          (!node_is_of_rows(v->t, n) || begin->count == v->loop->rows))
             ? verify_define(v, n)
             : verify_fail(v, n, "it must take all accumulators of the sum, and all lanes unless each has a sum");
}

// Partial sums of blocks

static const Index *npartials(Verifying *v, AccessId id) {
  return nelems_index(v, access_axes(v->k, &v->k->accesses[id]));
}

bool verify_partials(Verifying *v, const LoopNode *n) {
  const bool is_held = n->to.buffer == BUFFER_HELD;
  Scoped *s = state_of(v, n->to.buffer, n->to.of);
  const Index *index = index_unfolded(&v->b, INDEX_MULTIPLY, var_index(v, VAR_BLOCK), npartials(v, n->to.of));
  if (v->is_block == is_held || s->is_set || n->to.item || n->to.index || n->to.of != n->from.of ||
      n->is_vector != is_held || n->from.buffer != (is_held ? BUFFER_PARTIALS : BUFFER_TENSOR))
    return verify_fail(v, n, "partial sums must be declared once in a block, and once where they are held");
  return verify_partials_of(v, n) && verify_test(v, n) &&
         (is_held ? verify_address(v, n, &n->from)
                  : verify_equal(v, n, "the first of a block's partial sums", n->from.index, index)) &&
         scope_add(v, &s->is_set);
}

static bool verify_identity(Verifying *v, const LoopNode *n) {
  const VarState *element = var_state(v, loop_var(VAR_ELEMENT));
  return (element->is_set && element->loop && index_equals(element->loop->end, npartials(v, n->to.of)) &&
          index_is_var(n->to.index, loop_var(VAR_ELEMENT)) && !n->is_vector && !n->has_fewer_lanes) ||
         verify_fail(v, n, "it must be in a loop over all elements of the block's partial sums, at its element");
}

bool verify_store_partial(Verifying *v, const LoopNode *n) {
  if (!verify_partials_of(v, n) || !verify_test(v, n) || !verify_base(v, n, &n->to)) return false;
  if (!n->from.buffer && !n->expr) return verify_identity(v, n);
  if (n->expr || !n->is_vector || n->from.buffer != BUFFER_HELD || n->from.of != n->to.of)
    return verify_fail(v, n, "it must store a vector of partial sums, or one identity");
  return verify_base(v, n, &n->from) && verify_address(v, n, &n->to);
}
