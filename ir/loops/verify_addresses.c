// Verifies addresses: each has its element's index. That elements are inside of their tensors is a property of the
// kernel (ir/kernel/verify.h).
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

bool verify_base(Verifying *v, const LoopNode *n, Linear *base) {
  const Address *at = &n->address;
  *base = (Linear){0};
  if (at->base != BASE_POINTER)
    return !at->is_row || verify_fail(v, n, "is_row is set, but its base is not an array of row pointers");
  const Memory *m = &v->memory[at->access];
  if (!m->has_pointer) return verify_fail(v, n, "its row pointer must be set before it");
  if (m->is_pointer_row != at->is_row)
    return verify_fail(v, n, "is_row of its address must be set if, and only if, each row has its own pointer");
  if (at->is_row && !is_in_row(v)) return verify_fail(v, n, "it must be in a loop over rows");
  if (m->pointer) *base = *m->pointer;
  return true;
}

bool verify_address(Verifying *v, const LoopNode *n, AccessId id, const Linear *expected) {
  const Address *at = &n->address;
  Linear is;
  if (at->access != id || (at->base != BASE_TENSOR && at->base != BASE_POINTER))
    return verify_fail(v, n, "its address must be in the tensor of its access");
  if (!verify_index(v, n, at->index) || !verify_base(v, n, &is)) return false;
  const Linear index = linear_of(v, at->index);
  linear_add_all(&is, &index, 1);
  return linear_equals(&is, expected) || verify_fail(v, n, "its address differs from the address of its element");
}

bool verify_access(Verifying *v, const LoopNode *n, AccessId id) {
  const Linear expected = access_index(v, id, v->memory[id].is_step_local ? v->inner : ~0U);
  return verify_address(v, n, id, &expected);
}

// Lanes

bool are_blocks_aligned(const Loop *loop) {
  return cut_is_multiple(&loop->cut, LANES);
}

// Whether a vector's lanes are in one panel of the access, or the access has no panels.
bool is_at_panel(const Verifying *v, const Access *a) {
  if (!a->panel_axis) return true;
  if (v->lanes == OUTER) return loop_lane_axis(v->loop) == a->panel_axis - 1 && are_blocks_aligned(v->loop);
  return v->lanes == a->panel_axis - 1 && v->range[v->lanes].is_aligned;
}

bool verify_lane_step(Verifying *v, const LoopNode *n, AccessId id) {
  const Access *a = &v->k->accesses[id];
  const int axis = loop_lane_axis(v->loop);
  const Index *stride =
      a->panel_axis == axis + 1 ? number_index(v, 1) : index_number(&v->b, a->stride[axis], a->stride_monomial[axis]);
  return verify_equal(v, n, "the stride from lane to lane", n->step, stride);
}

bool verify_fewer_lanes(Verifying *v, const LoopNode *n) {
  return !n->has_fewer_lanes || has_fewer_lanes(v) ||
         verify_fail(v, n, "has_fewer_lanes is set, but all lanes hold elements here");
}

bool verify_lanes(Verifying *v, const LoopNode *n) {
  if (!verify_fewer_lanes(v, n)) return false;
  if (n->has_fewer_lanes && node_uses_all_lanes(v->t, n))
    return verify_fail(v, n, "has_fewer_lanes is set, but panels have memory for all lanes");
  return n->has_fewer_lanes || !has_fewer_lanes(v) || n->load == LOAD_SPILLED || node_uses_all_lanes(v->t, n) ||
         verify_fail(v, n, "has_fewer_lanes is unset, but only some lanes hold elements here");
}

// Local arrays of a step

// Verifies the address of a vector in a local array of the step: the transposed copy, or spilled vectors.
// `lane_stride`: the distance between neighbouring indices on the vector axis.
static bool verify_lane_0(Verifying *v, const LoopNode *n, const Address *at, int64_t lane_stride, Linear *is) {
  if (at->is_row) return verify_fail(v, n, "is_row is set, but its base is not an array of row pointers");
  if (!verify_index(v, n, at->index)) return false;
  *is = linear_of(v, at->index);
  Linear expected = {0};
  linear_add_var(&expected, VAR_AXIS, (uint32_t)v->vector, lane_stride, 0);
  if (is_in_row(v)) linear_add_var(&expected, VAR_ROW, 0, linear_factor(is, VAR_ROW), 0);
  return linear_equals(is, &expected) || verify_fail(v, n, "its address differs from the address of its vector");
}

// Verifies the address of the row's vector among those of all rows.
static bool verify_row_vector(Verifying *v, const LoopNode *n, const Address *at) {
  if (!verify_index(v, n, at->index)) return false;
  const Linear is = linear_of(v, at->index);
  Linear expected = {0};
  linear_add_var(&expected, VAR_ROW, 0, LANES, 0);
  return (is_in_row(v) && !at->is_row && linear_equals(&is, &expected)) ||
         verify_fail(v, n, "its address differs from the address of its row's vector");
}

bool verify_copied(Verifying *v, const LoopNode *n, AccessId id, const Address *at) {
  Linear is;
  if (at->base != BASE_ROWS || at->access != id || !v->memory[id].has_copy)
    return verify_fail(v, n, "its transposed copy must be declared before it");
  if (has_fewer_lanes(v)) return verify_fail(v, n, "it needs all lanes in use");
  return v->lanes == OUTER ? verify_lane_0(v, n, at, LANES, &is) : verify_row_vector(v, n, at);
}

int find_spill(const Verifying *v, ExprId id) {
  for (int i = 0; i < v->loop->nspills; i++)
    if (v->loop->spills[i].expr == id) return i;
  return -1;
}

bool verify_spilled(Verifying *v, const LoopNode *n, Linear *address) {
  const int spill = find_spill(v, n->expr);
  if (spill < 0 || n->address.base != BASE_SPILLED || n->address.expr != n->expr || !v->spilled[spill].is_declared)
    return verify_fail_expr(v, n, n->expr, "must have a declared array of spilled vectors");
  return verify_lane_0(v, n, &n->address, loop_has(v->loop, LOOP_ROW_LANES) ? LANES : 1, address);
}
