// Partitions the graph into regions: sets of nodes that become one kernel.
//
// Visits users before producers. Candidates for a node are the regions of its users and of nodes that read the same
// inputs. The node joins the candidate that saves the most bytes of memory traffic, or else begins a region. Then other
// regions that share values with the node are merged with its region, if merging saves traffic. A region's id is its
// last node, and its kernel runs at that node's position. A node may join only if no kernel at an earlier position uses
// its results, so the order of kernels stays topological, and joining cannot make a cycle.
//
// If a region has sums, joining is tried out: the nodes are lowered, and their sums are ordered in one kernel, which
// must be possible and must not move more bytes than two kernels. Fusion determines the order of sums and where values
// are rounded, so the trial knows no target. Live values are not limited: compilers spill them to the L1 cache, which
// costs less than a tensor between two kernels (tests/bench/live_values.sh). Tensors that a kernel streams are limited.
//
// A pointwise node that computes an operand of a product joins the product's region if nothing else reads its results
// (prologue.c): the product's kernel computes each element once, while it packs the operand into panels. A node that
// can also be fused into the kernel of its input is fused there instead.
//
// Within a region, values are expressions over one domain, aligned at the right as in numpy. The statistics of a norm
// have other axes than the data: they can only be stored, or used by a norm over the same axes.
#include "passes/lower/fuse.h"

#include "ir/operators/contraction.h"
#include "passes/lower/fuse_trial.h"
#include "passes/lower/lower.h"
#include "passes/lower/pieces.h"

enum {
  MOST_USES = 16,     // uses of a value that are considered, so that fusion takes linear time
  MOST_CANDIDATES = 8 // regions that a node may join
};

enum { SHAPE_TEXT = 160 };

typedef struct Region {
  Shape domain;
  uint32_t nnodes, nsums;
  bool has_fixed_domain; // a node cannot be broadcast to a wider domain
  bool is_schedulable;   // a trial has shown that one kernel can compute its sums
  FuseTrial *trial;      // of its nodes; NULL: not known
} Region;

typedef struct Candidate { // a region that a node may join
  uint32_t region;
  int64_t saved; // bytes of memory traffic
} Candidate;

typedef struct Fusion {
  Graph *g;
  PassContext *c;
  const Costs *costs;
  Partition *partition;
  Region *regions; // by the index of the region's last node
  int *operand;    // by node->index: 1 + the operand of the region's product that the node helps to compute; 0: none
  Arena arena;     // freed with the pass
  NodeMarks marks; // for questions about lists of nodes
  FuseTrials trials;
  bool is_off; // each node stays a separate region, but those that expand join their sums
  bool changed;
} Fusion;

static uint32_t region_of(const Fusion *f, const Node *node) {
  return f->partition->region[node->index];
}

// Appends the region's nodes to a list of earlier nodes.
static void list_region(const Fusion *f, uint32_t region, NodeList *list) {
  const Partition *p = f->partition;
  for (uint32_t i = p->first[region]; i != NO_NODE; i = p->next[i]) list->nodes[list->count++] = f->g->nodes[i];
}

// A message that tells users why two nodes are not fused; in the graph's arena.
static const char *say(Fusion *f, const char *text) {
  if (!text) pass_out_of_memory(f->c);
  return text ? text : "";
}
#define SAY(...) say(f, arena_format(&f->g->arena, __VA_ARGS__))

static const char *say_shapes(Fusion *f, const Shape *own, const Shape *other) {
  char texts[2][SHAPE_TEXT];
  return SAY("it iterates over %s, the other over %s", shape_string(own, texts[0], SHAPE_TEXT),
             shape_string(other, texts[1], SHAPE_TEXT));
}

#define OTHER_ORDER "sums would be added in another order in one kernel than on their own"
static const char no_schedule[] = "no order of loops finishes the sums of both before they are needed";
#define NEVER_FUSED "one of the two is never fused: its iteration domain differs from its neighbours'"
#define OWN_AXES "one of the two sums over taps or inner axes of its operands, and the other has sums, too"
#define IN_PIECES "the product has a kernel for each part of its results, and the other's sums are over all of them"
#define NOT_OF_ROWS                                                                                                    \
  "the other's sums are not over rows of the product: each of its steps finishes some rows along the axis of vectors"
