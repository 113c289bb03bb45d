// Lowering of the reductions.
#include "ir/reduce.h"

#include "passes/lower/lower.h"

typedef struct Reduction {
  Kernel *k;
  AxisSet reduced;    // of the kernel's axes
  int axis[MAX_RANK]; // of the result's axes in the domain
  int64_t count;      // elements that one of the result's stands for
  Powers powers;      // of their number
} Reduction;

static Reduction reduction_begin(const Lowering *l, const Node *node) {
  Reduction r = {.k = l->kernel, .reduced = lower_axes(l, reduce_axes(node))};
  bool keeps = node_bool(node, "keep_dims");
  for (int axis = 0, on = 0; axis < l->domain.rank; axis++)
    if (keeps || !(reduce_axes(node) >> axis & 1)) r.axis[on++] = axis;
  r.count = axes_nelems(l->kernel, r.reduced);
  r.powers = axes_powers(l->kernel, r.reduced);
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
  ExprId sum = sum_of(&r, lower_value(l, node->inputs[0])), count = expr_count(r.k, r.count, r.powers);
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

// `e`, but a number where there is nothing to reduce.
static ExprId unless_empty(const Reduction *r, ExprId e, double number) {
  if (r->count == 0) return expr_constant(r->k, number);
  if (!r->powers) return e;
  ExprId is_empty = expr_binary(r->k, EXPR_EQ, expr_count(r->k, r->count, r->powers), expr_constant(r->k, 0));
  return expr_select(r->k, is_empty, expr_constant(r->k, number), e);
}

void lower_ReduceMax(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId max = expr_reduce(r.k, EXPR_REDUCE_MAXIMUM, lower_value(l, node->inputs[0]), r.reduced);
  max = unless_empty(&r, max, -type_greatest(node->outputs[0]->type));
  lower_result(l, node, 0, max, r.axis);
}

void lower_ReduceMin(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId minus = expr_unary(r.k, EXPR_NEG, lower_value(l, node->inputs[0]));
  ExprId min = expr_unary(r.k, EXPR_NEG, expr_reduce(r.k, EXPR_REDUCE_MAXIMUM, minus, r.reduced));
  min = unless_empty(&r, min, type_greatest(node->outputs[0]->type));
  lower_result(l, node, 0, min, r.axis);
}

void lower_ReduceProd(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId product = expr_reduce(r.k, EXPR_REDUCE_PRODUCT, lower_value(l, node->inputs[0]), r.reduced);
  lower_result(l, node, 0, product, r.axis);
}
