// Noise of the size of tolerances, to see how far roundings may move a graph's results:
// backends/interpreter/magnitude.h.
//
// An element's digits below its type's tolerance are replaced by others, which are a function of the digits above. So
// equal elements stay equal, the greater of two never becomes the lesser, x and -x stay opposite, zeros stay, and noise
// on noise changes nothing: choices and masks are as without noise, unless two elements are nearer than the tolerance.
// A sum gets noise of its own, as if each term had moved by the tolerance: so a missing term stands out among millions.
#ifndef NGRAD_BACKENDS_INTERPRETER_NOISE_H
#define NGRAD_BACKENDS_INTERPRETER_NOISE_H

#include "ir/graph/graph.h"

typedef struct Noise {
  uint64_t seed;  // not 0
  uint64_t state; // of the random numbers for sums
  double sum;     // relative size for sums in the node at work
} Noise;

// An element of a value of this type; not of types that nothing computes with.
double noise_element(const Noise *n, Type type, double x);

// What to add to a sum of terms whose squares have this sum.
double noise_of_sum(Noise *n, double squares);

// Sets the size for the node's sums, which are taken in f32 unless all is f64.
void noise_begin_node(Noise *n, const Node *node);

#endif
