// Derivatives other than gradients, as graphs that compute the forward graph's values themselves. All are made of
// gradients. A gradient J^T u is linear in u, so its own gradient by u is J t: tangents, without a rule of their own.
// The gradient of the gradient of a scalar, H t, is the product of the Hessian H, which is symmetric, with a vector.
// Matrices are these graphs for all unit vectors at once.
#include "ir/graph/verify.h"
#include "passes/rewrite/dead_code.h"
#include "passes/train/train.h"

typedef struct Direction {
  const Graph *forward;
  GradientRequest request;
  Diagnostics *d;
  Graph *whole;       // forward and its gradient
  GradientEnds first; // of whole
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
  return s->whole != NULL;
}

static Value **cotangents(const Direction *s) {
  return s->whole->inputs + s->whole->ninputs - s->first.ndiffs;
}

static bool differentiate_again(Direction *s, Value *const *wrt, size_t nwrt) {
  const GradientRequest request = {
      .wrt = wrt, .nwrt = nwrt, .of = s->whole->outputs, .nof = s->whole->noutputs, .gives_zeros = true};
  s->result = whole_gradient(s->whole, &request, &s->second, false, s->d);
  return s->result != NULL;
}

static bool set_name(Direction *s, Graph *g, Value *v, const char *name) {
  const char *text = arena_format(&g->arena, "%s%s", s->prefix, name);
  if (text) v->name = text;
  return text || error_out_of_memory(s->d);
}

// Names the last inputs of the result, which are multiplied, by the inputs of forward.
static bool name_tangents(Direction *s) {
  Graph *g = s->result;
  bool ok = true;
  for (size_t i = g->ninputs - s->second.ndiffs; ok && i < g->ninputs; i++)
    for (size_t k = 0; ok && k < s->whole->noutputs; k++)
      if (s->second.inputs[i] == s->whole->outputs[k]) ok = set_name(s, g, g->inputs[i], s->first.outputs[k]->name);
  return ok;
}

static void remove_unused_inputs(Graph *g) {
  size_t nleft = 0;
  for (size_t i = 0; i < g->ninputs; i++) {
    g->inputs[i]->is_input = g->inputs[i]->uses != NULL;
    if (g->inputs[i]->is_input) g->inputs[nleft++] = g->inputs[i];
  }
  g->ninputs = nleft;
}

// Whether a tangent of the output is computed.
static bool has_tangent(const Direction *s, const Value *output) {
  bool has = false;
  for (size_t i = s->whole->ninputs - s->first.ndiffs; i < s->whole->ninputs; i++) has |= s->first.inputs[i] == output;
  return has;
}

// Adds tangents of 0: of the requested outputs that do not follow the inputs, or if no output does of all.
static bool add_zeros(Direction *s) {
  const GradientRequest *r = &s->request;
  Value *const *of = r->of ? r->of : s->forward->outputs;
  const size_t nall = s->first.ndiffs ? 0 : s->forward->noutputs - s->forward->nupdates;
  Graph *g = s->result;
  bool ok = true;
  for (size_t i = 0; ok && i < (r->of ? r->nof : nall); i++) {
    if (has_tangent(s, of[i]) || !type_is_float(of[i]->type)) continue;
    Value *zeros = graph_add_number(g, "", of[i]->type, &of[i]->shape, 0);
    ok = zeros && graph_add_output(g, zeros) ? set_name(s, g, zeros, of[i]->name) : error_out_of_memory(s->d);
  }
  return ok;
}

// Nothing depends on the inputs: the result has no nodes.
static bool make_no_tangents(Direction *s) {
  Graph *g = s->result = graph_clone(s->whole);
  if (!g) return error_out_of_memory(s->d);
  for (size_t i = 0; i < g->noutputs; i++) g->outputs[i]->is_output = false;
  g->noutputs = 0;
  if (!add_zeros(s)) return false;
  pass_dead_code(g, &(PassContext){.diagnostics = s->d, .allocator = g->arena.allocator});
  remove_unused_inputs(g);
  return true;
}

