// Recipe "sums over middle axes": each vector of results is summed in a register. For sums of products of smaller
// tensors, such as Interpolate's gradient.
//
//   for each part of the columns, each `rows` rows of the block      step
//     for each group of vectors v of the innermost axis
//       acc[v, r] = 0
//       for each index m on the middle axes          or runs of them, each added to total[v, r]
//         scalar a = a[m]                            computed once for the group
//         vector b = b[m, v]
//         for r in 0..rows: acc[v, r] += a * b, or x[r, m] * b
//       for r in 0..rows: store f(acc[v, r]); partial[v] += g(acc[v, r])
//
// A group of several vectors loads each scalar once, and a step of several rows loads each vector once. Additions to
// different registers do not wait for each other. schedule_split_vectors makes groups of the loop over vectors that
// this recipe builds. Products (Loop.is_product) have several rows; a step takes a part of the columns, so that the
// vectors it loads stay in the L2 cache for the next rows.
#include "passes/schedule/recipe.h"

static bool suits(const Loop *loop) {
  return loop->sums_middle;
}

static bool is_of_row(const Recipe *r, AxisSet axes) {
  return has_rows(r) && varies_by_row(r, axes);
}

static void for_each_middle_sum(Recipe *r, void (*f)(Recipe *, ExprId)) {
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (r->loop->roots[i].kind == ROOT_REDUCE_INNER) f(r, r->loop->roots[i].expr);
}

// time 0: operands of the sums, computed in the middle loops. time 1: values that depend on the sums, computed after
// these loops.
static void make_vectors(Recipe *r, int time, bool by_row) {
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    const AxisSet axes = r->k->exprs[id].axes;
    if (is_made(r, id) && expr_level(r, id) == LEVEL_VECTOR && is_of_row(r, axes) == by_row &&
        (time ? !(axes & middle_axes(r)) : r->section[id] == 0))
      make_vector(r, id);
  }
}

static void need_operands(Recipe *r) {
  need_none(r);
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (r->loop->roots[i].kind == ROOT_REDUCE_INNER) need_root(r, &r->loop->roots[i]);
}

static void need_stored(Recipe *r, int sweep) {
  need_none(r);
  r->sweep = sweep; // the sweep's sums are known from here on
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (r->loop->roots[i].kind != ROOT_REDUCE_INNER) need_root(r, &r->loop->roots[i]);
}

// Scalars whose innermost middle axis is at this depth. Scalars that differ between rows are computed in the innermost
// loop, in the iteration of the row.
static void make_scalars(Recipe *r, int depth, bool by_row) {
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    int own;
    const AxisSet axes = r->k->exprs[id].axes;
    if (is_made(r, id) && level_of(r, axes, &own) == LEVEL_MIDDLE && is_of_row(r, axes) == by_row &&
        (by_row || own == depth))
      make_scalar(r, id, ~0U);
  }
}

static void add_up(Recipe *r) {
  need_operands(r);
  make_vectors(r, 0, false);
  open_rows(r);
  find_bounded_indices(r);
  make_scalars(r, 0, true);
  make_vectors(r, 0, true);
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (r->loop->roots[i].kind == ROOT_REDUCE_INNER) update_vector(r, &r->loop->roots[i]);
  close_rows(r);
}

static void build_middle(Recipe *r, int depth, const Runs *runs) {
  if (depth == r->loop->ninner - 1) {
    add_up(r);
    return;
  }
  const int axis = r->loop->axes[r->loop->nouter + depth];
  const bool is_run = runs->middle_run == 1 && depth == runs->depth; // each iteration is a run
  const bool in_runs = runs->middle_run > 1 && depth == runs->depth;
  const Index *extent = axes_nelems_index(r, 1U << axis), *run = number(r, runs->middle_run);
  LoopNode loop = {
      .kind = NODE_FOR, .var = {VAR_AXIS, (uint32_t)axis}, .value = number(r, 0), .end = extent, .step = number(r, 1)};
  if (in_runs) {
    open_for(r, VAR_RUN, number(r, 0), extent, run);
    for_each_middle_sum(r, begin_run);
    loop.value = var(r, VAR_RUN, 0);
    loop.end = plus(r, loop.value, run);
    if (kernel_factor(r->k, r->k->axes[axis].extent, r->k->axes[axis].monomial) % runs->middle_run) {
      const Index *end = least(r, loop.end, extent);
      add(r, (LoopNode){.kind = NODE_INDEX, .var = {VAR_RUN_END, 0}, .value = end});
      loop.end = var(r, VAR_RUN_END, 0);
    }
  }
  need_operands(r);
  find_interior(r, &loop);
  open_body(r, add(r, loop));
  if (is_run) for_each_middle_sum(r, begin_run);
  make_scalars(r, depth, false);
  build_middle(r, depth + 1, runs);
  if (is_run) for_each_middle_sum(r, end_run);
  close_body(r);
  if (!in_runs) return;
  for_each_middle_sum(r, end_run);
  close_body(r);
}

