// Backward liveness: an output needs a loop if the loop stores it, or if the output needs a loop that reads what the
// loop stores. Loops are visited from the last to the first.
#include "backends/codegen/emit/liveness.h"

#include "ir/kernel/needed.h"
#include "ir/kernel/overwrite.h"

#include <stdlib.h>
#include <string.h>

bool output_is_copy(const Graph *g, size_t i) {
  const Value *v = g->outputs[i];
  return !v->producer || v->first_output != i;
}

bool output_is_update(const Graph *g, size_t i) {
  return i >= g->noutputs - g->nupdates;
}

// Sets of outputs

typedef struct Outputs { // an OutputSet that is being built
  bool is_all;
  uint32_t count;
  uint32_t outputs[MOST_TOLD_APART];
} Outputs;

static void add_outputs(Outputs *set, const OutputSet *more) {
  uint32_t both[2 * MOST_TOLD_APART], count = 0, i = 0, k = 0;
  set->is_all |= more->is_all;
  if (set->is_all) return;
  while (i < set->count || k < more->count) {
    bool is_own = k == more->count || (i < set->count && set->outputs[i] <= more->outputs[k]);
    uint32_t next = is_own ? set->outputs[i++] : more->outputs[k++];
    if (!count || both[count - 1] != next) both[count++] = next;
  }
  set->is_all = count > MOST_TOLD_APART;
  set->count = count;
  if (!set->is_all) memcpy(set->outputs, both, count * sizeof *both);
}

// Copies the set to the arena. False: out of memory.
static bool copy_outputs(OutputSet *copy, const Outputs *set, size_t noutputs, Arena *arena) {
  *copy = (OutputSet){.is_all = set->is_all || set->count == noutputs};
  if (copy->is_all || !set->count) return true;
  uint32_t *outputs = ARENA_ARRAY(arena, uint32_t, set->count);
  if (!outputs) return false;
  memcpy(outputs, set->outputs, set->count * sizeof *outputs);
  copy->outputs = outputs;
  copy->count = set->count;
  return true;
}

// What loops read

typedef struct Search {
  Flow *f;
  Arena *arena;    // of the result
  bool *is_marked; // by ExprId of the current kernel
} Search;

static void mark_all(const Kernel *k, const Loop *loop, bool *is_marked) {
  memset(is_marked, 0, k->nexprs * sizeof *is_marked);
  for (size_t i = 0; i < loop->nroots; i++) loop_mark_root(k, loop, &loop->roots[i], is_marked);
}

static bool is_memory_access(const Expr *e) {
  return e->op == EXPR_LOAD || e->op == EXPR_COMBINE;
}

static bool add_read(Search *s, Read **reads, size_t kernel, size_t loop) {
  if (*reads && (*reads)->loop == loop) return true;
  Read *read = ARENA_NEW(s->arena, Read);
  if (!read) return false;
  *read = (Read){kernel, loop, *reads};
  *reads = read;
  return true;
}

static Read **reads_of(const Flow *f, size_t kernel, const Access *a) {
  return a->value ? &f->value_reads[a->value->index] : &f->temporary_reads[f->first_temporary[kernel] + a->temporary];
}

static bool find_reads(Search *s) {
  const Program *p = s->f->program;
  for (size_t i = 0; i < p->nkernels; i++)
    for (size_t l = 0; l < p->schedules[i]->nloops; l++) {
      const Schedule *schedule = p->schedules[i];
      const Kernel *k = schedule->kernel;
      mark_all(k, &schedule->loops[l], s->is_marked);
      for (ExprId id = 1; id < k->nexprs; id++) {
        if (!s->is_marked[id] || !is_memory_access(&k->exprs[id])) continue;
        Read **reads = reads_of(s->f, i, &k->accesses[k->exprs[id].access]);
        if (!add_read(s, reads, i, s->f->first_loop[i] + l)) return false;
      }
    }
  return true;
}

// Which outputs need a loop

