// Reference results for outputs: the interpreter's, and the interpreter's with the roundings of compiled code.
#include "frontend/api/reference.h"

#include "backends/interpreter/choices.h"
#include "frontend/api/budget.h"
#include "frontend/api/compare.h"
#include "frontend/api/kernel.h"
#include "frontend/api/tensor.h"
#include "ir/support/budget.h"

#include <math.h>
#include <string.h>

static Tensor *new_outputs(const Graph *g, Arena *arena) {
  Tensor *outputs = ARENA_ARRAY(arena, Tensor, g->noutputs + 1);
  for (size_t i = 0; outputs && i < g->noutputs; i++) {
    outputs[i] = tensor_like(g->outputs[i]);
    outputs[i].data = arena_alloc(arena, tensor_nbytes(&outputs[i]) + 1);
    if (!outputs[i].data) return NULL;
  }
  return outputs;
}

// Sets the first three members; their memory is in the arena. g is bound.
static bool find_exact(Reference *r, const Graph *g, const Tensor *inputs, Arena *arena, Diagnostics *d) {
  const InterpreterOptions options = {.allocator = arena->allocator};
  r->exact = new_outputs(g, arena);
  r->magnitudes = ARENA_ARRAY(arena, double, g->noutputs + 1);
  r->movements = ARENA_ARRAY(arena, Movement, g->noutputs + 1);
  if (!r->exact || !r->magnitudes || !r->movements) return error_out_of_memory(d);
  return interpret(g, inputs, r->exact, &options, d) &&
         interpret_movements(g, inputs, r->exact, r->magnitudes, r->movements, arena, &options, d);
}

bool reference_round(Reference *r, const Graph *g, const CompiledGraph *by, const Tensor *inputs, Arena *arena,
                     Diagnostics *d) {
  const InterpreterOptions exactly = {.allocator = arena->allocator};
  const InterpreterOptions rounding = {
      .allocator = arena->allocator, .rounds_values = true, .types = by ? by->types : NULL};
  const Graph *compiled = by ? by->graph : g;
  r->rounded = new_outputs(g, arena);
  r->is_rounded = ARENA_ARRAY(arena, bool, g->noutputs + 1);
  if (!r->rounded || !r->is_rounded) return error_out_of_memory(d);
  if (by && !interpret(compiled, inputs, r->rounded, &exactly, d)) return false;
  for (size_t i = 0; i < g->noutputs; i++) {
    ng_difference difference = {.is_within = true};
    if (by) difference_find(&r->rounded[i], &r->exact[i], NULL, NULL, r->magnitudes[i], -1, &difference);
    r->is_rounded[i] = difference.is_within;
  }
  return interpret(compiled, inputs, r->rounded, &rounding, d);
}

// Comparing outputs

typedef struct Comparison {
  ng_graph *g;
  const ng_tensor *actual, *expected;
  double tolerance;
  ng_difference *differences;
  const bool *is_doubtful; // by value: see graph_find_doubtful
  bool leaves_out;         // elements that rounding errors move far
} Comparison;

static const Movement *movement(const Comparison *c, const Reference *r, size_t i) {
  return c->leaves_out ? &r->movements[i] : NULL;
}

// Whether each element is compared with what noise moves it by: not where choices, or types as coarse as noise, decide
// how far that is.
static bool has_limits(const Comparison *c, size_t i) {
  const Value *v = c->g->graph->outputs[i];
  return c->tolerance < 0 && type_is_float(v->type) && !value_is_exact(v) && !c->is_doubtful[v->index];
}

static const Movement *limits_of(const Comparison *c, const Reference *r, size_t i) {
  return has_limits(c, i) ? &r->movements[i] : NULL;
}

// Counts elements that are not finite although the exact ones are, and finds the first of them. The rounded reference
// has them, too.
static void count_overflown(const Tensor *actual, const Tensor *exact, ng_difference *d) {
  const int64_t nelems = tensor_nelems(actual);
  d->noverflown = 0;
  for (int64_t i = nelems; i-- > 0;) {
    const double a = type_load(actual->type, actual->data, (size_t)tensor_offset(actual, i));
    const double e = type_load(exact->type, exact->data, (size_t)tensor_offset(exact, i));
    if (isfinite(a) || !isfinite(e)) continue;
    d->noverflown++;
    d->worst_element = i;
  }
}

// Whether the output consists of quantised numbers, each of which is the only right one unless rounding errors flip it.
static bool is_certain(const Comparison *c, const Value *v) {
  const Node *node = v->producer;
  bool all = node && !type_is_float(v->type);
  for (uint32_t k = 0; all && k < node->ninputs; k++) all = !node->inputs[k] || !c->is_doubtful[node->inputs[k]->index];
  return all;
}

