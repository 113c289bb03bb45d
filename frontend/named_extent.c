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

// A factor: a number, or the name of a dim. False: neither.
static bool read_factor(const Names *dims, const char *text, size_t nbytes, Formula *f) {
  enum { MOST_BYTES = 255, MOST_DIGITS = 15 }; // of a name, of a number
  char name[MOST_BYTES + 1];
  if (!nbytes || nbytes > MOST_BYTES) return false;
  memcpy(name, text, nbytes);
  name[nbytes] = 0;
  const Dim *dim = names_find(dims, name);
  if (dim) return formula_of((Extent){dim, -1}, f);
  const bool is_number = strspn(name, "0123456789") == nbytes && nbytes <= MOST_DIGITS;
  return is_number && formula_of(EXTENT(strtoll(name, NULL, 10)), f);
}

NamedResult read_formula(const Names *dims, const char *text, Arena *arena, Extent *e, const char **unknown,
                         size_t *nbytes) {
  const Formula one = {.nterms = 1, .terms = {{.factor = 1}}};
  Formula sum = {0}, product = one, factor;
  int64_t sign = 1;
  *e = EXTENT_UNKNOWN;
  for (const char *c = text, *end = next_operator(c);; c = end + 3, end = next_operator(c)) {
    *unknown = c;
    *nbytes = end ? (size_t)(end - c) : strlen(c);
    if (!read_factor(dims, c, *nbytes, &factor))
      return *nbytes && strspn(c, "0123456789") >= *nbytes ? NAMED_IS_OUT_OF_RANGE : NAMED_IS_UNKNOWN;
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
