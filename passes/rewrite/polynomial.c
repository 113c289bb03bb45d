// Arithmetic of polynomials.
#include "passes/rewrite/algebra.h"

#include "ir/graph/open_dims.h"

#include <math.h>
#include <string.h>

static const Polynomial none;

// The number that stands for an extent in polynomials. An open dim counts as its hint times an irrational factor,
// different for each dim. So it never equals a literal in the graph by chance, and products of dims are products of
// their numbers.
static double extent_count(Extent e) {
  static const double primes[MAX_OPEN_DIMS] = {2, 3, 5, 7, 11, 13, 17, 19};
  double count = (double)extent_value(e);
  for (size_t i = 0; i < MAX_OPEN_DIMS; i++)
    count *= pow(1 + sqrt(primes[i]) / 16, monomial_exponent(extent_monomial(e), i));
  return count;
}

double algebra_count(const Algebra *a, uint32_t axes) {
  double count = 1;
  for (int i = 0; i < a->rank; i++)
    if (axes >> i & 1) count *= extent_count(a->extent[i]);
  return count;
}

Polynomial polynomial_fail(Algebra *a) {
  a->failed = true;
  return none;
}

// Symbols

bool labels_equal(const Labels *a, const Labels *b) {
  return a->rank == b->rank && memcmp(a->axes, b->axes, (size_t)a->rank * sizeof *a->axes) == 0;
}

static bool is_same_symbol(Algebra *a, const Symbol *s, const Symbol *t) {
  if (s->value || t->value) return s->value == t->value && labels_equal(&s->labels, &t->labels);
  return s->reduced == t->reduced && s->base.nterms == t->base.nterms && polynomial_equals(a, s->base, t->base);
}

Polynomial polynomial_of_symbol(Algebra *a, const Symbol *symbol, int halves) {
  uint32_t i = 0;
  while (i < a->nsymbols && !is_same_symbol(a, &a->symbols[i], symbol)) i++;
  if (i == MOST_SYMBOLS) return polynomial_fail(a);
  if (i == a->nsymbols) a->symbols[a->nsymbols++] = *symbol;
  Polynomial p = polynomial_number(a, 1);
  if (a->failed) return none;
  p.terms[0].nfactors = 1;
  p.terms[0].factors[0] = (Factor){(uint16_t)i, (int16_t)halves};
  return p;
}

uint32_t monomial_axes(const Algebra *a, const PolynomialTerm *m) {
  uint32_t axes = 0;
  for (uint32_t i = 0; i < m->nfactors; i++) axes |= a->symbols[m->factors[i].symbol].axes;
  return axes;
}

// Sums and products

static Polynomial polynomial_new(Algebra *a, uint32_t most) {
  Polynomial p = {0, ARENA_ARRAY(a->scratch, PolynomialTerm, most)};
  if (!p.terms) a->out_of_memory = a->failed = true;
  return p;
}

Polynomial polynomial_number(Algebra *a, double number) {
  Polynomial p = polynomial_new(a, 1);
  if (a->failed) return none;
  p.nterms = number != 0;
  p.terms[0] = (PolynomialTerm){.coefficient = number};
  return p;
}

static bool has_same_factors(const PolynomialTerm *m, const PolynomialTerm *n) {
  return m->nfactors == n->nfactors &&
         (!m->nfactors || memcmp(m->factors, n->factors, m->nfactors * sizeof *m->factors) == 0);
}

// Cancellation is restricted while a value of the graph is evaluated (depth > 0). At depth 0 a caller computes with
// formulas of real numbers, where everything may cancel.

static bool is_evaluating(const Algebra *a) {
  return a->depth > 0;
}

bool polynomial_has_cancelled(const Polynomial *p, uint32_t symbol) {
  return p->cancelled.words[symbol / 64] >> symbol % 64 & 1;
}

static bool has_any_cancelled(const Polynomial *p) {
  for (uint32_t i = 0; i < MOST_SYMBOLS / 64; i++)
    if (p->cancelled.words[i]) return true;
  return false;
}

static void cancel_factors(Polynomial *p, const PolynomialTerm *m) {
  for (uint32_t i = 0; i < m->nfactors; i++)
    p->cancelled.words[m->factors[i].symbol / 64] |= UINT64_C(1) << m->factors[i].symbol % 64;
}

static void add_cancelled(Polynomial *p, const Polynomial *q) {
  for (uint32_t i = 0; i < MOST_SYMBOLS / 64; i++) p->cancelled.words[i] |= q->cancelled.words[i];
}

