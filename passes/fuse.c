// Regions grow from their last nodes upwards: a node joins its users' region when all of them are in one.
//
// Then every value that a region hands to other nodes comes from its last node, so regions in the order of their
// last nodes are in topological order, and joining can make no cycle. Values that are graph outputs are stored and
// do not stop anything. A region holds at most one operator that is not elementwise.
#include "passes/fuse.h"

#include "passes/lower/lower.h"

typedef struct Region { // by the index of its last node
  Shape domain;
  uint32_t nnorms; // operators that are not elementwise
  uint32_t nnodes;
} Region;

enum { MOST_NODES = 128 }; // in a region: as many expressions as are still found quickly, and as a reader can follow

static bool is_same_shape(const Shape *a, const Shape *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (!extent_equals(a->extent[i], b->extent[i])) return false;
  return true;
}

// The one region whose nodes are all that use what this node makes, as data of its whole domain; else the node's own.
static uint32_t users_region(const Node *node, const Shape *domain) {
  uint32_t region = node->index;
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    if (!v || !v->uses) continue;
    if (!is_same_shape(&v->shape, domain)) return node->index;
    for (const Use *use = v->uses; use; use = use->next) {
      if (use->node->op->traits & (TRAIT_MOVES | TRAIT_PIECES)) return node->index; // loads elements of other points
      if (region != node->index && use->node->region != region) return node->index;
      region = use->node->region;
    }
  }
  return region;
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
  bool changed = false;
  for (uint32_t i = (uint32_t)g->nnodes; i-- > 0;) { // users first
    Node *node = g->nodes[i];
    Region own = {node_domain(node), !(node->op->traits & (TRAIT_ELEMENTWISE | TRAIT_MOVES)), 1};
    uint32_t users = c->no_fuse || node->op->traits & TRAIT_PIECES ? i : users_region(node, &own.domain);
    Region *region = &regions[users];
    bool joins = users != i && region->nnorms + own.nnorms <= 1 && region->nnodes < MOST_NODES &&
                 is_same_shape(&region->domain, &own.domain);
    node->region = joins ? users : i;
    if (!joins) regions[i] = own;
    else {
      region->nnorms += own.nnorms;
      region->nnodes++;
    }
    changed |= joins;
  }
  arena_deinit(&scratch);
  return changed;
}
