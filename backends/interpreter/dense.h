// Dense arrays, and elements of them in lanes: what products and convolutions have in common.
#ifndef NGRAD_BACKENDS_INTERPRETER_DENSE_H
#define NGRAD_BACKENDS_INTERPRETER_DENSE_H

#include "backends/interpreter/lanes.h"
#include "ir/graph/type.h"

static inline int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// The number of elements between neighbours along each axis of a dense row-major array.
typedef struct Dense {
  int64_t stride[MAX_RANK];
} Dense;

static inline Dense dense_strides(const Shape *shape) {
  Dense d = {{0}};
  int64_t stride = 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    d.stride[axis] = stride;
    stride *= extent_value(shape->extent[axis]);
  }
  return d;
}

static inline int64_t extent_on(const Shape *shape, int axis) {
  return axis < 0 ? 1 : extent_value(shape->extent[axis]);
}

// Copies `rows` rows of `width` elements; each element of a row becomes a lane, and further lanes are 0.
static inline void copy_lanes(double *to, const double *from, int64_t rows, int64_t row_stride, int64_t width,
                              int64_t lane_stride) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < LANES; j++) to[i * LANES + j] = j < width ? from[i * row_stride + j * lane_stride] : 0;
}

#endif
