// Goes through the kernels in order. Each result takes the smallest gap that it fits into; after a kernel, the places
// of values that no later kernel reads become gaps.
//
// The kernels of a slice group run once for each slice. A thread runs a chunk of slices, and each chunk has its own
// memory for the slice group's private values and temporaries, which is planned like a workspace. The slice group's
// other values live from its first kernel to its last.
//
// With open dims (ir/graph/open_dims.h) the workspace has one arena (Program.arenas) for each monomial, which holds the
// values whose number of elements has that monomial. All sizes in an arena grow by the same factor, so it is planned
// as if the factor were 1. Temporaries are not planned then: their sizes depend on numbers of blocks. They begin behind
// the values in the last arena, the largest, that live while their kernel runs.
#include "passes/memory/plan.h"

#include "ir/graph/open_dims.h"
#include "ir/kernel/overwrite.h"
#include "passes/memory/pack.h"

#include <string.h>

typedef struct Gap { // a run of free bytes
  size_t offset, nbytes;
} Gap;

typedef struct Plan {
  Program *p;
  Monomial monomial; // of the arena being planned
  Arena scratch;
  uint32_t *last;      // by value->index: the last kernel that accesses the value, plus one; 0: none does
  uint32_t *ends;      // by kernel: the first value whose lifetime ends there, plus one; 0: none
  uint32_t *next_end;  // by value->index: the next value whose lifetime ends at the same kernel, plus one; 0: none
  bool *is_taken_over; // by value->index: another value overwrites it
  const ProgramSliceGroup *slice_group; // the slice group whose chunk is being planned; NULL: the workspace
  Gap *gaps;                            // sorted by offset; neighbouring gaps are merged
  size_t ngaps, gaps_capacity;
  size_t top; // the highest end of a place so far
  bool out_of_memory;
} Plan;

// Whether the value is private to the kernel's slice group.
static bool is_private(const Kernel *k, const Value *v) {
  const SlicedTensor *tensor = k->slice_group ? slice_group_find(k->slice_group, v) : NULL;
  return tensor && tensor->is_private;
}

// Whether the value is stored directly in the memory of an output.
static bool is_callers(const Program *p, const Value *v) {
  return v->is_output && !p->is_staged[v->index];
}

static int64_t value_nelems(const Plan *plan, const Value *v) {
  return plan->slice_group
             ? slice_group_nelems(plan->slice_group->slices, slice_group_find(plan->slice_group->slices, v))
             : shape_nelems(&v->shape);
}

static size_t place_nbytes(const Plan *plan, const Value *v) {
  return program_slot_nbytes(plan->p, v->type, value_nelems(plan, v), plan->monomial);
}

static const Value *stored_value(const Plan *plan, const Kernel *k, size_t store) {
  const Value *v = k->accesses[k->stores[store].access].value;
  if (is_private(k, v) != (plan->slice_group != NULL)) return NULL;
  return is_callers(plan->p, v) || shape_monomial(&v->shape) != plan->monomial ? NULL : v;
}

// Gaps

static void remove_gap(Plan *plan, size_t at) {
  memmove(&plan->gaps[at], &plan->gaps[at + 1], (plan->ngaps - at - 1) * sizeof *plan->gaps);
  plan->ngaps--;
}

// Takes memory from the smallest gap that is large enough, else from the top. Returns the offset.
static size_t take(Plan *plan, size_t nbytes) {
  size_t best = SIZE_MAX;
  if (!nbytes) return 0;
  for (size_t i = 0; i < plan->ngaps; i++)
    if (plan->gaps[i].nbytes >= nbytes && (best == SIZE_MAX || plan->gaps[i].nbytes < plan->gaps[best].nbytes))
      best = i;
  if (best == SIZE_MAX) { // the value is placed at the top; a gap that ends there is extended
    Gap *gap = plan->ngaps ? &plan->gaps[plan->ngaps - 1] : NULL;
    bool is_at_top = gap && gap->offset + gap->nbytes == plan->top;
    size_t offset = is_at_top ? gap->offset : plan->top;
    if (is_at_top) plan->ngaps--;
    plan->top = offset + nbytes;
    return offset;
  }
  Gap *gap = &plan->gaps[best];
  size_t offset = gap->offset;
  gap->offset += nbytes;
  gap->nbytes -= nbytes;
  if (!gap->nbytes) remove_gap(plan, best);
  return offset;
}

