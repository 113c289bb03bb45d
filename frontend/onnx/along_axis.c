// Operators along an axis: sums up to each element, the best elements, and sorts. Parts of an axis are
// compared or added by all pairs of their elements; a long axis is cut into parts, or sorted in n log(n)^2.
#include "frontend/onnx/translation.h"

#include <math.h>

enum {
  PART = 16,          // elements that are added by pairs
  BLOCK = 32,         // the same, before blocks are merged
  FEW = 64,           // elements that are ordered by pairs
  MOST_ORDERED = 1024 // the same, if nearly all of them are wanted
};

static Extent extent(const Value *v, int axis) {
  return v->shape.extent[axis];
}

// v as [before, n, behind].
static Value *around(Onnx *x, Value *v, int axis) {
  if (!v) return NULL;
  return onnx_reshape_to(
      x, v, 3,
      (const Extent[]){onnx_product(x, v, 0, axis), extent(v, axis), onnx_product(x, v, axis + 1, v->shape.rank)});
}

// [before, n, behind] as [before, n, 1, behind] or, with is_second, as [before, 1, n, behind].
static Value *beside(Onnx *x, Value *v, bool is_second) {
  if (!v) return NULL;
  const Extent one = EXTENT(1), n = extent(v, 1);
  return onnx_reshape_to(x, v, 4,
                         (const Extent[]){extent(v, 0), is_second ? one : n, is_second ? n : one, extent(v, 2)});
}

// Whether `column - row` is at least, or at most, a number: booleans [n, n, 1].
static Value *band(Onnx *x, OperatorId comparison, Extent n, int64_t limit) {
  Builder *b = &x->build;
  Value *column = onnx_iota(x, n, EXTENT(1), 1), *row = onnx_iota(x, n, EXTENT(1), 2);
  return build_binary(b, comparison, build_binary(b, OP_Subtract, column, row),
                      build_number(b, TYPE_S64, NULL, (double)limit));
}

static Value *sum_over(Onnx *x, Value *v, int64_t axis) {
  return build_reduce(&x->build, OP_ReduceSum, v, &axis, 1, false);
}

// [before, n, behind] as [before, count, length, behind], the first of which are v's elements, and the others `number`.
static Value *in_parts(Onnx *x, Value *v, int64_t count, int64_t length, double number) {
  if (!v) return NULL;
  const int64_t more = count * length - extent(v, 1).value;
  if (more) v = build_pad(&x->build, v, (int64_t[3]){0}, (int64_t[]){0, more, 0}, 3, number);
  return v ? onnx_reshape_to(x, v, 4, (const Extent[]){extent(v, 0), EXTENT(count), EXTENT(length), extent(v, 2)})
           : NULL;
}

// Sums

typedef struct Running {
  OperatorId reduction, pair; // ReduceSum and Add, or ReduceProd and Multiply
  bool is_reverse;
} Running;

// Of [..., 1, n, behind], over the last but one axis, the sums up to each of n elements: [..., n, behind].
static Value *sum_pairs(Onnx *x, const Running *r, Value *v, int64_t axis, bool is_exclusive) {
  Builder *b = &x->build;
  if (!v) return NULL;
  const Extent n = extent(v, (int)axis);
  Value *is_added =
      r->is_reverse ? band(x, OP_GreaterEqual, n, is_exclusive) : band(x, OP_LessEqual, n, -(int64_t)is_exclusive);
  Value *parts = build_choose(b, is_added, v, build_number(b, v->type, NULL, r->reduction == OP_ReduceProd));
  return build_reduce(b, r->reduction, parts, &axis, 1, false);
}

