// Polynomials, and their bounds: symbols are replaced by their bounds, from the last one to the first.
#include "ir/loops/reach.h"

#include "ir/graph/open_dims.h"
#include "ir/kernel/open_sum.h"
#include "ir/operators/window.h"

#include <stddef.h>
#include <string.h>

// Polynomials

static bool is_alike(const Term *a, const Term *b) {
  return a->monomial == b->monomial && memcmp(a->symbols, b->symbols, sizeof a->symbols) == 0;
}

static void add_term(Polynomial *p, Term term) {
  if (p->nterms < 0 || !term.number) return;
  for (Term *t = p->terms; t < p->terms + p->nterms; t++) {
    if (!is_alike(t, &term)) continue;
    if (__builtin_add_overflow(t->number, term.number, &t->number)) p->nterms = -1;
    else if (!t->number) *t = p->terms[--p->nterms];
    return;
  }
  if (p->nterms == MOST_TERMS) p->nterms = -1;
  else p->terms[p->nterms++] = term;
}

Polynomial polynomial_of(int64_t number, Monomial monomial) {
  Polynomial p;
  p.nterms = 0;
  add_term(&p, (Term){.number = number, .monomial = monomial});
  return p;
}

void polynomial_add(Polynomial *p, const Polynomial *other, int64_t factor) {
  if (other->nterms < 0) p->nterms = -1;
  for (int i = 0; i < other->nterms; i++) {
    Term term = other->terms[i];
    if (__builtin_mul_overflow(term.number, factor, &term.number)) p->nterms = -1;
    add_term(p, term);
  }
}

// False: it has too many symbols, or its number is too large.
static bool multiply(Term *a, const Term *b) {
  int n = 0;
  while (n < MOST_FACTORS && a->symbols[n]) n++;
  for (int i = 0; i < MOST_FACTORS && b->symbols[i]; i++) {
    int at = n++;
    if (at == MOST_FACTORS) return false;
    for (; at && a->symbols[at - 1] < b->symbols[i]; at--) a->symbols[at] = a->symbols[at - 1];
    a->symbols[at] = b->symbols[i];
  }
  a->monomial += b->monomial;
  return !__builtin_mul_overflow(a->number, b->number, &a->number);
}

Polynomial polynomial_times(const Polynomial *a, const Polynomial *b) {
  Polynomial p;
  p.nterms = a->nterms < 0 || b->nterms < 0 ? -1 : 0;
  for (int i = 0; i < a->nterms; i++)
    for (int j = 0; j < b->nterms; j++) {
      Term term = a->terms[i];
      if (multiply(&term, &b->terms[j])) add_term(&p, term);
      else p.nterms = -1;
    }
  return p;
}

static size_t nbytes_of(const Polynomial *p) {
  return offsetof(Polynomial, terms) + (size_t)(p->nterms < 0 ? 0 : p->nterms) * sizeof *p->terms;
}

Polynomial polynomial_copy(const Polynomial *p) {
  Polynomial copy;
  memcpy(&copy, p, nbytes_of(p));
  return copy;
}

const Polynomial *polynomial_keep(Reach *x, const Polynomial *p) {
  Polynomial *kept = arena_alloc(x->arena, nbytes_of(p));
  if (kept) memcpy(kept, p, nbytes_of(p));
  x->out_of_memory |= !kept;
  return kept;
}

// Bounds

static bool has_symbol(const Term *t, uint32_t symbol) {
  bool has = false;
  for (int i = 0; i < MOST_FACTORS; i++) has |= t->symbols[i] == symbol;
  return has;
}

// Takes one such factor away.
static void drop_symbol(Term *t, uint32_t symbol) {
  int at = 0;
  while (t->symbols[at] != symbol) at++;
  for (; at + 1 < MOST_FACTORS; at++) t->symbols[at] = t->symbols[at + 1];
  t->symbols[MOST_FACTORS - 1] = 0;
}

