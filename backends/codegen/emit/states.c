// Prints the code of states: constants and prototypes in the header, tables and functions in the source. The functions'
// text is state_functions.in.
#include "backends/codegen/emit/file_printer.h"

#include "backends/codegen/emit/emit.h"
#include "backends/codegen/emit/template.h"
#include "ir/graph/init.h"
#include "ir/operators/indices.h"
#include "ir/support/escape.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const block_names[] = {"parameters", "optimizer"};

static const Value *state_value(const Graph *g, size_t i) {
  return g->inputs[g->states[i].input];
}

typedef struct NamedState {
  const char *name;
  bool is_updated;
} NamedState;

static int compare_names(const void *a, const void *b) {
  return strcmp(((const NamedState *)a)->name, ((const NamedState *)b)->name);
}

// The graph's states, sorted by name; NULL: out of memory.
static NamedState *sort_names(const Graph *g, Arena *arena) {
  NamedState *names = ARENA_ARRAY(arena, NamedState, g->nstates + 1);
  for (size_t i = 0; names && i < g->nstates; i++)
    names[i] = (NamedState){state_value(g, i)->name, g->states[i].output >= 0};
  if (names) qsort(names, g->nstates, sizeof *names, compare_names);
  return names;
}

static int compare_states(const void *a, const void *b) {
  return strcmp((*(FileState *const *)a)->value->name, (*(FileState *const *)b)->value->name);
}

bool find_states(FileStates *states, const EmittedFile *file, const char *const *member, Arena *arena) {
  const Graph *g = emitted_graph(&file->functions[0]);
  const Graph *last = emitted_graph(&file->functions[file->nfunctions - 1]);
  const NamedState *of_last = sort_names(last, arena);
  *states = (FileStates){.items = ARENA_ARRAY(arena, FileState, g->nstates + 1),
                         .by_name = ARENA_ARRAY(arena, FileState *, g->nstates + 1),
                         .count = g->nstates};
  if (!of_last || !states->items || !states->by_name) return false;
  for (size_t i = 0; i < g->nstates; i++) {
    const Value *v = state_value(g, i);
    const NamedState key = {.name = v->name};
    const NamedState *own = bsearch(&key, of_last, last->nstates, sizeof *of_last, compare_names);
    const int block = own ? 0 : 1;
    const bool is_stored = file->stores_states && g->states[i].output < 0 && !(own && own->is_updated);
    const size_t nbytes = type_array_nbytes(v->type, (size_t)shape_nelems(&v->shape));
    states->items[i] = (FileState){v, member[v->index], is_stored, block, states->nbytes[block], nbytes};
    states->by_name[i] = &states->items[i];
    states->nstored += is_stored;
    if (is_stored) states->stored_nbytes += nbytes;
    else states->nbytes[block] += whole_lines(nbytes);
    if (!is_stored && states->nblocks <= block) states->nblocks = block + 1;
  }
  qsort(states->by_name, g->nstates, sizeof *states->by_name, compare_states);
  return true;
}

// The state of this name, which the file has.
static const FileState *find_state(const FilePrinter *f, const Value *state) {
  const FileState like = {.value = state}, *const key = &like;
  return *(FileState **)bsearch(&key, f->states->by_name, f->states->count, sizeof *f->states->by_name, compare_states);
}

// Functions

void find_blocks(FilePrinter *f) {
  for (size_t i = 0; i < f->graph->nstates; i++) {
    const FileState *s = find_state(f, state_value(f->graph, i));
    if (f->function->is_stored) f->function->is_stored[i] = s->is_stored;
    if (s->is_stored) continue;
    f->function->uses_block[s->block] = true;
    f->updates_block[s->block] |= f->graph->states[i].output >= 0;
  }
}

void add_block_parameters(const FilePrinter *f, Text *out) {
  for (int b = 0; b < MOST_BLOCKS && b < f->states->nblocks; b++)
    if (f->function->uses_block[b])
      text_format(out, "    %svoid *%s, /* %zu bytes of states */\n", f->updates_block[b] ? "" : "const ",
                  block_names[b], f->states->nbytes[b]);
}

