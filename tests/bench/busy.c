// A busy machine: the largest graphs, first on an idle machine and then beside a process that spins on one processor.
#include "frontend/cli/session.h"
#include "frontend/cli/table.h"
#include "tests/bench/case.h"
#include "tests/bench/modes.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGEST = 3 };

typedef struct Busy {
  Table table;
  json_t *results;
  int status;
} Busy;

// Onto the last of the processors that this process may use; ends with its parent.
static void spin_on_last_processor(void) {
  cpu_set_t allowed, one;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (size_t cpu = CPU_SETSIZE; cpu-- > 0 && !CPU_COUNT(&one);)
      if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
  for (volatile unsigned n = 0;; n = n + 1) {
  }
}

static bool measure_beside_spinner(Case *c, Medians *out) {
  pid_t spinner = fork();
  if (spinner == 0) spin_on_last_processor();
  if (spinner < 0) {
    plain_error("cannot make a process that spins");
    return false;
  }
  bool ok = case_measure(c, true, out);
  kill(spinner, SIGKILL);
  waitpid(spinner, NULL, 0);
  return ok;
}

static void add_contestant(Busy *b, json_t *object, const char *name, double idle_ms, double busy_ms) {
  table_add(&b->table, "%s", cell("%.4g", idle_ms));
  table_add(&b->table, "%s", cell("%.4g", busy_ms));
  table_add(&b->table, "%s", cell("%.2f", busy_ms / idle_ms));
  json_t *numbers = memory_or_exit(json_object());
  json_set(numbers, "idle_ms", json_number(idle_ms));
  json_set(numbers, "busy_ms", json_number(busy_ms));
  json_set(numbers, "ratio", json_number(busy_ms / idle_ms));
  json_set(object, name, numbers);
}

static bool run_case(Busy *b, Case *c) {
  Medians idle, busy;
  if (!case_measure(c, true, &idle) || !measure_beside_spinner(c, &busy)) return false;
  json_t *object = memory_or_exit(json_object());
  json_set(object, "graph", json_text(ng_graph_name(c->graph)));
  table_add(&b->table, "%s", ng_graph_name(c->graph));
  add_contestant(b, object, "ngrad", idle.ngrad_ms, busy.ngrad_ms);
  add_contestant(b, object, "peer", idle.peer_ms, busy.peer_ms);
  add_contestant(b, object, "ceiling", idle.ceiling_ms, busy.ceiling_ms);
  json_add(b->results, object);
  return true;
}

// The largest graphs

typedef struct Sized {
  char *path;
  int64_t nbytes; // of inputs and outputs; 0: it cannot be read
} Sized;

static int64_t info_nbytes(const ng_tensor_info *info) {
  int64_t nbytes = (int64_t)ng_type_nbytes(info->type);
  for (int i = 0; i < info->rank; i++) nbytes *= info->extent[i];
  return nbytes;
}

static Sized sized(char *path) {
  Sized s = {.path = path};
  ng_context *ctx = session_open(0, 0);
  ng_graph *g = ng_graph_read_file(ctx, path);
  bool ok = g && ng_graph_bind(g) == NG_OK;
  for (size_t i = 0; ok && i < ng_graph_input_count(g); i++) {
    ng_tensor_info info = ng_graph_input(g, i);
    s.nbytes += info_nbytes(&info);
  }
  for (size_t i = 0; ok && i < ng_graph_output_count(g); i++) {
    ng_tensor_info info = ng_graph_output(g, i);
    s.nbytes += info_nbytes(&info);
  }
  ng_graph_free(g);
  session_close(ctx);
  return s;
}

static int larger_first(const void *a, const void *b) {
  int64_t x = ((const Sized *)a)->nbytes, y = ((const Sized *)b)->nbytes;
  return (x < y) - (x > y);
}

int mode_busy(const Settings *s, json_t *document) {
  Busy b = {.table = table_new("lrrrrrrrrr"), .results = memory_or_exit(json_array())};
  static const char *const header[] = {"case", "ngrad idle", "busy",         "ratio", "peer idle",
                                       "busy", "ratio",      "ceiling idle", "busy",  "ratio"};
  for (size_t i = 0; i < sizeof header / sizeof *header; i++) table_add(&b.table, "%s", header[i]);
  rows_fit_graphs(&b.table, s);
  Sized *graphs = memory_or_exit(malloc((s->npaths + 1) * sizeof *graphs));
  for (size_t i = 0; i < s->npaths; i++) graphs[i] = sized(s->paths[i]);
  qsort(graphs, s->npaths, sizeof *graphs, larger_first);
  for (size_t i = 0; i < s->npaths && i < LARGEST; i++) {
    Case c;
    progress_show(graphs[i].path);
    if (!case_open(&c, graphs[i].path, s, 0) || !run_case(&b, &c)) b.status = NG_WRONG;
    case_close(&c);
    rows_show(&b.table);
  }
  free(graphs);
  progress_show(NULL);
  table_print(&b.table);
  json_set(document, "busy", b.results);
  return b.status;
}
