// Regions: which nodes become one kernel.
//
// Nodes are visited users first. A node joins the region of its users, or of others that read what it reads, where
// that saves most bytes of memory; else it begins a region of its own. Other regions that it shares values with then
// become one with its own, if that saves more. A region is named by its last node, and stands there in the order of
// kernels: what joins it may be needed by none that stand before. So that order stays topological, and no joining can
// make a cycle.
//
// Where a region has sums, what joins is lowered and scheduled with it on trial: a schedule must carry all, and
// move no more bytes than two kernels would. What cannot join stays with its other neighbours. Which nodes share a
// kernel decides the order of sums and where values are rounded, so the trial's caches are never those of the machine.
// Values beyond the registers wait in the first level, which costs less than any tensor between two kernels would:
// tests/bench/live_values.sh measures it. What is bounded is how many tensors stream through at once.
//
// Within a region, values go from node to node as expressions over one domain, aligned at the right as numpy does. What
// operators with sums hand out beside their data (statistics of a norm) lies along other axes: only stores fit it, and
// a norm over the same axes.
#include "passes/lower/fuse.h"

#include "ir/operators/norm.h"
#include "passes/lower/regions.h"
#include "passes/schedule/traffic.h"

enum {
  MOST_NODES = 128,  // in a region: as many expressions as are still found quickly, and as a reader can follow
  MOST_SUMS = 4,     // operators with sums in a region
  MOST_STREAMS = 32, // tensors of the domain's size that a region reads and writes: what prefetchers follow
  MOST_USES = 16,    // of a value that are looked at
  MOST_CANDIDATES = 8
};

enum { SHAPE_TEXT = 160 };
#define UNKNOWN (-2) // bytes that a kernel moves, when nobody has asked
#define NO_KERNEL (-1)

typedef struct Region { // what fusing knows of a region of the partition
  Shape domain;
  uint32_t nnodes, nsums;
  bool is_fixed;   // to its domain: some node would not lie in a wider one
  bool is_carried; // one kernel carries its sums, as was tried
  int64_t nbytes;  // that its kernel moves; UNKNOWN, NO_KERNEL
} Region;

typedef struct NodeList { // in the graph's order
  Node *nodes[MOST_NODES];
  uint32_t count;
} NodeList;

typedef struct Candidate { // a region that a node shares values with
  uint32_t region;
  int64_t saved; // bytes
} Candidate;

typedef struct Fusion {
  Graph *g;
  PassContext *c;
  Partition *partition;
  Region *regions; // by the region's name
  Arena arena;     // for the pass alone
  RegionLowering trial;
  bool is_off; // each node stays a region of its own
  bool changed;
} Fusion;

static uint32_t region_of(const Fusion *f, const Node *node) {
  return f->partition->region[node->index];
}

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

// Whether nodes over the first and the second shape go over the first together: what lower_region takes for a domain.
static bool is_domain_of_both(const Shape *one, const Shape *other) {
  const int64_t nelems = shape_nelems(one), others = shape_nelems(other);
  return nelems > others || (nelems == others && one->rank > other->rank);
}

static bool is_data(const Value *v, const Shape *domain) {
  return v && shape_nelems(&v->shape) >= shape_nelems(domain) && shape_nelems(domain) > 1;
}

// Whether operands and results lie in a wider domain where numpy would put them.
static bool is_spreadable(const Node *node) {
  return has_trait(node, TRAIT_ELEMENTWISE) && !operator_places_by_axis(node->op);
}

static bool is_aligned(const Node *maker) {
  return has_trait(maker, TRAIT_REDUCES) ? node_bool(maker, "keep_dims") : is_spreadable(maker);
}

static bool is_statistic_operand(const Node *node, const Value *v) {
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->inputs[i] == v && !node->op->inputs[i].is_statistic) return false;
  return true;
}

static Type computed_type(const Node *node) {
  return node->inputs[0]->type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
}

// Whether the value is a statistic that one norm makes and another of the same axes takes: it varies over the same axes
// of the kernel for both. Of another type than is computed with, it would have to be rounded first.
static bool is_of_same_norm(const Node *maker, const Value *v, const Node *user) {
  const NormScope scope = maker->op->norm_scope;
  if (scope == SCOPE_NONE || user->op->norm_scope == SCOPE_NONE) return false;
  if (!maker->op->outputs[v->output_slot].is_statistic || !is_statistic_operand(user, v)) return false;
  if (v->type != computed_type(user) || norm_cancels(user)) return false;
  if ((scope == SCOPE_GROUP) != (user->op->norm_scope == SCOPE_GROUP)) return false;
  if (scope == SCOPE_GROUP && !extent_equals(norm_ngroups(maker), norm_ngroups(user))) return false;
  return shape_equals(&maker->inputs[0]->shape, &user->inputs[0]->shape) &&
         norm_reduced_axes(maker) == norm_reduced_axes(user);
}

