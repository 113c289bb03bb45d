// A kernel stores an update directly in the state's memory if no later kernel reads the state, and the kernel reads
// each element of the state before it stores there. If several kernels store parts of an update, each may read only the
// part of the state that it stores. Any other update is staged: the kernel stores it in the workspace, and it is copied
// at the end of the call. A state that is itself the update of another state is copied to the workspace first, so that
// its own update can be stored.
#include "passes/memory/in_place.h"

#include "ir/kernel/overwrite.h"

// The kernels that access a value, numbered from 1; 0 means none. The kernels of a slice group run in turns, slice by
// slice, so that all their tensors are accessed from the slice group's first kernel to its last.
typedef struct Lifetime {
  uint32_t first_store, last_store, last_read;
} Lifetime;

// By value->index: the kernels that store and read it, plus 1. A slice group counts as one kernel.
static Lifetime *find_lifetimes(const Program *p, Arena *arena) {
  Lifetime *lifetimes = ARENA_ARRAY(arena, Lifetime, p->graph->nvalues + 1);
  for (uint32_t i = 0; lifetimes && i < p->nkernels; i++) {
    const Kernel *k = p->schedules[i]->kernel;
    const ProgramSliceGroup *slice_group = program_slice_group(p, i);
    const uint32_t first = slice_group ? slice_group->first + 1 : i + 1, last = slice_group ? slice_group->end : i + 1;
    for (AccessId a = 0; a < k->naccesses; a++) {
      if (!k->accesses[a].value) continue;
      Lifetime *l = &lifetimes[k->accesses[a].value->index];
      if (!kernel_stores(k, a)) l->last_read = last;
      else if (!l->first_store) l->first_store = first;
      if (kernel_stores(k, a)) l->last_store = last;
    }
  }
  return lifetimes;
}

// Sets *is_in_place to whether the update may be stored in the state's memory. False: out of memory.
static bool check_update(const Program *p, const Value *state, const Value *update, const Lifetime *lifetimes,
                         Arena *scratch, bool *is_in_place) {
  const Lifetime *read = &lifetimes[state->index], *stored = &lifetimes[update->index];
  *is_in_place = false;
  if (p->is_staged[state->index]) {
    *is_in_place = true;
    return true;
  }
  if (state->is_output) return true; // the state is copied to an output at the end of a call
  if (read->last_read < stored->first_store) {
    *is_in_place = true;
    return true;
  }
  if (read->last_read > stored->last_store) return true;
  bool is_stored = false, may = true;
  for (uint32_t i = stored->first_store; may && i <= stored->last_store; i++) {
    const Schedule *s = p->schedules[i - 1];
    bool *is_needed = ARENA_ARRAY(scratch, bool, s->kernel->nexprs);
    if (!is_needed) return false;
    may = !s->kernel->slice_group && schedule_may_overwrite(s, state, update, &is_stored, is_needed);
  }
  *is_in_place = may;
  return true;
}

// Stages the states that have an update and are the update of another state. Otherwise a copy at the end of the call
// could read such a state after its update was stored. Example: the updates {a: b, b: a} swap a and b, in whichever
// order the copies run.
static bool stage_states(Program *p, Arena *scratch) {
  const Graph *g = p->graph;
  bool *is_updated = ARENA_ARRAY(scratch, bool, g->nvalues + 1);
  for (size_t i = 0; is_updated && i < g->nstates; i++) is_updated[graph_state(g, i)->index] = g->states[i].output >= 0;
  for (size_t i = 0; is_updated && i < g->nstates; i++) {
    const Value *v = graph_update(g, i);
    if (v && is_updated[v->index] && v != graph_state(g, i)) p->is_staged[v->index] = true;
  }
  return is_updated;
}

bool stage_updates(Program *p) {
  const Graph *g = p->graph;
  Arena scratch;
  arena_init(&scratch, p->arena.allocator);
  p->is_staged = ARENA_ARRAY(&p->arena, bool, g->nvalues + 1);
  const Lifetime *lifetimes = g->nupdates ? find_lifetimes(p, &scratch) : NULL;
  bool ok = p->is_staged && (lifetimes || !g->nupdates) && stage_states(p, &scratch);
  for (size_t i = 0; ok && i < g->nstates; i++) {
    const Value *v = graph_update(g, i);
    bool is_in_place;
    if (!v || !v->producer || v->first_output != g->states[i].output) continue; // no update, or copied at the end
    ok = check_update(p, graph_state(g, i), v, lifetimes, &scratch, &is_in_place);
    p->is_staged[v->index] = ok && !is_in_place;
  }
  arena_deinit(&scratch);
  return ok;
}
