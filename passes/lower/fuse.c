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
// are rounded, so the trial knows no target: nothing that tuning chooses counts. The number of live values is not
// limited: compilers spill values beyond the registers to the L1 cache, which costs less than a tensor between two
// kernels (measured by tests/bench/live_values.sh). The number of tensors that a kernel streams is limited.
//
// A pointwise node that computes an operand of a product joins the product's region if nothing else reads its results
// (prologue.c): the product's kernel computes each element once, while it packs the operand into panels. A node that
// can also be fused into the kernel of its input is fused there instead.
//
// Within a region, values are expressions over one domain, aligned at the right as in numpy. The statistics of a norm
// have other axes than the data: they can only be stored, or used by a norm over the same axes.
#include "passes/lower/fuse.h"

#include "ir/operators/contraction.h"
#include "ir/operators/elementwise.h"
#include "ir/operators/norm.h"
#include "passes/lower/aliases.h"
#include "passes/lower/pieces.h"
#include "passes/lower/regions.h"
#include "passes/schedule/traffic.h"

enum {
  MOST_NODES = 128,   // in a region: limits the size of kernels, and the time to search for equal expressions
  MOST_STREAMS = 128, // values of the cost fusion_streams
  MOST_USES = 16,     // uses of a value that are considered, so that fusion takes linear time
  MOST_CANDIDATES = 8 // regions that a node may join
};

enum { SHAPE_TEXT = 160 };
#define UNKNOWN (-2)   // a kernel's traffic that has not been computed yet
#define NO_KERNEL (-1) // no schedule computes the nodes as one kernel

typedef struct Region {
  Shape domain;
  uint32_t nnodes, nsums;
  bool has_fixed_domain; // a node cannot be broadcast to a wider domain
  bool is_schedulable;   // a trial has shown that one kernel can compute its sums
  int64_t nbytes;        // traffic of its kernel; or UNKNOWN, NO_KERNEL
} Region;

typedef struct NodeList { // in the graph's order
  Node *nodes[MOST_NODES];
  uint32_t count;
} NodeList;

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
  RegionLowering trial;
  bool is_off; // each node stays a separate region
  bool changed;
} Fusion;

static uint32_t region_of(const Fusion *f, const Node *node) {
  return f->partition->region[node->index];
}

static bool has_trait(const Node *node, unsigned trait) {
  return node->op->traits & trait;
}

// Whether the node never fuses: its iteration domain is a slice of the output, it adds to rows of the output at
// computed indices, or it has no kernel.
static bool is_never_fused(const Node *node) {
  return has_trait(node, TRAIT_PIECES | TRAIT_SCATTERS) || node_is_alias(node);
}

// Whether the node has extra axes, as products and windows have, along which it reads its operands from memory. A
// region has at most one such node. Elementwise nodes may join it, and for a product, nodes with sums over rows.
static bool has_own_axes(const Node *node) {
  return node->op->domain;
}

static bool is_product(const Node *node) {
  return has_own_axes(node) && node->ninputs >= 2 &&
         (contraction_operand(node, node->inputs[0]) || contraction_operand(node, node->inputs[1]));
}

static bool has_sums(const Node *node) {
  return !has_trait(node, TRAIT_ELEMENTWISE | TRAIT_POINTWISE | TRAIT_MOVES);
}

static bool is_pointwise(const Node *node) {
  return has_trait(node, TRAIT_ELEMENTWISE | TRAIT_POINTWISE);
}

// Whether numpy broadcasts the first shape to the second.
static bool broadcasts_to(const Shape *from, const Shape *to) {
  if (from->rank > to->rank) return false;
  for (int i = 1; i <= from->rank; i++) {
    Extent e = from->extent[from->rank - i];
    if (extent_value(e) != 1 && !extent_equals(e, to->extent[to->rank - i])) return false;
  }
  return true;
}

// Whether lower_region would choose the first shape as the domain of a region with nodes over both shapes.
static bool is_domain_of_both(const Shape *one, const Shape *other) {
  const int64_t nelems = shape_nelems(one), others = shape_nelems(other);
  return nelems > others || (nelems == others && one->rank > other->rank);
}

// Whether the value is a tensor of the domain's size or larger, not a parameter or statistic.
static bool is_data(const Value *v, const Shape *domain) {
  return v && shape_nelems(&v->shape) >= shape_nelems(domain) && shape_nelems(domain) > 1;
}