void add_state_address(const FilePrinter *f, const Value *state, Text *out) {
  const FileState *s = find_state(f, state);
  if (s->is_stored) text_format(out, "%s_given_%s", f->prefix, s->member);
  else
    text_format(out, "(%sunsigned char *)%s + %zu", f->updates_block[s->block] ? "" : "const ", block_names[s->block],
                s->offset);
}

void print_block_checks(const FilePrinter *f, Text *out) {
  for (int b = 0; b < MOST_BLOCKS && b < f->states->nblocks; b++) {
    if (!f->function->uses_block[b]) continue;
    if (!f->states->nbytes[b]) text_format(out, "  (void)%s;\n", block_names[b]);
    else
      text_format(out, "  if (!%s) return %s_NULL_POINTER;\n  if ((uintptr_t)%s %% %d) return %s_MISALIGNED;\n",
                  block_names[b], f->prefix, block_names[b], LINE_NBYTES, f->prefix);
  }
}

// Prints macros: sizes of the blocks of states, and the offset of each state.
static void add_sizes(const FilePrinter *f, Text *out) {
  static const char *const macros[] = {"PARAMETERS", "OPTIMIZER"};
  const FileStates *states = f->states;
  for (int b = 0; b < MOST_BLOCKS && b < states->nblocks; b++)
    text_format(out, "#define %s_%s_NBYTES ((size_t)%zu)\n", f->prefix, macros[b], states->nbytes[b]);
  for (size_t i = 0; i < states->count; i++) {
    const FileState *s = &states->items[i];
    if (s->is_stored) continue;
    text_format(out, "#define %s_%s_OFFSET ((size_t)%zu) /* in %s; ", f->prefix, s->member, s->offset,
                block_names[s->block]);
    add_tensor_comment(out, s->value, s->member);
    text_add_string(out, " */\n");
  }
}

// Source

static const char *format_of(Type type) {
  static const char *const formats[TYPE_COUNT] = {
      [TYPE_F64] = "F64", [TYPE_F32] = "F32", [TYPE_F16] = "F16", [TYPE_BF16] = "BF16"};
  static const char *const integers[] = {[1] = "S8", [2] = "S16", [4] = "S32", [8] = "S64"}; // or unsigned
  return formats[type] ? formats[type] : integers[type_nbytes(type)];
}

static const char *descr_of(Type type) {
  static const char *const descrs[TYPE_COUNT] = {
      [TYPE_F64] = "<f8", [TYPE_F32] = "<f4", [TYPE_F16] = "<f2", [TYPE_BF16] = "<f4",    [TYPE_S64] = "<i8",
      [TYPE_S32] = "<i4", [TYPE_S8] = "|i1",  [TYPE_U8] = "|u1",  [TYPE_BOOLEAN] = "|b1", [TYPE_S16] = "<i2",
      [TYPE_U64] = "<u8", [TYPE_U32] = "<u4", [TYPE_U16] = "<u2",
  };
  return descrs[type] ? descrs[type] : "|V1";
}

// Prints the array of a state's first value.
static void print_given(const FilePrinter *f, size_t i, Text *out) {
  Tensor t = tensor_like(f->states->items[i].value);
  t.data = allocator_alloc(f->scratch->allocator, tensor_nbytes(&t) + 1);
  out->out_of_memory |= !t.data;
  if (!t.data) return;
  init_fill(f->graph, i, 0, &t);
  Constant constant = {.data = t.data};
  Value v = *f->states->items[i].value;
  v.constant = &constant;
  const char *name = arena_format(f->scratch, "%s_given_%s", f->prefix, f->states->items[i].member);
  if (name) print_array(&v, name, out);
  out->out_of_memory |= !name;
  allocator_free(f->scratch->allocator, t.data);
}

void print_stored_states(const FilePrinter *f, Text *out) {
  for (size_t i = 0; i < f->states->count; i++)
    if (f->states->items[i].is_stored) print_given(f, i, out);
}

static bool is_given(const FilePrinter *f, size_t i) {
  return f->graph->states[i].init.kind == INIT_FILE && f->states->items[i].nbytes;
}

