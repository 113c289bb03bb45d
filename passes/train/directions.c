// Derivatives other than gradients, as graphs that compute the forward graph's values themselves. All are made of
// gradients. A gradient J^T u is linear in u, so its own gradient by u is J t: tangents, without a rule of their own.
// The gradient of the gradient of a scalar, H t, is the product of the Hessian H, which is symmetric, with a vector.
// Matrices are these graphs for all unit vectors at once.
#include "ir/graph/formula.h"
#include "ir/graph/verify.h"
#include "passes/rewrite/dead_code.h"
#include "passes/rewrite/passes.h"
#include "passes/rewrite/rewrite.h"
#include "passes/train/train.h"

#include <string.h>

enum { SHAPE_TEXT = 160 };

typedef struct Direction {
  const Graph *forward;
  GradientRequest request;
  Diagnostics *d;
  Arena scratch;
  Graph *whole;       // forward and its gradient
  GradientEnds first; // of whole
  size_t nothers;     // inputs of whole before the cotangents
  Graph *result;      // forward, its gradient, and the gradient of this
  GradientEnds second;
  char prefix[PREFIX_BYTES];
} Direction;

static Graph *whole_gradient(const Graph *forward, const GradientRequest *request, GradientEnds *ends,
                             bool keeps_inputs, Diagnostics *d) {
  Graph *backward = graph_gradient(forward, request, ends, d);
  Graph *whole = backward ? gradient_with_forward(forward, backward, ends, keeps_inputs, d) : NULL;
  graph_free(backward);
  return whole;
}

static bool begin(Direction *s, const char *stem) {
  if (s->forward->nleaves)
    return error_at(s->d, (Position){0}, "%s: expected a graph without leaves, whose inputs all have one value",
                    s->forward->name);
  if (!gradient_choose_prefix(s->forward, stem, s->prefix)) return error_out_of_memory(s->d);
  s->whole = whole_gradient(s->forward, &s->request, &s->first, true, s->d);
  if (s->whole) s->nothers = s->whole->ninputs - s->first.ndiffs;
  return s->whole != NULL;
}

// The graph that was made first is the result.
static Graph *take_whole(Direction *s) {
  s->result = s->whole;
  s->whole = NULL;
  return s->result;
}

static bool set_name(Direction *s, Graph *g, Value *v, const char *name) {
  const char *text = arena_format(&g->arena, "%s%s", s->prefix, name);
  if (text) v->name = text;
  return text || error_out_of_memory(s->d);
}

// The input of forward whose tangent is input i of the result.
static const Value *tangent_of(const Direction *s, size_t i) {
  return s->first.outputs[s->second.inputs[i]->first_output];
}

// The last inputs of the result, which are multiplied, are the tangents.
static bool differentiate_again(Direction *s, Value *const *wrt, size_t nwrt) {
  const GradientRequest request = {
      .wrt = wrt, .nwrt = nwrt, .of = s->whole->outputs, .nof = s->whole->noutputs, .gives_zeros = true};
  Graph *g = s->result = whole_gradient(s->whole, &request, &s->second, false, s->d);
  bool ok = g != NULL;
  for (size_t i = ok ? g->ninputs - s->second.ndiffs : 0; ok && i < g->ninputs; i++)
    ok = set_name(s, g, g->inputs[i], tangent_of(s, i)->name);
  return ok;
}

// Whether the sum has no step between product and bias, which could be rounded.
static bool is_whole_bias(Match *m) {
  const Value *product = m->nodes[1]->outputs[0], *bias = m->values[2];
  return shape_equals(&bias->shape, &product->shape) && bias->type == product->type && type_nbytes(bias->type) > 2;
}

// Whether the rows of a batch have been joined for a product with one matrix.
static bool joins_rows(Match *m) {
  const Shape *batch = &m->values[0]->shape, *rows = &m->nodes[2]->outputs[0]->shape;
  return batch->rank > 1 && rows->rank == 2 && m->values[1]->shape.rank == 2 &&
         !node_bool(m->nodes[1], "transpose_a") && extent_equals(batch->extent[batch->rank - 1], rows->extent[1]);
}

// Tangents of products are sums of products; those of gradients by weights have their rows joined.
static const Rule product_rules[] = {
    {.name = "sum-of-products",
     .pattern = NODE(Add, ONLY(1, MatMul, X, Y), Z),
     .replacement = NAMED(1, MatMul, X, Y, Z),
     .condition = is_whole_bias},
    {.name = "separate-rows",
     .pattern = NODE(StaticReshape, ONLY(1, MatMul, NAMED(2, StaticReshape, X), Y)),
     .replacement = NAMED(1, MatMul, X, Y),
     .condition = joins_rows},
};

