// A text is cut at blank lines into paragraphs: functions, macros, structs. Paragraphs of two texts that define the
// same name become variants of one paragraph, if they are in the longest common subsequence of the texts' names. Lines
// in which variants differ are under conditions inside of the paragraph.
#include "backends/codegen/emit/merge.h"

#include <stdint.h>
#include <string.h>

enum {
  MOST_TEXTS = 16,
  MOST_CELLS = 1 << 22 // of a table of common subsequences; longer texts are not compared, and are printed twice
};

typedef struct Piece { // a line, or the name that a paragraph defines
  const char *text;
  size_t nbytes;
  uint32_t texts; // a bit for each text that has the piece
} Piece;

typedef struct Paragraph {
  Piece name;
  Piece variants[MOST_TEXTS];
  size_t nvariants;
  uint32_t texts; // texts that have the paragraph
} Paragraph;

typedef struct Merge {
  const char *const *names;
  uint32_t all;
  Arena arena;
  Text *out;
  uint32_t open; // the texts of the open condition; all: no condition is open
  uint32_t told; // the texts of the open condition's earlier parts
  bool out_of_memory;
} Merge;

static bool are_equal(const Piece *a, const Piece *b) {
  return a->nbytes == b->nbytes && memcmp(a->text, b->text, a->nbytes) == 0;
}

// Sets match[i] to the element of b that a[i] is paired with, or to nb.
static bool pair_pieces(Merge *m, const Piece *a, size_t na, const Piece *b, size_t nb, size_t *match) {
  size_t begin = 0, end = 0;
  for (size_t i = 0; i < na; i++) match[i] = nb;
  for (; begin < na && begin < nb && are_equal(&a[begin], &b[begin]); begin++) match[begin] = begin;
  for (; end < na - begin && end < nb - begin && are_equal(&a[na - 1 - end], &b[nb - 1 - end]); end++)
    match[na - 1 - end] = nb - 1 - end;
  const size_t rows = na - begin - end, columns = nb - begin - end, width = columns + 1;
  if (!rows || !columns || rows > MOST_CELLS / width) return true;
  uint32_t *length =
      ARENA_ARRAY(&m->arena, uint32_t, (rows + 1) * width); // common length of a from i on and b from k on
  if (!length) return false;
  for (size_t i = rows; i-- > 0;)
    for (size_t k = columns; k-- > 0;) {
      const uint32_t below = length[(i + 1) * width + k], right = length[i * width + k + 1];
      length[i * width + k] = are_equal(&a[begin + i], &b[begin + k]) ? length[(i + 1) * width + k + 1] + 1
                              : below > right                         ? below
                                                                      : right;
    }
  for (size_t i = 0, k = 0; i < rows && k < columns;) {
    const uint32_t below = length[(i + 1) * width + k], right = length[i * width + k + 1];
    if (are_equal(&a[begin + i], &b[begin + k])) match[begin + i++] = begin + k++;
    else if (below >= right) i++;
    else k++;
  }
  return true;
}

// Paragraphs

// The name by which paragraphs are paired: the first line that is no comment, up to a parenthesis. Paragraphs with
// directives, which may be longer than a line, are paired only if they are equal.
static Piece find_name(const char *text, size_t nbytes) {
  const char *end = text + nbytes, *line = text;
  if (memchr(text, '#', nbytes)) return (Piece){text, nbytes, 0};
  while (line < end && strncmp(line, "//", 2) == 0) {
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    line = newline ? newline + 1 : end;
  }
  size_t length = 0;
  while (line + length < end && line[length] != '(' && line[length] != '\n') length++;
  return (Piece){line, length, 0};
}

static Paragraph *cut(Merge *m, const Text *text, uint32_t bit, size_t *count) {
  size_t capacity = 0;
  Paragraph *paragraphs = NULL;
  *count = 0;
  for (const char *at = text_string(text); *at;) {
    while (*at == '\n') at++;
    if (!*at) break;
    const char *end = strstr(at, "\n\n");
    const size_t nbytes = end ? (size_t)(end - at) + 1 : strlen(at);
    if (!arena_grow(&m->arena, &paragraphs, *count, &capacity, sizeof *paragraphs)) return NULL;
    paragraphs[(*count)++] =
        (Paragraph){.name = find_name(at, nbytes), .variants = {{at, nbytes, bit}}, .nvariants = 1, .texts = bit};
    at += nbytes;
  }
  return paragraphs ? paragraphs : ARENA_NEW(&m->arena, Paragraph);
}

static void add_variant(Paragraph *to, const Piece *variant) {
  size_t i = 0;
  to->texts |= variant->texts;
  while (i < to->nvariants && !are_equal(&to->variants[i], variant)) i++;
  if (i == to->nvariants) to->variants[to->nvariants++] = *variant;
  else to->variants[i].texts |= variant->texts;
}

static Piece *list_names(Merge *m, const Paragraph *paragraphs, size_t count) {
  Piece *names = ARENA_ARRAY(&m->arena, Piece, count + 1);
  for (size_t i = 0; names && i < count; i++) names[i] = paragraphs[i].name;
  return names;
}

