// Control flow: branches, and loops whose iterations are copies of the body's nodes.
#include "frontend/onnx/translation.h"

#include <math.h>

enum { MOST_ITERATIONS = 1 << 12 };

// A branch or a body; the same one may be asked for by each iteration of a loop. NULL after a message.
static const OnnxGraph *graph_of(Onnx *x, Bytes message, bool *is_new) {
  const char *key = arena_format(x->reading.arena, "%zu", (size_t)(message.at - x->reading.file.at));
  OnnxGraph *g = key ? names_find(&x->graphs, key) : NULL;
  *is_new = !g;
  if (g) return g;
  g = key ? ARENA_NEW(x->reading.arena, OnnxGraph) : NULL;
  if (!g) return error_out_of_memory(x->reading.d), NULL;
  if (!onnx_read_graph(&x->reading, message, g)) return NULL;
  if (!names_set(&x->graphs, key, g)) return error_out_of_memory(x->reading.d), NULL;
  return g;
}

// The graph of an attribute, counted if it was read before. NULL after a message.
static const OnnxGraph *take_graph(Onnx *x, const char *name) {
  OnnxAttribute a;
  bool is_new;
  if (!onnx_attribute(x, name, ONNX_GRAPH, &a) || !a.g.at) return build_error(&x->build, "expected a %s", name), NULL;
  const OnnxGraph *g = graph_of(x, a.g, &is_new);
  return g && (is_new || onnx_count_call(x, a.g.count)) ? g : NULL;
}

// Makes a copy of the graph's nodes with these inputs, and sets *made to its outputs.
static bool copy(Onnx *x, const OnnxGraph *g, Value *const *inputs, Value ***made) {
  Value **results = *made = ARENA_ARRAY(x->reading.arena, Value *, g->noutputs + 1);
  if (!results) return error_out_of_memory(x->reading.d);
  OnnxScope scope = {.outer = x->scope};
  Builder *b = &x->build;
  names_init(&scope.values, x->reading.arena);
  for (size_t k = 0; k < g->ninputs; k++) {
    const char *name = onnx_text_of(x, g->inputs[k].name);
    if (!inputs[k]) return build_error(b, "expected input %zu", k);
    if (!name || !names_set(&scope.values, name, inputs[k])) return error_out_of_memory(x->reading.d);
  }
  if (!onnx_translate_inside(x, g, &scope, x->caller, x->opset, results)) return false;
  for (size_t k = 0; k < g->noutputs; k++) { // also those that nobody wants
    if (!results[k]) return build_error(b, "output %zu of the graph inside: no node makes it", k);
    x->foreign.has_told = results[k] == &x->failed;
    if (x->foreign.has_told || results[k] == &x->absent) return false;
  }
  return true;
}

Value *onnx_apply(Onnx *x, const char *name, Value *v) {
  const OnnxGraph *g = take_graph(x, name);
  Value **results = NULL;
  if (g && (g->ninputs != 1 || g->noutputs != 1))
    return build_error(&x->build, "%s: expected a graph of one input and one output", name), NULL;
  return g && copy(x, g, &v, &results) ? results[0] : NULL;
}

// Both branches, and a choice between their results.
static bool choose_branch(Onnx *x, Value *condition) {
  Builder *b = &x->build;
  const OnnxGraph *g[2] = {take_graph(x, "then_branch"), take_graph(x, "else_branch")};
  Value **results[2];
  if (!g[0] || !g[1]) return false;
  for (int i = 0; i < 2; i++) {
    if (g[i]->ninputs || g[i]->noutputs < x->node->noutputs)
      return build_error(b, "expected branches of %zu outputs without inputs", x->node->noutputs);
    if (copy(x, g[i], NULL, &results[i])) continue;
    x->foreign.has_told = false; // the branch may be one that is never taken
    return onnx_must_be_known(x, condition);
  }
  condition = build_reshape(b, condition, NULL, 0);
  for (size_t i = 0; condition && i < x->node->noutputs; i++) {
    Value *a = results[0][i], *c = results[1][i];
    const bool are_tensors =
        !onnx_is_sequence(a) && !onnx_is_sequence(c) && !onnx_has_extents(x, a) && !onnx_has_extents(x, c);
    if (!are_tensors || a->type != c->type || !shape_equals(&a->shape, &c->shape))
      return onnx_must_be_known(x, condition);
    if (onnx_wants(x, i) && !onnx_out(x, i, build_choose(b, condition, a, c))) return false;
  }
  return condition;
}

