// How a loop takes its sums: the order that its structure implies for each reduction, and how inner sums are cut into
// runs.
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

static Runs runs_of(const Kernel *k, const Loop *loop, const SumOrder *o);

// Whether the sum may be cut into runs, whose sums are added to f64 totals. Rows in lanes are short.
static bool may_have_runs(const Kernel *k, const Loop *loop, ExprOp reduction) {
  return !k->is_f64 && !loop_has(loop, LOOP_ROW_LANES) && !kernel_is_scatter(k) && !reduction_is_exact(k, reduction);
}

// The most operands of an accumulator in a run.
static int64_t longest_run(const Loop *loop, SumNumbers numbers) {
  if (numbers.adds_chains) return 1;
  return loop_sums_in_lanes(loop) ? 2 * CHAIN - 1 : LONGEST_RUN;
}

int64_t loop_operands_inside(const Kernel *k, const Loop *loop, int depth) {
  int64_t inside = 1;
  for (int i = depth + 1; i < loop->ninner - 1; i++) inside *= k->axes[loop->axes[loop->nouter + i]].extent;
  return inside;
}

// A reduction over inner axes.
static void add_inner_levels(const Kernel *k, const Loop *loop, const Expr *e, SumNumbers numbers, SumOrder *o) {
  const AxisSet reduced = e->reduced;
  const int lanes = lanes_of(loop, reduced);
  if (!((e->axes | reduced) >> loop_lane_axis(loop) & 1)) { // a sum of scalars: of sums that end inside of it
    add_level(o, (SumLevel){.axes = reduced, .accumulators = 1, .type = TYPE_F64});
    return;
  }
  add_level(o, (SumLevel){.axes = reduced, .accumulators = lanes, .type = kernel_type(k)});
  if (may_have_runs(k, loop, o->reduction)) {
    SumLevel *first = &o->levels[0];
    first->cut.length = lanes * longest_run(loop, numbers);
    const Runs runs = runs_of(k, loop, o);
    const bool has_chains = loop_sums_in_lanes(loop) && !numbers.adds_chains;
    if (has_chains && runs.middle_run) first->cut.length = runs.middle_run * loop_operands_inside(k, loop, runs.depth);
    if (!runs.vector_run && !runs.middle_run && !runs.is_open) first->cut.length = 0; // a single run
  }
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

SumOrder loop_sum_order(const Schedule *s, const Loop *loop, const Root *root, SumNumbers numbers) {
  const Kernel *k = s->kernel;
  const Expr *e = &k->exprs[root->expr];
  SumOrder o = {.reduction = e->op, .is_fused = numbers.is_fused};
  if (root->kind == ROOT_REDUCE_INNER) {
    add_inner_levels(k, loop, e, numbers, &o);
  } else {
    o.reduction = s->temporaries[k->accesses[root->access].temporary].reduction;
    add_outer_levels(k, loop, outer_reduced(s, loop, root->access), k->accesses[root->access].type, &o);
  }
  return o;
}

SumNumbers loop_sum_numbers(const SumOrder *o) {
  return (SumNumbers){o->levels[0].cut.length == 1, o->is_fused};
}

// Runs

// Sums that each lane has of its own: chains (chain_iterations). If an open axis is reached, emitted code computes the
// iterations in a chain.
static Runs lane_runs(const Kernel *k, const Loop *loop) {
  Runs runs = {.depth = loop->ninner - 2};
  for (; runs.depth >= 0; runs.depth--) {
    const Axis *axis = &k->axes[loop->axes[loop->nouter + runs.depth]];
    const int64_t inside = loop_operands_inside(k, loop, runs.depth);
    if (!inside) return runs;
    if (axis->monomial && inside >= CHAIN) runs.middle_run = 1;
    else if (axis->monomial) runs.is_open = true;
    else if (axis->extent * inside >= (int64_t)2 * CHAIN) runs.middle_run = chain_iterations(axis->extent, inside);
    if (runs.middle_run || runs.is_open) return runs;
  }
  runs.depth = 0;
  return runs;
}

// Sums along the vector axis. A chain continues over iterations of the middle axes that are summed, too. A single run
// has the same bits as no runs: with open extents, loops have runs whether a call needs them or not.
static Runs row_runs(const Kernel *k, const Loop *loop, const SumLevel *first) {
  const Axis *vector = &k->axes[loop_vector_axis(loop)];
  const int64_t own = loop_tile(loop), longest = first->cut.length / LANES;
  const int64_t tile = own && !vector->monomial && vector->extent < own ? vector->extent : own;
  const bool is_vector_open = !tile && vector->monomial, has_middle = first->axes & loop_middle_axes(loop);
  int64_t inside = ((tile ? tile : vector->extent) + LANES - 1) / LANES; // additions in an iteration at this depth
  Runs runs = {.is_open = is_vector_open && has_middle, .depth = loop->ninner - 2};
  if (is_vector_open || inside > longest || (tile && (vector->monomial || vector->extent > tile)))
    runs.vector_run = first->cut.length; // a tile is a run
  if (runs.vector_run || !has_middle || !inside) return runs;
  for (; runs.depth > 0; runs.depth--) {
    const Axis *axis = &k->axes[loop->axes[loop->nouter + runs.depth]];
    if (axis->monomial || axis->extent * inside > longest) break;
    inside *= axis->extent > 0 ? axis->extent : 1;
  }
  const Axis *axis = &k->axes[loop->axes[loop->nouter + runs.depth]];
  if (axis->monomial || axis->extent * inside > longest) runs.middle_run = longest / inside;
  return runs;
}

static Runs runs_of(const Kernel *k, const Loop *loop, const SumOrder *o) {
  const SumLevel *first = &o->levels[0];
  if (!loop_sums_in_lanes(loop)) return row_runs(k, loop, first);
  return first->cut.length == 1 ? (Runs){.middle_run = 1, .depth = loop->ninner - 2} : lane_runs(k, loop);
}

// The order of the loop's inner sums that have runs, which is the same for all of them; NULL: there are none.
static const SumOrder *find_order_with_runs(const Loop *loop) {
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_REDUCE_INNER && sum_order_has_runs(loop->roots[i].order))
      return loop->roots[i].order;
  return NULL;
}

Runs loop_runs(const Kernel *k, const Loop *loop) {
  const SumOrder *o = find_order_with_runs(loop);
  return o ? runs_of(k, loop, o) : (Runs){0};
}

// Summations

static SumStage inner_stage(const Kernel *k, const Loop *loop, const Root *root) {
  const Expr *e = &k->exprs[root->expr];
  SumStage s = {.order = root->order, .runs = sum_order_has_runs(root->order) ? loop_runs(k, loop) : (Runs){0}};
  for (int i = loop->nouter; i < loop->nouter + loop->ninner; i++) {
    if (e->reduced >> loop->axes[i] & 1) s.axes[s.naxes++] = loop->axes[i];
    if (i > loop->nouter + s.runs.depth) s.inside |= 1U << loop->axes[i];
  }
  s.is_in_lanes = root->order->levels[0].accumulators > 1;
  s.has_only_used = loop_sums_rows(loop);
  s.run_axis = loop->axes[loop->nouter + s.runs.depth];
  s.nelems_inside = loop_operands_inside(k, loop, s.runs.depth);
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
