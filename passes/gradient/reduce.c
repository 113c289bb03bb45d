// Gradients of reductions: the gradient of the result, broadcast to src's shape, times the derivative with respect to
// each element.
#include "ir/operators/reduce.h"

#include "passes/gradient/gradient.h"

#include <math.h>

#define BINARY(op, a, b) gradient_binary(g, OP_##op, a, b)
#define SRC gradient_saved(g, node->inputs[0])
#define DST gradient_saved(g, node->outputs[0])
#define GIVE(gradient) gradient_give(g, node, 0, gradient)

static const Shape *src_shape(const Node *node) {
  return &node->inputs[0]->shape;
}

// A splat constant of src's shape.
static Value *filled(Gradient *g, const Node *node, double number) {
  return gradient_filled(g, node->inputs[0]->type, src_shape(node), number);
}

// Reshapes v, which has dst's shape, so that it broadcasts to src: the reduced axes get extent 1.
static Value *broadcastable(Gradient *g, const Node *node, Value *v) {
  uint32_t axes = reduce_axes(node);
  bool is_aligned = (axes & (axes + 1)) == 0; // only leading axes are missing
  if (node_bool(node, "keep_dims") || is_aligned) return v;
  Shape shape = *src_shape(node);
  for (int i = 0; i < shape.rank; i++)
    if (axes >> i & 1) shape.extent[i] = EXTENT(1);
  return gradient_reshaped(g, v, &shape);
}

// Broadcasts v, which has dst's shape, to src's shape.
static Value *broadcast_to_src(Gradient *g, const Node *node, Value *v) {
  return BINARY(Multiply, broadcastable(g, node, v), filled(g, node, 1));
}

PASSING_RULE(ReduceSum, GIVE(broadcast_to_src(g, node, diff)))

// Divides by the number of elements of each result.
PASSES_ON(ReduceMean) {
  const Value *src = node->inputs[0];
  Value *v = broadcastable(g, node, diff), *count = gradient_count(g, src->type, &src->shape, reduce_axes(node));
  if (!count) return;
  if (count->constant) GIVE(BINARY(Divide, v, filled(g, node, type_load(count->type, count->constant->data, 0))));
  else GIVE(broadcast_to_src(g, node, BINARY(Divide, v, count)));
}

GRADIENT(ReduceL1) {
  const Type type = node->inputs[0]->type;
  Value *src = SRC, *wide = gradient_cast(g, broadcast_to_src(g, node, diff), type);
  GIVE(gradient_apply(g, OP_AbsBackward, NULL, type, src_shape(node), src, wide, NULL));
}

// diff_src = diff_dst * (src / dst); the quotient is in [-1, 1]. At dst = 0 the norm has no derivative, and 0 is a
// subgradient: src / infinity, whose derivatives are 0, too.
GRADIENT(ReduceL2) {
  Value *norm = gradient_widened(g, DST), *zero = gradient_number(g, node->outputs[0]->type, 0);
  Value *infinite = gradient_filled(g, node->outputs[0]->type, &node->outputs[0]->shape, (double)INFINITY);
  Value *divisor = gradient_select(g, BINARY(GreaterEqual, zero, norm), infinite, norm);
  Value *quotient = BINARY(Divide, SRC, broadcastable(g, node, divisor));
  GIVE(BINARY(Multiply, broadcastable(g, node, diff), quotient));
}

// The gradient is divided equally among the elements that equal the result. The result is computed from src again: a
// saved one was rounded, and src, if the backward graph computes it, was not, or was computed by another program.
static void give_to_chosen(Gradient *g, const Node *node, Value *diff, bool is_max) {
  Value *src = SRC, *zeros = filled(g, node, 0);
  Value *dst = broadcastable(
      g, node,
      gradient_reduced(g, is_max ? OP_ReduceMax : OP_ReduceMin, src, reduce_axes(node), node_bool(node, "keep_dims")));
  Value *is_chosen = is_max ? BINARY(GreaterEqual, src, dst) : BINARY(GreaterEqual, dst, src);
  Value *chosen = gradient_select(g, is_chosen, filled(g, node, 1), zeros);
  Value *count = gradient_reduced(g, OP_ReduceSum, chosen, reduce_axes(node), true);
  GIVE(gradient_select(g, is_chosen, BINARY(Divide, broadcastable(g, node, diff), count), zeros));
}

RULE(ReduceMax, give_to_chosen(g, node, diff, true))
RULE(ReduceMin, give_to_chosen(g, node, diff, false))

// The product of the zeros besides an element: 1 if there are none. More than one are 0, to be differentiated: they
// enter the second derivatives if they are one, and the third if they are two.
static Value *zeros_besides(Gradient *g, const Node *node, Value *src, Value *is_zero) {
  const uint32_t axes = reduce_axes(node);
  Value *none = gradient_filled(g, TYPE_F64, src_shape(node), 0),
        *ones = gradient_filled(g, TYPE_F64, src_shape(node), 1);
  Value *own = gradient_select(g, is_zero, ones, none), *zero = gradient_select(g, is_zero, src, none);
  Value *square = BINARY(Multiply, zero, zero);
  Value *count = BINARY(Subtract, gradient_reduced(g, OP_ReduceSum, own, axes, true), own);
  Value *sum = BINARY(Subtract, gradient_reduced(g, OP_ReduceSum, zero, axes, true), zero);
  Value *squares = BINARY(Subtract, gradient_reduced(g, OP_ReduceSum, square, axes, true), square);
  Value *pairs = gradient_scaled(g, BINARY(Subtract, BINARY(Multiply, sum, sum), squares), 0.5);
  Value *many = gradient_select(g, BINARY(GreaterEqual, gradient_number(g, TYPE_F64, 2), count), pairs, none);
  Value *some = gradient_select(g, BINARY(GreaterEqual, gradient_number(g, TYPE_F64, 1), count), sum, many);
  return gradient_select(g, BINARY(GreaterEqual, gradient_number(g, TYPE_F64, 0), count), ones, some);
}

// The derivative is the product of the other elements: that of the zeros, times the product of all nonzero elements,
// divided by the element itself unless it is 0. This product may overflow the type where the derivative does not, so it
// is f64.
GRADIENT(ReduceProd) {
  Value *src = gradient_cast(g, SRC, TYPE_F64), *zero = gradient_number(g, TYPE_F64, 0);
  Value *ones = gradient_filled(g, TYPE_F64, src_shape(node), 1);
  Value *is_zero = BINARY(GreaterEqual, zero, gradient_unary(g, OP_Abs, src));
  Value *others = gradient_select(g, is_zero, ones, src);
  Value *product = gradient_reduced(g, OP_ReduceProd, others, reduce_axes(node), true);
  Value *slope = BINARY(Multiply, BINARY(Divide, product, others), zeros_besides(g, node, src, is_zero));
  GIVE(BINARY(Multiply, gradient_cast(g, broadcastable(g, node, diff), TYPE_F64), slope));
}

#define NOT_CONTINUOUS ZERO("the results are indices")
NO_GRADIENT(ArgMax, NOT_CONTINUOUS)
NO_GRADIENT(ArgMin, NOT_CONTINUOUS)
