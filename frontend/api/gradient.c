// Gradients of graphs.
#include "frontend/api/gradient.h"

#include "frontend/api/precision.h"
#include "ir/operators/infer.h"
#include "passes/train/train.h"

#include <string.h>

// Finds the named values; the array is in the graph's arena. An empty list gives NULL.
static ng_status find_values(ng_graph *g, const char *what, const char *const *names, size_t nnames,
                             Value *const *known, size_t nknown, Value ***found) {
  Arena *arena = &g->graph->arena;
  const char **known_names = names ? ARENA_ARRAY(arena, const char *, nknown + 1) : NULL;
  *found = names ? ARENA_ARRAY(arena, Value *, nnames + 1) : NULL;
  if (!names) return NG_OK;
  if (!known_names || !*found) return out_of_memory_status(g->ctx);
  for (size_t k = 0; k < nknown; k++) known_names[k] = known[k]->name;
  for (size_t i = 0; i < nnames; i++) {
    for (size_t k = 0; k < nknown && !(*found)[i]; k++)
      if (strcmp(names[i], known_names[k]) == 0) (*found)[i] = known[k];
    if (!(*found)[i]) return unknown_name(g->ctx, what, names[i], known_names, nknown);
    for (size_t k = 0; k < i; k++)
      if ((*found)[k] == (*found)[i]) return argument_error(g->ctx, "%s: expected each %s once", names[i], what);
  }
  return NG_OK;
}

// In the graph's arena.
static ng_status choose_precision(ng_graph *g, const ng_gradient_options *o, DerivativeForm form,
                                  MixedPrecision *mixed) {
  const ng_status status = precision_choose(g->ctx, o->precision, o->keep_f32, o->nkeep_f32, &g->graph->arena, mixed);
  if (status != NG_OK || !mixed->type) return status;
  if (form) return argument_error(g->ctx, "precision: expected the gradient with it, not another derivative");
  if (g->graph->nleaves)
    return argument_error(g->ctx,
                          "precision: expected a graph without leaves, found %s; training has leaves and "
                          "precision together",
                          g->graph->name);
  return NG_OK;
}

// A copy of the graph in which dims that the caller fixed are numbers: a matrix has a row for each element of a tensor.
static Graph *with_numbers(ng_graph *g, ng_status *status) {
  Diagnostics *d = &g->ctx->diagnostics;
  const Call call = call_begin(g->ctx);
  Graph *own = graph_clone(g->graph);
  bool ok = own && graph_own_dims(own);
  ok = ok ? graph_bind_fixed_dims(own, true, d) && graph_infer(own, d) : error_out_of_memory(d);
  *status = call_end(g->ctx, call);
  if (ok) return own;
  graph_free(own);
  return NULL;
}

static Graph *derivative_of(ng_graph *g, const ng_gradient_options *options, DerivativeForm form, GradientEnds *ends,
                            ng_status *status) {
  static const ng_gradient_options defaults = {0};
  const ng_gradient_options *o = options ? options : &defaults;
  const bool is_matrix = form == DERIVATIVE_JACOBIAN || form == DERIVATIVE_HESSIAN;
  Value **wrt, **of;
  MixedPrecision mixed = {0};
  *status = choose_precision(g, o, form, &mixed);
  if (*status == NG_OK) *status = graph_bind_fixed(g);
  Graph *own = is_matrix && *status == NG_OK ? with_numbers(g, status) : NULL;
  const Graph *graph = own ? own : g->graph;
  if (*status == NG_OK) *status = find_values(g, "input", o->wrt, o->nwrt, graph->inputs, graph->ninputs, &wrt);
  if (*status == NG_OK) *status = find_values(g, "output", o->of, o->nof, graph->outputs, graph->noutputs, &of);
  if (*status != NG_OK) {
    graph_free(own);
    return NULL;
  }
  compiling_begin(g->ctx, graph->name);
  Call call = call_begin(g->ctx);
  const GradientRequest request = {
      .wrt = wrt, .nwrt = o->nwrt, .of = of, .nof = o->nof, .saves_least = o->save_least != 0};
  Graph *gradient = form ? graph_derivative(graph, &request, form, &g->ctx->diagnostics)
                         : graph_gradient(graph, &request, ends, &g->ctx->diagnostics);
  if (gradient && !form && graph->nleaves) {
    Graph *backward = gradient;
    gradient = gradient_with_forward(graph, backward, ends, false, &g->ctx->diagnostics);
    graph_free(backward);
  }
  if (gradient && mixed.type && !mixed_gradient(gradient, graph, ends, &mixed, &g->ctx->diagnostics)) {
    graph_free(gradient);
    gradient = NULL;
  }
  *status = call_end(g->ctx, call);
  compiling_end(g->ctx);
  graph_free(own);
  if (gradient) *status = NG_OK;
  return gradient;
}

