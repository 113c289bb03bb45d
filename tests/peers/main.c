// Products, convolutions and pooling of random shapes: compares ngrad's compiled results with oneDNN's, which are
// computed in f32 from the same numbers, and writes them to files for other libraries.
#include "tests/peers/peers.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: ngrad_check_peers [OPTION...]\n\n"
                            "  --count N     so many operators of random shape (default 560)\n"
                            "  --seed N      the same number draws the same ones (default 1)\n"
                            "  --only N      operator N of these alone, and print its graph\n"
                            "  --export DIR  write graphs, inputs and results to this folder instead, for peers.py\n"
                            "  --help        print this\n";

typedef struct Options {
  uint64_t count, seed, only;
  bool has_only;
  const char *folder;
} Options;

// An operator with operands of one type.
typedef struct Row {
  const char *op, *type;
  size_t ncases, nlacking, nelems, nwrong;
  int64_t most_terms;
  double error, of_bound;
  uint64_t worst; // the case of the latter
} Row;

enum { MOST_ROWS = 64 };
static Row rows[MOST_ROWS];
static size_t nrows;

static Row *row_of(const Drawn *d) {
  for (size_t i = 0; i < nrows; i++)
    if (strcmp(rows[i].op, d->op) == 0 && strcmp(rows[i].type, d->type) == 0) return &rows[i];
  rows[nrows] = (Row){.op = d->op, .type = d->type};
  return &rows[nrows++];
}

// Cases

static void print_graph(const Drawn *d) {
  char *text = drawn_graph(d, NULL);
  if (text) fputs(text, stdout);
  free(text);
}

static void add_case(Row *row, const Drawn *d, uint64_t number, const Closeness *c) {
  row->ncases++;
  row->nelems += c->nelems;
  if (d->nterms > row->most_terms) row->most_terms = d->nterms;
  if (!(c->error <= row->error)) row->error = c->error;
  if (!(c->of_bound <= row->of_bound)) {
    row->of_bound = c->of_bound;
    row->worst = number;
  }
  if (!c->nbeyond) return;
  row->nwrong++;
  printf("case %llu: %zu of %zu elements are beyond the bound, number %lld by the factor %g\n",
         (unsigned long long)number, c->nbeyond, c->nelems, (long long)c->worst_element, c->of_bound);
  print_graph(d);
}

static bool peer_compute_twice(Computation *peer, ng_tensor *theirs) {
  const ng_tensor_info info = ng_graph_output(peer->graph, 0);
  if (ng_tensor_new(peer->ctx, &info, theirs) != NG_OK || !onednn_compute(peer)) return false;
  memcpy(theirs->data, peer->output.data, ng_tensor_nbytes(theirs));
  computation_set_absolute(peer);
  return onednn_compute(peer);
}

// False after saying why: ngrad failed.
static bool run_case(const Drawn *d, uint64_t number, uint64_t seed) {
  Row *row = row_of(d);
  Computation ours, peer = {0};
  char *text = drawn_graph(d, NULL), *peer_text = drawn_graph(d, "f32");
  bool ok = text && peer_text && computation_open(&ours, text, seed) && computation_compile_and_run(&ours) &&
            computation_open(&peer, peer_text, seed);
  if (!ok) {
    printf("case %llu failed\n", (unsigned long long)number);
    print_graph(d);
    row->nwrong++;
  } else {
    ng_tensor theirs = {0};
    computation_copy_inputs(&peer, &ours);
    if (peer_compute_twice(&peer, &theirs)) {
      const Closeness c = compare(&ours.output, &theirs, &peer.output, d->nterms);
      add_case(row, d, number, &c);
    } else row->nlacking++;
    ng_tensor_free(peer.ctx, &theirs);
  }
  computation_close(&peer);
  computation_close(&ours);
  free(text);
  free(peer_text);
  return ok;
}

// Files: NUMBER.yaml, its inputs and result as f32, and a line of the index.

static bool write_f32(ng_context *ctx, const char *folder, uint64_t number, const char *name, const ng_tensor *t) {
  char path[4096];
  ng_tensor_info info = {.name = name, .type = NG_F32, .rank = t->rank};
  ng_tensor wide;
  memcpy(info.extent, t->extent, sizeof info.extent);
  if (ng_tensor_new(ctx, &info, &wide) != NG_OK) return false;
  const int64_t nelems = ng_tensor_nelems(t);
  for (int64_t i = 0; i < nelems; i++) type_store(TYPE_F32, wide.data, (size_t)i, ng_tensor_get(t, i));
  snprintf(path, sizeof path, "%s/%llu.%s.npy", folder, (unsigned long long)number, name);
  const bool ok = ng_tensor_write_npy(ctx, path, &wide) == NG_OK;
  ng_tensor_free(ctx, &wide);
  return ok;
}

