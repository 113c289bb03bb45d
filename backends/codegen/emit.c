// A program as C source and header.
//
// The source: what it is, the vocabulary's part that it uses, a struct of pointers, each kernel's loops, and one
// function that runs them in order. For loading, OpenMP is left out: the caller hands in a parallel loop.
#include "backends/codegen/codegen.h"
#include "backends/codegen/printer.h"
#include "ir/operator.h"

#include <string.h>

static bool is_in_memory(const Printer *p, const Value *v) {
  return v->is_input || v->is_output || (v->constant && !v->constant->is_splat) ||
         p->program->is_in_workspace[v->index];
}

static bool name_members(Printer *p) {
  const Program *program = p->program;
  const Graph *g = program->graph;
  size_t ntemporaries = 0;
  p->value_member = ARENA_ARRAY(p->scratch, const char *, g->nvalues + 1);
  p->first_temporary = ARENA_ARRAY(p->scratch, size_t, program->nkernels + 1);
  if (!p->value_member || !p->first_temporary) return false;
  for (size_t i = 0; i < program->nkernels; i++) {
    p->first_temporary[i] = ntemporaries;
    ntemporaries += program->kernels[i]->ntemporaries;
  }
  p->temporary_member = ARENA_ARRAY(p->scratch, const char *, ntemporaries + 1);
  if (!p->temporary_member) return false;
  for (size_t i = 0; i < g->nvalues; i++)
    if (is_in_memory(p, g->values[i]))
      p->value_member[i] = print_member_name(p, g->values[i]->name, p->value_member, i, i);
  for (size_t i = 0; i < program->nkernels; i++) {
    for (size_t t = 0; t < program->kernels[i]->ntemporaries; t++) {
      size_t n = p->first_temporary[i] + t;
      Text name;
      text_init(&name, p->scratch->allocator);
      emit_identifier(program->kernels[i]->temporaries[t].name, &name);
      p->temporary_member[n] = arena_format(p->scratch, "k%zu_%zu_%.40s", i, t, text_string(&name));
      bool ok = p->temporary_member[n] && !name.out_of_memory;
      text_deinit(&name);
      if (!ok) return false;
    }
  }
  return !p->out_of_memory;
}

// Comments hold nothing that could end them, or looks like a call.
static void add_comment_text(Text *out, const char *text) {
  for (const char *c = text; *c; c++) {
    bool is_plain = (unsigned char)*c >= 0x20 && (unsigned char)*c < 0x7F && !strchr("*/\\(", *c);
    if (is_plain) text_add(out, c, 1);
    else text_format(out, "?");
  }
}

static void add_tensor_comment(Text *out, const Value *v) {
  char shape[160];
  add_comment_text(out, v->name);
  text_format(out, ": %s %s", type_name(v->type), shape_string(&v->shape, shape, sizeof shape));
  if (order_is_row_major(&v->order)) return;
  text_add_string(out, ", in memory in the order of axes");
  for (int i = 0; i < v->shape.rank; i++) text_format(out, " %d", order_axis(&v->order, i));
}

// Element i of a constant, as C.
static void add_element(Text *out, const Value *v, int64_t i) {
  const void *data = v->constant->data;
  uint16_t half;
  int64_t integer;
  double x = type_load(v->type, data, (size_t)i);
  switch (v->type) {
  case TYPE_F16:
  case TYPE_BF16:
    memcpy(&half, (const char *)data + i * (int64_t)sizeof half, sizeof half);
    text_format(out, "0x%04X", half);
    return;
  case TYPE_S64: // not by way of a double
    memcpy(&integer, (const char *)data + i * (int64_t)sizeof integer, sizeof integer);
    text_format(out, integer == INT64_MIN ? "INT64_MIN" : "%lld", (long long)integer);
    return;
  case TYPE_F64:
  case TYPE_F32:
    if (x != x) text_add_string(out, "NAN");
    else if (x - x != 0) text_add_string(out, x > 0 ? "INFINITY" : "-INFINITY");
    else text_add_number(out, x, v->type == TYPE_F32);
    if (v->type == TYPE_F32 && x - x == 0) text_add_string(out, "f");
    return;
  default: text_format(out, "%.0f", x); return;
  }
}

// Constants that are no single number are arrays in the source.
static void print_constant(Printer *p, const Value *v) {
  int64_t nelems = shape_nelems(&v->shape);
  text_format(p->out, "static const %s %s_constant_%s[] = {", element_type(v->type), p->identifier,
              p->value_member[v->index]);
  for (int64_t i = 0; i < nelems; i++) {
    text_add_string(p->out, i % 8 ? " " : "\n  ");
    add_element(p->out, v, i);
    text_add_string(p->out, ",");
  }
  text_add_string(p->out, nelems ? "\n};\n\n" : "0};\n\n");
}

