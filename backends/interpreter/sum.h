// A compensated sum: it accumulates its rounding errors, too (Knuth's two-sum). The result is as accurate as if it were
// computed with twice the digits and then rounded once, in any order of the terms.
// Source: Ogita, Rump, Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26(6), 2005.
#ifndef NGRAD_BACKENDS_INTERPRETER_SUM_H
#define NGRAD_BACKENDS_INTERPRETER_SUM_H

#include "backends/interpreter/noise.h"

#include <math.h>

typedef struct Sum { // all members 0: the empty sum
  double total, error;
  double squares; // the sum of the squares of all terms
} Sum;

static inline void sum_add(Sum *s, double term) {
  double total = s->total + term;
  double part = total - s->total; // the part of term that is in the rounded total
  s->error += (s->total - (total - part)) + (term - part);
  s->total = total;
  s->squares += term * term;
}

// If the total is infinite or NaN, the error is NaN and must not be added. noise NULL: none.
static inline double sum_value(const Sum *s, Noise *noise) {
  if (!isfinite(s->total)) return s->total;
  const double value = s->total + s->error;
  return noise ? noise_sum(noise, value, s->squares) : value;
}

// The logarithm of a sum of terms that are not negative. Near 1 the sum's own rounding error would be most of it: what
// a softmax leaves to the other classes if one has nearly all.
static inline double sum_log(const Sum *s, Noise *noise) {
  const double value = sum_value(s, noise);
  const bool is_exact = value == s->total + s->error && value > 0;
  return is_exact ? log(s->total) + log1p(s->error / s->total) : log(value);
}

#endif
