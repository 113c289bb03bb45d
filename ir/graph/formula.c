// Arithmetic with formulas, by the school's rules for polynomials.
#include "ir/graph/formula.h"

#include <string.h>

enum { MOST_NAME_BYTES = 255 };

// Terms

// The order of terms in a formula: by degree, then by names.
static int compare_terms(const FormulaTerm *a, const FormulaTerm *b) {
  if (a->degree != b->degree) return a->degree > b->degree ? -1 : 1;
  for (uint32_t i = 0; i < a->degree; i++)
    if (a->dims[i] != b->dims[i]) return strcmp(a->dims[i]->name, b->dims[i]->name);
  return 0;
}

static bool term_times(FormulaTerm *t, const FormulaTerm *by) {
  const FormulaTerm old = *t;
  uint32_t i = 0, k = 0;
  if (__builtin_mul_overflow(old.factor, by->factor, &t->factor)) return false;
  if (t->factor <= -MAX_ELEMENTS || t->factor >= MAX_ELEMENTS || old.degree + by->degree > MAX_DEGREE) return false;
  for (t->degree = 0; i < old.degree || k < by->degree;) {
    const bool takes_old = k == by->degree || (i < old.degree && strcmp(old.dims[i]->name, by->dims[k]->name) <= 0);
    t->dims[t->degree++] = takes_old ? old.dims[i++] : by->dims[k++];
  }
  return true;
}

// Divides t by `by`; false: there is a remainder.
static bool term_divide(FormulaTerm *t, const FormulaTerm *by) {
  const FormulaTerm old = *t;
  uint32_t k = 0;
  if (old.factor % by->factor) return false;
  t->factor = old.factor / by->factor;
  t->degree = 0;
  for (uint32_t i = 0; i < old.degree; i++)
    if (k < by->degree && old.dims[i] == by->dims[k]) k++;
    else t->dims[t->degree++] = old.dims[i];
  return k == by->degree;
}

static bool add_term(Formula *f, const FormulaTerm *t) {
  uint32_t at = 0;
  while (at < f->nterms && compare_terms(&f->terms[at], t) < 0) at++;
  if (at < f->nterms && compare_terms(&f->terms[at], t) == 0) {
    int64_t *factor = &f->terms[at].factor;
    *factor += t->factor;
    if (*factor <= -MAX_ELEMENTS || *factor >= MAX_ELEMENTS) return false;
    if (!*factor) memmove(&f->terms[at], &f->terms[at + 1], (--f->nterms - at) * sizeof *f->terms);
    return true;
  }
  if (f->nterms == MAX_TERMS) return false;
  memmove(&f->terms[at + 1], &f->terms[at], (f->nterms++ - at) * sizeof *f->terms);
  f->terms[at] = *t;
  return true;
}

// Formulas

bool formula_of(Extent e, Formula *f) {
  f->nterms = 0;
  if (!e.dim && (e.value < 0 || e.value >= MAX_ELEMENTS)) return false;
  if (e.dim && e.dim->terms) {
    memcpy(f->terms, e.dim->terms, e.dim->nterms * sizeof *f->terms);
    f->nterms = e.dim->nterms;
    return true;
  }
  FormulaTerm only = {.factor = e.dim ? 1 : e.value};
  if (e.dim) only.dims[only.degree++] = e.dim;
  return !only.factor || add_term(f, &only);
}

bool formula_add(Formula *f, const Formula *g, int64_t times) {
  const FormulaTerm factor = {.factor = times};
  for (uint32_t i = 0; times && i < g->nterms; i++) {
    FormulaTerm t = g->terms[i];
    if (!term_times(&t, &factor) || !add_term(f, &t)) return false;
  }
  return true;
}

bool formula_multiply(Formula *f, const Formula *g) {
  const Formula old = *f;
  f->nterms = 0;
  for (uint32_t i = 0; i < old.nterms; i++)
    for (uint32_t k = 0; k < g->nterms; k++) {
      FormulaTerm t = old.terms[i];
      if (!term_times(&t, &g->terms[k]) || !add_term(f, &t)) return false;
    }
  return true;
}

// Long division by the first term of g. Each step removes the first term of the rest, and adds terms after it only.
bool formula_divide(Formula *f, const Formula *g) {
  Formula rest = *f;
  f->nterms = 0;
  while (g->nterms && rest.nterms) {
    FormulaTerm quotient = rest.terms[0];
    if (f->nterms == MAX_TERMS || !term_divide(&quotient, &g->terms[0]) || !add_term(f, &quotient)) return false;
    for (uint32_t i = 0; i < g->nterms; i++) {
      FormulaTerm t = g->terms[i];
      if (!term_times(&t, &quotient)) return false;
      t.factor = -t.factor;
      if (!add_term(&rest, &t)) return false;
    }
  }
  return g->nterms;
}

