// Properties of resampling nodes. Resampling is separable: each spatial axis has its own formula, independent of the
// others.
#ifndef NGRAD_IR_OPERATORS_INTERPOLATE_H
#define NGRAD_IR_OPERATORS_INTERPOLATE_H

#include "ir/operators/operator.h"

// The values of the attributes `mode` and `coordinate_transformation_mode`. Linear, bilinear and trilinear are
// synonyms: the rank determines the number of axes.
enum { INTERPOLATE_NEAREST, INTERPOLATE_LINEAR, INTERPOLATE_BILINEAR, INTERPOLATE_TRILINEAR };
enum { COORDINATES_HALF_PIXEL, COORDINATES_ALIGN_CORNERS };

// Resampling along one axis. Output index o has the source coordinate (factor * o + offset) / divisor, clamped to
// [0, input - 1]. The result interpolates linearly between the two input elements around the coordinate, or takes the
// nearest, halves rounded up. All numbers are integers, so coordinates are exact.
typedef struct Resampling {
  int64_t input, output; // extents
  int64_t factor, offset, divisor;
  bool is_nearest;
  Monomial monomial; // not 0: the extents differ and are open, so the numbers above hold only at the hints
} Resampling;

// The first of the rank - 2 spatial axes.
int spatial_axis(const Node *node);

// The resampling along spatial axis number `spatial`, from 0. All extents of the node must have numbers.
Resampling node_resampling(const Node *node, int spatial);

// An upper bound on the integers that occur in computing source coordinates and offsets.
int64_t node_greatest_place(const Node *node);

#endif
