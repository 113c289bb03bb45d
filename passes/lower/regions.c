// Lowers regions to scheduled kernels. A region of several nodes becomes one kernel, which fusion has tried out. For a
// single node several ways are tried, some of which need several kernels.
#include "passes/lower/regions.h"

#include "ir/kernel/verify.h"
#include "passes/lower/aliases.h"
#include "passes/lower/pieces.h"
#include "passes/schedule/order/order.h"
#include "passes/schedule/tune/tune.h"

// A way to compute a node's results by a kernel.
typedef struct Attempt {
  bool takes_one_result;     // the kernel computes one result; else all results without a kernel
  bool broadcasts_constants; // see LoweredPart
  int first_axis;            // axes to vectorise, tried in turn
  int last_axis;             // inclusive
} Attempt;

// The first attempt with a schedule is used. For a region of several nodes, only the first attempt is made.
static const Attempt attempts[] = {
    // Nearly all nodes: vectorise the axis along which most loads and stores are contiguous.
    {false, false, BEST_AXIS, BEST_AXIS},
    // A kernel for each result, if they reduce different axes and no loop order finishes all sums before their uses.
    // Example: gradients of group norm, where diff_src sums over each group, diff_gamma and diff_beta over the batch.
    {true, false, BEST_AXIS, BEST_AXIS},
    // Broadcast constants, so that all sums have the same axes: a splat constant varies over no axis, so a sum of
    // constants lacks axes that other sums have. Example: InterpolateBackward of a constant.
    {true, true, BEST_AXIS, BEST_AXIS},
    // Nested sums over two axes may need vectors along an axis without contiguous accesses. Example: the gradients of
    // RMSNorm if the row is the slowest axis in memory (tests/fuzz/corpus/norm_along_a_slow_axis.yaml).
    {true, true, 0, MAX_AXES - 1},
};
enum { NATTEMPTS = sizeof attempts / sizeof *attempts };

// Reports an error at the node; `what` NULL: out of memory.
static void fail_at(PassContext *c, const Node *node, const char *what) {
  Text text;
  c->failed = true;
  text_init(&text, c->allocator);
  node_print(node, &text);
  if (!what || text.out_of_memory) error_out_of_memory(c->diagnostics);
  else error_at(c->diagnostics, node->position, "%s: %s", text_string(&text), what);
  text_deinit(&text);
}

// Starts the message of a verifier that runs after this pass.
static void begin_verdict(const RegionLowering *l, const Kernel *k, const char *after, Text *why) {
  text_init(why, l->context->allocator);
  text_add_string(why, "the kernel of ");
  kernel_print_nodes(k, why);
  text_format(why, " is invalid after %s: ", after);
}

static bool is_kernel_sound(const RegionLowering *l, const Kernel *k, const char *after) {
  if (!l->target) return true;
  Text why;
  begin_verdict(l, k, after, &why);
  return pass_require(l->context, kernel_verify(k, &why), &why);
}

static bool is_schedule_sound(const RegionLowering *l, const Schedule *s, const char *after) {
  if (!l->target) return true;
  Text why;
  begin_verdict(l, s->kernel, after, &why);
  return pass_require(l->context, schedule_verify(s, &why), &why);
}

static bool is_supported(const RegionLowering *l, const Kernel *k) {
  if (k->unsupported && !l->is_trial) fail_at(l->context, k->nodes[0], k->unsupported);
  return !k->unsupported;
}

static bool stays_open(const RegionLowering *l, const Kernel *k) {
  if (!k->closed || l->is_trial) return true;
  const char *name = k->closed->name;
  fail_at(l->context, k->closing,
          arena_format(k->arena, "%s cannot stay open here; --dim %s=%lld bakes it in", name, name,
                       (long long)k->closed->value));
  return false;
}

