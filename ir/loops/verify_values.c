// Verifies how values are computed and loaded.
#include "ir/loops/verifying.h"

// Values of expressions

bool verify_operand(Verifying *v, const LoopNode *n, ExprId id, bool is_vector) {
  if (!id) return verify_fail(v, n, "it must have an operand");
  const Form form = v->t->form[id];
  if (form == FORM_NUMBER) return true;
  if (!v->made[id].is_made) return verify_fail_expr(v, n, id, "must be computed before it");
  if (form == FORM_VECTOR && !is_vector) return verify_fail_expr(v, n, id, "is a vector, expected a scalar");
  if (form == FORM_ROWS && !is_in_row(v))
    return verify_fail_expr(v, n, id, "differs from row to row, so it must be used in a loop over rows");
  return true;
}

// Scalars that differ from row to row are elements of an array declared before (LOCAL_SCALARS), and stay in scope for
// later loops over rows.
bool verify_define(Verifying *v, const LoopNode *n) {
  const Form form = n->is_row ? FORM_ROWS : n->is_vector ? FORM_VECTOR : FORM_SCALAR;
  Made *made = &v->made[n->expr];
  if (v->t->form[n->expr] != form)
    return verify_fail_expr(v, n, n->expr, "has another form (scalar, rows or vector) in the tree's table");
  if (made->is_made) return verify_fail_expr(v, n, n->expr, "is already computed");
  if (form != FORM_ROWS || n->kind != NODE_LET) return scope_add(v, &made->is_made);
  if (!made->is_declared)
    return verify_fail_expr(v, n, n->expr, "must have a declared array with an element for each row");
  if (!is_in_row(v) || v->nguards) return verify_fail(v, n, "it must be in an unconditional loop over rows");
  made->is_made = true;
  return true;
}

// Conditions of loads with bounds: exactly the elements inside of the tensor are loaded.

static bool is_index_of(const Verifying *v, const Index *i, const Bound *b) {
  Linear expected = {0};
  const Linear is = linear_of(v, i);
  linear_add_number(&expected, b->offset, 0);
  for (int axis = 0; axis < v->k->naxes; axis++)
    linear_add_var(&expected, VAR_AXIS, (uint32_t)axis, b->factor[axis], 0);
  return linear_equals(&is, &expected);
}

static bool is_test_of(const Verifying *v, const Index *test, const Bound *b) {
  return test && test->op == INDEX_LESS && index_is(test->args[1], b->extent) && is_index_of(v, test->args[0], b);
}

// Removes the last test of a conjunction and returns it; NULL: there is none.
static const Index *take_last(const Index **tests) {
  const Index *last = *tests;
  const bool has_others = last && last->op == INDEX_BOTH;
  *tests = has_others ? last->args[0] : NULL;
  return has_others ? last->args[1] : last;
}

static bool verify_bounds(Verifying *v, const LoopNode *n) {
  const bool is_load = v->k->exprs[n->expr].op == EXPR_LOAD && n->load != LOAD_SPILLED;
  const Access *a = &v->k->accesses[n->access];
  const Bound *of_lanes = node_lane_bound(v->t, n);
  const Index *tests = n->inside;
  if (!verify_index(v, n, n->inside) || !verify_index(v, n, n->within)) return false;
  if (is_load && access_has_conditions(v->k, a) && n->address.base != BASE_TENSOR)
    return verify_fail(
        v, n, "a load with conditions must be relative to its tensor: a row pointer may point outside of the tensor");
  for (size_t i = is_load ? a->nbounds : 0; i-- > 0;) {
    const Bound *b = &a->bounds[i];
    if (b != of_lanes && !bound_always_holds(v->k, b) && !is_test_of(v, take_last(&tests), b))
      return verify_fail(v, n, "its condition must test its access's bounds in order: 0 <= index < %lld for bound %zu",
                         (long long)b->extent, i);
  }
  if (of_lanes ? !n->within || !is_index_of(v, n->within, of_lanes) : n->within != NULL)
    return verify_fail(v, n, "its condition on lanes must have the index of the bound that varies from lane to lane");
  return !tests || verify_fail(v, n, "it has a condition that tests no bound of its access");
}

