// Reverse accumulation: visits nodes from the last to the first; a node's rule computes gradients of its inputs from
// the gradient of its output. Values get their names at the end, when it is known which value is the complete gradient
// of a forward value.
#include "passes/gradient/gradient_state.h"

#include "ir/graph/leaves.h"
#include "ir/graph/verify.h"
#include "ir/operators/infer.h"
#include "passes/rewrite/dead_code.h"

#include <stdio.h>
#include <string.h>

enum { MOST_NAME_BYTES = 255, SHAPE_TEXT = 160, MOST_INPUTS = 3 };
#define DIFF "diff_"

const GradientRule *const gradient_rules[OP_COUNT] = {
#define OP(name, ...) [OP_##name] = &gradient_##name,
#include "ir/operators/operators.def"
#undef OP
};

static void *out_of_memory(Gradient *g) {
  g->failed = true;
  error_out_of_memory(g->diagnostics);
  return NULL;
}

// Functions for rules

bool gradient_is_wanted(const Gradient *g, const Value *forward) {
  return forward && g->depends[forward->index];
}

bool gradient_is_at_hand(const Gradient *g, const Value *forward) {
  return forward->is_input || forward->constant || g->here[forward->index];
}

Value *gradient_saved(Gradient *g, const Value *forward) {
  Value **here = &g->here[forward->index];
  if (*here) return *here;
  bool is_given = !forward->constant || forward->constant->file;
  *here = (is_given ? graph_add_input : graph_add_value)(g->graph, forward->name, forward->type, &forward->shape);
  if (!*here) return out_of_memory(g);
  (*here)->position = forward->position;
  (*here)->layout = forward->layout;
  (*here)->is_of_leaf = is_given && g->is_own[forward->index];
  if (!is_given) (*here)->constant = forward->constant;
  return *here;
}

static Value *new_value(Gradient *g, Type type, const Shape *shape) {
  Value *v = graph_add_value(g->graph, "", type, shape);
  if (!v) return out_of_memory(g);
  v->position = g->node ? g->node->position : (Position){0};
  return v;
}

Value *gradient_filled(Gradient *g, Type type, const Shape *shape, double number) {
  if (type != TYPE_F64) type = TYPE_F32; // 16-bit floats are not precise enough for counts and attributes
  Value *v = graph_add_number(g->graph, "", type, shape, number);
  if (!v) return out_of_memory(g);
  v->position = g->node ? g->node->position : (Position){0};
  return v;
}

Value *gradient_number(Gradient *g, Type type, double number) {
  return gradient_filled(g, type, &(Shape){.rank = 0}, number);
}

void gradient_refuse(Gradient *g, const Node *node, const char *why) {
  char title[NODE_TITLE_BYTES];
  g->failed = true;
  error_at(g->diagnostics, node->position, "%s has no gradient: %s", node_title(node, title), why);
}

AttributeValue *gradient_attribute(const Node *node, const char *name) {
  return (AttributeValue *)node_attribute(node, name);
}

Value *gradient_of_output(const Gradient *g, const Node *node, uint32_t slot) {
  return node->outputs[slot] ? g->diff[node->outputs[slot]->index] : NULL;
}

Node *gradient_add_node(Gradient *g, OperatorId id, uint32_t ninputs, const Node *like) {
  const Operator *op = &operators[id];
  if (g->failed) return NULL;
  Node *node = graph_add_node(g->graph, op, NULL, ninputs, op->noutputs);
  if (!node) return out_of_memory(g);
  node->position = g->node ? g->node->position : (Position){0};
  for (uint32_t i = 0; like && i < op->nattributes; i++)
    if (operator_has_attribute(like->op, op->attributes[i].name))
      node->attributes[i] = *node_attribute(like, op->attributes[i].name);
  node_set_defaults(node);
  return node;
}

Node *gradient_node(Gradient *g, OperatorId id, const Node *like) {
  return gradient_add_node(g, id, operators[id].ninputs, like);
}

Node *gradient_variadic(Gradient *g, OperatorId id, uint32_t ninputs) {
  return gradient_add_node(g, id, ninputs, NULL);
}

