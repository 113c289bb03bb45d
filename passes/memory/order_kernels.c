#include "passes/memory/order_kernels.h"

#include <string.h>

enum { MOST_UNITS = 1 << 11 }; // ordering takes quadratic time

typedef struct ValueUse {
  uint32_t value; // index
  bool is_store;
} ValueUse;

typedef struct Unit { // kernels that stay together (program_unit_first)
  uint32_t first, end;
  const ProgramSliceGroup *slice_group;
  ValueUse *uses; // each value once; a value that the unit stores and reads counts as a store
  size_t nuses;
  size_t scratch_nbytes; // of temporaries and slices
  bool is_done;
} Unit;

typedef struct Life {       // of a value
  uint32_t nstores, nreads; // units, not yet run, that store or read the value
  uint32_t nearlier;        // of a state: the reads, not yet run, that preceded its update in the old order
  uint32_t first_store;     // the first unit that stores the value, plus one; 0: none
  const Value *partner;     // of a state: its update; of an update: its state
  bool is_live;
} Life;

typedef struct Ordering {
  Program *p;
  Arena arena;
  Unit *units;
  size_t nunits;
  Life *lives;     // by value->index
  uint32_t *order; // the units in the new order
} Ordering;

// Units

static void add_use(Unit *u, const Value *v, bool is_store) {
  if (!v || slice_group_is_private(u->slice_group, v)) return;
  for (size_t i = 0; i < u->nuses; i++) {
    if (u->uses[i].value != v->index) continue;
    u->uses[i].is_store |= is_store;
    return;
  }
  u->uses[u->nuses++] = (ValueUse){v->index, is_store};
}

// Bytes of the temporaries of the unit's largest kernel.
static size_t scratch_nbytes(const Ordering *o, const Unit *u) {
  size_t most = 0;
  for (uint32_t kernel = u->first; kernel < u->end && !u->slice_group; kernel++) {
    const Schedule *s = o->p->schedules[kernel];
    size_t nbytes = 0;
    for (size_t i = 0; i < s->ntemporaries; i++)
      if (!s->temporaries[i].is_own) nbytes += (size_t)s->temporaries[i].nelems * type_nbytes(s->temporaries[i].type);
    if (nbytes > most) most = nbytes;
  }
  return most;
}

// Lists the values that the unit's kernels use.
static bool fill_unit(Ordering *o, Unit *u) {
  size_t most = 0;
  for (uint32_t i = u->first; i < u->end; i++) most += o->p->schedules[i]->kernel->naccesses;
  u->uses = ARENA_ARRAY(&o->arena, ValueUse, most + 1);
  for (uint32_t i = u->first; u->uses && i < u->end; i++) {
    const Kernel *k = o->p->schedules[i]->kernel;
    for (AccessId a = 0; a < k->naccesses; a++) add_use(u, k->accesses[a].value, kernel_stores(k, a));
  }
  u->scratch_nbytes = scratch_nbytes(o, u);
  return u->uses;
}

// Groups kernels that run without others in between (program_unit_first).
static bool make_units(Ordering *o) {
  o->units = ARENA_ARRAY(&o->arena, Unit, o->p->nkernels + 1);
  for (uint32_t i = 0; o->units && i < o->p->nkernels; i++) {
    const ProgramSliceGroup *slice_group = program_slice_group(o->p, i);
    Unit *u = &o->units[o->nunits++];
    *u = (Unit){.first = i, .end = program_unit_end(o->p, i), .slice_group = slice_group};
    if (!fill_unit(o, u)) return false;
    i = u->end - 1;
  }
  return o->units;
}

// Lifetimes

static void count_uses(Ordering *o) {
  for (uint32_t i = 0; i < o->nunits; i++)
    for (size_t n = 0; n < o->units[i].nuses; n++) {
      const ValueUse *use = &o->units[i].uses[n];
      Life *l = &o->lives[use->value];
      if (use->is_store) l->nstores++;
      else l->nreads++;
      if (use->is_store && !l->first_store) l->first_store = i + 1;
    }
}

// An update waits for units that read its state and preceded the update in the old order: otherwise it could not be
// stored in the state's memory.
static void count_earlier(Ordering *o) {
  for (uint32_t i = 0; i < o->nunits; i++)
    for (size_t n = 0; n < o->units[i].nuses; n++) {
      Life *l = &o->lives[o->units[i].uses[n].value];
      if (!o->units[i].uses[n].is_store && l->partner && i + 1 < o->lives[l->partner->index].first_store) l->nearlier++;
    }
}

// A state and its update, which share memory, are partners.
static bool lives_init(Ordering *o) {
  const Graph *g = o->p->graph;
  o->lives = ARENA_ARRAY(&o->arena, Life, g->nvalues + 1);
  if (!o->lives) return false;
  for (size_t i = 0; i < g->nstates; i++) {
    const Value *state = graph_state(g, i);
    const Value *update = graph_update(g, i);
    if (!update || !update->producer) continue;
    o->lives[state->index].partner = update;
    o->lives[update->index].partner = state;
  }
  count_uses(o);
  count_earlier(o);
  return true;
}

