// What later stages ask of resampling, which goes along each spatial axis by itself.
#ifndef NGRAD_IR_OPERATORS_INTERPOLATE_H
#define NGRAD_IR_OPERATORS_INTERPOLATE_H

#include "ir/operators/operator.h"

enum { INTERPOLATE_NEAREST, INTERPOLATE_LINEAR, INTERPOLATE_BILINEAR, INTERPOLATE_TRILINEAR }; // the last three are one
enum { COORDINATES_HALF_PIXEL, COORDINATES_ALIGN_CORNERS };

// Resampling along an axis. Output o is at (factor * o + offset) / divisor of the input, brought into [0, input - 1]:
// linear between the two places beside it, or the nearest of them, halves up. All are integers, so that it is exact.
typedef struct Resampling {
  int64_t input, output; // extents
  int64_t factor, offset, divisor;
  bool is_nearest;
  Monomial monomial; // of the extents, where they are not the same: what the formulas would have to hold for
} Resampling;

// The first axis that is spatial; there are rank - 2.
int spatial_axis(const Node *node);

// Of a node whose extents all have numbers; `spatial` counts from 0.
Resampling node_resampling(const Node *node, int spatial);

// A bound on the integers that computing places takes.
int64_t node_greatest_place(const Node *node);

// The domain of a gradient: its output's axes, then for each spatial one the taps that add up.
Shape adjoint_domain(const Node *node);

#endif
