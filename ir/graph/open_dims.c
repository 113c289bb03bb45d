// Shape inference on named extents finds most extents as formulas. The monomials of other extents are found by
// experiment: one hint after the other is doubled, and the factor by which an extent grows gives the dim's exponent.
// Finally the result is checked at other values of the dims: a shape that does not hold for all values fails an
// operator's inference there.
//
// A formula is a number times a monomial (ir/graph/open_dims.h). A sum that is no product of other sums gets a dim.
#include "ir/graph/open_dims.h"

#include "ir/graph/formula.h"
#include "ir/operators/infer.h"
#include "ir/operators/movement.h"
#include "ir/operators/window.h"

enum { DEFAULT_HINT = 64, LEAST_HINT = 2 };
static const int64_t MOST_HINT = (int64_t)1 << 20; // of a dim in a sum whose hint is raised

// Binding

// The dims of a graph, and the extents to replace them by.
typedef struct Replacing {
  const Graph *graph;
  const Extent *to;
} Replacing;

static Extent replacement(const Dim *dim, const void *context) {
  const Replacing *r = context;
  for (size_t k = 0; k < r->graph->ndims; k++)
    if (r->graph->dims[k] == dim) return r->to[k];
  return (Extent){dim, -1};
}

static int64_t value_in(const Dim *dim, const void *context) {
  return replacement(dim, context).value;
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
  const bool ok = graph_check_slices(g, value_in, &(Replacing){g, to}, d) &&
                  (graph_replace_dims(bound, replacement, &(Replacing){g, to}) || error_out_of_memory(d));
  bound->ndims = bound->nsums = 0;
  if (ok && graph_infer(bound, d) && check_nelems(bound, d)) return bound;
  graph_free(bound);
  return NULL;
}

// Opening

