// Verifies sums over a step's elements, which are in registers, and over a block's iterations, in memory (partial
// sums).
#include "ir/loops/verifying.h"

// The root of the node's sum. NULL after saying that there is none.
static const Root *sum_root(Verifying *v, const LoopNode *n) {
  const Root *found = NULL;
  for (size_t i = 0; i < v->loop->nroots; i++)
    if (v->loop->roots[i].kind == ROOT_REDUCE_INNER && v->loop->roots[i].expr == n->expr) found = &v->loop->roots[i];
  if (!found) verify_fail(v, n, "its expression is not a sum that the loop computes");
  return found;
}

// With sums in lanes, each vector of a group has an accumulator.
static int nvectors(const Verifying *v) {
  const Range *r = &v->range[v->vector];
  return loop_sums_in_lanes(v->loop) && r->is_piece && r->width > LANES ? (int)(r->width / LANES) : 1;
}

// Whether each lane has a sum of its own: lanes are not added up at the end.
static bool has_lane_sums(const Verifying *v, ExprId sum) {
  return v->lanes != NO_DIRECTION && !(v->k->exprs[sum].reduced >> v->lanes & 1);
}

static bool is_in_middle_group(const Verifying *v) {
  return loop_sums_in_lanes(v->loop) && v->range[v->vector].group.kind;
}

// The loop depth at which a sum that ends here must have begun. A sum for each vector of a group ends inside the loop
// over these vectors, but began outside of that loop; likewise a vector of sums for each row.
static int depth_of_end(const Verifying *v) {
  return v->nframes - is_in_middle_group(v) - is_in_row(v);
}

static AccumulatorChoice choose_accumulator(bool is_row, bool is_in_group, AccumulatorChoice otherwise) {
  if (!is_row) return is_in_group ? ACCUMULATOR_OF_VECTOR : otherwise;
  return is_in_group ? ACCUMULATOR_OF_BOTH : ACCUMULATOR_OF_ROW;
}

bool verify_begin_sum(Verifying *v, const LoopNode *n) {
  if (node_combines(v->t, n)) return verify_begin_combination(v, n);
  const Root *root = sum_root(v, n);
  if (!root) return false;
  const bool is_total = n->sum == SUM_TOTAL;
  Accumulators *a = is_total ? &sum_of(v, root)->total : &sum_of(v, root)->own;
  const int elements = n->sum == SUM_ACCUMULATOR ? tree_element_sums(v->t, n->expr) : 0;
  const int count = n->sum == SUM_SCALAR ? 1 : elements ? elements : nvectors(v) * v->loop->rows;
  if (n->sum > SUM_SCALAR) return verify_fail(v, n, "its sum must be in registers");
  if (is_total && v->k->is_f64) return verify_fail(v, n, "only sums of f32 have totals");
  if (n->count != count) return verify_fail(v, n, "it has %d accumulators, expected %d", n->count, count);
  if (a->is_there || v->done[effect_of(v, root, is_total ? EFFECT_PREPARED : EFFECT_DONE)])
    return verify_fail(v, n, "the sum has already begun");
  a->node = n;
  a->depth = v->nframes;
  return scope_add_open(v, &a->is_there, &a->is_open, n, "the sum begins here and never ends");
}

bool verify_leave(Verifying *v, const LoopNode *n) {
  const Root *root = sum_root(v, n);
  return root && (sum_of(v, root)->total.is_there || verify_fail(v, n, "its total must begin before it"));
}

// Updates

static bool verify_fused(Verifying *v, const LoopNode *n, const Root *root, ExprId operand) {
  const Expr *e = &v->k->exprs[operand];
  if (n->is_fused != root->order->is_fused) return verify_fail(v, n, "is_fused differs from the loop's result");
  if (n->is_fused &&
      (e->op != EXPR_MUL || node_reduction(v->t, n) != EXPR_REDUCE_SUM || node_is_widened(v->t, n) || !n->is_vector))
    return verify_fail(v, n, "only a sum of vectors of products, in the type of the products, can be fused");
  if (!n->is_fused) return verify_operand(v, n, operand, n->is_vector);
  return verify_operand(v, n, e->args[0], true) && verify_operand(v, n, e->args[1], true);
}

// The accumulator must be the element's, the row's, or the vector's in a group of vectors, else the only one.
static bool verify_accumulator(Verifying *v, const LoopNode *n, int count) {
  const Range *r = &v->range[v->vector];
  if (tree_element_sums(v->t, n->expr))
    return n->accumulator == ACCUMULATOR_OF_ELEMENT ||
           verify_fail(v, n, "it must add to the accumulator of its element");
  const bool is_in_group = r->group.kind && count > 1;
  const AccumulatorChoice accumulator = choose_accumulator(is_in_row(v), is_in_group, ACCUMULATOR_ONLY);
  if (v->loop->rows > 1 && !is_in_row(v)) return verify_fail(v, n, "it must be in a loop over rows");
  if (n->accumulator != accumulator)
    return verify_fail(v, n, "it adds to accumulator sum%s, expected sum%s", accumulator_indices[n->accumulator],
                       accumulator_indices[accumulator]);
  return !is_in_group || frame_find(v, VAR_VECTOR)->node->end->number * v->loop->rows == count ||
         verify_fail(v, n, "a group must have as many vectors as there are accumulators");
}