// Removes what is not needed, and computes nothing twice, as two gradients may compute the same.
static bool tidy(const Direction *s, Graph *g) {
  PassContext context = {.diagnostics = s->d, .allocator = g->arena.allocator};
  size_t nleft = 0;
  pass_dead_code(g, &context);
  if (!context.failed) pass_simplify(g, &context);
  if (!context.failed) pass_movement(g, &context);
  if (!context.failed) pass_common_subexpressions(g, &context);
  if (!context.failed)
    rewrite_graph(g, &context, &(Rules){product_rules, sizeof product_rules / sizeof *product_rules});
  for (size_t i = 0; i < g->ninputs; i++) {
    g->inputs[i]->is_input = g->inputs[i]->uses || g->inputs[i]->is_output;
    if (g->inputs[i]->is_input) g->inputs[nleft++] = g->inputs[i];
  }
  g->ninputs = nleft;
  return !context.failed;
}

// The value is no input any more.
static bool replace_by_number(Direction *s, Graph *g, Value *v, double number) {
  const char *name = graph_fresh_name(g, "number");
  Value *own = name ? graph_add_number(g, name, v->type, &v->shape, number) : NULL;
  if (!own) return error_out_of_memory(s->d);
  value_replace_uses(v, own);
  return true;
}

// Adds tangents of 0: of the requested outputs that do not follow the inputs, or if no output does of all.
static bool add_zeros(Direction *s) {
  const GradientRequest *r = &s->request;
  Value *const *of = r->of ? r->of : s->forward->outputs;
  const size_t nall = s->first.ndiffs ? 0 : s->forward->noutputs - s->forward->nupdates;
  Graph *g = s->result;
  bool ok = true;
  for (size_t i = 0; ok && i < (r->of ? r->nof : nall); i++) {
    bool has_tangent = !type_is_float(of[i]->type);
    for (size_t k = 0; k < s->first.ndiffs; k++) has_tangent |= s->first.inputs[s->nothers + k] == of[i];
    if (has_tangent) continue;
    Value *zeros = graph_add_number(g, "", of[i]->type, &of[i]->shape, 0);
    ok = zeros && graph_add_output(g, zeros) ? set_name(s, g, zeros, of[i]->name) : error_out_of_memory(s->d);
  }
  return ok;
}

// The tangent of an output that is an input is the input's, whose name it has.
static void pass_tangents(Graph *g) {
  for (size_t i = 0; i < g->noutputs; i++)
    for (size_t k = 0; k < g->ninputs; k++) {
      if (strcmp(g->outputs[i]->name, g->inputs[k]->name) != 0) continue;
      g->outputs[i]->is_output = false;
      g->outputs[i] = g->inputs[k];
      g->outputs[i]->is_output = true;
      g->outputs[i]->first_output = (uint32_t)i;
    }
}

// Tangents do not depend on the cotangents: a node that still has one as an operand needs it for other results, and
// gets zeros.
static bool make_tangents(Direction *s) {
  if (!begin(s, "tangent")) return false;
  Value **cotangents = s->whole->inputs + s->nothers;
  const bool follows = s->first.ndiffs > 0;
  bool ok = !follows || differentiate_again(s, cotangents, s->first.ndiffs);
  Graph *g = follows ? s->result : take_whole(s);
  for (size_t i = 0; !follows && i < g->noutputs; i++) g->outputs[i]->is_output = false;
  if (!follows) g->noutputs = 0;
  for (size_t i = 0; ok && i < g->noutputs; i++)
    ok = set_name(s, g, g->outputs[i], s->first.inputs[s->nothers + i]->name);
  for (size_t i = 0; ok && follows && i < g->ninputs - s->second.ndiffs; i++)
    for (size_t k = 0; ok && k < s->first.ndiffs; k++)
      if (s->second.inputs[i] == cotangents[k]) ok = replace_by_number(s, g, g->inputs[i], 0);
  if (!ok) return false;
  pass_tangents(g);
  return add_zeros(s);
}

