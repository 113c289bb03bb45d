// Extents, shapes and layouts.
#include "ir/graph/formula.h"

#include <stdio.h>
#include <string.h>

bool extent_is_unknown(Extent e) {
  return !e.dim && e.value < 0;
}

bool extent_is_literal(Extent e) {
  return !e.dim && e.value >= 0;
}

bool extent_equals(Extent a, Extent b) {
  Formula f, g;
  if (a.dim == b.dim && a.dim) return true;
  if (a.dim && b.dim)
    return a.dim->terms && b.dim->terms && formula_of(a, &f) && formula_of(b, &g) && formula_equals(&f, &g);
  if (a.dim || b.dim) return false;
  return a.value >= 0 && a.value == b.value;
}

bool extents_are_apart(Extent a, Extent b) {
  Formula f, g;
  int64_t number;
  return formula_of(a, &f) && formula_of(b, &g) && formula_add(&f, &g, -1) && formula_is_number(&f, &number) && number;
}

static int64_t dim_value(const Dim *dim, const void *unused) {
  (void)unused;
  return dim->value;
}

int64_t extent_value(Extent e) {
  if (!e.dim) return e.value;
  return e.dim->terms ? terms_value(e.dim->terms, e.dim->nterms, dim_value, NULL) : e.dim->value;
}

Monomial extent_monomial(Extent e) {
  return e.dim ? e.dim->monomial : 0;
}

Monomial shape_monomial(const Shape *s) {
  Monomial monomial = 0;
  for (int i = 0; i < s->rank; i++) monomial += extent_monomial(s->extent[i]);
  return monomial;
}

bool shape_equals(const Shape *a, const Shape *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++)
    if (!extent_equals(a->extent[i], b->extent[i])) return false;
  return true;
}

bool shape_is_known(const Shape *s) {
  if (s->rank < 0) return false;
  for (int i = 0; i < s->rank; i++)
    if (extent_value(s->extent[i]) < 0) return false;
  return true;
}

// The product of the extents that are known and above 0, as zeros do not hide an overflow, which strides need. -1: it
// is too large.
static int64_t known_product(const Shape *s) {
  int64_t n = 1;
  for (int i = 0; i < s->rank; i++) {
    const int64_t extent = extent_value(s->extent[i]);
    if (extent > 0 && n > (MAX_ELEMENTS - 1) / extent) return -1;
    if (extent > 0) n *= extent;
  }
  return n;
}

bool shape_is_too_large(const Shape *s) {
  return known_product(s) < 0;
}

int64_t shape_nelems(const Shape *s) {
  bool is_empty = false;
  if (!shape_is_known(s)) return -1;
  for (int i = 0; i < s->rank; i++) is_empty |= extent_value(s->extent[i]) == 0;
  const int64_t n = known_product(s);
  return n < 0 || !is_empty ? n : 0;
}

void shape_print(const Shape *s, Text *out) {
  if (s->rank < 0) {
    text_add_string(out, "?");
    return;
  }
  text_add_string(out, "[");
  for (int i = 0; i < s->rank; i++) {
    if (i) text_add_string(out, ", ");
    if (s->extent[i].dim) text_add_string(out, s->extent[i].dim->name);
    else if (s->extent[i].value < 0) text_add_string(out, "_");
    else text_format(out, "%lld", (long long)s->extent[i].value);
  }
  text_add_string(out, "]");
}

const char *shape_string(const Shape *s, char *buffer, size_t nbytes) {
  size_t used = 0;
  int n = snprintf(buffer, nbytes, "%s", s->rank < 0 ? "?" : "[");
  for (int i = 0; i <= s->rank && s->rank >= 0 && n >= 0 && used + (size_t)n < nbytes; i++) {
    used += (size_t)n;
    if (i == s->rank) {
      snprintf(buffer + used, nbytes - used, "]");
      break;
    }
    const char *separator = i ? ", " : "";
    Extent e = s->extent[i];
    if (e.dim) n = snprintf(buffer + used, nbytes - used, "%s%s", separator, e.dim->name);
    else if (e.value < 0) n = snprintf(buffer + used, nbytes - used, "%s_", separator);
    else n = snprintf(buffer + used, nbytes - used, "%s%lld", separator, (long long)e.value);
  }
  return buffer;
}

bool layout_is_row_major(const Layout *o) {
  return o->axis[0] == o->axis[1]; // equal only in all zeros: a permutation has no axis twice
}

bool layout_is_valid(const Layout *o, int rank) {
  uint32_t seen = 0;
  if (layout_is_row_major(o)) return memcmp(o, &(Layout){{0}}, sizeof *o) == 0;
  for (int i = 0; i < MAX_RANK; i++) {
    if (o->axis[i] >= (i < rank ? rank : 1)) return false;
    if (i < rank) seen |= 1U << o->axis[i];
  }
  return rank >= 2 && seen == (1U << rank) - 1;
}

int layout_axis(const Layout *o, int i) {
  return layout_is_row_major(o) ? i : o->axis[i];
}

Layout layout_of_axes(const int *axes, int rank) {
  Layout o = {{0}};
  bool is_row_major = true;
  for (int i = 0; i < rank; i++) is_row_major &= axes[i] == i;
  for (int i = 0; i < rank && !is_row_major; i++) o.axis[i] = (uint8_t)axes[i];
  return o;
}

void layout_strides(const Layout *o, int rank, const int64_t *extent, int64_t *stride) {
  int64_t next = 1;
  for (int i = rank - 1; i >= 0; i--) {
    int axis = layout_axis(o, i);
    stride[axis] = next;
    if (extent[axis] > 0) next *= extent[axis];
  }
}

void layout_stride_monomial(const Layout *o, int rank, const Monomial *extent, Monomial *stride) {
  Monomial next = 0;
  for (int i = rank - 1; i >= 0; i--) {
    int axis = layout_axis(o, i);
    stride[axis] = next;
    next += extent[axis];
  }
}
