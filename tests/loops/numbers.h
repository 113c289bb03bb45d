// The domain of numbers (ir/kernel/domain.h): results have the bits of emitted scalar C.
#ifndef NGRAD_TESTS_LOOPS_NUMBERS_H
#define NGRAD_TESTS_LOOPS_NUMBERS_H

#include "ir/kernel/domain.h"

typedef struct NumberTensor {
  unsigned char *data;
  int64_t first;  // the element of `data` that counts as element 0: of a slice
  int64_t nelems; // of `data`
} NumberTensor;

typedef struct Numbers {
  const NumberTensor *tensors; // by value->index
  const char *fault;           // what is wrong with a load or an operation; NULL: nothing
} Numbers;

ValueDomain domain_of_numbers(Numbers *numbers);

#endif
