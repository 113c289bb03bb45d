// The magnitude of an output: a scale for its absolute error.
//
// Where terms cancel, the size of an output does not tell how exact it can be: the difference of two f32 near 1 that
// should be 0 may be 1e-7. The magnitude of that difference is 1: relative errors of size e in the values of the graph
// change an output by about e times its magnitude.
#ifndef NGRAD_BACKENDS_INTERPRETER_MAGNITUDE_H
#define NGRAD_BACKENDS_INTERPRETER_MAGNITUDE_H

#include "backends/interpreter/interpreter.h"

// Computes the magnitude of each output, in the L2 norm of all its elements: the change of the output when each value,
// constant and sum of the graph that is rounded changes by its type's tolerance, divided by the tolerance of the
// output's type; of a quantised type, which has none, the change itself; 0 for other types. Choices, such as the
// results of comparisons, are those without changes, unless changes flip so many that they act like roundings. A
// relative error should be measured against the greater of the output's norm and its magnitude. `outputs` are the
// results of interpret for these inputs; NULL: they are computed here. False: as interpret.
bool interpret_magnitudes(const Graph *g, const Tensor *inputs, const Tensor *outputs, double *magnitudes,
                          const InterpreterOptions *options, Diagnostics *d);

// How far such changes move an element of an output, and what it is if they flip choices. The magnitude excludes the
// elements that move farthest, such as quotients with divisors near 0, up to a tenth of all elements.
typedef struct Movement {
  double *moved;   // by element: the root mean square of its changes; infinite if a change makes it infinite or NaN
  double usual;    // no element that the magnitude includes moves farther
  double typical;  // the median of the elements that move
  Tensor *results; // without changes, and, if there are choices, exact but for those that changes make in FLIPS runs
  size_t nresults;
} Movement;

// The same, with results by element: movements[i] is for output i, in the arena. `outputs` must not be NULL, and stay.
bool interpret_movements(const Graph *g, const Tensor *inputs, const Tensor *outputs, double *magnitudes,
                         Movement *movements, Arena *arena, const InterpreterOptions *options, Diagnostics *d);

// One more run with other choices, number `number` from FLIPS + 1 on: `outputs` are as one of Movement.results.
enum { FLIPS = 6 };
bool interpret_flipped(const Graph *g, const Tensor *inputs, uint64_t number, Tensor *outputs,
                       const InterpreterOptions *options, Diagnostics *d);

#endif