// Makes a gap of the memory, joined with the gaps beside it.
static void give_back(Plan *plan, size_t offset, size_t nbytes) {
  size_t at = 0;
  if (!nbytes) return;
  while (at < plan->ngaps && plan->gaps[at].offset < offset) at++;
  bool joins_before = at && plan->gaps[at - 1].offset + plan->gaps[at - 1].nbytes == offset;
  bool joins_after = at < plan->ngaps && offset + nbytes == plan->gaps[at].offset;
  if (joins_before) {
    plan->gaps[at - 1].nbytes += nbytes;
    if (joins_after) plan->gaps[at - 1].nbytes += plan->gaps[at].nbytes;
    if (joins_after) remove_gap(plan, at);
  } else if (joins_after) {
    plan->gaps[at].offset = offset;
    plan->gaps[at].nbytes += nbytes;
  } else if (arena_grow(&plan->scratch, &plan->gaps, plan->ngaps, &plan->gaps_capacity, sizeof *plan->gaps)) {
    memmove(&plan->gaps[at + 1], &plan->gaps[at], (plan->ngaps - at) * sizeof *plan->gaps);
    plan->gaps[at] = (Gap){offset, nbytes};
    plan->ngaps++;
  } else {
    plan->out_of_memory = true;
  }
}

// In place

// A value that the store to `target` may overwrite, and whose last reader is this kernel; NULL: none.
static const Value *find_overwritable(Plan *plan, uint32_t kernel, AccessId target) {
  const Schedule *s = plan->p->schedules[kernel];
  const Kernel *k = s->kernel;
  const Access *to = &k->accesses[target];
  const AxisSet axes = access_axes(k, to);
  if (k->slice_group && !plan->slice_group)
    return NULL; // another slice may read the elements that this slice overwrites
  if (value_nelems(plan, to->value) != axes_nelems(k, axes)) return NULL; // the kernel stores only a part of it
  if (shape_monomial(&to->value->shape) != axes_monomial(k, axes)) return NULL;
  for (AccessId i = 0; i < k->naccesses; i++) {
    const Access *from = &k->accesses[i];
    const Value *v = from->value;
    if (!v || i == target || !plan->p->is_in_workspace[v->index] || kernel_stores(k, i)) continue;
    if (is_private(k, v) != (plan->slice_group != NULL)) continue;
    if (plan->last[v->index] != kernel + 1 || plan->is_taken_over[v->index] || v->is_output) continue;
    if (place_nbytes(plan, v) != place_nbytes(plan, to->value) ||
        type_array_nbytes(from->type, 2) != type_array_nbytes(to->type, 2))
      continue;
    bool is_target_stored = false;
    bool *is_needed = ARENA_ARRAY(&plan->scratch, bool, k->nexprs);
    if (!is_needed) {
      plan->out_of_memory = true;
      return NULL;
    }
    if (shape_monomial(&v->shape) == shape_monomial(&to->value->shape) &&
        schedule_may_overwrite(s, v, to->value, &is_target_stored, is_needed))
      return v;
  }
  return NULL;
}

// Kernels

static void find_ends(Plan *plan) {
  for (uint32_t i = 0; i < plan->p->nkernels; i++) {
    const ProgramSliceGroup *slice_group = plan->slice_group ? NULL : program_slice_group(plan->p, i);
    const Kernel *k = plan->p->schedules[i]->kernel;
    for (AccessId a = 0; a < k->naccesses; a++)
      if (k->accesses[a].value) plan->last[k->accesses[a].value->index] = slice_group ? slice_group->end : i + 1;
  }
  for (size_t i = 0; i < plan->p->graph->noutputs && !plan->slice_group;
       i++) // outputs are copied after the last kernel
    if (plan->p->graph->outputs[i]->producer)
      plan->last[plan->p->graph->outputs[i]->index] = (uint32_t)plan->p->nkernels;
}

static size_t temporaries_nbytes(const Schedule *s) {
  size_t nbytes = 0;
  for (size_t i = 0; i < s->ntemporaries; i++) {
    const Temporary *t = &s->temporaries[i];
    if (t->is_own) continue;
    size_t end = t->offset + (size_t)t->nelems * type_nbytes(t->type);
    if (end > nbytes) nbytes = end;
  }
  return whole_lines(nbytes);
}

// Places the values that the kernel stores: over an operand that ends here, or in memory of their own.
static void place_results(Plan *plan, uint32_t kernel) {
  Program *p = plan->p;
  const Kernel *k = p->schedules[kernel]->kernel;
  for (size_t s = 0; s < k->nstores; s++) {
    const Value *v = stored_value(plan, k, s);
    if (!v || p->is_in_workspace[v->index]) continue; // an earlier kernel stored another part and placed it
    const Value *operand = find_overwritable(plan, kernel, k->stores[s].access);
    if (operand) plan->is_taken_over[operand->index] = true;
    p->value_offset[v->index] = operand ? p->value_offset[operand->index] : take(plan, place_nbytes(plan, v));
    p->unshared_nbytes += place_nbytes(plan, v) * (plan->slice_group ? (size_t)plan->slice_group->nchunks : 1);
    uint32_t end = plan->last[v->index] - 1;
    plan->next_end[v->index] = plan->ends[end];
    plan->ends[end] = v->index + 1;
  }
  for (size_t s = 0; s < k->nstores; s++) // set last, so that no result overwrites another result of the kernel
    if (stored_value(plan, k, s)) p->is_in_workspace[stored_value(plan, k, s)->index] = true;
}

