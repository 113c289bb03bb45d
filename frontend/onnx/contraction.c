// Products, convolutions and pooling.
#include "frontend/onnx/translation.h"
#include "ir/graph/extents.h"

#include <string.h>

enum { MOST_PADDED = 1 << 30 }; // limit of extents, padding and windows, against overflow
bool onnx_matmul(Onnx *x) {
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  if (!a || !b) return build_error(&x->build, "expected two inputs");
  const Type type = a->type;
  if (!type_is_float(type)) {
    a = build_cast(&x->build, a, TYPE_F64);
    b = build_cast(&x->build, b, TYPE_F64);
  }
  return onnx_out(x, 0, build_cast(&x->build, build_binary(&x->build, OP_MatMul, a, b), type));
}

// alpha * a * b + beta * c
bool onnx_gemm(Onnx *x) {
  Builder *b = &x->build;
  if (!onnx_in(x, 0) || !onnx_in(x, 1)) return build_error(b, "expected two inputs");
  const Type type = onnx_in(x, 0)->type, wide = type_is_float(type) ? type : TYPE_F64;
  Value *const in[] = {build_cast(b, onnx_in(x, 0), wide), build_cast(b, onnx_in(x, 1), wide)};
  Value *c = build_times(b, build_cast(b, onnx_in(x, 2), wide), onnx_float(x, "beta", 1));
  Node *node = build_node(b, OP_MatMul, 2, in);
  if (!node) return false;
  build_set(node, "transpose_a")->boolean = onnx_int(x, "transA", 0) != 0;
  build_set(node, "transpose_b")->boolean = onnx_int(x, "transB", 0) != 0;
  Value *product = build_times(b, build_one(b, node), onnx_float(x, "alpha", 1));
  Value *result = c ? build_binary(b, OP_Add, product, c) : product;
  return onnx_out(x, 0, build_cast(b, type == wide ? result : build_truncate(b, result), type));
}

// Windows: the attributes shared by convolutions and pooling.

typedef struct Window {
  int nspatial;
  Ints kernel, strides, dilations, begin, end;
  const char *auto_pad; // in the names of ngrad's attribute
} Window;

static bool numbers(Onnx *x, const char *name, size_t count, int64_t otherwise, Ints *list) {
  if (!onnx_list(x, name, list)) {
    if (list->count > MOST_INTS) return false;
    for (list->count = 0; list->count < count; list->count++) list->items[list->count] = otherwise;
  }
  return list->count == count ||
         build_error(&x->build, "%s: expected %zu numbers, found %zu", name, count, list->count);
}

// Products of two of them cannot overflow.
static bool are_small(Onnx *x, const int64_t *items, size_t count) {
  const int64_t most = (int64_t)1 << 30;
  for (size_t i = 0; i < count; i++)
    if (items[i] <= -most || items[i] >= most) return build_error(&x->build, "expected extents and windows below 2^30");
  return true;
}

static bool take_window(Onnx *x, const Value *v, const Value *weights, Window *w) {
  Ints pads;
  if (!v || v->shape.rank < 3 || v->shape.rank > 5) return build_error(&x->build, "expected 1 to 3 spatial axes");
  const size_t n = (size_t)v->shape.rank - 2;
  w->nspatial = (int)n;
  if (weights && weights->shape.rank != v->shape.rank)
    return build_error(&x->build, "expected weights of as many axes");
  if (!numbers(x, "kernel_shape", n, 0, &w->kernel) || !numbers(x, "strides", n, 1, &w->strides) ||
      !numbers(x, "dilations", n, 1, &w->dilations) || !numbers(x, "pads", 2 * n, 0, &pads))
    return false;
  for (size_t i = 0; i < n; i++) {
    if (weights) w->kernel.items[i] = extent_value(weights->shape.extent[i + 2]);
    w->begin.items[i] = pads.items[i];
    w->end.items[i] = pads.items[n + i];
  }
  w->begin.count = w->end.count = n;
  int64_t extents[MAX_RANK];
  for (size_t i = 0; i < n; i++) extents[i] = extent_value(v->shape.extent[i + 2]);
  if (!are_small(x, w->kernel.items, n) || !are_small(x, w->strides.items, n) || !are_small(x, w->dilations.items, n) ||
      !are_small(x, pads.items, 2 * n) || !are_small(x, extents, n))
    return false;
  const Bytes mode = onnx_text(x, "auto_pad");
  w->auto_pad = bytes_are(mode, "SAME_UPPER")   ? "SAME_UPPER"
                : bytes_are(mode, "SAME_LOWER") ? "SAME_LOWER"
                : bytes_are(mode, "VALID")      ? "VALID"
                                                : "None";
  return true;
}

