// Prints files for users: a header, and a source with a section for each instruction set. A section contains the
// vocabulary and the programs, with its own prefix of names; compilers that do not support the instruction set skip it.
// The entry point chooses a section at run time.
//
// Sections differ in few places. They are merged into one text (merge.c), and the file includes itself once for each
// instruction set to compile that text. While the text is built, the byte OWN and a number stand for a prefix that
// differs between sections; at the end, a call of a macro that adds the prefix replaces them.
#include "backends/codegen/emit/emit.h"
#include "backends/codegen/emit/file_printer.h"
#include "backends/codegen/emit/merge.h"
#include "backends/codegen/emit/template.h"

#include <ctype.h>
#include <string.h>

extern const char source_text[], leaves_places[], leaves_sums[], leaves_run[], state_functions[];

static const char quiet_pedantic[] =
    "#ifdef __GNUC__\n#pragma GCC diagnostic push\n#pragma GCC diagnostic ignored \"-Wpedantic\"\n#endif\n";
static const char loud_pedantic[] = "#ifdef __GNUC__\n#pragma GCC diagnostic pop\n#endif\n";

// Removes the inputs that are not in both lists.
static void intersect(InPlace *places, const InPlace *others) {
  uint32_t count = 0;
  for (uint32_t i = 0, k = 0; i < places->count; i++) {
    while (k < others->count && others->inputs[k] < places->inputs[i]) k++;
    if (k < others->count && others->inputs[k] == places->inputs[i]) places->inputs[count++] = places->inputs[i];
  }
  places->count = count;
}

// Removes states and their updates, whose places in blocks a caller cannot choose.
static void keep_given(const Graph *g, InPlace *in_place) {
  for (size_t o = 0; o < g->noutputs; o++) {
    uint32_t count = 0;
    for (uint32_t i = 0; o < noutputs_given(g) && i < in_place[o].count; i++)
      if (in_place[o].inputs[i] < ninputs_given(g)) in_place[o].inputs[count++] = in_place[o].inputs[i];
    in_place[o].count = count;
  }
}

// Finds the inputs that an output may overwrite in all programs.
static void find_in_place(FilePrinter *f) {
  const Graph *g = f->graph;
  const Program *const *programs = f->function->programs;
  memcpy(f->in_place, programs[0]->liveness->in_place, g->noutputs * sizeof *f->in_place);
  for (size_t o = 0; o < g->noutputs; o++)
    for (size_t i = 1; i < f->file->nisas; i++) intersect(&f->in_place[o], &programs[i]->liveness->in_place[o]);
  keep_given(g, f->in_place);
  for (size_t o = 0; o < g->noutputs; o++)
    for (uint32_t k = 0; k < f->in_place[o].count; k++) f->may_be_overwritten[f->in_place[o].inputs[k]] = true;
}

enum { OWN = '\1' };

typedef struct OwnPrefix { // a section's prefix: BEFORE_ISABEHIND
  const char *before, *behind;
} OwnPrefix;

// The parts of a file that its functions have in common.
typedef struct FileParts {
  FilePrinter functions[MOST_FUNCTIONS];
  size_t nfunctions;
  Constants constants;
  Section sections[MOST_ISAS]; // by instruction set
  VocabularyNames vocabulary;  // of all sections
  OwnPrefix *own;              // by the number after OWN; number 0 is the vocabulary's
  size_t nown, own_capacity;
  FileStates states;
} FileParts;

static bool is_merged(const FileParts *file) {
  return file->functions[0].file->nisas > 1;
}

// The prefix of names in a section; in merged sections, OWN and its number. NULL: out of memory.
static const char *own_prefix(FileParts *file, size_t isa, const char *before, const char *behind) {
  const FilePrinter *f = &file->functions[0];
  size_t number = 0;
  if (!is_merged(file)) return arena_format(f->scratch, "%s_%s%s", before, f->file->isas[isa]->name, behind);
  while (number < file->nown &&
         (strcmp(file->own[number].before, before) != 0 || strcmp(file->own[number].behind, behind) != 0))
    number++;
  if (number == file->nown) {
    if (!arena_grow(f->scratch, &file->own, file->nown, &file->own_capacity, sizeof *file->own)) return NULL;
    file->own[file->nown++] = (OwnPrefix){before, behind};
  }
  return arena_format(f->scratch, number ? "%c%zu" : "%c", OWN, number);
}

