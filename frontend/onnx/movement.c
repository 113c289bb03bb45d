// Operators that move elements, and operators that compute shapes.
#include "frontend/onnx/translation.h"
#include "ir/graph/extents.h"

#include <math.h>
#include <string.h>

enum { MOST_MADE = 1 << 22 }; // elements of a constant that the model gives by a formula

bool onnx_transpose_node(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  Ints order;
  if (!v) return build_error(b, "expected an input");
  if (!onnx_list(x, "perm", &order))
    for (order.count = 0; order.count < (size_t)v->shape.rank; order.count++)
      order.items[order.count] = v->shape.rank - 1 - (int64_t)order.count;
  if (order.count != (size_t)v->shape.rank) return build_error(b, "perm: expected %d numbers", v->shape.rank);
  return onnx_out(x, 0, v->shape.rank ? build_transpose(b, v, order.items, v->shape.rank) : v);
}

bool onnx_reshape_node(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  Ints list = {.count = 0};
  Shape to = {.rank = 0};
  if (!v || (onnx_in(x, 1) && !onnx_constant_shape(x, 1, &to))) return false;
  if (!onnx_in(x, 1) && onnx_has(x, "shape") && !onnx_list(x, "shape", &list)) return false;
  if (list.count > MAX_RANK) return build_error(b, "expected at most %d axes", MAX_RANK);
  for (size_t i = 0; i < list.count; i++) to.extent[to.rank++] = EXTENT(list.items[i]);
  const bool copies = onnx_int(x, "allowzero", 0) == 0;
  for (int i = 0; i < to.rank; i++) {
    Extent *e = &to.extent[i];
    if (e->dim) continue;
    if (e->value < -1) return build_error(b, "shape: expected extents or -1, found %lld", (long long)e->value);
    if (e->value != 0 || !copies) continue;
    if (i >= v->shape.rank) return build_error(b, "shape: 0 on axis %d, which the input does not have", i);
    *e = v->shape.extent[i];
  }
  return onnx_out(x, 0, onnx_reshape_extents(x, v, &to));
}

// Flattens v to two axes: the axes before `axis`, and the rest.
bool onnx_flatten(Onnx *x) {
  Value *v = onnx_in(x, 0);
  int64_t axis = onnx_int(x, "axis", 1);
  if (!v) return false;
  const int rank = v->shape.rank;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return build_error(&x->build, "axis: expected 0 to %d", rank);
  const Extent to[] = {onnx_product(x, v, 0, (int)axis), onnx_product(x, v, (int)axis, rank)};
  return onnx_out(x, 0, onnx_reshape_to(x, v, 2, to));
}

// Marks the axes of a list.
static bool take_axes(Onnx *x, const Ints *list, int rank, bool *is_marked) {
  for (int i = 0; i < rank; i++) is_marked[i] = false;
  for (size_t i = 0; i < list->count; i++) {
    int axis;
    if (!onnx_axis(x, list->items[i], rank, &axis)) return false;
    if (is_marked[axis]) return build_error(&x->build, "axis %d is there twice", axis);
    is_marked[axis] = true;
  }
  return true;
}

bool onnx_squeeze(Onnx *x) {
  Value *v = onnx_in(x, 0);
  Ints axes;
  Shape to = {.rank = 0};
  bool is_given, goes[MAX_RANK];
  if (!v || !onnx_ints_of(x, 1, "axes", &axes, &is_given)) return false;
  if (!take_axes(x, &axes, v->shape.rank, goes)) return false;
  for (int i = 0; i < v->shape.rank; i++) {
    const Extent e = v->shape.extent[i];
    if (!is_given) goes[i] = extent_is_literal(e) && e.value == 1;
    if (goes[i] && extent_is_literal(e) && e.value != 1)
      return build_error(&x->build, "axis %d: expected an extent of 1, found %lld", i, (long long)e.value);
    if (!goes[i]) to.extent[to.rank++] = e;
  }
  return onnx_out(x, 0, onnx_reshape_extents(x, v, &to));
}

