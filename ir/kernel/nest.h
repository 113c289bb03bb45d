// The nest of a Loop, with factors: levels from the outermost to the innermost. Product of a matrix by panels, for
// instance: cut m by 24; rows m by 6; micro-kernel: lanes n by 16 x 2; serial k: a register tile of 6 by 32.
//
// A level is inside of the levels before it. A sum over an axis begins and ends just outside of the axis's outermost
// level inside of a micro-kernel: with lanes innermost, lanes hold parts of a sum, and with lanes outside of the serial
// levels, each lane holds a sum of its own.
#ifndef NGRAD_IR_KERNEL_NEST_H
#define NGRAD_IR_KERNEL_NEST_H

#include "ir/kernel/schedule.h"

typedef enum NestRole {
  ROLE_BATCH,    // each index has blocks of its own
  ROLE_CUT,      // parts of `factor` indices: the blocks of threads, or, inside of these, the columns of a micro-kernel
  ROLE_ROWS,     // `factor` indices together, in all that is inside: each has its own sums
  ROLE_LANES,    // vectors of LANES indices, `factor` vectors together
  ROLE_SEGMENTS, // segments of `factor` indices, whose sums are added in f64. 0: emitted code computes the factor. 1:
                 // each index of the serial level around it is one
  ROLE_SERIAL,   // one index after the other
} NestRole;

typedef struct NestLevel {
  NestRole role;
  int first, naxes; // the axes, as positions in Loop.axes; several are flattened
  int64_t factor;   // 1 for batch and serial levels
} NestLevel;

enum { MOST_NEST_LEVELS = 2 * MAX_AXES + 4 };

typedef struct Nest {
  int nlevels;
  int inside; // the first level inside of a micro-kernel
  NestLevel levels[MOST_NEST_LEVELS];
} Nest;

// `segments`: of the loop, a part of these, or none. Open lengths of blocks are those at the hints.
Nest loop_nest(const Kernel *k, const Loop *loop, const Segments *segments);
AxisSet nest_level_axes(const Loop *loop, const NestLevel *level);

// Prints, for instance, "batch n; cut h w by 24; rows h w by 6; micro-kernel: lanes oc by 16 x 2; serial ic", without
// a newline.
void nest_print(const Kernel *k, const Loop *loop, const Nest *nest, Text *out);

#endif
