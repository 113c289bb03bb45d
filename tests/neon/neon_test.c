// NEON has the same bits: kernels are emitted for it, cross-compiled, run under qemu-user, and what they make is
// compared with what this machine's best instruction set makes of the same inputs. So are scalar kernels on aarch64.
//
//   neon_test DRIVER SHARED     the source of the driver; and a folder, or $NGRAD_SHARED instead, in which golden/
//                               holds cases, which are skipped where there are none
//
// All cases become one program, which runs once for each instruction set. Without NGRAD_CHECK (tests/effort.h), five
// cases, with NEON alone. Exits with 77 when it cannot test here.
#include "backends/codegen/codegen.h"
#include "frontend/api/build.h"
#include "frontend/yaml/yaml.h"
#include "passes/pipeline.h"
#include "tests/random_graph.h"
#include "tests/unit/graph_cases.h"

#include <dirent.h>
#include <ftw.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CASES = 128, SKIPPED = 77, PATH_BYTES = 4096 };

static const char compiler[] = "aarch64-linux-gnu-gcc", emulator[] = "qemu-aarch64";

typedef struct Case {
  char name[128];
  ng_context *ctx;
  ng_graph *graph;
  ng_tensor *inputs, *outputs; // outputs: this machine's
  size_t ninputs, noutputs;
  size_t workspace_nbytes; // of what is emitted
} Case;

static Case cases[MOST_CASES];
static size_t ncases;
static char folder[] = "/tmp/ngrad-neon-XXXXXX";

static void stop(const char *what, const char *detail) {
  fprintf(stderr, "FAILED: %s: %s\n", what, detail);
  exit(1);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at) {
  (void)status, (void)kind, (void)at;
  return remove(path);
}

static void remove_folder(void) {
  nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

// Cases

// Random inputs where `folder` is NULL, else NAME.npy there.
static void add_inputs(Case *c, const char *data) {
  for (size_t i = 0; i < c->ninputs; i++) {
    ng_tensor_info info = ng_graph_input(c->graph, i);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s.npy", data ? data : "", info.name);
    ng_status status = data ? ng_tensor_read_npy(c->ctx, path, &info, 0, &c->inputs[i])
                            : ng_tensor_random(c->graph, i, 11, &c->inputs[i]);
    if (status != NG_OK) stop(c->name, ng_messages_text(c->ctx, 0));
  }
}

// Runs the case on this machine.
static void add_case(const char *name, ng_context *ctx, ng_graph *graph, const char *data) {
  if (ncases == MOST_CASES) stop(name, "too many cases");
  Case *c = &cases[ncases++];
  *c = (Case){.ctx = ctx, .graph = graph};
  snprintf(c->name, sizeof c->name, "%s", name);
  if (!graph || ng_graph_bind(graph) != NG_OK) stop(name, ng_messages_text(ctx, 0));
  c->ninputs = ng_graph_input_count(graph);
  c->noutputs = ng_graph_output_count(graph);
  c->inputs = calloc(c->ninputs + c->noutputs + 1, sizeof *c->inputs);
  if (!c->inputs) stop(name, "out of memory");
  c->outputs = c->inputs + c->ninputs;
  add_inputs(c, data);
  for (size_t k = 0; k < c->noutputs; k++) {
    ng_tensor_info info = ng_graph_output(graph, k);
    if (ng_tensor_new(ctx, &info, &c->outputs[k]) != NG_OK) stop(name, ng_messages_text(ctx, 0));
  }
  ng_kernel *kernel = ng_compile(graph, NULL);
  if (!kernel || ng_kernel_run(kernel, c->inputs, c->outputs, 1) != NG_OK) stop(name, ng_messages_text(ctx, 0));
  ng_kernel_free(kernel);
}

static void add_golden_cases(const char *shared) {
  struct dirent **entries = NULL;
  char golden[PATH_BYTES / 4];
  snprintf(golden, sizeof golden, "%s/golden", shared);
  int count = scandir(golden, &entries, NULL, alphasort);
  if (count < 0) printf("skipped: the cases of %s, which is not there\n", golden);
  for (int i = 0; i < count; i++) {
    char path[PATH_BYTES], data[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s/graph.yaml", golden, entries[i]->d_name);
    snprintf(data, sizeof data, "%s/%s/in", golden, entries[i]->d_name);
    if (access(path, R_OK) == 0) {
      ng_context *ctx = ng_context_new(NULL);
      add_case(entries[i]->d_name, ctx, ng_graph_read_file(ctx, path), data);
    }
    free(entries[i]);
  }
  free(entries);
}

static void add_text_case(GraphText *g, const char *name) {
  Text text = graph_text_finish(g, name);
  ng_context *ctx = ng_context_new(NULL);
  add_case(name, ctx, ng_graph_read(ctx, name, text_string(&text), text.nbytes, NULL), NULL);
  text_deinit(&text);
  graph_text_deinit(g);
}

static void add_norms(void) {
  GraphText g;
  graph_text_init(&g);
  const int64_t widths[] = {1, 15, 17, 64, 5000};
  for (int i = 0; i < 5; i++) {
    layer_norm_gradient(&g, EXTENTS(i % 2 ? 37 : 5, widths[i]), -1, f32, 0);
    batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(3, 4, widths[i]), "NCX", f32, 0);
    batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(37, widths[i]), "NXC", f32, 0);
  }
  layer_norm_gradient(&g, EXTENTS(40, 200), -1, f32, FAR);
  layer_norm(&g, EXTENTS(7, 50), -1, f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(300, 3, 7, 7), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(70000, 1), "NXC", f32, 0);
  batch_norm_training(&g, EXTENTS(3, 4, 37), "NCX", f32, 0);
  directml_gradient(&g, "directml.BATCH_NORMALIZATION_TRAINING_GRAD", EXTENTS(4, 3, 5, 17), 10, "f32", 0);
  add_text_case(&g, "norms");
}

