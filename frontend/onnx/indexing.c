// Operators that read or write elements at indices. All compute positions in a flat tensor, in s64, and use Gather or
// its gradient. Extents may be named, unless a translator asks for a number.
#include "frontend/onnx/translation.h"
#include "ir/graph/extents.h"

#include <math.h>
#include <string.h>

enum { MOST_PAIRS = 1 << 24 }; // limit of pairs of elements of an axis

static Extent extent(const Value *v, int axis) {
  return v->shape.extent[axis];
}

static bool is_one(Extent e) {
  return extent_is_literal(e) && e.value == 1;
}

// Of extents; unknown if it is no formula.
static Extent product(Onnx *x, const Value *v, int first, int end) {
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
  if (!extent_is_literal(n)) {
    Value *index = build_along(b, OP_GenIndex, build_number(b, TYPE_F32, &shape, 0), 0);
    return times(x, build_cast(b, index, TYPE_S64), step);
  }
  const int64_t by = extent_is_literal(step) ? step.value : 1;
  Value *v = build_constant(b, TYPE_S64, &shape, &constant);
  for (int64_t i = 0; v && i < n.value; i++) ((int64_t *)constant->data)[i] = i * by;
  return extent_is_literal(step) ? v : times(x, v, step);
}

// The positions in the flat data for indices along an axis; indices have as many axes as the data.
static Value *places_along(Onnx *x, const Value *data, Value *indices, int axis) {
  const int rank = data->shape.rank;
  if (indices->shape.rank != rank) return build_error(&x->build, "expected indices of %d axes", rank), NULL;
  Value *place = times(x, from_start(x, indices, extent(data, axis)), product(x, data, axis + 1, rank));
  for (int i = 0; place && i < rank; i++)
    if (i != axis && !is_one(extent(indices, i)))
      place = add(x, place, onnx_iota(x, extent(indices, i), product(x, data, i + 1, rank), rank - 1 - i));
  return place;
}

static Value *reshape(Onnx *x, Value *v, int rank, const Extent *extents) {
  Shape shape = {.rank = rank};
  memcpy(shape.extent, extents, (size_t)rank * sizeof *extents);
  return onnx_reshape_extents(x, v, &shape);
}

Value *onnx_flat(Onnx *x, Value *v) {
  return v ? reshape(x, v, 1, (const Extent[]){product(x, v, 0, v->shape.rank)}) : NULL;
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

static Value *gather_along(Onnx *x, Value *data, Value *indices, int axis) {
  return build_gather(&x->build, onnx_flat(x, data), places_along(x, data, indices, axis), 0);
}

bool onnx_gather_elements(Onnx *x) {
  Value *data, *indices;
  int axis;
  if (!take_data(x, &data, &indices) || !onnx_axis(x, onnx_int(x, "axis", 0), data->shape.rank, &axis)) return false;
  return onnx_out(x, 0, gather_along(x, data, indices, axis));
}

// The positions of rows in data, viewed as [number of rows, ...]. The coordinates of a row are in the last axis of
// indices, and index the axes behind the nbatch axes that data and indices share. *nrow_axes: how many axes of data a
// position replaces.
static Value *places_of_rows(Onnx *x, const Value *data, Value *indices, int64_t nbatch, int *nrow_axes) {
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
    Value *own = reshape(x, build_slice(b, indices, last, from, to), last, indices->shape.extent);
    own = times(x, from_start(x, own, extent(data, (int)nbatch + k)), product(x, data, (int)nbatch + k + 1, end));
    if (!own) return NULL;
    place = add(x, place, own);
  }
  for (int i = 0; place && i < nbatch; i++)
    place = add(x, place, onnx_iota(x, extent(data, i), product(x, data, i + 1, end), last - 1 - i));
  *nrow_axes = end;
  return place;
}