Value *gradient_output(Gradient *g, Node *node, uint32_t slot, Type type, const Shape *shape) {
  Value *v = node ? new_value(g, type, shape) : NULL;
  if (v) node_set_output(node, slot, v);
  return v;
}

void gradient_set_list(Gradient *g, Node *node, const char *name, const int64_t *items, size_t count) {
  int64_t *copy = ARENA_ARRAY(&g->graph->arena, int64_t, count + 1);
  if (!copy) {
    out_of_memory(g);
    return;
  }
  if (count) memcpy(copy, items, count * sizeof *copy);
  AttributeValue *value = gradient_attribute(node, name);
  value->is_set = true;
  value->list.items = copy;
  value->list.count = count;
}

// Adds a node with these inputs; returns its output.
static Value *apply(Gradient *g, OperatorId op, Value *const inputs[MOST_INPUTS], Type type, const Shape *shape) {
  Node *node = gradient_node(g, op, NULL);
  for (uint32_t i = 0; node && i < node->ninputs && i < MOST_INPUTS; i++) node_set_input(node, i, inputs[i]);
  return gradient_output(g, node, 0, type, shape);
}

Value *gradient_unary(Gradient *g, OperatorId op, Value *a) {
  return a ? apply(g, op, (Value *[MOST_INPUTS]){a}, a->type, &a->shape) : NULL;
}

Value *gradient_cast(Gradient *g, Value *v, Type type) {
  if (!v || v->type == type) return v;
  bool is_direct = v->type == TYPE_F32 || type == TYPE_F32; // TypeCast converts only from or to f32
  Value *between = is_direct ? v : apply(g, OP_TypeCast, (Value *[MOST_INPUTS]){v}, TYPE_F32, &v->shape);
  return between ? apply(g, OP_TypeCast, (Value *[MOST_INPUTS]){between}, type, &v->shape) : NULL;
}

Value *gradient_widened(Gradient *g, Value *v) {
  return gradient_cast(g, v, v && v->type == TYPE_F64 ? TYPE_F64 : TYPE_F32);
}

static Shape broadcast_shape(const Shape *a, const Shape *b) {
  const Shape *longer = a->rank >= b->rank ? a : b, *other = longer == a ? b : a;
  Shape shape = *longer;
  for (int i = 0; i < other->rank; i++) {
    Extent *e = &shape.extent[longer->rank - other->rank + i];
    if (extent_equals(*e, EXTENT(1))) *e = other->extent[i];
  }
  return shape;
}

Value *gradient_binary(Gradient *g, OperatorId op, Value *a, Value *b) {
  if (!a || !b) return NULL;
  Shape shape = broadcast_shape(&a->shape, &b->shape);
  const bool compares = op == OP_GreaterEqual || op == OP_Greater || op == OP_Equal;
  Type type = compares ? TYPE_BOOLEAN : a->type == b->type ? a->type : TYPE_F32;
  return apply(g, op, (Value *[MOST_INPUTS]){a, b}, type, &shape);
}

Value *gradient_scaled(Gradient *g, Value *v, double number) {
  return v ? gradient_binary(g, OP_Multiply, v, gradient_number(g, v->type, number)) : NULL;
}

Value *gradient_select(Gradient *g, Value *condition, Value *a, Value *b) {
  a = gradient_widened(g, a);
  b = gradient_widened(g, b);
  if (!condition || !a || !b) return NULL;
  Shape shape = broadcast_shape(&a->shape, &b->shape);
  return apply(g, OP_Select, (Value *[MOST_INPUTS]){condition, a, b}, a->type, &shape);
}

Value *gradient_reduced(Gradient *g, OperatorId op, Value *v, uint32_t axes, bool keep_dims) {
  if (!v || !axes) return v;
  int64_t items[MAX_RANK];
  size_t count = 0;
  Shape shape = {.rank = 0};
  for (int i = 0; i < v->shape.rank; i++) {
    bool is_reduced = axes >> i & 1;
    if (is_reduced) items[count++] = i;
    if (!is_reduced || keep_dims) shape.extent[shape.rank++] = is_reduced ? EXTENT(1) : v->shape.extent[i];
  }
  Node *node = gradient_node(g, op, NULL);
  if (!node) return NULL;
  node_set_input(node, 0, v);
  gradient_set_list(g, node, "axes", items, count);
  gradient_attribute(node, "keep_dims")->boolean = keep_dims;
  return gradient_output(g, node, 0, v->type, &shape);
}

