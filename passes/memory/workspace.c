// Lays out the workspace of a program with open dims. It begins with one arena per monomial, for the values between
// kernels whose sizes are multiples of that monomial. Before the last arena come outputs that a call may leave out
// although loops read them. Temporaries are behind the values of the last arena that live while their kernel runs.
#include "passes/memory/workspace.h"

#include "ir/graph/open_dims.h"

typedef struct WorkspaceRows {
  Program *p;
  bool out_of_memory;
} WorkspaceRows;

static void add(WorkspaceRows *b, WorkspaceRow row) {
  OpenWorkspace *w = &b->p->open_workspace;
  b->out_of_memory |= !arena_grow(&b->p->arena, &w->rows, w->nrows, &w->capacity, sizeof row);
  if (!b->out_of_memory) w->rows[w->nrows++] = row;
}

static void add_advance(WorkspaceRows *b, OpenSize size, bool is_for_optional) {
  if (size.number) add(b, (WorkspaceRow){.kind = WORKSPACE_ADVANCE, .size = size, .is_for_optional = is_for_optional});
}

// Adds a row for each value of the arena, then one that advances by the arena's size.
static void add_arena(WorkspaceRows *b, const MonomialArena *arena) {
  const Program *p = b->p;
  const Graph *g = p->graph;
  const int64_t hint = monomial_value(g, arena->monomial, NULL);
  for (size_t v = 0; v < g->nvalues; v++) {
    if (!p->is_in_workspace[v] || shape_monomial(&g->values[v]->shape) != arena->monomial) continue;
    const OpenSize offset = {(int64_t)p->value_offset[v] * hint, arena->monomial};
    add(b, (WorkspaceRow){.value = g->values[v], .size = offset});
  }
  add_advance(b, (OpenSize){(int64_t)arena->nbytes * hint, arena->monomial}, false);
}

static void add_outputs(WorkspaceRows *b) {
  const Graph *g = b->p->graph;
  for (size_t i = 0; i < g->noutputs; i++) {
    const Value *v = g->outputs[i];
    if (!program_keeps_output(b->p, i)) continue;
    const int64_t nbytes = shape_nelems(&v->shape) * (int64_t)type_nbytes(v->type);
    add(b, (WorkspaceRow){.value = v, .is_for_optional = true});
    add_advance(b, (OpenSize){nbytes, shape_monomial(&v->shape)}, true);
  }
}

static bool has_temporaries(const Schedule *s) {
  bool has_any = false;
  for (size_t t = 0; t < s->ntemporaries; t++) has_any |= !s->temporaries[t].is_own && s->temporaries[t].nelems;
  return has_any;
}

// Adds rows for the kernel's temporaries, which lie behind the values that live while it runs.
static void add_temporaries(WorkspaceRows *b, uint32_t kernel) {
  const Schedule *s = b->p->schedules[kernel];
  const bool has_any = has_temporaries(s);
  const MonomialArena *last = &b->p->arenas[b->p->last_arena];
  const int64_t hint = monomial_value(b->p->graph, last->monomial, NULL);
  const OpenSize free = {(int64_t)last->free[kernel] * hint, last->monomial};
  if (has_any) add(b, (WorkspaceRow){.kind = WORKSPACE_KERNEL, .kernel = kernel, .size = free});
  for (uint32_t t = 0; t < s->ntemporaries; t++) {
    if (s->temporaries[t].is_own) continue;
    add(b, (WorkspaceRow){.kernel = kernel, .temporary = t});
    OpenSize size = program_temporary_size(b->p, kernel, t);
    size.number *= (int64_t)type_nbytes(s->temporaries[t].type);
    add_advance(b, size, false);
  }
  if (has_any) add(b, (WorkspaceRow){.kind = WORKSPACE_END_KERNEL});
}

bool lay_out_workspace(Program *p) {
  WorkspaceRows b = {.p = p};
  p->open_workspace = (OpenWorkspace){.rows = NULL};
  if (!p->graph->ndims) return true;
  for (size_t i = 0; i < p->narenas; i++)
    if (i != p->last_arena) add_arena(&b, &p->arenas[i]);
  add_outputs(&b);
  for (size_t i = 0; i < p->nkernels; i++) p->open_workspace.has_temporaries |= has_temporaries(p->schedules[i]);
  if (p->open_workspace.has_temporaries) add(&b, (WorkspaceRow){.kind = WORKSPACE_TEMPORARIES});
  add_arena(&b, &p->arenas[p->last_arena]);
  if (p->open_workspace.has_temporaries) add(&b, (WorkspaceRow){.kind = WORKSPACE_END_KERNEL});
  for (uint32_t i = 0; i < p->nkernels; i++) add_temporaries(&b, i);
  return !b.out_of_memory;
}
