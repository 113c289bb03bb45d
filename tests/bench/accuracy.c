// The errors of ngrad and of the peer, relative to the f64 interpreter, on data with mean 0 and on data far from 0.
// Which of two nearly equal errors is smaller means nothing.
#include "frontend/cli/session.h"
#include "frontend/cli/table.h"
#include "tests/bench/case.h"
#include "tests/bench/modes.h"

#include <math.h>
#include <stdlib.h>

// Which of two nearly equal errors is smaller says nothing.
static const double no_worse = 1.1;

typedef struct Accuracy {
  Table table;
  json_t *results;
  int status;
} Accuracy;

// Whether the type has too few digits for data about this mean: all elements would round to the same number.
static bool data_can_be_about(const Case *c, double mean) {
  double least_digits = 0x1p-52; // the distance from 1 to the next number
  for (size_t i = 0; i < c->ninputs; i++) {
    double digits = c->inputs[i].type == NG_BF16  ? 0x1p-7
                    : c->inputs[i].type == NG_F16 ? 0x1p-10
                    : c->inputs[i].type == NG_F32 ? 0x1p-23
                                                  : 0x1p-52;
    if (digits > least_digits) least_digits = digits;
  }
  return mean * least_digits < 1;
}

static double distance(const Case *c, const ng_tensor *actual, const ng_tensor *expected) {
  ng_difference difference;
  ng_tensor_compare(c->ctx, actual, expected, -1, &difference);
  return difference.relative_l2;
}

static void add_output(Accuracy *a, const Case *c, size_t i, double mean, const ng_tensor *expected) {
  const char *output = ng_graph_output(c->graph, i).name;
  double ngrad = distance(c, &c->outputs[i], expected);
  double peer = c->peer ? distance(c, &c->peer_outputs[i], expected) : NAN;
  bool is_worse = ngrad > peer * no_worse;
  if (is_worse && a->status == NG_OK) a->status = NG_DIFFERENT;
  table_add(&a->table, "%s", ng_graph_name(c->graph));
  table_add(&a->table, "%.0f", mean);
  table_add(&a->table, "%s", output);
  table_add(&a->table, "%.2e", ngrad);
  table_add(&a->table, "%s", cell("%.2e", peer));
  table_add(&a->table, "%s", is_worse ? "WORSE" : "");
  json_t *object = memory_or_exit(json_object());
  json_set(object, "graph", json_text(ng_graph_name(c->graph)));
  json_set(object, "mean_over_deviation", json_number(mean));
  json_set(object, "output", json_text(output));
  json_set(object, "ngrad_relative_l2", json_number(ngrad));
  json_set(object, "peer_relative_l2", json_number(peer));
  json_add(a->results, object);
}

static bool run_case(Accuracy *a, Case *c, double mean) {
  bool ok = ng_kernel_run(c->kernel, c->inputs, c->outputs, c->settings->threads) == NG_OK;
  if (!ok || (c->peer && !peer_run(c->peer))) return false;
  ng_tensor *expected;
  ok = case_interpret(c, &expected);
  for (size_t i = 0; ok && i < c->noutputs; i++) add_output(a, c, i, mean, &expected[i]);
  outputs_free(c, expected);
  return ok;
}

int mode_accuracy(const Settings *s, json_t *document) {
  static const double means[] = {0, 100, 10000};
  Accuracy a = {.table = table_new("lrlrrl"), .results = memory_or_exit(json_array())};
  static const char *const header[] = {"case", "mean/deviation", "output", "ngrad", "peer", ""};
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(&a.table, "%s", header[i]);
  rows_fit_graphs(&a.table, s);
  printf("relative L2 against the f64 interpreter; worse: by more than %.0f %%\n", (no_worse - 1) * 100);
  for (size_t i = 0; i < s->npaths * 3; i++) {
    Case c;
    progress_show(s->paths[i / 3]);
    if (!case_open(&c, s->paths[i / 3], s, means[i % 3])) a.status = NG_WRONG;
    else if (data_can_be_about(&c, means[i % 3]) && !run_case(&a, &c, means[i % 3])) a.status = NG_WRONG;
    case_close(&c);
    rows_show(&a.table);
  }
  progress_show(NULL);
  table_print(&a.table);
  json_set(document, "accuracy", a.results);
  return a.status;
}