static bool set_window(Onnx *x, Node *node, const Window *w) {
  Builder *b = &x->build;
  const size_t n = (size_t)w->nspatial;
  return node && build_set_list(b, node, "strides", w->strides.items, n) &&
         build_set_list(b, node, "pads_begin", w->begin.items, n) &&
         build_set_list(b, node, "pads_end", w->end.items, n) && build_set_choice(node, "auto_pad", w->auto_pad) &&
         build_set_choice(node, "data_format", "NCX");
}

Value *onnx_convolve(Onnx *x, Value *v, Value *weights, Value *bias) {
  Builder *b = &x->build;
  Value *const in[] = {v, weights, bias};
  Window w = {.auto_pad = "None"};
  if (!weights || !take_window(x, in[0], in[1], &w)) return NULL;
  Node *node = build_node(b, OP_Convolution, in[2] ? 3 : 2, in);
  if (!set_window(x, node, &w) || !build_set_list(b, node, "dilations", w.dilations.items, (size_t)w.nspatial) ||
      !build_set_choice(node, "weights_format", "OIX"))
    return NULL;
  build_set(node, "groups")->s64 = onnx_int(x, "group", 1);
  return build_one(b, node);
}

bool onnx_conv(Onnx *x) {
  return onnx_out(x, 0, onnx_convolve(x, onnx_in(x, 0), onnx_in(x, 1), onnx_in(x, 2)));
}

// Computes the padding from output_shape. Surplus elements are cut; an odd one is cut in front unless auto_pad is
// SAME_UPPER. Missing elements are added at the end.
static bool pad_to_shape(Onnx *x, const Value *v, const Ints *shape, Ints *more, Window *w) {
  const bool is_upper = strcmp(w->auto_pad, "SAME_UPPER") == 0;
  if (!are_small(x, shape->items, shape->count) || !are_small(x, more->items, more->count)) return false;
  for (size_t i = 0; i < (size_t)w->nspatial; i++) {
    const int64_t from = extent_value(v->shape.extent[i + 2]),
                  wanted = shape->count ? shape->items[i] : from * w->strides.items[i];
    int64_t total = w->strides.items[i] * (from - 1) + more->items[i] +
                    (w->kernel.items[i] - 1) * w->dilations.items[i] + 1 - wanted;
    if (from < 0) return build_error(&x->build, "expected spatial extents that are numbers");
    if (total < 0) more->items[i] -= total;
    if (total < 0) total = 0;
    w->begin.items[i] = is_upper ? total / 2 : total - total / 2;
    w->end.items[i] = total - w->begin.items[i];
  }
  w->auto_pad = "None";
  return true;
}

