// Breaks lines of C that are too long to read. A line is broken at a space: where few parentheses are open, preferably
// after a comma or beside an operator, and as late as fits. Strings are not broken. The next line continues a comment
// as a comment; a directive gets a backslash.
#include "backends/codegen/print/printer.h"

#include <string.h>

enum { WIDTH = 120, INDENT = 4 };

typedef struct Place { // a space at which a line may be broken
  size_t nbytes;       // bytes before the space; 0: there is no such space
  bool is_in_comment;
} Place;

// How bad a break at the space is, not counting open parentheses; 0 is best.
static int badness(const char *space) {
  const char before = space[-1], *after = space + 1;
  if (strchr(",;{", before)) return 0;
  if (strchr("?:", *after) || strncmp(after, "&&", 2) == 0 || strncmp(after, "||", 2) == 0) return 1;
  return before == '=' ? 2 : 3;
}

// The best break between `least` and `most` bytes; if there is none, the first break after `most`.
static Place find_place(const char *line, size_t nbytes, size_t least, size_t most, bool is_in_comment) {
  Place best = {0, false};
  int depth = 0, best_score = 0;
  bool is_in_string = false;
  for (size_t i = 0; i < nbytes && (i <= most || !best.nbytes); i++) {
    const char c = line[i];
    if (is_in_string && c == '\\') i++;
    else if (c == '"' && !is_in_comment) is_in_string = !is_in_string;
    else if (c == '/' && i + 1 < nbytes && line[i + 1] == '/' && !is_in_string) is_in_comment = true;
    if (!is_in_string && !is_in_comment)
      depth += (c == '(' || c == '{' || c == '[') - (c == ')' || c == '}' || c == ']');
    if (c != ' ' || is_in_string || i < least) continue;
    const int score = is_in_comment ? 4 * depth : 4 * depth + badness(line + i);
    if (best.nbytes && score > best_score) continue;
    best = (Place){i, is_in_comment};
    best_score = score;
  }
  return best;
}

static void add_line(Text *out, const char *line, size_t nbytes) {
  const size_t indent = strspn(line, " ");
  const bool is_directive = nbytes && (line[indent] == '#' || line[nbytes - 1] == '\\'); // or within one
  size_t lead = 0; // columns before the rest of the line
  Place place = {0, false};
  while (lead + nbytes > WIDTH) {
    const size_t most = (size_t)WIDTH - (is_directive ? 2 : 0) - lead, begin = place.nbytes ? 1 : indent + 3;
    const bool is_in_comment = place.is_in_comment;
    place = find_place(line, nbytes, most / 3, most, is_in_comment);
    if (!place.nbytes || place.nbytes > most) place = find_place(line, nbytes, begin, most, is_in_comment);
    if (!place.nbytes) break;
    text_add(out, line, place.nbytes);
    line += place.nbytes + 1;
    nbytes -= place.nbytes + 1;
    lead = indent + (place.is_in_comment ? strlen("// ") : (size_t)INDENT);
    text_format(out, "%s\n%*s", is_directive ? " \\" : "", (int)lead, place.is_in_comment ? "// " : "");
  }
  text_add(out, line, nbytes);
}

bool text_move_wrapped(Text *out, Text *from) {
  for (const char *line = text_string(from), *end; *line; line = end + 1) {
    end = line + strcspn(line, "\n");
    add_line(out, line, (size_t)(end - line));
    text_add_string(out, "\n");
    if (!*end) break; // the text was cut short: out of memory
  }
  const bool ok = !from->out_of_memory && !out->out_of_memory;
  text_deinit(from);
  return ok;
}
