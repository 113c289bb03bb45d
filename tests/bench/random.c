// Gradients of norms of random shapes: their speed relative to the peer's and to the ceiling.
#include "frontend/api/available_memory.h"
#include "frontend/cli/session.h"
#include "frontend/cli/table.h"
#include "tests/bench/interrupt.h"
#include "tests/bench/modes.h"
#include "tests/bench/random_norm.h"
#include "tests/bench/states.h"
#include "tests/bench/verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A peer that is faster by less than this counts as equally fast.
static const double behind = 0.95;

typedef struct Result {
  RandomNorm norm;
  States states;
} Result;

typedef struct Random {
  const Settings *settings;
  uint64_t cache_nbytes, most_nbytes; // of the last-level cache; of memory that a case may take
  Table table, left_out;
  json_t *cases;
  Result *results;
  size_t nresults;
  int status;
} Random;

// Cases

static void add_header(Table *t) {
  static const char *const header[] = {"gradient", "MB",         "tensors", "cold: ngrad", "peer",    "speed-up",
                                       "ceiling",  "hot: ngrad", "peer",    "speed-up",    "ceiling", "verdict"};
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(t, "%s", header[i]);
}

static void add_state(Table *t, const CacheState *s) {
  table_add(t, "%.4g", s->ngrad_ms);
  table_add(t, "%s", cell("%.4g", s->peer_ms));
  table_add(t, "%s", cell("%.2f", s->speed_up));
  table_add(t, "%.2f", s->ceiling_ratio);
}

static void set_state(json_t *object, const char *name, const CacheState *s) {
  json_t *numbers = memory_or_exit(json_object());
  json_set(numbers, "ngrad_ms", json_number(s->ngrad_ms));
  json_set(numbers, "peer_ms", json_number(s->peer_ms));
  json_set(numbers, "ceiling_ms", json_number(s->ceiling_ms));
  json_set(numbers, "speed_up", json_number(s->speed_up));
  json_set(numbers, "ceiling_ratio", json_number(s->ceiling_ratio));
  json_set(object, name, numbers);
}

static json_t *result_json(const Case *c, const Result *result, uint64_t nread_twice) {
  json_t *object = memory_or_exit(json_object());
  json_set(object, "graph", json_text(result->norm.name));
  json_set(object, "bytes_read", json_integer((json_int_t)case_bytes_read(c)));
  json_set(object, "bytes_read_twice", json_integer((json_int_t)nread_twice));
  json_set(object, "bytes_written", json_integer((json_int_t)case_bytes_written(c)));
  json_set(object, "peer_form", json_text(c->peer ? peer_form(c->peer) : NULL));
  set_state(object, "cold", &result->states.cold);
  set_state(object, "hot", &result->states.hot);
  return object;
}

static void add_result(Random *r, Case *c, const Result *result, uint64_t nread_twice) {
  const uint64_t nbytes = random_norm_nbytes(&result->norm);
  bool agrees;
  json_t *object = result_json(c, result, nread_twice), *differences = memory_or_exit(json_object());
  verdict_compare(c, differences, &agrees);
  json_set(object, "relative_l2_between", differences);
  const char *verdict = !c->peer ? "" : agrees ? "same" : verdict_judge(c, &r->status);
  json_set(object, "verdict", json_text(verdict));
  json_add(r->cases, object);
  const double moved = (double)(case_bytes_read(c) + nread_twice + case_bytes_written(c));
  table_add(&r->table, "%s", result->norm.name);
  table_add(&r->table, "%.3g", (double)nbytes * 1e-6);
  table_add(&r->table, "%.1f", moved / (double)nbytes);
  add_state(&r->table, &result->states.cold);
  add_state(&r->table, &result->states.hot);
  table_add(&r->table, "%s", verdict);
  r->results[r->nresults++] = *result;
}

// Inputs, outputs of ngrad and the peer, the ceiling's arrays, and memory of two more outputs for the peer's own use.
static bool fits(Random *r, Case *c, const RandomNorm *n, uint64_t nread_twice) {
  ng_memory memory;
  if (ng_graph_memory(c->graph, &memory) != NG_OK) return false;
  const uint64_t nbytes = 2 * memory.inputs_nbytes + 5 * memory.outputs_nbytes + nread_twice;
  if (nbytes > r->most_nbytes) table_add(&r->left_out, "%s needs %.2g GB", n->name, (double)nbytes * 1e-9);
  return nbytes <= r->most_nbytes;
}

