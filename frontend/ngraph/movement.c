// Operators that move elements. Extents are numbers.
#include "frontend/ngraph/translation.h"

// Casts integer types that TYPES_MOVED lacks to f64, which represents them.
static Value *movable(Ngraph *x, Value *v) {
  return !v || TYPE_BIT(v->type) & TYPES_MOVED ? v : build_cast(&x->build, v, TYPE_F64);
}

static bool is_same_everywhere(const Value *v) {
  return v->constant && (v->constant->is_splat || shape_nelems(&v->shape) == 1);
}

static Shape shape_of(const int64_t *extents, size_t rank) {
  Shape shape = {.rank = (int)rank};
  for (size_t i = 0; i < rank; i++) shape.extent[i] = EXTENT(extents[i]);
  return shape;
}

Value *ngraph_reshape(Ngraph *x, Value *v, const int64_t *extents, size_t rank) {
  const Shape shape = shape_of(extents, rank);
  if (!v || shape_equals(&v->shape, &shape)) return v;
  if (is_same_everywhere(v)) return build_number(&x->build, v->type, &shape, type_load(v->type, v->constant->data, 0));
  return build_cast(&x->build, build_reshape(&x->build, movable(x, v), extents, rank), v->type);
}

Value *ngraph_transpose(Ngraph *x, Value *v, const int64_t *order) {
  bool is_identity = true;
  int64_t extents[MAX_RANK];
  if (!v) return NULL;
  for (int i = 0; i < v->shape.rank; i++) {
    is_identity &= order[i] == i;
    extents[i] = v->shape.extent[order[i]].value;
  }
  if (is_identity) return v;
  if (is_same_everywhere(v)) return ngraph_reshape(x, v, extents, (size_t)v->shape.rank);
  return build_cast(&x->build, build_transpose(&x->build, movable(x, v), order, v->shape.rank), v->type);
}

Value *ngraph_slice(Ngraph *x, Value *v, const int64_t *starts, const int64_t *ends, const int64_t *steps) {
  if (!v) return NULL;
  const size_t rank = (size_t)v->shape.rank;
  bool is_whole = true;
  for (size_t i = 0; i < rank; i++) is_whole &= starts[i] == 0 && ends[i] == v->shape.extent[i].value && steps[i] == 1;
  if (is_whole) return v;
  return build_cast(&x->build, build_slices(&x->build, movable(x, v), starts, ends, NULL, steps, rank), v->type);
}

// Pads without interior padding.
static Value *pad_around(Ngraph *x, Value *v, const int64_t *below, const int64_t *above, double number) {
  if (!v) return NULL;
  const size_t rank = (size_t)v->shape.rank;
  bool is_none = true;
  for (size_t i = 0; i < rank; i++) is_none &= below[i] == 0 && above[i] == 0;
  if (is_none) return v;
  return build_cast(&x->build, build_pad(&x->build, movable(x, v), below, above, rank, number), v->type);
}

// Adds `count` elements after each element along an axis (not the last), as elements of an axis behind it.
static Value *pad_inside(Ngraph *x, Value *v, int axis, int64_t count, double number) {
  int64_t zeros[MAX_RANK] = {0}, behind[MAX_RANK] = {0}, ones[MAX_RANK], extents[MAX_RANK];
  const int64_t extent = v->shape.extent[axis].value;
  int64_t before = 1, after = 1;
  for (int i = 0; i < v->shape.rank; i++) {
    extents[i] = v->shape.extent[i].value;
    ones[i] = 1;
    *(i < axis ? &before : &after) *= i == axis ? 1 : extents[i];
  }
  const int64_t split[] = {before * extent, 1, after};
  const size_t rank = (size_t)v->shape.rank;
  behind[1] = count;
  v = pad_around(x, ngraph_reshape(x, v, split, 3), zeros, behind, number);
  extents[axis] = extent * (1 + count);
  v = ngraph_reshape(x, v, extents, rank);
  extents[axis] = extent ? extents[axis] - count : 0;
  return ngraph_slice(x, v, zeros, extents, ones);
}

Value *ngraph_pad(Ngraph *x, Value *v, const int64_t *below, const int64_t *above, const int64_t *interior,
                  double number) {
  for (int axis = 0; v && axis < v->shape.rank; axis++)
    if (interior[axis]) v = pad_inside(x, v, axis, interior[axis], number);
  return pad_around(x, v, below, above, number);
}

#define TOO_LARGE "expected fewer than 2^47 elements after padding"

