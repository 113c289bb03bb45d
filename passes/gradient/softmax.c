// Gradients of softmax and its logarithm, from their outputs.
#include "passes/gradient/gradient.h"

static void make_from_dst(Gradient *g, const Node *node, Value *diff, OperatorId id) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  const Type type = dst->type == TYPE_F32 ? TYPE_F32 : src->type; // f32, or the type of dst's gradient
  gradient_give(g, node, 0, gradient_apply(g, id, node, type, &src->shape, diff, gradient_saved(g, dst), NULL));
}

RULE(SoftMax, make_from_dst(g, node, diff, OP_SoftMaxBackward))
RULE(LogSoftmax, make_from_dst(g, node, diff, OP_LogSoftmaxBackward))

NO_GRADIENT(SoftMaxBackward, SECOND_ORDER)
NO_GRADIENT(LogSoftmaxBackward, SECOND_ORDER)