// Of [before, n, behind]: within parts, and those of the parts' sums.
static Value *running(Onnx *x, const Running *r, Value *v, bool is_exclusive) {
  Builder *b = &x->build;
  const bool is_short = v && (!extent_is_literal(extent(v, 1)) || extent(v, 1).value <= (int64_t)2 * PART);
  if (!v || is_short) return sum_pairs(x, r, beside(x, v, true), 2, is_exclusive);
  const int64_t n = extent(v, 1).value, count = (n + PART - 1) / PART;
  Value *parts = in_parts(x, v, count, PART, r->reduction == OP_ReduceProd);
  if (!parts) return NULL;
  const Extent one = EXTENT(1), each[] = {extent(v, 0), EXTENT(count), one, EXTENT(PART), extent(v, 2)},
               whole[] = {extent(v, 0), EXTENT(count), one, extent(v, 2)},
               all[] = {extent(v, 0), EXTENT(count * PART), extent(v, 2)};
  Value *within = sum_pairs(x, r, onnx_reshape_to(x, parts, 5, each), 3, is_exclusive);
  Value *before = running(x, r, build_reduce(b, r->reduction, parts, (int64_t[]){2}, 1, false), true);
  Value *sums = build_binary(b, r->pair, within, before ? onnx_reshape_to(x, before, 4, whole) : NULL);
  sums = sums ? onnx_reshape_to(x, sums, 3, all) : NULL;
  return sums && n < count * PART ? build_slice(b, sums, 1, 0, n) : sums;
}

// Sums or products of the elements up to each one.
bool onnx_cumulative(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  double given;
  int axis;
  if (!v || !onnx_number(x, onnx_in(x, 1), &given)) return false;
  if (!onnx_axis(x, type_integer(given), v->shape.rank, &axis)) return false;
  const bool is_product = x->row->op == OP_ReduceProd;
  const Running r = {x->row->op, is_product ? OP_Multiply : OP_Add, onnx_int(x, "reverse", 0) != 0};
  const Type type = v->type;
  const bool is_half = TYPE_BIT(type) & (TYPE_BIT(TYPE_F16) | TYPE_BIT(TYPE_BF16));
  const Type wide = is_half ? TYPE_F32 : type_is_float(type) ? type : TYPE_F64;
  Value *sum = running(x, &r, build_cast(b, around(x, v, axis), wide), onnx_int(x, "exclusive", 0) != 0);
  if (!type_is_float(type)) sum = onnx_to_wrap(x, sum, type);
  return sum && onnx_out(x, 0, build_cast(b, onnx_reshape_extents(x, sum, &v->shape), type));
}

// The best elements

// Whether a >= b, where NaN is greater than all numbers, as in numpy's order.
static Value *is_at_least(Onnx *x, Value *a, Value *b) {
  Value *is_greater = build_binary(&x->build, OP_GreaterEqual, a, b);
  if (!a || !type_is_float(a->type)) return is_greater;
  return build_binary(&x->build, OP_LogicalOr, is_greater, build_binary(&x->build, OP_NotEqual, a, a));
}

// The rank of an element is the number of elements before it: better ones, and equal ones with a smaller index. NaN is
// an infinity whose index is beyond those of the infinities.
static Value *ranks(Onnx *x, Value *v, bool is_largest) {
  Builder *b = &x->build;
  if (!v) return NULL;
  const Extent n = extent(v, 1);
  Value *index = build_cast(b, onnx_iota(x, n, EXTENT(1), 1), TYPE_F32);
  if (type_is_float(v->type)) {
    Value *is_number = build_binary(b, OP_Equal, v, v), *beyond = build_plus(b, index, is_largest ? -0x1p20 : 0x1p20);
    v = build_choose(b, is_number, v, build_like(b, v, (double)INFINITY));
    index = build_choose(b, is_number, index, beyond);
  } else {
    const Extent all[] = {EXTENT(1), n, EXTENT(1)};
    index = index ? onnx_reshape_to(x, index, 3, all) : NULL;
  }
  Value *own = beside(x, v, false), *other = beside(x, v, true);
  Value *is_better = build_binary(b, OP_Greater, is_largest ? other : own, is_largest ? own : other);
  Value *is_earlier = build_binary(b, OP_Less, beside(x, index, true), beside(x, index, false));
  Value *is_before = build_binary(b, OP_LogicalOr, is_better,
                                  build_binary(b, OP_LogicalAnd, build_binary(b, OP_Equal, own, other), is_earlier));
  return sum_over(x, build_cast(b, is_before, TYPE_F32), 2);
}

