// The dims of graphs: sharing them, copying them, and replacing them by numbers.
#include "ir/graph/formula.h"
#include "ir/operators/movement.h"

#include <string.h>

Dim *graph_add_dim(Graph *g, const char *name, int64_t value) {
  Dim *dim = ARENA_NEW(&g->arena, Dim);
  if (!dim || !arena_grow(&g->arena, &g->dims, g->ndims, &g->dims_capacity, sizeof *g->dims)) return NULL;
  dim->name = arena_copy_text(&g->arena, name, strlen(name));
  dim->value = value;
  if (!dim->name) return NULL;
  g->dims[g->ndims++] = dim;
  return dim;
}

Dim *graph_find_dim(const Graph *g, const char *name) {
  for (size_t i = 0; i < g->ndims; i++)
    if (strcmp(g->dims[i]->name, name) == 0) return g->dims[i];
  return NULL;
}

bool graph_share_dims(Graph *g, const Graph *from) {
  g->dims = ARENA_ARRAY(&g->arena, Dim *, from->ndims + 1);
  if (!g->dims) return false;
  if (from->ndims) memcpy(g->dims, from->dims, from->ndims * sizeof *g->dims);
  g->ndims = g->dims_capacity = from->ndims;
  g->nsums = from->nsums;
  g->is_open = from->is_open;
  return true;
}

// Replaces dims in a list of a node's attribute, which other graphs share. A list without names becomes plain again.
static bool replace_in_list(Arena *arena, AttributeValue *value, Extent (*to)(const Dim *, const void *context),
                            const void *context) {
  const size_t count = value->list.count;
  Extent *extents = ARENA_ARRAY(arena, Extent, count);
  int64_t *items = ARENA_ARRAY(arena, int64_t, count);
  bool any = false;
  if (!extents || !items) return false;
  for (size_t i = 0; i < count; i++) {
    items[i] = value->list.items[i];
    extents[i] = value->list.extents[i];
    if (!extents[i].dim) continue;
    if (!extent_substitute(arena, extents[i], to, context, &extents[i])) return false;
    if (extents[i].dim) any = true;
    else items[i] = extents[i].value < 0 ? NO_NUMBER : extents[i].value;
  }
  value->list.items = items;
  value->list.extents = any ? extents : NULL;
  return true;
}

bool graph_replace_dims(Graph *g, Extent (*to)(const Dim *, const void *context), const void *context) {
  for (size_t i = 0; i < g->nvalues; i++) {
    Shape *s = &g->values[i]->shape;
    for (int axis = 0; axis < s->rank; axis++)
      if (!extent_substitute(&g->arena, s->extent[axis], to, context, &s->extent[axis])) return false;
  }
  for (size_t i = 0; i < g->nnodes; i++) {
    const Node *node = g->nodes[i];
    for (uint32_t k = 0; k < node->op->nattributes; k++)
      if (node->op->attributes[k].may_be_named && node->attributes[k].list.extents &&
          !replace_in_list(&g->arena, &node->attributes[k], to, context))
        return false;
  }
  return true;
}

// A graph's dims, and their copies.
typedef struct OwnDims {
  const Graph *graph;
  Dim **own;
} OwnDims;

static Extent own_dim(const Dim *dim, const void *context) {
  const OwnDims *dims = context;
  for (size_t k = 0; k < dims->graph->ndims; k++)
    if (dims->graph->dims[k] == dim) return (Extent){dims->own[k], -1};
  return (Extent){dim, -1};
}

bool graph_own_dims(Graph *g) {
  const OwnDims dims = {g, ARENA_ARRAY(&g->arena, Dim *, g->ndims + 1)};
  for (size_t i = 0; dims.own && i < g->ndims; i++) {
    dims.own[i] = ARENA_NEW(&g->arena, Dim);
    if (!dims.own[i]) return false;
    *dims.own[i] = *g->dims[i];
  }
  if (!dims.own || !graph_replace_dims(g, own_dim, &dims)) return false;
  g->dims = dims.own;
  return true;
}

static bool replace_dims(Graph *g, Extent (*to)(const Dim *, const void *), Diagnostics *d) {
  bool ok = graph_replace_dims(g, to, NULL) || error_out_of_memory(d);
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (shape_is_known(&v->shape) && shape_nelems(&v->shape) < 0)
      ok = error_at(d, v->position, "%s: too many elements, expected fewer than 2^47", v->name);
  }
  return ok;
}

