// Shape inference on named extents finds most extents. The monomials of other extents (an axis that a reshape joins
// from several, say) are found by experiment: one hint after the other is doubled, and the factor by which an extent
// grows gives the dim's exponent. Finally the result is checked at other values of the dims: a shape that does not hold
// for all values fails an operator's inference there.
#include "ir/graph/open_dims.h"

#include "ir/operators/infer.h"

enum { DEFAULT_HINT = 64, POWER_BITS = 8 };

int monomial_exponent(Monomial monomial, size_t dim) {
  return (int)(monomial >> (dim * POWER_BITS) & ((1U << POWER_BITS) - 1));
}

int64_t monomial_value(const Graph *g, Monomial monomial, const int64_t *values) {
  int64_t product = 1;
  for (size_t i = 0; monomial && i < g->ndims; i++)
    for (int n = monomial_exponent(monomial, i); n > 0; n--) product *= values ? values[i] : g->dims[i]->value;
  return product;
}

int64_t open_factor(const Graph *g, int64_t number, Monomial monomial) {
  return number / monomial_value(g, monomial, NULL);
}

int64_t open_number(const Graph *g, int64_t number, Monomial monomial, const int64_t *values) {
  return open_factor(g, number, monomial) * monomial_value(g, monomial, values);
}

// Binding

// Replaces the dims of g in the extents of its clone by `to` (parallel to g->dims). Dims that stand for products of
// open dims are not in g->dims; they become numbers.
static void replace_dims(Graph *clone, const Graph *g, const Extent *to) {
  int64_t values[MAX_OPEN_DIMS] = {0};
  for (size_t k = 0; k < g->ndims && k < MAX_OPEN_DIMS; k++) values[k] = to[k].value;
  for (size_t i = 0; i < clone->nvalues; i++) {
    Shape *s = &clone->values[i]->shape;
    for (int axis = 0; axis < s->rank; axis++) {
      const Dim *dim = s->extent[axis].dim;
      if (dim && dim->monomial) s->extent[axis] = EXTENT(open_number(g, dim->value, dim->monomial, values));
      for (size_t k = 0; dim && k < g->ndims; k++)
        if (g->dims[k] == dim) s->extent[axis] = to[k];
    }
  }
}

static bool check_nelems(const Graph *g, Diagnostics *d) {
  bool ok = true;
  for (size_t i = 0; i < g->nvalues; i++)
    if (shape_is_known(&g->values[i]->shape) && shape_nelems(&g->values[i]->shape) < 0)
      ok = error_at(d, g->values[i]->position, "%s: too many elements, expected fewer than 2^47", g->values[i]->name);
  return ok;
}

Graph *graph_with_dims(const Graph *g, const int64_t *values, Diagnostics *d) {
  Graph *bound = graph_clone(g);
  Extent *to = bound ? ARENA_ARRAY(&bound->arena, Extent, g->ndims) : NULL;
  if (!to) {
    error_out_of_memory(d);
    graph_free(bound);
    return NULL;
  }
  for (size_t i = 0; i < g->ndims; i++) to[i] = EXTENT(values[i]);
  replace_dims(bound, g, to);
  bound->ndims = 0;
  if (graph_infer(bound, d) && check_nelems(bound, d)) return bound;
  graph_free(bound);
  return NULL;
}

// Opening

typedef struct Opening {
  const Graph *given;
  Graph *graph;       // the result, with open dims
  const Dim **opened; // parallel to graph->dims: the corresponding dims of `given`
  int64_t *values;    // parallel to given->dims: the values to bind in a trial
  Graph *at_hints;    // `given` bound at the hints
  Graph **doubled;    // parallel to graph->dims: `given` bound at the hints, with the hint of this dim doubled
  Diagnostics *diagnostics;
} Opening;

static bool cannot_stay_open(const Opening *o, const Dim *dim, Position at, const char *why) {
  return error_at(o->diagnostics, at, "%s cannot stay open: %s; --dim %s=%lld bakes it in", dim->name, why, dim->name,
                  (long long)dim->value);
}

