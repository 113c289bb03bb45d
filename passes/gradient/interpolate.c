// The gradient of resampling.
#include "passes/gradient/gradient.h"

GRADIENT(Interpolate) {
  const Value *src = node->inputs[0];
  Node *backward = gradient_node(g, OP_InterpolateBackward, node);
  if (!backward) return;
  node_set_input(backward, 0, gradient_saved(g, src));
  node_set_input(backward, 1, diff);
  gradient_give(g, src, gradient_output(g, backward, 0, src->type, &src->shape));
}

NO_GRADIENT(InterpolateBackward, SECOND_ORDER)
