// Cells are stored until their row is printed, best when all widths are known. Widths count characters, not bytes.
#include "frontend/cli/table.h"

#include "frontend/cli/progress.h"
#include "frontend/cli/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Table table_new(const char *alignment) {
  return (Table){.alignment = alignment};
}

Table table_headed(const char *alignment, const char *const *header) {
  Table t = table_new(alignment);
  for (size_t i = 0; alignment[i]; i++) table_add(&t, "%s", header[i]);
  return t;
}

static void add_cell(Table *t, char *cell) {
  if (t->count == t->capacity) {
    t->capacity = t->capacity ? t->capacity * 2 : 32;
    t->cells = memory_or_exit(realloc(t->cells, t->capacity * sizeof *t->cells));
  }
  t->cells[t->count++] = cell;
}

void table_add(Table *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add_cell(t, terminal_text(format, args));
  va_end(args);
}

void table_add_verdict(Table *t, bool is_ok) {
  add_cell(t, memory_or_exit(strdup(verdict(is_ok))));
}

// Counts characters on the screen: no bytes within a UTF-8 sequence, and no colour escapes.
static size_t cell_width(const char *cell) {
  size_t width = 0;
  for (const char *c = cell; *c; c++) {
    if (*c == '\033') {
      while (*c && *c != 'm') c++;
      if (!*c) break;
    } else if (((unsigned char)*c & 0xC0U) != 0x80U) {
      width++;
    }
  }
  return width;
}

// Prints padding before the next cell, so that no line ends in spaces.
static void print_row(char *const *cells, const Table *t) {
  size_t pending = 0;
  for (size_t column = 0; t->alignment[column]; column++) {
    size_t padding = t->widths[column] - cell_width(cells[column]);
    bool is_right = t->alignment[column] == 'r';
    if (is_right) pending += padding;
    if (*cells[column]) {
      printf("%*s%s", (int)pending, "", cells[column]);
      pending = 0;
    }
    if (!is_right) pending += padding;
    pending += 2;
  }
  putchar('\n');
}

void table_free(Table *t) {
  for (size_t i = 0; i < t->count; i++) free(t->cells[i]);
  free(t->cells);
  *t = table_new(t->alignment);
}

static bool is_in_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Escapes characters that Markdown or HTML would read as markup.
static void print_markdown(FILE *out, const char *cell) {
  for (const char *c = cell; *c; c++) {
    const bool is_markup =
        *c == '_' ? c == cell || !is_in_word(c[-1]) || !is_in_word(c[1]) : strchr("\\`*<>[]&~|$", *c) != NULL;
    fprintf(out, is_markup ? "\\%c" : "%c", *c);
  }
}

char *table_markdown(const Table *t) {
  const size_t ncolumns = strlen(t->alignment);
  TextStream text;
  FILE *out = text_open(&text);
  for (size_t i = 0; i < t->count; i++) {
    fputs(i % ncolumns ? " " : "| ", out);
    print_markdown(out, t->cells[i]);
    fputs(i % ncolumns == ncolumns - 1 ? " |\n" : " |", out);
    if (i != ncolumns - 1) continue;
    for (size_t column = 0; column < ncolumns; column++) fputs(t->alignment[column] == 'r' ? "|---:" : "|---", out);
    fputs("|\n", out);
  }
  return text_close(&text);
}

void table_print_rows(Table *t) {
  progress_end();
  const size_t ncolumns = strlen(t->alignment), count = t->count / ncolumns * ncolumns;
  for (size_t i = 0; i < count; i++) {
    const size_t width = cell_width(t->cells[i]);
    if (width > t->widths[i % ncolumns]) t->widths[i % ncolumns] = width;
  }
  for (size_t i = 0; i < count; i += ncolumns) print_row(&t->cells[i], t);
  for (size_t i = 0; i < count; i++) free(t->cells[i]);
  t->count -= count;
  if (count) memmove(t->cells, t->cells + count, t->count * sizeof *t->cells);
  fflush(stdout);
}

void table_print(Table *t) {
  table_print_rows(t);
  table_free(t);
}
