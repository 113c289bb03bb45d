// Tables of text on stdout: columns as wide as their widest cell so far, numbers to the right.
#ifndef NGRAD_FRONTEND_CLI_TABLE_H
#define NGRAD_FRONTEND_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum { MAX_COLUMNS = 16 };

typedef struct Table {
  const char *alignment; // one character a column: 'l' or 'r'
  char **cells;          // row by row
  size_t count, capacity;
  size_t widths[MAX_COLUMNS]; // least widths of columns
} Table;

Table table_new(const char *alignment);
Table table_headed(const char *alignment, const char *const *header);                    // with a first row
void table_add(Table *t, const char *format, ...) __attribute__((format(printf, 2, 3))); // the next cell
void table_add_verdict(Table *t, bool is_ok);                                            // in colour
char *table_markdown(const Table *t); // the first row is the header; the caller frees it
void table_free(Table *t);
void table_print_rows(Table *t); // prints complete rows to stdout and flushes; later rows follow below
void table_print(Table *t);      // to stdout; frees it

#endif
