// Files to keep: which instruction sets, threads and prefix were asked for, and the texts of the pair.
#include "backends/codegen/codegen.h"
#include "backends/interpreter/magnitude.h"
#include "frontend/api/build.h"
#include "frontend/api/tensor.h"
#include "frontend/api/text.h"
#include "frontend/file.h"
#include "frontend/yaml/yaml.h"
#include "ir/graph/open.h"
#include "ir/operators/norm.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

enum { MOST_ISAS = 16, LONGEST_NAME = 31 };

typedef struct Emission {
  ng_graph *g;
  Graph *open; // with the dims that are not fixed
  const char *prefix;
  char hash[2 * SHA256_DIGEST_SIZE + 1];
  EmitThreads threads;
  bool is_asked[MOST_ISAS]; // by isas
  Build build;
  const Program *programs[MOST_ISAS]; // of the build; some are the same
  const Isa *isas[MOST_ISAS];         // parallel to programs
  size_t nprograms;
} Emission;

// Marks the names in a list with commas between; NULL: all. Scalar is always there, for processors that have none.
static ng_status choose_isas(Emission *e, const char *list) {
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
    if (!isa) return unknown_name(e->g->ctx, "instruction set", name, known, nisas);
    e->is_asked[isa - isas] = true;
    list = list[length] ? list + length + 1 : NULL;
  }
  return NG_OK;
}

static ng_status choose_threads(Emission *e, const char *name) {
  static const char *const known[] = {[EMIT_SERIAL] = "none", [EMIT_OPENMP] = "openmp", [EMIT_CALLBACK] = "callback"};
  enum { COUNT = sizeof known / sizeof *known };
  e->threads = EMIT_OPENMP;
  for (size_t i = 0; name && i < COUNT; i++)
    if (strcmp(name, known[i]) == 0) e->threads = (EmitThreads)i;
  if (!name || strcmp(name, known[e->threads]) == 0) return NG_OK;
  return unknown_name(e->g->ctx, "way to share out work", name, known, COUNT);
}

static ng_status choose_prefix(Emission *e, const char *prefix) {
  e->prefix = prefix ? prefix : ng_graph_identifier(e->g);
  if (!e->prefix) return NG_OUT_OF_MEMORY;
  if (!prefix) return NG_OK;
  Text identifier;
  text_init(&identifier, &e->g->ctx->allocator);
  emit_identifier(e->prefix, &identifier);
  ng_status status = identifier.out_of_memory ? NG_OUT_OF_MEMORY : NG_OK;
  if (status == NG_OK && strcmp(text_string(&identifier), e->prefix) != 0)
    status = argument_error(e->g->ctx, "prefix: expected a C identifier that nothing else has, found %s; %s would do",
                            e->prefix, text_string(&identifier));
  text_deinit(&identifier);
  return status;
}

// Of the graph as text, and of its constants.
static ng_status find_hash(Emission *e) {
  const Graph *g = e->open;
  struct sha256_ctx hash;
  uint8_t digest[SHA256_DIGEST_SIZE];
  Text text;
  text_init(&text, &e->g->ctx->allocator);
  yaml_print(g, &text);
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
  sha256_digest(&hash, sizeof digest, digest);
  for (int i = 0; i < SHA256_DIGEST_SIZE; i++) snprintf(e->hash + 2 * (ptrdiff_t)i, 3, "%02x", digest[i]);
  return ok ? NG_OK : NG_OUT_OF_MEMORY;
}

// The graph passes do not know the instruction set: they run once.
static ng_status build_all(Emission *e, const ng_options *options) {
  ng_status status = build_portable_graph(&e->build, e->g, e->open, options);
  for (size_t i = 0; i < nisas && status == NG_OK; i++) {
    if (!e->is_asked[i]) continue;
    status = build_program(&e->build, &isas[i], &e->programs[e->nprograms]);
    e->isas[e->nprograms++] = &isas[i];
  }
  return status;
}

// Self-tests

enum { MOST_CASES = 5 };

// Values of open dims to test with: the hints, then few, about a vector's lanes, and none of the first or of the rest.
static int64_t case_extent(const Graph *g, size_t number, size_t dim) {
  static const int64_t values[MOST_CASES][2] = {{0}, {1, 1}, {17, 3}, {0, 5}, {5, 0}};
  return number ? values[number][dim > 0] : g->dims[dim]->value;
}

// Whether a gradient cancels there that the kernel, made for the hints, computes in f32.
static bool is_less_exact(const Graph *open, const Graph *bound) {
  for (size_t i = 0; i < open->nnodes; i++)
    if (norm_cancels(bound->nodes[i]) && !norm_cancels(open->nodes[i]) && norm_reduced_nelems(bound->nodes[i]))
      return true;
  return false;
}