static void print_struct(Printer *p) {
  const Graph *g = p->program->graph;
  text_format(p->out, "struct %s_args {\n", p->identifier);
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (!p->value_member[i]) continue;
    text_format(p->out, "  %s%s *%s; // ", v->is_input || v->constant ? "const " : "", element_type(v->type),
                p->value_member[i]);
    add_tensor_comment(p->out, v);
    text_add_string(p->out, "\n");
  }
  for (size_t i = 0; i < p->program->nkernels; i++) {
    const Kernel *k = p->program->kernels[i];
    for (size_t t = 0; t < k->ntemporaries; t++)
      text_format(p->out, "  %s *%s; // %lld elements\n", element_type(k->temporaries[t].type),
                  p->temporary_member[p->first_temporary[i] + t], (long long)k->temporaries[t].nelems);
  }
  text_add_string(p->out, "};\n\n");
}

static void print_kernel(Printer *p, size_t index) {
  const Kernel *k = p->program->kernels[index];
  text_format(p->out, "// Kernel %zu:", index);
  for (size_t i = 0; i < k->nnodes; i++) {
    text_format(p->out, "%s %s", i ? "," : "", k->nodes[i]->op->name);
    if (!k->nodes[i]->position.line) continue;
    text_add_string(p->out, " (");
    node_print_lines(k->nodes[i], p->out);
    text_add_string(p->out, ")");
  }
  text_add_string(p->out, "\n\n");
  for (size_t loop = 0; loop < k->nloops; loop++)
    if (loop_nblocks(k, &k->loops[loop])) print_loop_functions(p, index, loop);
}

// A graph output that is an input, a constant or another output is a copy of it.
static bool is_copied_output(const Graph *g, size_t i) {
  const Value *v = g->outputs[i];
  if (!v->producer) return true;
  for (size_t k = 0; k < i; k++)
    if (g->outputs[k] == v) return true;
  return false;
}

static bool is_shared(const Kernel *k, const Loop *loop) {
  return !loop->is_serial && loop_nblocks(k, loop) > 1;
}

static bool has_shared_loops(const Program *p) {
  for (size_t i = 0; i < p->nkernels; i++)
    for (size_t l = 0; l < p->kernels[i]->nloops; l++)
      if (is_shared(p->kernels[i], &p->kernels[i]->loops[l])) return true;
  return false;
}

static void print_run(Printer *p) {
  const Program *program = p->program;
  text_format(p->out, "static void %s_run(const struct %s_args *a, const struct %s_pool *pool) {\n", p->identifier,
              p->identifier, p->identifier);
  text_add_string(p->out, "  (void)a;\n  (void)pool;\n");
  for (size_t i = 0; i < program->nkernels; i++) {
    const Kernel *k = program->kernels[i];
    for (size_t l = 0; l < k->nloops; l++) {
      long long nblocks = (long long)loop_nblocks(k, &k->loops[l]); // 0: nothing to go over
      if (is_shared(k, &k->loops[l]))
        text_format(p->out, "  %s_for(pool, %lld, %s_kernel%zu_loop%zu, a);\n", p->identifier, nblocks, p->identifier,
                    i, l);
      else if (nblocks == 1) text_format(p->out, "  %s_kernel%zu_loop%zu(a, 0);\n", p->identifier, i, l);
      else if (nblocks)
        text_format(p->out, "  for (size_t b = 0; b < %lld; b++) %s_kernel%zu_loop%zu(a, b);\n", nblocks, p->identifier,
                    i, l);
    }
  }
  text_add_string(p->out, "}\n\n");
}

// Without a pool of the caller's: OpenMP where the compiler has it on.
static const char own_pool[] = "struct %s_pool {\n  int unused;\n};\n\n";
static const char own_loop[] =
    "static void %s_for(const struct %s_pool *pool, long long nblocks, void (*task)(const void *, size_t), "
    "const void *args) {\n"
    "  (void)pool;\n"
    "#ifdef _OPENMP\n"
    "#pragma omp parallel for schedule(dynamic)\n"
    "#endif\n"
    "  for (long long b = 0; b < nblocks; b++) task(args, (size_t)b);\n"
    "}\n\n";

static const char callers_pool[] =
    "struct %s_pool {\n"
    "  void (*parallel_for)(void *context, size_t nblocks, void (*task)(const void *, size_t), const void *args);\n"
    "  void *context;\n"
    "};\n\n";
static const char callers_loop[] =
    "static void %s_for(const struct %s_pool *pool, long long nblocks, void (*task)(const void *, size_t), "
    "const void *args) {\n"
    "  pool->parallel_for(pool->context, (size_t)nblocks, task, args);\n"
    "}\n\n";

