// The winners have the layout of diff_dst, beside which they are read.
#include "passes/rewrite/max_pool_gradients.h"

#include "passes/rewrite/builder.h"

// Copies the attributes that both operators have.
static void copy_attributes(Node *to, const Node *from) {
  for (uint32_t i = 0; i < from->op->nattributes; i++)
    if (operator_has_attribute(to->op, from->op->attributes[i].name))
      *node_attribute_slot(to, from->op->attributes[i].name) = from->attributes[i];
}

// NULL: out of memory.
static Value *add_winners(Builder *b, const Node *node) {
  Node *winners = builder_add_node(b, OP_MaxPoolWinners, node->outputs[0]);
  Value *v = winners ? builder_add_output(b, winners, 0, TYPE_NONE) : NULL;
  if (!v) return NULL;
  copy_attributes(winners, node);
  v->shape = node->inputs[1]->shape;
  v->order = node->inputs[1]->order;
  node_set_input(winners, 0, node->inputs[0]);
  return builder_finish_node(b, winners) ? v : NULL;
}

static bool replace(Builder *b, Node *node) {
  Value *winners = add_winners(b, node), *diff_src = node->outputs[0], *diff_dst = node->inputs[1];
  Node *scatter = winners ? builder_add_node(b, OP_MaxPoolScatter, diff_src) : NULL;
  if (!scatter) return false;
  copy_attributes(scatter, node);
  node_set_defaults(scatter);
  node_set_output(node, 0, NULL);
  node_set_input(scatter, 0, winners);
  node_set_input(scatter, 1, diff_dst);
  node_set_output(scatter, 0, diff_src);
  for (uint32_t i = 0; i < node->ninputs; i++) node_set_input(node, i, NULL);
  return true;
}

bool pass_max_pool_gradients(Graph *g, PassContext *c) {
  const size_t before = g->nnodes;
  Builder b = {.graph = g};
  bool ok = true;
  diagnostics_init(&b.refusals, c->allocator);
  for (size_t i = 0; i < before && ok; i++)
    if (g->nodes[i]->op->id == OP_MaxPoolBackward) ok = replace(&b, g->nodes[i]);
  diagnostics_deinit(&b.refusals);
  const bool has_any = g->nnodes > before;
  if (ok && has_any) {
    graph_remove_nodes(g, OP_MaxPoolBackward);
    ok = graph_sort(g, c->diagnostics);
  }
  if (!ok) pass_out_of_memory(c);
  return has_any;
}
