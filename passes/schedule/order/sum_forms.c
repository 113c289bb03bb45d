// Compares the orders of sums of kernels that have other axes.
#include "passes/schedule/order/sum_forms.h"

#include "ir/support/splitmix.h"

static bool forms_equal(const SumForm *a, const SumForm *b) {
  return a->places == b->places && a->extents == b->extents && sum_order_equal(&a->order, &b->order);
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
static void leave_out_totals(const Kernel *k, SumOrder *o) {
  SumLevel *first = &o->levels[0];
  const int64_t noperands = axes_nelems(k, first->axes);
  if (!first->cut.length || axes_monomial(k, first->axes) || noperands > cut_length(&first->cut, noperands)) return;
  first->cut = (Cut){0};
  if (o->nlevels < 2 || o->levels[1].accumulators != first->accumulators) return;
  o->nlevels--;
  for (int i = 1; i < o->nlevels; i++) {
    o->levels[i] = o->levels[i + 1];
    o->levels[i].type = first->type;
  }
}

typedef struct Row { // neighbouring axes that are as good as one
  int64_t extent;
  Monomial monomial;
} Row;

// The extent of both as one axis.
static int64_t times(int64_t a, int64_t b) {
  return a && b > GREATEST_NELEMS / a ? GREATEST_NELEMS : a * b;
}

// Whether the iterations of an axis around `inside` are added as if the two were one axis: lanes and segments do not
// begin anew in each iteration. is_innermost: no other row is inside of `inside`.
static bool are_one_row(const SumLevel *first, const Row *inside, const Axis *axis, bool is_innermost) {
  const int64_t run = first->cut.length, both = times(inside->extent, axis->extent);
  const bool is_open = inside->monomial || axis->monomial;
  if (first->accumulators == 1) // a single chain, or chains of whole iterations of an axis
    return run <= 1 || (is_innermost && !is_open && both < (int64_t)2 * CHAIN);
  if (inside->monomial || inside->extent % first->accumulators) return false;
  return !run || !(inside->extent % run) || !(run % inside->extent) || (!is_open && both <= run);
}

static uint64_t hash_row(uint64_t hash, const Row *row) {
  return splitmix64(splitmix64(hash ^ (uint64_t)row->extent) ^ (uint64_t)row->monomial);
}

// Sets the form's axes and extents. is_flat: the axes are one row whatever their extents, as outer axes are.
static void set_axes(SumForm *f, const Kernel *k, const Loop *loop, bool is_flat) {
  const SumLevel *first = &f->order.levels[0];
  Row row = {1, 0};
  for (int i = loop->nouter + loop->ninner; i-- > 0;) {
    const Axis *axis = &k->axes[loop->axes[i]];
    if (!(first->axes >> loop->axes[i] & 1) || (axis->extent == 1 && !axis->monomial)) continue;
    if (f->places && !is_flat && !are_one_row(first, &row, axis, !f->extents)) {
      f->extents = hash_row(f->extents, &row);
      row = (Row){1, 0};
    }
    row = (Row){times(row.extent, axis->extent), row.monomial + axis->monomial};
    f->places = places_join(axis->places, f->places);
  }
  f->extents = hash_row(f->extents, &row);
}

static SumForm form_of(const Kernel *k, const Loop *loop, const Root *root) {
  SumForm f = {.order = *root->order};
  f.order.segments = (Segments){0};
  leave_out_totals(k, &f.order);
  set_axes(&f, k, loop, root->kind == ROOT_REDUCE_OUTER);
  for (int i = 0; i < f.order.nlevels; i++) f.order.levels[i].axes = 0;
  return f;
}

void sum_forms_add(SumForms *forms, const Schedule *s) {
  for (size_t i = 0; i < s->nloops; i++) {
    for (size_t n = 0; n < s->loops[i].nroots; n++) {
      const Root *root = &s->loops[i].roots[n];
      if (!root->order || reduction_is_exact(s->kernel, root->order->reduction)) continue;
      const SumForm form = form_of(s->kernel, &s->loops[i], root);
      add(forms, &form);
    }
  }
}

void sum_forms_add_all(SumForms *forms, const SumForms *others) {
  for (int i = 0; i < others->count; i++) add(forms, &others->forms[i]);
  forms->are_more |= others->are_more;
}

bool sum_forms_include(const SumForms *forms, const SumForms *others) {
  int i = 0;
  while (i < others->count && has_form(forms, &others->forms[i])) i++;
  return i == others->count && !forms->are_more && !others->are_more;
}
