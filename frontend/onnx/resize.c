// Resampling: Resize and Upsample, and Pad with elements of the input. Along each axis, a result is a weighted sum of a
// few elements; the weights are known when the model is read.
#include "frontend/onnx/translation.h"
#include "ir/graph/extents.h"

#include <math.h>
#include <string.h>

enum { NCUBIC = 4, MOST_TAPS = 64, MOST_EXTENT = 1 << 22 };

typedef struct Resampling {
  const char *mode, *coordinates, *rounding; // rounding: for nearest
  double cubic, extrapolated;
  bool excludes_outside, is_smooth; // smooth: the kernel is stretched where the image becomes smaller
  bool keeps_ratio;                 // scales are given beside sizes
  size_t nscales, nsizes, nregion;
  double scales[MAX_RANK], region[2 * MAX_RANK];
  Extent sizes[MAX_RANK];
} Resampling;

// The elements that are summed into each result along an axis.
typedef struct Taps {
  int64_t nresults;
  int count;
  int64_t *index[MOST_TAPS]; // [nresults], inside the input
  double *weight[MOST_TAPS];
  bool *is_outside; // the result is the extrapolation value
  bool has_outside;
} Taps;

static bool is(const char *text, const char *other) {
  return strcmp(text, other) == 0;
}

// `length`: scale times n, which may be no whole number.
static double coordinate(const Resampling *r, int axis, int rank, double o, double scale, double n, double length,
                         double nresults) {
  if (is(r->coordinates, "align_corners")) return length > 1 ? o * (n - 1) / (length - 1) : 0;
  if (is(r->coordinates, "asymmetric")) return o / scale;
  if (is(r->coordinates, "tf_half_pixel_for_nn")) return (o + 0.5) / scale;
  if (is(r->coordinates, "pytorch_half_pixel") && nresults < 2) return 0;
  if (is(r->coordinates, "tf_crop_and_resize")) {
    const double start = r->region[axis], end = r->region[rank + axis];
    if (length <= 1) return (start + end) * (n - 1) / 2;
    return start * (n - 1) + o * (end - start) * (n - 1) / (length - 1);
  }
  const double centre = is(r->coordinates, "half_pixel_symmetric") ? n / 2 * (1 - nresults / length) : 0;
  return centre + (o + 0.5) / scale - 0.5;
}

static double nearest(const char *rounding, double at) {
  if (is(rounding, "floor")) return floor(at);
  if (is(rounding, "ceil")) return ceil(at);
  return is(rounding, "round_prefer_ceil") ? floor(at + 0.5) : ceil(at - 0.5);
}

