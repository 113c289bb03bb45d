// Inference of dropout.
#include "ir/operators/rules.h"

bool infer_dropout(Inference *inf, Node *node) {
  for (uint32_t i = 1; i < node->ninputs; i++)
    if (!infer_rank(inf, node->inputs[i], 0)) return false;
  return infer_same_shape(inf, node->inputs[0], node->outputs[0]) &&
         infer_same_shape(inf, node->inputs[0], node->outputs[1]);
}
