// Runs the program's loop trees over a map of its memory, byte by byte. The map has one address space: first the
// workspace, then each value outside of the workspace.
#include "passes/memory/verify.h"

#include "ir/kernel/domain.h"
#include "ir/loops/execute.h"
#include "ir/support/escape.h"
#include "ir/support/threads.h"

#include <string.h>

typedef uint64_t Stamp; // when a byte was accessed: the loop in the upper half, the block in the lower; 0: never
#define MANY UINT32_MAX // a Stamp's block: several blocks of the loop

typedef struct Byte {
  uint32_t owner;      // value->index + 1, or nvalues + 1 + a temporary's number in the program; 0: none
  bool is_invariant;   // the owner is an invariant temporary
  Stamp written, read; // the last accesses
} Byte;

typedef struct Walk {
  const Program *p;
  Text *why;
  Byte *bytes;
  size_t nbytes;
  size_t *place; // by value->index: the address of its first byte
  ValueDomain domain;
  Buffer *tensors, **tensor_of;        // by value->index
  Buffer *temporaries, **temporary_of; // of the current kernel
  // The current loop, kernel, slice:
  size_t kernel;
  const Schedule *schedule;
  const Loop *loop;
  const ProgramSliceGroup *slice_group; // of the kernel; NULL: none
  int64_t chunk, slice;
  uint32_t loops; // 1 + the number of the loop; all loops of a slice group have the first one's
  Blocks blocks;
  uint32_t *after; // by loop: bit i: it runs after the loop i + 1 places before; NULL: not known
  int64_t nsteps;  // of the executor, left
  bool is_wrong;
} Walk;

static bool say(const Walk *w, const char *name, const char *what) {
  text_add_user_string(w->why, SINK_TERMINAL, name);
  text_format(w->why, " %s\n", what);
  return false;
}

static uint32_t sharing(const Walk *w) { // blocks of a serial loop may access the same memory
  return w->loop->is_serial && !w->slice_group ? 0 : w->blocks.now;
}

static Stamp stamp(const Walk *w) {
  return (Stamp)w->loops << 32 | sharing(w);
}

static bool is_of_other_block(const Walk *w, Stamp s) {
  return s >> 32 == w->loops && (uint32_t)s != sharing(w);
}

// Whether the access ended before the current loop begins. Loops that need none of each other run in any order.
static bool is_ordered(const Walk *w, Stamp s) {
  const uint32_t loops = (uint32_t)(s >> 32), before = w->loops - loops;
  return !s || !w->after || !before || before > MOST_NEEDS || w->after[w->loops - 1] >> (before - 1) & 1;
}

// Places

static uint32_t owner_of(const Walk *w, const Access *a) {
  if (a->value) return a->value->index + 1;
  uint32_t temporary = a->temporary;
  const size_t maker = program_maker(w->p, w->kernel, &temporary);
  return (uint32_t)(w->p->graph->nvalues + 1 + w->p->liveness->first_temporary[maker] + temporary);
}

// Of the tensor, or of the part of it that the slice accesses; value NULL: of a temporary.
static size_t first_byte(const Walk *w, const Value *value, size_t first) {
  const ProgramSliceGroup *group = w->slice_group;
  if (!group) return first;
  const SlicedTensor *tensor = value ? slice_group_find(group->slices, value) : NULL;
  if (!tensor || tensor->is_private) return first + (size_t)w->chunk * group->chunk_nbytes;
  return first + type_array_nbytes(value->type, (size_t)slice_group_offset(group->slices, tensor, w->slice));
}

static void find_bytes(const Walk *w, const Access *a, int64_t element, size_t *from, size_t *to) {
  const Buffer *b = a->value ? w->tensor_of[a->value->index] : w->temporary_of[a->temporary];
  const size_t i = (size_t)element, nbytes = type_nbytes(a->type);
  *from = (size_t)b->address + (access_is_mask(a) ? i / 8 : type_is_packed(a->type) ? i / 2 : i * nbytes);
  *to = *from + (type_is_packed(a->type) ? 1 : nbytes);
}

// Loads and stores

static const char *read_fault(const Walk *w, const Access *a, const Byte *b) {
  if (b->owner != owner_of(w, a)) return "is read, but its bytes hold another tensor or nothing";
  if (is_of_other_block(w, b->written)) return "is read, but another block of the same loop writes it";
  if (!is_ordered(w, b->written)) return "is read, but the loop that writes it may run later";
  return NULL;
}

// A block may store its partial sums many times, and pieces of a result may overlap; a kernel stores every other
// element once.
static const char *store_fault(const Walk *w, const Access *a, const Byte *b) {
  const bool is_shared_byte = type_is_packed(a->type) || access_is_mask(a);
  const bool is_partial = !a->value && w->schedule->temporaries[a->temporary].reduction != EXPR_NONE;
  const bool is_of_piece = w->schedule->follows && (w->slice_group || b->written >> 32 != w->loops);
  if (b->owner == owner_of(w, a) && !is_partial && !is_shared_byte && !is_of_piece)
    return "is stored again, expected once";
  if (is_of_other_block(w, b->written) || is_of_other_block(w, b->read))
    return "is stored, but another block of the same loop reads or writes its bytes";
  if (!is_ordered(w, b->written) || !is_ordered(w, b->read))
    return "is stored, but an earlier loop that reads or writes its bytes may run later";
  return NULL;
}

