// Whether cost is linear: time per element of one gradient over three decades of rows.
#include "frontend/api/available_memory.h"
#include "frontend/cli/session.h"
#include "frontend/cli/table.h"
#include "tests/bench/case.h"
#include "tests/bench/modes.h"

#include <math.h>
#include <unistd.h>

enum { COLUMNS = 768 };

static const char graph_text[] = "format: ngrad/1\n"
                                 "name: layer_norm_sweep\n"
                                 "dims: {N: 1000}\n"
                                 "inputs:\n"
                                 "  - {name: x, type: f32, shape: [N, 768]}\n"
                                 "  - {name: dy, type: f32, shape: [N, 768]}\n"
                                 "  - {name: mean, type: f32, shape: [N]}\n"
                                 "  - {name: var, type: f32, shape: [N]}\n"
                                 "  - {name: gamma, type: f32, shape: [768]}\n"
                                 "nodes:\n"
                                 "  - op: LayerNormBackward\n"
                                 "    inputs: {src: x, diff_dst: dy, mean: mean, variance: var, gamma: gamma}\n"
                                 "    outputs: {diff_src: dx, diff_gamma: dgamma, diff_beta: dbeta}\n"
                                 "outputs: [dx, dgamma, dbeta]\n";

// Smallest and largest time per element; beyond the last-level cache only.
typedef struct Spread {
  double least, most;
} Spread;

typedef struct Sweep {
  Table table;
  json_t *results;
  Spread ngrad, peer;
  size_t nbeyond; // cases larger than the last-level cache
} Sweep;

static void spread_add(Spread *s, double value) {
  if (s->least == 0 || value < s->least) s->least = value;
  if (value > s->most) s->most = value;
}

static double flatness(const Spread *s) { // in percent; NAN: nothing was measured
  return s->least > 0 ? (s->most / s->least - 1) * 100 : NAN;
}

static void add_row(Sweep *sweep, int64_t rows, const Medians *m, bool is_beyond) {
  const double nelems = (double)rows * COLUMNS;
  double ngrad = m->ngrad_ms * 1e6 / nelems, peer = m->peer_ms * 1e6 / nelems;
  if (is_beyond) {
    sweep->nbeyond++;
    spread_add(&sweep->ngrad, ngrad);
    if (!isnan(peer)) spread_add(&sweep->peer, peer);
  }
  table_add(&sweep->table, "%lld", (long long)rows);
  table_add(&sweep->table, "%.4g", m->ngrad_ms);
  table_add(&sweep->table, "%.4f", ngrad);
  table_add(&sweep->table, "%s", cell("%.4g", m->peer_ms));
  table_add(&sweep->table, "%s", cell("%.4f", peer));
  table_add(&sweep->table, "%s", is_beyond ? "beyond the cache" : "");
  json_t *object = memory_or_exit(json_object());
  json_set(object, "rows", json_integer(rows));
  json_set(object, "ngrad_ns_per_element", json_number(ngrad));
  json_set(object, "peer_ns_per_element", json_number(peer));
  json_set(object, "is_beyond_cache", memory_or_exit(json_boolean(is_beyond)));
  json_add(sweep->results, object);
}

static bool run_rows(Sweep *sweep, const Settings *s, int64_t rows) {
  Medians m;
  Case c = {.ctx = session_open(0, 0)};
  c.graph = ng_graph_read(c.ctx, "layer_norm_sweep", graph_text, sizeof graph_text - 1, NULL);
  bool ok =
      c.graph && ng_graph_set_dim(c.graph, "N", rows) == NG_OK && case_prepare(&c, s, 0) && case_measure(&c, false, &m);
  double cache = (double)sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (ok) add_row(sweep, rows, &m, (double)(case_bytes_read(&c) + case_bytes_written(&c)) > cache);
  case_close(&c);
  return ok;
}

static void print_flatness(Sweep *sweep, json_t *document) {
  table_print(&sweep->table);
  if (sweep->nbeyond < 2) puts("too few cases beyond the last-level cache to say how flat they are");
  else
    printf("beyond the last-level cache ngrad is flat within %.1f %%, the peer within %s %%\n", flatness(&sweep->ngrad),
           cell("%.1f", flatness(&sweep->peer)));
  json_t *object = memory_or_exit(json_object());
  json_set(object, "rows", sweep->results);
  json_set(object, "ngrad_flat_within_percent", json_number(flatness(&sweep->ngrad)));
  json_set(object, "peer_flat_within_percent", json_number(flatness(&sweep->peer)));
  json_set(document, "sweep", object);
}

int mode_sweep(const Settings *s, json_t *document) {
  static const int64_t rows[] = {1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000};
  const double tensors = 4.2; // src, diff_dst, diff_src twice, and small tensors
  Sweep sweep = {.table = table_new("rrrrrl"), .results = memory_or_exit(json_array())};
  static const char *const header[] = {"rows", "ngrad", "ns an element", "peer", "ns an element", ""};
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(&sweep.table, "%s", header[i]);
  int status = NG_OK;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char what[64];
    snprintf(what, sizeof what, "%lld rows", (long long)rows[i]);
    progress_show(what);
    double wanted = tensors * (double)rows[i] * COLUMNS * sizeof(float), available = (double)available_memory("");
    if (wanted > available) printf("%s: left out, they need %.1f GB of memory\n", what, wanted * 1e-9);
    else if (!run_rows(&sweep, s, rows[i])) status = NG_WRONG;
    rows_show(&sweep.table);
  }
  progress_show(NULL);
  print_flatness(&sweep, document);
  return status;
}
