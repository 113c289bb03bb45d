// Reads named extents: names of dims, and formulas, as T + 1 or 2 * N * T, of such names and numbers with operators
// between spaces.
#include "ir/graph/formula.h"
#include "frontend/yaml/reader.h"
#include "frontend/yaml/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The next operator: " + ", " - " or " * "; NULL: none.
static const char *next_operator(const char *text) {
  for (const char *c = text; (c = strchr(c, ' ')); c++)
    if (c[1] && strchr("+-*", c[1]) && c[2] == ' ') return c;
  return NULL;
}

// A factor: a number, or the name of a dim. False: neither.
static bool read_factor(const Reader *r, const char *text, size_t nbytes, Formula *f) {
  char name[MAX_NAME_BYTES + 1];
  enum { MOST_DIGITS = 15 };
  if (!nbytes || nbytes > MAX_NAME_BYTES) return false;
  memcpy(name, text, nbytes);
  name[nbytes] = 0;
  const Dim *dim = names_find(&r->dims, name);
  if (dim) return formula_of((Extent){dim, -1}, f);
  const bool is_number = strspn(name, "0123456789") == nbytes && nbytes <= MOST_DIGITS;
  return is_number && formula_of(EXTENT(strtoll(name, NULL, 10)), f);
}

static NamedResult read_formula(Reader *r, const Yaml *y, Extent *e, char unknown[DESCRIPTION_BYTES]) {
  const Formula one = {.nterms = 1, .terms = {{.factor = 1}}};
  Formula sum = {0}, product = one, factor;
  int64_t sign = 1;
  for (const char *c = y->text, *end = next_operator(c);; c = end + 3, end = next_operator(c)) {
    const size_t nbytes = end ? (size_t)(end - c) : strlen(c);
    snprintf(unknown, DESCRIPTION_BYTES, "%.*s", (int)(nbytes < DESCRIPTION_BYTES ? nbytes : DESCRIPTION_BYTES), c);
    if (!read_factor(r, c, nbytes, &factor)) return NAMED_IS_UNKNOWN;
    if (!formula_multiply(&product, &factor)) return NAMED_IS_OUT_OF_RANGE;
    if (end && end[1] == '*') continue;
    if (!formula_add(&sum, &product, sign)) return NAMED_IS_OUT_OF_RANGE;
    if (!end) break;
    sign = end[1] == '-' ? -1 : 1;
    product = one;
  }
  if (!formula_extent(&r->graph->arena, &sum, e)) return error_out_of_memory(r->d), NAMED_LACKS_MEMORY;
  return extent_is_unknown(*e) ? NAMED_IS_OUT_OF_RANGE : NAMED_IS_READ;
}

NamedResult read_named_extent(Reader *r, const Yaml *y, Extent *e, char unknown[DESCRIPTION_BYTES]) {
  *e = EXTENT_UNKNOWN;
  const bool is_formula = y->is_plain && next_operator(y->text);
  const NamedResult result = is_formula ? read_formula(r, y, e, unknown) : NAMED_IS_UNKNOWN;
  const Dim *dim = y->count <= MAX_NAME_BYTES ? names_find(&r->dims, y->text) : NULL;
  if (!is_formula) snprintf(unknown, DESCRIPTION_BYTES, "%s", y->text);
  if (result != NAMED_IS_UNKNOWN || !dim) return result;
  *e = (Extent){dim, -1};
  return NAMED_IS_READ;
}
