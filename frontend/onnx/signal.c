// Windows of signals, and their spectra.
#include "frontend/onnx/translation.h"

#include <math.h>

enum { MOST_MADE = 1 << 22 }; // elements of a constant that the model gives by a formula

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
  if (!onnx_number(x, onnx_in(x, 0), &size)) return false;
  if (!(size >= 0 && size <= MOST_MADE)) return build_error(&x->build, "expected at most %d numbers", MOST_MADE);
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
