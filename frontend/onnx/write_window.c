// Writers of products, convolutions, pooling and their gradients. ONNX's convolutions and windows have the channels on
// axis 1, and so have weights, so other formats get transposes around them.
#include "frontend/onnx/write_standard.h"
#include "ir/operators/window.h"

#include <string.h>

// Products

static const char *transposed(OnnxWriter *w, const char *v, int rank) {
  int64_t order[MAX_RANK];
  for (int i = 0; i < rank; i++) order[i] = i;
  order[rank - 1] = rank - 2;
  order[rank - 2] = rank - 1;
  return onnx_put_transpose(w, v, order, rank, NULL);
}

bool onnx_write_matmul(OnnxWriter *w, const Node *node, const char *name) {
  const int rank_a = node->inputs[0]->shape.rank, rank_b = node->inputs[1]->shape.rank;
  const Value *bias = node->ninputs > 2 ? node->inputs[2] : NULL;
  const bool has_a = node_bool(node, "transpose_a") && rank_a > 1, has_b = node_bool(node, "transpose_b") && rank_b > 1;
  if (rank_a == 2 && rank_b == 2 && (has_a || has_b || bias) && (!bias || bias->shape.rank <= 2)) {
    onnx_begin(w, "Gemm", w->in[0], w->in[1], bias ? w->in[2] : NULL);
    if (has_a) onnx_add_int(w, "transA", 1);
    if (has_b) onnx_add_int(w, "transB", 1);
    return onnx_end(w, w->out[0]);
  }
  const char *left = has_a ? transposed(w, w->in[0], rank_a) : w->in[0],
             *right = has_b ? transposed(w, w->in[1], rank_b) : w->in[1];
  const char *product = onnx_put(w, name, bias ? NULL : w->out[0], left, right);
  if (bias) onnx_put(w, "Add", w->out[0], product, w->in[2]);
  return true;
}

// Windows

// The windows of all spatial axes; false: an extent of them is no number.
typedef struct Windows {
  Window of[MOST_SPATIAL_AXES];
  int count;
} Windows;

static bool is_literal_beside(const Node *node, const Value *v) {
  const int channel = onnx_are_last(node) ? v->shape.rank - 1 : 1;
  for (int i = 1; i < v->shape.rank; i++)
    if (i != channel && !extent_is_literal(v->shape.extent[i])) return false;
  return true;
}

static bool take_windows(const Node *node, Windows *windows) {
  const Value *large = node_side(node, SIDE_LARGE), *small = node_side(node, SIDE_SMALL),
              *weights = node_side(node, SIDE_WEIGHTS);
  if (!is_literal_beside(node, large) || !is_literal_beside(node, small)) return false;
  if (weights && !onnx_shape_is_literal(&weights->shape)) return false;
  windows->count = large->shape.rank - 2;
  for (int i = 0; i < windows->count; i++) {
    windows->of[i] = node_window(node, i);
    if (windows->of[i].large < 1 || windows->of[i].small < 1) return false;
  }
  return true;
}

static void add_of_windows(OnnxWriter *w, const Windows *windows, bool are_dilations, const char *name) {
  int64_t items[MOST_SPATIAL_AXES];
  for (int i = 0; i < windows->count; i++) items[i] = are_dilations ? windows->of[i].dilation : windows->of[i].stride;
  onnx_add_ints(w, name, items, (size_t)windows->count);
}

static void add_list(OnnxWriter *w, const Node *node, const char *own, const char *name) {
  const AttributeValue *list = node_attribute(node, own);
  if (list->list.count) onnx_add_ints(w, name, list->list.items, list->list.count);
}

static void add_window(OnnxWriter *w, const Node *node) {
  const size_t naxes = (size_t)node->inputs[0]->shape.rank - 2;
  int64_t pads[2 * MAX_RANK];
  add_list(w, node, "strides", "strides");
  if (!onnx_choice_is(node, "auto_pad", "None")) {
    const char *mode = onnx_choice_is(node, "auto_pad", "VALID")        ? "VALID"
                       : onnx_choice_is(node, "auto_pad", "SAME_UPPER") ? "SAME_UPPER"
                                                                        : "SAME_LOWER";
    onnx_add_text(w, "auto_pad", mode);
    return;
  }
  onnx_list_pads(node, naxes, pads);
  onnx_add_ints(w, "pads", pads, 2 * naxes);
}

