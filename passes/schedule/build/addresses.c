// Builds addresses: row pointers, and indices relative to them.
#include "passes/schedule/build/nest_builder.h"

const Index *number(NestBuilder *r, int64_t n) {
  return index_number(&r->b, n, 0);
}

const Index *var(NestBuilder *r, VarKind kind, uint32_t of) {
  return index_var(&r->b, kind, of);
}

const Index *lane_index(NestBuilder *r) {
  return var(r, VAR_LANE, 0);
}

static const Index *axis_index(NestBuilder *r, int axis) {
  return var(r, VAR_AXIS, (uint32_t)axis);
}

const Index *axes_nelems_index(NestBuilder *r, AxisSet axes) {
  return index_number(&r->b, axes_nelems(r->k, axes), axes_monomial(r->k, axes));
}

const Index *stride_of(NestBuilder *r, const Access *a, int axis) {
  return index_number(&r->b, a->stride[axis], a->stride_monomial[axis]);
}

const Index *block_length(NestBuilder *r) {
  if (!loop_has_open_length(r->k, r->loop)) return number(r, loop_block_length(r->k, r->loop));
  return index_loop(&r->b, INDEX_BLOCK_LENGTH, r->loop_index);
}

const Index *ncut_blocks(NestBuilder *r, uint32_t loop) {
  if (!loop_has_open_cut_blocks(r->k, &r->schedule->loops[loop]))
    return number(r, loop_ncut_blocks(r->k, &r->schedule->loops[loop]));
  return index_loop(&r->b, INDEX_NCUT_BLOCKS, loop);
}

const Index *plus(NestBuilder *r, const Index *x, const Index *y) {
  return x ? index_of(&r->b, INDEX_ADD, x, y) : y;
}

const Index *times(NestBuilder *r, const Index *x, const Index *y) {
  return index_of(&r->b, INDEX_MULTIPLY, x, y);
}

const Index *minus(NestBuilder *r, const Index *x, const Index *y) {
  return index_of(&r->b, INDEX_SUBTRACT, x ? x : number(r, 0), y);
}

const Index *least(NestBuilder *r, const Index *x, const Index *y) {
  return index_choose(&r->b, index_of(&r->b, INDEX_LESS, x, y), x, y);
}

// Adds index * the access's stride along the axis.
static const Index *add_term(NestBuilder *r, const Access *a, int axis, const Index *index, const Index *before) {
  if (a->stride[axis] >= 0) return plus(r, before, times(r, index, stride_of(r, a, axis)));
  return minus(r, before, times(r, index, index_number(&r->b, -a->stride[axis], a->stride_monomial[axis])));
}

const Index *add_terms(NestBuilder *r, const Access *a, AxisSet axes, const Index *before) {
  for (int axis = 0; axis < r->k->naxes; axis++)
    if (axes >> axis & 1 && a->stride[axis]) before = add_term(r, a, axis, axis_index(r, axis), before);
  return before;
}

// The offset of the element whose index is current on these axes and 0 on the others.
static const Index *from_start(NestBuilder *r, const Access *a, AxisSet axes) {
  const Index *offset = a->offset ? index_number(&r->b, a->offset, a->offset_monomial) : NULL;
  return add_terms(r, a, axes, offset);
}

// The index on an axis at lane 0.
static const Index *first_index(NestBuilder *r, int axis) {
  return axis == vector_axis(r) ? lane_index(r) : axis_index(r, axis);
}

// offset + the sum of index * factor over the axes, at lane 0. Negative terms are subtracted last; the result may be
// negative, as the arithmetic is modulo 2^64.
static const Index *add_factors(NestBuilder *r, const int64_t *factor, const Monomial *monomial, int64_t offset,
                                Monomial offset_monomial) {
  const Index *sum = NULL;
  for (int axis = 0; axis < r->k->naxes; axis++)
    if (factor[axis] > 0)
      sum = plus(r, sum,
                 times(r, first_index(r, axis), index_number(&r->b, factor[axis], monomial ? monomial[axis] : 0)));
  if (offset > 0) sum = plus(r, sum, index_number(&r->b, offset, offset_monomial));
  for (int axis = 0; axis < r->k->naxes; axis++)
    if (factor[axis] < 0)
      sum = minus(r, sum,
                  times(r, first_index(r, axis), index_number(&r->b, -factor[axis], monomial ? monomial[axis] : 0)));
  return offset < 0 ? minus(r, sum, index_number(&r->b, -offset, offset_monomial)) : sum;
}

