// Compares polynomials of values with the formulas of norm operators, which recognise.c lists.
#include "passes/rewrite/recognise/norm_match.h"

bool value_is_algebraic(const Value *v) {
  return v->producer && operator_is_algebraic(v->producer->op->id);
}

static uint32_t add_once(Value **list, uint32_t count, uint32_t most, Value *v) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == v) return count;
  if (count < most) list[count++] = v;
  return count;
}

uint32_t value_ancestors(Value *v, Value **list, uint32_t most) {
  uint32_t count = add_once(list, 0, most, v);
  for (uint32_t i = 0; i < count; i++) {
    const Node *node = value_is_algebraic(list[i]) ? list[i]->producer : NULL;
    for (uint32_t k = 0; node && k < node->ninputs; k++)
      if (node->inputs[k] && !node->inputs[k]->constant) count = add_once(list, count, most, node->inputs[k]);
  }
  return count;
}

void norm_add_descendants(Norm *n, Value *v) {
  n->nregion = add_once(n->region, n->nregion, MOST_DESCENDANTS, v);
  for (uint32_t i = 0; i < n->nregion; i++) {
    uint32_t nuses = 0;
    for (const Use *use = n->region[i]->uses; use && nuses < MOST_USES; use = use->next, nuses++)
      if (operator_is_algebraic(use->node->op->id) && use->node->outputs[0])
        n->nregion = add_once(n->region, n->nregion, MOST_DESCENDANTS, use->node->outputs[0]);
  }
}

Polynomial norm_src(Norm *n) {
  Labels labels = labels_of_frame(&n->algebra);
  return algebra_evaluate(&n->algebra, n->src, &labels);
}

Polynomial norm_average(Norm *n, Polynomial p) {
  Polynomial sum = polynomial_reduce(&n->algebra, p, n->reduced);
  return polynomial_sum(&n->algebra, (Polynomial){0}, sum, 1 / n->count);
}

bool norm_has_in_cone(const Norm *n, const Value *v) {
  for (uint32_t i = 0; i < n->ncone; i++)
    if (n->cone[i] == v) return true;
  return false;
}

// Whether symbol i, a value, occurs in the polynomial.
static bool has_symbol(const Algebra *a, const Polynomial *p,
                       uint32_t i) { // NOLINT(misc-no-recursion): bases are older
  for (uint32_t t = 0; t < p->nterms; t++)
    for (uint32_t k = 0; k < p->terms[t].nfactors; k++) {
      uint32_t symbol = p->terms[t].factors[k].symbol;
      const Symbol *s = &a->symbols[symbol];
      if (symbol == i || (!s->value && has_symbol(a, &s->base, i))) return true;
    }
  return false;
}

// Whether all values in symbol i occur in the formula, and all sums in symbol i are over axes that the norm reduces.
static bool is_in_formula(const Norm *n, const Polynomial *formula, uint32_t i) { // NOLINT(misc-no-recursion)
  const Symbol *s = &n->algebra.symbols[i];
  if (s->value) return has_symbol(&n->algebra, formula, i);
  if (s->reduced & ~n->reduced) return false;
  for (uint32_t t = 0; t < s->base.nterms; t++)
    for (uint32_t k = 0; k < s->base.terms[t].nfactors; k++)
      if (!is_in_formula(n, formula, s->base.terms[t].factors[k].symbol)) return false;
  return true;
}

// Whether a value that evaluates to p may be replaced by the operator's result, which has this formula. Symbols that
// cancelled in the evaluation must occur in the formula: the result is then infinite or NaN wherever one of these
// symbols is.
static bool may_replace(const Norm *n, const Polynomial *p, const Polynomial *formula) {
  for (uint32_t i = 0; i < n->algebra.nsymbols; i++)
    if (polynomial_has_cancelled(p, i) && !is_in_formula(n, formula, i)) return false;
  return true;
}

Value *norm_find_value(Norm *n, Polynomial p, uint32_t axes) {
  Algebra *a = &n->algebra;
  Value *found = NULL;
  for (uint32_t i = 0; i < a->nevaluated; i++) {
    Labels labels;
    const Evaluated *e = &a->evaluated[i];
    if (e->value->constant || !norm_has_in_cone(n, e->value) || !labels_of_axes(a, axes, e->value, &labels)) continue;
    if (labels_equal(&labels, &e->labels) && polynomial_equals(a, e->p, p) && may_replace(n, &e->p, &p) &&
        (!found || type_widens(found->type, e->value->type)))
      found = (Value *)e->value;
  }
  return found;
}

