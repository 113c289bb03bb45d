// Initialising walks and the strides of their tracks.
#include "backends/interpreter/walk.h"

#include <assert.h>

Walk walk_over(const Shape *shape) {
  Walk w = {.rank = shape->rank, .nelems = shape_nelems(shape)};
  assert(w.nelems >= 0);
  for (int axis = 0; axis < w.rank; axis++) w.extent[axis] = extent_value(shape->extent[axis]);
  return w;
}

void walk_broadcast(Walk *w, int track, const Shape *operand) {
  int missing = w->rank - operand->rank; // axes that the operand lacks, on the left
  int64_t stride = 1;
  for (int axis = operand->rank - 1; axis >= 0 && w->nelems; axis--) {
    int64_t extent = extent_value(operand->extent[axis]);
    w->stride[missing + axis][track] = extent == 1 ? 0 : stride;
    stride *= extent;
  }
}

int64_t walk_axes(Walk *w, int track, uint32_t axes) {
  int64_t nelems = 1;
  for (int axis = w->rank - 1; axis >= 0; axis--) {
    if (!(axes >> axis & 1)) continue;
    w->stride[axis][track] = nelems;
    nelems *= w->extent[axis];
  }
  return nelems;
}