// Makes the gradients of the outputs, which must be single numbers, ones.
static bool take_ones(Direction *s) {
  char shape[SHAPE_TEXT];
  Graph *g = s->whole;
  for (size_t i = s->nothers; i < g->ninputs; i++) {
    Value *v = g->inputs[i];
    if (shape_nelems(&v->shape) != 1)
      return error_at(s->d, v->position,
                      "%s %s: expected an output that is a single number, as its Hessian is wanted; --of names it",
                      s->first.inputs[i]->name, shape_string(&v->shape, shape, sizeof shape));
    if (!replace_by_number(s, g, v, 1)) return false;
    v->is_input = false;
  }
  g->ninputs = s->nothers;
  return true;
}

// Where no outputs are named, those that are single numbers are differentiated, if there are any.
static bool choose_numbers(Direction *s) {
  const Graph *forward = s->forward;
  const size_t count = forward->noutputs - forward->nupdates;
  Value **of = ARENA_ARRAY(&s->scratch, Value *, count + 1);
  size_t nof = 0;
  if (!of) return error_out_of_memory(s->d);
  for (size_t i = 0; i < count; i++) {
    Value *v = forward->outputs[i];
    const bool is_statistic = v->producer && v->producer->op->outputs[v->output_slot].is_statistic;
    if (type_is_float(v->type) && shape_nelems(&v->shape) == 1 && !is_statistic) of[nof++] = v;
  }
  if (nof && !s->request.of) {
    s->request.of = of;
    s->request.nof = nof;
  }
  return true;
}

static bool make_hvp(Direction *s) {
  if (!choose_numbers(s) || !begin(s, "tangent") || !take_ones(s)) return false;
  Value **wrt = ARENA_ARRAY(&s->scratch, Value *, s->whole->noutputs + 1);
  if (!wrt) return error_out_of_memory(s->d);
  for (size_t k = 0; k < s->whole->noutputs; k++)
    for (size_t i = 0; i < s->whole->ninputs; i++)
      if (s->first.inputs[i] == s->first.outputs[k]) wrt[k] = s->whole->inputs[i];
  bool ok = differentiate_again(s, wrt, s->whole->noutputs);
  for (size_t i = 0; ok && i < s->result->noutputs; i++)
    ok = set_name(s, s->result, s->result->outputs[i], s->whole->outputs[i]->name);
  return ok;
}

// Matrices

// The parts of v in the unit vectors, along a new first axis, of several values, in which v begins at `first`.
static Value *unit_vectors(Direction *s, Graph *g, const Value *v, int64_t first, int64_t count) {
  const int64_t nelems = shape_nelems(&v->shape);
  Shape shape = {.rank = v->shape.rank + 1, .extent = {EXTENT(count)}};
  for (int i = 0; i < v->shape.rank; i++) shape.extent[i + 1] = v->shape.extent[i];
  const char *name = graph_fresh_name(g, "units");
  Value *units = name ? graph_add_value(g, name, v->type, &shape) : NULL;
  Constant *constant = ARENA_NEW(&g->arena, Constant);
  void *data = arena_alloc(&g->arena, (size_t)(count * nelems) * type_nbytes(v->type));
  if (!units || !constant || !data) return error_out_of_memory(s->d), NULL;
  for (int64_t i = 0; i < count; i++)
    for (int64_t k = 0; k < nelems; k++) type_store(v->type, data, (size_t)(i * nelems + k), i == first + k);
  *constant = (Constant){.data = data};
  units->constant = constant;
  return units;
}

static bool is_small(const Value *v, int64_t most) {
  const int64_t count = shape_nelems(&v->shape);
  bool is_known = count > 0 && count <= most && v->shape.rank < MAX_RANK;
  for (int i = 0; i < v->shape.rank; i++) is_known &= extent_is_literal(v->shape.extent[i]);
  return is_known;
}

static bool tell_large(const Direction *s, const Value *of, bool has_others) {
  char shape[SHAPE_TEXT];
  const Dim *dim = NULL;
  for (int i = 0; i < of->shape.rank; i++)
    if (!extent_is_literal(of->shape.extent[i]) && of->shape.extent[i].dim) dim = of->shape.extent[i].dim;
  return error_at(s->d, of->position,
                  "%s %s: expected 1 to %d elements%s, by extents that are numbers, as the matrix is computed for each "
                  "of them, and fewer than %d axes%s%s%s",
                  of->name, shape_string(&of->shape, shape, sizeof shape), MOST_BATCH,
                  has_others ? " of all together" : "", MAX_RANK, dim ? "; --dim " : "",
                  dim ? (dim->terms ? dim->terms[0].dims[0] : dim)->name : "", dim ? "=4 gives a number" : "");
}