static bool may_pass(const Node *maker, const Value *v, const Node *user, const Shape *domain) {
  if (shape_equals(&v->shape, domain) || is_of_same_norm(maker, v, user)) return true;
  return is_aligned(maker) && is_spreadable(user) && broadcasts_to(&v->shape, domain);
}

// Appends the region's nodes behind those that stand before them.
static void list_region(const Fusion *f, uint32_t region, NodeList *list) {
  const Partition *p = f->partition;
  for (uint32_t i = p->first[region]; i != NO_NODE; i = p->next[i]) list->nodes[list->count++] = f->g->nodes[i];
}

static bool is_listed(const NodeList *list, const Node *node) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->nodes[i] == node) return true;
  return false;
}

static bool is_used_outside(const Value *v, const NodeList *list) {
  if (v->is_output) return true;
  for (const Use *use = v->uses; use; use = use->next)
    if (!is_listed(list, use->node)) return true;
  return false;
}

// Tensors of the domain's size that the nodes read and write as one, or one more than a kernel may have.
static uint32_t count_streams(const NodeList *list, const Shape *domain) {
  const Value *seen[MOST_STREAMS + 1];
  uint32_t count = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    const Node *node = list->nodes[i];
    for (uint32_t s = 0; s < node->ninputs + node->noutputs; s++) {
      bool is_input = s < node->ninputs;
      const Value *v = is_input ? node->inputs[s] : node->outputs[s - node->ninputs];
      if (!is_data(v, domain)) continue;
      bool is_counted = is_input ? v->producer && is_listed(list, v->producer) : !is_used_outside(v, list);
      for (uint32_t k = 0; k < count; k++) is_counted |= seen[k] == v;
      if (is_counted) continue;
      seen[count++] = v;
      if (count > MOST_STREAMS) return count;
    }
  }
  return count;
}

// Appends the elementwise nodes behind those in the list that have not been visited yet, those before `first`. False:
// they are more than a region may have.
static bool list_behind(NodeList *list, const Shape *domain, uint32_t first) {
  for (uint32_t i = 0; i < list->count; i++) {
    const Node *node = list->nodes[i];
    for (uint32_t s = 0; s < node->ninputs; s++) {
      Node *maker = node->inputs[s] ? node->inputs[s]->producer : NULL;
      if (!maker || maker->index >= first || !has_trait(maker, TRAIT_ELEMENTWISE)) continue;
      if (!shape_equals(&node->inputs[s]->shape, domain) || is_listed(list, maker)) continue;
      if (list->count == MOST_NODES) return false;
      list->nodes[list->count++] = maker;
    }
  }
  return true;
}

// Whether they are more than a kernel may have. What elementwise nodes will make that can still join is no tensor then:
// what they read is.
static bool has_many_streams(const NodeList *list, const Shape *domain, const Node *visited) {
  if (count_streams(list, domain) <= MOST_STREAMS) return false;
  NodeList all = *list;
  return !list_behind(&all, domain, visited->index) || count_streams(&all, domain) > MOST_STREAMS;
}

// What to tell people, in the graph's arena.
static const char *say(Fusion *f, const char *text) {
  if (!text) pass_out_of_memory(f->c);
  return text ? text : "";
}
#define SAY(...) say(f, arena_format(&f->g->arena, __VA_ARGS__))

static const char *say_shapes(Fusion *f, const Shape *own, const Shape *other) {
  char texts[2][SHAPE_TEXT];
  return SAY("it goes over %s, the other over %s", shape_string(own, texts[0], SHAPE_TEXT),
             shape_string(other, texts[1], SHAPE_TEXT));
}

// Bytes that these nodes as one scheduled kernel move; NO_KERNEL: there is none.
static int64_t try_kernel(Fusion *f, const NodeList *list) {
  Arena arena;
  arena_init(&arena, f->c->allocator);
  Kernel *k = lower_and_schedule(&f->trial, &arena, list->nodes, list->count);
  int64_t nbytes = k ? kernel_traffic(k, f->trial.target) : NO_KERNEL;
  if (k && k->out_of_memory) pass_out_of_memory(f->c);
  arena_deinit(&arena);
  return nbytes;
}

