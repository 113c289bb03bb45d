// Converts indices to sums of terms, and compares the sums.
#include "ir/loops/linear.h"

static bool is_alike(const Term *a, const Term *b) {
  return a->monomial == b->monomial && a->of_loop == b->of_loop && a->loop == b->loop && a->var.kind == b->var.kind &&
         a->var.of == b->var.of && a->divisor == b->divisor;
}

void linear_add(Linear *l, Term term) {
  if (l->nterms < 0 || !term.number) return;
  for (int i = 0; i < l->nterms; i++) {
    if (!is_alike(&l->terms[i], &term)) continue;
    l->terms[i].number += term.number;
    if (!l->terms[i].number) l->terms[i] = l->terms[--l->nterms];
    return;
  }
  if (l->nterms == MOST_TERMS) l->nterms = -1;
  else l->terms[l->nterms++] = term;
}

void linear_add_number(Linear *l, int64_t number, Monomial monomial) {
  linear_add(l, (Term){.number = number, .monomial = monomial, .divisor = 1});
}

void linear_add_var(Linear *l, VarKind kind, uint32_t of, int64_t number, Monomial monomial) {
  linear_add(l, (Term){.number = number, .monomial = monomial, .var = {kind, of}, .divisor = 1});
}

void linear_add_all(Linear *l, const Linear *other, int64_t factor) {
  if (other->nterms < 0) l->nterms = -1;
  for (int i = 0; i < other->nterms; i++) {
    Term term = other->terms[i];
    term.number *= factor;
    linear_add(l, term);
  }
}

// False: the product would have two variables, or factors of two loops.
static bool multiply(Term *a, const Term *b) {
  if ((a->var.kind && b->var.kind) || (a->of_loop && b->of_loop)) return false;
  a->number *= b->number;
  a->monomial += b->monomial;
  a->divisor *= b->divisor;
  if (b->var.kind) a->var = b->var;
  if (b->of_loop) {
    a->of_loop = b->of_loop;
    a->loop = b->loop;
  }
  return true;
}

typedef struct Meaning {
  VarMeaning of;
  const void *context;
} Meaning;

static void add_scaled(Linear *l, const Index *i, Term scale, const Meaning *meaning);

static void add_product(Linear *l, const Index *i, Term scale, const Meaning *meaning) {
  const int first =
      i->args[1]->op > INDEX_NCUT_BLOCKS; // the operand that may be a sum; the other must be a single term
  Linear factor = {0};
  add_scaled(&factor, i->args[!first], (Term){.number = 1, .divisor = 1}, meaning);
  if (factor.nterms == 0) return;
  if (factor.nterms != 1 || !multiply(&scale, &factor.terms[0])) l->nterms = -1;
  else add_scaled(l, i->args[first], scale, meaning);
}

// The dividend must be a single variable, the divisor a literal.
static void add_quotient(Linear *l, const Index *i, Term scale, const Meaning *meaning) {
  const Index *divisor = i->args[1];
  Linear dividend = {0};
  add_scaled(&dividend, i->args[0], (Term){.number = 1, .divisor = 1}, meaning);
  const Term *only = dividend.terms;
  const bool is_var = dividend.nterms == 1 && only->var.kind && only->number == 1 && !only->monomial;
  if (!is_var || divisor->op != INDEX_NUMBER || divisor->monomial || !multiply(&scale, only)) {
    l->nterms = -1;
    return;
  }
  scale.divisor *= divisor->number;
  linear_add(l, scale);
}

static void add_leaf(Linear *l, Term leaf, Term scale) {
  if (multiply(&scale, &leaf)) linear_add(l, scale);
  else l->nterms = -1;
}

static void add_scaled(Linear *l, const Index *i, Term scale, const Meaning *meaning) {
  Term minus = scale;
  switch (i->op) {
  case INDEX_NUMBER:
    if (i->number) add_leaf(l, (Term){.number = i->number, .monomial = i->monomial, .divisor = 1}, scale);
    return;
  case INDEX_VAR: {
    const Var var = meaning->of ? meaning->of(meaning->context, i->var) : i->var;
    add_leaf(l, (Term){.number = 1, .var = var, .divisor = 1}, scale);
    return;
  }
  case INDEX_BLOCK_LENGTH:
  case INDEX_NCUT_BLOCKS:
    add_leaf(l, (Term){.number = 1, .of_loop = i->op, .loop = i->loop, .divisor = 1}, scale);
    return;
  case INDEX_ADD:
  case INDEX_SUBTRACT:
    minus.number = i->op == INDEX_ADD ? scale.number : -scale.number;
    add_scaled(l, i->args[0], scale, meaning);
    add_scaled(l, i->args[1], minus, meaning);
    return;
  case INDEX_MULTIPLY: add_product(l, i, scale, meaning); return;
  case INDEX_DIVIDE: add_quotient(l, i, scale, meaning); return;
  default: l->nterms = -1;
  }
}

void linear_add_index(Linear *l, const Index *i, VarMeaning meaning, const void *context) {
  const Meaning own = {meaning, context};
  if (i) add_scaled(l, i, (Term){.number = 1, .divisor = 1}, &own);
}

bool linear_equals(const Linear *a, const Linear *b) {
  if (a->nterms < 0 || a->nterms != b->nterms) return false;
  for (int i = 0; i < a->nterms; i++) {
    bool is_found = false;
    for (int j = 0; j < b->nterms && !is_found; j++)
      is_found = is_alike(&a->terms[i], &b->terms[j]) && a->terms[i].number == b->terms[j].number;
    if (!is_found) return false;
  }
  return true;
}

int64_t linear_factor(const Linear *l, VarKind kind) {
  int64_t factor = 0;
  for (int i = 0; i < l->nterms; i++)
    if (l->terms[i].var.kind == kind) factor = l->terms[i].number;
  return factor;
}

bool index_equals(const Index *a, const Index *b) {
  if (!a || !b) return a == b;
  if (a->op != b->op || a->number != b->number || a->monomial != b->monomial || a->var.kind != b->var.kind ||
      a->var.of != b->var.of || a->loop != b->loop || !a->address != !b->address)
    return false;
  if (a->address && (a->address->buffer != b->address->buffer || a->address->of != b->address->of ||
                     a->address->item != b->address->item || !index_equals(a->address->index, b->address->index)))
    return false;
  for (int i = 0; i < 3; i++)
    if (!index_equals(a->args[i], b->args[i])) return false;
  return true;
}

bool index_is_literal(const Index *i) {
  return i && i->op == INDEX_NUMBER && !i->monomial;
}
