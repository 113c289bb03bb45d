// Replaces each Split by a Slice for each output, which can be fused with the users of its result; and each Pad along
// an open axis by a Concat.
//
// An unused output of a Split becomes an unused Slice, which pass dead-code removes.
#include "passes/rewrite/passes.h"

#include "ir/operators/movement.h"
#include "passes/rewrite/builder.h"
#include "passes/rewrite/open_pads.h"

static bool replace(Builder *b, Node *node) {
  Value *src = node->inputs[0];
  const int64_t axis = axis_of(node, src->shape.rank);
  Extent start = EXTENT(0), own, end;
  for (uint32_t part = 0; part < node->noutputs; part++, start = end) {
    Value *dst = node->outputs[part];
    if (part >= split_nparts(node)) break;
    if (!split_extent(node, b->graph, part, &own) || !extent_add(b->graph, start, 1, own, &end)) return false;
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

// Removes the nodes that others have replaced: they have no operands.
static void remove_replaced(Graph *g) {
  size_t count = 0;
  for (size_t i = 0; i < g->nnodes; i++) {
    const OperatorId id = g->nodes[i]->op->id;
    if ((id != OP_Split && id != OP_Pad) || g->nodes[i]->inputs[0]) g->nodes[count++] = g->nodes[i];
  }
  g->nnodes = count;
}

bool pass_splits(Graph *g, PassContext *c) {
  const size_t before = g->nnodes;
  Builder b = {.graph = g};
  bool ok = true, has_any = false;
  diagnostics_init(&b.refusals, c->allocator);
  for (size_t i = 0; i < before && ok; i++) {
    const OperatorId id = g->nodes[i]->op->id;
    if (id == OP_Split) ok = replace(&b, g->nodes[i]);
    if (id == OP_Split || (id == OP_Pad && g->is_open && replace_open_pad(&b, g->nodes[i]))) has_any = true;
    ok &= !b.out_of_memory;
  }
  if (ok && has_any) {
    remove_replaced(g);
    ok = graph_sort(g, c->diagnostics);
  }
  diagnostics_deinit(&b.refusals);
  if (!ok) pass_out_of_memory(c);
  return has_any;
}