// Of places [before, n, behind], which each of the first k numbers has once, the index of the element that has it:
// [before, k, behind], in s64.
static Value *inverse(Onnx *x, Value *place, int64_t k) {
  Builder *b = &x->build;
  const Extent one = EXTENT(1), ks[] = {EXTENT(k), one};
  if (!place) return NULL;
  Value *number = onnx_reshape_to(x, build_cast(b, onnx_iota(x, ks[0], one, 1), TYPE_F32), 2, ks);
  Value *is_it = build_binary(b, OP_Equal, beside(x, place, false), number);
  Value *index = build_cast(b, onnx_iota(x, extent(place, 1), one, 2), TYPE_F32); // fewer than 2^24
  return build_cast(b, sum_over(x, build_choose(b, is_it, index, build_number(b, TYPE_F32, NULL, 0)), 1), TYPE_S64);
}

static Value *order_by_pairs(Onnx *x, Value *v, bool is_descending) {
  return v ? inverse(x, ranks(x, v, is_descending), extent(v, 1).value) : NULL;
}

// Sorts: blocks by all pairs of their elements, then pairs of sorted blocks, whose elements find their places in the
// other block by bisection.

static Value *whole(Onnx *x, double number) {
  return build_number(&x->build, TYPE_S64, NULL, number);
}

static Value *plus(Onnx *x, Value *a, Value *b) {
  return build_binary(&x->build, OP_Add, a, b);
}

static Value *is_before(Onnx *x, const OnnxSearch *s, Value *place) {
  Builder *b = &x->build;
  Value *other = build_gather(b, s->keys, place, 0);
  Value *greater = s->is_descending ? other : s->own, *lesser = s->is_descending ? s->own : other;
  Value *is_as_good = is_at_least(x, greater, lesser);
  if (!s->counts_equal) return is_as_good;
  Value *is_better = build_unary(b, OP_LogicalNot, is_at_least(x, lesser, greater));
  return build_binary(b, OP_LogicalOr, is_better, build_binary(b, OP_LogicalAnd, s->counts_equal, is_as_good));
}

// By steps of length / 2, ..., 2, 1 and 1.
Value *onnx_count_before(Onnx *x, const OnnxSearch *s, int64_t length) {
  Builder *b = &x->build;
  Value *place = s->base;
  for (int64_t left = length; left && place; left /= 2) {
    const int64_t step = left > 1 ? left / 2 : 1;
    Value *is_it = is_before(x, s, step > 1 ? plus(x, place, whole(x, (double)step - 1)) : place);
    place = build_choose(b, is_it, plus(x, place, whole(x, (double)step)), place);
  }
  return build_binary(b, OP_Subtract, place, s->base);
}

// A sort of the rows of `keys`, [rows, n], where n is BLOCK times a power of two; orders are places in `flat`.
typedef struct Sort {
  Value *flat;
  Extent rows;
  int64_t n;
  bool is_descending;
} Sort;

static Value *in_blocks(Onnx *x, const Sort *s, Value *v, int64_t count, int64_t length) {
  const Extent shape[] = {s->rows, EXTENT(count), EXTENT(s->n / count / length), EXTENT(length)};
  return v ? onnx_reshape_to(x, v, 4, shape) : NULL;
}

static Value *sort_blocks(Onnx *x, const Sort *s) {
  const int64_t count = s->n / BLOCK;
  Value *blocks = in_blocks(x, s, s->flat, count, 1); // [rows, count, BLOCK, 1]
  if (!blocks) return NULL;
  const Extent all[] = {onnx_product(x, blocks, 0, 2), EXTENT(BLOCK), EXTENT(1)};
  Value *index = order_by_pairs(x, onnx_reshape_to(x, blocks, 3, all), s->is_descending);
  Value *base = plus(x, onnx_iota(x, s->rows, EXTENT(s->n), 3), onnx_iota(x, EXTENT(count), EXTENT(BLOCK), 2));
  return onnx_flat(x, plus(x, base, in_blocks(x, s, index, count, 1)));
}

