// Finds slice groups: sequences (runs) of regions around a product or pooling that pass large values to each other, and
// can do so slice by slice.
//
// Pooling is computed in pieces that store interleaved places; within a slice the result stays in the caches.
//
// A run's regions are lowered on trial, with the axes of their domains. Slices are cut along the first axes, which must
// have the same extents in all regions and which no region sums over; then along blocks of the next axis, if a slice
// would exceed the caches. Each tensor must have one stride from slice to slice, for all kernels that access it: a
// kernel then reads exactly the elements that another kernel stores for the same slice.
//
// Slices depend on the graph alone, as fusion does, because the order of a sum may depend on a kernel's extents.
#include "passes/lower/slice_regions.h"

#include "ir/kernel/simplify.h"
#include "ir/kernel/slice.h"
#include "passes/lower/aliases.h"
#include "passes/lower/pieces.h"
#include "passes/lower/regions.h"
#include "passes/schedule/overrides.h"

#include <string.h>

enum {
  MOST_REGIONS = 12, // in a slice group
  MOST_TENSORS = 64  // in a slice group
};

typedef struct Trial { // a region, lowered on trial
  uint32_t region, npieces;
  const Kernel **kernels; // by piece, with the domain's axes; NULL: the region cannot be in a slice group
  int ncuts;              // the least kernel_count_cuts of the pieces
  bool has_product, has_pool;
} Trial;

typedef struct Search {
  Graph *g;
  PassContext *c;
  const Costs *costs;
  const Partition *partition;
  RegionLowering trial;
  Arena arena;            // freed with the pass
  int64_t least_saved[2]; // with many slices; with few
  Trial *trials;
  size_t ntrials;
} Search;

typedef struct Run { // the regions of trials first..last as one slice group
  size_t first, last;
  SliceGroup slice_group;
  SlicedTensor tensors[MOST_TENSORS];
  int64_t saved; // saved_nbytes
} Run;

// Trials

static size_t list_region(const Search *s, uint32_t region, Node **nodes) {
  size_t count = 0;
  for (uint32_t i = s->partition->first[region]; i != NO_NODE; i = s->partition->next[i])
    nodes[count++] = s->g->nodes[i];
  return count;
}

static bool is_pool(const Node *node) {
  return node_makes_side(node) && !node_side(node, SIDE_WEIGHTS);
}

static bool has_pool(Node *const *nodes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (is_pool(nodes[i])) return true;
  return false;
}

static bool has_product(Node *const *nodes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (nodes[i]->op->traits & TRAIT_MULTIPLIES) return true;
  return false;
}

// Lowers each piece of the trial's region. False: out of memory.
static bool lower_trial(Search *s, Trial *t, Node **nodes, size_t count) {
  const int rank = node_domain(nodes[count - 1]).rank;
  const Kernel **kernels = ARENA_ARRAY(&s->arena, const Kernel *, t->npieces);
  if (!kernels) return false;
  t->ncuts = rank < MOST_LEVELS ? rank : MOST_LEVELS;
  for (uint32_t piece = 0; piece < t->npieces; piece++) {
    const LoweredPart part = {.slots = UINT32_MAX, .keeps_axes = true, .piece = piece, .has_unused = true};
    Kernel *k = lower_region(&s->arena, s->g, nodes, count, part, &s->trial.scratch);
    kernels[piece] = k;
    if (!k) return false;
    if (k->unsupported || k->closed || !k->nstores) return true;
    t->ncuts = kernel_count_cuts(k, t->ncuts);
    kernel_drop_unused(k);
    for (int axis = 0; axis < t->ncuts; axis++)
      if (k->axes[axis].extent != kernels[0]->axes[axis].extent) t->ncuts = axis;
  }
  t->kernels = kernels;
  return true;
}

