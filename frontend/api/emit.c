// Emits C files: chooses instruction sets, threads and prefix, and prints the texts of the pair.
#include "backends/codegen/codegen.h"
#include "frontend/api/build.h"
#include "frontend/api/leaf_kernel.h"
#include "frontend/api/self_test.h"
#include "frontend/api/text.h"
#include "frontend/file.h"
#include "frontend/yaml/yaml.h"
#include "ir/graph/open_dims.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

enum {
  MOST_ISAS = 16,
  LONGEST_NAME = 31,
  LONGEST_PACKAGE = 63 // Arduino's limit for names of sketches
};

typedef struct Emission { // one emitted function
  ng_graph *g;
  Graph *open; // with the dims that have no fixed extent
  Text name;   // of the function
  char hash[2 * SHA256_DIGEST_SIZE + 1];
  Build build;
  const Program *programs[MOST_ISAS]; // by isas of the file; some are equal
  Stages stages;                      // of a graph with leaves; each of its functions has its own build and programs
  Build *builds;
  const Program *const **staged;
  EmittedStages emitted;
} Emission;

typedef struct FileEmission {
  ng_context *ctx;
  Emission functions[MOST_FUNCTIONS];
  size_t nfunctions;
  Text stem;
  const char *prefix;
  EmitThreads threads;
  bool stores_states, has_test;
  const Package *package;     // NULL: none
  bool is_asked[MOST_ISAS];   // by isas
  const Isa *isas[MOST_ISAS]; // those requested
  size_t nisas;
} FileEmission;

// Marks the names in a comma-separated list; NULL: all. Scalar is always marked, as the fallback on any processor.
static ng_status choose_isas(FileEmission *e, const char *list) {
  const char *known[MOST_ISAS];
  for (size_t i = 0; i < nisas; i++) {
    known[i] = isas[i].name;
    e->is_asked[i] = !list || strcmp(isas[i].name, "scalar") == 0;
  }
  while (list) {
    char name[LONGEST_NAME + 1];
    size_t length = strcspn(list, ",");
    snprintf(name, sizeof name, "%.*s", (int)(length < LONGEST_NAME ? length : LONGEST_NAME), list);
    const Isa *isa = isa_find(name);
    if (!isa) return unknown_name(e->ctx, "instruction set", name, known, nisas);
    e->is_asked[isa - isas] = true;
    list = list[length] ? list + length + 1 : NULL;
  }
  for (size_t i = 0; i < nisas; i++)
    if (e->is_asked[i]) e->isas[e->nisas++] = &isas[i];
  return NG_OK;
}

static ng_status choose_threads(FileEmission *e, const char *name) {
  static const char *const known[] = {[EMIT_SERIAL] = "none", [EMIT_OPENMP] = "openmp", [EMIT_CALLBACK] = "callback"};
  enum { COUNT = sizeof known / sizeof *known };
  e->threads = EMIT_OPENMP;
  for (size_t i = 0; name && i < COUNT; i++)
    if (strcmp(name, known[i]) == 0) e->threads = (EmitThreads)i;
  if (!name || strcmp(name, known[e->threads]) == 0) return NG_OK;
  return unknown_name(e->ctx, "way to share out work", name, known, COUNT);
}

static ng_status choose_package(FileEmission *e, const char *name) {
  enum { MOST = 8 };
  const char *known[MOST];
  size_t count = 0;
  for (const Package *p; name && count < MOST && (p = package_at(count)); count++) {
    known[count] = p->name;
    if (strcmp(name, p->name) == 0) e->package = p;
  }
  if (name && !e->package) return unknown_name(e->ctx, "package", name, known, count);
  if (e->package && e->has_test && !e->package->tests)
    return argument_error(e->ctx, "package %s: it has no place for a self-test; expected cmake, or no package", name);
  return NG_OK;
}

