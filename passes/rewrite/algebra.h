// Values as polynomials: a normal form in which different forms of the same formula are equal.
//
// A polynomial is a sum of terms. A term is a coefficient times powers of symbols. A symbol is one of
//   - a value that is not expanded any further;
//   - the sum of a single term over some axes;
//   - a polynomial of several terms, as the base of a power.
// All axes belong to one tensor, the frame: each symbol has the set of frame axes over which it varies. Sums are
// simplified: E[x^2] - E[x]^2 and E[(x - E[x])^2] are the same polynomial, and the sum of x - E[x] over x's axes is 0.
//
// If reshapes join or split axes, the frame has the common refinement: for shapes [2, 6, 5] and [2, 3, 10] its axes
// have extents 2, 3, 2 and 5. Axes of extent 1 are left out.
//
// Equal polynomials are equal functions of real numbers; they may round differently. A cast is the identity, unless it
// rounds to a type with fewer digits than the frame's type.
//
// Infinities and NaNs do not cancel: (x + z) - z is not x if z is infinite or huge, and x * z / z is not x if z is 0.
// So a value is not expanded (it is a symbol) if expanding it would cancel a factor or a term, drop a sign under a
// root, or multiply by 0. There are two exceptions. Terms with a factor that is a sum over the frame may cancel,
// because norms and their gradients cancel such terms everywhere (the sum of x - E[x] is 0). A divisor that is a
// polynomial of the frame may cancel if the division is exact: the divisor is 0 only for isolated data, for which the
// quotient is NaN. The polynomial records the symbols of cancelled terms in `cancelled`. A value may be replaced only
// by a formula that is infinite or NaN wherever one of these symbols is (norm_match.c).
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

// For each axis of a value, the mask of the consecutive frame axes that the axis consists of; 0: an axis of extent 1.
typedef struct Labels {
  int rank;
  uint16_t axes[MAX_RANK];
} Labels;

typedef struct Symbol {
  const Value *value; // a value that is not expanded, with axes `labels`; NULL: another kind of symbol
  Labels labels;
  uint32_t reduced; // not 0: the symbol is the sum of `base`, a single term, over these axes; 0: the symbol is `base`,
                    // several terms
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
  const Value *frame; // the tensor with the axes; never expanded
  const Value *data;  // if the frame is a widening cast, the value before it; else the frame
  int rank;
  Extent extent[MOST_FRAME_AXES]; // by frame axis
  double tolerance;               // relative; coefficients that differ by less are equal
  int depth;                      // of nested evaluations; 0: outside of evaluations, the caller combines polynomials
  Symbol symbols[MOST_SYMBOLS];
  uint32_t nsymbols;
  Evaluated evaluated[MOST_EVALUATED]; // results so far, for reuse
  uint32_t nevaluated;
  bool failed; // a limit was exceeded, a term may not cancel, or out of memory: later results are meaningless
  bool out_of_memory;
} Algebra;

void algebra_init(Algebra *a, Arena *scratch, const Value *frame);

// Splits the frame's axes so that each axis of this shape consists of whole frame axes. The shape has as many elements
// as the frame. Changes nothing if the extents do not allow a split.
void algebra_split_axes(Algebra *a, const Shape *shape);
uint32_t algebra_axes(const Algebra *a); // the mask of all frame axes
// The number of elements along these axes; with open dims, a number that no literal equals (see
// polynomial.c).
double algebra_count(const Algebra *a, uint32_t axes);

// Whether results of the operator are expanded; if not, they are symbols.
bool operator_is_algebraic(OperatorId op);

// The polynomial of a value whose axes are the frame axes in `labels`. A value that exceeds a limit is a symbol.
Polynomial algebra_evaluate(Algebra *a, const Value *v, const Labels *labels);

// labels_of_axes: labels of a value with exactly the frame axes in the mask, in the frame's order, some perhaps joined
// into one axis; false: the extents do not match. labels_of_operand: labels of an operand that is broadcast, by numpy's
// rules, to a result with these labels.
bool labels_of_axes(const Algebra *a, uint32_t axes, const Value *v, Labels *labels);
Labels labels_of_frame(const Algebra *a);
Labels labels_of_operand(const Value *operand, const Labels *result);
bool labels_equal(const Labels *a, const Labels *b);
uint32_t labels_axes(const Labels *labels); // the union of the masks

// polynomial.c
Polynomial polynomial_fail(Algebra *a);                                        // sets a->failed; 0
Polynomial polynomial_of_symbol(Algebra *a, const Symbol *symbol, int halves); // symbol^(halves / 2)
Polynomial polynomial_number(Algebra *a, double number);
Polynomial polynomial_sum(Algebra *a, Polynomial p, Polynomial q, double factor); // p + factor * q
Polynomial polynomial_product(Algebra *a, Polynomial p, Polynomial q);
Polynomial polynomial_power(Algebra *a, Polynomial p, int halves);     // p^(halves / 2)
Polynomial polynomial_reduce(Algebra *a, Polynomial p, uint32_t axes); // the sum over these frame axes
// p / q by long division; fails if there is a remainder. Records the symbols of q as cancelled.
Polynomial polynomial_quotient(Algebra *a, Polynomial p, Polynomial q);
// Whether all terms have the frame, or a sum over the frame, as a factor: the polynomial is then 0 only for isolated
// data.
bool polynomial_depends_on_frame(const Algebra *a, const Polynomial *p);
bool polynomial_equals(Algebra *a, Polynomial p, Polynomial q);
bool polynomial_has_cancelled(const Polynomial *p, uint32_t symbol);
uint32_t monomial_axes(const Algebra *a, const PolynomialTerm *m);

#endif
