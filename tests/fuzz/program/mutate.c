// Makes graphs: at random, from files by mutation, and gradients of both.
#include "tests/fuzz/program/program.h"
#include "tests/random_graph.h"

#include "frontend/api/ngrad.h"
#include "frontend/yaml/yaml.h"

#include <string.h>

enum { MOST_NODES = 20, MOST_NELEMS = 40000 };

void report_text(Report *r, const Graph *g) {
  Text text;
  text_init(&text, &system_allocator);
  yaml_print(g, &text);
  r->nbytes = text.nbytes < REPORT_TEXT ? text.nbytes : 0;
  memcpy(r->text, text_string(&text), r->nbytes);
  r->text[r->nbytes] = 0;
  text_deinit(&text);
}

// Extents

void forget_shapes(Graph *g) {
  for (size_t i = 0; i < g->nvalues; i++) {
    Value *v = g->values[i];
    for (int axis = 0; v->producer && axis < v->shape.rank; axis++)
      if (v->producer->op->id != OP_StaticReshape) v->shape.extent[axis] = EXTENT_UNKNOWN;
  }
}

// A constant of another shape gets the same number for all elements.
static bool resize_constant(Graph *g, Value *v) {
  Constant *c = ARENA_NEW(&g->arena, Constant);
  if (!c) return false;
  *c = *v->constant;
  c->is_splat = true;
  c->file = NULL;
  v->constant = c;
  return true;
}

static bool resize_list(Graph *g, AttributeValue *a, int64_t from, int64_t to) {
  bool is_found = false;
  int64_t *items = ARENA_ARRAY(&g->arena, int64_t, a->list.count + 1);
  for (size_t i = 0; items && i < a->list.count; i++) {
    is_found |= a->list.items[i] == from;
    items[i] = a->list.items[i] == from ? to : a->list.items[i];
  }
  if (items) a->list.items = items;
  return is_found && items;
}

bool resize_extents(Graph *g, int64_t from, int64_t to) {
  bool is_found = false;
  for (size_t i = 0; i < g->ndims; i++)
    if (g->dims[i]->value == from) {
      g->dims[i]->value = to;
      is_found = true;
    }
  for (size_t i = 0; i < g->nvalues; i++) {
    Value *v = g->values[i];
    bool is_changed = false;
    for (int axis = 0; axis < v->shape.rank; axis++) {
      Extent *e = &v->shape.extent[axis];
      if (e->dim || e->value != from) continue;
      e->value = to;
      is_changed = true;
    }
    is_found |= is_changed;
    if (is_changed && v->constant && !resize_constant(g, v)) return false;
  }
  for (size_t i = 0; i < g->nnodes; i++)
    for (uint32_t k = 0; k < g->nodes[i]->op->nattributes; k++)
      if (g->nodes[i]->op->attributes[k].kind == ATTRIBUTE_S64_LIST && from > 4)
        is_found |= resize_list(g, &g->nodes[i]->attributes[k], from, to);
  if (is_found) forget_shapes(g);
  return is_found;
}

// Makes a model small enough to be interpreted quickly. Different extents stay different.
static void shrink_model(RandomGraph *r) {
  Graph *g = r->graph;
  for (size_t i = 0; i < g->ndims; i++)
    if (g->dims[i]->value < 0 || g->dims[i]->value > 16) g->dims[i]->value = 1 + random_below(&r->random, 16);
  for (size_t i = 0; i < g->nvalues; i++)
    for (int axis = 0; axis < g->values[i]->shape.rank; axis++) {
      Extent e = g->values[i]->shape.extent[axis];
      if (!e.dim && e.value > 64) resize_extents(g, e.value, 17 + random_below(&r->random, 48));
    }
}

// Removing

bool remove_output(Graph *g, size_t i) {
  if (g->noutputs < 2) return false;
  g->outputs[i]->is_output = false;
  memmove(&g->outputs[i], &g->outputs[i + 1], (g->noutputs - i - 1) * sizeof *g->outputs);
  g->noutputs--;
  return true;
}

static void remove_value_from_inputs(Graph *g, size_t i) {
  g->inputs[i]->is_input = false;
  memmove(&g->inputs[i], &g->inputs[i + 1], (g->ninputs - i - 1) * sizeof *g->inputs);
  g->ninputs--;
}

// Inputs that nothing uses.
static void remove_idle_inputs(Graph *g) {
  for (size_t i = g->ninputs; i-- > 0;)
    if (!g->inputs[i]->uses && !g->inputs[i]->is_output) remove_value_from_inputs(g, i);
}

