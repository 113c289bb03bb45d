// Operators that read or write elements at indices. All compute positions in a flat tensor, in s64, and use Gather or
// its gradient.
#include "frontend/onnx/translation.h"

#include <string.h>

enum { MOST_PAIRS = 1 << 24 }; // limit of pairs of elements of an axis

static int64_t extent(const Value *v, int axis) {
  return v->shape.extent[axis].value;
}

static int64_t product(const Value *v, int first, int end) {
  int64_t p = 1;
  for (int i = first; i < end; i++) p *= extent(v, i);
  return p;
}

// Negative indices count from the end.
static Value *from_start(Onnx *x, Value *index, int64_t n) {
  Builder *b = &x->build;
  index = build_cast(b, index, TYPE_S64);
  if (!index) return NULL;
  Value *from_end = build_binary(b, OP_Add, index, build_number(b, TYPE_S64, NULL, (double)n));
  return build_choose(b, build_binary(b, OP_Less, index, build_number(b, TYPE_S64, NULL, 0)), from_end, index);
}

static Value *add(Onnx *x, Value *a, Value *b) {
  return a && b ? build_binary(&x->build, OP_Add, a, b) : a ? a : b;
}

Value *onnx_iota(Onnx *x, int64_t n, int64_t step, int behind) {
  Shape shape = {.rank = 1 + behind, .extent = {EXTENT(n)}};
  Constant *constant;
  for (int i = 1; i <= behind; i++) shape.extent[i] = EXTENT(1);
  Value *v = build_constant(&x->build, TYPE_S64, &shape, &constant);
  for (int64_t i = 0; v && i < n; i++) ((int64_t *)constant->data)[i] = i * step;
  return v;
}

// 0, n, 2 n and so on along axis 0, which may have a name, in the shape of indices.
static Value *rows_of(Onnx *x, Value *indices, int64_t n) {
  Builder *b = &x->build;
  Value *like = build_cast(b, indices, TYPE_F32);
  Node *node = like ? build_node(b, OP_GenIndex, 1, &like) : NULL;
  if (!node) return NULL;
  build_set(node, "axis")->s64 = 0;
  return build_times(b, build_cast(b, build_one(b, node), TYPE_S64), (double)n);
}

// The positions in the flat data for indices along an axis; indices have as many axes as the data.
static Value *places_along(Onnx *x, const Value *data, Value *indices, int axis) {
  const int rank = data->shape.rank;
  if (indices->shape.rank != rank) return build_error(&x->build, "expected indices of %d axes", rank), NULL;
  Value *place =
      build_times(&x->build, from_start(x, indices, extent(data, axis)), (double)product(data, axis + 1, rank));
  for (int i = 0; place && i < rank; i++) {
    const Extent e = indices->shape.extent[i];
    if (i == axis || (extent_is_literal(e) && e.value == 1)) continue;
    if (!extent_is_literal(e)) place = add(x, place, rows_of(x, indices, product(data, 1, rank)));
    else place = add(x, place, onnx_iota(x, extent(indices, i), product(data, i + 1, rank), rank - 1 - i));
  }
  return place;
}

static Value *reshape_like(Onnx *x, Value *v, const Value *like) {
  int64_t shape[MAX_RANK];
  for (int i = 0; i < like->shape.rank; i++) shape[i] = extent(like, i);
  return build_reshape(&x->build, v, shape, (size_t)like->shape.rank);
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
  return *data && *indices && onnx_has_numbers(x, *data) && onnx_has_numbers(x, *indices);
}

static Value *gather_along(Onnx *x, Value *data, Value *indices, int axis) {
  const int64_t nelems = extent_is_literal(data->shape.extent[0]) ? product(data, 0, data->shape.rank) : -1;
  return build_gather(&x->build, build_reshape(&x->build, data, &nelems, 1), places_along(x, data, indices, axis), 0);
}

// The batch, which is axis 0, may have a name.
bool onnx_gather_elements(Onnx *x) {
  Value *data = onnx_in(x, 0), *indices = onnx_in(x, 1);
  int axis;
  if (!data || !indices || !onnx_axis(x, onnx_int(x, "axis", 0), data->shape.rank, &axis)) return false;
  for (int i = axis > 0; i < data->shape.rank; i++)
    if (!onnx_has_number(x, data, i) || (i < indices->shape.rank && !onnx_has_number(x, indices, i))) return false;
  return onnx_out(x, 0, gather_along(x, data, indices, axis));
}

