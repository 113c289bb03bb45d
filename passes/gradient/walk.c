// Reverse accumulation: visits nodes from the last to the first; a node's rule computes gradients of its inputs from
// the gradients of its outputs. The rule of an operator may be its expansion: the same results, by nodes of operators
// that have rules. The backward graph then computes these nodes again, and the gradient is that of the nodes.
#include "passes/gradient/gradient_state.h"

bool gradient_begin_walk(Gradient *g, size_t count) {
  g->depends = ARENA_ARRAY(&g->scratch, bool, count + 1);
  g->follows = ARENA_ARRAY(&g->scratch, bool, count + 1);
  g->is_risky = ARENA_ARRAY(&g->scratch, bool, count + 1);
  g->diff = ARENA_ARRAY(&g->scratch, Value *, count + 1);
  g->guard = ARENA_ARRAY(&g->scratch, Guard, count + 1);
  return g->depends && g->follows && g->is_risky && g->diff && g->guard;
}

void gradient_find_flow(Gradient *g, const Node *node) {
  bool depends = false, follows = false, is_risky = gradient_has_pole(node);
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const bool is_wanted = gradient_is_wanted(g, node->inputs[i]);
    depends |= is_wanted && gradient_by_input(node->op->id, i).kind != DERIVATIVE_ZERO;
    if (!node->inputs[i]) continue;
    follows |= is_wanted || g->follows[node->inputs[i]->index - g->first];
    is_risky |= g->is_risky[node->inputs[i]->index - g->first];
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    if (!v) continue;
    const size_t index = v->index - g->first;
    g->depends[index] = depends && type_is_float(v->type) && !v->is_detached;
    g->follows[index] = follows && !g->depends[index];
    g->is_risky[index] = is_risky;
  }
}

// Whether one of the node's results has a gradient: a statistic, or another.
static bool has_diff(const Gradient *g, const Node *node, bool is_statistic) {
  bool has = false;
  for (uint32_t i = 0; i < node->noutputs; i++)
    has |= node->op->outputs[i].is_statistic == is_statistic && gradient_of_output(g, node, i);
  return has;
}

// Refuses a gradient that is wanted by an operand without one.
static bool check_operands(Gradient *g, const Node *node) {
  const GradientRule *rule = gradient_rules[node->op->id];
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Derivative derivative = gradient_by_input(node->op->id, i);
    char title[NODE_TITLE_BYTES];
    if (derivative.kind != DERIVATIVE_REFUSED || !gradient_is_wanted(g, node->inputs[i])) continue;
    g->failed = true;
    node_title(node, title);
    if (rule->of_all.why)
      return error_at(g->diagnostics, node->position, "%s has no gradient: %s", title, derivative.why);
    return error_at(g->diagnostics, node->position,
                    "%s has no gradient by %s: %s; leave inputs that %s depends on out of the request", title,
                    node->op->inputs[i].name, derivative.why, node->inputs[i]->name);
  }
  return true;
}

// A gradient that flows, but that the rule has not given, would be missing from the sum without a word.
static void check_given(Gradient *g, const Node *node) {
  for (uint32_t i = 0; i < node->ninputs && !g->failed; i++) {
    const bool is_due =
        gradient_is_wanted(g, node->inputs[i]) && gradient_by_input(node->op->id, i).kind == DERIVATIVE_COMPUTED;
    char title[NODE_TITLE_BYTES];
    if (!is_due || g->given >> i & 1) continue;
    g->failed = true;
    error_at(g->diagnostics, node->position, "internal error: the rule of %s gives no gradient by input %u",
             node_title(node, title), i);
  }
}

// Expansions

// A copy of the node whose operands are values without producers: an expansion is made of them.
static Node *stand_in(Gradient *g, const Node *node) {
  Node *own = gradient_add_node(g, node->op->id, node->ninputs, node);
  for (uint32_t i = 0; own && i < node->ninputs; i++) {
    const Value *v = node->inputs[i];
    Value *operand = v ? graph_add_value(g->graph, "", v->type, &v->shape) : NULL;
    if (v && !operand) return gradient_out_of_memory(g);
    if (v) node_set_input(own, i, operand);
  }
  for (uint32_t i = 0; own && i < node->noutputs; i++)
    if (node->outputs[i]) gradient_output(g, own, i, node->outputs[i]->type, &node->outputs[i]->shape);
  return own;
}

// Gives the gradients of the stand-in's operands to the node's inputs, and replaces the operands by the inputs.
static void end_expansion(Gradient *g, Gradient *inner, const Node *node, const Node *own) {
  for (uint32_t i = 0; i < node->ninputs && !g->failed; i++) {
    const Value *v = node->inputs[i];
    if (!v) continue;
    Value *operand = own->inputs[i], *diff = inner->diff[operand->index - inner->first];
    g->given |= UINT64_C(1) << i;
    if (!diff && gradient_is_wanted(g, v) && !g->diff[v->index - g->first])
      diff = gradient_filled(g, v->type, &v->shape, 0);
    g->guard_of_input[i] = inner->guard[operand->index - inner->first];
    gradient_give(g, node, i, diff);
    Value *given = operand->uses ? gradient_saved(g, v) : NULL;
    if (given) value_replace_uses(operand, given);
  }
}

void gradient_expand(Gradient *g, const Node *node, Expansion *expand) {
  Gradient inner = *g;
  Value *results[MAX_OPERANDS] = {NULL};
  inner.forward = g->graph;
  inner.first = g->graph->nvalues;
  Node *own = stand_in(&inner, node);
  const size_t first = g->graph->nnodes;
  if (!own) {
    g->failed = true;
    return;
  }
  expand(&inner, own, results);
  const size_t end = g->graph->nnodes;
  if (!inner.failed && !gradient_begin_walk(&inner, g->graph->nvalues - inner.first)) gradient_out_of_memory(&inner);
  for (uint32_t i = 0; i < node->ninputs && !inner.failed; i++) {
    const Value *v = node->inputs[i];
    if (!v) continue;
    inner.depends[own->inputs[i]->index - inner.first] = gradient_is_wanted(g, v);
    inner.is_risky[own->inputs[i]->index - inner.first] = g->is_risky[v->index - g->first];
  }
  for (size_t n = first; n < end && !inner.failed; n++) gradient_find_flow(&inner, g->graph->nodes[n]);
  for (uint32_t i = 0; i < node->noutputs && !inner.failed; i++)
    if (results[i] && gradient_of_output(g, node, i))
      gradient_add(&inner, results[i], gradient_of_output(g, node, i), g->guard[node->outputs[i]->index - g->first]);
  if (!inner.failed) gradient_walk_back(&inner, first, end);
  g->scratch = inner.scratch;
  g->failed = inner.failed;
  if (!g->failed) end_expansion(g, &inner, node, own);
}

void gradient_walk_back(Gradient *g, size_t first, size_t end) {
  for (size_t n = end; n-- > first && !g->failed;) {
    const Node *node = g->node = g->forward->nodes[n];
    const GradientRule *rule = gradient_rules[node->op->id];
    const bool has_other = has_diff(g, node, false), has_statistic = has_diff(g, node, true);
    if ((!has_other && !has_statistic) || !check_operands(g, node)) continue;
    g->given = 0;
    gradient_guard_inputs(g, node);
    if (rule->expand) gradient_expand(g, node, rule->expand);
    if (rule->make && has_other) rule->make(g, node, gradient_of_output(g, node, 0));
    if (has_other && (rule->make || rule->expand)) check_given(g, node);
    if (rule->make_of_statistics && has_statistic) rule->make_of_statistics(g, node);
  }
  g->node = NULL;
}
