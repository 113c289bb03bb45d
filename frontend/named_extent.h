// Named extents in files: names of dims, and formulas of these and of numbers (ir/graph/formula.h) with operators
// between spaces, as T + 1 or 2 * N * T.
#ifndef NGRAD_FRONTEND_NAMED_EXTENT_H
#define NGRAD_FRONTEND_NAMED_EXTENT_H

#include "frontend/names.h"
#include "ir/graph/graph.h"

typedef enum NamedResult { NAMED_IS_READ, NAMED_IS_UNKNOWN, NAMED_IS_OUT_OF_RANGE, NAMED_LACKS_MEMORY } NamedResult;

bool is_formula(const char *text); // has an operator

// Reads a formula. dims: Dim * by name. *e is in the arena. NAMED_IS_UNKNOWN: *unknown, of *nbytes, is neither a dim's
// name nor a number.
NamedResult read_formula(const Names *dims, const char *text, Arena *arena, Extent *e, const char **unknown,
                         size_t *nbytes);

#endif