// The members of the argument struct that do not come from the caller.
static void print_own_members(Printer *p) {
  const Program *program = p->program;
  const Graph *g = program->graph;
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    bool is_callers = v->is_input || (v->is_output && !v->constant);
    if (!p->value_member[i] || is_callers || (v->constant && v->constant->is_splat)) continue;
    if (v->constant)
      text_format(p->out, "  a.%s = %s_constant_%s;\n", p->value_member[i], p->identifier, p->value_member[i]);
    else text_format(p->out, "  a.%s = (void *)(memory + %zu);\n", p->value_member[i], program->value_offset[i]);
  }
  for (size_t i = 0; i < program->nkernels; i++)
    for (size_t t = 0; t < program->kernels[i]->ntemporaries; t++)
      text_format(p->out, "  a.%s = (void *)(memory + %zu);\n", p->temporary_member[p->first_temporary[i] + t],
                  program->kernels[i]->temporaries[t].offset);
}

static void print_copies(Printer *p, bool is_indexed) {
  const Graph *g = p->program->graph;
  for (size_t i = 0; i < g->noutputs; i++) {
    const Value *v = g->outputs[i];
    if (!is_copied_output(g, i)) continue;
    int64_t nelems = shape_nelems(&v->shape);
    bool is_splat = v->constant && v->constant->is_splat;
    text_format(p->out, "  for (size_t i = 0; i < %lld; i++) ", (long long)nelems);
    if (is_indexed) text_format(p->out, "((%s *)outputs[%zu])[i] = ", element_type(v->type), i);
    else text_format(p->out, "%s_out[i] = ", p->value_member[v->index]);
    if (is_splat) add_element(p->out, v, 0);
    else text_format(p->out, "a.%s[i]", p->value_member[v->index]);
    text_add_string(p->out, ";\n");
  }
}

// The entry point for loading: arrays of pointers, and the caller's parallel loop.
static void print_loading_entry(Printer *p) {
  const Graph *g = p->program->graph;
  text_add_string(p->out, "void ngrad_entry(const void *const *inputs, void *const *outputs, void *workspace,\n"
                          "                 void (*parallel_for)(void *, size_t, void (*)(const void *, size_t), const "
                          "void *), void *context);\n\n"
                          "void ngrad_entry(const void *const *inputs, void *const *outputs, void *workspace,\n"
                          "                 void (*parallel_for)(void *, size_t, void (*)(const void *, size_t), const "
                          "void *), void *context) {\n");
  text_format(p->out, "  struct %s_args a;\n  const struct %s_pool pool = {parallel_for, context};\n", p->identifier,
              p->identifier);
  text_add_string(p->out,
                  "  unsigned char *const memory = workspace;\n  (void)inputs;\n  (void)outputs;\n  (void)memory;\n");
  for (size_t i = 0; i < g->noutputs; i++)
    if (!is_copied_output(g, i))
      text_format(p->out, "  a.%s = outputs[%zu];\n", p->value_member[g->outputs[i]->index], i);
  for (size_t i = 0; i < g->ninputs; i++)
    text_format(p->out, "  a.%s = inputs[%zu];\n", p->value_member[g->inputs[i]->index], i);
  print_own_members(p);
  text_format(p->out, "  %s_run(&a, &pool);\n", p->identifier);
  print_copies(p, true);
  text_add_string(p->out, "}\n");
}

// The prototype of the function for people; each tensor with its shape.
static void add_signature(Printer *p, Text *out) {
  const Graph *g = p->program->graph;
  text_format(out, "int %s(\n", p->identifier);
  for (size_t i = 0; i < g->ninputs; i++) {
    const Value *v = g->inputs[i];
    text_format(out, "    const %s *%s, /* ", element_type(v->type), p->value_member[v->index]);
    add_tensor_comment(out, v);
    text_add_string(out, " */\n");
  }
  for (size_t i = 0; i < g->noutputs; i++) {
    const Value *v = g->outputs[i];
    text_format(out, "    %s *%s%s, /* ", element_type(v->type),
                p->value_member[v->index] ? p->value_member[v->index] : "constant",
                is_copied_output(g, i) ? "_out" : "");
    add_tensor_comment(out, v);
    text_add_string(out, " */\n");
  }
  text_add_string(out, "    void *workspace)");
}

static void print_entry(Printer *p) {
  const Graph *g = p->program->graph;
  add_signature(p, p->out);
  text_format(p->out, " {\n  struct %s_args a;\n", p->identifier);
  text_add_string(p->out, "  unsigned char *const memory = (unsigned char *)workspace;\n");
  for (size_t i = 0; i < g->ninputs + g->noutputs; i++) {
    bool is_output = i >= g->ninputs;
    const Value *v = is_output ? g->outputs[i - g->ninputs] : g->inputs[i];
    bool is_copied = is_output && is_copied_output(g, i - g->ninputs);
    const char *member = p->value_member[v->index] ? p->value_member[v->index] : "constant";
    text_format(p->out, "  if (!%s%s) return %s_NULL_POINTER;\n", member, is_copied ? "_out" : "", p->identifier);
    if (!is_copied) text_format(p->out, "  a.%s = %s;\n", member, member);
  }
  if (p->program->workspace_nbytes)
    text_format(p->out, "  if (!workspace || (uintptr_t)workspace %% 64 != 0) return %s_BAD_WORKSPACE;\n",
                p->identifier);
  else text_add_string(p->out, "  (void)memory;\n");
  print_own_members(p);
  text_format(p->out, "  %s_run(&a, 0);\n", p->identifier);
  print_copies(p, false);
  text_format(p->out, "  return %s_OK;\n}\n", p->identifier);
}

