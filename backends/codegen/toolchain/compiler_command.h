// The C compiler that $CC says, as the words of a command.
#ifndef NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_COMPILER_COMMAND_H
#define NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_COMPILER_COMMAND_H

#include "ir/support/diagnostics.h"

#include <limits.h>
#include <nettle/sha2.h>

enum { MOST_COMMAND_WORDS = 32 };

typedef struct CompilerCommand {
  char program[PATH_MAX];                // of the first word
  const char *words[MOST_COMMAND_WORDS]; // in text
  size_t nwords;
  char text[PATH_MAX];
} CompilerCommand;

// $CC, else cc, split where a shell splits it: at blanks, but for those in quotes or behind a backslash. No shell runs,
// so nothing is expanded. The program is looked up in PATH. False after telling what is wrong.
bool compiler_command_find(CompilerCommand *c, Diagnostics *d);

// Adds what tells this compiler from others: the words, and path, length and time of change of each that names a
// program, as both do in "ccache gcc".
void compiler_command_hash(const CompilerCommand *c, struct sha256_ctx *hash);

#endif
