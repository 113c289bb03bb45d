// Prints a program as C for one instruction set: the argument struct, the functions of each kernel's loops, and a
// function that runs the loops in order. Both files that users keep (file.c) and code that is loaded immediately use
// this part. The end of this file prints the entry point of code that is loaded immediately.
#include "backends/codegen/emit/emit.h"
#include "backends/codegen/codegen.h"
#include "backends/codegen/emit/template.h"
#include "ir/operators/operator.h"
#include "ir/support/escape.h"

#include <string.h>

extern const char prologue_text[], loading_text[];

static bool is_in_memory(const Printer *p, const Value *v) {
  return v->is_input || v->is_output || (v->constant && !v->constant->is_splat) ||
         p->program->is_in_workspace[v->index];
}

static void name_temporary(Printer *p, size_t kernel, size_t temporary) {
  Text name;
  text_init(&name, p->scratch->allocator);
  text_add_user_string(&name, SINK_IDENTIFIER, p->program->schedules[kernel]->temporaries[temporary].name);
  const char *member = arena_format(p->scratch, "k%zu_%zu_%.40s", kernel, temporary, text_string(&name));
  *temporary_member(p, kernel, temporary) = checked(p, member);
  p->out_of_memory |= name.out_of_memory;
  text_deinit(&name);
}

// Names the members of the struct of arguments: values, dims and temporaries.
static bool name_members(Printer *p) {
  const Program *program = p->program;
  const Graph *g = program->graph;
  NameSet taken = {0};
  p->value_member = ARENA_ARRAY(p->scratch, const char *, g->nvalues + g->ndims + 1);
  p->temporary_member = ARENA_ARRAY(p->scratch, const char *, p->liveness->ntemporaries + 1);
  if (!p->value_member || !p->temporary_member) return false;
  for (size_t i = 0; i < g->nvalues; i++)
    if (is_in_memory(p, g->values[i])) p->value_member[i] = print_member_name(p, g->values[i]->name, &taken, i);
  p->dim_member = &p->value_member[g->nvalues];
  for (size_t i = 0; i < g->ndims; i++)
    p->dim_member[i] = print_member_name(p, g->dims[i]->name, &taken, g->nvalues + i);
  for (size_t i = 0; i < program->nkernels; i++)
    for (size_t t = 0; t < program->schedules[i]->ntemporaries; t++) name_temporary(p, i, t);
  return !p->out_of_memory;
}

void add_tensor_comment(Text *out, const Value *v, const char *name) {
  char shape[160];
  if (strcmp(v->name, name) != 0) {
    text_add_user_string(out, SINK_COMMENT, v->name);
    text_add_string(out, ": ");
  }
  text_format(out, "%s ", type_name(v->type));
  text_add_user_string(out, SINK_COMMENT, shape_string(&v->shape, shape, sizeof shape));
  if (type_is_packed(v->type))
    text_format(out, ", %lld elements, two per byte, the first in the low half", (long long)shape_nelems(&v->shape));
  if (layout_is_row_major(&v->layout)) return;
  text_add_string(out, ", layout (slowest axis first):");
  for (int i = 0; i < v->shape.rank; i++) text_format(out, " %d", layout_axis(&v->layout, i));
}

// Adds element i of a constant as C; for a packed type, byte i.
static void add_element(Text *out, const Value *v, int64_t i) {
  const void *data = v->constant->data;
  const uint8_t byte = ((const uint8_t *)data)[i];
  uint16_t half;
  int64_t integer;
  switch (v->type) {
  case TYPE_S4:
  case TYPE_U4: text_format(out, "0x%02X", v->constant->is_splat ? (byte & 0xFU) * 0x11U : byte); return;
  case TYPE_F8_E4M3:
  case TYPE_F8_E5M2: text_format(out, "0x%02X", byte); return;
  case TYPE_F16:
  case TYPE_BF16:
    memcpy(&half, (const char *)data + i * (int64_t)sizeof half, sizeof half);
    text_format(out, "0x%04X", half);
    return;
  case TYPE_S64: // a double may be inexact
  case TYPE_U64:
    memcpy(&integer, (const char *)data + i * (int64_t)sizeof integer, sizeof integer);
    if (v->type == TYPE_S64) add_integer(out, integer);
    else text_format(out, "%lluU", (unsigned long long)integer);
    return;
  case TYPE_F64:
  case TYPE_F32: add_number(out, type_load(v->type, data, (size_t)i), v->type == TYPE_F64); return;
  default: text_format(out, "%.0f", type_load(v->type, data, (size_t)i)); return;
  }
}

