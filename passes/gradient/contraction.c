// Gradients of products and convolutions. Each is linear in every operand, so gradients are products and convolutions.
#include "ir/operators/contraction.h"

#include "passes/gradient/gradient.h"

enum { MATRIX_AXES = 2 };

// Products

// The operands of a product as matrices: one of rank 1 is [1, K], and diff has an axis of extent 1 in its place.
typedef struct Matrices {
  Value *src, *weights, *diff;
  bool transpose_a, transpose_b; // src is [K, M], weights are [N, K]
} Matrices;

// Adds the product to the gradient of a forward value. It is not rounded to 16 bits if it is to be summed over axes
// along which the value was broadcast.
static void give_product(Gradient *g, const Value *forward, Value *a, bool transpose_a, Value *b, bool transpose_b) {
  Node *node = a && b ? gradient_node(g, OP_MatMul, NULL) : NULL;
  if (!node) return;
  const Product p = product_of_ranks(a->shape.rank, b->shape.rank, transpose_a, transpose_b);
  Shape shape = {.rank = p.nbatch + MATRIX_AXES};
  for (int i = 0; i < p.nbatch; i++) {
    const int axis_a = product_batch_axis(&p, a->shape.rank, i), axis_b = product_batch_axis(&p, b->shape.rank, i);
    const bool is_of_a = axis_b < 0 || (axis_a >= 0 && !extent_equals(a->shape.extent[axis_a], EXTENT(1)));
    shape.extent[i] = is_of_a ? a->shape.extent[axis_a] : b->shape.extent[axis_b];
  }
  shape.extent[p.dst_m] = a->shape.extent[p.src_m];
  shape.extent[p.dst_n] = b->shape.extent[p.weights_n];
  node_set_input(node, 0, a);
  node_set_input(node, 1, b);
  gradient_attribute(node, "transpose_a")->boolean = transpose_a;
  gradient_attribute(node, "transpose_b")->boolean = transpose_b;
  const bool is_whole = shape_equals(&shape, &forward->shape) || a->type == TYPE_F64;
  gradient_give(g, forward, gradient_output(g, node, 0, is_whole ? a->type : TYPE_F32, &shape));
}

// Inserts an axis of extent 1.
static Value *with_axis(Gradient *g, Value *v, int axis) {
  if (!v) return NULL;
  Shape shape = {.rank = v->shape.rank + 1};
  for (int i = 0; i < shape.rank; i++) shape.extent[i] = i == axis ? EXTENT(1) : v->shape.extent[i < axis ? i : i - 1];
  return gradient_reshaped(g, v, &shape);
}

static Value *operand(Gradient *g, const Value *forward, Type type) {
  Value *v = gradient_cast(g, gradient_saved(g, forward), type);
  return v && v->shape.rank < MATRIX_AXES ? with_axis(g, v, 0) : v;
}

static Matrices matrices_of(Gradient *g, const Node *node, Value *diff) {
  const Product p = node_product(node);
  // The operands of a product must have one type. Of src's and diff's it is the wider one.
  const Type type = node->inputs[0]->type == TYPE_F64 ? TYPE_F64 : diff->type;
  Matrices m = {.src = operand(g, node->inputs[0], type),
                .weights = operand(g, node->inputs[1], type),
                .diff = gradient_cast(g, diff, type),
                .transpose_a = p.src_m >= 0 && node_bool(node, "transpose_a"),
                .transpose_b = p.weights_n < 0 || node_bool(node, "transpose_b")};
  if (p.dst_n < 0) m.diff = with_axis(g, m.diff, m.diff->shape.rank);
  if (p.dst_m < 0) m.diff = with_axis(g, m.diff, p.nbatch);
  return m;
}

// Joins all axes but the last.
static Value *flattened(Gradient *g, Value *v) {
  if (!v) return NULL;
  Shape shape = {.rank = MATRIX_AXES, .extent = {EXTENT(1), v->shape.extent[v->shape.rank - 1]}};
  for (int i = 0; i < v->shape.rank - 1; i++) {
    const Extent e = v->shape.extent[i], product = shape.extent[0];
    shape.extent[0] =
        extent_is_literal(e) && extent_is_literal(product) ? EXTENT(product.value * e.value) : EXTENT_UNKNOWN;
  }
  return gradient_reshaped(g, v, &shape);
}

// Whether the rows of all batches can be joined, so that no gradient of weights is made for each of them.
static bool joins_batches(const Matrices *m) {
  const Shape *src = &m->src->shape, *diff = &m->diff->shape;
  return src->rank > MATRIX_AXES && m->weights->shape.rank == MATRIX_AXES && !m->transpose_a &&
         extent_is_literal(src->extent[src->rank - 1]) && extent_is_literal(diff->extent[diff->rank - 1]);
}

GRADIENT(MatMul) {
  const Value *src = node->inputs[0], *weights = node->inputs[1], *bias = node->inputs[2];
  if (bias) gradient_give(g, bias, diff);
  Matrices m = matrices_of(g, node, diff);
  if (!m.src || !m.weights || !m.diff) return;
  if (gradient_is_wanted(g, src)) {
    if (m.transpose_a) give_product(g, src, m.weights, m.transpose_b, m.diff, true);
    else give_product(g, src, m.diff, false, m.weights, !m.transpose_b);
  }
  if (!gradient_is_wanted(g, weights)) return;
  if (joins_batches(&m)) {
    m.src = flattened(g, m.src);
    m.diff = flattened(g, m.diff);
  }
  if (m.transpose_b) give_product(g, weights, m.diff, true, m.src, m.transpose_a);
  else give_product(g, weights, m.src, !m.transpose_a, m.diff, false);
}
