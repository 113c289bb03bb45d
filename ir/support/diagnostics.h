// Diagnostics: what is to be told to the user, each with the place in the file that it is about.
//
// Messages are lower case, without a full stop: "what, expected, found". They are one line, in which nothing of a
// user's has an effect on a terminal: what would is shown as a question mark (ir/support/escape.h). A Diagnostics owns
// copies of all that it prints, so it may outlive the graph and the file's text. At most 100 messages are kept; the
// rest are counted.
#ifndef NGRAD_IR_SUPPORT_DIAGNOSTICS_H
#define NGRAD_IR_SUPPORT_DIAGNOSTICS_H

#include "ir/support/text.h"

#include <stdint.h>

typedef struct Source { // a file's text, as it was read
  const char *name;     // as the user gave it
  const char *text;     // nbytes of it, zero-terminated; may hold anything
  size_t nbytes;
} Source;

typedef struct Position {
  const Source *source; // NULL: nowhere in a file
  uint32_t line;        // from 1; 0: about the whole file
  uint32_t column;      // from 1, in characters (code points)
} Position;

typedef enum Severity { SEVERITY_ERROR, SEVERITY_WARNING } Severity;

typedef struct Diagnostic {
  Severity severity;
  const char *file; // NULL: none
  uint32_t line, column;
  const char *message;
  const char *source_line; // NULL: none; for a terminal, too; at most 160 characters of it
  uint32_t caret;          // column within source_line, from 1
} Diagnostic;

typedef struct Diagnostics {
  Arena arena;
  Diagnostic *items;
  size_t count, capacity;
  size_t nerrors, nwarnings;                              // those told, kept or not
  bool out_of_memory;                                     // a message, or anything else, was lost to it
  void (*listen)(void *listener, const Diagnostic *item); // called with each that is kept; NULL: nobody
  void *listener;
} Diagnostics;

void diagnostics_init(Diagnostics *d, const Allocator *allocator);
void diagnostics_deinit(Diagnostics *d); // it may be used again, empty; who listens stays

// Both return false, so that `return error_at(...)` reads as it should. Only an error is counted as one.
bool error_at(Diagnostics *d, Position at, const char *format, ...) __attribute__((format(printf, 3, 4)));
// The message, and behind it what a program said, line by line.
bool error_with_output(Diagnostics *d, const char *output, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool warn_at(Diagnostics *d, Position at, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool error_out_of_memory(Diagnostics *d); // recorded without allocating

// file:line:column: error: message, then the line and a caret. Colour in ANSI escapes when asked for.
void diagnostics_print(const Diagnostics *d, Text *out, bool colour);

// The candidate closest to `word` by edit distance, if close enough to be a slip of the pen; else NULL.
const char *nearest_word(const char *word, const char *const *candidates, size_t count);

#endif