// Arrays of so many floats are printed as words, which takes a printer and a compiler less time than numbers.
enum { MANY_ELEMENTS = 1024 };

// Adds floats as the hexadecimal words that they are stored as, in a union, so that they are floats for the compiler.
static void print_words(const Value *v, const char *name, int64_t nelems, Text *out) {
  const bool is_wide = v->type == TYPE_F64;
  const int ndigits = is_wide ? 16 : 8;
  text_format(out, "static const union {\n  uint%d_t words[%lld];\n  %s numbers[%lld];\n} %s_words = {{", 4 * ndigits,
              (long long)nelems, element_types[v->type].name, (long long)nelems, name);
  for (int64_t i = 0; i < nelems; i++) {
    char word[2 + 16 + 1] = "0x";
    uint64_t bits = 0;
    if (is_wide) memcpy(&bits, (const double *)v->constant->data + i, sizeof bits);
    else bits = ((const uint32_t *)v->constant->data)[i];
    for (int digit = 0; digit < ndigits; digit++)
      word[2 + digit] = "0123456789ABCDEF"[bits >> 4 * (ndigits - 1 - digit) & 15];
    text_add_string(out, i % 8 ? " " : "\n  ");
    word[2 + ndigits] = ',';
    text_add(out, word, (size_t)ndigits + 3);
  }
  text_format(out, "\n}};\n#define %s %s_words.numbers\n\n", name, name);
}

void print_array(const Value *v, const char *name, Text *out) {
  int64_t nelems = shape_nelems(&v->shape);
  if (type_is_packed(v->type)) nelems = (nelems + 1) / 2;
  // The text is as long as data that exist, and copied twice. 4 + 4 * nbytes: of an element's text, at most.
  if (nelems >= MANY_ELEMENTS) text_give_steps(out, 3 * (4 + 4 * type_nbytes(v->type)) * (size_t)nelems);
  if (nelems >= MANY_ELEMENTS && (v->type == TYPE_F32 || v->type == TYPE_F64)) {
    print_words(v, name, nelems, out);
    return;
  }
  text_format(out, "static const %s %s[] = {", element_types[v->type].name, name);
  for (int64_t i = 0; i < nelems; i++) {
    text_add_string(out, i % 8 ? " " : "\n  ");
    add_element(out, v, i);
    text_add_string(out, ",");
  }
  text_add_string(out, nelems ? "\n};\n\n" : "0};\n\n");
}

static bool is_same_constant(const Value *a, const Value *b) {
  const int64_t n = shape_nelems(&a->shape);
  return a->type == b->type && n == shape_nelems(&b->shape) &&
         (a->constant->data == b->constant->data ||
          memcmp(a->constant->data, b->constant->data, type_array_nbytes(a->type, (size_t)n)) == 0);
}

// The name of the constant's array. Prints the array unless an equal array was printed.
static const char *constant_name(Printer *p, const Value *v) {
  PrintedConstant **at = &p->constants->first;
  const char *name = checked(p, arena_format(p->scratch, "%s_constant_%s", p->prefix, p->value_member[v->index]));
  for (; *at; at = &(*at)->next) {
    if (is_same_constant((*at)->value, v)) return (*at)->name;
    if (strcmp((*at)->name, name) == 0) name = checked(p, arena_format(p->scratch, "%s_%u", name, (unsigned)v->index));
  }
  *at = ARENA_NEW(p->scratch, PrintedConstant);
  p->out_of_memory |= !*at;
  if (!*at) return name;
  **at = (PrintedConstant){v, name, NULL};
  print_array(v, name, &p->constants->text);
  p->out_of_memory |= p->constants->text.out_of_memory;
  return name;
}

