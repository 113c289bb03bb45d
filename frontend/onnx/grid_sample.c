// GridSample: interpolates between elements of images at computed positions.
#include "frontend/onnx/translation.h"
#include "ir/graph/extents.h"

#include <string.h>

enum { NNEIGHBOURS = 4, MOST_SPATIAL = 3 };

typedef struct Sampling {
  int nspatial;        // 2, or 3: in front of height, depth
  Value *rows;         // of the image: [images * depth * height * width, channels]
  Value *places;       // of the first row of each image: [images, 1, 1], in s64
  const char *padding; // zeros, border or reflection
  bool aligns;
  double extents[MOST_SPATIAL]; // depth, height, width
} Sampling;

static Value *clamp(Onnx *x, Value *v, double least, double most) {
  return build_binary(&x->build, OP_Minimum, build_binary(&x->build, OP_Maximum, v, build_like(&x->build, v, least)),
                      build_like(&x->build, v, most));
}

// Scales [-1, 1] to element coordinates along an axis.
static Value *scale_up(Onnx *x, const Sampling *s, Value *v, double n) {
  return s->aligns ? build_times(&x->build, build_plus(&x->build, v, 1), (n - 1) / 2)
                   : build_plus(&x->build, build_times(&x->build, build_plus(&x->build, v, 1), n / 2), -0.5);
}

// Reflects between the edges, which are the outer elements or, without align_corners, half an element beyond them.
static Value *reflect(Onnx *x, const Sampling *s, Value *v, double n) {
  Builder *b = &x->build;
  const double low = s->aligns ? 0 : -0.5, range = s->aligns ? n - 1 : n;
  if (range <= 0) return build_times(b, v, 0);
  Value *from = build_unary(b, OP_Abs, build_plus(b, v, -low));
  Value *count = build_floor(b, build_times(b, from, 1 / (2 * range)));
  Value *rest = build_binary(b, OP_Subtract, from, build_times(b, count, 2 * range));
  Value *back = build_binary(b, OP_Subtract, build_like(b, rest, 2 * range), rest);
  return build_plus(b, build_binary(b, OP_Minimum, rest, back), low);
}

// Maps an integer coordinate into the image; *is_inside is narrowed where the coordinate may be outside.
static Value *settle(Onnx *x, const Sampling *s, Value *v, int axis, Value **is_inside) {
  Builder *b = &x->build;
  const double n = s->extents[axis];
  if (strcmp(s->padding, "reflection") == 0) v = reflect(x, s, v, n);
  if (strcmp(s->padding, "zeros") == 0) {
    Value *own = build_binary(b, OP_LogicalAnd, build_binary(b, OP_GreaterEqual, v, build_like(b, v, 0)),
                              build_binary(b, OP_LessEqual, v, build_like(b, v, n - 1)));
    *is_inside = *is_inside ? build_binary(b, OP_LogicalAnd, *is_inside, own) : own;
  }
  return clamp(x, v, 0, n - 1);
}

// [images, rows, columns] with an axis for channels
static Value *for_channels(Onnx *x, Value *v) {
  if (!v) return NULL;
  Shape shape = v->shape;
  shape.extent[shape.rank++] = EXTENT(1);
  return onnx_reshape_extents(x, v, &shape);
}

// Elements, [images, rows, columns, channels], at integer coordinates.
static Value *fetch(Onnx *x, const Sampling *s, Value *const *at) {
  Builder *b = &x->build;
  Value *is_inside = NULL, *place = NULL;
  for (int i = 0; i < s->nspatial; i++) {
    Value *own = settle(x, s, at[i], i, &is_inside);
    place = i ? build_binary(b, OP_Add, build_times(b, place, s->extents[i]), own) : own;
  }
  Value *elements = build_gather(b, s->rows, build_binary(b, OP_Add, build_cast(b, place, TYPE_S64), s->places), 0);
  if (!elements || !is_inside) return elements;
  return build_choose(b, for_channels(x, is_inside), elements, build_like(b, elements, 0));
}

// The weights of a coordinate's neighbours; `rest` is the distance to the neighbour before it. Cubic: Keys' kernel with
// -0.75.
static bool find_weights(Onnx *x, Value *rest, bool is_cubic, Value *weights[NNEIGHBOURS]) {
  Builder *b = &x->build;
  const double a = -0.75;
  if (!is_cubic) {
    weights[0] = build_binary(b, OP_Subtract, build_like(b, rest, 1), rest);
    weights[1] = rest;
    return weights[0] && rest;
  }
  for (int i = 0; i < NNEIGHBOURS; i++) {
    Value *d = build_unary(b, OP_Abs, build_plus(b, rest, 1 - i)), *sum;
    if (i == 1 || i == 2) { // ((a + 2) d - (a + 3)) d^2 + 1
      sum = build_plus(b, build_times(b, d, a + 2), -(a + 3));
      sum = build_plus(b, build_binary(b, OP_Multiply, sum, build_unary(b, OP_Square, d)), 1);
    } else { // ((a d - 5 a) d + 8 a) d - 4 a
      sum = build_binary(b, OP_Multiply, build_plus(b, build_times(b, d, a), -5 * a), d);
      sum = build_plus(b, build_binary(b, OP_Multiply, build_plus(b, sum, 8 * a), d), -4 * a);
    }
    weights[i] = sum;
    if (!sum) return false;
  }
  return true;
}

