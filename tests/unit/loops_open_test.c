// Loop trees of emitted files, where a call gives the open extents and may leave outputs out. For random graphs the
// executor has the bits of the file's scalar C, at extents around the lane count and at 0. The bits of an output do not
// depend on which others are left out.
//
// NGRAD_RANDOM_GRAPHS=1000 sets the number of random graphs, NGRAD_RANDOM_SEED=7 the first seed.
#include "backends/codegen/codegen.h"
#include "backends/codegen/toolchain/toolchain.h"
#include "ir/graph/open_dims.h"
#include "tests/unit/loops_case.h"
#include "tests/unit/quick_compiler.h"

#include <dlfcn.h>

enum { COUNT = 60, MOST_WORKSPACE = 1 << 28 };

// memory NULL: returns only how many bytes the open extents need.
typedef size_t Entry(const void *const *inputs, void *const *outputs, const int64_t *extents, void *memory);

typedef struct OpenCase {
  uint64_t seed;
  Graph *given, *graph; // graph: after the passes, with open dims
  Program *program;
  void *library;
  Entry *entry;
  size_t nfailures;
} OpenCase;

// Programs

static const char entry_text[] =
    "size_t test_entry(const void *const *inputs, void *const *outputs, const int64_t *extents, void *memory);\n"
    "size_t test_entry(const void *const *inputs, void *const *outputs, const int64_t *extents, void *memory) {\n";
static const char open_text[] = "  struct t_scalar_args a;\n"
                                "  if (!memory) return (size_t)t_scalar_layout(&a, extents, NULL);\n"
                                "  t_scalar_run(inputs, outputs, extents, (unsigned char *)memory, NULL);\n";
static const char closed_text[] = "  (void)extents;\n"
                                  "  if (memory) t_scalar_run(inputs, outputs, (unsigned char *)memory, NULL);\n";

// The file with its header included in the text, and an entry that calls its scalar part.
static bool print_file(const Program *p, Text *out) {
  static const char include[] = "#include \"t.h\"\n";
  const Isa *isa = isa_find("scalar");
  EmittedFunction function = {.name = "t", .hash = "", .programs = &p};
  EmittedFile file = {
      .file_stem = "t", .prefix = "t", .functions = &function, .nfunctions = 1, .isas = &isa, .nisas = 1};
  Text source, header;
  text_init(&source, &system_allocator);
  text_init(&header, &system_allocator);
  const bool ok = emit_file(&file, &system_allocator, &source, &header);
  const char *at = ok ? strstr(text_string(&source), include) : NULL;
  if (at) {
    text_add(out, text_string(&source), (size_t)(at - text_string(&source)));
    text_add_string(out, text_string(&header));
    text_add_string(out, at + sizeof include - 1);
    text_add_string(out, entry_text);
    text_add_string(out, p->graph->ndims ? open_text : closed_text);
    text_add_string(out, "  return 0;\n}\n");
  }
  text_deinit(&source);
  text_deinit(&header);
  return at && !out->out_of_memory;
}

static bool load(OpenCase *c) {
  Diagnostics d;
  Text source;
  Loaded loaded = {NULL};
  ToolchainTimes times;
  bool compiler_failed = false;
  diagnostics_init(&d, &system_allocator);
  text_init(&source, &system_allocator);
  if (!print_file(c->program, &source) ||
      !toolchain_load(&source, "test_entry", &c_compiler, 0, &loaded, &times, &compiler_failed, &d))
    fail_msg("seed %llu: %s", (unsigned long long)c->seed, d.count ? d.items[0].message : "no file");
  c->library = loaded.library;
  memcpy(&c->entry, &loaded.symbol, sizeof loaded.symbol); // ISO C has no such cast
  text_deinit(&source);
  diagnostics_deinit(&d);
  return c->entry != NULL;
}

// Lowers the graph with its dims open, or bound where they cannot stay open. False: no schedule leaves them open.
static bool lower(OpenCase *c, bool no_fuse) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *open = graph_with_open_dims(c->given, &d);
  if (!open) loops_bind("a graph with dims", c->given);
  diagnostics_deinit(&d);
  c->graph = open ? open : graph_clone(c->given);
  Target target = target_of_any_machine();
  target.isa = "scalar";
  PassContext context = {.diagnostics = &d,
                         .allocator = &system_allocator,
                         .target = &target,
                         .evaluate = interpret_node,
                         .no_fuse = no_fuse};
  if (c->graph && pipeline_run(c->graph, &context)) c->program = pipeline_lower(c->graph, &context);
  if (c->program) assert_true(pipeline_build_trees(c->program, true)); // as in emitted files
  diagnostics_deinit(&d);
  return c->program;
}