// Prints the struct of arguments that all kernels' functions take.
static void print_struct(Printer *p) {
  const Graph *g = p->program->graph;
  part_begin_named(p->parts, p->plain, "%s_args", p->identifier);
  text_format(p->plain, "struct %s_args {\n", p->identifier);
  for (size_t i = 0; i < g->ndims; i++) text_format(p->plain, "  size_t %s;\n", p->dim_member[i]);
  for (size_t i = 0; i < p->program->nkernels; i++)
    for (size_t l = 0; l < p->program->schedules[i]->nloops; l++) {
      const Kernel *k = p->program->schedules[i]->kernel;
      const Loop *loop = &p->program->schedules[i]->loops[l];
      if (loop_has_open_length(k, loop))
        text_format(p->plain, "  size_t k%zu_loop%zu_block; // iterations per block\n", i, l);
      if (loop_has_open_cut_blocks(k, loop))
        text_format(p->plain, "  size_t k%zu_loop%zu_blocks; // number of such blocks\n", i, l);
    }
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (!p->value_member[i]) continue;
    text_format(p->plain, "  %s%s *%s; // ", (v->is_input && !p->program->is_staged[i]) || v->constant ? "const " : "",
                element_types[v->type].name, p->value_member[i]);
    add_tensor_comment(p->plain, v, p->value_member[i]);
    text_add_string(p->plain, "\n");
  }
  for (size_t i = 0; i < p->program->nkernels; i++) {
    const Schedule *schedule = p->program->schedules[i];
    for (size_t t = 0; t < schedule->ntemporaries; t++) {
      const OpenSize nelems = program_temporary_size(p->program, (uint32_t)i, (uint32_t)t);
      if (!schedule->temporaries[t].is_own)
        text_format(p->plain, "  %s *%s; // %s elements\n", element_types[schedule->temporaries[t].type].name,
                    *temporary_member(p, i, t), size_text(p, &nelems, "", false));
    }
  }
  for (size_t i = 0; i < p->program->nslice_groups; i++)
    text_format(p->plain, "  uint32_t slices%zu_bits, *slices%zu_free; // a bit for each task's memory: not in use\n",
                i, i);
  text_add_string(p->plain, "};\n\n");
}

static void print_cut(Printer *p) {
  if (p->has_cuts) text_add_string(p->out, "\f\n");
}

// Prints the kernel's functions, unless those of an equal kernel serve it.
static void print_kernel(Printer *p, size_t index) {
  const Schedule *s = p->program->schedules[index];
  const Kernel *k = s->kernel;
  const bool is_own = p->first_alike[index] == index;
  if (is_own) print_cut(p);
  part_begin_named(p->parts, p->out, "%s_kernel%zu", p->identifier, index);
  text_format(p->out, "// Kernel %zu: ", index);
  kernel_print_nodes(k, p->out);
  if (!is_own) text_format(p->out, ": the functions of kernel %zu", p->first_alike[index]);
  text_add_string(p->out, "\n\n");
  part_end_comment(p->parts);
  if (!is_own) return;
  if (p->is_shared[index]) print_own_struct(p, index, p->plain);
  for (size_t loop = 0; loop < s->nloops; loop++)
    if (!loop_is_idle(k, &s->loops[loop])) print_loop_functions(p, index, loop);
}

static void set_to_workspace(Printer *p, const char *member, Type type, size_t offset) {
  text_format(p->out, "  a->%s = (%s *)(void *)(memory + %zu);\n", member, element_types[type].name, offset);
}

// The members of the argument struct: the caller's pointers, constants, and pointers into the workspace.

static void print_input_members(Printer *p) {
  const Program *program = p->program;
  const Graph *g = program->graph;
  bool is_told = false;
  for (size_t i = 0; i < g->ninputs; i++) {
    const Value *v = g->inputs[i];
    const bool may_be_null = shape_monomial(&v->shape);
    if (program->is_staged[v->index]) {
      if (!g->ndims) set_to_workspace(p, p->value_member[v->index], v->type, program->value_offset[v->index]);
      text_format(p->out, "  memcpy(a->%s, inputs[%zu], %zu);\n", p->value_member[v->index], i,
                  type_array_nbytes(v->type, (size_t)shape_nelems(&v->shape)));
      continue;
    }
    if (may_be_null && !is_told)
      text_add_string(p->out, "  // A NULL input has no elements, so any valid address will do.\n");
    is_told |= may_be_null;
    text_format(p->out,
                may_be_null ? "  a->%s = (const %s *)(inputs[%zu] ? inputs[%zu] : a);\n"
                            : "  a->%s = (const %s *)inputs[%zu];\n",
                p->value_member[v->index], element_types[v->type].name, i, i);
  }
}