// Convolutions

// The weights with their channels first: OIX, or IOX of a transposed convolution.
static const char *weights_of(OnnxWriter *w, const Node *node, const char *weights, int rank) {
  int64_t order[MAX_RANK] = {rank - 1, rank - 2};
  if (onnx_choice_is(node, "weights_format",
                     window_makes_large(node) || node->op->id == OP_ConvTransposeBackwardData ? "IOX" : "OIX"))
    return weights;
  for (int i = 2; i < rank; i++) order[i] = i - 2;
  return onnx_put_transpose(w, weights, order, rank, NULL);
}

// Slices or pads the spatial axes at their ends: from what a convolution makes to what is wanted.
static const char *fit(OnnxWriter *w, const char *from, const int64_t *made, const int64_t *wanted, int count,
                       const char *to) {
  int64_t starts[MOST_SPATIAL_AXES] = {0}, axes[MOST_SPATIAL_AXES], pads[2 * MAX_RANK] = {0};
  bool is_less = false, is_more = false;
  for (int i = 0; i < count; i++) {
    is_more |= made[i] > wanted[i];
    is_less |= made[i] < wanted[i];
    axes[i] = 2 + i;
    pads[2 + count + 2 + i] = made[i] < wanted[i] ? wanted[i] - made[i] : 0;
  }
  const size_t n = (size_t)count;
  if (is_more) {
    const char *in[] = {onnx_put_numbers(w, starts, n), onnx_put_numbers(w, wanted, n), onnx_put_numbers(w, axes, n)};
    from = onnx_put(w, "Slice", is_less ? NULL : to, from, in[0], in[1], in[2]);
  }
  return is_less ? onnx_put(w, "Pad", to, from, onnx_put_numbers(w, pads, 2 * (n + 2))) : from;
}

// How a convolution meets the windows: its padding, and the extents that it makes and that are wanted.
typedef struct Fit {
  int64_t pads[2 * MOST_SPATIAL_AXES], made[MOST_SPATIAL_AXES], wanted[MOST_SPATIAL_AXES];
} Fit;

// is_exchanged: strides and dilations change places, as in a gradient by weights.
static bool put_fitted(OnnxWriter *w, const char *op, const Windows *windows, const Fit *f, bool is_exchanged,
                       const char *from, const char *kernel, int64_t group, const char *to) {
  const bool fits = memcmp(f->made, f->wanted, (size_t)windows->count * sizeof *f->made) == 0;
  onnx_begin(w, op, from, kernel);
  add_of_windows(w, windows, is_exchanged, "strides");
  add_of_windows(w, windows, !is_exchanged, "dilations");
  onnx_add_ints(w, "pads", f->pads, 2 * (size_t)windows->count);
  onnx_add_int(w, "group", group);
  const char *result = onnx_end(w, fits ? to : NULL);
  return fits || fit(w, result, f->made, f->wanted, windows->count, to);
}

// What a convolution of `small` with the kernel adds up on the large side, whose extents are the windows'.
static bool put_scattered(OnnxWriter *w, const Windows *windows, const char *small, const char *kernel, int64_t group,
                          const char *to) {
  Fit f = {.pads = {0}};
  for (int i = 0; i < windows->count; i++) {
    const Window *window = &windows->of[i];
    const int64_t reached = (window->small - 1) * window->stride + window_reach(window),
                  whole = reached - window->pad_begin, more = whole - window->large;
    const bool is_cut = more > 0 && window->pad_begin + more < window_reach(window);
    if (whole < 1) return false;
    f.pads[i] = window->pad_begin;
    f.pads[windows->count + i] = is_cut ? more : 0;
    f.wanted[i] = window->large;
    f.made[i] = is_cut ? window->large : whole;
  }
  return put_fitted(w, "ConvTranspose", windows, &f, false, small, kernel, group, to);
}

