// Nodes, initializers and properties that the writers of ONNX's operators share.
#include "frontend/onnx/expansion.h"
#include "frontend/onnx/write_standard.h"
#include "ir/graph/formula.h"

#include <string.h>

bool onnx_choice_is(const Node *node, const char *attribute, const char *choice) {
  const AttributeValue *value = node_attribute(node, attribute);
  return strcmp(node->op->attributes[value - node->attributes].choices[value->s64], choice) == 0;
}

const char *onnx_put_list(OnnxWriter *w, const char *to, const char *const *op_and_inputs) {
  onnx_begin_list(w, op_and_inputs);
  return onnx_end(w, to);
}

const char *onnx_put_cast(OnnxWriter *w, const char *from, Type type, const char *to) {
  onnx_begin(w, "Cast", from);
  onnx_add_int(w, "to", (int64_t)onnx_type_number(type));
  return onnx_end(w, to);
}

const char *onnx_put_transpose(OnnxWriter *w, const char *from, const int64_t *order, int rank, const char *to) {
  onnx_begin(w, "Transpose", from);
  onnx_add_ints(w, "perm", order, (size_t)rank);
  return onnx_end(w, to);
}

const char *onnx_put_range(OnnxWriter *w, Type type, int64_t count, int behind) {
  void *items = arena_array(w->node_names.arena, (size_t)count + 1, type_nbytes(type));
  int64_t extents[MAX_RANK] = {count};
  if (!items) return w->node.out_of_memory = true, "";
  for (int64_t i = 0; i < count; i++) type_store(type, items, (size_t)i, (double)i);
  for (int i = 1; i <= behind; i++) extents[i] = 1;
  return onnx_put_initializer(w, type, extents, behind + 1, items);
}

const char *onnx_put_filled(OnnxWriter *w, double number, const int64_t *extents, size_t rank) {
  const char *shape = onnx_put_numbers(w, extents, rank), *element = onnx_put_scalar(w, w->type, number);
  return onnx_put(w, "Expand", NULL, element, shape);
}

// An input, and its axis, with the extent; NULL: none has it.
static const Value *find_extent(const Graph *g, Extent e, int64_t *axis) {
  for (size_t i = 0; i < g->ninputs; i++)
    for (*axis = 0; *axis < g->inputs[i]->shape.rank; ++*axis)
      if (extent_equals(g->inputs[i]->shape.extent[*axis], e)) return g->inputs[i];
  return NULL;
}

static Extent of_dim(const Dim *dim) {
  return (Extent){dim, -1};
}

// A name that inputs have in a formula alone, as T in 2 * N * T + 4: what the name is a factor of, once, in `term`; all
// else in the formula are names of extents.
typedef struct Solution {
  const Value *input;
  int64_t axis;
  const Dim *formula, *name;
  const FormulaTerm *term;
} Solution;

static bool is_solution(const Graph *g, const Solution *s) {
  int64_t axis;
  int count = 0;
  for (uint32_t t = 0; t < s->formula->nterms; t++) {
    const FormulaTerm *term = &s->formula->terms[t];
    for (uint32_t k = 0; k < term->degree; k++) {
      const bool is_name = extent_equals(of_dim(term->dims[k]), of_dim(s->name));
      if (is_name ? term != s->term : !find_extent(g, of_dim(term->dims[k]), &axis)) return false;
      count += is_name;
    }
  }
  return count == 1;
}

static bool solve(const Graph *g, const Dim *name, Solution *s) {
  for (size_t i = 0; i < g->ninputs; i++)
    for (int axis = 0; axis < g->inputs[i]->shape.rank; axis++) {
      const Dim *formula = g->inputs[i]->shape.extent[axis].dim;
      for (uint32_t t = 0; formula && t < formula->nterms; t++) {
        *s = (Solution){g->inputs[i], axis, formula, name, &formula->terms[t]};
        if (is_solution(g, s)) return true;
      }
    }
  return false;
}

