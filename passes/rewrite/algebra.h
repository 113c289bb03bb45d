// Values as polynomials: a normal form in which different spellings of the same formula are equal.
//
// A polynomial is a sum of terms; a term is a coefficient times powers of symbols. A symbol is one of
//   - a value that is not expanded any further;
//   - the sum of a term over some axes;
//   - a polynomial of several terms, when a power of it is taken.
// All axes are those of one tensor, the frame: each symbol has the set of frame axes over which it varies. Sums are
// simplified: E[x^2] - E[x]^2 and E[(x - E[x])^2] are the same polynomial, and the sum of x - E[x] over x's axes is 0.
//
// Where reshapes join or split axes, the frame has their common parts: for shapes [2, 6, 5] and [2, 3, 10] its axes are
// 2, 3, 2 and 5. Axes of extent 1 are left out.
//
// Equal polynomials are equal functions of real numbers; they may round differently. A cast is the identity, unless it
// rounds to a type with fewer digits than the frame's.
//
// Infinities and NaNs do not cancel: (x + z) - z is not x if z is infinite or huge, nor is x * z / z if z is 0. So a
// value is a symbol by itself if expanding it would cancel a factor or a term, drop a sign under a root, or multiply by
// 0. The exceptions are terms with a factor that is a sum over the frame, since norms and their gradients cancel them
// everywhere (the sum of x - E[x] is 0), and a divisor that is a polynomial of the frame, if it divides exactly: it is
// 0 for single data only, for which the quotient is NaN. The polynomial records the symbols of such terms in
// `cancelled`. A value may be replaced only by a formula that is infinite or NaN, too, wherever one of these symbols is
// (norm_match.c).
#ifndef NGRAD_PASSES_REWRITE_ALGEBRA_H
#define NGRAD_PASSES_REWRITE_ALGEBRA_H

#include "ir/operators/operator.h"

enum { MOST_FRAME_AXES = 16, MOST_TERMS = 32, MOST_FACTORS = 8, MOST_SYMBOLS = 128, MOST_EVALUATED = 256 };

typedef struct Factor {
  uint16_t symbol;
  int16_t halves; // the exponent times 2
} Factor;

typedef struct PolynomialTerm {
  double coefficient;
  uint32_t nfactors;
  Factor factors[MOST_FACTORS]; // sorted by symbol; exponents are not 0
} PolynomialTerm;

typedef struct SymbolSet {
  uint64_t words[MOST_SYMBOLS / 64];
} SymbolSet;

typedef struct Polynomial {
  uint32_t nterms; // 0: the number 0
  PolynomialTerm *terms;
  SymbolSet cancelled; // symbols of terms that cancelled while the value was evaluated
} Polynomial;

// For each axis of a value, the mask of the consecutive frame axes that it consists of; 0: an axis of extent 1.
typedef struct Labels {
  int rank;
  uint16_t axes[MAX_RANK];
} Labels;

typedef struct Symbol {
  const Value *value; // a value that is not expanded, at `labels`; NULL: another kind
  Labels labels;
  uint32_t reduced; // not 0: the symbol is the sum of `base`, one term, over these axes; 0: it is `base`, several terms
  Polynomial base;
  uint32_t axes; // frame axes over which the symbol varies
} Symbol;

typedef struct Evaluated {
  const Value *value;
  Labels labels;
  Polynomial p;
} Evaluated;

typedef struct Algebra {
  Arena *scratch;
  const Value *frame; // the tensor that gives the axes; never expanded
  const Value *data;  // if the frame is a widening cast, the value before it; else the frame
  int rank;
  Extent extent[MOST_FRAME_AXES]; // of the frame's axes
  double tolerance;               // relative; coefficients that differ by less are equal
  int depth;                      // of nested evaluations; 0: the caller combines polynomials itself
  Symbol symbols[MOST_SYMBOLS];
  uint32_t nsymbols;
  Evaluated evaluated[MOST_EVALUATED]; // results so far, for reuse
  uint32_t nevaluated;
  bool failed; // a limit was exceeded, a term may not cancel, or out of memory: later results are meaningless
  bool out_of_memory;
} Algebra;

void algebra_init(Algebra *a, Arena *scratch, const Value *frame);

// Splits the frame's axes so that each axis of this shape, which has as many elements, consists of whole frame axes.
// Changes nothing if the extents do not allow that.
void algebra_split_axes(Algebra *a, const Shape *shape);
uint32_t algebra_axes(const Algebra *a); // the mask of all frame axes
// The number of elements along these axes. For open dims a number that equals no literal's (see algebra.c).
double algebra_count(const Algebra *a, uint32_t axes);

// Whether the results of the operator are expanded, instead of being symbols.
bool operator_is_algebraic(OperatorId op);

// The polynomial of a value whose axes are the frame axes in `labels`. A value that exceeds a limit is a symbol.
Polynomial algebra_evaluate(Algebra *a, const Value *v, const Labels *labels);

// Labels: of a value that has just the frame axes in the mask, in their order, some perhaps joined into one axis
// (false: its extents do not match); of the frame; and of an operand that is broadcast, by numpy's rules, to a result
// with these labels.
bool labels_of_axes(const Algebra *a, uint32_t axes, const Value *v, Labels *labels);
Labels labels_of_frame(const Algebra *a);
Labels labels_of_operand(const Value *operand, const Labels *result);
bool labels_equal(const Labels *a, const Labels *b);
uint32_t labels_axes(const Labels *labels); // the union of its masks

Polynomial polynomial_number(Algebra *a, double number);
Polynomial polynomial_sum(Algebra *a, Polynomial p, Polynomial q, double factor); // p + factor * q
Polynomial polynomial_product(Algebra *a, Polynomial p, Polynomial q);
Polynomial polynomial_power(Algebra *a, Polynomial p, int halves);     // p^(halves / 2)
Polynomial polynomial_reduce(Algebra *a, Polynomial p, uint32_t axes); // the sum over these frame axes
bool polynomial_equals(Algebra *a, Polynomial p, Polynomial q);
bool polynomial_has_cancelled(const Polynomial *p, uint32_t symbol);
uint32_t monomial_axes(const Algebra *a, const PolynomialTerm *m);

#endif
