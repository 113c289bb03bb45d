// Prints the part of the vocabulary (simd/*.h) that a program uses.
//
// The vocabulary's text is cut at blank lines into paragraphs. A paragraph is printed if the program, or a printed
// paragraph, uses a name that it defines; words in comments count as uses. A paragraph within #ifndef NAME ... #endif
// is a default. If the ISA's header defines NAME, the paragraph is dropped; if only for some compilers, the paragraph
// is printed with the guard; else without the guard.
#include "backends/codegen/print/printer.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

extern const char simd_vector[], simd_arithmetic[], simd_flush[], simd_wide_integers[], simd_rows[], simd_bytes[],
    simd_math[], simd_power[], simd_trigonometry[], simd_integers[], simd_random[];

static const char *const common[] = {simd_vector,       simd_arithmetic, simd_flush, simd_wide_integers,
                                     simd_rows,         simd_bytes,      simd_math,  simd_power,
                                     simd_trigonometry, simd_integers,   simd_random};
enum { NCOMMON = sizeof common / sizeof *common }; // headers that every ISA uses

enum { MOST_PARAGRAPHS = 1024, MOST_NAMES = 1024, HEADS = 512 };

typedef struct Paragraph {
  const char *text;
  size_t nbytes;
  size_t first_name, end_name; // the names that it defines
  const char *guard;           // the line of its #ifndef, which is not printed; NULL: none, or it is printed
  bool is_overridden;          // a default that the ISA's header replaces
  bool is_used;
} Paragraph;

typedef struct Name { // a name that a paragraph defines
  const char *text;
  size_t length, paragraph;
  bool is_macro, is_function;
  uint16_t next; // the next name with the same hash, counted from 1; 0: none
} Name;

typedef struct Vocabulary {
  Paragraph paragraphs[MOST_PARAGRAPHS];
  Name names[MOST_NAMES];
  uint16_t heads[HEADS]; // of lists of names, by hash; 0: none
  size_t count, nnames;
  size_t nown; // paragraphs of the ISA's own header
} Vocabulary;

static bool is_name_char(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

// The first line of the text that begins with `beginning`; NULL: no such line.
static const char *find_line(const char *text, size_t nbytes, const char *beginning) {
  size_t length = strlen(beginning);
  for (const char *line = text, *end = text + nbytes; line && line + length <= end;) {
    if (memcmp(line, beginning, length) == 0) return line;
    line = memchr(line, '\n', (size_t)(end - line));
    if (line) line++;
  }
  return NULL;
}

// The name that a line of a paragraph defines: after #define, before the parenthesis of a function, before the
// semicolon of a typedef.
static const char *defined_name(const char *line, size_t nbytes, size_t *length) {
  const char *end = line + nbytes, *stop = NULL, *start;
  static const char define[] = "#define ";
  if (nbytes > sizeof define && memcmp(line, define, sizeof define - 1) == 0) {
    start = line + sizeof define - 1;
    for (stop = start; stop < end && is_name_char(*stop); stop++) {
    }
  } else if (nbytes > 8 && memcmp(line, "typedef ", 8) == 0) {
    stop = memrchr(line, ';', nbytes); // the last one: a struct's members have semicolons too
    if (!stop) return NULL;
    for (start = stop; start > line && is_name_char(start[-1]); start--) {
    }
  } else if (nbytes > 7 && (memcmp(line, "static ", 7) == 0 || memcmp(line, "V_INLIN", 7) == 0)) {
    stop = memchr(line, '(', nbytes);
    if (!stop) return NULL;
    for (start = stop; start > line && is_name_char(start[-1]); start--) {
    }
  } else {
    return NULL;
  }
  *length = (size_t)(stop - start);
  return *length ? start : NULL;
}

// The line of the #ifndef that guards the name that the paragraph defines; NULL: no guard.
static const char *find_guard(const char *text, size_t nbytes) {
  const char *guard = find_line(text, nbytes, "#ifndef ");
  const char *line = guard ? strchr(guard, '\n') + 1 : NULL;
  if (!line) return NULL;
  size_t length;
  const char *name = guard + strlen("#ifndef ");
  const char *defined = defined_name(line, strcspn(line, "\n"), &length);
  return defined && strcspn(name, "\n") == length && strncmp(name, defined, length) == 0 ? guard : NULL;
}

static uint32_t hash_of(const char *name, size_t length) {
  uint32_t hash = 0x811C9DC5U;
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)name[i]) * 0x01000193U;
  return hash % HEADS;
}