bool formula_floor(Formula *f, int64_t divisor) {
  Formula quotient = {0};
  for (uint32_t i = 0; i < f->nterms; i++) {
    FormulaTerm t = f->terms[i];
    const int64_t rest = t.factor % divisor;
    if (rest && t.degree) return false;
    t.factor = t.factor / divisor - (rest < 0);
    if (t.factor && !add_term(&quotient, &t)) return false;
  }
  *f = quotient;
  return true;
}

bool formula_is_number(const Formula *f, int64_t *number) {
  *number = f->nterms ? f->terms[0].factor : 0;
  return !f->nterms || !f->terms[0].degree;
}

static bool terms_equal(const FormulaTerm *a, const FormulaTerm *b, uint32_t nterms) {
  for (uint32_t i = 0; i < nterms; i++)
    if (a[i].factor != b[i].factor || compare_terms(&a[i], &b[i])) return false;
  return true;
}

bool formula_equals(const Formula *f, const Formula *g) {
  return f->nterms == g->nterms && terms_equal(f->terms, g->terms, f->nterms);
}

int64_t terms_value(const FormulaTerm *terms, uint32_t nterms, int64_t (*value_of)(const Dim *, const void *context),
                    const void *context) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < nterms; i++) {
    int64_t product = terms[i].factor;
    for (uint32_t k = 0; k < terms[i].degree; k++) {
      const int64_t value = value_of(terms[i].dims[k], context);
      if (value < 0 || __builtin_mul_overflow(product, value, &product)) return -1;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return -1;
  }
  return sum < 0 || sum >= MAX_ELEMENTS ? -1 : sum;
}

// Extents

uint32_t terms_first_added(const FormulaTerm *terms, uint32_t nterms) {
  uint32_t i = 0;
  while (i < nterms && terms[i].factor < 0) i++;
  return i;
}

void terms_print(const FormulaTerm *terms, uint32_t nterms, const char *mark, Text *out) {
  const uint32_t first = terms_first_added(terms, nterms);
  for (uint32_t i = 0; i < nterms; i++) {
    const FormulaTerm *t = &terms[i == 0 ? first : i - (i <= first)];
    const int64_t factor = t->factor < 0 ? -t->factor : t->factor;
    const char *times = "";
    if (i) text_add_string(out, t->factor < 0 ? " - " : " + ");
    if (factor != 1 || !t->degree) text_format(out, "%lld", (long long)factor), times = " * ";
    for (uint32_t k = 0; k < t->degree; k++, times = " * ")
      text_format(out, "%s%s%s%s", times, mark, t->dims[k]->name, mark);
  }
}

bool formula_extent(Arena *arena, const Formula *f, Extent *e) {
  const FormulaTerm *first = &f->terms[0];
  *e = EXTENT_UNKNOWN;
  if (!f->nterms) *e = EXTENT(0);
  if (terms_first_added(f->terms, f->nterms) == f->nterms) return true;
  const bool is_number = !first->degree, is_dim = f->nterms == 1 && first->degree == 1 && first->factor == 1;
  if (is_number || is_dim) {
    *e = is_number ? EXTENT(first->factor) : (Extent){first->dims[0], -1};
    return true;
  }
  Text name;
  text_init(&name, arena->allocator);
  terms_print(f->terms, f->nterms, "", &name);
  const bool fits = name.nbytes <= MOST_NAME_BYTES;
  bool ok = !name.out_of_memory;
  Dim *dim = ok && fits ? ARENA_NEW(arena, Dim) : NULL;
  FormulaTerm *terms = dim ? ARENA_ARRAY(arena, FormulaTerm, f->nterms) : NULL;
  const char *copy = terms ? arena_copy_text(arena, text_string(&name), name.nbytes) : NULL;
  text_deinit(&name);
  if (!ok || !fits || !copy) return ok && !fits;
  memcpy(terms, f->terms, f->nterms * sizeof *terms);
  *dim = (Dim){.name = copy, .value = -1, .terms = terms, .nterms = f->nterms};
  *e = (Extent){dim, -1};
  return true;
}

bool extent_substitute(Arena *arena, Extent e, Extent (*to)(const Dim *, const void *context), const void *context,
                       Extent *result) {
  Formula sum = {0}, product, factor;
  *result = e;
  if (!e.dim) return true;
  if (!e.dim->terms) {
    *result = to(e.dim, context);
    return true;
  }
  for (uint32_t i = 0; i < e.dim->nterms; i++) {
    const FormulaTerm *t = &e.dim->terms[i];
    product = (Formula){.nterms = 1, .terms = {{.factor = t->factor}}};
    bool fits = true;
    for (uint32_t k = 0; k < t->degree && fits; k++)
      fits = formula_of(to(t->dims[k], context), &factor) && formula_multiply(&product, &factor);
    if (fits && formula_add(&sum, &product, 1)) continue;
    *result = EXTENT_UNKNOWN;
    return true;
  }
  return formula_extent(arena, &sum, result);
}
