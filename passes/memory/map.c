#include "passes/memory/map.h"

#include "ir/operators/operator.h"
#include "ir/operators/optimizer.h"

#include <stdlib.h>
#include <string.h>

// Tenants

static Tenant *add_tenant(MemoryMap *m, TenantKind kind, size_t offset, size_t nbytes, uint32_t first, uint32_t last) {
  if (!nbytes) return NULL;
  Tenant *t = &m->tenants[m->count++];
  *t = (Tenant){.kind = kind, .offset = offset, .nbytes = nbytes, .first = first, .last = last};
  return t;
}

static bool is_mapped(const MemoryMap *m, const Value *v) {
  return !m->of || shape_monomial(&v->shape) == m->of->monomial;
}

static size_t tenant_nbytes(const MemoryMap *m, const Value *v) {
  return m->of ? program_slot_nbytes(m->program, v->type, shape_nelems(&v->shape), m->of->monomial)
               : whole_lines(value_nbytes(v));
}

// Adds a tenant for the value, or extends its lifetime to the kernel.
static void access_value(MemoryMap *m, const Value *v, uint32_t kernel, uint32_t *current) {
  const Program *p = m->program;
  const ProgramSliceGroup *slice_group = program_slice_group(p, kernel);
  if (!p->is_in_workspace[v->index] || slice_group_is_private(slice_group, v)) return;
  const uint32_t first = slice_group ? slice_group->first : kernel, last = slice_group ? slice_group->end - 1 : kernel;
  Tenant *t = current[v->index] ? &m->tenants[current[v->index] - 1] : NULL;
  if (t) t->last = last;
  if (t) return;
  t = add_tenant(m, p->is_staged[v->index] ? TENANT_STAGED : TENANT_VALUE, p->value_offset[v->index],
                 tenant_nbytes(m, v), first, last);
  if (!t) return;
  t->value = v;
  current[v->index] = (uint32_t)m->count;
}

// A staged state is copied before the first kernel, too, and every staged value after the last kernel.
static void extend_staged(MemoryMap *m, const uint32_t *current) {
  const Program *p = m->program;
  for (size_t i = 0; i < p->graph->nstates; i++) {
    const Value *v = graph_state(p->graph, i);
    if (!p->is_staged[v->index] || !is_mapped(m, v)) continue;
    Tenant *t = current[v->index] ? &m->tenants[current[v->index] - 1]
                                  : add_tenant(m, TENANT_STAGED, p->value_offset[v->index], tenant_nbytes(m, v), 0, 0);
    if (!t) continue;
    t->value = v;
    t->first = 0;
  }
  for (size_t i = 0; i < m->count; i++)
    if (m->tenants[i].kind == TENANT_STAGED && p->nkernels) m->tenants[i].last = (uint32_t)p->nkernels - 1;
}

// Adds a tenant for each value in the workspace, with the kernels in which it lives.
static bool add_values(MemoryMap *m) {
  const Program *p = m->program;
  uint32_t *current = ARENA_ARRAY(&m->arena, uint32_t, p->graph->nvalues + 1); // by value: its tenant, plus one
  for (uint32_t i = 0; current && i < p->nkernels; i++) {
    const Kernel *k = p->schedules[i]->kernel;
    for (AccessId a = 0; a < k->naccesses; a++)
      if (k->accesses[a].value && is_mapped(m, k->accesses[a].value)) access_value(m, k->accesses[a].value, i, current);
  }
  if (current) extend_staged(m, current);
  return current;
}

static void find_ends(const Schedule *s, size_t *begin, size_t *end) {
  for (size_t i = 0; i < s->ntemporaries; i++) {
    const Temporary *t = &s->temporaries[i];
    if (t->is_own) continue;
    const size_t own_end = t->offset + (size_t)t->nelems * type_nbytes(t->type);
    if (t->offset < *begin) *begin = t->offset;
    if (own_end > *end) *end = own_end;
  }
}

// Adds one tenant for the temporaries of the kernel's unit (the kernel, and the kernels that follow it).
static void add_temporaries(MemoryMap *m, uint32_t kernel) {
  const uint32_t unit_end = program_unit_end(m->program, kernel);
  size_t begin = SIZE_MAX, end = 0;
  for (uint32_t i = kernel; i < unit_end; i++) find_ends(m->program->schedules[i], &begin, &end);
  if (end > begin) add_tenant(m, TENANT_TEMPORARIES, begin, whole_lines(end - begin), kernel, unit_end - 1);
}

