// Gradients of pooling. Average pooling is linear, so the gradient of its gradient is average pooling.
#include "passes/gradient/gradient.h"

#include "ir/operators/pool.h"
#include "ir/operators/window.h"

GRADIENT(MaxPool) {
  const Value *src = node->inputs[0];
  Node *backward = gradient_node(g, OP_MaxPoolBackward, node);
  if (!backward) return;
  node_set_input(backward, 0, gradient_saved(g, src));
  node_set_input(backward, 1, diff);
  gradient_give(g, src, gradient_output(g, backward, 0, src->type, &src->shape));
}

// src_shape is a list of numbers. With a named extent it stays unset, and diff_src's declared shape gives the extents.
static void set_src_shape(Gradient *g, Node *node, const Shape *shape) {
  int64_t items[MAX_RANK];
  for (int i = 0; i < shape->rank; i++) {
    if (!extent_is_literal(shape->extent[i])) return;
    items[i] = shape->extent[i].value;
  }
  gradient_set_list(g, node, "src_shape", items, (size_t)shape->rank);
}

GRADIENT(AvgPool) {
  const Value *src = node->inputs[0];
  Node *backward = gradient_node(g, OP_AvgPoolBackward, node);
  if (!backward) return;
  node_set_input(backward, 0, diff);
  set_src_shape(g, backward, &src->shape);
  gradient_give(g, src, gradient_output(g, backward, 0, src->type, &src->shape));
}

GRADIENT(AvgPoolBackward) {
  const Value *diff_dst = node->inputs[0];
  int64_t rounding;
  if (!pool_rounding(node, &rounding)) {
    gradient_refuse(g, node, "no rounding_type of AvgPool gives its windows, as one axis needs floor and another ceil");
    return;
  }
  Node *forward = gradient_node(g, OP_AvgPool, node);
  if (!forward) return;
  node_set_input(forward, 0, diff);
  gradient_attribute(forward, "rounding_type")->s64 = rounding;
  gradient_give(g, diff_dst, gradient_output(g, forward, 0, diff_dst->type, &diff_dst->shape));
}

NO_GRADIENT(MaxPoolBackward, "its gradient for diff_dst would gather elements at the places of src's maxima, which no "
                             "operator does, and second derivatives of MaxPool for src are 0")

NO_GRADIENT(MaxPoolWinners, "its results are numbers of taps, which do not vary with src")
NO_GRADIENT(MaxPoolScatter, "its gradient for diff_dst would gather elements at the places of src's maxima, which no "
                            "operator does")
