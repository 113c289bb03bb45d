// Schedules: builders, and the sizes of loops and their blocks.
#include "ir/kernel/schedule.h"

#include "ir/kernel/needed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

Schedule *schedule_new(Kernel *k) {
  Schedule *s = KERNEL_ARRAY(k, Schedule, 1);
  if (s) s->kernel = k;
  return s;
}

uint32_t schedule_add_temporary(Schedule *s, const char *name, Type type, int64_t nelems) {
  if (!kernel_grow(s->kernel, &s->temporaries, s->ntemporaries, &s->temporaries_capacity, sizeof *s->temporaries))
    return 0;
  s->temporaries[s->ntemporaries] = (Temporary){.name = name, .type = type, .nelems = nelems};
  return (uint32_t)s->ntemporaries++;
}

Loop *schedule_add_loop(Schedule *s) {
  if (!kernel_grow(s->kernel, &s->loops, s->nloops, &s->loops_capacity, sizeof *s->loops)) return NULL;
  s->loops[s->nloops] = (Loop){.rows = 1, .cut = {.length = 1}};
  return &s->loops[s->nloops++];
}

bool schedule_add_sum(Schedule *s, ScheduledSum sum) {
  if (!kernel_grow(s->kernel, &s->sums, s->nsums, &s->sums_capacity, sizeof *s->sums)) return false;
  s->sums[s->nsums++] = sum;
  return true;
}

static int compare_roots(const void *a, const void *b) {
  const Root *x = a, *y = b;
  if (x->sweep != y->sweep) return x->sweep < y->sweep ? -1 : 1;
  return x->kind != y->kind ? (x->kind > y->kind ? -1 : 1) : x->expr < y->expr ? -1 : x->expr > y->expr;
}

bool loop_shares_bytes(const Kernel *k, const Loop *loop, const Access *a) {
  int64_t nelems = loop->cut.length, next = 1;
  bool is_dense = !loop->nbatch && a->offset % 2 == 0 && !a->offset_monomial;
  if (!type_is_packed(a->type)) return false;
  for (int i = loop->nouter + loop->ninner - 1; i >= 0; i--) {
    is_dense &= a->stride[loop->axes[i]] == next && !a->stride_monomial[loop->axes[i]];
    is_dense &= !k->axes[loop->axes[i]].monomial || i == 0; // no stride depends on the extent of the slowest axis
    next *= k->axes[loop->axes[i]].extent;
    if (i >= loop->nouter && !loop_tile(loop)) nelems *= k->axes[loop->axes[i]].extent;
  }
  return !is_dense || nelems % 2 || !cut_is_multiple(&loop->cut, 2);
}

const Root *loop_root(const Loop *loop, RootKind kind, AccessId id) {
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == kind && loop->roots[i].access == id) return &loop->roots[i];
  return NULL;
}

bool loop_has_roots(const Loop *loop, RootKind kind) {
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == kind) return true;
  return false;
}

bool loop_has_partial_arrays(const Kernel *k, const Loop *loop) {
  bool is_any = false;
  for (const Root *root = loop->roots; root < loop->roots + loop->nroots; root++)
    is_any |= root->kind == ROOT_REDUCE_OUTER && access_axes(k, &k->accesses[root->access]);
  return is_any;
}

bool loop_has_nested_sums(const Kernel *k, const Loop *loop) {
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->ninner > 1 && loop->roots[i].kind == ROOT_REDUCE_INNER &&
        k->exprs[loop->roots[i].expr].reduced == 1U << loop_vector_axis(loop))
      return true;
  return false;
}

void loop_sort_roots(Loop *loop) {
  qsort(loop->roots, loop->nroots, sizeof *loop->roots, compare_roots);
}

bool loop_add_root(Kernel *k, Loop *loop, Root root) {
  if (!kernel_grow(k, &loop->roots, loop->nroots, &loop->roots_capacity, sizeof *loop->roots)) return false;
  loop->roots[loop->nroots++] = root;
  return true;
}

AxisSet root_axes(const Kernel *k, const Root *root) {
  AxisSet axes = k->exprs[root->expr].axes;
  return root->kind == ROOT_STORE ? axes | access_axes(k, &k->accesses[root->access]) : axes;
}

ExprId root_operand(const Kernel *k, const Root *root) {
  return root->kind == ROOT_REDUCE_INNER ? k->exprs[root->expr].args[0] : root->expr;
}

bool root_is_in_sweep(const Kernel *k, const Loop *loop, const Root *root) {
  return root->kind == ROOT_REDUCE_INNER || root_axes(k, root) & loop_inner_axes(loop);
}

// Levels