typedef struct Opening {
  const Graph *given;
  Graph *graph;       // the result, with open dims, then sums
  const Dim **opened; // parallel to the open dims: the corresponding dims of `given`
  int64_t *values;    // parallel to given->dims: the values to bind in a trial
  Graph *at_hints;    // `given` bound at the hints
  Graph **doubled;    // parallel to the open dims: `given` bound at the hints, with the hint of this dim doubled
  Extent from, to;    // the formula that was opened last, and its extent with a monomial
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
  Dim **dims = ARENA_ARRAY(&own->arena, Dim *, MAX_OPEN_DIMS);
  o->opened = ARENA_ARRAY(&own->arena, const Dim *, g->ndims + 1);
  o->values = ARENA_ARRAY(&own->arena, int64_t, g->ndims + 1);
  if (!to || !dims || !o->opened || !o->values) return error_out_of_memory(o->diagnostics);
  own->dims = dims;
  own->ndims = own->nsums = 0;
  own->dims_capacity = MAX_OPEN_DIMS;
  for (size_t i = 0; i < g->ndims; i++) {
    const Dim *given = g->dims[i];
    to[i] = EXTENT(given->value);
    if (given->is_fixed) continue;
    if (own->ndims == MAX_OPEN_DIMS)
      return cannot_stay_open(o, given, given->position, "at most 8 dims can stay open, and 8 others are");
    Dim *dim = ARENA_NEW(&own->arena, Dim);
    if (!dim) return error_out_of_memory(o->diagnostics);
    *dim = *given;
    dim->value = given->value < 0 ? DEFAULT_HINT : given->value < LEAST_HINT ? LEAST_HINT : given->value;
    dim->monomial = monomial_of_dim(own->ndims);
    o->opened[own->ndims] = given;
    own->dims[own->ndims++] = dim;
    to[i] = (Extent){dim, -1};
  }
  return graph_replace_dims(own, replacement, &(Replacing){g, to}) || error_out_of_memory(o->diagnostics);
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
    const Dim *as =
        open < graph_narguments(o->graph) && o->opened[open] == o->given->dims[i] ? o->graph->dims[open++] : NULL;
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

static bool report_no_formula(const Opening *o, const Dim *dim, Position at) {
  return cannot_stay_open(o, dim, at, "an extent here is neither a product nor a sum of dims and numbers");
}

// Sums

// Makes the formula a dim of the graph, after dividing it by the greatest number that divides all its factors.
static bool add_sum(Opening *o, Formula *f, Position at) {
  enum { MOST_TERMS = 4 }; // the verifier of kernels multiplies sums out
  Graph *g = o->graph;
  Formula common = {.nterms = 1};
  Extent e;
  const Dim *some = f->terms[0].dims[0];
  for (uint32_t i = 0; i < f->nterms; i++)
    common.terms[0].factor =
        greatest_divisor(f->terms[i].factor < 0 ? -f->terms[i].factor : f->terms[i].factor, common.terms[0].factor);
  if (g->ndims == MAX_OPEN_DIMS)
    return cannot_stay_open(o, some, at, "at most 8 dims and sums of them can stay open, and 8 others are");
  if (f->nterms > MOST_TERMS || !formula_divide(f, &common)) return report_no_formula(o, some, at);
  Dim *dim = ARENA_NEW(&g->arena, Dim);
  if (!dim || !formula_extent(&g->arena, f, &e)) return error_out_of_memory(o->diagnostics);
  if (!e.dim) return report_no_formula(o, some, at);
  *dim = *e.dim;
  dim->monomial = monomial_of_dim(g->ndims);
  g->dims[g->ndims++] = dim;
  g->nsums++;
  return true;
}

// Adds the sum that the formula has as a factor, if the graph has none of its factors yet. `is_place`: the formula is
// an index, which may be -1 where nothing is read.
static bool open_formula(Opening *o, const Formula *f, bool is_place, Position at, Monomial *monomial) {
  const Graph *g = o->graph;
  Formula rest = *f;
  formula_take_dims(g, &rest, monomial);
  if (rest.nterms > 1) {
    if (!add_sum(o, &rest, at)) return false;
    g->dims[g->ndims - 1]->is_place = true;
    *monomial += g->dims[g->ndims - 1]->monomial;
  }
  const bool is_negated = rest.nterms == 1 && rest.terms[0].factor < 0; // T - N beside N - T: not both are extents
  for (size_t i = graph_narguments(g); i < g->ndims; i++) {
    if (!monomial_exponent(*monomial, i)) continue;
    if (is_negated) return report_no_formula(o, open_dim_of(g, i), at);
    g->dims[i]->is_place &= is_place;
  }
  return true;
}

static bool open_extent(Opening *o, Extent *e, Position at) {
  Formula f;
  Monomial monomial;
  if (e->dim != o->from.dim) {
    if (!formula_of(*e, &f) || !open_formula(o, &f, false, at, &monomial)) return false;
    Dim *dim = ARENA_NEW(&o->graph->arena, Dim);
    if (!dim) return error_out_of_memory(o->diagnostics);
    *dim = *e->dim;
    dim->monomial = monomial;
    o->from = *e;
    o->to = (Extent){dim, -1};
  }
  *e = o->to;
  return true;
}

static bool is_formula_of_degree(Extent e, uint32_t degree) {
  return e.dim && e.dim->terms && !e.dim->monomial && e.dim->terms[0].degree == degree;
}

// Makes a sum of an index that a kernel computes, or of a number of elements that must not be negative.
static bool open_place(Opening *o, const Formula *f, bool is_place, Position at) {
  Monomial monomial;
  return open_formula(o, f, is_place, at, &monomial);
}

// Where the parts of a Concat begin.
static bool open_concat(Opening *o, const Node *node, int axis) {
  Formula place = {0}, next;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    if (!open_place(o, &place, false, node->position)) return false;
    if (!formula_of(node->inputs[i]->shape.extent[axis], &next) || !formula_add(&place, &next, 1)) return true;
  }
  return true;
}

// The first index of a Slice, and what it leaves out.
static bool open_slice(Opening *o, const Node *node, int axis) {
  AxisRead reads[MAX_RANK];
  Formula first, count, front, behind;
  node_reads(node, reads);
  if (!node_read_formulas(node, axis, &first, &count) || !node_left_out(node, axis, &front, &behind)) return true;
  return open_place(o, &behind, false, node->position) && open_place(o, &first, reads[axis].step < 0, node->position) &&
         open_place(o, &front, false, node->position);
}