// Merges the paragraphs of one more text into *paragraphs; keeps the order of both.
static bool merge_paragraphs(Merge *m, Paragraph **paragraphs, size_t *count, const Paragraph *more, size_t nmore) {
  Piece *a = list_names(m, *paragraphs, *count), *b = list_names(m, more, nmore);
  size_t *match = ARENA_ARRAY(&m->arena, size_t, *count + 1), n = 0, k = 0;
  Paragraph *both = ARENA_ARRAY(&m->arena, Paragraph, *count + nmore + 1);
  if (!a || !b || !match || !both || !pair_pieces(m, a, *count, b, nmore, match)) return false;
  for (size_t i = 0; i < *count; i++) {
    while (match[i] < nmore && k < match[i]) both[n++] = more[k++];
    both[n] = (*paragraphs)[i];
    if (match[i] < nmore) add_variant(&both[n], &more[k++].variants[0]);
    n++;
  }
  while (k < nmore) both[n++] = more[k++];
  *paragraphs = both;
  *count = n;
  return true;
}

// Printing

// Opens the condition for the next text: as the next part (#elif) of the open condition if possible, else after closing
// it.
static void change_condition(Merge *m, uint32_t texts) {
  if (texts == m->open) return;
  const bool is_part = m->open != m->all && !(texts & m->told);
  if (m->open != m->all && !is_part) text_add_string(m->out, "#endif\n");
  m->told = texts | (is_part ? m->told : 0);
  m->open = texts;
  if (texts == m->all) return;
  if (is_part && m->told == m->all) {
    text_add_string(m->out, "#else\n");
    return;
  }
  text_format(m->out, "%s NG_ISA & %u //", is_part ? "#elif" : "#if", (unsigned)texts);
  const char *before = " ";
  for (size_t i = 0; texts >> i; i++)
    if (texts >> i & 1) {
      text_format(m->out, "%s%s", before, m->names[i]);
      before = ", ";
    }
  text_add_string(m->out, "\n");
}

static Piece *cut_lines(Merge *m, const Piece *text, size_t *count) {
  size_t nlines = 0;
  for (size_t i = 0; i < text->nbytes; i++) nlines += text->text[i] == '\n';
  Piece *lines = ARENA_ARRAY(&m->arena, Piece, nlines + 1);
  *count = 0;
  for (size_t begin = 0; lines && begin < text->nbytes;) {
    const char *newline = memchr(text->text + begin, '\n', text->nbytes - begin);
    const size_t end = newline ? (size_t)(newline - text->text) + 1 : text->nbytes;
    lines[(*count)++] = (Piece){text->text + begin, end - begin, text->texts};
    begin = end;
  }
  return lines;
}

// Merges the lines of one more variant into *lines.
static bool merge_lines(Merge *m, Piece **lines, size_t *count, const Piece *variant) {
  size_t nmore, n = 0, k = 0;
  Piece *more = cut_lines(m, variant, &nmore);
  size_t *match = ARENA_ARRAY(&m->arena, size_t, *count + 1);
  Piece *both = more ? ARENA_ARRAY(&m->arena, Piece, *count + nmore + 1) : NULL;
  if (!both || !match || !pair_pieces(m, *lines, *count, more, nmore, match)) return false;
  for (size_t i = 0; i < *count; i++) {
    while (match[i] < nmore && k < match[i]) both[n++] = more[k++];
    both[n] = (*lines)[i];
    if (match[i] < nmore) both[n].texts |= more[k++].texts;
    n++;
  }
  while (k < nmore) both[n++] = more[k++];
  *lines = both;
  *count = n;
  return true;
}

// Comments in which variants differ (they say how many rows a step has) are dropped.
static void print_paragraph(Merge *m, const Paragraph *paragraph) {
  size_t count;
  Piece *lines = cut_lines(m, &paragraph->variants[0], &count);
  bool ok = lines;
  for (size_t i = 1; ok && i < paragraph->nvariants; i++) ok = merge_lines(m, &lines, &count, &paragraph->variants[i]);
  m->out_of_memory |= !ok;
  for (size_t i = 0; ok && i < count; i++) {
    if (lines[i].texts != paragraph->texts && strncmp(lines[i].text, "//", 2) == 0) continue;
    change_condition(m, lines[i].texts);
    text_add(m->out, lines[i].text, lines[i].nbytes);
  }
  text_add_string(m->out, "\n");
}

bool merge_texts(const Text *texts, const char *const *names, size_t count, Text *out) {
  Merge m = {.names = names, .out = out};
  size_t nparagraphs;
  for (size_t i = 0; i < count; i++) m.all |= texts[i].nbytes ? 1U << i : 0;
  m.open = m.all;
  arena_init(&m.arena, out->allocator);
  Paragraph *paragraphs = cut(&m, &texts[0], 1, &nparagraphs);
  bool ok = paragraphs;
  for (size_t i = 1; ok && i < count; i++) {
    size_t nmore;
    const Paragraph *more = cut(&m, &texts[i], 1U << i, &nmore);
    ok = more && merge_paragraphs(&m, &paragraphs, &nparagraphs, more, nmore);
  }
  for (size_t i = 0; ok && i < nparagraphs; i++) print_paragraph(&m, &paragraphs[i]);
  change_condition(&m, m.all);
  arena_deinit(&m.arena);
  return ok && !m.out_of_memory && !out->out_of_memory;
}