// Keys' cubic kernel at a distance.
static double cubic_weight(double a, double distance) {
  const double d = fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static bool new_taps(Onnx *x, Taps *taps, int count, int64_t nresults) {
  *taps = (Taps){.nresults = nresults, .count = count};
  if (!build_spend(&x->build, (nresults + 1) * count * (int64_t)sizeof(double))) return false;
  bool ok = (taps->is_outside = ARENA_ARRAY(x->reading.arena, bool, (size_t)nresults + 1)) != NULL;
  for (int t = 0; t < count; t++) {
    taps->index[t] = ARENA_ARRAY(x->reading.arena, int64_t, (size_t)nresults + 1);
    taps->weight[t] = ARENA_ARRAY(x->reading.arena, double, (size_t)nresults + 1);
    ok = ok && taps->index[t] && taps->weight[t];
  }
  return ok || error_out_of_memory(x->reading.d);
}

static void set_tap(Taps *taps, int t, int64_t o, double at, int64_t n, double weight) {
  taps->index[t][o] = !(at >= 0) ? 0 : at > (double)(n - 1) ? n - 1 : (int64_t)at;
  taps->weight[t][o] = weight;
}

// The kernel around a position, stretched by 1 / scale: Keys' or, of two taps, a triangle.
static void set_kernel(const Resampling *r, Taps *taps, int64_t o, double at, int64_t n, double scale) {
  const int radius = taps->count / 2;
  const double first = floor(at) - radius + 1;
  double sum = 0;
  for (int t = 0; t < taps->count; t++) {
    const bool is_left_out = r->excludes_outside && (first + t < 0 || first + t > (double)(n - 1));
    const double distance = (at - (first + t)) * scale, triangle = fabs(distance) < 1 ? 1 - fabs(distance) : 0;
    const double weight = is(r->mode, "cubic") ? cubic_weight(r->cubic, distance) : triangle;
    set_tap(taps, t, o, first + t, n, is_left_out ? 0 : weight);
    sum += taps->weight[t][o];
  }
  for (int t = 0; t < taps->count && (r->excludes_outside || scale < 1); t++) taps->weight[t][o] /= sum;
}

static bool find_taps(Onnx *x, const Resampling *r, int axis, int rank, int64_t n, double scale, int64_t nresults,
                      Taps *taps) {
  const int unstretched = is(r->mode, "cubic") ? NCUBIC : is(r->mode, "linear") ? 2 : 1, radius = unstretched / 2;
  const double stretched = r->is_smooth && scale < 1 && unstretched > 1 ? scale : 1,
               wanted = 2 * ceil(radius / stretched);
  if (!(wanted <= MOST_TAPS))
    return build_error(&x->build, "antialias: a scale of %g would take more than %d elements for each", scale,
                       MOST_TAPS);
  const int count = unstretched > 1 ? (int)wanted : 1;
  if (n < 1 || nresults < 0 || nresults > MOST_EXTENT)
    return build_error(&x->build, "an axis is too long, or has no elements");
  if (!new_taps(x, taps, count, nresults)) return false;
  // A scale is rounded to f32, so 0.4 * 5 is taken for 2 elements. 0.6 * 4 stays 2.4, as in ONNX's reference results.
  double length = scale * (double)n;
  if (fabs(length - (double)nresults) < 1e-6 * length) length = (double)nresults;
  for (int64_t o = 0; o < nresults; o++) {
    double at = coordinate(r, axis, rank, (double)o, scale, (double)n, length, (double)nresults);
    taps->is_outside[o] = is(r->coordinates, "tf_crop_and_resize") && (at < 0 || at > (double)(n - 1));
    taps->has_outside |= taps->is_outside[o];
    if (unstretched == NCUBIC || stretched < 1) {
      set_kernel(r, taps, o, at, n, stretched);
    } else if (count == 2) {
      at = at < 0 ? 0 : at > (double)(n - 1) ? (double)(n - 1) : at;
      set_tap(taps, 0, o, floor(at), n, 1 - (at - floor(at)));
      set_tap(taps, 1, o, floor(at) + 1, n, at - floor(at));
    } else {
      set_tap(taps, 0, o, nearest(r->rounding, at), n, 1);
    }
  }
  return true;
}

// A vector of numbers along an axis with `behind` axes after it.
static Value *along_axis(Onnx *x, Type type, const double *numbers, int64_t n, int behind) {
  Shape shape = {.rank = 1 + behind, .extent = {EXTENT(n)}};
  Constant *constant;
  for (int i = 1; i <= behind; i++) shape.extent[i] = EXTENT(1);
  Value *v = build_constant(&x->build, type, &shape, &constant);
  for (int64_t i = 0; v && i < n; i++) type_store(type, constant->data, (size_t)i, numbers[i]);
  return v;
}

static Value *add_taps(Onnx *x, Value *v, const Taps *taps, int axis) {
  Value *sum = NULL;
  if (!v) return NULL;
  const int behind = v->shape.rank - 1 - axis;
  const Type type = v->type;
  for (int t = 0; t < taps->count; t++) {
    Value *part = onnx_take(x, v, taps->index[t], taps->nresults, axis);
    if (taps->count > 1)
      part = build_binary(&x->build, OP_Multiply, part, along_axis(x, type, taps->weight[t], taps->nresults, behind));
    if (!part) return NULL;
    sum = sum ? build_binary(&x->build, OP_Add, sum, part) : part;
  }
  return sum;
}

static bool set_scales(Onnx *x, Node *node, const double *scales, size_t count) {
  double *items = ARENA_ARRAY(&x->build.graph->arena, double, count);
  if (!items) return error_out_of_memory(x->reading.d);
  memcpy(items, scales, count * sizeof *items);
  AttributeValue *value = build_set(node, "scales");
  value->numbers.items = items;
  value->numbers.count = count;
  return true;
}

// The graph's own operator, which has a gradient: linear, over spatial axes, with scales equal to the ratios of
// extents.
static Value *interpolate(Onnx *x, Value *v, const Resampling *r, const Extent *results) {
  Builder *b = &x->build;
  int64_t sizes[MAX_RANK];
  bool is_named = false;
  const int rank = v->shape.rank;
  const bool aligns = is(r->coordinates, "align_corners");
  if (!is(r->mode, "linear") || rank < 3 || rank > 5 || !type_is_float(v->type)) return NULL;
  if (r->is_smooth || r->keeps_ratio) return NULL;
  const bool is_of_one = is(r->coordinates, "pytorch_half_pixel"); // half_pixel, but where there is one result
  if (!aligns && !is_of_one && !is(r->coordinates, "half_pixel")) return NULL;
  for (int i = 0; i < rank; i++) {
    const Extent n = v->shape.extent[i];
    if (i < 2 ? !extent_equals(results[i], n) : !results[i].dim && results[i].value < 1) return NULL;
    if (!n.dim && r->nscales && r->scales[i] * (double)n.value != (double)results[i].value) return NULL;
    if (is_of_one && !results[i].dim && results[i].value == 1 && n.value != 1) return NULL;
    if (i >= 2) sizes[i - 2] = results[i].value;
    is_named |= i >= 2 && results[i].dim;
  }
  if (is_named && !r->nscales) return NULL;
  Node *node = build_node(b, OP_Interpolate, 1, &v);
  if (!node || (!is_named && !build_set_list(b, node, "sizes", sizes, (size_t)rank - 2)) ||
      (is_named && !set_scales(x, node, r->scales + 2, (size_t)rank - 2)) ||
      !build_set_choice(node, "mode", "linear") ||
      !build_set_choice(node, "coordinate_transformation_mode", aligns ? "align_corners" : "half_pixel") ||
      !build_set_choice(node, "data_format", "NCX"))
    return NULL;
  return build_one(b, node);
}

// The length in float arithmetic: 0.7 * 10 is 7 elements.
static double length_of(int64_t n, double scale) {
  return (double)floorf((float)n * (float)scale);
}

// Repeats each element along a named axis, which the nearest element of a multiple of the elements is, unless positions
// are rounded otherwise.
static Value *repeat(Onnx *x, const Resampling *r, Value *v, int axis) {
  const bool is_floor = is(r->rounding, "floor"), is_half = strstr(r->coordinates, "half_pixel") == r->coordinates ||
                                                            is(r->coordinates, "pytorch_half_pixel");
  const bool repeats = is_floor ? is(r->coordinates, "asymmetric") || is(r->coordinates, "tf_half_pixel_for_nn")
                                : is_half && strstr(r->rounding, "round_prefer") == r->rounding;
  Shape apart = {.rank = v->shape.rank + 1}, to = v->shape;
  if (!is(r->mode, "nearest") || !repeats || apart.rank > MAX_RANK) return onnx_has_number(x, v, axis), NULL;
  for (int i = 0; i < apart.rank; i++) apart.extent[i] = i == axis + 1 ? EXTENT(1) : v->shape.extent[i - (i > axis)];
  v = onnx_reshape_extents(x, v, &apart);
  apart.extent[axis + 1] = EXTENT((int64_t)r->scales[axis]);
  v = v ? build_expand(&x->build, v, &apart) : NULL;
  if (!v || !extent_multiply(x->build.graph, to.extent[axis], apart.extent[axis + 1], &to.extent[axis])) return NULL;
  return onnx_reshape_extents(x, v, &to);
}

// The extents of the result. A named axis is left as it is, by its own name or the scale 1, or has a whole scale.
static bool find_results(Onnx *x, const Resampling *r, const Value *v, Extent *results) {
  const bool is_cropped = is(r->coordinates, "tf_crop_and_resize");
  const int rank = v->shape.rank;
  if ((int)(r->nsizes ? r->nsizes : r->nscales) != rank || (is_cropped && (int)r->nregion != 2 * rank))
    return build_error(&x->build, "expected scales or sizes for %d axes", rank);
  for (int i = 0; i < rank; i++) {
    const Extent n = results[i] = v->shape.extent[i];
    const bool is_same = r->nsizes ? extent_equals(r->sizes[i], n) : r->scales[i] == 1;
    if (is_same && !is_cropped && !extent_is_unknown(n)) continue;
    const double scale = r->nsizes ? 0 : r->scales[i];
    if (n.dim && !is_cropped && scale >= 1 && scale <= MOST_EXTENT && floor(scale) == scale) {
      if (!extent_multiply(x->build.graph, n, EXTENT((int64_t)scale), &results[i]))
        return error_out_of_memory(x->reading.d);
      if (results[i].dim) continue;
    }
    if (!onnx_has_number(x, v, i)) return false;
    if (r->nsizes && r->sizes[i].dim) return onnx_must_be_known(x, onnx_in(x, 3));
    const double wanted = r->nsizes ? (double)r->sizes[i].value : length_of(n.value, r->scales[i]);
    if (!(wanted >= 0 && wanted <= MOST_EXTENT) || (!r->nsizes && !(r->scales[i] > 0)))
      return build_error(&x->build, "expected scales above 0, and extents below 2^22");
    results[i] = EXTENT((int64_t)wanted);
  }
  return true;
}

static bool resample(Onnx *x, const Resampling *r) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0), *is_outside = NULL;
  Extent results[MAX_RANK] = {{NULL, 0}};
  if (!v || !find_results(x, r, v, results)) return false;
  const int rank = v->shape.rank;
  const Type type = v->type;
  Value *native = interpolate(x, v, r, results);
  if (native) return onnx_out(x, 0, native);
  if (!is(r->mode, "nearest") && !type_is_float(type)) v = build_cast(b, v, TYPE_F64);
  for (int i = 0; v && i < rank; i++) {
    const int64_t n = v->shape.extent[i].value, nresults = results[i].value;
    const double scale = r->nsizes && !r->keeps_ratio ? (double)nresults / (double)n : r->scales[i];
    Taps taps = {.count = 0};
    if (results[i].dim && !extent_equals(results[i], v->shape.extent[i])) {
      v = repeat(x, r, v, i);
      continue;
    }
    if (results[i].dim || (scale == 1 && nresults == n && !is(r->coordinates, "tf_crop_and_resize"))) continue;
    if (!find_taps(x, r, i, rank, n, scale, nresults, &taps)) return false;
    v = add_taps(x, v, &taps, i);
    if (!taps.has_outside) continue;
    double *marks = ARENA_ARRAY(x->reading.arena, double, (size_t)taps.nresults + 1);
    if (!marks) return error_out_of_memory(x->reading.d);
    for (int64_t o = 0; o < taps.nresults; o++) marks[o] = taps.is_outside[o];
    Value *own = along_axis(x, TYPE_BOOLEAN, marks, taps.nresults, rank - 1 - i);
    is_outside = is_outside ? build_binary(b, OP_LogicalOr, is_outside, own) : own;
  }
  if (v && is_outside) v = build_choose(b, is_outside, build_like(b, v, r->extrapolated), v);
  return onnx_out(x, 0, build_cast(b, v, type));
}