static bool open_dims(Opening *o) {
  const Graph *g = o->given;
  Graph *own = o->graph;
  Extent *to = ARENA_ARRAY(&own->arena, Extent, g->ndims + 1);
  Dim **dims = ARENA_ARRAY(&own->arena, Dim *, g->ndims + 1);
  o->opened = ARENA_ARRAY(&own->arena, const Dim *, g->ndims + 1);
  o->values = ARENA_ARRAY(&own->arena, int64_t, g->ndims + 1);
  if (!to || !dims || !o->opened || !o->values) return error_out_of_memory(o->diagnostics);
  own->dims = dims;
  own->ndims = 0;
  own->dims_capacity = g->ndims + 1;
  for (size_t i = 0; i < g->ndims; i++) {
    const Dim *given = g->dims[i];
    to[i] = EXTENT(given->value);
    if (given->is_fixed) continue;
    if (own->ndims == MAX_OPEN_DIMS)
      return cannot_stay_open(o, given, given->position, "at most 8 dims can stay open, and 8 others are");
    Dim *dim = ARENA_NEW(&own->arena, Dim);
    if (!dim) return error_out_of_memory(o->diagnostics);
    *dim = *given;
    dim->value = given->value < 0 ? DEFAULT_HINT : given->value < 2 ? 2 : given->value;
    dim->monomial = (Monomial)1 << (own->ndims * POWER_BITS);
    o->opened[own->ndims] = given;
    own->dims[own->ndims++] = dim;
    to[i] = (Extent){dim, -1};
  }
  replace_dims(own, g, to);
  return true;
}

// The given graph bound at the hints, except that `dim` (NULL: none) has this value. NULL after reporting why the graph
// is invalid at these values.
static Graph *bound_with(const Opening *o, const Dim *dim, int64_t value) {
  Diagnostics own;
  Text why;
  size_t open = 0;
  diagnostics_init(&own, o->graph->arena.allocator);
  text_init(&why, o->graph->arena.allocator);
  for (size_t i = 0; i < o->given->ndims; i++) {
    const Dim *as = open < o->graph->ndims && o->opened[open] == o->given->dims[i] ? o->graph->dims[open++] : NULL;
    o->values[i] = !as ? o->given->dims[i]->value : as == dim ? value : as->value;
  }
  Graph *bound = graph_with_dims(o->given, o->values, dim ? &own : o->diagnostics);
  if (dim && own.count) {
    text_format(&why, "at %lld, %s", (long long)value, own.items[0].message);
    cannot_stay_open(o, dim, (Position){o->given->source, own.items[0].line, own.items[0].column}, text_string(&why));
  }
  if (own.out_of_memory || why.out_of_memory) error_out_of_memory(o->diagnostics);
  text_deinit(&why);
  diagnostics_deinit(&own);
  return bound;
}

static Position value_position(const Value *v) {
  return v->producer ? v->producer->position : v->position;
}

static bool report_no_product(const Opening *o, const Dim *dim, const Value *v) {
  return cannot_stay_open(o, dim, value_position(v), "an extent here is not a product of dims and a number");
}

// Sets *e to the extent with this value at the hints and this monomial. Equal products must be the same dim, because
// extent_equals compares dims: a dim of the file or of an earlier product is reused.
static bool find_product(Opening *o, int64_t number, Monomial monomial, Extent *e) {
  Graph *g = o->graph;
  for (size_t i = 0; i < g->nvalues; i++)
    for (int axis = 0; axis < g->values[i]->shape.rank; axis++) {
      *e = g->values[i]->shape.extent[axis];
      if (e->dim && e->dim->monomial == monomial && e->dim->value == number) return true;
    }
  Dim *dim = ARENA_NEW(&g->arena, Dim);
  Text name;
  text_init(&name, g->arena.allocator);
  int64_t factor = open_factor(g, number, monomial);
  if (factor != 1) text_format(&name, "%lld", (long long)factor);
  for (size_t i = 0; i < g->ndims; i++)
    for (int n = monomial_exponent(monomial, i); n > 0; n--)
      text_format(&name, "%s%s", name.nbytes ? " * " : "", g->dims[i]->name);
  const char *copy = name.out_of_memory ? NULL : arena_copy_text(&g->arena, text_string(&name), name.nbytes);
  text_deinit(&name);
  if (!dim || !copy) return error_out_of_memory(o->diagnostics);
  *dim = (Dim){.name = copy, .value = number, .monomial = monomial};
  *e = (Extent){dim, -1};
  return true;
}