// Removes a node. A result that is used becomes an input with the same name, and is no output any more; other results
// are removed.
bool remove_node(Graph *g, size_t i) {
  Node *node = g->nodes[i];
  for (uint32_t k = 0; k < node->noutputs; k++) {
    Value *v = node->outputs[k];
    if (!v) continue;
    for (size_t o = g->noutputs; v->is_output && o-- > 0;)
      if (g->outputs[o] == v && !remove_output(g, o)) return false;
    node_set_output(node, k, NULL);
    if (!v->uses) continue;
    Value *input = graph_add_input(g, graph_fresh_name(g, "in"), v->type, &v->shape);
    if (!input) return false;
    input->layout = v->layout;
    value_replace_uses(v, input);
  }
  for (uint32_t k = 0; k < node->ninputs; k++) node_set_input(node, k, NULL);
  memmove(&g->nodes[i], &g->nodes[i + 1], (g->nnodes - i - 1) * sizeof(Node *));
  g->nnodes--;
  for (size_t n = 0; n < g->nnodes; n++) g->nodes[n]->index = (uint32_t)n;
  remove_idle_inputs(g);
  return true;
}

static bool is_idle(const Node *node) {
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (node->outputs[k] && (node->outputs[k]->uses || node->outputs[k]->is_output)) return false;
  return true;
}

void remove_idle_nodes(Graph *g) {
  for (size_t i = g->nnodes; i-- > 0;) // users come after producers
    if (is_idle(g->nodes[i])) remove_node(g, i);
}

// Mutations

static Node *random_node(RandomGraph *r) {
  return r->graph->nnodes ? r->graph->nodes[random_below(&r->random, r->graph->nnodes)] : NULL;
}

static void change_attribute(RandomGraph *r) {
  Node *node = random_node(r);
  if (!node || !node->op->nattributes) return;
  uint32_t k = random_below(&r->random, node->op->nattributes);
  if (!node->op->attributes[k].is_hidden) node->attributes[k] = random_attribute(r, &node->op->attributes[k]);
}

// Replaces the operator by another with as many operands.
static void change_operator(RandomGraph *r) {
  enum { TRIES = 200 };
  Node *node = random_node(r);
  for (int i = 0; node && i < TRIES; i++) {
    OperatorName n = random_any_operator(&r->random);
    if (n.signature || n.op == node->op || n.op->ninputs != node->ninputs || n.op->noutputs != node->noutputs) continue;
    AttributeValue *attributes = ARENA_ARRAY(&r->graph->arena, AttributeValue, n.op->nattributes + 1);
    if (!attributes) return;
    node->op = n.op;
    node->signature = NULL;
    node->attributes = attributes;
    for (uint32_t k = 0; k < n.op->nattributes; k++)
      if (n.op->attributes[k].is_required) attributes[k] = random_attribute(r, &n.op->attributes[k]);
    node_set_defaults(node);
    return;
  }
}

// Replaces an operand by another value of the same type and rank, or swaps the operands.
static void change_operand(RandomGraph *r) {
  enum { TRIES = 50 };
  Node *node = random_node(r);
  if (!node || !node->ninputs) return;
  uint32_t k = random_below(&r->random, node->ninputs);
  const Value *old = node->inputs[k];
  for (int i = 0; old && i < TRIES; i++) {
    Value *v = r->graph->values[random_below(&r->random, r->graph->nvalues)];
    if (v == old || v->type != old->type || v->shape.rank != old->shape.rank) continue;
    node_set_input(node, k, v);
    return;
  }
}

static void change_order(RandomGraph *r) {
  Value *v = r->graph->values[random_below(&r->random, r->graph->nvalues)];
  if (v->constant || v->shape.rank < 2) return;
  int axes[MAX_RANK], first = (int)random_below(&r->random, (size_t)v->shape.rank);
  for (int i = 0; i < v->shape.rank; i++) axes[i] = (first + i) % v->shape.rank;
  v->layout = layout_of_axes(axes, v->shape.rank);
}

static void change_extent(RandomGraph *r) {
  const Value *v = r->graph->values[random_below(&r->random, r->graph->nvalues)];
  if (v->shape.rank <= 0) return;
  int64_t from = extent_value(v->shape.extent[random_below(&r->random, (size_t)v->shape.rank)]);
  int64_t to = extent_value(r->extents[random_below(&r->random, RANDOM_EXTENTS)]);
  if (from >= 0 && to >= 0) resize_extents(r->graph, from, to);
}

static void change_type(RandomGraph *r) {
  static const Type types[] = {TYPE_F32, TYPE_F64, TYPE_F16, TYPE_BF16};
  Type from = r->graph->values[random_below(&r->random, r->graph->nvalues)]->type,
       to = types[random_below(&r->random, 4)];
  for (size_t i = 0; type_is_float(from) && i < r->graph->nvalues; i++) {
    Value *v = r->graph->values[i];
    if (v->type == from && !v->constant) v->type = to;
  }
}

static void change_outputs(RandomGraph *r) {
  Value *v = r->graph->values[random_below(&r->random, r->graph->nvalues)];
  if (random_chance(&r->random, 30)) remove_output(r->graph, random_below(&r->random, r->graph->noutputs));
  else if (!v->is_output) graph_add_output(r->graph, v);
}

static void cut_node(RandomGraph *r) {
  if (r->graph->nnodes > 1) remove_node(r->graph, random_below(&r->random, r->graph->nnodes));
}

static void repeat_node(RandomGraph *r) {
  if (r->graph->nnodes) random_repeat_node(r);
}

