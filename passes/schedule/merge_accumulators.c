// Decides the order in which a sum's accumulators are combined to one vector: pairwise, so that four are combined as
// (0 + 1) + (2 + 3). Nodes that take the accumulator of a row or of a vector combine none.
#include "passes/schedule/tree_passes.h"

static const Merge *pairwise(TreeBuilder *b, int first, int count) {
  Merge *m = ARENA_NEW(b->arena, Merge);
  if (!m) {
    b->out_of_memory = true;
    return NULL;
  }
  *m = (Merge){.accumulator = first};
  if (count == 1) return m;
  m->args[0] = pairwise(b, first, count / 2);
  m->args[1] = pairwise(b, first + count / 2, count - count / 2);
  return m;
}

static void merge(TreeBuilder *b, int count, LoopNode *nodes) {
  for (LoopNode *n = count > 1 ? nodes : NULL; n; n = n->next) {
    const bool is_end = n->kind == NODE_END_RUN || (n->kind == NODE_END_SUM && n->sum == SUM_ACCUMULATOR);
    if (is_end && n->accumulator == ACCUMULATOR_ONLY) n->merged = pairwise(b, 0, count);
    merge(b, count, n->body);
    merge(b, count, n->otherwise);
  }
}

void schedule_merge_accumulators(TreeBuilder *b, LoopTree *t) {
  merge(b, tree_naccumulators(t), t->step);
  merge(b, tree_naccumulators(t), t->tail_step);
}
