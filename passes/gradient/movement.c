// Gradients of the operators that move elements: the inverse movement.
#include "ir/operators/movement.h"

#include "passes/gradient/gradient.h"

GRADIENT(StaticReshape) {
  const Value *src = node->inputs[0];
  gradient_give(g, src, gradient_reshaped(g, diff, &src->shape));
}

GRADIENT(StaticTranspose) {
  const Value *src = node->inputs[0];
  int axes[MAX_RANK];
  int64_t back[MAX_RANK];
  Node *backward = gradient_node(g, OP_StaticTranspose, NULL);
  if (!backward || !transpose_axes(node, src->shape.rank, axes)) return;
  for (int i = 0; i < src->shape.rank; i++) back[axes[i]] = i;
  gradient_set_list(g, backward, "order", back, (size_t)src->shape.rank);
  node_set_input(backward, 0, diff);
  gradient_give(g, src, gradient_output(g, backward, 0, src->type, &src->shape));
}

GRADIENT(Reorder) {
  gradient_give(g, node->inputs[0], diff);
}

NO_GRADIENT(GenIndex, "it does not depend on the elements of its input")
NO_GRADIENT(Concat, "there is no operator to slice a tensor")
