// Times the pair of files that `ngrad emit` writes, compiled as users compile it, beside the kernel of `ngrad bench`,
// on the same tensors and with the same bits.
#include "frontend/cli/session.h"
#include "frontend/cli/table.h"
#include "tests/bench/case.h"
#include "tests/bench/modes.h"
#include "tests/bench/turns.h"

#include <dlfcn.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_PARTS = 4, ALIGNMENT = 64 };

// The entry point has the graph's signature. The self-test has a function that calls it with arrays; its first case is
// the one with the extents in the graph's file.
static const char adapter[] =
    "#define main self_test\n#include \"%s_test.c\"\n"
    "int bench_call(void *const *in, void *const *out, void *workspace, size_t nbytes);\n"
    "int bench_call(void *const *in, void *const *out, void *workspace, size_t nbytes) {\n"
    "  return call_kernel(0, in, out, workspace, nbytes, 0);\n}\n"
    "size_t bench_nbytes(void);\nsize_t bench_nbytes(void) {\n  return workspace_nbytes_of(0);\n}\n";

typedef struct Pair {
  const Case *tensors;
  char folder[32];
  void *library;
  int (*call)(void *const *in, void *const *out, void *workspace, size_t nbytes);
  size_t nbytes, ndims; // of the workspace; named extents of the graph
  void *workspace;
  void **inputs, **outputs;
  bool has_failed;
} Pair;

static bool remove_folder(const char *folder, const char *stem) {
  static const char *const endings[] = {".c", ".h", "_test.c", "_call.c", "_call.so"};
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    char *path = path_join(folder, stem, endings[i]);
    unlink(path);
    free(path);
  }
  return rmdir(folder) == 0;
}

static bool write_adapter(const char *path, const char *stem) {
  char *text = NULL;
  size_t nbytes = 0;
  FILE *out = memory_or_exit(open_memstream(&text, &nbytes));
  fprintf(out, adapter, stem);
  fclose(out);
  bool ok = file_write(path, memory_or_exit(text));
  free(text);
  return ok;
}

static bool compile(char *source, char *adapter_source, char *library) {
  const char *cc = getenv("CC");
  char *compiler = memory_or_exit(strdup(cc && *cc ? cc : "cc"));
  char *arguments[] = {compiler, "-std=c11",     "-O2", "-fopenmp", "-fPIC", "-shared",
                       source,   adapter_source, "-o",  library,    "-lm",   NULL};
  pid_t child;
  int status = 0;
  bool ok = posix_spawnp(&child, compiler, NULL, NULL, arguments, environ) == 0 && waitpid(child, &status, 0) == child;
  free(compiler);
  return ok && status == 0;
}

static bool load(Pair *p, const char *library) {
  p->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!p->library) return plain_error("%s", dlerror()), false;
  size_t (*workspace_nbytes)(void) = NULL;
  *(void **)&workspace_nbytes = dlsym(p->library, "bench_nbytes");
  *(void **)&p->call = dlsym(p->library, "bench_call");
  if (!workspace_nbytes || !p->call) return plain_error("%s: expected an emitted pair", library), false;
  p->nbytes = workspace_nbytes();
  p->workspace = memory_or_exit(aligned_alloc(ALIGNMENT, p->nbytes + ALIGNMENT - p->nbytes % ALIGNMENT));
  return true;
}

static void **pointers_to(const ng_tensor *tensors, size_t count) {
  void **pointers = memory_or_exit(calloc(count + 1, sizeof *pointers));
  for (size_t i = 0; i < count; i++) pointers[i] = tensors[i].data;
  return pointers;
}

// From the graph's file: a graph that was bound can be emitted for its extents only. is_baked: named extents are, too.
static ng_graph *read_graph(const Case *c, const char *path, bool is_baked) {
  ng_graph *g = ng_graph_read_file(c->ctx, path);
  for (size_t i = 0; g && is_baked && i < ng_graph_dim_count(g); i++) {
    ng_dim_info dim = ng_graph_dim(g, i);
    if (ng_graph_set_dim(g, dim.name, dim.value) == NG_OK) continue;
    ng_graph_free(g);
    return NULL;
  }
  return g;
}

// False after telling why; pair_close is due in both cases.
static bool pair_open(Pair *p, const Case *c, const char *path, bool is_baked) {
  *p = (Pair){.tensors = c, .folder = "/tmp/ngrad-bench-XXXXXX"};
  if (!mkdtemp(p->folder)) return plain_error("%s: cannot make this folder", p->folder), false;
  const ng_options options = {.isa = c->settings->isa, .prefix = "bench", .self_test = 1};
  const char *stem = memory_or_exit((void *)ng_graph_identifier(c->graph));
  char *source = path_join(p->folder, stem, ".c"), *adapter_source = path_join(p->folder, stem, "_call.c");
  char *library = path_join(p->folder, stem, "_call.so");
  ng_graph *g = read_graph(c, path, is_baked);
  p->ndims = g ? ng_graph_dim_count(g) : 0;
  bool ok = g && ng_emit_files(g, &options, p->folder) == NG_OK && write_adapter(adapter_source, stem) &&
            compile(source, adapter_source, library) && load(p, library);
  ng_graph_free(g);
  free(source);
  free(adapter_source);
  free(library);
  remove_folder(p->folder, stem);
  if (!ok) return false;
  p->inputs = pointers_to(c->inputs, c->ninputs);
  p->outputs = pointers_to(c->outputs, c->noutputs);
  return true;
}