static bool take_numbers(Onnx *x, size_t i, size_t most, double *numbers, size_t *count) {
  const Value *v = onnx_known(x, onnx_in(x, i));
  *count = 0;
  if (!v) return true;
  if (!v->constant || onnx_has_extents(x, v)) return onnx_must_be_known(x, v);
  if (!onnx_has_numbers(x, v)) return false;
  const int64_t nelems = shape_nelems(&v->shape);
  if (nelems < 0 || nelems > (int64_t)most)
    return build_error(&x->build, "input %zu: expected at most %zu numbers", i, most);
  for (; *count < (size_t)nelems; ++*count)
    numbers[*count] = type_load(v->type, v->constant->data, v->constant->is_splat ? 0 : *count);
  return true;
}

static const char *choice(Onnx *x, const char *name, const char *otherwise) {
  const Bytes text = onnx_text(x, name);
  return text.count ? onnx_text_of(x, text) : otherwise;
}

static bool take_choices(Onnx *x, Resampling *r, const char *coordinates, const char *rounding) {
  static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
  static const char *const all[] = {
      "half_pixel",           "align_corners",      "asymmetric",           "pytorch_half_pixel",
      "tf_half_pixel_for_nn", "tf_crop_and_resize", "half_pixel_symmetric", NULL};
  size_t i = 0, k = 0;
  r->mode = choice(x, "mode", "nearest");
  r->coordinates = choice(x, "coordinate_transformation_mode", coordinates);
  r->rounding = choice(x, "nearest_mode", rounding);
  if (!r->mode || !r->coordinates || !r->rounding) return false;
  if (is(r->mode, "bilinear")) r->mode = "linear"; // Upsample 1
  while (modes[i] && !is(modes[i], r->mode)) i++;
  while (all[k] && !is(all[k], r->coordinates)) k++;
  if (!modes[i] || !all[k])
    return build_error(&x->build, "mode %.40s with %.40s is not supported", r->mode, r->coordinates);
  r->cubic = onnx_float(x, "cubic_coeff_a", -0.75);
  r->excludes_outside = onnx_int(x, "exclude_outside", 0) != 0;
  r->extrapolated = onnx_float(x, "extrapolation_value", 0);
  return true;
}

