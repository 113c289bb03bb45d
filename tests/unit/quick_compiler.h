// Runs the compiler with -O0 in tests of values: gcc takes long for scalar C at -O2. Results must have the same bits at
// every level.
#ifndef NGRAD_TESTS_UNIT_QUICK_COMPILER_H
#define NGRAD_TESTS_UNIT_QUICK_COMPILER_H

#include "tests/effort.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

// Sets $CC to a script that adds -O0, or back to the user's. The script's path is part of the cache's keys, so it stays
// the same from run to run. False: there is no script here, in the repository's root.
static inline bool use_quick_compiler(bool is_quick) {
  enum { MOST_BYTES = 4096 };
  static char user[MOST_BYTES], quick[MOST_BYTES + PATH_MAX + 8];
  if (!quick[0]) {
    char script[PATH_MAX];
    const char *cc = getenv("CC");
    if (!realpath("tests/unit/quick_cc.sh", script)) return false;
    snprintf(user, sizeof user, "%s", cc && *cc ? cc : "cc");
    snprintf(quick, sizeof quick, "\"%s\" %s", script, user);
  }
  return setenv("CC", is_quick ? quick : user, 1) == 0;
}

// For cmocka_run_group_tests: ./dev test compiles all graphs of a program with -O0, ./dev check with the default flags.
static inline int compile_by_effort(void **state) {
  (void)state;
  return use_quick_compiler(!takes_all()) ? 0 : -1;
}

#endif