// The last symbol that is not fixed; 0: there is none.
static uint32_t last_symbol(const Reach *x, const Polynomial *p) {
  uint32_t last = 0;
  for (int i = 0; i < p->nterms; i++)
    for (int s = 0; s < MOST_FACTORS; s++) {
      const uint32_t symbol = p->terms[i].symbols[s];
      if (symbol > last && !x->symbols[symbol].is_fixed) last = symbol;
    }
  return last;
}

// The polynomial with the bound in place of the symbol; bound NULL: with 0.
static void replace(const Polynomial *p, uint32_t symbol, const Polynomial *bound, Polynomial *out) {
  out->nterms = 0;
  for (int i = 0; i < p->nterms; i++) {
    Term term = p->terms[i];
    if (!has_symbol(&term, symbol)) {
      add_term(out, term);
      continue;
    }
    drop_symbol(&term, symbol);
    for (int b = 0; bound && b < bound->nterms; b++) {
      Term product = term;
      if (multiply(&product, &bound->terms[b])) add_term(out, product);
      else out->nterms = -1;
    }
  }
}

typedef struct Search { // for an upper bound of fixed symbols that `found` accepts
  Reach *x;
  bool (*found)(struct Search *s, const Polynomial *bound);
  const Polynomial *closed[MOST_CLOSED]; // found
  int nclosed;
  int tries;
} Search;

static bool search(Search *s, const Polynomial *p) {
  if (p->nterms < 0 || s->tries-- <= 0) return false;
  const uint32_t last = last_symbol(s->x, p);
  if (!last) return s->found(s, p);
  bool has_more = false, has_less = false;
  for (int i = 0; i < p->nterms; i++) {
    if (!has_symbol(&p->terms[i], last)) continue;
    has_more |= p->terms[i].number > 0;
    has_less |= p->terms[i].number < 0;
  }
  Polynomial next;
  if (has_more && has_less) return false;
  if (has_less) {
    replace(p, last, NULL, &next);
    return search(s, &next);
  }
  bool is_found = false;
  const Symbol *symbol = &s->x->symbols[last];
  for (int i = 0; i < symbol->nbounds && !is_found; i++) {
    replace(p, last, symbol->bounds[i], &next);
    is_found = search(s, &next);
  }
  return is_found;
}

enum { MOST_TRIES = 2000 };

// The sum of terms without symbols. False: there are others.
static bool open_sum_of(const Polynomial *p, OpenSum *sum) {
  sum->count = 0;
  sum->is_too_long = false;
  for (int i = 0; i < p->nterms; i++) {
    if (p->terms[i].symbols[0]) return false;
    open_sum_add(sum, p->terms[i].number, p->terms[i].monomial);
  }
  return true;
}

static bool is_literal(const Polynomial *p) {
  return !p->nterms || (p->nterms == 1 && !p->terms[0].monomial && !p->terms[0].symbols[0]);
}

static int64_t literal_of(const Polynomial *p) {
  return p->nterms ? p->terms[0].number : 0;
}

static bool is_not_positive(Search *s, const Polynomial *p) {
  OpenSum sum;
  if (is_literal(p)) return literal_of(p) <= 0;
  Polynomial without = polynomial_copy(p);
  for (int i = without.nterms; i-- > 0;) // what is fixed is at least 0
    if (without.terms[i].symbols[0] && without.terms[i].number < 0) without.terms[i] = without.terms[--without.nterms];
  return open_sum_of(&without, &sum) && open_sum_is_never_positive(s->x->k, &sum);
}

bool reach_is_never_positive(Reach *x, const Polynomial *p) {
  Search s = {.x = x, .found = is_not_positive, .tries = MOST_TRIES};
  return search(&s, p);
}

static bool has_fixed(const Polynomial *p) {
  bool has = false;
  for (int i = 0; i < p->nterms; i++) has |= p->terms[i].symbols[0] > 0;
  return has;
}

