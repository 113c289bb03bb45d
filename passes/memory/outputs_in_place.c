// An output may use an input's memory if no kernel reads the input after it has stored the output, or if the kernel
// that stores the output reads each element of the input before it stores there.
#include "passes/memory/outputs_in_place.h"

#include "ir/kernel/overwrite.h"

#include <stdlib.h>

typedef struct Donor { // an input whose memory an output may use
  const Value *input;
  uint32_t number;
  size_t last_read; // the last kernel that reads the input, plus 1; 0: none
} Donor;

typedef struct Maker { // the kernel that stores an output
  size_t kernel;
  uint32_t nstores; // roots that store the output; only outputs with one root can be in place
} Maker;

typedef struct Search {
  const Program *program;
  Donor *donors; // ordered by type, shape and last_read
  size_t count;
  Maker *makers;   // by output
  bool *is_needed; // by ExprId of the current kernel
} Search;

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

static int compare_donors(const void *a, const void *b) {
  const Donor *x = a, *y = b;
  int order = compare_values(x->input, y->input);
  if (!order) order = compare_numbers((int64_t)x->last_read, (int64_t)y->last_read);
  return order ? order : compare_numbers(y->number, x->number); // descending: find_donors searches backwards
}

// Finds, by output, the last kernel that stores it and how many loops do.
static void find_makers(Search *p) {
  const Program *program = p->program;
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

static void list_donors(Search *p, const bool *is_read_again, const size_t *last_read) {
  const Graph *g = p->program->graph;
  for (uint32_t i = 0; i < g->ninputs; i++) {
    const Value *v = g->inputs[i];
    const size_t last = last_read[v->index];
    if (!is_read_again[v->index] && !v->is_output)
      p->donors[p->count++] = (Donor){v, i, last ? end_of(p->program, last - 1) : 0};
  }
  qsort(p->donors, p->count, sizeof *p->donors, compare_donors);
}

// The number of donors that precede, in order, the donors of v's type and shape that are read after the kernel.
static size_t count_before(const Search *p, const Value *v, size_t kernel) {
  size_t low = 0, high = p->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const Donor *donor = &p->donors[middle];
    int order = compare_values(donor->input, v);
    if (order < 0 || (order == 0 && donor->last_read <= kernel + 1)) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Finds the inputs whose memory the output may use. Inputs that the output's own kernel reads come first, then inputs
// by their last reads, latest first.
static void find_donors(const Search *p, size_t output, InPlace *found) {
  const Program *program = p->program;
  const ProgramSliceGroup *slice_group = program_slice_group(program, p->makers[output].kernel);
  const size_t kernel = slice_group ? slice_group->first : p->makers[output].kernel;
  const Value *v = program->graph->outputs[output];
  for (size_t i = count_before(p, v, kernel); i-- > 0 && found->count < MOST_IN_PLACE;) {
    const Donor *donor = &p->donors[i];
    bool is_stored = false;
    if (compare_values(donor->input, v) != 0) break;
    if (donor->last_read <= kernel ||
        (!slice_group && schedule_may_overwrite(program->schedules[kernel], donor->input, v, &is_stored, p->is_needed)))
      found->inputs[found->count++] = donor->number;
  }
}

static int compare_inputs(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

// Adds the state to its update's donors: the memory plan always allows it.
static void add_state_donor(InPlace *in_place, uint32_t state) {
  for (uint32_t i = 0; i < in_place->count; i++)
    if (in_place->inputs[i] == state) return;
  in_place->inputs[in_place->count < MOST_IN_PLACE ? in_place->count++ : 0] = state;
}

static size_t most_exprs(const Program *p) {
  size_t most = 0;
  for (size_t i = 0; i < p->nkernels; i++)
    if (p->schedules[i]->kernel->nexprs > most) most = p->schedules[i]->kernel->nexprs;
  return most;
}

bool find_in_place(const Program *p, const bool *is_read_again, const size_t *last_read, InPlace *in_place,
                   Arena *scratch) {
  const Graph *g = p->graph;
  Search s = {.program = p,
              .donors = ARENA_ARRAY(scratch, Donor, g->ninputs + 1),
              .makers = ARENA_ARRAY(scratch, Maker, g->noutputs + 1),
              .is_needed = ARENA_ARRAY(scratch, bool, most_exprs(p) + 1)};
  if (!s.donors || !s.makers || !s.is_needed) return false;
  list_donors(&s, is_read_again, last_read);
  find_makers(&s);
  for (size_t o = 0; o < g->noutputs; o++)
    if (s.makers[o].nstores == 1 && !program_copies_output(p, o)) find_donors(&s, o, &in_place[o]);
  for (size_t i = 0; i < g->nstates; i++)
    if (g->states[i].output >= 0) add_state_donor(&in_place[g->states[i].output], g->states[i].input);
  for (size_t o = 0; o < g->noutputs; o++)
    qsort(in_place[o].inputs, in_place[o].count, sizeof *in_place[o].inputs, compare_inputs);
  return true;
}