static int64_t region_nbytes(Fusion *f, uint32_t region) {
  Region *r = &f->regions[region];
  if (r->nbytes != UNKNOWN) return r->nbytes;
  NodeList list = {.count = 0};
  list_region(f, region, &list);
  r->nbytes = try_kernel(f, &list);
  r->is_carried = r->nbytes >= 0;
  return r->nbytes;
}

static const char *say_bytes(Fusion *f, int64_t together, int64_t apart) {
  return SAY("together they would move %lld bytes, apart they move %lld", (long long)together, (long long)apart);
}

#define ALONE "what is made or read in pieces has loops of its own"
#define GROUPS_DIFFER "its groups of channels are others"
#define NO_SCHEDULE "in no order of loops would the sums of both be finished when they are needed"

// Where a schedule may not carry both, or not without looking at data again that has left the caches.
static const char *try_join(Fusion *f, uint32_t region, Node *node) {
  int64_t others = region_nbytes(f, region);
  if (others < 0) return "the other's sums take more than one kernel";
  NodeList both = {{node}, 1}, alone = both;
  list_region(f, region, &both);
  int64_t apart = try_kernel(f, &alone);
  if (apart < 0) return "its sums take more than one kernel";
  int64_t together = try_kernel(f, &both);
  if (together < 0) return NO_SCHEDULE;
  return together > apart + others ? say_bytes(f, together, apart + others) : NULL;
}

// Whether joining changes nothing but where one stream of the data comes from or goes to.
static bool is_in_line(const Node *node, const Shape *domain) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  return has_trait(node, TRAIT_ELEMENTWISE) && node->ninputs == 1 && shape_equals(&src->shape, domain) &&
         shape_equals(&dst->shape, domain) && order_is_row_major(&src->order) && order_is_row_major(&dst->order);
}

static bool is_doubtful(const Node *node, const Region *r, const Shape *domain) {
  return has_sums(node) || (r->nsums && !(r->is_carried && is_in_line(node, domain)));
}

// Why what one of the nodes makes may not stay between them; NULL: it may.
static const char *refusal_of_values(Fusion *f, const Node *node, uint32_t own, uint32_t region, const Shape *domain) {
  char title[NODE_TITLE_BYTES];
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    for (const Use *use = v ? v->uses : NULL; use; use = use->next) {
      const uint32_t users = region_of(f, use->node);
      if (users == own) continue;
      if (users < region) return SAY("%s, in a kernel before, needs %s", node_title(use->node, title), v->name);
      if (users != region) continue;
      if (has_trait(use->node, TRAIT_MOVES))
        return SAY("elements of %s change places in %s", v->name, node_title(use->node, title));
      if (!may_pass(node, v, use->node, domain))
        return SAY("%s lies along other axes than the data, and goes through memory", v->name);
    }
  }
  return NULL;
}

// Whether all norms by groups among the nodes take the same groups: a kernel splits its channels in one way.
static bool have_same_groups(const NodeList *list) {
  const Node *first = NULL;
  for (uint32_t i = 0; i < list->count; i++) {
    const Node *node = list->nodes[i];
    if (node->op->norm_scope != SCOPE_GROUP) continue;
    if (first && (norm_channel_axis(first) != norm_channel_axis(node) ||
                  !extent_equals(norm_ngroups(first), norm_ngroups(node))))
      return false;
    first = node;
  }
  return true;
}

static const char *say_streams(Fusion *f) {
  return SAY("together they would read and write more than %d tensors of this size", MOST_STREAMS);
}

// Why the node cannot join; NULL: it can.
static const char *refusal(Fusion *f, Node *node, uint32_t region) {
  const Region *r = &f->regions[region];
  Shape own = node_domain(node);
  if (stands_alone(node) || stands_alone(f->g->nodes[region])) return ALONE;
  bool is_wider = !shape_equals(&own, &r->domain) && broadcasts_to(&r->domain, &own);
  const Shape *domain = is_wider ? &own : &r->domain;
  bool is_narrow = !is_wider && !shape_equals(&own, domain);
  if ((is_narrow || is_wider) && !shape_nelems(domain)) return say_shapes(f, &own, &r->domain); // and larger
  if (is_narrow && (!is_spreadable(node) || !broadcasts_to(&own, domain))) return say_shapes(f, &own, &r->domain);
  if (is_wider && (r->is_fixed || !has_sums(node))) return say_shapes(f, &own, &r->domain);
  const char *why = refusal_of_values(f, node, node->index, region, domain);
  if (why) return why;
  if (r->nnodes == MOST_NODES) return SAY("the other has %d nodes, as many as a kernel may", MOST_NODES);
  if (r->nsums + has_sums(node) > MOST_SUMS)
    return SAY("together they would have more than %d operators with sums", MOST_SUMS);
  NodeList both = {{node}, 1};
  list_region(f, region, &both);
  if (!have_same_groups(&both)) return GROUPS_DIFFER;
  if (has_many_streams(&both, domain, node)) return say_streams(f);
  return is_doubtful(node, r, domain) ? try_join(f, region, node) : NULL;
}