bool onnx_if(Onnx *x) {
  double number;
  Value *condition = onnx_in(x, 0);
  const Value *known = onnx_known(x, condition);
  if (condition && known && !known->constant && condition->type == TYPE_BOOLEAN) return choose_branch(x, condition);
  if (!onnx_number(x, condition, &number)) return false;
  const OnnxGraph *g = take_graph(x, number != 0 ? "then_branch" : "else_branch");
  return g && onnx_inline_graph(x, g, x->scope, x->caller, x->opset);
}

// Loops: each iteration is a copy of the body's nodes

// One iteration, with the values that it carries over. Sets *results to the body's outputs; the first one says whether
// another iteration follows.
static bool iterate(Onnx *x, const OnnxGraph *body, size_t i, Value *const *carried, Value ***results) {
  Value **inputs = ARENA_ARRAY(x->reading.arena, Value *, body->ninputs + 1);
  if (!inputs) return error_out_of_memory(x->reading.d);
  inputs[0] = build_number(&x->build, TYPE_S64, NULL, (double)i);
  inputs[1] = build_number(&x->build, TYPE_BOOLEAN, NULL, 1);
  for (size_t k = 2; k < body->ninputs; k++) inputs[k] = carried[k - 2];
  return copy(x, body, inputs, results);
}

// The stacked results of no iterations, like `one`, which an iteration would make.
static Value *stack_of_nothing(Onnx *x, Value *one) {
  Shape shape;
  Value *stack = onnx_stack(x, &one, 1, 0);
  if (!stack) return NULL;
  shape = stack->shape;
  shape.extent[0] = EXTENT(0);
  for (int i = 0; i < shape.rank; i++)
    if (extent_is_unknown(shape.extent[i]))
      return build_error(&x->build, "a result of no iterations: expected a known extent on axis %d", i), NULL;
  return build_number(&x->build, stack->type, &shape, 0);
}

// Gives the values carried over, and behind them the stacked results of all iterations.
static bool give_loop(Onnx *x, Value **carried, size_t ncarried, Value ***results, size_t count) {
  for (size_t k = 0; k < x->node->noutputs; k++) {
    Value *v = k < ncarried ? carried[k] : NULL;
    if (!onnx_wants(x, k)) continue;
    if (k >= ncarried && !count) {
      v = stack_of_nothing(x, results[0][k + 1]);
    } else if (k >= ncarried) {
      Value **items = ARENA_ARRAY(x->reading.arena, Value *, count + 1);
      if (!items) return error_out_of_memory(x->reading.d);
      for (size_t i = 0; i < count; i++) items[i] = results[i][k + 1];
      v = onnx_stack(x, items, count, 0);
    }
    if (!v || !onnx_give_result(x, k, v)) return false;
  }
  return true;
}

static bool iterate_all(Onnx *x, const OnnxGraph *body, size_t ncarried, double most, double condition) {
  const size_t limit = most < MOST_ITERATIONS ? most > 0 ? (size_t)most : 0 : MOST_ITERATIONS;
  const int64_t nbytes = (int64_t)(body->noutputs * sizeof(Value *));
  Value ***results = NULL, **carried = x->inputs + 2;
  size_t count = 0;
  if (!build_spend(&x->build, (int64_t)((limit + 1) * sizeof *results))) return false;
  results = ARENA_ARRAY(x->reading.arena, Value **, limit + 1);
  if (!results) return error_out_of_memory(x->reading.d);
  for (; count < limit && condition != 0; count++) {
    if (!onnx_count_call(x, body->message.count) || !build_spend(&x->build, nbytes) ||
        !iterate(x, body, count, carried, &results[count]) || !onnx_number(x, results[count][0], &condition))
      return false;
    carried = results[count] + 1;
  }
  // An iteration that nothing uses shows the shapes of stacked results.
  if (!count && x->node->noutputs > ncarried &&
      !(onnx_count_call(x, body->message.count) && iterate(x, body, 0, carried, &results[0])))
    return false;
  if ((double)count < most && condition != 0)
    return build_error(&x->build, "loops of more than %d iterations are not supported", MOST_ITERATIONS);
  return give_loop(x, carried, ncarried, results, count);
}

