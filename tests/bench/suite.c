// The suite: runs every graph once, and prints a row for each and a geometric mean for each family.
#include "frontend/api/kernel.h"
#include "frontend/cli/session.h"
#include "frontend/cli/table.h"
#include "tests/bench/case.h"
#include "tests/bench/modes.h"
#include "tests/bench/verdict.h"

#include <math.h>

typedef struct FamilyMeans { // sums of logarithms
  size_t ncases, npeer_cases;
  double ceiling_ratio, speed_up;
} FamilyMeans;

typedef struct Suite {
  const Settings *settings;
  Table table;
  json_t *cases;
  FamilyMeans families[FAMILY_COUNT];
  int status;
} Suite;

static void add_row(Suite *suite, const Case *c, const Medians *m, double difference, const char *verdict) {
  Table *t = &suite->table;
  table_add(t, "%s", ng_graph_name(c->graph));
  table_add(t, "%.4g", m->ngrad_ms);
  table_add(t, "%s", cell("%.4g", m->peer_ms));
  table_add(t, "%s", cell("%.2f", m->peer_ms / m->ngrad_ms));
  table_add(t, "%.2f", m->ceiling_ms / m->ngrad_ms);
  table_add(t, "%.1f", c->kernel->operations / m->ngrad_ms * 1e-6);
  table_add(t, "%s", cell("%.1e", difference));
  table_add(t, "%s", verdict);
  table_add(t, "%s", c->peer ? peer_form(c->peer) : "");
}

static json_t *case_json(const Case *c, const Medians *m) {
  json_t *object = memory_or_exit(json_object());
  json_set(object, "graph", json_text(ng_graph_name(c->graph)));
  json_set(object, "family", json_text(family_names[case_family(c)]));
  json_set(object, "isa", json_text(ng_kernel_get_info(c->kernel).isa));
  json_set(object, "rounds", json_integer((json_int_t)m->rounds));
  json_set(object, "bytes_read", json_integer((json_int_t)case_bytes_read(c)));
  json_set(object, "bytes_written", json_integer((json_int_t)case_bytes_written(c)));
  json_set(object, "operations", json_number(c->kernel->operations));
  json_set(object, "ngrad_ms", json_number(m->ngrad_ms));
  json_set(object, "peer_ms", json_number(m->peer_ms));
  json_set(object, "peer_form", json_text(c->peer ? peer_form(c->peer) : NULL));
  json_set(object, "speed_up", json_number(m->peer_ms / m->ngrad_ms));
  json_set(object, "ceiling_ms", json_number(m->ceiling_ms));
  json_set(object, "ceiling_ratio", json_number(m->ceiling_ms / m->ngrad_ms));
  return object;
}

static void add_to_family(FamilyMeans *f, const Medians *m) {
  f->ncases++;
  f->ceiling_ratio += log(m->ceiling_ms / m->ngrad_ms);
  if (isnan(m->peer_ms)) return;
  f->npeer_cases++;
  f->speed_up += log(m->peer_ms / m->ngrad_ms);
}

static bool run_case(Suite *suite, Case *c) {
  Medians m;
  bool agrees;
  if (!case_measure(c, true, &m)) return false;
  json_t *object = case_json(c, &m), *differences = memory_or_exit(json_object());
  double difference = verdict_compare(c, differences, &agrees);
  json_set(object, "relative_l2_between", differences);
  json_add(suite->cases, object);
  const char *verdict = !c->peer ? "" : agrees ? "same" : verdict_judge(c, &suite->status);
  json_set(object, "verdict", json_text(verdict));
  add_row(suite, c, &m, difference, verdict);
  add_to_family(&suite->families[case_family(c)], &m);
  return true;
}

static double geometric_mean(double logarithms, size_t count) {
  return count ? exp(logarithms / (double)count) : NAN;
}

static json_t *print_families(const Suite *suite) {
  json_t *families = memory_or_exit(json_array());
  Table table = table_new("lrrrr");
  static const char *const header[] = {"geometric means", "cases", "with a peer", "speed-up", "ceiling ratio"};
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(&table, "%s", header[i]);
  for (size_t i = 0; i < FAMILY_COUNT; i++) {
    const FamilyMeans *f = &suite->families[i];
    if (!f->ncases) continue;
    double speed_up = geometric_mean(f->speed_up, f->npeer_cases);
    double ceiling_ratio = geometric_mean(f->ceiling_ratio, f->ncases);
    table_add(&table, "%s", family_names[i]);
    table_add(&table, "%zu", f->ncases);
    table_add(&table, "%zu", f->npeer_cases);
    table_add(&table, "%s", cell("%.2f", speed_up));
    table_add(&table, "%.2f", ceiling_ratio);
    json_t *object = memory_or_exit(json_object());
    json_set(object, "family", json_text(family_names[i]));
    json_set(object, "cases", json_integer((json_int_t)f->ncases));
    json_set(object, "peer_cases", json_integer((json_int_t)f->npeer_cases));
    json_set(object, "speed_up", json_number(speed_up));
    json_set(object, "ceiling_ratio", json_number(ceiling_ratio));
    json_add(families, object);
  }
  table_print(&table);
  return families;
}

int mode_suite(const Settings *s, json_t *document) {
  Suite suite = {.settings = s, .table = table_new("lrrrrrrll"), .cases = memory_or_exit(json_array())};
  static const char *const header[] = {"case", "ngrad",       "peer", "speed-up", "ceiling ratio",
                                       "GF/s", "relative L2", "",     "form"};
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(&suite.table, "%s", header[i]);
  rows_fit_graphs(&suite.table, s);
  for (size_t i = 0; i < s->npaths; i++) {
    Case c;
    progress_show(s->paths[i]);
    if (!case_open(&c, s->paths[i], s, 0) || !run_case(&suite, &c)) suite.status = NG_WRONG;
    case_close(&c);
    rows_show(&suite.table);
  }
  progress_show(NULL);
  table_print(&suite.table);
  putchar('\n');
  json_set(document, "cases", suite.cases);
  json_set(document, "families", print_families(&suite));
  return suite.status;
}
