// Recipe "rows in lanes", for rows of few elements: a vector holds one element of each of LANES rows, so that sums over
// a row need no reduction over lanes.
//
//   for o in the block by LANES                     step: lane l computes row o + l
//     rows_x = x[o .. o + LANES][:], transposed     NODE_LOAD_ROWS; NODE_LOAD_COLUMN if columns are dense
//     for each sweep
//       for each element i of a row
//         vector x = rows_x[i]; compute; acc += x; rows_y[i] = y
//       y[o .. o + LANES][:] = rows_y, transposed   NODE_STORE_ROWS
//   if o < end: tail step                           fewer than LANES rows: strided loads, no copies
//
// A loop that only copies rows into panels has a single node, NODE_COPY_ROWS, for rows of any length.
#include "passes/schedule/recipe.h"

static bool suits(const Loop *loop) {
  return loop->rows_in_lanes;
}

static void copy_into_panel(Recipe *r) {
  const Root *root = &r->loop->roots[0];
  const AccessId from = r->k->exprs[root->expr].access;
  add(r, (LoopNode){.kind = NODE_COPY_ROWS,
                    .access = from,
                    .expr = root->expr,
                    .address = {.base = BASE_POINTER, .access = root->access},
                    .step = stride_of(r, &r->k->accesses[from], loop_lane_axis(r->loop)),
                    .nelems = r->k->axes[loop_vector_axis(r->loop)].extent});
}

// A loop over the elements of a row; then the sweep's results are transposed back.
static void build_loops(Recipe *r, int sweep, const SweepRuns *runs) {
  (void)runs; // rows are short
  const int64_t width = r->k->axes[r->loop->axes[r->loop->nouter]].extent;
  if (r->loop->copies_rows && !r->is_tail) {
    copy_into_panel(r);
    return;
  }
  r->lane = var(r, VAR_LANE, 0);
  r->accumulator = ACCUMULATOR_ONLY;
  open_for(r, VAR_LANE, number(r, 0), number(r, width), number(r, 1));
  build_body(r, sweep);
  close_body(r);
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->kind != ROOT_STORE || root->sweep != sweep || !is_transposed(r, root->access)) continue;
    const bool is_open = open_wanted(r, root->access);
    add(r, (LoopNode){.kind = NODE_STORE_ROWS,
                      .access = root->access,
                      .step = stride_of(r, &r->k->accesses[root->access], r->loop->axes[0]),
                      .nelems = width});
    if (is_open) close_body(r);
  }
}

// Reduces the lanes' partial sums to the block's partial sums.
static void end_partials(Recipe *r) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const Access *a = &r->k->accesses[root->access];
    const Index *count = axes_nelems_index(r, access_axes(r->k, a)), *element = var(r, VAR_ELEMENT, 0);
    open_partial_sums(r, root->access, count, may_be_unwanted(r, root->access) ? FLAG_HAS_ALL_PARTIALS : FLAG_NONE);
    add(r, (LoopNode){
               .kind = NODE_REDUCE_PARTIAL,
               .access = root->access,
               .value = index_of(&r->b, INDEX_MULTIPLY, element, number(r, LANES)),
               .address = {.base = BASE_TENSOR,
                           .access = root->access,
                           .index = index_of(&r->b, INDEX_ADD,
                                             index_of(&r->b, INDEX_MULTIPLY, var(r, VAR_BLOCK, 0), count), element)}});
    close_body(r);
  }
}

static void build_steps(Recipe *r) {
  const Index *outer = var(r, VAR_OUTER, 0), *end = var(r, VAR_END, 0);
  begin_steps(r);
  add_steps(r, LANES, NULL);
  open_body(r, add(r, (LoopNode){.kind = NODE_IF, .test = index_of(&r->b, INDEX_LESS, outer, end)}));
  add(r, (LoopNode){.kind = NODE_STEP, .has_fewer_lanes = true, .value = minus(r, end, outer)});
  close_body(r);
  end_partials(r);
}

const RecipeInfo recipe_lanes = {.name = "rows in lanes",
                                 .suits = suits,
                                 .begin_sums = begin_sums,
                                 .build_loops = build_loops,
                                 .end_sums = end_sums,
                                 .build_steps = build_steps,
                                 .rows_in_lanes = true};