static void add_types(void) {
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NTYPES; i++) {
    layer_norm_gradient(&g, EXTENTS(21, 50), -1, all_types[i], 0);
    batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(3, 4, 37), "NCX", all_types[i], 0);
    batch_norm_training(&g, EXTENTS(19, 37), "NXC", all_types[i], 0);
  }
  add_text_case(&g, "types");
}

static void add_elementwise(void) {
  GraphText g;
  graph_text_init(&g);
  const char *const types[] = {"f64", "f32", "f16", "bf16", "s32"};
  for (int i = 0; i < 5; i++) {
    binary(&g, "Add", types[i], EXTENTS(3, 21), types[i], EXTENTS(21));
    binary(&g, "Subtract", types[i], EXTENTS(3, 21), types[i], EXTENTS(3, 1));
    if (i < 4) unary(&g, "ReLU", types[i], EXTENTS(3, 21), "");
    if (i < 4) unary(&g, "ReLUBackward", types[i], EXTENTS(3, 21), "");
    if (i < 4 && i != 1) unary(&g, "TypeCast", types[i], EXTENTS(3, 21), "f32");
    if (i < 4 && i != 1) unary(&g, "TypeCast", "f32", EXTENTS(3, 21), types[i]);
  }
  for (int i = 0; i < NACTIVATIONS; i++) activation(&g, &activations[i], "f32", EXTENTS(3, 21));
  binary(&g, "GreaterEqual", "f32", EXTENTS(3, 21), "f32", EXTENTS(21));
  choice(&g, "f32", EXTENTS(21), EXTENTS(3, 21), EXTENTS(3, 1));
  prelu(&g, EXTENTS(3, 4, 33), EXTENTS(4), "NCX", "f32");
  add_text_case(&g, "elementwise");
}

// Whole graphs: several kernels, whatever operators and types.
static void add_random_graphs(uint64_t count) {
  static const RandomGraphOptions options = {.most_nodes = 12, .most_nelems = 20000, .is_focused = true};
  for (uint64_t seed = 1; seed <= count; seed++) {
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Graph *graph = random_graph(&system_allocator, seed, &options, &d);
    if (!graph) stop("random graph", "cannot be made");
    char name[32];
    snprintf(name, sizeof name, "random graph %d", (int)seed);
    Text text;
    text_init(&text, &system_allocator);
    yaml_print(graph, &text);
    ng_context *ctx = ng_context_new(NULL);
    add_case(name, ctx, ng_graph_read(ctx, name, text_string(&text), text.nbytes, NULL), NULL);
    text_deinit(&text);
    graph_free(graph);
    diagnostics_deinit(&d);
  }
}

