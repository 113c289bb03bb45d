// Files to keep. The header: status codes, instruction sets, the entry point and what describes it. The source: for
// each instruction set a section that compilers without it skip, with the vocabulary and the program under names of its
// own; then the choice among them.
#include "backends/codegen/codegen.h"
#include "backends/codegen/emit.h"
#include "backends/codegen/flow.h"

#include <ctype.h>
#include <string.h>

enum { ABI = 1, MOST_ISAS = 16 };

typedef struct FilePrinter {
  const EmittedFile *file;
  const char *prefix;
  const Graph *graph; // the first program's
  Arena *scratch;
  Text constants, sections;
  const char **member;      // by value->index
  bool is_there[MOST_ISAS]; // by file->isas: has a section
  bool *is_in_place;        // by output * ninputs + input: may be the same memory
  bool has_shared_loops;
  size_t workspace_nbytes;
} FilePrinter;

// Strings as C has them: what is not plain, and what could be a trigraph, in octal.
static void add_string(Text *out, const char *text) {
  text_add_string(out, "\"");
  for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
    if (*c < 0x20 || *c >= 0x7F || strchr("\"\\?", *c)) text_format(out, "\\%03o", *c);
    else text_add(out, (const char *)c, 1);
  }
  text_add_string(out, "\"");
}

static void add_upper(Text *out, const char *text) {
  for (; *text; text++) text_format(out, "%c", toupper((unsigned char)*text));
}

static bool is_input_of_place(const FilePrinter *f, size_t input) {
  for (size_t o = 0; o < f->graph->noutputs; o++)
    if (f->is_in_place[o * f->graph->ninputs + input]) return true;
  return false;
}

static bool is_output_of_place(const FilePrinter *f, size_t output) {
  for (size_t i = 0; i < f->graph->ninputs; i++)
    if (f->is_in_place[output * f->graph->ninputs + i]) return true;
  return false;
}

// Parameters

static void add_output_name(const FilePrinter *f, Text *out, size_t i) {
  const char *member = f->member[f->graph->outputs[i]->index];
  if (!output_is_copy(f->graph, i)) text_add_string(out, member);
  else text_format(out, "%s_%zu_out", member ? member : "constant", i);
}

static void add_parameters(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  for (size_t i = 0; i < g->ninputs; i++) {
    const Value *v = g->inputs[i];
    text_format(out, "    const %s *", element_type(v->type));
    if (!is_input_of_place(f, i)) text_format(out, "%s_RESTRICT ", f->prefix);
    text_format(out, "%s, /* ", f->member[v->index]);
    add_tensor_comment(out, v);
    text_add_string(out, " */\n");
  }
  for (size_t i = 0; i < g->noutputs; i++) {
    text_format(out, "    %s *", element_type(g->outputs[i]->type));
    if (!is_output_of_place(f, i)) text_format(out, "%s_RESTRICT ", f->prefix);
    add_output_name(f, out, i);
    text_add_string(out, ", /* ");
    add_tensor_comment(out, g->outputs[i]);
    text_add_string(out, " */\n");
  }
  text_add_string(out, "    void *workspace, size_t workspace_nbytes, int isa");
  if (f->file->threads == EMIT_CALLBACK)
    text_format(out, ",\n    %s_parallel_for *parallel_for, void *context", f->prefix);
}

// Header

static const char licence[] =
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated\n"
    "documentation files (the \"Software\"), to deal in the Software without restriction, including without "
    "limitation\n"
    "the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and\n"
    "to permit persons to whom the Software is furnished to do so.\n\n"
    "THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED "
    "TO\n"
    "THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE\n"
    "AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF\n"
    "CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER "
    "DEALINGS\n"
    "IN THE SOFTWARE.\n";

static void print_origin(const FilePrinter *f, Text *out) {
  text_add_string(out, "/* Made by ngrad " NGRAD_VERSION " from the graph ");
  add_comment_text(out, f->graph->name);
  text_format(out, ",\n   %s.\n\nSPDX-License-Identifier: MIT-0\n\n%s*/\n", f->file->hash, licence);
}