static void run_case(Random *r, const RandomNorm *n) {
  const uint64_t nread_twice = random_norm_nread_twice(n, r->cache_nbytes);
  Result result = {.norm = *n};
  Case c = {.ctx = session_open(0, 0)};
  char *text = memory_or_exit(random_norm_graph(n));
  c.graph = ng_graph_read(c.ctx, n->name, text, strlen(text), NULL);
  if (!c.graph) r->status = NG_WRONG;
  else if (!fits(r, &c, n, nread_twice)) {
  } else if (!case_prepare(&c, r->settings, 0) || !states_measure(&c, nread_twice, &result.states))
    r->status = is_interrupted() ? r->status : NG_WRONG;
  else add_result(r, &c, &result, nread_twice);
  case_close(&c);
  free(text);
}

// Means

typedef struct Group {
  const char *name;
  bool (*has)(const RandomNorm *n);
} Group;

static bool is_any(const RandomNorm *n) {
  return n->rank > 0;
}

static bool is_layer_norm(const RandomNorm *n) {
  return n->form->layout == LAYOUT_ROWS;
}

static bool is_channels_first(const RandomNorm *n) {
  return n->form->layout == LAYOUT_NCX;
}

static bool is_channels_last(const RandomNorm *n) {
  return n->form->layout == LAYOUT_NXC;
}

static bool is_fused(const RandomNorm *n) {
  return n->form->has_relu || n->form->has_add;
}

static bool is_f32(const RandomNorm *n) {
  return !n->is_bf16;
}

static bool is_bf16(const RandomNorm *n) {
  return n->is_bf16;
}

static bool is_small(const RandomNorm *n) {
  return random_norm_nbytes(n) < 100000;
}

static bool is_large(const RandomNorm *n) {
  return random_norm_nbytes(n) > 10000000;
}

static bool is_middling(const RandomNorm *n) {
  return !is_small(n) && !is_large(n);
}

static const Group groups[] = {
    {"layer norm", is_layer_norm},
    {"batch norm NCX", is_channels_first},
    {"batch norm NXC", is_channels_last},
    {"fused neighbours", is_fused},
    {"f32", is_f32},
    {"bf16", is_bf16},
    {"tensors below 0.1 MB", is_small},
    {"0.1 to 10 MB", is_middling},
    {"above 10 MB", is_large},
    {"all", is_any},
};

typedef enum Ratio { COLD_SPEED_UP, COLD_CEILING, HOT_SPEED_UP, HOT_CEILING, RATIO_COUNT } Ratio;

static double ratio_of(const Result *result, Ratio ratio) {
  const States *s = &result->states;
  const double ratios[RATIO_COUNT] = {[COLD_SPEED_UP] = s->cold.speed_up,
                                      [COLD_CEILING] = s->cold.ceiling_ratio,
                                      [HOT_SPEED_UP] = s->hot.speed_up,
                                      [HOT_CEILING] = s->hot.ceiling_ratio};
  return ratios[ratio];
}

typedef struct Mean {
  size_t count;
  double geometric;     // NAN: of nothing
  const Result *lowest; // NULL likewise
} Mean;

static Mean mean_of(const Random *r, const Group *group, Ratio ratio) {
  Mean mean = {0};
  double logarithms = 0;
  for (size_t i = 0; i < r->nresults; i++) {
    const Result *result = &r->results[i];
    const double value = ratio_of(result, ratio);
    if (!group->has(&result->norm) || isnan(value)) continue;
    if (!mean.lowest || value < ratio_of(mean.lowest, ratio)) mean.lowest = result;
    logarithms += log(value);
    mean.count++;
  }
  mean.geometric = mean.count ? exp(logarithms / (double)mean.count) : NAN;
  return mean;
}

static json_t *add_group(Table *t, const Random *r, const Group *group) {
  static const char *const names[RATIO_COUNT] = {"cold_speed_up", "cold_ceiling_ratio", "hot_speed_up",
                                                 "hot_ceiling_ratio"};
  json_t *object = memory_or_exit(json_object());
  json_set(object, "group", json_text(group->name));
  table_add(t, "%s", group->name);
  table_add(t, "%zu", mean_of(r, group, HOT_CEILING).count);
  table_add(t, "%zu", mean_of(r, group, HOT_SPEED_UP).count);
  for (Ratio ratio = 0; ratio < RATIO_COUNT; ratio++) {
    const Mean mean = mean_of(r, group, ratio);
    const double lowest = mean.lowest ? ratio_of(mean.lowest, ratio) : NAN;
    table_add(t, "%s", cell("%.2f", mean.geometric));
    table_add(t, "%s", cell("%.2f", lowest));
    json_t *numbers = memory_or_exit(json_object());
    json_set(numbers, "cases", json_integer((json_int_t)mean.count));
    json_set(numbers, "geometric_mean", json_number(mean.geometric));
    json_set(numbers, "lowest", json_number(lowest));
    json_set(numbers, "lowest_graph", json_text(mean.lowest ? mean.lowest->norm.name : NULL));
    json_set(object, names[ratio], numbers);
  }
  return object;
}

