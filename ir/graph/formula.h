// Formulas of extents: sums of products of named extents, as T + 1 or 2 * N * T.
//
// An extent that follows from named extents is a Dim with a formula, whose name is the formula's text. Formulas have
// one normal form, so equal extents have equal formulas: terms are sorted from the highest degree to the lowest, then
// by the names of their dims, and no factor is 0. The number of terms, their degree and their factors are bounded.
#ifndef NGRAD_IR_GRAPH_FORMULA_H
#define NGRAD_IR_GRAPH_FORMULA_H

#include "ir/graph/graph.h"

enum { MAX_TERMS = 8, MAX_DEGREE = 8 };

// factor * dims[0] * ... * dims[degree - 1], the dims sorted by name. The factor is below MAX_ELEMENTS, with its sign.
struct FormulaTerm {
  int64_t factor;
  uint32_t degree;
  const Dim *dims[MAX_DEGREE]; // without formulas of their own
};

struct Formula {
  uint32_t nterms; // 0: the number 0
  FormulaTerm terms[MAX_TERMS];
};

// Each returns false, and leaves *f undefined, if the result is no formula within the bounds.
bool formula_of(Extent e, Formula *f); // also false for the unknown extent
bool formula_add(Formula *f, const Formula *g, int64_t times);
bool formula_multiply(Formula *f, const Formula *g);
bool formula_divide(Formula *f, const Formula *g); // exactly: there is no remainder for any value of the dims
bool formula_floor(Formula *f, int64_t divisor); // the quotient rounded down: only the number in f may have a remainder

// Whether the formula is a number; sets *number.
bool formula_is_number(const Formula *f, int64_t *number);
bool formula_equals(const Formula *f, const Formula *g);
// The value if each dim is value_of(dim, context); -1 if that is negative, or MAX_ELEMENTS or more, or if a dim's is.
int64_t terms_value(const FormulaTerm *terms, uint32_t nterms, int64_t (*value_of)(const Dim *, const void *context),
                    const void *context);

// The index of the first term that is not subtracted, with which texts begin, as in 8 - T; nterms: all are.
uint32_t terms_first_added(const FormulaTerm *terms, uint32_t nterms);

// Prints the terms as a formula, with `mark` on both sides of each name, as T + 1.
void terms_print(const FormulaTerm *terms, uint32_t nterms, const char *mark, Text *out);

// The extent of the formula: a number, a dim, or a new dim with a formula; unknown if a number is out of range, if no
// factor is positive, or if the name would be too long. False: out of memory.
bool formula_extent(Arena *arena, const Formula *f, Extent *e);

// The extent with each dim replaced by the extent to(dim, context), as far as these are known. False: out of memory.
bool extent_substitute(Arena *arena, Extent e, Extent (*to)(const Dim *, const void *context), const void *context,
                       Extent *result);

// An item of an attribute that was a formula, and is negative: no operator takes it.
#define NO_NUMBER INT64_MIN

#endif