// Whether the node may be computed over a wider domain: its operands and results broadcast by numpy's rules.
static bool is_broadcastable(const Node *node) {
  return has_trait(node, TRAIT_ELEMENTWISE) && !operator_places_by_axis(node->op);
}

// Whether the node's result is aligned at the right with its inputs' axes.
static bool is_aligned(const Node *maker) {
  return has_trait(maker, TRAIT_REDUCES) ? node_bool(maker, "keep_dims") : is_broadcastable(maker);
}

static bool is_statistic_operand(const Node *node, const Value *v) {
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->inputs[i] == v && !node->op->inputs[i].is_statistic) return false;
  return true;
}

static Type computed_type(const Node *node) {
  return node->inputs[0]->type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
}

// Whether the value is a statistic that one norm computes and another norm over the same axes uses, so that it varies
// over the same axes of the kernel in both. Its type must be the type that the user computes in: otherwise the value
// would have to be rounded.
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

// Whether the value can be an expression from maker to user, without memory.
static bool can_be_expression(const Node *maker, const Value *v, const Node *user, const Shape *domain) {
  if (shape_equals(&v->shape, domain) || is_of_same_norm(maker, v, user)) return true;
  return is_aligned(maker) && is_broadcastable(user) && broadcasts_to(&v->shape, domain);
}

// Appends the region's nodes to a list of earlier nodes.
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

// Whether both nodes compute in s64, or neither does; all nodes of a region agree.
static bool computes_alike(const Node *node, const Node *other) {
  return node_computes_in_s64(node) == node_computes_in_s64(other);
}

// The number of tensors of the domain's size that one kernel of these nodes would read and write; stops at most + 1.
static int64_t count_streams(const NodeList *list, const Shape *domain, int64_t most) {
  const Value *seen[MOST_STREAMS + 1];
  int64_t count = 0;
  for (uint32_t i = 0; i < list->count; i++) {
    const Node *node = list->nodes[i];
    for (uint32_t s = 0; s < node->ninputs + node->noutputs; s++) {
      bool is_input = s < node->ninputs;
      const Value *v = is_input ? node->inputs[s] : node->outputs[s - node->ninputs];
      if (!is_data(v, domain)) continue;
      bool is_counted = is_input ? v->producer && is_listed(list, v->producer) : !is_used_outside(v, list);
      for (int64_t k = 0; k < count; k++) is_counted |= seen[k] == v;
      if (is_counted) continue;
      seen[count++] = v;
      if (count > most) return count;
    }
  }
  return count;
}