// Bytes that need not be moved if the node joins: what it reads as others there do, what it makes for them.
static int64_t saved_bytes(const Fusion *f, const Node *node, uint32_t region) {
  int64_t saved = 0;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    int looked = 0;
    for (const Use *use = node->inputs[i] ? node->inputs[i]->uses : NULL; use && looked < MOST_USES;
         use = use->next, looked++) {
      if (use->node->index <= node->index || region_of(f, use->node) != region) continue;
      saved += value_nbytes(node->inputs[i]);
      break;
    }
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    bool is_read = false, is_needed = v && v->is_output;
    for (const Use *use = v ? v->uses : NULL; use; use = use->next)
      *(region_of(f, use->node) == region ? &is_read : &is_needed) = true;
    saved += (is_read + (is_read && !is_needed)) * (v ? value_nbytes(v) : 0);
  }
  return saved;
}

static void add_candidate(const Fusion *f, const Node *node, uint32_t region, Candidate *list, uint32_t *count) {
  for (uint32_t i = 0; i < *count; i++)
    if (list[i].region == region) return;
  int64_t saved = *count < MOST_CANDIDATES ? saved_bytes(f, node, region) : 0;
  if (!saved) return;
  uint32_t at = (*count)++;
  for (; at && list[at - 1].saved < saved; at--) list[at] = list[at - 1];
  list[at] = (Candidate){region, saved};
}

// Regions of users, then of nodes that read the same data; what saves most comes first.
static uint32_t find_candidates(const Fusion *f, const Node *node, Candidate *list) {
  uint32_t count = 0;
  Shape domain = node_domain(node);
  for (uint32_t i = 0; i < node->noutputs; i++) {
    int looked = 0;
    for (const Use *use = node->outputs[i] ? node->outputs[i]->uses : NULL; use && looked < MOST_USES;
         use = use->next, looked++)
      add_candidate(f, node, region_of(f, use->node), list, &count);
  }
  for (uint32_t i = 0; i < node->ninputs && !has_trait(node, TRAIT_MOVES); i++) {
    if (!is_data(node->inputs[i], &domain)) continue;
    int looked = 0;
    for (const Use *use = node->inputs[i]->uses; use && looked < MOST_USES; use = use->next, looked++)
      if (use->node->index > node->index && !has_trait(use->node, TRAIT_MOVES))
        add_candidate(f, node, region_of(f, use->node), list, &count);
  }
  return count;
}

// Remembers for people why the node is in no kernel with the region.
static void refuse(Fusion *f, const Node *node, uint32_t region, const char *why) {
  Refusal *r = ARENA_NEW(&f->g->arena, Refusal);
  if (!r) {
    pass_out_of_memory(f->c);
    return;
  }
  const Refusal **newest = &f->partition->refusals[node->index];
  *r = (Refusal){f->g->nodes[region], why, *newest};
  *newest = r;
}

static void join(Fusion *f, const Node *node, uint32_t region) {
  Partition *p = f->partition;
  Region *r = &f->regions[region];
  Shape own = node_domain(node);
  if (is_domain_of_both(&own, &r->domain)) r->domain = own;
  p->next[node->index] = p->first[region];
  p->first[region] = node->index;
  p->first[node->index] = NO_NODE;
  p->region[node->index] = region;
  r->nnodes++;
  r->nsums += has_sums(node);
  r->is_fixed |= !is_spreadable(node);
  r->nbytes = UNKNOWN;
  f->changed = true;
}

// Regions as one

// The nodes of both, in the graph's order.
static void list_both(const Fusion *f, uint32_t one, uint32_t other, NodeList *list) {
  const Partition *p = f->partition;
  uint32_t i = p->first[one], k = p->first[other];
  while (i != NO_NODE || k != NO_NODE) {
    uint32_t *next = k == NO_NODE || (i != NO_NODE && i < k) ? &i : &k;
    list->nodes[list->count++] = f->g->nodes[*next];
    *next = p->next[*next];
  }
}