static bool add_trials(Search *s) {
  Node **nodes = ARENA_ARRAY(&s->arena, Node *, s->g->nnodes);
  s->trials = ARENA_ARRAY(&s->arena, Trial, s->g->nnodes);
  if (!nodes || !s->trials) return false;
  for (uint32_t region = 0; region < s->g->nnodes; region++) {
    const size_t count = list_region(s, region, nodes);
    if (!count || node_is_alias(nodes[0])) continue;
    Trial *t = &s->trials[s->ntrials++];
    *t = (Trial){.region = region, .npieces = nodes_npieces(s->costs, nodes, count)};
    t->has_product = has_product(nodes, count);
    t->has_pool = has_pool(nodes, count);
    if (t->npieces != 1 && (t->has_product || !t->has_pool)) continue;
    if (!lower_trial(s, t, nodes, count)) return false;
  }
  return true;
}

// Runs

static bool is_in(const Search *s, const Run *run, const Node *node) {
  const uint32_t region = s->partition->region[node->index];
  return region >= s->trials[run->first].region && region <= s->trials[run->last].region;
}

// The first and last region that load the value, perhaps through aliases; UINT32_MAX and 0: none does.
typedef struct Users {
  uint32_t first, last;
} Users;

static Users users_of(const Search *s, const Value *v) {
  Users users = {UINT32_MAX, 0};
  for (const Use *use = v->uses; use; use = use->next) {
    const uint32_t region = s->partition->region[use->node->index];
    const Users own = node_is_alias(use->node) ? users_of(s, use->node->outputs[0]) : (Users){region, region};
    if (own.first < users.first) users.first = own.first;
    if (own.last > users.last) users.last = own.last;
  }
  return users;
}

// Whether a region of the run computes the value and a region of the run uses it.
static bool is_passed_on(const Search *s, const Run *run, const Value *v) {
  return v->producer && is_in(s, run, v->producer) && users_of(s, v).first <= s->trials[run->last].region;
}

// Whether a region of the run computes the value and only regions of the run use it.
static bool is_private(const Search *s, const Run *run, const Value *v) {
  if (!v->producer || v->is_output || !is_in(s, run, v->producer)) return false;
  return users_of(s, v).last <= s->trials[run->last].region;
}

// The distance between neighbouring slices along the level, in elements of the access.
static int64_t level_stride(const Run *run, const Access *a, const int *axis, int level) {
  const bool is_block = axis[level] == run->slice_group.nfixed;
  return a->stride[axis[level]] * (is_block ? run->slice_group.block : 1);
}

// Adds the access's tensor, or checks that its strides equal those of earlier accesses.
static bool add_access(const Search *s, Run *run, const Access *a, const int *axis) {
  SliceGroup *v = &run->slice_group;
  SlicedTensor own = {.value = a->value,
                      .is_stored = a->value->producer && is_in(s, run, a->value->producer),
                      .is_passed_on = is_passed_on(s, run, a->value),
                      .is_private = is_private(s, run, a->value)};
  for (int level = 0; level < v->nlevels; level++) own.stride[level] = level_stride(run, a, axis, level);
  const SlicedTensor *other = slice_group_find(v, a->value);
  if (other) return memcmp(other->stride, own.stride, sizeof own.stride) == 0;
  if (v->ntensors == MOST_TENSORS) return false;
  v->tensors[v->ntensors++] = own;
  return true;
}

// Whether each slice of the tensor is contiguous, and slices follow each other without overlap.
static bool is_contiguous(const SliceGroup *v, const SlicedTensor *tensor) {
  int64_t nelems = slice_group_nelems(v, tensor);
  for (int i = v->nlevels; i-- > 0; nelems *= v->extent[i])
    if (tensor->stride[i] != nelems) return false;
  return layout_is_row_major(&tensor->value->layout);
}

static void add_level(SliceGroup *v, int *axis, int own, int64_t extent) {
  if (extent == 1) return;
  axis[v->nlevels] = own;
  v->extent[v->nlevels++] = extent;
  v->nslices *= extent;
}

static bool add_accesses(const Search *s, Run *run, const Kernel *k, const int *axis) {
  for (AccessId id = 0; id < k->naccesses; id++)
    if (k->accesses[id].value && !add_access(s, run, &k->accesses[id], axis)) return false;
  return true;
}

