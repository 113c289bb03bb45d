// How a loop takes its sums: the order that its structure implies for each reduction, with the segments of inner sums.
#include "ir/kernel/reference.h"
#include "ir/kernel/scatter.h"
#include "ir/kernel/schedule.h"

// The order of a root

static void add_level(SumOrder *o, SumLevel level) {
  o->levels[o->nlevels++] = level;
}

bool loop_sums_rows(const Loop *loop) {
  return loop_has(loop, LOOP_ROW_LANES) && !(loop_outer_axes(loop) >> loop->dense_axis & 1);
}

// The number of accumulators of an inner sum. Sums differ between lanes unless they reduce the axis of the lanes; but
// with rows in lanes, the elements of a row are added as if they were in lanes.
static int lanes_of(const Loop *loop, AxisSet reduced) {
  const int lane = loop_lane_axis(loop);
  return (lane >= 0 && reduced >> lane & 1) || loop_sums_rows(loop) ? LANES : 1;
}

// Whether the sum may be cut into segments, whose sums are added in f64. Rows in lanes are short, and a chain of f64
// needs no parts.
static bool may_have_segments(const Kernel *k, const Loop *loop, ExprOp reduction) {
  return !(k->is_f64 && (k->is_s64 || loop_sums_in_lanes(loop))) && !loop_has(loop, LOOP_ROW_LANES) &&
         !kernel_is_scatter(k) && !reduction_is_exact(k, reduction);
}

// Sums that each lane has of its own: chains (chain_iterations). If an open axis is reached, emitted code computes the
// iterations in a chain.
static Segments lane_segments(const Kernel *k, const Loop *loop) {
  Segments s = {.inside = 1};
  for (int i = loop->nouter + loop->ninner - 2; i >= loop->nouter; i--) {
    const Axis *axis = &k->axes[s.axis = loop->axes[i]];
    if (axis->monomial && s.inside >= CHAIN) s.iterations = 1;
    else if (axis->monomial) s.is_open = true;
    else if (axis->extent * s.inside >= (int64_t)2 * CHAIN) s.iterations = chain_iterations(axis->extent, s.inside);
    if (s.iterations || s.is_open) return s;
    s.inside *= axis->extent;
    if (!s.inside) break;
  }
  return (Segments){0};
}

// Sums along the vector axis. A segment continues over iterations of the middle axes that are summed, too. A single
// segment has the same bits as an uncut sum: with open extents, loops have segments whether a call needs them or not.
static Segments row_segments(const Kernel *k, const Loop *loop, const SumLevel *first) {
  const Axis *vector = &k->axes[loop_vector_axis(loop)];
  const int64_t own = loop_tile(loop), longest = first->cut.length / LANES;
  const int64_t tile = own && !vector->monomial && vector->extent < own ? vector->extent : own;
  const bool is_vector_open = !tile && vector->monomial, has_middle = first->axes & loop_middle_axes(loop);
  int64_t additions = ((tile ? tile : vector->extent) + LANES - 1) / LANES; // in an iteration of the axis
  int at = loop->nouter + loop->ninner - 2;
  Segments s = {.is_open = is_vector_open && has_middle};
  if (has_middle) s.axis = loop->axes[at];
  if (is_vector_open || additions > longest || (tile && (vector->monomial || vector->extent > tile)))
    s.elements = first->cut.length; // a tile is a segment
  if (s.elements || !has_middle || !additions) return s;
  for (; at > loop->nouter; at--) {
    const Axis *axis = &k->axes[loop->axes[at]];
    if (axis->monomial || axis->extent * additions > longest) break;
    additions *= axis->extent > 0 ? axis->extent : 1;
  }
  const Axis *axis = &k->axes[s.axis = loop->axes[at]];
  if (axis->monomial || axis->extent * additions > longest) s.iterations = longest / additions;
  return s;
}

// Cuts the first level of a reduction over inner axes.
static void add_segments(const Kernel *k, const Loop *loop, bool adds_segments, SumOrder *o) {
  SumLevel *first = &o->levels[0];
  const bool are_chains = loop_sums_in_lanes(loop) && !adds_segments;
  first->cut.length = (int64_t)first->accumulators * (adds_segments ? 1 : are_chains ? 2 * CHAIN - 1 : LONGEST_SEGMENT);
  if (are_chains) o->segments = lane_segments(k, loop);
  else if (!adds_segments) o->segments = row_segments(k, loop, first);
  else o->segments = (Segments){.iterations = 1, .axis = loop->axes[loop->nouter + loop->ninner - 2], .inside = 1};
  const Segments *s = &o->segments;
  if (are_chains && s->iterations) first->cut.length = s->iterations * s->inside;
  if (s->elements || s->iterations || s->is_open) return;
  first->cut.length = 0; // a single segment
  o->segments = (Segments){0};
}