static void pair_close(Pair *p) {
  free(p->inputs);
  free(p->outputs);
  free(p->workspace);
  if (p->library) dlclose(p->library);
}

static void run_pair(void *self) {
  Pair *p = self;
  if (p->call(p->inputs, p->outputs, p->workspace, p->nbytes) != 0) p->has_failed = true;
}

static void run_kernel(void *self) {
  Case *c = self;
  if (ng_kernel_run(c->kernel, c->inputs, c->outputs, c->settings->threads) != NG_OK) c->has_failed = true;
}

// Whether both store the same bits in the outputs. peer_outputs has the kernel's outputs.
static bool is_same(Case *c, Pair *p) {
  run_kernel(c);
  for (size_t i = 0; i < c->noutputs; i++) {
    size_t nbytes = ng_tensor_nbytes(&c->outputs[i]);
    memcpy(c->peer_outputs[i].data, c->outputs[i].data, nbytes);
    memset(c->outputs[i].data, 0, nbytes);
  }
  run_pair(p);
  for (size_t i = 0; i < c->noutputs; i++)
    if (memcmp(c->peer_outputs[i].data, c->outputs[i].data, ng_tensor_nbytes(&c->outputs[i])) != 0) return false;
  return true;
}

typedef struct Part { // one measurement
  const char *name;
  bool is_baked, is_alone; // named extents are numbers; only the first output is asked for
  Pair pair;
  double ms;
} Part;

static bool measure(Case *c, Part *parts, size_t count, double *kernel_ms) {
  Contestant contestants[MOST_PARTS + 1] = {{run_kernel, c}};
  for (size_t i = 0; i < count; i++) contestants[i + 1] = (Contestant){run_pair, &parts[i].pair};
  bool ok = turns_take(contestants, count + 1, c->settings->threads, c->settings->seconds) && !c->has_failed;
  *kernel_ms = contestants[0].median_ms;
  for (size_t i = 0; i < count; i++) {
    parts[i].ms = contestants[i + 1].median_ms;
    ok = ok && !parts[i].pair.has_failed;
  }
  if (!ok) plain_error("%s: it did not run", ng_graph_name(c->graph));
  return ok;
}

static void add_rows(Table *t, json_t *results, const Case *c, const Part *parts, size_t count, double kernel_ms) {
  for (size_t i = 0; i < count; i++) {
    table_add(t, "%s", i ? "" : ng_graph_name(c->graph));
    table_add(t, "%s", parts[i].name);
    table_add(t, "%.4g", kernel_ms);
    table_add(t, "%.4g", parts[i].ms);
    table_add(t, "%.3f", parts[i].ms / kernel_ms);
    json_t *object = memory_or_exit(json_object());
    json_set(object, "graph", json_text(ng_graph_name(c->graph)));
    json_set(object, "part", json_text(parts[i].name));
    json_set(object, "kernel_ms", json_number(kernel_ms));
    json_set(object, "emitted_ms", json_number(parts[i].ms));
    json_add(results, object);
  }
}

static int run_case(Case *c, const char *path, Table *t, json_t *results) {
  Part parts[MOST_PARTS] = {{.name = "emitted"}};
  size_t count = 0;
  int status = NG_OK;
  double kernel_ms;
  for (size_t i = 0; i < MOST_PARTS && parts[i].name && status == NG_OK; i++, count++) {
    Part *part = &parts[i];
    if (!pair_open(&part->pair, c, path, part->is_baked)) status = NG_WRONG;
    else if (!is_same(c, &part->pair)) status = NG_DIFFERENT;
    for (size_t o = 1; status == NG_OK && part->is_alone && o < c->noutputs; o++) part->pair.outputs[o] = NULL;
    if (i > 0) continue;
    if (c->noutputs > 1) *++part = (Part){.name = "first output alone", .is_alone = true};
    if (parts[0].pair.ndims) *++part = (Part){.name = "extents baked in", .is_baked = true};
  }
  if (status == NG_DIFFERENT) plain_error("%s: emitted, it computes other bits", ng_graph_name(c->graph));
  if (status == NG_OK && !measure(c, parts, count, &kernel_ms)) status = NG_WRONG;
  if (status == NG_OK) add_rows(t, results, c, parts, count, kernel_ms);
  for (size_t i = 0; i < count; i++) pair_close(&parts[i].pair);
  return status;
}

int mode_emitted(const Settings *s, json_t *document) {
  static const char *const header[] = {"case", "", "ngrad", "emitted", "ratio"};
  Table table = table_new("llrrr");
  json_t *results = memory_or_exit(json_array());
  int status = NG_OK;
  Settings own_settings = *s;
  own_settings.has_no_peer = true;
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(&table, "%s", header[i]);
  rows_fit_graphs(&table, s);
  for (size_t i = 0; i < s->npaths; i++) {
    Case c;
    progress_show(s->paths[i]);
    int own = case_open(&c, s->paths[i], &own_settings, 0) ? run_case(&c, s->paths[i], &table, results) : NG_WRONG;
    if (own != NG_OK) status = own;
    case_close(&c);
    rows_show(&table);
  }
  progress_show(NULL);
  table_print(&table);
  putchar('\n');
  json_set(document, "emitted", results);
  return status;
}
