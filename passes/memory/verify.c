// The simulation has one address space: first the workspace, then each value outside of the workspace. It runs
// iterations one after the other, element by element, so that every store that overwrites a later load's operand is
// found, even where emitted code would load a vector before the store.
#include "passes/memory/verify.h"

#include "ir/kernel/needed.h"
#include "ir/support/escape.h"
#include "ir/support/threads.h"

#include <string.h>

typedef uint64_t Stamp; // when a byte was accessed: the loop in the upper half, the block in the lower; 0: never
#define MANY UINT32_MAX // a Stamp's block: several blocks of the loop

typedef struct Byte {
  uint32_t owner;      // value->index + 1, or nvalues + 1 + a temporary's number in the program; 0: none
  Stamp written, read; // the last accesses
} Byte;

typedef struct Walk {
  const Program *p;
  const Schedule *schedule;
  const Kernel *k; // the schedule's
  const Loop *loop;
  Text *why;
  Byte *bytes;
  size_t nbytes;
  size_t *place; // by value->index: the address of its first byte
  bool *is_needed;
  int64_t index[MAX_AXES];              // by axis: the index in the current iteration
  const ProgramSliceGroup *slice_group; // of the current kernel; NULL: none
  int64_t chunk, slice;                 // the slice group's current chunk and slice
  size_t kernel;
  uint32_t *first_temporary; // by kernel: the number, in the program, of its first temporary
  bool *is_invariant;        // by temporary number
  uint32_t loops;            // 1 + the number of the current loop; all loops of a slice group have the first one's
  uint32_t *after;           // by loop: bit i: it runs after the loop i + 1 places before; NULL: not known
  uint32_t block;            // the block of the current iteration
  uint32_t sharing;          // the block, or 0 in a serial loop, whose blocks may access the same memory
  int64_t nsteps;            // loads and stores left
} Walk;

static bool say(const Walk *w, const char *name, const char *what) {
  text_add_user_string(w->why, SINK_TERMINAL, name);
  text_format(w->why, " %s\n", what);
  return false;
}

static bool wrong(const Walk *w, const char *name, const char *what) {
  kernel_print_nodes(w->k, w->why);
  text_format(w->why, ", loop %zu, at", (size_t)(w->loop - w->schedule->loops));
  for (int i = 0; i < w->loop->nouter + w->loop->ninner; i++)
    text_format(w->why, " %s %lld", w->k->axes[w->loop->axes[i]].name, (long long)w->index[w->loop->axes[i]]);
  text_add_string(w->why, ": ");
  return say(w, name, what);
}

static Stamp stamp(const Walk *w) {
  return (Stamp)w->loops << 32 | w->sharing;
}

static bool is_of_other_block(const Walk *w, Stamp s) {
  return s >> 32 == w->loops && (uint32_t)s != w->sharing;
}

// Whether the access ended before the current loop begins. Loops that need none of each other run in any order.
static bool is_ordered(const Walk *w, Stamp s) {
  const uint32_t loops = (uint32_t)(s >> 32), before = w->loops - loops;
  return !s || !w->after || !before || before > MOST_NEEDS || w->after[w->loops - 1] >> (before - 1) & 1;
}

// Places

static const char *name_of(const Walk *w, const Access *a) {
  return a->value ? a->value->name : w->schedule->temporaries[a->temporary].name;
}

static uint32_t owner_of(const Walk *w, const Access *a) {
  if (a->value) return a->value->index + 1;
  uint32_t temporary = a->temporary;
  const size_t maker = program_maker(w->p, w->kernel, &temporary);
  return (uint32_t)w->p->graph->nvalues + 1 + w->first_temporary[maker] + temporary;
}

static size_t first_byte(const Walk *w, const Access *a) {
  const size_t first = a->value ? w->place[a->value->index] : w->schedule->temporaries[a->temporary].offset;
  if (!w->slice_group) return first;
  const SlicedTensor *tensor = a->value ? slice_group_find(w->slice_group->slices, a->value) : NULL;
  if (!tensor || tensor->is_private) return first + (size_t)w->chunk * w->slice_group->chunk_nbytes;
  return first + type_array_nbytes(a->type, (size_t)slice_group_offset(w->slice_group->slices, tensor, w->slice));
}

