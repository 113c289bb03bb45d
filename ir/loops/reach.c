// Amounts, and their bounds: symbols are replaced by their bounds, from the last one to the first.
#include "ir/loops/reach.h"

#include "ir/graph/open_dims.h"
#include "ir/kernel/open_sum.h"
#include "ir/operators/window.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

// Whether a call may have all dims so many times as large as their hints: no sum of dims is negative.
static bool set_times(Reach *x, int64_t times) {
  const Graph *g = x->k->graph;
  int64_t dims[MAX_OPEN_DIMS];
  bool is_right = true;
  for (size_t i = 0; i < graph_narguments(g); i++) dims[i] = g->dims[i]->value * times;
  for (size_t i = 0; i < g->ndims; i++) {
    const int64_t value = open_dim_value(g, i, dims);
    x->times[i] = value < 0 ? NAN : (double)value / (double)g->dims[i]->value;
    is_right &= value >= 0;
  }
  return is_right;
}

void reach_init(Reach *x, const Kernel *k, Arena *arena) {
  enum { LARGE = 4096 };
  *x = (Reach){.k = k, .arena = arena};
  for (int64_t times = LARGE; k->graph && times && !set_times(x, times);) times /= 16;
}

// Amounts

static bool is_alike(const Term *a, const Term *b) {
  return a->monomial == b->monomial && memcmp(a->symbols, b->symbols, sizeof a->symbols) == 0;
}

