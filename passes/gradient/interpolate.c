// The gradient of resampling.
#include "passes/gradient/gradient.h"

GRADIENT(Interpolate) {
  const Value *src = node->inputs[0];
  Value *x = gradient_saved(g, src);
  gradient_give(g, node, 0, gradient_apply(g, OP_InterpolateBackward, node, src->type, &src->shape, x, diff, NULL));
}

NO_GRADIENT(InterpolateBackward, SECOND_ORDER)
