// Decides which sums add products by fused multiply-adds, that is unrounded: sums whose products nothing else in the
// sweep uses.
#include "ir/kernel/needed.h"
#include "passes/schedule/order/scheduling.h"

#include <string.h>

// Counts (by ExprId) the uses of each expression in a sweep, before products are fused.
static void count_uses(const Kernel *k, const Loop *loop, int sweep, bool *is_needed, uint32_t *nuses) {
  const Available available = {.k = k, .loop = loop, .sums = sweep + 1};
  memset(is_needed, 0, k->nexprs * sizeof *is_needed);
  memset(nuses, 0, k->nexprs * sizeof *nuses);
  for (const Root *root = loop->roots; root < loop->roots + loop->nroots; root++) {
    if (root->sweep != sweep || !root_is_in_sweep(k, loop, root)) continue;
    nuses[root_operand(k, root)]++;
    mark_needed(&available, root_operand(k, root), is_needed);
  }
  for (ExprId id = 1; id < k->nexprs; id++)
    for (int a = 0; a < 3 && is_needed[id] && !is_available(&available, id); a++) nuses[k->exprs[id].args[a]]++;
}

// Whether the operand of a sum is a vector of products that nothing else in the sweep uses. Partial sums of f64 get
// rounded products.
static bool is_sum_of_own_products(const Kernel *k, const Loop *loop, const Root *root, const uint32_t *nuses) {
  if (!root->order || root->order->reduction != EXPR_REDUCE_SUM) return false;
  const ExprId operand = root_operand(k, root);
  const bool is_vector = loop->ninner && k->exprs[operand].axes >> loop_vector_axis(loop) & 1;
  const bool is_widened = !k->is_f64 && root->kind == ROOT_REDUCE_OUTER && k->accesses[root->access].type == TYPE_F64;
  return k->exprs[operand].op == EXPR_MUL && nuses[operand] == 1 && is_vector && !is_widened;
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
  bool *is_needed = KERNEL_ARRAY(k, bool, k->nexprs);
  uint32_t *nuses = KERNEL_ARRAY(k, uint32_t, k->nexprs);
  for (Loop *loop = s->loops; loop < s->loops + s->nloops && !k->out_of_memory; loop++)
    for (int sweep = 0; sweep < loop->nsweeps; sweep++) {
      count_uses(k, loop, sweep, is_needed, nuses);
      for (Root *root = loop->roots; root < loop->roots + loop->nroots; root++)
        if (root->sweep == sweep && is_sum_of_own_products(k, loop, root, nuses)) fuse(k, root);
    }
  return !k->out_of_memory;
}
