// Backward liveness: an output needs a loop if the loop stores it, or if the output needs a loop that reads what the
// loop stores. Loops are visited from the last to the first.
#include "passes/memory/liveness.h"

#include "ir/kernel/needed.h"
#include "passes/memory/loop_needs.h"
#include "passes/memory/outputs_in_place.h"

#include <string.h>

// Sets of outputs

typedef struct Outputs { // an OutputSet that is being built
  bool is_all;
  uint32_t count;
  uint32_t outputs[MOST_TOLD_APART];
} Outputs;

// Merges a set into another one. Both are sorted.
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

// Copies the set to the program's arena. False: out of memory.
static bool copy_outputs(OutputSet *copy, const Outputs *set, Program *p) {
  *copy = (OutputSet){.is_all = set->is_all || set->count == p->graph->noutputs};
  if (copy->is_all || !set->count) return true;
  uint32_t *outputs = ARENA_ARRAY(&p->arena, uint32_t, set->count);
  if (!outputs) return false;
  memcpy(outputs, set->outputs, set->count * sizeof *outputs);
  copy->outputs = outputs;
  copy->count = set->count;
  return true;
}

// What loops read

typedef struct Read {
  size_t loop;       // numbered through all kernels
  struct Read *next; // a read by an earlier loop; NULL: none
} Read;

typedef struct Search {
  Program *program;
  Liveness *found;
  Arena scratch;
  bool *is_marked;        // by ExprId of the current kernel
  uint32_t *next_alike;   // by output: the next output that is the same value, plus 1; 0: none
  Read **value_reads;     // by value->index: reads by loops, the last loop first
  Read **temporary_reads; // by temporary: likewise
  size_t *last_read;      // by value->index: the last kernel that reads the value, plus 1; 0: none
} Search;

static void mark_all(const Kernel *k, const Loop *loop, bool *is_marked) {
  memset(is_marked, 0, k->nexprs * sizeof *is_marked);
  for (size_t i = 0; i < loop->nroots; i++) loop_mark_root(k, loop, &loop->roots[i], is_marked);
}

static bool is_memory_access(const Expr *e) {
  return e->op == EXPR_LOAD || e->op == EXPR_COMBINE;
}

static bool add_read(Search *s, Read **reads, size_t loop) {
  if (*reads && (*reads)->loop == loop) return true;
  Read *read = ARENA_NEW(&s->scratch, Read);
  if (!read) return false;
  *read = (Read){loop, *reads};
  *reads = read;
  return true;
}

static Read **reads_of(const Search *s, size_t kernel, const Access *a) {
  return a->value ? &s->value_reads[a->value->index]
                  : &s->temporary_reads[s->found->first_temporary[kernel] + a->temporary];
}

// Lists the reads of each value and temporary by loops, and finds the last kernel that reads each value.
static bool find_reads(Search *s) {
  const Program *p = s->program;
  for (size_t i = 0; i < p->nkernels; i++)
    for (size_t l = 0; l < p->schedules[i]->nloops; l++) {
      const Schedule *schedule = p->schedules[i];
      const Kernel *k = schedule->kernel;
      mark_all(k, &schedule->loops[l], s->is_marked);
      for (ExprId id = 1; id < k->nexprs; id++) {
        if (!s->is_marked[id] || !is_memory_access(&k->exprs[id])) continue;
        const Access *a = &k->accesses[k->exprs[id].access];
        if (a->value) s->last_read[a->value->index] = i + 1;
        if (!add_read(s, reads_of(s, i, a), s->found->first_loop[i] + l)) return false;
      }
    }
  return true;
}

// Which outputs need a loop

// Adds all outputs that are this value. Every call wants updates, so that an update counts as all outputs.
static void add_value_outputs(const Search *s, const Value *v, Outputs *outputs) {
  for (uint32_t o = v && v->is_output ? v->first_output + 1 : 0; o; o = s->next_alike[o - 1])
    add_outputs(outputs, &(OutputSet){output_is_update(s->program->graph, o - 1), 1, &(uint32_t){o - 1}});
}

// Adds the outputs that need a root of a loop: only the output that the root stores if no loop reads it again, else all
// outputs that need the loop.
static void add_root_outputs(const Search *s, const Kernel *k, size_t loop, const Root *root, Outputs *outputs) {
  const Value *v = root->kind == ROOT_STORE ? k->accesses[root->access].value : NULL;
  bool is_own = v && v->is_output && !s->next_alike[v->first_output] && !s->found->is_read_again[v->index];
  if (is_own) add_value_outputs(s, v, outputs);
  else add_outputs(outputs, &s->found->serves[loop]);
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
  Liveness *f = s->found;
  const Schedule *schedule = s->program->schedules[kernel];
  const Kernel *k = schedule->kernel;
  const size_t first = f->first_loop[kernel], n = f->first_temporary[kernel] + temporary;
  Outputs outputs = {.count = 0};
  for (const Read *read = s->temporary_reads[n]; read && read->loop > maker; read = read->next) {
    const Loop *loop = &schedule->loops[read->loop - first];
    for (size_t r = 0; r < loop->nroots; r++) {
      memset(s->is_marked, 0, k->nexprs * sizeof *s->is_marked);
      loop_mark_root(k, loop, &loop->roots[r], s->is_marked);
      if (reads_temporary(k, s->is_marked, temporary)) add_root_outputs(s, k, read->loop, &loop->roots[r], &outputs);
    }
  }
  add_outputs(&outputs, &f->temporary_serves[n]); // outputs found for another root that stores to it
  return copy_outputs(&f->temporary_serves[n], &outputs, s->program);
}

