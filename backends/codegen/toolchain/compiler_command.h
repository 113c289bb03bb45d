// A compiler's command line: an environment variable, such as $CC, split into words.
#ifndef NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_COMPILER_COMMAND_H
#define NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_COMPILER_COMMAND_H

#include "ir/support/diagnostics.h"

#include <limits.h>
#include <nettle/sha2.h>

enum { MOST_COMMAND_WORDS = 32 };

typedef struct CompilerCommand {
  char program[PATH_MAX];                // path of the program that the first word names
  const char *words[MOST_COMMAND_WORDS]; // point into `text`
  size_t nwords;
  char text[PATH_MAX];
} CompilerCommand;

typedef struct CompilerChoice {
  const char *what;              // "C compiler"
  const char *variable;          // the environment variable with the command
  const char *const *candidates; // programs, ended by NULL; if the variable is not set, the first in PATH is used
  const char *advice;            // "install one"
  const char *late;              // "raise the limit, or ": advice after a timeout, before "set CC to another compiler"
} CompilerChoice;
extern const CompilerChoice c_compiler;

// Splits the variable as a shell would: at blanks outside of quotes and not after a backslash. No shell runs, so
// nothing is expanded. The program is looked up in PATH. False after reporting an error.
bool compiler_command_find(CompilerCommand *c, const CompilerChoice *choice, Diagnostics *d);

// Adds to the hash the data that identifies the compiler: the words and, for each word that names a program (both words
// of "ccache gcc" do), the program's path, length and modification time.
void compiler_command_hash(const CompilerCommand *c, struct sha256_ctx *hash);

#endif
