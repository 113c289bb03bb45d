// Greedy. Each round finds the peak, the kernel during which most bytes are live, and takes the cheapest value that is
// live at the peak but not accessed there. A new kernel computes the value again just before its next reader, and
// memory is planned again.
//
// The recomputed value is a new value with its own place: an instance of the original value. Instances are in the
// program's own copy of the graph's list of values.
#include "passes/recompute/recompute.h"

#include "passes/memory/in_place.h"
#include "passes/memory/map.h"
#include "passes/memory/plan.h"
#include "passes/recompute/recompute_value.h"

#include <string.h>

typedef struct Known { // a memo of recompute_value
  bool is_known;
  Recomputation recomputation;
} Known;

typedef struct Fitting {
  Program *p;
  RegionLowering lowering;
  Graph *graph;     // the program's
  Known *known;     // by index of original values
  uint32_t *origin; // by value->index: the index of the original value
  size_t nagain, least;
  double operations; // the operations of the added kernels
} Fitting;

typedef struct Round { // the kernels of the peak, and when values are accessed
  Fitting *f;
  MemoryMap map;
  uint32_t first, end;   // the peak's kernels: a unit of the program
  bool *is_accessed;     // by value->index: the peak's kernels access the value
  uint32_t *next;        // by value->index: the first kernel after the peak that accesses the value, plus one; 0: none
  uint32_t *first_store; // by value->index: the first kernel that stores the value, plus one; 0: none
  const Tenant **tenant; // by value->index; NULL: the value has no tenant
} Round;

typedef struct Choice { // a value that is computed again before kernel `at`
  const Value *value;
  const Recomputation *recomputation;
  uint32_t at;
  size_t saved; // bytes at the peak
} Choice;

static void note_access(Round *r, uint32_t kernel, const Value *v, bool is_stored) {
  if (kernel >= r->first && kernel < r->end) r->is_accessed[v->index] = true;
  if (kernel >= r->end && !r->next[v->index]) r->next[v->index] = program_unit_first(r->f->p, kernel) + 1;
  if (is_stored && !r->first_store[v->index]) r->first_store[v->index] = kernel + 1;
}

// memory_map_deinit follows in any case.
static bool round_init(Round *r, Fitting *f) {
  const Program *p = f->p;
  *r = (Round){.f = f};
  if (!memory_map_init(&r->map, p, NULL)) return false;
  r->first = program_unit_first(p, r->map.peak);
  r->end = program_unit_end(p, r->map.peak);
  r->is_accessed = ARENA_ARRAY(&r->map.arena, bool, p->graph->nvalues + 1);
  r->next = ARENA_ARRAY(&r->map.arena, uint32_t, p->graph->nvalues + 1);
  r->first_store = ARENA_ARRAY(&r->map.arena, uint32_t, p->graph->nvalues + 1);
  r->tenant = (const Tenant **)ARENA_ARRAY(&r->map.arena, Tenant *, p->graph->nvalues + 1);
  if (!r->is_accessed || !r->next || !r->first_store || !r->tenant) return false;
  for (size_t i = 0; i < r->map.count; i++)
    if (r->map.tenants[i].value) r->tenant[r->map.tenants[i].value->index] = &r->map.tenants[i];
  for (uint32_t i = 0; i < p->nkernels; i++) {
    const Kernel *k = p->schedules[i]->kernel;
    for (AccessId a = 0; a < k->naccesses; a++)
      if (k->accesses[a].value) note_access(r, i, k->accesses[a].value, kernel_stores(k, a));
  }
  return true;
}

// Whether the state's update is stored in the state's memory before the kernel.
static bool is_overwritten(const Round *r, const Value *state, uint32_t kernel) {
  const Graph *g = r->f->p->graph;
  for (size_t i = 0; i < g->nstates; i++) {
    if (graph_state(g, i) != state || g->states[i].output < 0) continue;
    const uint32_t stored = r->first_store[g->outputs[g->states[i].output]->index];
    return stored && stored <= kernel && !r->f->p->is_staged[state->index];
  }
  return false;
}

// The instance of the value that a kernel at this place would read: of the instances stored before, the longest-lived.
static const Value *instance_at(const Round *r, const Value *v, uint32_t at) {
  const uint32_t origin = r->f->origin[v->index];
  const Value *best = r->f->graph->values[origin];
  for (size_t i = 0; i < r->f->graph->nvalues; i++) {
    const Tenant *own = r->f->origin[i] == origin ? r->tenant[i] : NULL, *other = r->tenant[best->index];
    if (own && own->first < at && (!other || own->last > other->last)) best = r->f->graph->values[i];
  }
  return best;
}

