// Random data, the same on every machine.
#ifndef NGRAD_FRONTEND_API_RANDOM_H
#define NGRAD_FRONTEND_API_RANDOM_H

#include "ir/graph/tensor.h"

// How the numbers of an input are distributed. Integers have a centre and a deviation.
typedef struct Distribution {
  ValueRange range;
  double factor;    // of what is in that range, or of an integer's deviation
  double centre;    // of integers
  bool is_divisor;  // floats of either sign that are not near 0
  int64_t nindices; // more than 0: integers from 0 to nindices - 1
} Distribution;

Distribution distribution_of(const Value *v);
Distribution distribution_any(Type type); // of a value of this type that nothing is known of

// What ng_tensor_random fills a tensor with.
void random_fill(Tensor *t, uint64_t seed, uint64_t i, Distribution distribution);

#endif
