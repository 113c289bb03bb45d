// The vocabulary's text is cut at blank lines into chunks; a chunk goes into the output when something that is there
// already uses a name that it defines. A chunk in #ifndef NAME ... #endif is a default: it is left out where the ISA's
// header defines NAME, stands without the guard where it does not, and keeps it where that is up to the compiler.
#include "backends/codegen/printer.h"

#include <ctype.h>
#include <string.h>

extern const char simd_vector[], simd_rows[], simd_bytes[], simd_math[], simd_random[];

static const char *const common[] = {simd_vector, simd_rows, simd_bytes, simd_math, simd_random}; // to every ISA
enum { NCOMMON = sizeof common / sizeof *common };

enum { MOST_CHUNKS = 1024 };

typedef struct Chunk {
  const char *text;
  size_t nbytes;
  const char *guard; // the line of its #ifndef; NULL: none, or it stays
  bool is_overridden;
  bool is_used;
} Chunk;

static bool is_name_char(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

// The line within text that begins so; NULL: none.
static const char *find_line(const char *text, size_t nbytes, const char *beginning) {
  size_t length = strlen(beginning);
  for (const char *line = text, *end = text + nbytes; line && line + length <= end;) {
    if (memcmp(line, beginning, length) == 0) return line;
    line = memchr(line, '\n', (size_t)(end - line));
    if (line) line++;
  }
  return NULL;
}

// A function is only mentioned by a call: values may have its name.
static bool mentions(const char *text, size_t nbytes, const char *name, size_t length, bool is_function) {
  for (const char *at = text, *end = text + nbytes; at + length <= end; at++) {
    at = memchr(at, *name, (size_t)(end - at));
    if (!at || at + length > end) return false;
    if (memcmp(at, name, length) == 0 && (at == text || !is_name_char(at[-1])) &&
        (at + length == end || (is_function ? at[length] == '(' : !is_name_char(at[length]))))
      return true;
  }
  return false;
}

// The name that a line of a chunk defines: after #define, before the parenthesis of a function, before the
// semicolon of a typedef.
static const char *defined_name(const char *line, size_t nbytes, size_t *length) {
  const char *end = line + nbytes, *stop = NULL, *start;
  static const char define[] = "#define ";
  if (nbytes > sizeof define && memcmp(line, define, sizeof define - 1) == 0) {
    start = line + sizeof define - 1;
    for (stop = start; stop < end && is_name_char(*stop); stop++) {
    }
  } else if (nbytes > 8 && memcmp(line, "typedef ", 8) == 0) {
    stop = memrchr(line, ';', nbytes); // a struct's members have their own
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

// The line of an #ifndef of a name that the chunk itself defines.
static const char *find_guard(const char *text, size_t nbytes) {
  const char *guard = find_line(text, nbytes, "#ifndef ");
  const char *line = guard ? strchr(guard, '\n') + 1 : NULL;
  if (!line) return NULL;
  size_t length;
  const char *name = guard + strlen("#ifndef ");
  const char *defined = defined_name(line, strcspn(line, "\n"), &length);
  return defined && strcspn(name, "\n") == length && strncmp(name, defined, length) == 0 ? guard : NULL;
}

static size_t cut(const char *text, Chunk *chunks, size_t count) {
  while (*text) {
    while (*text == '\n') text++;
    if (!*text) break;
    const char *end = strstr(text, "\n\n");
    size_t nbytes = end ? (size_t)(end - text) + 1 : strlen(text);
    if (count < MOST_CHUNKS) chunks[count++] = (Chunk){text, nbytes, find_guard(text, nbytes), false, false};
    text += nbytes;
  }
  return count;
}

// Whether a chunk defines a name that the text uses.
static bool is_wanted(const Chunk *chunk, const char *text, size_t nbytes) {
  for (const char *line = chunk->text, *end = chunk->text + chunk->nbytes; line < end;) {
    const char *newline = memchr(line, '\n', (size_t)(end - line));
    size_t length, line_nbytes = (size_t)((newline ? newline : end) - line);
    const char *name = defined_name(line, line_nbytes, &length);
    bool is_function = name && *line != '#' && name[length] == '(';
    if (name && mentions(text, nbytes, name, length, is_function)) return true;
    line += line_nbytes + 1;
  }
  return false;
}

static void find_overridden(Chunk *chunks, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const char *name = chunks[i].guard ? chunks[i].guard + strlen("#ifndef ") : NULL;
    size_t length = name ? strcspn(name, "\n") : 0;
    for (size_t k = 0; name && k < i; k++) {
      if (!is_wanted(&chunks[k], name, length)) continue;
      if (find_line(chunks[k].text, chunks[k].nbytes, "#if")) chunks[i].guard = NULL;
      else chunks[i].is_overridden = true;
      break;
    }
  }
}

// Without the lines of its guard. Macros of one line follow each other without a blank one.
static void print_chunk(const Chunk *chunk, bool *is_after_define, Text *out) {
  const char *text = chunk->text, *end = chunk->text + chunk->nbytes;
  if (chunk->guard) end -= strlen("#endif\n");
  const char *body = chunk->guard ? strchr(chunk->guard, '\n') + 1 : text;
  bool is_define = chunk->guard == text || !chunk->guard;
  is_define = is_define && find_line(body, strlen("#define "), "#define ") &&
              memchr(body, '\n', (size_t)(end - body)) == end - 1;
  if (*is_after_define && !is_define) text_add_string(out, "\n");
  if (chunk->guard) text_add(out, text, (size_t)(chunk->guard - text));
  text_add(out, body, (size_t)(end - body));
  if (!is_define) text_add_string(out, "\n");
  *is_after_define = is_define;
}

// All chunks for an ISA, those marked that are used. *nown: how many are of its own header.
static size_t find_used(const Isa *isa, const Text *used, Chunk *chunks, size_t *nown) {
  size_t count = *nown = cut(isa->vocabulary[0], chunks, 0);
  if (isa->vocabulary[1]) count = cut(isa->vocabulary[1], chunks, count);
  for (size_t i = 0; i < NCOMMON; i++) count = cut(common[i], chunks, count);
  find_overridden(chunks, count);
  for (size_t i = 0; i < count; i++)
    chunks[i].is_used = !chunks[i].is_overridden && is_wanted(&chunks[i], text_string(used), used->nbytes);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < count; i++)
      for (size_t j = 0; j < count && !chunks[i].is_used && !chunks[i].is_overridden; j++)
        changed |= chunks[i].is_used = chunks[j].is_used && is_wanted(&chunks[i], chunks[j].text, chunks[j].nbytes);
  }
  return count;
}