// Why the node and those it is with cannot become one with the other region, the first of the two part of the second,
// which stands behind it; NULL: they can, and are `both`.
static const char *refusal_to_merge(Fusion *f, const Node *node, uint32_t first, uint32_t second, NodeList *both,
                                    int64_t *nbytes) {
  const Region *a = &f->regions[first], *b = &f->regions[second];
  if (stands_alone(f->g->nodes[first]) || stands_alone(f->g->nodes[second])) return ALONE;
  if (!shape_equals(&a->domain, &b->domain)) return say_shapes(f, &a->domain, &b->domain);
  for (uint32_t i = f->partition->first[first]; i != NO_NODE; i = f->partition->next[i]) {
    const char *why = refusal_of_values(f, f->g->nodes[i], first, second, &b->domain);
    if (!why) continue;
    if (f->g->nodes[i] == node) return why;
    char title[NODE_TITLE_BYTES];
    return SAY("%s, in a kernel with it, cannot come along: %s", node_title(f->g->nodes[i], title), why);
  }
  if (a->nnodes + b->nnodes > MOST_NODES) return SAY("together they would have more than %d nodes", MOST_NODES);
  if (a->nsums + b->nsums > MOST_SUMS)
    return SAY("together they would have more than %d operators with sums", MOST_SUMS);
  list_both(f, first, second, both);
  if (!have_same_groups(both)) return GROUPS_DIFFER;
  if (has_many_streams(both, &b->domain, node)) return say_streams(f);
  int64_t apart = region_nbytes(f, first), others = region_nbytes(f, second);
  if (apart < 0 || others < 0) return "its sums take more than one kernel";
  *nbytes = try_kernel(f, both);
  if (*nbytes < 0) return NO_SCHEDULE;
  return *nbytes < apart + others ? NULL : say_bytes(f, *nbytes, apart + others);
}

// Makes the region of a node and another that it shares values with one, where that saves something.
static void try_merge(Fusion *f, const Node *node, uint32_t other) {
  const uint32_t own = region_of(f, node), first = own < other ? own : other, second = first == other ? own : other;
  NodeList both = {.count = 0};
  int64_t nbytes = UNKNOWN;
  const char *why = refusal_to_merge(f, node, first, second, &both, &nbytes);
  if (why) {
    refuse(f, node, other, why);
    return;
  }
  const Region *a = &f->regions[first];
  Region *b = &f->regions[second];
  *b = (Region){b->domain, both.count, a->nsums + b->nsums, a->is_fixed || b->is_fixed, true, nbytes};
  Partition *p = f->partition;
  p->first[first] = NO_NODE;
  p->first[second] = both.nodes[0]->index;
  for (uint32_t i = 0; i < both.count; i++) {
    const uint32_t index = both.nodes[i]->index;
    p->region[index] = second;
    p->next[index] = i + 1 < both.count ? both.nodes[i + 1]->index : NO_NODE;
  }
}

static void visit(Fusion *f, Node *node) {
  Candidate list[MOST_CANDIDATES];
  uint32_t count = f->is_off ? 0 : find_candidates(f, node, list), i = 0;
  const char *why[MOST_CANDIDATES];
  f->regions[node->index] = (Region){node_domain(node), 1, has_sums(node), !is_spreadable(node), false, UNKNOWN};
  while (i < count && (why[i] = refusal(f, node, list[i].region))) i++;
  bool joins = i < count;
  if (joins) join(f, node, list[i].region);
  for (uint32_t k = 0; k < count; k++) {
    if (!joins) refuse(f, node, list[k].region, why[k]);
    else if (k != i && region_of(f, node) != list[k].region) try_merge(f, node, list[k].region);
  }
}

bool pass_fuse(Graph *g, PassContext *c) {
  const Target any_machine = target_of_any_machine();
  Fusion f = {.g = g, .c = c, .is_off = c->no_fuse || pass_is_disabled(c, "fuse")};
  arena_init(&f.arena, c->allocator);
  f.partition = c->partition = partition_into_nodes(g);
  f.regions = ARENA_ARRAY(&f.arena, Region, g->nnodes);
  f.trial = (RegionLowering){.context = c, .graph = g, .target = &any_machine, .is_trial = true};
  if (!f.partition || !f.regions || !lower_scratch_init(&f.trial.scratch, &f.arena, g)) pass_out_of_memory(c);
  for (uint32_t i = (uint32_t)g->nnodes; i-- > 0 && !c->failed;) visit(&f, g->nodes[i]); // users first
  arena_deinit(&f.arena);
  return f.changed;
}
