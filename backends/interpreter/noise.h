// Noise of the size of types' tolerances, which shows how much rounding errors may change a graph's results
// (backends/interpreter/magnitude.h).
//
// Numbers are divided into cells, as wide as their type's tolerance; where cells begin depends on the seed, so that no
// number is at the edge of one in all runs. Each element is replaced by a pseudo-random number of its cell, a function
// of the cell. So noise preserves equality, order, opposite signs and zeros, and adding it twice is the same as once:
// comparisons have the same results as without noise, unless elements differ by less than the tolerance. A sum gets
// noise as if each of its terms had changed by the tolerance, independently; for a sum of n terms that grows with
// sqrt(n) and not with n, so that a missing term is still noticed among millions.
//
// Noise with a side preserves equality of the same numbers only, so that choices between close ones fall both ways:
// what one side adds, the other side subtracts.
//
// Without a seed there is no noise, but sums still overflow.
#ifndef NGRAD_BACKENDS_INTERPRETER_NOISE_H
#define NGRAD_BACKENDS_INTERPRETER_NOISE_H

#include "ir/graph/graph.h"

typedef struct Noise {
  uint64_t seed;   // 0: no noise
  int side;        // 1 or -1; 0: noise in cells
  bool overflows;  // values beyond the type that the node computes in become infinite
  uint64_t state;  // of the random numbers for sums
  double sum;      // relative size of the noise on sums of the current node
  double greatest; // the greatest finite sum of the current node
} Noise;

// Adds noise to elements of a value of this type; none if type_is_float(type) is false. `exact`: the elements without
// any noise.
void noise_add(const Noise *n, Type type, const double *exact, double *x, size_t nelems);

// A finite sum with noise; `squares` is the sum of the squares of its terms.
double noise_sum(Noise *n, double sum, double squares);

// The noise behind the next `nsums` sums, so that threads may divide sums among them. NULL: all 0.
Noise noise_after(const Noise *n, int64_t nsums);

// Sets n->sum and n->greatest for a node that is computed in this type. TYPE_NONE: in f32, or in f64 if the node has no
// narrower float operand.
void noise_begin_node(Noise *n, const Node *node, Type type);

// Intermediate values of a node overflow as sums do; n NULL: no value does.
double noise_overflow(const Noise *n, double x);

#endif