// The number of iterations must be known.
bool onnx_loop(Onnx *x) {
  Builder *b = &x->build;
  double most = (double)INFINITY, condition = 1;
  if (x->node->ninputs < 2) return build_error(b, "expected 2 inputs or more");
  const size_t ncarried = x->node->ninputs - 2;
  if (!onnx_has(x, "body")) return build_error(b, "expected a body");
  if ((onnx_in(x, 0) && !onnx_number(x, onnx_in(x, 0), &most)) ||
      (onnx_in(x, 1) && !onnx_number(x, onnx_in(x, 1), &condition)))
    return false;
  const OnnxGraph *body = take_graph(x, "body");
  if (!body) return false;
  if (body->ninputs != ncarried + 2 || body->noutputs <= ncarried || x->node->noutputs >= body->noutputs)
    return build_error(b, "expected a body of %zu inputs and more than %zu outputs", ncarried + 2, ncarried);
  return iterate_all(x, body, ncarried, most, condition);
}

// Scans: a step for each index of the scanned inputs' axes

typedef struct Scan {
  const OnnxGraph *body;
  size_t nstates, nscanned, nstacked; // of the inputs, and of the outputs behind the states
  int64_t nsteps;
  Ints axes, directions, out_axes, out_directions;
} Scan;

// A list of an attribute with `count` numbers, which are 0 where it is absent.
static bool take_list(Onnx *x, const char *name, size_t count, Ints *list) {
  const bool is_given = onnx_list(x, name, list);
  for (; !is_given && list->count < count; list->count++) list->items[list->count] = 0;
  return (list->count == count && count <= MOST_INTS) ||
         build_error(&x->build, "%s: expected %zu numbers", name, count);
}

// The scan of these inputs. Sets `outputs`: states, then stacked results.
static bool scan(Onnx *x, const Scan *s, Value *const *inputs, Value **outputs) {
  const int64_t nlists = s->nsteps * (int64_t)(s->body->noutputs + 2) + (int64_t)(s->nstates + s->nscanned);
  if (!build_spend(&x->build, nlists * (int64_t)sizeof(Value *))) return false;
  Value ***results = ARENA_ARRAY(x->reading.arena, Value **, (size_t)s->nsteps + 1), **carried;
  Value **in = ARENA_ARRAY(x->reading.arena, Value *, s->nstates + s->nscanned + 1);
  Value **items = ARENA_ARRAY(x->reading.arena, Value *, (size_t)s->nsteps + 1);
  if (!results || !in || !items) return error_out_of_memory(x->reading.d);
  for (size_t k = 0; k < s->nstates; k++) in[k] = inputs[k];
  for (int64_t t = 0; t < s->nsteps; t++) {
    for (size_t k = 0; k < s->nscanned; k++)
      in[s->nstates + k] = onnx_at_index(x, inputs[s->nstates + k], (int)s->axes.items[k],
                                         s->directions.items[k] ? s->nsteps - 1 - t : t);
    if (!onnx_count_call(x, s->body->message.count) || !copy(x, s->body, in, &results[t])) return false;
    carried = results[t];
    for (size_t k = 0; k < s->nstates; k++) in[k] = carried[k];
  }
  for (size_t k = 0; k < s->nstates; k++) outputs[k] = in[k];
  for (size_t k = 0; k < s->nstacked; k++) {
    for (int64_t t = 0; t < s->nsteps; t++)
      items[s->out_directions.items[k] ? s->nsteps - 1 - t : t] = results[t][s->nstates + k];
    int axis;
    if (!onnx_axis(x, s->out_axes.items[k], items[0]->shape.rank + 1, &axis)) return false;
    if (!(outputs[s->nstates + k] = onnx_stack(x, items, (size_t)s->nsteps, axis))) return false;
  }
  return true;
}

// The axes' numbers, and how many steps there are; the inputs are those behind the states.
static bool find_steps(Onnx *x, Scan *s, Value *const *inputs, int nbefore) {
  for (size_t k = 0; k < s->nscanned; k++) {
    const Value *v = inputs[k];
    int axis;
    if (!v || onnx_is_sequence(v)) return build_error(&x->build, "expected tensors to scan");
    if (!onnx_axis(x, s->axes.items[k], v->shape.rank - nbefore, &axis) || !onnx_has_number(x, v, axis + nbefore))
      return false;
    s->axes.items[k] = axis;
    const int64_t n = v->shape.extent[axis + nbefore].value;
    if (k && n != s->nsteps) return build_error(&x->build, "expected scanned axes of one length");
    s->nsteps = n;
  }
  return (s->nsteps >= 1 && s->nsteps <= MOST_ITERATIONS) ||
         build_error(&x->build, "expected 1 to %d steps", MOST_ITERATIONS);
}

