// GridSample: interpolates between elements of images at computed positions.
#include "frontend/onnx/translation.h"
#include "ir/graph/extents.h"

#include <string.h>

enum { NNEIGHBOURS = 4 };

typedef struct Sampling {
  Value *rows;         // of the image: [images * height * width, channels]
  Value *places;       // of the first row of each image: [images, 1, 1], in s64
  const char *padding; // zeros, border or reflection
  bool aligns;
  double extents[2]; // height, width
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
static Value *fetch(Onnx *x, const Sampling *s, Value *row, Value *column) {
  Builder *b = &x->build;
  Value *is_inside = NULL;
  row = settle(x, s, row, 0, &is_inside);
  column = settle(x, s, column, 1, &is_inside);
  Value *place = build_cast(b, build_binary(b, OP_Add, build_times(b, row, s->extents[1]), column), TYPE_S64);
  Value *elements = build_gather(b, s->rows, build_binary(b, OP_Add, place, s->places), 0);
  if (!elements || !is_inside) return elements;
  return build_choose(b, for_channels(x, is_inside), elements, build_like(b, elements, 0));
}

static Value *weigh(Onnx *x, Value *elements, Value *row, Value *column) {
  Builder *b = &x->build;
  Value *weight = build_binary(b, OP_Multiply, row, column);
  if (!weight || !elements) return NULL;
  return build_binary(b, OP_Multiply, elements, build_cast(b, for_channels(x, weight), elements->type));
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

static Value *sample(Onnx *x, const Sampling *s, Value *row, Value *column, const char *mode) {
  Builder *b = &x->build;
  const bool is_cubic = strcmp(mode, "cubic") == 0;
  const int n = is_cubic ? NNEIGHBOURS : 2;
  if (strcmp(mode, "nearest") == 0) return fetch(x, s, build_unary(b, OP_Round, row), build_unary(b, OP_Round, column));
  Value *first_row = build_floor(b, row), *first_column = build_floor(b, column), *sum = NULL;
  Value *rows[NNEIGHBOURS], *columns[NNEIGHBOURS];
  if (!find_weights(x, build_binary(b, OP_Subtract, row, first_row), is_cubic, rows) ||
      !find_weights(x, build_binary(b, OP_Subtract, column, first_column), is_cubic, columns))
    return NULL;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) {
      Value *part = fetch(x, s, build_plus(b, first_row, i - is_cubic), build_plus(b, first_column, k - is_cubic));
      part = weigh(x, part, rows[i], columns[k]);
      if (!part) return NULL;
      sum = sum ? build_binary(b, OP_Add, sum, part) : part;
    }
  return sum;
}

// Coordinates of one kind: grid[..., i], [images, rows, columns].
static Value *coordinate(Onnx *x, Value *grid, int i) {
  Shape shape = grid->shape;
  shape.rank = 3;
  return onnx_reshape_extents(x, build_slice(&x->build, grid, 3, i, i + 1), &shape);
}

bool onnx_grid_sample(Onnx *x) {
  Builder *b = &x->build;
  static const int64_t channels_last[] = {0, 2, 3, 1}, channels_first[] = {0, 3, 1, 2};
  Value *images = onnx_in(x, 0), *grid = onnx_in(x, 1);
  const Bytes padding = onnx_text(x, "padding_mode");
  const char *mode = NULL;
  if (!images || !grid) return false;
  if (images->shape.rank != 4 || grid->shape.rank != 4 || !extent_equals(grid->shape.extent[3], EXTENT(2)))
    return build_error(b, "expected images of 4 axes, and a grid of pairs");
  if (!take_mode(x, &mode)) return false;
  if (!onnx_has_number(x, images, 2) || !onnx_has_number(x, images, 3)) return false;
  const Extent n = images->shape.extent[0];
  const int64_t h = images->shape.extent[2].value, w = images->shape.extent[3].value;
  Shape rows = {.rank = 2, .extent = {EXTENT_UNKNOWN, images->shape.extent[1]}};
  if (!extent_multiply(b->graph, n, EXTENT(h * w), &rows.extent[0])) return error_out_of_memory(x->reading.d);
  if (h < 1 || w < 1) return build_error(b, "expected images with elements");
  const Sampling s = {.rows = onnx_reshape_extents(x, build_transpose(b, images, channels_last, 4), &rows),
                      .places = onnx_iota(x, n, EXTENT(h * w), 2),
                      .padding = bytes_are(padding, "border")       ? "border"
                                 : bytes_are(padding, "reflection") ? "reflection"
                                                                    : "zeros",
                      .aligns = onnx_int(x, "align_corners", 0) != 0,
                      .extents = {(double)h, (double)w}};
  Value *column = scale_up(x, &s, coordinate(x, grid, 0), s.extents[1]),
        *row = scale_up(x, &s, coordinate(x, grid, 1), s.extents[0]);
  if (bytes_are(padding, "border")) { // before interpolation
    column = clamp(x, column, 0, s.extents[1] - 1);
    row = clamp(x, row, 0, s.extents[0] - 1);
  }
  return s.rows && onnx_out(x, 0, build_transpose(b, sample(x, &s, row, column, mode), channels_first, 4));
}