// Adds all outputs that are this value. Every call wants updates, so that an update counts as all outputs.
static void add_value_outputs(const Flow *f, const Value *v, Outputs *outputs) {
  for (uint32_t o = v && v->is_output ? v->first_output + 1 : 0; o; o = f->next_alike[o - 1])
    add_outputs(outputs, &(OutputSet){output_is_update(f->program->graph, o - 1), 1, &(uint32_t){o - 1}});
}

// Adds the outputs that need a root of a loop: only the output that the root stores if no loop reads it again, else all
// outputs that need the loop.
static void add_root_outputs(const Flow *f, const Kernel *k, size_t loop, const Root *root, Outputs *outputs) {
  const Value *v = root->kind == ROOT_STORE ? k->accesses[root->access].value : NULL;
  bool is_own = v && v->is_output && !f->next_alike[v->first_output] && !f->is_read_again[v->index];
  if (is_own) add_value_outputs(f, v, outputs);
  else add_outputs(outputs, &f->serves[loop]);
}

static bool reads_temporary(const Kernel *k, const bool *is_marked, uint32_t temporary) {
  for (ExprId id = 1; id < k->nexprs; id++) {
    const Expr *e = &k->exprs[id];
    if (!is_marked[id] || !is_memory_access(e)) continue;
    if (!k->accesses[e->access].value && k->accesses[e->access].temporary == temporary) return true;
  }
  return false;
}

// An output needs a temporary if it needs a root of a later loop that reads the temporary.
static bool find_temporary_outputs(Search *s, size_t kernel, size_t maker, uint32_t temporary) {
  Flow *f = s->f;
  const Schedule *schedule = f->program->schedules[kernel];
  const Kernel *k = schedule->kernel;
  const size_t first = f->first_loop[kernel], n = f->first_temporary[kernel] + temporary;
  Outputs outputs = {.count = 0};
  for (const Read *read = f->temporary_reads[n]; read && read->loop > maker; read = read->next) {
    const Loop *loop = &schedule->loops[read->loop - first];
    for (size_t r = 0; r < loop->nroots; r++) {
      memset(s->is_marked, 0, k->nexprs * sizeof *s->is_marked);
      loop_mark_root(k, loop, &loop->roots[r], s->is_marked);
      if (reads_temporary(k, s->is_marked, temporary)) add_root_outputs(f, k, read->loop, &loop->roots[r], &outputs);
    }
  }
  add_outputs(&outputs, &f->temporary_serves[n]); // outputs found for another root that stores to it
  return copy_outputs(&f->temporary_serves[n], &outputs, f->program->graph->noutputs, s->arena);
}

static bool find_loop_outputs(Search *s, size_t kernel, size_t loop) {
  Flow *f = s->f;
  const Schedule *schedule = f->program->schedules[kernel];
  const Kernel *k = schedule->kernel;
  const Loop *own = &schedule->loops[loop];
  const size_t at = f->first_loop[kernel] + loop;
  Outputs outputs = {.count = 0};
  for (size_t r = 0; r < own->nroots; r++) {
    if (own->roots[r].kind == ROOT_REDUCE_INNER) continue;
    const Access *stored = &k->accesses[own->roots[r].access];
    const Value *v = stored->value;
    add_value_outputs(f, v, &outputs);
    for (const Read *read = *reads_of(f, kernel, stored); read && read->loop > at; read = read->next) {
      if (v) f->is_read_again[v->index] = true;
      add_outputs(&outputs, &f->serves[read->loop]);
    }
    if (!v && !find_temporary_outputs(s, kernel, at, stored->temporary)) return false;
  }
  return copy_outputs(&f->serves[at], &outputs, f->program->graph->noutputs, s->arena);
}

static bool number_loops(Flow *f, Arena *arena) {
  const Program *p = f->program;
  f->first_loop = ARENA_ARRAY(arena, size_t, p->nkernels + 1);
  f->first_temporary = ARENA_ARRAY(arena, size_t, p->nkernels + 1);
  if (!f->first_loop || !f->first_temporary) return false;
  for (size_t i = 0; i < p->nkernels; i++) {
    f->first_loop[i] = f->nloops;
    f->first_temporary[i] = f->ntemporaries;
    f->nloops += p->schedules[i]->nloops;
    f->ntemporaries += p->schedules[i]->ntemporaries;
  }
  return true;
}