bool onnx_conv_transpose(Onnx *x) {
  Builder *b = &x->build;
  Value *const in[] = {onnx_in(x, 0), onnx_in(x, 1), onnx_in(x, 2)};
  Window w = {.auto_pad = "None"};
  Ints more, shape = {.count = 0};
  if (!take_window(x, in[0], in[1], &w)) return false;
  const size_t n = (size_t)w.nspatial;
  if (!numbers(x, "output_padding", n, 0, &more)) return false;
  if (onnx_list(x, "output_shape", &shape) && shape.count == n + 2)
    memmove(shape.items, shape.items + 2, n * sizeof *shape.items);
  if (shape.count && shape.count != n && shape.count != n + 2)
    return build_error(b, "output_shape: expected %zu numbers, found %zu", n, shape.count);
  if (shape.count || strncmp(w.auto_pad, "SAME", 4) == 0)
    if (!pad_to_shape(x, in[0], &shape, &more, &w)) return false;
  Node *node = build_node(b, OP_ConvTranspose, in[2] ? 3 : 2, in);
  if (!set_window(x, node, &w) || !build_set_list(b, node, "dilations", w.dilations.items, n) ||
      !build_set_list(b, node, "output_padding", more.items, n) || !build_set_choice(node, "weights_format", "IOX"))
    return false;
  build_set(node, "groups")->s64 = onnx_int(x, "group", 1);
  return onnx_out(x, 0, build_one(b, node));
}

// With ceil_mode, the last window along an axis may reach beyond the padding, but must begin before it. *more: how far
// it reaches, so that no rounding up is needed. False: a number is negative or too large.
static bool find_more(const Value *v, const Window *w, int64_t *more) {
  for (int i = 0; i < w->nspatial; i++) {
    const int64_t n = extent_value(v->shape.extent[i + 2]), stride = w->strides.items[i], begin = w->begin.items[i],
                  end = w->end.items[i], kernel = w->kernel.items[i], dilation = w->dilations.items[i];
    const int64_t numbers[] = {n, begin, end, stride - 1, kernel - 1, dilation - 1};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
      if (numbers[k] < 0 || numbers[k] >= MOST_PADDED) return false;
    const int64_t padded = n + begin + end, reach = (kernel - 1) * dilation + 1,
                  last = padded < reach ? 0 : (padded - reach + stride - 1) / stride * stride;
    more[i] = last < n + begin && last + reach > padded && padded >= reach ? last + reach - padded : 0;
  }
  return true;
}

// Adds the reach to the windows' padding. Means never count the reach. If they count the other padding, that padding
// becomes a node Pad before *v, and *excludes is set.
static bool round_up(Onnx *x, Value **v, Window *w, bool *excludes) {
  Builder *b = &x->build;
  int64_t more[MAX_RANK] = {0}, begin[MAX_RANK] = {0}, end[MAX_RANK] = {0};
  bool has_more = false;
  if (strcmp(w->auto_pad, "None") != 0) return true; // it says how many windows there are
  for (int i = 0; i < w->nspatial; i++)
    if (!onnx_has_number(x, *v, i + 2)) return false;
  if (!find_more(*v, w, more)) return build_error(b, "pads, strides, dilations and kernel_shape: expected windows");
  for (int i = 0; i < w->nspatial; i++) has_more |= more[i] > 0;
  for (int i = 0; i < w->nspatial && has_more && !*excludes; i++) {
    begin[i + 2] = w->begin.items[i];
    end[i + 2] = w->end.items[i];
    w->begin.items[i] = w->end.items[i] = 0;
  }
  for (int i = 0; i < w->nspatial; i++) w->end.items[i] += more[i];
  if (!has_more || *excludes) return true;
  *excludes = true;
  *v = build_pad(b, *v, begin, end, (size_t)w->nspatial + 2, 0);
  return *v;
}

static bool set_pool(Onnx *x, Node *node, const Window *w) {
  return set_window(x, node, w) && build_set_list(&x->build, node, "kernel", w->kernel.items, (size_t)w->nspatial) &&
         build_set_choice(node, "rounding_type", "floor");
}

