// Draws by integer arithmetic, so that a seed means the same everywhere.
#include "tests/peers/draw.h"

#include "ir/support/splitmix.h"

#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

// Numbers

static uint64_t draw_below(uint64_t *state, uint64_t count) {
  *state += SPLITMIX_STEP;
  return (splitmix64(*state) >> 32) * count >> 32;
}

static bool draw_one_in(uint64_t *state, uint64_t count) {
  return draw_below(state, count) == 0;
}

// From a table, of whose numbers those up to `most` count; its first does.
static int64_t draw_from(uint64_t *state, const int64_t *table, size_t count, int64_t most) {
  while (count > 1 && table[count - 1] > most) count--;
  return table[draw_below(state, count)];
}

// Ascending: at and beside multiples of a vector's lanes and of a tile's rows.
static const int64_t edges[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 12, 13, 15, 16,  17,  18,  23,  24,  25, 31,
                                32, 33, 36, 47, 48, 49, 63, 64, 65, 72, 95, 96, 97, 127, 128, 129, 191, 192, 193};
static const int64_t depths[] = {1,  2,  3,  4,  5,  7,   8,   9,   15,  16,  17,  31,  32,   33,
                                 63, 64, 65, 96, 97, 127, 129, 255, 256, 257, 511, 513, 1025, 2049};
static const int64_t channel_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65};

static void draw_type(Drawn *d, uint64_t *state) {
  static const char *const types[] = {"f32", "f32", "f32", "bf16", "f16"};
  d->type = d->dst_type = types[draw_below(state, COUNT(types))];
}

// Products

// m, n and k of the matrices; -1: the operand is a vector, without that axis.
static void draw_matrices(Drawn *d, uint64_t *state, int64_t *m, int64_t *k, int64_t *n) {
  const int64_t most_multiplications = 1 << 21;
  do {
    *m = draw_from(state, edges, COUNT(edges), INT64_MAX);
    *n = draw_from(state, edges, COUNT(edges), INT64_MAX);
    *k = draw_from(state, depths, COUNT(depths), INT64_MAX);
  } while (*m * *n * *k > most_multiplications);
  if (draw_one_in(state, 40)) *m = 0;
  if (draw_one_in(state, 40)) *n = 0;
  if (draw_one_in(state, 12)) *m = -1;
  if (draw_one_in(state, 12)) *n = -1;
  d->transpose_a = draw_one_in(state, 2);
  d->transpose_b = draw_one_in(state, 2);
}

static void add_axis(DrawnShape *s, int64_t extent) {
  s->extent[s->rank++] = extent;
}

static void add_matrix(DrawnShape *s, int64_t rows, int64_t columns, bool is_transposed) {
  const int64_t first = is_transposed ? columns : rows, second = is_transposed ? rows : columns;
  if (first >= 0) add_axis(s, first);
  if (second >= 0) add_axis(s, second);
}

// Batch axes of both operands, which are broadcast against each other; weights may have fewer.
static void draw_batch(Drawn *d, uint64_t *state, int64_t *dst, int *ndst) {
  const int nsrc = (int)draw_below(state, 3), nweights = draw_one_in(state, 2) ? nsrc : (int)draw_below(state, 3);
  *ndst = nsrc > nweights ? nsrc : nweights;
  for (int i = 0; i < *ndst; i++) {
    const bool has_src = i >= *ndst - nsrc, has_weights = i >= *ndst - nweights;
    const bool is_src_one = draw_one_in(state, 4), is_weights_one = !is_src_one && draw_one_in(state, 3);
    const int64_t extent = 1 + (int64_t)draw_below(state, 3);
    if (has_src) add_axis(&d->src, is_src_one ? 1 : extent);
    if (has_weights) add_axis(&d->weights, is_weights_one ? 1 : extent);
    dst[i] = (has_src && !is_src_one) || (has_weights && !is_weights_one) ? extent : 1;
  }
}

// Aligned to dst's axes at the end, each of dst's extent or 1.
static void draw_bias(Drawn *d, uint64_t *state, const int64_t *dst, int rank) {
  d->has_bias = rank > 0 && draw_one_in(state, 3);
  if (!d->has_bias) return;
  const int nbias = draw_one_in(state, 2) ? 1 : 1 + (int)draw_below(state, (uint64_t)rank);
  for (int i = rank - nbias; i < rank; i++) add_axis(&d->bias, i < rank - 1 && draw_one_in(state, 2) ? 1 : dst[i]);
  d->nterms++;
}