// Appends all elementwise producers, direct and indirect, of the listed nodes that have not been visited yet: their
// index is below `first`. False: more nodes than a region may have.
static bool list_unvisited_producers(NodeList *list, const Shape *domain, uint32_t first) {
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

// Whether the nodes stream more tensors than a kernel may. Elementwise producers that have not been visited can still
// join the region: their inputs would then be streamed instead of their results. So a region over the limit is counted
// again with these producers.
static bool has_many_streams(const Fusion *f, const NodeList *list, const Shape *domain, const Node *visited) {
  const int64_t most = f->costs->fusion_streams;
  if (count_streams(list, domain, most) <= most) return false;
  NodeList all = *list;
  return !list_unvisited_producers(&all, domain, visited->index) || count_streams(&all, domain, most) > most;
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

static const char no_schedule[] = "no order of loops finishes the sums of both before they are needed";
#define NEVER_FUSED "one of the two is never fused: its iteration domain differs from its neighbours'"
#define OWN_AXES "one of the two sums over taps or inner axes of its operands, and the other has sums, too"
#define IN_PIECES "the product has a kernel for each piece of its results, and the other's sums are over all pieces"
#define NOT_OF_ROWS                                                                                                    \
  "the other's sums are not over rows of the product: each of its steps finishes some rows along the axis of vectors"
#define TYPES_DIFFER "one of the two computes in s64, the other in floating point"
#define GROUPS_DIFFER "the norms divide the channels into different groups"

typedef struct Sums {                // counts of a list's nodes with sums
  uint32_t nown, nproducts, nothers; // with extra axes; products among these; without extra axes
  bool has_groups;                   // a sum is over the channels of a group
  bool has_bounds;                   // a node's loads may have bounds
} Sums;

static Sums count_sums(const NodeList *list) {
  Sums sums = {0};
  for (uint32_t i = 0; i < list->count; i++) {
    const bool is_own = has_own_axes(list->nodes[i]);
    sums.nown += is_own;
    sums.nproducts += is_product(list->nodes[i]);
    sums.nothers += !is_own && has_sums(list->nodes[i]);
    sums.has_groups |= list->nodes[i]->op->norm_scope == SCOPE_GROUP;
    sums.has_bounds |= has_trait(list->nodes[i], TRAIT_BOUNDED);
  }
  return sums;
}

// Why the nodes' sums cannot be in one kernel, independent of shapes; NULL: they may be.
static const char *refusal_of_sums(const Fusion *f, const NodeList *list) {
  const Sums sums = count_sums(list);
  if (sums.nown > 1 || (sums.nown && sums.nothers && !sums.nproducts)) return OWN_AXES;
  if (sums.nown && sums.has_groups) return NOT_OF_ROWS;
  if (sums.nproducts && sums.has_bounds) return "a product's loops have no bounds for loads beside the product";
  return sums.nown && sums.nothers && nodes_npieces(f->costs, list->nodes, list->count) > 1 ? IN_PIECES : NULL;
}

// Whether the nodes are a product and other nodes with sums, and the schedule has no loop with is_product.
static bool loses_product(const NodeList *list, const Schedule *s) {
  const Sums sums = count_sums(list);
  bool has_loop = !sums.nproducts || !sums.nothers;
  for (size_t i = 0; i < s->nloops; i++) has_loop |= s->loops[i].is_product;
  return !has_loop;
}

// Traffic of one piece of the nodes as one scheduled kernel; NO_KERNEL: there is no schedule.
static int64_t try_piece(Fusion *f, const NodeList *list, uint32_t piece) {
  Arena arena;
  arena_init(&arena, f->c->allocator);
  const Schedule *s = lower_and_schedule(&f->trial, &arena, list->nodes, list->count, NULL, piece);
  bool has_prologue = false;
  for (uint32_t i = 0; i < list->count; i++) has_prologue |= f->operand[list->nodes[i]->index] != 0;
  const bool is_sound = s && !(has_prologue && schedule_recomputes(s)) && !loses_product(list, s);
  int64_t nbytes = is_sound ? schedule_traffic(s, f->costs->fusion_cache) : NO_KERNEL;
  if (s && s->kernel->out_of_memory) pass_out_of_memory(f->c);
  arena_deinit(&arena);
  return nbytes;
}

// Traffic of the nodes with one scheduled kernel for each piece; NO_KERNEL: a piece has no schedule.
static int64_t try_kernel(Fusion *f, const NodeList *list) {
  const uint32_t npieces = nodes_npieces(f->costs, list->nodes, list->count);
  int64_t nbytes = 0;
  for (uint32_t piece = 0; piece < npieces && nbytes >= 0; piece++) {
    const int64_t own = try_piece(f, list, piece);
    nbytes = own < 0 ? NO_KERNEL : nbytes + own;
  }
  return nbytes;
}

static int64_t region_nbytes(Fusion *f, uint32_t region) {
  Region *r = &f->regions[region];
  if (r->nbytes != UNKNOWN) return r->nbytes;
  NodeList list = {.count = 0};
  list_region(f, region, &list);
  r->nbytes = try_kernel(f, &list);
  r->is_schedulable = r->nbytes >= 0;
  return r->nbytes;
}

static const char *say_bytes(Fusion *f, int64_t together, int64_t separate) {
  return SAY("one kernel would move %lld bytes, two kernels move %lld", (long long)together, (long long)separate);
}

static const char *why_no_schedule(const NodeList *list) {
  const Sums sums = count_sums(list);
  return sums.nproducts && sums.nothers ? NOT_OF_ROWS : no_schedule;
}

// Schedules the node and the region as one kernel. Returns why they are not fused: there is no schedule, or the kernel
// moves more bytes than two kernels, as it reads data again that has left the caches. `cached` bytes do not count.
// NULL: they may be fused.
static const char *try_join(Fusion *f, uint32_t region, Node *node, int64_t cached) {
  int64_t others = region_nbytes(f, region);
  if (others < 0) return "the other's sums need more than one kernel";
  NodeList both = {{node}, 1}, alone = both;
  list_region(f, region, &both);
  int64_t separate = try_kernel(f, &alone);
  if (separate < 0) return "its sums need more than one kernel";
  int64_t together = try_kernel(f, &both);
  if (together < 0) return why_no_schedule(&both);
  const int64_t numbers = (int64_t)(nodes_npieces(f->costs, both.nodes, both.count) - 1) * f->costs->fusion_numbers;
  return together - cached - numbers > separate + others ? say_bytes(f, together, separate + others) : NULL;
}

// Whether the node replaces one stream of the region by another of the same size, so that joining cannot make a
// schedule impossible or slower. A splat constant is no stream: it varies over no axis.
static bool replaces_one_stream(const Node *node, const Shape *domain) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  if (src->constant && src->constant->is_splat) return false;
  return has_trait(node, TRAIT_ELEMENTWISE) && node->ninputs == 1 && shape_equals(&src->shape, domain) &&
         shape_equals(&dst->shape, domain) && layout_is_row_major(&src->layout) && layout_is_row_major(&dst->layout);
}

static bool needs_trial(const Node *node, const Region *r, const Shape *domain) {
  return has_sums(node) || (r->nsums && !(r->is_schedulable && replaces_one_stream(node, domain)));
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
      if (has_trait(use->node, TRAIT_MOVES) || has_own_axes(use->node) || f->operand[use->node->index])
        return SAY("%s reads %s at other indices", node_title(use->node, title), v->name);
      if (!can_be_expression(node, v, use->node, domain))
        return SAY("%s has other axes than the data and must go through memory", v->name);
    }
  }
  return NULL;
}

