// Random data, the same on every machine.
#ifndef NGRAD_FRONTEND_API_RANDOM_H
#define NGRAD_FRONTEND_API_RANDOM_H

#include "ir/graph/tensor.h"

// What ng_tensor_random fills a tensor with.
void random_fill(Tensor *t, uint64_t seed, uint64_t i, ValueRange range);

#endif