// Whether the padded extents are within a tensor's limits.
static bool check_padding(Ngraph *x, const int64_t *below, const int64_t *above, const int64_t *interior) {
  const Shape *from = ngraph_shape(x, 0);
  Shape shape = {.rank = from->rank};
  for (int i = 0; i < from->rank; i++) {
    const int64_t extent = from->extent[i].value;
    if (interior[i] < 0) return ngraph_tell(x, x->at, "padding_interior: expected numbers of at least 0");
    if (interior[i] >= MAX_ELEMENTS / (extent + 1)) return ngraph_tell(x, x->at, TOO_LARGE);
    const int64_t sum = extent + (extent ? (extent - 1) * interior[i] : 0) + below[i] + above[i];
    if (sum < 0)
      return ngraph_tell(x, x->at, "axis %d: expected an extent of at least 0 after padding, found %lld", i,
                         (long long)sum);
    shape.extent[i] = EXTENT(sum);
    Shape inside = *from;
    inside.extent[i] = EXTENT(extent * (interior[i] + 1));
    if (shape_nelems(&inside) < 0) return ngraph_tell(x, x->at, TOO_LARGE);
  }
  return shape_nelems(&shape) >= 0 || ngraph_tell(x, x->at, TOO_LARGE);
}

bool ngraph_pad_node(Ngraph *x) {
  const Value *number = x->inputs[1]->value;
  int64_t below[MAX_RANK], above[MAX_RANK], interior[MAX_RANK];
  const size_t rank = (size_t)ngraph_shape(x, 0)->rank;
  if (!ngraph_numbers(x, "padding_below", rank, 0, below) || !ngraph_numbers(x, "padding_above", rank, 0, above) ||
      !ngraph_numbers(x, "padding_interior", rank, 0, interior) || !check_padding(x, below, above, interior))
    return false;
  if (!is_same_everywhere(number)) return ngraph_tell(x, x->at, "a padding value that is no constant is not supported");
  const double value = type_load(number->type, number->constant->data, 0);
  return ngraph_out(x, 0, ngraph_pad(x, ngraph_in(x, 0), below, above, interior, value));
}

bool ngraph_broadcast(Ngraph *x) {
  Shape shape;
  bool is_new[MAX_RANK];
  int64_t extents[MAX_RANK];
  Value *v = x->inputs[0]->value;
  const Shape *from = ngraph_shape(x, 0);
  char a[80], b[80];
  if (!ngraph_extents(x, "shape", &shape) || !ngraph_axes(x, "axes", shape.rank, is_new)) return false;
  int next = 0;
  bool fits = true;
  for (int i = 0; i < shape.rank; i++) {
    extents[i] = 1;
    if (is_new[i]) continue;
    fits = fits && next < from->rank && extent_equals(from->extent[next], shape.extent[i]);
    if (fits) extents[i] = v->shape.extent[next].value;
    next++;
  }
  if (!fits || next != from->rank)
    return ngraph_tell(x, x->at, "expected an operand of the axes that axes leaves of %s, found %s",
                       shape_string(&shape, a, sizeof a), shape_string(from, b, sizeof b));
  return ngraph_out_broadcast(x, 0, ngraph_reshape(x, v, extents, (size_t)shape.rank), &shape);
}

static Value *concat(Ngraph *x, Value **parts, size_t count, int axis) {
  const Type type = count && parts[0] ? parts[0]->type : TYPE_NONE;
  for (size_t i = 0; i < count; i++) parts[i] = movable(x, parts[i]);
  Node *node = build_node(&x->build, OP_Concat, (uint32_t)count, parts);
  if (!node) return NULL;
  build_set(node, "axis")->s64 = axis;
  return build_cast(&x->build, build_one(&x->build, node), type);
}

bool ngraph_concat(Ngraph *x) {
  Value *parts[MOST_NGRAPH_INPUTS];
  const NgraphArgument *axis = ngraph_argument(x, "axis");
  for (size_t i = 0; i < x->ninputs; i++) {
    if (!(parts[i] = ngraph_in(x, i))) return false;
    if (parts[i]->type != parts[0]->type) return ngraph_tell(x, x->at, "expected operands of one type");
    if (axis->items[0] >= parts[i]->shape.rank)
      return ngraph_tell(x, axis->y, "axis: expected one of %d axes", parts[i]->shape.rank);
  }
  return ngraph_out(x, 0, x->ninputs == 1 ? parts[0] : concat(x, parts, x->ninputs, (int)axis->items[0]));
}