// Calls

static void *new_workspace(const OpenCase *c, const Tensor *outputs, const int64_t *extents) {
  enum { LINE = 64 };
  size_t nbytes = c->program->workspace_nbytes + (c->program->graph->ndims ? c->entry(NULL, NULL, extents, NULL) : 0);
  for (size_t i = 0; i < c->graph->noutputs; i++) nbytes += tensor_nbytes(&outputs[i]) + LINE;
  assert_true(nbytes < MOST_WORKSPACE);
  void *memory = aligned_alloc(LINE, (nbytes / LINE + 1) * LINE);
  assert_non_null(memory);
  if (memory) memset(memory, 0xFF, nbytes);
  return memory;
}

static void run_compiled(const OpenCase *c, const LoopsCase *l, const Tensor *outputs, const int64_t *extents) {
  const void *in[MOST_TENSORS] = {NULL};
  void *out[MOST_TENSORS] = {NULL};
  for (size_t i = 0; i < l->graph->ninputs; i++) in[i] = l->inputs[i].data;
  for (size_t i = 0; i < l->graph->noutputs; i++) out[i] = outputs[i].data;
  void *memory = new_workspace(c, outputs, extents);
  c->entry(in, out, extents, memory);
  free(memory);
}

// Leaves out the outputs whose bits are set. With none left out, the results are saved in `whole`, for later calls to
// compare with.
static bool compare_without(const OpenCase *c, const LoopsCase *l, const int64_t *extents, uint64_t without,
                            Tensor *whole) {
  Tensor executed[MOST_TENSORS] = {{0}}, compiled[MOST_TENSORS] = {{0}};
  loops_new_outputs(l->graph, executed);
  loops_new_outputs(l->graph, compiled);
  for (size_t i = 0; i < l->graph->noutputs; i++) {
    if (!(without >> i % 64 & 1)) continue;
    tensor_free(&executed[i], &system_allocator);
    tensor_free(&compiled[i], &system_allocator);
  }
  const ExecuteOptions options = {.dims = extents};
  const char *how = without ? "with outputs left out" : "with all outputs";
  bool ok = loops_execute(l, c->program, executed, &options, how);
  if (ok) run_compiled(c, l, compiled, extents);
  if (ok) ok = loops_have_same_bits(l, executed, compiled, "from emitted C");
  if (ok && without) ok = loops_have_same_bits(l, executed, whole, "as with all outputs");
  loops_free_outputs(l->graph, compiled);
  if (without) loops_free_outputs(l->graph, executed);
  else memcpy(whole, executed, l->graph->noutputs * sizeof *whole);
  return ok;
}

static bool compare_at(const OpenCase *c, const int64_t *extents) {
  enum { TIMES = 4 };
  Diagnostics d;
  LoopsCase l;
  char name[128];
  Tensor whole[MOST_TENSORS] = {{0}};
  uint64_t random = c->seed;
  diagnostics_init(&d, &system_allocator);
  Graph *bound = graph_with_dims(c->graph, extents, &d);
  diagnostics_deinit(&d);
  if (!bound) return true; // these values contradict each other
  int length = snprintf(name, sizeof name, "seed %llu at", (unsigned long long)c->seed);
  for (size_t i = 0; i < c->graph->ndims; i++)
    length += snprintf(name + length, sizeof name - (size_t)length, " %lld", (long long)extents[i]);
  loops_case_init(&l, name, bound, c->seed);
  bool ok = compare_without(c, &l, extents, 0, whole);
  for (int i = 0; ok && i < TIMES; i++) ok = compare_without(c, &l, extents, random_next(&random) | 1U << i, whole);
  loops_free_outputs(l.graph, whole);
  loops_case_deinit(&l);
  return ok;
}

// The extents if these are the first open dim's and all others' values. False: an extent is negative then.
static bool set_extents(const Graph *g, const int64_t values[2], int64_t *extents) {
  for (size_t i = 0; i < g->ndims; i++) {
    extents[i] = i < graph_narguments(g) ? values[i > 0] : open_dim_value(g, i, extents);
    if (extents[i] < 0) return false;
  }
  return true;
}

