// Replaces each MaxPoolBackward by MaxPoolWinners, which finds the greatest element of each window once, and
// MaxPoolScatter. A single kernel over src would search each window again for each of its elements.
//
// The winners have diff_dst's layout, as both are read together. For windows with many taps, a separate MaxPool finds
// the greatest element first: both operators are then single reductions, in registers.
#include "passes/rewrite/passes.h"

#include "ir/graph/builder.h"
#include "ir/operators/pool.h"
#include "ir/operators/window.h"
#include "passes/rewrite/dead_code.h"

// Copies the attributes that both operators have.
static void copy_attributes(Node *to, const Node *from) {
  for (uint32_t i = 0; i < from->op->nattributes; i++)
    if (operator_has_attribute(to->op, from->op->attributes[i].name))
      *node_attribute_slot(to, from->op->attributes[i].name) = from->attributes[i];
}

// The tensor to search: src, or the narrower one that it was cast from, which has the same winners.
static Value *searched(const Node *node) {
  Value *src = node->inputs[0];
  const Node *cast = src->producer && src->producer->op->id == OP_TypeCast ? src->producer : NULL;
  const bool is_wider = cast && type_is_float(cast->inputs[0]->type) && type_widens(cast->inputs[0]->type, src->type);
  return is_wider ? cast->inputs[0] : src;
}

// Adds an operator on src whose result has diff_dst's shape and layout. NULL: out of memory.
static Node *add_beside(Builder *b, const Node *node, OperatorId id) {
  Node *own = build_node(b, id, 1, (Value *const[]){searched(node)});
  Value *v = build_result(b, own, 0, TYPE_NONE);
  if (!v) return NULL;
  copy_attributes(own, node);
  v->shape = node->inputs[1]->shape;
  v->layout = node->inputs[1]->layout;
  return own;
}

// NULL: out of memory, or no MaxPool has these windows.
static Value *add_greatest(Builder *b, const Node *node) {
  int64_t rounding;
  if (!pool_rounding(node, &rounding)) return NULL;
  Node *maxima = add_beside(b, node, OP_MaxPool);
  if (!maxima) return NULL;
  build_set(maxima, "rounding_type")->s64 = rounding;
  return build_finish(b, maxima) ? maxima->outputs[0] : NULL;
}

static Value *add_winners(Builder *b, const Node *node) {
  Value *greatest = node_has_few_taps(node) ? NULL : add_greatest(b, node);
  Node *winners = add_beside(b, node, OP_MaxPoolWinners);
  if (!winners) return NULL;
  node_set_input(winners, 1, greatest);
  return build_finish(b, winners) ? winners->outputs[0] : NULL;
}

static bool replace(Builder *b, Node *node) {
  Value *winners = add_winners(b, node), *diff_src = node->outputs[0], *diff_dst = node->inputs[1];
  Node *scatter = build_node(b, OP_MaxPoolScatter, 2, (Value *const[]){winners, diff_dst});
  if (!scatter) return false;
  copy_attributes(scatter, node);
  node_set_defaults(scatter);
  node_set_output(node, 0, NULL);
  node_set_output(scatter, 0, diff_src);
  for (uint32_t i = 0; i < node->ninputs; i++) node_set_input(node, i, NULL);
  return true;
}

bool pass_max_pool_gradients(Graph *g, PassContext *c) {
  const size_t before = g->nnodes;
  Diagnostics refusals;
  Builder b = {.graph = g, .d = &refusals};
  bool ok = true;
  diagnostics_init(&refusals, c->allocator);
  for (size_t i = 0; i < before && ok; i++)
    if ((b.origin = g->nodes[i])->op->id == OP_MaxPoolBackward) ok = replace(&b, g->nodes[i]);
  diagnostics_deinit(&refusals);
  const bool has_any = g->nnodes > before;
  pass_end(g, c, !ok, has_any);
  return has_any;
}