// The positions of rows in data, viewed as [number of rows, ...]. The coordinates of a row are in the last axis of
// indices, and index the axes behind the nbatch axes that data and indices share. *nrow_axes: how many axes of data a
// position replaces.
static Value *places_of_rows(Onnx *x, const Value *data, Value *indices, int64_t nbatch, int *nrow_axes) {
  Builder *b = &x->build;
  const int rank = data->shape.rank, last = indices->shape.rank - 1;
  const int64_t ncoordinates = last < 0 ? -1 : extent(indices, last);
  if (ncoordinates < 1 || nbatch < 0 || nbatch > last || ncoordinates > rank - nbatch)
    return build_error(b, "expected indices with at most %d coordinates", rank), NULL;
  const int end = (int)(nbatch + ncoordinates);
  Value *place = NULL;
  for (int k = 0; k < ncoordinates; k++) {
    const int64_t from = k, to = k + 1;
    int64_t shape[MAX_RANK];
    for (int i = 0; i < last; i++) shape[i] = extent(indices, i);
    Value *own = build_reshape(b, build_slice(b, indices, last, from, to), shape, (size_t)last);
    own = build_times(&x->build, from_start(x, own, extent(data, (int)nbatch + k)),
                      (double)product(data, (int)nbatch + k + 1, end));
    if (!own) return NULL;
    place = add(x, place, own);
  }
  for (int i = 0; place && i < nbatch; i++)
    place = add(x, place, onnx_iota(x, extent(data, i), product(data, i + 1, end), last - 1 - i));
  *nrow_axes = end;
  return place;
}

// data as [rows, ...]
static Value *as_rows(Onnx *x, Value *data, int nrow_axes) {
  int64_t shape[MAX_RANK] = {product(data, 0, nrow_axes)};
  const int rank = data->shape.rank - nrow_axes;
  for (int i = 0; i < rank; i++) shape[1 + i] = extent(data, nrow_axes + i);
  return build_reshape(&x->build, data, shape, (size_t)rank + 1);
}

