// A walk over the elements of a shape in row-major order. Tracks follow it through other arrays that have only some
// of the shape's axes, or have them with extent 1: broadcast operands, statistics, parameters.
//
//   for (Walk w = …; w.i < w.nelems; walk_step(&w)) dst[w.i] = src[w.i] - mean[w.at[0]];
#ifndef NGRAD_BACKENDS_INTERPRETER_WALK_H
#define NGRAD_BACKENDS_INTERPRETER_WALK_H

#include "ir/graph/graph.h"

enum { MAX_TRACKS = 3 };

typedef struct Walk {
  int64_t i, nelems;      // the element, and how many there are
  int64_t at[MAX_TRACKS]; // where each track is, in elements of its array
  int rank;
  int64_t extent[MAX_RANK];
  int64_t index[MAX_RANK];              // coordinates of the element
  int64_t stride[MAX_RANK][MAX_TRACKS]; // steps of the tracks along each axis; 0: the array does not vary over it
} Walk;

// At the first element; the tracks stay at 0 until they are given an array by one of the two functions below.
Walk walk_over(const Shape *shape);

// The track's array has `operand`, a shape that numpy's rules broadcast to the walk's.
void walk_broadcast(Walk *w, int track, const Shape *operand);

// The track's array is dense and has the axes in the mask, in the walk's order; returns the number of its elements.
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
