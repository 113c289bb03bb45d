// An unused output becomes an unused Slice, which pass dead-code removes.
#include "passes/rewrite/splits.h"

#include "ir/operators/movement.h"
#include "passes/rewrite/builder.h"

static bool replace(Builder *b, Node *node) {
  Value *src = node->inputs[0];
  const int64_t axis = axis_of(node, src->shape.rank);
  Extent start = EXTENT(0), own, end;
  for (uint32_t part = 0; part < node->noutputs; part++, start = end) {
    Value *dst = node->outputs[part];
    Arena *arena = &b->graph->arena;
    if (part >= split_nparts(node)) break;
    if (!split_extent(node, arena, part, &own) || !extent_add(arena, start, 1, own, &end)) return false;
    if (!dst) continue;
    Node *slice = builder_add_node(b, OP_Slice, dst);
    if (!slice || !node_set_extents(b->graph, slice, "starts", &start, 1) ||
        !node_set_extents(b->graph, slice, "ends", &end, 1) || !builder_set_list(b, slice, "axes", &axis, 1))
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