static const LoopLevel *find_level(const LoopLevel *from, LoopLevel level) { // or the end
  while (*from && *from != level) from++;
  return from;
}

bool loop_has(const Loop *loop, LoopLevel level) {
  return *find_level(loop->levels, level);
}

bool loop_shares_factors(const Loop *loop) {
  return loop_has(loop, LOOP_COLUMNS) || loop_has(loop, LOOP_TAPS);
}

bool loop_sums_in_lanes(const Loop *loop) {
  return *find_level(find_level(loop->levels, LOOP_LANES), LOOP_MIDDLE);
}

// Axes

AxisSet loop_outer_axes(const Loop *loop) {
  AxisSet axes = 0;
  for (int i = 0; i < loop->nouter; i++) axes |= 1U << loop->axes[i];
  return axes;
}

AxisSet loop_inner_axes(const Loop *loop) {
  AxisSet axes = 0;
  for (int i = 0; i < loop->ninner; i++) axes |= 1U << loop->axes[loop->nouter + i];
  return axes;
}

AxisSet loop_middle_axes(const Loop *loop) {
  AxisSet axes = 0;
  for (int i = 0; i < loop->ninner - 1; i++) axes |= 1U << loop->axes[loop->nouter + i];
  return axes;
}

int loop_vector_axis(const Loop *loop) {
  return loop->ninner ? loop->axes[loop->nouter + loop->ninner - 1] : -1;
}

int loop_lane_axis(const Loop *loop) {
  if (loop_has(loop, LOOP_ROW_LANES)) return loop->axes[loop->nouter - 1];
  return loop_vector_axis(loop);
}

int64_t loop_row_nelems(const Kernel *k, const Loop *loop) {
  int64_t extent = k->axes[loop->axes[loop->nouter]].extent;
  const int64_t whole = (extent + LANES - 1) / LANES * LANES;
  return loop_has(loop, LOOP_ROW_LANES) ? extent
         : loop->is_peeled              ? whole + LANES
                                        : whole; // the first vector of a peeled row may be partial
}

AxisSet loop_row_axes(const Kernel *k, const Loop *loop) {
  if (!loop_has(loop, LOOP_TAPS) || loop->rows == 1 || loop->cut.length != loop->rows) return 0;
  AxisSet axes = 0;
  for (int i = loop->nouter - 1; i >= loop->nbatch && axes_nelems(k, axes) < loop->rows; i--)
    axes |= 1U << loop->axes[i];
  return axes_nelems(k, axes) == loop->rows && !axes_monomial(k, axes) ? axes : 0;
}

int loop_axis_outside_windows(const Kernel *k, const Loop *loop, AccessId id) {
  const Access *a = &k->accesses[id];
  const int last = loop->nouter + loop->ninner - 2; // position of the last middle axis
  AxisSet windows = 0;
  for (size_t i = 0; i < a->nbounds; i++) windows |= bound_axes(&a->bounds[i]);
  if (!loop->nbatch || !(windows >> loop->axes[loop->nbatch - 1] & 1)) return -1;
  AxisSet taps = windows & loop_middle_axes(loop);
  for (int i = last; i >= loop->nouter; i--) {
    if (!(taps >> loop->axes[i] & 1)) return taps ? -1 : loop->axes[i];
    taps &= ~(1U << loop->axes[i]);
  }
  return -1;
}

bool loop_has_contiguous_rows(const Kernel *k, const Loop *loop, AccessId id) {
  const Access *a = &k->accesses[id];
  int64_t stride = 1;
  if (a->nbounds || a->panel_axis || a->offset_monomial || loop->ninner != 2 || a->stride[loop_vector_axis(loop)] ||
      loop->rows < 2)
    return false;
  if (axes_monomial(k, loop_outer_axes(loop) | loop_inner_axes(loop))) return false;
  for (int i = loop->nouter; i >= 0; i--) { // from the middle axis on outwards
    if (a->stride[loop->axes[i]] != stride) return false;
    stride *= k->axes[loop->axes[i]].extent;
  }
  return true;
}

bool loop_is_tiled(const Loop *loop) {
  return loop->nbatch == loop->nouter && loop->ninner == 1;
}

int64_t loop_tile(const Loop *loop) {
  return loop_is_tiled(loop) ? loop->cut.length : 0;
}

AxisSet loop_cut_axes(const Loop *loop) {
  AxisSet axes = loop_tile(loop) ? 1U << loop_vector_axis(loop) : 0;
  for (int i = loop->nbatch; i < loop->nouter; i++) axes |= 1U << loop->axes[i];
  return axes;
}

// Blocks

static AxisSet batch_axes(const Loop *loop) {
  return loop_outer_axes(loop) & ~loop_cut_axes(loop);
}

