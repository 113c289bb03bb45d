// Tensors: dense arrays with a type, a known shape and a layout.
#ifndef NGRAD_IR_GRAPH_TENSOR_H
#define NGRAD_IR_GRAPH_TENSOR_H

#include "ir/graph/graph.h"

typedef struct Tensor {
  Type type;
  int rank;
  int64_t extent[MAX_RANK];
  void *data; // tensor_nelems elements; each function with a Tensor parameter says who owns them
  Layout layout;
} Tensor;

int64_t tensor_nelems(const Tensor *t);
size_t tensor_nbytes(const Tensor *t);

// The offset in data, in elements, of the i-th element in row-major order.
int64_t tensor_offset(const Tensor *t, int64_t i);

// Copies all elements. Both tensors have the same type and shape; their layouts may differ.
void tensor_copy(const Tensor *from, const Tensor *to);

// A tensor with the type, shape and layout of v, whose extents all have numbers; data is NULL.
Tensor tensor_like(const Value *v);

// Allocates t->data, at least one byte, aligned to 64 bytes; false when out of memory. tensor_free takes the same
// allocator.
bool tensor_alloc(Tensor *t, const Allocator *allocator);
void tensor_free(Tensor *t, const Allocator *allocator);

#endif
