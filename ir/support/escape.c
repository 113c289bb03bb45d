// A table with one row for each sink: the characters to escape, and the function that escapes them.
#include "ir/support/escape.h"

#include <inttypes.h>
#include <string.h>

// Characters

uint32_t escape_next(const char **text, const char *end) {
  static const uint32_t least[] = {0, 0x80, 0x800, 0x10000}; // by continuation bytes: the least code point not overlong
  const unsigned char *c = (const unsigned char *)*text;
  const uint32_t stray = ESCAPE_STRAY + *c;
  const int nmore = *c < 0x80 ? 0 : *c >= 0xC0 && *c < 0xE0 ? 1 : *c >= 0xE0 && *c < 0xF0 ? 2 : *c >= 0xF0 ? 3 : -1;
  (*text)++;
  if (nmore <= 0) return nmore ? stray : *c;
  uint32_t character = *c & (0x3FU >> nmore);
  if (*c >= 0xF8 || end - (const char *)c <= nmore) return stray;
  for (int i = 1; i <= nmore; i++) {
    if ((c[i] & 0xC0U) != 0x80U) return stray;
    character = character << 6 | (c[i] & 0x3FU);
  }
  if (character < least[nmore] || character > 0x10FFFF || (character >= 0xD800 && character < 0xE000)) return stray;
  *text += nmore;
  return character;
}

// Control characters, Unicode's Default_Ignorable_Code_Point and format characters, line and paragraph separators, and
// noncharacters.
static const uint32_t invisible[][2] = {
    {0, 0x1F},        {0x7F, 0x9F},       {0xAD, 0xAD},       {0x34F, 0x34F},     {0x600, 0x605},
    {0x61C, 0x61C},   {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x115F, 0x1160},   {0x17B4, 0x17B5},
    {0x180B, 0x180F}, {0x200B, 0x200F},   {0x2028, 0x202E},   {0x2060, 0x206F},   {0x3164, 0x3164},
    {0xFDD0, 0xFDEF}, {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},
    {0xFFFE, 0xFFFF}, {0x110BD, 0x110BD}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

bool escape_is_visible(uint32_t character) {
  if (character >= ESCAPE_STRAY || (character & 0xFFFE) == 0xFFFE) return false;
  for (size_t i = 0; i < sizeof invisible / sizeof *invisible; i++)
    if (character >= invisible[i][0] && character <= invisible[i][1]) return false;
  return true;
}

// Sinks

typedef struct SinkRow {
  const char *quote;                          // written before and after the text
  const char *special;                        // ASCII characters that must be escaped
  bool is_ascii;                              // every character beyond ASCII must be escaped, too
  void (*add)(Text *out, uint32_t character); // writes an escaped character
} SinkRow;

static void add_underscore(Text *out, uint32_t character) {
  (void)character;
  text_add_string(out, "_");
}

static void add_question_mark(Text *out, uint32_t character) {
  text_add_string(out, character == '\t' ? " " : "?");
}

// The UTF-8 bytes of a character, each in this format.
static void add_bytes(Text *out, uint32_t character, const char *format) {
  const uint32_t lead = character < 0x800 ? 0xC0 : character < 0x10000 ? 0xE0 : 0xF0;
  const int nmore = character < 0x80 || character >= ESCAPE_STRAY ? 0
                    : character < 0x800                           ? 1
                    : character < 0x10000                         ? 2
                                                                  : 3;
  text_format(out, format, (unsigned)(nmore ? lead | character >> (6 * nmore) : character & 0xFFU));
  for (int i = nmore - 1; i >= 0; i--) text_format(out, format, (unsigned)(0x80U | (character >> (6 * i) & 0x3FU)));
}

static void add_code(Text *out, uint32_t character) {
  add_bytes(out, character, "_%02x");
}

static void add_octal(Text *out, uint32_t character) {
  add_bytes(out, character, "\\%03o");
}

// Graphviz expands HTML entities in strings, so an ampersand is escaped as well.
static void add_for_dot(Text *out, uint32_t character) {
  if (character == '&') text_add_string(out, "&amp;");
  else if (character == '"' || character == '\\') text_format(out, "\\%c", (int)character);
  else add_question_mark(out, character);
}

static void add_for_yaml(Text *out, uint32_t character) {
  if (character >= ESCAPE_STRAY) character -= ESCAPE_STRAY;
  if (character == '"' || character == '\\') text_format(out, "\\%c", (int)character);
  else text_format(out, character > 0xFFFF ? "\\U%08" PRIX32 : "\\u%04" PRIX32, character);
}

static void add_entity(Text *out, uint32_t character) {
  if (character < 0x80 && strchr("&<>\"'", (int)character)) text_format(out, "&#%u;", (unsigned)character);
  else add_question_mark(out, character);
}

static void add_for_make(Text *out, uint32_t character) {
  if (character < 0x80) text_format(out, "%c%c", character == '$' ? '$' : '\\', (int)character);
  else add_bytes(out, character, "%c");
}

// A character beyond U+FFFF is a pair of surrogates.
static void add_for_json(Text *out, uint32_t character) {
  if (character >= ESCAPE_STRAY) text_add_string(out, "?");
  else if (character < 0x10000) text_format(out, "\\u%04" PRIx32, character);
  else text_format(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD7C0 + (character >> 10), 0xDC00 | (character & 0x3FF));
}

// In C comments, a slash could end the comment or begin another, and a question mark could begin a trigraph. Quotes
// would confuse the line wrapping (wrap.c), and tools that search for calls would take an opening parenthesis for a
// call.
static const SinkRow rows[NSINKS] = {
    [SINK_IDENTIFIER] = {"", " !\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~", true, add_code},
    [SINK_COMMENT] = {"", "/\\?(\"", true, add_underscore},
    [SINK_STRING] = {"\"", "\"\\?", true, add_octal},
    [SINK_DOT] = {"", "\"\\&", false, add_for_dot},
    [SINK_YAML] = {"\"", "\"\\", false, add_for_yaml},
    [SINK_HTML] = {"", "&<>\"'", false, add_entity},
    [SINK_TERMINAL] = {"", "", false, add_question_mark},
    [SINK_MAKEFILE] = {"", " #:$", false, add_for_make},
    [SINK_JSON] = {"\"", "\"\\<>&'", true, add_for_json},
};

void text_add_escaped(Text *out, Sink sink, const char *text, size_t nbytes) {
  const SinkRow *row = &rows[sink];
  const char *end = text + nbytes;
  text_add_string(out, row->quote);
  while (text < end) {
    const char *begin = text;
    const uint32_t character = escape_next(&text, end);
    const bool is_special = character < 0x80 && character && strchr(row->special, (int)character);
    const bool is_plain = !is_special && escape_is_visible(character) && (character < 0x80 || !row->is_ascii);
    if (is_plain) text_add(out, begin, (size_t)(text - begin));
    else row->add(out, character);
  }
  text_add_string(out, row->quote);
}

void text_add_user_string(Text *out, Sink sink, const char *text) {
  text_add_escaped(out, sink, text, strlen(text));
}

bool text_is_for_makefile(const char *text) {
  for (const char *c = text; *c; c++)
    if ((unsigned char)*c < 0x20 || *c == 0x7F) return false;
  return !strpbrk(text, ";=|\\%");
}
