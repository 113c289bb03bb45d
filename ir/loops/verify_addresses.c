// Verifies addresses: each has its element's index, and so is inside of its tensor where the indices on axes are inside
// of their extents (ir/kernel/verify.h). Vectors take the lanes that hold elements.
#include "ir/loops/verifying.h"

// The index of an element in the access's memory as a function of the indices on these axes; for a mask, of its byte.
Linear access_index(const Verifying *v, AccessId id, AxisSet axes) {
  const Access *a = &v->k->accesses[id];
  const int bits = access_is_mask(a) ? v->vector : NO_DIRECTION; // the axis whose elements are neighbouring bits
  Linear l = {0};
  linear_add_number(&l, a->offset, a->offset_monomial);
  for (int axis = 0; axis < v->k->naxes; axis++)
    if (axes >> axis & 1)
      linear_add(&l, (Term){.number = a->stride[axis],
                            .monomial = a->stride_monomial[axis],
                            .var = {VAR_AXIS, (uint32_t)axis},
                            .divisor = axis == bits ? 8 : 1});
  return l;
}

bool verify_base(Verifying *v, const LoopNode *n, const Address *at, Linear *base) {
  const Scoped *s = state_of(v, at->buffer, at->of);
  *base = (Linear){0};
  if (at->buffer != BUFFER_ROW)
    return !at->item || verify_fail(v, n, "its buffer is not an array of row pointers, but it has the row's");
  if (!s->is_set) return verify_fail(v, n, "its row pointer must be set before it");
  if (at->item != (s->has_rows ? ITEM_OF_ROW : ITEM_ONLY))
    return verify_fail(v, n, "it must take the row's pointer if, and only if, each row has its own pointer");
  if (at->item && !is_in_row(v)) return verify_fail(v, n, "it must be in a loop over rows");
  *base = s->pointer;
  return true;
}

static bool fail_address(Verifying *v, const LoopNode *n) {
  return verify_fail(v, n, "its address differs from the address of its element");
}

bool verify_address(Verifying *v, const LoopNode *n, const Address *at, AccessId id, const Linear *expected) {
  Linear is;
  if (at->of != id || (at->buffer != BUFFER_TENSOR && at->buffer != BUFFER_ROW))
    return verify_fail(v, n, "its address must be in the tensor of its access");
  if (!verify_index(v, n, at->index) || !verify_base(v, n, at, &is)) return false;
  const Linear index = linear_of(v, at->index);
  linear_add_all(&is, &index, 1);
  return linear_equals(&is, expected) || fail_address(v, n);
}

bool verify_access(Verifying *v, const LoopNode *n, const Address *at, AccessId id) {
  const bool is_own = access_is_own(v->t, id) && at->buffer == BUFFER_ROW;
  const Linear expected = access_index(v, id, is_own ? v->inner : ~0U);
  return verify_address(v, n, at, id, &expected);
}

// Lanes

bool verify_panel(Verifying *v, const LoopNode *n, const Access *a) {
  if (!a->panel_axis) return true;
  const bool is_first = v->lanes == OUTER ? cut_is_multiple(&v->loop->cut, LANES) : v->range[v->lanes].is_aligned;
  return (loop_lane_axis(v->loop) == a->panel_axis - 1 && is_first) ||
         verify_fail(v, n, "a vector of a panel must begin at the panel's first lane");
}

bool verify_mask(Verifying *v, const LoopNode *n) {
  return (n->is_vector && v->range[v->vector].is_aligned &&
          (n->kind == NODE_STORE || node_load(v->t, n) == LOAD_DENSE)) ||
         verify_fail(v, n, "a vector of a bit mask must begin at a whole byte");
}

bool verify_lane_step(Verifying *v, const LoopNode *n, AccessId id) {
  const Access *a = &v->k->accesses[id];
  const int axis = loop_lane_axis(v->loop);
  const Index *stride =
      a->panel_axis == axis + 1 ? number_index(v, 1) : index_number(&v->b, a->stride[axis], a->stride_monomial[axis]);
  return verify_equal(v, n, "the stride from lane to lane", n->step, stride);
}

