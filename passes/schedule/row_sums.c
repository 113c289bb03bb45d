// Builds the initialisation and the final reduction of a sweep's sums over rows. To keep chains of f32 additions short,
// a row is cut into runs, and each run's sum is added to a total in f64.
#include "passes/schedule/recipe.h"

bool is_exact_in_f32(const Recipe *r, ExprId id) {
  return !r->k->is_f64 && r->k->exprs[id].op == EXPR_REDUCE_MAXIMUM;
}

// Whether a sweep has sums over the vector axis; with must_be_short: sums that need short chains.
static bool has_sums_in(const Recipe *r, int sweep, bool must_be_short) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (is_vector_sum(r, root) && root->sweep == sweep && !(must_be_short && is_exact_in_f32(r, root->expr)))
      return true;
  }
  return false;
}

SweepRuns sweep_runs(const Recipe *r, int sweep) {
  const Runs own = loop_runs(r->k, r->loop);
  SweepRuns runs = {.has_sums = has_sums_in(r, sweep, false)};
  if (!has_sums_in(r, sweep, true)) return runs;
  runs.vector_run = own.vector_run;
  runs.middle_run = own.middle_run;
  runs.is_open = own.is_open;
  runs.has_totals = runs.vector_run || runs.middle_run || runs.is_open;
  return runs;
}

void for_each_sum(Recipe *r, int sweep, void (*f)(Recipe *, ExprId)) {
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (is_vector_sum(r, &r->loop->roots[i]) && r->loop->roots[i].sweep == sweep) f(r, r->loop->roots[i].expr);
}

static int naccumulators(const Recipe *r) {
  return has_rows(r) ? r->loop->rows : r->loop->accumulators;
}

void begin_sum(Recipe *r, ExprId id, SumPlace sum, int count) {
  add(r, (LoopNode){.kind = NODE_BEGIN_SUM, .sum = sum, .expr = id, .count = count});
}

void begin_accumulator(Recipe *r, ExprId id) {
  begin_sum(r, id, SUM_ACCUMULATOR, naccumulators(r));
}

void begin_total(Recipe *r, ExprId id) {
  if (is_exact_in_f32(r, id)) begin_accumulator(r, id); // one accumulator serves all runs
  else begin_sum(r, id, SUM_TOTAL, has_rows(r) ? r->loop->rows : 1);
}

void begin_run(Recipe *r, ExprId id) {
  if (!is_exact_in_f32(r, id)) begin_accumulator(r, id);
}

void end_run(Recipe *r, ExprId id) {
  if (is_exact_in_f32(r, id)) return;
  add(r, (LoopNode){.kind = NODE_END_RUN,
                    .expr = id,
                    .is_row = has_rows(r),
                    .accumulator = has_rows(r) ? ACCUMULATOR_OF_ROW : ACCUMULATOR_ONLY});
}

static void end_sum(Recipe *r, ExprId id, bool has_totals) {
  const bool is_row = has_rows(r) && expr_level(r, id) == LEVEL_ROW; // else the sum is the same in all rows
  add(r, (LoopNode){.kind = NODE_END_SUM,
                    .sum = has_totals && !is_exact_in_f32(r, id) ? SUM_TOTAL : SUM_ACCUMULATOR,
                    .expr = id,
                    .is_row = is_row,
                    .accumulator = is_row        ? ACCUMULATOR_OF_ROW
                                   : has_rows(r) ? ACCUMULATOR_FIRST
                                                 : ACCUMULATOR_ONLY,
                    .is_vector = r->info->rows_in_lanes});
}

void begin_sums(Recipe *r, int sweep, const SweepRuns *runs) {
  for_each_sum(r, sweep, runs->has_totals ? begin_total : begin_accumulator);
}

void end_sums(Recipe *r, int sweep, const SweepRuns *runs) {
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (is_vector_sum(r, &r->loop->roots[i]) && r->loop->roots[i].sweep == sweep)
      end_sum(r, r->loop->roots[i].expr, runs->has_totals);
}
