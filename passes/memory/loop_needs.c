// A loop needs an earlier loop if one of them stores to memory that the other accesses: the same tensor of the caller,
// or overlapping places in the workspace. Only the last MOST_NEEDS loops before a loop are compared.
#include "passes/memory/loop_needs.h"

#include "ir/graph/open_dims.h"
#include "ir/kernel/needed.h"
#include "ir/support/threads.h"

#include <string.h>

// With open dims, places in an arena grow by the same factor, and kernels may share memory for temporaries, which lies
// behind the place `end` of the last arena.
typedef enum Space {
  SPACE_CALLER,      // the tensor `callers`
  SPACE_WORKSPACE,   // or an arena: from byte `begin` to `end`
  SPACE_TEMPORARIES, // with open dims
  SPACE_UNKNOWN      // anywhere in the workspace
} Space;

typedef struct Touched { // memory that a loop accesses
  Space space;
  const Value *callers;
  Monomial monomial; // of the arena
  size_t begin, end;
  size_t kernel; // of the temporary number `begin`
  bool is_stored;
} Touched;

typedef struct TouchedList {
  Touched *items;
  size_t count, capacity;
} TouchedList;

typedef struct Search {
  const Program *p;
  Arena scratch;
  TouchedList before[MOST_NEEDS + 1]; // by loop number modulo their number
  bool *is_marked;                    // by ExprId of the current kernel
  size_t *state_of;                   // by output: the state whose update it is, plus 1; 0: none
  bool out_of_memory;
} Search;

static void add_touched(Search *s, TouchedList *list, Touched t) {
  if (!arena_grow(&s->scratch, &list->items, list->count, &list->capacity, sizeof t)) s->out_of_memory = true;
  else list->items[list->count++] = t;
}

// In an arena, divided by its monomial.
static size_t place_nbytes(const Program *p, const ProgramSliceGroup *group, const Value *v) {
  const int64_t factor = open_factor(p->graph, shape_nelems(&v->shape), shape_monomial(&v->shape));
  const bool is_private = group && slice_group_is_private(group, v);
  return is_private ? group->chunk_nbytes * (size_t)group->nchunks : type_array_nbytes(v->type, (size_t)factor);
}

// The memory that the access touches.
static Touched place_of(const Search *s, size_t kernel, const Access *a) {
  const Program *p = s->p;
  const Value *v = a->value;
  if (v && !p->is_in_workspace[v->index]) return (Touched){.space = SPACE_CALLER, .callers = v};
  const ProgramSliceGroup *group = program_slice_group(p, (uint32_t)kernel);
  const Temporary *t = v ? NULL : &p->schedules[kernel]->temporaries[a->temporary];
  if (p->graph->ndims && group) return (Touched){.space = SPACE_UNKNOWN};
  const MonomialArena *last = &p->arenas[p->last_arena];
  if (p->graph->ndims && t)
    return (Touched){.space = SPACE_TEMPORARIES,
                     .monomial = last->monomial,
                     .kernel = kernel,
                     .begin = a->temporary,
                     .end = last->free[kernel]};
  const size_t begin = v ? p->value_offset[v->index] : t->offset;
  const size_t nbytes = t && group ? group->chunk_nbytes * (size_t)group->nchunks
                        : t        ? (size_t)t->nelems * type_nbytes(t->type)
                                   : place_nbytes(p, group, v);
  const Monomial monomial = v ? shape_monomial(&v->shape) : 0;
  return (Touched){.space = SPACE_WORKSPACE, .monomial = monomial, .begin = begin, .end = begin + nbytes};
}

static void add_access(Search *s, TouchedList *list, size_t kernel, const Access *a, bool is_stored) {
  if (a->value ? a->value->constant != NULL : s->p->schedules[kernel]->temporaries[a->temporary].is_own) return;
  Touched t = place_of(s, kernel, a);
  t.is_stored = is_stored;
  add_touched(s, list, t);
}

// Adds what the loop reads and stores.
static void add_loop(Search *s, TouchedList *list, size_t kernel, size_t loop) {
  const Kernel *k = s->p->schedules[kernel]->kernel;
  const Loop *l = &s->p->schedules[kernel]->loops[loop];
  memset(s->is_marked, 0, k->nexprs * sizeof *s->is_marked);
  for (size_t i = 0; i < l->nroots; i++) loop_mark_root(k, l, &l->roots[i], s->is_marked);
  for (ExprId id = 1; id < k->nexprs; id++)
    if (s->is_marked[id] && (k->exprs[id].op == EXPR_LOAD || k->exprs[id].op == EXPR_COMBINE))
      add_access(s, list, kernel, &k->accesses[k->exprs[id].access], false);
  for (size_t i = 0; i < l->nroots; i++)
    if (l->roots[i].kind != ROOT_REDUCE_INNER) add_access(s, list, kernel, &k->accesses[l->roots[i].access], true);
}

