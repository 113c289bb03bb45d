// Executes a call of a program: allocates values and temporaries, runs the loops in order, copies outputs that are
// copies.
#include "tests/loops/execute.h"

#include "ir/graph/open_dims.h"
#include "ir/loops/execute.h"
#include "tests/loops/numbers.h"

#include <string.h>

typedef struct Execution {
  const Program *p;
  const Graph *g;
  const Tensor *inputs, *outputs;
  ExecuteOptions options;
  Arena arena;
  const Liveness *liveness;
  Buffer **values;       // by value->index
  NumberTensor *tensors; // likewise
  Buffer **temporaries;  // by number in the program
  Buffer **whole;        // while a slice group runs: values as they are outside of it
  bool is_first; // invariant loops run: outside of slice groups, or for the first of the slices that they are the same
                 // for
  Blocks blocks;
  Text *why;
} Execution;

static bool out_of_memory(Execution *x) {
  text_add_string(x->why, "out of memory");
  return false;
}

// Memory

static int64_t nelems_of(const Execution *x, const Value *v) {
  return open_number(x->g, shape_nelems(&v->shape), shape_monomial(&v->shape), x->options.dims);
}

static bool has_all_outputs(const Execution *x) {
  return !x->p->has_optional_outputs;
}

static bool is_wanted(const Execution *x, size_t output) {
  return has_all_outputs(x) || x->outputs[output].data;
}

static bool is_any_wanted(const Execution *x, const OutputSet *outputs) {
  bool is_any = has_all_outputs(x) || outputs->is_all;
  for (uint32_t i = 0; i < outputs->count; i++) is_any |= is_wanted(x, outputs->outputs[i]);
  return is_any;
}

// An input or a constant.
static bool add_constant(Execution *x, const Value *v, void *data) {
  Buffer *b = x->values[v->index] = ARENA_NEW(&x->arena, Buffer);
  const int64_t nelems = nelems_of(x, v);
  if (b) *b = (Buffer){.name = v->name, .type = v->type, .nelems = nelems, .address = (uintptr_t)data};
  x->tensors[v->index] = (NumberTensor){data, 0, nelems};
  return b || out_of_memory(x);
}

// The slice group to which the value is private; NULL: none.
static const ProgramSliceGroup *slice_group_of(const Execution *x, const Value *v) {
  const ProgramSliceGroup *slice_group =
      v->producer ? program_slice_group(x->p, x->p->first_kernel[v->producer->index]) : NULL;
  return slice_group_is_private(slice_group, v) ? slice_group : NULL;
}

// Aligned to a cache line, as in the workspace, and not initialised.
static void *new_data(Execution *x, size_t nbytes) {
  enum { LINE = 64, POISON = 0xFF };
  unsigned char *block = arena_alloc(&x->arena, nbytes + LINE);
  if (!block) return NULL;
  memset(block, POISON, nbytes + LINE);
  return block + (LINE - (uintptr_t)block % LINE) % LINE;
}

// Memory for a value that loops store: `data`, or allocated memory if data is NULL. A private value has one slice.
static bool add_variable(Execution *x, const Value *v, void *data) {
  const ProgramSliceGroup *slice_group = slice_group_of(x, v);
  const int64_t nelems =
      slice_group ? slice_group_nelems(slice_group->slices, slice_group_find(slice_group->slices, v)) : nelems_of(x, v);
  Buffer *b = x->values[v->index] = ARENA_NEW(&x->arena, Buffer);
  if (!data) data = new_data(x, type_array_nbytes(v->type, (size_t)nelems));
  if (!b || !data || !buffer_init(b, v->name, v->type, nelems, false, &x->arena)) return out_of_memory(x);
  b->address = (uintptr_t)data;
  b->is_stored_once = true;
  x->tensors[v->index] = (NumberTensor){data, 0, nelems};
  return true;
}

static bool add_values(Execution *x) {
  const Graph *g = x->g;
  bool ok = true;
  for (size_t i = 0; ok && i < g->ninputs; i++) ok = add_constant(x, g->inputs[i], x->inputs[i].data);
  for (size_t i = 0; ok && i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (v->constant && !v->constant->is_splat) ok = add_constant(x, v, v->constant->data);
    else if (x->p->is_in_workspace[i] && !v->is_input) ok = add_variable(x, v, NULL);
  }
  for (size_t i = 0; ok && i < g->noutputs; i++) {
    const Value *v = g->outputs[i];
    if (program_copies_output(x->p, i) || (!is_wanted(x, i) && !x->liveness->is_read_again[v->index])) continue;
    ok = add_variable(x, v, is_wanted(x, i) ? x->outputs[i].data : NULL);
  }
  return ok;
}