// An output that later loops read gets memory at the end of the workspace if its pointer is NULL.
static void print_output_members(Printer *p) {
  const Program *program = p->program;
  const Graph *g = program->graph;
  for (size_t i = 0; i < g->noutputs; i++) {
    const Value *v = g->outputs[i];
    const bool is_kept = p->program->has_optional_outputs && program_keeps_output(program, i);
    if (program_copies_output(program, i)) continue;
    text_add_string(p->out, "  ");
    if (g->ndims && is_kept) text_format(p->out, "if (outputs[%zu]) ", i); // else print_layout's address stays
    text_format(p->out, "a->%s = (%s *)", p->value_member[v->index], element_types[v->type].name);
    if (is_kept && !g->ndims) {
      text_format(p->out, "(outputs[%zu] ? outputs[%zu] : (void *)(memory + %zu));\n", i, i, p->workspace_nbytes);
      p->workspace_nbytes += whole_lines(type_array_nbytes(v->type, (size_t)shape_nelems(&v->shape)));
    } else {
      text_format(p->out, "outputs[%zu];\n", i);
    }
  }
}

// Prints the statements that set the members of constants, and of values and temporaries in the workspace.
static void print_workspace_members(Printer *p) {
  const Program *program = p->program;
  const Graph *g = program->graph;
  size_t nconstants = 0;
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    bool is_callers = v->is_input || (v->is_output && !v->constant && !program->is_staged[i]);
    const size_t constant = v->constant && !v->constant->is_splat ? nconstants++ : 0;
    if (!p->value_member[i] || is_callers || (v->constant && v->constant->is_splat)) continue;
    if (v->constant && !p->constants)
      text_format(p->out, "  a->%s = (const %s *)pool->constants[%zu];\n", p->value_member[i],
                  element_types[v->type].name, constant);
    else if (v->constant) text_format(p->out, "  a->%s = %s;\n", p->value_member[i], constant_name(p, v));
    else if (!g->ndims) set_to_workspace(p, p->value_member[i], v->type, program->value_offset[i]);
  }
  for (size_t i = 0; i < program->nkernels && !g->ndims; i++)
    for (size_t t = 0; t < program->schedules[i]->ntemporaries; t++) {
      const Temporary *temporary = &program->schedules[i]->temporaries[t];
      if (temporary->is_own) continue;
      set_to_workspace(p, *temporary_member(p, i, t), temporary->type, temporary->offset);
    }
}

static void print_members(Printer *p) {
  print_input_members(p);
  print_output_members(p);
  print_workspace_members(p);
  for (size_t i = 0; i < p->program->nslice_groups; i++)
    text_format(p->out, "  a->slices%zu_bits = UINT32_MAX;\n  a->slices%zu_free = &a->slices%zu_bits;\n", i, i, i);
}

// Compile time grows with the square of a function's length, so that a program with cuts sets the members in functions
// of their own. Prints these before the run; returns how many.
static size_t print_setters(Printer *p) {
  enum { LINES_IN_SETTER = 64 };
  Text members, *out = p->out;
  size_t count = 0;
  text_init(&members, p->scratch->allocator);
  p->out = &members;
  print_members(p);
  p->out = out;
  for (const char *line = text_string(&members), *end; *line; line = end) {
    end = line;
    for (int i = 0; i < LINES_IN_SETTER && *end; i++) end = strchr(end, '\n') + 1;
    text_format(out,
                "static V_FAR void %s_set%zu(struct %s_args *a, const void *const *inputs, void *const *outputs, "
                "unsigned char *memory, const struct %s_pool *pool) {\n"
                "  (void)inputs, (void)outputs, (void)memory, (void)pool;\n%.*s}\n\n",
                p->identifier, count++, p->identifier, p->prefix, (int)(end - line), line);
  }
  p->out_of_memory |= members.out_of_memory;
  text_deinit(&members);
  return count;
}