// Merges pairs of sorted blocks. Of equal elements, that of the first block comes first.
static Value *merge(Onnx *x, const Sort *s, Value *order, int64_t length) {
  Builder *b = &x->build;
  const int64_t npairs = s->n / length / 2;
  const Shape sides = {.rank = 2, .extent = {EXTENT(2), EXTENT(1)}};
  Constant *distance, *is_second;
  Value *to_other = build_constant(b, TYPE_S64, &sides, &distance),
        *counts_equal = build_constant(b, TYPE_BOOLEAN, &sides, &is_second);
  Value *sorted = build_gather(b, s->flat, order, 0);
  if (!to_other || !counts_equal || !sorted) return NULL;
  ((int64_t *)distance->data)[0] = length;
  ((int64_t *)distance->data)[1] = 0;
  ((uint8_t *)is_second->data)[0] = 0;
  ((uint8_t *)is_second->data)[1] = 1;
  Value *pair = plus(x, onnx_iota(x, s->rows, EXTENT(s->n), 3), onnx_iota(x, EXTENT(npairs), EXTENT(2 * length), 2));
  const OnnxSearch search = {sorted, plus(x, pair, to_other), in_blocks(x, s, sorted, npairs, length), counts_equal,
                             s->is_descending};
  Value *place =
      plus(x, plus(x, pair, onnx_iota(x, EXTENT(length), EXTENT(1), 0)), onnx_count_before(x, &search, length));
  Value *merged = onnx_scatter(x, onnx_flat(x, place), build_cast(b, order, TYPE_F64), &order->shape);
  return build_cast(b, merged, TYPE_S64);
}

Value *onnx_lengthened(Onnx *x, Value *v, int64_t n, bool is_descending) {
  Builder *b = &x->build;
  const int rank = v->shape.rank;
  const int64_t own = v->shape.extent[1].value;
  const double most = type_is_float(v->type) ? (double)NAN : (double)INFINITY; // NaN is above infinity
  if (own == n) return v;
  Value *is_own = build_binary(b, OP_Less, onnx_iota(x, EXTENT(n), EXTENT(1), rank - 2), whole(x, (double)own));
  return build_choose(b, is_own,
                      build_pad(b, v, (int64_t[MAX_RANK]){0}, (int64_t[MAX_RANK]){0, n - own}, (size_t)rank, 0),
                      build_like(b, v, is_descending ? -(double)INFINITY : most));
}

Value *onnx_sort(Onnx *x, Value *v, bool is_descending) {
  Builder *b = &x->build;
  if (!v) return NULL;
  const int64_t own = v->shape.extent[1].value;
  Sort s = {.rows = v->shape.extent[0], .n = BLOCK, .is_descending = is_descending};
  while (s.n < own) s.n *= 2;
  s.flat = onnx_flat(x, onnx_lengthened(x, v, s.n, is_descending));
  Value *order = s.flat ? sort_blocks(x, &s) : NULL;
  for (int64_t length = BLOCK; order && length < s.n; length *= 2) order = merge(x, &s, order, length);
  order = order ? onnx_reshape_to(x, order, 2, (const Extent[]){s.rows, EXTENT(s.n)}) : NULL;
  order = build_binary(b, OP_Subtract, order, onnx_iota(x, s.rows, EXTENT(s.n), 1));
  return order && own < s.n ? build_slice(b, order, 1, 0, own) : order;
}

// The first k of the sorted elements of [before, n, behind].
static Value *sorted(Onnx *x, Value *v, int64_t k, bool is_largest) {
  static const int64_t order[] = {0, 2, 1};
  Builder *b = &x->build;
  const Extent rows = onnx_product(x, v, 0, 1), behind = extent(v, 2);
  v = build_transpose(b, v, order, 3);
  if (!v) return NULL;
  Value *index =
      onnx_sort(x, onnx_reshape_to(x, v, 2, (const Extent[]){onnx_product(x, v, 0, 2), extent(v, 2)}), is_largest);
  index = index ? build_slice(b, index, 1, 0, k) : NULL;
  index = index ? onnx_reshape_to(x, index, 3, (const Extent[]){rows, behind, EXTENT(k)}) : NULL;
  return index ? build_transpose(b, index, order, 3) : NULL;
}

