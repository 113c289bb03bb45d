// Tensors: memory with a type and a known shape, row-major and dense.
#ifndef NGRAD_IR_TENSOR_H
#define NGRAD_IR_TENSOR_H

#include "ir/graph.h"

typedef struct Tensor {
  Type type;
  int rank;
  int64_t extent[MAX_RANK];
  void *data; // nelems elements; whose it is, is said where one is passed
} Tensor;

int64_t tensor_nelems(const Tensor *t);
size_t tensor_nbytes(const Tensor *t);

// The type and shape of a value whose extents all have numbers; data NULL.
Tensor tensor_like(const Value *v);

// 64-byte aligned memory for t->data from the allocator, at least one byte; false when there is none.
bool tensor_alloc(Tensor *t, const Allocator *allocator);
void tensor_free(Tensor *t, const Allocator *allocator);

#endif
