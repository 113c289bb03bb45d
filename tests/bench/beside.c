// Times a graph beside another graph that computes the same results, on the same tensors: a norm's gradient in
// elementary operators beside the norm operator, or one kernel beside two.
#include "frontend/cli/session.h"
#include "frontend/cli/table.h"
#include "tests/bench/case.h"
#include "tests/bench/modes.h"

#include <math.h>
#include <string.h>

typedef struct Other { // the graph that a case stands beside
  const Case *tensors;
  ng_graph *graph;
  ng_kernel *kernel;
  bool has_failed;
} Other;

static bool is_alike(ng_tensor_info a, ng_tensor_info b) {
  return strcmp(a.name, b.name) == 0 && a.type == b.type && a.rank == b.rank &&
         memcmp(a.extent, b.extent, (size_t)a.rank * sizeof *a.extent) == 0;
}

// Whether the two graphs have the same inputs and outputs, in the same order.
static bool has_same_tensors(const Case *c, const ng_graph *other) {
  bool is_same = ng_graph_input_count(other) == c->ninputs && ng_graph_output_count(other) == c->noutputs;
  for (size_t i = 0; is_same && i < c->ninputs; i++)
    is_same = is_alike(ng_graph_input(c->graph, i), ng_graph_input(other, i));
  for (size_t i = 0; is_same && i < c->noutputs; i++)
    is_same = is_alike(ng_graph_output(c->graph, i), ng_graph_output(other, i));
  return is_same;
}

// False after telling why; other_close is due in both cases.
static bool other_open(Other *o, const Case *c) {
  const ng_options options = {.isa = c->settings->isa};
  *o = (Other){.tensors = c, .graph = ng_graph_read_file(c->ctx, c->settings->beside)};
  if (!o->graph || ng_graph_bind(o->graph) != NG_OK) return false;
  if (!has_same_tensors(c, o->graph))
    return plain_error("%s: expected the inputs and outputs of %s", c->settings->beside, ng_graph_name(c->graph)),
           false;
  o->kernel = ng_compile(o->graph, &options);
  return o->kernel != NULL;
}

static void other_close(Other *o) {
  ng_kernel_free(o->kernel);
  ng_graph_free(o->graph);
}

static void run_other(void *self) {
  Other *o = self;
  const Case *c = o->tensors;
  if (ng_kernel_run(o->kernel, c->inputs, c->peer_outputs, c->settings->threads) != NG_OK) o->has_failed = true;
}

// The largest relative L2 difference between the two graphs' outputs.
static double compare(const Case *c, bool *agrees) {
  double worst = 0;
  *agrees = true;
  for (size_t i = 0; i < c->noutputs; i++) {
    ng_difference d = case_difference(c, i);
    if (!(d.relative_l2 <= worst)) worst = d.relative_l2;
    *agrees &= d.is_within != 0;
  }
  return worst;
}

static int measure(Case *c, Other *o, Table *t, json_t *results) {
  Contestant both[2] = {case_ngrad(c), {run_other, o}};
  if (!turns_take(both, 2, c->settings->threads, c->settings->seconds) || c->has_failed || o->has_failed) {
    plain_error("%s: it did not run", ng_graph_name(c->graph));
    return NG_WRONG;
  }
  bool agrees;
  double difference = compare(c, &agrees), ratio = both[0].median_ms / both[1].median_ms;
  table_add(t, "%s", ng_graph_name(c->graph));
  table_add(t, "%.4g", both[0].median_ms);
  table_add(t, "%.4g", both[1].median_ms);
  table_add(t, "%.3f", ratio);
  table_add(t, "%.1e", difference);
  table_add(t, "%s", agrees ? "same" : "OFF");
  json_t *object = memory_or_exit(json_object());
  json_set(object, "graph", json_text(ng_graph_name(c->graph)));
  json_set(object, "beside", json_text(ng_graph_name(o->graph)));
  json_set(object, "ms", json_number(both[0].median_ms));
  json_set(object, "beside_ms", json_number(both[1].median_ms));
  json_set(object, "relative_l2", json_number(difference));
  json_add(results, object);
  return agrees ? NG_OK : NG_DIFFERENT;
}

int mode_beside(const Settings *s, json_t *document) {
  static const char *const header[] = {"graph", "ms", "beside", "ratio", "relative L2", ""};
  Table table = table_new("lrrrrl");
  json_t *results = memory_or_exit(json_array());
  int status = NG_OK;
  Settings own_settings = *s;
  own_settings.has_no_peer = true;
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(&table, "%s", header[i]);
  for (size_t i = 0; i < s->npaths; i++) {
    Case c;
    Other other = {0};
    progress_show(s->paths[i]);
    int own = NG_WRONG;
    if (case_open(&c, s->paths[i], &own_settings, 0) && other_open(&other, &c))
      own = measure(&c, &other, &table, results);
    if (own != NG_OK) status = own;
    other_close(&other);
    case_close(&c);
  }
  progress_show(NULL);
  printf("beside %s\n", s->beside);
  table_print(&table);
  putchar('\n');
  json_set(document, "beside", results);
  return status;
}
