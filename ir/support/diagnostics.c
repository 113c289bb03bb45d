// Collecting and printing messages. A message copies its source line when it is recorded, so that the file's text may
// be freed before messages are printed.
#include "ir/support/diagnostics.h"

#include "ir/support/escape.h"

#include <stdarg.h>
#include <string.h>

enum { MOST_RECORDED = 100, WIDEST_LINE = 160, LONGEST_WORD = 64 };

void diagnostics_init(Diagnostics *d, const Allocator *allocator) {
  *d = (Diagnostics){0};
  arena_init(&d->arena, allocator);
}

void diagnostics_deinit(Diagnostics *d) {
  arena_deinit(&d->arena);
  *d = (Diagnostics){.arena = d->arena, .listen = d->listen, .listener = d->listener};
}

// A copy without characters that control a terminal; NULL: out of memory.
static char *copy_printable(Diagnostics *d, const char *text, size_t nbytes) {
  Text printable;
  text_init(&printable, d->arena.allocator);
  text_add_escaped(&printable, SINK_TERMINAL, text, nbytes);
  char *copy = printable.out_of_memory ? NULL : arena_copy_text(&d->arena, text_string(&printable), printable.nbytes);
  if (!copy) d->out_of_memory = true;
  text_deinit(&printable);
  return copy;
}

// A printable copy of at most WIDEST_LINE characters of a line, without its first `skip` characters.
static const char *copy_line(Diagnostics *d, const char *line, const char *end, size_t skip) {
  for (; skip && line < end; skip--) escape_next(&line, end);
  const char *stop = line;
  for (size_t n = 0; n < WIDEST_LINE && stop < end; n++) escape_next(&stop, end);
  return copy_printable(d, line, (size_t)(stop - line));
}

static void attach_source(Diagnostics *d, Diagnostic *item, Position at) {
  const char *line = at.source->text, *end = line + at.source->nbytes;
  for (uint32_t n = 1; n < at.line && line < end; n++) {
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    line = newline ? newline + 1 : end;
  }
  const char *stop = line < end ? memchr(line, '\n', (size_t)(end - line)) : NULL;
  if (!stop) stop = end;
  if (stop > line && stop[-1] == '\r') stop--;
  uint32_t skip = at.column > WIDEST_LINE / 2 ? at.column - WIDEST_LINE / 2 : 0;
  item->source_line = copy_line(d, line, stop, skip);
  item->caret = at.column - skip;
}

static void attach_position(Diagnostics *d, Diagnostic *item, Position at) {
  item->file = copy_printable(d, at.source->name, strlen(at.source->name));
  item->line = at.line;
  item->column = at.column;
  if (at.line && at.source->text) attach_source(d, item, at);
}

// The message on one line, followed by the lines of `output` (NULL: none).
static char *make_message(Diagnostics *d, const char *output, const char *format, va_list args) {
  Text plain, message;
  text_init(&plain, d->arena.allocator);
  text_init(&message, d->arena.allocator);
  text_format_list(&plain, format, args);
  text_add_user_string(&message, SINK_TERMINAL, text_string(&plain));
  for (const char *line = output; line; line = *line ? line + 1 : NULL) {
    const size_t nbytes = strcspn(line, "\n");
    text_add_string(&message, "\n");
    text_add_escaped(&message, SINK_TERMINAL, line, nbytes);
    line += nbytes;
  }
  const bool ok = !plain.out_of_memory && !message.out_of_memory;
  char *copy = ok ? arena_copy_text(&d->arena, text_string(&message), message.nbytes) : NULL;
  text_deinit(&plain);
  text_deinit(&message);
  return copy;
}

// Whether the warning about a file was recorded before: a file may be read twice.
static bool is_recorded(const Diagnostics *d, Position at, const char *message) {
  for (size_t i = 0; i < d->count && at.source; i++) {
    const Diagnostic *item = &d->items[i];
    if (item->severity == SEVERITY_WARNING && item->line == at.line && item->column == at.column && item->file &&
        strcmp(item->message, message) == 0 && strcmp(item->file, at.source->name) == 0)
      return true;
  }
  return false;
}

