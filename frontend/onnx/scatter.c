// Scatters: updates of rows, at computed positions, which replace them or are added, or of which the maximum, minimum
// or product is taken: few by all pairs of rows and updates, many sorted by their rows.
#include "frontend/onnx/translation.h"

#include <math.h>
#include <string.h>

enum { MOST_PAIRS = 1 << 16 }; // of rows and updates that are compared

static Extent extent(const Value *v, int axis) {
  return v->shape.extent[axis];
}

static Value *combine(Onnx *x, OperatorId id, Value *a, Value *c) {
  Builder *b = &x->build;
  Value *v = build_binary(b, id, a, c);
  return id == OP_Multiply ? v : build_choose(b, build_binary(b, OP_Equal, a, a), v, a); // NaN of both stays
}

// The maximum, minimum or product of each row and of the updates at its position, by all pairs of rows and updates.
static Value *put_by_pairs(Onnx *x, OperatorId id, Value *rows, Value *places, Value *updates) {
  Builder *b = &x->build;
  const OperatorId reduction = id == OP_Multiply ? OP_ReduceProd : id == OP_Maximum ? OP_ReduceMax : OP_ReduceMin;
  const int rank = rows->shape.rank;
  Extent apart[MAX_RANK] = {EXTENT(1)}, pairs[MAX_RANK] = {extent(rows, 0), extent(places, 0)};
  memcpy(apart + 1, updates->shape.extent, (size_t)rank * sizeof *apart);
  for (int i = 2; i <= rank; i++) pairs[i] = EXTENT(1);
  Value *is_there = build_binary(b, OP_Equal, onnx_iota(x, extent(rows, 0), EXTENT(1), 1), places);
  is_there = onnx_reshape_to(x, is_there, rank + 1, pairs);
  const double infinity = (double)INFINITY, neutral = id == OP_Multiply ? 1 : id == OP_Maximum ? -infinity : infinity;
  Value *each = build_choose(b, is_there, onnx_reshape_to(x, updates, rank + 1, apart), build_like(b, rows, neutral));
  return combine(x, id, rows, build_reduce(b, reduction, each, (int64_t[]){1}, 1, false));
}

// v, [count, ...], moved by `distance` along its first axis, with `number` in front.
static Value *moved(Onnx *x, Value *v, int64_t distance, double number) {
  const int64_t count = v->shape.extent[0].value;
  int64_t begin[MAX_RANK] = {distance};
  Value *kept = build_slice(&x->build, v, 0, 0, count - distance);
  return kept ? build_pad(&x->build, kept, begin, (int64_t[MAX_RANK]){0}, (size_t)v->shape.rank, number) : NULL;
}

static Value *as_column(Onnx *x, Value *v, int rank) {
  Extent shape[MAX_RANK] = {v ? v->shape.extent[0] : EXTENT(1)};
  for (int i = 1; i < rank; i++) shape[i] = EXTENT(1);
  return v ? onnx_reshape_to(x, v, rank, shape) : NULL;
}

// The same, of updates in the order of their rows.
static Value *put_sorted(Onnx *x, OperatorId id, Value *rows, Value *places, Value *updates) {
  Builder *b = &x->build;
  const int rank = rows->shape.rank;
  const int64_t count = places->shape.extent[0].value;
  const Extent one_row[] = {EXTENT(1), EXTENT(count)};
  Value *order = onnx_flat(x, onnx_sort(x, onnx_reshape_to(x, places, 2, one_row), false));
  Value *at = build_gather(b, places, order, 0), *each = build_gather(b, updates, order, 0);
  // Each update with those before it at the same row: the last one of a row has all.
  for (int64_t distance = 1; at && each && distance < count; distance *= 2) {
    Value *is_same = build_binary(b, OP_Equal, at, moved(x, at, distance, -1));
    each = build_choose(b, as_column(x, is_same, rank), combine(x, id, moved(x, each, distance, 0), each), each);
  }
  if (!at || !each) return NULL;
  int64_t length = 1;
  while (length < count) length *= 2;
  Value *keys = onnx_flat(x, onnx_lengthened(x, onnx_reshape_to(x, at, 2, one_row), length, false));
  Value *row = onnx_iota(x, rows->shape.extent[0], EXTENT(1), 0);
  const OnnxSearch search = {keys, row ? build_number(b, TYPE_S64, &row->shape, 0) : NULL, row, NULL, false};
  Value *nbefore = onnx_count_before(x, &search, length);
  Value *last = build_binary(b, OP_Maximum, build_plus(b, nbefore, -1), build_number(b, TYPE_S64, NULL, 0));
  Value *is_put = build_binary(b, OP_Equal, build_gather(b, keys, last, 0), row);
  Value *all = combine(x, id, rows, build_gather(b, each, last, 0));
  return build_choose(b, as_column(x, is_put, rank), all, rows);
}

