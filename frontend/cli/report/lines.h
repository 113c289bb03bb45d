// Texts of a report as lists of line numbers. Most lines occur many times, in the graph after each pass or in equal
// kernels, so a report stores each line once.
#ifndef NGRAD_FRONTEND_CLI_REPORT_LINES_H
#define NGRAD_FRONTEND_CLI_REPORT_LINES_H

#include "frontend/cli/session.h"

typedef struct Lines {
  json_t *index;         // object: a line's number
  json_t *list;          // array: line by number
  size_t nbytes, nwords; // nbytes: of all lines; nwords: numbers in all texts
  bool is_full;          // lines have been left out
} Lines;

void lines_init(Lines *l);
void lines_deinit(Lines *l); // does not free `list`, which the report owns

// The text as line numbers. One line stands for the lines beyond the limits, and says so.
json_t *lines_add(Lines *l, const char *text);

// An array with a text for each kernel, from a text with headings: lines that begin with `heading`, the kernel's number
// and a colon. `end`: the beginning of the first line after the last kernel; NULL: none.
json_t *lines_add_kernels(Lines *l, const char *text, size_t nkernels, const char *heading, const char *end);

#endif