// Checks a load or store of an element, byte by byte, and records it in the map.
static void access_bytes(Walk *w, const Access *a, int64_t element, bool is_store) {
  size_t from, to;
  find_bytes(w, a, element, &from, &to);
  for (size_t i = from; i < to && !w->is_wrong; i++) {
    Byte *b = &w->bytes[i];
    const char *fault = i >= w->nbytes ? "lies beyond the end of memory"
                        : is_store     ? store_fault(w, a, b)
                                       : read_fault(w, a, b);
    if (fault) {
      kernel_print_nodes(w->schedule->kernel, w->why);
      text_format(w->why, ", loop %zu, block %u, element %lld: ", (size_t)(w->loop - w->schedule->loops),
                  w->blocks.now - w->blocks.first, (long long)element);
      say(w, a->value ? a->value->name : w->schedule->temporaries[a->temporary].name, fault);
      w->is_wrong = true;
      w->nsteps = -1; // ends the run
    } else if (is_store) {
      b->owner = owner_of(w, a);
      b->is_invariant = !a->value && w->schedule->temporaries[a->temporary].is_invariant;
      b->written = stamp(w);
    } else {
      b->read = b->read >> 32 == w->loops && b->read != stamp(w) ? (Stamp)w->loops << 32 | MANY : stamp(w);
    }
  }
}

// Values are not known, nor elements at computed indices.
static void load(void *context, Type type, const Access *a, int n, const int64_t *elements, const Datum *offsets,
                 Datum *y) {
  (void)type;
  for (int i = 0; i < n && !offsets; i++) access_bytes(context, a, elements[i], false);
  memset(y, 0, (size_t)n * sizeof *y);
}

static void store(void *context, Type type, const Access *a, int n, const int64_t *elements, const Datum *x,
                  bool is_mask) {
  (void)type, (void)x, (void)is_mask;
  for (int i = 0; i < n; i++) access_bytes(context, a, elements[i], true);
}

// Loops

static Buffer mapped(const char *name, Type type, int64_t nelems, size_t address) {
  return (Buffer){.name = name, .type = type, .nelems = nelems, .address = address, .is_mapped = true};
}

// Lays the tensors and temporaries of the current kernel over the map.
static void find_buffers(Walk *w) {
  const Kernel *k = w->schedule->kernel;
  for (AccessId id = 0; id < k->naccesses; id++) {
    const Value *v = k->accesses[id].value;
    if (!v) continue;
    const SliceGroup *slices = w->slice_group ? w->slice_group->slices : NULL;
    const SlicedTensor *part = slices ? slice_group_find(slices, v) : NULL;
    const int64_t nelems = part && part->is_private ? slice_group_nelems(slices, part)
                           : part ? shape_nelems(&v->shape) - slice_group_offset(slices, part, w->slice)
                                  : shape_nelems(&v->shape);
    w->tensors[v->index] = mapped(v->name, v->type, nelems, first_byte(w, v, w->place[v->index]));
    w->tensor_of[v->index] = &w->tensors[v->index];
  }
  for (uint32_t i = 0; i < w->schedule->ntemporaries; i++) {
    const Temporary *t = &w->schedule->temporaries[i];
    const int64_t nelems = t->nelems * (t->type == TYPE_BOOLEAN ? 8 : 1); // of a mask, bits
    w->temporaries[i] = mapped(t->name, t->type, nelems, first_byte(w, NULL, t->offset));
    w->temporary_of[i] = t->is_own ? NULL : &w->temporaries[i];
  }
}

static bool run_loop(Walk *w, size_t loop) {
  const LoopRun run = {.tree = program_tree(w->p, w->kernel, loop),
                       .domain = &w->domain,
                       .tensors = w->tensor_of,
                       .temporaries = w->temporary_of,
                       .nsteps = &w->nsteps};
  w->loop = &w->schedule->loops[loop];
  if (!w->slice_group) w->loops++; // also if it is idle
  if (loop_is_idle(w->schedule->kernel, w->loop)) return true;
  w->blocks.are_parallel = w->slice_group || !w->loop->is_serial;
  const bool ok = tree_execute(&run, 0, run_nblocks(w->schedule, w->loop, NULL), &w->blocks, w->why);
  return !w->is_wrong && (ok || w->nsteps < 0); // out of steps: the rest is not checked
}

// Temporaries lose their data after their unit (the kernel and the kernels that follow it), except invariant ones.
static void forget_temporaries(Walk *w) {
  for (size_t i = 0; i < w->nbytes; i++)
    if (w->bytes[i].owner > w->p->graph->nvalues && !w->bytes[i].is_invariant) w->bytes[i].owner = 0;
}