// Adds nodes after the existing nodes, and makes some results outputs.
static void grow(RandomGraph *r) {
  size_t before = r->graph->nvalues;
  random_choose_focus(r);
  random_grow(r, 1 + random_below(&r->random, 6));
  for (size_t i = before; i < r->graph->nvalues; i++)
    if (r->graph->values[i]->producer && !r->graph->values[i]->uses) graph_add_output(r->graph, r->graph->values[i]);
}

static bool is_small_enough(const Graph *g) {
  double nelems = 0, nslice_groups = 0;
  for (size_t i = 0; i < g->nvalues; i++) nelems += (double)shape_nelems(&g->values[i]->shape);
  for (size_t i = 0; i < g->nnodes; i++) nslice_groups += random_nslice_groups(g->nodes[i]);
  return nelems < 20.0 * MOST_NELEMS && nslice_groups < 20.0 * MOST_NELEMS * MOST_SLICE_GROUPS;
}

static Graph *read_report(const Report *r) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "fuzz.yaml", r->text, r->nbytes, NULL, &d);
  diagnostics_deinit(&d);
  return g;
}

static RandomGraphOptions options_of(bool is_extreme) {
  enum { FEW_NODES = 8 };
  return (RandomGraphOptions){.most_nodes = is_extreme ? FEW_NODES : MOST_NODES,
                              .most_nelems = is_extreme ? MAX_ELEMENTS - 1 : MOST_NELEMS,
                              .is_extreme = is_extreme};
}

// Changes the graph in the report, unless the changed text is not a valid graph.
static void mutate(Report *report, uint64_t *random, bool is_extreme) {
  static void (*const mutations[])(RandomGraph * r) = {
      change_attribute, change_operator, change_operand, change_order, change_extent, change_type,
      change_outputs,   cut_node,        repeat_node,    grow,         grow,          grow};
  Report *before = allocator_alloc(&system_allocator, sizeof *before);
  if (!before) return;
  memcpy(before->text, report->text, report->nbytes + 1);
  before->nbytes = report->nbytes;
  RandomGraph r = {.random = random_next(random), .graph = read_report(report), .rank = -1, .new_values = 20};
  r.options = options_of(is_extreme);
  r.options.is_focused = true;
  if (r.graph && random_choose_extents(&r)) {
    mutations[random_below(&r.random, sizeof mutations / sizeof *mutations)](&r);
    report_text(report, r.graph);
  }
  graph_free(r.graph);
  Graph *after = read_report(report);
  if (!after || !(is_extreme || is_small_enough(after))) {
    memcpy(report->text, before->text, before->nbytes + 1);
    report->nbytes = before->nbytes;
  }
  graph_free(after);
  allocator_free(&system_allocator, before);
}

static bool make_from_file(const char *path, uint64_t *random, Report *report) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  RandomGraph r = {.random = random_next(random), .graph = yaml_read_file(&system_allocator, path, NULL, &d)};
  if (r.graph) shrink_model(&r);
  for (size_t i = 0; r.graph && i < r.graph->nvalues; i++)
    if (r.graph->values[i]->constant) r.graph->values[i]->constant->file = NULL;
  if (r.graph) report_text(report, r.graph);
  graph_free(r.graph);
  diagnostics_deinit(&d);
  Graph *again = report->nbytes ? read_report(report) : NULL;
  bool ok = again && is_small_enough(again);
  graph_free(again);
  return ok;
}

static bool make_at_random(uint64_t *random, Report *report, bool is_extreme) {
  RandomGraphOptions options = options_of(is_extreme);
  if (!random_chance(random, 50)) options.most_nodes /= 2;
  options.is_focused = random_chance(random, 80);
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = random_graph(&system_allocator, random_next(random), &options, &d);
  if (g) report_text(report, g);
  else if (d.nerrors) report_finding(report, "generator", "%s", d.items[0].message);
  graph_free(g);
  diagnostics_deinit(&d);
  return g != NULL && report->nbytes;
}

// Replaces the graph by its gradient, if it has one.
static void take_gradient(Report *report) {
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "fuzz.yaml", report->text, report->nbytes, NULL);
  ng_graph *gradient = g ? ng_graph_gradient(g, NULL) : NULL;
  char *text = gradient ? ng_graph_show(gradient, "yaml", NULL) : NULL;
  if (text && strlen(text) < REPORT_TEXT) {
    report->nbytes = strlen(text);
    memcpy(report->text, text, report->nbytes + 1);
  }
  ng_text_free(ctx, text);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

bool make_program(const FuzzOptions *options, Report *report) {
  uint64_t random = options->seed * 0x9E3779B97F4A7C15U + 7;
  report_stage(report, "make");
  bool from_file = options->nfiles && random_chance(&random, 30);
  bool ok = from_file ? make_from_file(options->files[random_below(&random, options->nfiles)], &random, report)
                      : make_at_random(&random, report, options->is_extreme);
  if (!ok || report->kind[0]) return false;
  uint32_t nmutations = from_file || random_chance(&random, 25) ? 1 + random_below(&random, 4) : 0;
  for (uint32_t i = 0; i < nmutations; i++) mutate(report, &random, options->is_extreme);
  if (random_chance(&random, 20)) take_gradient(report);
  return true;
}
