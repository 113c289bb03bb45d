// How large the terms were that a graph's outputs are sums of, as far as roundings of them show.
//
// Where sums cancel, an output says nothing of how exact it can be: x - y of f32s near 1 that should be 0 may be 1e-7.
// Its magnitude here is 1: a relative error of e in the values that the graph computes moves the output by about e
// times that.
#ifndef NGRAD_BACKENDS_INTERPRETER_MAGNITUDE_H
#define NGRAD_BACKENDS_INTERPRETER_MAGNITUDE_H

#include "backends/interpreter/interpreter.h"

// For each output of a graph as interpret takes it: an L2 norm, to be taken for that of the output where that is less.
// It is how far the output moves when each value, constant and sum of the graph moves by its type's tolerance, divided
// by the output's tolerance; 0 where that is 0. `outputs` are what interpret makes of these inputs; NULL: it is run for
// them too. False: as interpret.
bool interpret_magnitudes(const Graph *g, const Tensor *inputs, const Tensor *outputs, double *magnitudes,
                          const InterpreterOptions *options, Diagnostics *d);

#endif