// Whether the symbol is a sum over the frame's elements, or over a power of its elements.
static bool is_sum_of_frame(const Algebra *a, const Symbol *s) {
  if (!s->reduced || s->base.nterms != 1 || s->base.terms[0].nfactors != 1) return false;
  return a->symbols[s->base.terms[0].factors[0].symbol].value == a->frame;
}

// Called when p has a term with the same factors as m and the opposite sign. Fails unless a factor is a sum over the
// frame.
static void cancel_term(Algebra *a, Polynomial *p, const PolynomialTerm *m) {
  bool has_sum = false;
  for (uint32_t i = 0; i < m->nfactors; i++) has_sum |= is_sum_of_frame(a, &a->symbols[m->factors[i].symbol]);
  if (has_sum) cancel_factors(p, m);
  else a->failed = true;
}

// Adds a term to p, which has space for MOST_TERMS. Removes a term that becomes 0.
static void add_term(Algebra *a, Polynomial *p, const PolynomialTerm *m) {
  for (uint32_t i = 0; i < p->nterms; i++) {
    PolynomialTerm *t = &p->terms[i];
    if (!has_same_factors(t, m)) continue;
    if (is_evaluating(a) && t->coefficient * m->coefficient < 0) cancel_term(a, p, m);
    double most = fmax(fabs(t->coefficient), fabs(m->coefficient));
    t->coefficient += m->coefficient;
    if (fabs(t->coefficient) <= most * a->tolerance) *t = p->terms[--p->nterms];
    return;
  }
  if (p->nterms == MOST_TERMS) a->failed = true;
  else p->terms[p->nterms++] = *m;
}

Polynomial polynomial_sum(Algebra *a, Polynomial p, Polynomial q, double factor) {
  Polynomial sum = polynomial_new(a, MOST_TERMS);
  for (uint32_t i = 0; i < p.nterms && !a->failed; i++) add_term(a, &sum, &p.terms[i]);
  for (uint32_t i = 0; i < q.nterms && !a->failed; i++) {
    PolynomialTerm m = q.terms[i];
    m.coefficient *= factor;
    add_term(a, &sum, &m);
  }
  add_cancelled(&sum, &p);
  add_cancelled(&sum, &q);
  return a->failed ? none : sum;
}

bool polynomial_equals(Algebra *a, Polynomial p, Polynomial q) {
  if (p.nterms != q.nterms) return false;
  for (uint32_t i = 0; i < p.nterms; i++) {
    uint32_t k = 0;
    while (k < q.nterms && !has_same_factors(&p.terms[i], &q.terms[k])) k++;
    if (k == q.nterms) return false;
    double c = p.terms[i].coefficient, d = q.terms[k].coefficient;
    if (fabs(c - d) > fmax(fabs(c), fabs(d)) * a->tolerance) return false;
  }
  return true;
}

// Whether s^(n/2) * s^(m/2) may become s^((n + m)/2). Not if exponents of opposite sign cancel. Not for two roots of s,
// because a negative s gives NaN only with the roots; but a root of a polynomial is allowed, as the polynomial is a
// variance plus epsilon, which is positive.
static bool may_join_powers(const Symbol *s, int n, int m) {
  bool has_base = !s->value && !s->reduced;
  return (n > 0) == (m > 0) && (has_base || n % 2 == 0 || m % 2 == 0);
}

static bool multiply_factor(const Algebra *a, PolynomialTerm *m, Factor f) {
  uint32_t at = 0;
  while (at < m->nfactors && m->factors[at].symbol < f.symbol) at++;
  if (at < m->nfactors && m->factors[at].symbol == f.symbol) {
    if (is_evaluating(a) && !may_join_powers(&a->symbols[f.symbol], m->factors[at].halves, f.halves)) return false;
    m->factors[at].halves = (int16_t)(m->factors[at].halves + f.halves);
    if (m->factors[at].halves) return true;
    memmove(&m->factors[at], &m->factors[at + 1], (--m->nfactors - at) * sizeof *m->factors);
    return true;
  }
  if (m->nfactors == MOST_FACTORS) return false;
  memmove(&m->factors[at + 1], &m->factors[at], (m->nfactors++ - at) * sizeof *m->factors);
  m->factors[at] = f;
  return true;
}

// Whether a term's constants may be multiplied in any order without overflow or underflow for ordinary data. A sum
// counts as its number of elements, as a mean divides by this number.
static bool is_plain_multiple(const Algebra *a, const PolynomialTerm *m) {
  static const double most = 0x1p40;
  double scale = fabs(m->coefficient);
  for (uint32_t i = 0; i < m->nfactors; i++) {
    uint32_t reduced = a->symbols[m->factors[i].symbol].reduced;
    if (reduced) scale *= pow(algebra_count(a, reduced), m->factors[i].halves / 2.0);
  }
  return !m->nfactors || (scale <= most && scale >= 1 / most);
}