static int compare_tenants(const void *a, const void *b) {
  const Tenant *x = a, *y = b;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

// Bytes in use

typedef struct Place { // of tenants that begin at the same offset
  size_t offset;
  uint32_t nliving;
} Place;

static int compare_places(const void *a, const void *b) {
  const Place *x = a, *y = b;
  return (x->offset > y->offset) - (x->offset < y->offset);
}

static Place *place_of(Place *places, const MemoryMap *m, const Tenant *t) { // the same for all at the offset
  return bsearch(&(Place){.offset = t->offset}, places, m->count, sizeof *places, compare_places);
}

// Sets `live` and `peak`. The tenants are sorted. Places of living tenants are disjoint, or the same: a result that
// overwrites an operand has the operand's place, which counts once.
static bool find_live(MemoryMap *m) {
  const uint32_t nkernels = (uint32_t)m->program->nkernels;
  uint32_t *ends = ARENA_ARRAY(&m->arena, uint32_t, nkernels + 1); // by kernel: 1 + the first tenant that ends with it
  uint32_t *next = ARENA_ARRAY(&m->arena, uint32_t, m->count + 1); // by tenant: 1 + the next one; 0: there is none
  Place *places = ARENA_ARRAY(&m->arena, Place, m->count + 1);
  size_t begun = 0, nbytes = 0;
  if (!ends || !next || !places) return false;
  for (size_t i = 0; i < m->count; i++) places[i].offset = m->tenants[i].offset;
  qsort(places, m->count, sizeof *places, compare_places);
  for (uint32_t i = 0; i < nkernels; i++) {
    for (; begun < m->count && m->tenants[begun].first <= i; begun++) {
      const Tenant *t = &m->tenants[begun];
      if (!place_of(places, m, t)->nliving++) nbytes += t->nbytes;
      next[begun] = ends[t->last];
      ends[t->last] = (uint32_t)begun + 1;
    }
    m->live[i] = nbytes;
    if (m->live[i] > m->live[m->peak]) m->peak = i;
    for (uint32_t n = ends[i]; n; n = next[n - 1]) {
      const Tenant *t = &m->tenants[n - 1];
      if (!--place_of(places, m, t)->nliving) nbytes -= t->nbytes;
    }
  }
  return true;
}

// States

// Whether an optimizer reads the state as anything but the weights that it updates.
static bool is_of_optimizer(const Value *state) {
  for (const Use *use = state->uses; use; use = use->next)
    if (strcmp(use->node->op->family, "optimizer") == 0 && use->slot > DIFF_SLOT) return true;
  return false;
}

static void add_states(MemoryMap *m) {
  const Graph *g = m->program->graph;
  for (size_t i = 0; i < g->nstates; i++) {
    const Value *v = graph_state(g, i);
    *(is_of_optimizer(v) ? &m->optimizer_nbytes : &m->parameter_nbytes) += whole_lines(value_nbytes(v));
  }
}

bool memory_map_init(MemoryMap *m, const Program *p, const MonomialArena *arena) {
  *m = (MemoryMap){.program = p, .of = arena};
  arena_init(&m->arena, p->arena.allocator);
  const size_t most = p->graph->nvalues + p->nkernels + p->nslice_groups + 1;
  m->tenants = ARENA_ARRAY(&m->arena, Tenant, most);
  m->live = ARENA_ARRAY(&m->arena, size_t, p->nkernels + 1);
  if (!m->tenants || !m->live || !add_values(m)) return false;
  for (size_t i = 0; i < p->nslice_groups && !arena; i++) {
    const ProgramSliceGroup *v = &p->slice_groups[i];
    add_tenant(m, TENANT_SLICES, v->offset, whole_lines(v->chunk_nbytes * (size_t)v->nchunks), v->first, v->end - 1);
  }
  for (uint32_t i = 0; i < p->nkernels && !arena; i++)
    if (!program_slice_group(p, i) && !p->schedules[i]->follows) add_temporaries(m, i);
  qsort(m->tenants, m->count, sizeof *m->tenants, compare_tenants);
  add_states(m);
  return find_live(m);
}

void memory_map_deinit(MemoryMap *m) {
  arena_deinit(&m->arena);
}

void tenant_print(const MemoryMap *m, const Tenant *t, Sink sink, Text *out) {
  if (t->kind == TENANT_SLICES) {
    text_format(out, "slices of kernels %u to %u", t->first, t->last);
  } else if (t->kind == TENANT_TEMPORARIES) {
    text_add_string(out, "temporaries of ");
    Text nodes;
    text_init(&nodes, out->allocator);
    kernel_print_nodes(m->program->schedules[t->first]->kernel, &nodes);
    text_add_user_string(out, sink, text_string(&nodes));
    out->out_of_memory |= nodes.out_of_memory;
    text_deinit(&nodes);
  } else {
    text_add_user_string(out, sink, t->value->name);
    if (t->kind == TENANT_STAGED) text_add_string(out, t->value->is_input ? ", a copy of the state" : ", to be copied");
    Text lines;
    text_init(&lines, out->allocator);
    if (t->value->producer) node_print_lines(t->value->producer, &lines);
    if (lines.nbytes) text_format(out, ", %s", text_string(&lines));
    out->out_of_memory |= lines.out_of_memory;
    text_deinit(&lines);
  }
}