bool onnx_has_extent(const Graph *g, Extent e) {
  int64_t axis;
  Solution s;
  if (extent_is_literal(e) || find_extent(g, e, &axis) || (e.dim && solve(g, e.dim, &s))) return true;
  bool ok = e.dim && e.dim->nterms;
  for (uint32_t t = 0; ok && t < e.dim->nterms; t++)
    for (uint32_t k = 0; ok && k < e.dim->terms[t].degree; k++)
      ok = find_extent(g, of_dim(e.dim->terms[t].dims[k]), &axis) || solve(g, e.dim->terms[t].dims[k], &s);
  return ok;
}

// The extent of an input, as s64 [1].
static const char *put_axis(OnnxWriter *w, const Value *input, int64_t axis) {
  const char *at = onnx_put_numbers(w, &axis, 1), *shape = onnx_put(w, "Shape", NULL, input->name);
  return onnx_put(w, "Gather", NULL, shape, at);
}

static const char *put_named(OnnxWriter *w, Extent e);

// times * the term's names without one, `without`; NULL: 1.
static const char *put_product(OnnxWriter *w, const FormulaTerm *term, int64_t times, const Dim *without) {
  const char *product = NULL;
  for (uint32_t k = 0; k < term->degree; k++) {
    if (without && extent_equals(of_dim(term->dims[k]), of_dim(without))) continue;
    const char *factor = put_named(w, of_dim(term->dims[k]));
    product = product ? onnx_put(w, "Mul", NULL, product, factor) : factor;
  }
  if (times == 1 && (product || without)) return product;
  const char *number = onnx_put_numbers(w, &times, 1);
  return product ? onnx_put(w, "Mul", NULL, product, number) : number;
}

// NULL: no input has the extent.
static const char *put_named(OnnxWriter *w, Extent e) {
  int64_t axis;
  const Value *input = find_extent(w->graph, e, &axis);
  Solution s;
  if (input) return put_axis(w, input, axis);
  if (!e.dim || !solve(w->graph, e.dim, &s)) return NULL;
  const char *rest = put_axis(w, s.input, s.axis), *factor = put_product(w, s.term, s.term->factor, s.name);
  for (uint32_t t = 0; t < s.formula->nterms; t++)
    if (&s.formula->terms[t] != s.term)
      rest = onnx_put(w, "Sub", NULL, rest, put_product(w, &s.formula->terms[t], s.formula->terms[t].factor, NULL));
  return factor ? onnx_put(w, "Div", NULL, rest, factor) : rest;
}

// Numbers may be negative.
static const char *put_extent(OnnxWriter *w, Extent e) {
  const char *sum = e.dim ? put_named(w, e) : onnx_put_numbers(w, &e.value, 1);
  if (sum || !e.dim) return sum;
  const uint32_t first = terms_first_added(e.dim->terms, e.dim->nterms);
  for (uint32_t t = 0; t < e.dim->nterms; t++) {
    const FormulaTerm *term = &e.dim->terms[t == 0 ? first : t - (t <= first)];
    const int64_t times = sum && term->factor < 0 ? -term->factor : term->factor;
    const char *product = put_product(w, term, times, NULL);
    sum = sum ? onnx_put(w, times == term->factor ? "Add" : "Sub", NULL, sum, product) : product;
  }
  return sum;
}

const char *onnx_put_extents(OnnxWriter *w, const Extent *extents, size_t count) {
  const char *items[MAX_VARIADIC], *to = onnx_fresh(w);
  for (size_t i = 0; i < count; i++) items[i] = put_extent(w, extents[i]);
  onnx_begin(w, "Concat");
  for (size_t i = 0; i < count; i++) onnx_add_input(w, items[i]);
  onnx_add_int(w, "axis", 0);
  return onnx_end(w, to);
}

const char *onnx_put_items(OnnxWriter *w, const Node *node, const char *attribute, size_t count,
                           const int64_t *missing) {
  const AttributeValue *list = node_attribute(node, attribute);
  const int64_t *numbers = list->list.count ? list->list.items : missing;
  Extent items[MAX_VARIADIC];
  if (!list->list.extents) return onnx_put_numbers(w, numbers, count);
  for (size_t i = 0; i < count; i++) items[i] = list->list.extents[i].dim ? list->list.extents[i] : EXTENT(numbers[i]);
  return onnx_put_extents(w, items, count);
}

