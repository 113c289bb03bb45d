// Decides which sums add products by fused multiply-adds, that is unrounded: all sums of products that an operator
// computes for itself. Products that are elements of a tensor are rounded.
#include "passes/schedule/nest_builder.h"
#include "passes/schedule/order_kernel_internal.h"

static bool is_sum_of_products(const NestBuilder *r, const Root *root) {
  const ExprId operand = root_operand(r, root);
  const Expr *e = &r->k->exprs[operand];
  return root->order && root->order->reduction == EXPR_REDUCE_SUM && e->op == EXPR_MUL && !e->is_element &&
         expr_level(r, operand) == LEVEL_VECTOR && !is_widened_sum(r, root);
}

static void fuse(Kernel *k, Root *root) {
  SumOrder *fused = ARENA_NEW(k->arena, SumOrder);
  k->out_of_memory |= !fused;
  if (!fused) return;
  *fused = *root->order;
  fused->is_fused = true;
  root->order = fused;
}

bool schedule_fuse_products(Schedule *s) {
  Kernel *k = s->kernel;
  NestBuilder r = {.schedule = s, .k = k};
  for (size_t l = 0; l < s->nloops && !k->out_of_memory; l++) {
    r.loop = &s->loops[l];
    for (size_t i = 0; i < r.loop->nroots; i++) {
      Root *root = &s->loops[l].roots[i];
      if (is_sum_of_products(&r, root)) fuse(k, root);
    }
  }
  return !k->out_of_memory;
}
