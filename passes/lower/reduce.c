// Lowering of the reductions.
#include "ir/reduce.h"

#include "passes/lower/lower.h"

typedef struct Reduction {
  Kernel *k;
  AxisSet reduced;
  int axis[MAX_RANK]; // of the result's axes in the domain
  double count;       // elements that one of the result's stands for
} Reduction;

static Reduction reduction_begin(const Lowering *l, const Node *node) {
  Reduction r = {.k = l->kernel, .reduced = reduce_axes(node)};
  bool keeps = node_bool(node, "keep_dims");
  for (int axis = 0, on = 0; axis < l->domain.rank; axis++)
    if (keeps || !(r.reduced >> axis & 1)) r.axis[on++] = axis;
  r.count = (double)axes_nelems(l->kernel, r.reduced);
  return r;
}

void lower_ReduceSum(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  lower_result(l, node, 0, expr_sum(r.k, lower_value(l, node->inputs[0]), r.reduced), r.axis);
}

void lower_ReduceMean(Lowering *l, const Node *node) {
  Reduction r = reduction_begin(l, node);
  ExprId sum = expr_sum(r.k, lower_value(l, node->inputs[0]), r.reduced);
  lower_result(l, node, 0, expr_binary(r.k, EXPR_DIV, sum, expr_constant(r.k, r.count)), r.axis);
}
