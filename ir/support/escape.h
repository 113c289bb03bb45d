// Text from a user (names of graphs, values, dims and nodes, paths, arguments) as part of what is made of it.
//
// Each sink has a way to write what it would take for something else. What nobody can see is written so that it can be
// seen, or left out, everywhere: control characters, marks of direction (which can show a line of code as another),
// other characters without a shape of their own, bytes that are no UTF-8.
#ifndef NGRAD_IR_SUPPORT_ESCAPE_H
#define NGRAD_IR_SUPPORT_ESCAPE_H

#include "ir/support/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum Sink {
  SINK_IDENTIFIER, // part of a C identifier: letters, digits, and an underscore and the code of every other byte
  SINK_COMMENT,    // in a comment of C, of either kind: ASCII that neither ends nor goes on as anything
  SINK_STRING,     // a string literal of C, with its quotes
  SINK_DOT,        // in double quotes, as an attribute or a name
  SINK_YAML,       // a scalar in double quotes, with these
  SINK_HTML,       // text, or an attribute's value in quotes of either kind
  SINK_TERMINAL,   // in a line: one character for each, so that columns stay
  SINK_MAKEFILE,   // a file's name in a rule; text_is_for_makefile says which names there can be
  NSINKS
} Sink;

void text_add_escaped(Text *out, Sink sink, const char *text, size_t nbytes);
void text_add_user_string(Text *out, Sink sink, const char *text);

// Whether the name of a file can stand in a rule: make has no way to write a semicolon, which begins a recipe, '=',
// '|', a control character, or every backslash and '%'.
bool text_is_for_makefile(const char *text);

// The character at *text, which moves behind it: a code point, or ESCAPE_STRAY + the byte where there is no UTF-8.
enum { ESCAPE_STRAY = 0x110000 };
uint32_t escape_next(const char **text, const char *end);

// Whether a character is seen when it is shown.
bool escape_is_visible(uint32_t character);

#endif