bool onnx_gather_nd(Onnx *x) {
  Value *data, *indices;
  int nrow_axes = 0;
  if (!take_data(x, &data, &indices)) return false;
  Value *places = places_of_rows(x, data, indices, onnx_int(x, "batch_dims", 0), &nrow_axes);
  return places && onnx_out(x, 0, build_gather(&x->build, as_rows(x, data, nrow_axes), places, 0));
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

// Writes updates into rows at positions. Repeated positions are added, which ONNX leaves undefined except for reduction
// add.
static Value *put(Onnx *x, Value *rows, Value *places, Value *updates) {
  Builder *b = &x->build;
  const Bytes reduction = onnx_text(x, "reduction");
  if (!rows || !places || !updates) return NULL;
  if (reduction.count && !bytes_are(reduction, "none") && !bytes_are(reduction, "add"))
    return build_error(b, "reductions other than add are not supported"), NULL;
  const Type type = rows->type, wide = type_is_float(type) ? type : TYPE_F64;
  const Type exact = type_is_float(type) ? type : TYPE_S64; // in which integers wrap around
  Value *sum = build_cast(b, onnx_scatter(x, places, build_cast(b, updates, wide), &rows->shape), exact);
  if (!sum) return NULL;
  if (bytes_are(reduction, "add")) return build_cast(b, build_binary(b, OP_Add, build_cast(b, rows, exact), sum), type);
  const Shape marks = {.rank = 1, .extent = {rows->shape.extent[0]}};
  int64_t shape[MAX_RANK] = {extent(rows, 0)};
  for (int i = 1; i < rows->shape.rank; i++) shape[i] = 1;
  Value *ones = build_number(b, wide, &places->shape, 1);
  Value *is_put = build_binary(b, OP_Greater, onnx_scatter(x, places, ones, &marks), build_number(b, wide, NULL, 0));
  is_put = build_reshape(b, is_put, shape, (size_t)rows->shape.rank);
  return build_choose(b, is_put, build_cast(b, sum, type), rows);
}

static bool put_all(Onnx *x, Value *data, Value *rows, Value *places, Value *updates) {
  return onnx_out(x, 0, reshape_like(x, put(x, rows, places, updates), data));
}

bool onnx_scatter_elements(Onnx *x) {
  Builder *b = &x->build;
  Value *data, *indices, *updates = onnx_in(x, 2);
  int axis;
  if (!updates || !take_data(x, &data, &indices)) return false;
  if (!onnx_axis(x, onnx_int(x, "axis", 0), data->shape.rank, &axis)) return false;
  const int64_t nelems = product(data, 0, data->shape.rank), count = product(indices, 0, indices->shape.rank);
  Value *places = places_along(x, data, indices, axis);
  return put_all(x, data, build_reshape(b, data, &nelems, 1), build_reshape(b, places, &count, 1),
                 build_reshape(b, updates, &count, 1));
}

bool onnx_scatter_nd(Onnx *x) {
  Value *data, *indices, *updates = onnx_in(x, 2);
  int nrow_axes = 0;
  if (!updates || !take_data(x, &data, &indices)) return false;
  Value *places = places_of_rows(x, data, indices, 0, &nrow_axes), *rows = places ? as_rows(x, data, nrow_axes) : NULL;
  if (!rows) return false;
  int64_t count = product(places, 0, places->shape.rank), shape[MAX_RANK] = {count};
  for (int i = 1; i < rows->shape.rank; i++) shape[i] = extent(rows, i);
  return put_all(x, data, rows, build_reshape(&x->build, places, &count, 1),
                 build_reshape(&x->build, updates, shape, (size_t)rows->shape.rank));
}

// Selects where a constant condition is true, along an axis or in the flat input.
bool onnx_compress(Onnx *x) {
  Value *v = onnx_in(x, 0);
  const Value *condition = onnx_known(x, onnx_in(x, 1));
  int axis = 0;
  if (!v || !condition || !onnx_has_numbers(x, v)) return false;
  if (!condition->constant) return onnx_must_be_known(x, condition);
  if (!onnx_has_numbers(x, condition)) return false;
  const int64_t nelems = product(v, 0, v->shape.rank), n = shape_nelems(&condition->shape);
  if (onnx_has(x, "axis") && !onnx_axis(x, onnx_int(x, "axis", 0), v->shape.rank, &axis)) return false;
  if (!onnx_has(x, "axis")) v = build_reshape(&x->build, v, &nelems, 1);
  if (!v) return false;
  const int64_t most = n < extent(v, axis) ? n : extent(v, axis);
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
  if (!v || !lengths || !onnx_has_numbers(x, v)) return false;
  if (v->shape.rank < 2 || time < 0 || time > 1 || batch != 1 - time || lengths->shape.rank != 1)
    return build_error(b, "expected the axes 0 and 1, and a vector of lengths");
  const int64_t shape[] = {time == 0 ? 1 : extent(v, 0), time == 0 ? extent(v, 1) : 1};
  Value *length = build_reshape(b, build_cast(b, lengths, TYPE_S64), shape, 2),
        *at = onnx_iota(x, extent(v, (int)time), 1, time == 0);
  Value *last = build_binary(b, OP_Subtract, length, build_number(b, TYPE_S64, NULL, 1));
  Value *from = build_choose(b, build_binary(b, OP_Less, at, length), build_binary(b, OP_Subtract, last, at), at);
  Value *places = build_times(&x->build, from, time == 0 ? (double)extent(v, 1) : 1);
  places = add(x, places, onnx_iota(x, extent(v, (int)batch), batch == 0 ? extent(v, 1) : 1, batch == 0));
  return onnx_out(x, 0, reshape_like(x, build_gather(b, as_rows(x, v, 2), places, 0), v));
}

// Along one axis, by all pairs of its elements

// v with its axis as [before, n, 1, behind] or, with is_second, as [before, 1, n, behind].
static Value *beside(Onnx *x, Value *v, int axis, bool is_second) {
  if (!v) return NULL;
  const int64_t n = extent(v, axis), shape[] = {product(v, 0, axis), is_second ? 1 : n, is_second ? n : 1,
                                                product(v, axis + 1, v->shape.rank)};
  return build_reshape(&x->build, v, shape, 4);
}

// Booleans [rows, columns, 1]: whether `column - row` is in a range.
static Value *band(Onnx *x, int64_t nrows, int64_t ncolumns, int64_t first, int64_t last) {
  const Shape shape = {.rank = 3, .extent = {EXTENT(nrows), EXTENT(ncolumns), EXTENT(1)}};
  Constant *constant;
  if (nrows > 0 && ncolumns > MOST_PAIRS / nrows) return build_error(&x->build, "the axis is too long"), NULL;
  Value *v = build_constant(&x->build, TYPE_BOOLEAN, &shape, &constant);
  for (int64_t i = 0; v && i < nrows * ncolumns; i++) {
    const int64_t difference = i % ncolumns - i / ncolumns;
    ((uint8_t *)constant->data)[i] = difference >= first && difference <= last;
  }
  return v;
}

static Value *sum_over(Onnx *x, Value *v, int64_t axis) {
  return build_reduce(&x->build, OP_ReduceSum, v, &axis, 1, false);
}

bool onnx_cumulative_sum(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  double given;
  int axis;
  if (!v || !onnx_has_numbers(x, v) || !onnx_number(x, onnx_in(x, 1), &given)) return false;
  if (!onnx_axis(x, type_integer(given), v->shape.rank, &axis)) return false;
  const bool is_reverse = onnx_int(x, "reverse", 0) != 0;
  const int64_t n = extent(v, axis), least = onnx_int(x, "exclusive", 0) != 0;
  const Type type = v->type, wide = type_is_float(type) ? type : TYPE_F64;
  Value *is_added = is_reverse ? band(x, n, n, least, n) : band(x, n, n, -n, -least);
  Value *parts =
      build_choose(b, is_added, beside(x, build_cast(b, v, wide), axis, true), build_number(b, wide, NULL, 0));
  // A sum of integers wraps around.
  Value *sum = build_cast(b, sum_over(x, parts, 2), type_is_float(type) ? type : TYPE_S64);
  return onnx_out(x, 0, build_cast(b, reshape_like(x, sum, v), type));
}

// Whether a >= b, where NaN is greater than all numbers, as in numpy's order.
static Value *is_at_least(Onnx *x, Value *a, Value *b) {
  Value *is_greater = build_binary(&x->build, OP_GreaterEqual, a, b);
  if (!a || !type_is_float(a->type)) return is_greater;
  return build_binary(&x->build, OP_LogicalOr, is_greater, build_binary(&x->build, OP_NotEqual, a, a));
}

// The rank of an element is the number of elements before it: better ones, and equal ones with a smaller index. So an
// element with a smaller index is before it unless it is better, and one with a larger index if that is better.
static Value *ranks(Onnx *x, Value *v, int axis, bool is_largest) {
  Builder *b = &x->build;
  const int64_t n = extent(v, axis);
  Value *own = beside(x, v, axis, false), *other = beside(x, v, axis, true);
  Value *greater = is_largest ? other : own, *lesser = is_largest ? own : other;
  Value *if_earlier = build_binary(b, OP_LogicalAnd, is_at_least(x, greater, lesser), band(x, n, n, -n, -1)),
        *if_later = build_binary(b, OP_LogicalOr, is_at_least(x, lesser, greater), band(x, n, n, -n, -1));
  Value *is_before = build_binary(b, OP_LogicalOr, if_earlier, build_unary(b, OP_LogicalNot, if_later));
  return sum_over(x, build_cast(b, is_before, TYPE_F32), 2);
}

// The ranks of an axis are 0 to n - 1, each once, so there is one element for each of the k indices.
bool onnx_top_k(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  double k = (double)onnx_int(x, "k", 0);
  int axis;
  if (!v || !onnx_has_numbers(x, v) || (x->opset >= 10 && !onnx_number(x, onnx_in(x, 1), &k))) return false;
  if (!onnx_axis(x, onnx_int(x, "axis", -1), v->shape.rank, &axis)) return false;
  const int64_t n = extent(v, axis), count = type_integer(k);
  if (count < 0 || count > n) return build_error(b, "k: expected 0 to %lld", (long long)n);
  Value *key = TYPE_BIT(v->type) & TYPES_BYTE ? build_cast(b, v, TYPE_S32) : v;
  Value *rank = key ? ranks(x, key, axis, onnx_int(x, "largest", 1) != 0) : NULL;
  if (!rank) return false;
  const int64_t before = product(v, 0, axis), behind = product(v, axis + 1, v->shape.rank);
  const int64_t column[] = {before, n, 1, behind}, row[] = {count, 1};
  rank = build_reshape(b, rank, column, 4);
  Value *is_it =
      build_binary(b, OP_Equal, rank, build_reshape(b, build_cast(b, onnx_iota(x, count, 1, 1), TYPE_F32), row, 2));
  Value *index = build_cast(b, onnx_iota(x, n, 1, 2), TYPE_F32),
        *indices = sum_over(x, build_choose(b, is_it, index, build_number(b, TYPE_F32, NULL, 0)), 1);
  int64_t shape[MAX_RANK];
  for (int i = 0; i < v->shape.rank; i++) shape[i] = i == axis ? count : extent(v, i);
  indices = build_cast(b, build_reshape(b, indices, shape, (size_t)v->shape.rank), TYPE_S64);
  return indices && onnx_out(x, 0, gather_along(x, v, indices, axis)) && onnx_out(x, 1, indices);
}

// Ones on a diagonal.
bool onnx_eye_like(Onnx *x) {
  Builder *b = &x->build;
  const Value *like = onnx_in(x, 0);
  if (!like || !onnx_has_numbers(x, like)) return false;
  if (like->shape.rank != 2) return build_error(b, "expected a matrix");
  const Type type = onnx_has(x, "dtype") ? onnx_type((uint64_t)onnx_int(x, "dtype", 1)) : like->type;
  const int64_t k = onnx_int(x, "k", 0), shape[] = {extent(like, 0), extent(like, 1)};
  if (type == TYPE_NONE) return build_error(b, "dtype: the type is not supported");
  Value *is_one = build_reshape(b, band(x, shape[0], shape[1], k, k), shape, 2);
  return onnx_out(x, 0, build_cast(b, is_one, type));
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
      ((int64_t *)constant->data)[axis * count + at] = i / product(v, axis + 1, rank) % extent(v, axis);
    at++;
  }
  return onnx_out(x, 0, indices);
}