#define TYPES_DIFFER "the two compute in different types: f32, f64 or s64"

// Why the nodes stream more tensors than a kernel may; NULL: they do not.
static const char *refusal_of_streams(Fusion *f, const NodeList *list, const Shape *domain, const Node *visited) {
  const int64_t most = f->costs->fusion_streams;
  if (!list_has_many_streams(list, domain, most, visited->index, &f->marks)) return NULL;
  return SAY("together they would read and write more than %d tensors of this size", (int)most);
}

// Why the nodes cannot be in one kernel over the domain, in whatever order of loops; NULL: they may be.
static const char *refusal_of_nodes(Fusion *f, const NodeList *list, const Shape *domain, const Node *visited) {
  const Sums sums = list_count_sums(list);
  if (sums.nown > 1 || (sums.nown && sums.nothers && !sums.nproducts)) return OWN_AXES;
  if (sums.nown && sums.has_groups) return NOT_OF_ROWS;
  if (sums.nproducts && sums.has_bounds) return "a product's loops have no bounds for loads beside the product";
  if (sums.nown && sums.nothers && nodes_npieces(f->costs, list->nodes, list->count) > 1) return IN_PIECES;
  if (!list_has_same_groups(list)) return "the norms divide the channels into different groups";
  return refusal_of_streams(f, list, domain, visited);
}

// In the pass's arena. NULL: out of memory.
static FuseTrial *keep_trial(Fusion *f, const FuseTrial *trial) {
  FuseTrial *own = ARENA_NEW(&f->arena, FuseTrial);
  if (own) *own = *trial;
  else pass_out_of_memory(f->c);
  return own;
}

static const FuseTrial *region_trial(Fusion *f, uint32_t region) {
  static const FuseTrial none = {.nbytes = NO_KERNEL};
  Region *r = &f->regions[region];
  if (!r->trial) {
    NodeList list = {.count = 0};
    list_region(f, region, &list);
    const FuseTrial trial = fuse_try(&f->trials, &list);
    r->trial = keep_trial(f, &trial);
    r->is_schedulable = trial.nbytes >= 0;
  }
  return r->trial ? r->trial : &none;
}

static const char *say_bytes(Fusion *f, int64_t together, int64_t separate) {
  return SAY("one kernel would move %lld bytes, two kernels move %lld", (long long)together, (long long)separate);
}

static const char *why_no_schedule(const NodeList *list) {
  const Sums sums = list_count_sums(list);
  return sums.nproducts && sums.nothers ? NOT_OF_ROWS : no_schedule;
}

// Schedules the node and the region as one kernel. Returns why they are not fused: there is no schedule, sums have
// another order, or the kernel moves more bytes than two kernels, as it reads data again that has left the caches.
// `cached` bytes do not count. NULL: they may be fused.
static const char *try_join(Fusion *f, uint32_t region, Node *node, int64_t cached) {
  const FuseTrial *other = region_trial(f, region);
  if (other->nbytes < 0) return "the other's sums need more than one kernel";
  const FuseTrial *own = region_trial(f, node->index);
  NodeList both = {{node}, 1};
  list_region(f, region, &both);
  if (own->nbytes < 0) return "its sums need more than one kernel";
  const FuseTrial together = fuse_try(&f->trials, &both);
  if (together.nbytes < 0) return why_no_schedule(&both);
  const Node *sum = node_expands_into(node);
  if (!(sum ? fuse_keeps_others(&f->trials, &together, &both, sum, other) : fuse_keeps_orders(&together, own, other)))
    return OTHER_ORDER;
  const int64_t numbers = (int64_t)(nodes_npieces(f->costs, both.nodes, both.count) - 1) * f->costs->fusion_numbers;
  const int64_t separate = own->nbytes + other->nbytes;
  return together.nbytes - cached - numbers > separate ? say_bytes(f, together.nbytes, separate) : NULL;
}