bool onnx_unsqueeze(Onnx *x) {
  Value *v = onnx_in(x, 0);
  Ints axes;
  Shape to = {.rank = 0};
  bool is_given, is_new[MAX_RANK];
  if (!v || !onnx_ints_of(x, 1, "axes", &axes, &is_given)) return false;
  const size_t rank = (size_t)v->shape.rank + axes.count;
  if (rank > MAX_RANK) return build_error(&x->build, "expected at most %d axes", MAX_RANK);
  if (!take_axes(x, &axes, (int)rank, is_new)) return false;
  for (int i = 0, old = 0; i < (int)rank; i++) to.extent[to.rank++] = is_new[i] ? EXTENT(1) : v->shape.extent[old++];
  return onnx_out(x, 0, onnx_reshape_extents(x, v, &to));
}

bool onnx_concat(Onnx *x) {
  Builder *b = &x->build;
  const size_t n = x->node->ninputs;
  int axis;
  if (n == 0 || n > MAX_VARIADIC) return build_error(b, "expected 1 to %d inputs, found %zu", MAX_VARIADIC, n);
  if (!onnx_in(x, 0) || !onnx_axis(x, onnx_int(x, "axis", 1), onnx_in(x, 0)->shape.rank, &axis)) return false;
  Node *node = build_node(b, OP_Concat, (uint32_t)n, x->inputs);
  if (!node) return build_error(b, "expected all inputs");
  build_set(node, "axis")->s64 = axis;
  return onnx_out(x, 0, build_one(b, node));
}

// A bound of a slice. numpy clamps bounds, and ONNX's are up to the limits of s64.
static int64_t nearer(int64_t bound) {
  const int64_t most = MAX_ELEMENTS;
  return bound > most ? most : bound < -most ? -most : bound;
}

// A slice with a negative step that starts before the first element begins at the first element in ONNX, but not in
// numpy.
static void start_inside(const Value *v, const Ints *axes, const Ints *steps, Ints *starts) {
  for (size_t i = 0; i < starts->count; i++) {
    const int64_t rank = v->shape.rank, axis = axes->items[i] < 0 ? axes->items[i] + rank : axes->items[i],
                  extent = axis >= 0 && axis < rank ? extent_value(v->shape.extent[axis]) : -1;
    if (steps->items[i] < 0 && extent > 0 && starts->items[i] < -extent) starts->items[i] = -extent;
  }
}

enum { MOST_BOUNDS = 2 * MAX_RANK };

// A list of bounds. 0 stands for each that is a named extent.
typedef struct Bounds {
  Ints list;
  bool is_given, has_names;
  Extent named[MOST_BOUNDS]; // unknown: a number
} Bounds;

static bool take_bounds(Onnx *x, size_t i, const char *name, const Ints *axes, Bounds *bounds) {
  bounds->has_names = onnx_has_extents(x, onnx_in(x, i));
  if (!bounds->has_names) return onnx_ints_of(x, i, name, &bounds->list, &bounds->is_given);
  bounds->is_given = true;
  return onnx_constant_bounds(x, i, MOST_BOUNDS, axes, &bounds->list, bounds->named);
}

// `count` of the bounds, from number `from`, as an attribute.
static bool set_bounds(Builder *b, Node *node, const char *name, const Bounds *bounds, size_t from, size_t count) {
  if (!build_set_list(b, node, name, bounds->list.items + from, count)) return false;
  if (!bounds->has_names) return true;
  Extent *extents = ARENA_ARRAY(&b->graph->arena, Extent, count + 1);
  if (!extents) return error_out_of_memory(b->d);
  memcpy(extents, bounds->named + from, count * sizeof *extents);
  node_attribute_slot(node, name)->list.extents = extents;
  return true;
}