// Whether all group norms among the nodes have the same groups: a kernel can split the channel axis in one way only.
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

static const char *say_sums(Fusion *f) {
  return SAY("together they would have more than %d operators with sums", (int)f->costs->fusion_sums);
}

static const char *say_streams(Fusion *f) {
  return SAY("together they would read and write more than %d tensors of this size", (int)f->costs->fusion_streams);
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
      if (has_sums(maker)) return true;
      if (is_pointwise(maker)) list.nodes[list.count++] = maker;
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
    for (const Use *use = v ? v->uses : NULL; use; use = use->next) {
      if (region_of(f, use->node) == region && !is_pointwise(node))
        return SAY("%s reads %s at other indices", node_title(use->node, title), v->name);
      if (v->is_output || region_of(f, use->node) != region || operand_of(f, use->node, v) != operand)
        return SAY("%s has other uses than one operand of a product", v->name);
      if (f->operand[use->node->index] && !can_be_expression(node, v, use->node, &use->node->outputs[0]->shape))
        return SAY("%s has other axes than the data and must go through memory", v->name);
    }
  }
  if (!shape_nelems(&node->outputs[0]->shape)) return "it has no elements";
  for (uint32_t i = f->partition->first[region]; i != NO_NODE; i = f->partition->next[i])
    if (node_computes_in_f64(f->costs, node) && !node_computes_in_f64(f->costs, f->g->nodes[i]))
      return "it computes in f64, the other does not";
  if (ends_other_kernel(f, node)) return "it can end the kernel that makes its input instead";
  if (r->nnodes == MOST_NODES) return SAY("the other's kernel already has %d nodes, the most", MOST_NODES);
  NodeList both = {{node}, 1};
  list_region(f, region, &both);
  if (has_many_streams(f, &both, &r->domain, node)) return say_streams(f);
  f->operand[node->index] = operand;
  const char *why = try_join(f, region, node, cached_nbytes(f, node));
  if (why) f->operand[node->index] = 0;
  return why == no_schedule ? "the product would compute the operand again for each use" : why;
}

