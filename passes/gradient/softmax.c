// Gradients of softmax and its logarithm, from their outputs.
#include "ir/operators/softmax.h"

#include "passes/gradient/gradient.h"

static void make_from_dst(Gradient *g, const Node *node, Value *diff, OperatorId id) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  const Type type = dst->type == TYPE_F32 ? TYPE_F32 : src->type; // f32, or the type of dst's gradient
  gradient_give(g, node, 0, gradient_apply(g, id, node, type, &src->shape, diff, gradient_saved(g, dst), NULL));
}

// The derivatives of stats, the logarithm of the sum of powers, are dst.
static void make_of_stats(Gradient *g, const Node *node) {
  Value *dst = gradient_widened(g, gradient_saved(g, node->outputs[0]));
  gradient_give(g, node, 0, gradient_binary(g, OP_Multiply, gradient_of_output(g, node, 1), dst));
}

GRADIENT_WITH(SoftMax, .make_of_statistics = make_of_stats) {
  make_from_dst(g, node, diff, OP_SoftMaxBackward);
}

RULE(LogSoftmax, make_from_dst(g, node, diff, OP_LogSoftmaxBackward))

static Value *sum_of(Gradient *g, const Node *node, Value *v) {
  return gradient_reduced(g, OP_ReduceSum, v, 1U << softmax_axis(node), true);
}

// dst * (diff_dst - sum(diff_dst * dst)) is linear and symmetric in diff_dst.
GRADIENT(SoftMaxBackward) {
  Value *diff_dst = gradient_widened(g, gradient_saved(g, node->inputs[0])), *u = gradient_widened(g, diff);
  Value *dst = gradient_widened(g, gradient_saved(g, node->inputs[1]));
  Value *own = sum_of(g, node, gradient_binary(g, OP_Multiply, diff_dst, dst));
  Value *by_sum = gradient_binary(g, OP_Multiply, diff_dst, sum_of(g, node, gradient_binary(g, OP_Multiply, u, dst)));
  Value *by_dst = gradient_binary(g, OP_Multiply, u, gradient_binary(g, OP_Subtract, diff_dst, own));
  gradient_give(g, node, 1, gradient_binary(g, OP_Subtract, by_dst, by_sum));
  if (!dst) return;
  gradient_give(g, node, 0, gradient_apply(g, OP_SoftMaxBackward, node, dst->type, &dst->shape, u, dst, NULL));
}

EXPANSION(LogSoftmaxBackward) {
  Value *diff_dst = gradient_widened(g, gradient_saved(g, node->inputs[0]));
  Value *power = gradient_unary(g, OP_Exp, gradient_widened(g, gradient_saved(g, node->inputs[1])));
  Value *part = gradient_binary(g, OP_Multiply, power, sum_of(g, node, diff_dst));
  results[0] = gradient_binary(g, OP_Subtract, diff_dst, part);
}
