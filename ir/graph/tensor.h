// Tensors: memory with a type and a known shape, dense.
#ifndef NGRAD_IR_GRAPH_TENSOR_H
#define NGRAD_IR_GRAPH_TENSOR_H

#include "ir/graph/graph.h"

typedef struct Tensor {
  Type type;
  int rank;
  int64_t extent[MAX_RANK];
  void *data; // nelems elements; whose it is, is said where one is passed
  Order order;
} Tensor;

int64_t tensor_nelems(const Tensor *t);
size_t tensor_nbytes(const Tensor *t);

// Where the i-th element in row-major order is in data.
int64_t tensor_offset(const Tensor *t, int64_t i);

// Copies all elements between tensors of one type and shape, each in its own order.
void tensor_copy(const Tensor *from, const Tensor *to);

// The type, shape and order of a value whose extents all have numbers; data NULL.
Tensor tensor_like(const Value *v);

// 64-byte aligned memory for t->data from the allocator, at least one byte; false when there is none.
bool tensor_alloc(Tensor *t, const Allocator *allocator);
void tensor_free(Tensor *t, const Allocator *allocator);

#endif
