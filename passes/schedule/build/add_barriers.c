// Moves a product's totals from registers to memory while a run is added up: groups of many vectors need all registers
// for their accumulators.
#include "passes/schedule/build/tree_passes.h"

static void leave(TreeBuilder *b, LoopNode **nodes) {
  for (LoopNode **at = nodes, *n; (n = *at) != NULL; at = &n->next) {
    leave(b, &n->body);
    leave(b, &n->otherwise);
    if (n->kind != NODE_BUFFER || n->to.buffer != BUFFER_SUM || n->count == 1) continue;
    tree_open(b, at);
    tree_add(b, (LoopNode){.kind = NODE_BARRIER, .to = {.buffer = BUFFER_TOTAL, .of = n->to.of}});
    tree_close(b);
  }
}

void schedule_add_barriers(TreeBuilder *b, LoopTree *t) {
  const Loop *loop = t->loop;
  if (loop_has(loop, LOOP_COLUMNS) && loop->vectors > FEW_VECTORS && loop_segments(loop).iterations) leave(b, &t->step);
}