// Tangents do not depend on the cotangents: a node that still has one as an operand needs it for other results. Zeros
// take their places, after the names of inputs have been set.
static bool drop_cotangents(Direction *s) {
  Graph *g = s->result;
  size_t nleft = 0;
  for (size_t i = 0; i < g->ninputs; i++) {
    Value *v = g->inputs[i];
    bool is_cotangent = false;
    for (size_t k = 0; i < g->ninputs - s->second.ndiffs && k < s->first.ndiffs; k++)
      is_cotangent |= s->second.inputs[i] == cotangents(s)[k];
    Value *zeros = is_cotangent ? graph_add_number(g, graph_fresh_name(g, "number"), v->type, &v->shape, 0) : v;
    if (!zeros) return error_out_of_memory(s->d);
    if (is_cotangent) value_replace_uses(v, zeros);
    v->is_input = !is_cotangent;
    if (!is_cotangent) g->inputs[nleft++] = v;
  }
  g->ninputs = nleft;
  return true;
}

static bool make_tangents(Direction *s) {
  if (!begin(s, "tangent")) return false;
  if (!s->first.ndiffs) return make_no_tangents(s);
  if (!differentiate_again(s, cotangents(s), s->first.ndiffs) || !name_tangents(s)) return false;
  const size_t nothers = s->whole->ninputs - s->first.ndiffs;
  bool ok = true;
  for (size_t i = 0; ok && i < s->result->noutputs; i++)
    ok = set_name(s, s->result, s->result->outputs[i], s->first.inputs[nothers + i]->name);
  return ok && drop_cotangents(s) && add_zeros(s);
}

// Makes the gradients of the outputs, which must be single numbers, ones.
static bool take_ones(Direction *s) {
  char shape[160];
  Value **diffs = cotangents(s);
  for (size_t i = 0; i < s->first.ndiffs; i++) {
    Value *v = diffs[i];
    Constant *one = ARENA_NEW(&s->whole->arena, Constant);
    void *data = arena_alloc(&s->whole->arena, type_nbytes(v->type));
    if (!one || !data) return error_out_of_memory(s->d);
    if (shape_nelems(&v->shape) != 1)
      return error_at(s->d, v->position,
                      "%s %s: expected an output that is a single number, as its Hessian is wanted; --of names it",
                      s->first.inputs[s->whole->ninputs - s->first.ndiffs + i]->name,
                      shape_string(&v->shape, shape, sizeof shape));
    type_store(v->type, data, 0, 1);
    *one = (Constant){.data = data, .is_splat = true};
    v->constant = one;
    v->is_input = false;
  }
  s->whole->ninputs -= s->first.ndiffs;
  return true;
}