static bool needs_trial(const Node *node, const Region *r, const Shape *domain) {
  return node_has_sums(node) || (r->nsums && !(r->is_schedulable && node_replaces_stream(node, domain)));
}

// Why a result of the node forbids joining the region: a kernel before the region needs the result, or a node in the
// region can only read it from memory. NULL: no result does. `own` is the node's region.
static const char *refusal_of_values(Fusion *f, const Node *node, uint32_t own, uint32_t region, const Shape *domain) {
  char title[NODE_TITLE_BYTES];
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    for (const Use *use = v ? v->uses : NULL; use; use = use->next) {
      const uint32_t users = region_of(f, use->node);
      if (users == own) continue;
      if (users < region) return SAY("%s, in an earlier kernel, needs %s", node_title(use->node, title), v->name);
      if (users != region) continue;
      if (use->node->op->traits & TRAIT_MOVES || node_has_own_axes(use->node) || f->operand[use->node->index])
        return SAY("%s reads %s at other indices", node_title(use->node, title), v->name);
      if (!value_can_be_expression(node, v, use->node, domain))
        return SAY("%s has other axes than the data and must go through memory", v->name);
    }
  }
  return NULL;
}

static const char *say_sums(Fusion *f) {
  return SAY("together they would have more than %d operators with sums", (int)f->costs->fusion_sums);
}

// 1 + the operand of a product that the value helps to compute as an input of `user`; 0: none.
static int operand_of(const Fusion *f, const Node *user, const Value *v) {
  return f->operand[user->index] ? f->operand[user->index] : contraction_operand(user, v);
}

// 1 + the operand of the region's product that a result of the node helps to compute; 0: none.
static int operand_in(const Fusion *f, const Node *node, uint32_t region) {
  int operand = 0;
  for (uint32_t i = 0; i < node->noutputs; i++)
    for (const Use *use = node->outputs[i] ? node->outputs[i]->uses : NULL; use && !operand; use = use->next)
      if (region_of(f, use->node) == region) operand = operand_of(f, use->node, node->outputs[i]);
  return operand;
}

// Whether this node can end the kernel of an earlier node with sums: only pointwise nodes without other users are in
// between. False if a value in between has a narrower type, such as quantised data: the earlier kernel should store
// that value.
static bool ends_other_kernel(const Fusion *f, Node *node) {
  const Value *result = node->outputs[0];
  NodeList list = {{node}, 1};
  for (uint32_t i = 0; i < list.count; i++)
    for (uint32_t s = 0; s < list.nodes[i]->ninputs; s++) {
      const Value *v = list.nodes[i]->inputs[s];
      Node *maker = v ? v->producer : NULL;
      if (!maker || v->is_output || v->uses->next || !shape_equals(&v->shape, &result->shape)) continue;
      if (value_nbytes(v) < value_nbytes(result) || f->operand[maker->index] || list.count == MOST_NODES) continue;
      if (node_has_sums(maker)) return true;
      if (node_is_pointwise(maker)) list.nodes[list.count++] = maker;
    }
  return false;
}

// Bytes to store and load the product's copy of the operand, if the copy fits the L2 cache: these cost less than
// another kernel, even one that stores a narrower type. 0: the copy does not fit.
static int64_t cached_nbytes(const Fusion *f, const Node *node) {
  const int64_t nbytes = shape_nelems(&node->outputs[0]->shape) * (int64_t)sizeof(float);
  return nbytes <= f->costs->fusion_cache ? 2 * nbytes : 0;
}

