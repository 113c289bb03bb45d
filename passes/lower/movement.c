// Lowering of the operators that move elements: loads with other strides. What they load must have been stored, so
// fusing never puts its producer in their region.
#include "ir/movement.h"

#include "passes/lower/lower.h"

// Row-major strides of a shape.
static void dense_strides(const Shape *shape, int64_t stride[MAX_RANK]) {
  int64_t step = 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    int64_t extent = extent_value(shape->extent[axis]);
    stride[axis] = step;
    step *= extent > 0 ? extent : 1;
  }
}

// Both are dense, so src is as if it had dst's shape.
void lower_StaticReshape(Lowering *l, const Node *node) {
  int64_t stride[MAX_RANK];
  const Shape *dst = &node->outputs[0]->shape;
  dense_strides(dst, stride);
  lower_result(l, node, 0, lower_moved(l, node->inputs[0], stride, dst->rank), NULL);
}

void lower_StaticTranspose(Lowering *l, const Node *node) {
  const Shape *src = &node->inputs[0]->shape;
  int64_t dense[MAX_RANK], stride[MAX_RANK];
  int axes[MAX_RANK];
  if (!transpose_axes(node, src->rank, axes)) return; // a verified node has an order
  dense_strides(src, dense);
  for (int i = 0; i < src->rank; i++) stride[i] = dense[axes[i]];
  lower_result(l, node, 0, lower_moved(l, node->inputs[0], stride, src->rank), NULL);
}