static void print_header(Printer *p, Text *out) {
  text_format(out, "/* Made by ngrad %s from the graph ", NGRAD_VERSION);
  add_comment_text(out, p->program->graph->name);
  text_format(out, ". */\n#ifndef NGRAD_%s_H\n#define NGRAD_%s_H\n\n#include <stdint.h>\n\n", p->identifier,
              p->identifier);
  text_add_string(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
  text_format(out, "enum %s_status { %s_OK = 0, %s_NULL_POINTER = 1, %s_BAD_WORKSPACE = 2 };\n\n", p->identifier,
              p->identifier, p->identifier, p->identifier);
  text_format(
      out,
      "/* Bytes of memory that a call needs for itself, aligned to 64 bytes; calls at the same time need one each.\n"
      "   With 0, workspace may be NULL. */\n#define %s_WORKSPACE_NBYTES %zu\n\n",
      p->identifier, p->program->workspace_nbytes);
  text_add_string(
      out,
      "/* All tensors are dense and must not overlap; row-major but where said. Result: an enum value above. */\n");
  add_signature(p, out);
  text_add_string(out, ";\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

static void print_prologue(Printer *p, const EmitOptions *options, Text *out) {
  text_add_string(out, "// Made by ngrad from the graph ");
  add_comment_text(out, p->program->graph->name);
  text_format(out, ", for %s.\n", options->isa->name);
  if (!options->for_loading) text_format(out, "#include \"%s.h\"\n\n", p->identifier);
  text_add_string(out, "#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n\n");
  // Fused multiply-adds are written where they are meant; the compiler must form no others.
  text_add_string(out, "#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n");
  if (options->isa->target)
    text_format(out, "#pragma clang attribute push(__attribute__((target(\"%s\"))), apply_to = function)\n",
                options->isa->target);
  text_add_string(
      out, "#define UNROLL _Pragma(\"clang loop unroll(full)\")\n#define ALWAYS_INLINE __attribute__((always_inline))\n"
           "#elif defined(__GNUC__)\n#pragma GCC optimize(\"fp-contract=off\")\n");
  if (options->isa->target) text_format(out, "#pragma GCC target(\"%s\")\n", options->isa->target);
  text_add_string(out,
                  "#define UNROLL _Pragma(\"GCC unroll 16\")\n#define ALWAYS_INLINE __attribute__((always_inline))\n"
                  "#else\n#define UNROLL\n#define ALWAYS_INLINE\n#endif\n\n");
}

static void print_program(Printer *p, const EmitOptions *options) {
  const Graph *g = p->program->graph;
  for (size_t i = 0; i < g->nvalues; i++)
    if (g->values[i]->constant && p->value_member[i] && !g->values[i]->constant->is_splat)
      print_constant(p, g->values[i]);
  print_struct(p);
  for (size_t i = 0; i < p->program->nkernels; i++) print_kernel(p, i);
  text_format(p->out, options->for_loading ? callers_pool : own_pool, p->identifier);
  if (has_shared_loops(p->program))
    text_format(p->out, options->for_loading ? callers_loop : own_loop, p->identifier, p->identifier);
  print_run(p);
  if (options->for_loading) print_loading_entry(p);
  else print_entry(p);
}

bool emit_program(const Program *program, const EmitOptions *options, Text *source, Text *header) {
  Arena scratch;
  arena_init(&scratch, source->allocator);
  Text body;
  text_init(&body, source->allocator);
  Printer p = {.scratch = &scratch, .out = &body, .program = program, .identifier = options->identifier};
  bool ok = name_members(&p);
  if (ok) {
    print_program(&p, options);
    print_prologue(&p, options, source);
    ok = print_vocabulary(options->isa, &body, source) && !p.out_of_memory && !body.out_of_memory;
    text_add(source, text_string(&body), body.nbytes);
    if (options->isa->target)
      text_add_string(source, "\n#if defined(__clang__)\n#pragma clang attribute pop\n#endif\n");
    if (header) print_header(&p, header);
  }
  text_deinit(&body);
  arena_deinit(&scratch);
  return ok && !source->out_of_memory && !(header && header->out_of_memory);
}