// data as [rows, ...]
static Value *as_rows(Onnx *x, Value *data, int nrow_axes) {
  const int rank = data->shape.rank - nrow_axes;
  Extent shape[MAX_RANK + 1] = {product(x, data, 0, nrow_axes)};
  memcpy(shape + 1, data->shape.extent + nrow_axes, (size_t)rank * sizeof *shape);
  return reshape(x, data, 1 + rank, shape);
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

// The maximum, minimum or product of each row and of the updates at its position, by all pairs of rows and updates.
static Value *put_by_pairs(Onnx *x, OperatorId reduction, Value *rows, Value *places, Value *updates) {
  Builder *b = &x->build;
  const bool is_product = reduction == OP_ReduceProd, is_greatest = reduction == OP_ReduceMax;
  const Type type = rows->type, wide = type_is_float(type) ? type : TYPE_F64;
  const int rank = rows->shape.rank;
  if (!onnx_has_number(x, rows, 0) || !onnx_has_number(x, places, 0)) return NULL;
  const int64_t nrows = extent(rows, 0).value, count = extent(places, 0).value;
  if ((count && nrows > MOST_PAIRS / count) || rank == MAX_RANK)
    return build_error(b, "too many pairs of rows and updates, or more than %d axes", MAX_RANK - 1), NULL;
  Extent apart[MAX_RANK] = {EXTENT(1)}, pairs[MAX_RANK] = {EXTENT(nrows), EXTENT(count)};
  memcpy(apart + 1, updates->shape.extent, (size_t)rank * sizeof *apart);
  for (int i = 2; i <= rank; i++) pairs[i] = EXTENT(1);
  Value *is_there = build_binary(b, OP_Equal, onnx_iota(x, EXTENT(nrows), EXTENT(1), 1), places);
  is_there = reshape(x, is_there, rank + 1, pairs);
  Value *neutral = build_number(b, wide, NULL, is_product ? 1 : is_greatest ? -(double)INFINITY : (double)INFINITY);
  Value *each = build_choose(b, is_there, reshape(x, build_cast(b, updates, wide), rank + 1, apart), neutral);
  Value *all = build_reduce(b, reduction, each, (int64_t[]){1}, 1, false), *own = build_cast(b, rows, wide);
  const OperatorId pair = is_product ? OP_Multiply : is_greatest ? OP_Maximum : OP_Minimum;
  Value *result = build_binary(b, pair, own, all);
  if (!result) return NULL;
  if (!is_product) result = build_choose(b, build_binary(b, OP_Equal, own, own), result, own); // NaN stays NaN
  return build_cast(b, type_is_float(type) || !is_product ? result : build_cast(b, result, TYPE_S64), type);
}

// Writes updates into rows at positions. Repeated positions are added, which ONNX leaves undefined except for
// reductions.
static Value *put(Onnx *x, Value *rows, Value *places, Value *updates) {
  static const struct {
    const char *name;
    OperatorId reduction;
  } reductions[] = {
      {"none", OP_COUNT}, {"add", OP_ReduceSum}, {"max", OP_ReduceMax}, {"min", OP_ReduceMin}, {"mul", OP_ReduceProd}};
  Builder *b = &x->build;
  const Bytes reduction = onnx_text(x, "reduction");
  size_t i = 0;
  if (!rows || !places || !updates) return NULL;
  while (reduction.count && i < 5 && !bytes_are(reduction, reductions[i].name)) i++;
  if (i == 5) return build_error(b, "reduction: expected none, add, max, min or mul"), NULL;
  if (i > 1) return put_by_pairs(x, reductions[i].reduction, rows, places, updates);
  const Type type = rows->type, wide = type_is_float(type) ? type : TYPE_F64;
  const Type exact = type_is_float(type) ? type : TYPE_S64; // in which integers wrap around
  Value *sum = build_cast(b, onnx_scatter(x, places, build_cast(b, updates, wide), &rows->shape), exact);
  if (!sum) return NULL;
  if (bytes_are(reduction, "add")) return build_cast(b, build_binary(b, OP_Add, build_cast(b, rows, exact), sum), type);
  const Shape marks = {.rank = 1, .extent = {rows->shape.extent[0]}};
  Extent shape[MAX_RANK] = {extent(rows, 0)};
  for (int axis = 1; axis < rows->shape.rank; axis++) shape[axis] = EXTENT(1);
  Value *ones = build_number(b, wide, &places->shape, 1);
  Value *is_put = build_binary(b, OP_Greater, onnx_scatter(x, places, ones, &marks), build_number(b, wide, NULL, 0));
  is_put = reshape(x, is_put, rows->shape.rank, shape);
  return build_choose(b, is_put, build_cast(b, sum, type), rows);
}

static bool put_all(Onnx *x, const Value *data, Value *rows, Value *places, Value *updates) {
  return onnx_out(x, 0, onnx_reshape_extents(x, put(x, rows, places, updates), &data->shape));
}

bool onnx_scatter_elements(Onnx *x) {
  Value *data, *indices, *updates = onnx_in(x, 2);
  int axis;
  if (!updates || !take_data(x, &data, &indices)) return false;
  if (!onnx_axis(x, onnx_int(x, "axis", 0), data->shape.rank, &axis)) return false;
  Value *places = onnx_flat(x, places_along(x, data, indices, axis));
  return put_all(x, data, onnx_flat(x, data), places, onnx_flat(x, updates));
}

bool onnx_scatter_nd(Onnx *x) {
  Value *data, *indices, *updates = onnx_in(x, 2);
  int nrow_axes = 0;
  if (!updates || !take_data(x, &data, &indices)) return false;
  Value *places = onnx_flat(x, places_of_rows(x, data, indices, 0, &nrow_axes)),
        *rows = places ? as_rows(x, data, nrow_axes) : NULL;
  if (!rows) return false;
  Extent shape[MAX_RANK];
  memcpy(shape, rows->shape.extent, sizeof shape);
  shape[0] = extent(places, 0);
  return put_all(x, data, rows, places, reshape(x, updates, rows->shape.rank, shape));
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
  Value *length = reshape(x, build_cast(b, lengths, TYPE_S64), 2, shape),
        *at = onnx_iota(x, extent(v, (int)time), one, time == 0);
  Value *last = build_binary(b, OP_Subtract, length, build_number(b, TYPE_S64, NULL, 1));
  Value *from = build_choose(b, build_binary(b, OP_Less, at, length), build_binary(b, OP_Subtract, last, at), at);
  Value *places = times(x, from, time == 0 ? extent(v, 1) : one);
  places = add(x, places, onnx_iota(x, extent(v, (int)batch), batch == 0 ? extent(v, 1) : one, batch == 0));
  return onnx_out(x, 0, onnx_reshape_extents(x, build_gather(b, as_rows(x, v, 2), places, 0), &v->shape));
}

// Along one axis, by all pairs of its elements

// v with its axis as [before, n, 1, behind] or, with is_second, as [before, 1, n, behind].
static Value *beside(Onnx *x, Value *v, int axis, bool is_second) {
  if (!v) return NULL;
  const Extent one = EXTENT(1), n = extent(v, axis);
  return reshape(x, v, 4,
                 (const Extent[]){product(x, v, 0, axis), is_second ? one : n, is_second ? n : one,
                                  product(x, v, axis + 1, v->shape.rank)});
}

// Whether `column - row` is at least, or at most, a number: booleans [rows, columns], then `behind` axes of 1.
static Value *band(Onnx *x, OperatorId comparison, Extent nrows, Extent ncolumns, int64_t limit, int behind) {
  Builder *b = &x->build;
  const bool are_numbers = extent_is_literal(nrows) && extent_is_literal(ncolumns);
  if (are_numbers && nrows.value > 0 && ncolumns.value > MOST_PAIRS / nrows.value)
    return build_error(b, "the axis is too long"), NULL;
  if (are_numbers && (nrows.value == 0 || ncolumns.value == 0))
    return build_number(b, TYPE_BOOLEAN, &(Shape){.rank = 2, .extent = {nrows, ncolumns}}, 0);
  Value *column = onnx_iota(x, ncolumns, EXTENT(1), behind), *row = onnx_iota(x, nrows, EXTENT(1), behind + 1);
  return build_binary(b, comparison, build_binary(b, OP_Subtract, column, row),
                      build_number(b, TYPE_S64, NULL, (double)limit));
}

static Value *sum_over(Onnx *x, Value *v, int64_t axis) {
  return build_reduce(&x->build, OP_ReduceSum, v, &axis, 1, false);
}

// Sums or products of the elements up to each one.
bool onnx_cumulative(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  double given;
  int axis;
  if (!v || !onnx_number(x, onnx_in(x, 1), &given)) return false;
  if (!onnx_axis(x, type_integer(given), v->shape.rank, &axis)) return false;
  const bool is_reverse = onnx_int(x, "reverse", 0) != 0;
  const int64_t least = onnx_int(x, "exclusive", 0) != 0;
  const Extent n = extent(v, axis);
  const Type type = v->type, wide = type_is_float(type) ? type : TYPE_F64;
  Value *is_added = is_reverse ? band(x, OP_GreaterEqual, n, n, least, 1) : band(x, OP_LessEqual, n, n, -least, 1);
  Value *parts = build_choose(b, is_added, beside(x, build_cast(b, v, wide), axis, true),
                              build_number(b, wide, NULL, x->row->op == OP_ReduceProd));
  // Of integers, they wrap around.
  Value *sum = build_cast(b, build_reduce(b, x->row->op, parts, (int64_t[]){2}, 1, false),
                          type_is_float(type) ? type : TYPE_S64);
  return onnx_out(x, 0, build_cast(b, onnx_reshape_extents(x, sum, &v->shape), type));
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
  const Extent n = extent(v, axis);
  Value *is_earlier = band(x, OP_Less, n, n, 0, 1);
  Value *own = beside(x, v, axis, false), *other = beside(x, v, axis, true);
  Value *greater = is_largest ? other : own, *lesser = is_largest ? own : other;
  Value *if_earlier = build_binary(b, OP_LogicalAnd, is_at_least(x, greater, lesser), is_earlier),
        *if_later = build_binary(b, OP_LogicalOr, is_at_least(x, lesser, greater), is_earlier);
  Value *is_before = build_binary(b, OP_LogicalOr, if_earlier, build_unary(b, OP_LogicalNot, if_later));
  return sum_over(x, build_cast(b, is_before, TYPE_F32), 2);
}

// The ranks of an axis are 0 to n - 1, each once, so there is one element for each of the k indices.
bool onnx_top_k(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  double k = (double)onnx_int(x, "k", 0);
  int axis;
  if (!v || (x->opset >= 10 && !onnx_number(x, onnx_in(x, 1), &k))) return false;
  if (!onnx_axis(x, onnx_int(x, "axis", -1), v->shape.rank, &axis) || !onnx_has_number(x, v, axis)) return false;
  const int64_t n = extent(v, axis).value, count = type_integer(k);
  if (count < 0 || count > n) return build_error(b, "k: expected 0 to %lld", (long long)n);
  Value *key = TYPE_BIT(v->type) & TYPES_BYTE ? build_cast(b, v, TYPE_S32) : v;
  Value *rank = key ? ranks(x, key, axis, onnx_int(x, "largest", 1) != 0) : NULL;
  if (!rank) return false;
  const Extent one = EXTENT(1),
               column[] = {product(x, v, 0, axis), EXTENT(n), one, product(x, v, axis + 1, v->shape.rank)};
  rank = reshape(x, rank, 4, column);
  Value *place =
      reshape(x, build_cast(b, onnx_iota(x, EXTENT(count), one, 1), TYPE_F32), 2, (const Extent[]){EXTENT(count), one});
  Value *is_it = build_binary(b, OP_Equal, rank, place);
  Value *index = build_cast(b, onnx_iota(x, EXTENT(n), one, 2), TYPE_F32),
        *indices = sum_over(x, build_choose(b, is_it, index, build_number(b, TYPE_F32, NULL, 0)), 1);
  Shape shape = v->shape;
  shape.extent[axis] = EXTENT(count);
  indices = build_cast(b, onnx_reshape_extents(x, indices, &shape), TYPE_S64);
  return indices && onnx_out(x, 0, gather_along(x, v, indices, axis)) && onnx_out(x, 1, indices);
}

// Ones on a diagonal.
bool onnx_eye_like(Onnx *x) {
  Builder *b = &x->build;
  const Value *like = onnx_in(x, 0);
  if (!like) return false;
  if (like->shape.rank != 2) return build_error(b, "expected a matrix");
  const Type type = onnx_has(x, "dtype") ? onnx_type((uint64_t)onnx_int(x, "dtype", 1)) : like->type;
  const int64_t k = onnx_int(x, "k", 0);
  if (type == TYPE_NONE) return build_error(b, "dtype: the type is not supported");
  return onnx_out(x, 0, build_cast(b, band(x, OP_Equal, extent(like, 0), extent(like, 1), k, 0), type));
}

// Keeps the elements on one side of a diagonal of the last two axes; the others become 0.
bool onnx_trilu(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  double k = 0;
  if (!v || (onnx_in(x, 1) && !onnx_number(x, onnx_in(x, 1), &k))) return false;
  const int rank = v->shape.rank;
  if (rank < 2) return build_error(b, "expected a matrix");
  const OperatorId comparison = onnx_int(x, "upper", 1) ? OP_GreaterEqual : OP_LessEqual;
  Value *is_inside = band(x, comparison, extent(v, rank - 2), extent(v, rank - 1), type_integer(k), 0);
  return onnx_out(x, 0, build_choose(b, is_inside, v, build_like(b, v, 0)));
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
      ((int64_t *)constant->data)[axis * count + at] = i / product(x, v, axis + 1, rank).value % extent(v, axis).value;
    at++;
  }
  return onnx_out(x, 0, indices);
}