// The bytes that a new reader of the value after the peak adds to the peak: 0 if the value is live there anyway.
static size_t extension(const Round *r, const Value *v) {
  const Tenant *t = r->tenant[v->index];
  return t && t->last < r->first ? t->nbytes : 0;
}

// The bytes that operands of the recomputation add to the peak, without the operand `without`; SIZE_MAX: recomputation
// is impossible, as an operand was overwritten.
static size_t added_nbytes(const Round *r, const Choice *c, const Value *without) {
  const Kernel *k = c->recomputation->schedule->kernel;
  size_t added = 0;
  for (AccessId a = 0; a < k->naccesses; a++) {
    const Value *v = k->accesses[a].value;
    if (!v || kernel_stores(k, a) || v == without || (a && k->accesses[a - 1].value == v)) continue;
    if (v->is_input && is_overwritten(r, v, c->at)) return SIZE_MAX;
    if (!v->is_input && !v->constant) added += extension(r, instance_at(r, v, c->at));
  }
  return added;
}

static bool is_better(const Choice *a, const Choice *b) {
  if (!b->value) return true;
  if (a->recomputation->cost != b->recomputation->cost) return a->recomputation->cost < b->recomputation->cost;
  return (double)a->saved * (b->recomputation->operations + 1) > (double)b->saved * (a->recomputation->operations + 1);
}

// Sets *recomputation; NULL: the value cannot be computed again. False: out of memory.
static bool find_recomputation(Round *r, const Value *v, const Recomputation **recomputation) {
  const uint32_t origin = r->f->origin[v->index];
  Known *known = &r->f->known[origin];
  const bool ok =
      known->is_known || recompute_value(r->f->p, &r->f->lowering, r->f->graph->values[origin], &known->recomputation);
  known->is_known = ok;
  *recomputation = ok && known->recomputation.schedule ? &known->recomputation : NULL;
  return ok;
}

// Considers computing an operand of c again just before c, if the operand would otherwise extend its life over the
// peak. The next round then finds the operand there, and can choose c.
static bool choose_operand(Round *r, const Choice *c, size_t nbytes, Choice *best) {
  const Kernel *k = c->recomputation->schedule->kernel;
  for (AccessId a = 0; a < k->naccesses; a++) {
    const Value *v = k->accesses[a].value;
    if (!v || kernel_stores(k, a) || v->is_input || v->constant) continue;
    Choice o = {.value = instance_at(r, v, c->at), .at = c->at};
    if (!extension(r, o.value) || added_nbytes(r, c, v) >= nbytes) continue;
    if (!find_recomputation(r, o.value, &o.recomputation)) return false;
    if (!o.recomputation || added_nbytes(r, &o, NULL)) continue;
    o.saved = nbytes;
    if (is_better(&o, best)) *best = o;
  }
  return true;
}

// Chooses the best value that is live over the peak, or, with for_operands, the best operand of such a value's
// recomputation.
static bool choose_value(Round *r, bool for_operands, Choice *best) {
  *best = (Choice){.value = NULL};
  for (size_t i = 0; i < r->map.count; i++) {
    const Tenant *t = &r->map.tenants[i];
    if (t->kind != TENANT_VALUE || t->first >= r->first || t->last < r->end || r->is_accessed[t->value->index])
      continue;
    Choice c = {.value = t->value, .at = r->next[t->value->index] - 1};
    if (!find_recomputation(r, t->value, &c.recomputation)) return false;
    if (!c.recomputation || !r->next[t->value->index]) continue;
    const size_t added = added_nbytes(r, &c, NULL);
    if (for_operands && added >= t->nbytes && !choose_operand(r, &c, t->nbytes, best)) return false;
    c.saved = added < t->nbytes ? t->nbytes - added : 0;
    if (!for_operands && c.saved && is_better(&c, best)) *best = c;
  }
  return true;
}

// best->value NULL: no choice lowers the peak. False: out of memory.
static bool choose(Round *r, Choice *best) {
  return choose_value(r, false, best) && (best->value || choose_value(r, true, best));
}