// Outer iterations have numbers, which axes_nelems bounds.
static bool counts_iterations(const RegionLowering *l, const Schedule *s) {
  bool is_counted = true;
  for (size_t i = 0; i < s->nloops; i++)
    is_counted &= axes_nelems(s->kernel, loop_outer_axes(&s->loops[i])) < GREATEST_NELEMS;
  if (!is_counted && !l->is_trial)
    fail_at(l->context, s->kernel->nodes[0], "a loop has 2^56 iterations or more, expected fewer");
  return is_counted;
}

static Schedule *lower_part(const RegionLowering *l, Arena *arena, Node *const *nodes, size_t nnodes, LoweredPart part,
                            int vector_axis) {
  PassContext *c = l->context;
  Kernel *k = lower_region(arena, l->graph, nodes, nnodes, part, &l->scratch);
  if (!k) pass_out_of_memory(c);
  if (!k || !is_supported(l, k) || !stays_open(l, k) || !is_kernel_sound(l, k, "lowering") || vector_axis >= k->naxes)
    return NULL;
  Schedule *s = kernel_order(k, vector_axis, c->overrides);
  if (k->out_of_memory) pass_out_of_memory(c);
  if (!s || !counts_iterations(l, s) || !is_schedule_sound(l, s, "ordering its sums")) return NULL;
  if (!l->target) return s;
  Target target = *l->target;
  if (part.slice_group) target.threads = 1; // slices run in parallel, each on one thread
  if (!schedule_tune(s, &target, c->overrides)) {
    pass_out_of_memory(c);
    return NULL;
  }
  for (size_t i = 0; i < s->nloops && part.slice_group; i++) {
    s->loops[i].is_serial = true;
    s->loops[i].serial_work = 0;
  }
  if (part.slice_group && !schedule_find_invariants(s)) pass_out_of_memory(c);
  return is_schedule_sound(l, s, "tuning") ? s : NULL;
}

Schedule *lower_and_schedule(const RegionLowering *l, Arena *arena, Node *const *nodes, size_t nnodes,
                             const SliceGroup *slice_group, uint32_t piece) {
  const Attempt *a = &attempts[0];
  const LoweredPart part = {.slots = UINT32_MAX, .piece = piece, .slice_group = slice_group, .has_unused = true};
  return lower_part(l, arena, nodes, nnodes, part, a->first_axis);
}

// Adds a kernel, by the first attempt that succeeds, for one or all of the result slots. Returns the slots that the
// kernel computes; 0: an error, which has been reported.
static uint32_t add_results(Program *p, const RegionLowering *l, Node *node, uint32_t slots, uint32_t piece) {
  const uint32_t first = slots & -slots;
  for (size_t i = 0; i < NATTEMPTS; i++) {
    const Attempt *a = &attempts[i];
    const LoweredPart part = {.slots = a->takes_one_result ? first : slots,
                              .broadcasts_constants = a->broadcasts_constants,
                              .piece = piece,
                              .has_unused = !a->takes_one_result};
    for (int axis = a->first_axis; axis <= a->last_axis; axis++) {
      Schedule *s = lower_part(l, &p->arena, &node, 1, part, axis);
      if (s) p->schedules[p->nkernels++] = s;
      if (s) return part.slots;
      if (l->context->failed) return 0;
    }
  }
  fail_at(l->context, node, "no schedule supports these shapes");
  return 0;
}

static uint32_t made_slots(const Node *node) {
  uint32_t slots = 0;
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (value_is_used(node->outputs[i])) slots |= 1U << i;
  return slots;
}

// If the kernels from `first` on are pieces of a node, sets Schedule.follows, and lets them share copies.
static void join_pieces(Program *p, const RegionLowering *l, size_t first, Node *const *nodes, size_t nnodes,
                        const SliceGroup *slice_group) {
  bool are_pieces = false;
  for (size_t i = 0; i < nnodes; i++)
    are_pieces |= node_makes_side(nodes[i]) && node_npieces(l->scratch.costs, nodes[i]) > 1;
  for (size_t i = first + 1; i < p->nkernels && are_pieces; i++) p->schedules[i]->follows = true;
  if (are_pieces && !slice_group && !p->graph->ndims) schedule_reuse_copies(p->schedules + first, p->nkernels - first);
}

