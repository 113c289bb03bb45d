// Recipe "scatter": each block goes over all indices, and adds the operands whose index is a row of the block. No
// steps.
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