static size_t most_exprs(const Program *p) {
  size_t most = 0;
  for (size_t i = 0; i < p->nkernels; i++)
    if (p->schedules[i]->kernel->nexprs > most) most = p->schedules[i]->kernel->nexprs;
  return most;
}

static bool link_outputs(Flow *f, Arena *arena) {
  const Graph *g = f->program->graph;
  uint32_t *last = ARENA_ARRAY(arena, uint32_t, g->nvalues + 1); // the last output that is this value, plus 1
  f->next_alike = ARENA_ARRAY(arena, uint32_t, g->noutputs + 1);
  if (!last || !f->next_alike) return false;
  for (uint32_t o = 0; o < g->noutputs; o++) {
    const Value *v = g->outputs[o];
    if (last[v->index]) f->next_alike[last[v->index] - 1] = o + 1;
    last[v->index] = o + 1;
  }
  return true;
}

bool flow_find(Flow *f, const Program *p, Arena *arena) {
  const Graph *g = p->graph;
  *f = (Flow){.program = p};
  if (!number_loops(f, arena) || !link_outputs(f, arena)) return false;
  f->serves = ARENA_ARRAY(arena, OutputSet, f->nloops + 1);
  f->temporary_serves = ARENA_ARRAY(arena, OutputSet, f->ntemporaries + 1);
  f->is_read_again = ARENA_ARRAY(arena, bool, g->nvalues + 1);
  f->value_reads = ARENA_ARRAY(arena, Read *, g->nvalues + 1);
  f->temporary_reads = ARENA_ARRAY(arena, Read *, f->ntemporaries + 1);
  Search s = {f, arena, ARENA_ARRAY(arena, bool, most_exprs(p) + 1)};
  if (!f->serves || !f->temporary_serves || !f->is_read_again || !f->value_reads || !f->temporary_reads || !s.is_marked)
    return false;
  if (!find_reads(&s)) return false;
  for (size_t i = p->nkernels; i-- > 0;)
    for (size_t l = p->schedules[i]->nloops; l-- > 0;)
      if (!find_loop_outputs(&s, i, l)) return false;
  for (size_t o = 0; o < g->noutputs; o++)
    if (program_copies_output(p, o)) f->is_read_again[g->outputs[o]->index] = true;
  return true;
}

// In place

typedef struct Place { // an input whose memory an output may use
  const Value *input;
  uint32_t number;
  size_t last_read; // the last kernel that reads the input, plus 1; 0: none
} Place;

typedef struct Maker { // the kernel that stores an output
  size_t kernel;
  uint32_t nstores; // roots that store the output; only outputs with one root can be in place
} Maker;

typedef struct Places {
  const Flow *f;
  Place *places; // ordered by type, shape and last_read
  size_t count;
  Maker *makers;   // by output
  bool *is_needed; // by ExprId of the current kernel
} Places;

