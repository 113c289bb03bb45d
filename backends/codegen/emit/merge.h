// Merges sections that differ in a few places, one for each instruction set of a file, into one text with conditions.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_MERGE_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_MERGE_H

#include "backends/codegen/print/printer.h"

typedef struct Section {
  const char *isa; // the instruction set's name
  Text text;       // "": the file has no code for the instruction set
  Parts parts;     // of the text
} Section;

// Adds a text that the preprocessor reduces to sections[i] if the macro NG_ISA is 1 << i. Parts of two sections with
// one name become variants of one part, if they are in the longest common subsequence of the sections' names. Lines in
// which variants differ are under conditions inside of the part. False: out of memory.
bool merge_sections(const Section *sections, size_t count, Text *out);

#endif