// Loads

static bool verify_load_spilled(Verifying *v, const LoopNode *n) {
  Linear address;
  if (!verify_spilled(v, n, &address)) return false;
  const int spill = find_spill(v, n->expr);
  const SpillState *spilled = &v->spilled[spill];
  if (!v->done[effect_of_spill(v, spill)] || is_in_frame(v, spilled->serial))
    return verify_fail_expr(v, n, n->expr, "must be spilled by an earlier sweep");
  return linear_equals(&address, spilled->address) ||
         verify_fail(v, n, "its address differs from the address at which the vector was spilled");
}

static bool verify_load_copied(Verifying *v, const LoopNode *n) {
  const Memory *m = &v->memory[n->access];
  if (!verify_copied(v, n, n->access, &n->address)) return false;
  return (m->is_copied && !is_in_frame(v, m->copy_serial)) || verify_fail(v, n, "its rows must be copied before it");
}

static bool verify_load(Verifying *v, const LoopNode *n, const Expr *e) {
  const Access *a = &v->k->accesses[e->access];
  const Root *root = root_of(v, e->access);
  const int lane_axis = loop_lane_axis(v->loop);
  if (root && root->kind == ROOT_STORE && !v->done[effect_of(v, root, EFFECT_DONE)])
    return verify_fail(v, n, "it loads a result that must be stored before it");
  if (e->args[0] && !verify_operand(v, n, e->args[0], n->load == LOAD_GATHERED)) return false;
  if (n->load == LOAD_COPIED) return verify_load_copied(v, n);
  if (!verify_access(v, n, e->access)) return false;
  if (!n->is_vector) return n->load == LOAD_ELEMENT || verify_fail(v, n, "a scalar load must load one element");
  if (access_is_mask(a) && v->lanes == v->vector)
    return (n->load == LOAD_DENSE && v->range[v->vector].is_aligned) ||
           verify_fail(v, n, "a vector of a bit mask must begin at a whole byte");
  if (n->load == LOAD_BROADCAST)
    return !a->stride[lane_axis] ||
           verify_fail(v, n, "it loads one element for all lanes, but the element differs from lane to lane");
  if (!is_at_panel(v, a)) return verify_fail(v, n, "a vector of a panel must begin at the panel's first lane");
  if (n->load == LOAD_GATHERED ? !e->args[0] : (n->load == LOAD_DENSE) != (access_lane_stride(a, lane_axis) == 1))
    return verify_fail(v, n,
                       "its load must be dense if the stride from lane to lane is 1, and else strided or gathered");
  if (n->load != LOAD_DENSE && n->load != LOAD_STRIDED && n->load != LOAD_GATHERED)
    return verify_fail(v, n, "a vector's load must be dense, strided or gathered");
  return verify_lane_step(v, n, e->access);
}

// Computed values

static bool verify_coordinate(Verifying *v, const LoopNode *n, const Expr *e) {
  const int axis = __builtin_ctz(e->axes);
  if (!n->is_vector)
    return var_state(v, (Var){VAR_AXIS, (uint32_t)axis})->is_set ||
           verify_fail(v, n, "the index on its axis must be set before it");
  Linear is = linear_of(v, n->value), expected = {0};
  linear_add_var(&expected, VAR_AXIS, (uint32_t)axis, 1, 0);
  return (verify_index(v, n, n->value) && axis == loop_lane_axis(v->loop) && linear_equals(&is, &expected)) ||
         verify_fail(v, n, "its value must be the index on its axis, which lanes must lie along");
}