// Each operand is added once: the loops since the sum began cover the reduced axes. Loops over rows, and over vectors
// that have a sum each, are allowed, too.
static bool verify_summed(Verifying *v, const LoopNode *n, int since, AxisSet reduced) {
  Directions over = reduced;
  for (int i = since; i < v->nframes; i++) {
    const VarKind kind = v->frames[i].node ? v->frames[i].node->var.kind : VAR_NONE;
    if (kind == VAR_ROW) over |= 1U << OUTER;
    if (kind == VAR_VECTOR) over |= 1U << v->vector;
    if (v->frames[i].node && v->frames[i].node->is_down)
      return verify_fail(v, n,
                         "it must add elements in the order of their indices, but a loop around it goes backwards");
  }
  return verify_goes_over(v, n, since, over, n->is_vector);
}

// Whether the sum is cut into the runs that the loop's order prescribes, each with new accumulators.
static bool verify_runs_of(Verifying *v, const LoopNode *n, const Root *root) {
  const SumState *s = sum_of(v, root);
  const Loop *loop = v->loop;
  const Runs runs = loop_runs(v->k, loop);
  const bool has_runs = sum_order_has_runs(root->order);
  const Frame *f = s->total.is_there && s->own.depth > s->total.depth ? &v->frames[s->own.depth - 1] : NULL;
  if (has_runs != (f != NULL))
    return verify_fail(v, n,
                       has_runs ? "the loop has runs, but the sum is not cut into runs"
                                : "the sum is cut into runs, but the loop has no runs");
  if (!f) return true;
  const bool is_middle = loop->ninner > 1 && f->direction == loop->axes[loop->nouter + runs.depth];
  const VarKind kind = f->node->var.kind;
  const Index *step = f->node->step;
  const bool is_of_vectors = runs.vector_run && (!runs.is_open || v->chain == CHAIN_LONG);
  const bool is_run = is_of_vectors  ? kind == VAR_RUN_BEGIN && index_is(step, runs.vector_run)
                      : runs.is_open ? is_middle && kind == VAR_RUN && !index_is_literal(step)
                      : runs.middle_run == 1 && kind == VAR_AXIS
                          ? is_middle
                          : is_middle && kind == VAR_RUN && index_is(step, runs.middle_run);
  return is_run || verify_fail(v, n, "the length of its runs differs from the loop's");
}

// Lanes without elements must not enter a sum over lanes.
static bool verify_summed_lanes(Verifying *v, const LoopNode *n) {
  if (!verify_fewer_lanes(v, n)) return false;
  return !n->is_vector || !has_fewer_lanes(v) || n->has_fewer_lanes || has_lane_sums(v, n->expr) ||
         verify_fail(v, n, "has_fewer_lanes is unset, but lanes without elements would enter the sum");
}

static bool update_sum(Verifying *v, const LoopNode *n) {
  const Root *root = sum_root(v, n);
  if (!root) return false;
  const SumState *s = sum_of(v, root);
  const Expr *e = &v->k->exprs[n->expr];
  const bool is_scalar = n->sum == SUM_SCALAR;
  if (!s->own.is_there || s->own.node->sum != n->sum) return verify_fail(v, n, "the sum must begin before it");
  if (!s->own.is_open) return verify_fail(v, n, "the sum has already ended");
  if (n->is_vector == is_scalar || n->flag || (is_scalar && n->accumulator != ACCUMULATOR_ONLY))
    return verify_fail(v, n, "is_vector and the accumulator must be those of its sum, and the flag must be unset");
  const int since = s->total.is_there ? s->total.depth : s->own.depth;
  return verify_fused(v, n, root, e->args[0]) && verify_summed(v, n, since, e->reduced) && verify_summed_lanes(v, n) &&
         (is_scalar || (verify_accumulator(v, n, s->own.node->count) && verify_runs_of(v, n, root))) &&
         effect_do(v, n, effect_of(v, root, EFFECT_DONE));
}

// Updates of partial sums of blocks

static const Root *partial_root(Verifying *v, const LoopNode *n) {
  const Root *root = root_of(v, n->access);
  if (root && root->kind == ROOT_REDUCE_OUTER) return root;
  verify_fail(v, n, "its access is not the access of partial sums of the loop");
  return NULL;
}