bool loop_has_open_length(const Kernel *k, const Loop *loop) {
  return loop->cut.most && axes_monomial(k, loop_cut_axes(loop));
}

int64_t loop_block_length(const Kernel *k, const Loop *loop) {
  return cut_length(&loop->cut, axes_nelems(k, loop_cut_axes(loop)));
}

int64_t loop_ncut_blocks(const Kernel *k, const Loop *loop) {
  const int64_t length = loop_block_length(k, loop);
  assert(length > 0);
  return (axes_nelems(k, loop_cut_axes(loop)) + length - 1) / length;
}

bool loop_has_open_cut_blocks(const Kernel *k, const Loop *loop) {
  return loop_has_open_length(k, loop) || axes_monomial(k, loop_cut_axes(loop));
}

int64_t loop_nblocks(const Kernel *k, const Loop *loop) {
  return axes_nelems(k, batch_axes(loop)) * loop_ncut_blocks(k, loop);
}

int64_t loop_ncombined(const Kernel *k, const Loop *loop, const Expr *combine) {
  const int64_t others = axes_nelems(k, batch_axes(loop) & ~combine->axes);
  return others * (loop_has_open_cut_blocks(k, loop) ? 1 : loop_ncut_blocks(k, loop));
}

bool loop_is_idle(const Kernel *k, const Loop *loop) {
  bool leaves_any = false;
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    if (root->kind == ROOT_STORE) leaves_any |= axes_nelems(k, root_axes(k, root)) != 0;
    if (root->kind == ROOT_REDUCE_OUTER) leaves_any |= axes_nelems(k, access_axes(k, &k->accesses[root->access])) != 0;
  }
  return !leaves_any || loop->is_reused || loop_nblocks(k, loop) == 0;
}

// Bytes

static int64_t slice_nbytes(const Kernel *k, const Access *a) {
  const SlicedTensor *tensor = slice_group_find(k->slice_group, a->value);
  return (int64_t)type_array_nbytes(a->type, (size_t)slice_group_nelems(k->slice_group, tensor));
}

int64_t access_tensor_nbytes(const Schedule *s, AccessId id) {
  const Access *a = &s->kernel->accesses[id];
  if (a->value && s->kernel->slice_group) return slice_nbytes(s->kernel, a);
  if (a->value) return access_value_nbytes(s->kernel, id);
  const Temporary *t = &s->temporaries[a->temporary];
  return t->is_own ? 0 : (int64_t)type_array_nbytes(t->type, (size_t)t->nelems);
}

// Loops that compute the same for several slices of a slice group

// Whether the load is invariant: it yields the same elements for all slices along the last level.
static bool is_invariant_load(const Schedule *s, const Access *a) {
  const SliceGroup *slice_group = s->kernel->slice_group;
  if (a->type == TYPE_NONE) return true;
  if (!a->value) return s->temporaries[a->temporary].is_invariant;
  const SlicedTensor *tensor = slice_group_find(slice_group, a->value);
  return !tensor->is_passed_on && !tensor->stride[slice_group->nlevels - 1];
}

// Whether the loop stores only temporaries, and only from invariant loads.
static bool is_invariant_loop(const Schedule *s, const Loop *loop, bool *is_needed) {
  const Kernel *k = s->kernel;
  memset(is_needed, 0, k->nexprs * sizeof *is_needed);
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    if (root->kind == ROOT_STORE && k->accesses[root->access].value) return false;
    if (root->kind == ROOT_REDUCE_OUTER) return false;
    loop_mark_root(k, loop, root, is_needed);
  }
  for (ExprId id = 1; id < k->nexprs; id++) {
    if (is_needed[id] && k->exprs[id].op == EXPR_COMBINE) return false;
    if (is_needed[id] && k->exprs[id].op == EXPR_LOAD && !is_invariant_load(s, &k->accesses[k->exprs[id].access]))
      return false;
  }
  return true;
}

bool schedule_find_invariants(Schedule *s) {
  Kernel *k = s->kernel;
  bool *is_needed = KERNEL_ARRAY(k, bool, k->nexprs + 1);
  for (size_t l = 0; is_needed && l < s->nloops; l++) {
    Loop *loop = &s->loops[l];
    loop->is_invariant = is_invariant_loop(s, loop, is_needed);
    for (size_t i = 0; i < loop->nroots; i++) {
      const Access *a = &k->accesses[loop->roots[i].access];
      if (loop->roots[i].kind == ROOT_STORE && !a->value)
        s->temporaries[a->temporary].is_invariant = loop->is_invariant && !s->temporaries[a->temporary].is_own;
    }
  }
  return is_needed;
}
