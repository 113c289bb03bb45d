// Lowering of the operators that move elements: loads with other strides. What they load must have been stored, so
// fusing never puts its producer in their region.
#include "ir/movement.h"

#include "passes/lower/lower.h"

static void strides(const Shape *shape, const Order *order, int64_t stride[MAX_RANK]) {
  int64_t extent[MAX_RANK];
  for (int axis = 0; axis < shape->rank; axis++) extent[axis] = extent_value(shape->extent[axis]);
  order_strides(order, shape->rank, extent, stride);
}

// Src is row-major, which a pass has seen to, so it is as if it had dst's shape.
void lower_StaticReshape(Lowering *l, const Node *node) {
  int64_t stride[MAX_RANK];
  const Shape *dst = &node->outputs[0]->shape;
  strides(dst, &(Order){{0}}, stride);
  lower_result(l, node, 0, lower_moved(l, node->inputs[0], stride, dst->rank), NULL);
}

void lower_StaticTranspose(Lowering *l, const Node *node) {
  const Shape *src = &node->inputs[0]->shape;
  int64_t own[MAX_RANK], stride[MAX_RANK];
  int axes[MAX_RANK];
  if (!transpose_axes(node, src->rank, axes)) return; // a verified node has an order
  strides(src, &node->inputs[0]->order, own);
  for (int i = 0; i < src->rank; i++) stride[i] = own[axes[i]];
  lower_result(l, node, 0, lower_moved(l, node->inputs[0], stride, src->rank), NULL);
}
