// Reads formulas of named extents.
#include "frontend/named_extent.h"

#include "ir/graph/formula.h"

#include <stdlib.h>
#include <string.h>

// The next operator: " + ", " - " or " * "; NULL: none.
static const char *next_operator(const char *text) {
  for (const char *c = text; (c = strchr(c, ' ')); c++)
    if (c[1] && strchr("+-*", c[1]) && c[2] == ' ') return c;
  return NULL;
}

bool is_formula(const char *text) {
  return next_operator(text);
}

enum { MOST_BYTES = 257, MOST_DIGITS = 15 }; // of a name, of a number

// A factor: the name of a dim, perhaps in quotes of its own, as 2 * "N + 1", or a number. False: none of these.
static bool is_factor(const Names *dims, const char *text, size_t nbytes, Formula *f) {
  char name[MOST_BYTES + 1];
  if (!nbytes || nbytes > MOST_BYTES) return false;
  memcpy(name, text, nbytes);
  name[nbytes] = 0;
  const Dim *dim = names_find(dims, name);
  if (!dim && nbytes > 2 && name[0] == '"' && name[nbytes - 1] == '"') {
    name[nbytes - 1] = 0;
    dim = names_find(dims, name + 1);
    name[nbytes - 1] = '"';
  }
  if (dim) return formula_of((Extent){dim, -1}, f);
  const bool is_number = strspn(name, "0123456789") == nbytes && nbytes <= MOST_DIGITS;
  return is_number && formula_of(EXTENT(strtoll(name, NULL, 10)), f);
}

// Reads a factor up to an operator or to the end: the shortest one, as a name may have operators, too. *end is the
// operator behind it, or NULL; without a factor, the first operator.
static bool read_factor(const Names *dims, const char *text, const char **end, Formula *f) {
  const char *first = *end = next_operator(text);
  while (!is_factor(dims, text, *end ? (size_t)(*end - text) : strlen(text), f)) {
    const bool is_last = !*end || *end - text > MOST_BYTES;
    *end = is_last ? first : next_operator(*end + 1);
    if (is_last) return false;
  }
  return true;
}

NamedResult read_formula(const Names *dims, const char *text, Arena *arena, Extent *e, const char **unknown,
                         size_t *nbytes) {
  const Formula one = {.nterms = 1, .terms = {{.factor = 1}}};
  Formula sum = {0}, product = one, factor;
  int64_t sign = 1;
  *e = EXTENT_UNKNOWN;
  for (const char *c = text, *end;; c = end + 3) {
    const bool is_read = read_factor(dims, c, &end, &factor);
    *unknown = c;
    *nbytes = end ? (size_t)(end - c) : strlen(c);
    if (!is_read) return *nbytes && strspn(c, "0123456789") >= *nbytes ? NAMED_IS_OUT_OF_RANGE : NAMED_IS_UNKNOWN;
    if (!formula_multiply(&product, &factor)) return NAMED_IS_OUT_OF_RANGE;
    if (end && end[1] == '*') continue;
    if (!formula_add(&sum, &product, sign)) return NAMED_IS_OUT_OF_RANGE;
    if (!end) break;
    sign = end[1] == '-' ? -1 : 1;
    product = one;
  }
  if (!formula_extent(arena, &sum, e)) return NAMED_LACKS_MEMORY;
  return extent_is_unknown(*e) ? NAMED_IS_OUT_OF_RANGE : NAMED_IS_READ;
}