// Vectors of panels, and spilled ones, are always whole.
bool verify_lanes(Verifying *v, const LoopNode *n) {
  const Range *r = &v->range[v->lanes];
  if (!r->is_piece || (r->width != LANES && r->width != WIDTH_LANES))
    return verify_fail(v, n, "it must be in a loop over vectors of LANES elements, or in the tail");
  if (n->has_fewer_lanes != has_fewer_lanes(v) && (n->has_fewer_lanes || !node_uses_all_lanes(v->t, n)))
    return verify_fail(v, n,
                       n->has_fewer_lanes ? "has_fewer_lanes is set, but all lanes hold elements here"
                                          : "has_fewer_lanes is unset, but only some lanes hold elements here");
  return !n->has_fewer_lanes || !node_uses_all_lanes(v->t, n) ||
         verify_fail(v, n, "has_fewer_lanes is set, but panels have memory for all lanes");
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

bool verify_bounds(Verifying *v, const LoopNode *n) {
  const bool is_load = v->k->exprs[n->expr].op == EXPR_LOAD && n->from.buffer != BUFFER_SPILL;
  const Access *a = &v->k->accesses[node_access(n)];
  const Bound *of_lanes = node_lane_bound(v->t, n);
  const Index *tests = n->from.inside;
  if (!verify_index(v, n, n->from.inside) || !verify_index(v, n, n->from.within)) return false;
  if (is_load && access_has_conditions(v->k, a) && n->from.buffer != BUFFER_TENSOR)
    return verify_fail(
        v, n, "a load with conditions must be relative to its tensor: a row pointer may point outside of the tensor");
  for (size_t i = is_load ? a->nbounds : 0; i-- > 0;) {
    const Bound *b = &a->bounds[i];
    if (b != of_lanes && !bound_always_holds(v->k, b) && !is_test_of(v, take_last(&tests), b))
      return verify_fail(v, n, "its condition must test its access's bounds in order: 0 <= index < %lld for bound %zu",
                         (long long)b->extent, i);
  }
  if (of_lanes ? !n->from.within || !is_index_of(v, n->from.within, of_lanes) : n->from.within != NULL)
    return verify_fail(v, n, "its condition on lanes must have the index of the bound that varies from lane to lane");
  return !tests || verify_fail(v, n, "it has a condition that tests no bound of its access");
}

// Local arrays of a step

// The address of a vector in a local array: the transposed copy, or spilled vectors. `lane_stride`: the distance
// between neighbouring indices on the vector axis; *row: between rows.
static bool verify_lane_0(Verifying *v, const LoopNode *n, const Address *at, int64_t lane_stride, int64_t *row) {
  if (!verify_index(v, n, at->index)) return false;
  const Linear is = linear_of(v, at->index);
  Linear expected = {0};
  if (is_in_row(v)) *row = linear_factor(&is, VAR_ROW);
  linear_add_var(&expected, VAR_AXIS, (uint32_t)v->vector, lane_stride, 0);
  linear_add_var(&expected, VAR_ROW, 0, *row, 0);
  return linear_equals(&is, &expected) || fail_address(v, n);
}

// The array has room for a vector at each index on the vector axis, or of each row of the step.
bool verify_copied(Verifying *v, const LoopNode *n, AccessId id, const Address *at) {
  int64_t row = 0;
  if (at->buffer != BUFFER_COPY || at->of != id || at->item || !state_of(v, BUFFER_COPY, id)->is_set)
    return verify_fail(v, n, "its transposed copy must be declared before it");
  if (has_fewer_lanes(v)) return verify_fail(v, n, "it needs all lanes in use");
  if (v->lanes == OUTER) return verify_lane_0(v, n, at, LANES, &row) && (!row || fail_address(v, n));
  Linear expected = {0};
  linear_add_var(&expected, VAR_ROW, 0, LANES, 0);
  if (!verify_index(v, n, at->index)) return false;
  const Linear is = linear_of(v, at->index);
  return (is_in_row(v) && linear_equals(&is, &expected)) || fail_address(v, n);
}

bool verify_spilled(Verifying *v, const LoopNode *n, const Address *at) {
  const Scoped *s = state_of(v, BUFFER_SPILL, at->of);
  const bool has_rows = loop_has(v->loop, LOOP_ROW_LANES);
  int64_t row = 0;
  if (at->of != n->expr || at->item || !s->is_set)
    return verify_fail_expr(v, n, n->expr, "must have a declared array of spilled vectors");
  if (!verify_lane_0(v, n, at, has_rows ? LANES : 1, &row)) return false;
  const int64_t extent = v->k->axes[v->vector].extent, whole = (extent + LANES - 1) / LANES * LANES;
  const int64_t most = has_rows ? extent * LANES : v->range[v->vector].is_aligned ? whole : extent + LANES - 1;
  return (row >= 0 && most + (v->loop->rows - 1) * row <= s->node->count && !v->k->axes[v->vector].monomial) ||
         verify_fail(v, n, "it goes beyond the end of its local array");
}

// Rows in lanes: the row pointer points to the first row of the step, and rows are dense.
static bool is_at_row(const Verifying *v, AccessId id) {
  const Linear row = access_index(v, id, v->outer);
  const Scoped *s = state_of(v, BUFFER_ROW, id);
  return s->is_set && linear_equals(&s->pointer, &row);
}

bool verify_rows(Verifying *v, const LoopNode *n) {
  const Access *a = &v->k->accesses[node_access(n)], *to = &v->k->accesses[n->to.of];
  const bool is_panel = n->expr; // else a copy
  const Address *copy = n->from.buffer == BUFFER_COPY ? &n->from : &n->to;
  const bool is_copy =
      copy->buffer == BUFFER_COPY && copy->of == node_access(n) && state_of(v, BUFFER_COPY, copy->of)->is_set;
  if (v->lanes != OUTER || has_fewer_lanes(v) || (!is_panel && (v->loop->nouter != 1 || !is_copy)))
    return verify_fail(v, n, "it needs rows in lanes, all lanes in use, and a declared transposed copy");
  if (n->to.index || n->from.index || n->to.item || n->from.item || !is_at_row(v, node_access(n)) ||
      (is_panel && !is_at_row(v, n->to.of)))
    return verify_fail(v, n, "its row pointer must point to the step's first row");
  if (a->stride[v->vector] != 1 || a->stride_monomial[v->vector] || v->k->axes[v->vector].monomial ||
      n->count != v->k->axes[v->vector].extent)
    return verify_fail(v, n, "its rows must be dense, and as long as the inner axis");
  if (is_panel && (n->to.buffer != BUFFER_ROW || to->value || to->stride[v->vector] != LANES ||
                   to->panel_axis != loop_lane_axis(v->loop) + 1 || !verify_panel(v, n, to)))
    return verify_fail(v, n, "its result must be in panels of LANES rows whose vectors are contiguous");
  return verify_lane_step(v, n, node_access(n));
}

// The addresses of the vectors are verified as in a loop over the rows.
bool verify_row_vectors(Verifying *v, const LoopNode *n) {
  const bool is_store = n->from.buffer == BUFFER_COPY;
  const Address *rows = is_store ? &n->to : &n->from, *copy = is_store ? &n->from : &n->to;
  Range *r = &v->range[OUTER];
  const Range before = *r;
  bool *is_row_set = &var_state(v, loop_var(VAR_ROW))->is_set;
  if (r->width != WIDTH_ROWS || v->lanes == OUTER || v->range[v->lanes].width != LANES || rows->item != ITEM_OF_ROW ||
      copy->buffer != BUFFER_COPY || copy->of != node_access(n) || copy->index ||
      !state_of(v, BUFFER_COPY, node_access(n))->is_set)
    return verify_fail(v, n,
                       "it needs a step of several rows, all lanes in use, and a declared array of their vectors");
  r->start = loop_var(VAR_ROW);
  r->width = 1;
  *is_row_set = true;
  const bool ok = verify_access(v, n, rows, node_access(n)) && verify_lane_step(v, n, node_access(n));
  *is_row_set = false;
  *r = before;
  return ok;
}

// Partial sums

bool verify_partial_address(Verifying *v, const LoopNode *n, const Address *at) {
  const Linear expected = access_index(v, node_access(n), v->inner);
  if (!state_of(v, BUFFER_PARTIALS, node_access(n))->is_set || at->buffer != BUFFER_PARTIALS ||
      at->of != node_access(n) || at->item)
    return verify_fail(v, n, "its address must be in the block's partial sums, which are declared before it");
  if (!verify_index(v, n, at->index)) return false;
  const Linear is = linear_of(v, at->index);
  return linear_equals(&is, &expected) || fail_address(v, n);
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

bool verify_combined_address(Verifying *v, const LoopNode *n, const Expr *e) {
  Linear expected = partial_index(v, e, 0), stride = expected;
  const Loop *maker = &v->t->schedule->loops[e->loop];
  const LoopNode *loop = var_state(v, loop_var(VAR_COMBINED_BLOCK))->loop;
  const Index *count = loop_has_open_cut_blocks(v->k, maker) ? index_loop(&v->b, INDEX_NCUT_BLOCKS, e->loop)
                                                             : number_index(v, loop_ncut_blocks(v->k, maker));
  if (!verify_address(v, n, &n->from, e->access, &expected)) return false;
  if (!loop || !verify_equal(v, n, "the number of blocks that it combines", loop->end, count)) return false;
  if (!n->is_vector) return true;
  const Linear others = partial_index(v, e, 1U << v->vector), step = linear_of(v, n->step);
  linear_add_all(&stride, &others, -1);
  for (int i = 0; i < stride.nterms; i++) stride.terms[i].var = loop_var(VAR_NONE);
  return (n->step && linear_equals(&step, &stride)) ||
         verify_fail(v, n, "its step must be the stride from lane to lane");
}