// What a convolution of `large` with the kernel gives.
static bool put_convolved(OnnxWriter *w, const Windows *windows, bool is_exchanged, const char *large,
                          const char *kernel, int64_t group, const char *to) {
  Fit f = {.pads = {0}};
  for (int i = 0; i < windows->count; i++) {
    const Window *window = &windows->of[i];
    const int64_t count = is_exchanged ? window->kernel : window->small,
                  stride = is_exchanged ? window->dilation : window->stride,
                  reach = is_exchanged ? (window->small - 1) * window->stride + 1 : window_reach(window);
    const int64_t end = (count - 1) * stride + reach - window->large - window->pad_begin;
    f.pads[i] = window->pad_begin;
    f.pads[windows->count + i] = end > 0 ? end : 0;
    f.wanted[i] = count;
    f.made[i] = end > 0 ? count : (window->large + window->pad_begin - reach) / stride + 1;
    if (reach > window->large + window->pad_begin + f.pads[windows->count + i]) return false;
  }
  return put_fitted(w, "Conv", windows, &f, is_exchanged, large, kernel, group, to);
}

// Whether output_padding is as large as a stride, which many systems refuse.
static bool extends(const Node *node) {
  const AttributeValue *more = node_attribute(node, "output_padding"), *strides = node_attribute(node, "strides");
  for (size_t i = 0; i < more->list.count; i++) {
    const int64_t stride = strides->list.count ? strides->list.items[i] : 1;
    if (more->list.items[i] >= stride) return true;
  }
  return false;
}

// A transposed convolution without bias, padded with zeros, then the bias.
static bool put_extended(OnnxWriter *w, const Node *node, const Windows *windows, const char *from, const char *weights,
                         const char *to) {
  const bool has_bias = node->ninputs > 2 && node->inputs[2];
  const char *sum = has_bias ? onnx_fresh(w) : to;
  int64_t axes[MOST_SPATIAL_AXES];
  for (int i = 0; i < windows->count; i++) axes[i] = 1 + i;
  if (!put_scattered(w, windows, from, weights, node_s64(node, "groups"), sum)) return false;
  if (has_bias)
    onnx_put(w, "Add", to, sum, onnx_put_axes(w, "Unsqueeze", w->in[2], axes, (size_t)windows->count, NULL));
  return onnx_end_data(w, node, to);
}

static bool dilates(const Node *node) {
  const AttributeValue *dilations = node_attribute(node, "dilations");
  for (size_t i = 0; i < dilations->list.count; i++)
    if (dilations->list.items[i] != 1) return true;
  return false;
}

// auto_pad becomes numbers: with dilations it is refused by some systems, and of ConvTranspose ONNX's means other
// padding. Only beside extents that are no numbers it stays.
bool onnx_write_convolution(OnnxWriter *w, const Node *node, const char *name) {
  const int rank = node->inputs[0]->shape.rank;
  const bool is_transposed = node->op->id == OP_ConvTranspose, is_extended = is_transposed && extends(node);
  int64_t pads[2 * MOST_SPATIAL_AXES];
  Windows windows = {.count = 0};
  const bool is_known = take_windows(node, &windows), is_padded = !onnx_choice_is(node, "auto_pad", "None");
  if (!is_known && (is_extended || (is_padded && (is_transposed || dilates(node))))) return false;
  // Extents that a convolution computes from others than numbers are known of its result, not before a transpose.
  if (onnx_are_last(node) && !is_known) return false;
  const char *from = onnx_put_data(w, node, w->in[0]), *weights = weights_of(w, node, w->in[1], rank),
             *to = onnx_begin_data(w, node);
  if (is_extended) return put_extended(w, node, &windows, from, weights, to);
  onnx_begin(w, name, from, weights, node->ninputs > 2 && node->inputs[2] ? w->in[2] : NULL);
  for (int i = 0; i < windows.count && is_known; i++) {
    pads[i] = windows.of[i].pad_begin;
    pads[windows.count + i] = windows.of[i].pad_end;
  }
  if (is_known) add_list(w, node, "strides", "strides");
  else add_window(w, node);
  if (is_known) onnx_add_ints(w, "pads", pads, (size_t)windows.count * 2);
  add_list(w, node, "dilations", "dilations");
  if (is_transposed) add_list(w, node, "output_padding", "output_padding");
  onnx_add_int(w, "group", node_s64(node, "groups"));
  return onnx_end_data(w, node, onnx_end(w, to));
}