bool onnx_slice(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  Ints axes, steps;
  Bounds starts = {.is_given = false}, ends = {.is_given = false};
  bool has_axes, has_steps;
  if (!v || !onnx_ints_of(x, 3, "axes", &axes, &has_axes) || !onnx_ints_of(x, 4, "steps", &steps, &has_steps))
    return false;
  for (size_t i = has_axes ? axes.count : 0; i < MOST_INTS; i++) axes.items[i] = (int64_t)i;
  if (!take_bounds(x, 1, "starts", &axes, &starts) || !take_bounds(x, 2, "ends", &axes, &ends)) return false;
  const size_t count = starts.list.count;
  for (size_t i = 0; i < count; i++) {
    if (!has_steps) steps.items[i] = 1;
    starts.list.items[i] = nearer(starts.list.items[i]);
    ends.list.items[i] = nearer(i < ends.list.count ? ends.list.items[i] : 0);
  }
  if (count != ends.list.count || (has_axes && axes.count != count) || (has_steps && steps.count != count))
    return build_error(b, "expected as many starts, ends, axes and steps");
  start_inside(v, &axes, &steps, &starts.list);
  Node *node = build_node(b, OP_Slice, 1, &v);
  const bool ok = set_bounds(b, node, "starts", &starts, 0, count) && set_bounds(b, node, "ends", &ends, 0, count) &&
                  build_set_list(b, node, "axes", axes.items, count) &&
                  build_set_list(b, node, "steps", steps.items, count);
  return ok && onnx_out(x, 0, build_one(b, node));
}

// Bounds of some axes as those of all; the others get 0.
static bool spread_pads(Onnx *x, const Ints *axes, int rank, Bounds *pads) {
  Bounds all = {.is_given = true, .has_names = pads->has_names, .list = {.count = (size_t)rank * 2}};
  bool is_marked[MAX_RANK];
  int axis;
  if (pads->list.count != 2 * axes->count) return build_error(&x->build, "pads: expected %zu numbers", 2 * axes->count);
  if (!take_axes(x, axes, rank, is_marked)) return false;
  for (int i = 0; i < 2 * MAX_RANK; i++) all.list.items[i] = 0, all.named[i] = EXTENT_UNKNOWN;
  for (size_t i = 0; i < 2 * axes->count; i++) {
    if (!onnx_axis(x, axes->items[i % axes->count], rank, &axis)) return false;
    const int to = i < axes->count ? axis : rank + axis;
    all.list.items[to] = pads->list.items[i];
    all.named[to] = pads->named[i];
  }
  *pads = all;
  return true;
}

bool onnx_pad(Onnx *x) {
  static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
  static const PadMode modes[] = {PAD_REFLECTS, PAD_REPEATS, PAD_WRAPS};
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  Bounds pads = {.is_given = false};
  Ints axes;
  double number = onnx_float(x, "value", 0);
  const Bytes given = onnx_text(x, "mode");
  size_t mode = 0;
  while (given.count && mode < 4 && !bytes_are(given, names[mode])) mode++;
  if (mode == 4) return build_error(b, "mode: expected constant, reflect, edge or wrap");
  if (!v || !take_bounds(x, 1, x->opset < 2 ? "paddings" : "pads", NULL, &pads)) return false;
  if (x->opset >= 11 && onnx_in(x, 2) && !onnx_number(x, onnx_in(x, 2), &number)) return false;
  const size_t rank = (size_t)v->shape.rank;
  if (onnx_in(x, 3) && (!onnx_constant_ints(x, 3, &axes) || !spread_pads(x, &axes, v->shape.rank, &pads))) return false;
  if (pads.list.count != 2 * rank) return build_error(b, "pads: expected %zu numbers", 2 * rank);
  if (mode && pads.has_names) return onnx_must_be_known(x, onnx_in(x, 1));
  if (mode) return onnx_out(x, 0, onnx_pad_with_elements(x, v, &pads.list, modes[mode - 1]));
  Node *node = build_node(b, OP_Pad, 1, &v);
  if (!set_bounds(b, node, "pads_begin", &pads, 0, rank) || !set_bounds(b, node, "pads_end", &pads, rank, rank))
    return false;
  build_set(node, "value")->f32 = number;
  return onnx_out(x, 0, build_one(b, node));
}