static bool has_invariant(const Schedule *s) {
  bool has = false;
  for (size_t i = 0; i < s->ntemporaries; i++) has |= s->temporaries[i].is_invariant;
  return has;
}

// In a chunk, places the temporaries of a kernel if some of its temporaries are invariant: valid for several slices.
static void place_invariant(Plan *plan, uint32_t kernel) {
  Schedule *s = plan->p->schedules[kernel];
  if (!has_invariant(s)) return;
  const size_t offset = take(plan, temporaries_nbytes(s));
  for (size_t i = 0; i < s->ntemporaries; i++) s->temporaries[i].offset += offset;
}

typedef struct Scratch { // the place of a unit's temporaries, the same for all kernels of the unit
  size_t offset, nbytes;
  size_t most_nbytes; // the largest nbytes of all units so far
} Scratch;

static void take_scratch(Plan *plan, uint32_t first, uint32_t end, Scratch *scratch) {
  scratch->nbytes = 0;
  for (uint32_t i = first; i < end && !plan->p->graph->ndims; i++) {
    const size_t nbytes = has_invariant(plan->p->schedules[i]) ? 0 : temporaries_nbytes(plan->p->schedules[i]);
    if (nbytes > scratch->nbytes) scratch->nbytes = nbytes;
  }
  if (scratch->nbytes > scratch->most_nbytes) scratch->most_nbytes = scratch->nbytes;
  scratch->offset = take(plan, scratch->nbytes);
}

static void place_temporaries(const Plan *plan, uint32_t kernel, const Scratch *scratch) {
  const Schedule *s = plan->p->schedules[kernel];
  if (!plan->p->graph->ndims && !has_invariant(s)) schedule_move_temporaries(s, scratch->offset);
}

static void end_values(Plan *plan, uint32_t kernel) {
  for (uint32_t i = plan->ends[kernel]; i; i = plan->next_end[i - 1]) {
    const Value *v = plan->p->graph->values[i - 1];
    if (!plan->is_taken_over[v->index]) give_back(plan, plan->p->value_offset[v->index], place_nbytes(plan, v));
  }
}

static bool plan_init(Plan *plan, Program *p, Monomial monomial, const ProgramSliceGroup *slice_group) {
  *plan = (Plan){.p = p, .monomial = monomial, .slice_group = slice_group};
  size_t nvalues = p->graph->nvalues;
  arena_init(&plan->scratch, p->arena.allocator);
  plan->last = ARENA_ARRAY(&plan->scratch, uint32_t, nvalues + 1);
  plan->next_end = ARENA_ARRAY(&plan->scratch, uint32_t, nvalues + 1);
  plan->ends = ARENA_ARRAY(&plan->scratch, uint32_t, p->nkernels + 1);
  plan->is_taken_over = ARENA_ARRAY(&plan->scratch, bool, nvalues + 1);
  const bool ok = plan->last && plan->next_end && plan->ends && plan->is_taken_over;
  if (ok) find_ends(plan);
  return ok;
}

// Places the results and temporaries of a unit, the kernels from `first` to below `end`.
static void place_kernels(Plan *plan, uint32_t first, uint32_t end, Scratch *scratch) {
  for (uint32_t i = first; i < end; i++) place_results(plan, i);
  take_scratch(plan, first, end, scratch);
  for (uint32_t i = first; i < end; i++) place_temporaries(plan, i, scratch);
  give_back(plan, scratch->offset, scratch->nbytes);
  for (uint32_t i = first; i < end; i++) end_values(plan, i);
}

// Plans the memory of a chunk, from address 0.
static bool plan_chunk(Program *p, ProgramSliceGroup *slice_group) {
  Plan plan;
  Scratch scratch = {0};
  const bool ok = plan_init(&plan, p, 0, slice_group);
  for (uint32_t i = slice_group->first; ok && i < slice_group->end; i++) place_invariant(&plan, i);
  for (uint32_t i = slice_group->first; ok && i < slice_group->end; i++) place_kernels(&plan, i, i + 1, &scratch);
  slice_group->chunk_nbytes = plan.top;
  p->unshared_nbytes += scratch.most_nbytes * (size_t)slice_group->nchunks;
  arena_deinit(&plan.scratch);
  return ok && !plan.out_of_memory;
}

