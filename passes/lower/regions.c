// A region is one kernel, as fusing has tried. Where it is a single node that no schedule carries so, other ways are
// tried, some of which take several kernels.
#include "passes/lower/regions.h"

#include "ir/kernel/verify.h"
#include "passes/schedule/schedule.h"

// A way to make a kernel of a node's results.
typedef struct Attempt {
  bool takes_one_result;  // the first of those that have no kernel yet; else all of these
  bool spreads_constants; // LoweredPart's
  int first_axis;         // the axis that vectors lie along: each from this one
  int last_axis;          // to this one, in turn
} Attempt;

// The first that a schedule carries is taken. A region of several nodes has the first row only.
static const Attempt attempts[] = {
    // Nearly all nodes: vectors lie along the axis along which most elements are neighbours in memory.
    {false, false, BEST_AXIS, BEST_AXIS},
    // The results reduce different axes, and no order of loops finishes all sums in time: the gradients of a norm by
    // groups, one over each group, the others over the batch.
    {true, false, BEST_AXIS, BEST_AXIS},
    // A constant that is the same number everywhere varies over no axis, so sums of it alone leave out axes that others
    // go over, as in InterpolateBackward of such a constant. Spread over its tensor's axes, as if it were loaded, all
    // sums go over the same ones.
    {true, true, BEST_AXIS, BEST_AXIS},
    // Sums of sums over two axes may need vectors along an axis where no elements are neighbours: the gradients of
    // RMSNorm whose tensors lie slowest along the row (tests/fuzz/corpus/norm_along_a_slow_axis.yaml).
    {true, true, 0, MAX_AXES - 1},
};
enum { NATTEMPTS = sizeof attempts / sizeof *attempts };

// Tells what is wrong with the node, by all lines that it came from.
static void fail_at(PassContext *c, const Node *node, const char *what) {
  Text text;
  c->failed = true;
  text_init(&text, c->allocator);
  node_print(node, &text);
  if (!what || text.out_of_memory) error_out_of_memory(c->diagnostics);
  else error_at(c->diagnostics, node->position, "%s: %s", text_string(&text), what);
  text_deinit(&text);
}

static bool is_sound(const RegionLowering *l, const Kernel *k, const char *after) {
  if (l->is_trial) return true;
  Text why;
  text_init(&why, l->context->allocator);
  text_add_string(&why, "the kernel of ");
  kernel_print_nodes(k, &why);
  text_format(&why, " is not sound after %s: ", after);
  return pass_require(l->context, kernel_verify(k, &why), &why);
}

static bool stays_open(const RegionLowering *l, const Kernel *k) {
  if (!k->closed || l->is_trial) return true;
  const char *name = k->closed->name;
  fail_at(l->context, k->closing,
          arena_format(k->arena, "%s cannot stay open here; --dim %s=%lld bakes it in", name, name,
                       (long long)k->closed->value));
  return false;
}

static Kernel *lower_part(const RegionLowering *l, Arena *arena, Node *const *nodes, size_t nnodes, LoweredPart part,
                          int vector_axis) {
  PassContext *c = l->context;
  Kernel *k = lower_region(arena, l->graph, nodes, nnodes, part, &l->scratch);
  if (!k) pass_out_of_memory(c);
  if (!k || !stays_open(l, k) || !is_sound(l, k, "lowering") || vector_axis >= k->naxes) return NULL;
  if (kernel_order(k, vector_axis, c->overrides) && is_sound(l, k, "ordering its sums") &&
      kernel_tune(k, l->target, c->overrides))
    return is_sound(l, k, "tuning") ? k : NULL;
  if (k->out_of_memory) pass_out_of_memory(c);
  return NULL;
}

Kernel *lower_and_schedule(const RegionLowering *l, Arena *arena, Node *const *nodes, size_t nnodes) {
  const Attempt *a = &attempts[0];
  const LoweredPart part = {.slots = UINT32_MAX, .spreads_constants = a->spreads_constants};
  return lower_part(l, arena, nodes, nnodes, part, a->first_axis);
}

// Adds a kernel for results among the slots, at least the first, as the first attempt makes it that succeeds. Returns
// the slots that it stores; none: after telling why.
static uint32_t add_results(Program *p, const RegionLowering *l, Node *node, uint32_t slots, uint32_t piece) {
  const uint32_t first = slots & -slots;
  for (size_t i = 0; i < NATTEMPTS; i++) {
    const Attempt *a = &attempts[i];
    const LoweredPart part = {a->takes_one_result ? first : slots, a->spreads_constants, piece};
    for (int axis = a->first_axis; axis <= a->last_axis; axis++) {
      Kernel *k = lower_part(l, &p->arena, &node, 1, part, axis);
      if (k) p->kernels[p->nkernels++] = k;
      if (k) return part.slots;
      if (l->context->failed) return 0;
    }
  }
  fail_at(l->context, node, "no schedule for these shapes");
  return 0;
}

static uint32_t made_slots(const Node *node) {
  uint32_t slots = 0;
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (node->outputs[i]) slots |= 1U << i;
  return slots;
}

static bool add_node(Program *p, const RegionLowering *l, Node *node) {
  const uint32_t npieces = node->op->traits & TRAIT_PIECES ? node->ninputs : 1; // each of which has a kernel
  for (uint32_t piece = 0; piece < npieces; piece++)
    for (uint32_t left = made_slots(node); left;) {
      const uint32_t made = add_results(p, l, node, left, piece);
      if (!made) return false;
      left &= ~made;
    }
  return true;
}

// One kernel, or, where no schedule carries all of a region, those of its nodes.
static bool add_region(Program *p, const RegionLowering *l, Node *const *nodes, size_t nnodes) {
  Kernel *k = nnodes > 1 ? lower_and_schedule(l, &p->arena, nodes, nnodes) : NULL;
  if (k) p->kernels[p->nkernels++] = k;
  for (size_t i = 0; i < nnodes && !k && !l->context->failed; i++) add_node(p, l, nodes[i]);
  return !l->context->failed;
}

bool lower_regions(Program *p, PassContext *c) {
  const Graph *g = p->graph;
  const Partition *regions = p->partition;
  Node **nodes = ARENA_ARRAY(&p->arena, Node *, g->nnodes);
  RegionLowering l = {.context = c, .graph = g, .target = c->target};
  if (!nodes || !lower_scratch_init(&l.scratch, &p->arena, g)) return pass_out_of_memory(c);
  for (uint32_t region = 0; region < g->nnodes; region++) {
    size_t count = 0;
    for (uint32_t i = regions->first[region]; i != NO_NODE; i = regions->next[i]) nodes[count++] = g->nodes[i];
    if (count && !add_region(p, &l, nodes, count)) return false;
  }
  for (size_t i = p->nkernels; i-- > 0;)
    for (size_t n = 0; n < p->kernels[i]->nnodes; n++) p->first_kernel[p->kernels[i]->nodes[n]->index] = (uint32_t)i;
  return true;
}