// The gradient of a convolution by its data is a transposed convolution, and the other way round.
bool onnx_write_backward_data(OnnxWriter *w, const Node *node, const char *name) {
  const int rank = node->inputs[0]->shape.rank;
  Windows windows = {0};
  (void)name;
  if (!take_windows(node, &windows)) return false;
  const char *from = onnx_put_data(w, node, w->in[0]), *weights = weights_of(w, node, w->in[1], rank),
             *to = onnx_begin_data(w, node);
  const int64_t groups = node_s64(node, "groups");
  const bool ok = node->op->id == OP_ConvolutionBackwardData
                      ? put_scattered(w, &windows, from, weights, groups, to)
                      : put_convolved(w, &windows, false, from, weights, groups, to);
  return ok && onnx_end_data(w, node, to);
}

// [N, C, ...] as [C / groups, groups * N, ...].
static const char *channels_by_group(OnnxWriter *w, const char *v, const Windows *windows, int64_t channels,
                                     int64_t groups) {
  int64_t split[MAX_RANK] = {0, groups, channels / groups}, order[MAX_RANK] = {1, 0}, joined[MAX_RANK];
  const int rank = windows->count + 2;
  for (int i = 2; i < rank; i++) order[i] = i;
  if (groups == 1) return onnx_put_transpose(w, v, order, rank, NULL);
  joined[0] = channels / groups;
  joined[1] = -1;
  order[0] = 2;
  order[1] = 1;
  order[2] = 0;
  for (int i = 0; i < windows->count; i++) {
    split[3 + i] = joined[2 + i] = windows->of[i].large;
    order[3 + i] = 3 + i;
  }
  v = onnx_put_reshape(w, v, split, (size_t)rank + 1, NULL);
  v = onnx_put_transpose(w, v, order, rank + 1, NULL);
  return onnx_put_reshape(w, v, joined, (size_t)rank, NULL);
}

// The gradient by weights is a convolution of the large side with the small side, in which batch and channels change
// places, and strides and dilations.
bool onnx_write_backward_weights(OnnxWriter *w, const Node *node, const char *name) {
  const Value *large = node_side(node, SIDE_LARGE), *small = node_side(node, SIDE_SMALL);
  const int rank = large->shape.rank;
  const int64_t groups = node_s64(node, "groups");
  const Extent channels = large->shape.extent[onnx_are_last(node) ? rank - 1 : 1];
  int64_t order[MAX_RANK] = {1, 0};
  Windows windows = {0};
  (void)name;
  if (!take_windows(node, &windows) || !extent_is_literal(channels) || rank >= MAX_RANK) return false;
  if (shape_nelems(&large->shape) == 0 || shape_nelems(&small->shape) == 0) return false;
  if (groups > 1 && !extent_is_literal(large->shape.extent[0])) return false;
  const char *from = onnx_put_data(w, node, w->in[node->inputs[0] == large ? 0 : 1]),
             *kernel = onnx_put_data(w, node, w->in[node->inputs[0] == large ? 1 : 0]);
  if (large == small) from = kernel = onnx_put_data(w, node, w->in[0]);
  for (int i = 2; i < rank; i++) order[i] = i;
  kernel = onnx_put_transpose(w, kernel, order, rank, NULL);
  const char *result = onnx_fresh(w);
  from = channels_by_group(w, from, &windows, channels.value, groups);
  if (!put_convolved(w, &windows, true, from, kernel, groups, result)) return false;
  // [I, O, ...] becomes OIX or XIO; of a transposed convolution, the letters change places.
  const bool is_last =
      onnx_choice_is(node, "weights_format", node->op->id == OP_ConvTransposeBackwardWeights ? "IOX" : "OIX");
  for (int i = 0; i < rank && !is_last; i++) order[i] = (i + 2) % rank;
  onnx_put_transpose(w, result, order, rank, w->out[0]);
  return true;
}