static ng_status choose_weights(FileEmission *e, const char *name) {
  static const char *const known[] = {"file", "const"};
  e->stores_states = name && strcmp(name, "const") == 0;
  if (!name || strcmp(name, known[e->stores_states]) == 0) return NG_OK;
  return unknown_name(e->ctx, "place of weights", name, known, sizeof known / sizeof *known);
}

static ng_status choose_prefix(FileEmission *e, const char *prefix) {
  e->prefix = prefix ? prefix : text_string(&e->stem);
  if (!prefix) return NG_OK;
  Text identifier;
  text_init(&identifier, &e->ctx->allocator);
  emit_identifier(e->prefix, &identifier);
  ng_status status = identifier.out_of_memory ? NG_OUT_OF_MEMORY : NG_OK;
  if (status == NG_OK && strcmp(text_string(&identifier), e->prefix) != 0)
    status = argument_error(e->ctx, "prefix: expected an unused C identifier, found %s; %s would do", e->prefix,
                            text_string(&identifier));
  text_deinit(&identifier);
  return status;
}

enum { MOST_VALUES = 256 };

// Hashes the graph's text, its constants, and first values that come from files.
static ng_status find_hash(Emission *e) {
  const Graph *g = e->open;
  struct sha256_ctx hash;
  uint8_t digest[SHA256_DIGEST_SIZE];
  Text text;
  text_init(&text, &e->g->ctx->allocator);
  yaml_print_most(g, MOST_VALUES, &text); // which are hashed below
  bool ok = !text.out_of_memory;
  sha256_init(&hash);
  if (ok) sha256_update(&hash, text.nbytes, (const uint8_t *)text_string(&text));
  text_deinit(&text);
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (!v->constant) continue;
    size_t nelems = v->constant->is_splat ? 1 : (size_t)shape_nelems(&v->shape);
    sha256_update(&hash, type_array_nbytes(v->type, nelems), v->constant->data);
  }
  for (size_t i = 0; i < g->nstates; i++)
    if (g->states[i].init.kind == INIT_FILE)
      sha256_update(&hash, value_nbytes(graph_state(g, i)), g->states[i].init.constant->data);
  sha256_digest(&hash, sizeof digest, digest);
  base16_encode_update(e->hash, sizeof digest, digest); // the 0 behind it stays
  return ok ? NG_OK : NG_OUT_OF_MEMORY;
}

// Builds the programs of a function with their trees, by isas of the file. The graph passes run once, because they do
// not depend on the instruction set. Outputs of the last function of a graph with leaves, and of other graphs, are the
// caller's, who may leave them out.
static ng_status build_programs(const FileEmission *file, Build *b, ng_graph *g, const Graph *function,
                                const ng_options *options, bool has_optional_outputs, const Program **programs) {
  ng_status status = build_portable_graph(b, g, function, options);
  for (size_t i = 0; i < file->nisas && status == NG_OK; i++) {
    Program *built;
    status = build_program(b, file->isas[i], &built);
    if (status != NG_OK) return status;
    programs[i] = built;
    if (!pipeline_build_trees(built, has_optional_outputs)) status = build_failed_status(file->ctx, built);
  }
  return status;
}

static ng_status build_stage(const FileEmission *file, Emission *e, size_t i, const ng_options *options) {
  const Program **programs = ARENA_ARRAY(&e->stages.arena, const Program *, file->nisas + 1);
  if (!programs) return NG_OUT_OF_MEMORY;
  e->staged[i] = programs;
  return build_programs(file, &e->builds[i], e->g, e->stages.functions[i], options, i + 1 == e->stages.nfunctions,
                        programs);
}