// Adds the names that a paragraph defines. Only a call counts as a use of a function, because variables may have its
// name.
static void add_names(Vocabulary *v, size_t paragraph) {
  for (const char *line = v->paragraphs[paragraph].text, *end = line + v->paragraphs[paragraph].nbytes; line < end;) {
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    size_t length, line_nbytes = (size_t)((newline ? newline : end) - line);
    const char *name = defined_name(line, line_nbytes, &length);
    if (name) {
      assert(v->nnames < MOST_NAMES);
      uint16_t *head = &v->heads[hash_of(name, length)];
      const bool is_macro = *line == '#';
      v->names[v->nnames] = (Name){name, length, paragraph, is_macro, !is_macro && name[length] == '(', *head};
      *head = (uint16_t)++v->nnames;
    }
    line += line_nbytes + 1;
  }
}

static void cut(Vocabulary *v, const char *text) {
  while (*text) {
    while (*text == '\n') text++;
    if (!*text) break;
    const char *end = strstr(text, "\n\n");
    size_t nbytes = end ? (size_t)(end - text) + 1 : strlen(text);
    assert(v->count < MOST_PARAGRAPHS);
    v->paragraphs[v->count] = (Paragraph){text, nbytes, v->nnames, v->nnames, find_guard(text, nbytes), false, false};
    add_names(v, v->count);
    v->paragraphs[v->count++].end_name = v->nnames;
    text += nbytes;
  }
}

// The first paragraph that defines the name; MOST_PARAGRAPHS: no paragraph.
static size_t first_definition(const Vocabulary *v, const char *name, size_t length) {
  size_t first = MOST_PARAGRAPHS;
  for (size_t n = v->heads[hash_of(name, length)]; n; n = v->names[n - 1].next) {
    const Name *own = &v->names[n - 1];
    if (own->length == length && memcmp(own->text, name, length) == 0 && own->paragraph < first) first = own->paragraph;
  }
  return first;
}

static void find_overridden(Vocabulary *v) {
  for (size_t i = 0; i < v->count; i++) {
    const char *name = v->paragraphs[i].guard ? v->paragraphs[i].guard + strlen("#ifndef ") : NULL;
    if (!name) continue;
    size_t k = first_definition(v, name, strcspn(name, "\n"));
    if (k >= i) continue;
    if (find_line(v->paragraphs[k].text, v->paragraphs[k].nbytes, "#if")) v->paragraphs[i].guard = NULL;
    else v->paragraphs[i].is_overridden = true;
  }
}

// Marks the paragraphs that a text uses, and those that they use in turn. A paragraph is marked before its text is
// searched, so the depth of recursion is the length of the longest chain of definitions.
static void mark_used(Vocabulary *v, const char *text, size_t nbytes) {
  for (const char *at = text, *end = text + nbytes; at < end;) {
    size_t length = 0;
    while (at + length < end && is_name_char(at[length])) length++;
    for (size_t n = length ? v->heads[hash_of(at, length)] : 0; n; n = v->names[n - 1].next) {
      const Name *name = &v->names[n - 1];
      Paragraph *paragraph = &v->paragraphs[name->paragraph];
      bool is_mentioned = name->length == length && memcmp(name->text, at, length) == 0 &&
                          (!name->is_function || (at + length < end && at[length] == '('));
      if (!is_mentioned || paragraph->is_used || paragraph->is_overridden) continue;
      paragraph->is_used = true;
      mark_used(v, paragraph->text, paragraph->nbytes);
    }
    at += length ? length : 1;
  }
}

// All paragraphs for an ISA, with the used ones marked. The caller frees it; it is too large for the stack. NULL: out
// of memory.
static Vocabulary *find_used(const Isa *isa, const Text *used, const Allocator *allocator) {
  Vocabulary *v = allocator_alloc(allocator, sizeof *v);
  if (!v) return NULL;
  *v = (Vocabulary){0};
  cut(v, isa->vocabulary[0]);
  v->nown = v->count;
  if (isa->vocabulary[1]) cut(v, isa->vocabulary[1]);
  for (size_t i = 0; i < NCOMMON; i++) cut(v, common[i]);
  find_overridden(v);
  mark_used(v, text_string(used), used->nbytes);
  return v;
}