static void record(Diagnostics *d, Severity severity, Position at, const char *output, const char *format,
                   va_list args) {
  if (severity == SEVERITY_ERROR) d->nerrors++;
  else d->nwarnings++;
  if (d->count >= MOST_RECORDED) return;
  char *message = make_message(d, output, format, args);
  if (message && severity == SEVERITY_WARNING && is_recorded(d, at, message)) {
    d->nwarnings--;
    return;
  }
  if (!message || !arena_grow(&d->arena, &d->items, d->count, &d->capacity, sizeof *d->items)) {
    d->out_of_memory = true;
    return;
  }
  Diagnostic *item = &d->items[d->count++];
  *item = (Diagnostic){.severity = severity, .message = message};
  if (at.source) attach_position(d, item, at);
  if (d->listen) d->listen(d->listener, item);
}

bool error_at(Diagnostics *d, Position at, const char *format, ...) {
  va_list args;
  va_start(args, format);
  record(d, SEVERITY_ERROR, at, NULL, format, args);
  va_end(args);
  return false;
}

bool error_with_output(Diagnostics *d, const char *output, const char *format, ...) {
  va_list args;
  va_start(args, format);
  record(d, SEVERITY_ERROR, (Position){0}, output, format, args);
  va_end(args);
  return false;
}

bool warn_at(Diagnostics *d, Position at, const char *format, ...) {
  va_list args;
  va_start(args, format);
  record(d, SEVERITY_WARNING, at, NULL, format, args);
  va_end(args);
  return false;
}

bool error_out_of_memory(Diagnostics *d) {
  d->out_of_memory = true;
  return false;
}

static void print_diagnostic(const Diagnostic *item, Text *out, bool colour) {
  const char *bold = colour ? "\033[1m" : "", *reset = colour ? "\033[0m" : "";
  const char *hue = !colour ? "" : item->severity == SEVERITY_ERROR ? "\033[1;31m" : "\033[1;35m";
  if (item->file) {
    text_format(out, "%s%s:", bold, item->file);
    if (item->line) text_format(out, "%u:%u:", (unsigned)item->line, (unsigned)item->column);
    text_format(out, "%s ", reset);
  }
  text_format(out, "%s%s:%s %s\n", hue, item->severity == SEVERITY_ERROR ? "error" : "warning", reset, item->message);
  if (item->source_line && item->source_line[0])
    text_format(out, "  %s\n  %*s%s^%s\n", item->source_line, (int)item->caret - 1, "", hue, reset);
}

void diagnostics_print(const Diagnostics *d, Text *out, bool colour) {
  for (size_t i = 0; i < d->count; i++) print_diagnostic(&d->items[i], out, colour);
  if (d->nerrors + d->nwarnings > d->count) text_format(out, "and %zu more\n", d->nerrors + d->nwarnings - d->count);
  if (d->out_of_memory) text_add_string(out, "error: out of memory\n");
}

static bool is_same_letter(char x, char y) {
  return x == y || ((x ^ y) == 0x20 && ((x | 0x20) >= 'a' && (x | 0x20) <= 'z'));
}

// Levenshtein distance of the first LONGEST_WORD characters, ignoring case; two neighbours that have changed places
// count once.
static size_t edit_distance(const char *a, const char *b) {
  size_t rows[3][LONGEST_WORD + 1], na = strnlen(a, LONGEST_WORD), nb = strnlen(b, LONGEST_WORD);
  for (size_t j = 0; j <= nb; j++) rows[0][j] = j;
  for (size_t i = 1; i <= na; i++) {
    const size_t *above = rows[(i - 1) % 3], *far_above = rows[(i + 1) % 3];
    size_t *row = rows[i % 3];
    row[0] = i;
    for (size_t j = 1; j <= nb; j++) {
      size_t best = above[j - 1] + !is_same_letter(a[i - 1], b[j - 1]);
      if (above[j] + 1 < best) best = above[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      if (i > 1 && j > 1 && is_same_letter(a[i - 1], b[j - 2]) && is_same_letter(a[i - 2], b[j - 1]) &&
          far_above[j - 2] + 1 < best)
        best = far_above[j - 2] + 1;
      row[j] = best;
    }
  }
  return rows[na % 3][nb];
}

const char *nearest_word(const char *word, const char *const *candidates, size_t count) {
  const char *nearest = NULL;
  size_t length = strnlen(word, LONGEST_WORD);
  size_t least = length == 2 ? 1 : length / 3; // any two single letters are one edit apart
  for (size_t i = 0; i < count; i++) {
    size_t distance = edit_distance(word, candidates[i]);
    if (distance > least || (nearest && distance == least)) continue;
    nearest = candidates[i];
    least = distance;
  }
  return nearest;
}