// For a graph with leaves, whose extents must have numbers.
static ng_status build_stages(const FileEmission *file, Emission *e, const ng_options *options) {
  ng_context *ctx = e->g->ctx;
  Call call = call_begin(ctx);
  if (!stages_cut(&e->stages, e->open, BUCKET_NBYTES, &ctx->diagnostics)) return call_end(ctx, call);
  e->builds = ARENA_ARRAY(&e->stages.arena, Build, e->stages.nfunctions + 1);
  e->staged = ARENA_ARRAY(&e->stages.arena, const Program *const *, e->stages.nfunctions + 1);
  ng_status status = e->builds && e->staged ? NG_OK : NG_OUT_OF_MEMORY;
  for (size_t i = 0; i < e->stages.nfunctions && status == NG_OK; i++) status = build_stage(file, e, i, options);
  e->emitted = (EmittedStages){.graph = e->open,
                               .step = &e->stages.step,
                               .numbers = e->stages.numbers,
                               .programs = e->staged,
                               .nfunctions = e->stages.nfunctions};
  return status;
}

static void free_builds(Emission *e) {
  for (size_t i = 0; e->builds && i < e->stages.nfunctions; i++) build_deinit(&e->builds[i]);
  if (e->open && e->open->nleaves) stages_free(&e->stages);
  build_deinit(&e->build);
}

// States

// Refuses states that emitted functions cannot initialise or save.
static ng_status check_state(ng_context *ctx, const Graph *g, const State *state) {
  const Value *v = g->inputs[state->input];
  const bool is_random = state->init.kind >= INIT_UNIFORM && state->init.kind <= INIT_FAN_IN;
  if (type_is_packed(v->type))
    return argument_error(ctx, "state %s: emitted C has no states of type %s; expected a type of 8 bits or more",
                          v->name, type_name(v->type));
  if (is_random && TYPES_F8 & TYPE_BIT(v->type))
    return argument_error(ctx,
                          "state %s: emitted C has no random first values of type %s; expected zeros, ones or a file",
                          v->name, type_name(v->type));
  return NG_OK;
}

static const State *find_state(const Graph *g, const char *name) {
  for (size_t i = 0; i < g->nstates; i++)
    if (strcmp(graph_state(g, i)->name, name) == 0) return &g->states[i];
  return NULL;
}

// Whether the states have the same value if neither is updated: a file stores the first graph's.
static bool have_equal_values(const State *a, const State *b, size_t nbytes) {
  const bool is_given = a->init.kind == INIT_FILE;
  if (a->output >= 0 || b->output >= 0) return true;
  return a->init.kind == b->init.kind &&
         (!is_given || memcmp(a->init.constant->data, b->init.constant->data, nbytes) == 0);
}

// Refuses states to store whose values are not known.
static ng_status check_stored(const FileEmission *file, const Graph *g) {
  for (size_t i = 0; i < g->nstates; i++) {
    const State *state = &g->states[i];
    if (state->output < 0 && state->init.kind >= INIT_UNIFORM && state->init.kind <= INIT_FAN_IN)
      return argument_error(file->ctx,
                            "state %s: its first value is random, which is no weight to store; expected "
                            "values from a checkpoint",
                            graph_state(g, i)->name);
  }
  return NG_OK;
}

static ng_status check_states(const FileEmission *file) {
  const Graph *first = file->functions[0].open, *last = file->functions[file->nfunctions - 1].open;
  ng_status status = NG_OK;
  for (size_t i = 0; i < first->nstates && status == NG_OK; i++)
    status = check_state(file->ctx, first, &first->states[i]);
  if (status == NG_OK && file->stores_states) status = check_stored(file, first);
  for (size_t i = 0; i < last->nstates && status == NG_OK; i++) {
    const Value *v = graph_state(last, i);
    const State *state = find_state(first, v->name);
    const Value *own = state ? first->inputs[state->input] : NULL;
    if (!own || own->type != v->type || !shape_equals(&own->shape, &v->shape) ||
        memcmp(&own->layout, &v->layout, sizeof v->layout) != 0)
      status = argument_error(file->ctx, "state %s of %s: expected %s to have it, of the same type and shape", v->name,
                              last->name, first->name);
    else if (file->stores_states && !have_equal_values(state, &last->states[i], value_nbytes(v)))
      status = argument_error(file->ctx, "state %s: expected one value in %s and %s", v->name, first->name, last->name);
  }
  return status;
}