// StaticReshape's attribute can express named extents that stay on their axis (as 0), and one named extent that moves
// (as -1).
Value *gradient_reshaped(Gradient *g, Value *v, const Shape *shape) {
  int64_t items[MAX_RANK];
  int nmoved = 0;
  Node *node = v ? gradient_node(g, OP_StaticReshape, NULL) : NULL;
  if (!node) return NULL;
  AttributeValue *special_zero = gradient_attribute(node, "special_zero");
  *special_zero = (AttributeValue){.is_set = true};
  for (int i = 0; i < shape->rank; i++) {
    Extent e = shape->extent[i];
    bool stays = e.dim && i < v->shape.rank && extent_equals(e, v->shape.extent[i]);
    items[i] = stays ? 0 : e.dim ? -1 : e.value;
    special_zero->boolean |= stays;
    nmoved += items[i] < 0;
  }
  if (nmoved > 1) {
    char from[SHAPE_TEXT], to[SHAPE_TEXT];
    error_at(g->diagnostics, node->position,
             "its gradient reshapes %s to %s: expected at most one named extent that moves to another axis; give the "
             "others numbers",
             shape_string(&v->shape, from, sizeof from), shape_string(shape, to, sizeof to));
    g->failed = true;
    return NULL;
  }
  node_set_input(node, 0, v);
  gradient_set_list(g, node, "shape", items, (size_t)shape->rank);
  return gradient_output(g, node, 0, v->type, shape);
}

// Sums v to `shape`: v has the shape that `shape` was broadcast to. Reduces the missing and the broadcast axes.
static Value *sum_to(Gradient *g, Value *v, const Shape *shape) {
  int missing = v->shape.rank - shape->rank;
  uint32_t broadcast = 0;
  v = gradient_reduced(g, OP_ReduceSum, v, (1U << missing) - 1, false);
  for (int i = 0; v && i < shape->rank; i++)
    if (extent_equals(shape->extent[i], EXTENT(1)) && !extent_equals(v->shape.extent[i], EXTENT(1)))
      broadcast |= 1U << i;
  return gradient_reduced(g, OP_ReduceSum, v, broadcast, true);
}

static void report_statistic(Gradient *g, const Value *v) {
  char title[NODE_TITLE_BYTES];
  g->failed = true;
  if (g->node)
    error_at(g->diagnostics, g->node->position,
             "%s has no gradient for %s: gradients do not flow through statistics, as of the %s on line %u",
             node_title(g->node, title), v->name, v->producer->op->name, v->producer->position.line);
  else
    error_at(g->diagnostics, v->position, "%s is a statistic of a %s: gradients do not flow through statistics",
             v->name, v->producer->op->name);
}

static bool is_statistic(const Value *v) {
  return v->producer && v->producer->op->outputs[v->output_slot].is_statistic;
}

void gradient_give(Gradient *g, const Value *forward, Value *diff) {
  if (!diff || g->failed || !gradient_is_wanted(g, forward)) return;
  if (is_statistic(forward)) {
    report_statistic(g, forward);
    return;
  }
  diff = gradient_cast(g, sum_to(g, diff, &forward->shape), forward->type);
  Value **sum = &g->diff[forward->index];
  *sum = *sum ? gradient_binary(g, OP_Add, *sum, diff) : diff;
}

// The walk through the graph

// Rules need all extents to know which axes are broadcast.
static bool check_extents(const Graph *g, Diagnostics *d) {
  char shape[SHAPE_TEXT];
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    bool is_known = v->shape.rank >= 0;
    for (int k = 0; k < v->shape.rank; k++) is_known &= !extent_is_unknown(v->shape.extent[k]);
    if (!is_known)
      return error_at(
          d, v->position, "%s %s: expected a number or a name for every extent, to know what is broadcast%s", v->name,
          shape_string(&v->shape, shape, sizeof shape), g->ndims ? "; --dim NAME=NUMBER gives a name its number" : "");
  }
  return true;
}