// Exact outputs have the tolerance 0, as all do with `tolerance` 0.
static double tolerance_of(const Comparison *c, size_t i) {
  const Value *v = c->g->graph->outputs[i];
  return c->tolerance < 0 && (value_is_exact(v) || is_certain(c, v)) ? 0 : c->tolerance;
}

// Where signs of zeros are exact, they must be right. A wrong sign counts as a unit in the last place.
static void check_signs(const Comparison *c, const ng_kernel *kernel, size_t i) {
  const Value *v = c->g->graph->outputs[i];
  const Tensor actual = tensor_of_api(&c->actual[i]), expected = tensor_of_api(&c->expected[i]);
  ng_difference *d = &c->differences[i];
  if (!type_is_float(actual.type) || d->nflipped || c->tolerance > 0) return;
  if (!value_is_exact(v) && (!value_has_exact_signs(v) || (kernel && kernel->is_fast_math))) return;
  for (int64_t e = 0; e < tensor_nelems(&actual); e++) {
    const double a = type_load(actual.type, actual.data, (size_t)tensor_offset(&actual, e));
    const double wanted = type_load(expected.type, expected.data, (size_t)tensor_offset(&expected, e));
    if (a != 0 || wanted != 0 || !signbit(a) == !signbit(wanted)) continue;
    d->worst_element = e;
    d->largest_ulp = 1;
    d->most_ulp = 0;
    d->is_within = false;
    return;
  }
}

static bool is_same(const Tensor *a, const ng_tensor *b) {
  return (ng_type)a->type == b->type && memcmp(a->data, b->data, tensor_nbytes(a)) == 0;
}

static bool are_within(const Comparison *c) {
  for (size_t i = 0; i < c->g->graph->noutputs; i++)
    if (!c->differences[i].is_within) return false;
  return true;
}

// Compares outputs outside their tolerances again, allowing for the effect of rounding errors of the graph's values.
static void compare_with_exact(const Comparison *c, const Reference *r) {
  for (size_t i = 0; i < c->g->graph->noutputs; i++) {
    ng_difference *d = &c->differences[i];
    const Tensor actual = tensor_of_api(&c->actual[i]), expected = tensor_of_api(&c->expected[i]);
    if (!d->is_within)
      difference_find(&actual, &expected, movement(c, r, i), limits_of(c, r, i), r->magnitudes[i], tolerance_of(c, i),
                      d);
  }
}

// Compares outputs that are still outside with the rounded results, but only if `expected` are the interpreter's
// results; the rounded results replace no others.
static void compare_with_rounded(const Comparison *c, const Reference *r) {
  for (size_t i = 0; i < c->g->graph->noutputs; i++) {
    ng_difference d, *told = &c->differences[i];
    if (told->is_within || !r->is_rounded || !r->is_rounded[i] || !is_same(&r->exact[i], &c->expected[i])) continue;
    const Tensor actual = tensor_of_api(&c->actual[i]);
    difference_find(&actual, &r->rounded[i], movement(c, r, i), limits_of(c, r, i), r->magnitudes[i],
                    tolerance_of(c, i), &d);
    if (!d.is_within) continue;
    *told = d;
    count_overflown(&actual, &r->exact[i], told);
  }
}

// Makes room for the results of further runs, as movement_add describes.
static bool movement_extend(Movement *m, Arena *arena) {
  Tensor *results = ARENA_ARRAY(arena, Tensor, m->nresults + 2);
  if (!results) return false;
  memcpy(results, m->results, m->nresults * sizeof *results);
  m->results = results;
  for (int k = 0; k < 2; k++) {
    Tensor *added = &results[m->nresults++];
    *added = results[0];
    added->data = arena_alloc(arena, tensor_nbytes(added) + 1);
    if (!added->data) return false;
    memcpy(added->data, results[0].data, tensor_nbytes(added));
  }
  return true;
}

// Compares with the results of further choices. A tie of many numbers may be decided in as many ways, which the first
// runs did not all try.
static bool try_more_choices(Comparison *c, const Reference *r, const Tensor *inputs, Arena *arena, Diagnostics *d) {
  enum { MOST_RUNS = 48, MOST_IDLE_RUNS = 8 };
  const InterpreterOptions options = {.allocator = arena->allocator};
  const Graph *g = c->g->graph;
  Tensor *flipped = new_outputs(g, arena);
  bool ok = flipped;
  if (!g->noutputs || r->movements[0].nresults < 2) return true; // no choices
  for (size_t i = 0; ok && i < g->noutputs; i++) ok = movement_extend(&r->movements[i], arena);
  if (!ok) return error_out_of_memory(d);
  for (int run = 1, nidle = 0; run <= MOST_RUNS && nidle < MOST_IDLE_RUNS && !are_within(c); run++) {
    bool any = false;
    if (!interpret_flipped(g, inputs, FLIPS + (uint64_t)run, flipped, &options, d)) return false;
    for (size_t i = 0; i < g->noutputs; i++) {
      const Tensor actual = tensor_of_api(&c->actual[i]), expected = tensor_of_api(&c->expected[i]);
      if (!c->differences[i].is_within) any |= movement_add(&r->movements[i], &flipped[i], &actual, &expected);
    }
    nidle = any ? 0 : nidle + 1;
    if (!any) continue;
    compare_with_exact(c, r);
    compare_with_rounded(c, r);
  }
  return true;
}

