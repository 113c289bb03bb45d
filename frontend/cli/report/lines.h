// Texts of a report as lists of line numbers. Most lines occur many times: in the graph after each pass, or in kernels
// that are alike. A report has each line once.
#ifndef NGRAD_FRONTEND_CLI_REPORT_LINES_H
#define NGRAD_FRONTEND_CLI_REPORT_LINES_H

#include "frontend/cli/session.h"

typedef struct Lines {
  json_t *index;         // object: a line's number
  json_t *list;          // array: the lines by number
  size_t nbytes, nwords; // of all lines; numbers in all texts
  bool is_full;          // lines have been left out
} Lines;

void lines_init(Lines *l);
void lines_deinit(Lines *l); // keeps `list`, which the report owns

// The text's lines by number. Lines that the bounds leave out become one line that says so.
json_t *lines_add(Lines *l, const char *text);

// An array with a text for each kernel, from a text with headings: lines that begin with `heading` and the kernel's
// number and a colon. `end`: what a line begins with that belongs to no kernel any more; NULL: there is none.
json_t *lines_add_kernels(Lines *l, const char *text, size_t nkernels, const char *heading, const char *end);

#endif
