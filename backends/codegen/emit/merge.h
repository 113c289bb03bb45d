// Merges texts that differ in a few places, one for each instruction set of a file, into one text with conditions.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_MERGE_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_MERGE_H

#include "ir/support/text.h"

// Adds a text from which a compiler takes texts[i] where the macro NG_ISA is 1 << i. names[i]: of the instruction set,
// for comments. An empty text is of an instruction set that the file has no code for. Chunks of a text are separated by
// blank lines. False: out of memory.
bool merge_texts(const Text *texts, const char *const *names, size_t count, Text *out);

#endif