// Programs

// Emits a case; its entry point is entry_NUMBER.
static void write_source(Case *c, size_t number, const Isa *isa) {
  Build b;
  ng_options options = {.isa = isa->name};
  if (build_graph(&b, c->graph, &options) != NG_OK || build_kernels(&b) != NG_OK)
    stop(c->name, ng_messages_text(c->ctx, 0));
  Text source;
  char path[PATH_BYTES], identifier[32];
  snprintf(identifier, sizeof identifier, "case_%zu", number);
  text_init(&source, &system_allocator);
  if (!pipeline_build_trees(b.program, false) || !emit_for_loading(b.program, isa, identifier, false, &source))
    stop(c->name, "out of memory");
  c->workspace_nbytes = b.program->workspace_nbytes;
  snprintf(path, sizeof path, "%s/case_%zu.c", folder, number);
  FILE *f = fopen(path, "w");
  if (!f) stop(path, "cannot write");
  fprintf(f, "#define ngrad_entry entry_%zu\n%s", number, text_string(&source));
  fclose(f);
  text_deinit(&source);
  build_deinit(&b);
}

static void write_table(void) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/table.c", folder);
  FILE *f = fopen(path, "w");
  if (!f) stop(path, "cannot write");
  fprintf(f, "#include <stddef.h>\n");
  for (size_t i = 0; i < ncases; i++) fprintf(f, "extern void entry_%zu(void);\n", i);
  fprintf(f, "void (*const entries[])(void) = {");
  for (size_t i = 0; i < ncases; i++) fprintf(f, "entry_%zu, ", i);
  fprintf(f, "};\nconst size_t nentries = %zu;\n", ncases);
  fclose(f);
}

static void write_number(FILE *f, uint64_t number) {
  fwrite(&number, sizeof number, 1, f);
}

static void write_cases(void) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/cases", folder);
  FILE *f = fopen(path, "wb");
  if (!f) stop(path, "cannot write");
  for (size_t i = 0; i < ncases; i++) {
    const Case *c = &cases[i];
    write_number(f, c->ninputs);
    write_number(f, c->noutputs);
    write_number(f, c->workspace_nbytes);
    for (size_t n = 0; n < c->ninputs; n++) {
      size_t nbytes = ng_tensor_nbytes(&c->inputs[n]);
      write_number(f, nbytes);
      fwrite(c->inputs[n].data, 1, nbytes, f);
    }
    for (size_t k = 0; k < c->noutputs; k++) write_number(f, ng_tensor_nbytes(&c->outputs[k]));
  }
  if (fclose(f) != 0) stop(path, "cannot write");
}