static void add_copied(Printer *p, const Value *v) {
  if (v->constant && v->constant->is_splat) add_element(p->out, v, 0);
  else text_format(p->out, "a->%s[i]", p->value_member[v->index]);
}

static void open_copy(Printer *p, size_t i) {
  text_add_string(p->out, "  ");
  if (p->program->has_optional_outputs) text_format(p->out, "if (outputs[%zu]) ", i);
}

// Prints the copy of an output that is an input, a constant or an earlier output. If the number of 4-bit elements is
// odd, the other half of the last byte is not changed.
static void print_copy(Printer *p, size_t i) {
  const Value *v = p->program->graph->outputs[i];
  const int64_t nelems = shape_nelems(&v->shape);
  if (!nelems) return;
  const char *count = product_text(p, nelems, shape_monomial(&v->shape), "a->", false);
  bool is_packed = type_is_packed(v->type);
  open_copy(p, i);
  text_format(p->out, "for (size_t i = 0; i < %s%s; i++) ((%s *)outputs[%zu])[i] = ", count, is_packed ? " / 2" : "",
              element_types[v->type].name, i);
  add_copied(p, v);
  text_add_string(p->out, ";\n");
  if (!is_packed || (nelems % 2 == 0 && !shape_monomial(&v->shape))) return;
  open_copy(p, i);
  text_format(p->out, "for (size_t i = %s / 2; i < (%s + 1) / 2; i++) ", count, count);
  text_format(p->out, "((uint8_t *)outputs[%zu])[i] = (uint8_t)((((uint8_t *)outputs[%zu])[i] & 0xF0) | (", i, i);
  add_copied(p, v);
  text_add_string(p->out, " & 0xF));\n");
}

static bool are_equal(const OutputSet *a, const OutputSet *b) {
  return a->count == b->count && memcmp(a->outputs, b->outputs, a->count * sizeof *a->outputs) == 0;
}

// Sets pointers to partial sums to NULL if all outputs that need the sums are NULL. Consecutive temporaries for the
// same outputs are under one condition.
static void print_unwanted(Printer *p) {
  const OutputSet *open = NULL; // the outputs of the open condition
  for (size_t t = 0; p->program->has_optional_outputs && t < p->liveness->ntemporaries; t++) {
    const OutputSet *serves = &p->liveness->temporary_serves[t];
    if (!p->liveness->may_be_unwanted[t]) continue;
    const bool is_same = open && are_equal(open, serves);
    if (open && !is_same) text_add_string(p->out, "  }\n");
    for (uint32_t i = 0; i < serves->count && !is_same; i++)
      text_format(p->out, "%s!outputs[%u]", i ? " && " : "  if (", serves->outputs[i]);
    text_format(p->out, "%s    a->%s = NULL;\n", is_same ? "" : ") {\n", p->temporary_member[t]);
    open = serves;
  }
  if (open) text_add_string(p->out, "  }\n");
}

static void print_copies(Printer *p) {
  for (size_t i = 0; i < p->program->graph->noutputs; i++)
    if (program_copies_output(p->program, i)) print_copy(p, i);
}

// Prints the function that runs the program: it fills in the arguments, and calls the kernels in turn.
static void print_run(Printer *p) {
  const bool has_dims = p->program->graph->ndims > 0;
  print_parts(p);
  const size_t nsetters = p->has_cuts ? print_setters(p) : 0;
  part_begin_named(p->parts, p->out, "%s_run", p->identifier);
  text_format(p->out,
              "static void %s_run(const void *const *inputs, void *const *outputs, %sunsigned char *memory, "
              "const struct %s_pool *pool) {\n  struct %s_args all, *const a = &all;\n"
              "  (void)a, (void)inputs, (void)outputs, (void)memory, (void)pool;\n",
              p->identifier, has_dims ? "const int64_t *extents, " : "", p->prefix, p->identifier);
  if (has_dims)
    text_format(
        p->out,
        "  memset(&all, 0, sizeof all);\n  (void)%s_layout(a, extents, memory ? memory : (unsigned char *)a);\n",
        p->identifier);
  for (size_t i = 0; i < nsetters; i++)
    text_format(p->out, "  %s_set%zu(a, inputs, outputs, memory, pool);\n", p->identifier, i);
  if (!nsetters) print_members(p);
  print_unwanted(p);
  print_calls(p);
  print_copies(p);
  text_add_string(p->out, "}\n\n");
}