static int compare_numbers(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

// Orders values by type and shape.
static int compare_values(const Value *a, const Value *b) {
  int order = compare_numbers(a->type, b->type);
  if (!order) order = compare_numbers(a->shape.rank, b->shape.rank);
  for (int i = 0; i < a->shape.rank && !order; i++) {
    const Extent e = a->shape.extent[i], other = b->shape.extent[i];
    order = compare_numbers(extent_value(e), extent_value(other));
    if (!order) order = compare_numbers((int64_t)extent_monomial(e), (int64_t)extent_monomial(other));
  }
  return order;
}

static int compare_places(const void *a, const void *b) {
  const Place *x = a, *y = b;
  int order = compare_values(x->input, y->input);
  if (!order) order = compare_numbers((int64_t)x->last_read, (int64_t)y->last_read);
  return order ? order : compare_numbers(y->number, x->number); // descending: find_places searches backwards
}

static void find_makers(Places *p) {
  const Program *program = p->f->program;
  for (size_t i = 0; i < program->nkernels; i++)
    for (size_t l = 0; l < program->schedules[i]->nloops; l++) {
      const Schedule *s = program->schedules[i];
      const Kernel *k = s->kernel;
      for (size_t r = 0; r < s->loops[l].nroots; r++) {
        const Root *root = &s->loops[l].roots[r];
        const Value *v = root->kind == ROOT_STORE ? k->accesses[root->access].value : NULL;
        if (!v || !v->is_output) continue;
        Maker *maker = &p->makers[v->first_output];
        *maker = (Maker){i, maker->nstores + 1};
      }
    }
}

// The kernel after which this kernel's accesses are over, plus 1: the slice group's last kernel for a kernel of a slice
// group, as slices run in any order.
static size_t end_of(const Program *p, size_t kernel) {
  const ProgramSliceGroup *slice_group = program_slice_group(p, kernel);
  return slice_group ? slice_group->end : kernel + 1;
}

static void list_places(Places *p) {
  const Graph *g = p->f->program->graph;
  for (uint32_t i = 0; i < g->ninputs; i++) {
    const Value *v = g->inputs[i];
    if (p->f->is_read_again[v->index] || v->is_output) continue;
    const Read *last = p->f->value_reads[v->index];
    p->places[p->count++] = (Place){v, i, last ? end_of(p->f->program, last->kernel) : 0};
  }
  qsort(p->places, p->count, sizeof *p->places, compare_places);
}

// The number of places that precede, in order, the places of v's type and shape that are read after the kernel.
static size_t count_before(const Places *p, const Value *v, size_t kernel) {
  size_t low = 0, high = p->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const Place *place = &p->places[middle];
    int order = compare_values(place->input, v);
    if (order < 0 || (order == 0 && place->last_read <= kernel + 1)) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Finds the inputs whose memory the output may use. Inputs that the output's own kernel reads come first, then inputs
// by their last reads, latest first.
static void find_places(const Places *p, size_t output, InPlace *found) {
  const Program *program = p->f->program;
  const ProgramSliceGroup *slice_group = program_slice_group(program, p->makers[output].kernel);
  const size_t kernel = slice_group ? slice_group->first : p->makers[output].kernel;
  const Value *v = program->graph->outputs[output];
  for (size_t i = count_before(p, v, kernel); i-- > 0 && found->count < MOST_IN_PLACE;) {
    const Place *place = &p->places[i];
    bool is_stored = false;
    if (compare_values(place->input, v) != 0) break;
    if (place->last_read <= kernel ||
        (!slice_group && schedule_may_overwrite(program->schedules[kernel], place->input, v, &is_stored, p->is_needed)))
      found->inputs[found->count++] = place->number;
  }
}

static int compare_inputs(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

// Adds the state to its update's places: the memory plan always allows it.
static void add_place(InPlace *places, uint32_t state) {
  for (uint32_t i = 0; i < places->count; i++)
    if (places->inputs[i] == state) return;
  places->inputs[places->count < MOST_IN_PLACE ? places->count++ : 0] = state;
}

bool flow_find_in_place(const Flow *f, InPlace *in_place, const Allocator *allocator) {
  const Graph *g = f->program->graph;
  Arena scratch;
  arena_init(&scratch, allocator);
  Places p = {.f = f,
              .places = ARENA_ARRAY(&scratch, Place, g->ninputs + 1),
              .makers = ARENA_ARRAY(&scratch, Maker, g->noutputs + 1),
              .is_needed = ARENA_ARRAY(&scratch, bool, most_exprs(f->program) + 1)};
  const bool ok = p.places && p.makers && p.is_needed;
  if (ok) list_places(&p);
  if (ok) find_makers(&p);
  for (size_t o = 0; ok && o < g->noutputs; o++) {
    in_place[o].count = 0;
    if (p.makers[o].nstores == 1 && !program_copies_output(f->program, o)) find_places(&p, o, &in_place[o]);
  }
  for (size_t i = 0; ok && i < g->nstates; i++)
    if (g->states[i].output >= 0) add_place(&in_place[g->states[i].output], g->states[i].input);
  for (size_t o = 0; ok && o < g->noutputs; o++)
    qsort(in_place[o].inputs, in_place[o].count, sizeof *in_place[o].inputs, compare_inputs);
  arena_deinit(&scratch);
  return ok;
}
