// Texts in parts: functions, structs, groups of macros. Each part ends in a blank line.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_PARTS_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_PARTS_H

#include "ir/support/text.h"

typedef struct Part {
  const Text *text;
  size_t begin, code; // where in the text the part begins, and its code, which follows its comment
  const char *name;   // parts of two texts with one name are variants of a part; NULL: only equal parts are
} Part;

typedef struct Parts {
  Arena *arena;
  Part *items; // in each text, in order
  size_t count, capacity;
  bool out_of_memory;
} Parts;

// A part begins at the end of the text. `parts` NULL: does nothing.
void part_begin(Parts *parts, const Text *text, const char *name);
void part_begin_named(Parts *parts, const Text *text, const char *format, ...) __attribute__((format(printf, 3, 4)));
void part_end_comment(Parts *parts); // the comment of the last part ends here
// Adds the text and its parts to another text in parts.
void parts_add(Parts *to, Text *out, const Parts *from, const Text *text);

#endif
