// The options of ngrad_bench_peers.
#ifndef NGRAD_TESTS_BENCH_SETTINGS_H
#define NGRAD_TESTS_BENCH_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Settings {
  const char *isa, *filter, *json_path, *beside;   // NULL: not said
  const char *peer;                                // likewise; the option name of a library
  int threads;                                     // a number, also when not said
  double seconds;                                  // a case
  bool is_accuracy, is_busy, is_sweep, is_emitted; // none of them, and not beside: the suite
  uint64_t nrandom;                                // how many random shapes; 0: this is not wanted
  uint64_t seed;                                   // of these
  bool may_reorder, has_no_peer;
  char **paths; // graphs whose path has the filter in it
  size_t npaths;
} Settings;

// `s` refers to argv, whose order changes. Returns -1 to go on, else the exit status.
int settings_read(Settings *s, int argc, char **argv);

#endif