// Adds the formula's dims and their values, as in "N 5 and T 7".
static void add_dims(const Formula *f, int64_t (*value_of)(const Dim *, const void *), const void *context, Text *out) {
  const Dim *dims[MAX_TERMS * MAX_DEGREE];
  size_t count = 0;
  for (uint32_t t = 0; t < f->nterms; t++)
    for (uint32_t k = 0; k < f->terms[t].degree; k++) {
      size_t i = 0;
      while (i < count && dims[i] != f->terms[t].dims[k]) i++;
      dims[i] = f->terms[t].dims[k];
      count += i == count;
    }
  for (size_t i = 0; i < count; i++)
    text_format(out, "%s%s %lld",
                i == 0          ? ""
                : i + 1 < count ? ", "
                                : " and ",
                dims[i]->name, (long long)value_of(dims[i], context));
}

static bool is_negative(const Graph *g, const Node *node, int axis, const Formula *f,
                        int64_t (*value_of)(const Dim *, const void *), const void *context, Diagnostics *d) {
  char title[NODE_TITLE_BYTES];
  Arena arena;
  Extent e;
  Text found;
  if (terms_value(f->terms, f->nterms, value_of, context) >= 0) return false;
  arena_init(&arena, g->arena.allocator);
  text_init(&found, g->arena.allocator);
  add_dims(f, value_of, context, &found);
  const bool ok = formula_extent(&arena, f, &e) && !found.out_of_memory;
  if (!ok) error_out_of_memory(d);
  else
    error_at(d, node->position, "%s: starts and ends: expected places on axis %d of %s, with %s at least 0, found %s",
             node_title(node, title), axis, node->inputs[0]->name, e.dim ? e.dim->name : "all sums",
             text_string(&found));
  text_deinit(&found);
  arena_deinit(&arena);
  return true;
}

bool graph_check_slices(const Graph *g, int64_t (*value_of)(const Dim *, const void *), const void *context,
                        Diagnostics *d) {
  bool ok = true;
  for (size_t i = 0; i < g->nnodes; i++) {
    const Node *node = g->nodes[i];
    Extent start, end;
    Formula first, count, front, behind;
    if (node->op->id != OP_Slice) continue;
    for (int axis = 0; axis < node->inputs[0]->shape.rank; axis++) {
      if (!node_has_named_reads(node, axis, &start, &end)) continue;
      if (!node_left_out(node, axis, &front, &behind) || !node_read_formulas(node, axis, &first, &count)) continue;
      ok = ok && !is_negative(g, node, axis, &front, value_of, context, d) &&
           !is_negative(g, node, axis, &behind, value_of, context, d) &&
           !is_negative(g, node, axis, &count, value_of, context, d);
    }
  }
  return ok;
}

static int64_t value_of_dim(const Dim *dim, const void *unused) {
  (void)unused;
  return dim->value;
}

static Extent number_of(const Dim *dim, const void *unused) {
  (void)unused;
  return EXTENT(dim->value);
}

bool graph_bind_dims(Graph *g, Diagnostics *d) {
  bool ok = true;
  for (size_t i = 0; i < g->ndims; i++)
    if (g->dims[i]->value < 0)
      ok = error_at(d, g->dims[i]->position, "%s has no value, expected one in dims or by --dim %s=NUMBER",
                    g->dims[i]->name, g->dims[i]->name);
  ok = ok && graph_check_slices(g, value_of_dim, NULL, d) && replace_dims(g, number_of, d);
  if (ok) g->ndims = 0;
  return ok;
}

static Extent number_if_fixed(const Dim *dim, const void *unused) {
  (void)unused;
  return dim->is_fixed ? EXTENT(dim->value) : (Extent){dim, -1};
}

static bool has_unknown_extents(const Graph *g) {
  for (size_t i = 0; i < g->nvalues; i++)
    for (int axis = 0; axis < g->values[i]->shape.rank; axis++)
      if (extent_is_unknown(g->values[i]->shape.extent[axis])) return true;
  return false;
}

bool graph_bind_fixed_dims(Graph *g, bool is_always, Diagnostics *d) {
  if (!is_always && !has_unknown_extents(g)) return true;
  if (!replace_dims(g, number_if_fixed, d)) return false;
  size_t nleft = 0;
  for (size_t i = 0; i < g->ndims; i++)
    if (!g->dims[i]->is_fixed) g->dims[nleft++] = g->dims[i];
  g->ndims = nleft;
  return true;
}