static ng_status open_graph(const FileEmission *file, Emission *e) {
  const bool is_fixed = e->g->graph->nleaves || (file->package && file->package->is_for_devices);
  if (is_fixed && ng_graph_bind(e->g) != NG_OK) return ng_last_status(e->g->ctx);
  Call call = call_begin(e->g->ctx);
  e->open = graph_with_open_dims(e->g->graph, &e->g->ctx->diagnostics);
  ng_status status = call_end(e->g->ctx, call);
  return e->open ? NG_OK : status == NG_OK ? NG_OUT_OF_MEMORY : status;
}

// The files' texts, and their paths below the folder. Files without a text are left out.
enum { SOURCE, HEADER, MPI, TESTS, OWN = TESTS + MOST_FUNCTIONS, MOST_FILES = OWN + MOST_PACKAGE_FILES };
typedef struct Files {
  Text text[MOST_FILES], path[MOST_FILES];
} Files;

static void files_init(Files *files, const Allocator *allocator) {
  for (size_t i = 0; i < MOST_FILES; i++) {
    text_init(&files->text[i], allocator);
    text_init(&files->path[i], allocator);
  }
}

static void files_deinit(Files *files) {
  for (size_t i = 0; i < MOST_FILES; i++) {
    text_deinit(&files->text[i]);
    text_deinit(&files->path[i]);
  }
}

static void name_files(const FileEmission *e, Files *files) {
  static const char *const endings[OWN] = {".c", ".h", "_mpi.c", "_test.c", "_infer_test.c"};
  const char *sources = e->package ? e->package->sources : "", *headers = e->package ? e->package->headers : "";
  const char *tests = e->package && e->package->tests ? e->package->tests : "";
  for (size_t i = 0; i < OWN; i++)
    text_format(&files->path[i], "%s%s%s",
                i >= TESTS    ? tests
                : i == HEADER ? headers
                              : sources,
                text_string(&e->stem), endings[i]);
}

static ng_status build_function(FileEmission *file, Emission *e, const char *ending, const ng_options *options) {
  text_format(&e->name, "%s%s", file->prefix, ending);
  ng_status status = e->name.out_of_memory ? NG_OUT_OF_MEMORY : open_graph(file, e);
  if (status == NG_OK) status = find_hash(e);
  if (status != NG_OK) return status;
  if (e->open->nleaves) return build_stages(file, e, options);
  return build_programs(file, &e->build, e->g, e->open, options, true, e->programs);
}

// Prints the functions that move messages between ranks, for a step with leaves.
static void print_mpi(const FileEmission *e, Text *out) {
  Text header;
  text_init(&header, out->allocator);
  text_format(&header, "%s.h", text_string(&e->stem));
  emit_mpi(e->prefix, text_string(&header), out);
  out->out_of_memory |= header.out_of_memory;
  text_deinit(&header);
}

static ng_status print_function_test(const Emission *e, const EmittedFile *file, size_t function, Text *out) {
  const TestedFunction tested = {e->g->ctx, e->open, e->build.graph, e->programs[0],
                                 file->functions[function].is_stored};
  return print_self_test(&tested, file, function, out);
}

