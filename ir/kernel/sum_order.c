// Derives the order of each reduction from a schedule.
#include "ir/kernel/sum_order.h"

static void add_level(SumOrder *o, SumLevel level) {
  o->levels[o->nlevels++] = level;
}

static Type type_of_kernel(const Kernel *k) {
  return k->is_s64 ? TYPE_S64 : k->is_f64 ? TYPE_F64 : TYPE_F32;
}

static bool is_exact(const Kernel *k, ExprOp reduction) {
  return !k->is_f64 && reduction == EXPR_REDUCE_MAXIMUM;
}

// A reduction over inner axes. Its sums differ between lanes unless it reduces the axis of the lanes.
static void add_inner_levels(const Kernel *k, const Loop *loop, SumOrder *o) {
  const AxisSet reduced = k->exprs[o->expr].reduced, lane = loop_lane_axis(loop) < 0 ? 0 : 1U << loop_lane_axis(loop);
  const bool adds_lanes = reduced & lane;
  if (loop->is_nested && !adds_lanes) { // sums of sums are scalars
    add_level(o, (SumLevel){.axes = reduced, .accumulators = 1, .type = TYPE_F64});
    return;
  }
  const Runs runs = is_exact(k, o->reduction) ? (Runs){0} : loop_runs(k, loop);
  const bool has_runs = runs.vector_run || runs.middle_run || runs.is_open;
  const int lanes = adds_lanes ? LANES : 1, length = loop->totals == TYPE_F32 ? LONGEST_CHAIN : LONGEST_RUN;
  add_level(o, (SumLevel){.axes = reduced,
                          .length = has_runs ? length : 0,
                          .accumulators = lanes * (adds_lanes ? loop->accumulators : 1),
                          .type = type_of_kernel(k)});
  if (has_runs) add_level(o, (SumLevel){.axes = reduced, .accumulators = lanes, .type = loop->totals});
  if (adds_lanes) add_level(o, (SumLevel){.accumulators = 1, .type = is_exact(k, o->reduction) ? TYPE_F32 : TYPE_F64});
}

// A reduction over outer axes: partial results of blocks, then the results of the blocks.
static void add_outer_levels(const Kernel *k, const Loop *loop, Type partial, SumOrder *o) {
  const AxisSet cut = loop_cut_axes(loop);
  const int lanes = loop->rows_in_lanes ? LANES : 1;
  const int64_t length = loop->tile ? loop->tile : loop->few_work ? loop->many_block : loop->block;
  add_level(o, (SumLevel){.axes = cut,
                          .length = length / lanes,
                          .accumulators = lanes,
                          .type = loop->rows_in_lanes ? type_of_kernel(k) : partial,
                          .few_work = loop->few_work,
                          .few_length = loop->few_block / lanes,
                          .most_results = loop->most_cut_blocks});
  if (loop->rows_in_lanes) add_level(o, (SumLevel){.accumulators = 1, .type = partial});
  add_level(o, (SumLevel){.axes = cut, .accumulators = 1, .type = is_exact(k, o->reduction) ? partial : TYPE_F64});
}

SumOrder *schedule_sum_orders(const Schedule *s, Arena *arena, size_t *count) {
  const Kernel *k = s->kernel;
  size_t nroots = 0;
  for (size_t l = 0; l < s->nloops; l++) nroots += s->loops[l].nroots;
  SumOrder *orders = ARENA_ARRAY(arena, SumOrder, nroots + 1);
  *count = 0;
  for (uint32_t l = 0; l < s->nloops && orders; l++) {
    const Loop *loop = &s->loops[l];
    for (size_t i = 0; i < loop->nroots; i++) {
      const Root *root = &loop->roots[i];
      const Access *a = &k->accesses[root->access];
      if (root->kind == ROOT_STORE) continue;
      SumOrder *o = &orders[(*count)++];
      *o = (SumOrder){.loop = l, .expr = root->expr, .is_fused = root->is_fused};
      o->reduction = root->kind == ROOT_REDUCE_INNER ? k->exprs[root->expr].op : s->temporaries[a->temporary].reduction;
      if (root->kind == ROOT_REDUCE_INNER) add_inner_levels(k, loop, o);
      else add_outer_levels(k, loop, a->type, o);
    }
  }
  return orders;
}

static bool levels_equal(const SumLevel *a, const SumLevel *b) {
  return a->axes == b->axes && a->length == b->length && a->accumulators == b->accumulators && a->type == b->type &&
         a->few_work == b->few_work && a->few_length == b->few_length && a->most_results == b->most_results;
}

static bool are_equal(const SumOrder *a, const SumOrder *b) {
  bool is_equal =
      a->loop == b->loop && a->reduction == b->reduction && a->is_fused == b->is_fused && a->nlevels == b->nlevels;
  for (int i = 0; is_equal && i < a->nlevels; i++) is_equal = levels_equal(&a->levels[i], &b->levels[i]);
  return is_equal;
}

bool sum_orders_equal(const SumOrder *a, size_t na, const SumOrder *b, size_t nb) {
  bool is_equal = na == nb;
  for (size_t i = 0; is_equal && i < na; i++) is_equal = are_equal(&a[i], &b[i]);
  return is_equal;
}

int64_t sum_order_chain(const Kernel *k, const SumOrder *o) {
  const SumLevel *first = &o->levels[0];
  if (first->length) return first->few_length > first->length ? first->few_length : first->length;
  if (axes_monomial(k, first->axes)) return INT64_MAX;
  return (axes_nelems(k, first->axes) + first->accumulators - 1) / first->accumulators;
}

bool sum_order_rounds(const Kernel *k, const SumOrder *o) {
  return o->levels[0].type == TYPE_F32 && !is_exact(k, o->reduction);
}

void sum_order_print(const Kernel *k, const SumOrder *o, Text *out) {
  const char *before = "over ";
  for (int axis = 0; axis < k->naxes; axis++) {
    if (!(o->levels[0].axes >> axis & 1)) continue;
    text_format(out, "%s%s", before, k->axes[axis].name);
    before = ", ";
  }
  for (int i = 0; i < o->nlevels; i++) {
    const SumLevel *l = &o->levels[i];
    const char *noun = i ? "" : l->accumulators == 1 ? " accumulator" : " accumulators";
    text_format(out, "%s%d%s of %s", i ? "; then into " : " into ", l->accumulators, noun, type_name(l->type));
    if (l->length) text_format(out, ", each for %lld operands", (long long)l->length);
    if (l->few_work) text_format(out, ", or %lld if there are few", (long long)l->few_length);
    if (l->most_results) text_format(out, ", or more, for at most %lld results", (long long)l->most_results);
  }
}