static bool check_float(const Value *v, Diagnostics *d) {
  return type_is_float(v->type) ||
         error_at(d, v->position, "%s is %s: expected a floating-point type, others have no gradient", v->name,
                  type_name(v->type));
}

// Marks the values that depend on inputs whose gradients are requested.
static bool find_dependants(Gradient *g, const GradientRequest *request) {
  const Graph *forward = g->forward;
  Value *const *wrt = request->wrt ? request->wrt : forward->inputs;
  size_t nwrt = request->wrt ? request->nwrt : forward->ninputs;
  for (size_t i = 0; i < nwrt; i++) {
    if (request->wrt && !check_float(wrt[i], g->diagnostics)) return false;
    g->depends[wrt[i]->index] = type_is_float(wrt[i]->type);
  }
  for (size_t n = 0; n < forward->nnodes; n++) {
    const Node *node = forward->nodes[n];
    bool depends = false;
    for (uint32_t i = 0; i < node->ninputs; i++) depends |= gradient_is_wanted(g, node->inputs[i]);
    for (uint32_t i = 0; i < node->noutputs; i++) {
      const Value *v = node->outputs[i];
      if (v) g->depends[v->index] = depends && type_is_float(v->type) && !v->is_detached;
    }
  }
  return true;
}

static const char *diff_name(Gradient *g, const Value *forward) {
  if (strlen(forward->name) + sizeof DIFF > MOST_NAME_BYTES + 1) {
    g->failed = true;
    error_at(g->diagnostics, forward->position, "%s: expected a shorter name, as " DIFF "NAME has at most %d bytes",
             forward->name, MOST_NAME_BYTES);
    return NULL;
  }
  const char *name = arena_format(&g->graph->arena, DIFF "%s", forward->name);
  return name ? name : out_of_memory(g);
}

static void add_seed(Gradient *g, const Value *output) {
  const char *name = diff_name(g, output);
  Value *seed = name ? graph_add_input(g->graph, name, output->type, &output->shape) : NULL;
  if (!seed) {
    if (name) out_of_memory(g);
    return;
  }
  seed->position = output->position;
  seed->layout = output->layout;
  g->seed[output->index] = seed;
  gradient_give(g, output, seed);
}

static void add_seeds(Gradient *g, const GradientRequest *request) {
  Value *const *of = request->of ? request->of : g->forward->outputs;
  size_t nof = request->of ? request->nof : g->forward->noutputs - g->forward->nupdates;
  for (size_t i = 0; i < nof && !g->failed; i++) {
    if (request->of && !check_float(of[i], g->diagnostics)) g->failed = true;
    else if (!g->seed[of[i]->index] && g->depends[of[i]->index] && (request->of || !is_statistic(of[i])))
      add_seed(g, of[i]);
  }
}

// Whether one of the node's results has a gradient.
static bool has_diff(const Gradient *g, const Node *node) {
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (node->outputs[i] && g->diff[node->outputs[i]->index]) return true;
  return false;
}

// Runs the rules. A rule gets the gradient of output 0; other outputs are statistics, which have none. Split is the
// exception: its rule reads the gradients of all parts.
static void walk_back(Gradient *g) {
  for (size_t n = g->forward->nnodes; n-- > 0 && !g->failed;) {
    const Node *node = g->node = g->forward->nodes[n];
    if (!has_diff(g, node)) continue;
    const GradientRule *rule = gradient_rules[node->op->id];
    if (rule->make) {
      rule->make(g, node, gradient_of_output(g, node, 0));
    } else {
      char title[NODE_TITLE_BYTES];
      g->failed = true;
      error_at(g->diagnostics, node->position, "%s has no gradient: %s", node_title(node, title), rule->why_not);
    }
  }
  g->node = NULL;
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
  if (!graph_add_output(g->graph, v)) out_of_memory(g);
}