// Finds the outputs that need the loop: those that it stores, and those that need a later loop that reads what it
// stores.
static bool find_loop_outputs(Search *s, size_t kernel, size_t loop) {
  Liveness *f = s->found;
  const Schedule *schedule = s->program->schedules[kernel];
  const Kernel *k = schedule->kernel;
  const Loop *own = &schedule->loops[loop];
  const size_t at = f->first_loop[kernel] + loop;
  Outputs outputs = {.count = 0};
  for (size_t r = 0; r < own->nroots; r++) {
    if (own->roots[r].kind == ROOT_REDUCE_INNER) continue;
    const Access *stored = &k->accesses[own->roots[r].access];
    const Value *v = stored->value;
    add_value_outputs(s, v, &outputs);
    for (const Read *read = *reads_of(s, kernel, stored); read && read->loop > at; read = read->next) {
      if (v) f->is_read_again[v->index] = true;
      add_outputs(&outputs, &f->serves[read->loop]);
    }
    if (!v && !find_temporary_outputs(s, kernel, at, stored->temporary)) return false;
  }
  return copy_outputs(&f->serves[at], &outputs, s->program);
}

// Numbers loops and temporaries through all kernels.
static bool number_loops(Search *s) {
  Program *p = s->program;
  Liveness *f = s->found;
  size_t most_exprs = 0;
  f->first_loop = ARENA_ARRAY(&p->arena, size_t, p->nkernels + 1);
  f->first_temporary = ARENA_ARRAY(&p->arena, size_t, p->nkernels + 1);
  if (!f->first_loop || !f->first_temporary) return false;
  for (size_t i = 0; i < p->nkernels; i++) {
    f->first_loop[i] = f->nloops;
    f->first_temporary[i] = f->ntemporaries;
    f->nloops += p->schedules[i]->nloops;
    f->ntemporaries += p->schedules[i]->ntemporaries;
    if (p->schedules[i]->kernel->nexprs > most_exprs) most_exprs = p->schedules[i]->kernel->nexprs;
  }
  s->is_marked = ARENA_ARRAY(&s->scratch, bool, most_exprs + 1);
  return s->is_marked;
}

// Links the outputs that are the same value (Search.next_alike).
static bool link_outputs(Search *s) {
  const Graph *g = s->program->graph;
  uint32_t *last = ARENA_ARRAY(&s->scratch, uint32_t, g->nvalues + 1); // the last output that is this value, plus 1
  s->next_alike = ARENA_ARRAY(&s->scratch, uint32_t, g->noutputs + 1);
  if (!last || !s->next_alike) return false;
  for (uint32_t o = 0; o < g->noutputs; o++) {
    const Value *v = g->outputs[o];
    if (last[v->index]) s->next_alike[last[v->index] - 1] = o + 1;
    last[v->index] = o + 1;
  }
  return true;
}

static bool new_arrays(Search *s) {
  Arena *arena = &s->program->arena;
  Liveness *f = s->found;
  const Graph *g = s->program->graph;
  f->serves = ARENA_ARRAY(arena, OutputSet, f->nloops + 1);
  f->temporary_serves = ARENA_ARRAY(arena, OutputSet, f->ntemporaries + 1);
  f->is_read_again = ARENA_ARRAY(arena, bool, g->nvalues + 1);
  f->is_optional = ARENA_ARRAY(arena, bool, g->nvalues + 1);
  f->may_be_unwanted = ARENA_ARRAY(arena, bool, f->ntemporaries + 1);
  f->in_place = ARENA_ARRAY(arena, InPlace, g->noutputs + 1);
  s->value_reads = ARENA_ARRAY(&s->scratch, Read *, g->nvalues + 1);
  s->temporary_reads = ARENA_ARRAY(&s->scratch, Read *, f->ntemporaries + 1);
  s->last_read = ARENA_ARRAY(&s->scratch, size_t, g->nvalues + 1);
  return f->serves && f->temporary_serves && f->is_read_again && f->is_optional && f->may_be_unwanted && f->in_place &&
         s->value_reads && s->temporary_reads && s->last_read;
}

// What a call need not compute if it leaves out outputs.
static void find_optional(const Program *p, Liveness *f) {
  const Graph *g = p->graph;
  for (size_t i = 0; i < g->noutputs; i++) {
    const uint32_t index = g->outputs[i]->index;
    f->is_optional[index] = !output_is_update(g, i) && !program_copies_output(p, i) && !f->is_read_again[index];
  }
  for (size_t i = 0, n = 0; i < p->nkernels; i++)
    for (size_t t = 0; t < p->schedules[i]->ntemporaries; t++, n++)
      f->may_be_unwanted[n] = p->schedules[i]->temporaries[t].reduction != EXPR_NONE && f->temporary_serves[n].count;
}

static bool find_all(Search *s) {
  const Program *p = s->program;
  const Graph *g = p->graph;
  Liveness *f = s->found;
  if (!number_loops(s) || !link_outputs(s) || !new_arrays(s) || !find_reads(s)) return false;
  for (size_t i = p->nkernels; i-- > 0;)
    for (size_t l = p->schedules[i]->nloops; l-- > 0;)
      if (!find_loop_outputs(s, i, l)) return false;
  for (size_t o = 0; o < g->noutputs; o++)
    if (program_copies_output(p, o)) f->is_read_again[g->outputs[o]->index] = true;
  find_optional(p, f);
  return find_in_place(p, f->is_read_again, s->last_read, f->in_place, &s->scratch);
}

bool find_liveness(Program *p) {
  Search s = {.program = p, .found = ARENA_NEW(&p->arena, Liveness)};
  if (!s.found) return false;
  arena_init(&s.scratch, p->arena.allocator);
  const bool ok = find_all(&s);
  arena_deinit(&s.scratch);
  p->liveness = s.found;
  return ok && find_loop_needs(p);
}
