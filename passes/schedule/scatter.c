// Recipe "scatter": a block of rows goes over all indices, and adds the rows that are its own. There are no steps.
#include "ir/kernel/scatter.h"
#include "passes/schedule/recipe.h"

static bool suits(const Loop *loop) {
  return loop->is_scatter;
}

static void build_block_of_rows(Recipe *r) {
  Scatter s;
  if (kernel_find_scatter(r->k, &s)) add(r, (LoopNode){.kind = NODE_SCATTER, .expr = s.sum, .access = s.to});
}

const RecipeInfo recipe_scatter = {.name = "scatter", .suits = suits, .build_steps = build_block_of_rows};