// The names of modes since opset 20; absent is linear. False after a message.
static bool take_mode(Onnx *x, const char **mode) {
  static const char *const names[][2] = {
      {"linear", "bilinear"}, {"cubic", "bicubic"}, {"nearest", "nearest"}, {"linear", ""}};
  const Bytes given = onnx_text(x, "mode");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!bytes_are(given, names[i][0]) && !bytes_are(given, names[i][1])) continue;
    *mode = names[i][0];
    return true;
  }
  return build_error(&x->build, "mode: expected linear, cubic or nearest, or before opset 20 bilinear or bicubic");
}

// The sum of all neighbours, weighted by the products of their weights along each axis.
static Value *interpolate(Onnx *x, const Sampling *s, Value *const *at, bool is_cubic) {
  Builder *b = &x->build;
  const int n = is_cubic ? NNEIGHBOURS : 2;
  Value *first[MOST_SPATIAL], *weights[MOST_SPATIAL][NNEIGHBOURS], *sum = NULL;
  int count = 1;
  for (int i = 0; i < s->nspatial; i++) {
    first[i] = build_floor(b, at[i]);
    if (!find_weights(x, build_binary(b, OP_Subtract, at[i], first[i]), is_cubic, weights[i])) return NULL;
    count *= n;
  }
  for (int k = 0; k < count; k++) { // its digits: which neighbour along each axis, the last axis first
    Value *neighbour[MOST_SPATIAL], *weight = NULL;
    for (int i = 0, step = count / n; i < s->nspatial; i++, step /= n) {
      const int digit = k / step % n;
      neighbour[i] = build_plus(b, first[i], digit - is_cubic);
      weight = i ? build_binary(b, OP_Multiply, weight, weights[i][digit]) : weights[i][digit];
    }
    Value *elements = fetch(x, s, neighbour);
    if (!elements || !weight) return NULL;
    Value *part = build_binary(b, OP_Multiply, elements, build_cast(b, for_channels(x, weight), elements->type));
    sum = k ? build_binary(b, OP_Add, sum, part) : part;
  }
  return sum;
}

static Value *sample(Onnx *x, const Sampling *s, Value **at, const char *mode) {
  if (strcmp(mode, "nearest") != 0) return interpolate(x, s, at, strcmp(mode, "cubic") == 0);
  for (int i = 0; i < s->nspatial; i++) at[i] = build_unary(&x->build, OP_Round, at[i]);
  return fetch(x, s, at);
}

// Coordinates of one kind: grid[..., i], [images, rows, columns].
static Value *coordinate(Onnx *x, Value *grid, int i) {
  Shape shape = grid->shape;
  shape.rank--;
  return onnx_reshape_extents(x, build_slice(&x->build, grid, shape.rank, i, i + 1), &shape);
}

// Rows and places of the images.
static bool take_images(Onnx *x, Value *images, Sampling *s) {
  Builder *b = &x->build;
  const int n = s->nspatial;
  Shape rows = {.rank = 2, .extent = {EXTENT_UNKNOWN, images->shape.extent[1]}};
  int64_t order[MAX_RANK] = {0}, nelems = 1;
  for (int i = 0; i < n; i++) {
    if (!onnx_has_number(x, images, i + 2)) return false;
    const int64_t extent = images->shape.extent[i + 2].value;
    if (extent < 1 || extent > MAX_ELEMENTS / nelems) return build_error(b, "expected images with elements");
    s->extents[i] = (double)extent;
    nelems *= extent;
    order[i + 1] = i + 2;
  }
  order[n + 1] = 1;
  if (!extent_multiply(b->graph, images->shape.extent[0], EXTENT(nelems), &rows.extent[0]))
    return error_out_of_memory(x->reading.d);
  s->rows = onnx_reshape_extents(x, build_transpose(b, images, order, n + 2), &rows);
  s->places = onnx_iota(x, images->shape.extent[0], EXTENT(nelems), n);
  return s->rows && s->places;
}

bool onnx_grid_sample(Onnx *x) {
  Builder *b = &x->build;
  Value *images = onnx_in(x, 0), *grid = onnx_in(x, 1), *at[MOST_SPATIAL];
  const Bytes padding = onnx_text(x, "padding_mode");
  const char *mode = NULL;
  if (!images || !grid) return false;
  const int rank = images->shape.rank, n = rank - 2;
  if ((rank != 4 && rank != 5) || grid->shape.rank != rank || !extent_equals(grid->shape.extent[rank - 1], EXTENT(n)))
    return build_error(b, "expected images of 4 or 5 axes, and a grid of 2 or 3 coordinates");
  if (!take_mode(x, &mode)) return false;
  if (n == 3 && strcmp(mode, "cubic") == 0)
    return build_error(b, "mode: expected linear or nearest for 3 spatial axes");
  Sampling s = {.nspatial = n,
                .padding = bytes_are(padding, "border")       ? "border"
                           : bytes_are(padding, "reflection") ? "reflection"
                                                              : "zeros",
                .aligns = onnx_int(x, "align_corners", 0) != 0};
  if (!take_images(x, images, &s)) return false;
  for (int i = 0; i < n; i++) { // the grid has the column first
    at[i] = scale_up(x, &s, coordinate(x, grid, n - 1 - i), s.extents[i]);
    if (bytes_are(padding, "border")) at[i] = clamp(x, at[i], 0, s.extents[i] - 1); // before interpolation
  }
  int64_t order[MAX_RANK] = {0, n + 1};
  for (int i = 0; i < n; i++) order[i + 2] = i + 1;
  return onnx_out(x, 0, build_transpose(b, sample(x, &s, at, mode), order, rank));
}
