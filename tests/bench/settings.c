// Options, by getopt.
#include "tests/bench/settings.h"

#include "frontend/cli/session.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: ngrad_bench_peers [OPTION...] GRAPH...\n"
    "\n"
    "Times each graph as ngrad compiles it, in turns with the faster of oneDNN's primitives and OpenBLAS for the same\n"
    "graph (of those that were there to build with) and with a plain streaming loop of the same traffic, and checks "
    "that\n"
    "both computed the same.\n"
    "\n"
    "  --isa NAME      the instruction set; limits oneDNN too where it has such a limit\n"
    "  --peer NAME     the one library to compare with: onednn or openblas\n"
    "  --threads N     how many; default: one a processor\n"
    "  --seconds X     how long a case is timed; default: 1\n"
    "  --filter TEXT   only graphs whose path, or whose name if they are random, has TEXT in it\n"
    "  --reorders      let oneDNN try batch norms in its blocked layout, with the reorders that takes\n"
    "  --json FILE     write the results to FILE, NAME.json, too\n"
    "  --help          print this\n"
    "\n"
    "instead of the suite:\n"
    "  --accuracy      relative L2 of both against the f64 interpreter, also for data far from 0 (slow)\n"
    "  --busy          the three largest graphs, idle and with another process on one of the processors\n"
    "  --random N      gradients of N random shapes with cold and hot caches, and what falls short\n"
    "  --seed S        of these, 1 unless said; the same shapes on every machine\n"
    "  --sweep         the gradient of a layer norm of 768 columns, from 1,000 to 1,000,000 rows\n"
    "  --beside GRAPH  each graph in turns with this one, which has the same inputs and outputs\n"
    "  --emitted       the files of `ngrad emit`, compiled with $CC -O2, in turns with what ngrad runs\n";

static bool read_seconds(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && !*end && isfinite(*out) && *out > 0;
}

static bool read_threads(const char *text, int *out) {
  enum { MOST = 1024 };
  char *end;
  long number = strtol(text, &end, 10);
  *out = (int)number;
  return end != text && !*end && number >= 1 && number <= MOST;
}

static bool read_number(const char *text, uint64_t most, uint64_t *out) {
  char *end;
  errno = 0;
  *out = strtoull(text, &end, 10);
  return end != text && !*end && *text != '-' && errno == 0 && *out <= most;
}

static void filter_paths(Settings *s, char **operands, size_t count) {
  s->paths = operands;
  for (size_t i = 0; i < count; i++)
    if (!s->filter || strstr(operands[i], s->filter)) s->paths[s->npaths++] = operands[i];
}

// Returns as settings_read.
static int read_peer(const char *name) {
  if (strcmp(name, "onednn") == 0 || strcmp(name, "openblas") == 0) return -1;
  return usage_error("--peer: expected onednn or openblas, found %s", name);
}

static bool ends_in_json(const char *path) {
  const char *suffix = strrchr(path, '.');
  return suffix && strcmp(suffix, ".json") == 0;
}

// Returns as settings_read.
static int read_option(Settings *s, int letter) {
  enum { MOST_RANDOM = 100000 };
  switch (letter) {
  case 'i': s->isa = optarg; return -1;
  case 'f': s->filter = optarg; return -1;
  case 'p': s->peer = optarg; return read_peer(optarg);
  case 'j':
    s->json_path = optarg;
    if (ends_in_json(optarg)) return -1; // not a graph: FILE was left out
    return usage_error("--json: expected a file whose name ends in .json, found %s", optarg);
  case 'a': s->is_accuracy = true; return -1;
  case 'b': s->is_busy = true; return -1;
  case 'w': s->is_sweep = true; return -1;
  case 'g': s->beside = optarg; return -1;
  case 'e': s->is_emitted = true; return -1;
  case 'r': s->may_reorder = true; return -1;
  case 't':
    if (read_threads(optarg, &s->threads)) return -1;
    return usage_error("--threads: expected a number from 1 to 1024, found %s", optarg);
  case 's':
    if (read_seconds(optarg, &s->seconds)) return -1;
    return usage_error("--seconds: expected a number above 0, found %s", optarg);
  case 'n':
    if (read_number(optarg, MOST_RANDOM, &s->nrandom) && s->nrandom) return -1;
    return usage_error("--random: expected a number from 1 to %d, found %s", MOST_RANDOM, optarg);
  case 'd':
    if (read_number(optarg, INT64_MAX, &s->seed)) return -1;
    return usage_error("--seed: expected a number from 0 to 2^63 - 1, found %s", optarg);
  case 'h': fputs(help, stdout); return 0;
  default: return NG_USAGE; // getopt has said what is wrong
  }
}

int settings_read(Settings *s, int argc, char **argv) {
  // clang-format off
  static const struct option options[] = {
      {"isa", required_argument, NULL, 'i'},
      {"filter", required_argument, NULL, 'f'},
      {"peer", required_argument, NULL, 'p'},
      {"json", required_argument, NULL, 'j'},
      {"threads", required_argument, NULL, 't'},
      {"seconds", required_argument, NULL, 's'},
      {"accuracy", no_argument, NULL, 'a'},
      {"busy", no_argument, NULL, 'b'},
      {"sweep", no_argument, NULL, 'w'},
      {"beside", required_argument, NULL, 'g'},
      {"emitted", no_argument, NULL, 'e'},
      {"reorders", no_argument, NULL, 'r'},
      {"random", required_argument, NULL, 'n'},
      {"seed", required_argument, NULL, 'd'},
      {"help", no_argument, NULL, 'h'},
      {NULL, 0, NULL, 0},
  };
  // clang-format on
  *s = (Settings){.threads = ng_thread_count(), .seconds = 1, .seed = 1};
  for (int letter; (letter = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    int status = read_option(s, letter);
    if (status >= 0) return status;
  }
  filter_paths(s, argv + optind, (size_t)(argc - optind));
  const bool needs_graphs = s->is_accuracy || s->is_busy || s->is_emitted || s->beside || !(s->is_sweep || s->nrandom);
  if (s->npaths || !needs_graphs) return -1;
  return usage_error("expected a graph%s%s", s->filter ? " with this in its path: " : "", s->filter ? s->filter : "");
}