// Scales, sizes and the region of some axes as those of all; the others stay as they are.
static bool spread(Onnx *x, const Value *v, Resampling *r) {
  const Resampling given = *r;
  const size_t rank = (size_t)v->shape.rank;
  Ints axes;
  if (!onnx_has(x, "axes")) return true;
  if (!onnx_list(x, "axes", &axes)) return false;
  const size_t count = axes.count;
  if ((r->nscales && r->nscales != count) || (r->nsizes && r->nsizes != count) ||
      (r->nregion && r->nregion != 2 * count))
    return build_error(&x->build, "expected scales or sizes for %zu axes", count);
  for (size_t i = 0; i < rank; i++)
    r->scales[i] = r->region[rank + i] = 1, r->region[i] = 0, r->sizes[i] = v->shape.extent[i];
  for (size_t i = 0; i < count; i++) {
    int axis;
    if (!onnx_axis(x, axes.items[i], v->shape.rank, &axis)) return false;
    r->scales[axis] = given.scales[i];
    r->sizes[axis] = given.sizes[i];
    r->region[axis] = given.region[i];
    r->region[rank + (size_t)axis] = given.region[count + i];
  }
  r->nscales = given.nscales ? rank : 0;
  r->nsizes = given.nsizes ? rank : 0;
  r->nregion = given.nregion ? 2 * rank : 0;
  return true;
}