// The offset of the accessed element in the current iteration; of partial sums, in partial `part`. In elements; in
// bytes for masks.
static int64_t element_at(const Walk *w, const Access *a, int64_t part) {
  int64_t element = a->offset;
  for (int axis = 0; axis < w->k->naxes; axis++) {
    const int64_t stride = a->stride[axis], index = w->index[axis];
    if (a->panel_axis == axis + 1) element += index / LANES * LANES * stride + index % LANES;
    else element += access_is_mask(a) && stride == 1 ? index / 8 : index * stride;
  }
  const Temporary *t = a->value ? NULL : &w->schedule->temporaries[a->temporary];
  if (t && t->reduction) element += part * (t->nelems / loop_nblocks(w->k, &w->schedule->loops[t->loop]));
  return element;
}

static void find_bytes(const Walk *w, const Access *a, int64_t element, size_t *from, size_t *to) {
  const bool is_packed = type_is_packed(a->type);
  *from = first_byte(w, a) + (is_packed ? (size_t)element / 2 : (size_t)element * type_nbytes(a->type));
  *to = *from + (is_packed ? 1 : type_nbytes(a->type));
}

// Loads and stores

static bool is_inside(const Walk *w, const Bound *b) {
  int64_t index = b->offset;
  for (int axis = 0; axis < w->k->naxes; axis++) index += w->index[axis] * b->factor[axis];
  return index >= 0 && index < b->extent;
}

static bool load(Walk *w, const Access *a, int64_t part) {
  size_t from, to;
  for (size_t i = 0; i < a->nbounds; i++)
    if (!is_inside(w, &a->bounds[i])) return true;
  find_bytes(w, a, element_at(w, a, part), &from, &to);
  for (size_t i = from; i < to; i++) {
    Byte *b = &w->bytes[i];
    if (i >= w->nbytes) return wrong(w, name_of(w, a), "is read beyond the end of memory");
    if (b->owner != owner_of(w, a))
      return wrong(w, name_of(w, a), "is read, but its bytes hold another tensor or nothing");
    if (is_of_other_block(w, b->written))
      return wrong(w, name_of(w, a), "is read, but another block of the same loop writes it");
    if (!is_ordered(w, b->written))
      return wrong(w, name_of(w, a), "is read, but the loop that writes it may run later");
    b->read = b->read && b->read >> 32 == w->loops && b->read != stamp(w) ? (Stamp)w->loops << 32 | MANY : stamp(w);
  }
  w->nsteps--;
  return true;
}

// Whether an earlier piece of the same result may have stored to the byte.
static bool may_repeat(const Walk *w, const Byte *b) {
  return w->schedule->follows && (w->slice_group || b->written >> 32 != w->loops);
}

// Simulates a store. A block may store its partial sums many times; a kernel stores every other element once.
static bool store(Walk *w, const Access *a, bool is_partial) {
  size_t from, to;
  find_bytes(w, a, element_at(w, a, w->block), &from, &to);
  const bool is_shared_byte = type_is_packed(a->type) || access_is_mask(a);
  for (size_t i = from; i < to; i++) {
    Byte *b = &w->bytes[i];
    if (i >= w->nbytes) return wrong(w, name_of(w, a), "is stored beyond the end of memory");
    if (b->owner == owner_of(w, a) && !is_partial && !is_shared_byte && !may_repeat(w, b))
      return wrong(w, name_of(w, a), "is stored again, expected once");
    if (is_of_other_block(w, b->written) || is_of_other_block(w, b->read))
      return wrong(w, name_of(w, a), "is stored, but another block of the same loop reads or writes its bytes");
    if (!is_ordered(w, b->written) || !is_ordered(w, b->read))
      return wrong(w, name_of(w, a), "is stored, but an earlier loop that reads or writes its bytes may run later");
    b->owner = owner_of(w, a);
    b->written = stamp(w);
  }
  w->nsteps--;
  return true;
}

// Simulates EXPR_COMBINE: loads the partial sums of all blocks at the current indices on the axes that are not reduced.
static bool load_partials(Walk *w, const Expr *e) {
  const Loop *source = &w->schedule->loops[e->loop];
  int64_t result = 0;
  for (int i = 0; i < source->nfree; i++)
    result = result * w->k->axes[source->axes[i]].extent + w->index[source->axes[i]];
  const int64_t nchunks = loop_ncut_blocks(w->k, source);
  for (int64_t i = 0; i < nchunks; i++)
    if (!load(w, &w->k->accesses[e->access], result * nchunks + i)) return false;
  return true;
}

static bool is_own_memory(const Walk *w, const Access *a) {
  return !a->value && w->schedule->temporaries[a->temporary].is_own;
}