// Adds an instance of the value to the graph. NULL: out of memory.
static Value *add_instance(Fitting *f, const Value *v) {
  Program *p = f->p;
  Graph *g = f->graph;
  const size_t count = g->nvalues + 2;
  Value *instance = ARENA_NEW(&p->arena, Value), **values = ARENA_ARRAY(&p->arena, Value *, count);
  uint32_t *origin = ARENA_ARRAY(&p->arena, uint32_t, count);
  p->value_offset = ARENA_ARRAY(&p->arena, size_t, count);
  p->is_in_workspace = ARENA_ARRAY(&p->arena, bool, count);
  if (!instance || !values || !origin || !p->value_offset || !p->is_in_workspace) return NULL;
  memcpy(values, g->values, g->nvalues * sizeof *values);
  memcpy(origin, f->origin, g->nvalues * sizeof *origin);
  *instance = *v;
  instance->name = arena_format(&p->arena, "%s_again_%zu", g->values[origin[v->index]]->name, f->nagain);
  instance->index = (uint32_t)g->nvalues;
  origin[instance->index] = origin[v->index];
  values[g->nvalues++] = instance;
  g->values = values;
  f->origin = origin;
  return instance->name ? instance : NULL;
}

// The recomputation as a new kernel, which stores the instance, and reads the instances of its operands that are live
// there.
static Schedule *instantiate(const Round *r, const Choice *c, Value *instance) {
  Arena *arena = &r->f->p->arena;
  const Schedule *from = c->recomputation->schedule;
  Schedule *s = ARENA_NEW(arena, Schedule);
  Kernel *k = ARENA_NEW(arena, Kernel);
  Temporary *temporaries = ARENA_ARRAY(arena, Temporary, from->ntemporaries + 1);
  Access *accesses = ARENA_ARRAY(arena, Access, from->kernel->naccesses + 1);
  if (!s || !k || !temporaries || !accesses) return NULL;
  *s = *from;
  *k = *from->kernel;
  if (s->ntemporaries) memcpy(temporaries, s->temporaries, s->ntemporaries * sizeof *temporaries);
  if (k->naccesses) memcpy(accesses, k->accesses, k->naccesses * sizeof *accesses);
  for (AccessId a = 0; a < k->naccesses; a++) {
    const Value *v = accesses[a].value;
    if (!v) continue;
    if (kernel_stores(k, a)) accesses[a].value = instance;
    else if (!v->is_input && !v->constant) accesses[a].value = (Value *)instance_at(r, v, c->at);
  }
  k->accesses = accesses;
  s->kernel = k;
  s->temporaries = temporaries;
  return s;
}

// Makes a slice group read the instance. Copies the slice group's slices, which other programs use, too.
static bool rename_in_slice_group(Program *p, ProgramSliceGroup *slice_group, const Value *v, const Value *instance) {
  if (!slice_group_find(slice_group->slices, v)) return true;
  SliceGroup *slices = ARENA_NEW(&p->arena, SliceGroup);
  SlicedTensor *tensors = ARENA_ARRAY(&p->arena, SlicedTensor, slice_group->slices->ntensors + 1);
  if (!slices || !tensors) return false;
  *slices = *slice_group->slices;
  memcpy(tensors, slices->tensors, slices->ntensors * sizeof *tensors);
  for (size_t i = 0; i < slices->ntensors; i++)
    if (tensors[i].value == v) tensors[i].value = instance;
  slices->tensors = tensors;
  slice_group->slices = slices;
  for (uint32_t i = slice_group->first; i < slice_group->end; i++) p->schedules[i]->kernel->slice_group = slices;
  return true;
}

// Makes the kernels from `from` on read the instance instead of the value.
static bool rename_uses(Program *p, uint32_t from, const Value *v, Value *instance) {
  for (uint32_t i = from; i < p->nkernels; i++) {
    const Kernel *k = p->schedules[i]->kernel;
    for (AccessId a = 0; a < k->naccesses; a++)
      if (k->accesses[a].value == v) k->accesses[a].value = instance;
  }
  for (size_t i = 0; i < p->nslice_groups; i++)
    if (p->slice_groups[i].first >= from && !rename_in_slice_group(p, &p->slice_groups[i], v, instance)) return false;
  return true;
}

static bool insert_kernel(Program *p, Schedule *s, uint32_t at) {
  Schedule **schedules = ARENA_ARRAY(&p->arena, Schedule *, p->nkernels + 1);
  if (!schedules) return false;
  for (size_t i = 0; i < p->nkernels; i++) schedules[i + (i >= at)] = p->schedules[i];
  schedules[at] = s;
  p->schedules = schedules;
  p->nkernels++;
  for (size_t i = 0; i < p->nslice_groups; i++) {
    if (p->slice_groups[i].first < at) continue;
    p->slice_groups[i].first++;
    p->slice_groups[i].end++;
  }
  program_number_kernels(p);
  return true;
}

static bool compute_again(Round *r, const Choice *c) {
  Program *p = r->f->p;
  Value *instance = add_instance(r->f, c->value);
  Schedule *s = instance ? instantiate(r, c, instance) : NULL;
  return s && rename_uses(p, c->at, c->value, instance) && insert_kernel(p, s, c->at) && stage_updates(p) &&
         plan_memory(p);
}