bool ngraph_one_hot(Ngraph *x) {
  Value *labels = ngraph_in(x, 0);
  const NgraphArgument *axis = ngraph_argument(x, "one_hot_axis");
  Shape shape;
  if (!labels || !ngraph_extents(x, "shape", &shape)) return false;
  const Type type = labels->type;
  if (axis->items[0] >= shape.rank) return ngraph_tell(x, axis->y, "one_hot_axis: expected one of %d axes", shape.rank);
  if (type != TYPE_S64 && type != TYPE_S32) labels = build_cast(&x->build, labels, TYPE_S64);
  const int64_t depth = shape.extent[axis->items[0]].value;
  Value *v = build_one_hot(&x->build, labels, axis->items[0], depth, TYPE_BOOLEAN);
  if (v && !shape_equals(&v->shape, &shape))
    return ngraph_tell(x, x->at, "expected a shape of the operand's extents and another one");
  return ngraph_out(x, 0, build_cast(&x->build, v, type));
}

// Permutes the axes, then reshapes.
bool ngraph_reshape_node(Ngraph *x) {
  Value *v = ngraph_in(x, 0);
  int64_t order[MAX_RANK], extents[MAX_RANK];
  bool is_taken[MAX_RANK] = {false};
  Shape shape;
  char a[80], b[80];
  const size_t rank = (size_t)ngraph_shape(x, 0)->rank;
  if (!v || !ngraph_numbers(x, "input_order", rank, 0, order) || !ngraph_extents(x, "output_shape", &shape))
    return false;
  for (size_t i = 0; i < rank; i++) {
    if (order[i] < 0 || order[i] >= (int64_t)rank || is_taken[order[i]])
      return ngraph_tell(x, x->at, "input_order: expected each of %zu axes once", rank);
    is_taken[order[i]] = true;
  }
  if (shape_nelems(&shape) != shape_nelems(&v->shape))
    return ngraph_tell(x, x->at, "expected as many elements, found %s and %s", shape_string(&v->shape, a, sizeof a),
                       shape_string(&shape, b, sizeof b));
  for (int i = 0; i < shape.rank; i++) extents[i] = shape.extent[i].value;
  return ngraph_out(x, 0, ngraph_reshape(x, ngraph_transpose(x, v, order), extents, (size_t)shape.rank));
}

bool ngraph_reverse(Ngraph *x) {
  Value *v = ngraph_in(x, 0);
  bool is_reversed[MAX_RANK];
  int64_t starts[MAX_RANK], ends[MAX_RANK], steps[MAX_RANK];
  if (!v || !ngraph_axes(x, "reversed_axes", v->shape.rank, is_reversed)) return false;
  for (int i = 0; i < v->shape.rank; i++) {
    const int64_t extent = v->shape.extent[i].value;
    starts[i] = is_reversed[i] ? -1 : 0;
    ends[i] = is_reversed[i] ? -extent - 1 : extent;
    steps[i] = is_reversed[i] ? -1 : 1;
  }
  return ngraph_out(x, 0, ngraph_slice(x, v, starts, ends, steps));
}

typedef struct Bounds {
  int64_t lower[MAX_RANK], upper[MAX_RANK], step[MAX_RANK];
  Shape shape; // of the part within the bounds
} Bounds;

static bool take_bounds(Ngraph *x, Bounds *b) {
  const Shape *from = ngraph_shape(x, 0);
  const size_t rank = (size_t)from->rank;
  b->shape.rank = from->rank;
  if (!ngraph_numbers(x, "lower_bounds", rank, 0, b->lower) || !ngraph_numbers(x, "upper_bounds", rank, 0, b->upper) ||
      !ngraph_numbers(x, "strides", rank, 1, b->step))
    return false;
  for (size_t i = 0; i < rank; i++) {
    const int64_t extent = from->extent[i].value;
    if (b->lower[i] < 0 || b->lower[i] > b->upper[i] || b->upper[i] > extent || b->step[i] < 1)
      return ngraph_tell(x, x->at, "axis %zu: expected bounds within %lld elements and a stride above 0", i,
                         (long long)extent);
    b->shape.extent[i] = EXTENT((b->upper[i] - b->lower[i] + b->step[i] - 1) / b->step[i]);
  }
  return true;
}

// An operand that is constant along an axis is not cut there.
bool ngraph_slice_node(Ngraph *x) {
  Value *v = x->inputs[0]->value;
  const Shape *from = ngraph_shape(x, 0);
  Bounds b;
  if (!take_bounds(x, &b)) return false;
  const Shape shape = b.shape;
  for (int i = 0; i < from->rank; i++) {
    if (extent_equals(v->shape.extent[i], from->extent[i])) continue;
    b.lower[i] = 0;
    b.upper[i] = b.step[i] = 1;
  }
  return ngraph_out_broadcast(x, 0, ngraph_slice(x, v, b.lower, b.upper, b.step), &shape);
}