static bool verify_operands(Verifying *v, const LoopNode *n, const Expr *e) {
  const bool is_vector = n->is_vector && e->op != EXPR_IS_KEPT;
  for (int a = 0; a < expr_info[e->op].narguments; a++)
    if (!verify_operand(v, n, e->args[a], is_vector)) return false;
  if (e->op != EXPR_IS_KEPT) return true;
  return verify_access(v, n, e->access) && (!n->is_vector || verify_lane_step(v, n, e->access));
}

bool verify_let(Verifying *v, const LoopNode *n) {
  if (!n->expr) return verify_fail(v, n, "its expression does not exist");
  const Expr *e = &v->k->exprs[n->expr];
  if (n->is_vector && !verify_lanes(v, n)) return false;
  if (!n->is_vector && n->has_fewer_lanes) return verify_fail(v, n, "has_fewer_lanes is set, but it is a scalar");
  if (expr_has_access(e) && n->load != LOAD_SPILLED && n->access != e->access)
    return verify_fail(v, n, "its access differs from the access of its expression");
  if (!verify_has_axes(v, n, e->axes, n->is_vector)) return false;
  bool ok;
  if (expr_is_reduction(e) || e->op == EXPR_COMBINE)
    ok = verify_fail(v, n, "its expression is a sum, which NODE_LET cannot compute");
  else if (n->load == LOAD_SPILLED) ok = verify_load_spilled(v, n);
  else if (e->op == EXPR_LOAD) ok = verify_load(v, n, e);
  else if (n->load) ok = verify_fail(v, n, "it has a load, but its expression is not a load");
  else if (e->op == EXPR_INDEX) ok = verify_coordinate(v, n, e);
  else ok = verify_operands(v, n, e);
  return ok && verify_bounds(v, n) && verify_define(v, n);
}

// Combination of partial sums

// The index of a partial sum in the temporary [free axes, block, the block's array], without the terms of the axes
// `but`.
static Linear partial_index(const Verifying *v, const Expr *e, AxisSet but) {
  const Kernel *k = v->k;
  const Loop *maker = &v->t->schedule->loops[e->loop];
  const bool is_open = loop_has_open_cut_blocks(k, maker);
  const AxisSet own = access_axes(k, &k->accesses[e->access]);
  Linear l = access_index(v, e->access, own & ~but);
  linear_add_var(&l, VAR_COMBINED_BLOCK, 0, axes_nelems(k, own), axes_monomial(k, own));
  AxisSet below = own;
  for (int at = maker->nfree; at-- > 0; below |= 1U << maker->axes[at]) {
    const int axis = maker->axes[at];
    if (but >> axis & 1) continue;
    linear_add(&l, (Term){.number = axes_nelems(k, below) * (is_open ? 1 : loop_ncut_blocks(k, maker)),
                          .monomial = axes_monomial(k, below),
                          .of_loop = is_open ? INDEX_NCUT_BLOCKS : INDEX_NUMBER,
                          .loop = is_open ? e->loop : 0,
                          .var = {VAR_AXIS, (uint32_t)axis},
                          .divisor = 1});
  }
  return l;
}

static bool verify_partial_address(Verifying *v, const LoopNode *n, const Expr *e) {
  Linear expected = partial_index(v, e, 0), stride = expected;
  if (!verify_address(v, n, e->access, &expected)) return false;
  if (!n->is_vector) return true;
  const Linear others = partial_index(v, e, 1U << v->vector), step = linear_of(v, n->step);
  linear_add_all(&stride, &others, -1);
  for (int i = 0; i < stride.nterms; i++) stride.terms[i].var = loop_var(VAR_NONE);
  return (n->step && linear_equals(&step, &stride)) ||
         verify_fail(v, n, "its step must be the stride from lane to lane");
}