// Why the node cannot be in the prologue of the region's product; NULL: it can.
static const char *refusal_of_prologue(Fusion *f, Node *node, uint32_t region, int operand) {
  const Region *r = &f->regions[region];
  char title[NODE_TITLE_BYTES];
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    if (v && v->is_output) return SAY("the graph has %s as an output, and a product need not read all of it", v->name);
    for (const Use *use = v ? v->uses : NULL; use; use = use->next) {
      if (region_of(f, use->node) == region && !node_is_pointwise(node))
        return SAY("%s reads %s at other indices", node_title(use->node, title), v->name);
      if (region_of(f, use->node) != region || operand_of(f, use->node, v) != operand)
        return SAY("%s has other uses than one operand of a product", v->name);
      if (f->operand[use->node->index] && !value_can_be_expression(node, v, use->node, &use->node->outputs[0]->shape))
        return SAY("%s has other axes than the data and must go through memory", v->name);
    }
  }
  if (!shape_nelems(&node->outputs[0]->shape)) return "it has no elements";
  if (ends_other_kernel(f, node)) return "it can end the kernel that makes its input instead";
  if (r->nnodes == MOST_NODES) return SAY("the other's kernel already has %d nodes, the most", MOST_NODES);
  NodeList both = {{node}, 1};
  list_region(f, region, &both);
  const char *why = refusal_of_streams(f, &both, &r->domain, node);
  if (why) return why;
  f->operand[node->index] = operand;
  why = try_join(f, region, node, cached_nbytes(f, node));
  if (why) f->operand[node->index] = 0;
  return why == no_schedule ? "the product would compute the operand again for each use" : why;
}

// Whether the node makes a value narrower that a kernel before the region needs: then an earlier kernel should, so that
// only the narrow value lives until the region.
static bool narrows_earlier_value(const Fusion *f, const Node *node, uint32_t region) {
  const Value *v = node->op->id == OP_TypeCast ? node->inputs[0] : NULL;
  if (!v || !v->producer || type_nbytes(node->outputs[0]->type) >= type_nbytes(v->type)) return false;
  bool is_needed = false, is_read = false;
  for (const Use *use = v->uses; use; use = use->next) {
    if (use->node == node) continue;
    is_needed |= use->node->index < node->index || region_of(f, use->node) < region;
    is_read |= region_of(f, use->node) == region;
  }
  return is_needed && !is_read;
}

// Why the node cannot join the region; NULL: it can.
static const char *refusal(Fusion *f, Node *node, uint32_t region) {
  const Region *r = &f->regions[region];
  Shape own = node_domain(node);
  if (node_is_never_fused(node) || node_is_never_fused(f->g->nodes[region])) return NEVER_FUSED;
  if (!nodes_compute_alike(f->costs, node, f->g->nodes[region])) return TYPES_DIFFER;
  if (narrows_earlier_value(f, node, region)) return "an earlier kernel needs what it makes narrower";
  const int operand = operand_in(f, node, region);
  if (operand) return refusal_of_prologue(f, node, region, operand);
  bool is_wider = !shape_equals(&own, &r->domain) && shape_broadcasts_to(&r->domain, &own);
  const Shape *domain = is_wider ? &own : &r->domain;
  bool is_narrow = !is_wider && !shape_equals(&own, domain);
  if ((is_narrow || is_wider) && !shape_nelems(domain)) return say_shapes(f, &own, &r->domain); // empty
  if (is_narrow && (!node_is_broadcastable(node) || !shape_broadcasts_to(&own, domain)))
    return say_shapes(f, &own, &r->domain);
  if (is_wider && (r->has_fixed_domain || !node_has_sums(node))) return say_shapes(f, &own, &r->domain);
  const char *why = refusal_of_values(f, node, node->index, region, domain);
  if (why) return why;
  if (node_has_own_axes(node) && (is_wider || is_narrow)) return OWN_AXES;
  if (r->nnodes == MOST_NODES) return SAY("the other's kernel already has %d nodes, the most", MOST_NODES);
  if (r->nsums + node_has_sums(node) > f->costs->fusion_sums) return say_sums(f);
  NodeList both = {{node}, 1};
  list_region(f, region, &both);
  why = refusal_of_nodes(f, &both, domain, node);
  return !why && needs_trial(node, r, domain) ? try_join(f, region, node, 0) : why;
}