static bool is_value_over(const Norm *n, const Factor *f, uint32_t axes) {
  const Symbol *s = &n->algebra.symbols[f->symbol];
  return s->value && f->halves == 2 && s->axes == axes && s->value != n->src;
}

// p divided by a symbol, which must be a factor of every term.
static Polynomial divided(Norm *n, Polynomial p, uint16_t symbol) {
  Polynomial one = polynomial_number(&n->algebra, 1);
  if (n->algebra.failed) return one;
  one.terms[0].nfactors = 1;
  one.terms[0].factors[0] = (Factor){symbol, -2};
  return polynomial_product(&n->algebra, p, one);
}

Value *norm_plain_value(const Norm *n, Polynomial p, uint32_t axes) {
  if (p.nterms != 1 || p.terms[0].nfactors != 1 || p.terms[0].coefficient != 1) return NULL;
  const Symbol *s = &n->algebra.symbols[p.terms[0].factors[0].symbol];
  Labels labels;
  bool fits = is_value_over(n, &p.terms[0].factors[0], axes) && labels_of_axes(&n->algebra, axes, s->value, &labels) &&
              labels_equal(&labels, &s->labels);
  return fits ? (Value *)s->value : NULL;
}

static Polynomial centered(Norm *n) {
  return polynomial_sum(&n->algebra, norm_src(n), n->mean, -1);
}

// The terms of p that vary over all axes, have the factor rstd and no sums, and have src as a factor exactly if
// with_src. They are divided by rstd.
static Polynomial cofactor_of_rstd(Norm *n, Polynomial p, bool with_src) {
  Algebra *a = &n->algebra;
  Factor rstd = n->rstd.terms[0].factors[0];
  Polynomial found = {0, ARENA_ARRAY(a->scratch, PolynomialTerm, MOST_TERMS)};
  if (!found.terms) a->failed = a->out_of_memory = true;
  for (uint32_t i = 0; i < p.nterms && !a->failed; i++) {
    const PolynomialTerm *m = &p.terms[i];
    bool has_rstd = false, has_src = false, has_sum = false;
    for (uint32_t k = 0; k < m->nfactors; k++) {
      const Symbol *s = &a->symbols[m->factors[k].symbol];
      has_rstd |= m->factors[k].symbol == rstd.symbol && m->factors[k].halves == rstd.halves;
      has_src |= s->value == n->src;
      has_sum |= !s->value && s->reduced;
    }
    if (has_rstd && has_src == with_src && !has_sum && monomial_axes(a, m) == (n->reduced | n->unreduced))
      found.terms[found.nterms++] = *m;
  }
  return polynomial_product(a, found, polynomial_power(a, n->rstd, -2));
}

// Splits g = gamma * dy, where dy is a value over all axes, and gamma a value over the parameters' axes, or absent.
static bool split_g(Norm *n, NormGradient *d, Polynomial g, Polynomial *dy) {
  uint32_t all = n->reduced | n->unreduced;
  for (uint32_t i = 0; i <= g.terms[0].nfactors; i++) {
    bool has_gamma = i < g.terms[0].nfactors;
    const Factor *f = &g.terms[0].factors[i];
    if (has_gamma && !is_value_over(n, f, d->form.parameters)) continue;
    Polynomial gamma = {1, &(PolynomialTerm){1, 1, {has_gamma ? *f : (Factor){0, 0}}}};
    d->gamma = has_gamma ? norm_plain_value(n, gamma, d->form.parameters) : NULL;
    if (has_gamma && !d->gamma) continue;
    *dy = has_gamma ? divided(n, g, f->symbol) : g;
    if (n->algebra.failed) return false;
    d->dy = norm_plain_value(n, *dy, all);
    if (!d->dy) d->dy = norm_find_value(n, *dy, all);
    if (d->dy) return true;
  }
  return false;
}