// Adds a program for an instruction set to `body`: the function's program, or, with leaves, the program of function
// `part` of its stages.
static bool add_program(FileParts *file, FilePrinter *f, size_t i, int part, Parts *parts, Text *plain, Text *body) {
  const EmittedStages *stages = f->function->stages;
  const char *number = stages ? arena_format(f->scratch, "_%d", part) : "";
  Printer p = {.scratch = f->scratch,
               .out = body,
               .plain = plain,
               .parts = parts,
               .program = stages ? stages->programs[part][i] : f->function->programs[i],
               .prefix = f->prefix,
               .identifier = number ? own_prefix(file, i, f->function->name, number) : NULL,
               .constants = &file->constants,
               .threads = f->file->threads,
               .is_marked = stages && stages_is_leaf(stages, (uint32_t)part)};
  if (!p.identifier || !print_program(&p)) return false;
  if (!f->member && !stages) {
    f->member = p.value_member;
    f->dim_member = p.dim_member;
  }
  f->has_open_workspace |= p.has_open_workspace;
  f->has_shared_loops |= program_has_shared_loops(p.program);
  size_t *nbytes = stages ? &f->scratch_nbytes : &f->workspace_nbytes;
  if (p.workspace_nbytes > *nbytes) *nbytes = p.workspace_nbytes;
  return !body->out_of_memory && !plain->out_of_memory;
}

// Adds a section's text. `plain` precedes the target's pragma, because it also runs on processors without the
// instruction set.
static bool print_section(FileParts *file, size_t i, Parts *parts, const Text *plain, const Text *body) {
  const Isa *isa = file->functions[0].file->isas[i];
  Section *section = &file->sections[i];
  Text *out = &section->text, vocabulary;
  VocabularyNames names = {.arena = parts->arena};
  text_init(&vocabulary, out->allocator);
  const bool ok = print_vocabulary(isa, body, &names, parts, &vocabulary) && !plain->out_of_memory &&
                  !body->out_of_memory && !parts->out_of_memory;
  if (is_merged(file)) print_macro_renames(&names, &section->parts, out);
  parts_add(&section->parts, out, parts, plain);
  if (isa->target) part_begin(&section->parts, out, NULL);
  print_target(isa, out);
  parts_add(&section->parts, out, parts, &vocabulary);
  parts_add(&section->parts, out, parts, body);
  if (isa->target) part_begin(&section->parts, out, NULL);
  print_target_end(isa, out);
  for (size_t n = 0; n < names.count; n++) vocabulary_add_name(&file->vocabulary, names.items[n]);
  text_deinit(&vocabulary);
  return ok && !out->out_of_memory && !section->parts.out_of_memory && !file->vocabulary.out_of_memory;
}

// Prints the functions for an instruction set, unless those for the one below it are the same.
static bool add_section(FileParts *file, size_t i) {
  const FilePrinter *f = &file->functions[0];
  const Isa *isa = f->file->isas[i];
  Text plain, body;
  Parts parts = {.arena = f->scratch};
  text_init(&plain, f->scratch->allocator);
  text_init(&body, f->scratch->allocator);
  file->sections[i].isa = isa->name;
  bool ok = own_prefix(file, i, f->prefix, "");
  for (size_t k = 0; ok && k < file->nfunctions; k++) {
    const EmittedStages *stages = file->functions[k].function->stages;
    for (size_t part = 0; ok && part < (stages ? stages->nfunctions : 1); part++)
      ok = add_program(file, &file->functions[k], i, (int)part, &parts, &plain, &body);
  }
  const bool has_base =
      i > 0 && f->file->isas[i - 1]->vocabulary[0] == isa->vocabulary[1]; // the header that isa falls back to
  const bool has_section = ok && (!has_base || needs_vocabulary(isa, &body));
  for (size_t k = 0; k < file->nfunctions; k++) file->functions[k].has_section[i] = has_section;
  if (has_section) ok = print_section(file, i, &parts, &plain, &body);
  text_deinit(&plain);
  text_deinit(&body);
  return ok;
}