static bool add_temporaries(Execution *x, size_t kernel) {
  const Schedule *s = x->p->schedules[kernel];
  for (size_t i = 0; i < s->ntemporaries; i++) {
    const size_t number = x->liveness->first_temporary[kernel] + i;
    const Temporary *t = &s->temporaries[i];
    if (t->is_invariant && !x->is_first) continue;
    if (t->is_reused) {
      uint32_t same = (uint32_t)i;
      const size_t maker = program_maker(x->p, kernel, &same);
      x->temporaries[number] = x->temporaries[x->liveness->first_temporary[maker] + same];
      continue;
    }
    if (t->is_own ||
        (x->liveness->may_be_unwanted[number] && !is_any_wanted(x, &x->liveness->temporary_serves[number])))
      continue;
    Buffer *b = x->temporaries[number] = ARENA_NEW(&x->arena, Buffer);
    const int64_t nelems = run_temporary_nelems(x->p, kernel, (uint32_t)i, x->options.dims);
    if (!b || !buffer_init(b, t->name, t->type, nelems, true, &x->arena)) return out_of_memory(x);
  }
  return true;
}

// Loops

static bool run_loop(Execution *x, size_t kernel, size_t loop) {
  const Schedule *s = x->p->schedules[kernel];
  const Loop *l = &s->loops[loop];
  Numbers numbers = {.tensors = x->tensors};
  const ValueDomain domain = domain_of_numbers(&numbers);
  const LoopRun run = {.tree = program_tree(x->p, kernel, loop),
                       .domain = &domain,
                       .dims = x->options.dims,
                       .tensors = x->values,
                       .temporaries = x->temporaries + x->liveness->first_temporary[kernel]};
  x->blocks.are_parallel = x->blocks.are_one || run_is_parallel(s->kernel, l, x->options.dims);
  if (!tree_execute(&run, 0, run_nblocks(s, l, x->options.dims), &x->blocks, x->why)) return false;
  if (numbers.fault) text_format(x->why, "loop %zu of kernel %zu: %s", loop, kernel, numbers.fault);
  return !numbers.fault;
}

static bool run_kernel(Execution *x, size_t kernel) {
  const Schedule *s = x->p->schedules[kernel];
  if (!add_temporaries(x, kernel)) return false;
  for (size_t l = 0; l < s->nloops; l++) {
    if (s->loops[l].is_invariant && !x->is_first) continue;
    const bool is_needed =
        x->blocks.are_one || is_any_wanted(x, &x->liveness->serves[x->liveness->first_loop[kernel] + l]);
    if (!loop_is_idle(s->kernel, &s->loops[l]) && is_needed && !run_loop(x, kernel, l)) return false;
  }
  return true;
}

// Slice groups

// Replaces the buffers of values by those of a slice. Slices of a private value have the same memory, which becomes
// uninitialised again.
static bool enter_slice(Execution *x, const SliceGroup *slices, int64_t slice) {
  for (size_t i = 0; i < slices->ntensors; i++) {
    const SlicedTensor *tensor = &slices->tensors[i];
    const Buffer *whole = x->whole[tensor->value->index];
    if (!whole) continue; // an output that the caller leaves out
    Buffer *own = x->values[tensor->value->index] = ARENA_NEW(&x->arena, Buffer);
    if (!own) return out_of_memory(x);
    *own = *whole;
    if (tensor->is_private) {
      buffer_forget(own);
      continue;
    }
    const int64_t offset = slice_group_offset(slices, tensor, slice);
    own->nelems -= offset;
    own->address += type_array_nbytes(own->type, (size_t)offset);
    x->tensors[tensor->value->index].first = offset;
    if (own->writers) own->writers += offset, own->readers += offset;
  }
  return true;
}

