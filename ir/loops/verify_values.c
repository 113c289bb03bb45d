// Verifies addresses, and how values are computed and loaded.
#include "ir/loops/verifying.h"

// Values of expressions

bool verify_operand(Verifying *v, const LoopNode *n, ExprId id, bool is_vector) {
  if (!id) return verify_fail(v, n, "it must have an operand");
  const Form form = v->t->form[id];
  if (form == FORM_NUMBER) return true;
  if (!v->made[id].is_made) return verify_fail_expr(v, n, id, "must be computed before it");
  if (form == FORM_VECTOR && !is_vector) return verify_fail_expr(v, n, id, "is a vector, expected a scalar");
  if (form == FORM_ROWS && v->range[OUTER].start.kind != VAR_ROW)
    return verify_fail_expr(v, n, id, "differs from row to row, so it must be used in a loop over rows");
  return true;
}

// Scalars that differ from row to row are elements of an array declared before (LOCAL_SCALARS), and stay in scope for
// later loops over rows.
bool verify_define(Verifying *v, const LoopNode *n, ExprId id, Form form) {
  if (!id) return verify_fail(v, n, "its expression does not exist");
  Made *made = &v->made[id];
  if (v->t->form[id] != form)
    return verify_fail_expr(v, n, id, "has another form (scalar, rows or vector) in the tree's table");
  if (made->is_made) return verify_fail_expr(v, n, id, "is already computed");
  if (form != FORM_ROWS || n->kind != NODE_LET) return scope_add(v, &made->is_made, NULL, 0);
  if (!made->is_declared) return verify_fail_expr(v, n, id, "must have a declared array with an element for each row");
  if (v->range[OUTER].start.kind != VAR_ROW || v->nguards)
    return verify_fail(v, n, "it must be in an unconditional loop over rows");
  made->is_made = true;
  return true;
}

// Addresses

// The index of an element in the access's memory as a function of the indices on these axes; for a mask, of its byte.
Linear access_index(const Verifying *v, AccessId id, AxisSet axes) {
  const Access *a = &v->k->accesses[id];
  const int bits = access_is_mask(a) ? v->vector : -1; // the axis whose elements are neighbouring bits
  Linear l;
  l.nterms = 0;
  linear_add_number(&l, a->offset, a->offset_monomial);
  for (int axis = 0; axis < v->k->naxes; axis++)
    if (axes >> axis & 1)
      linear_add(&l, (Term){.number = a->stride[axis],
                            .monomial = a->stride_monomial[axis],
                            .var = {VAR_AXIS, (uint32_t)axis},
                            .divisor = axis == bits ? 8 : 1});
  return l;
}

static void add_linear(Linear *l, const Linear *other) {
  if (other->nterms < 0) l->nterms = -1;
  for (int i = 0; i < other->nterms; i++) linear_add(l, other->terms[i]);
}

// Whether the last element that the access reaches along these axes is inside its memory. Masks are counted in bits, in
// whole vectors.
static bool verify_inside(Verifying *v, const LoopNode *n, AccessId id, AxisSet axes, int64_t nelems,
                          Monomial monomial) {
  const Kernel *k = v->k;
  const Access *a = &k->accesses[id];
  const int64_t unit = access_is_mask(a) ? 8 : 1;
  Linear beyond;
  beyond.nterms = 0;
  linear_add_number(&beyond, a->offset * unit, a->offset_monomial);
  linear_add_number(&beyond, 1, 0);
  linear_add_number(&beyond, -nelems * unit, monomial);
  int64_t first = a->offset;
  for (size_t i = 0; i < a->nbounds; i++) { // along bounds, the access may reach the whole tensor
    const Bound *b = &a->bounds[i];
    linear_add_number(&beyond, b->stride * (b->extent - 1 - b->offset), 0);
    first -= b->stride * b->offset;
    axes &= ~bound_axes(b);
  }
  if (first < 0) return verify_fail(v, n, "it begins before the first element of its tensor");
  for (int axis = 0; axis < k->naxes; axis++) {
    if (!(axes >> axis & 1) || !a->stride[axis]) continue;
    if (!k->axes[axis].extent) return true; // the access has no elements
    const bool is_bits = access_is_mask(a) && axis == v->vector;
    const int64_t extent = k->axes[axis].extent, stride = a->stride[axis] * (is_bits ? 1 : unit);
    const bool is_whole = kernel_factor(k, extent, k->axes[axis].monomial) % LANES == 0;
    if (is_bits && !is_whole && k->axes[axis].monomial)
      return verify_fail(v, n, "the rows of its bit mask may end in the middle of a byte");
    if (a->panel_axis == axis + 1) {
      if (k->axes[axis].monomial) return verify_fail(v, n, "the number of its panels must not depend on an open dim");
      linear_add_number(&beyond, (extent - 1) / LANES * LANES * stride, a->stride_monomial[axis]);
      linear_add_number(&beyond, LANES - 1, 0);
      continue;
    }
    const int64_t reached = is_bits ? (extent + LANES - 1) / LANES * LANES : extent;
    linear_add_number(&beyond, reached * stride, k->axes[axis].monomial + a->stride_monomial[axis]);
    linear_add_number(&beyond, -stride, a->stride_monomial[axis]);
  }
  return linear_is_never_positive(k, &beyond) || verify_fail(v, n, "it goes beyond the last element of its tensor");
}

