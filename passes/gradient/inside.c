// Expands the operator Gradient: reverse accumulation from a value to others, in the graph that has both. A Gradient
// may depend on another's results, so they are expanded in the order of the nodes.
#include "passes/gradient/inside.h"

#include "ir/graph/verify.h"
#include "passes/gradient/gradient_state.h"

const GradientRule gradient_Gradient = {.of_all.kind = DERIVATIVE_COMPUTED};

static bool check_operands(Gradient *g, const Node *node) {
  char title[NODE_TITLE_BYTES];
  if (g->graph->nleaves)
    return error_at(g->diagnostics, node->position, "%s: expected a graph without leaves", node_title(node, title));
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (i && gradient_is_statistic(node->inputs[i]))
      return error_at(
          g->diagnostics, node->position,
          "%s: expected no statistic to differentiate by, found %s: what it is computed from is not it alone",
          node_title(node, title), node->inputs[i]->name);
  return true;
}

// Marks what depends on the inputs from 1 on, as far as nodes before `node` compute it.
static bool find_flow(Gradient *g, const Node *node) {
  for (uint32_t i = 1; i < node->ninputs; i++) g->depends[node->inputs[i]->index] = true;
  for (size_t n = 0; n < node->index; n++) {
    gradient_find_flow(g, g->graph->nodes[n]);
    for (uint32_t i = 1; i < node->ninputs; i++) g->depends[node->inputs[i]->index] = true;
  }
  for (size_t i = 0; i < g->graph->nvalues; i++)
    if (g->depends[i] && !gradient_check_extents(g->graph, g->graph->values[i], g->diagnostics)) return false;
  return true;
}

// Makes the gradient the result of the Gradient. A value that others have, too, is copied.
static void give_result(Gradient *g, Node *node, uint32_t slot) {
  Value *v = node->outputs[slot];
  const Value *by = node->inputs[slot + 1];
  Value *diff = g->diff[by->index];
  if (!diff) diff = gradient_cast(g, gradient_filled(g, by->type, &by->shape, 0), by->type);
  if (diff && (*diff->name || !diff->producer)) diff = gradient_cast(g, gradient_scaled(g, diff, 1), by->type);
  if (!diff) return;
  Node *producer = diff->producer;
  const uint32_t from = diff->output_slot;
  node_set_output(node, slot, NULL);
  value_replace_uses(diff, v);
  node_set_output(producer, from, NULL);
  node_set_output(producer, from, v);
  for (uint32_t i = slot + 1; i < node->ninputs; i++) // further results that are the same value
    if (g->diff[node->inputs[i]->index] == diff) g->diff[node->inputs[i]->index] = v;
}

static bool expand(Gradient *g, Node *node) {
  g->seed = ARENA_ARRAY(&g->scratch, Value *, g->graph->nvalues);
  if (!g->seed || !gradient_begin_walk(g, g->graph->nvalues)) return error_out_of_memory(g->diagnostics);
  if (!check_operands(g, node) || !find_flow(g, node)) return false;
  const Value *of = node->inputs[0];
  g->seed[of->index] = node->inputs[0];
  gradient_warn_of_steps(g);
  if (gradient_is_wanted(g, of))
    gradient_add(g, of, gradient_cast(g, gradient_filled(g, of->type, &of->shape, 1), of->type), (Guard){0});
  if (!g->failed) gradient_walk_back(g, 0, node->index);
  g->node = node;
  for (uint32_t i = 0; i < node->noutputs && !g->failed; i++)
    if (node->outputs[i]) give_result(g, node, i);
  for (uint32_t i = 0; i < node->ninputs && !g->failed; i++) node_set_input(node, i, NULL);
  return !g->failed;
}

// Removes the Gradient, and nodes made for it, from index `first` on, that its results do not need.
static void remove_unneeded(Graph *g, const Node *gradient, size_t first) {
  size_t nleft = 0;
  for (size_t i = g->nnodes; i-- > first;) {
    Node *node = g->nodes[i];
    bool is_needed = false;
    for (uint32_t k = 0; k < node->noutputs; k++) is_needed |= value_is_used(node->outputs[k]);
    for (uint32_t k = 0; k < node->ninputs && !is_needed; k++) node_set_input(node, k, NULL);
    for (uint32_t k = 0; k < node->noutputs && !is_needed; k++) node_set_output(node, k, NULL);
    if (!is_needed) g->nodes[i] = NULL;
  }
  for (size_t i = 0; i < g->nnodes; i++)
    if (g->nodes[i] && g->nodes[i] != gradient) g->nodes[nleft++] = g->nodes[i];
  g->nnodes = nleft;
}

// A Gradient of a Gradient may triple the nodes, and each takes time that grows with the graph: together these take a
// second or two, and leave steps to compile the graph.
enum { MOST_GRADIENTS = 256, MOST_NODES = 1 << 16, MOST_VISITS = 1 << 23 };

bool graph_expand_gradients(Graph *g, Diagnostics *d) {
  size_t count = 0, nvisits = 0;
  bool ok = true;
  for (size_t i = 0; ok && i < g->nnodes; i++) {
    Node *node = g->nodes[i];
    if (node->op->id != OP_Gradient) continue;
    Gradient own = {.forward = g, .graph = g, .diagnostics = d, .build = {.graph = g, .d = d, .stem = ""}};
    arena_init(&own.scratch, g->arena.allocator);
    const size_t first = g->nnodes;
    count++;
    ok = expand(&own, node);
    if (ok) remove_unneeded(g, node, first);
    ok = ok && graph_sort(g, d);
    arena_deinit(&own.scratch);
    nvisits += g->nnodes;
    if (ok && (count > MOST_GRADIENTS || g->nnodes > MOST_NODES || nvisits > MOST_VISITS))
      return error_at(d, node->position,
                      "expected at most %d Gradients, and 2^16 nodes with theirs, found %zu Gradients so far, and %zu "
                      "nodes; the nodes of a Gradient of a Gradient grow with each",
                      MOST_GRADIENTS, count, g->nnodes);
    i = (size_t)-1; // from the first node on, as the order has changed
  }
  return !count || (ok && (gradient_name_terms(g) || error_out_of_memory(d)) && graph_verify(g, d));
}