bool verify_begin_combination(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  Combination *c = &v->combinations[n->expr];
  if (n->access != e->access) return verify_fail(v, n, "its access differs from the access of its expression");
  if (e->loop >= (uint32_t)(v->loop - v->t->schedule->loops))
    return verify_fail(v, n, "its partial sums must be computed by an earlier loop");
  if (n->sum != (v->t->form[n->expr] == FORM_VECTOR ? SUM_TOTAL : SUM_SCALAR) || n->count != 1)
    return verify_fail(v, n, "it must begin one total, a vector if the sum is one");
  if (c->total.is_there) return verify_fail(v, n, "the sum has already begun");
  *c = (Combination){.total = {.node = n, .depth = v->nframes}, .nguards = v->nguards};
  return scope_add_open(v, &c->total.is_there, &c->total.is_open, n, "the sum begins here and never ends");
}

// Whether the innermost loop goes over the blocks of the loop that makes the partial sums, in the list of nodes in
// which the sum began, and under no condition but that there are partial sums.
static bool verify_blocks(Verifying *v, const LoopNode *n, const Combination *c, const Expr *e) {
  const Loop *maker = &v->t->schedule->loops[e->loop];
  const LoopNode *loop = v->nframes == c->total.depth + 1 ? v->frames[v->nframes - 1].node : NULL;
  const bool is_flagged = loop && loop->flag == FLAG_HAS_ALL_PARTIALS && loop->access == n->access;
  if (!c->total.is_there || !loop || loop->var.kind != VAR_COMBINED_BLOCK || v->nguards != c->nguards + is_flagged)
    return verify_fail(v, n, "it must be in a loop over blocks, behind the beginning of the sum");
  const Index *count = loop_has_open_cut_blocks(v->k, maker) ? index_loop(&v->b, INDEX_NCUT_BLOCKS, e->loop)
                                                             : number_index(v, loop_ncut_blocks(v->k, maker));
  return verify_equal(v, n, "the number of blocks that it combines", loop->end, count);
}

bool verify_combine(Verifying *v, const LoopNode *n) {
  const Kernel *k = v->k;
  const Expr *e = &k->exprs[n->expr];
  Combination *c = &v->combinations[n->expr];
  if (!node_combines(v->t, n) || n->access != e->access)
    return verify_fail(v, n, "its expression must combine partial sums, through the same access");
  const Temporary *t = &v->t->schedule->temporaries[k->accesses[e->access].temporary];
  const AxisSet own = access_axes(k, &k->accesses[e->access]);
  if (!verify_blocks(v, n, c, e)) return false;
  if (c->is_done) return verify_fail(v, n, "the partial sums are added twice");
  if (n->is_vector != (c->total.node->sum == SUM_TOTAL))
    return verify_fail(v, n, "is_vector must be set if, and only if, the total is a vector");
  if (loop_nblocks(k, &v->t->schedule->loops[e->loop]) * axes_nelems(k, own) > t->nelems ||
      axes_monomial(k, own) != t->monomial)
    return verify_fail(v, n, "it goes beyond the last element of its tensor");
  c->is_done = true;
  return verify_partial_address(v, n, e) && (!n->is_vector || verify_lanes(v, n));
}

bool verify_end_combination(Verifying *v, const LoopNode *n) {
  const Expr *e = &v->k->exprs[n->expr];
  Combination *c = &v->combinations[n->expr];
  if (!c->total.is_open || v->nframes != c->total.depth)
    return verify_fail(v, n, "the sum must end in the list of nodes in which it began");
  if (!c->is_done && loop_nblocks(v->k, &v->t->schedule->loops[e->loop]) > 0)
    return verify_fail(v, n, "no partial sums are added to the sum before it");
  if (n->access != e->access || n->sum != c->total.node->sum || n->is_vector != (n->sum == SUM_TOTAL) || n->is_row ||
      n->accumulator != ACCUMULATOR_ONLY)
    return verify_fail(v, n, "it must take the total of the sum");
  c->total.is_open = false;
  return verify_has_axes(v, n, e->axes, n->is_vector) && verify_define(v, n);
}