// Loads at computed offsets are not checked: the operator that computes the offset clamps it to the tensor.
bool verify_memory(Verifying *v, const LoopNode *n, AccessId id) {
  const Access *a = &v->k->accesses[id];
  const bool is_computed = n->kind == NODE_LET && v->k->exprs[n->expr].op == EXPR_LOAD && v->k->exprs[n->expr].args[0];
  Memory *m = &v->memory[id];
  if (m->is_inside || is_computed || a->type == TYPE_NONE) return true;
  m->is_inside = true;
  if (m->is_step_local) return verify_inside(v, n, id, v->inner, m->local_nelems, 0);
  if (a->value) return verify_inside(v, n, id, ~0U, shape_nelems(&a->value->shape), shape_monomial(&a->value->shape));
  const Temporary *t = &v->t->schedule->temporaries[a->temporary];
  return t->reduction != EXPR_NONE || verify_inside(v, n, id, ~0U, t->nelems, t->monomial);
}

// Sets *base to the index in the tensor that the address's base points to.
bool verify_base(Verifying *v, const LoopNode *n, const Address *at, Linear *base) {
  base->nterms = 0;
  if (at->base != BASE_POINTER)
    return !at->is_row || verify_fail(v, n, "is_row is set, but its base is not an array of row pointers");
  const Memory *m = &v->memory[at->access];
  if (!m->has_pointer) return verify_fail(v, n, "its row pointer must be set before it");
  if (m->is_pointer_row != at->is_row)
    return verify_fail(v, n, "is_row of its address must be set if, and only if, each row has its own pointer");
  if (at->is_row && v->range[OUTER].start.kind != VAR_ROW) return verify_fail(v, n, "it must be in a loop over rows");
  if (m->pointer) *base = *m->pointer;
  return true;
}

static bool verify_address(Verifying *v, const LoopNode *n, AccessId id, const Address *at, const Linear *expected) {
  Linear is;
  if (at->access != id || (at->base != BASE_TENSOR && at->base != BASE_POINTER))
    return verify_fail(v, n, "its address must be in the tensor of its access");
  if (!verify_index(v, n, at->index) || !verify_base(v, n, at, &is)) return false;
  const Linear index = linear_of(v, at->index);
  add_linear(&is, &index);
  return linear_equals(&is, expected) || verify_fail(v, n, "its address differs from the address of its element");
}

bool verify_access(Verifying *v, const LoopNode *n, AccessId id, const Address *at) {
  const Linear expected = access_index(v, id, v->memory[id].is_step_local ? v->inner : ~0U);
  return verify_address(v, n, id, at, &expected) && verify_memory(v, n, id);
}

// Whether a vector's lanes are in one panel of the access, or the access has no panels.
bool is_at_panel(const Verifying *v, const Access *a) {
  if (!a->panel_axis) return true;
  if (v->lanes == OUTER) return loop_lane_axis(v->plan) == a->panel_axis - 1 && are_blocks_aligned(v->plan);
  return v->lanes == a->panel_axis - 1 && v->range[v->lanes].is_aligned;
}

bool verify_lane_step(Verifying *v, const LoopNode *n, AccessId id) {
  const Access *a = &v->k->accesses[id];
  const int axis = loop_lane_axis(v->plan);
  const Index *stride =
      a->panel_axis == axis + 1 ? number_index(v, 1) : index_number(&v->b, a->stride[axis], a->stride_monomial[axis]);
  return index_equals(n->step, stride) || verify_fail_index(v, n, "the stride from lane to lane", n->step, stride);
}

// Whether the node loads or stores a vector of a panel; panels have memory for all lanes.
static bool is_of_panel(const Verifying *v, const LoopNode *n) {
  const bool is_load = v->k->exprs[n->expr].op == EXPR_LOAD && n->load != LOAD_SPILLED;
  const bool is_access = n->kind == NODE_STORE || is_load;
  return is_access && v->k->accesses[n->access].panel_axis == loop_lane_axis(v->plan) + 1;
}