// The graph bound to the case's values; NULL: it is no case to test, or there was no memory.
static Graph *bind_case(Emission *e, SelfTestCase *c, size_t number) {
  Diagnostics unheard;
  diagnostics_init(&unheard, &e->g->ctx->allocator);
  for (size_t i = 0; i < e->open->ndims; i++) c->extents[i] = case_extent(e->open, number, i);
  Graph *bound = graph_with_dims(e->open, c->extents, &unheard);
  if (unheard.out_of_memory) error_out_of_memory(&e->g->ctx->diagnostics);
  diagnostics_deinit(&unheard);
  if (!bound || !is_less_exact(e->open, bound)) return bound;
  graph_free(bound);
  return NULL;
}

static ng_status find_magnitudes(ng_context *ctx, const Graph *bound, const ng_tensor *tensors, SelfTestCase *c,
                                 Arena *scratch) {
  Tensor *inputs = ARENA_ARRAY(scratch, Tensor, bound->ninputs + 1);
  double *magnitudes = ARENA_ARRAY(scratch, double, bound->noutputs + 1);
  const InterpreterOptions options = {.allocator = &ctx->allocator};
  if (!inputs || !magnitudes) return NG_OUT_OF_MEMORY;
  for (size_t i = 0; i < bound->ninputs; i++) inputs[i] = tensor_of_api(&tensors[i]);
  c->magnitudes = magnitudes;
  Call call = call_begin(ctx);
  bool ok = interpret_magnitudes(bound, inputs, c->expected, magnitudes, &options, &ctx->diagnostics);
  ng_status status = call_end(ctx, call);
  return ok ? NG_OK : status;
}

// What the interpreter makes of the self-test's inputs.
static ng_status make_case(Emission *e, Graph *bound, Arena *scratch, const ValueRange *ranges, SelfTestCase *c,
                           ng_tensor **tensors) {
  ng_context *ctx = e->g->ctx;
  const size_t ntensors = bound->ninputs + bound->noutputs;
  ng_graph g = {.ctx = ctx, .graph = bound, .is_bound = true};
  Tensor *expected = ARENA_ARRAY(scratch, Tensor, bound->noutputs + 1);
  int64_t *nelems = ARENA_ARRAY(scratch, int64_t, ntensors + 1);
  *tensors = ARENA_ARRAY(scratch, ng_tensor, ntensors + 1);
  ng_status status = *tensors && expected && nelems ? NG_OK : NG_OUT_OF_MEMORY;
  for (size_t i = 0; status == NG_OK && i < ntensors; i++) {
    const Value *v = i < bound->ninputs ? bound->inputs[i] : bound->outputs[i - bound->ninputs];
    ng_tensor_info info = value_info(v);
    status = ng_tensor_new(ctx, &info, &(*tensors)[i]);
    nelems[i] = shape_nelems(&v->shape);
    if (status != NG_OK || i >= bound->ninputs) continue;
    Tensor t = tensor_of_api(&(*tensors)[i]);
    self_test_input(&t, i, ranges[i]);
  }
  if (status == NG_OK) status = ng_interpret(&g, *tensors, *tensors + bound->ninputs, 0);
  for (size_t o = 0; status == NG_OK && o < bound->noutputs; o++)
    expected[o] = tensor_of_api(&(*tensors)[bound->ninputs + o]);
  c->expected = expected;
  c->nelems = nelems;
  return status == NG_OK ? find_magnitudes(ctx, bound, *tensors, c, scratch) : status;
}

static ng_status print_self_test(Emission *e, const EmittedFile *file, Text *out) {
  ng_context *ctx = e->g->ctx;
  const Graph *g = e->open;
  SelfTestCase cases[MOST_CASES];
  ng_tensor *tensors[MOST_CASES] = {NULL};
  Arena scratch;
  arena_init(&scratch, &ctx->allocator);
  ValueRange *ranges = ARENA_ARRAY(&scratch, ValueRange, g->ninputs + 1);
  ng_status status = ranges ? NG_OK : NG_OUT_OF_MEMORY;
  for (size_t i = 0; status == NG_OK && i < g->ninputs; i++) ranges[i] = g->inputs[i]->range;
  size_t ncases = 0, most = g->ndims == 0 ? 1 : g->ndims == 1 ? MOST_CASES - 1 : MOST_CASES;
  for (size_t number = 0; status == NG_OK && number < most; number++) {
    Call call = call_begin(ctx);
    Graph *bound = bind_case(e, &cases[ncases], number);
    if (bound) status = make_case(e, bound, &scratch, ranges, &cases[ncases], &tensors[ncases]);
    else status = number == 0 ? NG_OUT_OF_MEMORY : call_end(ctx, call); // the hints have been tried
    ncases += bound != NULL;
    graph_free(bound);
  }
  const SelfTest test = {.file = file, .ranges = ranges, .cases = cases, .ncases = ncases};
  if (status == NG_OK && !emit_self_test(&test, out)) status = NG_OUT_OF_MEMORY;
  for (size_t n = 0; n < MOST_CASES; n++)
    for (size_t i = 0; tensors[n] && i < g->ninputs + g->noutputs; i++) ng_tensor_free(ctx, &tensors[n][i]);
  arena_deinit(&scratch);
  return status;
}

