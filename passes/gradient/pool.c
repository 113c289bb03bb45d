// Gradients of pooling. Average pooling is linear, so the gradient of its gradient is average pooling.
#include "ir/operators/pool.h"
#include "ir/operators/interpolate.h"
#include "ir/operators/window.h"

#include "passes/gradient/gradient.h"

PASSES_ON(MaxPool) {
  const Value *src = node->inputs[0];
  Value *x = gradient_saved(g, src);
  gradient_give(g, node, 0, gradient_apply(g, OP_MaxPoolBackward, node, src->type, &src->shape, x, diff, NULL));
}

PASSES_ON(AvgPool) {
  const Value *src = node->inputs[0];
  Value *diff_src = gradient_apply(g, OP_AvgPoolBackward, node, src->type, &src->shape, diff, NULL, NULL);
  if (diff_src) gradient_set_given_shape(g, diff_src->producer, &src->shape);
  gradient_give(g, node, 0, diff_src);
}

// Pads each axis at its end so that floor gives its windows. False after a refusal.
static bool set_ends(Gradient *g, const Node *of, Node *node) {
  const Value *large = node_side(of, SIDE_LARGE), *small = node_side(of, SIDE_SMALL);
  const int first = spatial_axis(of), count = large->shape.rank - 2;
  int64_t begin[MOST_SPATIAL_AXES], end[MOST_SPATIAL_AXES];
  for (int i = 0; i < count; i++) {
    const Window w = node_window(of, i);
    if (!extent_is_literal(large->shape.extent[first + i]) || !extent_is_literal(small->shape.extent[first + i])) {
      gradient_refuse(g, of, "one axis needs rounding_type floor and another ceil: give named extents numbers");
      return false;
    }
    const int64_t missing = (w.small - 1) * w.stride + window_reach(&w) - w.pad_begin - w.large;
    begin[i] = w.pad_begin;
    end[i] = missing > w.pad_end ? missing : w.pad_end;
  }
  node_attribute_slot(node, "auto_pad")->s64 = AUTO_PAD_NONE;
  gradient_set_list(g, node, "pads_begin", begin, (size_t)count);
  gradient_set_list(g, node, "pads_end", end, (size_t)count);
  return true;
}

PASSES_ON(AvgPoolBackward) {
  const Value *diff_dst = node->inputs[0];
  int64_t rounding;
  Value *own = gradient_apply(g, OP_AvgPool, node, diff_dst->type, &diff_dst->shape, diff, NULL, NULL);
  if (!own) return;
  if (pool_rounding(node, &rounding)) node_attribute_slot(own->producer, "rounding_type")->s64 = rounding;
  else if (!set_ends(g, node, own->producer)) return;
  gradient_give(g, node, 0, own);
}

// The winner of each window decides where its element goes: MaxPoolScatter and MaxPoolGather are each other's gradient.

static Value *gathered(Gradient *g, const Node *node, Value *winners, Value *diff) {
  const Value *diff_dst = node->inputs[1];
  return gradient_apply(g, OP_MaxPoolGather, node, diff_dst->type, &diff_dst->shape, winners, diff, NULL);
}

GRADIENT_WITH(MaxPoolBackward, .passes_on = true,
              .exceptions = {{"src", ZERO("second derivatives of MaxPool are 0")}}) {
  Node *winners = gradient_node(g, OP_MaxPoolWinners, node);
  if (!winners) return;
  node_set_input(winners, 0, gradient_saved(g, node->inputs[0]));
  Value *found = gradient_output(g, winners, 0, pool_type_of_winners(node), &node->inputs[1]->shape);
  gradient_give(g, node, 1, gathered(g, node, found, diff));
}

PASSING_RULE(MaxPoolScatter, gradient_give(g, node, 1, gathered(g, node, gradient_saved(g, node->inputs[0]), diff)))

PASSES_ON(MaxPoolGather) {
  const Value *src = node->inputs[1];
  Value *winners = gradient_saved(g, node->inputs[0]);
  gradient_give(g, node, 1, gradient_apply(g, OP_MaxPoolScatter, node, src->type, &src->shape, winners, diff, NULL));
}

NO_GRADIENT(MaxPoolWinners, ZERO("the results are numbers of taps"))
