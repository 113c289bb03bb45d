// Arithmetic of polynomials, and a table with a formula for each algebraic operator.
#include "passes/rewrite/algebra.h"

#include "ir/graph/open_dims.h"
#include "ir/operators/movement.h"
#include "ir/operators/reduce.h"

#include <math.h>
#include <string.h>

static const Polynomial none;

static Polynomial fail(Algebra *a) {
  a->failed = true;
  return none;
}

static bool is_widened(const Value *v) {
  return v->producer && v->producer->op->id == OP_TypeCast && type_widens(v->producer->inputs[0]->type, v->type);
}

static bool is_one(Extent e) {
  return extent_equals(e, EXTENT(1));
}

void algebra_init(Algebra *a, Arena *scratch, const Value *frame) {
  *a = (Algebra){.scratch = scratch, .frame = frame, .data = frame};
  while (is_widened(a->data)) a->data = a->data->producer->inputs[0];
  for (int i = 0; i < frame->shape.rank; i++)
    if (!is_one(frame->shape.extent[i])) a->extent[a->rank++] = frame->shape.extent[i];
  a->tolerance = frame->type == TYPE_F64 ? 1e-13 : 1e-6; // above the rounding errors of constants in the graph
}

static bool is_literal(const Extent *extent, int rank) {
  for (int i = 0; i < rank; i++)
    if (!extent_is_literal(extent[i]) || !extent_value(extent[i])) return false;
  return true;
}

// A border between two axes is identified by the product of the extents to its right. The borders of the frame and the
// shape are merged from the right; each product must divide the next. Named extents are allowed only on leading axes
// that the frame and the shape have in common.
void algebra_split_axes(Algebra *a, const Shape *shape) {
  Extent split[MOST_FRAME_AXES]; // from the right
  int count = 0, own = a->rank, other = shape->rank, front = 0;
  int64_t behind = 1, next_own = 1, next_other = 1;
  while (front < a->rank && front < shape->rank && !is_literal(&a->extent[front], 1) &&
         extent_equals(a->extent[front], shape->extent[front]))
    front++;
  if (!is_literal(a->extent + front, own - front) || !is_literal(shape->extent + front, other - front)) return;
  for (;;) {
    while (own > front && next_own == behind) next_own *= extent_value(a->extent[--own]);
    while (other > front && next_other == behind) next_other *= extent_value(shape->extent[--other]);
    if (next_own == behind && next_other == behind) break;
    if (next_own == behind || next_other == behind || count + front == MOST_FRAME_AXES) return;
    int64_t next = next_own < next_other ? next_own : next_other;
    if (next % behind) return;
    split[count++] = EXTENT(next / behind);
    behind = next;
  }
  a->rank = front + count;
  for (int i = 0; i < count; i++) a->extent[front + i] = split[count - 1 - i];
}

uint32_t algebra_axes(const Algebra *a) {
  return (1U << a->rank) - 1;
}

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

// Symbols

static bool is_same_symbol(Algebra *a, const Symbol *s, const Symbol *t) {
  if (s->value || t->value) return s->value == t->value && labels_equal(&s->labels, &t->labels);
  return s->reduced == t->reduced && s->base.nterms == t->base.nterms && polynomial_equals(a, s->base, t->base);
}

// The polynomial symbol^(halves / 2).
static Polynomial of_symbol(Algebra *a, const Symbol *symbol, int halves) {
  uint32_t i = 0;
  while (i < a->nsymbols && !is_same_symbol(a, &a->symbols[i], symbol)) i++;
  if (i == MOST_SYMBOLS) return fail(a);
  if (i == a->nsymbols) a->symbols[a->nsymbols++] = *symbol;
  Polynomial p = polynomial_number(a, 1);
  if (a->failed) return none;
  p.terms[0].nfactors = 1;
  p.terms[0].factors[0] = (Factor){(uint16_t)i, (int16_t)halves};
  return p;
}

static Polynomial of_value(Algebra *a, const Value *v, const Labels *labels) {
  Symbol s = {.value = v, .labels = *labels};
  s.axes = labels_axes(labels);
  return of_symbol(a, &s, 2);
}

uint32_t monomial_axes(const Algebra *a, const PolynomialTerm *m) {
  uint32_t axes = 0;
  for (uint32_t i = 0; i < m->nfactors; i++) axes |= a->symbols[m->factors[i].symbol].axes;
  return axes;
}

