// Random data, the same on every machine.
#ifndef NGRAD_FRONTEND_API_RANDOM_H
#define NGRAD_FRONTEND_API_RANDOM_H

#include "ir/graph/tensor.h"

// The distribution of an input's numbers. Integers have a centre and a deviation.
typedef struct Distribution {
  ValueRange range;
  double factor;    // of the range, or of an integer's deviation
  double centre;    // of integers
  bool is_divisor;  // floats of either sign, not near 0
  int64_t nindices; // more than 0: integers from first_index to first_index + nindices - 1
  int64_t first_index;
  bool has_ignored; // every other element is not this number, as a mean over ignored labels alone is not a number
  double ignored;
} Distribution;

Distribution distribution_of(const Value *v);
Distribution distribution_any(Type type); // of a value of this type without further knowledge

// Fills a tensor as ng_tensor_random does.
void random_fill(Tensor *t, uint64_t seed, uint64_t i, Distribution distribution);

#endif