// Ordering

// The bytes that the value takes in the workspace; 0 for values in the caller's memory.
static size_t taken_nbytes(const Ordering *o, uint32_t value) {
  const Value *v = o->p->graph->values[value];
  return !v->producer || v->is_output ? 0 : value_nbytes(v);
}

static bool is_ready(const Ordering *o, const Unit *u) {
  for (size_t i = 0; i < u->nuses; i++) {
    const Life *l = &o->lives[u->uses[i].value];
    if (!u->uses[i].is_store && l->nstores) return false;
    if (u->uses[i].is_store && l->partner && o->lives[l->partner->index].nearlier) return false;
  }
  return true;
}

// Whether the unit takes no more bytes than it frees. A single number, such as a learning rate, counts as nothing, as
// other units wait for it.
static bool takes_little(const Ordering *o, const Unit *u) {
  size_t taken = 0, freed = 0;
  for (size_t i = 0; i < u->nuses; i++) {
    const Life *l = &o->lives[u->uses[i].value];
    if (u->uses[i].is_store && !l->is_live) taken += taken_nbytes(o, u->uses[i].value);
    if (!u->uses[i].is_store && l->nreads == 1) freed += taken_nbytes(o, u->uses[i].value);
  }
  return taken <= freed || taken <= LINE_NBYTES;
}

// Simulates the unit. Returns the bytes that are live while it runs. *live: on entry, the bytes live before; on return,
// after.
static size_t run_unit(Ordering *o, uint32_t unit, size_t *live) {
  Unit *u = &o->units[unit];
  u->is_done = true;
  size_t freed = 0;
  for (size_t i = 0; i < u->nuses; i++) {
    const uint32_t value = u->uses[i].value;
    Life *l = &o->lives[value];
    if (u->uses[i].is_store) {
      if (!l->is_live) *live += taken_nbytes(o, value);
      l->is_live = true;
      l->nstores--;
    } else {
      if (l->partner && unit + 1 < o->lives[l->partner->index].first_store) l->nearlier--;
      l->nreads--;
    }
    if (!l->nreads && !l->nstores) freed += taken_nbytes(o, value);
  }
  const size_t meanwhile = *live + u->scratch_nbytes;
  *live -= freed;
  return meanwhile;
}

static bool runs_early(const Ordering *o, const Unit *u) {
  return !u->is_done && takes_little(o, u) && is_ready(o, u);
}

// Orders the units, or, with is_kept, only simulates the old order. Returns the peak of live bytes.
static size_t order_units(Ordering *o, bool keeps_order) {
  size_t live = 0, peak = 0;
  for (size_t n = 0; n < o->nunits; n++) {
    uint32_t next = 0;
    while (o->units[next].is_done) next++; // the first unit that is left is always ready
    uint32_t early = next;
    while (!keeps_order && early < o->nunits && !runs_early(o, &o->units[early])) early++;
    if (!keeps_order && early < o->nunits) next = early;
    o->order[n] = next;
    const size_t meanwhile = run_unit(o, next, &live);
    if (meanwhile > peak) peak = meanwhile;
  }
  return peak;
}

static bool forget_order(Ordering *o) {
  for (size_t i = 0; i < o->nunits; i++) o->units[i].is_done = false;
  return lives_init(o);
}

// Applying

static bool move_kernels(Ordering *o) {
  Program *p = o->p;
  Schedule **schedules = ARENA_ARRAY(&o->arena, Schedule *, p->nkernels + 1);
  ProgramSliceGroup *slice_groups = ARENA_ARRAY(&o->arena, ProgramSliceGroup, p->nslice_groups + 1);
  uint32_t nkernels = 0, nslice_groups = 0;
  if (!schedules || !slice_groups) return false;
  for (size_t n = 0; n < o->nunits; n++) {
    const Unit *u = &o->units[o->order[n]];
    if (u->slice_group) {
      slice_groups[nslice_groups] = *u->slice_group;
      slice_groups[nslice_groups].first = nkernels;
      slice_groups[nslice_groups++].end = nkernels + u->end - u->first;
    }
    for (uint32_t i = u->first; i < u->end; i++) schedules[nkernels++] = p->schedules[i];
  }
  memcpy(p->schedules, schedules, p->nkernels * sizeof *schedules);
  if (nslice_groups) memcpy(p->slice_groups, slice_groups, nslice_groups * sizeof *slice_groups);
  program_number_kernels(p);
  return true;
}

bool order_kernels(Program *p, bool is_tight) {
  Ordering o = {.p = p};
  if (p->nkernels > MOST_UNITS) return true;
  arena_init(&o.arena, p->arena.allocator);
  o.order = ARENA_ARRAY(&o.arena, uint32_t, p->nkernels + 1);
  bool ok = o.order && make_units(&o) && lives_init(&o);
  if (ok) {
    const size_t peak = order_units(&o, true);
    ok = forget_order(&o);
    if (ok && order_units(&o, false) < peak + is_tight) ok = move_kernels(&o);
  }
  arena_deinit(&o.arena);
  return ok;
}