// If `zero` is the polynomial 0, the other factor's terms cancel. This is allowed only if `zero` became 0 by
// cancellation: with a literal 0, the product would lose infinities and NaNs of the other factor.
static void multiply_by_zero(Algebra *a, Polynomial *product, const Polynomial *zero, const Polynomial *other) {
  if (zero->nterms) return;
  if (!has_any_cancelled(zero)) a->failed = true;
  for (uint32_t i = 0; i < other->nterms; i++) cancel_factors(product, &other->terms[i]);
}

Polynomial polynomial_product(Algebra *a, Polynomial p, Polynomial q) {
  Polynomial product = polynomial_new(a, MOST_TERMS);
  if (is_evaluating(a)) {
    multiply_by_zero(a, &product, &p, &q);
    multiply_by_zero(a, &product, &q, &p);
  }
  for (uint32_t i = 0; i < p.nterms && !a->failed; i++) {
    for (uint32_t k = 0; k < q.nterms && !a->failed; k++) {
      PolynomialTerm m = p.terms[i];
      m.coefficient *= q.terms[k].coefficient;
      for (uint32_t f = 0; f < q.terms[k].nfactors; f++)
        if (!multiply_factor(a, &m, q.terms[k].factors[f])) a->failed = true;
      if (is_evaluating(a) && !is_plain_multiple(a, &m)) a->failed = true;
      if (!a->failed) add_term(a, &product, &m);
    }
  }
  add_cancelled(&product, &p);
  add_cancelled(&product, &q);
  return a->failed ? none : product;
}

// Whether (s^(n/2))^(halves/2) is s^(n/2 * halves/2). False for the root of a square, which is |s|.
static bool is_power_of_power(int n, int halves) {
  return halves % 2 == 0 || n == 2 || n == -2;
}

Polynomial polynomial_power(Algebra *a, Polynomial p, int halves) {
  if (halves == 2) return p;
  if (halves == 4) return polynomial_product(a, p, p);
  if (p.nterms == 0 || a->failed) return polynomial_fail(a);
  if (p.nterms > 1) {
    Symbol s = {.base = p};
    for (uint32_t i = 0; i < p.nterms; i++) s.axes |= monomial_axes(a, &p.terms[i]);
    Polynomial power = polynomial_of_symbol(a, &s, halves);
    power.cancelled = p.cancelled;
    return power;
  }
  Polynomial power = polynomial_number(a, pow(p.terms[0].coefficient, halves / 2.0));
  power.cancelled = p.cancelled;
  if (a->failed || !power.nterms || !isfinite(power.terms[0].coefficient)) return polynomial_fail(a);
  bool is_one = p.terms[0].coefficient == 1 && p.terms[0].nfactors == 1;
  for (uint32_t i = 0; i < p.terms[0].nfactors; i++) {
    Factor f = p.terms[0].factors[i];
    if (!is_power_of_power(f.halves, halves) || (halves % 2 && !is_one) || f.halves * halves % 2)
      return polynomial_fail(a);
    if (is_evaluating(a) && f.halves < 0 && halves < 0)
      return polynomial_fail(a); // 1 / (1 / s) is 0 for the smallest numbers
    power.terms[0].factors[power.terms[0].nfactors++] = (Factor){f.symbol, (int16_t)(f.halves * halves / 2)};
  }
  return power;
}

// Joins nested sums: a factor of m that is a sum becomes part of m's sum, if m's other factors do not vary over the
// axes of that inner sum. Replaces such a factor by its term, and returns its axes; 0: there is none.
static uint32_t join_sums(const Algebra *a, PolynomialTerm *m) {
  for (uint32_t i = 0; i < m->nfactors; i++) {
    const Symbol *s = &a->symbols[m->factors[i].symbol];
    PolynomialTerm joined = s->reduced ? s->base.terms[0] : (PolynomialTerm){0};
    uint32_t beside = 0;
    bool fits = s->reduced && m->factors[i].halves == 2;
    for (uint32_t k = 0; k < m->nfactors && fits; k++) {
      if (k == i) continue;
      beside |= a->symbols[m->factors[k].symbol].axes;
      fits = multiply_factor(a, &joined, m->factors[k]);
    }
    if (!fits || beside & s->reduced) continue;
    *m = joined;
    return s->reduced;
  }
  return 0;
}