bool print_program(Printer *p) {
  const Graph *g = p->program->graph;
  p->liveness = p->program->liveness;
  if (!name_members(p) || !find_alike(p)) return false;
  p->workspace_nbytes = whole_lines(p->program->workspace_nbytes);
  print_struct(p);
  for (size_t i = 0; i < p->program->nkernels; i++) print_kernel(p, i);
  print_cut(p);
  print_slice_groups(p);
  if (g->ndims) print_layout(p);
  print_run(p);
  return !p->out_of_memory && !p->out->out_of_memory;
}

// Fused multiply-adds are explicit. The compiler must not form others: they change results.
//
// gcc 12's ivopts may write an address as an index from a null pointer (TARGET_MEM_REF). modref and pure-const then
// take the access for an access to null, and drop later stores of the function. With no-delete-null-pointer-checks they
// do not (gcc's PR tree-optimization/110702).
void print_prologue(Text *out) {
  text_add_string(out, prologue_text);
}

// For loading

typedef struct Loading {
  const Program *program;
  const Isa *isa;
  const Text *body;
  const Constants *constants;
  bool has_cuts;
} Loading;

static void add_part(const void *context, const char *name, Text *out) {
  const Loading *l = context;
  if (is_part(name, "GRAPH")) text_add_user_string(out, SINK_COMMENT, l->program->graph->name);
  else if (is_part(name, "ISA")) text_add_string(out, l->isa->name);
  else if (is_part(name, "PROLOGUE")) print_prologue(out);
  else if (is_part(name, "DEFINITIONS")) {
    print_target(l->isa, out);
    out->out_of_memory |= !print_vocabulary(l->isa, l->body, NULL, NULL, out);
    text_add(out, text_string(&l->constants->text), l->constants->text.nbytes);
  } else if (is_part(name, "PROGRAM")) text_add(out, text_string(l->body), l->body->nbytes);
  else if (is_part(name, "TARGET_END")) {
    if (l->has_cuts) text_add_string(out, "\f\n");
    print_target_end(l->isa, out);
  }
}

// Programs of fewer kernels compile in a second or two.
enum { KERNELS_TO_CUT = 16 };

bool emit_for_loading(const Program *program, const Isa *isa, const char *identifier, bool are_constants_given,
                      Text *source) {
  Arena scratch;
  arena_init(&scratch, source->allocator);
  Text plain, body;
  Constants constants = {.first = NULL};
  const bool has_cuts = program->nkernels >= KERNELS_TO_CUT;
  text_init(&plain, source->allocator);
  text_init(&body, source->allocator);
  text_init(&constants.text, source->allocator);
  Printer p = {.scratch = &scratch,
               .out = &body,
               .plain = has_cuts ? &plain : &body,
               .program = program,
               .prefix = identifier,
               .identifier = identifier,
               .constants = are_constants_given ? NULL : &constants,
               .has_cuts = has_cuts,
               .threads = EMIT_LIST};
  if (has_cuts) text_add_string(&plain, "#pragma GCC visibility push(hidden)\n\n");
  bool ok = print_program(&p);
  if (has_cuts) text_add_string(&plain, "#pragma GCC visibility pop\n\n");
  text_add(&plain, text_string(&body), body.nbytes);
  ok &= !plain.out_of_memory;
  const Loading loading = {program, isa, &plain, &constants, has_cuts};
  const TemplateFact facts[] = {{NULL, false}};
  if (ok) print_template(&(Template){loading_text, identifier, add_part, &loading, facts}, source);
  text_deinit(&constants.text);
  text_deinit(&body);
  text_deinit(&plain);
  arena_deinit(&scratch);
  return ok && !source->out_of_memory;
}
