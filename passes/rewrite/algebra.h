// Values as polynomials: what a value is, whatever the order of its operations.
//
// A polynomial is a sum of monomials, a coefficient times powers of symbols. A symbol is a value that is not looked
// into, a sum of a monomial over axes, or a polynomial of several terms of which a power was taken. Everything is said
// in the axes of one tensor, the frame: a symbol knows over which of them it varies. So E[x^2] - E[x]^2 and
// E[(x - E[x])^2] are the same polynomial, and a sum of x - E[x] over x's axes is none.
//
// Where reshapes join or split the tensor's axes, the frame's are their parts: of [2, 6, 5] and [2, 3, 10] they are
// 2, 3, 2 and 5. It has none of extent 1.
//
// Equal polynomials are equal functions of real numbers. Roundings differ: a cast is nothing, unless what it rounds to
// has less than the frame.
//
// Infinities and NaNs do not cancel: (x + z) - z is no x where z is infinite or huge, nor is x * z / z where z is 0. So
// a value whose evaluation would lose a factor, a term, a sign under a root or a multiplication by 0 is a symbol by
// itself. One kind of term may cancel, for norms and their gradients are full of it (x - E[x] adds up to 0): a multiple
// of a sum of the frame. The polynomial then names the symbols of such terms as lost; who replaces the value must see
// to it that the replacement is not finite either where one of them is not (norm_match.c).
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
  Factor factors[MOST_FACTORS]; // by symbol, exponents not 0
} PolynomialTerm;

typedef struct SymbolSet {
  uint64_t words[MOST_SYMBOLS / 64];
} SymbolSet;

typedef struct Polynomial {
  uint32_t nterms; // 0: the number 0
  PolynomialTerm *terms;
  SymbolSet lost; // symbols of terms that cancelled while the value was evaluated
} Polynomial;

// Where a value's axes are in the frame: neighbouring axes of it, as a mask; 0: an axis of extent 1, which is nowhere.
typedef struct Labels {
  int rank;
  uint16_t axes[MAX_RANK];
} Labels;

typedef struct Symbol {
  const Value *value; // a value as it is, at `labels`; NULL: another kind
  Labels labels;
  uint32_t reduced; // over these axes, the sum of `base`'s only term; 0: base itself, of several terms
  Polynomial base;
  uint32_t axes; // that it varies over
} Symbol;

typedef struct Evaluated {
  const Value *value;
  Labels labels;
  Polynomial p;
} Evaluated;

typedef struct Algebra {
  Arena *scratch;
  const Value *frame; // the tensor whose axes are spoken of; never looked into
  const Value *data;  // what was widened to be the frame; the frame itself, if nothing was
  int rank;
  Extent extent[MOST_FRAME_AXES]; // of the frame's axes
  double tolerance;               // relative: coefficients that differ by less are equal
  int depth;                      // of the evaluation
  Symbol symbols[MOST_SYMBOLS];
  uint32_t nsymbols;
  Evaluated evaluated[MOST_EVALUATED]; // so far
  uint32_t nevaluated;
  bool failed; // too much of something, or out of memory: what was computed since means nothing
  bool out_of_memory;
} Algebra;

void algebra_init(Algebra *a, Arena *scratch, const Value *frame);

// Splits the frame's axes where this shape of as many elements has a border between two axes, if it can be.
void algebra_split_axes(Algebra *a, const Shape *shape);
uint32_t algebra_axes(const Algebra *a); // all of them
double algebra_count(const Algebra *a,
                     uint32_t axes); // elements along these, or what stands for a number of them that is open

// Whether a value made by it is looked into.
bool operator_has_meaning(OperatorId op);

// A value whose axis i is the frame's axis labels[i]; what is too much to be looked into is a symbol.
Polynomial algebra_evaluate(Algebra *a, const Value *v, const Labels *labels);

// The labels of a value that has just the axes in the mask, in their order and joined or not; of the frame itself; and
// of an operand that numpy would broadcast to a value with these. False: it has other extents.
bool labels_of_axes(const Algebra *a, uint32_t axes, const Value *v, Labels *labels);
Labels labels_of_frame(const Algebra *a);
Labels labels_of_operand(const Value *operand, const Labels *result);
bool labels_equal(const Labels *a, const Labels *b);
uint32_t labels_axes(const Labels *labels); // all that it varies over

Polynomial polynomial_number(Algebra *a, double number);
Polynomial polynomial_sum(Algebra *a, Polynomial p, Polynomial q, double factor); // p + factor * q
Polynomial polynomial_product(Algebra *a, Polynomial p, Polynomial q);
Polynomial polynomial_power(Algebra *a, Polynomial p, int halves);
Polynomial polynomial_reduce(Algebra *a, Polynomial p, uint32_t axes); // summed over them
bool polynomial_equals(Algebra *a, Polynomial p, Polynomial q);
bool polynomial_has_lost(const Polynomial *p, uint32_t symbol);
uint32_t monomial_axes(const Algebra *a, const PolynomialTerm *m);

#endif
