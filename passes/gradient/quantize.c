// Gradients of quantisation: only scales that are inputs of a dequantisation have one that is not 0.
#include "ir/operators/quantize.h"

#include "ir/operators/movement.h"
#include "passes/gradient/gradient.h"

enum { SCALES = 1 };

NO_GRADIENT(Quantize, ZERO_STEPS("the result is rounded"))
NO_GRADIENT(Dequantize, ZERO("src is quantised"))
NO_GRADIENT(DynamicQuantize, ZERO_STEPS("the result is rounded"))

// Splits each axis that several indices share a scale on into [scales, indices of a scale], and sums over the latter.
static Value *sum_of_groups(Gradient *g, const Node *node, Value *v) {
  const int64_t *groups = node_attribute(node, "group_shape")->list.items;
  const Shape *scales = &node->inputs[SCALES]->shape;
  for (int i = 0; i < scales->rank && v; i++) {
    Shape cut = v->shape;
    if (groups[i] == 1) continue;
    if (cut.rank == MAX_RANK) {
      gradient_refuse(g, node, "expected fewer than 8 axes with groups");
      return NULL;
    }
    for (int k = cut.rank++; k > i + 1; k--) cut.extent[k] = cut.extent[k - 1];
    cut.extent[i] = scales->extent[i];
    cut.extent[i + 1] = EXTENT(groups[i]);
    v = gradient_reduced(g, OP_ReduceSum, gradient_reshaped(g, v, &cut), 1U << (i + 1), false);
  }
  return v;
}

// The gradient by scales is diff times src - zps, which DynamicDequantize computes with scales of 1, summed over the
// elements of each scale.
GRADIENT(DynamicDequantize) {
  const Value *src = node->inputs[0], *scales = node->inputs[SCALES], *zps = node->inputs[2];
  const uint32_t all = (1U << src->shape.rank) - 1;
  diff = gradient_widened(g, diff);
  if (!diff) return;
  Value *ones = gradient_filled(g, diff->type, &scales->shape, 1);
  Value *numbers = gradient_apply(g, OP_DynamicDequantize, node, diff->type, &src->shape, gradient_saved(g, src), ones,
                                  zps ? gradient_saved(g, zps) : NULL);
  Value *slope = gradient_binary(g, OP_Multiply, diff, numbers);
  if (node_s64(node, "qtype") == QUANTIZE_PER_GROUP) {
    gradient_give(g, node, SCALES, sum_of_groups(g, node, slope));
    return;
  }
  const bool is_single = extent_equals(scales->shape.extent[0], EXTENT(1));
  const int axis = is_single ? 0 : axis_of(node, src->shape.rank);
  if (!is_single && !extent_equals(scales->shape.extent[0], src->shape.extent[axis])) {
    gradient_refuse(g, node, "expected as many scales as indices along the axis");
    return;
  }
  const uint32_t reduced = is_single ? all : all & ~(1U << axis);
  gradient_give(g, node, SCALES,
                gradient_reshaped(g, gradient_reduced(g, OP_ReduceSum, slope, reduced, false), &scales->shape));
}