// The address of an element in the block's partial sums.
static bool verify_block_partial_address(Verifying *v, const LoopNode *n) {
  const Linear expected = access_index(v, n->access, v->inner);
  if (n->address.base != BASE_PARTIAL || n->address.access != n->access || n->address.is_row)
    return verify_fail(v, n, "its address must be in the block's partial sums");
  if (!verify_index(v, n, n->address.index)) return false;
  const Linear is = linear_of(v, n->address.index);
  if (!linear_equals(&is, &expected)) return verify_fail(v, n, "its address differs from the address of its element");
  const bool is_wanted = n->flag == FLAG_HAS_PARTIAL || is_guarded(v, FLAG_HAS_PARTIAL, n->access);
  if (!verify_flag(v, n)) return false;
  return is_wanted || !v->memory[n->access].may_be_null ||
         verify_fail(v, n, "the caller may not want its partial sums, so it must depend on FLAG_HAS_PARTIAL");
}

static bool update_partial(Verifying *v, const LoopNode *n) {
  const Root *root = partial_root(v, n);
  if (!root) return false;
  const bool is_in_register = n->sum == SUM_PARTIAL_REGISTER;
  const AxisSet inner = v->k->exprs[n->expr].axes & v->inner;
  if (n->expr != root->expr) return verify_fail(v, n, "its operand must be that of the loop's result");
  if (n->is_vector != is_in_register || n->accumulator != ACCUMULATOR_ONLY)
    return verify_fail(v, n,
                       "is_vector, the place of the sum or its accumulator does not suit the loop's partial sums");
  if (is_in_register && !v->memory[n->access].is_in_register)
    return verify_fail(v, n, "its partial sums must be loaded into a register before it");
  if (n->flag && n->flag != FLAG_HAS_PARTIAL)
    return verify_fail(v, n, "the only flag that it may depend on is FLAG_HAS_PARTIAL");
  return verify_fused(v, n, root, n->expr) && verify_goes_over(v, n, 0, directions_of(v, inner), n->is_vector) &&
         verify_fewer_lanes(v, n) && verify_flag(v, n) && (is_in_register || verify_block_partial_address(v, n)) &&
         effect_do(v, n, effect_of(v, root, EFFECT_DONE));
}

bool verify_update(Verifying *v, const LoopNode *n) {
  if (!n->expr) return verify_fail(v, n, "its expression does not exist");
  if (n->sum == SUM_ACCUMULATOR || n->sum == SUM_SCALAR) return update_sum(v, n);
  return n->sum == SUM_TOTAL ? verify_fail(v, n, "operands must be added to accumulators, not to totals")
                             : update_partial(v, n);
}

// Ends of runs and sums

// Ends accumulators or totals, which the effect `fed` adds to. An empty sum has no operands.
static bool end_accumulators(Verifying *v, const LoopNode *n, const Root *root, Accumulators *a, Effect fed) {
  if (!a->is_there || a->depth != depth_of_end(v))
    return verify_fail(v, n, "the sum must end in the list of nodes in which it began");
  if (!a->is_open) return verify_fail(v, n, "the sum has already ended");
  if (!v->done[effect_of(v, root, fed)] && axes_nelems(v->k, v->k->exprs[root->expr].reduced))
    return verify_fail(v, n, "no operands are added to the sum before it");
  a->is_open = false;
  return true;
}

bool verify_end_run(Verifying *v, const LoopNode *n) {
  const Root *root = sum_root(v, n);
  const bool has_rows = v->loop->rows > 1;
  if (!root || !end_accumulators(v, n, root, &sum_of(v, root)->own, EFFECT_DONE)) return false;
  if (!sum_of(v, root)->total.is_there) return verify_fail(v, n, "the total must begin before it");
  if (n->is_row != has_rows || n->accumulator != choose_accumulator(has_rows, is_in_middle_group(v), ACCUMULATOR_ONLY))
    return verify_fail(v, n, "it must add all accumulators of the sum to the total");
  return effect_do(v, n, effect_of(v, root, EFFECT_PREPARED));
}

// The result is a scalar, reduced over lanes, or a vector with a sum in each lane; SUM_SCALAR has no lanes.
static bool verify_end_form(Verifying *v, const LoopNode *n) {
  const bool has_rows = v->loop->rows > 1 && n->sum != SUM_SCALAR;
  const bool is_row = v->t->form[n->expr] == FORM_ROWS, is_vector = n->sum != SUM_SCALAR && has_lane_sums(v, n->expr);
  const bool is_of_row = is_row || (is_vector && has_rows);
  const AccumulatorChoice accumulator = has_rows && !is_of_row
                                            ? ACCUMULATOR_FIRST
                                            : choose_accumulator(is_of_row, is_in_middle_group(v), ACCUMULATOR_ONLY);
  if (is_vector && has_rows && !is_in_row(v)) return verify_fail(v, n, "it must be in a loop over rows");
  return (n->is_vector == is_vector && n->is_row == is_row && n->accumulator == accumulator) ||
         verify_fail(v, n, "it must take all accumulators of the sum");
}