// Why the node cannot join the region; NULL: it can.
static const char *refusal(Fusion *f, Node *node, uint32_t region) {
  const Region *r = &f->regions[region];
  Shape own = node_domain(node);
  if (is_never_fused(node) || is_never_fused(f->g->nodes[region])) return NEVER_FUSED;
  if (!computes_alike(node, f->g->nodes[region])) return TYPES_DIFFER;
  const int operand = operand_in(f, node, region);
  if (operand) return refusal_of_prologue(f, node, region, operand);
  bool is_wider = !shape_equals(&own, &r->domain) && broadcasts_to(&r->domain, &own);
  const Shape *domain = is_wider ? &own : &r->domain;
  bool is_narrow = !is_wider && !shape_equals(&own, domain);
  if ((is_narrow || is_wider) && !shape_nelems(domain)) return say_shapes(f, &own, &r->domain); // empty
  if (is_narrow && (!is_broadcastable(node) || !broadcasts_to(&own, domain))) return say_shapes(f, &own, &r->domain);
  if (is_wider && (r->has_fixed_domain || !has_sums(node))) return say_shapes(f, &own, &r->domain);
  const char *why = refusal_of_values(f, node, node->index, region, domain);
  if (why) return why;
  if (has_own_axes(node) && (is_wider || is_narrow)) return OWN_AXES;
  if (r->nnodes == MOST_NODES) return SAY("the other's kernel already has %d nodes, the most", MOST_NODES);
  if (r->nsums + has_sums(node) > f->costs->fusion_sums) return say_sums(f);
  NodeList both = {{node}, 1};
  list_region(f, region, &both);
  why = refusal_of_sums(f, &both);
  if (why) return why;
  if (!have_same_groups(&both)) return GROUPS_DIFFER;
  if (has_many_streams(f, &both, domain, node)) return say_streams(f);
  return needs_trial(node, r, domain) ? try_join(f, region, node, 0) : NULL;
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
  if (!f->operand[node->index] && is_domain_of_both(&own, &r->domain)) r->domain = own;
  p->next[node->index] = p->first[region];
  p->first[region] = node->index;
  p->first[node->index] = NO_NODE;
  p->region[node->index] = region;
  r->nnodes++;
  r->nsums += has_sums(node);
  r->has_fixed_domain |= !is_broadcastable(node);
  r->nbytes = UNKNOWN;
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
// region's id. Sets `both` to its nodes and *nbytes to its traffic.
static const char *refusal_to_merge(Fusion *f, const Node *node, uint32_t first, uint32_t second, NodeList *both,
                                    int64_t *nbytes) {
  const Region *a = &f->regions[first], *b = &f->regions[second];
  if (is_never_fused(f->g->nodes[first]) || is_never_fused(f->g->nodes[second])) return NEVER_FUSED;
  if (!computes_alike(f->g->nodes[first], f->g->nodes[second])) return TYPES_DIFFER;
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
  const char *of_sums = refusal_of_sums(f, both);
  if (of_sums) return of_sums;
  if (!have_same_groups(both)) return GROUPS_DIFFER;
  if (has_many_streams(f, both, &b->domain, node)) return say_streams(f);
  int64_t separate = region_nbytes(f, first), others = region_nbytes(f, second);
  if (separate < 0 || others < 0) return "its sums need more than one kernel";
  *nbytes = try_kernel(f, both);
  if (*nbytes < 0) return why_no_schedule(both);
  return *nbytes < separate + others ? NULL : say_bytes(f, *nbytes, separate + others);
}

// Merges the node's region with another if this is possible and saves traffic; else records the reason.
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
  *b = (Region){.domain = b->domain,
                .nnodes = both.count,
                .nsums = a->nsums + b->nsums,
                .has_fixed_domain = a->has_fixed_domain || b->has_fixed_domain,
                .is_schedulable = true,
                .nbytes = nbytes};
  Partition *p = f->partition;
  p->first[first] = NO_NODE;
  p->first[second] = both.count ? both.nodes[0]->index : NO_NODE;
  for (uint32_t i = 0; i < both.count; i++) {
    const uint32_t index = both.nodes[i]->index;
    p->region[index] = second;
    p->next[index] = i + 1 < both.count ? both.nodes[i + 1]->index : NO_NODE;
  }
}

static void slice_group(Fusion *f, Node *node) {
  Candidate list[MOST_CANDIDATES];
  uint32_t count = f->is_off ? 0 : find_candidates(f, node, list), i = 0;
  const char *why[MOST_CANDIDATES];
  f->regions[node->index] = (Region){.domain = node_domain(node),
                                     .nnodes = 1,
                                     .nsums = has_sums(node),
                                     .has_fixed_domain = !is_broadcastable(node),
                                     .nbytes = UNKNOWN};
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
  f.trial = (RegionLowering){.context = c, .graph = g, .is_trial = true};
  if (!f.partition || !f.regions || !f.operand || !lower_scratch_init(&f.trial.scratch, &f.arena, g, c->costs))
    pass_out_of_memory(c);
  for (uint32_t i = (uint32_t)g->nnodes; i-- > 0 && !c->failed;) slice_group(&f, g->nodes[i]); // users first
  arena_deinit(&f.arena);
  return f.changed;
}
