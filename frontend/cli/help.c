// Breaks lines between words, as late as 80 columns allow. A word that is longer than a line has a line of its own.
#include "frontend/cli/help.h"

#include <string.h>

// Characters, not bytes of UTF-8.
static size_t columns_of(const char *text, size_t length) {
  size_t columns = 0;
  for (size_t i = 0; i < length; i++) columns += ((unsigned char)text[i] & 0xC0U) != 0x80U;
  return columns;
}

void help_print_wrapped(FILE *out, const char *text, size_t column, size_t indent) {
  const size_t width = 80;
  size_t space = 0; // before the next word
  for (const char *word = text; *word;) {
    const size_t length = strcspn(word, " \n"), columns = columns_of(word, length);
    if (space && column + space + columns > width) fprintf(out, "\n%*s", (int)indent, ""), column = indent, space = 0;
    fprintf(out, "%*s%.*s", (int)space, "", (int)length, word);
    column += space + columns;
    word += length;
    space = *word == ' ';
    if (*word == '\n' && word[1]) fprintf(out, "\n%*s", (int)indent, ""), column = indent;
    if (*word) word++;
  }
  fputc('\n', out);
}