// The winner's index along a spatial axis of its window: a digit of its index in the kernel.
static Value *tap_along(Onnx *x, Value *winners, const Window *w, int axis) {
  Builder *b = &x->build;
  int64_t behind = 1;
  for (int i = axis + 1; i < w->nspatial; i++) behind *= w->kernel.items[i];
  Value *rest = build_floor(b, build_binary(b, OP_Divide, winners, build_number(b, TYPE_F64, NULL, (double)behind)));
  Value *extent = build_number(b, TYPE_F64, NULL, (double)w->kernel.items[axis]);
  Value *count = build_floor(b, build_binary(b, OP_Divide, rest, extent));
  return build_binary(b, OP_Subtract, rest, build_binary(b, OP_Multiply, count, extent));
}

// Finds the greatest element of each window, as an index into the flat v, whose batch may be named; with storage_order,
// into column-major images.
static bool put_indices(Onnx *x, Value *v, const Window *w, const Shape *shape) {
  Builder *b = &x->build;
  const int rank = v->shape.rank;
  const bool is_by_columns = onnx_int(x, "storage_order", 0) != 0;
  int64_t stride[MAX_RANK], offset = 0;
  for (int i = rank - 1; i >= 0; i--) {
    if (i && !onnx_has_number(x, v, i)) return false;
    stride[i] = i < rank - 1 ? stride[i + 1] * v->shape.extent[i + 1].value : 1;
    if (!are_small(x, &stride[i], 1)) return false;
  }
  if (strncmp(w->auto_pad, "SAME", 4) == 0) return build_error(b, "Indices with auto_pad are not supported");
  Node *node = build_node(b, OP_MaxPoolWinners, 1, &v);
  if (!set_window(x, node, w) || !build_set_list(b, node, "kernel", w->kernel.items, (size_t)w->nspatial) ||
      !build_set_list(b, node, "dilations", w->dilations.items, (size_t)w->nspatial))
    return false;
  Value *winners = build_result(b, node, 0, TYPE_NONE), *sum = NULL;
  if (!winners) return false;
  winners->shape = *shape;
  winners = build_finish(b, node) ? build_cast(b, winners, TYPE_F64) : NULL;
  if (!winners) return false;
  for (int i = 2; i < rank && is_by_columns; i++) stride[i] = i == 2 ? 1 : stride[i - 1] * v->shape.extent[i - 1].value;
  for (int i = 0; i < rank; i++) {
    const int64_t step = i < 2 ? stride[i] : stride[i] * w->strides.items[i - 2];
    Value *part = onnx_iota(x, winners->shape.extent[i], EXTENT(step), rank - 1 - i);
    if (i >= 2) {
      const double tap_step = (double)(stride[i] * w->dilations.items[i - 2]);
      Value *tap =
          build_binary(b, OP_Multiply, tap_along(x, winners, w, i - 2), build_number(b, TYPE_F64, NULL, tap_step));
      part = build_binary(b, OP_Add, part, build_cast(b, tap, TYPE_S64));
      offset -= w->begin.items[i - 2] * stride[i];
    }
    sum = sum ? build_binary(b, OP_Add, sum, part) : part;
    if (!sum) return false;
  }
  return onnx_out(x, 1, offset ? build_binary(b, OP_Add, sum, build_number(b, TYPE_S64, NULL, (double)offset)) : sum);
}

