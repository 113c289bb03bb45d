// Failures, indices and addresses, and the elements of buffers. Records, for each element, the last block that wrote it
// and the first block of the running loop that read it. Blocks run one after the other, in order, so that these two are
// enough to find every race between two blocks of a loop.
#include "ir/graph/open_dims.h"
#include "ir/loops/executing.h"
#include "ir/loops/print.h"

#include <stdarg.h>
#include <string.h>

void execute_fail(Executing *x, const char *format, ...) {
  va_list args;
  if (x->has_failed) return;
  x->has_failed = true;
  text_format(x->why, "loop %zu of the kernel of ", (size_t)(x->tree->loop - x->tree->schedule->loops));
  kernel_print_nodes(x->k, x->why);
  text_format(x->why, ", block %u: ", x->blocks.now - x->blocks.first);
  if (x->at) loops_print_node(x->tree, x->at, x->why);
  text_add_string(x->why, ": ");
  va_start(args, format);
  text_format_list(x->why, format, args);
  va_end(args);
  text_add_string(x->why, "\n");
}

// Indices

static int64_t nelems_at(const Kernel *k, AxisSet axes, const int64_t *dims) {
  return open_number(k->graph, axes_nelems(k, axes), axes_monomial(k, axes), dims);
}

static int64_t run_block_length(const Schedule *s, const Loop *loop, const int64_t *dims) {
  return cut_length(&loop->cut, nelems_at(s->kernel, loop_cut_axes(loop), dims));
}

static int64_t run_ncut_blocks(const Schedule *s, const Loop *loop, const int64_t *dims) {
  const int64_t length = run_block_length(s, loop, dims);
  return (nelems_at(s->kernel, loop_cut_axes(loop), dims) + length - 1) / length;
}

int64_t run_nblocks(const Schedule *s, const Loop *loop, const int64_t *dims) {
  return nelems_at(s->kernel, loop_outer_axes(loop) & ~loop_cut_axes(loop), dims) * run_ncut_blocks(s, loop, dims);
}

int64_t run_temporary_nelems(const Program *p, size_t kernel, uint32_t temporary, const int64_t *dims) {
  const OpenSize size = program_temporary_size(p, (uint32_t)kernel, temporary);
  const Schedule *maker = p->schedules[size.kernel];
  const bool is_mask = p->schedules[kernel]->temporaries[temporary].type == TYPE_BOOLEAN; // eight in a byte
  return open_number(p->graph, size.number, size.monomial, dims) * (is_mask ? 8 : 1) *
         (size.has_blocks ? run_nblocks(maker, &maker->loops[size.loop], dims) : 1);
}

bool run_is_parallel(const Kernel *k, const Loop *loop, const int64_t *dims) {
  if (!loop->serial_work) return !loop->is_serial;
  return nelems_at(k, loop_outer_axes(loop) | loop_inner_axes(loop), dims) > loop->serial_work;
}

// Arithmetic modulo 2^64, as C's on size_t.
uint64_t index_value(const Index *i, LeafValue *leaf, void *context) {
  if (!i) return 0;
  if (!i->args[0]) return leaf(context, i);
  const uint64_t a = index_value(i->args[0], leaf, context);
  if (i->op == INDEX_SIGNED) return a;
  if (i->op == INDEX_CHOOSE) return index_value(i->args[a ? 1 : 2], leaf, context);
  const uint64_t b = index_value(i->args[1], leaf, context);
  switch (i->op) {
  case INDEX_ADD: return a + b;
  case INDEX_SUBTRACT: return a - b;
  case INDEX_MULTIPLY: return a * b;
  case INDEX_DIVIDE: return b ? a / b : leaf(context, i);
  case INDEX_REMAINDER: return b ? a % b : leaf(context, i);
  case INDEX_LESS: return a < b;
  case INDEX_AT_MOST: return a <= b;
  case INDEX_AT_LEAST: return a >= b;
  case INDEX_MORE: return a > b;
  case INDEX_EXCEEDS: return a > b || leaf(context, i);
  case INDEX_DIFFERS: return a != b;
  default: return a && b;
  }
}