// Sets the run's levels and tensors for slices along these axes. False: a tensor cannot be cut into such slices.
static bool cut(const Search *s, Run *run, int nfixed, int64_t block) {
  const Kernel *k = s->trials[run->first].kernels[0];
  SliceGroup *v = &run->slice_group;
  int axis[MOST_LEVELS + 1] = {0};
  *v = (SliceGroup){.nfixed = nfixed, .block = block, .nslices = 1, .tensors = run->tensors};
  for (int i = 0; i < nfixed; i++) add_level(v, axis, i, k->axes[i].extent);
  if (block) add_level(v, axis, nfixed, k->axes[nfixed].extent / block);
  for (size_t t = run->first; t <= run->last; t++)
    for (uint32_t piece = 0; piece < s->trials[t].npieces; piece++)
      if (!add_accesses(s, run, s->trials[t].kernels[piece], axis)) return false;
  for (size_t i = 0; i < v->ntensors; i++)
    if (v->tensors[i].is_passed_on && !is_contiguous(v, &v->tensors[i])) return false;
  return true;
}

static int64_t nbytes_of(const SlicedTensor *tensor, int64_t nelems) {
  return (int64_t)type_array_nbytes(tensor->value->type, (size_t)nelems);
}

// Whether the value is live after the region: computed by it or before, and used later.
static bool is_alive(const Search *s, const Value *v, uint32_t region) {
  return s->partition->region[v->producer->index] <= region && users_of(s, v).last > region;
}

// Traffic that a slice saves: bytes neither stored to memory nor loaded from it.
static int64_t saved_nbytes_of_slice(const SliceGroup *v) {
  int64_t nbytes = 0;
  for (size_t i = 0; i < v->ntensors; i++)
    if (v->tensors[i].is_passed_on)
      nbytes += nbytes_of(&v->tensors[i], slice_group_nelems(v, &v->tensors[i])) * (v->tensors[i].is_private ? 2 : 1);
  return nbytes;
}

// The most bytes of live private values of a slice between two regions.
static int64_t most_nbytes(const Search *s, const Run *run) {
  const SliceGroup *v = &run->slice_group;
  int64_t most = 0;
  for (size_t t = run->first; t < run->last; t++) {
    int64_t nbytes = 0;
    for (size_t i = 0; i < v->ntensors; i++)
      if (v->tensors[i].is_private && is_alive(s, v->tensors[i].value, s->trials[t].region))
        nbytes += nbytes_of(&v->tensors[i], slice_group_nelems(v, &v->tensors[i]));
    if (nbytes > most) most = nbytes;
  }
  return most;
}

// The bytes that slices read again because they have a tensor in common: near, by neighbours along the last level; far,
// by other slices.
typedef struct Again {
  int64_t near, far;
} Again;

static Again read_again(const SliceGroup *v) {
  const int last = v->nlevels - 1;
  Again again = {0};
  for (size_t i = 0; i < v->ntensors; i++) {
    const SlicedTensor *t = &v->tensors[i];
    int64_t ntimes = v->nslices, own = 1; // number of different parts of the tensor
    for (int level = 0; level < v->nlevels; level++)
      if (t->stride[level]) own *= v->extent[level];
    const int64_t nbytes = nbytes_of(t, slice_group_nelems(v, t));
    const int64_t nnear = last >= 0 && !t->stride[last] ? ntimes - ntimes / v->extent[last] : 0;
    again.near += nbytes * nnear;
    again.far += nbytes * (ntimes - own - nnear);
  }
  return again;
}

// Traffic that the slice group saves. With blocks, bytes read again by neighbours count 1/4, as they are still in a
// cache. Bytes read again by other slices, such as weights, count fully.
static int64_t saved_nbytes(const SliceGroup *v) {
  const Again again = read_again(v);
  return saved_nbytes_of_slice(v) * v->nslices - (v->block ? again.near / 4 + again.far : again.near + again.far);
}