// Each part is a slice, so there may be any number of parts.
bool onnx_split(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  Ints parts;
  bool is_given;
  int axis;
  const size_t n = x->node->noutputs;
  if (!v || !onnx_ints_of(x, 1, "split", &parts, &is_given) ||
      !onnx_axis(x, onnx_int(x, "axis", 0), v->shape.rank, &axis) || !onnx_has_number(x, v, axis))
    return false;
  const int64_t extent = v->shape.extent[axis].value, part = n ? (extent + (int64_t)n - 1) / (int64_t)n : 0;
  int64_t rest = extent;
  if (is_given && parts.count != n) return build_error(b, "split: expected %zu numbers", n);
  for (size_t i = 0; i < n; i++) {
    const int64_t length = is_given ? parts.items[i] : part < rest ? part : rest, from = extent - rest;
    if (length < 0 || length > rest || (is_given && i + 1 == n && length != rest))
      return build_error(b, "split: expected %zu numbers that add up to %lld", n, (long long)extent);
    if (!onnx_out(x, i, build_slice(b, v, axis, from, from + length))) return false;
    rest -= length;
  }
  return true;
}

bool onnx_tile(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  Ints repeats;
  if (!v || !onnx_constant_ints(x, 1, &repeats)) return false;
  Node *node = build_node(b, OP_Tile, 1, &v);
  return build_set_list(b, node, "repeats", repeats.items, repeats.count) && onnx_out(x, 0, build_one(b, node));
}

// Reads a shape whose extents are numbers or have a name.
static bool take_shape(Onnx *x, size_t i, Shape *shape) {
  if (!onnx_constant_shape(x, i, shape)) return false;
  for (int k = 0; k < shape->rank; k++) {
    const Extent e = shape->extent[k];
    if (e.dim) continue;
    if (extent_is_unknown(e) && onnx_has_extents(x, onnx_in(x, i))) return onnx_must_be_known(x, onnx_in(x, i));
    if (e.value < 0) return build_error(&x->build, "shape: expected extents that are not below 0");
  }
  return true;
}

bool onnx_expand(Onnx *x) {
  Value *v = onnx_in(x, 0);
  Shape shape;
  return v && take_shape(x, 1, &shape) && onnx_out(x, 0, build_expand(&x->build, v, &shape));
}

bool onnx_gather(Onnx *x) {
  Value *v = onnx_in(x, 0), *indices = onnx_in(x, 1);
  if (!v || !indices) return build_error(&x->build, "expected two inputs");
  return onnx_out(x, 0, build_gather(&x->build, v, indices, onnx_int(x, "axis", 0)));
}

static bool put_ints(Onnx *x, const int64_t *items, int64_t count, int rank, bool are_extents) {
  const Shape shape = {.rank = rank, .extent = {EXTENT(count)}};
  Constant *constant;
  Value *v = build_constant(&x->build, TYPE_S64, &shape, &constant);
  for (int64_t i = 0; v && i < count; i++) ((int64_t *)constant->data)[i] = items[i];
  if (v && are_extents && !onnx_mark_extents(x, v)) return false;
  return onnx_out(x, 0, v);
}

bool onnx_shape(Onnx *x) {
  const Value *v = onnx_in(x, 0);
  int64_t extents[MAX_RANK] = {0};
  bool has_names = false;
  if (!v) return false;
  int64_t start = onnx_int(x, "start", 0), end = onnx_int(x, "end", v->shape.rank);
  const int64_t rank = v->shape.rank;
  start = start < 0 ? start + rank : start;
  end = end < 0 ? end + rank : end;
  start = start < 0 ? 0 : start > rank ? rank : start;
  end = end < 0 ? 0 : end > rank ? rank : end;
  for (int64_t i = start; i < end; i++) {
    if (!onnx_extent_number(x, v->shape.extent[i], &extents[i - start])) return false;
    has_names |= !extent_is_literal(v->shape.extent[i]);
  }
  return put_ints(x, extents, end > start ? end - start : 0, 1, has_names);
}