static json_t *print_means(const Random *r) {
  static const char *const header[] = {"geometric means", "cases",   "with a peer", "cold: speed-up",
                                       "lowest",          "ceiling", "lowest",      "hot: speed-up",
                                       "lowest",          "ceiling", "lowest"};
  Table t = table_new("lrrrrrrrrrr");
  json_t *means = memory_or_exit(json_array());
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(&t, "%s", header[i]);
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    if (mean_of(r, &groups[i], HOT_CEILING).count) json_add(means, add_group(&t, r, &groups[i]));
  table_print(&t);
  return means;
}

// Cases that are slower than the peer or far from the ceiling

static Ratio sorted_by; // qsort takes no argument for its comparison

static int lower_first(const void *a, const void *b) {
  const double x = ratio_of(a, sorted_by), y = ratio_of(b, sorted_by);
  return (x > y) - (x < y);
}

static void print_lowest_ceilings(Random *r) {
  enum { SHOWN = 3 };
  sorted_by = HOT_CEILING;
  qsort(r->results, r->nresults, sizeof *r->results, lower_first);
  puts("\nfarthest from the ceiling, hot:");
  for (size_t i = 0; i < r->nresults && i < SHOWN; i++)
    printf("  %.2f  %s\n", r->results[i].states.hot.ceiling_ratio, r->results[i].norm.name);
}

static void print_behind(const Random *r) {
  size_t count = 0;
  puts("\nbehind the peer by more than 5 %, cold or hot:");
  for (size_t i = 0; i < r->nresults; i++) {
    const States *s = &r->results[i].states;
    if (!(s->cold.speed_up < behind || s->hot.speed_up < behind)) continue;
    printf("  %.2f cold, %.2f hot  %s\n", s->cold.speed_up, s->hot.speed_up, r->results[i].norm.name);
    count++;
  }
  if (!count) puts("  none");
}

static void print_left_out(Random *r) {
  if (!r->left_out.count) return;
  printf("\nleft out, for they do not fit in a third of the memory that is free, %.2g GB:\n",
         (double)r->most_nbytes * 1e-9);
  table_print(&r->left_out);
}

static void print_results(Random *r, json_t *document) {
  json_t *object = memory_or_exit(json_object());
  if (is_interrupted()) printf("interrupted: %zu measured\n\n", r->nresults);
  table_print(&r->table);
  putchar('\n');
  json_set(object, "seed", json_integer((json_int_t)r->settings->seed));
  json_set(object, "cases", r->cases);
  json_set(object, "means", print_means(r));
  json_set(document, "random", object);
  if (r->nresults) {
    print_lowest_ceilings(r);
    print_behind(r);
  }
  print_left_out(r);
}

// 0: the system does not say the size of its caches.
static uint64_t last_level_nbytes(void) {
  const long nbytes[2] = {sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE)};
  const long last = nbytes[0] > 0 ? nbytes[0] : nbytes[1];
  return last > 0 ? (uint64_t)last : 0;
}

int mode_random(const Settings *s, json_t *document) {
  Random r = {.settings = s,
              .cache_nbytes = last_level_nbytes(),
              .most_nbytes = available_memory("") / 3,
              .table = table_new("lrrrrrrrrrrl"),
              .left_out = table_new("l"),
              .cases = memory_or_exit(json_array()),
              .results = memory_or_exit(calloc(s->nrandom, sizeof *r.results))};
  add_header(&r.table);
  interrupt_watch();
  for (unsigned long long i = 0; i < s->nrandom && !is_interrupted(); i++) {
    const RandomNorm n = random_norm_draw(s->seed, i);
    if (s->filter && !strstr(n.name, s->filter)) continue;
    char what[192];
    snprintf(what, sizeof what, "%llu of %llu: %s", i + 1, (unsigned long long)s->nrandom, n.name);
    progress_show(what);
    run_case(&r, &n);
    rows_show(&r.table);
  }
  progress_show(NULL);
  print_results(&r, document);
  free(r.results);
  return r.status;
}