// An address relative to the tensor's first element. A row pointer could point outside of the tensor.
static Address bounded_address(NestBuilder *r, AccessId id) {
  const Access *a = &r->k->accesses[id];
  return (Address){.buffer = BUFFER_TENSOR,
                   .of = id,
                   .index = add_factors(r, a->stride, a->stride_monomial, a->offset, a->offset_monomial)};
}

void add_bounds(NestBuilder *r, LoopNode *load, const Access *a) {
  const int lane_axis = load->is_vector ? loop_lane_axis(r->loop) : -1;
  for (size_t i = 0; i < a->nbounds; i++) {
    const Bound *b = &a->bounds[i];
    if (bound_always_holds(r->k, b)) continue;
    const Index *index = add_factors(r, b->factor, NULL, b->offset, 0);
    if (lane_axis >= 0 && b->factor[lane_axis]) {
      load->from.within = index;
    } else {
      const Index *test = index_of(&r->b, INDEX_LESS, index, number(r, b->extent));
      load->test = load->test ? index_of(&r->b, INDEX_BOTH, load->test, test) : test;
    }
  }
}

Address element_address(NestBuilder *r, AccessId id, AxisSet axes) {
  if (access_has_conditions(r->k, &r->k->accesses[id])) return bounded_address(r, id);
  return (Address){.buffer = BUFFER_TENSOR, .of = id, .index = from_start(r, &r->k->accesses[id], axes)};
}

Address vector_address(NestBuilder *r, AccessId id) {
  const Access *a = &r->k->accesses[id];
  const int v = vector_axis(r);
  const bool is_row = has_rows(r) && varies_by_row(r, access_axes(r->k, a));
  const Index *index = add_terms(r, a, loop_middle_axes(r->loop), NULL);
  if (a->stride[v]) {
    const Index *lane = access_is_mask(a) ? index_of(&r->b, INDEX_DIVIDE, lane_index(r), number(r, 8)) : lane_index(r);
    index = add_term(r, a, v, lane, index);
  }
  return (Address){.buffer = BUFFER_ROW, .of = id, .item = is_row ? &item_of_row : NULL, .index = index};
}

// The address of the vector that an expression of this level loads or stores: relative to a row pointer, which only
// accesses over the innermost axis have, else to the tensor.
Address lanes_address(NestBuilder *r, AccessId id, Level level) {
  if (access_has_conditions(r->k, &r->k->accesses[id])) return bounded_address(r, id);
  return level == LEVEL_VECTOR ? vector_address(r, id) : element_address(r, id, loop_outer_axes(r->loop));
}

bool is_optional(const NestBuilder *r, AccessId id) {
  const Value *v = r->k->accesses[id].value;
  return v && r->wants->is_optional && r->wants->is_optional[v->index];
}

bool may_be_unwanted(const NestBuilder *r, AccessId id) {
  const Access *a = &r->k->accesses[id];
  return !a->value && r->wants->may_be_unwanted && r->wants->may_be_unwanted[a->temporary];
}

const Index *partial_test(NestBuilder *r, AccessId id) {
  if (!may_be_unwanted(r, id) || r->is_partial_tested) return NULL;
  return index_of_address(&r->b, INDEX_EXISTS, (Address){.buffer = BUFFER_PARTIALS, .of = id});
}

const Index *all_partials_test(NestBuilder *r, AccessId id) {
  return may_be_unwanted(r, id) ? exists(r, id) : NULL;
}

const Index *exists(NestBuilder *r, AccessId id) {
  return index_of_address(&r->b, INDEX_EXISTS, (Address){.buffer = BUFFER_TENSOR, .of = id});
}

bool is_transposed(const NestBuilder *r, AccessId id) {
  if (!loop_has(r->loop, LOOP_ROW_LANES)) return false;
  const Access *a = &r->k->accesses[id];
  return !r->is_tail && a->stride[loop_lane_axis(r->loop)] && a->stride[r->loop->axes[r->loop->nouter]] == 1;
}

bool copies_columns(const NestBuilder *r, AccessId id) {
  if (!loop_has(r->loop, LOOP_ROW_LANES)) return false;
  const Access *a = &r->k->accesses[id];
  return !r->is_tail && a->stride[loop_lane_axis(r->loop)] == 1 && a->stride[r->loop->axes[r->loop->nouter]] > 1;
}