bool onnx_size(Onnx *x) {
  const Value *v = onnx_in(x, 0);
  int64_t nelems;
  if (!v) return false;
  const Extent product = onnx_product(x, v, 0, v->shape.rank);
  if (!onnx_extent_number(x, product, &nelems)) return false;
  return put_ints(x, &nelems, 1, 0, !extent_is_literal(product));
}

// A constant of an attribute's integers, in s64, or of its floats, in f32.
static bool put_list(Onnx *x, const OnnxAttribute *a, Type type) {
  const size_t count = type == TYPE_S64 ? onnx_ints(a, NULL, 0) : onnx_floats(a, NULL, 0);
  const Shape shape = {.rank = 1, .extent = {EXTENT((int64_t)count)}};
  Constant *constant;
  Value *v = build_constant(&x->build, type, &shape, &constant);
  double *numbers = ARENA_ARRAY(x->reading.arena, double, count + 1);
  if (!v) return false;
  if (!numbers) return error_out_of_memory(x->reading.d);
  if (type == TYPE_S64) onnx_ints(a, constant->data, count);
  else onnx_floats(a, numbers, count);
  for (size_t i = 0; type != TYPE_S64 && i < count; i++) type_store(type, constant->data, i, numbers[i]);
  return onnx_out(x, 0, v);
}

// In a model without weights among its initializers, tensors with axes may be weights: paddle2onnx and torch.jit write
// them in this way. Else they are numbers of formulas.
static bool put_tensor(Onnx *x, const OnnxTensor *tensor) {
  const bool is_weight = tensor->rank && type_is_float(onnx_type(tensor->type)) && !x->has_weights;
  const char *name = onnx_wants(x, 0) ? onnx_text_of(x, x->node->outputs[0]) : "";
  if (!name) return false;
  Value *v = is_weight ? onnx_weight(x, tensor, "value", name) : onnx_tensor(x, tensor, "value");
  if (v && !is_weight && onnx_is_name(name)) v->name = arena_copy_text(&x->build.graph->arena, name, strlen(name));
  return v && !v->name ? error_out_of_memory(x->reading.d) : onnx_out(x, 0, v);
}

bool onnx_constant_node(Onnx *x) {
  Builder *b = &x->build;
  OnnxAttribute a;
  OnnxTensor tensor;
  if (onnx_attribute(x, "value", ONNX_TENSOR, &a))
    return onnx_read_tensor(&x->reading, a.t, &tensor) && put_tensor(x, &tensor);
  if (onnx_attribute(x, "value_float", ONNX_FLOAT, &a))
    return onnx_out(x, 0, build_number(b, TYPE_F32, NULL, (double)a.f));
  if (onnx_attribute(x, "value_int", ONNX_INT, &a)) return put_ints(x, &a.i, 1, 0, false);
  if (onnx_attribute(x, "value_ints", ONNX_INTS, &a)) return put_list(x, &a, TYPE_S64);
  if (onnx_attribute(x, "value_floats", ONNX_FLOATS, &a)) return put_list(x, &a, TYPE_F32);
  return build_error(b, "expected a value of numbers");
}

bool onnx_constant_of_shape(Onnx *x) {
  Builder *b = &x->build;
  OnnxAttribute a;
  OnnxTensor tensor;
  Shape shape;
  Value *number = NULL;
  if (!take_shape(x, 0, &shape)) return false;
  if (onnx_attribute(x, "value", ONNX_TENSOR, &a)) {
    if (!onnx_read_tensor(&x->reading, a.t, &tensor) || !(number = onnx_tensor(x, &tensor, "value"))) return false;
    if (shape_nelems(&number->shape) != 1) return build_error(b, "value: expected one number");
  } else {
    number = build_number(b, TYPE_F32, NULL, 0);
  }
  if (!number) return false;
  const char *name = graph_fresh_name(b->graph, "constant");
  Value *v = name ? graph_add_value(b->graph, name, number->type, &shape) : NULL;
  if (!v || !(v->constant = ARENA_NEW(&b->graph->arena, Constant))) return error_out_of_memory(x->reading.d);
  *v->constant = (Constant){.data = number->constant->data, .is_splat = true};
  return build_fits(b, v) && onnx_out(x, 0, v);
}