static int64_t longer_block(const Search *s, int64_t best, int64_t block, int64_t most) {
  return block >= s->costs->slice_block && block <= most && block > best ? block : best;
}

// The longest block that divides the axis, whose private values fit the caches, and that makes many slices;
// 0: none. For an axis longer than MOST_DIVISORS * MOST_DIVISORS, not all divisors are tried.
static int64_t find_block(const Search *s, int64_t extent, int64_t nbytes, int64_t nslices) {
  const Costs *c = s->costs;
  const int64_t wanted = (c->slice_slices + nslices - 1) / nslices;
  int64_t most = extent / wanted > c->slice_block ? extent / wanted : c->slice_block;
  if (most > extent / 2) most = extent / 2;
  const int64_t longest = c->slice_private / (nbytes > extent ? nbytes / extent : 1);
  if (most > longest) most = longest;
  int64_t best = 0;
  for (int64_t divisor = 1; divisor <= MOST_DIVISORS && divisor <= extent / divisor; divisor++)
    if (extent % divisor == 0) best = longer_block(s, longer_block(s, best, divisor, most), extent / divisor, most);
  return best;
}

// The number of axes along which all regions of the run can be cut into the same slices.
static int count_cuts(const Search *s, const Run *run) {
  const Kernel *first = s->trials[run->first].kernels[0];
  int count = s->trials[run->first].ncuts;
  for (size_t t = run->first + 1; t <= run->last; t++) {
    const Trial *own = &s->trials[t];
    int same = 0;
    while (same < count && same < own->ncuts && first->axes[same].extent == own->kernels[0]->axes[same].extent) same++;
    count = same;
  }
  return count;
}

// Cuts slices into blocks of the next axis if they are too large for the caches.
static void cut_blocks(const Search *s, Run *run, int ncuts) {
  const int64_t nbytes = most_nbytes(s, run);
  const int axis = run->slice_group.nfixed;
  if (axis >= ncuts || nbytes <= s->costs->slice_private) return;
  const int64_t extent = s->trials[run->first].kernels[0]->axes[axis].extent;
  const int64_t block = find_block(s, extent, nbytes, run->slice_group.nslices);
  Run blocks = *run;
  if (!block || !cut(s, &blocks, axis, block)) return;
  if (saved_nbytes(&blocks.slice_group) <= 0) return;
  *run = blocks;
  run->slice_group.tensors = run->tensors;
}

// Whether each product, in a slice, still has at least two long axes: rows and columns.
static bool keeps_products(const Search *s, const Run *run, int nfixed) {
  for (size_t t = run->first; t <= run->last; t++) {
    const Kernel *k = s->trials[t].kernels[0];
    const AxisSet stored = access_axes(k, &k->accesses[k->stores[0].access]);
    int nlong = 0;
    for (int axis = nfixed; axis < k->naxes; axis++)
      nlong += stored >> axis & 1 && k->axes[axis].extent >= s->costs->slice_block;
    if (nlong < 2 && s->trials[t].has_product) return false;
  }
  return true;
}

static bool has_pools(const Search *s, const Run *run) {
  for (size_t t = run->first; t <= run->last; t++)
    if (s->trials[t].has_pool) return true;
  return false;
}

// Whether slices of pooling are large enough to be worth their calls, and numerous enough for many threads.
static bool keeps_pools(const Search *s, const Run *run) {
  const SliceGroup *v = &run->slice_group;
  int64_t nbytes = 0;
  for (size_t i = 0; i < v->ntensors; i++) nbytes += nbytes_of(&v->tensors[i], slice_group_nelems(v, &v->tensors[i]));
  return !has_pools(s, run) || (nbytes >= s->costs->slice_pool && v->nslices >= s->costs->slice_slices);
}

