// The options of ngrad_bench_peers.
#ifndef NGRAD_TESTS_BENCH_SETTINGS_H
#define NGRAD_TESTS_BENCH_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Settings {
  const char *isa, *filter, *json_path, *beside;   // NULL: not given
  const char *peer;                                // likewise; the option name of a library
  int threads;                                     // positive, also if not given
  double seconds;                                  // a case
  bool is_accuracy, is_busy, is_sweep, is_emitted; // none is set, and no other graph is given: the suite
  uint64_t nrandom;                                // number of random shapes; 0: another mode
  uint64_t seed;                                   // of the random shapes
  bool may_reorder, has_no_peer;
  char **paths; // graphs whose path contains the filter
  size_t npaths;
} Settings;

// `s` refers to argv, whose order changes. Returns -1 to go on, else the exit status.
int settings_read(Settings *s, int argc, char **argv);

#endif
