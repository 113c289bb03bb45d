// Inserts a copy before each reshape whose input has another layout than row-major, so that a reshape only
// reinterprets memory. Lowering relies on this pass.
//
// The copy is a transpose with the identity permutation, whose output is row-major.
#include "passes/rewrite/passes.h"

#include "ir/operators/operator.h"

static bool copy_input(Graph *g, Node *node) {
  Value *src = node->inputs[0];
  const char *name = graph_fresh_name(g, src->name);
  Value *v = name ? graph_add_value(g, name, src->type, &src->shape) : NULL;
  Node *copy = v ? graph_add_node(g, &operators[OP_StaticTranspose], NULL, 1, 1) : NULL;
  int64_t *axes = ARENA_ARRAY(&g->arena, int64_t, MAX_RANK);
  if (!copy || !axes || !node_add_origin(g, copy, node)) return false;
  for (int i = 0; i < src->shape.rank; i++) axes[i] = i;
  copy->attributes[0] = (AttributeValue){.is_set = true, .list = {axes, (size_t)src->shape.rank}};
  node_set_input(copy, 0, src);
  node_set_output(copy, 0, v);
  node_set_input(node, 0, v);
  return true;
}

bool pass_reshape_layouts(Graph *g, PassContext *c) {
  size_t before = g->nnodes;
  bool ok = true;
  for (size_t i = 0; i < before && ok; i++) {
    Node *node = g->nodes[i];
    if (node->op->id == OP_StaticReshape && !layout_is_row_major(&node->inputs[0]->layout)) ok = copy_input(g, node);
  }
  ok = ok && (g->nnodes == before || graph_sort(g, c->diagnostics));
  if (!ok) pass_out_of_memory(c);
  return g->nnodes > before;
}
