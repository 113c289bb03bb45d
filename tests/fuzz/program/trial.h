// A graph with data, the interpreter's results, and the tolerance of each element.
#ifndef NGRAD_TESTS_FUZZ_TRIAL_H
#define NGRAD_TESTS_FUZZ_TRIAL_H

#include "tests/fuzz/program/program.h"
#include "tests/noise.h"

typedef struct ElementNoise {
  double most;      // largest change of the element by noise
  bool is_unstable; // noise made it infinite or NaN, or finite again: any result is accepted
} ElementNoise;

typedef struct Trial {
  const FuzzOptions *options;
  Report *report;
  const Graph *graph; // bound
  Arena arena;
  uint64_t random, choices;   // states of the generators of data and of ways
  Tensor *inputs[2], *got[2]; // [0]: memory begins at a page boundary; [1]: memory ends at a page boundary
  Tensor *expected;
  ElementNoise **noise; // by output, by element in row-major order
  bool is_infinite;     // some value of the graph is: its gradient may be NaN where differences are not
  bool is_sure;         // noise has been tried often enough for a finding
} Trial;

// Reports a finding unless roundings explain the results, which are parallel to the graph's outputs. computed: the
// graph whose roundings they have, the trial's as it was read or after passes.
void trial_compare(Trial *t, const Graph *computed, const Tensor *got, const char *kind, const char *how);
bool trial_interpret(Trial *t, const Graph *g, Tensor *outputs);
void trial_run_ways(Trial *t);
void trial_check_emitted(Trial *t);

#endif
