// Gradients of the reductions: what arrives at a result goes to each of the elements it was made of, by its share.
#include "ir/operators/reduce.h"

#include "passes/gradient/gradient.h"

#define BINARY(op, a, b) gradient_binary(g, OP_##op, a, b)
#define SRC gradient_saved(g, node->inputs[0])
#define DST gradient_saved(g, node->outputs[0])
#define GIVE(gradient) gradient_give(g, node->inputs[0], gradient)

static const Shape *src_shape(const Node *node) {
  return &node->inputs[0]->shape;
}

// A number for each element of src.
static Value *filled(Gradient *g, const Node *node, double number) {
  return gradient_filled(g, node->inputs[0]->type, src_shape(node), number);
}

// Something like dst so that it is broadcast along the axes that were reduced.
static Value *kept(Gradient *g, const Node *node, Value *v) {
  uint32_t axes = reduce_axes(node);
  bool is_aligned = (axes & (axes + 1)) == 0; // only axes in front are missing
  if (node_bool(node, "keep_dims") || is_aligned) return v;
  Shape shape = *src_shape(node);
  for (int i = 0; i < shape.rank; i++)
    if (axes >> i & 1) shape.extent[i] = EXTENT(1);
  return gradient_reshaped(g, v, &shape);
}

// For each element of src, and with src's shape even where it is only one number.
static Value *spread(Gradient *g, const Node *node, Value *v) {
  return BINARY(Multiply, kept(g, node, v), filled(g, node, 1));
}

GRADIENT(ReduceSum) {
  GIVE(spread(g, node, diff));
}

// By the number of elements that each result has, which named extents make known later.
GRADIENT(ReduceMean) {
  uint32_t axes = reduce_axes(node);
  const Shape *shape = src_shape(node);
  double count = 1;
  bool is_known = true;
  for (int i = 0; i < shape->rank; i++) {
    if (!(axes >> i & 1)) continue;
    is_known &= extent_is_literal(shape->extent[i]);
    count *= (double)extent_value(shape->extent[i]);
  }
  if (is_known) {
    GIVE(BINARY(Divide, kept(g, node, diff), filled(g, node, count)));
  } else {
    Value *counted = gradient_reduced(g, OP_ReduceSum, filled(g, node, 1), axes, true);
    GIVE(spread(g, node, BINARY(Divide, kept(g, node, diff), counted)));
  }
}

GRADIENT(ReduceL1) {
  Node *backward = gradient_node(g, OP_AbsBackward, NULL);
  if (!backward) return;
  const Value *src = node->inputs[0];
  node_set_input(backward, 0, SRC);
  node_set_input(backward, 1, gradient_cast(g, spread(g, node, diff), src->type));
  GIVE(gradient_output(g, backward, 0, src->type, &src->shape));
}

// At zero, where every slope up to 1 would do, it is 0.
GRADIENT(ReduceL2) {
  Value *norm = gradient_widened(g, DST);
  Value *is_zero = BINARY(GreaterEqual, gradient_number(g, node->outputs[0]->type, 0), norm);
  Value *zeros = gradient_filled(g, node->outputs[0]->type, &node->outputs[0]->shape, 0);
  Value *share = gradient_select(g, is_zero, zeros, BINARY(Divide, diff, norm));
  GIVE(BINARY(Multiply, kept(g, node, share), SRC));
}

// The elements that are alike and greatest, or least, have equal shares.
static void give_to_chosen(Gradient *g, const Node *node, Value *diff, bool is_max) {
  Value *src = SRC, *dst = kept(g, node, DST), *zeros = filled(g, node, 0);
  Value *is_chosen = is_max ? BINARY(GreaterEqual, src, dst) : BINARY(GreaterEqual, dst, src);
  Value *chosen = gradient_select(g, is_chosen, filled(g, node, 1), zeros);
  Value *count = gradient_reduced(g, OP_ReduceSum, chosen, reduce_axes(node), true);
  GIVE(gradient_select(g, is_chosen, BINARY(Divide, kept(g, node, diff), count), zeros));
}

GRADIENT(ReduceMax) {
  give_to_chosen(g, node, diff, true);
}

GRADIENT(ReduceMin) {
  give_to_chosen(g, node, diff, false);
}

// The product of all others: with zeros left out, and nothing where another element is zero.
GRADIENT(ReduceProd) {
  Value *src = gradient_widened(g, SRC), *zeros = filled(g, node, 0), *ones = filled(g, node, 1);
  Value *zero = gradient_number(g, node->inputs[0]->type, 0);
  Value *is_zero = BINARY(GreaterEqual, zero, gradient_unary(g, OP_Abs, src));
  Value *others = gradient_select(g, is_zero, ones, src);
  Value *product = gradient_reduced(g, OP_ReduceProd, others, reduce_axes(node), true);
  Value *own = gradient_select(g, is_zero, ones, zeros);
  Value *all = gradient_reduced(g, OP_ReduceSum, own, reduce_axes(node), true);
  Value *is_alone = BINARY(GreaterEqual, zero, BINARY(Subtract, all, own));
  Value *slope = gradient_select(g, is_alone, BINARY(Divide, product, others), zeros);
  GIVE(BINARY(Multiply, kept(g, node, diff), slope));
}