static bool is_slice_group_wanted(const Execution *x, const ProgramSliceGroup *v) {
  bool is_any = false;
  for (size_t i = v->first; i < v->end; i++)
    for (size_t l = 0; l < x->p->schedules[i]->nloops; l++)
      is_any |= is_any_wanted(x, &x->liveness->serves[x->liveness->first_loop[i] + l]);
  return is_any;
}

static bool run_slice_group(Execution *x, const ProgramSliceGroup *v) {
  Buffer **values = x->values;
  const size_t nbytes = x->g->nvalues * sizeof *values;
  x->whole = values;
  x->values = ARENA_ARRAY(&x->arena, Buffer *, x->g->nvalues + 1);
  if (!x->values) return out_of_memory(x);
  x->blocks.are_one = true;
  x->blocks.first = x->blocks.now + 1;
  bool ok = true;
  for (int64_t slice = 0; ok && slice < v->slices->nslices; slice++) {
    memcpy(x->values, values, nbytes);
    x->is_first = slice_group_is_new_row(v->slices, slice);
    x->blocks.now += x->is_first;
    ok = enter_slice(x, v->slices, slice);
    for (size_t i = v->first; ok && i < v->end; i++) ok = run_kernel(x, i);
  }
  for (size_t i = 0; i < v->slices->ntensors; i++) x->tensors[v->slices->tensors[i].value->index].first = 0;
  x->values = values;
  x->blocks.are_one = false;
  x->is_first = true;
  return ok;
}

static bool run_loops(Execution *x) {
  for (size_t i = 0; i < x->p->nkernels; i++) {
    const ProgramSliceGroup *slice_group = program_slice_group(x->p, i);
    if (slice_group ? is_slice_group_wanted(x, slice_group) && !run_slice_group(x, slice_group) : !run_kernel(x, i))
      return false;
    if (slice_group) i = slice_group->end - 1;
  }
  return true;
}

// Outputs

static bool is_whole(Execution *x, const Buffer *b) {
  const int64_t i = buffer_first_unwritten(b);
  if (i >= 0) text_format(x->why, "element %lld of %s is never written", (long long)i, b->name);
  return i < 0;
}

// Element by element, so that the unused half of a packed tensor's last byte keeps its value.
static void copy_output(const Execution *x, size_t output) {
  const Tensor *to = &x->outputs[output];
  const Value *v = x->g->outputs[output];
  const bool is_splat = v->constant && v->constant->is_splat;
  const void *data = is_splat ? v->constant->data : x->tensors[v->index].data;
  const int64_t nelems = tensor_nelems(to);
  const size_t nbytes = type_nbytes(to->type);
  for (int64_t i = 0; i < nelems; i++) {
    const size_t from = is_splat ? 0 : (size_t)i;
    if (type_is_packed(to->type)) type_store(to->type, to->data, (size_t)i, type_load(to->type, data, from));
    else memcpy((char *)to->data + (size_t)i * nbytes, (const char *)data + from * nbytes, nbytes);
  }
}

static bool finish_outputs(Execution *x) {
  const Graph *g = x->g;
  for (size_t i = 0; i < g->noutputs; i++) {
    const Buffer *b = x->values[g->outputs[i]->index];
    if (!is_wanted(x, i)) continue;
    if (b && !is_whole(x, b)) return false;
    if (program_copies_output(x->p, i)) copy_output(x, i);
  }
  return true;
}

static bool begin(Execution *x) {
  x->values = ARENA_ARRAY(&x->arena, Buffer *, x->g->nvalues + 1);
  x->temporaries = ARENA_ARRAY(&x->arena, Buffer *, x->liveness->ntemporaries + 1);
  x->tensors = ARENA_ARRAY(&x->arena, NumberTensor, x->g->nvalues + 1);
  return x->values && x->temporaries && x->tensors ? add_values(x) : out_of_memory(x);
}

bool execute_program(const Program *p, const Tensor *inputs, const Tensor *outputs, const ExecuteOptions *options,
                     Text *why) {
  Execution x = {.p = p,
                 .g = p->graph,
                 .liveness = p->liveness,
                 .inputs = inputs,
                 .outputs = outputs,
                 .is_first = true,
                 .why = why};
  if (options) x.options = *options;
  arena_init(&x.arena, why->allocator);
  const bool ok = begin(&x) && run_loops(&x) && finish_outputs(&x);
  arena_deinit(&x.arena);
  return ok;
}