static void place_slice_group(Plan *plan, ProgramSliceGroup *slice_group) {
  const bool is_whole = plan_chunk(plan->p, slice_group);
  const size_t nbytes = slice_group->chunk_nbytes * (size_t)slice_group->nchunks;
  plan->out_of_memory |= !is_whole;
  slice_group->offset = 0; // places in a chunk are relative to the chunk so far
  slice_group_move(plan->p, slice_group, take(plan, nbytes));
  for (uint32_t i = slice_group->first; i < slice_group->end; i++) place_results(plan, i);
  give_back(plan, slice_group->offset, nbytes);
  end_values(plan, slice_group->end - 1);
}

// Places staged states, which live from the beginning of a call to its end.
static void place_states(Plan *plan) {
  Program *p = plan->p;
  for (size_t i = 0; i < p->graph->nstates; i++) {
    const Value *v = graph_state(p->graph, i);
    if (!p->is_staged[v->index]) continue;
    p->value_offset[v->index] = take(plan, place_nbytes(plan, v));
    p->is_in_workspace[v->index] = true;
    p->unshared_nbytes += place_nbytes(plan, v);
  }
}

// Places all values whose numbers of elements have the arena's monomial.
static bool plan_arena(Program *p, MonomialArena *arena) {
  Plan plan;
  Scratch scratch = {0};
  const bool ok = plan_init(&plan, p, arena->monomial, NULL);
  ProgramSliceGroup *slice_group = p->slice_groups;
  if (ok && !arena->monomial) place_states(&plan);
  for (uint32_t i = 0; ok && i < p->nkernels; i++) {
    if (slice_group < p->slice_groups + p->nslice_groups && slice_group->first == i) {
      i = slice_group->end - 1;
      place_slice_group(&plan, slice_group++);
    } else {
      const uint32_t end = program_unit_end(p, i);
      place_kernels(&plan, i, end, &scratch);
      i = end - 1;
    }
  }
  arena->nbytes = plan.top;
  p->unshared_nbytes += scratch.most_nbytes;
  arena_deinit(&plan.scratch);
  return ok && !plan.out_of_memory;
}

// Makes an arena for each monomial of the values between kernels; the first arena is for values without open dims.
static void find_arenas(Program *p) {
  p->arenas[p->narenas++] = (MonomialArena){.monomial = 0};
  for (size_t i = 0; i < p->nkernels; i++) {
    const Kernel *k = p->schedules[i]->kernel;
    for (size_t s = 0; s < k->nstores; s++) {
      const Value *v = k->accesses[k->stores[s].access].value;
      const Monomial monomial = shape_monomial(&v->shape);
      size_t arena = 0;
      while (arena < p->narenas && p->arenas[arena].monomial != monomial) arena++;
      if (!is_callers(p, v) && arena == p->narenas) p->arenas[p->narenas++] = (MonomialArena){.monomial = monomial};
    }
  }
}

// Undoes an earlier plan. A kernel's first temporary is at offset 0 in an unplanned schedule.
static void forget_plan(Program *p) {
  p->narenas = 0;
  p->unshared_nbytes = 0;
  memset(p->is_in_workspace, 0, p->graph->nvalues * sizeof *p->is_in_workspace);
  memset(p->value_offset, 0, p->graph->nvalues * sizeof *p->value_offset);
  for (size_t i = 0; i < p->nkernels; i++) {
    const Schedule *s = p->schedules[i];
    const size_t offset = s->ntemporaries ? s->temporaries[0].offset : 0;
    for (size_t t = 0; t < s->ntemporaries; t++) s->temporaries[t].offset -= offset;
  }
}

static int64_t nbytes_at_hint(const Program *p, const MonomialArena *arena) {
  return (int64_t)arena->nbytes * monomial_value(p->graph, arena->monomial, NULL);
}

bool plan_memory(Program *p) {
  forget_plan(p);
  p->arenas = ARENA_ARRAY(&p->arena, MonomialArena, p->graph->nvalues + 1);
  if (!p->arenas) return false;
  find_arenas(p);
  for (size_t i = 0; i < p->narenas; i++)
    if (!plan_arena(p, &p->arenas[i]) || (p->graph->ndims && !pack_arena(p, &p->arenas[i]))) return false;
  p->workspace_nbytes = p->arenas[0].nbytes;
  p->last_arena = 0;
  for (size_t i = 1; i < p->narenas; i++)
    if (nbytes_at_hint(p, &p->arenas[i]) >= nbytes_at_hint(p, &p->arenas[p->last_arena])) p->last_arena = i;
  if (p->graph->ndims) return true;
  if (!pack_workspace(p)) return false;
  p->arenas[0].nbytes = p->workspace_nbytes;
  return true;
}