static void draw_product(Drawn *d, uint64_t *state) {
  int64_t m, k, n, dst[MOST_DRAWN_AXES];
  int rank = 0;
  draw_matrices(d, state, &m, &k, &n);
  // Batch axes stand before those of a matrix; a vector has none.
  if (m >= 0 && n >= 0) draw_batch(d, state, dst, &rank);
  d->nterms = k;
  add_matrix(&d->src, m, k, m >= 0 && d->transpose_a);
  add_matrix(&d->weights, k, n, n >= 0 && d->transpose_b);
  if (m >= 0) dst[rank++] = m;
  if (n >= 0) dst[rank++] = n;
  draw_bias(d, state, dst, rank);
  if (draw_one_in(state, 3)) d->dst_type = "f32";
}

// Windows

static int64_t reach_of(const DrawnWindow *w) {
  return (w->kernel - 1) * w->dilation + 1;
}

static int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Extents so that all axes together have some hundred elements.
static void draw_sides(const Drawn *d, DrawnWindow *w, uint64_t *state) {
  static const int64_t most_large[] = {97, 25, 9}, most_kernel[] = {9, 5, 3};
  static const int64_t kernels[] = {1, 1, 2, 3, 3, 3, 4, 5, 7, 9};
  w->large = draw_from(state, edges, COUNT(edges), most_large[d->nspatial - 1]);
  w->kernel = draw_from(state, kernels, COUNT(kernels), most_kernel[d->nspatial - 1]);
  w->stride = draw_one_in(state, 2) ? 1 : 1 + (int64_t)draw_below(state, 4);
}

// Sides whose window fits, with its padding.
static void draw_convolved(const Drawn *d, DrawnWindow *w, uint64_t *state) {
  const bool is_same = d->auto_pad == AUTO_PAD_SAME_UPPER || d->auto_pad == AUTO_PAD_SAME_LOWER;
  do {
    draw_sides(d, w, state);
    w->dilation = draw_one_in(state, 3) ? 1 + (int64_t)draw_below(state, 3) : 1;
    const uint64_t most = (uint64_t)(draw_one_in(state, 8) ? reach_of(w) + 2 : w->kernel);
    w->pad_begin = d->auto_pad == AUTO_PAD_NONE ? (int64_t)draw_below(state, most) : 0;
    w->pad_end = d->auto_pad == AUTO_PAD_NONE ? (int64_t)draw_below(state, most) : 0;
  } while (!is_same && w->large + w->pad_begin + w->pad_end < reach_of(w));
  const int64_t free_places = w->large + w->pad_begin + w->pad_end - reach_of(w);
  w->small = is_same ? (w->large + w->stride - 1) / w->stride : free_places / w->stride + 1;
  w->output_padding = is_same ? 0 : free_places % w->stride;
}

// Pads are less than the kernel: oneDNN takes no others.
static void draw_pooled(const Drawn *d, DrawnWindow *w, bool has_dilation, uint64_t *state) {
  do {
    draw_sides(d, w, state);
    w->dilation = has_dilation && draw_one_in(state, 3) ? 1 + (int64_t)draw_below(state, 3) : 1;
    const uint64_t most = (uint64_t)least_of(w->kernel, w->large);
    w->pad_begin = (int64_t)draw_below(state, most);
    w->pad_end = (int64_t)draw_below(state, most);
  } while (w->large + w->pad_begin + w->pad_end < reach_of(w));
  const int64_t free_places = w->large + w->pad_begin + w->pad_end - reach_of(w);
  w->small = free_places / w->stride + 1;
}

// With another window that hangs over, where there is room for one on each axis that begins inside.
static void round_up(Drawn *d) {
  bool fits = true;
  for (int i = 0; i < d->nspatial; i++) {
    const DrawnWindow *w = &d->window[i];
    const int64_t free_places = w->large + w->pad_begin + w->pad_end - reach_of(w);
    const int64_t last = (free_places + w->stride - 1) / w->stride * w->stride - w->pad_begin;
    if (last >= w->large || last + reach_of(w) - w->large >= w->kernel) fits = false;
  }
  if (!fits) return;
  d->rounds_up = true;
  for (int i = 0; i < d->nspatial; i++) {
    DrawnWindow *w = &d->window[i];
    const int64_t free_places = w->large + w->pad_begin + w->pad_end - reach_of(w);
    w->small = (free_places + w->stride - 1) / w->stride + 1;
  }
}

static int64_t kernel_nelems(const Drawn *d) {
  int64_t nelems = 1;
  for (int i = 0; i < d->nspatial; i++) nelems *= d->window[i].kernel;
  return nelems;
}

static int64_t side_nelems(const Drawn *d, bool is_large) {
  int64_t nelems = d->batch;
  for (int i = 0; i < d->nspatial; i++) nelems *= is_large ? d->window[i].large : d->window[i].small;
  return nelems;
}

