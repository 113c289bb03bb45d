// Replaces each MaxPoolBackward by MaxPoolWinners, which finds the greatest element of each window once, and
// MaxPoolScatter. A single kernel over src would search each window again for each of its elements.
//
// The winners have diff_dst's layout, as both are read together. For windows with many taps, a separate MaxPool finds
// the greatest element first: both operators are then single reductions, in registers.
#include "passes/rewrite/passes.h"

#include "ir/operators/pool.h"
#include "ir/operators/window.h"
#include "passes/rewrite/builder.h"
#include "passes/rewrite/dead_code.h"

// Copies the attributes that both operators have.
static void copy_attributes(Node *to, const Node *from) {
  for (uint32_t i = 0; i < from->op->nattributes; i++)
    if (operator_has_attribute(to->op, from->op->attributes[i].name))
      *node_attribute_slot(to, from->op->attributes[i].name) = from->attributes[i];
}

// Adds an operator on src whose result has diff_dst's shape and layout. NULL: out of memory.
static Node *add_beside(Builder *b, const Node *node, OperatorId id) {
  Node *own = builder_add_node(b, id, node->outputs[0]);
  Value *v = own ? builder_add_output(b, own, 0, TYPE_NONE) : NULL;
  if (!v) return NULL;
  copy_attributes(own, node);
  v->shape = node->inputs[1]->shape;
  v->layout = node->inputs[1]->layout;
  node_set_input(own, 0, node->inputs[0]);
  return own;
}

// NULL: out of memory, or no MaxPool has these windows.
static Value *add_greatest(Builder *b, const Node *node) {
  int64_t rounding;
  if (!pool_rounding(node, &rounding)) return NULL;
  Node *maxima = add_beside(b, node, OP_MaxPool);
  if (!maxima) return NULL;
  node_attribute_to_set(maxima, "rounding_type")->s64 = rounding;
  return builder_finish_node(b, maxima) ? maxima->outputs[0] : NULL;
}

static Value *add_winners(Builder *b, const Node *node) {
  Value *greatest = node_has_few_taps(node) ? NULL : add_greatest(b, node);
  Node *winners = add_beside(b, node, OP_MaxPoolWinners);
  if (!winners) return NULL;
  node_set_input(winners, 1, greatest);
  return builder_finish_node(b, winners) ? winners->outputs[0] : NULL;
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
  pass_end(g, c, !ok, has_any);
  return has_any;
}
