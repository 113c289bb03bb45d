// Decides which sums add products by fused multiply-adds, that is unrounded: all sums of products that an operator
// computes for itself. Products that are elements of a tensor are rounded.
#include "passes/schedule/order/scheduling.h"

// Whether the operand of a sum is a vector of products. Partial sums of f64 get rounded products.
static bool is_sum_of_products(const Kernel *k, const Loop *loop, const Root *root) {
  if (!root->order || root->order->reduction != EXPR_REDUCE_SUM) return false;
  const Expr *operand = &k->exprs[root_operand(k, root)];
  const bool is_vector = loop->ninner && operand->axes >> loop_vector_axis(loop) & 1;
  const bool is_widened = !k->is_f64 && root->kind == ROOT_REDUCE_OUTER && k->accesses[root->access].type == TYPE_F64;
  return operand->op == EXPR_MUL && !operand->is_element && is_vector && !is_widened;
}

static void fuse(Kernel *k, Root *root) {
  SumOrder *fused = KERNEL_ARRAY(k, SumOrder, 1);
  if (!fused) return;
  *fused = *root->order;
  fused->is_fused = true;
  root->order = fused;
}

bool schedule_fuse_products(Scheduling *scheduling) {
  const Schedule *s = scheduling->schedule;
  Kernel *k = s->kernel;
  for (Loop *loop = s->loops; loop < s->loops + s->nloops && !k->out_of_memory; loop++)
    for (Root *root = loop->roots; root < loop->roots + loop->nroots; root++)
      if (is_sum_of_products(k, loop, root)) fuse(k, root);
  return !k->out_of_memory;
}