static ng_status open_graph(Emission *e) {
  Call call = call_begin(e->g->ctx);
  e->open = graph_with_open_dims(e->g->graph, &e->g->ctx->diagnostics);
  ng_status status = call_end(e->g->ctx, call);
  return e->open ? NG_OK : status == NG_OK ? NG_OUT_OF_MEMORY : status;
}

static ng_status emit_texts(Emission *e, const ng_options *options, Text *source, Text *header, Text *test) {
  ng_status status = choose_isas(e, options->isa);
  if (status == NG_OK) status = choose_threads(e, options->threads);
  if (status == NG_OK) status = choose_prefix(e, options->prefix);
  if (status == NG_OK) status = open_graph(e);
  if (status == NG_OK) status = find_hash(e);
  if (status == NG_OK) status = build_all(e, options);
  if (status != NG_OK) return status;
  EmittedFile file = {.file_stem = ng_graph_identifier(e->g),
                      .prefix = e->prefix,
                      .hash = e->hash,
                      .threads = e->threads,
                      .programs = e->programs,
                      .isas = e->isas,
                      .nisas = e->nprograms,
                      .in_place = allocator_alloc(&e->g->ctx->allocator, e->g->graph->noutputs * sizeof(InPlace))};
  bool ok = file.file_stem && file.in_place && emit_file(&file, &e->g->ctx->allocator, source, header);
  status = ok ? NG_OK : NG_OUT_OF_MEMORY;
  if (ok && test) status = print_self_test(e, &file, test);
  allocator_free(&e->g->ctx->allocator, file.in_place);
  return status;
}

// The texts of the pair and, for the third, of the self-test.
static ng_status emit(ng_graph *g, const ng_options *options, char **texts, size_t count) {
  static const ng_options defaults = {0};
  enum { MOST = 3 };
  ng_context *ctx = g->ctx;
  Text made[MOST];
  Emission e = {.g = g};
  for (size_t i = 0; i < MOST; i++) text_init(&made[i], &ctx->allocator);
  Call call = call_begin(ctx);
  ng_status status = emit_texts(&e, options ? options : &defaults, &made[0], &made[1], count == MOST ? &made[2] : NULL);
  for (size_t i = 0; i < count; i++) {
    texts[i] = status == NG_OK ? text_release(ctx, &made[i]) : NULL;
    if (status == NG_OK && !texts[i]) status = NG_OUT_OF_MEMORY;
  }
  const bool is_told = call_end(ctx, call) != NG_OK;
  if (status == NG_OUT_OF_MEMORY && !is_told) error_out_of_memory(&ctx->diagnostics);
  for (size_t i = 0; i < count && status != NG_OK; i++) {
    ng_text_free(ctx, texts[i]);
    texts[i] = NULL;
  }
  for (size_t i = 0; i < MOST; i++) text_deinit(&made[i]);
  build_deinit(&e.build);
  graph_free(e.open);
  return status;
}

ng_status ng_emit(ng_graph *g, const ng_options *options, char **source, char **header) {
  char *texts[2] = {NULL, NULL};
  ng_status status = emit(g, options, texts, 2);
  *source = texts[0];
  *header = texts[1];
  return status;
}

static bool write_text(int fd, const void *text) {
  return file_write_all(fd, text, strlen(text));
}

static bool write_source(ng_graph *g, const char *folder, const char *ending, const char *text) {
  Diagnostics *d = &g->ctx->diagnostics;
  Text path;
  text_init(&path, &g->ctx->allocator);
  text_format(&path, "%s/%s%s", folder, ng_graph_identifier(g), ending);
  bool ok = path.out_of_memory ? error_out_of_memory(d) : file_replace(path.bytes, write_text, text, d);
  text_deinit(&path);
  return ok;
}

ng_status ng_emit_files(ng_graph *g, const ng_options *options, const char *folder) {
  static const char *const endings[] = {".c", ".h", "_test.c"};
  char *texts[3] = {NULL, NULL, NULL};
  const size_t count = options && options->self_test ? 3 : 2;
  ng_status status = emit(g, options, texts, count);
  if (status != NG_OK) return status;
  Call call = call_begin(g->ctx);
  bool ok = true;
  for (size_t i = 0; i < count; i++) ok = ok && write_source(g, folder, endings[i], texts[i]);
  status = call_end(g->ctx, call);
  for (size_t i = 0; i < count; i++) ng_text_free(g->ctx, texts[i]);
  return ok ? NG_OK : status;
}
