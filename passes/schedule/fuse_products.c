// Decides which sums add products by fused multiply-adds, that is unrounded: sums whose products nothing else in the
// sweep uses.
#include "passes/schedule/nest_builder.h"
#include "passes/schedule/order_kernel_internal.h"

#include <string.h>

// Counts (by ExprId) the uses of each expression in the sweep, before products are fused.
static void count_uses(NestBuilder *r, uint32_t *nuses) {
  memset(nuses, 0, r->k->nexprs * sizeof *nuses);
  need_none(r);
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) {
    if (!is_in_sweep(r, root, r->sweep)) continue;
    nuses[root_operand(r, root)]++;
    need_expr(r, root_operand(r, root));
  }
  const Available available = available_values(r);
  for (ExprId id = 1; id < r->k->nexprs; id++)
    for (int a = 0; a < 3 && r->is_needed[id] && !is_available(&available, id); a++) nuses[r->k->exprs[id].args[a]]++;
}

// Whether the operand of a sum is a product that nothing else in the sweep uses.
static bool is_sum_of_own_products(const NestBuilder *r, const Root *root, const uint32_t *nuses) {
  const ExprId operand = root_operand(r, root);
  return root->order && root->order->reduction == EXPR_REDUCE_SUM && r->k->exprs[operand].op == EXPR_MUL &&
         nuses[operand] == 1 && expr_level(r, operand) == LEVEL_VECTOR && !is_widened_sum(r, root);
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
  NestBuilder r = {.schedule = s, .k = k, .is_needed = ARENA_ARRAY(k->arena, bool, k->nexprs)};
  uint32_t *nuses = ARENA_ARRAY(k->arena, uint32_t, k->nexprs);
  k->out_of_memory |= !nuses || !r.is_needed;
  for (size_t l = 0; l < s->nloops && !k->out_of_memory; l++) {
    Loop *loop = &s->loops[l];
    r.loop = loop;
    for (r.sweep = 0; r.sweep < loop->nsweeps; r.sweep++) {
      count_uses(&r, nuses);
      for (size_t i = 0; i < loop->nroots; i++)
        if (loop->roots[i].sweep == r.sweep && is_sum_of_own_products(&r, &loop->roots[i], nuses))
          fuse(k, &loop->roots[i]);
    }
  }
  return !k->out_of_memory;
}