uint64_t *var_place(Executing *x, Var v) {
  return &x->vars[x->function][x->slots.vars[v.kind] + v.of];
}

uint64_t var_of(Executing *x, VarKind kind) {
  return *var_place(x, loop_var(kind));
}

static uint64_t of_address(Executing *x, const Index *i) {
  enum { LINE = 64 };
  const Pointer p = address_of(x, i->address);
  if (i->op == INDEX_EXISTS || !p.buffer) return p.buffer != NULL;
  const uint64_t nbytes = type_nbytes(p.buffer->type), to_line = -(p.buffer->address + p.at * nbytes) % LINE;
  return i->op == INDEX_IS_AT_LINE ? !to_line : to_line / nbytes;
}

static uint64_t leaf_value(void *context, const Index *i) {
  Executing *x = context;
  const Schedule *s = x->tree->schedule;
  switch (i->op) {
  case INDEX_NUMBER: return (uint64_t)open_number(x->k->graph, i->number, i->monomial, x->run.dims);
  case INDEX_VAR: return *var_place(x, i->var);
  case INDEX_BLOCK_LENGTH: return (uint64_t)run_block_length(s, &s->loops[i->loop], x->run.dims);
  case INDEX_NCUT_BLOCKS: return (uint64_t)run_ncut_blocks(s, &s->loops[i->loop], x->run.dims);
  case INDEX_EXCEEDS: return x->run.is_large;
  case INDEX_DIVIDE:
  case INDEX_REMAINDER: execute_fail(x, "it divides by 0"); return 0;
  default: return of_address(x, i);
  }
}

uint64_t index_of_run(Executing *x, const Index *i) {
  return index_value(i, leaf_value, x);
}

bool is_on(Executing *x, const LoopNode *n) {
  return !n->test || index_of_run(x, n->test);
}

int lanes_of_node(Executing *x, const LoopNode *n) {
  const uint64_t nlanes = n->has_fewer_lanes                            ? var_of(x, VAR_LANES)
                          : x->left && !node_uses_all_lanes(x->tree, n) ? (uint64_t)x->left
                                                                        : LANES;
  if (nlanes > LANES) execute_fail(x, "there are %llu lanes", (unsigned long long)nlanes);
  return nlanes > LANES ? 0 : (int)nlanes;
}

// Items of buffers

Storage *storage_of(const Executing *x, const Address *at) {
  return &x->buffers[x->slots.buffers[at->buffer] + at->of];
}

bool make_items(Executing *x, const Address *at, int64_t count) {
  Storage *s = storage_of(x, at);
  const bool is_register = buffer_info[at->buffer].space == SPACE_REGISTERS;
  if (count < 1 || count > MOST_ITEMS) execute_fail(x, "an array has %lld elements", (long long)count);
  else if (count > s->count) {
    if (is_register) s->values = ARENA_ARRAY(x->arena, Vector, (size_t)count);
    else s->pointers = ARENA_ARRAY(x->arena, Pointer, (size_t)count);
    s->count = s->values || s->pointers ? (int)count : 0;
    x->why->out_of_memory |= !s->count;
  }
  x->has_failed |= x->why->out_of_memory;
  return !x->has_failed;
}

// Whether the buffer has the item; fails if not.
static bool has_item(Executing *x, const Address *at, uint64_t item) {
  const int count = storage_of(x, at)->count;
  if (item >= (uint64_t)count)
    execute_fail(x, "it uses element %llu of an array of %d", (unsigned long long)item, count);
  return item < (uint64_t)count;
}

Datum *lanes_of(Executing *x, const Address *at) {
  static Vector none;
  const uint64_t item = index_of_run(x, at->item);
  if (has_item(x, at, item)) return storage_of(x, at)->values[item].lane;
  memset(&none, 0, sizeof none);
  return none.lane;
}

// Addresses