static void print_enums(const FilePrinter *f, Text *out) {
  const char *p = f->prefix;
  text_format(out,
              "/* What a call returns. All but %s_OK mean that nothing was written. */\n"
              "enum {\n  %s_OK = 0,\n  %s_NULL_POINTER = 1, /* an input or the workspace is NULL */\n"
              "  %s_WORKSPACE_TOO_SMALL = 2,\n"
              "  %s_MISALIGNED = 3, /* a tensor to its elements, or the workspace to 64 bytes */\n"
              "  %s_UNKNOWN_ISA = 4 /* %s_has_isa() is 0 for it */\n};\n\n",
              p, p, p, p, p, p, p);
  text_format(out,
              "/* Instruction sets. Results are the same bits with each. */\nenum {\n  %s_ISA_BEST = 0, /* of what the "
              "processor has */\n",
              p);
  for (size_t i = 0; i < f->file->nisas; i++) {
    if (!f->is_there[i]) continue;
    text_format(out, "%s  %s_ISA_", i ? ",\n" : "", p);
    add_upper(out, f->file->isas[i]->name);
    text_format(out, " = %d", (int)(f->file->isas[i] - isas) + 1);
  }
  text_add_string(out, "\n};\n\n");
}

static void print_in_place(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  const char *before = "   No output may overlap anything else";
  bool is_any = false;
  for (size_t o = 0; o < g->noutputs; o++)
    for (size_t i = 0; i < g->ninputs; i++) {
      if (!f->is_in_place[o * g->ninputs + i]) continue;
      text_add_string(out, is_any ? ", " : before);
      if (!is_any) text_add_string(out, ", but one each may lie exactly in place of an input: ");
      add_output_name(f, out, o);
      text_format(out, " of %s", f->member[g->inputs[i]->index]);
      is_any = true;
    }
  text_format(out, "%s.\n", is_any ? "" : before);
}

static void print_contract(const FilePrinter *f, Text *out) {
  const char *p = f->prefix;
  text_format(
      out,
      "/* Bytes of workspace that a call needs for itself, aligned to 64 bytes; with 0 it may be NULL. The function\n"
      "   returns the macro. */\n#define %s_WORKSPACE_NBYTES ((size_t)%zu)\nsize_t %s_workspace_nbytes(void);\n\n",
      p, f->workspace_nbytes, p);
  text_format(out,
              "/* Whether this file was compiled with it and the processor has it: 1 or 0, for any number. */\n"
              "int %s_has_isa(int isa);\n\n",
              p);
  if (f->file->threads == EMIT_CALLBACK)
    text_format(
        out,
        "/* The caller's threads: must call task(args, block) once for each block from 0 to nblocks - 1, in any order\n"
        "   and from any thread, and return when all have returned. NULL: one after the other. */\n"
        "typedef void %s_task(const void *args, size_t block);\n"
        "typedef void %s_parallel_for(void *context, size_t nblocks, %s_task *task, const void *args);\n\n",
        p, p, p);
  text_add_string(out, "/* All tensors are dense, row-major but where said, bf16 and f16 as their bits, a boolean a "
                       "byte, 0 or 1. An output "
                       "that is NULL\n   is not written; an input of no elements may be NULL.\n");
  print_in_place(f, out);
  text_add_string(out, "   May be called from several threads at once, each with its own outputs and workspace. */\n");
  text_format(out, "int %s(\n", p);
  add_parameters(f, out);
  text_format(out, ");\n\n");
}

static void print_description(const FilePrinter *f, Text *out) {
  const char *p = f->prefix;
  text_format(
      out,
      "/* What this is. Strings and arrays are constant and stay. */\n"
      "typedef struct %s_tensor {\n  const char *name, *type; /* type: f64 f32 f16 bf16 s64 s32 s8 u8 boolean\n"
      "     f8_e4m3 f8_e5m2 s4 u4 */\n"
      "  int rank;\n  int64_t extent[8];\n} %s_tensor;\n\n"
      "typedef struct %s_info {\n  int abi; /* of this header: %d */\n"
      "  const char *ngrad; /* its version */\n  const char *graph, *hash; /* its name; of its text and constants */\n"
      "  const char *isas, *threads;\n  size_t workspace_nbytes;\n  size_t ninputs, noutputs;\n"
      "  const %s_tensor *tensors; /* in the order of the arguments */\n} %s_info;\n"
      "const %s_info *%s_get_info(void);\n\n",
      p, p, p, ABI, p, p, p, p);
}