bool verify_lanes(Verifying *v, const LoopNode *n) {
  if (n->has_fewer_lanes && !has_fewer_lanes(v))
    return verify_fail(v, n, "has_fewer_lanes is set, but all lanes hold elements here");
  if (n->has_fewer_lanes && is_of_panel(v, n))
    return verify_fail(v, n, "has_fewer_lanes is set, but panels have memory for all lanes");
  return n->has_fewer_lanes || !has_fewer_lanes(v) || n->load == LOAD_SPILLED || is_of_panel(v, n) ||
         verify_fail(v, n, "has_fewer_lanes is unset, but only some lanes hold elements here");
}

// Verifies the address of a vector in a local array of the step: the transposed copy, or spilled vectors.
// `lane_stride`: the distance between neighbouring indices on the vector axis.
static bool verify_lane_0(Verifying *v, const LoopNode *n, const Address *at, int64_t lane_stride, Linear *is) {
  if (at->is_row) return verify_fail(v, n, "is_row is set, but its base is not an array of row pointers");
  if (!verify_index(v, n, at->index)) return false;
  *is = linear_of(v, at->index);
  Linear expected;
  expected.nterms = 0;
  linear_add_var(&expected, VAR_AXIS, (uint32_t)v->vector, lane_stride, 0);
  if (v->range[OUTER].start.kind == VAR_ROW) {
    int64_t row = 0;
    for (int i = 0; i < is->nterms; i++)
      if (is->terms[i].var.kind == VAR_ROW) row = is->terms[i].number;
    linear_add_var(&expected, VAR_ROW, 0, row, 0);
  }
  return linear_equals(is, &expected) || verify_fail(v, n, "its address differs from the address of its vector");
}

// Loads

bool verify_copied(Verifying *v, const LoopNode *n, AccessId id, const Address *at) {
  Linear is;
  const Memory *m = &v->memory[id];
  if (at->base != BASE_ROWS || at->access != id || !m->has_copy)
    return verify_fail(v, n, "its transposed copy must be declared before it");
  if (v->lanes != OUTER || has_fewer_lanes(v)) return verify_fail(v, n, "it needs rows in lanes, and all lanes in use");
  return verify_lane_0(v, n, at, LANES, &is);
}

int find_spill(const Verifying *v, ExprId id) {
  for (int i = 0; i < v->plan->nspills; i++)
    if (v->plan->spills[i].expr == id) return i;
  return -1;
}

bool verify_spilled(Verifying *v, const LoopNode *n, Linear *address) {
  const int spill = find_spill(v, n->expr);
  if (spill < 0 || n->address.base != BASE_SPILLED || n->address.expr != n->expr || !v->spilled[spill].is_declared)
    return verify_fail_expr(v, n, n->expr, "must have a declared array of spilled vectors");
  return verify_lane_0(v, n, &n->address, v->plan->rows_in_lanes ? LANES : 1, address);
}

static bool verify_load_spilled(Verifying *v, const LoopNode *n) {
  Linear address;
  if (!verify_spilled(v, n, &address)) return false;
  const int spill = find_spill(v, n->expr);
  const SpillState *spilled = &v->spilled[spill];
  if (!v->count[effect_of_spill(v, spill)] || is_in_frame(v, spilled->serial))
    return verify_fail_expr(v, n, n->expr, "must be spilled by an earlier sweep");
  return linear_equals(&address, spilled->address) ||
         verify_fail(v, n, "its address differs from the address at which the vector was spilled");
}

