// Runs processes of the compiler, several at a time. If one fails, the others are killed.
#ifndef NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_COMPILERS_H
#define NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_COMPILERS_H

#include "backends/codegen/toolchain/compiler_command.h"
#include "ir/support/text.h"
#include "ir/support/unfinished.h"

enum { MOST_COMPILERS = 16 }; // running at once; each needs a few hundred MB at most

typedef struct RunningCompiler {
  Unfinished process; // its group is 0: not running
  int output;         // the end of a pipe from which the process's output is read
  bool is_open;       // the end of its output has not been read
  Text complaint;     // its output, cut off at a limit
} RunningCompiler;

typedef struct Compilers {
  const char *program;
  char **environment;
  const CompilerChoice *compiler;
  double timeout_s; // for all processes together; 0: no limit
  double end_ms;    // when the time is over; set when the first process starts
  Text *complaint;  // after a failure: the output of the process that failed, and the reason
  size_t count;     // running processes
  RunningCompiler running[MOST_COMPILERS];
} Compilers;

// Starts a process, while fewer than MOST_COMPILERS run. False: it cannot be started, and no process runs.
bool compilers_start(Compilers *c, const char *const *arguments);
// Waits until at most `most` processes run. False: some process failed, or the time is over, and no process runs.
bool compilers_wait(Compilers *c, size_t most);

double milliseconds_now(void); // monotonic time

#endif
