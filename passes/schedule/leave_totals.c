// Moves a product's totals from registers to memory while a run is added up: groups of many vectors need all registers
// for their accumulators.
#include "passes/schedule/tree_passes.h"

void schedule_leave_totals(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **nodes) {
  if (!loop->is_product || loop->vectors <= FEW_VECTORS || !loop_runs(k, loop).middle_run) return;
  for (LoopNode **at = nodes; *at; at = &(*at)->next) {
    LoopNode *n = *at;
    schedule_leave_totals(b, k, loop, &n->body);
    schedule_leave_totals(b, k, loop, &n->otherwise);
    if (n->kind != NODE_BEGIN_SUM || n->sum != SUM_ACCUMULATOR || n->count == 1) continue;
    tree_open(b, at);
    tree_add(b, (LoopNode){.kind = NODE_LEAVE, .expr = n->expr});
    tree_close(b);
    at = &(*at)->next;
  }
}
