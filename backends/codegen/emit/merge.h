// Merges texts that differ in a few places, one for each instruction set of a file, into one text with conditions.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_MERGE_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_MERGE_H

#include "ir/support/text.h"

// Adds a text that the preprocessor reduces to texts[i] if the macro NG_ISA is 1 << i. names[i]: the instruction set's
// name, for comments. texts[i] is empty if the file has no code for the instruction set. Blank lines separate the
// paragraphs of a text. False: out of memory.
bool merge_texts(const Text *texts, const char *const *names, size_t count, Text *out);

#endif