static void finish_sum(Recipe *r, ExprId id) {
  const bool has_totals = loop_runs(r->k, r->loop).middle_run && !is_exact_in_f32(r, id);
  add(r, (LoopNode){.kind = NODE_END_SUM,
                    .sum = has_totals ? SUM_TOTAL : SUM_ACCUMULATOR,
                    .expr = id,
                    .is_vector = true,
                    .accumulator = has_rows(r) ? ACCUMULATOR_OF_ROW : ACCUMULATOR_ONLY});
}

// The number of whole vectors after the last group; 0: none, or not known.
static int count_rest(const Recipe *r) {
  const Axis *axis = &r->k->axes[vector_axis(r)];
  const int64_t nvectors = (r->loop->columns ? axis->extent % r->loop->columns : axis->extent) / LANES;
  return axis->monomial || r->loop->vectors < 1 ? 0 : (int)(nvectors % r->loop->vectors);
}

static void build_loops(Recipe *r, int sweep, const SweepRuns *unused) {
  (void)unused; // runs of sums over the vector axis; this recipe has none
  const Runs runs = loop_runs(r->k, r->loop);
  const Axis *axis = &r->k->axes[vector_axis(r)];
  const bool has_columns = r->loop->columns;
  r->lane = var(r, VAR_LANE, 0);
  r->accumulator = has_rows(r) ? ACCUMULATOR_OF_ROW : ACCUMULATOR_ONLY;
  open_body(
      r, add(r, (LoopNode){.kind = NODE_FOR,
                           .var = loop_var(VAR_LANE),
                           .value = has_columns ? var(r, VAR_COLUMN, 0) : number(r, 0),
                           .end = has_columns ? var(r, VAR_COLUMN_END, 0) : axes_nelems_index(r, 1U << vector_axis(r)),
                           .step = number(r, LANES),
                           .is_vectors = true,
                           .count = r->loop->vectors,
                           .rest = count_rest(r),
                           .has_tail = kernel_factor(r->k, axis->extent, axis->monomial) % LANES != 0,
                           .sweep = sweep}));
  for_each_middle_sum(r, runs.middle_run ? begin_total : begin_accumulator);
  build_middle(r, 0, &runs);
  need_stored(r, sweep);
  if (has_rows(r)) make_vectors(r, 1, false); // values that are the same for all rows
  move_array_sums(r, sweep, NODE_LOAD_PARTIAL);
  open_rows(r);
  for_each_middle_sum(r, finish_sum);
  make_vectors(r, 1, has_rows(r));
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (r->loop->roots[i].kind != ROOT_REDUCE_INNER) build_vector_root(r, &r->loop->roots[i]);
  close_rows(r);
  move_array_sums(r, sweep, NODE_STORE_PARTIAL);
  close_body(r);
}

// Whether all blocks but the last consist of whole steps. False if open dims choose the length of blocks.
static bool has_whole_steps(const Recipe *r) {
  return has_rows(r) && !r->loop->few_work && !r->loop->most_cut_blocks && r->loop->block % r->loop->rows == 0;
}

// The steps of a part of the columns: the block's rows, `rows` at a time. The rows after the last whole step form one
// step if their number is known, else each is a step.
static void build_column_steps(Recipe *r, const Index *end) {
  const AxisSet cut = loop_cut_axes(r->loop);
  const Monomial monomial = axes_monomial(r->k, cut);
  const int64_t rows = r->loop->rows, nelems = axes_nelems(r->k, cut);
  const bool is_whole = has_whole_steps(r);
  begin_steps(r);
  if (has_rows(r)) add_steps(r, (int)rows, end);
  if (is_whole && !monomial && nelems % rows) add_steps(r, (int)(nelems % rows), end);
  else if (!is_whole || kernel_factor(r->k, nelems, monomial) % rows) add_steps(r, 1, end);
}

static void build_steps(Recipe *r) {
  if (!r->loop->columns) {
    build_column_steps(r, NULL);
    return;
  }
  const Axis *axis = &r->k->axes[vector_axis(r)];
  const Index *c = var(r, VAR_COLUMN, 0), *extent = axes_nelems_index(r, 1U << vector_axis(r));
  const Index *columns = number(r, r->loop->columns);
  add(r, (LoopNode){.kind = NODE_COUNTER, .var = loop_var(VAR_COLUMN), .value = number(r, 0)});
  if (axis->monomial || axis->extent >= r->loop->columns) {
    open_body(
        r,
        add(r, (LoopNode){
                   .kind = NODE_FOR, .var = loop_var(VAR_COLUMN), .end = extent, .step = columns, .is_whole = true}));
    build_column_steps(r, plus(r, c, columns));
    close_body(r);
  }
  if (kernel_factor(r->k, axis->extent, axis->monomial) % r->loop->columns == 0) return;
  open_body(r, add(r, (LoopNode){.kind = NODE_IF, .test = index_of(&r->b, INDEX_LESS, c, extent)}));
  build_column_steps(r, extent);
  close_body(r);
}

const RecipeInfo recipe_middle = {
    .name = "sums over middle axes", .suits = suits, .build_loops = build_loops, .build_steps = build_steps};