static ng_status print_texts(FileEmission *e, Files *files) {
  const Allocator *allocator = &e->ctx->allocator;
  EmittedFunction functions[MOST_FUNCTIONS] = {{0}};
  bool ok = true;
  for (size_t i = 0; i < e->nfunctions; i++) {
    const Emission *own = &e->functions[i];
    InPlace *in_place = allocator_alloc(allocator, (own->open->noutputs + 1) * sizeof *in_place);
    bool *is_stored = allocator_alloc(allocator, own->open->nstates + 1);
    functions[i] = (EmittedFunction){.name = text_string(&own->name),
                                     .hash = own->hash,
                                     .programs = own->programs,
                                     .in_place = in_place,
                                     .is_stored = is_stored};
    if (own->open->nleaves) functions[i].stages = &own->emitted;
    ok = ok && in_place && is_stored;
  }
  EmittedFile file = {.file_stem = text_string(&e->stem),
                      .prefix = e->prefix,
                      .threads = e->threads,
                      .stores_states = e->stores_states,
                      .package = e->package,
                      .has_test = e->has_test,
                      .functions = functions,
                      .nfunctions = e->nfunctions,
                      .isas = e->isas,
                      .nisas = e->nisas};
  ng_status status =
      ok && emit_file(&file, allocator, &files->text[SOURCE], &files->text[HEADER]) ? NG_OK : NG_OUT_OF_MEMORY;
  const bool has_mpi = !e->package || !e->package->is_for_devices;
  name_files(e, files);
  if (e->functions[0].open->nleaves && has_mpi) print_mpi(e, &files->text[MPI]);
  for (size_t i = 0; i < e->nfunctions && status == NG_OK && e->has_test; i++)
    status = print_function_test(&e->functions[i], &file, i, &files->text[TESTS + i]);
  for (size_t i = 0; i < MOST_PACKAGE_FILES && status == NG_OK && e->package; i++)
    package_file(&file, i, &files->path[OWN + i], &files->text[OWN + i]);
  for (size_t i = 0; i < e->nfunctions; i++) allocator_free(allocator, functions[i].in_place);
  for (size_t i = 0; i < e->nfunctions; i++) allocator_free(allocator, functions[i].is_stored);
  return status;
}

static ng_status emit_texts(FileEmission *e, const ng_options *options, Files *files) {
  static const char *const endings[] = {"_train_step", "_infer"};
  ng_status status = e->stem.out_of_memory ? NG_OUT_OF_MEMORY : choose_package(e, options->package);
  const bool is_small = e->package && e->package->is_for_devices;
  ng_options own = *options;
  if (is_small && !own.isa && !own.optimize) own.optimize = "size";
  if (is_small && !own.isa) own.isa = "scalar";
  options = &own;
  if (status == NG_OK) status = choose_isas(e, options_want_size(options) ? "scalar" : options->isa);
  if (status == NG_OK) status = choose_threads(e, options->threads || !is_small ? options->threads : "none");
  if (status == NG_OK) status = choose_weights(e, options->weights);
  if (status == NG_OK) status = choose_prefix(e, options->prefix);
  if (status == NG_OK && is_small && strlen(e->prefix) > LONGEST_PACKAGE)
    status = argument_error(e->ctx, "package %s: expected a prefix of at most %d characters, found %s",
                            options->package, LONGEST_PACKAGE, e->prefix);
  for (size_t i = 0; i < MOST_FUNCTIONS && i < e->nfunctions && status == NG_OK; i++)
    status = build_function(e, &e->functions[i], e->nfunctions > 1 ? endings[i] : "", options);
  if (status == NG_OK) status = check_states(e);
  return status == NG_OK ? print_texts(e, files) : status;
}