static int run_command(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int run_command(const char *format, ...) {
  char command[2 * PATH_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(command, sizeof command, format, args);
  va_end(args);
  return system(command); // NOLINT(cert-env33-c): its words are this test's own
}

typedef struct Compilation { // of all cases, shared out among threads
  atomic_size_t next;
  atomic_size_t nfailed;
  const char *effort;
} Compilation;

static void *compile_cases(void *context) {
  Compilation *c = context;
  for (size_t i; (i = atomic_fetch_add(&c->next, 1)) < ncases;)
    if (run_command("%s -std=c11 %s -ffp-contract=off -fno-math-errno -w -c -o %s/case_%zu.o %s/case_%zu.c", compiler,
                    c->effort, folder, i, folder, i) != 0)
      atomic_fetch_add(&c->nfailed, 1);
  return NULL;
}

// Scalar C takes gcc long at -O2; its results must be the same bits at any level.
static void make_program(const Isa *isa, const char *driver) {
  enum { MOST_THREADS = 16 };
  Compilation c = {.effort = takes_all() && strcmp(isa->name, "neon") == 0 ? "-O2" : "-O0"};
  pthread_t threads[MOST_THREADS];
  long nthreads = ng_thread_count() < MOST_THREADS ? ng_thread_count() : MOST_THREADS;
  for (size_t i = 0; i < ncases; i++) write_source(&cases[i], i, isa);
  write_table();
  write_cases();
  for (long i = 0; i < nthreads; i++)
    if (pthread_create(&threads[i], NULL, compile_cases, &c) != 0) stop("pthread_create", "no more threads");
  for (long i = 0; i < nthreads; i++) pthread_join(threads[i], NULL);
  if (c.nfailed) stop(isa->name, "does not compile for aarch64");
  if (run_command("%s -std=c11 -O1 -static -o %s/program '%s' %s/table.c %s/case_*.o -lm", compiler, folder, driver,
                  folder, folder) != 0)
    stop(isa->name, "does not link for aarch64");
}

// Comparing

static bool has_same_bits(const ng_tensor *expected, const void *found) {
  if (memcmp(found, expected->data, ng_tensor_nbytes(expected)) == 0) return true;
  if (type_is_packed((Type)expected->type)) return false;
  size_t width = ng_type_nbytes(expected->type);
  ng_tensor other = *expected;
  other.data = (void *)found;
  for (int64_t i = 0; i < ng_tensor_nelems(expected); i++) {
    const char *a = (const char *)found + (size_t)i * width, *e = (const char *)expected->data + (size_t)i * width;
    if (memcmp(a, e, width) != 0 && !(isnan(ng_tensor_get(expected, i)) && isnan(ng_tensor_get(&other, i))))
      return false;
  }
  return true;
}

static size_t compare(const Isa *isa) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/results", folder);
  FILE *f = fopen(path, "rb");
  if (!f) stop(path, "cannot read");
  size_t ndifferent = 0;
  for (size_t i = 0; i < ncases; i++) {
    for (size_t k = 0; k < cases[i].noutputs; k++) {
      const ng_tensor *expected = &cases[i].outputs[k];
      size_t nbytes = ng_tensor_nbytes(expected);
      char *found = malloc(nbytes + 1);
      if (!found || fread(found, 1, nbytes, f) != nbytes) stop(path, "ends early");
      if (!has_same_bits(expected, found)) {
        ndifferent++;
        printf("FAILED: %s on aarch64: %s: %s has other bits\n", isa->name, cases[i].name,
               ng_graph_output(cases[i].graph, k).name);
      }
      free(found);
    }
  }
  fclose(f);
  return ndifferent;
}

static void free_cases(void) {
  for (size_t i = 0; i < ncases; i++) {
    Case *c = &cases[i];
    for (size_t n = 0; n < c->ninputs + c->noutputs; n++) ng_tensor_free(c->ctx, &c->inputs[n]);
    free(c->inputs);
    ng_graph_free(c->graph);
    ng_context_free(c->ctx);
  }
}

int main(int argc, char **argv) {
  static const char *const tested[] = {"neon", "scalar"};
  const char *shared = getenv("NGRAD_SHARED");
  if (argc != 3) stop("usage", "neon_test DRIVER SHARED");
  if (run_command("command -v %s >/dev/null && command -v %s >/dev/null", compiler, emulator) != 0) {
    printf("skipped: neon, for want of %s and %s\n", compiler, emulator);
    return SKIPPED;
  }
  if (!mkdtemp(folder)) stop(folder, "cannot make it");
  atexit(remove_folder);
  if (takes_all()) add_golden_cases(shared ? shared : argv[2]);
  add_norms();
  add_types();
  add_elementwise();
  add_random_graphs(takes_all() ? 32 : 2);
  size_t ndifferent = 0;
  for (int i = 0; i < (takes_all() ? 2 : 1); i++) {
    const Isa *isa = isa_find(tested[i]);
    make_program(isa, argv[1]);
    if (run_command("%s %s/program %s/cases %s/results", emulator, folder, folder, folder) != 0)
      stop(isa->name, "did not run");
    ndifferent += compare(isa);
  }
  printf("%zu cases with neon%s on aarch64, against %s here: %zu outputs differ\n", ncases,
         takes_all() ? " and scalar" : "", isa_best()->name, ndifferent);
  free_cases();
  return ndifferent > 0;
}
