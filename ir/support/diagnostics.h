// Diagnostics: errors and warnings for the user, each with its place in the user's file.
//
// A message is one line in lower case without a full stop: "what, expected, found". Text from the user is escaped for
// a terminal: control characters appear as question marks (ir/support/escape.h). A Diagnostics owns copies of
// everything it prints, so it may outlive the graph and the file's text. The first 100 messages are recorded, later
// messages only counted.
#ifndef NGRAD_IR_SUPPORT_DIAGNOSTICS_H
#define NGRAD_IR_SUPPORT_DIAGNOSTICS_H

#include "ir/support/text.h"

#include <stdint.h>

typedef struct Source { // a file's text, as it was read
  const char *name;     // the path that the user gave
  const char *text;     // nbytes bytes and a final zero; any bytes, not only UTF-8
  size_t nbytes;
} Source;

typedef struct Position {
  const Source *source; // NULL: not in a file
  uint32_t line;        // from 1; 0: the whole file
  uint32_t column;      // from 1, in characters (code points)
} Position;

typedef enum Severity { SEVERITY_ERROR, SEVERITY_WARNING } Severity;

typedef struct Diagnostic {
  Severity severity;
  const char *file; // NULL: none
  uint32_t line, column;
  const char *message;
  const char *source_line; // escaped, at most 160 characters around the caret; NULL: none
  uint32_t caret;          // column within source_line, from 1
} Diagnostic;

typedef struct Diagnostics {
  Arena arena;
  Diagnostic *items;
  size_t count, capacity;
  size_t nerrors, nwarnings;                              // recorded or only counted
  bool out_of_memory;                                     // while recording, or as error_out_of_memory reported it
  void (*listen)(void *listener, const Diagnostic *item); // called with each recorded message; NULL: nothing is called
  void *listener;
} Diagnostics;

void diagnostics_init(Diagnostics *d, const Allocator *allocator);
void diagnostics_deinit(Diagnostics *d); // d is then empty and may be used again, with the same listener

// These functions return false, so that a caller can end with `return error_at(...)`.
bool error_at(Diagnostics *d, Position at, const char *format, ...) __attribute__((format(printf, 3, 4)));
// The message, followed by the lines that an external program printed.
bool error_with_output(Diagnostics *d, const char *output, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool warn_at(Diagnostics *d, Position at, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool error_out_of_memory(Diagnostics *d); // recorded without allocating

// file:line:column: error: message, then the source line and a caret; with ANSI escapes if `colour`.
void diagnostics_print(const Diagnostics *d, Text *out, bool colour);

// The candidate closest to `word` by edit distance, for "did you mean"; NULL when more than a third of the letters
// differ.
const char *nearest_word(const char *word, const char *const *candidates, size_t count);

#endif
