// Arithmetic with a graph's extents.
#include "ir/graph/extents.h"

#include "ir/graph/open_dims.h"

bool graph_extent(Graph *g, const Formula *f, Extent *e) {
  int64_t number;
  Monomial monomial;
  if (!formula_extent(&g->arena, f, e)) return false;
  if (!g->is_open || !e->dim || !e->dim->terms) return true;
  Dim *dim = ARENA_NEW(&g->arena, Dim);
  if (!dim) return false;
  *dim = *e->dim;
  if (formula_number(g, f, &number, &monomial)) {
    dim->monomial = monomial;
    *e = (Extent){dim, -1};
  } else {
    *e = EXTENT_UNKNOWN;
  }
  return true;
}

bool extent_add(Graph *g, Extent a, int64_t times, Extent b, Extent *result) {
  Formula f, other;
  *result = EXTENT_UNKNOWN;
  return !formula_of(a, &f) || !formula_of(b, &other) || !formula_add(&f, &other, times) || graph_extent(g, &f, result);
}

bool extent_multiply(Graph *g, Extent a, Extent b, Extent *result) {
  Formula f, other;
  *result = EXTENT_UNKNOWN;
  return !formula_of(a, &f) || !formula_of(b, &other) || !formula_multiply(&f, &other) || graph_extent(g, &f, result);
}

bool extent_divide(Graph *g, Extent a, Extent b, Extent *result) {
  Formula f, other;
  *result = EXTENT_UNKNOWN;
  return !formula_of(a, &f) || !formula_of(b, &other) || !formula_divide(&f, &other) || graph_extent(g, &f, result);
}