// Where the elements of a Pad begin and end, and how many are left of those that it removes some of.
static bool open_pad(Opening *o, const Node *node, int axis) {
  Formula begin, end, src;
  if (!item_formula(node_attribute(node, "pads_begin"), (size_t)axis, &begin) ||
      !item_formula(node_attribute(node, "pads_end"), (size_t)axis, &end) ||
      !formula_of(node->inputs[0]->shape.extent[axis], &src) || !formula_add(&end, &src, 1) ||
      !formula_add(&src, &begin, 1))
    return true;
  return open_place(o, &begin, false, node->position) && open_place(o, &end, false, node->position) &&
         open_place(o, &src, false, node->position);
}

static bool open_places(Opening *o, const Node *node) {
  const OperatorId id = node->op->id;
  const Shape *src = &node->inputs[0]->shape, *dst = node->outputs[0] ? &node->outputs[0]->shape : NULL;
  if ((id != OP_Concat && id != OP_Slice && id != OP_Pad) || !dst || dst->rank < 0 || src->rank < 0) return true;
  if (id == OP_Concat) return open_concat(o, node, axis_of(node, dst->rank));
  Extent first, last;
  for (int axis = 0; axis < src->rank; axis++) {
    if (!src->extent[axis].dim && !dst->extent[axis].dim && !node_has_named_reads(node, axis, &first, &last)) continue;
    if (!(id == OP_Slice ? open_slice : open_pad)(o, node, axis)) return false;
  }
  return true;
}

// Whether the dim is in a term of the sum with this sign.
static bool is_in_terms(const Dim *sum, const Dim *dim, int sign) {
  for (uint32_t t = 0; t < sum->nterms; t++)
    for (uint32_t i = 0; i < sum->terms[t].degree; i++)
      if (sum->terms[t].dims[i] == dim && (sum->terms[t].factor > 0) == (sign > 0)) return true;
  return false;
}

// Halves the greatest hint of a dim that the sum subtracts, such as T of 8 - T.
static bool lower_hint(Opening *o, const Dim *sum) {
  const Graph *g = o->graph;
  Dim *best = NULL;
  for (size_t k = 0; k < graph_narguments(g); k++)
    if (is_in_terms(sum, g->dims[k], -1) && (!best || g->dims[k]->value > best->value)) best = g->dims[k];
  if (!best || best->value / 2 < LEAST_HINT) {
    const Dim *some = best ? best : sum->terms[0].dims[0];
    return cannot_stay_open(o, some, some->position, "an extent here is negative for large dims");
  }
  best->value /= 2;
  return true;
}

// Doubles the hint of a dim that makes the sum greater: if possible one that no term subtracts, and the least of these.
static bool raise_hint(Opening *o, const Dim *sum) {
  const Graph *g = o->graph;
  Dim *best = NULL;
  bool best_is_subtracted = false;
  for (size_t k = 0; k < graph_narguments(g); k++) {
    Dim *dim = g->dims[k];
    const bool is_subtracted = is_in_terms(sum, dim, -1);
    if (!is_in_terms(sum, dim, 1) || (best && is_subtracted && !best_is_subtracted)) continue;
    if (best && is_subtracted == best_is_subtracted && dim->value >= best->value) continue;
    best = dim;
    best_is_subtracted = is_subtracted;
  }
  if (!best) return lower_hint(o, sum);
  if (best->value > MOST_HINT)
    return cannot_stay_open(o, best, best->position, "an extent here is negative for small dims");
  best->value *= 2;
  return true;
}

// Whether the sum is at least LEAST_HINT at the hints, and no sum is negative in a trial, where one hint is doubled.
static bool is_high(const Graph *g, const Dim *sum) {
  bool ok = extent_value((Extent){sum, -1}) >= LEAST_HINT;
  for (size_t k = 0; ok && k < graph_narguments(g); k++) {
    g->dims[k]->value *= 2;
    ok = extent_value((Extent){sum, -1}) >= 0;
    g->dims[k]->value /= 2;
  }
  return ok;
}

// The hints must be such that each sum is.
static bool raise_hints(Opening *o) {
  enum { MOST_CHANGES = 1000 }; // of hints: one sum may ask for greater ones, another for lesser ones
  const Graph *g = o->graph;
  int nchanges = 0;
  for (size_t i = graph_narguments(g); i < g->ndims;) {
    const bool is_enough = is_high(g, g->dims[i]);
    if (!is_enough && nchanges++ == MOST_CHANGES) return report_no_formula(o, open_dim_of(g, i), g->dims[i]->position);
    if (!is_enough && !raise_hint(o, g->dims[i])) return false;
    i = is_enough ? i + 1 : graph_narguments(g); // a dim that is greater makes other sums less
  }
  for (size_t i = graph_narguments(g); i < g->ndims; i++) g->dims[i]->value = extent_value((Extent){g->dims[i], -1});
  return true;
}

