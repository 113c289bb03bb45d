// Gradient of dropout. The same seed and offset drop the same elements of the gradient, so no mask is saved.
#include "passes/gradient/gradient.h"

GRADIENT_EXCEPT(Dropout, {"probability", REFUSED_SETTING("the results jump where it changes")}) {
  const Value *src = node->inputs[0];
  Node *again = gradient_node(g, OP_Dropout, NULL);
  if (!again) return;
  node_set_input(again, 0, diff);
  for (uint32_t i = 1; i < node->ninputs; i++) node_set_input(again, i, gradient_saved(g, node->inputs[i]));
  gradient_give(g, node, 0, gradient_output(g, again, 0, src->type, &src->shape));
}