// Adds a text in which calls of macros replace OWN: NG2(name) for OWN, 2, _name. Directives cannot call macros, and get
// the file's prefix.
static void add_own_names(const Text *from, const char *prefix, Text *out) {
  for (const char *at = text_string(from), *next; *at; at = next) {
    next = strchr(at, OWN);
    text_add(out, at, next ? (size_t)(next - at) : strlen(at));
    if (!next) return;
    const char *line = next;
    while (line > text_string(from) && line[-1] != '\n') line--;
    const size_t ndigits = strspn(next + 1, "0123456789");
    const char *name = next + 1 + ndigits + 1;
    size_t length = 0;
    while (name[length] == '_' || isalnum((unsigned char)name[length])) length++;
    if (*line == '#') text_format(out, "%s_%.*s", prefix, (int)length, name);
    else text_format(out, "NG%.*s(%.*s)", (int)ndigits, next + 1, (int)length, name);
    next = name + length;
  }
}

// -Wpedantic is off in a section, because vector types are an extension to ISO C and C++.
static void print_only_section(const FileParts *file, Text *out) {
  const FilePrinter *f = &file->functions[0];
  const Isa *isa = f->file->isas[0];
  const char *guard = NULL, *prefix = arena_format(f->scratch, "%s_%s", f->prefix, isa->name);
  text_format(out, "/* ---- %s ---- */\n\n", isa->name);
  change_guard(&guard, isa, out);
  text_add_string(out, quiet_pedantic);
  print_renames(&file->vocabulary, prefix ? prefix : "", out);
  text_add_string(out, "\n");
  text_add(out, text_string(&file->sections[0].text), file->sections[0].text.nbytes);
  print_undefinitions(&file->vocabulary, out);
  text_add_string(out, loud_pedantic);
  change_guard(&guard, NULL, out);
  text_add_string(out, "\n");
}

// Prints the inclusion of the merged text for an instruction set, between #define and #undef of the macros that it
// uses.
static void print_inclusion(const FileParts *file, size_t i, Text *out) {
  const FilePrinter *f = &file->functions[0];
  text_format(out, "#define NG_ISA %u\n", 1U << i);
  for (size_t n = 0; n < file->nown; n++) {
    text_add_string(out, "#define NG");
    if (n) text_format(out, "%zu", n);
    text_format(out, "(name) %s_%s%s_##name\n", file->own[n].before, f->file->isas[i]->name, file->own[n].behind);
  }
  text_add_string(out, "#include NG_SOURCE /* NOLINT(bugprone-suspicious-include) */\n#undef NG_ISA\n#undef NG\n");
  for (size_t n = 1; n < file->nown; n++) text_format(out, "#undef NG%zu\n", n);
  text_add_string(out, "\n");
}

// Prints the directives by which the file includes its last part once for each instruction set.
static void print_inclusions(const FileParts *file, Text *out) {
  const FilePrinter *f = &file->functions[0];
  const char *guard = NULL;
  text_format(out,
              "/* This file includes its last part once for each instruction set. */\n"
              "#if defined __FILE_NAME__ && !defined __cppcheck__\n#define NG_SOURCE __FILE_NAME__\n#else\n#define "
              "NG_SOURCE \"%s.c\"\n#endif\n",
              f->file->file_stem);
  text_add_string(out, "\n");
  for (size_t i = 0; i < f->file->nisas; i++) {
    if (!f->has_section[i]) continue;
    text_format(out, "/* ---- %s ---- */\n\n", f->file->isas[i]->name);
    change_guard(&guard, f->file->isas[i], out);
    print_inclusion(file, i, out);
  }
  change_guard(&guard, NULL, out);
  text_add_string(out, "#undef NG_SOURCE\n\n");
}

static void print_included(const FileParts *file, Text *out) {
  const FilePrinter *f = &file->functions[0];
  Text merged;
  text_init(&merged, out->allocator);
  text_add_string(out, "\n#elif defined NG /* the code of one instruction set */\n\n");
  text_add_string(out, quiet_pedantic);
  out->out_of_memory |= !merge_sections(file->sections, f->file->nisas, &merged);
  add_own_names(&merged, f->prefix, out);
  print_undefinitions(&file->vocabulary, out);
  text_add_string(out, loud_pedantic);
  text_add_string(out, "#endif\n");
  text_deinit(&merged);
}