// Arithmetic

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
  if (p.nterms == 0 || a->failed) return fail(a);
  if (p.nterms > 1) {
    Symbol s = {.base = p};
    for (uint32_t i = 0; i < p.nterms; i++) s.axes |= monomial_axes(a, &p.terms[i]);
    Polynomial power = of_symbol(a, &s, halves);
    power.cancelled = p.cancelled;
    return power;
  }
  Polynomial power = polynomial_number(a, pow(p.terms[0].coefficient, halves / 2.0));
  power.cancelled = p.cancelled;
  if (a->failed || !power.nterms || !isfinite(power.terms[0].coefficient)) return fail(a);
  bool is_one = p.terms[0].coefficient == 1 && p.terms[0].nfactors == 1;
  for (uint32_t i = 0; i < p.terms[0].nfactors; i++) {
    Factor f = p.terms[0].factors[i];
    if (!is_power_of_power(f.halves, halves) || (halves % 2 && !is_one) || f.halves * halves % 2) return fail(a);
    if (is_evaluating(a) && f.halves < 0 && halves < 0) return fail(a); // 1 / (1 / s) is 0 for the smallest numbers
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
  return polynomial_product(a, outside, of_symbol(a, &s, 2));
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

// Labels

bool labels_equal(const Labels *a, const Labels *b) {
  return a->rank == b->rank && memcmp(a->axes, b->axes, (size_t)a->rank * sizeof *a->axes) == 0;
}

uint32_t labels_axes(const Labels *labels) {
  uint32_t axes = 0;
  for (int i = 0; i < labels->rank; i++) axes |= labels->axes[i];
  return axes;
}

// Takes consecutive frame axes, with this product of extents, from the list. Returns their mask; 0: there are none.
static uint32_t take_axes(const Algebra *a, Extent extent, const int **next, const int *end) {
  uint32_t axes = 0;
  int64_t nelems = 1;
  if (*next < end && extent_equals(a->extent[**next], extent)) return 1U << *(*next)++;
  while (*next < end && extent_is_literal(extent) && nelems < extent_value(extent)) {
    if (!extent_is_literal(a->extent[**next]) || (axes && *(*next - 1) + 1 != **next)) return 0;
    axes |= 1U << **next;
    nelems *= extent_value(a->extent[*(*next)++]);
  }
  return nelems == extent_value(extent) ? axes : 0;
}

// The labels of a value of this shape with exactly the frame axes in the list, in the list's order.
static bool labels_of_list(const Algebra *a, const int *list, int count, const Shape *shape, Labels *labels) {
  const int *end = list + count;
  *labels = (Labels){.rank = shape->rank};
  for (int i = 0; i < shape->rank; i++) {
    if (is_one(shape->extent[i])) continue;
    labels->axes[i] = (uint16_t)take_axes(a, shape->extent[i], &list, end);
    if (!labels->axes[i]) return false;
  }
  return list == end;
}

bool labels_of_axes(const Algebra *a, uint32_t axes, const Value *v, Labels *labels) {
  int list[MOST_FRAME_AXES], count = 0;
  for (int i = 0; i < a->rank; i++)
    if (axes >> i & 1) list[count++] = i;
  return labels_of_list(a, list, count, &v->shape, labels);
}

Labels labels_of_frame(const Algebra *a) {
  Labels labels;
  labels_of_axes(a, algebra_axes(a), a->frame, &labels); // cannot fail
  return labels;
}

Labels labels_of_operand(const Value *operand, const Labels *result) {
  Labels labels = {.rank = operand->shape.rank};
  for (int i = 0; i < labels.rank; i++)
    labels.axes[i] = is_one(operand->shape.extent[i]) ? 0 : result->axes[i + result->rank - labels.rank];
  return labels;
}

// Operators

static Polynomial operand(Algebra *a, const Node *node, uint32_t slot, const Labels *labels) {
  Labels own = labels_of_operand(node->inputs[slot], labels);
  return algebra_evaluate(a, node->inputs[slot], &own);
}

static Polynomial of_add(Algebra *a, const Node *node, const Labels *l) {
  return polynomial_sum(a, operand(a, node, 0, l), operand(a, node, 1, l), 1);
}

static Polynomial of_subtract(Algebra *a, const Node *node, const Labels *l) {
  return polynomial_sum(a, operand(a, node, 0, l), operand(a, node, 1, l), -1);
}

static Polynomial of_multiply(Algebra *a, const Node *node, const Labels *l) {
  return polynomial_product(a, operand(a, node, 0, l), operand(a, node, 1, l));
}

static Polynomial of_negation(Algebra *a, const Node *node, const Labels *l) {
  return polynomial_sum(a, none, operand(a, node, 0, l), -1);
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

// Whether all terms have the frame, or a sum over the frame, as a factor: the polynomial is then 0 only for isolated
// data.
static bool depends_on_frame(const Algebra *a, const Polynomial *p) {
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

// p / q as a polynomial, by long division; fails if there is a remainder. Records the symbols of q as cancelled.
static Polynomial polynomial_quotient(Algebra *a, Polynomial p, Polynomial q) {
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

// x * z / z is replaced by x if z is 0 only for isolated data, as in gradients of quotients and products: for these
// data the graph's result is NaN, and the formula's result is the limit.
static Polynomial of_divide(Algebra *a, const Node *node, const Labels *l) {
  const Polynomial p = operand(a, node, 0, l), q = operand(a, node, 1, l);
  if (a->failed) return none;
  if (p.nterms >= q.nterms && depends_on_frame(a, &q)) {
    const Polynomial quotient = polynomial_quotient(a, p, q);
    if (!a->failed || a->out_of_memory) return quotient;
    a->failed = false;
  }
  return polynomial_product(a, p, polynomial_power(a, q, -2));
}

static Polynomial of_square(Algebra *a, const Node *node, const Labels *l) {
  return polynomial_power(a, operand(a, node, 0, l), 4);
}

static Polynomial of_squared_difference(Algebra *a, const Node *node, const Labels *l) {
  return polynomial_power(a, of_subtract(a, node, l), 4);
}

static Polynomial of_sqrt(Algebra *a, const Node *node, const Labels *l) {
  return polynomial_power(a, operand(a, node, 0, l), 1);
}

static Polynomial of_reciprocal(Algebra *a, const Node *node, const Labels *l) {
  return polynomial_power(a, operand(a, node, 0, l), -2);
}

static Polynomial of_pow(Algebra *a, const Node *node, const Labels *l) {
  double halves = 2 * node_f32(node, "beta");
  if (halves != nearbyint(halves) || fabs(halves) > 8 || halves == 0) return fail(a);
  return polynomial_power(a, operand(a, node, 0, l), (int)halves);
}

static Polynomial of_cast(Algebra *a, const Node *node, const Labels *l) {
  Type from = node->inputs[0]->type, to = node->outputs[0]->type, least = a->frame->type;
  bool is_rounding = type_widens(to, from) && (to == least || type_widens(least, to));
  return is_rounding || type_widens(from, to) ? operand(a, node, 0, l) : fail(a);
}

// dy / (2 * sqrt(x))
static Polynomial of_sqrt_backward(Algebra *a, const Node *node, const Labels *l) {
  Polynomial over = polynomial_power(a, operand(a, node, 0, l), node_bool(node, "use_dst") ? -2 : -1);
  Polynomial product = polynomial_product(a, operand(a, node, 1, l), over);
  return polynomial_sum(a, none, product, 0.5);
}

// Frame axes for an axis that is summed over. Any unused frame axes of this extent are correct, as the axis is not in
// the result. Axes behind `last` are tried first, as these most often match the labels of other values.
static uint32_t axes_to_reduce(const Algebra *a, Extent extent, uint32_t used, int last) {
  for (int i = 0; i < a->rank; i++) {
    int list[MOST_FRAME_AXES], count = 0;
    for (int axis = (last + 1 + i) % a->rank; axis < a->rank && !(used >> axis & 1); axis++) list[count++] = axis;
    const int *next = list;
    uint32_t axes = take_axes(a, extent, &next, list + count);
    if (axes) return axes;
  }
  return 0;
}

// The labels of a reduction's operand, from the result's labels, and the frame axes that are summed over. If the
// operand can have all frame axes in the frame's order, consistent with the result, these are its labels.
static bool labels_of_reduced(const Algebra *a, const Node *node, const Labels *l, Labels *own, uint32_t *reduced) {
  const Value *src = node->inputs[0];
  uint32_t axes = reduce_axes(node), used = labels_axes(l);
  bool keeps = node_bool(node, "keep_dims"), is_in_order = labels_of_axes(a, algebra_axes(a), src, own);
  *reduced = 0;
  for (int i = 0, on = 0; i < src->shape.rank; i++) {
    bool is_reduced = axes >> i & 1;
    if (!is_reduced) is_in_order &= own->axes[i] == l->axes[on];
    on += keeps || !is_reduced;
  }
  int last = -1;
  own->rank = src->shape.rank;
  for (int i = 0, on = 0; i < src->shape.rank; i++) {
    bool is_reduced = axes >> i & 1;
    if (!is_reduced) own->axes[i] = l->axes[on];
    else if (is_one(src->shape.extent[i])) own->axes[i] = 0;
    else if (!is_in_order) own->axes[i] = (uint16_t)axes_to_reduce(a, src->shape.extent[i], used, last);
    if (is_reduced && !own->axes[i] && !is_one(src->shape.extent[i])) return false;
    if (is_reduced) *reduced |= own->axes[i];
    used |= own->axes[i];
    if (own->axes[i]) last = 31 - __builtin_clz(own->axes[i]);
    on += keeps || !is_reduced;
  }
  return true;
}

static Polynomial of_reduce_sum(Algebra *a, const Node *node, const Labels *l) {
  Labels own;
  uint32_t reduced;
  if (!labels_of_reduced(a, node, l, &own, &reduced)) return fail(a);
  return polynomial_reduce(a, algebra_evaluate(a, node->inputs[0], &own), reduced);
}

static Polynomial of_reduce_mean(Algebra *a, const Node *node, const Labels *l) {
  Labels own;
  uint32_t reduced;
  if (!labels_of_reduced(a, node, l, &own, &reduced)) return fail(a);
  Polynomial sum = polynomial_reduce(a, algebra_evaluate(a, node->inputs[0], &own), reduced);
  return a->failed ? none : polynomial_sum(a, none, sum, 1 / algebra_count(a, reduced));
}

// A reshape joins and splits axes, and adds or removes axes of extent 1. It keeps the sequence of frame axes.
static Polynomial of_reshape(Algebra *a, const Node *node, const Labels *l) {
  int list[MOST_FRAME_AXES], count = 0;
  Labels own;
  for (int i = 0; i < l->rank; i++)
    for (int axis = 0; axis < a->rank; axis++)
      if (l->axes[i] >> axis & 1) list[count++] = axis;
  if (!labels_of_list(a, list, count, &node->inputs[0]->shape, &own)) return fail(a);
  return algebra_evaluate(a, node->inputs[0], &own);
}

static Polynomial of_transpose(Algebra *a, const Node *node, const Labels *l) {
  Labels own = {.rank = l->rank};
  int axes[MAX_RANK];
  if (!transpose_axes(node, l->rank, axes)) return fail(a);
  for (int i = 0; i < l->rank; i++) own.axes[axes[i]] = l->axes[i];
  return algebra_evaluate(a, node->inputs[0], &own);
}

static Polynomial (*const formulas[OP_COUNT])(Algebra *, const Node *, const Labels *) = {
    [OP_Add] = of_add,
    [OP_Subtract] = of_subtract,
    [OP_Multiply] = of_multiply,
    [OP_Divide] = of_divide,
    [OP_Neg] = of_negation,
    [OP_Square] = of_square,
    [OP_SquaredDifference] = of_squared_difference,
    [OP_Sqrt] = of_sqrt,
    [OP_Reciprocal] = of_reciprocal,
    [OP_Pow] = of_pow,
    [OP_TypeCast] = of_cast,
    [OP_SqrtBackward] = of_sqrt_backward,
    [OP_ReduceSum] = of_reduce_sum,
    [OP_ReduceMean] = of_reduce_mean,
    [OP_StaticReshape] = of_reshape,
    [OP_StaticTranspose] = of_transpose,
};

bool operator_is_algebraic(OperatorId op) {
  return formulas[op] != NULL;
}

static const Polynomial *find_evaluated(const Algebra *a, const Value *v, const Labels *labels) {
  for (uint32_t i = 0; i < a->nevaluated; i++)
    if (a->evaluated[i].value == v && labels_equal(&a->evaluated[i].labels, labels)) return &a->evaluated[i].p;
  return NULL;
}

// Whether the node rounds: its result has fewer digits than the frame and than an operand.
static bool is_narrowing(const Algebra *a, const Node *node) {
  Type to = node->outputs[0]->type, least = a->frame->type;
  bool is_wide_enough = to == least || type_widens(least, to);
  for (uint32_t i = 0; i < node->ninputs && !is_wide_enough; i++)
    if (node->inputs[i] && type_widens(to, node->inputs[i]->type)) return true;
  return false;
}

Polynomial algebra_evaluate(Algebra *a, const Value *v, const Labels *labels) {
  enum { DEEPEST = 48 };
  if (a->failed) return none;
  if (v == a->data) v = a->frame;
  double number = v->constant && v->constant->is_splat ? type_load(v->type, v->constant->data, 0) : NAN;
  if (isfinite(number)) return polynomial_number(a, number);
  const Polynomial *before = find_evaluated(a, v, labels);
  if (before) return *before;
  const Node *node = v->producer;
  Polynomial p = none;
  bool is_open = v != a->frame && node && formulas[node->op->id] && a->depth < DEEPEST && !is_narrowing(a, node);
  if (is_open) {
    a->depth++;
    p = formulas[node->op->id](a, node, labels);
    a->depth--;
  }
  if (!is_open || (a->failed && !a->out_of_memory && a->nsymbols < MOST_SYMBOLS)) {
    a->failed = false;
    p = of_value(a, v, labels);
  }
  if (a->failed || a->nevaluated == MOST_EVALUATED) return fail(a);
  a->evaluated[a->nevaluated++] = (Evaluated){v, *labels, p};
  return p;
}