// Pooling

// Whether a window has padding only, because its taps are apart.
static bool has_empty_window(const Window *window) {
  for (int64_t u = 0; u < window->small && window->dilation > 1; u++) {
    const Taps taps = window_taps(window, u);
    if (taps.begin == taps.end) return true;
  }
  return false;
}

// The windows' padding, and whether their number is rounded up. False: ONNX has no such windows. Their padding is less
// than the kernel, and the last one begins before the padding at the end.
static bool take_pool(const Node *node, Windows *windows, int64_t pads[2 * MOST_SPATIAL_AXES], bool *is_up) {
  int ndown = 0, nup = 0;
  if (!take_windows(node, windows)) return false;
  for (int i = 0; i < windows->count; i++) {
    const Window *window = &windows->of[i];
    const int64_t rest = window->large + window->pad_begin + window->pad_end - window_reach(window),
                  last = (window->small - 1) * window->stride;
    if (rest < 0 || window->pad_begin >= window->kernel || window->pad_end >= window->kernel) return false;
    if (last >= window->large + window->pad_begin || has_empty_window(window)) return false;
    pads[i] = window->pad_begin;
    pads[windows->count + i] = window->pad_end;
    ndown += rest / window->stride + 1 == window->small;
    nup += (rest + window->stride - 1) / window->stride + 1 == window->small;
  }
  *is_up = ndown < windows->count;
  return !*is_up || nup == windows->count;
}

static void add_pool(OnnxWriter *w, const Node *node, const Windows *windows, const int64_t *pads, bool is_up) {
  add_list(w, node, "kernel", "kernel_shape");
  add_of_windows(w, windows, false, "strides");
  if (node->op->id != OP_AvgPool) add_of_windows(w, windows, true, "dilations");
  onnx_add_ints(w, "pads", pads, 2 * (size_t)windows->count);
  onnx_add_int(w, "ceil_mode", is_up);
}

// Whether windows on extents that are no numbers are ONNX's: the padding is given, and their number rounded down.
static bool is_plain_window(const Node *node) {
  const size_t naxes = (size_t)node->inputs[0]->shape.rank - 2;
  const AttributeValue *kernel = node_attribute(node, "kernel");
  int64_t pads[2 * MAX_RANK];
  onnx_list_pads(node, naxes, pads);
  for (size_t i = 0; i < 2 * naxes; i++)
    if (pads[i] >= kernel->list.items[i % naxes]) return false;
  return onnx_choice_is(node, "auto_pad", "None") && onnx_choice_is(node, "rounding_type", "floor");
}

// Rounding up, ONNX leaves the elements beyond the padding out of means.
bool onnx_write_pool(OnnxWriter *w, const Node *node, const char *name) {
  const bool is_mean = node->op->id == OP_AvgPool, excludes = is_mean && node_bool(node, "exclude_pad");
  int64_t pads[2 * MOST_SPATIAL_AXES];
  bool is_up = false;
  Windows windows = {0};
  const bool is_known = take_pool(node, &windows, pads, &is_up);
  if ((!is_known && !is_plain_window(node)) || (is_up && is_mean && !excludes)) return false;
  if (onnx_are_last(node) && !is_known) return false;
  const char *from = onnx_put_data(w, node, w->in[0]), *to = onnx_begin_data(w, node);
  onnx_begin(w, name, from);
  if (is_known) {
    add_pool(w, node, &windows, pads, is_up);
  } else {
    add_list(w, node, "kernel", "kernel_shape");
    add_window(w, node);
    if (!is_mean) add_list(w, node, "dilations", "dilations");
  }
  if (is_mean) onnx_add_int(w, "count_include_pad", !excludes);
  return onnx_end_data(w, node, onnx_end(w, to));
}