// One scale for all axes that sizes are given for: the least or the greatest of theirs.
static bool keep_ratio(Onnx *x, const Value *v, Resampling *r) {
  const char *policy = choice(x, "keep_aspect_ratio_policy", "stretch");
  if (!policy || is(policy, "stretch") || !r->nsizes) return policy;
  const bool is_least = is(policy, "not_larger");
  double scale = 0;
  Ints axes = {.count = 0};
  if (!is_least && !is(policy, "not_smaller"))
    return build_error(&x->build, "keep_aspect_ratio_policy: expected stretch, not_larger or not_smaller");
  if (r->nsizes != (size_t)v->shape.rank) return true; // reported later
  if (!onnx_list(x, "axes", &axes))
    for (int i = 0; i < v->shape.rank; i++) axes.items[axes.count++] = i;
  for (size_t i = 0; i < axes.count; i++) {
    int axis;
    if (!onnx_axis(x, axes.items[i], v->shape.rank, &axis) || !onnx_has_number(x, v, axis)) return false;
    if (r->sizes[axis].dim) return onnx_must_be_known(x, onnx_in(x, 3));
    const double own = (double)r->sizes[axis].value / (double)v->shape.extent[axis].value;
    if (i == 0 || (is_least ? own < scale : own > scale)) scale = own;
  }
  for (int i = 0; i < v->shape.rank; i++) r->scales[i] = 1;
  for (size_t i = 0; i < axes.count; i++) {
    const int64_t axis = axes.items[i] < 0 ? axes.items[i] + v->shape.rank : axes.items[i];
    const double wanted = floor(scale * (double)v->shape.extent[axis].value + 0.5);
    if (!(wanted >= 0 && wanted <= MOST_EXTENT)) return build_error(&x->build, "expected extents below 2^22");
    r->scales[axis] = scale;
    r->sizes[axis] = EXTENT((int64_t)wanted);
  }
  return r->keeps_ratio = true;
}

