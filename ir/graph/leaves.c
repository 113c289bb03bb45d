#include "ir/graph/leaves.h"

#include "ir/operators/operator.h"

#include <string.h>

void graph_find_own_values(const Graph *g, bool *is_own) {
  for (size_t i = 0; i < g->nvalues; i++) is_own[i] = g->values[i]->is_of_leaf;
  for (size_t n = 0; n < g->nnodes; n++) {
    const Node *node = g->nodes[n];
    bool is_leafs = node->op->id == OP_Leaf;
    for (uint32_t i = 0; i < node->ninputs && node->op->id != OP_AllReduce; i++)
      is_leafs |= node->inputs[i] && is_own[node->inputs[i]->index];
    for (uint32_t i = 0; i < node->noutputs; i++)
      if (node->outputs[i]) is_own[node->outputs[i]->index] = is_leafs;
  }
}

static bool node_error(const Node *node, Diagnostics *d, const char *what, const char *name) {
  char title[NODE_TITLE_BYTES];
  return error_at(d, node->position, "%s: %s: %s", node_title(node, title), name, what);
}

// Leaf reads an input or a constant. Each process has only its own leaves' parts of such an input.
static bool verify_leaf(const Graph *g, const Node *node, Diagnostics *d) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  if (src->constant)
    return (src->shape.rank == 1 && !src->constant->is_splat) || src->shape.extent[0].value == 1 ||
           node_error(node, d, "expected an input, or a constant of rank 1 with a number for each leaf", src->name);
  if (!src->is_input || graph_has_state(g, src))
    return node_error(node, d, "expected an input of the graph that is not a state, or a constant", src->name);
  if (layout_axis(&src->layout, 0) != 0)
    return node_error(node, d, "expected a layout in which the axis of leaves is the slowest", src->name);
  bool ok = true;
  for (int i = 0; i < dst->shape.rank; i++) ok &= layout_axis(&src->layout, i + 1) == layout_axis(&dst->layout, i) + 1;
  if (!ok) return node_error(node, d, "expected it to have src's layout, without the axis of leaves", dst->name);
  ok = !src->is_output;
  for (const Use *use = src->uses; use; use = use->next) ok &= use->node->op->id == OP_Leaf;
  return ok ||
         node_error(node, d, "expected an input that only Leaf reads, as each process has only the parts of its leaves",
                    src->name);
}

static bool verify_all_reduces(const Graph *g, const bool *is_own, Diagnostics *d) {
  bool ok = true;
  for (size_t n = 0; n < g->nnodes; n++) {
    const Node *node = g->nodes[n];
    if (node->op->id != OP_AllReduce) continue;
    const Value *src = node->inputs[0], *dst = node->outputs[0];
    if (!is_own[src->index])
      ok = node_error(node, d, "expected a value that depends on a Leaf, as this value is the same in all leaves",
                      src->name);
    if (!type_is_float(dst->type) && memcmp(&src->layout, &dst->layout, sizeof src->layout) != 0)
      ok = node_error(node, d, "expected src's layout, as AllReduce does not convert layouts of integers", dst->name);
  }
  return ok;
}

static bool verify_results(const Graph *g, const bool *is_own, Diagnostics *d) {
  bool ok = true;
  for (size_t i = 0; i < g->noutputs; i++)
    if (is_own[g->outputs[i]->index])
      ok = error_at(d, g->outputs[i]->position,
                    "%s: each leaf has its own value, expected %s that all leaves have in common, as AllReduce gives",
                    g->outputs[i]->name, i < g->noutputs - g->nupdates ? "an output" : "an update");
  return ok;
}

bool graph_verify_leaves(const Graph *g, Diagnostics *d) {
  bool ok = true;
  for (size_t n = 0; n < g->nnodes; n++) {
    const Node *node = g->nodes[n];
    if (!(node->op->traits & TRAIT_COLLECTIVE)) continue;
    if (!g->nleaves)
      ok = node_error(node, d, "expected leaves: N in the graph, the number of parts of a batch", "leaves");
    else if (node->op->id == OP_Leaf) ok &= verify_leaf(g, node, d);
  }
  if (!ok || !g->nleaves) return ok;
  Arena scratch;
  arena_init(&scratch, g->arena.allocator);
  bool *is_own = ARENA_ARRAY(&scratch, bool, g->nvalues + 1);
  if (is_own) graph_find_own_values(g, is_own);
  ok = is_own ? verify_all_reduces(g, is_own, d) : error_out_of_memory(d);
  if (is_own && !verify_results(g, is_own, d)) ok = false;
  arena_deinit(&scratch);
  return ok;
}
