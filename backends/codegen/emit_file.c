// Files to keep. The header: status codes, instruction sets, the entry point and what describes it. The source: for
// each instruction set a section that compilers without it skip, with the vocabulary and the program under names of its
// own; then the choice among them.
#include "backends/codegen/codegen.h"
#include "backends/codegen/emit.h"
#include "backends/codegen/flow.h"
#include "ir/open.h"

#include <ctype.h>
#include <string.h>

enum { ABI = 3, MOST_ISAS = 16 };

typedef struct FilePrinter {
  const EmittedFile *file;
  const char *prefix;
  const Graph *graph; // the first program's
  Arena *scratch;
  Text constants, sections;
  const char **member;      // by value->index
  const char **dim_member;  // by open dim
  bool has_open_workspace;  // what a call needs depends on them
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

static void add_isa(const FilePrinter *f, size_t i, Text *out) {
  text_format(out, "%s_ISA_", f->prefix);
  add_upper(out, f->file->isas[i]->name);
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

static void add_dim_parameters(const FilePrinter *f, Text *out) {
  for (size_t i = 0; i < f->graph->ndims; i++) text_format(out, "%sint64_t %s", i ? ", " : "", f->dim_member[i]);
}

static void add_parameters(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  if (g->ndims) text_add_string(out, "    ");
  add_dim_parameters(f, out);
  if (g->ndims) text_add_string(out, ",\n");
  for (size_t i = 0; i < g->ninputs; i++) {
    const Value *v = g->inputs[i];
    text_format(out, "    const %s *", element_type(v->type));
    if (!is_input_of_place(f, i)) text_format(out, "%s_RESTRICT ", f->prefix);
    text_format(out, "%s, /* ", f->member[v->index]);
    add_tensor_comment(out, v, f->member[v->index]);
    text_add_string(out, " */\n");
  }
  for (size_t i = 0; i < g->noutputs; i++) {
    text_format(out, "    %s *", element_type(g->outputs[i]->type));
    if (!is_output_of_place(f, i)) text_format(out, "%s_RESTRICT ", f->prefix);
    add_output_name(f, out, i);
    text_add_string(out, ", /* ");
    add_tensor_comment(out, g->outputs[i], output_is_copy(g, i) ? "" : f->member[g->outputs[i]->index]);
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
              "  %s_UNKNOWN_ISA = 4, /* %s_has_isa() is 0 for it */\n"
              "  %s_EXTENT_OUT_OF_RANGE = 5 /* negative, or some tensor of the graph would have too many elements */\n"
              "};\n\n",
              p, p, p, p, p, p, p, p);
  text_format(out,
              "/* Instruction sets. Results are the same bits with each. */\nenum {\n  %s_ISA_BEST = 0, /* of what the "
              "processor has */\n",
              p);
  for (size_t i = 0; i < f->file->nisas; i++) {
    if (!f->is_there[i]) continue;
    text_add_string(out, i ? ",\n  " : "  ");
    add_isa(f, i, out);
    text_format(out, " = %d", f->file->isas[i]->number);
  }
  text_add_string(out, "\n};\n\n");
}

static void print_in_place(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  const char *before = "   No output may overlap anything else";
  bool is_any = false;
  for (size_t o = 0; o < g->noutputs; o++) {
    bool is_named = false;
    for (size_t i = 0; i < g->ninputs; i++) {
      if (!f->is_in_place[o * g->ninputs + i]) continue;
      if (!is_any) text_format(out, "%s, but one each may lie exactly in place of an input: ", before);
      if (!is_named) {
        text_add_string(out, is_any ? "; " : "");
        add_output_name(f, out, o);
      }
      text_format(out, "%s %s", is_named ? " or" : " of", f->member[g->inputs[i]->index]);
      is_any = is_named = true;
    }
  }
  text_format(out, "%s.\n", is_any ? "" : before);
}

static void print_workspace(const FilePrinter *f, Text *out) {
  const char *p = f->prefix;
  text_add_string(out,
                  "/* Bytes of workspace that a call needs for itself, aligned to 64 bytes; with 0 it may be NULL. ");
  if (f->has_open_workspace) {
    text_format(out, "SIZE_MAX where\n   the call returns %s_EXTENT_OUT_OF_RANGE. */\n", p);
  } else {
    text_format(out, "The function\n   returns the macro. */\n#define %s_WORKSPACE_NBYTES ((size_t)%zu)\n", p,
                f->workspace_nbytes);
  }
  text_format(out, "size_t %s_workspace_nbytes(", p);
  if (f->has_open_workspace) add_dim_parameters(f, out);
  text_format(out, "%s);\n\n", f->has_open_workspace ? "" : "void");
}

// Whether the length of some rows is an argument, so that short ones are not known to be.
static bool has_open_rows(const Program *p) {
  for (size_t i = 0; i < p->nkernels; i++)
    for (size_t l = 0; l < p->kernels[i]->nloops; l++) {
      const Loop *loop = &p->kernels[i]->loops[l];
      if (loop->nouter && loop->ninner && p->kernels[i]->axes[loop->order[loop->nouter + loop->ninner - 1]].powers)
        return true;
    }
  return false;
}

// Which extents are arguments, and what the schedule is made for.
static void print_dims(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  if (!g->ndims) return;
  text_add_string(out, "/* Extents that a call gives, 0 or more:");
  for (size_t i = 0; i < g->ndims; i++) {
    text_format(out, "%s %s", i ? "," : "", f->dim_member[i]);
    if (strcmp(f->dim_member[i], g->dims[i]->name) != 0) {
      text_add_string(out, " (");
      add_comment_text(out, g->dims[i]->name);
      text_add_string(out, ")");
    }
    text_format(out, ", scheduled for %lld", (long long)g->dims[i]->value);
  }
  text_add_string(out, ".\n   Sums are added up in that schedule's order: the same bits as with those extents baked "
                       "in, while at others,\n"
                       "   one that has them baked in may round otherwise.");
  if (has_open_rows(f->file->programs[0]))
    text_add_string(out, " So may one that knows that rows are shorter than 40.");
  text_add_string(out, " */\n\n");
}

static void print_contract(const FilePrinter *f, Text *out) {
  const char *p = f->prefix;
  print_workspace(f, out);
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
  text_add_string(out,
                  "/* All tensors are dense, row-major but where said, bf16 and f16 as their bits, a boolean a "
                  "byte, 0 or 1.\n   An output that is NULL is not written; an input of no elements may be NULL.\n");
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
      "typedef struct %s_tensor {\n  const char *name;\n"
      "  const char *type; /* f64 f32 f16 bf16 s64 s32 s8 u8 boolean f8_e4m3 f8_e5m2 s4 u4 */\n"
      "  int rank;\n"
      "  int64_t extent[8]; /* negative: so many times the extents that a call gives, whose names stand in */\n"
      "  const char *dim[8]; /* with a * between them; NULL: extent is a number */\n"
      "  int order[8]; /* the axes as they lie in memory, from the slowest to the fastest */\n} %s_tensor;\n\n"
      "typedef struct %s_info {\n  int abi; /* of this header: %d */\n"
      "  const char *ngrad; /* its version */\n  const char *graph, *hash; /* its name; of its text and constants */\n"
      "  const char *isas, *threads;\n  size_t workspace_nbytes; /* 0 also where it depends on extents */\n"
      "  size_t ninputs, noutputs;\n"
      "  const %s_tensor *tensors; /* in the order of the arguments */\n"
      "  size_t ndims; /* extents that a call gives */\n"
      "  const char *const *dims; /* their names, in the order of the arguments */\n"
      "  const int64_t *hints; /* the extents that the schedule is made for */\n} %s_info;\n"
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
  print_dims(f, out);
  print_contract(f, out);
  print_description(f, out);
  text_add_string(out, "#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

// Source

// Blocks in up to 32 shares of neighbours.
static void print_openmp_for(const char *p, Text *out) {
  text_format(out,
              "  (void)pool;\n#ifdef _OPENMP\n"
              "  struct %s_share share[32];\n"
              "  const size_t nshares = nblocks < 32 ? nblocks : 32;\n"
              "  for (size_t i = 0; i < nshares; i++) {\n"
              "    share[i].next = nblocks * i / nshares;\n"
              "    share[i].end = nblocks * (i + 1) / nshares;\n  }\n"
              "#pragma omp parallel if (nblocks > 1)\n  {\n"
              "#pragma omp for schedule(static) nowait\n"
              "    for (size_t i = 0; i < nshares; i++) %s_take(&share[i], task, args);\n"
              "    for (size_t i = 0; i < nshares; i++) %s_take(&share[i], task, args);\n  }\n"
              "#else\n  for (size_t b = 0; b < nblocks; b++) task(args, b);\n#endif\n",
              p, p, p);
}

static void print_openmp_take(const char *p, Text *out) {
  text_format(
      out,
      "#ifdef _OPENMP\n"
      "/* Each thread begins with shares of neighbouring blocks, the same ones in each call, that its core's caches\n"
      "   may still hold, and then helps with the others'. */\n"
      "struct %s_share {\n  size_t next, end;\n};\n\n"
      "static void %s_take(struct %s_share *share, void (*task)(const void *, size_t), const void *args) {\n"
      "  for (;;) {\n    size_t b;\n"
      "#pragma omp atomic capture\n"
      "    b = share->next++;\n"
      "    if (b >= share->end) return;\n"
      "    task(args, b);\n  }\n}\n#endif\n\n",
      p, p, p);
}

static void print_pool(const FilePrinter *f, Text *out) {
  static const char *const bodies[] = {
      [EMIT_SERIAL] = "  (void)pool;\n  for (size_t b = 0; b < nblocks; b++) task(args, b);\n",
      [EMIT_CALLBACK] = "  if (pool->parallel_for) pool->parallel_for(pool->context, nblocks, task, args);\n"
                        "  else\n    for (size_t b = 0; b < nblocks; b++) task(args, b);\n",
  };
  const char *p = f->prefix;
  const bool is_openmp = f->file->threads == EMIT_OPENMP;
  if (f->file->threads == EMIT_CALLBACK)
    text_format(out, "struct %s_pool {\n  %s_parallel_for *parallel_for;\n  void *context;\n};\n\n", p, p);
  else text_format(out, "struct %s_pool;\n\n", p);
  if (!f->has_shared_loops) return;
  if (is_openmp) print_openmp_take(p, out);
  text_format(out,
              "static void %s_for(const struct %s_pool *pool, size_t nblocks, void (*task)(const void *, size_t), "
              "const void *args) {\n",
              p, p);
  if (is_openmp) print_openmp_for(p, out);
  else text_add_string(out, bodies[f->file->threads]);
  text_add_string(out, "}\n\n");
}

// What a compiler may only do for an instruction set stands between these. `open` is the condition that is, if any;
// without an instruction set it ends.
static void change_guard(const char **open, const Isa *isa, Text *out) {
  const char *condition = isa && (isa->target || strcmp(isa->compiles, "1") != 0) ? isa->compiles : NULL;
  if (*open && condition && strcmp(*open, condition) == 0) return;
  if (*open) text_add_string(out, "#endif\n");
  if (condition) text_format(out, "#if %s\n", condition);
  *open = condition;
}

// GNU C's vectors are no part of ISO C or C++, which only its pedantry minds.
// What is plain must run on processors without the instruction set.
static void print_section(const Isa *isa, const char *identifier, const Text *vocabulary, const Text *plain,
                          const Text *body, Text *out) {
  const char *guard = NULL;
  text_format(out, "/* ---- %s ---- */\n\n", isa->name);
  change_guard(&guard, isa, out);
  text_add_string(
      out, "#ifdef __GNUC__\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wpedantic\"\n#endif\n");
  print_renames(vocabulary, identifier, out);
  text_add_string(out, "\n");
  text_add(out, text_string(plain), plain->nbytes);
  print_target(isa, out);
  text_add(out, text_string(vocabulary), vocabulary->nbytes);
  text_add(out, text_string(body), body->nbytes);
  print_undefinitions(vocabulary, out);
  text_add_string(out, "\n");
  print_target_end(isa, out);
  text_add_string(out, "#ifdef __GNUC__\n#pragma GCC diagnostic pop\n#endif\n");
  change_guard(&guard, NULL, out);
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
  Text vocabulary, plain, body;
  text_init(&vocabulary, f->sections.allocator);
  text_init(&plain, f->sections.allocator);
  text_init(&body, f->sections.allocator);
  Printer p = {.scratch = f->scratch,
               .out = &body,
               .plain = &plain,
               .program = f->file->programs[i],
               .prefix = f->prefix,
               .has_optional_outputs = true};
  p.identifier = arena_format(f->scratch, "%s_%s", f->prefix, isa->name);
  bool ok = p.identifier && print_program(&p, f->member ? NULL : &f->constants) && find_in_place(f, p.program);
  if (ok && !f->member) {
    f->member = p.value_member;
    f->dim_member = p.dim_member;
  }
  bool has_base = i > 0 && f->file->isas[i - 1]->vocabulary[0] == isa->vocabulary[1]; // which does as well
  f->is_there[i] = ok && (!has_base || needs_vocabulary(isa, &body));
  if (f->is_there[i]) {
    ok = print_vocabulary(isa, &body, &vocabulary);
    print_section(isa, p.identifier, &vocabulary, &plain, &body, &f->sections);
    f->has_open_workspace |= p.has_open_workspace;
    ok = ok && !plain.out_of_memory;
    f->has_shared_loops |= program_has_shared_loops(p.program);
    if (p.workspace_nbytes > f->workspace_nbytes) f->workspace_nbytes = p.workspace_nbytes;
  }
  text_deinit(&vocabulary);
  text_deinit(&plain);
  text_deinit(&body);
  return ok;
}

static void print_has_isa(const FilePrinter *f, Text *out) {
  text_format(out, "int %s_has_isa(int isa) {\n  switch (isa) {\n", f->prefix);
  const char *guard = NULL;
  for (size_t i = 0; i < f->file->nisas; i++) {
    const Isa *isa = f->file->isas[i];
    if (!f->is_there[i]) continue;
    change_guard(&guard, isa, out);
    text_add_string(out, "  case ");
    add_isa(f, i, out);
    text_format(out, ": return %s;\n", isa->runs);
  }
  change_guard(&guard, NULL, out);
  text_add_string(out, "  default: return 0;\n  }\n}\n\n");
}

// The names of open dims in a product, as a string.
static void add_dim_names(const FilePrinter *f, Powers powers, Text *out) {
  const Graph *g = f->graph;
  const char *before = "";
  Text names;
  text_init(&names, f->scratch->allocator);
  for (size_t i = 0; powers && i < g->ndims; i++)
    for (int n = powers_of_dim(powers, i); n > 0; n--, before = "*")
      text_format(&names, "%s%s", before, g->dims[i]->name);
  if (powers) add_string(out, text_string(&names));
  else text_add_string(out, "NULL");
  out->out_of_memory |= names.out_of_memory;
  text_deinit(&names);
}

// Only as many dims and axes are spelled out as there are; a row's other members are 0.
static void print_tensor(const FilePrinter *f, const Value *v, Text *out) {
  const int rank = v->shape.rank;
  text_add_string(out, "    {");
  add_string(out, v->name);
  text_format(out, ", \"%s\", %d, {", type_name(v->type), rank);
  for (int k = 0; k < rank; k++) {
    const Extent e = v->shape.extent[k];
    const int64_t factor = open_factor(f->graph, extent_value(e), extent_powers(e));
    text_format(out, "%s%lld", k ? ", " : "", (long long)(extent_powers(e) ? -factor : factor));
  }
  text_add_string(out, rank ? "}, {" : "0}, {");
  for (int k = 0; k < rank; k++) {
    if (k) text_add_string(out, ", ");
    add_dim_names(f, extent_powers(v->shape.extent[k]), out);
  }
  text_add_string(out, rank ? "}, {" : "NULL}, {");
  for (int k = 0; k < rank; k++) text_format(out, "%s%d", k ? ", " : "", order_axis(&v->order, k));
  text_add_string(out, rank ? "}},\n" : "0}},\n");
}

static void print_info(const FilePrinter *f, Text *out) {
  static const char *const threads[] = {[EMIT_SERIAL] = "none", [EMIT_OPENMP] = "openmp", [EMIT_CALLBACK] = "callback"};
  const Graph *g = f->graph;
  text_format(out, "const %s_info *%s_get_info(void) {\n  static const %s_tensor tensors[] = {\n", f->prefix, f->prefix,
              f->prefix);
  for (size_t i = 0; i < g->ninputs; i++) print_tensor(f, g->inputs[i], out);
  for (size_t i = 0; i < g->noutputs; i++) print_tensor(f, g->outputs[i], out);
  text_add_string(out, "  };\n");
  if (g->ndims) {
    text_add_string(out, "  static const char *const dims[] = {");
    for (size_t i = 0; i < g->ndims; i++) {
      if (i) text_add_string(out, ", ");
      add_string(out, g->dims[i]->name);
    }
    text_add_string(out, "};\n  static const int64_t hints[] = {");
    for (size_t i = 0; i < g->ndims; i++) text_format(out, "%s%lld", i ? ", " : "", (long long)g->dims[i]->value);
    text_add_string(out, "};\n");
  }
  text_format(out, "  static const %s_info info = {%d, \"" NGRAD_VERSION "\", ", f->prefix, ABI);
  add_string(out, g->name);
  text_format(out, ",\n    \"%s\",\n    \"", f->file->hash);
  const char *before = "";
  for (size_t i = 0; i < f->file->nisas; i++) {
    if (!f->is_there[i]) continue;
    text_format(out, "%s%s", before, f->file->isas[i]->name);
    before = " ";
  }
  text_format(out, "\", \"%s\", %zu, %zu, %zu, tensors, %zu, %s};\n  return &info;\n}\n\n", threads[f->file->threads],
              f->has_open_workspace ? 0 : f->workspace_nbytes, g->ninputs, g->noutputs, g->ndims,
              g->ndims ? "dims, hints" : "NULL, NULL");
}

// Whether a tensor has elements when another, which some extents may keep from having them, does.
static bool is_there_with(const FilePrinter *f, const Value *a, const Value *b) {
  if (!shape_nelems(&a->shape)) return false;
  for (size_t k = 0; k < f->graph->ndims; k++)
    if (!powers_of_dim(shape_powers(&a->shape), k) != !powers_of_dim(shape_powers(&b->shape), k)) return false;
  return true;
}

// Of an input and those behind it that have elements when it has; nothing where one before it has told of it.
static void print_null_check(const FilePrinter *f, size_t first, Text *out) {
  const Graph *g = f->graph;
  const Value *v = g->inputs[first];
  bool is_told = !shape_nelems(&v->shape);
  for (size_t i = 0; i < first; i++) is_told |= is_there_with(f, g->inputs[i], v);
  if (is_told) return;
  size_t nalike = 0;
  for (size_t i = first; i < g->ninputs; i++) nalike += is_there_with(f, g->inputs[i], v);
  text_add_string(out, "  if (");
  for (size_t k = 0; k < g->ndims; k++)
    if (powers_of_dim(shape_powers(&v->shape), k)) text_format(out, "%s && ", f->dim_member[k]);
  const bool is_group = shape_powers(&v->shape) && nalike > 1;
  const char *before = is_group ? "(!" : "!";
  for (size_t i = first; i < g->ninputs; i++) {
    if (!is_there_with(f, g->inputs[i], v)) continue;
    text_format(out, "%s%s", before, f->member[g->inputs[i]->index]);
    before = " || !";
  }
  text_format(out, "%s) return %s_NULL_POINTER;\n", is_group ? ")" : "", f->prefix);
}

static void print_alignment_check(const FilePrinter *f, size_t nbytes, Text *out) {
  const Graph *g = f->graph;
  const char *before = "  if ((";
  for (size_t i = 0; i < g->ninputs + g->noutputs; i++) {
    const Value *v = i < g->ninputs ? g->inputs[i] : g->outputs[i - g->ninputs];
    if (type_nbytes(v->type) != nbytes) continue;
    text_format(out, "%s(uintptr_t)", before);
    if (i < g->ninputs) text_add_string(out, f->member[v->index]);
    else add_output_name(f, out, i - g->ninputs);
    before = " | ";
  }
  if (*before == ' ' && before[1] == '|') text_format(out, ") %% %zu) return %s_MISALIGNED;\n", nbytes, f->prefix);
}

static void print_checks(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  if (g->ndims) text_format(out, "  if (!%s_fits(extents)) return %s_EXTENT_OUT_OF_RANGE;\n", f->prefix, f->prefix);
  for (size_t i = 0; i < g->ninputs; i++) print_null_check(f, i, out);
  if (f->has_open_workspace)
    text_format(out,
                "  {\n    const uint64_t nbytes = %s_nbytes(extents);\n"
                "    if (nbytes && !workspace) return %s_NULL_POINTER;\n"
                "    if (nbytes && (uintptr_t)workspace %% 64) return %s_MISALIGNED;\n"
                "    if (workspace_nbytes < nbytes) return %s_WORKSPACE_TOO_SMALL;\n  }\n",
                f->prefix, f->prefix, f->prefix, f->prefix);
  else if (f->workspace_nbytes)
    text_format(out,
                "  if (!workspace) return %s_NULL_POINTER;\n  if ((uintptr_t)workspace %% 64) return %s_MISALIGNED;\n"
                "  if (workspace_nbytes < %s_WORKSPACE_NBYTES) return %s_WORKSPACE_TOO_SMALL;\n",
                f->prefix, f->prefix, f->prefix, f->prefix);
  else text_add_string(out, "  (void)workspace_nbytes;\n");
  for (size_t nbytes = 2; nbytes <= sizeof(double); nbytes *= 2) print_alignment_check(f, nbytes, out);
}

static void print_best(const FilePrinter *f, Text *out) {
  text_format(out, "  if (isa == %s_ISA_BEST)\n    isa = ", f->prefix);
  for (size_t i = f->file->nisas; i-- > 1;) {
    if (!f->is_there[i]) continue;
    text_format(out, "%s_has_isa(", f->prefix);
    add_isa(f, i, out);
    text_add_string(out, ") ? ");
    add_isa(f, i, out);
    text_add_string(out, "\n          : ");
  }
  add_isa(f, 0, out);
  text_add_string(out, ";\n");
}

static void print_choice(const FilePrinter *f, Text *out) {
  print_best(f, out);
  text_format(out, "  if (!%s_has_isa(isa)) return %s_UNKNOWN_ISA;\n  switch (isa) {\n", f->prefix, f->prefix);
  const char *guard = NULL;
  for (size_t i = f->file->nisas; i-- > 0;) {
    const Isa *isa = f->file->isas[i];
    if (!f->is_there[i]) continue;
    change_guard(&guard, isa, out);
    text_add_string(out, "  case ");
    add_isa(f, i, out);
    text_format(out, ": %s_%s_run(inputs, outputs, %s(unsigned char *)workspace, %s); break;\n", f->prefix, isa->name,
                f->graph->ndims ? "extents, " : "", f->file->threads == EMIT_CALLBACK ? "&pool" : "NULL");
  }
  change_guard(&guard, NULL, out);
  text_format(out, "  default: break;\n  }\n  return %s_OK;\n}\n", f->prefix);
}

static void print_extents(const FilePrinter *f, Text *out) {
  if (!f->graph->ndims) return;
  text_add_string(out, "  const int64_t extents[] = {");
  for (size_t i = 0; i < f->graph->ndims; i++) text_format(out, "%s%s", i ? ", " : "", f->dim_member[i]);
  text_add_string(out, "};\n");
}

// Numbers of elements, by what they are products of.
typedef struct Most {
  Powers powers;
  int64_t factor;
  size_t nbytes; // of an element
} Most;

static bool is_within(const FilePrinter *f, const Most *a, const Most *b) {
  for (size_t i = 0; i < f->graph->ndims; i++)
    if (powers_of_dim(a->powers, i) > powers_of_dim(b->powers, i)) return false;
  return a->factor <= b->factor && a->nbytes <= b->nbytes;
}

// The greatest of all values' in all programs, made of what a call can make too large. NULL: out of memory.
static Most *find_most(const FilePrinter *f, size_t *count) {
  size_t nvalues = 0;
  *count = 0;
  for (size_t p = 0; p < f->file->nisas; p++) nvalues += f->file->programs[p]->graph->nvalues;
  Most *most = ARENA_ARRAY(f->scratch, Most, nvalues + 1);
  for (size_t p = 0; most && p < f->file->nisas; p++) {
    const Graph *g = f->file->programs[p]->graph;
    for (size_t i = 0; i < g->nvalues; i++) {
      const Value *v = g->values[i];
      Most own = {shape_powers(&v->shape), 0, type_nbytes(v->type)};
      if (!own.powers || !(v->is_input || v->producer || v->constant)) continue;
      for (int k = 0; k < v->shape.rank; k++) {
        Extent e = v->shape.extent[k];
        int64_t factor = open_factor(g, extent_value(e), extent_powers(e));
        own.factor = (k ? own.factor : 1) * (factor ? factor : 1);
      }
      bool is_new = true;
      for (size_t n = 0; n < *count; n++) is_new &= !is_within(f, &own, &most[n]);
      if (!is_new) continue;
      size_t kept = 0;
      for (size_t n = 0; n < *count; n++)
        if (!is_within(f, &most[n], &own)) most[kept++] = most[n];
      most[kept++] = own;
      *count = kept;
    }
  }
  return most;
}

// Whether a call may have these extents: PREFIX_fits(extents).
static bool print_fits(const FilePrinter *f, Text *out) {
  size_t count;
  const Most *most = find_most(f, &count);
  const char *p = f->prefix;
  if (!most) return false;
  text_format(out,
              "/* A product, an extent of 0 counting as 1; UINT64_MAX where it is more. */\n"
              "static uint64_t %s_times(uint64_t n, int64_t extent) {\n"
              "  const uint64_t by = extent ? (uint64_t)extent : 1;\n"
              "  return n > UINT64_MAX / by ? UINT64_MAX : n * by;\n}\n\n"
              "static int %s_fits(const int64_t *extents) {\n  const uint64_t most = (UINT64_C(1) << 47) - 1;\n",
              p, p);
  if (count) text_add_string(out, "  uint64_t n;\n");
  for (size_t i = 0; i < f->graph->ndims; i++)
    text_format(out, "  if (extents[%zu] < 0 || (uint64_t)extents[%zu] > most) return 0;\n", i, i);
  for (size_t m = 0; m < count; m++) {
    text_format(out, "  n = %lld;\n", (long long)most[m].factor);
    for (size_t i = 0; i < f->graph->ndims; i++)
      for (int k = powers_of_dim(most[m].powers, i); k > 0; k--)
        text_format(out, "  n = %s_times(n, extents[%zu]);\n", p, i);
    text_format(out, "  if (n > most || n > SIZE_MAX / %zu) return 0;\n", most[m].nbytes);
  }
  if (f->has_open_workspace) text_format(out, "  if (%s_nbytes(extents) > SIZE_MAX) return 0;\n", p);
  text_format(out, "  return 1;\n}\n\n");
  return true;
}

// What the layouts of all instruction sets want at most: PREFIX_nbytes(extents).
static void print_nbytes(const FilePrinter *f, Text *out) {
  const char *p = f->prefix;
  text_format(out, "static uint64_t %s_nbytes(const int64_t *extents) {\n  uint64_t most = 0;\n", p);
  const char *guard = NULL;
  for (size_t i = 0; i < f->file->nisas; i++) {
    const Isa *isa = f->file->isas[i];
    if (!f->is_there[i]) continue;
    change_guard(&guard, isa, out);
    text_format(out,
                "  {\n    struct %s_%s_args a;\n    const uint64_t own = %s_%s_layout(&a, extents, NULL);\n"
                "    if (own > most) most = own;\n  }\n",
                p, isa->name, p, isa->name);
  }
  change_guard(&guard, NULL, out);
  text_add_string(out, "  return most;\n}\n\n");
}

static bool print_workspace_function(const FilePrinter *f, Text *out) {
  const char *p = f->prefix;
  if (f->has_open_workspace) print_nbytes(f, out);
  if (f->graph->ndims && !print_fits(f, out)) return false;
  text_format(out, "size_t %s_workspace_nbytes(", p);
  if (!f->has_open_workspace) {
    text_format(out, "void) {\n  return %s_WORKSPACE_NBYTES;\n}\n\n", p);
    return true;
  }
  add_dim_parameters(f, out);
  text_add_string(out, ") {\n");
  print_extents(f, out);
  text_format(out, "  return %s_fits(extents) ? (size_t)%s_nbytes(extents) : SIZE_MAX;\n}\n\n", p, p);
  return true;
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
  print_extents(f, out);
  if (f->file->threads == EMIT_CALLBACK)
    text_format(out, "  const struct %s_pool pool = {parallel_for, context};\n", f->prefix);
  print_checks(f, out);
  print_choice(f, out);
}

static bool print_source(const FilePrinter *f, Text *out) {
  print_origin(f, out);
  text_format(out, "#include \"%s.h\"\n\n", f->file->file_stem);
  print_prologue(out);
  text_add(out, text_string(&f->constants), f->constants.nbytes);
  print_pool(f, out);
  text_add(out, text_string(&f->sections), f->sections.nbytes);
  if (!print_workspace_function(f, out)) return false;
  print_has_isa(f, out);
  print_info(f, out);
  print_entry(f, out);
  return true;
}

bool emit_file(EmittedFile *file, const Allocator *allocator, Text *source, Text *header) {
  Arena scratch;
  arena_init(&scratch, allocator);
  const Graph *g = file->programs[0]->graph;
  FilePrinter f = {.file = file, .prefix = file->prefix, .graph = g, .scratch = &scratch};
  Text text;
  text_init(&text, allocator);
  text_init(&f.constants, allocator);
  text_init(&f.sections, allocator);
  f.is_in_place = ARENA_ARRAY(&scratch, bool, g->noutputs * g->ninputs + 1);
  bool ok = f.is_in_place && file->nisas <= MOST_ISAS;
  if (ok) memset(f.is_in_place, true, g->noutputs * g->ninputs);
  for (size_t i = 0; ok && i < file->nisas; i++) ok = add_section(&f, i);
  file->has_open_workspace = f.has_open_workspace;
  if (ok && file->is_in_place) memcpy(file->is_in_place, f.is_in_place, g->noutputs * g->ninputs);
  if (ok) {
    print_header(&f, &text);
    ok = text_move_wrapped(header, &text) && print_source(&f, &text) && text_move_wrapped(source, &text) &&
         !f.constants.out_of_memory && !f.sections.out_of_memory;
  }
  text_deinit(&text);
  text_deinit(&f.constants);
  text_deinit(&f.sections);
  arena_deinit(&scratch);
  return ok;
}
