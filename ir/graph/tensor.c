// Addressing and allocation of tensors.
#include "ir/graph/tensor.h"

#include <stdint.h>
#include <string.h>

enum { DATA_ALIGNMENT = 64 };

int64_t tensor_nelems(const Tensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++) n *= t->extent[i];
  return n;
}

size_t tensor_nbytes(const Tensor *t) {
  return type_array_nbytes(t->type, (size_t)tensor_nelems(t));
}

int64_t tensor_offset(const Tensor *t, int64_t i) {
  if (layout_is_row_major(&t->layout)) return i;
  int64_t stride[MAX_RANK], offset = 0;
  layout_strides(&t->layout, t->rank, t->extent, stride);
  for (int axis = t->rank - 1; axis >= 0; axis--) {
    offset += i % t->extent[axis] * stride[axis];
    i /= t->extent[axis];
  }
  return offset;
}

void tensor_copy(const Tensor *from, const Tensor *to) {
  const size_t nbytes = type_nbytes(from->type);
  const int64_t nelems = tensor_nelems(from);
  for (int64_t i = 0; i < nelems; i++) {
    size_t source = (size_t)tensor_offset(from, i), target = (size_t)tensor_offset(to, i);
    if (type_is_packed(from->type)) type_store(to->type, to->data, target, type_load(from->type, from->data, source));
    else memcpy((char *)to->data + target * nbytes, (const char *)from->data + source * nbytes, nbytes);
  }
}

Tensor tensor_like(const Value *v) {
  Tensor t = {.type = v->type, .rank = v->shape.rank, .layout = v->layout};
  for (int i = 0; i < t.rank; i++) t.extent[i] = extent_value(v->shape.extent[i]);
  return t;
}

// The data are aligned inside the allocator's block. The bytes just before the data hold the block's address, for
// tensor_free.
bool tensor_alloc(Tensor *t, const Allocator *allocator) {
  size_t nbytes = tensor_nbytes(t);
  char *block = allocator_alloc(allocator, nbytes + DATA_ALIGNMENT + sizeof(void *));
  if (!block) return false;
  uintptr_t at = (uintptr_t)block + sizeof(void *);
  size_t skip = sizeof(void *) + (DATA_ALIGNMENT - at % DATA_ALIGNMENT) % DATA_ALIGNMENT;
  t->data = block + skip;
  ((void **)t->data)[-1] = block;
  return true;
}

void tensor_free(Tensor *t, const Allocator *allocator) {
  if (t->data) allocator_free(allocator, ((void **)t->data)[-1]);
  t->data = NULL;
}