Graph *gradient_of(ng_graph *g, const ng_gradient_options *options, GradientEnds *ends, ng_status *status) {
  return derivative_of(g, options, DERIVATIVE_GRADIENT, ends, status);
}

static bool is_input(const Graph *g, const char *name) {
  for (size_t i = 0; i < g->ninputs; i++)
    if (strcmp(g->inputs[i]->name, name) == 0) return true;
  return false;
}

// Refuses a name of neither an input nor a floating-point constant.
static ng_status check_asked(ng_graph *g, const char *name) {
  const Graph *graph = g->graph;
  const char **known = allocator_alloc(&g->ctx->allocator, (graph->ninputs + graph->nvalues) * sizeof *known + 1);
  size_t nknown = 0;
  if (!known) return out_of_memory_status(g->ctx);
  ng_status status = NG_OK;
  bool is_found = false;
  for (; nknown < graph->ninputs; nknown++) known[nknown] = graph->inputs[nknown]->name;
  for (size_t i = 0; i < graph->nvalues && !is_found; i++) {
    const Value *v = graph->values[i];
    if (!v->constant) continue;
    known[nknown++] = v->name;
    if (strcmp(v->name, name) != 0) continue;
    is_found = true;
    if (!type_is_float(v->type))
      status = argument_error(g->ctx, "%s: expected a constant of floating-point numbers, found %s", name,
                              type_name(v->type));
  }
  if (!is_found) status = unknown_name(g->ctx, "input", name, known, nknown);
  allocator_free(&g->ctx->allocator, known);
  return status;
}

ng_graph *ng_graph_with_inputs(ng_graph *g, const char *const *names, size_t count) {
  ng_context *ctx = g->ctx;
  ctx->last_status = graph_bind_fixed(g);
  for (size_t i = 0; i < count && ctx->last_status == NG_OK; i++)
    if (!is_input(g->graph, names[i])) ctx->last_status = check_asked(g, names[i]);
  if (ctx->last_status != NG_OK) return NULL;
  const Call call = call_begin(ctx);
  return graph_wrap(ctx, call, graph_with_inputs(g->graph, names, count, &ctx->diagnostics));
}

ng_graph *ng_graph_gradient(ng_graph *g, const ng_gradient_options *options) {
  ng_context *ctx = g->ctx;
  GradientEnds ends;
  const ng_derivative form = options ? options->derivative : NG_GRADIENT;
  if (form < NG_GRADIENT || form > NG_VJP) {
    ctx->last_status = argument_error(ctx, "expected a derivative from 0 to %d, found %d", NG_VJP, (int)form);
    return NULL;
  }
  Graph *gradient = derivative_of(g, options, (DerivativeForm)form, &ends, &ctx->last_status);
  if (!gradient) return NULL;
  const Call call = call_begin(ctx);
  if (!graph_own_dims(gradient)) {
    graph_free(gradient);
    gradient = NULL;
    error_out_of_memory(&ctx->diagnostics);
  }
  for (size_t i = 0; gradient && i < gradient->ndims; i++) gradient->dims[i]->is_fixed = false; // now a hint
  return graph_wrap(ctx, call, gradient);
}

ng_graph *ng_graph_gradient_forward(ng_graph *g, const ng_gradient_options *options) {
  ng_context *ctx = g->ctx;
  GradientEnds ends;
  Graph *gradient = gradient_of(g, options, &ends, &ctx->last_status);
  if (!gradient) return NULL;
  Call call = call_begin(ctx);
  Graph *forward = graph_with_saved(g->graph, gradient, &ends);
  MixedPrecision mixed = {0};
  if (!forward) error_out_of_memory(&ctx->diagnostics);
  else if (options && choose_precision(g, options, DERIVATIVE_GRADIENT, &mixed) == NG_OK && mixed.type &&
           !mixed_forward(forward, g->graph, gradient, &ends, &mixed, &ctx->diagnostics)) {
    graph_free(forward);
    forward = NULL;
  }
  graph_free(gradient);
  return graph_wrap(ctx, call, forward);
}
