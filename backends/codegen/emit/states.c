// Prints the code of states: constants and prototypes in the header, tables and functions in the source. The functions'
// text is state_functions.in.
#include "backends/codegen/emit/states.h"

#include "backends/codegen/emit/emit.h"
#include "backends/codegen/emit/template.h"
#include "ir/graph/init.h"
#include "ir/support/escape.h"

#include <math.h>
#include <string.h>

enum { LINE = 64 }; // bytes: states begin at multiples of it

static const char *const block_names[] = {"parameters", "optimizer"};

static const Value *state_value(const Graph *g, size_t i) {
  return g->inputs[g->states[i].input];
}

static bool has_state(const Graph *g, const char *name) {
  for (size_t i = 0; i < g->nstates; i++)
    if (strcmp(state_value(g, i)->name, name) == 0) return true;
  return false;
}

bool find_states(FileStates *states, const EmittedFile *file, const char *const *member, Arena *arena) {
  const Graph *g = emitted_graph(&file->functions[0]);
  const Graph *last = emitted_graph(&file->functions[file->nfunctions - 1]);
  *states = (FileStates){.items = ARENA_ARRAY(arena, FileState, g->nstates + 1), .count = g->nstates};
  states->nblocks = g->nstates ? 1 : 0;
  for (size_t i = 0; states->items && i < g->nstates; i++) {
    const Value *v = state_value(g, i);
    const int block = has_state(last, v->name) ? 0 : 1;
    const size_t nbytes = type_array_nbytes(v->type, (size_t)shape_nelems(&v->shape));
    states->items[i] = (FileState){v, member[v->index], block, states->nbytes[block], nbytes};
    states->nbytes[block] += (nbytes + LINE - 1) / LINE * LINE;
    if (block == 1) states->nblocks = 2;
  }
  return states->items;
}

static const FileState *find_state(const FilePrinter *f, const char *name) {
  for (size_t i = 0; i < f->states->count; i++)
    if (strcmp(f->states->items[i].value->name, name) == 0) return &f->states->items[i];
  return NULL;
}

// Functions

static bool uses_block(const FilePrinter *f, int block, bool is_update) {
  const Graph *g = f->graph;
  for (size_t i = 0; i < g->nstates; i++)
    if (find_state(f, state_value(g, i)->name)->block == block && (!is_update || g->states[i].output >= 0)) return true;
  return false;
}

void add_block_parameters(const FilePrinter *f, Text *out) {
  for (int b = 0; b < MOST_BLOCKS && b < f->states->nblocks; b++)
    if (uses_block(f, b, false))
      text_format(out, "    %svoid *%s, /* %zu bytes of states */\n", uses_block(f, b, true) ? "" : "const ",
                  block_names[b], f->states->nbytes[b]);
}

void add_state_address(const FilePrinter *f, const Value *state, Text *out) {
  const FileState *s = find_state(f, state->name);
  text_format(out, "(%sunsigned char *)%s + %zu", uses_block(f, s->block, true) ? "" : "const ", block_names[s->block],
              s->offset);
}

void print_block_checks(const FilePrinter *f, Text *out) {
  for (int b = 0; b < MOST_BLOCKS && b < f->states->nblocks; b++) {
    if (!uses_block(f, b, false)) continue;
    if (!f->states->nbytes[b]) text_format(out, "  (void)%s;\n", block_names[b]);
    else
      text_format(out, "  if (!%s) return %s_NULL_POINTER;\n  if ((uintptr_t)%s %% 64) return %s_MISALIGNED;\n",
                  block_names[b], f->prefix, block_names[b], f->prefix);
  }
}

// Header

static const char header_text[] =
    "/* States are tensors that live from call to call. The caller gives the memory for them, in blocks that are "
    "aligned "
    "to\n   64 bytes and have these sizes. Where in its block a state is has a macro, too. */\n"
    "%SIZES%enum { @_NSTATES = %NSTATES% };\n\n"
    "typedef struct @_state {\n  const char *name;\n  const char *type; /* as in @_tensor */\n  int rank;\n"
    "  int64_t extent[8];\n  int order[8]; /* the layout: axes from the slowest to the fastest */\n"
    "  int block;    /* 0: parameters; 1: optimizer */\n  size_t offset, nbytes;\n} @_state;\n"
    "const @_state *@_get_states(void); /* @_NSTATES of them */\n\n"
    "/* Gives all states their first values, which are functions of the seed, the same on every machine.\n"
    "   In this function and the next two, blocks but the first may be NULL: their states are left out. */\n"
    "int @_init(%BLOCKS%, uint64_t seed);\n\n"
    "/* Files of states, unless @_NO_FILES is defined: .npz, as numpy.load reads them. What is saved\n"
    "   depends on the states alone, also on machines with the other order of bytes. @_save writes\n"
    "   PATH.tmp and then renames it; until then, and if it fails, the old file stays. @_load takes\n"
    "   entries by name, ignores others, and takes files of numpy.savez. It checks all names, types,\n"
    "   shapes and checksums before it changes a state. */\n"
    "#ifndef @_NO_FILES\nint @_save(%CONST_BLOCKS%, const char *path);\nint @_load(%BLOCKS%, const char "
    "*path);\n#endif\n\n";