// Private values lose their data after each slice. Invariant temporaries lose theirs when a new row of slices begins.
static void forget_chunk(Walk *w, bool is_first) {
  const size_t first = w->slice_group->offset + (size_t)w->chunk * w->slice_group->chunk_nbytes;
  for (size_t i = first; i < first + w->slice_group->chunk_nbytes; i++)
    if (is_first || !w->bytes[i].is_invariant) w->bytes[i].owner = 0;
}

static bool run_kernel(Walk *w, size_t kernel, bool is_first) {
  w->schedule = w->p->schedules[kernel];
  w->kernel = kernel;
  if (!w->schedule->follows || w->slice_group) forget_temporaries(w);
  find_buffers(w);
  for (size_t l = 0; l < w->schedule->nloops; l++)
    if ((is_first || !w->schedule->loops[l].is_invariant) && w->nsteps > 0 && !run_loop(w, l)) return false;
  return true;
}

// Runs the kernels of a slice group for the chunk's slices, one slice after the other.
static bool run_chunk(Walk *w) {
  const ProgramSliceGroup *group = w->slice_group;
  const int64_t first = slice_group_first_slice(group, w->chunk), end = slice_group_first_slice(group, w->chunk + 1);
  w->blocks.now++;
  for (w->slice = first; w->slice < end; w->slice++) {
    const bool is_first = w->slice == first || slice_group_is_new_row(group->slices, w->slice);
    forget_chunk(w, is_first);
    for (size_t i = group->first; i < group->end; i++)
      if (!run_kernel(w, i, is_first)) return false;
  }
  return true;
}

// Chunks run in parallel: to the map, each is a block, and the group is one loop.
static bool run_slice_group(Walk *w, const ProgramSliceGroup *group) {
  bool is_right = true;
  const uint32_t first = w->loops++;
  w->slice_group = group;
  w->blocks = (Blocks){.first = w->blocks.now + 1, .now = w->blocks.now, .are_one = true};
  for (w->chunk = 0; w->chunk < group->nchunks && is_right; w->chunk++) is_right = run_chunk(w);
  w->blocks.are_one = false;
  w->slice_group = NULL;
  w->loops = first;
  for (size_t i = group->first; i < group->end; i++) w->loops += (uint32_t)w->p->schedules[i]->nloops;
  return is_right;
}

// Finds the loops that needs order, directly or through loops in between.
static bool find_order(Walk *w, Arena *scratch) {
  const Liveness *f = w->p->liveness;
  w->after = ARENA_ARRAY(scratch, uint32_t, f->nloops + 1);
  for (size_t i = 0; w->after && i < f->nloops; i++)
    for (size_t before = 1; before <= MOST_NEEDS && before <= i; before++)
      if (f->needs[i] >> (before - 1) & 1)
        w->after[i] |= 1U << (before - 1) | (before < MOST_NEEDS ? w->after[i - before] << before : 0);
  return w->after;
}

static bool run_program(Walk *w) {
  for (size_t i = 0; i < w->p->nkernels; i++) {
    const ProgramSliceGroup *group = program_slice_group(w->p, i);
    if (group ? !run_slice_group(w, group) : !run_kernel(w, i, true)) return false;
    if (group) i = group->end - 1;
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

// The copies to outputs at the end of a call, in their order. A copy to a state overwrites its old value.
static bool run_copies(Walk *w) {
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

static bool walk_init(Walk *w, Arena *scratch) {
  const size_t nvalues = w->p->graph->nvalues + 1;
  size_t ntemporaries = 1;
  for (size_t i = 0; i < w->p->nkernels; i++)
    if (w->p->schedules[i]->ntemporaries >= ntemporaries) ntemporaries = w->p->schedules[i]->ntemporaries + 1;
  w->place = ARENA_ARRAY(scratch, size_t, nvalues);
  w->tensors = ARENA_ARRAY(scratch, Buffer, nvalues);
  w->tensor_of = ARENA_ARRAY(scratch, Buffer *, nvalues);
  w->temporaries = ARENA_ARRAY(scratch, Buffer, ntemporaries);
  w->temporary_of = ARENA_ARRAY(scratch, Buffer *, ntemporaries);
  w->domain = domain_of_hashes;
  w->domain.context = w;
  w->domain.load = load;
  w->domain.store = store;
  return w->place && w->tensors && w->tensor_of && w->temporaries && w->temporary_of && find_order(w, scratch);
}

bool memory_verify(const Program *p, int64_t *nsteps, Text *why) {
  Arena scratch;
  if (p->graph->ndims) return true;
  arena_init(&scratch, p->arena.allocator);
  Walk w = {.p = p, .why = why, .nsteps = *nsteps, .nbytes = p->workspace_nbytes};
  bool ok = walk_init(&w, &scratch), is_right = ok && find_places(&w);
  if (is_right && w.nbytes <= (size_t)*nsteps) {
    ok = (w.bytes = ARENA_ARRAY(&scratch, Byte, w.nbytes + 1)) != NULL;
    if (ok) own_operands(&w);
    is_right = ok && run_program(&w) && (w.nsteps <= 0 || run_copies(&w));
  }
  why->out_of_memory |= !ok;
  *nsteps = w.nsteps;
  arena_deinit(&scratch);
  return is_right && !why->out_of_memory;
}