// Before opset 9, each element of a batch is scanned by itself.
static bool scan_batch(Onnx *x, Scan *s, Value *const *inputs, size_t ninputs) {
  Value **in = ARENA_ARRAY(x->reading.arena, Value *, ninputs + 1),
        **outputs = ARENA_ARRAY(x->reading.arena, Value *, s->body->noutputs + 1), **all;
  if (!in || !outputs) return error_out_of_memory(x->reading.d);
  for (size_t k = 0; k < ninputs; k++)
    if (!inputs[k] || inputs[k]->shape.rank < 1 || !onnx_has_number(x, inputs[k], 0) ||
        inputs[k]->shape.extent[0].value != inputs[0]->shape.extent[0].value)
      return build_error(&x->build, "expected inputs with a batch");
  const int64_t n = inputs[0]->shape.extent[0].value;
  if (n < 1 || n > MOST_ITERATIONS) return build_error(&x->build, "expected a batch of 1 to %d", MOST_ITERATIONS);
  if (!build_spend(&x->build, n * (int64_t)(s->body->noutputs * sizeof *all))) return false;
  all = ARENA_ARRAY(x->reading.arena, Value *, (size_t)n * s->body->noutputs + 1);
  if (!all) return error_out_of_memory(x->reading.d);
  for (int64_t i = 0; i < n; i++) {
    for (size_t k = 0; k < ninputs; k++)
      if (!(in[k] = onnx_at_index(x, inputs[k], 0, i))) return false;
    if (!scan(x, s, in, outputs)) return false;
    for (size_t k = 0; k < s->body->noutputs; k++) all[k * (size_t)n + (size_t)i] = outputs[k];
  }
  for (size_t k = 0; k < x->node->noutputs; k++)
    if (onnx_wants(x, k) && !onnx_out(x, k, onnx_stack(x, all + k * (size_t)n, (size_t)n, 0))) return false;
  return true;
}

bool onnx_scan(Onnx *x) {
  Builder *b = &x->build;
  Scan s = {.nscanned = (size_t)onnx_int(x, "num_scan_inputs", 0), .body = take_graph(x, "body")};
  const size_t first = x->opset < 9; // sequence_lens
  if (!s.body) return false;
  const size_t ninputs = x->node->ninputs < first ? 0 : x->node->ninputs - first;
  Value *const *inputs = x->inputs + first;
  if (s.nscanned < 1 || s.nscanned > ninputs || s.nscanned > MOST_INTS || s.body->ninputs != ninputs)
    return build_error(b, "num_scan_inputs: expected 1 to %zu, and a body of as many inputs", ninputs);
  if (first && onnx_in(x, 0)) return build_error(b, "sequence_lens are not supported");
  s.nstates = ninputs - s.nscanned;
  if (s.body->noutputs < s.nstates || s.body->noutputs < x->node->noutputs)
    return build_error(b, "expected a body of at least %zu outputs", s.nstates);
  s.nstacked = s.body->noutputs - s.nstates;
  if (!take_list(x, "scan_input_axes", s.nscanned, &s.axes) ||
      !take_list(x, first ? "directions" : "scan_input_directions", s.nscanned, &s.directions) ||
      !take_list(x, "scan_output_axes", s.nstacked, &s.out_axes) ||
      !take_list(x, "scan_output_directions", s.nstacked, &s.out_directions) ||
      !find_steps(x, &s, inputs + s.nstates, (int)first))
    return false;
  if (first) return scan_batch(x, &s, inputs, ninputs);
  Value **outputs = ARENA_ARRAY(x->reading.arena, Value *, s.body->noutputs + 1);
  if (!outputs) return error_out_of_memory(x->reading.d);
  if (!scan(x, &s, inputs, outputs)) return false;
  for (size_t k = 0; k < x->node->noutputs; k++)
    if (onnx_wants(x, k) && !onnx_give_result(x, k, outputs[k])) return false;
  return true;
}
