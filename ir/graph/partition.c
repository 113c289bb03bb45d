// The initial partition; passes/lower/fuse.c joins its regions.
#include "ir/graph/partition.h"

Partition *partition_into_nodes(Graph *g) {
  Partition *p = ARENA_NEW(&g->arena, Partition);
  if (!p) return NULL;
  p->region = ARENA_ARRAY(&g->arena, uint32_t, g->nnodes);
  p->first = ARENA_ARRAY(&g->arena, uint32_t, g->nnodes);
  p->next = ARENA_ARRAY(&g->arena, uint32_t, g->nnodes);
  p->refusals = ARENA_ARRAY(&g->arena, const Refusal *, g->nnodes);
  if (!p->region || !p->first || !p->next || !p->refusals) return NULL;
  for (uint32_t i = 0; i < g->nnodes; i++) {
    p->region[i] = p->first[i] = i;
    p->next[i] = NO_NODE;
  }
  return p;
}