// Whether a caller may pass the same memory for an input and the value of an output.
static bool may_be_alike(const Search *s, const Value *input, const Value *output) {
  const Graph *g = s->p->graph;
  if (!input->is_input || !output->is_output) return false;
  const size_t o = output->first_output;
  if (s->state_of[o] && g->inputs[g->states[s->state_of[o] - 1].input] == input) return true;
  const InPlace *in_place = &s->p->liveness->in_place[o];
  for (uint32_t i = 0; i < in_place->count; i++)
    if (g->inputs[in_place->inputs[i]] == input) return true;
  return false;
}

// Whether temporaries may lie in the value's place.
static bool meet_temporaries(const Touched *temporaries, const Touched *value) {
  return temporaries->monomial == value->monomial && value->end > temporaries->end;
}

// Whether the two may touch the same byte, and one of them stores it.
static bool meet(const Search *s, const Touched *a, const Touched *b) {
  if (!a->is_stored && !b->is_stored) return false;
  if ((a->space == SPACE_CALLER) != (b->space == SPACE_CALLER)) return false;
  if (a->space == SPACE_UNKNOWN || b->space == SPACE_UNKNOWN) return true;
  if (a->space == SPACE_TEMPORARIES && b->space != a->space) return meet_temporaries(a, b);
  if (a->space != b->space) return b->space == SPACE_TEMPORARIES && meet_temporaries(b, a);
  switch (a->space) {
  case SPACE_CALLER:
    return a->callers == b->callers || may_be_alike(s, a->callers, b->callers) ||
           may_be_alike(s, b->callers, a->callers);
  case SPACE_TEMPORARIES: return a->kernel != b->kernel || a->begin == b->begin;
  default: return a->monomial == b->monomial && a->begin < b->end && b->begin < a->end;
  }
}

static bool lists_meet(const Search *s, const TouchedList *a, const TouchedList *b) {
  for (size_t i = 0; i < a->count; i++)
    for (size_t k = 0; k < b->count; k++)
      if (meet(s, &a->items[i], &b->items[k])) return true;
  return false;
}

static TouchedList *list_of(Search *s, size_t loop) {
  return &s->before[loop % (MOST_NEEDS + 1)];
}

static void find_needs(Search *s, size_t loop) {
  for (size_t i = 0; i < MOST_NEEDS && i < loop; i++)
    if (lists_meet(s, list_of(s, loop), list_of(s, loop - 1 - i))) s->p->liveness->needs[loop] |= 1U << i;
}

// The first loop of a slice group stands for all of its loops.
static void find_kernel_needs(Search *s, uint32_t kernel) {
  const Liveness *f = s->p->liveness;
  const ProgramSliceGroup *group = program_slice_group(s->p, kernel);
  for (size_t l = 0; l < s->p->schedules[kernel]->nloops && !s->out_of_memory; l++) {
    const size_t loop = group ? f->first_loop[group->first] : f->first_loop[kernel] + l;
    if (!group || (kernel == group->first && !l)) list_of(s, loop)->count = 0;
    add_loop(s, list_of(s, loop), kernel, l);
    if (!group) find_needs(s, loop);
  }
  if (group && kernel + 1 == group->end) find_needs(s, f->first_loop[group->first]);
}

static bool new_arrays(Search *s) {
  const Program *p = s->p;
  size_t most = 0;
  for (size_t i = 0; i < p->nkernels; i++)
    if (p->schedules[i]->kernel->nexprs > most) most = p->schedules[i]->kernel->nexprs;
  s->is_marked = ARENA_ARRAY(&s->scratch, bool, most + 1);
  s->state_of = ARENA_ARRAY(&s->scratch, size_t, p->graph->noutputs + 1);
  for (size_t i = 0; s->state_of && i < p->graph->nstates; i++)
    if (p->graph->states[i].output >= 0) s->state_of[p->graph->states[i].output] = i + 1;
  return s->is_marked && s->state_of;
}

bool find_loop_needs(Program *p) {
  Search s = {.p = p};
  arena_init(&s.scratch, p->arena.allocator);
  p->liveness->needs = ARENA_ARRAY(&p->arena, uint32_t, p->liveness->nloops + 1);
  s.out_of_memory = !new_arrays(&s) || !p->liveness->needs;
  for (uint32_t i = 0; i < p->nkernels && !s.out_of_memory; i++) find_kernel_needs(&s, i);
  arena_deinit(&s.scratch);
  return !s.out_of_memory;
}
