// Lowering of products and convolutions: sums, over the axes that the operands share and the result lacks, of products.
#include "ir/operators/contraction.h"

#include "passes/lower/lower.h"

#include <stdlib.h>

// Not written yet: the first use aborts.
#define PLACEHOLDER(name)                                                                                              \
  void lower_##name(Lowering *l, const Node *node);                                                                    \
  void lower_##name(Lowering *l, const Node *node) {                                                                   \
    (void)l;                                                                                                           \
    (void)node;                                                                                                        \
    abort();                                                                                                           \
  }

PLACEHOLDER(Convolution)
PLACEHOLDER(ConvolutionBackwardData)
PLACEHOLDER(ConvolutionBackwardWeights)
PLACEHOLDER(ConvTranspose)
PLACEHOLDER(ConvTransposeBackwardData)
PLACEHOLDER(ConvTransposeBackwardWeights)

// Products

static ExprId load_matrix(Lowering *l, const Product *p, const Value *v, int row, int on_row, int depth) {
  int axis[MAX_RANK];
  for (int i = 0; i < p->nbatch; i++) {
    const int own = product_batch_axis(p, v->shape.rank, i);
    if (own >= 0) axis[own] = i;
  }
  if (row >= 0) axis[row] = on_row;
  axis[depth] = lower_extra_axis(l, 0);
  return lower_bounded_load(l, v, axis, NULL, 0, 0);
}

void lower_MatMul(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const Product p = node_product(node);
  const ExprId a = load_matrix(l, &p, node->inputs[0], p.src_m, p.dst_m, p.src_k);
  const ExprId b = load_matrix(l, &p, node->inputs[1], p.weights_n, p.dst_n, p.weights_k);
  ExprId e = expr_sum(k, expr_binary(k, EXPR_MUL, a, b), 1U << lower_extra_axis(l, 0));
  if (node->inputs[2]) e = expr_binary(k, EXPR_ADD, e, lower_value(l, node->inputs[2]));
  lower_result(l, node, 0, e, NULL);
}
