// Recipe "sums within sums": sums over the vector axis end in each iteration of the middle axes, and are added to sums
// over the middle axes and over rows. Example: group norm's gradient, where the statistics are summed over channels,
// and diff_gamma is not.
//
//   for each row of the block                           step
//     total = 0                                         a scalar of f64
//     for each index m on the middle axes
//       acc = 0
//       for each vector v: acc += f(v)                  or runs of vectors
//       scalar s = sum of the lanes of acc
//       total += g(s); part[m] += h(s); store           store_middle
//     scalar = total
#include "passes/schedule/recipe.h"

static bool suits(const Loop *loop) {
  return loop->is_nested;
}

// Calls f with each sum over the middle axes.
static void for_each_middle_sum(Recipe *r, int sweep, void (*f)(Recipe *, ExprId)) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->kind == ROOT_REDUCE_INNER && root->sweep == sweep && !is_vector_sum(r, root)) f(r, root->expr);
  }
}

static void begin_middle_total(Recipe *r, ExprId id) {
  begin_sum(r, id, SUM_SCALAR, 1);
}

static void end_middle_total(Recipe *r, ExprId id) {
  add(r, (LoopNode){.kind = NODE_END_SUM, .sum = SUM_SCALAR, .expr = id});
}

// At the end of a middle iteration: adds scalars to sums over the middle axes and to partial sums, and stores results.
static void store_middle(Recipe *r, int sweep) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    const ExprId operand = root_operand(r, root);
    const bool is_store = root->kind == ROOT_STORE; // the store may broadcast the operand along the vector axis
    if (root->sweep != sweep || (is_store ? root_level(r, root) : expr_level(r, operand)) != LEVEL_MIDDLE) continue;
    if (is_store) {
      store_scalar(r, root);
      continue;
    }
    const bool is_inner = root->kind == ROOT_REDUCE_INNER;
    LoopNode node = {.kind = NODE_UPDATE,
                     .sum = is_inner ? SUM_SCALAR : SUM_PARTIAL_ELEMENT,
                     .expr = is_inner ? root->expr : operand};
    if (!is_inner) {
      const Access *a = &r->k->accesses[root->access];
      node.flag = partial_flag(r, root->access);
      node.access = root->access;
      node.address = (Address){
          .base = BASE_PARTIAL, .access = root->access, .index = add_terms(r, a, loop_inner_axes(r->loop), NULL)};
    }
    add(r, node);
  }
}

static void begin_middle_totals(Recipe *r, int sweep, const SweepRuns *runs) {
  (void)runs;
  for_each_middle_sum(r, sweep, begin_middle_total);
}

static void end_middle_totals(Recipe *r, int sweep, const SweepRuns *runs) {
  (void)runs;
  for_each_middle_sum(r, sweep, end_middle_total);
}

static void end_iteration(Recipe *r, int sweep, const SweepRuns *runs) {
  end_sums(r, sweep, runs);
  make_middle(r, sweep, r->loop->ninner - 2, sweep + 1);
  store_middle(r, sweep);
}

const RecipeInfo recipe_nested = {.name = "sums within sums",
                                  .suits = suits,
                                  .begin_sums = begin_middle_totals,
                                  .build_loops = build_row_loops,
                                  .end_sums = end_middle_totals,
                                  .begin_iteration = begin_sums,
                                  .end_iteration = end_iteration,
                                  .build_steps = build_row_steps};