// The first line of a paragraph that is no comment.
static const char *code_of(const Paragraph *paragraph) {
  const char *line = paragraph->text;
  while (strncmp(line, "//", 2) == 0) line = strchr(line, '\n') + 1;
  return line;
}

// A paragraph with directives has no name, as conditions around parts of it could not be told from its own.
static void begin_part(const Vocabulary *v, const Paragraph *paragraph, Parts *parts, const Text *out) {
  const Name *name = &v->names[paragraph->first_name];
  if (memchr(paragraph->text, '#', paragraph->nbytes)) part_begin(parts, out, NULL);
  else part_begin_named(parts, out, "%.*s", (int)name->length, name->text);
}

// Prints a paragraph without the lines of its guard. No blank lines are between one-line macros, which are one part.
static void print_paragraph(const Vocabulary *v, const Paragraph *paragraph, bool *is_after_define, Parts *parts,
                            Text *out) {
  const char *text = paragraph->text, *end = paragraph->text + paragraph->nbytes;
  const char *code = paragraph->guard ? paragraph->guard : code_of(paragraph);
  const char *body = paragraph->guard ? strchr(code, '\n') + 1 : code;
  if (paragraph->guard) end -= strlen("#endif\n");
  const bool is_define = code == text && find_line(body, strlen("#define "), "#define ") &&
                         memchr(body, '\n', (size_t)(end - body)) == end - 1;
  if (*is_after_define && !is_define) text_add_string(out, "\n");
  if (!*is_after_define || !is_define) begin_part(v, paragraph, parts, out);
  text_add(out, text, (size_t)(code - text));
  part_end_comment(parts);
  text_add(out, body, (size_t)(end - body));
  if (!is_define) text_add_string(out, "\n");
  *is_after_define = is_define;
}

void vocabulary_add_name(VocabularyNames *names, VocabularyName name) {
  for (const VocabularyName *n = names->items; n < names->items + names->count; n++)
    if (n->is_macro == name.is_macro && n->length == name.length && memcmp(n->text, name.text, name.length) == 0)
      return;
  names->out_of_memory |= !arena_grow(names->arena, &names->items, names->count, &names->capacity, sizeof name);
  if (!names->out_of_memory) names->items[names->count++] = name;
}

bool print_vocabulary(const Isa *isa, const Text *used, VocabularyNames *names, Parts *parts, Text *out) {
  Vocabulary *v = find_used(isa, used, out->allocator);
  bool is_define = false; // the previous paragraph is a one-line macro
  for (size_t i = 0; v && i < v->count; i++) {
    const Paragraph *paragraph = &v->paragraphs[i];
    if (!paragraph->is_used) continue;
    print_paragraph(v, paragraph, &is_define, parts, out);
    for (const Name *n = &v->names[paragraph->first_name]; names && n < &v->names[paragraph->end_name]; n++)
      vocabulary_add_name(names, (VocabularyName){n->text, n->length, n->is_macro});
  }
  out->out_of_memory |= !v || (names && names->out_of_memory);
  allocator_free(out->allocator, v);
  return !out->out_of_memory;
}

bool needs_vocabulary(const Isa *isa, Text *used) {
  Vocabulary *v = find_used(isa, used, used->allocator);
  bool needs = !v || !isa->vocabulary[1];
  for (size_t i = 0; v && i < v->nown; i++) needs |= v->paragraphs[i].is_used;
  used->out_of_memory |= !v;
  allocator_free(used->allocator, v);
  return needs;
}

void print_renames(const VocabularyNames *names, const char *prefix, Text *out) {
  for (const VocabularyName *n = names->items; n < names->items + names->count; n++)
    if (!n->is_macro)
      text_format(out, "#define %.*s %s_%.*s\n", (int)n->length, n->text, prefix, (int)n->length, n->text);
}

void print_macro_renames(const VocabularyNames *names, Parts *parts, Text *out) {
  for (const VocabularyName *n = names->items; n < names->items + names->count; n++) {
    if (n->is_macro) continue;
    part_begin(parts, out, NULL);
    text_format(out, "#define %.*s NG(%.*s)\n\n", (int)n->length, n->text, (int)n->length, n->text);
  }
}

void print_undefinitions(const VocabularyNames *names, Text *out) {
  for (int is_macro = 1; is_macro >= 0; is_macro--)
    for (const VocabularyName *n = names->items; n < names->items + names->count; n++)
      if (n->is_macro == is_macro) text_format(out, "#undef %.*s\n", (int)n->length, n->text);
}
