// Gradient of dropout. The same seed and offset drop the same elements of the gradient, so no mask is saved.
#include "passes/gradient/gradient.h"

// Whether a node other than a dropout uses the probability: its gradient would then lack the dropouts' part.
static bool has_other_uses(const Value *probability) {
  bool has = false;
  for (const Use *use = probability->uses; use; use = use->next)
    has |= use->node->op->id != OP_Dropout || use->slot != 3;
  return has;
}

GRADIENT(Dropout) {
  const Value *src = node->inputs[0], *probability = node->inputs[3];
  if (gradient_is_wanted(g, probability) && (probability->producer || has_other_uses(probability))) {
    gradient_refuse(
        g, node,
        "its probability depends on an input whose gradient is wanted, and its results are not "
        "continuous in the probability: leave the input out of the request, or make the probability an input");
    return;
  }
  Node *again = gradient_node(g, OP_Dropout, NULL);
  if (!again) return;
  node_set_input(again, 0, diff);
  for (uint32_t i = 1; i < node->ninputs; i++) node_set_input(again, i, gradient_saved(g, node->inputs[i]));
  gradient_give(g, src, gradient_output(g, again, 0, src->type, &src->shape));
}