bool onnx_resize(Onnx *x) {
  Resampling r = {.mode = NULL};
  const bool is_old = x->opset < 11;
  Shape sizes = {.rank = 0};
  if (!take_choices(x, &r, is_old ? "asymmetric" : "half_pixel", is_old ? "floor" : "round_prefer_floor")) return false;
  if (!take_numbers(x, is_old ? 1 : 2, MAX_RANK, r.scales, &r.nscales)) return false;
  if (!is_old && (!take_numbers(x, 1, (size_t)2 * MAX_RANK, r.region, &r.nregion) ||
                  (onnx_in(x, 3) && !onnx_constant_shape(x, 3, &sizes))))
    return false;
  memcpy(r.sizes, sizes.extent, sizeof r.sizes);
  r.nsizes = (size_t)sizes.rank;
  r.is_smooth = onnx_int(x, "antialias", 0) != 0;
  const Value *v = onnx_in(x, 0);
  return v && spread(x, v, &r) && keep_ratio(x, v, &r) && resample(x, &r);
}

// Resize before opset 10.
bool onnx_upsample(Onnx *x) {
  Resampling r = {.mode = NULL};
  OnnxAttribute a;
  if (!take_choices(x, &r, "asymmetric", "floor")) return false;
  if (x->opset >= 9) return take_numbers(x, 1, MAX_RANK, r.scales, &r.nscales) && resample(x, &r);
  if (onnx_attribute(x, "scales", ONNX_FLOATS, &a)) {
    r.nscales = onnx_floats(&a, r.scales, MAX_RANK);
  } else {
    r.nscales = 4;
    r.scales[0] = r.scales[1] = 1;
    r.scales[2] = onnx_float(x, "height_scale", 1);
    r.scales[3] = onnx_float(x, "width_scale", 1);
  }
  return resample(x, &r);
}

// The source of an element that may be beyond an edge: reflected at the edge's element, that element itself, or counted
// from the other edge.
static int64_t inside(int64_t at, int64_t n, PadMode mode) {
  if (mode == PAD_REPEATS) return at < 0 ? 0 : at >= n ? n - 1 : at;
  if (mode == PAD_WRAPS) return at % n < 0 ? at % n + n : at % n;
  const int64_t period = n > 1 ? 2 * (n - 1) : 1;
  at = at % period < 0 ? at % period + period : at % period;
  return at < n ? at : period - at;
}

Value *onnx_pad_with_elements(Onnx *x, Value *v, const Ints *pads, PadMode mode) {
  for (int axis = 0; v && axis < v->shape.rank; axis++) {
    const int64_t begin = pads->items[axis], end = pads->items[v->shape.rank + axis];
    if (begin == 0 && end == 0) continue;
    if (!onnx_has_number(x, v, axis)) return NULL;
    const int64_t n = v->shape.extent[axis].value;
    if (n < 1 || n > MOST_EXTENT || begin < -MOST_EXTENT || begin > MOST_EXTENT || end < -MOST_EXTENT ||
        end > MOST_EXTENT)
      return build_error(&x->build, "pads: expected an axis with elements, and numbers below 2^22"), NULL;
    const int64_t nresults = n + begin + end > 0 ? n + begin + end : 0;
    if (!build_spend(&x->build, nresults * (int64_t)sizeof(int64_t))) return NULL;
    int64_t *indices = ARENA_ARRAY(x->reading.arena, int64_t, (size_t)nresults + 1);
    if (!indices) return error_out_of_memory(x->reading.d), NULL;
    for (int64_t i = 0; i < nresults; i++) indices[i] = inside(i - begin, n, mode);
    v = onnx_take(x, v, indices, nresults, axis);
  }
  return v;
}