// The best element of each part of [before, count, length, behind]: NaN, of the smallest elements only if there is no
// other.
static Value *best_of_parts(Onnx *x, Value *v, bool is_largest) {
  Builder *b = &x->build;
  const int64_t axis = 2;
  if (!v || is_largest) return build_reduce(b, OP_ReduceMax, v, &axis, 1, false);
  Value *is_number = build_binary(b, OP_Equal, v, v);
  Value *least = build_choose(b, is_number, v, build_like(b, v, (double)INFINITY));
  Value *any = build_reduce(b, OP_ReduceMax, build_cast(b, is_number, TYPE_F32), &axis, 1, false);
  return build_choose(b, build_binary(b, OP_Greater, any, build_number(b, TYPE_F32, NULL, 0)),
                      build_reduce(b, OP_ReduceMin, least, &axis, 1, false), build_like(b, v, (double)NAN));
}

// The indices of the k best elements of [before, n, behind], the best one first. Of a long axis, they are in the k
// parts with the best elements: each of the k elements before an element of another part is better, or is as good and
// comes first.
static Value *best(Onnx *x, Value *v, int64_t k, bool is_largest) {
  Builder *b = &x->build;
  if (!v) return NULL;
  const int64_t n = extent(v, 1).value;
  const Shape nothing = {.rank = 3, .extent = {extent(v, 0), EXTENT(0), extent(v, 2)}};
  if (k < 1) return build_number(b, TYPE_S64, &nothing, 0);
  // The maxima of parts of s64 would be computed in f64, and many parts are sorted themselves.
  const bool are_parts = n > 2 * k && k <= MOST_ORDERED / 2 && v->type != TYPE_S64;
  if (n <= FEW || (!are_parts && n <= MOST_ORDERED)) return inverse(x, ranks(x, v, is_largest), k);
  if (!are_parts) return sorted(x, v, k, is_largest);
  const int64_t root = (int64_t)sqrt((double)n / (double)k), length = root > 2 ? root : 2,
                count = (n + length - 1) / length;
  v = onnx_lengthened(x, v, count * length, is_largest);
  Value *parts = best(x, best_of_parts(x, in_parts(x, v, count, length, 0), is_largest), k, is_largest);
  Value *upward = onnx_gather_along(x, parts, order_by_pairs(x, parts, false), 1);
  Value *first = build_binary(b, OP_Multiply, upward, build_number(b, TYPE_S64, NULL, (double)length));
  Value *index = build_binary(b, OP_Add, beside(x, first, false), onnx_iota(x, EXTENT(length), EXTENT(1), 1));
  if (!index) return NULL;
  index = onnx_reshape_to(x, index, 3, (const Extent[]){extent(v, 0), EXTENT(k * length), extent(v, 2)});
  Value *chosen = index ? best(x, onnx_gather_along(x, v, index, 1), k, is_largest) : NULL;
  return chosen ? onnx_gather_along(x, index, chosen, 1) : NULL;
}

bool onnx_top_k(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  double given = (double)onnx_int(x, "k", 0);
  int axis;
  if (!v || (x->opset >= 10 && !onnx_number(x, onnx_in(x, 1), &given))) return false;
  if (!onnx_axis(x, onnx_int(x, "axis", -1), v->shape.rank, &axis) || !onnx_has_number(x, v, axis)) return false;
  for (int i = 0; i < v->shape.rank; i++) // others may have names
    if (extent_is_unknown(extent(v, i))) return onnx_has_number(x, v, i);
  const int64_t n = extent(v, axis).value, k = type_integer(given);
  if (k < 0 || k > n) return build_error(b, "k: expected 0 to %lld", (long long)n);
  const bool is_wide = TYPES_64_BITS & TYPE_BIT(v->type);
  Value *key = is_wide ? onnx_ordered(x, v) : type_is_float(v->type) ? v : build_cast(b, v, TYPE_F64);
  Value *indices = best(x, around(x, key, axis), k, onnx_int(x, "largest", 1) != 0);
  Shape shape = v->shape;
  shape.extent[axis] = EXTENT(k);
  indices = indices ? onnx_reshape_extents(x, indices, &shape) : NULL;
  return indices && onnx_out(x, 0, onnx_gather_along(x, v, indices, axis)) && onnx_out(x, 1, indices);
}