// Simulates the loads that the current iteration needs. Loads at computed indices are skipped, as the simulation
// computes no values.
static bool load_needed(Walk *w) {
  w->nsteps--;
  for (ExprId id = 1; id < w->k->nexprs; id++) {
    const Expr *e = &w->k->exprs[id];
    if (!w->is_needed[id] || (e->op != EXPR_LOAD && e->op != EXPR_COMBINE)) continue;
    const Access *a = &w->k->accesses[e->access];
    if (e->op == EXPR_COMBINE ? !load_partials(w, e) : !e->args[0] && !is_own_memory(w, a) && !load(w, a, 0))
      return false;
  }
  return true;
}

// Iterations

// Advances the index along these axes, the last axis fastest. After the last index, sets all to 0 and returns false.
static bool step(Walk *w, const int *axes, int count) {
  for (int i = count - 1; i >= 0; i--) {
    if (++w->index[axes[i]] < w->k->axes[axes[i]].extent) return true;
    w->index[axes[i]] = 0;
  }
  return false;
}

static bool is_last(const Walk *w, int axis) {
  return w->index[axis] == w->k->axes[axis].extent - 1;
}

static bool are_last(const Walk *w, AxisSet axes) {
  for (int axis = 0; axis < w->k->naxes; axis++)
    if (axes >> axis & 1 && !is_last(w, axis)) return false;
  return true;
}

// Simulates the stores of a sweep that are due now. With is_after: after the inner axes, roots without inner axes.
// Without: roots along inner axes, in the last iteration of the inner axes that they do not vary over.
static bool store_roots(Walk *w, int sweep, bool is_after) {
  const Loop *loop = w->loop;
  const AxisSet inner = loop_inner_axes(loop);
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    const AxisSet own = root_axes(w->k, root) & inner;
    if (root->sweep != sweep || root->kind == ROOT_REDUCE_INNER || !own != is_after) continue;
    if (own && !are_last(w, inner & ~own)) continue;
    const Access *a = &w->k->accesses[root->access];
    if (!is_own_memory(w, a) && !store(w, a, root->kind == ROOT_REDUCE_OUTER)) return false;
  }
  return true;
}

static void find_block(Walk *w) {
  const Loop *loop = w->loop;
  int64_t result = 0, other = 0;
  for (int i = 0; i < loop->nfree; i++) result = result * w->k->axes[loop->axes[i]].extent + w->index[loop->axes[i]];
  for (int i = loop->nfree; i < loop->nouter; i++)
    other = other * w->k->axes[loop->axes[i]].extent + w->index[loop->axes[i]];
  other = (loop_tile(loop) ? w->index[loop->axes[0]] : other) / loop_block_length(w->k, loop);
  w->block = (uint32_t)(result * loop_ncut_blocks(w->k, loop) + other);
  w->sharing = w->slice_group ? (uint32_t)w->chunk : loop->is_serial ? 0 : w->block;
}

static bool is_end_of_tile(const Walk *w) {
  const int axis = w->loop->axes[0];
  return is_last(w, axis) || (w->index[axis] + 1) % loop_block_length(w->k, w->loop) == 0;
}

// The inner axes, outermost first. With sums in lanes, the vector axis is outside of the middle axes.
static void find_inner_order(const Loop *loop, int *order) {
  for (int i = 0; i < loop->ninner; i++)
    order[(i + loop_sums_in_lanes(loop)) % loop->ninner] = loop->axes[loop->nouter + i];
}

// Simulates a sweep over the inner axes. In a tiled loop, each tile is a step, and has its own block and its own stores
// at the end.
static bool walk_sweep(Walk *w, int sweep) {
  const Loop *loop = w->loop;
  int inner[MAX_AXES] = {0};
  find_inner_order(loop, inner);
  memset(w->is_needed, 0, w->k->nexprs * sizeof *w->is_needed);
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].sweep == sweep) loop_mark_root(w->k, loop, &loop->roots[i], w->is_needed);
  bool is_empty = axes_nelems(w->k, loop_inner_axes(loop)) == 0, goes_on = !is_empty;
  while (goes_on && w->nsteps > 0) {
    if (loop_tile(loop)) find_block(w);
    if (!load_needed(w) || !store_roots(w, sweep, false)) return false;
    if (loop_tile(loop) && is_end_of_tile(w) && !store_roots(w, sweep, true)) return false;
    goes_on = step(w, inner, loop->ninner);
  }
  return loop_tile(loop) || store_roots(w, sweep, true);
}

static bool walk_loop(Walk *w) {
  memset(w->index, 0, sizeof w->index);
  if (!w->slice_group) w->loops++; // also if it is idle
  if (loop_is_idle(w->k, w->loop)) return true;
  do {
    find_block(w);
    for (int sweep = 0; sweep < w->loop->nsweeps; sweep++)
      if (!walk_sweep(w, sweep)) return false;
  } while (w->nsteps > 0 && step(w, w->loop->axes, w->loop->nouter));
  return true;
}

