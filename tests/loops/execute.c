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
  Arena arena;
  ProgramRun run;
  Numbers numbers;
  NumberTensor *tensors; // by value->index
  Buffer **whole;        // while a slice group runs: tensors as they are outside of it
  Text *why;
} Execution;

static bool out_of_memory(Execution *x) {
  text_add_string(x->why, "out of memory");
  return false;
}

// Memory

static int64_t nelems_of(const Execution *x, const Value *v) {
  return open_number(x->g, shape_nelems(&v->shape), shape_monomial(&v->shape), x->run.dims);
}

static bool is_wanted(const Execution *x, size_t output) {
  return !x->run.is_left_out || !x->run.is_left_out[output];
}

// An input or a constant.
static bool add_constant(Execution *x, const Value *v, void *data) {
  Buffer *b = x->run.tensors[v->index] = ARENA_NEW(&x->arena, Buffer);
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
  Buffer *b = x->run.tensors[v->index] = ARENA_NEW(&x->arena, Buffer);
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
    if (program_copies_output(x->p, i) || (!is_wanted(x, i) && !x->p->liveness->is_read_again[v->index])) continue;
    ok = add_variable(x, v, is_wanted(x, i) ? x->outputs[i].data : NULL);
  }
  return ok;
}

static bool execute_kernel(Execution *x, size_t kernel) {
  if (!run_add_temporaries(&x->run, kernel, &x->arena)) return out_of_memory(x);
  if (!run_kernel_loops(&x->run, kernel, x->why)) return false;
  if (x->numbers.fault) text_format(x->why, "kernel %zu: %s", kernel, x->numbers.fault);
  return !x->numbers.fault;
}

// Slice groups

// Replaces the buffers of values by those of a slice. Slices of a private value have the same memory, which becomes
// uninitialised again.
static bool enter_slice(Execution *x, const SliceGroup *slices, int64_t slice) {
  for (size_t i = 0; i < slices->ntensors; i++) {
    const SlicedTensor *tensor = &slices->tensors[i];
    const Buffer *whole = x->whole[tensor->value->index];
    if (!whole) continue; // an output that the caller leaves out
    Buffer *own = x->run.tensors[tensor->value->index] = ARENA_NEW(&x->arena, Buffer);
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
      is_any |= run_wants(&x->run, &x->p->liveness->serves[x->p->liveness->first_loop[i] + l]);
  return is_any;
}

static bool run_slice_group(Execution *x, const ProgramSliceGroup *v) {
  Buffer **values = x->run.tensors;
  const size_t nbytes = x->g->nvalues * sizeof *values;
  x->whole = values;
  x->run.tensors = ARENA_ARRAY(&x->arena, Buffer *, x->g->nvalues + 1);
  if (!x->run.tensors) return out_of_memory(x);
  x->run.blocks.are_one = true;
  x->run.blocks.first = x->run.blocks.now + 1;
  bool ok = true;
  for (int64_t slice = 0; ok && slice < v->slices->nslices; slice++) {
    memcpy(x->run.tensors, values, nbytes);
    x->run.keeps_invariant = !slice_group_is_new_row(v->slices, slice);
    x->run.blocks.now += !x->run.keeps_invariant;
    ok = enter_slice(x, v->slices, slice);
    for (size_t i = v->first; ok && i < v->end; i++) ok = execute_kernel(x, i);
  }
  for (size_t i = 0; i < v->slices->ntensors; i++) x->tensors[v->slices->tensors[i].value->index].first = 0;
  x->run.tensors = values;
  x->run.blocks.are_one = false;
  x->run.keeps_invariant = false;
  return ok;
}

static bool run_loops(Execution *x) {
  for (size_t i = 0; i < x->p->nkernels; i++) {
    const ProgramSliceGroup *slice_group = program_slice_group(x->p, i);
    if (slice_group ? is_slice_group_wanted(x, slice_group) && !run_slice_group(x, slice_group) : !execute_kernel(x, i))
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
    const Buffer *b = x->run.tensors[g->outputs[i]->index];
    if (!is_wanted(x, i)) continue;
    if (b && !is_whole(x, b)) return false;
    if (program_copies_output(x->p, i)) copy_output(x, i);
  }
  return true;
}

static bool begin(Execution *x, ValueDomain *domain, const int64_t *dims) {
  bool *is_left_out = ARENA_ARRAY(&x->arena, bool, x->g->noutputs + 1);
  x->run = (ProgramRun){.program = x->p, .domain = domain, .dims = dims};
  x->run.tensors = ARENA_ARRAY(&x->arena, Buffer *, x->g->nvalues + 1);
  x->run.temporaries = ARENA_ARRAY(&x->arena, Buffer *, x->p->liveness->ntemporaries + 1);
  x->tensors = ARENA_ARRAY(&x->arena, NumberTensor, x->g->nvalues + 1);
  if (!is_left_out || !x->run.tensors || !x->run.temporaries || !x->tensors) return out_of_memory(x);
  for (size_t i = 0; i < x->g->noutputs; i++) is_left_out[i] = !x->outputs[i].data;
  if (x->p->has_optional_outputs) x->run.is_left_out = is_left_out;
  x->numbers = (Numbers){.tensors = x->tensors};
  *domain = domain_of_numbers(&x->numbers);
  return add_values(x);
}

bool execute_program(const Program *p, const Tensor *inputs, const Tensor *outputs, const ExecuteOptions *options,
                     Text *why) {
  Execution x = {.p = p, .g = p->graph, .inputs = inputs, .outputs = outputs, .why = why};
  ValueDomain domain;
  arena_init(&x.arena, why->allocator);
  const bool ok = begin(&x, &domain, options ? options->dims : NULL) && run_loops(&x) && finish_outputs(&x);
  arena_deinit(&x.arena);
  return ok;
}
