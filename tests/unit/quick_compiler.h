// The compiler at -O0, for scalar C, which takes gcc long at -O2. Results must be the same bits at any level.
#ifndef NGRAD_TESTS_UNIT_QUICK_COMPILER_H
#define NGRAD_TESTS_UNIT_QUICK_COMPILER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char quick_compiler_script[64];

static inline void quick_compiler_remove(void) {
  unlink(quick_compiler_script);
}

// Sets $CC to a script that adds -O0, or back to the user's. False: the script could not be written.
static inline bool use_quick_compiler(bool is_quick) {
  static char user[4096];
  if (!quick_compiler_script[0]) {
    const char *cc = getenv("CC");
    snprintf(user, sizeof user, "%s", cc && *cc ? cc : "cc");
    snprintf(quick_compiler_script, sizeof quick_compiler_script, "/tmp/ngrad-quick-cc-XXXXXX");
    int file = mkstemp(quick_compiler_script);
    FILE *f = file < 0 ? NULL : fdopen(file, "w");
    if (!f) return false;
    fprintf(f, "#!/bin/sh\nexec '%s' \"$@\" -O0\n", user);
    fclose(f);
    chmod(quick_compiler_script, 0700);
    atexit(quick_compiler_remove);
  }
  return setenv("CC", is_quick ? quick_compiler_script : user, 1) == 0;
}

#endif