static void add_outputs(Gradient *g, const GradientRequest *request) {
  Value *const *wrt = request->wrt ? request->wrt : g->forward->inputs;
  size_t nwrt = request->wrt ? request->nwrt : g->forward->ninputs;
  for (size_t i = 0; i < nwrt && !g->failed; i++) {
    const Value *input = wrt[i];
    if (g->seed[input->index]) {
      g->failed = true;
      error_at(g->diagnostics, input->position,
               "%s is an input and an output, so " DIFF "%s would have two meanings: leave it out of wrt or of",
               input->name, input->name);
    } else if (g->diff[input->index]) {
      add_output(g, input);
    } else if (request->wrt) {
      g->failed = true;
      error_at(g->diagnostics, input->position, "%s has no gradient: no output depends on it except through statistics",
               input->name);
    }
  }
  if (g->failed || g->graph->noutputs) return;
  g->failed = true;
  error_at(g->diagnostics, (Position){0}, "%s: expected an output that depends on a floating-point input",
           g->forward->name);
}

static void name_values(Gradient *g) {
  for (size_t i = 0; i < g->forward->nvalues && !g->failed; i++) {
    Value *v = g->diff[i];
    if (!v || *v->name || g->seed[i]) continue; // the seed has the name already
    const char *name = diff_name(g, g->forward->values[i]);
    if (name) v->name = name;
  }
  for (size_t i = 0; i < g->graph->nvalues && !g->failed; i++) {
    Value *v = g->graph->values[i];
    if (*v->name) continue;
    const char *name = graph_fresh_name(g->graph, v->constant ? "number" : "term");
    if (name) v->name = name;
    else out_of_memory(g);
  }
}

bool gradient_is_needed(const Value *v) {
  return v && v->is_input && (v->uses || v->is_output);
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

// Finishes the backward graph. Its list of inputs does not grow here, so ends->inputs is allocated once.
static bool finish(Gradient *g) {
  g->is_listed = ARENA_ARRAY(&g->scratch, bool, g->graph->nvalues + 1);
  g->ends->inputs = ARENA_ARRAY(&g->graph->arena, const Value *, g->graph->ninputs + 1);
  if (!g->is_listed || !g->ends->inputs) {
    out_of_memory(g);
    return false;
  }
  order_inputs(g);
  name_values(g);
  return !g->failed && graph_verify(g->graph, g->diagnostics);
}

static void make(Gradient *g, const GradientRequest *request) {
  g->failed = !find_dependants(g, request);
  if (g->failed) return;
  add_seeds(g, request);
  if (!g->failed) walk_back(g);
  g->ends->outputs = ARENA_ARRAY(&g->graph->arena, const Value *, g->forward->ninputs + request->nwrt + 1);
  if (!g->ends->outputs) out_of_memory(g);
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
  g->depends = ARENA_ARRAY(&g->scratch, bool, n);
  g->here = ARENA_ARRAY(&g->scratch, Value *, n);
  g->seed = ARENA_ARRAY(&g->scratch, Value *, n);
  g->diff = ARENA_ARRAY(&g->scratch, Value *, n);
  g->is_own = ARENA_ARRAY(&g->scratch, bool, n);
  if (!g->graph || !g->is_own || !g->depends || !g->here || !g->seed || !g->diff) return false;
  graph_find_own_values(forward, g->is_own);
  g->graph->source = forward->source;
  g->graph->nleaves = forward->nleaves;
  g->graph->dims = ARENA_ARRAY(&g->graph->arena, Dim *, forward->ndims + 1);
  if (!g->graph->dims) return false;
  if (forward->ndims) memcpy(g->graph->dims, forward->dims, forward->ndims * sizeof *forward->dims);
  g->graph->ndims = g->graph->dims_capacity = forward->ndims;
  return true;
}

Graph *graph_gradient(const Graph *forward, const GradientRequest *request, GradientEnds *ends, Diagnostics *d) {
  Gradient g = {.forward = forward, .ends = ends, .diagnostics = d};
  *ends = (GradientEnds){0};
  if (!check_extents(forward, d)) return NULL;
  arena_init(&g.scratch, forward->arena.allocator);
  if (begin(&g)) make(&g, request);
  else out_of_memory(&g);
  arena_deinit(&g.scratch);
  if (!g.failed) return g.graph;
  graph_free(g.graph);
  return NULL;
}