// Moves blocks of an image to channels, or back: [N, C, H, W] with six axes.
bool onnx_move_blocks(Onnx *x) {
  enum { LONGEST = 1 << 15 };
  const bool to_depth = bytes_are(x->node->op, "SpaceToDepth");
  Value *v = onnx_in(x, 0);
  const int64_t b = onnx_int(x, "blocksize", 0);
  if (!v) return false;
  if (v->shape.rank != 4 || b < 1 || b > LONGEST)
    return build_error(&x->build, "expected an image of 4 axes, and a blocksize of 1 to %d", LONGEST);
  if (!onnx_has_number(x, v, 1)) return false;
  const int64_t c = v->shape.extent[1].value;
  const Extent *from = v->shape.extent + 2, by = EXTENT(b);
  Extent image[2];
  for (int i = 0; i < 2; i++) {
    if (!(to_depth ? extent_divide : extent_multiply)(x->build.graph, from[i], by, &image[i]))
      return error_out_of_memory(x->reading.d);
    if (extent_is_unknown(image[i]) && !onnx_has_number(x, v, i + 2)) return false;
  }
  if (to_depth ? extent_is_unknown(image[0]) || extent_is_unknown(image[1]) : c % (b * b))
    return build_error(&x->build, "expected extents that blocks of %lld divide", (long long)b);
  if (to_depth ? c > MAX_ELEMENTS / (b * b) : extent_is_unknown(image[0]) || extent_is_unknown(image[1]))
    return build_error(&x->build, "blocks of %lld make an axis too long", (long long)b);
  const bool is_crd = !to_depth && bytes_are(onnx_text(x, "mode"), "CRD");
  static const int64_t crd_order[] = {0, 1, 4, 2, 5, 3}, depth_order[] = {0, 3, 5, 1, 2, 4},
                       space_order[] = {0, 3, 4, 1, 5, 2};
  const Extent n = v->shape.extent[0], less = EXTENT(c / (b * b));
  const Shape image_split = {.rank = 6, .extent = {n, v->shape.extent[1], image[0], by, image[1], by}},
              depth_split = {.rank = 6, .extent = {n, is_crd ? less : by, by, is_crd ? by : less, from[0], from[1]}};
  const Shape split = to_depth ? image_split : depth_split,
              to = {.rank = 4, .extent = {n, to_depth ? EXTENT(c * b * b) : less, image[0], image[1]}};
  v = build_transpose(&x->build, onnx_reshape_extents(x, v, &split),
                      is_crd     ? crd_order
                      : to_depth ? depth_order
                                 : space_order,
                      6);
  return onnx_out(x, 0, onnx_reshape_extents(x, v, &to));
}

// values is [off, on]; negative indices count from the end.
bool onnx_one_hot(Onnx *x) {
  Builder *b = &x->build;
  Value *labels = onnx_in(x, 0), *values = onnx_in(x, 2);
  double depth;
  if (!labels || !values || !onnx_number(x, onnx_in(x, 1), &depth)) return false;
  if (type_is_float(labels->type)) labels = build_truncate(b, labels);
  if (labels && labels->type != TYPE_S64 && labels->type != TYPE_S32) labels = build_cast(b, labels, TYPE_S64);
  if (!labels) return false;
  Value *const choice[] = {build_binary(b, OP_Less, labels, build_like(b, labels, 0)),
                           build_binary(b, OP_Add, labels, build_like(b, labels, depth)), labels};
  Value *own = build_one(b, build_node(b, OP_Select, 3, choice));
  Value *is_on = build_one_hot(b, own, onnx_int(x, "axis", -1), type_integer(depth), TYPE_BOOLEAN);
  return onnx_out(x, 0, build_choose(b, is_on, build_slice(b, values, 0, 1, 2), build_slice(b, values, 0, 0, 1)));
}

