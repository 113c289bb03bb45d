// The operators that move elements.
#include "ir/movement.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/walk.h"

#include <string.h>

bool interpret_StaticReshape(const Evaluation *e) {
  memcpy(e->outputs[0], e->inputs[0], (size_t)shape_nelems(&e->node->outputs[0]->shape) * sizeof(double));
  return true;
}

bool interpret_StaticTranspose(const Evaluation *e) {
  const Shape *src = &e->node->inputs[0]->shape;
  int axes[MAX_RANK];
  if (!transpose_axes(e->node, src->rank, axes)) return true; // a verified node has an order
  Walk w = walk_over(&e->node->outputs[0]->shape);
  for (int i = 0; i < src->rank; i++) {
    int64_t stride = 1;
    for (int axis = src->rank - 1; axis > axes[i]; axis--) stride *= extent_value(src->extent[axis]);
    w.stride[i][0] = stride;
  }
  for (; w.i < w.nelems; walk_step(&w)) e->outputs[0][w.i] = e->inputs[0][w.at[0]];
  return true;
}