// Prints the files. Takes ownership of `stem`.
static ng_status emit(ng_graph *const *graphs, size_t ngraphs, Text stem, const ng_options *options, bool has_test,
                      Files *files) {
  static const ng_options defaults = {0};
  ng_context *ctx = graphs[0]->ctx;
  FileEmission e = {.ctx = ctx, .nfunctions = ngraphs, .stem = stem, .has_test = has_test};
  for (size_t i = 0; i < ngraphs; i++) {
    e.functions[i].g = graphs[i];
    text_init(&e.functions[i].name, &ctx->allocator);
  }
  compiling_begin(ctx, graphs[0]->graph->name);
  Call call = call_begin(ctx);
  ng_status status = emit_texts(&e, options ? options : &defaults, files);
  for (size_t i = 0; i < MOST_FILES && status == NG_OK; i++)
    if (files->text[i].out_of_memory || files->path[i].out_of_memory) status = NG_OUT_OF_MEMORY;
  const bool is_told = call_end(ctx, call) != NG_OK;
  if (status == NG_OUT_OF_MEMORY && !is_told) status = out_of_memory_status(ctx);
  compiling_end(ctx);
  for (size_t i = 0; i < ngraphs; i++) {
    free_builds(&e.functions[i]);
    graph_free(e.functions[i].open);
    text_deinit(&e.functions[i].name);
  }
  text_deinit(&e.stem);
  return status;
}

// The identifier, which is NULL if memory ran out, as a text of its own.
static Text stem_of(const ng_graph *g, const char *identifier) {
  Text stem;
  text_init(&stem, &g->ctx->allocator);
  if (identifier) text_add_string(&stem, identifier);
  stem.out_of_memory |= !identifier;
  return stem;
}

ng_status ng_emit(ng_graph *g, const ng_options *options, char **source, char **header) {
  Files files;
  ng_options own = options ? *options : (ng_options){0};
  own.package = NULL;
  files_init(&files, &g->ctx->allocator);
  ng_status status = emit(&g, 1, stem_of(g, ng_graph_identifier(g)), &own, false, &files);
  *source = status == NG_OK ? text_release(g->ctx, &files.text[SOURCE]) : NULL;
  *header = *source ? text_release(g->ctx, &files.text[HEADER]) : NULL;
  if (status == NG_OK && !*header) {
    ng_text_free(g->ctx, *source);
    *source = NULL;
    status = NG_OUT_OF_MEMORY;
  }
  files_deinit(&files);
  return status;
}

static bool write_text(int fd, const void *text) {
  return file_write_all(fd, text, strlen(text));
}

static bool write_file(ng_context *ctx, const char *folder, const char *name, const char *text,
                       const ng_options *options) {
  Diagnostics *d = &ctx->diagnostics;
  Text path;
  text_init(&path, &ctx->allocator);
  text_format(&path, "%s/%s", folder, name);
  bool ok = path.out_of_memory ? error_out_of_memory(d) : file_make_folders(path.bytes, strlen(folder) + 1, d);
  ok = ok && file_replace(path.bytes, write_text, text, d);
  if (ok && options && options->wrote) options->wrote(options->wrote_user, path.bytes);
  text_deinit(&path);
  return ok;
}

static ng_status emit_files(ng_graph *const *graphs, size_t ngraphs, Text stem, const ng_options *options,
                            const char *folder) {
  ng_context *ctx = graphs[0]->ctx;
  Files files;
  files_init(&files, &ctx->allocator);
  ng_status status = emit(graphs, ngraphs, stem, options, options && options->self_test, &files);
  if (status == NG_OK) {
    Call call = call_begin(ctx);
    bool ok = true;
    for (size_t i = 0; i < MOST_FILES && ok; i++)
      if (files.text[i].nbytes)
        ok = write_file(ctx, folder, text_string(&files.path[i]), text_string(&files.text[i]), options);
    status = call_end(ctx, call);
  }
  files_deinit(&files);
  return status;
}

ng_status ng_emit_files(ng_graph *g, const ng_options *options, const char *folder) {
  return emit_files(&g, 1, stem_of(g, ng_graph_identifier(g)), options, folder);
}

ng_status ng_emit_training_files(ng_graph *step, ng_graph *infer, const ng_options *options, const char *folder) {
  ng_graph *const graphs[] = {step, infer};
  if (infer && infer->ctx != step->ctx) return argument_error(step->ctx, "expected two graphs of one context");
  return emit_files(graphs, infer ? 2 : 1, stem_of(step, ng_graph_step_identifier(step)), options, folder);
}