bool print_vocabulary(const Isa *isa, const Text *used, Text *out) {
  Chunk chunks[MOST_CHUNKS];
  size_t nown, count = find_used(isa, used, chunks, &nown);
  bool is_define = false; // the chunk before
  for (size_t i = 0; i < count; i++)
    if (chunks[i].is_used) print_chunk(&chunks[i], &is_define, out);
  return !out->out_of_memory;
}

bool needs_vocabulary(const Isa *isa, const Text *used) {
  Chunk chunks[MOST_CHUNKS];
  size_t nown;
  find_used(isa, used, chunks, &nown);
  for (size_t i = 0; i < nown; i++)
    if (chunks[i].is_used) return true;
  return !isa->vocabulary[1];
}

// A line for each name that the text defines, once: of its macros, or of all else.
static void print_for_names(const Text *vocabulary, bool of_macros, const char *format, const char *prefix, Text *out) {
  for (const char *line = text_string(vocabulary), *newline; (newline = strchr(line, '\n')); line = newline + 1) {
    size_t length, before = (size_t)(line - text_string(vocabulary));
    const char *name = defined_name(line, (size_t)(newline - line), &length);
    if (!name || (*line == '#') != of_macros) continue;
    bool is_told = false;
    for (const char *l = text_string(vocabulary), *end; l < text_string(vocabulary) + before && !is_told; l = end + 1) {
      size_t other;
      end = strchr(l, '\n');
      const char *told = (*l == '#') == of_macros ? defined_name(l, (size_t)(end - l), &other) : NULL;
      is_told = told && other == length && memcmp(told, name, length) == 0;
    }
    if (!is_told) text_format(out, format, (int)length, name, prefix, (int)length, name);
  }
}

void print_renames(const Text *vocabulary, const char *prefix, Text *out) {
  print_for_names(vocabulary, false, "#define %.*s %s_%.*s\n", prefix, out);
}

void print_undefinitions(const Text *vocabulary, Text *out) {
  print_for_names(vocabulary, true, "#undef %.*s\n", "", out);
  print_for_names(vocabulary, false, "#undef %.*s\n", "", out);
}