// The numbers up to a limit that is named, or has names in it.
static bool range_to_extent(Onnx *x, double start, Extent limit, double delta) {
  Builder *b = &x->build;
  const int64_t first = type_integer(start), step = type_integer(delta);
  const Formula from = {.nterms = first != 0, .terms = {{.factor = first}}},
                by = {.nterms = 1, .terms = {{.factor = step}}};
  Formula count;
  Extent n = EXTENT_UNKNOWN;
  const bool is_formula = (double)first == start && (double)step == delta && step > 0 && formula_of(limit, &count) &&
                          formula_add(&count, &from, -1) && formula_divide(&count, &by);
  if (is_formula && !graph_extent(b->graph, &count, &n)) return error_out_of_memory(x->reading.d);
  if (!n.dim) return onnx_must_be_known(x, onnx_in(x, 1));
  Value *v = onnx_iota(x, n, EXTENT(step), 0);
  return onnx_out(x, 0, build_cast(b, first ? build_plus(b, v, start) : v, onnx_in(x, 0)->type));
}

// The numbers from a named one up to a limit: the last ones of those from 0 on.
static bool range_from_extent(Onnx *x, Extent start, const Value *limit) {
  Builder *b = &x->build;
  Bounds from = {.has_names = true, .named = {start}};
  const bool is_one = limit && limit->constant && limit->type == TYPE_S64 && shape_nelems(&limit->shape) == 1;
  const Extent end = is_one ? onnx_extent_of(x, onnx_integer(limit, 0)) : EXTENT_UNKNOWN;
  double delta;
  if (!onnx_number(x, onnx_in(x, 2), &delta)) return false;
  if (!start.dim || extent_is_unknown(end) || (!end.dim && end.value > MOST_MADE) || delta != 1)
    return onnx_must_be_known(x, onnx_in(x, 0));
  Value *v = onnx_iota(x, end, EXTENT(1), 0);
  Node *node = v ? build_node(b, OP_Slice, 1, &v) : NULL;
  return node && set_bounds(b, node, "starts", &from, 0, 1) &&
         build_set_list(b, node, "ends", &(int64_t){MAX_ELEMENTS}, 1) &&
         build_set_list(b, node, "axes", &(int64_t){0}, 1) && build_set_list(b, node, "steps", &(int64_t){1}, 1) &&
         onnx_out(x, 0, build_cast(b, build_one(b, node), onnx_in(x, 0)->type));
}

bool onnx_range(Onnx *x) {
  Value *const begin = onnx_in(x, 0), *const end = onnx_in(x, 1);
  double start, limit, delta;
  if (begin && onnx_has_extents(x, begin) && shape_nelems(&begin->shape) == 1)
    return range_from_extent(x, onnx_extent_of(x, onnx_integer(begin, 0)), end);
  if (onnx_one_extent(x, end).dim)
    return onnx_number(x, begin, &start) && onnx_number(x, onnx_in(x, 2), &delta) &&
           range_to_extent(x, start, onnx_one_extent(x, end), delta);
  if (!onnx_number(x, onnx_in(x, 0), &start) || !onnx_number(x, onnx_in(x, 1), &limit) ||
      !onnx_number(x, onnx_in(x, 2), &delta))
    return false;
  if (delta == 0) return build_error(&x->build, "delta: expected a number other than 0");
  const double count = ceil((limit - start) / delta);
  if (!(count <= MOST_MADE)) return build_error(&x->build, "expected at most %d numbers", MOST_MADE);
  const Shape shape = {.rank = 1, .extent = {EXTENT(count > 0 ? (int64_t)count : 0)}};
  Constant *constant;
  Value *v = build_constant(&x->build, onnx_in(x, 0)->type, &shape, &constant);
  for (int64_t i = 0; v && i < shape.extent[0].value; i++)
    type_store(v->type, constant->data, (size_t)i, start + (double)i * delta);
  return onnx_out(x, 0, v);
}
