// Builds a sweep: a comment that says what it computes, initial values of sums, the recipe's loops, final reductions of
// sums.
#include "passes/schedule/recipe.h"

static const char *sweep_words(Recipe *r, int sweep) {
  Text words;
  text_init(&words, r->b.arena->allocator);
  loop_print_sweep(r->schedule, r->loop, sweep, &words);
  const char *copy = arena_copy_text(r->b.arena, text_string(&words), words.nbytes);
  r->b.out_of_memory |= !copy || words.out_of_memory;
  text_deinit(&words);
  return copy ? copy : "";
}

void build_sweep(Recipe *r, int sweep) {
  bool has_work = false;
  for (size_t i = 0; i < r->loop->nroots; i++) has_work |= is_in_sweep(r, &r->loop->roots[i], sweep);
  if (!has_work) return;
  add(r, (LoopNode){.kind = NODE_COMMENT, .words = sweep_words(r, sweep)});
  const SweepRuns runs = sweep_runs(r, sweep);
  if (r->info->begin_sums) r->info->begin_sums(r, sweep, &runs);
  if (axes_nelems(r->k, loop_inner_axes(r->loop))) r->info->build_loops(r, sweep, &runs);
  if (r->info->end_sums) r->info->end_sums(r, sweep, &runs);
}
