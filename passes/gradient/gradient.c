// Makes the backward graph by reverse accumulation (walk.c). Values get their names at the end, when it is known which
// value is the complete gradient of a forward value.
#include "passes/gradient/gradient_state.h"

#include "ir/graph/formula.h"
#include "ir/graph/leaves.h"
#include "ir/graph/verify.h"
#include "passes/rewrite/dead_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME_BYTES = 255 };

// A name that an unknown extent of the value may follow from: of the same axis of an operand, or any other.
static const char *name_behind(const Graph *g, const Value *v) {
  const Node *node = v->producer;
  for (uint32_t i = 0; node && i < node->ninputs; i++) {
    const Shape *from = node->inputs[i] ? &node->inputs[i]->shape : NULL;
    for (int k = 0; from && from->rank == v->shape.rank && k < from->rank; k++) {
      const Dim *dim = extent_is_unknown(v->shape.extent[k]) ? from->extent[k].dim : NULL;
      if (dim) return dim->terms ? dim->terms[0].dims[0]->name : dim->name;
    }
  }
  return g->dims[0]->name;
}

// Rules need all extents: to know which axes are broadcast, and which elements an operator has moved.
bool gradient_check_extents(const Graph *g, const Value *v, Diagnostics *d) {
  char shape[SHAPE_TEXT];
  bool is_known = v->shape.rank >= 0;
  for (int k = 0; k < v->shape.rank; k++) is_known &= !extent_is_unknown(v->shape.extent[k]);
  const char *how = v->is_input ? ", or give it, as in --shape "
                    : g->ndims  ? ", or give names numbers, as in --dim "
                                : "",
             *name = v->is_input ? v->name
                     : g->ndims  ? name_behind(g, v)
                                 : "",
             *numbers = v->is_input ? "=1,256"
                        : g->ndims  ? "=64"
                                    : "";
  return is_known ||
         error_at(d, v->position,
                  "%s %s: expected a number, a name or a sum of names for every extent, as its gradient needs them: "
                  "declare its shape, as in {name: %s, shape: [N, 2 * T + 1]}%s%s%s",
                  v->name, shape_string(&v->shape, shape, sizeof shape), v->name, how, name, numbers);
}

static bool check_all_extents(const Graph *g, Diagnostics *d) {
  for (size_t i = 0; i < g->nvalues; i++)
    if (!gradient_check_extents(g, g->values[i], d)) return false;
  return true;
}

static bool check_float(const Value *v, Diagnostics *d) {
  return type_is_float(v->type) ||
         error_at(d, v->position, "%s is %s: expected a floating-point type, others have no gradient", v->name,
                  type_name(v->type));
}

// Whether all uses of the value are operands such as Dropout's probability.
static bool is_setting(const Value *v) {
  bool is_one = v->uses != NULL;
  for (const Use *use = v->uses; use; use = use->next)
    is_one &= gradient_by_input(use->node->op->id, use->slot).is_setting;
  return is_one;
}

