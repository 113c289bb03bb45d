// Operators that read or write elements at indices. All compute positions in a flat tensor, in s64, and use Gather or
// its gradient. Extents may be named, unless a translator asks for a number.
#include "frontend/onnx/translation.h"
#include "ir/graph/extents.h"

#include <math.h>
#include <string.h>

enum { MOST_STORED = 1 << 16 }; // indices that are a constant

static Extent extent(const Value *v, int axis) {
  return v->shape.extent[axis];
}

static bool is_one(Extent e) {
  return extent_is_literal(e) && e.value == 1;
}

// Of extents; unknown if it is no formula.
Extent onnx_product(Onnx *x, const Value *v, int first, int end) {
  Extent p = EXTENT(1);
  for (int i = first; i < end; i++)
    if (!extent_multiply(x->build.graph, p, extent(v, i), &p)) error_out_of_memory(x->reading.d);
  return p;
}

// As an element, in s64. A named extent is the sum of as many ones.
Value *onnx_extent_tensor(Onnx *x, Extent e) {
  Builder *b = &x->build;
  const Shape shape = {.rank = 1, .extent = {e}};
  if (extent_is_literal(e)) return build_number(b, TYPE_S64, NULL, (double)e.value);
  if (!e.dim) return build_error(b, "expected extents that are numbers or have names"), NULL;
  Value *ones = build_number(b, TYPE_F64, &shape, 1);
  return build_cast(b, build_reduce(b, OP_ReduceSum, ones, &(int64_t){0}, 1, false), TYPE_S64);
}

static Value *times(Onnx *x, Value *v, Extent by) {
  return is_one(by) ? v : build_binary(&x->build, OP_Multiply, v, onnx_extent_tensor(x, by));
}

// Negative indices count from the end.
static Value *from_start(Onnx *x, Value *index, Extent n) {
  Builder *b = &x->build;
  index = build_cast(b, index, TYPE_S64);
  if (!index) return NULL;
  Value *from_end = build_binary(b, OP_Add, index, onnx_extent_tensor(x, n));
  return build_choose(b, build_binary(b, OP_Less, index, build_number(b, TYPE_S64, NULL, 0)), from_end, index);
}

static Value *add(Onnx *x, Value *a, Value *b) {
  return a && b ? build_binary(&x->build, OP_Add, a, b) : a ? a : b;
}

Value *onnx_iota(Onnx *x, Extent n, Extent step, int behind) {
  Builder *b = &x->build;
  Shape shape = {.rank = 1 + behind, .extent = {n}};
  Constant *constant;
  for (int i = 1; i <= behind; i++) shape.extent[i] = EXTENT(1);
  if (!extent_is_literal(n) || (n.value > MOST_STORED && n.value < INT32_MAX)) {
    Value *index = build_along(b, OP_GenIndex, build_number(b, TYPE_F32, &shape, 0), 0);
    return times(x, build_cast(b, index, TYPE_S64), step);
  }
  const int64_t by = extent_is_literal(step) ? step.value : 1;
  Value *v = build_constant(b, TYPE_S64, &shape, &constant);
  for (int64_t i = 0; v && i < n.value; i++) ((int64_t *)constant->data)[i] = i * by;
  return extent_is_literal(step) ? v : times(x, v, step);
}

Value *onnx_places_along(Onnx *x, const Value *data, Value *indices, int axis) {
  const int rank = data->shape.rank;
  if (indices->shape.rank != rank) return build_error(&x->build, "expected indices of %d axes", rank), NULL;
  Value *place = times(x, from_start(x, indices, extent(data, axis)), onnx_product(x, data, axis + 1, rank));
  for (int i = 0; place && i < rank; i++)
    if (i != axis && !is_one(extent(indices, i)))
      place = add(x, place, onnx_iota(x, extent(indices, i), onnx_product(x, data, i + 1, rank), rank - 1 - i));
  return place;
}

Value *onnx_reshape_to(Onnx *x, Value *v, int rank, const Extent *extents) {
  Shape shape = {.rank = rank};
  memcpy(shape.extent, extents, (size_t)rank * sizeof *extents);
  return onnx_reshape_extents(x, v, &shape);
}

