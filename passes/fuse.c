// Regions: which nodes become one kernel.
//
// Nodes are visited users first. A node joins the region of its users, or of others that read what it reads, where
// that saves most bytes of memory; else it begins a region of its own. A region is named by its last node, and stands
// there in the order of kernels: a node may join it if all its other users stand later. So that order stays
// topological, and no joining can make a cycle.
//
// Within a region, values go from node to node as expressions over one domain, aligned at the right as numpy does. What
// operators with sums hand out beside their data (statistics of a norm) lies along other axes, and only stores fit it.
#include "passes/fuse.h"

#include "passes/lower/lower.h"
#include "passes/traffic.h"

enum {
  MOST_NODES = 128,  // in a region: as many expressions as are still found quickly, and as a reader can follow
  MOST_SUMS = 4,     // operators with sums in a region
  MOST_STREAMS = 16, // tensors of the domain's size that a region reads and writes: what caches and prefetchers follow
  MOST_USES = 16     // of a value that are looked at
};

#define NONE UINT32_MAX

typedef struct Region { // by the index of its last node
  Shape domain;
  uint32_t first; // of its nodes, which `next` chains in the graph's order
  uint32_t nnodes, nsums;
  bool is_fixed; // to its domain: some node would not lie in a wider one
} Region;

typedef struct Fusion {
  Graph *g;
  PassContext *c;
  Arena scratch;
  Region *regions;
  uint32_t *next; // by node's index; NONE ends a region
  ExprId *value_expr;
  bool changed;
} Fusion;

typedef struct Choice {
  uint32_t region;     // NONE: none
  int64_t saved;       // bytes
  const char *refusal; // why the best of those that could not be was not; NULL: there was none
  int64_t refused;     // bytes that it would have saved
} Choice;

static bool has_trait(const Node *node, unsigned trait) {
  return node->op->traits & trait;
}

// Its domain is its own: parts, or taps beside its results.
static bool stands_alone(const Node *node) {
  return has_trait(node, TRAIT_PIECES | TRAIT_ADJOINT);
}

static bool has_sums(const Node *node) {
  return !has_trait(node, TRAIT_ELEMENTWISE | TRAIT_MOVES);
}

// Whether numpy would spread the first over the second.
static bool broadcasts_to(const Shape *from, const Shape *to) {
  if (from->rank > to->rank) return false;
  for (int i = 1; i <= from->rank; i++) {
    Extent e = from->extent[from->rank - i];
    if (extent_value(e) != 1 && !extent_equals(e, to->extent[to->rank - i])) return false;
  }
  return true;
}

static int64_t value_nbytes(const Value *v) {
  return (int64_t)type_array_nbytes(v->type, (size_t)shape_nelems(&v->shape));
}

static bool is_data(const Value *v, const Shape *domain) {
  return v && shape_nelems(&v->shape) >= shape_nelems(domain) && shape_nelems(domain) > 1;
}

// Operands and results lie in a wider domain as numpy would put them, and not along axes that an attribute names.
static bool is_spreadable(const Node *node) {
  return has_trait(node, TRAIT_ELEMENTWISE) && !operator_has_attribute(node->op, "data_format") &&
         !operator_has_attribute(node->op, "axis");
}

static bool is_aligned(const Node *maker) {
  return operator_has_attribute(maker->op, "keep_dims") ? node_bool(maker, "keep_dims") : is_spreadable(maker);
}

static bool may_pass(const Node *maker, const Value *v, const Node *user, const Shape *domain) {
  if (shape_equals(&v->shape, domain)) return true;
  return is_aligned(maker) && is_spreadable(user) && broadcasts_to(&v->shape, domain);
}