static bool is_temporary(const Walk *w, uint32_t owner) {
  return owner > w->p->graph->nvalues;
}

static bool is_invariant(const Walk *w, uint32_t owner) {
  return is_temporary(w, owner) && w->is_invariant[owner - w->p->graph->nvalues - 1];
}

// Temporaries lose their data after their unit (the kernel and the kernels that follow it), except invariant
// temporaries.
static void forget_temporaries(Walk *w) {
  for (size_t i = 0; i < w->nbytes; i++)
    if (is_temporary(w, w->bytes[i].owner) && !is_invariant(w, w->bytes[i].owner)) w->bytes[i].owner = 0;
}

// Private values lose their data after each slice. Invariant temporaries lose theirs when a new row of slices begins.
static void forget_chunk(Walk *w, bool is_first) {
  const size_t first = w->slice_group->offset + (size_t)w->chunk * w->slice_group->chunk_nbytes;
  for (size_t i = first; i < first + w->slice_group->chunk_nbytes; i++)
    if (is_first || !is_invariant(w, w->bytes[i].owner)) w->bytes[i].owner = 0;
}

static bool walk_kernel(Walk *w, size_t kernel, bool is_first, Arena *scratch) {
  w->schedule = w->p->schedules[kernel];
  w->k = w->schedule->kernel;
  w->is_needed = ARENA_ARRAY(scratch, bool, w->k->nexprs);
  w->why->out_of_memory |= !w->is_needed;
  w->kernel = kernel;
  if (!w->schedule->follows || w->slice_group) forget_temporaries(w);
  for (size_t l = 0; w->is_needed && l < w->schedule->nloops; l++) {
    w->loop = &w->schedule->loops[l];
    if ((is_first || !w->loop->is_invariant) && !walk_loop(w)) return false;
  }
  return true;
}

static bool walk_chunk(Walk *w, Arena *scratch) {
  const int64_t first = slice_group_first_slice(w->slice_group, w->chunk),
                end = slice_group_first_slice(w->slice_group, w->chunk + 1);
  for (w->slice = first; w->slice < end; w->slice++) {
    const bool is_first = w->slice == first || slice_group_is_new_row(w->slice_group->slices, w->slice);
    forget_chunk(w, is_first);
    for (size_t i = w->slice_group->first; i < w->slice_group->end && w->nsteps > 0; i++)
      if (!walk_kernel(w, i, is_first, scratch)) return false;
  }
  return true;
}

static bool walk_slice_group(Walk *w, const ProgramSliceGroup *slice_group, Arena *scratch) {
  bool is_right = true;
  w->slice_group = slice_group;
  const uint32_t first = w->loops++;
  for (w->chunk = 0; w->chunk < slice_group->nchunks && is_right; w->chunk++) is_right = walk_chunk(w, scratch);
  w->slice_group = NULL;
  w->loops = first;
  for (size_t i = slice_group->first; i < slice_group->end; i++) w->loops += (uint32_t)w->p->schedules[i]->nloops;
  return is_right;
}

static bool list_temporaries(Walk *w, Arena *scratch) {
  uint32_t count = 0;
  w->first_temporary = ARENA_ARRAY(scratch, uint32_t, w->p->nkernels + 1);
  for (size_t i = 0; w->first_temporary && i < w->p->nkernels; i++) {
    w->first_temporary[i] = count;
    count += (uint32_t)w->p->schedules[i]->ntemporaries;
  }
  w->is_invariant = ARENA_ARRAY(scratch, bool, count + 1);
  const bool ok = w->first_temporary && w->is_invariant;
  for (size_t i = 0, n = 0; ok && i < w->p->nkernels; i++)
    for (size_t t = 0; t < w->p->schedules[i]->ntemporaries; t++)
      w->is_invariant[n++] = w->p->schedules[i]->temporaries[t].is_invariant;
  w->why->out_of_memory |= !ok;
  return ok;
}

// Finds the loops that needs order, directly or through loops in between.
static bool find_order(Walk *w, Arena *scratch) {
  const Liveness *f = w->p->liveness;
  if (!f || !f->needs) return true;
  w->after = ARENA_ARRAY(scratch, uint32_t, f->nloops + 1);
  w->why->out_of_memory |= !w->after;
  for (size_t i = 0; w->after && i < f->nloops; i++)
    for (size_t before = 1; before <= MOST_NEEDS && before <= i; before++)
      if (f->needs[i] >> (before - 1) & 1)
        w->after[i] |= 1U << (before - 1) | (before < MOST_NEEDS ? w->after[i - before] << before : 0);
  return w->after;
}