// Finds the monomial of an extent that inference left unknown, from the extent's values in the trials.
static bool find_extent(Opening *o, Value *v, int axis) {
  const Graph *g = o->graph;
  int64_t number = o->at_hints->values[v->index]->shape.extent[axis].value;
  Monomial monomial = 0;
  for (size_t i = 0; i < g->ndims && number > 0; i++) {
    int64_t becomes = o->doubled[i]->values[v->index]->shape.extent[axis].value;
    for (; becomes > number && becomes % 2 == 0; becomes /= 2) monomial += g->dims[i]->monomial;
    if (becomes != number || number % monomial_value(g, monomial, NULL)) return report_no_product(o, g->dims[i], v);
  }
  v->shape.extent[axis] = EXTENT(number);
  return !monomial || find_product(o, number, monomial, &v->shape.extent[axis]);
}

static bool check_all_known(const Opening *o, const Graph *bound) {
  char shape[256];
  for (size_t i = 0; i < bound->nvalues; i++) {
    const Value *v = bound->values[i];
    if (shape_is_known(&v->shape) && v->type != TYPE_NONE) continue;
    return error_at(o->diagnostics, v->position, "%s %s: expected every extent to follow from the inputs and dims",
                    v->name, shape_string(&v->shape, shape, sizeof shape));
  }
  return true;
}

static bool find_extents(Opening *o) {
  Graph *g = o->graph;
  o->doubled = ARENA_ARRAY(&g->arena, Graph *, g->ndims + 1);
  if (!o->doubled) return error_out_of_memory(o->diagnostics);
  o->at_hints = bound_with(o, NULL, 0);
  bool ok = o->at_hints && check_all_known(o, o->at_hints);
  for (size_t i = 0; ok && i < g->ndims; i++) {
    o->doubled[i] = bound_with(o, g->dims[i], 2 * g->dims[i]->value);
    ok = o->doubled[i] != NULL;
  }
  for (size_t i = 0; ok && i < g->nvalues; i++) {
    Value *v = g->values[i];
    const Value *known = o->at_hints->values[i];
    v->type = known->type;
    bool has_rank = v->shape.rank >= 0;
    v->shape.rank = known->shape.rank;
    for (int axis = 0; axis < known->shape.rank && ok; axis++)
      if (!has_rank || extent_is_unknown(v->shape.extent[axis])) ok = find_extent(o, v, axis);
  }
  return ok;
}

// Compares the open graph's shapes, at this value of one dim, with the given graph bound at the same values.
static bool check_at(const Opening *o, size_t dim, int64_t value) {
  const Graph *g = o->graph;
  Graph *bound = bound_with(o, g->dims[dim], value);
  int64_t values[MAX_OPEN_DIMS];
  bool ok = bound != NULL;
  for (size_t i = 0; i < g->ndims; i++) values[i] = i == dim ? value : g->dims[i]->value;
  for (size_t i = 0; ok && i < g->nvalues; i++) {
    const Value *v = g->values[i];
    for (int axis = 0; ok && axis < v->shape.rank; axis++) {
      Extent e = v->shape.extent[axis];
      int64_t expected = open_number(g, extent_value(e), extent_monomial(e), values);
      ok = bound->values[i]->shape.extent[axis].value == expected || report_no_product(o, g->dims[dim], v);
    }
    bool is_listed = v->constant && !v->constant->is_splat && monomial_exponent(shape_monomial(&v->shape), dim);
    if (ok && is_listed)
      ok = cannot_stay_open(o, g->dims[dim], v->position, "it is an extent of a constant whose elements are listed");
  }
  graph_free(bound);
  return ok;
}

Graph *graph_with_open_dims(const Graph *g, Diagnostics *d) {
  Opening o = {.given = g, .graph = graph_clone(g), .diagnostics = d};
  if (!o.graph) {
    error_out_of_memory(d);
    return NULL;
  }
  bool ok = open_dims(&o) && graph_infer(o.graph, d) && check_nelems(o.graph, d) && find_extents(&o);
  for (size_t i = 0; ok && i < o.graph->ndims; i++) ok = check_at(&o, i, o.graph->dims[i]->value + 1);
  for (size_t i = 0; o.doubled && i < o.graph->ndims; i++) graph_free(o.doubled[i]);
  graph_free(o.at_hints);
  if (ok) return o.graph;
  graph_free(o.graph);
  return NULL;
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