// Marks the values that depend on inputs whose gradients are requested.
static bool find_dependants(Gradient *g, const GradientRequest *request) {
  const Graph *forward = g->forward;
  Value *const *wrt = request->wrt ? request->wrt : forward->inputs;
  size_t nwrt = request->wrt ? request->nwrt : forward->ninputs;
  for (size_t i = 0; i < nwrt; i++) {
    if (request->wrt && !check_float(wrt[i], g->diagnostics)) return false;
    g->depends[wrt[i]->index] = type_is_float(wrt[i]->type) && (request->wrt || !is_setting(wrt[i]));
  }
  for (size_t n = 0; n < forward->nnodes; n++) gradient_find_flow(g, forward->nodes[n]);
  return true;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool gradient_choose_prefix(const Graph *g, const char *stem, char prefix[PREFIX_BYTES]) {
  const size_t count = g->ninputs + g->noutputs, nbytes = strlen(stem);
  const char **names = allocator_alloc(g->arena.allocator, (count + 1) * sizeof *names);
  unsigned long order = 1;
  if (!names) return false;
  for (size_t i = 0; i < g->ninputs; i++) names[i] = g->inputs[i]->name;
  for (size_t i = 0; i < g->noutputs; i++) names[g->ninputs + i] = g->outputs[i]->name;
  qsort(names, count, sizeof *names, compare_names);
  for (size_t i = 0; i < g->nvalues; i++) {
    const char *name = g->values[i]->name, *number = name + nbytes;
    if (strncmp(name, stem, nbytes) != 0) continue;
    const bool has_number = *number >= '2' && *number <= '9';
    char *end = (char *)number;
    const unsigned long own = has_number ? strtoul(number, &end, 10) : 1;
    const char *rest = end + 1;
    if (*end != '_' || own < order || own >= UINT32_MAX) continue;
    if (bsearch(&rest, names, count, sizeof *names, compare_names)) order = own + 1;
  }
  if (order == 1) snprintf(prefix, PREFIX_BYTES, "%s_", stem);
  else snprintf(prefix, PREFIX_BYTES, "%s%lu_", stem, order);
  allocator_free(g->arena.allocator, names);
  return true;
}

static const char *prefixed_name(Gradient *g, const char *prefix, const Value *forward) {
  if (strlen(forward->name) + strlen(prefix) > MOST_NAME_BYTES) {
    g->failed = true;
    error_at(g->diagnostics, forward->position, "%s: expected a shorter name, as %sNAME has at most %d bytes",
             forward->name, prefix, MOST_NAME_BYTES);
    return NULL;
  }
  const char *name = arena_format(&g->graph->arena, "%s%s", prefix, forward->name);
  return name ? name : gradient_out_of_memory(g);
}

static const char *diff_name(Gradient *g, const Value *forward) {
  return prefixed_name(g, g->prefix, forward);
}

static void add_seed(Gradient *g, const Value *output) {
  char other[PREFIX_BYTES];
  if (output->is_input && !gradient_choose_prefix(g->forward, "cotangent", other)) {
    gradient_out_of_memory(g);
    return;
  }
  const char *name = prefixed_name(g, output->is_input ? other : g->prefix, output);
  Value *seed = name ? graph_add_input(g->graph, name, output->type, &output->shape) : NULL;
  if (!seed) {
    if (name) gradient_out_of_memory(g);
    return;
  }
  seed->position = output->position;
  seed->layout = output->layout;
  g->seed[output->index] = seed;
  gradient_add(g, output, seed, (Guard){0});
}

// Whether the output has a gradient, be it 0.
static bool has_gradient(const Gradient *g, const Value *output) {
  return g->depends[output->index] || (g->follows[output->index] && type_is_float(output->type));
}

static void add_seeds(Gradient *g, const GradientRequest *request) {
  Value *const *of = request->of ? request->of : g->forward->outputs;
  size_t nof = request->of ? request->nof : g->forward->noutputs - g->forward->nupdates;
  for (size_t i = 0; i < nof && !g->failed; i++) {
    if (request->of && !check_float(of[i], g->diagnostics)) g->failed = true;
    else if (!g->seed[of[i]->index] && has_gradient(g, of[i]) && (request->of || !gradient_is_statistic(of[i])))
      add_seed(g, of[i]);
  }
}

// Adds the gradient of `input` as an output. An output needs a value and name of its own: a value that is also an input
// of the backward graph, or the gradient of another input, is copied.
static void add_output(Gradient *g, const Value *input) {
  Value *v = gradient_of_all_leaves(g, g->diff[input->index]);
  if (!v) return;
  g->diff[input->index] = v;
  if (v->is_input || v->is_output) {
    v = gradient_scaled(g, v, 1);
    v = gradient_cast(g, v, input->type);
  }
  const char *name = diff_name(g, input);
  if (!v || !name) return;
  v->name = name;
  v->position = input->position;
  v->layout = input->layout;
  g->ends->outputs[g->graph->noutputs] = input;
  if (!graph_add_output(g->graph, v)) gradient_out_of_memory(g);
}

static void add_outputs(Gradient *g, const GradientRequest *request) {
  Value *const *wrt = request->wrt ? request->wrt : g->forward->inputs;
  size_t nwrt = request->wrt ? request->nwrt : g->forward->ninputs, nrefused = 0;
  bool gives_all = true;
  for (size_t i = 0; i < nwrt; i++) gives_all &= !g->diff[wrt[i]->index];
  for (size_t i = 0; i < nwrt && !g->failed; i++) {
    const Value *input = wrt[i];
    if (!type_is_float(input->type)) continue;
    if (g->seed[input->index] && !request->splits_ends) {
      nrefused++;
      error_at(g->diagnostics, input->position,
               "%s is an input and an output, so %s%s would have two meanings: leave it out of wrt or of", input->name,
               g->prefix, input->name);
    } else {
      if (!g->diff[input->index] && g->depends[input->index])
        g->diff[input->index] = gradient_of_steps(g, input, request->wrt && !request->gives_zeros);
      if (!g->diff[input->index] && request->gives_zeros && (request->wrt || gives_all))
        g->diff[input->index] = gradient_cast(g, gradient_filled(g, input->type, &input->shape, 0), input->type);
      if (g->diff[input->index]) add_output(g, input);
      else nrefused += request->wrt != NULL;
    }
  }
  g->failed |= nrefused > 0;
  if (g->failed || g->graph->noutputs) return;
  g->failed = true;
  error_at(g->diagnostics, (Position){0}, "%s: expected an output that depends on a floating-point input",
           g->forward->name);
}

bool gradient_name_terms(Graph *g) {
  for (size_t i = 0; i < g->nvalues; i++) {
    Value *v = g->values[i];
    if (!*v->name && !(v->name = graph_fresh_name(g, v->constant ? "number" : "term"))) return false;
  }
  return true;
}

static void name_values(Gradient *g) {
  for (size_t i = 0; i < g->forward->nvalues && !g->failed; i++) {
    Value *v = g->diff[i];
    if (!v || *v->name || g->seed[i]) continue; // the seed has the name already
    const char *name = diff_name(g, g->forward->values[i]);
    if (name) v->name = name;
  }
  if (!g->failed && !gradient_name_terms(g->graph)) gradient_out_of_memory(g);
}

static void list_input(Gradient *g, Value *input, const Value *forward, bool is_diff) {
  if (!gradient_is_needed(input) || g->is_listed[input->index]) return;
  g->is_listed[input->index] = true;
  g->ends->ndiffs += is_diff;
  g->ends->inputs[g->graph->ninputs] = forward;
  g->graph->inputs[g->graph->ninputs++] = input;
}

// Rebuilds the list of used inputs: inputs of the forward graph in their order, saved values, gradients of outputs.
static void order_inputs(Gradient *g) {
  Graph *graph = g->graph;
  const Graph *forward = g->forward;
  size_t nvalues = 0;
  for (size_t i = 0; i < graph->ninputs; i++) graph->inputs[i]->is_input = gradient_is_needed(graph->inputs[i]);
  graph->ninputs = 0;
  for (size_t i = 0; i < forward->ninputs; i++)
    list_input(g, g->here[forward->inputs[i]->index], forward->inputs[i], false);
  for (size_t i = 0; i < forward->nvalues; i++) list_input(g, g->here[i], forward->values[i], false);
  for (size_t i = 0; i < forward->noutputs; i++)
    list_input(g, g->seed[forward->outputs[i]->index], forward->outputs[i], true);
  for (size_t i = 0; i < graph->nvalues; i++) {
    Value *v = graph->values[i];
    if (!v->producer && !v->is_input && !v->constant) continue;
    v->index = (uint32_t)nvalues;
    graph->values[nvalues++] = v;
  }
  graph->nvalues = nvalues;
}

// Removes nodes that no output needs. Constants that are no longer used are forgotten, and created again on demand.
static bool remove_unused(Gradient *g) {
  if (!graph_sort(g->graph, g->diagnostics)) return false;
  pass_dead_code(g->graph, &(PassContext){.diagnostics = g->diagnostics, .allocator = g->scratch.allocator});
  for (size_t i = 0; i < g->forward->nvalues; i++)
    if (g->here[i] && g->here[i]->constant && !g->here[i]->uses) g->here[i] = NULL;
  return true;
}

// Gives values whose name another value has a fresh one. Inputs and outputs keep theirs: the prefix makes them unique.
static bool make_names_unique(Gradient *g) {
  if (graph_make_names_unique(g->graph)) return true;
  gradient_out_of_memory(g);
  return false;
}

// Finishes the backward graph. Its list of inputs does not grow here, so ends->inputs is allocated once.
static bool finish(Gradient *g) {
  g->is_listed = ARENA_ARRAY(&g->scratch, bool, g->graph->nvalues + 1);
  g->ends->inputs = ARENA_ARRAY(&g->graph->arena, const Value *, g->graph->ninputs + 1);
  if (!g->is_listed || !g->ends->inputs) {
    gradient_out_of_memory(g);
    return false;
  }
  order_inputs(g);
  name_values(g);
  return !g->failed && make_names_unique(g) && graph_verify(g->graph, g->diagnostics);
}

static void make(Gradient *g, const GradientRequest *request) {
  g->failed = !find_dependants(g, request);
  if (!g->failed && !gradient_choose_prefix(g->forward, "diff", g->prefix)) gradient_out_of_memory(g);
  if (g->failed) return;
  add_seeds(g, request);
  if (!g->failed) gradient_walk_back(g, 0, g->forward->nnodes);
  if (!g->failed) gradient_warn_of_steps(g);
  g->ends->outputs = ARENA_ARRAY(&g->graph->arena, const Value *, g->forward->ninputs + request->nwrt + 1);
  if (!g->ends->outputs) gradient_out_of_memory(g);
  if (!g->failed) add_outputs(g, request);
  g->failed = g->failed || !remove_unused(g);
  if (!g->failed && g->forward->nleaves) g->failed = !gradient_settle_leaves(g);
  if (!g->failed && request->saves_least) gradient_choose_saved(g);
  g->failed = g->failed || (request->saves_least && !graph_sort(g->graph, g->diagnostics)) || !finish(g);
}

static bool begin(Gradient *g) {
  const Graph *forward = g->forward;
  size_t n = forward->nvalues + 1;
  const char *name = arena_format(&g->scratch, "%s_backward", forward->name);
  g->graph = name ? graph_new(forward->arena.allocator, name) : NULL;
  g->here = ARENA_ARRAY(&g->scratch, Value *, n);
  g->seed = ARENA_ARRAY(&g->scratch, Value *, n);
  g->is_own = ARENA_ARRAY(&g->scratch, bool, n);
  if (!g->graph || !g->is_own || !g->here || !g->seed || !gradient_begin_walk(g, n)) return false;
  g->build = (Builder){.graph = g->graph, .d = g->diagnostics, .stem = ""};
  graph_find_own_values(forward, g->is_own);
  g->graph->origin = graph_keep((Graph *)forward); // the cast is valid: only the reference count changes
  g->graph->source = forward->source;
  g->graph->nleaves = forward->nleaves;
  return graph_share_dims(g->graph, forward);
}

Graph *graph_gradient(const Graph *forward, const GradientRequest *request, GradientEnds *ends, Diagnostics *d) {
  Gradient g = {.forward = forward, .ends = ends, .diagnostics = d};
  *ends = (GradientEnds){0};
  if (!check_all_extents(forward, d)) return NULL;
  arena_init(&g.scratch, forward->arena.allocator);
  if (begin(&g)) make(&g, request);
  else gradient_out_of_memory(&g);
  arena_deinit(&g.scratch);
  if (!g.failed) return g.graph;
  graph_free(g.graph);
  return NULL;
}