static void draw_channels(Drawn *d, uint64_t *state) {
  enum { ONE_GROUP, SOME_GROUPS, DEPTHWISE, KINDS };
  static const int64_t groups[] = {2, 3, 4, 8};
  const uint64_t kind = draw_one_in(state, 2) ? ONE_GROUP : draw_below(state, KINDS);
  int64_t large = draw_from(state, channel_counts, COUNT(channel_counts), INT64_MAX);
  int64_t small = draw_from(state, channel_counts, COUNT(channel_counts), INT64_MAX);
  d->groups = 1;
  if (kind == SOME_GROUPS) {
    d->groups = draw_from(state, groups, COUNT(groups), INT64_MAX);
    large = (large + d->groups - 1) / d->groups;
    small = (small + d->groups - 1) / d->groups;
  }
  if (kind == DEPTHWISE) {
    d->groups = large;
    large = 1;
    small = 1 + (int64_t)draw_below(state, 2);
  }
  d->large_channels = large * d->groups;
  d->small_channels = small * d->groups;
}

static int64_t convolution_multiplications(const Drawn *d) {
  return side_nelems(d, false) * d->small_channels * d->large_channels / d->groups * kernel_nelems(d);
}

static void draw_image(Drawn *d, uint64_t *state) {
  d->nspatial = draw_one_in(state, 2) ? 2 : 1 + 2 * (int)draw_below(state, 2);
  d->batch = 1 + (int64_t)draw_below(state, 3);
  d->is_nxc = draw_one_in(state, 2);
}

static void draw_convolution(Drawn *d, uint64_t *state) {
  const int64_t most_multiplications = 1 << 21;
  do {
    draw_image(d, state);
    draw_channels(d, state);
    d->auto_pad = draw_one_in(state, 4) ? 1 + (int)draw_below(state, 3) : AUTO_PAD_NONE;
    for (int i = 0; i < d->nspatial; i++) draw_convolved(d, &d->window[i], state);
  } while (convolution_multiplications(d) > most_multiplications);
  d->is_last_format = draw_one_in(state, 2);
  if (strcmp(d->op, "Convolution") == 0 || strcmp(d->op, "ConvTranspose") == 0) d->has_bias = draw_one_in(state, 2);
  const bool is_by_weights = strstr(d->op, "BackwardWeights"),
             is_by_data = strcmp(d->op, "ConvTranspose") == 0 || strcmp(d->op, "ConvolutionBackwardData") == 0;
  d->nterms = is_by_weights ? side_nelems(d, false)
                            : kernel_nelems(d) * (is_by_data ? d->small_channels : d->large_channels) / d->groups;
  d->nterms += d->has_bias;
}

static void draw_pool(Drawn *d, uint64_t *state) {
  const int64_t most_elements = 1 << 19;
  const bool is_average = strncmp(d->op, "Avg", 3) == 0;
  do {
    draw_image(d, state);
    d->large_channels = d->small_channels = draw_from(state, channel_counts, COUNT(channel_counts), INT64_MAX);
    for (int i = 0; i < d->nspatial; i++) draw_pooled(d, &d->window[i], !is_average, state);
  } while (side_nelems(d, true) * d->large_channels > most_elements);
  d->groups = 1;
  d->excludes_pad = is_average && draw_one_in(state, 2);
  // oneDNN averages over padding only where no window hangs over.
  const bool may_round_up = !is_average || d->excludes_pad;
  if (may_round_up && draw_one_in(state, 2)) round_up(d);
  // Dividing rounds too, and a peer may round the reciprocal before.
  d->nterms = kernel_nelems(d) + (is_average ? 2 : 0);
}

Drawn drawn_operator(uint64_t seed, uint64_t i) {
  static const struct {
    const char *op;
    void (*draw)(Drawn *d, uint64_t *state);
  } rows[] = {
      {"MatMul", draw_product},       {"Convolution", draw_convolution},
      {"MatMul", draw_product},       {"ConvolutionBackwardData", draw_convolution},
      {"MaxPool", draw_pool},         {"ConvolutionBackwardWeights", draw_convolution},
      {"MatMul", draw_product},       {"ConvTranspose", draw_convolution},
      {"AvgPool", draw_pool},         {"ConvTransposeBackwardData", draw_convolution},
      {"MaxPoolBackward", draw_pool}, {"ConvTransposeBackwardWeights", draw_convolution},
      {"AvgPoolBackward", draw_pool}, {"Convolution", draw_convolution},
  };
  uint64_t state = splitmix64(splitmix64(seed) + i);
  Drawn d = {.op = rows[i % COUNT(rows)].op};
  draw_type(&d, &state);
  rows[i % COUNT(rows)].draw(&d, &state);
  return d;
}
