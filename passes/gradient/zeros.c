// Derivatives that are 0 because results follow an operand in steps. Between steps the results are constant, so nothing
// is wrong with the gradient, but it may surprise: nothing is learnt through the node.
#include "passes/gradient/gradient_state.h"

#include <stdio.h>

// Whether the node's results follow a wanted operand in steps, and its gradient is 0.
static bool has_steps(const Gradient *g, const Node *node) {
  const Value *src = node->ninputs ? node->inputs[0] : NULL;
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (gradient_is_wanted(g, node->inputs[i]) && gradient_by_input(node->op->id, i).is_told) return true;
  // A number made of a comparison of others, or of their integer part. That of an index is no surprise: an accuracy.
  const Node *maker = node->op->id == OP_TypeCast && !type_is_float(src->type) ? src->producer : NULL;
  bool is_made = false;
  for (uint32_t i = 0; maker && i < maker->ninputs; i++)
    is_made |= maker->op->traits & TRAIT_ELEMENTWISE && maker->op->id != OP_GenIndex &&
               gradient_is_wanted(g, maker->inputs[i]);
  return is_made && type_is_float(node->outputs[0]->type);
}

// Marks the forward values that the outputs with gradients depend on.
static const bool *find_needed(Gradient *g) {
  const Graph *forward = g->forward;
  if (g->is_needed) return g->is_needed;
  bool *needed = g->is_needed = ARENA_ARRAY(&g->scratch, bool, forward->nvalues + 1);
  if (!needed) return gradient_out_of_memory(g);
  for (size_t i = 0; i < forward->nvalues; i++) needed[i] = g->seed[i] != NULL;
  for (size_t n = forward->nnodes; n-- > 0;) {
    const Node *node = forward->nodes[n];
    bool any = false;
    for (uint32_t i = 0; i < node->noutputs; i++) any |= node->outputs[i] && needed[node->outputs[i]->index];
    for (uint32_t i = 0; i < node->ninputs && any; i++)
      if (node->inputs[i]) needed[node->inputs[i]->index] = true;
  }
  return needed;
}

static bool is_needed(const bool *needed, const Node *node) {
  bool any = false;
  for (uint32_t i = 0; i < node->noutputs; i++) any |= node->outputs[i] && needed[node->outputs[i]->index];
  return any;
}

static bool is_identity(const Gradient *g, const Node *node) {
  return gradient_rules[node->op->id]->is_identity && gradient_is_wanted(g, node->inputs[0]);
}

static void warn_of(Gradient *g, bool (*is_it)(const Gradient *g, const Node *node), const char *what) {
  const Graph *forward = g->forward;
  const Node *first = NULL;
  size_t count = 0;
  const bool *needed = NULL;
  for (size_t n = 0; n < forward->nnodes; n++) {
    const Node *node = forward->nodes[n];
    if (!is_it(g, node)) continue;
    if (!needed) needed = find_needed(g);
    if (!needed) return;
    if (!is_needed(needed, node)) continue;
    if (!first) first = node;
    count++;
  }
  char title[NODE_TITLE_BYTES], others[64] = "";
  if (!first) return;
  if (count > 1)
    snprintf(others, sizeof others, ", and so is that of %zu other node%s", count - 1, count > 2 ? "s" : "");
  warn_at(g->diagnostics, first->position, "%s: its gradient is %s%s: the results change in steps",
          node_title(first, title), what, others);
}

void gradient_warn_of_steps(Gradient *g) {
  warn_of(g, has_steps, "0");
  warn_of(g, is_identity, "that of the identity");
}

// How an input reaches outputs with gradients, though no gradient flows back to it.
typedef struct Path {
  bool has_steps;  // at a node with steps
  const Node *end; // the first node where the gradient ends; NULL: no such output depends on the input
  const char *why;
  bool has_statistics; // a statistic depends on the input
} Path;

// Why no gradient flows through the input of the node, to which one flows; NULL: it does.
static const char *why_ends(const Gradient *g, const Node *node, uint32_t slot) {
  const Derivative derivative = gradient_by_input(node->op->id, slot);
  if (!gradient_is_wanted(g, node->inputs[slot])) return NULL;
  if (derivative.kind == DERIVATIVE_ZERO) return derivative.why;
  return node->outputs[0] && !type_is_float(node->outputs[0]->type) ? "the results are no floating-point numbers"
                                                                    : NULL;
}

static Path find_path(Gradient *g, const Value *input) {
  const Graph *forward = g->forward;
  const bool *needed = find_needed(g);
  bool *reached = ARENA_ARRAY(&g->scratch, bool, forward->nvalues + 1);
  Path path = {0};
  if (!reached) gradient_out_of_memory(g);
  if (!needed || !reached) return path;
  reached[input->index] = true;
  for (size_t n = 0; n < forward->nnodes && !path.has_steps; n++) {
    const Node *node = forward->nodes[n];
    const bool counts = is_needed(needed, node);
    bool any = false;
    for (uint32_t i = 0; i < node->ninputs; i++) {
      if (!node->inputs[i] || !reached[node->inputs[i]->index]) continue;
      any = true;
      const char *why = counts && !path.end ? why_ends(g, node, i) : NULL;
      if (!why) continue;
      path.end = node;
      path.why = why;
    }
    for (uint32_t i = 0; i < node->noutputs && any; i++) {
      if (!node->outputs[i]) continue;
      reached[node->outputs[i]->index] = true;
      path.has_statistics |= gradient_is_statistic(node->outputs[i]);
    }
    path.has_steps = any && counts && has_steps(g, node);
  }
  return path;
}

Value *gradient_of_steps(Gradient *g, const Value *input, bool is_required) {
  char title[NODE_TITLE_BYTES];
  const Path path = find_path(g, input);
  if (g->failed) return NULL;
  if (path.has_steps) return gradient_cast(g, gradient_filled(g, input->type, &input->shape, 0), input->type);
  if (!is_required) return NULL;
  if (path.end)
    error_at(g->diagnostics, input->position,
             "%s has no gradient: outputs depend on it only through %s on line %u, whose derivative is 0: %s",
             input->name, node_title(path.end, title), path.end->position.line, path.why);
  else
    error_at(g->diagnostics, input->position, "%s has no gradient: no output depends on it%s", input->name,
             path.has_statistics ? " except through statistics" : "");
  return NULL;
}