static ng_status check_memory(ng_graph *g) {
  ng_memory memory;
  const ng_status status = ng_graph_memory(g, &memory);
  if (status != NG_OK) return status;
  return graph_check_memory(g, "comparing", "values and sums in f64, with noise and without",
                            nbytes_multiply(2, memory.interpreter_nbytes));
}

static ng_status resolve_doubts(Comparison *c, const ng_kernel *kernel, const ng_tensor *given) {
  ng_context *ctx = c->g->ctx;
  const Graph *g = c->g->graph;
  Reference r = {0};
  Arena arena;
  ng_status status = check_memory(c->g);
  if (status != NG_OK) return status;
  arena_init(&arena, &ctx->allocator);
  Call call = call_begin(ctx);
  Tensor *inputs = ARENA_ARRAY(&arena, Tensor, g->ninputs + 1);
  for (size_t i = 0; inputs && i < g->ninputs; i++) inputs[i] = tensor_of_api(&given[i]);
  bool ok = inputs || error_out_of_memory(&ctx->diagnostics);
  ok = ok && find_exact(&r, g, inputs, &arena, &ctx->diagnostics);
  if (ok) compare_with_exact(c, &r);
  if (ok && !are_within(c)) {
    const CompiledGraph *by = kernel && kernel->rounding.types ? &kernel->rounding : NULL;
    ok = reference_round(&r, g, by, inputs, &arena, &ctx->diagnostics);
    if (ok) compare_with_rounded(c, &r);
  }
  if (ok && !are_within(c)) {
    c->leaves_out = true;
    compare_with_exact(c, &r);
    compare_with_rounded(c, &r);
    if (!are_within(c)) ok = try_more_choices(c, &r, inputs, &arena, &ctx->diagnostics);
  }
  arena_deinit(&arena);
  status = call_end(ctx, call);
  if (!ok) return status;
  return are_within(c) ? NG_OK : NG_DIFFERENT;
}

static ng_status compare_outputs(Comparison *c, const ng_kernel *kernel, const ng_tensor *inputs) {
  bool may_be_rounding = false;
  const size_t noutputs = c->g->graph->noutputs;
  for (size_t i = 0; i < noutputs; i++) {
    ng_difference *d = &c->differences[i];
    const ng_status status = ng_tensor_compare(c->g->ctx, &c->actual[i], &c->expected[i], tolerance_of(c, i), d);
    if (status != NG_OK && status != NG_DIFFERENT) return status;
    if (d->is_within && has_limits(c, i)) {
      const Tensor actual = tensor_of_api(&c->actual[i]), expected = tensor_of_api(&c->expected[i]);
      d->is_within = !has_far_element(&actual, &expected);
    }
    may_be_rounding |= !d->is_within && c->tolerance != 0;
  }
  if (may_be_rounding) {
    const ng_status status = resolve_doubts(c, kernel, inputs);
    if (status != NG_OK && status != NG_DIFFERENT) return status;
  }
  for (size_t i = 0; i < noutputs; i++)
    if (c->differences[i].is_within) check_signs(c, kernel, i);
  return are_within(c) ? NG_OK : NG_DIFFERENT;
}

ng_status ng_compare_outputs(ng_graph *g, const ng_kernel *kernel, const ng_tensor *inputs, const ng_tensor *actual,
                             const ng_tensor *expected, double tolerance, ng_difference *differences) {
  Arena arena;
  arena_init(&arena, &g->ctx->allocator);
  bool *is_doubtful = ARENA_ARRAY(&arena, bool, g->graph->nvalues + 1);
  ng_status status;
  if (is_doubtful) {
    Comparison c = {g, actual, expected, tolerance, differences, is_doubtful, false};
    graph_find_doubtful(g->graph, is_doubtful);
    status = compare_outputs(&c, kernel, inputs);
  } else {
    status = out_of_memory_status(g->ctx);
  }
  arena_deinit(&arena);
  return status;
}
