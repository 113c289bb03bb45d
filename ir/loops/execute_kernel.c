// Executes the loops of a kernel that a call needs.
#include "ir/loops/execute.h"

bool run_wants(const ProgramRun *r, const OutputSet *outputs) {
  bool is_any = !r->is_left_out || outputs->is_all;
  for (uint32_t i = 0; i < outputs->count && !is_any; i++) is_any = !r->is_left_out[outputs->outputs[i]];
  return is_any;
}

bool run_needs(const ProgramRun *r, size_t kernel, size_t loop) {
  const Schedule *s = r->program->schedules[kernel];
  const Liveness *l = r->program->liveness;
  const bool is_wanted = r->blocks.are_one || run_wants(r, &l->serves[l->first_loop[kernel] + loop]);
  return is_wanted && !loop_is_idle(s->kernel, &s->loops[loop]) && !(s->loops[loop].is_invariant && r->keeps_invariant);
}

bool run_add_temporaries(ProgramRun *r, size_t kernel, Arena *arena) {
  const Schedule *s = r->program->schedules[kernel];
  const Liveness *l = r->program->liveness;
  for (uint32_t i = 0; i < s->ntemporaries; i++) {
    const Temporary *t = &s->temporaries[i];
    const size_t number = l->first_temporary[kernel] + i;
    uint32_t same = i;
    const size_t maker = program_maker(r->program, kernel, &same);
    const bool is_needed = !l->may_be_unwanted[number] || run_wants(r, &l->temporary_serves[number]);
    if (t->is_invariant && r->keeps_invariant) continue;
    Buffer *b = r->temporaries[number] = t->is_reused              ? r->temporaries[l->first_temporary[maker] + same]
                                         : t->is_own || !is_needed ? NULL
                                                                   : ARENA_NEW(arena, Buffer);
    if (t->is_reused || t->is_own || !is_needed) continue;
    if (!b || !buffer_init(b, t->name, t->type, run_temporary_nelems(r->program, kernel, i, r->dims), true, arena))
      return false;
  }
  return true;
}

bool run_kernel_loops(ProgramRun *r, size_t kernel, Text *why) {
  const Schedule *s = r->program->schedules[kernel];
  for (size_t i = 0; i < s->nloops; i++) {
    const Loop *loop = &s->loops[i];
    const LoopRun run = {.tree = program_tree(r->program, kernel, i),
                         .domain = r->domain,
                         .dims = r->dims,
                         .tensors = r->tensors,
                         .temporaries = r->temporaries + r->program->liveness->first_temporary[kernel],
                         .is_large = r->is_large,
                         .nsteps = r->nsteps};
    r->blocks.are_parallel = r->blocks.are_one || run_is_parallel(s->kernel, loop, r->dims);
    if (run_needs(r, kernel, i) && !tree_execute(&run, 0, run_nblocks(s, loop, r->dims), &r->blocks, why)) return false;
  }
  return true;
}