// Keeps the least literal, and the first others: rather those without fixed symbols.
static bool keep_closed(Search *s, const Polynomial *p) {
  int at = s->nclosed;
  for (int i = 0; i < s->nclosed; i++) {
    if (is_literal(p) && is_literal(s->closed[i]) && literal_of(p) >= literal_of(s->closed[i])) return false;
    if (is_literal(p) && is_literal(s->closed[i])) at = i;
    else if (at == MOST_CLOSED && has_fixed(s->closed[i]) && !has_fixed(p)) at = i;
  }
  if (at == MOST_CLOSED) return false;
  s->closed[at] = polynomial_keep(s->x, p);
  s->nclosed += at == s->nclosed;
  return false;
}

// Symbols

static int64_t multiple_of_term(const Reach *x, const Term *t) {
  const int64_t factor = kernel_factor(x->k, t->number, t->monomial);
  int64_t multiple = factor < 0 ? -factor : factor;
  for (int i = 0; i < MOST_FACTORS && t->symbols[i]; i++)
    if (__builtin_mul_overflow(multiple, x->symbols[t->symbols[i]].multiple, &multiple)) return 1;
  return multiple;
}

int64_t reach_multiple(const Reach *x, const Polynomial *p) {
  int64_t multiple = p->nterms < 0;
  for (int i = 0; i < p->nterms; i++) multiple = greatest_divisor(multiple_of_term(x, &p->terms[i]), multiple);
  return multiple;
}

static int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

int64_t reach_rest(const Reach *x, const Polynomial *p, int64_t multiple) {
  int64_t number = 0;
  for (int i = 0; i < p->nterms; i++) {
    const Term *t = &p->terms[i];
    if (!t->monomial && !t->symbols[0]) number = t->number;
    else if (multiple_of_term(x, t) % multiple) return -1;
  }
  return number - floor_divide(number, multiple) * multiple;
}

static Polynomial add_symbol(Reach *x, Symbol symbol) {
  Polynomial p = {.nterms = -1};
  if (x->nsymbols == 0) x->nsymbols = 1;
  x->out_of_memory |= !arena_grow(x->arena, &x->symbols, x->nsymbols, &x->capacity, sizeof symbol);
  if (x->out_of_memory) return p;
  x->symbols[x->nsymbols] = symbol;
  p.nterms = 1;
  p.terms[0] = (Term){.number = 1, .symbols = {(uint32_t)x->nsymbols++}};
  return p;
}

uint32_t reach_fixed(Reach *x, int64_t multiple) {
  const Polynomial p = add_symbol(x, (Symbol){.multiple = multiple, .is_fixed = true});
  return p.nterms < 0 ? 0 : p.terms[0].symbols[0];
}

Polynomial reach_symbol(Reach *x, int64_t multiple, const Polynomial *bound, const Polynomial *other) {
  const Polynomial *given[] = {bound, other};
  Symbol symbol = {.multiple = multiple < 1 ? 1 : multiple};
  Search s = {.x = x, .found = keep_closed, .tries = MOST_TRIES};
  for (int i = 0; i < 2; i++) // what has fixed symbols only is likely to be the least
    if (given[i] && given[i]->nterms >= 0 && !last_symbol(x, given[i])) keep_closed(&s, given[i]);
  for (int i = 0; i < 2; i++) {
    if (!given[i] || given[i]->nterms < 0 || !last_symbol(x, given[i])) continue;
    symbol.bounds[symbol.nbounds++] = polynomial_keep(x, given[i]);
    search(&s, given[i]);
  }
  for (int i = 0; i < s.nclosed && !x->out_of_memory; i++) {
    Polynomial closed = polynomial_copy(s.closed[i]);
    const int64_t rest = reach_rest(x, &closed, symbol.multiple);
    if (rest > 0) add_term(&closed, (Term){.number = -rest}); // rounded down
    symbol.bounds[symbol.nbounds++] = polynomial_keep(x, &closed);
    symbol.nclosed++;
  }
  return add_symbol(x, symbol);
}