const char *onnx_put_axes(OnnxWriter *w, const char *op, const char *from, const int64_t *axes, size_t count,
                          const char *to) {
  if (count == 0 && !to) return from;
  return count ? onnx_put(w, op, to, from, onnx_put_numbers(w, axes, count)) : onnx_put(w, "Identity", to, from);
}

const char *onnx_put_reshape(OnnxWriter *w, const char *from, const int64_t *items, size_t count, const char *to) {
  return onnx_put(w, "Reshape", to, from, onnx_put_numbers(w, items, count));
}

void onnx_list_pads(const Node *node, size_t naxes, int64_t pads[2 * MAX_RANK]) {
  const AttributeValue *begin = node_attribute(node, "pads_begin"), *end = node_attribute(node, "pads_end");
  for (size_t i = 0; i < naxes; i++) {
    pads[i] = begin->list.count ? begin->list.items[i] : 0;
    pads[naxes + i] = end->list.count ? end->list.items[i] : 0;
  }
}

bool onnx_is_float(double number) {
  return (double)(float)number == number;
}

bool onnx_shape_is_literal(const Shape *shape) {
  for (int i = 0; i < shape->rank; i++)
    if (!extent_is_literal(shape->extent[i])) return false;
  return shape->rank >= 0;
}

const char *onnx_put_shape(OnnxWriter *w, const char *from, const Shape *shape, bool keeps_first, const char *to) {
  int64_t items[MAX_RANK] = {0};
  int nopen = 0;
  bool is_empty = false;
  for (int i = 0; i < shape->rank; i++) {
    const bool is_open = !extent_is_literal(shape->extent[i]);
    items[i] = is_open && i == 0 && keeps_first ? 0 : is_open ? -1 : shape->extent[i].value;
    nopen += items[i] == -1;
    if (i == 0 && is_open && keeps_first) continue;
    is_empty |= items[i] == 0;
  }
  if (nopen > 1 || (nopen && is_empty)) return NULL;
  if (!to) to = onnx_fresh(w);
  const char *numbers = onnx_put_numbers(w, items, (size_t)shape->rank);
  onnx_begin(w, "Reshape", from, numbers);
  if (is_empty) onnx_add_int(w, "allowzero", 1);
  return onnx_end(w, to);
}

bool onnx_are_last(const Node *node) {
  return node->inputs[0]->shape.rank > 2 && onnx_choice_is(node, "data_format", "NXC");
}

const char *onnx_put_data(OnnxWriter *w, const Node *node, const char *from) {
  const int rank = node->inputs[0]->shape.rank;
  int64_t order[MAX_RANK] = {0, rank - 1};
  for (int i = 2; i < rank; i++) order[i] = i - 1;
  return onnx_are_last(node) ? onnx_put_transpose(w, from, order, rank, NULL) : from;
}

const char *onnx_begin_data(OnnxWriter *w, const Node *node) {
  return onnx_are_last(node) ? onnx_fresh(w) : w->out[0];
}

bool onnx_end_data(OnnxWriter *w, const Node *node, const char *from) {
  const int rank = node->outputs[0]->shape.rank;
  int64_t order[MAX_RANK] = {0};
  for (int i = 1; i < rank; i++) order[i] = i + 1 < rank ? i + 1 : 1;
  if (onnx_are_last(node)) onnx_put_transpose(w, from, order, rank, w->out[0]);
  return true;
}

bool onnx_write_expansion(OnnxWriter *w, const Node *node, const char *text) {
  Expansion f;
  (void)node;
  expansion_init(&f, w);
  expansion_write(&f, text);
  return true;
}

void onnx_begin_same(OnnxWriter *w, const Node *node, const char *op) {
  onnx_begin(w, op);
  for (uint32_t i = 0; i < node->ninputs; i++) onnx_add_input(w, node->inputs[i] ? w->in[i] : "");
}

bool onnx_write_same(OnnxWriter *w, const Node *node, const char *name) {
  onnx_begin_same(w, node, name);
  return onnx_end(w, w->out[0]);
}
