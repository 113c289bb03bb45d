// Gradients of pooling. Average pooling is linear, so the gradient of its gradient is average pooling.
#include "passes/gradient/gradient.h"

#include "ir/operators/pool.h"

GRADIENT(MaxPool) {
  const Value *src = node->inputs[0];
  Value *x = gradient_saved(g, src);
  gradient_give(g, node, 0, gradient_apply(g, OP_MaxPoolBackward, node, src->type, &src->shape, x, diff, NULL));
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
  Value *diff_src = gradient_apply(g, OP_AvgPoolBackward, node, src->type, &src->shape, diff, NULL, NULL);
  if (diff_src) set_src_shape(g, diff_src->producer, &src->shape);
  gradient_give(g, node, 0, diff_src);
}

GRADIENT(AvgPoolBackward) {
  const Value *diff_dst = node->inputs[0];
  int64_t rounding;
  if (!pool_rounding(node, &rounding)) {
    gradient_refuse(g, node, "no rounding_type of AvgPool gives its windows, as one axis needs floor and another ceil");
    return;
  }
  Value *own = gradient_apply(g, OP_AvgPool, node, diff_dst->type, &diff_dst->shape, diff, NULL, NULL);
  if (own) node_attribute_slot(own->producer, "rounding_type")->s64 = rounding;
  gradient_give(g, node, 0, own);
}

#define GATHERS "it would gather elements at the places of src's maxima, which no operator does"
const GradientRule gradient_MaxPoolBackward = {.of_all = REFUSED(GATHERS),
                                               .exceptions = {{"src", ZERO("second derivatives of MaxPool are 0")}}};
NO_GRADIENT(MaxPoolWinners, ZERO("the results are numbers of taps"))
NO_GRADIENT(MaxPoolScatter, REFUSED(GATHERS))
