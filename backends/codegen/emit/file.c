// Prints files for users: a header, and a source with a section for each instruction set. A section contains the
// vocabulary and the program under names of its own; compilers that do not support the instruction set skip it. The
// entry point then chooses a section at run time.
#include "backends/codegen/emit/emit.h"
#include "backends/codegen/emit/entry.h"
#include "backends/codegen/emit/flow.h"
#include "backends/codegen/emit/header.h"
#include "backends/codegen/emit/target.h"

// Prints the body of PREFIX_for: up to 32 ranges of consecutive blocks, which OpenMP's threads take.
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
      "/* Each thread begins with ranges of consecutive blocks, the same ones in each call, whose data its core's\n"
      "   caches may still hold. Then it takes blocks from the other threads' ranges. */\n"
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

// -Wpedantic is off in a section, because vector types are an extension to ISO C and C++. `plain` comes before the
// target's pragma, because it also runs on processors without the instruction set.
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

// Removes the inputs that are not in both lists.
static void intersect(InPlace *places, const InPlace *others) {
  uint32_t count = 0;
  for (uint32_t i = 0, k = 0; i < places->count; i++) {
    while (k < others->count && others->inputs[k] < places->inputs[i]) k++;
    if (k < others->count && others->inputs[k] == places->inputs[i]) places->inputs[count++] = places->inputs[i];
  }
  places->count = count;
}

// Finds the inputs that an output may overwrite in all programs.
static bool find_in_place(FilePrinter *f) {
  const Graph *g = f->graph;
  Arena scratch;
  arena_init(&scratch, f->scratch->allocator);
  InPlace *own = ARENA_ARRAY(&scratch, InPlace, g->noutputs + 1);
  bool ok = own != NULL;
  for (size_t i = 0; ok && i < f->file->nisas; i++) {
    Flow flow;
    if (i && f->file->programs[i] == f->file->programs[i - 1]) continue;
    ok = flow_find(&flow, f->file->programs[i], &scratch) &&
         flow_find_in_place(&flow, i ? own : f->in_place, scratch.allocator);
    for (size_t o = 0; ok && i && o < g->noutputs; o++) intersect(&f->in_place[o], &own[o]);
  }
  arena_deinit(&scratch);
  for (size_t o = 0; ok && o < g->noutputs; o++)
    for (uint32_t k = 0; k < f->in_place[o].count; k++) f->may_be_overwritten[f->in_place[o].inputs[k]] = true;
  return ok;
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
  bool ok = p.identifier && print_program(&p, f->member ? NULL : &f->constants);
  if (ok && !f->member) {
    f->member = p.value_member;
    f->dim_member = p.dim_member;
  }
  bool has_base = i > 0 && f->file->isas[i - 1]->vocabulary[0] == isa->vocabulary[1]; // which isa falls back to
  f->has_section[i] = ok && (!has_base || needs_vocabulary(isa, &body));
  if (f->has_section[i]) {
    ok = print_vocabulary(isa, &body, &vocabulary) && !body.out_of_memory;
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

static bool print_source(const FilePrinter *f, Text *out) {
  print_origin(f, out);
  text_format(out, "#include \"%s.h\"\n\n", f->file->file_stem);
  print_prologue(out);
  text_add(out, text_string(&f->constants), f->constants.nbytes);
  print_pool(f, out);
  text_add(out, text_string(&f->sections), f->sections.nbytes);
  return print_entry_points(f, out);
}

bool emit_file(EmittedFile *file, const Allocator *allocator, Text *source, Text *header) {
  Arena scratch;
  arena_init(&scratch, allocator);
  const Graph *g = file->programs[0]->graph;
  FilePrinter f = {.file = file, .prefix = file->prefix, .graph = g, .in_place = file->in_place, .scratch = &scratch};
  Text text;
  text_init(&text, allocator);
  text_init(&f.constants, allocator);
  text_init(&f.sections, allocator);
  f.may_be_overwritten = ARENA_ARRAY(&scratch, bool, g->ninputs + 1);
  if (!f.in_place) f.in_place = ARENA_ARRAY(&scratch, InPlace, g->noutputs + 1);
  bool ok = f.may_be_overwritten && f.in_place && file->nisas <= MOST_ISAS && find_in_place(&f);
  for (size_t i = 0; ok && i < file->nisas; i++) ok = add_section(&f, i);
  file->has_open_workspace = f.has_open_workspace;
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