// Takes factors that do not vary over the axes out of the sum. Axes along which no factor varies multiply by their
// extents.
static Polynomial reduce_term(Algebra *a, const PolynomialTerm *m, uint32_t axes) {
  PolynomialTerm inside = {.coefficient = 1};
  Polynomial outside = polynomial_number(a, 1);
  if (a->failed) return none;
  outside.terms[0].coefficient = m->coefficient;
  for (uint32_t i = 0; i < m->nfactors; i++) {
    bool varies = a->symbols[m->factors[i].symbol].axes & axes;
    PolynomialTerm *to = varies ? &inside : &outside.terms[0];
    to->factors[to->nfactors++] = m->factors[i];
  }
  uint32_t varying = monomial_axes(a, &inside);
  outside.terms[0].coefficient *= algebra_count(a, axes & ~varying);
  if (!inside.nfactors) return outside.terms[0].coefficient != 0 ? outside : none;
  uint32_t also = join_sums(a, &inside);
  Symbol s = {.reduced = (axes & varying) | also, .axes = varying & ~axes, .base = polynomial_number(a, 1)};
  if (a->failed) return none;
  s.base.terms[0] = inside;
  return polynomial_product(a, outside, polynomial_of_symbol(a, &s, 2));
}

Polynomial polynomial_reduce(Algebra *a, Polynomial p, uint32_t axes) {
  Polynomial sum = polynomial_new(a, MOST_TERMS);
  for (uint32_t i = 0; i < p.nterms && !a->failed; i++) {
    Polynomial term = reduce_term(a, &p.terms[i], axes);
    for (uint32_t k = 0; k < term.nterms && !a->failed; k++) add_term(a, &sum, &term.terms[k]);
    add_cancelled(&sum, &term);
  }
  add_cancelled(&sum, &p);
  return a->failed ? none : sum;
}

// Lexicographic order of terms: compares the exponents of the first symbol in which the terms differ.
static bool is_greater(const PolynomialTerm *m, const PolynomialTerm *n) {
  for (uint32_t i = 0, k = 0; i < m->nfactors || k < n->nfactors;) {
    const uint32_t first = i < m->nfactors ? m->factors[i].symbol : UINT32_MAX,
                   second = k < n->nfactors ? n->factors[k].symbol : UINT32_MAX;
    const int power = first <= second ? m->factors[i++].halves : 0,
              other = second <= first ? n->factors[k++].halves : 0;
    if (power != other) return power > other;
  }
  return false;
}

static const PolynomialTerm *greatest_term(const Polynomial *p) {
  const PolynomialTerm *greatest = p->terms;
  for (uint32_t i = 1; i < p->nterms; i++)
    if (is_greater(&p->terms[i], greatest)) greatest = &p->terms[i];
  return greatest;
}

bool polynomial_depends_on_frame(const Algebra *a, const Polynomial *p) {
  for (uint32_t i = 0; i < p->nterms; i++) {
    bool depends = false;
    for (uint32_t k = 0; k < p->terms[i].nfactors; k++) {
      const Symbol *s = &a->symbols[p->terms[i].factors[k].symbol];
      depends |= s->value == a->frame || is_sum_of_frame(a, s);
    }
    if (!depends) return false;
  }
  return p->nterms > 0;
}

Polynomial polynomial_quotient(Algebra *a, Polynomial p, Polynomial q) {
  const int depth = a->depth;
  Polynomial quotient = polynomial_new(a, MOST_TERMS), rest = p;
  a->depth = 0; // as formulas of real numbers
  for (uint32_t i = 0; rest.nterms && !a->failed; i++) {
    PolynomialTerm t = *greatest_term(&rest);
    const PolynomialTerm *divisor = greatest_term(&q);
    t.coefficient /= divisor->coefficient;
    for (uint32_t k = 0; k < divisor->nfactors; k++)
      if (!multiply_factor(a, &t, (Factor){divisor->factors[k].symbol, (int16_t)-divisor->factors[k].halves}))
        a->failed = true;
    a->failed |= i == MOST_TERMS;
    if (a->failed) break;
    add_term(a, &quotient, &t);
    rest = polynomial_sum(a, rest, polynomial_product(a, (Polynomial){1, &t, {{0}}}, q), -1);
  }
  a->depth = depth;
  for (uint32_t i = 0; i < q.nterms; i++) cancel_factors(&quotient, &q.terms[i]);
  add_cancelled(&quotient, &p);
  add_cancelled(&quotient, &q);
  return a->failed ? none : quotient;
}
