// Visits nodes from the last to the first, so that one pass removes whole chains. Also removes values without producer
// that are neither inputs nor used constants.
#include "passes/rewrite/dead_code.h"

static bool is_needed(const Node *node) {
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (value_is_used(node->outputs[i])) return true;
  return false;
}

static void remove_dead(Node *node, int depth) {
  enum { DEEPEST = 1000 };
  if (is_needed(node) || depth == DEEPEST) return;
  for (uint32_t i = 0; i < node->noutputs; i++) node_set_output(node, i, NULL);
  for (uint32_t i = 0; i < node->ninputs; i++) {
    Value *v = node->inputs[i];
    node_set_input(node, i, NULL);
    if (v && v->producer) remove_dead(v->producer, depth + 1);
  }
}

void nodes_remove_dead(Node *node) {
  remove_dead(node, 0);
}

bool pass_dead_code(Graph *g, PassContext *c) {
  (void)c;
  size_t before = g->nnodes, nremaining = 0;
  for (size_t i = g->nnodes; i-- > 0;) {
    Node *node = g->nodes[i];
    if (is_needed(node)) continue;
    for (uint32_t k = 0; k < node->ninputs; k++) node_set_input(node, k, NULL);
    for (uint32_t k = 0; k < node->noutputs; k++) node_set_output(node, k, NULL);
    g->nodes[i] = NULL;
  }
  for (size_t i = 0; i < g->nnodes; i++) {
    if (!g->nodes[i]) continue;
    g->nodes[i]->index = (uint32_t)nremaining;
    g->nodes[nremaining++] = g->nodes[i];
  }
  g->nnodes = nremaining;
  size_t nvalues = 0;
  for (size_t i = 0; i < g->nvalues; i++) {
    Value *v = g->values[i];
    if (!v->producer && !v->is_input && !(v->constant && (v->uses || v->is_output))) continue;
    v->index = (uint32_t)nvalues;
    g->values[nvalues++] = v;
  }
  bool changed = nremaining != before || nvalues != g->nvalues;
  g->nvalues = nvalues;
  return changed;
}

void pass_end(Graph *g, PassContext *c, bool out_of_memory, bool has_added) {
  if (out_of_memory) pass_out_of_memory(c);
  else if (has_added && !graph_sort(g, c->diagnostics)) c->failed = true;
  else if (has_added) pass_dead_code(g, c);
}