// A reduction over inner axes.
static void add_inner_levels(const Kernel *k, const Loop *loop, const Expr *e, bool adds_segments, SumOrder *o) {
  const AxisSet reduced = e->reduced;
  const int lanes = lanes_of(loop, reduced);
  if (!((e->axes | reduced) >> loop_lane_axis(loop) & 1)) { // a sum of scalars: of sums that end inside of it
    add_level(o, (SumLevel){.axes = reduced, .accumulators = 1, .type = TYPE_F64});
    return;
  }
  add_level(o, (SumLevel){.axes = reduced, .accumulators = lanes, .type = kernel_type(k)});
  if (may_have_segments(k, loop, o->reduction)) add_segments(k, loop, adds_segments, o);
  if (lanes > 1) add_level(o, (SumLevel){.accumulators = 1, .type = kernel_type(k)});
  if (o->levels[0].cut.length) add_level(o, (SumLevel){.axes = reduced, .accumulators = 1, .type = TYPE_F64});
}

// The axes that the loop's outer reductions reduce: those that are cut, and in a tiled loop some free ones.
static AxisSet outer_reduced(const Schedule *s, const Loop *loop, AccessId partials) {
  const AxisSet cut = loop_cut_axes(loop);
  for (size_t i = 0; loop_is_tiled(loop) && i < s->nsums; i++)
    if (s->sums[i].partials == partials)
      return cut | (s->kernel->exprs[s->sums[i].sum].reduced & loop_outer_axes(loop));
  return cut;
}

// A reduction over outer axes: partial results of blocks, then the results of the blocks.
static void add_outer_levels(const Kernel *k, const Loop *loop, AxisSet cut, Type partial, SumOrder *o) {
  add_level(o, (SumLevel){.axes = cut, .cut = loop->cut, .accumulators = 1, .type = partial});
  add_level(
      o, (SumLevel){.axes = cut, .accumulators = 1, .type = reduction_is_exact(k, o->reduction) ? partial : TYPE_F64});
}

SumOrder loop_sum_order(const Schedule *s, const Loop *loop, const Root *root, bool adds_segments) {
  const Kernel *k = s->kernel;
  const Expr *e = &k->exprs[root->expr];
  SumOrder o = {.reduction = e->op};
  if (root->kind == ROOT_REDUCE_INNER) {
    add_inner_levels(k, loop, e, adds_segments, &o);
  } else {
    o.reduction = s->temporaries[k->accesses[root->access].temporary].reduction;
    add_outer_levels(k, loop, outer_reduced(s, loop, root->access), k->accesses[root->access].type, &o);
  }
  return o;
}

Segments loop_segments(const Loop *loop) {
  for (const Root *root = loop->roots; root < loop->roots + loop->nroots; root++)
    if (root->kind == ROOT_REDUCE_INNER && sum_order_has_segments(root->order)) return root->order->segments;
  return (Segments){0};
}

// Summations

static SumStage inner_stage(const Kernel *k, const Loop *loop, const Root *root) {
  SumStage s = {.order = root->order,
                .is_in_lanes = root->order->levels[0].accumulators > 1,
                .has_only_used = loop_sums_rows(loop)};
  for (int i = loop->nouter; i < loop->nouter + loop->ninner; i++)
    if (k->exprs[root->expr].reduced >> loop->axes[i] & 1) s.axes[s.naxes++] = loop->axes[i];
  return s;
}

static const Root *find_root(const Loop *loop, RootKind kind, uint32_t id) {
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    if (root->kind == kind && (kind == ROOT_REDUCE_INNER ? root->expr : root->access) == id) return root;
  }
  return NULL;
}

bool schedule_summation(const Schedule *s, const ScheduledSum *sum, Summation *out) {
  const Loop *loop = &s->loops[sum->loop];
  const Root *inner = sum->inner ? find_root(loop, ROOT_REDUCE_INNER, sum->inner) : NULL;
  const Root *outer = sum->partials ? find_root(loop, ROOT_REDUCE_OUTER, sum->partials) : NULL;
  *out = (Summation){.sum = sum->sum};
  if ((sum->inner && !inner) || (sum->partials && !outer)) return false;
  if (inner) out->inner = inner_stage(s->kernel, loop, inner);
  if (!outer) return inner;
  out->outer.order = outer->order;
  out->is_tiled = loop_is_tiled(loop);
  const AxisSet reduced = outer_reduced(s, loop, sum->partials);
  for (int i = 0; i < loop->nouter + out->is_tiled; i++)
    if (reduced >> loop->axes[i] & 1) out->outer.axes[out->outer.naxes++] = loop->axes[i];
  return true;
}
