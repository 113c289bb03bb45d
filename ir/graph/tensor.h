// Tensors: dense arrays with a type, a known shape and a layout.
#ifndef NGRAD_IR_GRAPH_TENSOR_H
#define NGRAD_IR_GRAPH_TENSOR_H

#include "ir/graph/graph.h"

typedef struct Tensor {
  Type type;
  int rank;
  int64_t extent[MAX_RANK];
  void *data;  // nelems elements; each function that takes a tensor says who owns them
  Order order; // layout
} Tensor;

int64_t tensor_nelems(const Tensor *t);
size_t tensor_nbytes(const Tensor *t);

// The offset in data, in elements, of the i-th element in row-major order.
int64_t tensor_offset(const Tensor *t, int64_t i);

// Copies all elements between tensors of one type and shape, which may differ in layout.
void tensor_copy(const Tensor *from, const Tensor *to);

// The type, shape and layout of a value whose extents all have numbers; data NULL.
Tensor tensor_like(const Value *v);

// Allocates t->data, 64-byte aligned and of at least one byte; false when out of memory. tensor_free needs the same
// allocator.
bool tensor_alloc(Tensor *t, const Allocator *allocator);
void tensor_free(Tensor *t, const Allocator *allocator);

#endif