Value *onnx_flat(Onnx *x, Value *v) {
  return v ? onnx_reshape_to(x, v, 1, (const Extent[]){onnx_product(x, v, 0, v->shape.rank)}) : NULL;
}

Value *onnx_take(Onnx *x, Value *v, const int64_t *indices, int64_t count, int axis) {
  const Shape shape = {.rank = 1, .extent = {EXTENT(count)}};
  Constant *constant;
  Value *places = build_constant(&x->build, TYPE_S64, &shape, &constant);
  if (!places || !v) return NULL;
  memcpy(constant->data, indices, (size_t)count * sizeof *indices);
  return build_gather(&x->build, v, places, axis);
}

static bool take_data(Onnx *x, Value **data, Value **indices) {
  *data = onnx_in(x, 0);
  *indices = onnx_in(x, 1);
  return *data && *indices;
}

Value *onnx_gather_along(Onnx *x, Value *data, Value *indices, int axis) {
  return build_gather(&x->build, onnx_flat(x, data), onnx_places_along(x, data, indices, axis), 0);
}

bool onnx_gather_elements(Onnx *x) {
  Value *data, *indices;
  int axis;
  if (!take_data(x, &data, &indices) || !onnx_axis(x, onnx_int(x, "axis", 0), data->shape.rank, &axis)) return false;
  return onnx_out(x, 0, onnx_gather_along(x, data, indices, axis));
}

Value *onnx_places_of_rows(Onnx *x, const Value *data, Value *indices, int64_t nbatch, int *nrow_axes) {
  Builder *b = &x->build;
  const int rank = data->shape.rank, last = indices->shape.rank - 1;
  if (last >= 0 && !onnx_has_number(x, indices, last)) return NULL;
  const int64_t ncoordinates = last < 0 ? -1 : extent(indices, last).value;
  if (ncoordinates < 1 || nbatch < 0 || nbatch > last || ncoordinates > rank - nbatch)
    return build_error(b, "expected indices with at most %d coordinates", rank), NULL;
  const int end = (int)(nbatch + ncoordinates);
  Value *place = NULL;
  for (int k = 0; k < ncoordinates; k++) {
    const int64_t from = k, to = k + 1;
    Value *own = onnx_reshape_to(x, build_slice(b, indices, last, from, to), last, indices->shape.extent);
    own = times(x, from_start(x, own, extent(data, (int)nbatch + k)), onnx_product(x, data, (int)nbatch + k + 1, end));
    if (!own) return NULL;
    place = add(x, place, own);
  }
  for (int i = 0; place && i < nbatch; i++)
    place = add(x, place, onnx_iota(x, extent(data, i), onnx_product(x, data, i + 1, end), last - 1 - i));
  *nrow_axes = end;
  return place;
}

Value *onnx_as_rows(Onnx *x, Value *data, int nrow_axes) {
  const int rank = data->shape.rank - nrow_axes;
  Extent shape[MAX_RANK + 1] = {onnx_product(x, data, 0, nrow_axes)};
  memcpy(shape + 1, data->shape.extent + nrow_axes, (size_t)rank * sizeof *shape);
  return onnx_reshape_to(x, data, 1 + rank, shape);
}

bool onnx_gather_nd(Onnx *x) {
  Value *data, *indices;
  int nrow_axes = 0;
  if (!take_data(x, &data, &indices)) return false;
  Value *places = onnx_places_of_rows(x, data, indices, onnx_int(x, "batch_dims", 0), &nrow_axes);
  return places && onnx_out(x, 0, build_gather(&x->build, onnx_as_rows(x, data, nrow_axes), places, 0));
}

// Adds each update, [count, ...], to the row of zeros at its position.
Value *onnx_scatter(Onnx *x, Value *places, Value *updates, const Shape *rows) {
  Builder *b = &x->build;
  Node *node = build_node(b, OP_GatherBackward, 2, (Value *const[]){places, updates});
  Value *v = build_result(b, node, 0, TYPE_NONE);
  if (!v) return NULL;
  v->shape = *rows;
  return build_finish(b, node) ? v : NULL;
}