static void print_header(const FilePrinter *f, Text *out) {
  const char *p = f->prefix;
  print_origin(f, out);
  text_format(out, "#ifndef NGRAD_%s_H\n#define NGRAD_%s_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n", p, p);
  text_format(
      out,
      "#ifdef __cplusplus\nextern \"C\" {\n#define %s_RESTRICT __restrict\n#else\n#define %s_RESTRICT restrict\n"
      "#endif\n\n",
      p, p);
  print_enums(f, out);
  print_contract(f, out);
  print_description(f, out);
  text_add_string(out, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

// Source

static void print_pool(const FilePrinter *f, Text *out) {
  static const char *const bodies[] = {
      [EMIT_SERIAL] = "  (void)pool;\n  for (size_t b = 0; b < nblocks; b++) task(args, b);\n",
      [EMIT_OPENMP] = "  (void)pool;\n#ifdef _OPENMP\n#pragma omp parallel for schedule(dynamic)\n#endif\n"
                      "  for (size_t b = 0; b < nblocks; b++) task(args, b);\n",
      [EMIT_CALLBACK] = "  if (pool->parallel_for) pool->parallel_for(pool->context, nblocks, task, args);\n"
                        "  else\n    for (size_t b = 0; b < nblocks; b++) task(args, b);\n",
  };
  const char *p = f->prefix;
  if (f->file->threads == EMIT_CALLBACK)
    text_format(out, "struct %s_pool {\n  %s_parallel_for *parallel_for;\n  void *context;\n};\n\n", p, p);
  else text_format(out, "struct %s_pool;\n\n", p);
  if (!f->has_shared_loops) return;
  text_format(out,
              "static void %s_for(const struct %s_pool *pool, size_t nblocks, void (*task)(const void *, size_t),\n"
              "    const void *args) {\n%s}\n\n",
              p, p, bodies[f->file->threads]);
}

// What a compiler may only do for an instruction set stands between these.
static void open_guard(const Isa *isa, Text *out) {
  if (isa->target || strcmp(isa->compiles, "1") != 0) text_format(out, "#if %s\n", isa->compiles);
}

static void close_guard(const Isa *isa, Text *out) {
  if (isa->target || strcmp(isa->compiles, "1") != 0) text_add_string(out, "#endif\n");
}

// GNU C's vectors are no part of ISO C or C++, which only its pedantry minds.
static void print_section(const Isa *isa, const Text *vocabulary, const Text *body, Text *out) {
  text_format(out, "/* ---- %s ---- */\n\n", isa->name);
  open_guard(isa, out);
  text_add_string(
      out, "#ifdef __GNUC__\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wpedantic\"\n#endif\n");
  print_target(isa, out);
  print_renames(vocabulary, isa->name, out);
  text_add_string(out, "\n");
  text_add(out, text_string(vocabulary), vocabulary->nbytes);
  text_add(out, text_string(body), body->nbytes);
  print_undefinitions(vocabulary, out);
  text_add_string(out, "\n");
  print_target_end(isa, out);
  text_add_string(out, "#ifdef __GNUC__\n#pragma GCC diagnostic pop\n#endif\n");
  close_guard(isa, out);
  text_add_string(out, "\n");
}

static bool find_in_place(FilePrinter *f, const Program *p) {
  const Graph *g = p->graph;
  Flow flow;
  if (!flow_find(&flow, p, f->scratch)) return false;
  for (size_t o = 0; o < g->noutputs; o++)
    for (size_t i = 0; i < g->ninputs; i++)
      f->is_in_place[o * g->ninputs + i] &= flow_allows_in_place(&flow, o, i, f->scratch);
  return true;
}

static bool add_section(FilePrinter *f, size_t i) {
  const Isa *isa = f->file->isas[i];
  Text vocabulary, body;
  text_init(&vocabulary, f->sections.allocator);
  text_init(&body, f->sections.allocator);
  Printer p = {.scratch = f->scratch,
               .out = &body,
               .program = f->file->programs[i],
               .prefix = f->prefix,
               .has_optional_outputs = true};
  p.identifier = arena_format(f->scratch, "%s_%s", f->prefix, isa->name);
  bool ok = p.identifier && print_program(&p, f->member ? NULL : &f->constants) && find_in_place(f, p.program);
  if (ok && !f->member) f->member = p.value_member;
  bool has_base = i > 0 && f->file->isas[i - 1]->vocabulary[0] == isa->vocabulary[1]; // which does as well
  f->is_there[i] = ok && (!has_base || needs_vocabulary(isa, &body));
  if (f->is_there[i]) {
    ok = print_vocabulary(isa, &body, &vocabulary);
    print_section(isa, &vocabulary, &body, &f->sections);
    f->has_shared_loops |= program_has_shared_loops(p.program);
    if (p.workspace_nbytes > f->workspace_nbytes) f->workspace_nbytes = p.workspace_nbytes;
  }
  text_deinit(&vocabulary);
  text_deinit(&body);
  return ok;
}

static void print_has_isa(const FilePrinter *f, Text *out) {
  text_format(out, "int %s_has_isa(int isa) {\n  switch (isa) {\n", f->prefix);
  for (size_t i = 0; i < f->file->nisas; i++) {
    const Isa *isa = f->file->isas[i];
    if (!f->is_there[i]) continue;
    open_guard(isa, out);
    text_format(out, "  case %s_ISA_", f->prefix);
    add_upper(out, isa->name);
    text_format(out, ": return %s;\n", isa->runs);
    close_guard(isa, out);
  }
  text_add_string(out, "  default: return 0;\n  }\n}\n\n");
}

static void print_info(const FilePrinter *f, Text *out) {
  static const char *const threads[] = {[EMIT_SERIAL] = "none", [EMIT_OPENMP] = "openmp", [EMIT_CALLBACK] = "callback"};
  const Graph *g = f->graph;
  text_format(out, "const %s_info *%s_get_info(void) {\n  static const %s_tensor tensors[] = {\n", f->prefix, f->prefix,
              f->prefix);
  for (size_t i = 0; i < g->ninputs + g->noutputs; i++) {
    const Value *v = i < g->ninputs ? g->inputs[i] : g->outputs[i - g->ninputs];
    text_add_string(out, "    {");
    add_string(out, v->name);
    text_format(out, ", \"%s\", %d, {", type_name(v->type), v->shape.rank);
    for (int k = 0; k < MAX_RANK; k++)
      text_format(out, "%s%lld", k ? ", " : "", k < v->shape.rank ? (long long)extent_value(v->shape.extent[k]) : 0LL);
    text_add_string(out, "}},\n");
  }
  text_format(out, "  };\n  static const %s_info info = {%d, \"" NGRAD_VERSION "\", ", f->prefix, ABI);
  add_string(out, g->name);
  text_format(out, ",\n    \"%s\",\n    \"", f->file->hash);
  const char *before = "";
  for (size_t i = 0; i < f->file->nisas; i++) {
    if (!f->is_there[i]) continue;
    text_format(out, "%s%s", before, f->file->isas[i]->name);
    before = " ";
  }
  text_format(out, "\", \"%s\", %s_WORKSPACE_NBYTES, %zu, %zu, tensors};\n  return &info;\n}\n\n",
              threads[f->file->threads], f->prefix, g->ninputs, g->noutputs);
}

static void print_checks(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  for (size_t i = 0; i < g->ninputs; i++) {
    const Value *v = g->inputs[i];
    if (shape_nelems(&v->shape))
      text_format(out, "  if (!%s) return %s_NULL_POINTER;\n", f->member[v->index], f->prefix);
  }
  if (f->workspace_nbytes)
    text_format(out,
                "  if (!workspace) return %s_NULL_POINTER;\n  if ((uintptr_t)workspace %% 64) return %s_MISALIGNED;\n"
                "  if (workspace_nbytes < %s_WORKSPACE_NBYTES) return %s_WORKSPACE_TOO_SMALL;\n",
                f->prefix, f->prefix, f->prefix, f->prefix);
  else text_add_string(out, "  (void)workspace_nbytes;\n");
  for (size_t i = 0; i < g->ninputs + g->noutputs; i++) {
    const Value *v = i < g->ninputs ? g->inputs[i] : g->outputs[i - g->ninputs];
    if (type_nbytes(v->type) == 1) continue;
    text_add_string(out, "  if ((uintptr_t)");
    if (i < g->ninputs) text_add_string(out, f->member[v->index]);
    else add_output_name(f, out, i - g->ninputs);
    text_format(out, " %% %zu) return %s_MISALIGNED;\n", type_nbytes(v->type), f->prefix);
  }
}

static void print_choice(const FilePrinter *f, Text *out) {
  size_t best = 0;
  for (size_t i = 0; i < f->file->nisas; i++)
    if (f->is_there[i]) best = i;
  text_format(out, "  if (isa == %s_ISA_BEST)\n    for (isa = %s_ISA_", f->prefix, f->prefix);
  add_upper(out, f->file->isas[best]->name);
  text_format(
      out, "; isa > 1 && !%s_has_isa(isa);) isa--;\n  if (!%s_has_isa(isa)) return %s_UNKNOWN_ISA;\n  switch (isa) {\n",
      f->prefix, f->prefix, f->prefix);
  for (size_t i = f->file->nisas; i-- > 0;) {
    const Isa *isa = f->file->isas[i];
    if (!f->is_there[i]) continue;
    open_guard(isa, out);
    text_format(out, "  case %s_ISA_", f->prefix);
    add_upper(out, isa->name);
    text_format(out, ": %s_%s_run(inputs, outputs, (unsigned char *)workspace, %s); break;\n", f->prefix, isa->name,
                f->file->threads == EMIT_CALLBACK ? "&pool" : "NULL");
    close_guard(isa, out);
  }
  text_format(out, "  default: break;\n  }\n  return %s_OK;\n}\n", f->prefix);
}

static void print_entry(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  text_format(out, "int %s(\n", f->prefix);
  add_parameters(f, out);
  text_add_string(out, ") {\n  const void *const inputs[] = {");
  for (size_t i = 0; i < g->ninputs; i++) text_format(out, "%s, ", f->member[g->inputs[i]->index]);
  text_add_string(out, "NULL};\n  void *const outputs[] = {");
  for (size_t i = 0; i < g->noutputs; i++) {
    add_output_name(f, out, i);
    text_add_string(out, ", ");
  }
  text_add_string(out, "NULL};\n");
  if (f->file->threads == EMIT_CALLBACK)
    text_format(out, "  const struct %s_pool pool = {parallel_for, context};\n", f->prefix);
  print_checks(f, out);
  print_choice(f, out);
}

static void print_source(const FilePrinter *f, Text *out) {
  print_origin(f, out);
  text_format(out, "#include \"%s.h\"\n\n", f->file->file_stem);
  print_prologue(out);
  text_add(out, text_string(&f->constants), f->constants.nbytes);
  print_pool(f, out);
  text_add(out, text_string(&f->sections), f->sections.nbytes);
  text_format(out, "size_t %s_workspace_nbytes(void) {\n  return %s_WORKSPACE_NBYTES;\n}\n\n", f->prefix, f->prefix);
  print_has_isa(f, out);
  print_info(f, out);
  print_entry(f, out);
}

bool emit_file(const EmittedFile *file, const Allocator *allocator, Text *source, Text *header) {
  Arena scratch;
  arena_init(&scratch, allocator);
  const Graph *g = file->programs[0]->graph;
  FilePrinter f = {.file = file, .prefix = file->prefix, .graph = g, .scratch = &scratch};
  text_init(&f.constants, allocator);
  text_init(&f.sections, allocator);
  f.is_in_place = ARENA_ARRAY(&scratch, bool, g->noutputs * g->ninputs + 1);
  bool ok = f.is_in_place && file->nisas <= MOST_ISAS;
  if (ok) memset(f.is_in_place, true, g->noutputs * g->ninputs);
  for (size_t i = 0; ok && i < file->nisas; i++) ok = add_section(&f, i);
  if (ok && file->is_in_place) memcpy(file->is_in_place, f.is_in_place, g->noutputs * g->ninputs);
  if (ok) {
    print_source(&f, source);
    print_header(&f, header);
    ok = !f.constants.out_of_memory && !f.sections.out_of_memory && !source->out_of_memory && !header->out_of_memory;
  }
  text_deinit(&f.constants);
  text_deinit(&f.sections);
  arena_deinit(&scratch);
  return ok;
}