// Takes all unit vectors in place of inputs (NULL: nothing depends on it) that have the shapes of `of`.
static bool take_units(Direction *s, Graph *g, Value *const *inputs, const Value *const *of, size_t count) {
  int64_t nelems = 0, first = 0;
  Value **units = ARENA_ARRAY(&g->arena, Value *, count + 1), **taken = ARENA_ARRAY(&g->arena, Value *, count + 1);
  size_t ntaken = 0;
  if (!units || !taken) return error_out_of_memory(s->d);
  for (size_t i = 0; i < count; i++) {
    if (!is_small(of[i], MOST_BATCH - nelems)) return tell_large(s, of[i], count > 1);
    nelems += shape_nelems(&of[i]->shape);
  }
  for (size_t i = 0; i < count; first += shape_nelems(&of[i++]->shape)) {
    if (!inputs[i]) continue;
    if (!(units[ntaken] = unit_vectors(s, g, of[i], first, nelems))) return false;
    taken[ntaken++] = inputs[i];
  }
  bool ok = graph_batch(g, taken, units, ntaken, nelems, s->d);
  for (size_t i = 0; ok && i < g->noutputs; i++) ok = set_name(s, g, g->outputs[i], s->first.outputs[i]->name);
  return ok;
}

// The one output to differentiate; NULL: there are several, or none. *input: its gradient; NULL: it changes nothing.
static const Value *only_output(const Direction *s, Value **input) {
  const GradientRequest *r = &s->request;
  const Graph *forward = s->forward;
  Value *const *all = r->of ? r->of : forward->outputs;
  const Value *of = NULL;
  size_t count = 0;
  *input = s->first.ndiffs == 1 ? s->whole->inputs[s->nothers] : NULL;
  if (*input) return s->first.inputs[s->nothers];
  for (size_t i = 0; i < (r->of ? r->nof : forward->noutputs - forward->nupdates); i++) {
    if (type_is_float(all[i]->type)) of = all[i];
    count += type_is_float(all[i]->type);
  }
  return count == 1 ? of : NULL;
}

static bool make_jacobian(Direction *s) {
  Value *input;
  if (!begin(s, "jacobian")) return false;
  const Value *of = only_output(s, &input);
  if (of) return take_units(s, take_whole(s), &input, &of, 1);
  return error_at(s->d, (Position){0}, "%s: expected one output to differentiate, found %zu; --of names it",
                  s->forward->name, s->first.ndiffs);
}

static bool make_hessian(Direction *s) {
  if (!make_hvp(s)) return false;
  if (!gradient_choose_prefix(s->forward, "hessian", s->prefix)) return error_out_of_memory(s->d);
  Graph *g = s->result;
  Value **tangents = ARENA_ARRAY(&s->scratch, Value *, s->whole->noutputs + 1);
  if (!tangents) return error_out_of_memory(s->d);
  for (size_t i = g->ninputs - s->second.ndiffs; i < g->ninputs; i++)
    tangents[s->second.inputs[i]->first_output] = g->inputs[i];
  return take_units(s, g, tangents, s->first.outputs, s->whole->noutputs);
}

// The gradient; what is said of graphs without one is right for it, too.
static bool make_whole(Direction *s) {
  s->request.gives_zeros = s->request.splits_ends = false;
  return begin(s, "diff") && take_whole(s);
}

Graph *graph_derivative(const Graph *forward, const GradientRequest *request, DerivativeForm form, Diagnostics *d) {
  static const struct {
    bool (*make)(Direction *s);
    const char *suffix;
  } forms[] = {{make_tangents, "tangents"},
               {make_hvp, "hvp"},
               {make_jacobian, "jacobian"},
               {make_hessian, "hessian"},
               {make_whole, "backward"}};
  const size_t at = form - DERIVATIVE_TANGENTS;
  Direction s = {.forward = forward, .request = *request, .d = d};
  s.request.gives_zeros = s.request.splits_ends = true;
  arena_init(&s.scratch, forward->arena.allocator);
  bool ok = forms[at].make(&s) && tidy(&s, s.result);
  arena_deinit(&s.scratch);
  if (ok) s.result->name = arena_format(&s.result->arena, "%s_%s", forward->name, forms[at].suffix);
  if (ok && (!s.result->name || !graph_make_names_unique(s.result))) ok = error_out_of_memory(d);
  ok = ok && graph_verify(s.result, d);
  if (!ok && s.result) graph_free(s.result);
  graph_free(s.whole);
  return ok ? s.result : NULL;
}
