// Regions grow along edges: a producer's region joins its consumer's when nothing else needs what it makes.
//
// Then every value that a region hands to other nodes comes from its last node, so regions in the order of their
// last nodes are in topological order, and joining can make no cycle. Values that are graph outputs are stored and
// do not stop anything. A region holds at most one operator that is not elementwise.
#include "passes/fuse.h"

#include "passes/lower/lower.h"

typedef struct Region {
  Shape domain;
  Node *last;
  uint32_t nnorms; // operators that are not elementwise
  uint32_t parent; // union-find
} Region;

static uint32_t find(Region *regions, uint32_t r) {
  while (regions[r].parent != r) r = regions[r].parent = regions[regions[r].parent].parent;
  return r;
}

static bool is_same_shape(const Shape *a, const Shape *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (!extent_equals(a->extent[i], b->extent[i])) return false;
  return true;
}

// All that other nodes use of this region's last node is used in `user`'s region, as data of the whole domain.
static bool feeds_only(Region *regions, const Node *last, uint32_t user, const Shape *domain) {
  for (uint32_t i = 0; i < last->noutputs; i++) {
    const Value *v = last->outputs[i];
    if (!v || !v->uses) continue;
    if (!is_same_shape(&v->shape, domain)) return false;
    for (const Use *use = v->uses; use; use = use->next)
      if (find(regions, use->node->region) != user) return false;
  }
  return true;
}

static bool try_join(Region *regions, uint32_t producer, uint32_t consumer) {
  Region *p = &regions[producer], *c = &regions[consumer];
  if (p->nnorms + c->nnorms > 1 || !is_same_shape(&p->domain, &c->domain)) return false;
  if (!feeds_only(regions, p->last, consumer, &c->domain)) return false;
  c->nnorms += p->nnorms;
  p->parent = consumer;
  return true;
}

bool pass_fuse(Graph *g, PassContext *c) {
  Arena scratch;
  arena_init(&scratch, c->allocator);
  Region *regions = ARENA_ARRAY(&scratch, Region, g->nnodes);
  if (!regions) {
    c->failed = true;
    error_out_of_memory(c->diagnostics);
    return false;
  }
  for (uint32_t i = 0; i < g->nnodes; i++) {
    Node *node = g->nodes[i];
    regions[i] = (Region){node_domain(node), node, !(node->op->traits & TRAIT_ELEMENTWISE), i};
    node->region = i;
  }
  bool changed = false;
  for (uint32_t i = 0; i < g->nnodes && !c->no_fuse; i++) {
    const Node *node = g->nodes[i];
    for (uint32_t k = 0; k < node->ninputs; k++) {
      const Node *producer = node->inputs[k] ? node->inputs[k]->producer : NULL;
      if (!producer) continue;
      uint32_t from = find(regions, producer->region), to = find(regions, i);
      if (from != to && try_join(regions, from, to)) changed = true;
    }
  }
  for (uint32_t i = 0; i < g->nnodes; i++) g->nodes[i]->region = find(regions, i);
  arena_deinit(&scratch);
  return changed;
}