// Finds the greatest elements again, and adds the gradients at their places, all axes flattened.
bool onnx_write_max_pool_backward(OnnxWriter *w, const Node *node, const char *name) {
  const Shape *large = &node->inputs[0]->shape;
  const int64_t rest = -1, nelems = shape_nelems(large);
  const int rank = large->rank;
  int64_t pads[2 * MOST_SPATIAL_AXES], extents[MAX_RANK];
  bool is_up;
  Windows windows = {0};
  if (!onnx_shape_is_literal(large) || nelems == 0 || !take_pool(node, &windows, pads, &is_up)) return false;
  for (int i = 0; i < windows.count; i++) extents[2 + i] = windows.of[i].large;
  extents[0] = large->extent[0].value;
  extents[1] = large->extent[onnx_are_last(node) ? rank - 1 : 1].value;
  const char *from = onnx_put_data(w, node, w->in[0]), *updates = onnx_put_data(w, node, w->in[1]);
  onnx_begin(w, name, from);
  add_pool(w, node, &windows, pads, is_up);
  onnx_add_output(w, onnx_fresh(w)); // the greatest elements
  const char *places = onnx_end(w, NULL), *zeros = onnx_put_filled(w, 0, &nelems, 1),
             *at = onnx_put_reshape(w, places, &rest, 1, NULL), *added = onnx_put_reshape(w, updates, &rest, 1, NULL);
  onnx_begin(w, "ScatterElements", zeros, at, added);
  onnx_add_text(w, "reduction", "add");
  const char *sum = onnx_end(w, NULL), *to = onnx_begin_data(w, node);
  return onnx_end_data(w, node, onnx_put_reshape(w, sum, extents, (size_t)rank, to));
}

// 1 / the number of elements of each window, with axes of extent 1 for batch and channels.
static const char *put_shares(OnnxWriter *w, const Windows *windows, bool excludes) {
  enum { MOST = 1 << 20 };
  int64_t extents[MAX_RANK] = {1, 1}, nelems = 1;
  for (int i = 0; i < windows->count; i++) {
    extents[2 + i] = excludes ? windows->of[i].small : 1;
    nelems = nelems > MOST || extents[2 + i] > MOST ? MOST + 1 : nelems * extents[2 + i];
  }
  void *data = nelems > MOST ? NULL : arena_array(w->node_names.arena, (size_t)nelems, type_nbytes(w->type));
  for (int64_t i = 0; data && i < nelems; i++) {
    int64_t rest = i;
    double count = 1;
    for (int k = windows->count - 1; k >= 0; k--) {
      const int64_t extent = extents[2 + k] > 0 ? extents[2 + k] : 1;
      const Taps taps = window_taps(&windows->of[k], rest % extent);
      rest /= extent;
      count *= (double)(excludes ? taps.end - taps.begin : windows->of[k].kernel);
    }
    type_store(w->type, data, (size_t)i, count > 0 ? 1 / count : 0);
  }
  if (!data) return NULL;
  return onnx_put_initializer(w, w->type, extents, windows->count + 2, data);
}

// Each window's share of its gradient is added to its elements, each channel alone.
bool onnx_write_average_pool_backward(OnnxWriter *w, const Node *node, const char *name) {
  const Shape *small = &node->inputs[0]->shape;
  const int rank = small->rank;
  const Extent channels = small->extent[onnx_are_last(node) ? rank - 1 : 1];
  int64_t kernel[MAX_RANK] = {channels.value, 1};
  Windows windows = {0};
  (void)name;
  if (!extent_is_literal(channels) || shape_nelems(small) == 0 || !take_windows(node, &windows)) return false;
  for (int i = 0; i < windows.count; i++) kernel[2 + i] = windows.of[i].kernel;
  const char *shares = put_shares(w, &windows, node_bool(node, "exclude_pad")),
             *diff = onnx_put_data(w, node, w->in[0]);
  if (!shares) return false;
  diff = onnx_put(w, "Mul", NULL, diff, shares);
  const char *ones = onnx_put_filled(w, 1, kernel, (size_t)rank), *to = onnx_begin_data(w, node);
  return put_scattered(w, &windows, diff, ones, channels.value, to) && onnx_end_data(w, node, to);
}
