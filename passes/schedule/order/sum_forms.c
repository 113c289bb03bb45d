// Compares the orders of sums of kernels that have other axes.
#include "passes/schedule/order/sum_forms.h"

static bool cuts_equal(const Cut *a, const Cut *b) {
  return a->length == b->length && a->most == b->most && a->longest == b->longest;
}

static bool levels_equal(const struct FormLevel *a, const struct FormLevel *b) {
  return a->noperands == b->noperands && a->monomial == b->monomial && a->accumulators == b->accumulators &&
         a->type == b->type && cuts_equal(&a->cut, &b->cut);
}

static bool forms_equal(const SumForm *a, const SumForm *b) {
  bool is_equal = a->reduction == b->reduction && a->nlevels == b->nlevels;
  for (int i = 0; is_equal && i < a->nlevels; i++) is_equal = levels_equal(&a->levels[i], &b->levels[i]);
  return is_equal;
}

static bool has_form(const SumForms *forms, const SumForm *form) {
  int i = 0;
  while (i < forms->count && !forms_equal(&forms->forms[i], form)) i++;
  return i < forms->count;
}

static void add(SumForms *forms, const SumForm *form) {
  if (has_form(forms, form)) return;
  if (forms->count == MOST_SUM_FORMS) forms->are_more = true;
  else forms->forms[forms->count++] = *form;
}

// A level that makes one result is not cut, and has the results of the level outside of it, in its own type.
static void leave_out_totals(SumForm *f) {
  struct FormLevel *first = &f->levels[0];
  if (!first->cut.length || first->monomial || first->noperands > cut_length(&first->cut, first->noperands)) return;
  first->cut = (Cut){0};
  if (f->nlevels < 2 || f->levels[1].accumulators != first->accumulators) return;
  f->nlevels--;
  for (int i = 1; i < f->nlevels; i++) {
    f->levels[i] = f->levels[i + 1];
    f->levels[i].type = first->type;
  }
}

static SumForm form_of(const Kernel *k, const SumOrder *o) {
  SumForm f = {.reduction = o->reduction, .nlevels = o->nlevels};
  for (int i = 0; i < o->nlevels; i++) {
    const SumLevel *l = &o->levels[i];
    f.levels[i] = (struct FormLevel){.noperands = i ? 0 : axes_nelems(k, l->axes),
                                     .monomial = i ? 0 : axes_monomial(k, l->axes),
                                     .cut = l->cut,
                                     .accumulators = l->accumulators,
                                     .type = l->type};
  }
  leave_out_totals(&f);
  return f;
}

void sum_forms_add(SumForms *forms, const Schedule *s) {
  for (size_t i = 0; i < s->nloops; i++)
    for (size_t n = 0; n < s->loops[i].nroots; n++) {
      const SumOrder *o = s->loops[i].roots[n].order;
      if (!o || reduction_is_exact(s->kernel, o->reduction)) continue;
      const SumForm form = form_of(s->kernel, o);
      add(forms, &form);
    }
}

void sum_forms_add_all(SumForms *forms, const SumForms *others) {
  for (int i = 0; i < others->count; i++) add(forms, &others->forms[i]);
  forms->are_more |= others->are_more;
}

static bool has_all(const SumForms *forms, const SumForms *others) {
  int i = 0;
  while (i < others->count && has_form(forms, &others->forms[i])) i++;
  return i == others->count;
}

bool sum_forms_equal(const SumForms *one, const SumForms *other) {
  return one->are_more || other->are_more || (has_all(one, other) && has_all(other, one));
}
