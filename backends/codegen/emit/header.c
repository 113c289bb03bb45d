// The header of a pair of files: status codes, instruction sets, the entry point's contract, what describes it.
#include "backends/codegen/emit/header.h"

#include "backends/codegen/emit/emit.h"
#include "backends/codegen/emit/flow.h"
#include "backends/codegen/print/types.h"
#include "ir/graph/open.h"
#include "ir/support/escape.h"

#include <ctype.h>
#include <string.h>

static void add_upper(Text *out, const char *text) {
  for (; *text; text++) text_format(out, "%c", toupper((unsigned char)*text));
}

void add_isa(const FilePrinter *f, size_t i, Text *out) {
  text_format(out, "%s_ISA_", f->prefix);
  add_upper(out, f->file->isas[i]->name);
}

// Parameters

void add_output_name(const FilePrinter *f, Text *out, size_t i) {
  const char *member = f->member[f->graph->outputs[i]->index];
  if (!output_is_copy(f->graph, i)) text_add_string(out, member);
  else text_format(out, "%s_%zu_out", member ? member : "constant", i);
}

void add_dim_parameters(const FilePrinter *f, Text *out) {
  for (size_t i = 0; i < f->graph->ndims; i++) text_format(out, "%sint64_t %s", i ? ", " : "", f->dim_member[i]);
}

void add_parameters(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  if (g->ndims) text_add_string(out, "    ");
  add_dim_parameters(f, out);
  if (g->ndims) text_add_string(out, ",\n");
  for (size_t i = 0; i < g->ninputs; i++) {
    const Value *v = g->inputs[i];
    text_format(out, "    const %s *", element_type(v->type));
    if (!f->is_place[i]) text_format(out, "%s_RESTRICT ", f->prefix);
    text_format(out, "%s, /* ", f->member[v->index]);
    add_tensor_comment(out, v, f->member[v->index]);
    text_add_string(out, " */\n");
  }
  for (size_t i = 0; i < g->noutputs; i++) {
    text_format(out, "    %s *", element_type(g->outputs[i]->type));
    if (!f->in_place[i].count) text_format(out, "%s_RESTRICT ", f->prefix);
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

void print_origin(const FilePrinter *f, Text *out) {
  text_add_string(out, "/* Made by ngrad " NGRAD_VERSION " from the graph ");
  text_add_user_string(out, SINK_COMMENT, f->graph->name);
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
    const InPlace *places = &f->in_place[o];
    if (!places->count) continue;
    if (!is_any) text_format(out, "%s, but one each may lie exactly in place of an input: ", before);
    text_add_string(out, is_any ? "; " : "");
    add_output_name(f, out, o);
    for (uint32_t i = 0; i < places->count; i++)
      text_format(out, "%s %s", i ? " or" : " of", f->member[g->inputs[places->inputs[i]]->index]);
    is_any = true;
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
      if (loop->nouter && loop->ninner && p->kernels[i]->axes[loop->order[loop->nouter + loop->ninner - 1]].monomial)
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
      text_add_user_string(out, SINK_COMMENT, g->dims[i]->name);
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

void print_header(const FilePrinter *f, Text *out) {
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