bool verify_end_sum(Verifying *v, const LoopNode *n) {
  if (node_combines(v->t, n)) return verify_end_combination(v, n);
  const Root *root = sum_root(v, n);
  if (!root) return false;
  SumState *s = sum_of(v, root);
  const bool has_total = s->total.is_there;
  Accumulators *a = has_total ? &s->total : &s->own;
  if (!end_accumulators(v, n, root, a, has_total ? EFFECT_PREPARED : EFFECT_DONE) || !verify_end_form(v, n))
    return false;
  if (n->sum != a->node->sum || (has_total && s->own.is_there))
    return verify_fail(v, n, "it must take the sum from the place where it began, after the last run");
  s->is_ever_done = true;
  const Index *one = has_total ? index_is_one_run(&v->b, v->k, v->loop, v->k->exprs[n->expr].reduced) : NULL;
  if ((one || n->test) && (!one || !n->test || !index_equals(n->test, one)))
    return verify_fail(v, n, "it must test whether the sum has a single run");
  return verify_define(v, n);
}

// Partial sums of blocks

static bool verify_partial_vector(Verifying *v, const LoopNode *n) {
  if (!partial_root(v, n) || !verify_block_partial_address(v, n)) return false;
  if (v->lanes == NO_DIRECTION) return verify_fail(v, n, "it is a vector, but the loop has no axis of vectors");
  if (!verify_lanes(v, n)) return false;
  return verify_has_axes(v, n, access_axes(v->k, &v->k->accesses[n->access]), true);
}

bool verify_load_partial(Verifying *v, const LoopNode *n) {
  if (!verify_partial_vector(v, n)) return false;
  Memory *m = &v->memory[n->access];
  if (m->is_in_register) return verify_fail(v, n, "the vector is already in a register");
  m->load = n;
  return scope_add_open(v, &m->is_in_register, &m->is_in_register, n,
                        "the vector of partial sums is loaded here and never stored again");
}

bool verify_store_partial(Verifying *v, const LoopNode *n) {
  if (!verify_partial_vector(v, n)) return false;
  Memory *m = &v->memory[n->access];
  if (!m->is_in_register || !index_equals(m->load->address.index, n->address.index))
    return verify_fail(v, n, "the vector must be stored at the address that it was loaded from");
  if (!v->done[effect_of(v, root_of(v, n->access), EFFECT_DONE)])
    return verify_fail(v, n, "the vector must be updated before it is stored");
  m->is_in_register = false;
  return true;
}

static const Index *npartials(Verifying *v, AccessId id) {
  return nelems_index(v, access_axes(v->k, &v->k->accesses[id]));
}

bool verify_partials(Verifying *v, const LoopNode *n) {
  if (!partial_root(v, n)) return false;
  Memory *m = &v->memory[n->access];
  if (!v->is_block || m->has_partials) return verify_fail(v, n, "partial sums must be declared once, in a block");
  if (n->flag && n->flag != FLAG_HAS_ALL_PARTIALS)
    return verify_fail(v, n, "the only flag that it may depend on is FLAG_HAS_ALL_PARTIALS");
  return verify_equal(v, n, "the number of a block's partial sums", n->value, npartials(v, n->access)) &&
         scope_add(v, &m->has_partials);
}

// Whether the only loop around the node goes over all elements of the array.
static bool verify_elements(Verifying *v, const LoopNode *n, const Index *count) {
  const Frame *f = v->nframes == 1 ? &v->frames[0] : NULL;
  const bool is_all = f && f->node->var.kind == VAR_ELEMENT && index_equals(f->node->end, count);
  return is_all || verify_fail(v, n, "it must be in a single loop over all elements of the partial sums");
}

bool verify_init_partial(Verifying *v, const LoopNode *n) {
  const Root *root = partial_root(v, n);
  if (!root || !verify_elements(v, n, npartials(v, n->access))) return false;
  const Memory *m = &v->memory[n->access];
  const Index *at = n->address.index;
  if (!m->has_partials) return verify_fail(v, n, "its partial sums must be declared before it");
  if (n->address.base != BASE_PARTIAL || n->address.access != n->access || !at || at->op != INDEX_VAR ||
      at->var.kind != VAR_ELEMENT)
    return verify_fail(v, n, "its address differs from the address of its element");
  if (m->may_be_null && !is_guarded(v, FLAG_HAS_PARTIAL, n->access))
    return verify_fail(v, n, "the caller may not want its partial sums, so it must depend on FLAG_HAS_PARTIAL");
  return effect_do(v, n, effect_of(v, root, EFFECT_PREPARED));
}
