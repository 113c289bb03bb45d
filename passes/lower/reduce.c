// Lowering of the reductions.
#include "ir/reduce.h"

#include "passes/lower/lower.h"

typedef struct Reduction {
  Kernel *k;
  AxisSet reduced;    // of the kernel's axes
  int axis[MAX_RANK]; // of the result's axes in the domain
  double count;       // elements that one of the result's stands for
} Reduction;

static Reduction reduction_begin(const Lowering *l, const Node *node) {
  Reduction r = {.k = l->kernel, .reduced = lower_axes(l, reduce_axes(node))};
  bool keeps = node_bool(node, "keep_dims");
  for (int axis = 0, on = 0; axis < l->domain.rank; axis++)
    if (keeps || !(reduce_axes(node) >> axis & 1)) r.axis[on++] = axis;
  r.count = (double)axes_nelems(l->kernel, r.reduced);
  return r;
}

static ExprId sum_of(const Reduction *r, ExprId e) {
  return expr_sum(r->k, e, r->reduced);
}

void lower_ReduceSum(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  lower_result(l, node, 0, sum_of(&r, lower_value(l, node->inputs[0])), r.axis);
}

void lower_ReduceMean(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId sum = sum_of(&r, lower_value(l, node->inputs[0])), count = expr_constant(r.k, r.count);
  lower_result(l, node, 0, expr_binary(r.k, EXPR_DIV, sum, count), r.axis);
}

void lower_ReduceL1(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  lower_result(l, node, 0, sum_of(&r, expr_unary(r.k, EXPR_ABS, lower_value(l, node->inputs[0]))), r.axis);
}

// Of one element it is |x|, which squaring would lose where it is tiny or huge.
void lower_ReduceL2(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId x = lower_value(l, node->inputs[0]), norm = expr_unary(r.k, EXPR_ABS, x);
  if (r.count != 1) norm = expr_unary(r.k, EXPR_SQRT, sum_of(&r, expr_binary(r.k, EXPR_MUL, x, x)));
  lower_result(l, node, 0, norm, r.axis);
}

void lower_ReduceMax(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId max = expr_reduce(r.k, EXPR_REDUCE_MAXIMUM, lower_value(l, node->inputs[0]), r.reduced);
  if (r.count == 0) max = expr_constant(r.k, -type_greatest(node->outputs[0]->type));
  lower_result(l, node, 0, max, r.axis);
}

void lower_ReduceMin(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId minus = expr_unary(r.k, EXPR_NEG, lower_value(l, node->inputs[0]));
  ExprId min = expr_unary(r.k, EXPR_NEG, expr_reduce(r.k, EXPR_REDUCE_MAXIMUM, minus, r.reduced));
  if (r.count == 0) min = expr_constant(r.k, type_greatest(node->outputs[0]->type));
  lower_result(l, node, 0, min, r.axis);
}

void lower_ReduceProd(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId product = expr_reduce(r.k, EXPR_REDUCE_PRODUCT, lower_value(l, node->inputs[0]), r.reduced);
  lower_result(l, node, 0, product, r.axis);
}
