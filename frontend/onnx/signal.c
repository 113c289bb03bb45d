// Windows of signals, and their spectra.
#include "frontend/onnx/translation.h"

#include <math.h>

enum { MOST_MADE = 1 << 22 }; // elements of a constant that the model gives by a formula

static bool take_positive(Onnx *x, size_t i, double *number) {
  if (!onnx_number(x, onnx_in(x, i), number)) return false;
  return (*number >= 0 && *number <= MOST_MADE) ||
         build_error(&x->build, "input %zu: expected a number of 0 to %d, found %g", i, MOST_MADE, *number);
}

// a - b cos(2 pi i / N) + c cos(4 pi i / N), where N is the size if periodic, or one less.
bool onnx_window(Onnx *x) {
  const Bytes op = x->node->op;
  const bool is_hann = bytes_are(op, "HannWindow"), is_hamming = bytes_are(op, "HammingWindow");
  const double a = is_hann      ? 0.5
                   : is_hamming ? 25.0 / 46
                                : 0.42,
               b = is_hamming ? 21.0 / 46 : 0.5, c = is_hann || is_hamming ? 0 : 0.08, step = 4 * acos(0);
  const Type type = onnx_type((uint64_t)onnx_int(x, "output_datatype", 1));
  double size;
  if (!take_positive(x, 0, &size)) return false;
  if (type == TYPE_NONE) return build_error(&x->build, "output_datatype: the type is not supported");
  const double period = onnx_int(x, "periodic", 1) ? size : size - 1;
  const Shape shape = {.rank = 1, .extent = {EXTENT((int64_t)size)}};
  Constant *constant;
  Value *v = build_constant(&x->build, type, &shape, &constant);
  for (int64_t i = 0; v && i < (int64_t)size; i++) {
    const double angle = period > 0 ? step * (double)i / period : 0;
    type_store(type, constant->data, (size_t)i, a - b * cos(angle) + c * cos(2 * angle));
  }
  return onnx_out(x, 0, v);
}

// Triangles of a scale on which steps sound equal: each bin's frequency between those of its neighbours.
bool onnx_mel_weights(Onnx *x) {
  double nbins, length, rate, low, high;
  const Type type = onnx_type((uint64_t)onnx_int(x, "output_datatype", 1));
  if (!take_positive(x, 0, &nbins) || !take_positive(x, 1, &length) || !take_positive(x, 2, &rate) ||
      !take_positive(x, 3, &low) || !take_positive(x, 4, &high))
    return false;
  const int64_t n = (int64_t)nbins, nrows = (int64_t)length / 2 + 1;
  if (rate < 1 || nrows > MOST_MADE / (n + 1)) return build_error(&x->build, "expected at most %d numbers", MOST_MADE);
  if (!type_is_float(type)) return build_error(&x->build, "output_datatype: the type is not supported");
  const double first = 2595 * log10(1 + low / 700), step = (2595 * log10(1 + high / 700) - first) / (nbins + 2);
  const Shape shape = {.rank = 2, .extent = {EXTENT(nrows), EXTENT(n)}};
  Constant *constant;
  Value *v = build_constant(&x->build, type, &shape, &constant);
  for (int64_t i = 0; v && i < n; i++) {
    double at[3]; // the rows where the triangle begins, is 1, and ends
    for (int k = 0; k < 3; k++)
      at[k] = floor((length + 1) * 700 * (pow(10, (first + (double)(i + k) * step) / 2595) - 1) / rate);
    for (int64_t row = 0; row < nrows; row++) {
      const double j = (double)row, up = at[1] > at[0] ? (j - at[0]) / (at[1] - at[0]) : j == at[1];
      const double weight = j >= at[0] && j <= at[1] ? up : j > at[1] && j < at[2] ? (at[2] - j) / (at[2] - at[1]) : 0;
      type_store(type, constant->data, (size_t)(row * n + i), weight);
    }
  }
  return onnx_out(x, 0, v);
}