// Replaces along one axis: the part of `base` before the bounds, then `v`, then the part behind the bounds. With a
// stride, Gather interleaves elements of `base` and `v`.
static Value *replace_along(Ngraph *x, Value *base, Value *v, const Bounds *b, int axis) {
  const size_t rank = (size_t)base->shape.rank;
  const int64_t extent = base->shape.extent[axis].value, count = v->shape.extent[axis].value;
  Value *parts[3];
  size_t nparts = 0;
  if (b->step[axis] == 1) {
    int64_t starts[MAX_RANK] = {0}, ends[MAX_RANK] = {0}, steps[MAX_RANK] = {0};
    for (size_t i = 0; i < rank; i++) {
      ends[i] = base->shape.extent[i].value;
      steps[i] = 1;
    }
    ends[axis] = b->lower[axis];
    if (ends[axis]) parts[nparts++] = ngraph_slice(x, base, starts, ends, steps);
    if (count) parts[nparts++] = v;
    starts[axis] = b->upper[axis];
    ends[axis] = extent;
    if (starts[axis] < extent) parts[nparts++] = ngraph_slice(x, base, starts, ends, steps);
    return nparts == 0 ? base : nparts == 1 ? parts[0] : concat(x, parts, nparts, axis);
  }
  const Shape shape = {.rank = 1, .extent = {EXTENT(extent)}};
  Constant *constant;
  parts[0] = base;
  parts[1] = v;
  Value *in[] = {concat(x, parts, 2, axis), build_constant(&x->build, TYPE_S32, &shape, &constant)};
  if (!in[0] || !in[1]) return NULL;
  for (int64_t i = 0; i < extent; i++) {
    const int64_t from = i - b->lower[axis];
    const bool is_replaced = from >= 0 && i < b->upper[axis] && from % b->step[axis] == 0;
    ((int32_t *)constant->data)[i] = (int32_t)(is_replaced ? extent + from / b->step[axis] : i);
  }
  return build_cast(&x->build, build_gather(&x->build, movable(x, in[0]), in[1], axis), v->type);
}

// Replaces axis by axis from the last one. Along each axis, the part of `base` that is replaced lies within the bounds
// of the axes before it.
static Value *replace(Ngraph *x, Value *base, Value *v, const Bounds *b) {
  enum { MOST_GATHERED = 1 << 20 };
  for (int axis = base->shape.rank - 1; v && axis >= 0; axis--) {
    int64_t starts[MAX_RANK] = {0}, ends[MAX_RANK] = {0}, steps[MAX_RANK] = {0};
    const int64_t extent = base->shape.extent[axis].value;
    if (b->lower[axis] == 0 && b->upper[axis] == extent && b->step[axis] == 1) continue;
    if (b->step[axis] != 1 && extent > MOST_GATHERED)
      return ngraph_tell(x, x->at, "a stride along more than %d elements is not supported", MOST_GATHERED), NULL;
    for (int i = 0; i < base->shape.rank; i++) {
      starts[i] = i < axis ? b->lower[i] : 0;
      ends[i] = i < axis ? b->upper[i] : base->shape.extent[i].value;
      steps[i] = i < axis ? b->step[i] : 1;
    }
    Value *part = ngraph_slice(x, base, starts, ends, steps);
    v = part ? replace_along(x, part, v, b, axis) : NULL;
  }
  return v;
}

// Replacing a part of a constant of one number is padding.
bool ngraph_replace_slice(Ngraph *x) {
  Value *v = ngraph_in(x, 1);
  const Value *constant = x->inputs[0]->value;
  const Shape *shape = ngraph_shape(x, 0);
  Bounds b = {.shape = {.rank = 0}};
  char found[80], expected[80];
  if (!v || !take_bounds(x, &b)) return false;
  if (!shape_equals(&v->shape, &b.shape) || v->type != constant->type)
    return ngraph_tell(x, x->at, "expected a second operand of %s and shape %s, found %s and %s",
                       type_name(constant->type), shape_string(&b.shape, expected, sizeof expected), type_name(v->type),
                       shape_string(&v->shape, found, sizeof found));
  bool is_padding = is_same_everywhere(constant);
  const double number = is_padding ? type_load(constant->type, constant->constant->data, 0) : 0;
  if ((double)(float)number != number) is_padding = false;
  int64_t above[MAX_RANK] = {0};
  for (int i = 0; i < shape->rank; i++) {
    above[i] = shape->extent[i].value - b.upper[i];
    is_padding &= b.step[i] == 1;
  }
  if (is_padding) return ngraph_out(x, 0, pad_around(x, v, b.lower, above, number));
  Value *base = ngraph_in(x, 0);
  return base && ngraph_out(x, 0, replace(x, base, v, &b));
}
