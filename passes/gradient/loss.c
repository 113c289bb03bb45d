// Gradients of losses. Labels and weights have none.
#include "ir/operators/loss.h"

#include "passes/gradient/gradient.h"

#define BINARY(op, a, b) gradient_binary(g, OP_##op, a, b)

// The sum of the labels' weights, which is recomputed if the forward node does not output it.
static Value *total_of(Gradient *g, const Node *node) {
  if (node->outputs[1]) return gradient_saved(g, node->outputs[1]);
  const Value *loss = node->outputs[0];
  const Shape scalar = {.rank = 0};
  Node *again = gradient_node(g, OP_SoftmaxCrossEntropy, node);
  if (!again) return NULL;
  for (uint32_t i = 0; i < 3; i++)
    if (node->inputs[i]) node_set_input(again, i, gradient_saved(g, node->inputs[i]));
  gradient_output(g, again, 0, loss->type, &loss->shape);
  return gradient_output(g, again, 1, loss->type, &scalar);
}

GRADIENT(SoftmaxCrossEntropy) {
  const Value *src = node->inputs[0], *weights = node->inputs[2];
  const bool is_weighted = weights || node_attribute(node, "ignore_index")->is_set;
  Node *backward = gradient_node(g, OP_SoftmaxCrossEntropyBackward, node);
  if (!backward) return;
  node_set_input(backward, 0, gradient_saved(g, src));
  node_set_input(backward, 1, diff);
  node_set_input(backward, 2, gradient_saved(g, node->inputs[1]));
  if (weights) node_set_input(backward, 4, gradient_saved(g, weights));
  if (is_weighted && node_s64(node, "reduction") == LOSS_MEAN) node_set_input(backward, 3, total_of(g, node));
  gradient_give(g, src, gradient_output(g, backward, 0, src->type, &src->shape));
}

// The gradient of each element's loss.
static Value *diff_of_losses(Gradient *g, const Node *node, Value *diff) {
  const Value *src = node->inputs[0];
  const uint32_t all = (1U << src->shape.rank) - 1;
  if (node_s64(node, "reduction") != LOSS_MEAN) return diff;
  Value *ones = gradient_filled(g, src->type, &src->shape, 1);
  return BINARY(Divide, diff, gradient_reduced(g, OP_ReduceSum, ones, all, false));
}

GRADIENT(MeanSquaredError) {
  Value *src = gradient_widened(g, gradient_saved(g, node->inputs[0]));
  Value *error = BINARY(Subtract, src, gradient_widened(g, gradient_saved(g, node->inputs[1])));
  Value *slope = BINARY(Multiply, gradient_scaled(g, error, 2), diff_of_losses(g, node, diff));
  gradient_give(g, node->inputs[0], slope);
  if (gradient_is_wanted(g, node->inputs[1])) gradient_give(g, node->inputs[1], gradient_scaled(g, slope, -1));
}

// Derivative by src: sigmoid(src) - target; by target: -src.
GRADIENT(BinaryCrossEntropy) {
  Value *src = gradient_widened(g, gradient_saved(g, node->inputs[0])), *own = diff_of_losses(g, node, diff);
  Value *target = gradient_widened(g, gradient_saved(g, node->inputs[1]));
  Value *error = BINARY(Subtract, gradient_unary(g, OP_Sigmoid, src), target);
  gradient_give(g, node->inputs[0], BINARY(Multiply, error, own));
  if (gradient_is_wanted(g, node->inputs[1]))
    gradient_give(g, node->inputs[1], BINARY(Multiply, gradient_scaled(g, src, -1), own));
}

NO_GRADIENT(SoftmaxCrossEntropyBackward, SECOND_ORDER)