// Traffic that joining the region saves: inputs that the region also reads, and outputs that the region reads (the
// loads, and the stores if nothing else reads them).
static int64_t saved_bytes(const Fusion *f, const Node *node, uint32_t region) {
  int64_t saved = 0;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    int looked = 0;
    for (const Use *use = node->inputs[i] ? node->inputs[i]->uses : NULL; use && looked < MOST_USES;
         use = use->next, looked++) {
      if (use->node->index <= node->index || region_of(f, use->node) != region) continue;
      saved += (int64_t)value_nbytes(node->inputs[i]);
      break;
    }
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    bool is_read = false, is_needed = v && v->is_output;
    for (const Use *use = v ? v->uses : NULL; use; use = use->next)
      *(region_of(f, use->node) == region ? &is_read : &is_needed) = true;
    saved += (is_read + (is_read && !is_needed)) * (v ? (int64_t)value_nbytes(v) : 0);
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

// Lists candidate regions: of the node's users, and of nodes that read the same data. Sorted by bytes saved.
static uint32_t find_candidates(const Fusion *f, const Node *node, Candidate *list) {
  uint32_t count = 0;
  Shape domain = node_domain(node);
  if (node_expands_into(node)) { // not elsewhere, as this decides the order of the sum
    add_candidate(f, node, region_of(f, node->outputs[0]->uses->node), list, &count);
    return count;
  }
  if (f->is_off) return 0;
  for (uint32_t i = 0; i < node->noutputs; i++) {
    int looked = 0;
    for (const Use *use = node->outputs[i] ? node->outputs[i]->uses : NULL; use && looked < MOST_USES;
         use = use->next, looked++)
      add_candidate(f, node, region_of(f, use->node), list, &count);
  }
  for (uint32_t i = 0; i < node->ninputs && !(node->op->traits & TRAIT_MOVES); i++) {
    if (!value_is_data(node->inputs[i], &domain)) continue;
    int looked = 0;
    for (const Use *use = node->inputs[i]->uses; use && looked < MOST_USES; use = use->next, looked++)
      if (use->node->index > node->index && !(use->node->op->traits & TRAIT_MOVES))
        add_candidate(f, node, region_of(f, use->node), list, &count);
  }
  return count;
}

// Records, for users, why the node is not fused with the region.
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
  if (!f->operand[node->index] && shape_is_domain_of_both(&own, &r->domain)) r->domain = own;
  p->next[node->index] = p->first[region];
  p->first[region] = node->index;
  p->first[node->index] = NO_NODE;
  p->region[node->index] = region;
  r->nnodes++;
  r->nsums += node_has_sums(node);
  r->has_fixed_domain |= !node_is_broadcastable(node);
  r->trial = NULL;
  f->changed = true;
}

// Merging two regions

// The nodes of both regions, in the graph's order.
static void list_both(const Fusion *f, uint32_t one, uint32_t other, NodeList *list) {
  const Partition *p = f->partition;
  uint32_t i = p->first[one], k = p->first[other];
  while (i != NO_NODE || k != NO_NODE) {
    uint32_t *next = k == NO_NODE || (i != NO_NODE && i < k) ? &i : &k;
    list->nodes[list->count++] = f->g->nodes[*next];
    *next = p->next[*next];
  }
}

// Why two regions, one of which contains the node, cannot be merged; NULL: they can. The merged region gets the second
// region's id. Sets `both` to its nodes and *trial to their trial.
static const char *refusal_to_merge(Fusion *f, const Node *node, uint32_t first, uint32_t second, NodeList *both,
                                    FuseTrial *trial) {
  const Region *a = &f->regions[first], *b = &f->regions[second];
  if (node_is_never_fused(f->g->nodes[first]) || node_is_never_fused(f->g->nodes[second])) return NEVER_FUSED;
  if (!nodes_compute_alike(f->costs, f->g->nodes[first], f->g->nodes[second])) return TYPES_DIFFER;
  if (!shape_equals(&a->domain, &b->domain)) return say_shapes(f, &a->domain, &b->domain);
  for (uint32_t i = f->partition->first[first]; i != NO_NODE; i = f->partition->next[i]) {
    const char *why = refusal_of_values(f, f->g->nodes[i], first, second, &b->domain);
    if (!why) continue;
    if (f->g->nodes[i] == node) return why;
    char title[NODE_TITLE_BYTES];
    return SAY("%s, in the same kernel, cannot be fused: %s", node_title(f->g->nodes[i], title), why);
  }
  if (a->nnodes + b->nnodes > MOST_NODES) return SAY("together they would have more than %d nodes", MOST_NODES);
  if (a->nsums + b->nsums > f->costs->fusion_sums) return say_sums(f);
  list_both(f, first, second, both);
  const char *why = refusal_of_nodes(f, both, &b->domain, node);
  if (why) return why;
  const FuseTrial *one = region_trial(f, first), *other = region_trial(f, second);
  const int64_t separate = one->nbytes + other->nbytes;
  if (one->nbytes < 0 || other->nbytes < 0) return "its sums need more than one kernel";
  *trial = fuse_try(&f->trials, both);
  if (trial->nbytes < 0) return why_no_schedule(both);
  if (!fuse_keeps_orders(trial, one, other)) return OTHER_ORDER;
  return trial->nbytes < separate ? NULL : say_bytes(f, trial->nbytes, separate);
}

