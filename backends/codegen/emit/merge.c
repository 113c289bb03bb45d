#include "backends/codegen/emit/merge.h"

#include <stdint.h>
#include <string.h>

enum {
  MOST_CELLS = 1 << 22 // of a table of common subsequences; longer lists are not compared, and are printed twice
};

typedef struct Variant { // of a part
  const char *text;
  size_t nbytes, comment; // comment: bytes at the beginning that are a comment
  uint32_t sections;      // a bit for each section that has the variant
  struct Variant *next;
} Variant;

typedef struct Piece { // a part or a line
  const char *text;    // the part's name, or the line
  size_t nbytes;
  bool is_comment;
  uint32_t sections; // those that have the piece
  Variant *variants; // of a part
} Piece;

typedef struct Pieces {
  Piece *items;
  size_t count;
} Pieces;

typedef struct Merge {
  const Section *sections;
  uint32_t all;
  Arena arena;
  Text *out;
  uint32_t open; // the sections of the open condition; all: no condition is open
  uint32_t told; // the sections of the open condition's earlier branches
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

// Adds a variant to those of a part, unless it is among them.
static void add_variant(Variant **to, Variant *variant) {
  for (; *to; to = &(*to)->next)
    if ((*to)->nbytes == variant->nbytes && memcmp((*to)->text, variant->text, variant->nbytes) == 0) break;
  if (*to) (*to)->sections |= variant->sections;
  else *to = variant;
}

// Merges two lists; keeps the order of both. False: out of memory.
static bool merge_pieces(Merge *m, Pieces *list, const Pieces *more) {
  size_t *match = ARENA_ARRAY(&m->arena, size_t, list->count + 1), n = 0, k = 0;
  Piece *both = ARENA_ARRAY(&m->arena, Piece, list->count + more->count + 1);
  if (!match || !both || !pair_pieces(m, list->items, list->count, more->items, more->count, match)) return false;
  for (size_t i = 0; i < list->count; i++) {
    while (match[i] < more->count && k < match[i]) both[n++] = more->items[k++];
    both[n++] = list->items[i];
    if (match[i] == more->count) continue;
    both[n - 1].sections |= more->items[k].sections;
    if (more->items[k].variants) add_variant(&both[n - 1].variants, more->items[k].variants);
    k++;
  }
  while (k < more->count) both[n++] = more->items[k++];
  *list = (Pieces){both, n};
  return true;
}

// The parts of a section. A part without a name is its own name. False: out of memory.
static bool list_parts(Merge *m, size_t section, Pieces *list) {
  const Section *s = &m->sections[section];
  const char *text = text_string(&s->text);
  *list = (Pieces){ARENA_ARRAY(&m->arena, Piece, s->parts.count + 1), 0};
  for (const Part *p = s->parts.items, *last = p + s->parts.count; list->items && p < last; p++) {
    Variant *own = ARENA_NEW(&m->arena, Variant);
    size_t end = p + 1 < last ? p[1].begin : s->text.nbytes;
    if (!own) return false;
    if (text[end - 2] == '\n') end--; // the blank line
    *own = (Variant){text + p->begin, end - p->begin, p->code - p->begin, 1U << section, NULL};
    const size_t length = p->name ? strlen(p->name) : own->nbytes;
    list->items[list->count++] = (Piece){p->name ? p->name : own->text, length, false, own->sections, own};
  }
  return list->items;
}

static bool list_lines(Merge *m, const Variant *of, Pieces *list) {
  size_t nlines = 0;
  for (size_t i = 0; i < of->nbytes; i++) nlines += of->text[i] == '\n';
  *list = (Pieces){ARENA_ARRAY(&m->arena, Piece, nlines + 1), 0};
  for (size_t begin = 0, end; list->items && begin < of->nbytes; begin = end) {
    const char *newline = memchr(of->text + begin, '\n', of->nbytes - begin);
    end = newline ? (size_t)(newline - of->text) + 1 : of->nbytes;
    list->items[list->count++] = (Piece){of->text + begin, end - begin, begin < of->comment, of->sections, NULL};
  }
  return list->items;
}

// Printing

// Opens the condition for the next text: as the next branch (#elif) of the open condition if possible, else after
// closing it.
static void change_condition(Merge *m, uint32_t sections) {
  if (sections == m->open) return;
  const bool is_branch = m->open != m->all && !(sections & m->told);
  if (m->open != m->all && !is_branch) text_add_string(m->out, "#endif\n");
  m->told = sections | (is_branch ? m->told : 0);
  m->open = sections;
  if (sections == m->all) return;
  if (is_branch && m->told == m->all) {
    text_add_string(m->out, "#else\n");
    return;
  }
  text_format(m->out, "%s NG_ISA & %u //", is_branch ? "#elif" : "#if", (unsigned)sections);
  const char *before = " ";
  for (size_t i = 0; sections >> i; i++) {
    if (!(sections >> i & 1)) continue;
    text_format(m->out, "%s%s", before, m->sections[i].isa);
    before = ", ";
  }
  text_add_string(m->out, "\n");
}

// Lines of comments in which variants differ (they say how many rows a step has) are dropped.
static bool print_part(Merge *m, const Piece *part) {
  Pieces lines, more;
  bool ok = list_lines(m, part->variants, &lines);
  for (const Variant *v = part->variants->next; ok && v; v = v->next)
    ok = list_lines(m, v, &more) && merge_pieces(m, &lines, &more);
  for (size_t i = 0; ok && i < lines.count; i++) {
    if (lines.items[i].sections != part->sections && lines.items[i].is_comment) continue;
    change_condition(m, lines.items[i].sections);
    text_add(m->out, lines.items[i].text, lines.items[i].nbytes);
  }
  text_add_string(m->out, "\n");
  return ok;
}

bool merge_sections(const Section *sections, size_t count, Text *out) {
  Merge m = {.sections = sections, .out = out};
  Pieces parts, more;
  for (size_t i = 0; i < count; i++) m.all |= sections[i].text.nbytes ? 1U << i : 0;
  m.open = m.all;
  arena_init(&m.arena, out->allocator);
  bool ok = list_parts(&m, 0, &parts);
  for (size_t i = 1; ok && i < count; i++) ok = list_parts(&m, i, &more) && merge_pieces(&m, &parts, &more);
  for (size_t i = 0; ok && i < parts.count; i++) ok = print_part(&m, &parts.items[i]);
  change_condition(&m, m.all);
  arena_deinit(&m.arena);
  return ok && !out->out_of_memory;
}
