// A sum that carries its own rounding error along (Knuth's two-sum), so its result is as if computed with twice the
// digits and rounded once, whatever the order and the cancellation.
// Source: Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26(6), 2005.
#ifndef NGRAD_BACKENDS_INTERPRETER_SUM_H
#define NGRAD_BACKENDS_INTERPRETER_SUM_H

#include "backends/interpreter/noise.h"

#include <math.h>

typedef struct Sum { // all zero: of nothing
  double total, error;
  double squares; // of all terms
} Sum;

static inline void sum_add(Sum *s, double term) {
  double total = s->total + term;
  double part = total - s->total; // what of term reached the total
  s->error += (s->total - (total - part)) + (term - part);
  s->total = total;
  s->squares += term * term;
}

// Once a total is infinite or NaN its error is NaN, and says nothing. noise NULL: none.
static inline double sum_value(const Sum *s, Noise *noise) {
  if (!isfinite(s->total)) return s->total;
  return s->total + s->error + (noise ? noise_of_sum(noise, s->squares) : 0);
}

#endif