// Tensors of the domain's size that the region and the node read and write.
static uint32_t count_streams(const Fusion *f, const Region *r, const Node *joining, uint32_t region,
                              const Shape *domain) {
  const Value *seen[MOST_STREAMS + MAX_OPERANDS];
  uint32_t count = 0;
  for (uint32_t i = r->first;; i = f->next[i]) {
    const Node *node = i == NONE ? joining : f->g->nodes[i];
    for (uint32_t s = 0; s < node->ninputs + node->noutputs && count <= MOST_STREAMS; s++) {
      bool is_input = s < node->ninputs;
      const Value *v = is_input ? node->inputs[s] : node->outputs[s - node->ninputs];
      if (!is_data(v, domain)) continue;
      bool is_inside = is_input && v->producer && (v->producer == joining || v->producer->region == region);
      bool is_counted = is_inside || (!is_input && v->uses && !v->is_output);
      for (uint32_t k = 0; k < count; k++) is_counted |= seen[k] == v;
      if (!is_counted) seen[count++] = v;
    }
    if (i == NONE) return count;
  }
}

// The region, its own nodes alone or with one more, as a scheduled kernel: bytes that it moves; -1: there is none.
static int64_t try_kernel(Fusion *f, uint32_t region, Node *joining) {
  Node *nodes[MOST_NODES];
  size_t nnodes = 0;
  uint32_t was = joining ? joining->region : NONE;
  if (joining) {
    nodes[nnodes++] = joining;
    joining->region = region;
  }
  for (uint32_t i = f->regions[region].first; region != was && i != NONE; i = f->next[i])
    nodes[nnodes++] = f->g->nodes[i];
  Arena arena;
  arena_init(&arena, f->c->allocator);
  Kernel *k = lower_region(&arena, f->g, nodes, nnodes, WHOLE, f->value_expr);
  int64_t nbytes = k && kernel_schedule(k, f->c->target, f->c->overrides) ? kernel_traffic(k, f->c->target) : -1;
  if (!k || k->out_of_memory) {
    f->c->failed = true;
    error_out_of_memory(f->c->diagnostics);
  }
  if (joining) joining->region = was;
  arena_deinit(&arena);
  return nbytes;
}

// Where a schedule may not carry both, or not without looking at data again that has left the caches.
static const char *try_together(Fusion *f, uint32_t region, Node *node) {
  int64_t together = try_kernel(f, region, node);
  if (together < 0) return "no schedule carries the sums of both";
  if (!has_sums(node)) return NULL;
  int64_t apart = try_kernel(f, region, NULL);
  f->regions[node->index] = (Region){.domain = node_domain(node), .first = NONE, .nnodes = 1, .nsums = 1};
  int64_t alone = try_kernel(f, node->index, node);
  return apart >= 0 && alone >= 0 && together > apart + alone ? "together they would move more bytes" : NULL;
}

// Why the node cannot join; NULL: it can.
static const char *refusal(Fusion *f, Node *node, uint32_t region) {
  const Region *r = &f->regions[region];
  Shape own = node_domain(node);
  bool is_wider = !shape_equals(&own, &r->domain) && broadcasts_to(&r->domain, &own);
  const Shape *domain = is_wider ? &own : &r->domain;
  bool is_narrow = !is_wider && !shape_equals(&own, domain);
  if ((is_narrow || is_wider) && !shape_nelems(domain)) return "its shape is another"; // and larger, by its elements
  if (is_narrow && (!is_spreadable(node) || !broadcasts_to(&own, domain))) return "its shape is another";
  if (is_wider && (r->is_fixed || !has_sums(node))) return "its shape is another";
  for (uint32_t i = 0; i < node->noutputs; i++) {
    for (const Use *use = node->outputs[i] ? node->outputs[i]->uses : NULL; use; use = use->next) {
      if (use->node->region < region) return "what it makes is needed before";
      if (use->node->region != region) continue;
      if (has_trait(use->node, TRAIT_MOVES)) return "elements change places in between";
      if (!may_pass(node, node->outputs[i], use->node, domain)) return "what it hands on lies along other axes";
    }
  }
  if (r->nnodes >= MOST_NODES) return "the other is as long as a kernel may be";
  if (r->nsums + has_sums(node) > MOST_SUMS) return "the other has as many operators with sums as a kernel may have";
  if (count_streams(f, r, node, region, domain) > MOST_STREAMS) return "together they would stream too many tensors";
  bool is_doubtful = has_sums(node) ? r->nsums || is_wider : r->nsums && is_narrow;
  return is_doubtful ? try_together(f, region, node) : NULL;
}