// Prints a row of the table of first values: a number for all elements, a distribution, or an array.
static void add_first(const FilePrinter *f, size_t i, Text *out) {
  const Init *init = &f->graph->states[i].init;
  const FileState *s = &f->states->items[i];
  const Type type = s->value->type;
  uint8_t one = 0;
  double low = init->low, high = init->high;
  if (init->kind <= INIT_ONES) low = high = init->kind == INIT_ONES;
  if (TYPES_F8 & TYPE_BIT(type) && init->kind == INIT_ONES) {
    type_store(type, &one, 0, 1);
    low = one;
  }
  if (init->kind == INIT_FAN_IN) {
    low = -1 / sqrt(init->fan_in);
    high = 1 / sqrt(init->fan_in);
  }
  if (init->kind == INIT_NORMAL) low = 0, high = init->deviation;
  const char *kind = is_given(f, i)               ? "GIVEN"
                     : init->kind == INIT_NORMAL  ? "NORMAL"
                     : init->kind >= INIT_UNIFORM ? "UNIFORM"
                                                  : "FILLED";
  text_format(out, "  {NG(%s), NG(%s), %zu, ", format_of(type), kind, i);
  text_add_number(out, low, false);
  text_add_string(out, ", ");
  text_add_number(out, high, false);
  if (is_given(f, i)) text_format(out, ", %s_given_%s", f->prefix, s->member);
  else text_add_string(out, ", NULL");
  text_format(out, ", \"%s\", ", descr_of(type));
  int64_t least, most;
  state_range(f->graph, &f->graph->states[i], &least, &most);
  if (least == INT64_MIN) text_add_string(out, "INT64_MIN, ");
  else text_format(out, "%lld, ", (long long)least);
  if (most == INT64_MAX) text_add_string(out, "INT64_MAX},\n");
  else text_format(out, "%lld},\n", (long long)most);
}

// Prints a row of the table of states.
static void add_state(const FilePrinter *f, size_t i, Text *out) {
  const FileState *s = &f->states->items[i];
  const Value *v = s->value;
  const int rank = v->shape.rank;
  text_add_string(out, "  {");
  text_add_user_string(out, SINK_STRING, v->name);
  text_format(out, ", \"%s\", %d, {", type_name(v->type), rank);
  for (int k = 0; k < rank; k++) text_format(out, "%s%lld", k ? ", " : "", (long long)extent_value(v->shape.extent[k]));
  text_add_string(out, rank ? "}, {" : "0}, {0");
  for (int k = 0; k < rank; k++) text_format(out, "%s%d", k ? ", " : "", layout_axis(&v->layout, k));
  text_format(out, "}, %d, %zu, %zu},\n", s->block, s->offset, s->nbytes);
}

static size_t longest_name(const FilePrinter *f) {
  size_t longest = 0;
  for (size_t i = 0; i < f->states->count; i++) {
    const size_t length = strlen(f->states->items[i].value->name) + strlen(".npy");
    if (!f->states->items[i].is_stored && length > longest) longest = length;
  }
  return longest;
}

void add_state_part(const void *context, const char *name, Text *out) {
  const FilePrinter *f = context;
  const bool has_optimizer = f->states->nblocks > 1;
  if (is_part(name, "SIZES")) add_sizes(f, out);
  else if (is_part(name, "NSTATES")) text_format(out, "%zu", f->states->count - f->states->nstored);
  else if (is_part(name, "NSTORED")) text_format(out, "%zu", f->states->nstored);
  else if (is_part(name, "STORED_NBYTES")) text_format(out, "%zu", f->states->stored_nbytes);
  else if (is_part(name, "LONGEST")) text_format(out, "%zu", longest_name(f));
  else if (is_part(name, "BLOCKS")) text_format(out, "void *parameters%s", has_optimizer ? ", void *optimizer" : "");
  else if (is_part(name, "CONST_BLOCKS"))
    text_format(out, "const void *parameters%s", has_optimizer ? ", const void *optimizer" : "");
  else if (is_part(name, "POINTERS")) text_format(out, "parameters, %s", has_optimizer ? "optimizer" : "NULL");
  for (size_t i = 0; i < f->states->count; i++)
    if (f->states->items[i].is_stored) continue;
    else if (is_part(name, "FIRSTS")) add_first(f, i, out);
    else if (is_part(name, "STATES")) add_state(f, i, out);
    else if (is_part(name, "ARRAYS") && is_given(f, i)) print_given(f, i, out);
}
