// What a call of a program may leave out, and where it may store outputs (passes/memory/liveness.h finds both).
#ifndef NGRAD_IR_KERNEL_LIVENESS_H
#define NGRAD_IR_KERNEL_LIVENESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_TOLD_APART = 64 };

typedef struct OutputSet { // a set of the graph's outputs
  bool is_all;             // all outputs; a set of more than MOST_TOLD_APART is rounded up to all
  uint32_t count;
  const uint32_t *outputs; // their numbers, ascending; none if is_all
} OutputSet;

enum { MOST_IN_PLACE = 16 }; // the most inputs listed for an output; further inputs count as not overwritable
typedef struct InPlace {     // the inputs whose memory an output may use
  uint32_t count;
  uint32_t inputs[MOST_IN_PLACE]; // ascending
} InPlace;

// Loops and temporaries are numbered through all kernels. A call runs a loop if it wants an output that needs the loop.
typedef struct Liveness {
  size_t nloops, ntemporaries;
  size_t *first_loop, *first_temporary; // by kernel
  OutputSet *serves;                    // by loop: the outputs that need it
  OutputSet *temporary_serves;          // by temporary: the outputs that need it
  // By loop: bit i: it must run after the loop i + 1 places before; loops that are more places before have ended. The
  // first loop of a slice group stands for all of its loops.
  uint32_t *needs;
  bool *is_read_again; // by value->index: a loop after the one that stores it, or a copy at the end, reads it
  // If a call may leave out outputs:
  bool *is_optional;     // by value->index: an output that may be left out, and that no loop reads
  bool *may_be_unwanted; // by temporary: partial sums that only some outputs need
  // By output: the program may get the same pointer for both, because no element of the input is read after the
  // output's element at the same place was stored.
  InPlace *in_place;
} Liveness;

#endif
