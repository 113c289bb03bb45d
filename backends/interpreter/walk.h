// A walk over the elements of a shape in row-major order. Tracks are offsets into other arrays that follow the walk:
// arrays that have only some of the shape's axes, or some with extent 1 (broadcast operands, statistics, parameters).
//
//   for (Walk w = …; w.i < w.nelems; walk_step(&w)) dst[w.i] = src[w.i] - mean[w.at[0]];
#ifndef NGRAD_BACKENDS_INTERPRETER_WALK_H
#define NGRAD_BACKENDS_INTERPRETER_WALK_H

#include "ir/graph/graph.h"

enum { MAX_TRACKS = 3 };

typedef struct Walk {
  int64_t i, nelems;      // the index of the current element, and the number of elements
  int64_t at[MAX_TRACKS]; // the offset of each track in its array, in elements
  int rank;
  int64_t extent[MAX_RANK];
  int64_t index[MAX_RANK];              // of the current element, by axis
  int64_t stride[MAX_RANK][MAX_TRACKS]; // of the tracks' arrays; 0: the array does not vary along the axis
} Walk;

// A walk at the first element. Tracks stay at 0 unless one of the two functions below sets their strides.
Walk walk_over(const Shape *shape);

// The track follows an array of shape `operand`, which is broadcast to the walk's shape by numpy's rules.
void walk_broadcast(Walk *w, int track, const Shape *operand);

// The track follows a dense array that has the axes in the mask, in the walk's order; returns its number of elements.
int64_t walk_axes(Walk *w, int track, uint32_t axes);

static inline void walk_step(Walk *w) {
  w->i++;
  for (int axis = w->rank - 1; axis >= 0; axis--) {
    const int64_t *stride = w->stride[axis];
    if (++w->index[axis] < w->extent[axis]) {
      for (int t = 0; t < MAX_TRACKS; t++) w->at[t] += stride[t];
      return;
    }
    w->index[axis] = 0;
    for (int t = 0; t < MAX_TRACKS; t++) w->at[t] -= stride[t] * (w->extent[axis] - 1);
  }
}

#endif