// The elements of v at the indices from MaxPool, and zeros elsewhere, in the shape of MaxPool's input, extended with
// zeros to output_shape. The batch and the channels may be named.
bool onnx_max_unpool(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0), *indices = onnx_in(x, 1);
  Window w = {.auto_pad = "None"};
  Shape wanted = {.rank = 0}, to, whole = {.rank = 1, .extent = {EXTENT(1)}};
  int64_t none[MAX_RANK] = {0}, more[MAX_RANK] = {0};
  if (!v || !indices || !take_window(x, v, NULL, &w)) return false;
  if (onnx_in(x, 2) && !onnx_constant_shape(x, 2, &wanted)) return false;
  const int rank = v->shape.rank;
  if (wanted.rank && wanted.rank != rank) return build_error(b, "output_shape: expected %d numbers", rank);
  to = v->shape;
  for (int i = 0; i < rank; i++) {
    Extent *e = &to.extent[i];
    if (i >= 2 && !onnx_has_number(x, v, i)) return false;
    if (i >= 2)
      e->value =
          (e->value - 1) * w.strides.items[i - 2] - w.begin.items[i - 2] - w.end.items[i - 2] + w.kernel.items[i - 2];
    if (!e->dim && e->value < 0) return build_error(b, "expected a window that gives extents");
    if (!extent_multiply(b->graph, whole.extent[0], *e, &whole.extent[0])) return error_out_of_memory(x->reading.d);
    if (!wanted.rank || extent_equals(wanted.extent[i], *e)) continue;
    if (e->dim || wanted.extent[i].dim) return onnx_must_be_known(x, onnx_in(x, 2));
    if (!are_small(x, &wanted.extent[i].value, 1)) return false;
    more[i] = wanted.extent[i].value - e->value;
  }
  if (extent_is_unknown(whole.extent[0])) return build_error(b, "expected a window that gives extents");
  Value *result = onnx_reshape_extents(x, onnx_scatter(x, onnx_flat(x, indices), onnx_flat(x, v), &whole), &to);
  return onnx_out(x, 0, wanted.rank ? build_pad(b, result, none, more, (size_t)rank, 0) : result);
}

bool onnx_max_pool(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  Window w = {.auto_pad = "None"};
  if (!take_window(x, v, NULL, &w)) return false;
  const Type type = v->type;
  bool excludes = true;
  if (!type_is_float(type)) v = build_cast(b, v, TYPE_F32); // 8-bit integers
  if (!v || (onnx_int(x, "ceil_mode", 0) && !round_up(x, &v, &w, &excludes))) return false;
  Node *node = build_node(b, OP_MaxPool, 1, &v);
  if (!set_pool(x, node, &w) || !build_set_list(b, node, "dilations", w.dilations.items, (size_t)w.nspatial))
    return false;
  Value *greatest = build_one(b, node);
  return onnx_out(x, 0, build_cast(b, greatest, type)) &&
         (!onnx_wants(x, 1) || put_indices(x, v, &w, &greatest->shape));
}

static bool is_dilated(const Window *w) {
  bool any = false;
  for (int i = 0; i < w->nspatial; i++) any |= w->dilations.items[i] != 1;
  return any;
}

// The sums of windows with gaps: a convolution of each channel with ones.
static Value *sum_of_windows(Onnx *x, Value *v, const Window *w) {
  Builder *b = &x->build;
  Shape apart = v->shape, kernel = {.rank = v->shape.rank, .extent = {EXTENT(1), EXTENT(1)}}, to = v->shape;
  if (!extent_multiply(b->graph, v->shape.extent[0], v->shape.extent[1], &apart.extent[0]))
    return error_out_of_memory(x->reading.d), NULL;
  apart.extent[1] = EXTENT(1);
  for (int i = 0; i < w->nspatial; i++) {
    if (w->kernel.items[i] < 1) return build_error(b, "kernel_shape: expected numbers above 0"), NULL;
    kernel.extent[i + 2] = EXTENT(w->kernel.items[i]);
  }
  Value *const in[] = {onnx_reshape_extents(x, v, &apart), build_number(b, v->type, &kernel, 1)};
  if (!build_fits(b, in[1])) return NULL;
  Node *node = build_node(b, OP_Convolution, 2, in);
  if (!set_window(x, node, w) || !build_set_list(b, node, "dilations", w->dilations.items, (size_t)w->nspatial) ||
      !build_set_choice(node, "weights_format", "OIX"))
    return NULL;
  Value *sum = build_one(b, node);
  for (int i = 2; sum && i < to.rank; i++) to.extent[i] = sum->shape.extent[i];
  return onnx_reshape_extents(x, sum, &to);
}