static void add_part(const void *context, const char *name, Text *out) {
  const FilePrinter *f = context; // the first of the file's functions
  const FileParts *file = f->parts;
  if (is_part(name, "ORIGIN")) print_origin(f, out);
  else if (is_part(name, "STEM")) text_add_string(out, f->file->file_stem);
  else if (is_part(name, "PROLOGUE")) print_prologue(out);
  else if (is_part(name, "CONSTANTS"))
    text_add(out, text_string(&file->constants.text), file->constants.text.nbytes), print_stored_states(f, out);
  else if (is_part(name, "SECTIONS")) is_merged(file) ? print_inclusions(file, out) : print_only_section(file, out);
  else if (is_part(name, "PLACES")) print_file_template(f, leaves_places, NULL, out);
  else if (is_part(name, "SUMS")) print_file_template(f, leaves_sums, NULL, out);
  else if (is_part(name, "RUN")) print_file_template(f, leaves_run, NULL, out);
  else if (is_part(name, "STATE_FUNCTIONS")) print_file_template(f, state_functions, add_state_part, out);
  else if (is_part(name, "INCLUDED")) print_included(file, out);
  for (size_t k = 0; is_part(name, "ENTRY_POINTS") && k < file->nfunctions; k++)
    print_entry_points(&file->functions[k], out);
}

static bool begin_function(FilePrinter *f, const EmittedFile *file, size_t k, Arena *scratch) {
  EmittedFunction *function = &file->functions[k];
  const Graph *g = emitted_graph(function);
  *f = (FilePrinter){.file = file,
                     .prefix = file->prefix,
                     .function = function,
                     .graph = g,
                     .in_place = function->in_place,
                     .scratch = scratch};
  f->may_be_overwritten = ARENA_ARRAY(scratch, bool, g->ninputs + 1);
  if (!f->in_place) f->in_place = ARENA_ARRAY(scratch, InPlace, g->noutputs + 1);
  if (!f->may_be_overwritten || !f->in_place) return false;
  for (size_t o = 0; o < g->noutputs; o++) f->in_place[o].count = 0;
  if (function->stages) return name_tensors(f);
  find_in_place(f);
  return true;
}

// Prints the source file and the header.
static bool print_file(FileParts *file, EmittedFile *emitted, const Allocator *allocator, Arena *scratch, Text *source,
                       Text *header) {
  Text text;
  bool ok = emitted->nisas <= MOST_ISAS;
  for (size_t k = 0; ok && k < file->nfunctions; k++) ok = begin_function(&file->functions[k], emitted, k, scratch);
  for (size_t i = 0; ok && i < emitted->nisas; i++) ok = add_section(file, i);
  if (!ok || !find_states(&file->states, emitted, file->functions[0].member, scratch)) return false;
  bool has_shared_loops = false;
  emitted->nblocks = file->states.nblocks;
  for (size_t k = 0; k < file->nfunctions; k++) {
    file->functions[k].states = &file->states;
    find_blocks(&file->functions[k]);
    file->functions[k].parts = file;
    if (emitted->functions[k].stages) file->functions[k].workspace_nbytes = stages_workspace(&file->functions[k]);
    emitted->functions[k].has_open_workspace = file->functions[k].has_open_workspace;
    has_shared_loops |= file->functions[k].has_shared_loops;
  }
  file->functions[0].has_shared_loops = has_shared_loops;
  text_init(&text, allocator);
  print_header(file->functions, &text);
  ok = text_move_wrapped(header, &text);
  print_file_template(file->functions, source_text, add_part, &text);
  ok = text_move_wrapped(source, &text) && ok && !file->constants.text.out_of_memory;
  text_deinit(&text);
  return ok;
}

bool emit_file(EmittedFile *emitted, const Allocator *allocator, Text *source, Text *header) {
  Arena scratch;
  FileParts file = {.nfunctions = emitted->nfunctions};
  arena_init(&scratch, allocator);
  text_init(&file.constants.text, allocator);
  file.vocabulary.arena = &scratch;
  for (size_t i = 0; i < MOST_ISAS; i++) {
    text_init(&file.sections[i].text, allocator);
    file.sections[i].parts.arena = &scratch;
  }
  const bool ok = print_file(&file, emitted, allocator, &scratch, source, header);
  text_deinit(&file.constants.text);
  for (size_t i = 0; i < MOST_ISAS; i++) text_deinit(&file.sections[i].text);
  arena_deinit(&scratch);
  return ok;
}