// Merges the node's region with another if this is possible and saves traffic; else records the reason.
static void try_merge(Fusion *f, const Node *node, uint32_t other) {
  const uint32_t own = region_of(f, node), first = own < other ? own : other, second = first == other ? own : other;
  NodeList both = {.count = 0};
  FuseTrial trial;
  const char *why = refusal_to_merge(f, node, first, second, &both, &trial);
  if (why) {
    refuse(f, node, other, why);
    return;
  }
  const Region *a = &f->regions[first];
  Region *b = &f->regions[second];
  *b = (Region){.domain = b->domain,
                .nnodes = both.count,
                .nsums = a->nsums + b->nsums,
                .has_fixed_domain = a->has_fixed_domain || b->has_fixed_domain,
                .is_schedulable = true,
                .trial = keep_trial(f, &trial)};
  Partition *p = f->partition;
  p->first[first] = NO_NODE;
  p->first[second] = both.count ? both.nodes[0]->index : NO_NODE;
  for (uint32_t i = 0; i < both.count; i++) {
    const uint32_t index = both.nodes[i]->index;
    p->region[index] = second;
    p->next[index] = i + 1 < both.count ? both.nodes[i + 1]->index : NO_NODE;
  }
}

static void fuse_node(Fusion *f, Node *node) {
  Candidate list[MOST_CANDIDATES];
  uint32_t count = find_candidates(f, node, list), i = 0;
  const char *why[MOST_CANDIDATES];
  f->regions[node->index] = (Region){.domain = node_domain(node),
                                     .nnodes = 1,
                                     .nsums = node_has_sums(node),
                                     .has_fixed_domain = !node_is_broadcastable(node)};
  while (i < count && (why[i] = refusal(f, node, list[i].region))) i++;
  bool joins = i < count;
  if (joins) join(f, node, list[i].region);
  for (uint32_t k = 0; k < count; k++) {
    if (!joins) refuse(f, node, list[k].region, why[k]);
    else if (k != i && region_of(f, node) != list[k].region) try_merge(f, node, list[k].region);
  }
}

bool pass_fuse(Graph *g, PassContext *c) {
  Fusion f = {.g = g, .c = c, .costs = costs_or_usual(c->costs), .is_off = c->no_fuse || pass_is_disabled(c, "fuse")};
  arena_init(&f.arena, c->allocator);
  f.partition = c->partition = partition_into_nodes(g);
  f.regions = ARENA_ARRAY(&f.arena, Region, g->nnodes);
  f.operand = ARENA_ARRAY(&f.arena, int, g->nnodes);
  f.marks = (NodeMarks){.marks = ARENA_ARRAY(&f.arena, uint32_t, g->nnodes)};
  f.trials =
      (FuseTrials){.costs = f.costs, .operand = f.operand, .lowering = {.context = c, .graph = g, .is_trial = true}};
  if (!f.partition || !f.regions || !f.operand || !f.marks.marks ||
      !lower_scratch_init(&f.trials.lowering.scratch, &f.arena, g, c->costs))
    pass_out_of_memory(c);
  for (uint32_t i = (uint32_t)g->nnodes; i-- > 0 && !c->failed;) fuse_node(&f, g->nodes[i]); // users first
  arena_deinit(&f.arena);
  return f.changed;
}