Buffer *buffer_of(const Executing *x, AccessId id) {
  const Access *a = &x->k->accesses[id];
  if (a->value) return x->run.tensors[a->value->index];
  return a->type == TYPE_NONE ? NULL : x->run.temporaries[a->temporary];
}

Pointer address_of(Executing *x, const Address *at) {
  const uint64_t item = index_of_run(x, at->item);
  Pointer p = {NULL, 0};
  if (at->buffer == BUFFER_TENSOR) p.buffer = buffer_of(x, at->of);
  else if (has_item(x, at, item)) p = storage_of(x, at)->pointers[item];
  p.at += index_of_run(x, at->index);
  return p;
}

void point_to(Executing *x, const Address *at, Pointer p) {
  const uint64_t item = index_of_run(x, at->item);
  if (has_item(x, at, item)) storage_of(x, at)->pointers[item] = p;
}

// Buffers

bool buffer_init(Buffer *b, const char *name, Type type, int64_t nelems, bool has_values, Arena *arena) {
  const size_t count = (size_t)nelems + 1;
  *b = (Buffer){.name = name, .type = type, .nelems = nelems};
  b->writers = ARENA_ARRAY(arena, uint32_t, count);
  b->readers = ARENA_ARRAY(arena, uint32_t, count);
  if (has_values) b->values = ARENA_ARRAY(arena, Datum, count);
  return b->writers && b->readers && (b->values || !has_values);
}

void buffer_forget(Buffer *b) {
  memset(b->writers, 0, (size_t)b->nelems * sizeof *b->writers);
  memset(b->readers, 0, (size_t)b->nelems * sizeof *b->readers);
}

int64_t buffer_first_unwritten(const Buffer *b) {
  for (int64_t i = 0; b->writers && i < b->nelems; i++)
    if (!b->writers[i]) return i;
  return -1;
}

void make_array(Executing *x, const Address *at, Type type, int64_t nelems) {
  enum { NOTHING = 0xFF }; // in every byte: NaN as a number
  Storage *s = storage_of(x, at);
  Buffer *b = &s->array;
  if (!make_items(x, at, 1)) return;
  if (nelems < 0 || (x->run.nsteps && (*x->run.nsteps -= nelems) < 0)) x->has_failed = true;
  else if (b->nelems < nelems) b->values = ARENA_ARRAY(x->arena, Datum, (size_t)nelems);
  x->why->out_of_memory |= !x->has_failed && nelems && !b->values;
  x->has_failed |= x->why->out_of_memory;
  if (x->has_failed) return;
  *b = (Buffer){.name = "a local array", .type = type, .nelems = nelems, .values = b->values};
  if (nelems) memset(b->values, NOTHING, (size_t)nelems * sizeof *b->values);
  s->pointers[0] = (Pointer){b, 0};
}

static bool is_of_other_block(const Blocks *b, uint32_t block) {
  return block >= b->first && block != b->now;
}

// The reason why element i must not be read; NULL: it may be.
static const char *read_fault(const Buffer *b, const Blocks *blocks, uint64_t i) {
  if (i >= (uint64_t)b->nelems) return "reads out of bounds";
  if (!b->writers) return NULL;
  if (!b->writers[i]) return "reads what is not written";
  if (is_of_other_block(blocks, b->writers[i])) return "reads an element that another block of the loop writes";
  if (b->readers[i] < blocks->first) b->readers[i] = blocks->now;
  return NULL;
}

static const char *write_fault(const Buffer *b, const Blocks *blocks, uint64_t i) {
  if (i >= (uint64_t)b->nelems) return "writes out of bounds";
  if (!b->writers) return b->values || b->is_mapped ? NULL : "writes read-only memory";
  if (is_of_other_block(blocks, b->writers[i])) return "writes an element that another block of the loop writes";
  if (is_of_other_block(blocks, b->readers[i])) return "writes an element that another block of the loop reads";
  if (b->is_stored_once && b->writers[i] == blocks->now) return "writes an element that the loop has written already";
  const uint64_t half = i ^ 1;
  if (type_is_packed(b->type) && blocks->are_parallel && half < (uint64_t)b->nelems &&
      is_of_other_block(blocks, b->writers[half]))
    return "writes half of a byte whose other half another block writes";
  b->writers[i] = blocks->now;
  return NULL;
}

