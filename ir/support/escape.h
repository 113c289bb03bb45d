// Escapes text from a user (names of graphs, values, dims and nodes, paths, arguments) for files and messages.
//
// Each sink escapes the characters that have a meaning in its syntax. Every sink also escapes or replaces invisible
// characters: control characters, bidirectional marks (which can make a line of code look like another), other
// characters without a visible form, and bytes that are not UTF-8.
#ifndef NGRAD_IR_SUPPORT_ESCAPE_H
#define NGRAD_IR_SUPPORT_ESCAPE_H

#include "ir/support/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum Sink {
  SINK_IDENTIFIER, // part of a C identifier: letters and digits; any other byte is _ and its code in hexadecimal
  SINK_COMMENT,    // inside a C comment of either kind: ASCII; a character that could end the comment becomes _
  SINK_STRING,     // a C string literal, with its quotes
  SINK_DOT,        // inside a double-quoted string of Graphviz
  SINK_YAML,       // a double-quoted scalar, with its quotes
  SINK_HTML,       // text, or inside an attribute's value in quotes of either kind
  SINK_TERMINAL,   // part of a line: each character becomes one character, so that columns do not move
  SINK_MAKEFILE,   // a file's name in a rule, if text_is_for_makefile
  SINK_JSON,       // a string in ASCII, with its quotes; safe inside a script of an HTML page
  NSINKS
} Sink;

void text_add_escaped(Text *out, Sink sink, const char *text, size_t nbytes);
void text_add_user_string(Text *out, Sink sink, const char *text);

// Whether a file's name can be written in a make rule. Make cannot escape a semicolon (it begins a recipe), '=', '|'
// and control characters, nor a backslash or '%' in every position.
bool text_is_for_makefile(const char *text);

// Decodes the character at *text and moves *text behind it: a code point, or ESCAPE_STRAY + the byte where the bytes
// are not UTF-8.
enum { ESCAPE_STRAY = 0x110000 };
uint32_t escape_next(const char **text, const char *end);

// Whether a character has a visible form on a terminal.
bool escape_is_visible(uint32_t character);

#endif