// Opens the named items of a node's lists, which graph_replace_dims has copied.
static bool open_items(Opening *o, const Node *node, uint32_t degree) {
  bool ok = true;
  for (uint32_t k = 0; k < node->op->nattributes; k++) {
    const AttributeValue *value = &node->attributes[k];
    Extent *extents = node->op->attributes[k].may_be_named ? (Extent *)value->list.extents : NULL;
    for (size_t i = 0; ok && extents && i < value->list.count; i++)
      if (is_formula_of_degree(extents[i], degree)) ok = open_extent(o, &extents[i], node->position);
  }
  return ok;
}

// Gives each formula its monomial. Formulas of low degree come first, as others are products of them.
static bool open_formulas(Opening *o) {
  const Graph *g = o->graph;
  bool ok = true;
  for (uint32_t degree = 1; ok && degree <= MAX_DEGREE; degree++) {
    for (size_t i = 0; ok && i < g->nvalues; i++) {
      Shape *s = &g->values[i]->shape;
      for (int axis = 0; axis < s->rank && ok; axis++)
        if (is_formula_of_degree(s->extent[axis], degree))
          ok = open_extent(o, &s->extent[axis], value_position(g->values[i]));
    }
    for (size_t i = 0; ok && i < g->nnodes; i++) {
      ok = open_items(o, g->nodes[i], degree);
      if (ok && degree == 1) ok = open_places(o, g->nodes[i]);
    }
  }
  o->graph->is_open = ok;
  return ok && raise_hints(o);
}

// Finds the monomial of an extent that inference left unknown, from the extent's values in the trials.
static bool find_extent(Opening *o, Value *v, int axis) {
  const Graph *g = o->graph;
  int64_t number = o->at_hints->values[v->index]->shape.extent[axis].value;
  Formula f = {.nterms = number > 0}, dim;
  const int64_t whole = number;
  f.terms[0] = (FormulaTerm){.factor = number};
  for (size_t i = 0; i < graph_narguments(g) && number > 0; i++) {
    int64_t becomes = o->doubled[i]->values[v->index]->shape.extent[axis].value;
    for (; becomes > whole && becomes % 2 == 0; becomes /= 2) {
      if (f.terms[0].factor % g->dims[i]->value) return report_no_formula(o, g->dims[i], value_position(v));
      f.terms[0].factor /= g->dims[i]->value;
      if (!formula_of((Extent){g->dims[i], -1}, &dim) || !formula_multiply(&f, &dim))
        return report_no_formula(o, g->dims[i], value_position(v));
    }
    if (becomes != whole) return report_no_formula(o, g->dims[i], value_position(v));
  }
  Extent *e = &v->shape.extent[axis];
  if (!formula_extent(&o->graph->arena, &f, e)) return error_out_of_memory(o->diagnostics);
  return !e->dim || !e->dim->terms || open_extent(o, e, value_position(v));
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
  for (size_t i = 0; ok && i < graph_narguments(g); i++) {
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
  for (size_t i = 0; i < graph_narguments(g); i++) values[i] = i == dim ? value : g->dims[i]->value;
  for (size_t i = 0; ok && i < g->nvalues; i++) {
    const Value *v = g->values[i];
    for (int axis = 0; ok && axis < v->shape.rank; axis++) {
      Extent e = v->shape.extent[axis];
      int64_t expected = open_number(g, extent_value(e), extent_monomial(e), values);
      ok = bound->values[i]->shape.extent[axis].value == expected ||
           report_no_formula(o, g->dims[dim], value_position(v));
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
  bool ok =
      open_dims(&o) && graph_infer(o.graph, d) && open_formulas(&o) && check_nelems(o.graph, d) && find_extents(&o);
  for (size_t i = 0; ok && i < graph_narguments(o.graph); i++) ok = check_at(&o, i, o.graph->dims[i]->value + 1);
  for (size_t i = 0; o.doubled && i < graph_narguments(o.graph); i++) graph_free(o.doubled[i]);
  graph_free(o.at_hints);
  if (ok) return o.graph;
  graph_free(o.graph);
  return NULL;
}
