// How a loop takes its sums: the order that its structure implies for each reduction, and how inner sums are cut into
// runs.
#include "ir/kernel/schedule.h"

// The order of a root

static void add_level(SumOrder *o, SumLevel level) {
  o->levels[o->nlevels++] = level;
}

// The number of accumulators of an inner sum for each accumulator of a lane: sums differ between lanes unless they
// reduce the axis of the lanes.
static int lanes_of(const Loop *loop, AxisSet reduced) {
  const int lane = loop_lane_axis(loop);
  return lane >= 0 && reduced >> lane & 1 ? LANES : 1;
}

static Runs runs_of(const Kernel *k, const Loop *loop, const SumOrder *o);

// A reduction over inner axes.
static void add_inner_levels(const Kernel *k, const Loop *loop, const Expr *e, SumNumbers numbers, SumOrder *o) {
  const AxisSet reduced = e->reduced;
  const int lanes = lanes_of(loop, reduced);
  if (!((e->axes | reduced) >> loop_lane_axis(loop) & 1)) { // a sum of scalars: of sums that end inside of it
    add_level(o, (SumLevel){.axes = reduced, .accumulators = 1, .type = TYPE_F64});
    return;
  }
  const int count = lanes == 1 ? 1 : lanes * numbers.accumulators;
  add_level(o, (SumLevel){.axes = reduced, .accumulators = count, .type = kernel_type(k)});
  if (numbers.totals != TYPE_NONE && !reduction_is_exact(k, o->reduction)) {
    o->levels[0].cut.length = (int64_t)count * (numbers.totals == TYPE_F32 ? LONGEST_CHAIN : LONGEST_RUN);
    add_level(o, (SumLevel){.axes = reduced, .accumulators = lanes, .type = numbers.totals});
    const Runs runs = runs_of(k, loop, o);
    if (!runs.vector_run && !runs.middle_run) { // the sum is short: it would be a single run
      o->levels[0].cut.length = 0;
      o->nlevels--;
    }
  }
  if (lanes > 1)
    add_level(o, (SumLevel){.accumulators = 1, .type = reduction_is_exact(k, o->reduction) ? TYPE_F32 : TYPE_F64});
}

// A reduction over outer axes: partial results of blocks, then the results of the blocks.
static void add_outer_levels(const Kernel *k, const Loop *loop, Type partial, SumOrder *o) {
  const AxisSet cut = loop_cut_axes(loop);
  const bool has_lanes = loop_has(loop, LOOP_ROW_LANES);
  add_level(o, (SumLevel){.axes = cut,
                          .cut = loop->cut,
                          .accumulators = has_lanes ? LANES : 1,
                          .type = has_lanes ? kernel_type(k) : partial});
  if (has_lanes) add_level(o, (SumLevel){.accumulators = 1, .type = partial});
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
    add_outer_levels(k, loop, k->accesses[root->access].type, &o);
  }
  return o;
}

SumNumbers loop_sum_numbers(const Loop *loop, const SumOrder *o) {
  const SumLevel *first = &o->levels[0];
  return (SumNumbers){first->accumulators / lanes_of(loop, first->axes), sum_order_totals(o), o->is_fused};
}

// Runs

// Sums of products. A run covers as many of the innermost axes as make at most `longest` products.
static Runs product_runs(const Kernel *k, const Loop *loop, int64_t longest) {
  Runs runs = {.depth = loop->ninner - 2};
  int64_t inside = 1; // products in an iteration at this depth
  for (; runs.depth > 0; runs.depth--) {
    const Axis *axis = &k->axes[loop->axes[loop->nouter + runs.depth]];
    if (axis->monomial || axis->extent * inside > longest) break;
    inside *= axis->extent > 0 ? axis->extent : 1;
  }
  const Axis *axis = &k->axes[loop->axes[loop->nouter + runs.depth]];
  if (axis->monomial || axis->extent * inside > longest) runs.middle_run = longest / inside;
  return runs;
}

// Additions to the first accumulator in an iteration of the middle axes: one for each group of vectors, each remaining
// vector, and the tail. No other accumulator has more.
static int64_t chain_length(int64_t width, int64_t group) {
  return width / group + width % group / LANES + (width % LANES != 0);
}

// Sums along the vector axis. A chain continues over iterations of the middle axes that are summed, too. A single run
// has the same bits as no runs: with open extents, loops have runs whether a call needs them or not.
static Runs row_runs(const Kernel *k, const Loop *loop, const SumLevel *first) {
  const Axis *vector = &k->axes[loop_vector_axis(loop)];
  const int64_t tile = loop_tile(loop), group = first->accumulators, longest = first->cut.length / group;
  const int64_t chain = chain_length(tile ? tile : vector->extent, group);
  const AxisSet middle = first->axes & loop_middle_axes(loop);
  const bool is_open = axes_monomial(k, middle), is_vector_open = !tile && vector->monomial;
  Runs runs = {.depth = loop->ninner - 2};
  runs.is_open = is_vector_open && middle;
  if (is_vector_open || chain > longest) runs.vector_run = first->cut.length;
  else if (chain * axes_nelems(k, middle) > longest || (is_open && chain)) runs.middle_run = longest / chain;
  return runs;
}

static Runs runs_of(const Kernel *k, const Loop *loop, const SumOrder *o) {
  const SumLevel *first = &o->levels[0];
  if (!loop_sums_in_lanes(loop)) return row_runs(k, loop, first);
  if (sum_order_totals(o) == TYPE_F32) return product_runs(k, loop, first->cut.length);
  const int64_t length = axes_nelems(k, loop_middle_axes(loop)); // each iteration is an addition
  return (Runs){.middle_run = length > first->cut.length ? first->cut.length : 0, .depth = loop->ninner - 2};
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

Type loop_totals(const Loop *loop) {
  const SumOrder *o = find_order_with_runs(loop);
  return o ? sum_order_totals(o) : TYPE_NONE;
}

int loop_accumulators(const Loop *loop) {
  int most = 1;
  for (size_t i = 0; i < loop->nroots; i++) {
    if (loop->roots[i].kind != ROOT_REDUCE_INNER) continue;
    const int count = loop_sum_numbers(loop, loop->roots[i].order).accumulators;
    if (count > most) most = count;
  }
  return most;
}