static bool compare(OpenCase *c) {
  static const int64_t values[][2] = {{1, 1}, {17, 3}, {0, 5}, {5, 0}, {33, 16}};
  int64_t extents[MAX_OPEN_DIMS];
  for (size_t i = 0; i < c->graph->ndims; i++) extents[i] = c->graph->dims[i]->value;
  bool ok = compare_at(c, extents);
  for (size_t n = 0; ok && c->graph->ndims && n < sizeof values / sizeof *values; n++)
    if (set_extents(c->graph, values[n], extents)) ok = compare_at(c, extents);
  return ok;
}

// Whether the program for fixed extents has the bits of the program for open ones. Both have a kernel for each
// operator: which sums share a kernel may depend on extents, and then decides what counts as their row.
static bool compare_fixed(const OpenCase *c, const int64_t *extents) {
  Diagnostics d;
  LoopsCase l;
  char name[64];
  Tensor opened[MOST_TENSORS] = {{0}}, fixed[MOST_TENSORS] = {{0}};
  const Target target = target_of_any_machine();
  diagnostics_init(&d, &system_allocator);
  Graph *bound = graph_with_dims(c->graph, extents, &d);
  diagnostics_deinit(&d);
  if (!bound) return true; // these values contradict each other
  snprintf(name, sizeof name, "seed %llu at %lld", (unsigned long long)c->seed, (long long)extents[0]);
  loops_case_init(&l, name, bound, c->seed);
  loops_new_outputs(l.graph, opened);
  loops_new_outputs(l.graph, fixed);
  Lowered lowered = loops_lower(&l, &target, false, NULL);
  const bool ok = loops_execute(&l, c->program, opened, &(ExecuteOptions){.dims = extents}, "open") &&
                  loops_execute(&l, lowered.program, fixed, NULL, "fixed") &&
                  loops_have_same_bits(&l, opened, fixed, "with fixed extents");
  lowered_free(&lowered);
  loops_free_outputs(l.graph, opened);
  loops_free_outputs(l.graph, fixed);
  loops_case_deinit(&l);
  return ok;
}

static void fixed_extents_have_the_bits_of_open_ones(void **state) {
  static const int64_t values[][2] = {{6, 40}, {5, 7}, {17, 9}, {33, 16}};
  (void)state;
  const uint64_t count = number_of_graphs((uint64_t)5 * COUNT);
  size_t nfailures = 0, nopen = 0;
  for (RandomSeeds s = random_seeds(count); random_next_seed(&s);) {
    const RandomGraphOptions options = {.most_nodes = 8, .most_nelems = 20000, .is_focused = s.seed % 2};
    OpenCase c = {.seed = s.seed, .given = loops_random_graph(s.seed, &options)};
    bool ok = true;
    if (lower(&c, false) && c.graph->ndims) {
      for (size_t n = 0; n < sizeof values / sizeof *values; n++) {
        int64_t extents[MAX_OPEN_DIMS];
        if (set_extents(c.graph, values[n], extents)) ok &= compare_fixed(&c, extents);
      }
      nopen++;
    }
    if (!ok) random_tell();
    nfailures += !ok;
    program_free(c.program);
    graph_free(c.graph);
    graph_free(c.given);
  }
  assert_int_equal(nfailures, 0);
  assert_true(nopen >= count / 4); // else this tests too little
}

static void calls_have_the_bits_of_emitted_c(void **state) {
  (void)state;
  const uint64_t count = number_of_graphs(COUNT);
  size_t nfailures = 0, nopen = 0;
  for (RandomSeeds s = random_seeds(count); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    const RandomGraphOptions options = {.most_nodes = 8, .most_nelems = 20000, .is_focused = seed % 2};
    OpenCase c = {.seed = seed, .given = loops_random_graph(seed, &options)};
    if (lower(&c, false) && load(&c) && !compare(&c)) {
      random_tell();
      nfailures++;
    }
    nopen += c.program && c.graph->ndims;
    if (c.library) dlclose(c.library);
    program_free(c.program);
    graph_free(c.graph);
    graph_free(c.given);
  }
  assert_int_equal(nfailures, 0);
  assert_true(nopen >= count / 4); // else this tests too little
}

static int use_compiler(void **state) {
  (void)state;
  return use_quick_compiler(true) ? 0 : -1;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      random_unit_test(calls_have_the_bits_of_emitted_c),
      random_unit_test(fixed_extents_have_the_bits_of_open_ones),
  };
  return cmocka_run_group_tests(tests, use_compiler, NULL);
}