static bool verify_load(Verifying *v, const LoopNode *n, const Expr *e) {
  const Access *a = &v->k->accesses[e->access];
  const uint32_t root = v->root_of_access[e->access];
  const int lane_axis = loop_lane_axis(v->plan);
  if (root && v->plan->roots[root - 1].kind == ROOT_STORE && !v->count[effect_of(root - 1, EFFECT_DONE)])
    return verify_fail(v, n, "it loads a result that must be stored before it");
  if (e->args[0] && !verify_operand(v, n, e->args[0], n->load == LOAD_GATHERED)) return false;
  if (n->load == LOAD_COPIED)
    return verify_copied(v, n, e->access, &n->address) &&
           ((v->memory[e->access].is_copied && !is_in_frame(v, v->memory[e->access].copy_serial)) ||
            verify_fail(v, n, "its rows must be copied before it"));
  if (!verify_access(v, n, e->access, &n->address)) return false;
  if (!n->is_vector) return n->load == LOAD_ELEMENT || verify_fail(v, n, "a scalar load must load one element");
  const bool is_bits = access_is_mask(a) && v->lanes == v->vector;
  if (is_bits)
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

static bool verify_coordinate(Verifying *v, const LoopNode *n, const Expr *e) {
  const int axis = __builtin_ctz(e->axes);
  if (!n->is_vector)
    return var_state(v, (Var){VAR_AXIS, (uint32_t)axis})->is_set ||
           verify_fail(v, n, "the index on its axis must be set before it");
  Linear is = linear_of(v, n->value), expected = {0};
  linear_add_var(&expected, VAR_AXIS, (uint32_t)axis, 1, 0);
  return (verify_index(v, n, n->value) && axis == loop_lane_axis(v->plan) && linear_equals(&is, &expected)) ||
         verify_fail(v, n, "its value must be the index on its axis, which lanes must lie along");
}

static bool verify_operands(Verifying *v, const LoopNode *n, const Expr *e) {
  const bool is_vector = n->is_vector && e->op != EXPR_IS_KEPT;
  for (int a = 0; a < expr_info[e->op].narguments; a++)
    if (!verify_operand(v, n, e->args[a], is_vector)) return false;
  if (e->op != EXPR_IS_KEPT) return true;
  return verify_access(v, n, e->access, &n->address) && (!n->is_vector || verify_lane_step(v, n, e->access));
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
  return ok && verify_bounds(v, n) &&
         verify_define(v, n, n->expr,
                       n->is_row      ? FORM_ROWS
                       : n->is_vector ? FORM_VECTOR
                                      : FORM_SCALAR);
}

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
  Linear expected = partial_index(v, e, 0), lane = expected;
  VarState *block = var_state(v, (Var){VAR_COMBINED_BLOCK, 0});
  block->is_set = true;
  const bool ok = verify_address(v, n, e->access, &n->address, &expected);
  block->is_set = false;
  if (!ok || !n->is_vector) return ok;
  const Linear others = partial_index(v, e, 1U << v->vector); // expected - others: the stride
  for (int i = 0; i < others.nterms; i++) {
    Term minus = others.terms[i];
    minus.number = -minus.number;
    linear_add(&lane, minus);
  }
  Linear step = linear_of(v, n->step);
  for (int i = 0; i < lane.nterms; i++) lane.terms[i].var = (Var){VAR_NONE, 0};
  if (!n->step || !linear_equals(&step, &lane))
    return verify_fail(v, n, "its step must be the stride from lane to lane");
  return n->is_strided == !index_is(n->step, 1) ||
         verify_fail(v, n, "is_strided must be set if, and only if, the stride from lane to lane is not 1");
}

bool verify_combine(Verifying *v, const LoopNode *n) {
  const Kernel *k = v->k;
  const Expr *e = &k->exprs[n->expr];
  if (!n->expr || e->op != EXPR_COMBINE || n->access != e->access)
    return verify_fail(v, n, "its expression must combine partial sums, through the same access");
  if (e->loop >= (uint32_t)(v->plan - v->t->schedule->loops))
    return verify_fail(v, n, "its partial sums must be computed by an earlier loop");
  const Loop *maker = &v->t->schedule->loops[e->loop];
  const Temporary *t = &v->t->schedule->temporaries[k->accesses[e->access].temporary];
  const AxisSet own = access_axes(k, &k->accesses[e->access]);
  if (n->reduction != t->reduction || !n->is_f64)
    return verify_fail(v, n, "its reduction must be the reduction of the partial sums, in f64");
  if (n->flag && !verify_flag(v, n, n->flag, n->access)) return false;
  if (!verify_has_axes(v, n, e->axes, n->is_vector)) return false;
  const Index *count = loop_has_open_cut_blocks(k, maker) ? index_loop(&v->b, INDEX_NCUT_BLOCKS, e->loop)
                                                          : number_index(v, loop_ncut_blocks(k, maker));
  if (loop_nblocks(k, maker) > 0 && !index_equals(n->end, count))
    return verify_fail_index(v, n, "the number of blocks that it combines", n->end, count);
  if (loop_nblocks(k, maker) * axes_nelems(k, own) > t->nelems || axes_monomial(k, own) != t->monomial)
    return verify_fail(v, n, "it goes beyond the last element of its tensor");
  if (!verify_partial_address(v, n, e) || (n->is_vector && !verify_lanes(v, n))) return false;
  return verify_define(v, n, n->expr, n->is_vector ? FORM_VECTOR : FORM_SCALAR);
}