// The mean of windows with gaps; without padding, each window's sum of ones is their number.
static Value *dilated_mean(Onnx *x, Value *v, const Window *w, bool excludes) {
  Builder *b = &x->build;
  double count = 1;
  for (int i = 0; i < w->nspatial; i++) count *= (double)w->kernel.items[i];
  if (!excludes) return build_times(b, sum_of_windows(x, v, w), 1 / count);
  Shape one = v->shape;
  one.extent[0] = one.extent[1] = EXTENT(1);
  Value *ones = build_number(b, v->type, &one, 1), *counts = ones ? sum_of_windows(x, ones, w) : NULL;
  return counts ? build_binary(b, OP_Divide, sum_of_windows(x, v, w), counts) : NULL;
}

bool onnx_average_pool(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  Window w = {.auto_pad = "None"};
  if (!take_window(x, v, NULL, &w)) return false;
  bool excludes = onnx_int(x, "count_include_pad", 0) == 0;
  if (onnx_int(x, "ceil_mode", 0) && !round_up(x, &v, &w, &excludes)) return false;
  if (is_dilated(&w)) return onnx_out(x, 0, dilated_mean(x, v, &w, excludes));
  Node *node = build_node(b, OP_AvgPool, 1, &v);
  if (!set_pool(x, node, &w)) return false;
  build_set(node, "exclude_pad")->boolean = excludes;
  return onnx_out(x, 0, build_one(b, node));
}

// Over the spatial axes, which stay with extent 1.
static Value *reduce_images(Onnx *x, OperatorId id, Value *v) {
  Ints axes = {.count = 0};
  for (int i = 2; v && i < v->shape.rank; i++) axes.items[axes.count++] = i;
  return axes.count ? build_reduce(&x->build, id, v, axes.items, axes.count, true) : v;
}

bool onnx_global_pool(Onnx *x) {
  Value *v = onnx_in(x, 0);
  if (!v) return build_error(&x->build, "expected an input");
  return onnx_out(x, 0, reduce_images(x, x->row->op, v));
}

static Value *power(Builder *b, Value *v, double exponent) {
  return exponent == 1 ? v : build_with(b, OP_Pow, v, "beta", exponent);
}

static Value *mean_of_windows(Onnx *x, Value *v, const Window *w) {
  if (is_dilated(w)) return dilated_mean(x, v, w, false);
  Node *node = build_node(&x->build, OP_AvgPool, 1, &v);
  if (!set_pool(x, node, w)) return NULL;
  build_set(node, "exclude_pad")->boolean = false;
  return build_one(&x->build, node);
}

// (sum |x|^p)^(1/p) over windows, whose padding is 0, or over whole images, in f64: powers may exceed the range of
// narrower types.
bool onnx_lp_pool(Onnx *x) {
  Builder *b = &x->build;
  Value *given = onnx_in(x, 0);
  const bool is_global = bytes_are(x->node->op, "GlobalLpPool");
  Window w = {.auto_pad = "None"};
  if (!given || (!is_global && !take_window(x, given, NULL, &w))) return false;
  const double p = x->opset < 2 ? onnx_float(x, "p", 2) : (double)onnx_int(x, "p", 2);
  double count = 1;
  if (!(p >= 1)) return build_error(b, "p: expected at least 1, found %g", p);
  if (onnx_int(x, "ceil_mode", 0)) return build_error(b, "ceil_mode is not supported");
  for (int i = 0; i < w.nspatial; i++) count *= (double)w.kernel.items[i];
  Value *v = build_unary(b, OP_Abs, build_cast(b, given, TYPE_F64));
  v = p == 2 ? build_unary(b, OP_Square, v) : power(b, v, p);
  if (!v) return false;
  v = is_global ? reduce_images(x, OP_ReduceSum, v) : build_times(b, mean_of_windows(x, v, &w), count);
  v = p == 2 ? build_unary(b, OP_Sqrt, v) : power(b, v, 1 / p);
  return onnx_out(x, 0, build_cast(b, v, given->type));
}