// Where no outputs are named, those that are single numbers are differentiated, if there are any.
static bool choose_numbers(Direction *s, Arena *arena) {
  const Graph *forward = s->forward;
  const size_t count = forward->noutputs - forward->nupdates;
  Value **of = ARENA_ARRAY(arena, Value *, count + 1);
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
  Arena arena;
  arena_init(&arena, s->forward->arena.allocator);
  const bool has_begun = choose_numbers(s, &arena) && begin(s, "tangent");
  s->request.of = NULL; // it may be in the arena
  arena_deinit(&arena);
  if (!has_begun || !take_ones(s)) return false;
  Value **wrt = ARENA_ARRAY(&s->whole->arena, Value *, s->whole->noutputs + 1);
  if (!wrt) return error_out_of_memory(s->d);
  for (size_t k = 0; k < s->whole->noutputs; k++)
    for (size_t i = 0; i < s->whole->ninputs; i++)
      if (s->first.inputs[i] == s->first.outputs[k]) wrt[k] = s->whole->inputs[i];
  if (!differentiate_again(s, wrt, s->whole->noutputs) || !name_tangents(s)) return false;
  bool ok = true;
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

// Takes all unit vectors in place of inputs (NULL: nothing depends on it) that have the shapes of `of`.
static bool take_units(Direction *s, Graph *g, Value *const *inputs, const Value *const *of, size_t count) {
  char shape[160];
  int64_t nelems = 0, first = 0;
  Value **units = ARENA_ARRAY(&g->arena, Value *, count + 1), **taken = ARENA_ARRAY(&g->arena, Value *, count + 1);
  size_t ntaken = 0;
  if (!units || !taken) return error_out_of_memory(s->d);
  for (size_t i = 0; i < count; i++) {
    if (!is_small(of[i], MOST_BATCH - nelems))
      return error_at(
          s->d, of[i]->position,
          "%s %s: expected 1 to %d elements%s, by extents that are numbers, as the matrix is computed for each "
          "of them, and fewer than %d axes",
          of[i]->name, shape_string(&of[i]->shape, shape, sizeof shape), MOST_BATCH,
          count > 1 ? " of all together" : "", MAX_RANK);
    nelems += shape_nelems(&of[i]->shape);
  }
  for (size_t i = 0; i < count; first += shape_nelems(&of[i++]->shape)) {
    if (!inputs[i]) continue;
    if (!(units[ntaken] = unit_vectors(s, g, of[i], first, nelems))) return false;
    taken[ntaken++] = inputs[i];
  }
  if (!graph_batch(g, taken, units, ntaken, nelems, s->d)) return false;
  remove_unused_inputs(g);
  bool ok = true;
  for (size_t i = 0; ok && i < g->noutputs; i++) ok = set_name(s, g, g->outputs[i], s->first.outputs[i]->name);
  return ok;
}

// The one output to differentiate; NULL: there are several, or none. *input: its gradient; NULL: it changes nothing.
static const Value *only_output(const Direction *s, Value **input) {
  const Graph *forward = s->forward;
  const GradientRequest *r = &s->request;
  const Value *of = NULL;
  size_t count = 0;
  *input = s->first.ndiffs == 1 ? cotangents(s)[0] : NULL;
  if (*input) return s->first.inputs[s->whole->ninputs - 1];
  for (size_t i = 0; i < (r->of ? r->nof : forward->noutputs - forward->nupdates); i++) {
    const Value *v = r->of ? r->of[i] : forward->outputs[i];
    if (type_is_float(v->type)) of = v;
    count += type_is_float(v->type);
  }
  return count == 1 ? of : NULL;
}

static bool make_jacobian(Direction *s) {
  Value *input;
  if (!begin(s, "jacobian")) return false;
  const Value *of = only_output(s, &input);
  if (!of)
    return error_at(s->d, (Position){0}, "%s: expected one output to differentiate, found %zu; --of names it",
                    s->forward->name, s->first.ndiffs);
  s->result = s->whole;
  s->whole = NULL;
  return take_units(s, s->result, &input, &of, 1);
}

static bool make_hessian(Direction *s) {
  if (!make_hvp(s)) return false;
  if (!gradient_choose_prefix(s->forward, "hessian", s->prefix)) return error_out_of_memory(s->d);
  Graph *g = s->result;
  const size_t count = s->whole->noutputs, ntangents = s->second.ndiffs, ndata = g->ninputs - ntangents;
  Value **tangents = ARENA_ARRAY(&g->arena, Value *, count + 1);
  if (!tangents) return error_out_of_memory(s->d);
  for (size_t i = ndata; i < g->ninputs; i++)
    for (size_t k = 0; k < count; k++)
      if (s->second.inputs[i] == s->whole->outputs[k]) tangents[k] = g->inputs[i];
  return take_units(s, g, tangents, s->first.outputs, count);
}

// The gradient; what is said of graphs without one is right for it, too.
static bool make_whole(Direction *s) {
  s->request.gives_zeros = false;
  if (!begin(s, "diff")) return false;
  s->result = s->whole;
  s->whole = NULL;
  remove_unused_inputs(s->result);
  return true;
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
  s.request.gives_zeros = request->wrt != NULL;
  bool ok = forms[at].make(&s);
  if (ok) s.result->name = arena_format(&s.result->arena, "%s_%s", forward->name, forms[at].suffix);
  if (ok && (!s.result->name || !graph_make_names_unique(s.result))) ok = error_out_of_memory(d);
  ok = ok && graph_verify(s.result, d);
  if (!ok && s.result) graph_free(s.result);
  graph_free(s.whole);
  return ok ? s.result : NULL;
}