// The same by any way. Integers are combined in a type that holds all of them.
static Value *put_combined(Onnx *x, OperatorId id, Value *rows, Value *places, Value *updates) {
  Builder *b = &x->build;
  const Type type = rows->type;
  if (!onnx_has_number(x, rows, 0) || !onnx_has_number(x, places, 0)) return NULL;
  const int64_t nrows = extent(rows, 0).value, count = extent(places, 0).value;
  if (count == 0) return rows;
  const bool are_few = nrows <= MOST_PAIRS / count && rows->shape.rank < MAX_RANK;
  if (type_is_float(type)) return (are_few ? put_by_pairs : put_sorted)(x, id, rows, places, updates);
  if (are_few && !(TYPES_64_BITS & TYPE_BIT(type))) {
    Value *wide = put_by_pairs(x, id, build_cast(b, rows, TYPE_F64), places, build_cast(b, updates, TYPE_F64));
    return build_cast(b, id == OP_Multiply ? build_cast(b, wide, TYPE_S64) : wide, type);
  }
  if (id == OP_Multiply)
    return build_cast(b, put_sorted(x, id, onnx_wide(x, rows), places, onnx_wide(x, updates)), type);
  return onnx_from_ordered(x, put_sorted(x, id, onnx_ordered(x, rows), places, onnx_ordered(x, updates)), type);
}

// Writes updates into rows at positions. Repeated positions are added, which ONNX leaves undefined except for
// reductions.
static Value *put(Onnx *x, Value *rows, Value *places, Value *updates) {
  static const struct {
    const char *name;
    OperatorId reduction;
  } reductions[] = {
      {"none", OP_COUNT}, {"add", OP_Add}, {"max", OP_Maximum}, {"min", OP_Minimum}, {"mul", OP_Multiply}};
  Builder *b = &x->build;
  const Bytes reduction = onnx_text(x, "reduction");
  size_t i = 0;
  if (!rows || !places || !updates) return NULL;
  while (reduction.count && i < 5 && !bytes_are(reduction, reductions[i].name)) i++;
  if (i == 5) return build_error(b, "reduction: expected none, add, max, min or mul"), NULL;
  if (i > 1) return put_combined(x, reductions[i].reduction, rows, places, updates);
  const Type type = rows->type, wide = type_is_float(type) ? type : TYPE_F64;
  const Type exact = type_is_float(type) ? type : TYPE_S64; // in which integers wrap around
  Value *sum = build_cast(b, onnx_scatter(x, places, build_cast(b, updates, wide), &rows->shape), exact);
  if (!sum) return NULL;
  if (bytes_are(reduction, "add")) return build_cast(b, build_binary(b, OP_Add, build_cast(b, rows, exact), sum), type);
  const Shape marks = {.rank = 1, .extent = {rows->shape.extent[0]}};
  // Numbers above 0, which are stored: a scatter adds stored rows only once each.
  Value *counts = build_plus(b, build_cast(b, onnx_iota(x, extent(places, 0), EXTENT(1), 0), wide), 1);
  Value *is_put = build_binary(b, OP_Greater, onnx_scatter(x, places, counts, &marks), build_number(b, wide, NULL, 0));
  return build_choose(b, as_column(x, is_put, rows->shape.rank), build_cast(b, sum, type), rows);
}

static bool put_all(Onnx *x, const Value *data, Value *rows, Value *places, Value *updates) {
  return onnx_out(x, 0, onnx_reshape_extents(x, put(x, rows, places, updates), &data->shape));
}

bool onnx_scatter_elements(Onnx *x) {
  Value *data = onnx_in(x, 0), *indices = onnx_in(x, 1), *updates = onnx_in(x, 2);
  int axis;
  if (!data || !indices || !updates) return false;
  if (!onnx_axis(x, onnx_int(x, "axis", 0), data->shape.rank, &axis)) return false;
  Value *places = onnx_flat(x, onnx_places_along(x, data, indices, axis));
  return put_all(x, data, onnx_flat(x, data), places, onnx_flat(x, updates));
}

bool onnx_scatter_nd(Onnx *x) {
  Value *data = onnx_in(x, 0), *indices = onnx_in(x, 1), *updates = onnx_in(x, 2);
  int nrow_axes = 0;
  if (!data || !indices || !updates) return false;
  Value *places = onnx_flat(x, onnx_places_of_rows(x, data, indices, 0, &nrow_axes)),
        *rows = places ? onnx_as_rows(x, data, nrow_axes) : NULL;
  if (!rows) return false;
  Extent shape[MAX_RANK];
  memcpy(shape, rows->shape.extent, sizeof shape);
  shape[0] = extent(places, 0);
  return put_all(x, data, rows, places, onnx_reshape_to(x, updates, rows->shape.rank, shape));
}