// The first value of the region with the parameters' axes that equals p; NULL: none.
static Value *find_parameter_gradient(Norm *n, const NormGradient *d, Polynomial p) {
  for (uint32_t i = 0; i < n->nregion && !n->algebra.failed; i++) {
    Value *v = n->region[i];
    Labels labels;
    if (!v->producer || !labels_of_axes(&n->algebra, d->form.parameters, v, &labels)) continue;
    Polynomial q = algebra_evaluate(&n->algebra, v, &labels);
    if (polynomial_equals(&n->algebra, q, p) && may_replace(n, &q, &p)) return v;
  }
  return NULL;
}

bool norm_find_gradient(Norm *n, NormGradient *d, Value *root) {
  Algebra *a = &n->algebra;
  Labels labels = labels_of_frame(a);
  Polynomial p = algebra_evaluate(a, root, &labels), g = cofactor_of_rstd(n, p, false), c = centered(n);
  if (a->failed || !g.nterms) return false;
  Polynomial along = polynomial_product(a, polynomial_product(a, c, polynomial_power(a, n->rstd, 4)),
                                        norm_average(n, polynomial_product(a, g, c)));
  Polynomial rest = polynomial_sum(a, g, along, -1);
  if (!n->is_rms) rest = polynomial_sum(a, rest, norm_average(n, g), -1);
  if (!polynomial_equals(a, p, polynomial_product(a, n->rstd, rest)) || a->failed || !may_replace(n, &p, &p))
    return false;
  n->ncone = value_ancestors(root, n->cone, MOST_EVALUATED);
  bool is_found = false;
  for (NormKind kind = 0; kind < (n->is_rms ? LAYER_NORM + 1 : NORM_KINDS) && !a->failed; kind++) {
    NormGradient other = {.root = root};
    Polynomial dy;
    if (!form_find(&n->algebra, n->unreduced, kind, &other.form) || !split_g(n, &other, g, &dy)) continue;
    norm_add_descendants(n, other.dy);
    uint32_t over = (n->reduced | n->unreduced) & ~other.form.parameters;
    if (!n->is_rms) other.diff_beta = find_parameter_gradient(n, &other, polynomial_reduce(a, dy, over));
    Polynomial scaled = polynomial_product(a, polynomial_product(a, dy, c), n->rstd);
    other.diff_gamma = find_parameter_gradient(n, &other, polynomial_reduce(a, scaled, over));
    bool has_parameters = other.gamma || other.diff_gamma;
    if (has_parameters || (kind != BATCH_NORM && !is_found)) *d = other;
    is_found |= has_parameters || kind != BATCH_NORM;
    if (has_parameters) break;
  }
  return is_found && !a->failed;
}

bool norm_find_forward(Norm *n, NormForward *y, Value *root, NormKind kind) {
  Algebra *a = &n->algebra;
  Labels labels = labels_of_frame(a);
  *y = (NormForward){.root = root};
  Polynomial p = algebra_evaluate(a, root, &labels);
  Polynomial with_src = cofactor_of_rstd(n, p, true);
  if (a->failed || with_src.nterms != 1 || !form_find(&n->algebra, n->unreduced, kind, &y->form)) return false;
  Polynomial x = norm_src(n);
  if (a->failed || x.nterms != 1) return false;
  Polynomial gamma = divided(n, with_src, x.terms[0].factors[0].symbol);
  Polynomial scaled = polynomial_product(a, polynomial_product(a, gamma, centered(n)), n->rstd);
  Polynomial beta = polynomial_sum(a, p, scaled, -1);
  // If mean and deviation are computed from x, an infinite x makes the whole row NaN: the formula then covers all
  // symbols of the row.
  Polynomial whole_row = n->is_rms || n->is_given ? (Polynomial){0} : polynomial_product(a, centered(n), n->rstd);
  if (a->failed || gamma.nterms != 1 || !may_replace(n, &p, &whole_row)) return false;
  bool has_gamma = gamma.terms[0].nfactors > 0;
  if (!has_gamma && gamma.terms[0].coefficient != 1) return false;
  if (has_gamma) y->gamma = norm_plain_value(n, gamma, y->form.parameters);
  if (beta.nterms && !n->is_rms) y->beta = norm_plain_value(n, beta, y->form.parameters);
  return !has_gamma == !y->gamma && !beta.nterms == !y->beta;
}
