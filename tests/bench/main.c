// ngrad_bench_peers: times ngrad's kernels beside a plain loop and, if installed, oneDNN and OpenBLAS.
#include "frontend/cli/session.h"
#include "tests/bench/interrupt.h"
#include "tests/bench/modes.h"
#include "tests/bench/peer.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void progress_show(const char *what) {
  if (!isatty(STDERR_FILENO)) return;
  fprintf(stderr, "\r\033[K%s", what ? what : "");
  fflush(stderr);
}

void rows_show(Table *t) {
  progress_show(NULL);
  table_print_rows(t);
}

void rows_fit_graphs(Table *t, const Settings *s) {
  static const char ending[] = ".yaml";
  for (size_t i = 0; i < s->npaths; i++) {
    const char *slash = strrchr(s->paths[i], '/');
    const size_t length = strlen(slash ? slash + 1 : s->paths[i]), most = sizeof ending - 1;
    if (length > most && length - most > t->widths[0]) t->widths[0] = length - most;
  }
}

const char *cell(const char *format, double value) {
  enum { NBYTES = 64 };
  static char texts[3][NBYTES];
  static size_t next;
  char *text = texts[next++ % 3];
  if (isnan(value)) return "-";
  snprintf(text, NBYTES, format, value);
  return text;
}

static int worse(int a, int b) {
  if (a == NG_OK || (a == NG_DIFFERENT && b != NG_OK)) return b;
  return a;
}

static int run_modes(const Settings *s, json_t *document) {
  int status = NG_OK;
  if (s->beside) return mode_beside(s, document);
  const bool is_suite = !s->is_accuracy && !s->is_busy && !s->is_sweep && !s->is_emitted && !s->nrandom;
  if (is_suite) status = mode_suite(s, document);
  if (s->is_accuracy) status = worse(status, mode_accuracy(s, document));
  if (s->is_busy) status = worse(status, mode_busy(s, document));
  if (s->is_sweep) status = worse(status, mode_sweep(s, document));
  if (s->is_emitted) status = worse(status, mode_emitted(s, document));
  if (s->nrandom) status = worse(status, mode_random(s, document));
  return status;
}

static json_t *document_new(const Settings *s, const char *peer) {
  json_t *document = memory_or_exit(json_object());
  json_set(document, "ngrad", json_text(NG_VERSION));
  json_set(document, "peer", json_text(peer));
  json_set(document, "isa", json_text(s->isa));
  json_set(document, "threads", json_integer(s->threads));
  json_set(document, "seconds", json_number(s->seconds));
  return document;
}

static bool write_document(const char *path, const json_t *document) {
  char *text = memory_or_exit(json_dumps(document, JSON_INDENT(2)));
  bool ok = file_write(path, text);
  free(text);
  return ok;
}

int main(int argc, char **argv) {
  Settings s;
  int status = settings_read(&s, argc, argv);
  if (status >= 0) return status;
  omp_set_num_threads(s.threads);
  setvbuf(stdout, NULL, _IOLBF, 0); // also in a file, each line appears when it is printed
  const char *peer = peer_start(s.isa, s.peer);
  printf("ngrad %s, %s; %d thread%s, %s; medians in ms\n\n", NG_VERSION, s.isa ? s.isa : "the best instruction set",
         s.threads, s.threads == 1 ? "" : "s", peer ? peer : "no peer");
  json_t *document = document_new(&s, peer);
  status = run_modes(&s, document);
  if (s.json_path && !write_document(s.json_path, document)) status = NG_WRONG;
  json_decref(document);
  interrupt_finish();
  return status;
}
