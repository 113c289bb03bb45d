// Gradients in graphs with leaves (ir/graph/leaves.h).
//
// The gradient of an own value is defined as the number of leaves times the gradient of the loss. If the loss is a mean
// over leaves, this is the gradient of the leaf's own loss. For a common value, each leaf computes the gradient from
// its own uses, and the gradient is the mean over all leaves.
#include "ir/operators/leaves.h"

#include "ir/graph/leaves.h"
#include "passes/gradient/gradient_state.h"

static Value *all_reduced(Gradient *g, Value *v, Reduction how) {
  Value *all = gradient_unary(g, OP_AllReduce, v);
  if (all) *node_attribute_slot(all->producer, "reduction") = (AttributeValue){.is_set = true, .s64 = how};
  return all;
}

// Divides the gradient of a maximum equally among the leaves whose element equals the maximum.
static void give_to_greatest(Gradient *g, const Node *node, Value *diff) {
  const Value *forward = node->inputs[0];
  Value *src = gradient_saved(g, forward), *dst = gradient_saved(g, node->outputs[0]);
  Value *one = gradient_filled(g, forward->type, &forward->shape, 1);
  Value *zero = gradient_filled(g, forward->type, &forward->shape, 0);
  Value *is_greatest = gradient_binary(g, OP_GreaterEqual, src, dst);
  Value *count = all_reduced(g, gradient_select(g, is_greatest, one, zero), REDUCTION_SUM);
  Value *each = gradient_binary(g, OP_Divide, all_reduced(g, diff, REDUCTION_SUM), count);
  gradient_give(g, node, 0, gradient_select(g, is_greatest, each, zero));
}

GRADIENT(AllReduce) {
  const Reduction how = (Reduction)node_s64(node, "reduction");
  if (how == REDUCTION_MAX) give_to_greatest(g, node, diff);
  else gradient_give(g, node, 0, all_reduced(g, diff, how));
}

NO_GRADIENT(Leaf, REFUSED_SETTING(
                      "each process has only its own leaves' parts of the input; leave the input out of the request"))

Value *gradient_of_all_leaves(Gradient *g, Value *diff) {
  if (!diff || !g->forward->nleaves) return diff;
  return gradient_cast(g, all_reduced(g, gradient_widened(g, diff), REDUCTION_MEAN), diff->type);
}

// The mean of a common value over all leaves is the value itself, the sum is the number of leaves times the value.
static bool multiply_common(Gradient *g, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  const bool is_sum = node_s64(node, "reduction") == REDUCTION_SUM;
  Value *number = gradient_number(g, src->type, is_sum ? (double)g->forward->nleaves : 1);
  Node *product = number ? gradient_node(g, OP_Multiply, NULL) : NULL;
  if (!product) return false;
  node_set_input(node, 0, NULL);
  node_set_output(node, 0, NULL);
  node_set_input(product, 0, src);
  node_set_input(product, 1, number);
  node_set_output(product, 0, dst);
  return true;
}

bool gradient_settle_leaves(Gradient *g) {
  Graph *graph = g->graph;
  bool *is_own = ARENA_ARRAY(&g->scratch, bool, graph->nvalues + 1);
  if (!is_own) return error_out_of_memory(g->diagnostics);
  graph_find_own_values(graph, is_own);
  size_t nleft = 0;
  const size_t nnodes = graph->nnodes;
  for (size_t i = 0; i < nnodes; i++) {
    Node *node = graph->nodes[i];
    const bool is_common = node->op->id == OP_AllReduce && !is_own[node->inputs[0]->index];
    if (is_common && !multiply_common(g, node)) return false;
  }
  for (size_t i = 0; i < graph->nnodes; i++)
    if (graph->nodes[i]->outputs[0] || graph->nodes[i]->op->id != OP_AllReduce) graph->nodes[nleft++] = graph->nodes[i];
  graph->nnodes = nleft;
  return graph_sort(graph, g->diagnostics);
}