// Finds the elements, and whether they may be accessed. In a bit mask, addresses are in bytes.
static bool find_elements(Executing *x, AccessId id, Pointer p, Elements e, bool is_write, int64_t *elements) {
  if (x->run.nsteps) *x->run.nsteps -= e.count;
  if (!p.buffer) execute_fail(x, "accesses memory through a null pointer");
  if (!p.buffer) return false;
  if (!p.buffer->values && p.buffer != buffer_of(x, id)) execute_fail(x, "accesses another tensor");
  if (access_is_mask(&x->k->accesses[id])) p.at *= 8;
  for (int i = 0; i < e.count && !x->has_failed; i++) {
    const uint64_t at = p.at + (uint64_t)i * e.step;
    elements[i] = (int64_t)at;
    if (e.offsets && !p.buffer->values) continue; // the domain knows which element it is
    const char *fault = is_write ? write_fault(p.buffer, &x->blocks, at) : read_fault(p.buffer, &x->blocks, at);
    if (fault)
      execute_fail(x, "%s: element %lld of %s, which has %lld", fault, (long long)at, p.buffer->name,
                   (long long)p.buffer->nelems);
  }
  return !x->has_failed;
}

void buffer_convert(const Buffer *b, const ValueDomain *d, Type from, Type to, int n, const Datum *x, Datum *y) {
  const bool is_float = b->type == TYPE_F32 || b->type == TYPE_F64;
  if (is_float && from != to) d->convert(d->context, from, to, n, x, y);
  else if (x != y) memcpy(y, x, (size_t)n * sizeof *y);
}

void read_elements(Executing *x, AccessId id, Type in, Pointer p, Elements e, Datum *y) {
  int64_t elements[LANES];
  if (!find_elements(x, id, p, e, false, elements)) return;
  const Buffer *b = p.buffer;
  if (!b->values) x->domain->load(x->domain->context, in, &x->k->accesses[id], e.count, elements, e.offsets, y);
  for (int i = 0; i < e.count && b->values; i++) y[i] = b->values[elements[i]];
  if (b->values && b->type != in && b->type != TYPE_F32 && b->type != TYPE_F64 && b->type != TYPE_BOOLEAN)
    execute_fail(x, "reads a result of another type than the kernel's");
  if (b->values) buffer_convert(b, x->domain, b->type, in, e.count, y, y);
}

void write_elements(Executing *x, AccessId id, Type in, Pointer p, Elements e, const Datum *y, bool is_mask) {
  int64_t elements[LANES];
  Datum stored[LANES];
  if (!find_elements(x, id, p, e, true, elements)) return;
  const Buffer *b = p.buffer;
  if (!b->values) {
    x->domain->store(x->domain->context, in, &x->k->accesses[id], e.count, elements, y, is_mask);
    return;
  }
  buffer_convert(b, x->domain, in, b->type, e.count, y, stored);
  for (int i = 0; i < e.count; i++) b->values[elements[i]] = stored[i];
}

// Operations on lanes

Datum number_of(const Executing *x, Type type, double number) {
  const ValueDomain *d = x->domain;
  return type == TYPE_S64 ? d->integer(d->context, type_integer(number)) : d->number(d->context, type, number);
}

void set_lanes(Datum *y, Datum x, int first, int end) {
  for (int i = first; i < end; i++) y[i] = x;
}

void apply(Executing *x, ExprOp op, Type type, const Datum *const *args, Datum *y) {
  if (x->run.nsteps) *x->run.nsteps -= LANES;
  if (!x->has_failed) x->domain->apply(x->domain->context, op, type, LANES, args, y);
}

void convert(Executing *x, Type from, Type to, const Datum *in, Datum *y) {
  if (from != to) x->domain->convert(x->domain->context, from, to, LANES, in, y);
  else if (in != y) memcpy(y, in, LANES * sizeof *y);
}
