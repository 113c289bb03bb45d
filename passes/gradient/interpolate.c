// The gradient of resampling.
#include "ir/operators/interpolate.h"

#include "passes/gradient/gradient.h"

PASSES_ON(Interpolate) {
  const Value *src = node->inputs[0];
  Value *x = gradient_saved(g, src);
  gradient_give(g, node, 0, gradient_apply(g, OP_InterpolateBackward, node, src->type, &src->shape, x, diff, NULL));
}

// The attributes that give Interpolate's extents; with a named extent the output declares them.
static void set_sizes(Gradient *g, Node *node, const Shape *shape) {
  int64_t sizes[MAX_RANK];
  const int first = spatial_axis(node), count = shape->rank - 2;
  for (int i = 0; i < count; i++) {
    if (!extent_is_literal(shape->extent[first + i])) return;
    sizes[i] = shape->extent[first + i].value;
  }
  *node_attribute_slot(node, "scales") = (AttributeValue){.is_set = false};
  gradient_set_list(g, node, "sizes", sizes, (size_t)count);
  node_set_defaults(node);
}

GRADIENT_WITH(InterpolateBackward, .passes_on = true, .exceptions = {{"src", ZERO("only its shape matters")}}) {
  const Value *diff_dst = node->inputs[1];
  Value *own = gradient_apply(g, OP_Interpolate, node, diff_dst->type, &diff_dst->shape, diff, NULL, NULL);
  if (own) set_sizes(g, own->producer, &diff_dst->shape);
  gradient_give(g, node, 1, own);
}