// Bytes that need not be moved if the node joins: what it reads as others there do, what it makes for them.
static int64_t saved_bytes(const Node *node, uint32_t region) {
  int64_t saved = 0;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    int looked = 0;
    for (const Use *use = node->inputs[i] ? node->inputs[i]->uses : NULL; use && looked < MOST_USES;
         use = use->next, looked++) {
      if (use->node->index <= node->index || use->node->region != region) continue;
      saved += value_nbytes(node->inputs[i]);
      break;
    }
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    bool is_read = false, is_needed = v && v->is_output;
    for (const Use *use = v ? v->uses : NULL; use; use = use->next)
      *(use->node->region == region ? &is_read : &is_needed) = true;
    saved += (is_read + (is_read && !is_needed)) * (v ? value_nbytes(v) : 0);
  }
  return saved;
}

static void consider(Fusion *f, Node *node, uint32_t region, Choice *choice) {
  if (region == choice->region || stands_alone(f->g->nodes[region])) return;
  int64_t saved = saved_bytes(node, region);
  if (choice->region != NONE && saved <= choice->saved) return;
  const char *why = refusal(f, node, region);
  if (!why) {
    choice->region = region;
    choice->saved = saved;
  } else if (!choice->refusal || saved > choice->refused) {
    choice->refusal = why;
    choice->refused = saved;
  }
}

// Regions of users, then of nodes that read the same data.
static Choice choose_region(Fusion *f, Node *node) {
  Choice choice = {.region = NONE};
  Shape domain = node_domain(node);
  for (uint32_t i = 0; i < node->noutputs; i++) {
    int looked = 0;
    for (const Use *use = node->outputs[i] ? node->outputs[i]->uses : NULL; use && looked < MOST_USES;
         use = use->next, looked++)
      consider(f, node, use->node->region, &choice);
  }
  for (uint32_t i = 0; i < node->ninputs && !has_trait(node, TRAIT_MOVES); i++) {
    if (!is_data(node->inputs[i], &domain)) continue;
    int looked = 0;
    for (const Use *use = node->inputs[i]->uses; use && looked < MOST_USES; use = use->next, looked++)
      if (use->node->index > node->index && !has_trait(use->node, TRAIT_MOVES))
        consider(f, node, use->node->region, &choice);
  }
  return choice;
}

static void join(Fusion *f, Node *node, uint32_t region) {
  Region *r = &f->regions[region];
  Shape own = node_domain(node);
  if (shape_nelems(&own) > shape_nelems(&r->domain)) r->domain = own;
  f->next[node->index] = r->first;
  r->first = node->index;
  r->nnodes++;
  r->nsums += has_sums(node);
  r->is_fixed |= !is_spreadable(node);
  node->region = region;
  f->changed = true;
}

bool pass_fuse(Graph *g, PassContext *c) {
  Fusion f = {.g = g, .c = c};
  arena_init(&f.scratch, c->allocator);
  f.regions = ARENA_ARRAY(&f.scratch, Region, g->nnodes);
  f.next = ARENA_ARRAY(&f.scratch, uint32_t, g->nnodes);
  f.value_expr = ARENA_ARRAY(&f.scratch, ExprId, g->nvalues + 1);
  if (!f.regions || !f.next || !f.value_expr) {
    c->failed = true;
    error_out_of_memory(c->diagnostics);
    arena_deinit(&f.scratch);
    return false;
  }
  for (uint32_t i = 0; i < g->nnodes; i++) g->nodes[i]->region = i;
  for (uint32_t i = (uint32_t)g->nnodes; i-- > 0 && !c->failed;) { // users first
    Node *node = g->nodes[i];
    Choice choice = c->no_fuse || stands_alone(node) ? (Choice){.region = NONE} : choose_region(&f, node);
    node->apart = choice.refusal;
    f.regions[i] = (Region){node_domain(node), i, 1, has_sums(node), !is_spreadable(node)};
    f.next[i] = NONE;
    if (choice.region != NONE) join(&f, node, choice.region);
  }
  arena_deinit(&f.scratch);
  return f.changed;
}
