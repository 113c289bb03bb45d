// Recipe "sums over middle axes": each vector of results is summed in a register. For sums of products of smaller
// tensors, such as Interpolate's gradient.
//
//   for each row of the block                        step
//     for each group of vectors v of the innermost axis
//       acc[v] = 0
//       for each index m on the middle axes          or runs of them, each added to total[v] in f64
//         scalar a = a[m]                            computed once for the group
//         acc[v] += a * b[m, v]
//       store f(acc[v])
//
// Several vectors make a group to share scalars, and because additions to different registers need not wait for each
// other. schedule_split_vectors makes groups of the loop over vectors that this recipe builds.
#include "passes/schedule/recipe.h"

static bool suits(const Loop *loop) {
  return loop->sums_middle;
}

static void for_each_middle_sum(Recipe *r, void (*f)(Recipe *, ExprId)) {
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (r->loop->roots[i].kind == ROOT_REDUCE_INNER) f(r, r->loop->roots[i].expr);
}

// time 0: operands of the sums, computed in the middle loops. time 1: what depends on the sums, computed after them.
static void make_vectors(Recipe *r, int time) {
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    const bool is_operand = r->k->exprs[id].axes & middle_axes(r);
    if (is_made(r, id) && expr_level(r, id) == LEVEL_VECTOR && (time ? !is_operand : r->section[id] == 0))
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
  r->sweep = sweep; // its sums are known now
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (r->loop->roots[i].kind == ROOT_STORE) need_expr(r, r->loop->roots[i].expr);
}

static void add_up(Recipe *r) {
  need_operands(r);
  make_vectors(r, 0);
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (r->loop->roots[i].kind == ROOT_REDUCE_INNER) update_vector(r, &r->loop->roots[i]);
}

static void make_scalars(Recipe *r, int depth) {
  need_operands(r);
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    int own;
    if (is_made(r, id) && level_of(r, r->k->exprs[id].axes, &own) == LEVEL_MIDDLE && own == depth)
      make_scalar(r, id, ~0U);
  }
}

static void build_middle(Recipe *r, int depth, const SweepRuns *runs) {
  if (depth == r->loop->ninner - 1) {
    add_up(r);
    return;
  }
  const int axis = r->loop->order[r->loop->nouter + depth];
  const bool in_runs = runs->middle_run && depth == r->loop->ninner - 2;
  const Index *extent = axes_nelems_index(r, 1U << axis), *run = number(r, runs->middle_run);
  LoopNode loop = {
      .kind = NODE_FOR, .var = {VAR_AXIS, (uint32_t)axis}, .value = number(r, 0), .end = extent, .step = number(r, 1)};
  if (in_runs) {
    open_body(r, add(r, (LoopNode){
                            .kind = NODE_FOR, .var = {VAR_RUN, 0}, .value = number(r, 0), .end = extent, .step = run}));
    for_each_middle_sum(r, begin_run);
    loop.value = var(r, VAR_RUN, 0);
    loop.bound = extent;
    loop.end = index_of(&r->b, INDEX_ADD, loop.value, run);
  }
  open_body(r, add(r, loop));
  make_scalars(r, depth);
  build_middle(r, depth + 1, runs);
  close_body(r);
  if (!in_runs) return;
  for_each_middle_sum(r, end_run);
  close_body(r);
}

static void finish_sum(Recipe *r, ExprId id) {
  add(r, (LoopNode){.kind = NODE_END_SUM,
                    .expr = id,
                    .is_vector = true,
                    .count = 1,
                    .has_totals = r->loop->runs.middle_run && !is_exact_in_f32(r, id),
                    .is_f64 = r->k->is_f64,
                    .reduction = r->k->exprs[id].op});
}

static void build_loops(Recipe *r, int sweep, const SweepRuns *unused) {
  (void)unused; // it is about sums over the vector axis; this recipe has none
  const SweepRuns runs = {.has_sums = true, .middle_run = r->loop->runs.middle_run};
  const Axis *axis = &r->k->axes[vector_axis(r)];
  r->lane = var(r, VAR_LANE, 0);
  open_body(r, add(r, (LoopNode){.kind = NODE_FOR,
                                 .var = loop_var(VAR_LANE),
                                 .value = number(r, 0),
                                 .end = axes_nelems_index(r, 1U << vector_axis(r)),
                                 .step = number(r, LANES),
                                 .is_vectors = true,
                                 .count = r->loop->vectors,
                                 .has_tail = kernel_factor(r->k, axis->extent, axis->monomial) % LANES != 0,
                                 .sweep = sweep}));
  for_each_middle_sum(r, runs.middle_run ? begin_total : begin_accumulator);
  build_middle(r, 0, &runs);
  for_each_middle_sum(r, finish_sum);
  need_stored(r, sweep);
  make_vectors(r, 1);
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (r->loop->roots[i].kind == ROOT_STORE) store_vector(r, &r->loop->roots[i]);
  close_body(r);
}

static void sum_nothing(Recipe *r, int sweep, const SweepRuns *runs) {
  (void)r, (void)sweep, (void)runs;
}

const RecipeInfo recipe_middle = {.name = "sums over middle axes",
                                  .suits = suits,
                                  .begin_sums = sum_nothing,
                                  .build_loops = build_loops,
                                  .end_sums = sum_nothing,
                                  .build_steps = build_row_steps};
