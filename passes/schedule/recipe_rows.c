// Recipes "rows" and "tiles": vectors along the innermost axis.
//
//   for each row of the block, `rows` at a time             step
//     scalars of the row                                    a section (sections.c)
//     for each sweep
//       acc = 0
//       for each index on the middle axes                   or runs of them, each added to a total in f64
//         for each vector v of the innermost axis           or runs of them
//           load and compute values of all rows
//           for r in 0..rows, unrolled: compute; acc[r] += v; store
//       sum = sum of the lanes of acc
//     scalars that need the sums, and so on
//
// A tile is the same with a part of the only axis instead of a row.
#include "passes/schedule/recipe.h"

void make_middle(Recipe *r, int sweep, int depth, int time) {
  need_sweep(r, sweep);
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    int own;
    if (is_made(r, id) && level_of(r, r->k->exprs[id].axes, &own) == LEVEL_MIDDLE && own == depth &&
        (time > sweep) == (r->section[id] > sweep))
      make_scalar(r, id, ~0U);
  }
}

// The loop over vectors, in runs if f32 chains would be too long.
static void build_vector_runs(Recipe *r, int sweep, const SweepRuns *runs) {
  const Index *from = r->info->is_tile ? var(r, VAR_BEGIN, 0) : number(r, 0);
  const Index *to = r->info->is_tile ? var(r, VAR_END, 0) : axes_nelems_index(r, 1U << vector_axis(r));
  if (!runs->vector_run) {
    const bool is_alone = r->loop->ninner == 1;
    if (is_alone) open_body(r, add(r, (LoopNode){.kind = NODE_SCOPE}));
    build_vector_loop(r, sweep, from, to, runs->has_sums);
    if (is_alone) close_body(r);
    return;
  }
  const Index *run = number(r, runs->vector_run), *begin = var(r, VAR_RUN_BEGIN, 0), *end = var(r, VAR_RUN_END, 0);
  open_for(r, VAR_RUN_BEGIN, from, to, run);
  add(r, (LoopNode){.kind = NODE_INDEX, .var = {VAR_RUN_END, 0}, .value = least(r, plus(r, begin, run), to)});
  for_each_sum(r, sweep, begin_run);
  build_vector_loop(r, sweep, begin, end, true);
  for_each_sum(r, sweep, end_run);
  close_body(r);
}

static void build_middle_loops(Recipe *r, int sweep, int depth, const SweepRuns *runs) {
  if (depth == r->loop->ninner - 1) {
    build_vector_runs(r, sweep, runs);
    return;
  }
  const int axis = r->loop->axes[r->loop->nouter + depth];
  const bool is_last = depth == r->loop->ninner - 2;
  const bool is_run = is_last && !runs->is_open && runs->middle_run == 1; // each iteration is a run
  const bool in_runs = is_last && !is_run && (runs->middle_run || runs->is_open);
  const bool is_backwards = r->loop->is_backwards && sweep == r->loop->nsweeps - 1 && !runs->has_sums;
  const Index *extent = axes_nelems_index(r, 1U << axis), *one = number(r, 1);
  LoopNode loop = {.kind = NODE_FOR,
                   .var = {VAR_AXIS, (uint32_t)axis},
                   .value = number(r, 0),
                   .end = extent,
                   .step = one,
                   .is_down = is_backwards && !in_runs};
  if (in_runs) {
    const Index *run = runs->is_open ? var(r, VAR_RUN_LENGTH, 0) : number(r, runs->middle_run);
    open_for(r, VAR_RUN, number(r, 0), extent, run);
    for_each_sum(r, sweep, begin_run);
    loop.value = var(r, VAR_RUN, 0);
    loop.bound = extent;
    loop.end = plus(r, loop.value, run);
  }
  need_sweep(r, sweep);
  find_interior(r, &loop);
  open_body(r, add(r, loop));
  if (is_run) for_each_sum(r, sweep, begin_run);
  make_middle(r, sweep, depth, sweep);
  if (is_last && r->info->begin_iteration) r->info->begin_iteration(r, sweep, runs);
  build_middle_loops(r, sweep, depth + 1, runs);
  if (is_last && r->info->end_iteration) r->info->end_iteration(r, sweep, runs);
  if (is_run) for_each_sum(r, sweep, end_run);
  close_body(r);
  if (!in_runs) return;
  for_each_sum(r, sweep, end_run);
  close_body(r);
}

// Open innermost extent: the emitted code decides at run time. If the chain of one middle iteration is too long, it
// makes runs along the vector axis, else runs of several middle iterations.
static void build_open_runs(Recipe *r, int sweep, const SweepRuns *runs) {
  const int group = LANES * r->loop->accumulators;
  const Index *width = axes_nelems_index(r, 1U << vector_axis(r)), *lanes = number(r, LANES), *by = number(r, group);
  const Index *longest = number(r, LONGEST_RUN), *chain = var(r, VAR_CHAIN, 0);
  const SweepRuns whole = *runs,
                  cut = {.has_sums = true, .has_totals = true, .vector_run = (int64_t)LONGEST_RUN * group};
  const Index *vectors = index_of(&r->b, INDEX_DIVIDE, index_of(&r->b, INDEX_REMAINDER, width, by), lanes);
  const Index *tail = index_of(&r->b, INDEX_DIFFERS, index_of(&r->b, INDEX_REMAINDER, width, lanes), number(r, 0));
  open_body(r, add(r, (LoopNode){.kind = NODE_SCOPE}));
  add(r, (LoopNode){.kind = NODE_INDEX,
                    .var = {VAR_CHAIN, 0},
                    .value = plus(r, plus(r, index_of(&r->b, INDEX_DIVIDE, width, by), vectors), tail)});
  LoopNode *choice = add(r, (LoopNode){.kind = NODE_IF, .test = index_of(&r->b, INDEX_MORE, chain, longest)});
  open_body(r, choice);
  build_middle_loops(r, sweep, 0, &cut);
  close_body(r);
  tree_open(&r->b, &choice->otherwise);
  add(r, (LoopNode){.kind = NODE_INDEX,
                    .var = {VAR_RUN_LENGTH, 0},
                    .value = index_choose(&r->b, chain, index_of(&r->b, INDEX_DIVIDE, longest, chain), number(r, 1))});
  build_middle_loops(r, sweep, 0, &whole);
  close_body(r);
  close_body(r);
}

void build_row_loops(Recipe *r, int sweep, const SweepRuns *runs) {
  if (runs->is_open) build_open_runs(r, sweep, runs);
  else build_middle_loops(r, sweep, 0, runs);
}

void build_row_steps(Recipe *r) {
  begin_steps(r);
  if (has_rows(r)) add_steps(r, r->loop->rows, NULL);
  if (!loop_row_axes(r->k, r->loop)) add_steps(r, 1, NULL);
}

static bool suits_any(const Loop *loop) {
  (void)loop;
  return true;
}

const RecipeInfo recipe_rows = {.name = "rows",
                                .suits = suits_any,
                                .begin_sums = begin_sums,
                                .build_loops = build_row_loops,
                                .end_sums = end_sums,
                                .build_steps = build_row_steps};

// Tiles

static bool suits_tiles(const Loop *loop) {
  return loop->tile;
}

static void build_tile(Recipe *r) {
  add(r, (LoopNode){.kind = NODE_STEP});
}

const RecipeInfo recipe_tiles = {.name = "tiles",
                                 .suits = suits_tiles,
                                 .begin_sums = begin_sums,
                                 .build_loops = build_row_loops,
                                 .end_sums = end_sums,
                                 .build_steps = build_tile,
                                 .is_tile = true};