static void add_term(Amount *p, Term term) {
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

Amount amount_of(int64_t number, Monomial monomial) {
  Amount p;
  p.nterms = 0;
  add_term(&p, (Term){.number = number, .monomial = monomial});
  return p;
}

void amount_add(Amount *p, const Amount *other, int64_t factor) {
  if (other->nterms < 0) p->nterms = -1;
  for (int i = 0; i < other->nterms; i++) {
    Term term = other->terms[i];
    if (__builtin_mul_overflow(term.number, factor, &term.number)) p->nterms = -1;
    add_term(p, term);
  }
}

void amount_add_number(Amount *p, int64_t number) {
  add_term(p, (Term){.number = number});
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

Amount amount_times(const Amount *a, const Amount *b) {
  Amount p;
  p.nterms = a->nterms < 0 || b->nterms < 0 ? -1 : 0;
  for (int i = 0; i < a->nterms; i++)
    for (int j = 0; j < b->nterms; j++) {
      Term term = a->terms[i];
      if (multiply(&term, &b->terms[j])) add_term(&p, term);
      else p.nterms = -1;
    }
  return p;
}

static size_t nbytes_of(const Amount *p) {
  return offsetof(Amount, terms) + (size_t)(p->nterms < 0 ? 0 : p->nterms) * sizeof *p->terms;
}

Amount amount_copy(const Amount *p) {
  Amount copy;
  memcpy(&copy, p, nbytes_of(p));
  return copy;
}

const Amount *amount_keep(Reach *x, const Amount *p) {
  Amount *kept = arena_alloc(x->arena, nbytes_of(p));
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
static uint32_t last_symbol(const Reach *x, const Amount *p) {
  uint32_t last = 0;
  for (int i = 0; i < p->nterms; i++)
    for (int s = 0; s < MOST_FACTORS; s++) {
      const uint32_t symbol = p->terms[i].symbols[s];
      if (symbol > last && !x->symbols[symbol].is_fixed) last = symbol;
    }
  return last;
}

// The amount with the bound in place of the symbol; bound NULL: with 0.
static void replace(const Amount *p, uint32_t symbol, const Amount *bound, Amount *out) {
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
  bool (*found)(struct Search *s, const Amount *bound);
  const Amount *closed[MOST_CLOSED]; // found
  int nclosed;
  int tries;
  bool is_sign; // it looks for one that is never positive
} Search;

// One value that the amount has: dims are large, and each symbol is as large as it may be beside those before it.
// NAN: not known. It is rounded, by less than a part in 10^9 of its greatest terms: *scale.
static double one_value(const Reach *x, const Amount *p, double *scale) {
  double sum = p->nterms < 0 ? NAN : 0;
  *scale = 0;
  for (int i = 0; i < p->nterms; i++) {
    const Term *t = &p->terms[i];
    double value = (double)t->number;
    for (size_t d = 0; t->monomial && d < x->k->graph->ndims; d++)
      for (int n = monomial_exponent(t->monomial, d); n > 0; n--) value *= x->times[d];
    for (int s = 0; s < MOST_FACTORS && t->symbols[s]; s++) value *= x->symbols[t->symbols[s]].value;
    sum += value;
    *scale += fabs(value);
  }
  return sum;
}

// Whether some value of the amount is positive, so that no bound of it is never positive.
static bool has_positive(const Reach *x, const Amount *p) {
  double scale;
  return one_value(x, p, &scale) > scale / 1e9;
}

static bool search(Search *s, const Amount *p) {
  if (p->nterms < 0 || s->tries-- <= 0) return false;
  if (s->is_sign && has_positive(s->x, p)) return false;
  const uint32_t last = last_symbol(s->x, p);
  if (!last) return s->found(s, p);
  bool has_more = false, has_less = false;
  for (int i = 0; i < p->nterms; i++) {
    if (!has_symbol(&p->terms[i], last)) continue;
    has_more |= p->terms[i].number > 0;
    has_less |= p->terms[i].number < 0;
  }
  Amount next;
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
static bool open_sum_of(const Amount *p, OpenSum *sum) {
  sum->count = 0;
  sum->is_too_long = false;
  for (int i = 0; i < p->nterms; i++) {
    if (p->terms[i].symbols[0]) return false;
    open_sum_add(sum, p->terms[i].number, p->terms[i].monomial);
  }
  return true;
}

bool amount_is_literal(const Amount *p) {
  return !p->nterms || (p->nterms == 1 && !p->terms[0].monomial && !p->terms[0].symbols[0]);
}

int64_t amount_literal(const Amount *p) {
  return p->nterms ? p->terms[0].number : 0;
}

static bool is_not_positive(Search *s, const Amount *p) {
  OpenSum sum;
  if (amount_is_literal(p)) return amount_literal(p) <= 0;
  Amount without = amount_copy(p);
  for (int i = without.nterms; i-- > 0;) // what is fixed is at least 0
    if (without.terms[i].symbols[0] && without.terms[i].number < 0) without.terms[i] = without.terms[--without.nterms];
  return open_sum_of(&without, &sum) && open_sum_is_never_positive(s->x->k, &sum);
}

bool reach_is_never_positive(Reach *x, const Amount *p) {
  Search s = {.x = x, .found = is_not_positive, .tries = MOST_TRIES, .is_sign = true};
  bool has_more = p->nterms < 0;
  for (int i = 0; i < p->nterms; i++) has_more |= p->terms[i].number > 0;
  return !has_more || search(&s, p);
}

static bool has_fixed(const Amount *p) {
  bool has = false;
  for (int i = 0; i < p->nterms; i++) has |= p->terms[i].symbols[0] > 0;
  return has;
}

// 1: the first is the greater whatever symbols and dims are, or the same; -1: the second; 0: not known.
static int compare(const Amount *p, const Amount *other) {
  Amount difference = amount_copy(p);
  bool has_more = false, has_less = false;
  amount_add(&difference, other, -1);
  for (int i = 0; i < difference.nterms; i++) {
    has_more |= difference.terms[i].number > 0;
    has_less |= difference.terms[i].number < 0;
  }
  return difference.nterms < 0 ? 0 : !has_less ? 1 : !has_more ? -1 : 0;
}

// Keeps those that none is less than, and of too many the first: rather those without fixed symbols.
static bool keep_closed(Search *s, const Amount *p) {
  int at = s->nclosed;
  for (int i = 0; i < s->nclosed; i++) {
    const int order = compare(p, s->closed[i]);
    if (order > 0) return false;
    if (order < 0 || (at == MOST_CLOSED && has_fixed(s->closed[i]) && !has_fixed(p))) at = i;
  }
  if (at == MOST_CLOSED) return false;
  const Amount *kept = amount_keep(s->x, p);
  if (!kept) return true; // ends the search
  s->closed[at] = kept;
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

int64_t reach_multiple(const Reach *x, const Amount *p) {
  int64_t multiple = p->nterms < 0;
  for (int i = 0; i < p->nterms; i++) multiple = greatest_divisor(multiple_of_term(x, &p->terms[i]), multiple);
  return multiple;
}

static int64_t floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b < 0);
}

int64_t reach_rest(const Reach *x, const Amount *p, int64_t multiple) {
  int64_t number = 0;
  for (int i = 0; i < p->nterms; i++) {
    const Term *t = &p->terms[i];
    if (!t->monomial && !t->symbols[0]) number = t->number;
    else if (multiple_of_term(x, t) % multiple) return -1;
  }
  return number - floor_divide(number, multiple) * multiple;
}

Amount amount_of_symbol(uint32_t symbol) {
  Amount p;
  p.nterms = symbol ? 1 : -1;
  p.terms[0] = (Term){.number = 1, .symbols = {symbol}};
  return p;
}

static uint32_t add_symbol(Reach *x, const Symbol *symbol) {
  if (x->nsymbols == 0) x->nsymbols = 1;
  x->out_of_memory |= !arena_grow(x->arena, &x->symbols, x->nsymbols, &x->capacity, sizeof *symbol);
  if (x->out_of_memory) return 0;
  x->symbols[x->nsymbols] = *symbol;
  return (uint32_t)x->nsymbols++;
}

// Of a symbol with these bounds; of one that nothing bounds, not known.
static double greatest_value(const Reach *x, const Symbol *symbol) {
  double least = INFINITY, scale;
  for (int i = 0; i < symbol->nbounds; i++) {
    const double value = one_value(x, symbol->bounds[i], &scale);
    if (isnan(value) || value < least) least = value;
  }
  const double multiple = (double)symbol->multiple;
  return least < 0 || isinf(least) ? NAN : floor(least / multiple) * multiple;
}

uint32_t reach_fixed(Reach *x, int64_t multiple) {
  return add_symbol(x, &(Symbol){.multiple = multiple, .is_fixed = true, .value = (double)multiple});
}

Amount reach_symbol(Reach *x, int64_t multiple, const Amount *bound, const Amount *other) {
  const Amount *given[] = {bound, other};
  Symbol symbol = {.multiple = multiple < 1 ? 1 : multiple};
  Search s = {.x = x, .found = keep_closed, .tries = MOST_TRIES};
  for (int i = 0; i < 2; i++) // what has fixed symbols only is likely to be the least
    if (given[i] && given[i]->nterms >= 0 && !last_symbol(x, given[i])) keep_closed(&s, given[i]);
  for (int i = 0; i < 2; i++) {
    if (!given[i] || given[i]->nterms < 0 || !last_symbol(x, given[i])) continue;
    symbol.bounds[symbol.nbounds++] = amount_keep(x, given[i]);
    search(&s, given[i]);
  }
  for (int i = 0; i < s.nclosed && !x->out_of_memory; i++) {
    Amount closed = amount_copy(s.closed[i]);
    const int64_t rest = reach_rest(x, &closed, symbol.multiple);
    if (rest > 0) add_term(&closed, (Term){.number = -rest}); // rounded down
    symbol.bounds[symbol.nbounds++] = amount_keep(x, &closed);
    symbol.nclosed++;
  }
  if (x->out_of_memory) return amount_of_symbol(0);
  symbol.value = greatest_value(x, &symbol);
  return amount_of_symbol(add_symbol(x, &symbol));
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

static void split(const Reach *x, const Amount *p, const Term *by, Amount *quotient, Amount *rest) {
  quotient->nterms = rest->nterms = 0;
  for (int i = 0; i < p->nterms; i++) {
    Term t;
    if (divides(x, by, p->terms[i], &t)) add_term(quotient, t);
    else add_term(rest, p->terms[i]);
  }
}

// Of a bound, rounded down. Not known if anything but a number is left.
static Amount divide_bound(const Reach *x, const Amount *p, const Term *by) {
  Amount quotient, rest;
  split(x, p, by, &quotient, &rest);
  const int64_t number = amount_is_literal(&rest) ? amount_literal(&rest) : 0;
  if (!amount_is_literal(&rest)) quotient.nterms = -1;
  else if (by->monomial || by->symbols[0]) add_term(&quotient, (Term){.number = number < 0 ? -1 : number});
  else add_term(&quotient, (Term){.number = floor_divide(number, by->number)});
  return quotient;
}

// Of what is at least 0.
static Amount divide_symbols(Reach *x, const Amount *p, const Term *by) {
  Search s = {.x = x, .found = keep_closed, .tries = MOST_TRIES};
  Amount bounds[MOST_CLOSED];
  search(&s, p);
  const Amount *known[2] = {NULL};
  int nknown = 0;
  for (int i = 0; i < s.nclosed && nknown < 2 && !x->out_of_memory; i++) {
    bounds[i] = divide_bound(x, s.closed[i], by);
    if (bounds[i].nterms >= 0) known[nknown++] = &bounds[i];
  }
  const int64_t multiple = by->monomial || by->symbols[0] ? 1 : reach_multiple(x, p) / by->number;
  return reach_symbol(x, reach_multiple(x, p) % by->number ? 1 : multiple, known[0], known[1]);
}

void reach_divide(Reach *x, const Amount *p, const Amount *by, Amount *quotient, Amount *rest) {
  const bool is_number = by->nterms == 1 && !last_symbol(x, by) && by->terms[0].number > 0;
  Amount left, below = amount_of(0, 0), beyond = amount_of(1, 0), most = amount_of(-1, 0);
  if (p->nterms < 0 || !is_number) {
    *quotient = reach_symbol(x, 1, NULL, NULL);
    *rest = reach_symbol(x, 1, NULL, NULL);
    return;
  }
  split(x, p, &by->terms[0], quotient, &left);
  amount_add(&below, &left, -1);
  amount_add(&beyond, &left, 1);
  amount_add(&beyond, by, -1);
  amount_add(&most, by, 1);
  const bool is_natural = reach_is_never_positive(x, &below);
  if (is_natural && reach_is_never_positive(x, &beyond)) {
    *rest = left;
    return;
  }
  const int64_t multiple = greatest_divisor(reach_multiple(x, &left), reach_multiple(x, by));
  *rest = reach_symbol(x, multiple, &most, is_natural ? &left : NULL);
  const Amount more = is_natural ? divide_symbols(x, &left, &by->terms[0]) : reach_symbol(x, 1, NULL, NULL);
  if (is_natural) amount_add(quotient, &more, 1);
  else *quotient = more;
}