static void add_sizes(const FilePrinter *f, Text *out) {
  static const char *const macros[] = {"PARAMETERS", "OPTIMIZER"};
  const FileStates *states = f->states;
  for (int b = 0; b < MOST_BLOCKS && b < states->nblocks; b++)
    text_format(out, "#define %s_%s_NBYTES ((size_t)%zu)\n", f->prefix, macros[b], states->nbytes[b]);
  for (size_t i = 0; i < states->count; i++) {
    const FileState *s = &states->items[i];
    text_format(out, "#define %s_%s_OFFSET ((size_t)%zu) /* in %s; ", f->prefix, s->member, s->offset,
                block_names[s->block]);
    add_tensor_comment(out, s->value, s->member);
    text_add_string(out, " */\n");
  }
}

// Source

static const char *format_of(Type type) {
  static const char *const formats[TYPE_COUNT] = {[TYPE_F64] = "F64",   [TYPE_F32] = "F32", [TYPE_F16] = "F16",
                                                  [TYPE_BF16] = "BF16", [TYPE_S64] = "S64", [TYPE_S32] = "S32"};
  return formats[type] ? formats[type] : "BYTE";
}

static const char *descr_of(Type type) {
  static const char *const descrs[TYPE_COUNT] = {
      [TYPE_F64] = "<f8", [TYPE_F32] = "<f4", [TYPE_F16] = "<f2", [TYPE_BF16] = "<f4",    [TYPE_S64] = "<i8",
      [TYPE_S32] = "<i4", [TYPE_S8] = "|i1",  [TYPE_U8] = "|u1",  [TYPE_BOOLEAN] = "|b1",
  };
  return descrs[type] ? descrs[type] : "|V1";
}

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

static bool is_given(const FilePrinter *f, size_t i) {
  return f->graph->states[i].init.kind == INIT_FILE && f->states->items[i].nbytes;
}

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
  text_format(out, "  {NG(%s), NG(%s), ", format_of(type), kind);
  text_add_number(out, low, false);
  text_add_string(out, ", ");
  text_add_number(out, high, false);
  if (is_given(f, i)) text_format(out, ", %s_given_%s", f->prefix, s->member);
  else text_add_string(out, ", NULL");
  text_format(out, ", \"%s\"},\n", descr_of(type));
}

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
    if (length > longest) longest = length;
  }
  return longest;
}

static void add_part(const void *context, const char *name, Text *out) {
  const FilePrinter *f = context;
  const bool has_optimizer = f->states->nblocks > 1;
  if (is_part(name, "SIZES")) add_sizes(f, out);
  else if (is_part(name, "NSTATES")) text_format(out, "%zu", f->states->count);
  else if (is_part(name, "LONGEST")) text_format(out, "%zu", longest_name(f));
  else if (is_part(name, "BLOCKS")) text_format(out, "void *parameters%s", has_optimizer ? ", void *optimizer" : "");
  else if (is_part(name, "CONST_BLOCKS"))
    text_format(out, "const void *parameters%s", has_optimizer ? ", const void *optimizer" : "");
  else if (is_part(name, "POINTERS")) text_format(out, "parameters, %s", has_optimizer ? "optimizer" : "NULL");
  for (size_t i = 0; i < f->states->count; i++)
    if (is_part(name, "FIRSTS")) add_first(f, i, out);
    else if (is_part(name, "STATES")) add_state(f, i, out);
    else if (is_part(name, "ARRAYS") && is_given(f, i)) print_given(f, i, out);
}

static const char statuses[] =
    ",\n  /* of files */\n  @_CANNOT_OPEN = 16,\n  @_CANNOT_WRITE = 17, /* the disk is full, for instance */\n"
    "  @_CANNOT_READ = 18,\n  @_NOT_AN_ARCHIVE = 19,\n"
    "  @_TRUNCATED = 20,     /* the file ends too early */\n"
    "  @_DAMAGED = 21,       /* a checksum or a length is wrong */\n"
    "  @_UNSUPPORTED = 22,   /* compressed or encrypted entries */\n"
    "  @_MISSING_STATE = 23, /* a state has no entry */\n"
    "  @_WRONG_STATE = 24    /* an entry has another type or shape than its state */";

void add_state_statuses(const FilePrinter *f, Text *out) {
  if (f->states->count) print_template(&(Template){statuses, f->prefix, NULL, NULL}, out);
}

void print_states_in_header(const FilePrinter *f, Text *out) {
  if (f->states->count) print_template(&(Template){header_text, f->prefix, add_part, f}, out);
}

// Defines feature macros: fsync and fileno are POSIX, which compilers in strict modes hide otherwise.
void print_state_includes(const FilePrinter *f, Text *out) {
  if (!f->states->count) return;
  text_format(out,
              "#ifndef %s_NO_FILES\n#if !defined _POSIX_C_SOURCE && (defined __unix__ || defined __APPLE__)\n"
              "#ifdef __clang__\n#pragma clang diagnostic push\n"
              "#pragma clang diagnostic ignored \"-Wreserved-macro-identifier\"\n"
              "#pragma clang diagnostic ignored \"-Wreserved-id-macro\"\n#endif\n"
              "#define _POSIX_C_SOURCE 200809L\n"
              "#ifdef __clang__\n#pragma clang diagnostic pop\n#endif\n#endif\n"
              "#include <errno.h>\n#include <stdio.h>\n"
              "#if defined __unix__ || defined __APPLE__\n#include <unistd.h>\n#endif\n#endif\n\n",
              f->prefix);
}

bool print_state_functions(const FilePrinter *f, Text *out) {
  extern const char state_functions[];
  if (!f->states->count) return !out->out_of_memory;
  text_format(out, "#define NG(name) %s_##name\n\n", f->prefix);
  print_template(&(Template){state_functions, f->prefix, add_part, f}, out);
  text_add_string(out, "\n#undef NG\n");
  return !out->out_of_memory;
}