// Selects where a constant condition is true, along an axis or in the flat input.
bool onnx_compress(Onnx *x) {
  Value *v = onnx_in(x, 0);
  const Value *condition = onnx_known(x, onnx_in(x, 1));
  int axis = 0;
  if (!v || !condition) return false;
  if (!condition->constant) return onnx_must_be_known(x, condition);
  if (!onnx_has_numbers(x, condition)) return false;
  const int64_t n = shape_nelems(&condition->shape);
  if (onnx_has(x, "axis") && !onnx_axis(x, onnx_int(x, "axis", 0), v->shape.rank, &axis)) return false;
  if (!onnx_has(x, "axis")) v = onnx_flat(x, v);
  if (!v || !onnx_has_number(x, v, axis)) return false;
  const int64_t most = n < extent(v, axis).value ? n : extent(v, axis).value;
  if (!build_spend(&x->build, most * (int64_t)sizeof(int64_t))) return false;
  int64_t *indices = ARENA_ARRAY(x->reading.arena, int64_t, (size_t)most + 1), count = 0;
  if (!indices) return error_out_of_memory(x->reading.d);
  for (int64_t i = 0; i < most; i++)
    if (onnx_integer(condition, (size_t)i)) indices[count++] = i;
  return onnx_out(x, 0, onnx_take(x, v, indices, count, axis));
}

// Reverses the first sequence_lens[b] elements along time_axis.
bool onnx_reverse_sequence(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0), *lengths = onnx_in(x, 1);
  const int64_t time = onnx_int(x, "time_axis", 0), batch = onnx_int(x, "batch_axis", 1);
  if (!v || !lengths) return false;
  if (v->shape.rank < 2 || time < 0 || time > 1 || batch != 1 - time || lengths->shape.rank != 1)
    return build_error(b, "expected the axes 0 and 1, and a vector of lengths");
  const Extent one = EXTENT(1), shape[] = {time == 0 ? one : extent(v, 0), time == 0 ? extent(v, 1) : one};
  Value *length = onnx_reshape_to(x, build_cast(b, lengths, TYPE_S64), 2, shape),
        *at = onnx_iota(x, extent(v, (int)time), one, time == 0);
  Value *last = build_binary(b, OP_Subtract, length, build_number(b, TYPE_S64, NULL, 1));
  Value *from = build_choose(b, build_binary(b, OP_Less, at, length), build_binary(b, OP_Subtract, last, at), at);
  Value *places = times(x, from, time == 0 ? extent(v, 1) : one);
  places = add(x, places, onnx_iota(x, extent(v, (int)batch), batch == 0 ? extent(v, 1) : one, batch == 0));
  return onnx_out(x, 0, onnx_reshape_extents(x, build_gather(b, onnx_as_rows(x, v, 2), places, 0), &v->shape));
}

// The indices of a constant's elements that are not 0.
bool onnx_non_zero(Onnx *x) {
  const Value *v = onnx_known(x, onnx_in(x, 0));
  if (!v) return false;
  if (!v->constant) return onnx_must_be_known(x, v);
  if (!onnx_has_numbers(x, v)) return false;
  const int64_t nelems = shape_nelems(&v->shape);
  const int rank = v->shape.rank;
  int64_t count = 0;
  Constant *constant;
  if (!build_spend(&x->build, nelems)) return false; // each element is examined
  for (int64_t i = 0; i < nelems; i++)
    count += type_load(v->type, v->constant->data, v->constant->is_splat ? 0 : (size_t)i) != 0;
  const Shape shape = {.rank = 2, .extent = {EXTENT(rank), EXTENT(count)}};
  Value *indices = build_constant(&x->build, TYPE_S64, &shape, &constant);
  for (int64_t i = 0, at = 0; indices && i < nelems; i++) {
    if (type_load(v->type, v->constant->data, v->constant->is_splat ? 0 : (size_t)i) == 0) continue;
    for (int axis = 0; axis < rank; axis++)
      ((int64_t *)constant->data)[axis * count + at] =
          i / onnx_product(x, v, axis + 1, rank).value % extent(v, axis).value;
    at++;
  }
  return onnx_out(x, 0, indices);
}