// *is_done: no choice lowers the peak. False: out of memory.
static bool play_round(Fitting *f, bool *is_done) {
  Round r;
  Choice c;
  bool ok = round_init(&r, f) && choose(&r, &c);
  *is_done = ok && !c.value;
  if (ok && c.value) {
    ok = compute_again(&r, &c);
    f->nagain++;
    f->operations += c.recomputation->operations;
    if (f->p->workspace_nbytes < f->least) f->least = f->p->workspace_nbytes;
  }
  memory_map_deinit(&r.map);
  return ok;
}

static bool count_operations(const Program *p, double *operations) {
  Arena scratch;
  arena_init(&scratch, p->arena.allocator);
  bool ok = true;
  *operations = 0;
  for (size_t i = 0; ok && i < p->nkernels; i++) {
    double own = 0;
    ok = kernel_count_operations(p->schedules[i]->kernel, &scratch, &own);
    *operations += own;
  }
  arena_deinit(&scratch);
  return ok;
}

// Tells the nodes of the kernel during which most bytes are in use.
static bool refuse(const Fitting *f, PassContext *c) {
  MemoryMap map;
  Text nodes;
  text_init(&nodes, c->allocator);
  bool ok = memory_map_init(&map, f->p, NULL);
  if (ok) kernel_print_nodes(f->p->schedules[map.peak]->kernel, &nodes);
  memory_map_deinit(&map);
  ok &= !nodes.out_of_memory;
  c->failed = true;
  if (ok)
    error_at(c->diagnostics, (Position){0},
             "expected a workspace of at most %llu bytes, found at least %zu, even if values are computed again; most "
             "are in use during %s",
             (unsigned long long)c->memory_nbytes, f->least, text_string(&nodes));
  text_deinit(&nodes);
  return ok ? false : pass_out_of_memory(c);
}

static bool is_open(const Program *p, PassContext *c) {
  if (!p->graph->ndims) return false;
  c->failed = true;
  error_at(c->diagnostics, (Position){0},
           "the size of the workspace depends on %s, expected a number for it: --dim %s=%lld", p->graph->dims[0]->name,
           p->graph->dims[0]->name, (long long)p->graph->dims[0]->value);
  return true;
}

static bool fitting_init(Fitting *f, size_t before, PassContext *c, Arena *scratch) {
  Program *p = f->p;
  f->lowering = (RegionLowering){.context = c, .graph = p->graph, .target = c->target, .is_trial = true};
  f->known = ARENA_ARRAY(scratch, Known, p->graph->nvalues + 1);
  f->origin = ARENA_ARRAY(scratch, uint32_t, p->graph->nvalues + 1);
  f->graph = ARENA_NEW(&p->arena, Graph);
  f->least = p->workspace_nbytes < before ? p->workspace_nbytes : before;
  if (!f->known || !f->origin || !f->graph || !lower_scratch_init(&f->lowering.scratch, scratch, p->graph, c->costs))
    return false;
  for (uint32_t i = 0; i < p->graph->nvalues; i++) f->origin[i] = i;
  *f->graph = *p->graph;
  p->graph = f->graph;
  return true;
}

static void warn_of_price(const Fitting *f, size_t before, double operations, PassContext *c) {
  const size_t nbytes = f->p->workspace_nbytes;
  warn_at(c->diagnostics, (Position){0},
          "the workspace is %zu bytes instead of %zu (%.1f %% less), as %zu value%s computed again (%.2g %% more "
          "operations)",
          nbytes, before, 100 * (1 - (double)nbytes / (double)before), f->nagain, f->nagain == 1 ? " is" : "s are",
          operations > 0 ? 100 * f->operations / operations : 0);
}

bool fit_memory(Program *p, size_t before, PassContext *c) {
  if (!c->memory_nbytes) return true;
  if (is_open(p, c)) return false;
  if (p->workspace_nbytes <= c->memory_nbytes) return true;
  const size_t most_rounds = 4 * p->nkernels + 16;
  Arena scratch;
  arena_init(&scratch, c->allocator);
  Fitting f = {.p = p};
  double operations = 0;
  bool ok = fitting_init(&f, before, c, &scratch) && count_operations(p, &operations), is_done = false;
  while (ok && !is_done && p->workspace_nbytes > c->memory_nbytes && f.nagain < most_rounds)
    ok = play_round(&f, &is_done);
  arena_deinit(&scratch);
  if (!ok) return c->failed ? false : pass_out_of_memory(c);
  if (p->workspace_nbytes > c->memory_nbytes) return refuse(&f, c);
  warn_of_price(&f, before, operations, c);
  return true;
}
