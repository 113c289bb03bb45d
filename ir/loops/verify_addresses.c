// Verifies addresses: each has its element's index, and so is inside of its buffer where the indices on axes are inside
// of their extents (ir/kernel/verify.h). Vectors take the lanes that hold elements.
#include "ir/loops/verifying.h"

// Layouts

// The index of an element in the access's memory as a function of the indices on these axes; for a mask, of its byte.
static Linear access_index(const Verifying *v, AccessId id, AxisSet axes) {
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

// The index of a partial sum in the temporary [batch axes, block, the block's array].
static Linear partial_index(const Verifying *v, const Expr *e) {
  const Kernel *k = v->k;
  const Loop *maker = &v->t->schedule->loops[e->loop];
  const bool is_open = loop_has_open_cut_blocks(k, maker);
  const AxisSet own = access_axes(k, &k->accesses[e->access]);
  Linear l = access_index(v, e->access, own);
  linear_add_var(&l, VAR_COMBINED_BLOCK, 0, axes_nelems(k, own), axes_monomial(k, own));
  AxisSet below = own;
  for (int at = maker->nbatch; at-- > 0; below |= 1U << maker->axes[at]) {
    if (!(e->axes >> maker->axes[at] & 1)) continue; // its blocks are combined
    linear_add(&l, (Term){.number = axes_nelems(k, below) * (is_open ? 1 : loop_ncut_blocks(k, maker)),
                          .monomial = axes_monomial(k, below),
                          .of_loop = is_open ? INDEX_NCUT_BLOCKS : INDEX_NUMBER,
                          .loop = is_open ? e->loop : 0,
                          .var = {VAR_AXIS, (uint32_t)maker->axes[at]},
                          .divisor = 1});
  }
  return l;
}

// The index in the buffer, from the indices on axes, of the element that the node is at.
static Linear layout_of(const Verifying *v, const LoopNode *n, const Address *at) {
  const bool has_row_lanes = v->lanes == OUTER;
  Linear l = {0};
  switch (at->buffer) {
  case BUFFER_COPY:
    if (has_row_lanes) linear_add_var(&l, VAR_AXIS, (uint32_t)v->vector, LANES, 0);
    else linear_add_var(&l, VAR_ROW, 0, LANES, 0);
    return l;
  case BUFFER_SPILL:
    linear_add_var(&l, VAR_AXIS, (uint32_t)v->vector, has_row_lanes ? LANES : 1, 0);
    if (is_in_row(v)) linear_add_var(&l, VAR_ROW, 0, loop_row_nelems(v->k, v->loop), 0);
    return l;
  case BUFFER_PARTIALS: return access_index(v, at->of, v->inner);
  default: break;
  }
  if (n->kind == NODE_UPDATE) return partial_index(v, &v->k->exprs[n->to.of]);
  return access_index(v, at->of, at->buffer == BUFFER_ROW && access_is_own(v->t, at->of) ? v->inner : ~0U);
}

// Lanes

static bool verify_panel(Verifying *v, const LoopNode *n, const Access *a) {
  if (!a->panel_axis) return true;
  const bool is_first = v->lanes == OUTER ? cut_is_multiple(&v->loop->cut, LANES) : v->range[v->lanes].is_aligned;
  return (loop_lane_axis(v->loop) == a->panel_axis - 1 && is_first) ||
         verify_fail(v, n, "a vector of a panel must begin at the panel's first lane");
}

static bool verify_mask(Verifying *v, const LoopNode *n) {
  const bool is_dense = n->kind == NODE_STORE || node_load(v->t, n) == LOAD_DENSE;
  return (n->is_vector && v->range[v->vector].is_aligned && is_dense) ||
         verify_fail(v, n, "a vector of a bit mask must begin at a whole byte");
}

// `step` is the factor of the lane axis's index in the layout.
static bool verify_lane_step(Verifying *v, const LoopNode *n, const Access *a, const Linear *layout) {
  const int axis = loop_lane_axis(v->loop);
  const Linear step = linear_of(v, n->step);
  Linear stride = {0};
  if (a->panel_axis == axis + 1) linear_add_number(&stride, 1, 0);
  for (int i = 0; i < layout->nterms && a->panel_axis != axis + 1; i++) {
    Term term = layout->terms[i];
    const bool is_of_lanes = term.var.kind == VAR_AXIS && (int)term.var.of == axis;
    term.var = loop_var(VAR_NONE);
    if (is_of_lanes) linear_add(&stride, term);
  }
  return (n->step && linear_equals(&step, &stride)) ||
         verify_fail(v, n, "its step must be the stride from lane to lane");
}

// Vectors of panels, and spilled ones, are always whole.
bool verify_lanes(Verifying *v, const LoopNode *n) {
  if (!n->is_vector) return !n->has_fewer_lanes || verify_fail(v, n, "has_fewer_lanes is set, but it is a scalar");
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

static bool verify_vector(Verifying *v, const LoopNode *n, const Address *at, const Linear *layout) {
  if (at->buffer == BUFFER_SPILL) return true; // always whole
  if (!verify_lanes(v, n)) return false;
  if (at->buffer == BUFFER_COPY) return !has_fewer_lanes(v) || verify_fail(v, n, "it needs all lanes in use");
  const Access *a = &v->k->accesses[at->of];
  return at->buffer == BUFFER_PARTIALS || (verify_panel(v, n, a) && verify_lane_step(v, n, a, layout));
}

// Buffers

// Whether the item is one of the register's: of the row, the vector or the element that the node is at.
static bool verify_item(Verifying *v, const LoopNode *n, const Address *at, const LoopNode *begin) {
  const Range *r = &v->range[v->vector];
  const int rows = v->loop->rows, count = begin ? (int)begin->count : 1, vectors = count / rows; // NULL: it is held
  const LoopNode *group = r->group.kind ? var_state(v, loop_var(VAR_VECTOR))->loop : NULL;
  const bool is_of_vector = group && index_is(group->end, vectors),
             is_of_row = is_in_row(v) || node_is_of_rows(v->t, n);
  const bool is_right[] = {[ITEM_ONLY] = count == 1 || (node_ends_sum(n) && tree_element_sums(v->t, at->of)),
                           [ITEM_OF_ROW] = count == rows && rows > 1 && is_of_row,
                           [ITEM_OF_VECTOR] = is_of_vector && vectors > 1 && rows == 1,
                           [ITEM_OF_BOTH] = is_of_vector && count == vectors * rows && rows > 1 && is_of_row,
                           [ITEM_FIRST] = count > 1,
                           [ITEM_OF_ELEMENT] = at->buffer == BUFFER_SUM && count == tree_element_sums(v->t, at->of)};
  return (is_right[at->item] && !at->index) ||
         verify_fail(v, n, "it takes accumulator sum%s, but there are %d", item_indices[at->item], count);
}

bool verify_base(Verifying *v, const LoopNode *n, const Address *at) {
  const Scoped *s = state_of(v, at->buffer, at->of);
  if (!at->buffer || (at->buffer != BUFFER_TENSOR && !s->is_set))
    return verify_fail(v, n, "the buffer must be declared before it");
  if (buffer_info[at->buffer].space == SPACE_REGISTERS) return verify_item(v, n, at, s->node);
  return (at->item == (s->has_rows ? ITEM_OF_ROW : ITEM_ONLY) && (!at->item || is_in_row(v))) ||
         verify_fail(v, n, "it must take the row's pointer if, and only if, each row has its own pointer");
}

static bool verify_place(Verifying *v, const LoopNode *n, const Address *at, const Linear *expected) {
  if (!verify_index(v, n, at->index)) return false;
  Linear is = linear_of(v, at->index);
  const Linear *pointer = state_of(v, at->buffer, at->of)->pointer;
  if (pointer) linear_add_all(&is, pointer, 1);
  return linear_equals(&is, expected) || verify_fail(v, n, "its address differs from the address of its element");
}

bool verify_address(Verifying *v, const LoopNode *n, const Address *at) {
  if (!verify_base(v, n, at)) return false;
  if (buffer_info[at->buffer].space == SPACE_REGISTERS) return true;
  const Linear layout = layout_of(v, n, at);
  if (!verify_place(v, n, at, &layout)) return false;
  if (at->buffer != BUFFER_SPILL && access_is_mask(&v->k->accesses[at->of]) && v->lanes == v->vector)
    return verify_mask(v, n);
  if (n->is_vector) return verify_vector(v, n, at, &layout);
  return buffer_info[at->buffer].space != SPACE_STACK ? verify_lanes(v, n)
                                                      : verify_fail(v, n, "it must take a whole vector");
}

bool verify_first(Verifying *v, const LoopNode *n, const Address *at) {
  const Linear first = access_index(v, at->of, 0);
  return verify_base(v, n, at) && verify_place(v, n, at, &first);
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
  const Index *tests = n->test;
  if (!verify_index(v, n, n->test) || !verify_index(v, n, n->from.within)) return false;
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

// Moves

// Rows in lanes: the row pointer points to the first row of the step, and rows are dense.
static bool is_at_row(const Verifying *v, AccessId id) {
  const Linear row = access_index(v, id, v->outer);
  const Scoped *s = state_of(v, BUFFER_ROW, id);
  return s->is_set && s->pointer && linear_equals(s->pointer, &row);
}

static bool verify_rows(Verifying *v, const LoopNode *n) {
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
  const Linear layout = access_index(v, node_access(n), ~0U);
  return verify_lane_step(v, n, a, &layout);
}

// The address of each row's vector is verified as in a loop over the rows.
static bool verify_row_vectors(Verifying *v, const LoopNode *n) {
  const bool is_store = n->from.buffer == BUFFER_COPY;
  const Address *rows = is_store ? &n->to : &n->from, *copy = is_store ? &n->from : &n->to;
  Range *r = &v->range[OUTER];
  const Range before = *r;
  bool *is_row_set = &var_state(v, loop_var(VAR_ROW))->is_set;
  if (r->width != WIDTH_ROWS || v->lanes == OUTER || rows->item != ITEM_OF_ROW || copy->buffer != BUFFER_COPY ||
      copy->index || n->count || !verify_base(v, n, copy))
    return verify_fail(v, n, "it needs a step of several rows, and a declared array of their vectors");
  r->start = loop_var(VAR_ROW);
  r->width = 1;
  *is_row_set = true;
  const bool ok = verify_address(v, n, rows);
  *is_row_set = false;
  *r = before;
  return ok;
}

bool verify_moved(Verifying *v, const LoopNode *n) {
  if (node_is_of_rows(v->t, n)) return verify_row_vectors(v, n);
  return n->count ? verify_rows(v, n) : verify_address(v, n, &n->from) && verify_address(v, n, &n->to);
}