static bool write_text(const char *folder, uint64_t number, const char *text) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%llu.yaml", folder, (unsigned long long)number);
  FILE *out = fopen(path, "w");
  if (!out) return false;
  bool ok = fputs(text, out) >= 0;
  ok &= fclose(out) == 0;
  return ok;
}

static bool export_case(const Drawn *d, uint64_t number, const Options *o, FILE *index) {
  Computation c;
  char *text = drawn_graph(d, NULL);
  bool ok = text && computation_open(&c, text, o->seed) && computation_compile_and_run(&c) &&
            write_text(o->folder, number, text) && write_f32(c.ctx, o->folder, number, "y", &c.output);
  for (size_t i = 0; ok && i < c.ninputs; i++)
    ok = write_f32(c.ctx, o->folder, number, ng_graph_input(c.graph, i).name, &c.inputs[i]);
  if (ok) {
    const char *type = ng_type_name(c.output.type);
    fprintf(index, "%llu\t%s\t%s\t%s\t%lld\n", (unsigned long long)number, d->op, d->type, type, (long long)d->nterms);
  }
  if (text) computation_close(&c);
  free(text);
  return ok;
}

static int export_all(const Options *o) {
  char path[4096];
  snprintf(path, sizeof path, "%s/index.tsv", o->folder);
  FILE *index = fopen(path, "w");
  bool ok = index;
  if (!ok) fprintf(stderr, "ngrad_check_peers: %s: %s\n", path, strerror(errno));
  for (uint64_t i = 0; ok && i < o->count; i++) {
    const Drawn d = drawn_operator(o->seed, i);
    ok = export_case(&d, i, o, index);
  }
  if (index && fclose(index) != 0) ok = false;
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// All

static int print_rows(void) {
  size_t nwrong = 0, ncases = 0;
  printf("%-28s %-5s %6s %8s %10s %12s %9s %9s %8s %6s\n", "operator", "type", "cases", "lacking", "elements",
         "longest sum", "error", "of bound", "in case", "wrong");
  for (size_t i = 0; i < nrows; i++) {
    const Row *row = &rows[i];
    printf("%-28s %-5s %6zu %8zu %10zu %12lld %9.2g %9.3f %8llu %6zu\n", row->op, row->type, row->ncases, row->nlacking,
           row->nelems, (long long)row->most_terms, row->error, row->of_bound, (unsigned long long)row->worst,
           row->nwrong);
    nwrong += row->nwrong;
    ncases += row->ncases;
  }
  printf("\n%zu operators of random shape, %zu wrong\n", ncases, nwrong);
  return nwrong || !ncases ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int compare_all(const Options *o) {
  enum { SKIPPED = 77 };
  const char *name = onednn_name();
  if (!name) {
    puts("skipped: built without oneDNN 2 or 3 (Debian: libdnnl-dev)");
    return SKIPPED;
  }
  setvbuf(stdout, NULL, _IOLBF, 0); // what was found stays, even if a library ends the program
  printf("ngrad beside %s; error: |ours - theirs| / sum(|term|), beyond the rounding to the result's type\n\n", name);
  for (uint64_t i = 0; i < o->count; i++) {
    if (o->has_only && i != o->only) continue;
    const Drawn d = drawn_operator(o->seed, i);
    if (o->has_only) print_graph(&d);
    run_case(&d, i, o->seed);
  }
  return print_rows();
}

static bool read_number(const char *text, uint64_t *out) {
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  return end != text && !*end && *text != '-' && errno == 0;
}

int main(int argc, char **argv) {
  static const struct option options[] = {
      {"count", required_argument, NULL, 'n'}, {"seed", required_argument, NULL, 's'},
      {"only", required_argument, NULL, 'o'},  {"export", required_argument, NULL, 'e'},
      {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0}};
  Options o = {.count = 560, .seed = 1};
  for (int letter; (letter = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    bool ok = true;
    switch (letter) {
    case 'n': ok = read_number(optarg, &o.count); break;
    case 's': ok = read_number(optarg, &o.seed); break;
    case 'o': ok = o.has_only = read_number(optarg, &o.only); break;
    case 'e': o.folder = optarg; break;
    case 'h': fputs(usage, stdout); return EXIT_SUCCESS;
    default: ok = false;
    }
    if (ok) continue;
    fputs(usage, stderr);
    return 2;
  }
  if (o.has_only) o.count = o.only + 1;
  return o.folder ? export_all(&o) : compare_all(&o);
}
