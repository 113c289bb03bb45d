// Numbers that depend on open dims: a literal factor times a monomial.
#include "ir/graph/open_dims.h"

#include "ir/graph/formula.h"

enum { POWER_BITS = 8 };

size_t graph_narguments(const Graph *g) {
  return g->ndims - g->nsums;
}

Monomial monomial_of_dim(size_t dim) {
  return (Monomial)1 << (dim * POWER_BITS);
}

int monomial_exponent(Monomial monomial, size_t dim) {
  return (int)(monomial >> (dim * POWER_BITS) & ((1U << POWER_BITS) - 1));
}

// Values for the dims of a graph.
typedef struct DimValues {
  const Graph *graph;
  const int64_t *values;
} DimValues;

static int64_t value_among(const Dim *dim, const void *context) {
  const DimValues *v = context;
  for (size_t i = 0; i < graph_narguments(v->graph); i++)
    if (v->graph->dims[i] == dim) return v->values[i];
  return -1;
}

int64_t open_dim_value(const Graph *g, size_t dim, const int64_t *values) {
  const Dim *d = g->dims[dim];
  if (!values) return d->value;
  return d->terms ? terms_value(d->terms, d->nterms, value_among, &(DimValues){g, values}) : values[dim];
}

const Dim *open_dim_of(const Graph *g, size_t dim) {
  return g->dims[dim]->terms ? g->dims[dim]->terms[0].dims[0] : g->dims[dim];
}

int64_t monomial_value(const Graph *g, Monomial monomial, const int64_t *values) {
  int64_t product = 1;
  for (size_t i = 0; monomial && i < g->ndims; i++)
    for (int n = monomial_exponent(monomial, i); n > 0; n--) product *= open_dim_value(g, i, values);
  return product;
}

int64_t open_factor(const Graph *g, int64_t number, Monomial monomial) {
  return number / monomial_value(g, monomial, NULL);
}

int64_t open_number(const Graph *g, int64_t number, Monomial monomial, const int64_t *values) {
  return monomial && number ? open_factor(g, number, monomial) * monomial_value(g, monomial, values) : number;
}

void formula_take_dims(const Graph *g, Formula *f, Monomial *monomial) {
  Formula by, quotient;
  *monomial = 0;
  for (size_t i = 0; i < g->ndims; i++) {
    if (!formula_of((Extent){g->dims[i], -1}, &by)) continue; // never
    while (f->nterms && f->terms[0].degree && (quotient = *f, formula_divide(&quotient, &by))) {
      *f = quotient;
      *monomial += monomial_of_dim(i);
    }
  }
}

bool formula_number(const Graph *g, const Formula *f, int64_t *number, Monomial *monomial) {
  Formula rest = *f;
  formula_take_dims(g, &rest, monomial);
  *number = rest.nterms ? rest.terms[0].factor * monomial_value(g, *monomial, NULL) : 0;
  return rest.nterms < 2 && (!rest.nterms || !rest.terms[0].degree);
}

// Largest tensors

static bool is_within(const Graph *g, const TensorSize *a, const TensorSize *b) {
  for (size_t i = 0; i < g->ndims; i++)
    if (monomial_exponent(a->monomial, i) > monomial_exponent(b->monomial, i)) return false;
  return a->factor <= b->factor && a->nbytes <= b->nbytes;
}

static TensorSize size_of(const Graph *g, const Value *v) {
  TensorSize size = {shape_monomial(&v->shape), 1, type_nbytes(v->type)};
  for (int k = 0; k < v->shape.rank; k++) {
    const Extent e = v->shape.extent[k];
    const int64_t factor = open_factor(g, extent_value(e), extent_monomial(e));
    size.factor *= factor ? factor : 1;
  }
  return size;
}

bool graph_add_largest(const Graph *g, LargestTensors *largest, Arena *arena) {
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (!shape_monomial(&v->shape) || !(v->is_input || v->producer || v->constant)) continue;
    const TensorSize own = size_of(g, v);
    bool is_new = true;
    for (size_t n = 0; n < largest->count; n++) is_new &= !is_within(g, &own, &largest->items[n]);
    if (!is_new) continue;
    size_t left = 0;
    for (size_t n = 0; n < largest->count; n++)
      if (!is_within(g, &largest->items[n], &own)) largest->items[left++] = largest->items[n];
    largest->count = left;
    if (!arena_grow(arena, &largest->items, left, &largest->capacity, sizeof own)) return false;
    largest->items[largest->count++] = own;
  }
  return true;
}