// Cuts the run into slices. Sets saved; 0: no slice group.
static void cut_run(const Search *s, Run *run) {
  const int ncuts = count_cuts(s, run);
  run->saved = 0;
  for (int nfixed = ncuts; nfixed >= 0; nfixed--) {
    if (!keeps_products(s, run, nfixed) || !cut(s, run, nfixed, 0)) continue;
    cut_blocks(s, run, ncuts);
    const SliceGroup *v = &run->slice_group;
    run->saved = saved_nbytes(v);
    const int64_t least = s->least_saved[v->nslices < s->costs->slice_slices];
    if (v->nslices > 1 && keeps_pools(s, run) && most_nbytes(s, run) <= s->costs->slice_whole && run->saved >= least)
      return;
    run->saved = 0;
  }
}

// Whether each region of the run can be scheduled as a slice.
static bool is_schedulable(Search *s, const Run *run) {
  Node **nodes = ARENA_ARRAY(&s->arena, Node *, s->g->nnodes);
  for (size_t t = run->first; nodes && t <= run->last; t++) {
    const size_t count = list_region(s, s->trials[t].region, nodes);
    for (uint32_t piece = 0; piece < s->trials[t].npieces; piece++)
      if (!lower_and_schedule(&s->trial, &s->arena, nodes, count, &run->slice_group, piece)) return false;
  }
  return nodes || pass_out_of_memory(s->c);
}

// The best run that begins at the trial.
static Run find_run(Search *s, size_t first) {
  Run best = {.saved = 0};
  bool has_products = false, has_pools = false;
  for (size_t last = first; last < s->ntrials && last - first < MOST_REGIONS && s->trials[last].kernels; last++) {
    Run run = {.first = first, .last = last};
    has_products |= s->trials[last].has_product;
    has_pools |= s->trials[last].has_pool;
    if (!count_cuts(s, &run) || (has_products && has_pools)) break;
    if (last == first || !(has_products || has_pools)) continue;
    cut_run(s, &run);
    if (run.saved > best.saved) best = run;
  }
  best.slice_group.tensors = best.tensors;
  return best;
}

static bool add_slice_group(Search *s, const Run *run) {
  Partition *p = s->c->partition;
  SliceGroup *v = &p->slice_groups[p->nslice_groups];
  *v = run->slice_group;
  v->first_region = s->trials[run->first].region;
  v->last_region = s->trials[run->last].region;
  v->tensors = ARENA_ARRAY(&s->g->arena, SlicedTensor, v->ntensors + 1);
  if (!v->tensors) return pass_out_of_memory(s->c);
  memcpy(v->tensors, run->tensors, v->ntensors * sizeof *v->tensors);
  p->nslice_groups++;
  return true;
}

static void find_slice_groups(Search *s) {
  for (size_t first = 0; first < s->ntrials && !s->c->failed;) {
    Run run = find_run(s, first);
    run.slice_group.tensors = run.tensors;
    if (!run.saved || !is_schedulable(s, &run)) first++;
    else if (add_slice_group(s, &run)) first = run.last + 1;
  }
}

bool pass_slice_regions(Graph *g, PassContext *c) {
  if (c->no_fuse || g->ndims || !(has_product(g->nodes, g->nnodes) || has_pool(g->nodes, g->nnodes))) return false;
  const Costs *costs = costs_or_usual(c->costs);
  Search s = {.g = g, .c = c, .costs = costs, .partition = c->partition};
  const ScheduleOverrides none = {0}, *o = c->overrides ? c->overrides : &none;
  s.least_saved[0] = schedule_number(o, SCHEDULE_SLICES, costs->slice_saved);
  s.least_saved[1] = schedule_number(o, SCHEDULE_SLICES, costs->slice_few_saved);
  s.trial = (RegionLowering){.context = c, .graph = g, .is_trial = true};
  arena_init(&s.arena, c->allocator);
  c->partition->slice_groups = ARENA_ARRAY(&g->arena, SliceGroup, g->nnodes + 1);
  if (!c->partition->slice_groups || !lower_scratch_init(&s.trial.scratch, &s.arena, g, c->costs) || !add_trials(&s))
    pass_out_of_memory(c);
  if (!c->failed) find_slice_groups(&s);
  arena_deinit(&s.arena);
  return c->partition->nslice_groups > 0;
}
