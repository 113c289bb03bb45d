// An unused output becomes an unused Slice, which pass dead-code removes.
#include "passes/rewrite/splits.h"

#include "ir/operators/movement.h"
#include "passes/rewrite/builder.h"

static bool replace(Builder *b, Node *node) {
  Value *src = node->inputs[0];
  const int64_t axis = axis_of(node, src->shape.rank);
  int64_t starts[MAX_OPERANDS + 1];
  split_starts(node, starts);
  for (uint32_t part = 0; part < node->noutputs; part++) {
    Value *dst = node->outputs[part];
    if (!dst) continue;
    Node *slice = builder_add_node(b, OP_Slice, dst);
    if (!slice || !builder_set_list(b, slice, "starts", &starts[part], 1) ||
        !builder_set_list(b, slice, "ends", &starts[part + 1], 1) || !builder_set_list(b, slice, "axes", &axis, 1))
      return false;
    node_set_defaults(slice);
    node_set_output(node, part, NULL);
    node_set_input(slice, 0, src);
    node_set_output(slice, 0, dst);
  }
  node_set_input(node, 0, NULL);
  return true;
}

bool pass_splits(Graph *g, PassContext *c) {
  const size_t before = g->nnodes;
  Builder b = {.graph = g};
  bool ok = true;
  for (size_t i = 0; i < before && ok; i++)
    if (g->nodes[i]->op->id == OP_Split) ok = replace(&b, g->nodes[i]);
  const bool has_any = g->nnodes > before;
  if (ok && has_any) {
    graph_remove_nodes(g, OP_Split);
    ok = graph_sort(g, c->diagnostics);
  }
  if (!ok) pass_out_of_memory(c);
  return has_any;
}
