// Gradients of softmax and its logarithm, from their outputs.
#include "passes/gradient/gradient.h"

static void make_from_dst(Gradient *g, const Node *node, Value *diff, OperatorId id) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  Node *backward = gradient_node(g, id, node);
  if (!backward) return;
  node_set_input(backward, 0, diff);
  node_set_input(backward, 1, gradient_saved(g, dst));
  // The backward operators' result is f32 or has the type of dst's gradient.
  gradient_give(g, src, gradient_output(g, backward, 0, dst->type == TYPE_F32 ? TYPE_F32 : src->type, &src->shape));
}

GRADIENT(SoftMax) {
  make_from_dst(g, node, diff, OP_SoftMaxBackward);
}

GRADIENT(LogSoftmax) {
  make_from_dst(g, node, diff, OP_LogSoftmaxBackward);
}

NO_GRADIENT(SoftMaxBackward, SECOND_ORDER)
NO_GRADIENT(LogSoftmaxBackward, SECOND_ORDER)