// Division

// Of terms without symbols but fixed ones.
static bool divides(const Reach *x, const Term *by, Term t, Term *quotient) {
  for (size_t i = 0; by->monomial && i < x->k->graph->ndims; i++)
    if (monomial_exponent(by->monomial, i) > monomial_exponent(t.monomial, i)) return false;
  for (int i = 0; i < MOST_FACTORS && by->symbols[i]; i++) {
    if (!has_symbol(&t, by->symbols[i])) return false;
    drop_symbol(&t, by->symbols[i]);
  }
  if (t.number % by->number) return false;
  t.number /= by->number;
  t.monomial -= by->monomial;
  *quotient = t;
  return true;
}

static void split(const Reach *x, const Polynomial *p, const Term *by, Polynomial *quotient, Polynomial *rest) {
  quotient->nterms = rest->nterms = 0;
  for (int i = 0; i < p->nterms; i++) {
    Term t;
    if (divides(x, by, p->terms[i], &t)) add_term(quotient, t);
    else add_term(rest, p->terms[i]);
  }
}

// Of a bound, rounded down. Not known if anything but a number is left.
static Polynomial divide_bound(const Reach *x, const Polynomial *p, const Term *by) {
  Polynomial quotient, rest;
  split(x, p, by, &quotient, &rest);
  const int64_t number = is_literal(&rest) ? literal_of(&rest) : 0;
  if (!is_literal(&rest)) quotient.nterms = -1;
  else if (by->monomial || by->symbols[0]) add_term(&quotient, (Term){.number = number < 0 ? -1 : number});
  else add_term(&quotient, (Term){.number = floor_divide(number, by->number)});
  return quotient;
}

// Of what is at least 0.
static Polynomial divide_symbols(Reach *x, const Polynomial *p, const Term *by) {
  Search s = {.x = x, .found = keep_closed, .tries = MOST_TRIES};
  Polynomial bounds[MOST_CLOSED];
  search(&s, p);
  const Polynomial *known[2] = {NULL};
  int nknown = 0;
  for (int i = 0; i < s.nclosed && nknown < 2 && !x->out_of_memory; i++) {
    bounds[i] = divide_bound(x, s.closed[i], by);
    if (bounds[i].nterms >= 0) known[nknown++] = &bounds[i];
  }
  const int64_t multiple = by->monomial || by->symbols[0] ? 1 : reach_multiple(x, p) / by->number;
  return reach_symbol(x, reach_multiple(x, p) % by->number ? 1 : multiple, known[0], known[1]);
}

void reach_divide(Reach *x, const Polynomial *p, const Polynomial *by, Polynomial *quotient, Polynomial *rest) {
  const bool is_number = by->nterms == 1 && !last_symbol(x, by) && by->terms[0].number > 0;
  Polynomial left, below = {.nterms = 0}, beyond = polynomial_of(1, 0), most = polynomial_of(-1, 0);
  if (p->nterms < 0 || !is_number) {
    *quotient = reach_symbol(x, 1, NULL, NULL);
    *rest = reach_symbol(x, 1, NULL, NULL);
    return;
  }
  split(x, p, &by->terms[0], quotient, &left);
  polynomial_add(&below, &left, -1);
  polynomial_add(&beyond, &left, 1);
  polynomial_add(&beyond, by, -1);
  polynomial_add(&most, by, 1);
  const bool is_natural = reach_is_never_positive(x, &below);
  if (is_natural && reach_is_never_positive(x, &beyond)) {
    *rest = left;
    return;
  }
  const int64_t multiple = greatest_divisor(reach_multiple(x, &left), reach_multiple(x, by));
  *rest = reach_symbol(x, multiple, &most, is_natural ? &left : NULL);
  const Polynomial more = is_natural ? divide_symbols(x, &left, &by->terms[0]) : reach_symbol(x, 1, NULL, NULL);
  if (is_natural) polynomial_add(quotient, &more, 1);
  else *quotient = more;
}