static bool walk_program(Walk *w, Arena *scratch) {
  if (!list_temporaries(w, scratch) || !find_order(w, scratch)) return false;
  for (size_t i = 0; i < w->p->nkernels; i++) {
    const ProgramSliceGroup *slice_group = program_slice_group(w->p, i);
    if (slice_group ? !walk_slice_group(w, slice_group, scratch) : !walk_kernel(w, i, true, scratch)) return false;
    if (slice_group) i = slice_group->end - 1;
  }
  return true;
}

static bool verify_whole(const Walk *w, const Value *v) {
  for (size_t b = 0; b < value_nbytes(v); b++)
    if (w->bytes[w->place[v->index] + b].owner != v->index + 1)
      return say(w, v->name, "has elements that no kernel stores");
  return true;
}

// The state in whose memory the output is stored; NULL: none, or the call reads the state from the workspace.
static const Value *output_state(const Program *p, size_t output) {
  const Graph *g = p->graph;
  for (size_t i = 0; i < g->nstates; i++) {
    const Value *state = graph_state(g, i);
    if (g->states[i].output == (int64_t)output) return p->is_staged[state->index] ? NULL : state;
  }
  return NULL;
}

// Simulates the copies to outputs at the end of a call, in their order. A copy to a state overwrites its old value.
static bool walk_copies(Walk *w) {
  const Graph *g = w->p->graph;
  for (size_t i = 0; i < g->noutputs; i++) {
    const Value *v = g->outputs[i], *state = program_copies_output(w->p, i) ? output_state(w->p, i) : NULL;
    if (!verify_whole(w, v)) return false;
    for (size_t b = 0; state && state != v && b < value_nbytes(state); b++)
      w->bytes[w->place[state->index] + b].owner = 0;
  }
  return true;
}

static bool is_private(const Program *p, const Value *v) {
  const uint32_t kernel = v->producer ? p->first_kernel[v->producer->index] : UINT32_MAX;
  return kernel != UINT32_MAX && slice_group_is_private(program_slice_group(p, kernel), v);
}

// An update's place is its state's place, unless the update is copied there.
static void place_updates(Walk *w) {
  const Graph *g = w->p->graph;
  for (size_t i = 0; i < g->noutputs; i++) {
    const Value *state = program_copies_output(w->p, i) ? NULL : output_state(w->p, i);
    if (state) w->place[g->outputs[i]->index] = w->place[state->index];
  }
}

// Sets each value's place. False: a value extends beyond the workspace.
static bool find_places(Walk *w) {
  const Graph *g = w->p->graph;
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    const size_t nbytes = w->p->is_in_workspace[i] && is_private(w->p, v) ? 0 // its chunks are checked
                                                                          : value_nbytes(v);
    w->place[i] = w->p->is_in_workspace[i] ? w->p->value_offset[i] : w->nbytes;
    if (!w->p->is_in_workspace[i]) w->nbytes += nbytes;
    else if (w->place[i] + nbytes > w->p->workspace_nbytes) return say(w, v->name, "ends beyond the workspace");
  }
  place_updates(w);
  return true;
}

// The bytes of inputs and constants hold their values from the start.
static void own_operands(Walk *w) {
  const Graph *g = w->p->graph;
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    const size_t nbytes = v->producer ? 0 : value_nbytes(v);
    for (size_t b = 0; b < nbytes; b++) w->bytes[w->place[i] + b].owner = (uint32_t)i + 1;
  }
}

bool memory_verify(const Program *p, int64_t *nsteps, Text *why) {
  Arena scratch;
  if (p->graph->ndims) return true;
  arena_init(&scratch, p->arena.allocator);
  Walk w = {.p = p, .why = why, .nsteps = *nsteps, .nbytes = p->workspace_nbytes};
  w.place = ARENA_ARRAY(&scratch, size_t, p->graph->nvalues + 1);
  bool is_right = w.place && find_places(&w);
  if (is_right && w.nbytes <= (size_t)*nsteps) {
    w.bytes = ARENA_ARRAY(&scratch, Byte, w.nbytes + 1);
    if (w.bytes) own_operands(&w);
    is_right = w.bytes && walk_program(&w, &scratch) && (w.nsteps <= 0 || walk_copies(&w));
  }
  why->out_of_memory |= !w.place || (w.nbytes <= (size_t)*nsteps && !w.bytes);
  *nsteps = w.nsteps;
  arena_deinit(&scratch);
  return is_right && !why->out_of_memory;
}