static bool add_node(Program *p, const RegionLowering *l, Node *node) {
  const uint32_t npieces = node_npieces(l->scratch.costs, node);
  const size_t first = p->nkernels;
  for (uint32_t piece = 0; piece < npieces; piece++)
    for (uint32_t left = made_slots(node); left;) {
      const uint32_t made = add_results(p, l, node, left, piece);
      if (!made) return false;
      left &= ~made;
    }
  join_pieces(p, l, first, &node, 1, NULL);
  return true;
}

// Adds one kernel for each piece of the region. False: a piece cannot be scheduled, and no kernel is added.
static bool add_pieces(Program *p, const RegionLowering *l, Node *const *nodes, size_t nnodes,
                       const SliceGroup *slice_group) {
  const uint32_t npieces = nodes_npieces(l->scratch.costs, nodes, nnodes);
  for (uint32_t piece = 0; piece < npieces; piece++) {
    Schedule *s = lower_and_schedule(l, &p->arena, nodes, nnodes, slice_group, piece);
    if (!s) return false;
    p->schedules[p->nkernels + piece] = s;
  }
  p->nkernels += npieces;
  join_pieces(p, l, p->nkernels - npieces, nodes, nnodes, slice_group);
  return true;
}

// Adds the kernels of the region; if the region as a whole cannot be scheduled, the kernels of each node.
static bool add_region(Program *p, const RegionLowering *l, Node *const *nodes, size_t nnodes,
                       const SliceGroup *slice_group) {
  const bool is_whole = (nnodes > 1 || slice_group) && add_pieces(p, l, nodes, nnodes, slice_group);
  if (slice_group && !is_whole && !l->context->failed)
    fail_at(l->context, nodes[0], "no schedule supports slices of these shapes");
  for (size_t i = 0; i < nnodes && !is_whole && !l->context->failed; i++) add_node(p, l, nodes[i]);
  return !l->context->failed;
}

// The program's slice group of the region; NULL: none. Must be called with regions in their order.
static ProgramSliceGroup *find_slice_group(Program *p, uint32_t region) {
  const Partition *regions = p->partition;
  if (p->nslice_groups && region <= p->slice_groups[p->nslice_groups - 1].slices->last_region)
    return &p->slice_groups[p->nslice_groups - 1];
  if (p->nslice_groups == regions->nslice_groups || region < regions->slice_groups[p->nslice_groups].first_region)
    return NULL;
  ProgramSliceGroup *next = &p->slice_groups[p->nslice_groups];
  *next = (ProgramSliceGroup){.slices = &regions->slice_groups[p->nslice_groups], .first = (uint32_t)p->nkernels};
  next->nchunks = next->slices->nslices < MOST_SLICE_CHUNKS ? next->slices->nslices : MOST_SLICE_CHUNKS;
  p->nslice_groups++;
  return next;
}

bool lower_regions(Program *p, PassContext *c) {
  const Graph *g = p->graph;
  const Partition *regions = p->partition;
  Node **nodes = ARENA_ARRAY(&p->arena, Node *, g->nnodes);
  RegionLowering l = {.context = c, .graph = g, .target = c->target};
  p->slice_groups = ARENA_ARRAY(&p->arena, ProgramSliceGroup, regions->nslice_groups + 1);
  if (!nodes || !p->slice_groups || !lower_scratch_init(&l.scratch, &p->arena, g, c->costs))
    return pass_out_of_memory(c);
  for (uint32_t region = 0; region < g->nnodes; region++) {
    size_t count = 0;
    for (uint32_t i = regions->first[region]; i != NO_NODE; i = regions->next[i]) nodes[count++] = g->nodes[i];
    if (count && node_is_alias(nodes[0])) continue;
    ProgramSliceGroup *slice_group = count ? find_slice_group(p, region) : NULL;
    if (count && !add_region(p, &l, nodes, count, slice_group ? slice_group->slices : NULL)) return false;
    if (slice_group) slice_group->end = (uint32_t)p->nkernels;
  }
  program_number_kernels(p);
  return true;
}
