// Simplifies reshapes and transposes: joins, removes and sinks them.
//
// Two reshapes or transposes in a row are joined. A reshape or transpose that changes nothing is removed. A reshape or
// transpose sinks through elementwise operators, towards the outputs, if it meets another there; the elementwise
// operators then read the unmoved operands directly, and can be fused with their producers.
#include "passes/rewrite/passes.h"

#include "ir/operators/movement.h"
#include "passes/rewrite/rewrite.h"

#include <string.h>

static bool set_list(const Match *m, Node *node, const char *name, const int64_t *items, int count) {
  const bool ok = node_set_list(m->graph, node, name, items, (size_t)count);
  if (!ok) *m->out_of_memory = true;
  return ok;
}

// Transposes

// Whether the transpose moves only axes of extent 1, so that the elements remain in row-major order.
static bool transpose_moves_only_ones(Match *m) {
  const Node *node = m->matched[0];
  const Shape *src = &node->inputs[0]->shape;
  int axes[MAX_RANK], before = -1;
  if (!transpose_axes(node, src->rank, axes)) return false;
  for (int i = 0; i < src->rank; i++) {
    if (extent_equals(src->extent[axes[i]], EXTENT(1))) continue;
    if (axes[i] < before) return false;
    before = axes[i];
  }
  return true;
}

static bool shape_of_root(const Match *m, Node *node) {
  const Shape *dst = &m->matched[0]->outputs[0]->shape;
  int64_t extents[MAX_RANK];
  bool *special_zero = &node_attribute_slot(node, "special_zero")->boolean;
  return reshape_list(&node->inputs[0]->shape, dst, extents, special_zero) &&
         set_list(m, node, "shape", extents, dst->rank);
}

static bool composed_order(const Match *m, Node *node) {
  int rank = m->values[0]->shape.rank, outer[MAX_RANK], inner[MAX_RANK];
  int64_t order[MAX_RANK];
  if (!transpose_axes(m->matched[0], rank, outer) || !transpose_axes(m->matched[1], rank, inner)) return false;
  for (int i = 0; i < rank; i++) order[i] = inner[outer[i]];
  return set_list(m, node, "order", order, rank);
}

// Sinking

// Whether the chain of sole users, through elementwise operators, reaches another node with the operator of `node`.
static bool meets_another(const Match *m, const Node *node) {
  enum { FARTHEST = 16 };
  const Value *v = m->matched[0]->outputs[0];
  for (int i = 0; i < FARTHEST; i++) {
    if (v->is_output || !v->uses || v->uses->next) return false;
    const Node *user = v->uses->node;
    if (user->op == node->op) return true;
    if (!node_may_be_moved(user)) return false;
    v = user->outputs[0];
  }
  return false;
}

static bool sinks(Match *m) {
  return meets_another(m, m->nodes[1]);
}

// Whether both operands are reshaped or transposed in the same way, and the movement may sink.
static bool both_sink(Match *m) {
  const Node *a = m->nodes[1], *b = m->nodes[2];
  int rank = m->values[0]->shape.rank, axes[2][MAX_RANK];
  if (a->op != b->op || m->values[1]->shape.rank != rank || !meets_another(m, a)) return false;
  if (a->op->id == OP_StaticReshape)
    return shape_equals(&m->values[0]->shape, &m->values[1]->shape) &&
           shape_equals(&a->outputs[0]->shape, &b->outputs[0]->shape);
  return transpose_axes(a, rank, axes[0]) && transpose_axes(b, rank, axes[1]) &&
         memcmp(axes[0], axes[1], (size_t)rank * sizeof *axes[0]) == 0;
}

// Whether the movement may sink, and the other operand has one element and at most as many axes as the moved operand
// before the movement.
static bool sinks_beside_number(Match *m) {
  const Value *v = m->values[1];
  return shape_nelems(&v->shape) == 1 && v->shape.rank <= m->values[0]->shape.rank && sinks(m);
}

// Whether the reshape only adds leading axes of extent 1, as broadcasting does anyway.
static bool adds_leading_ones(Match *m) {
  const Shape *src = &m->values[0]->shape, *dst = &m->nodes[1]->outputs[0]->shape;
  int added = dst->rank - src->rank;
  for (int i = 0; i < added; i++)
    if (!extent_equals(dst->extent[i], EXTENT(1))) return false;
  for (int i = 0; i < src->rank && added > 0; i++)
    if (!extent_equals(src->extent[i], dst->extent[added + i])) return false;
  return added > 0;
}

// A single element is broadcast by an elementwise operator with a splat constant, and the result is reshaped. The
// reshape can be dropped if the other operand broadcasts the element to the same shape; the engine checks the shape.
static bool is_broadcast_number(Match *m) {
  const Value *v = m->values[C->name];
  if (shape_nelems(&m->values[0]->shape) != 1 || !v->constant->is_splat) return false;
  m->number = type_load(v->type, v->constant->data, 0);
  return true;
}

#define RESHAPED(...)                                                                                                  \
  TERM(.kind = TERM_NODE, .op = OP_StaticReshape, .setting = "special_zero", .arguments = {__VA_ARGS__})

static const Rule rules[] = {
    {.name = "reshape-reshape",
     .pattern = NODE(StaticReshape, NAMED(1, StaticReshape, X)),
     .replacement = RESHAPED(X),
     .finish = shape_of_root},
    {.name = "reshape-nothing", .pattern = NODE(StaticReshape, X), .replacement = X},
    {.name = "transpose-nothing",
     .pattern = NODE(StaticTranspose, X),
     .replacement = X,
     .condition = transpose_moves_only_ones},
    {.name = "transpose-to-reshape",
     .pattern = NODE(StaticTranspose, X),
     .replacement = RESHAPED(X),
     .condition = transpose_moves_only_ones,
     .finish = shape_of_root},
    {.name = "transpose-transpose",
     .pattern = NODE(StaticTranspose, NAMED(1, StaticTranspose, X)),
     .replacement = NODE(StaticTranspose, X),
     .finish = composed_order},
    {.name = "sink-transpose",
     .pattern = LIKE(0, ONLY(1, StaticTranspose, X)),
     .replacement = NAMED(1, StaticTranspose, LIKE(0, X)),
     .condition = sinks},
    {.name = "sink-reshape",
     .pattern = LIKE(0, ONLY(1, StaticReshape, X)),
     .replacement = NAMED(1, StaticReshape, LIKE(0, X)),
     .condition = sinks},
    {.name = "sink-transposes",
     .pattern = LIKE(0, ONLY(1, StaticTranspose, X), ONLY(2, StaticTranspose, Y)),
     .replacement = NAMED(1, StaticTranspose, LIKE(0, X, Y)),
     .condition = both_sink},
    {.name = "sink-reshapes",
     .pattern = LIKE(0, ONLY(1, StaticReshape, X), ONLY(2, StaticReshape, Y)),
     .replacement = NAMED(1, StaticReshape, LIKE(0, X, Y)),
     .condition = both_sink},
    {.name = "sink-transpose-before-number",
     .pattern = LIKE(0, ONLY(1, StaticTranspose, X), Y),
     .replacement = NAMED(1, StaticTranspose, LIKE(0, X, Y)),
     .condition = sinks_beside_number},
    {.name = "sink-reshape-before-number",
     .pattern = LIKE(0, ONLY(1, StaticReshape, X), Y),
     .replacement = NAMED(1, StaticReshape, LIKE(0, X, Y)),
     .condition = sinks_beside_number},
    {.name = "sink-transpose-after-number",
     .pattern = LIKE(0, Y, ONLY(1, StaticTranspose, X)),
     .replacement = NAMED(1, StaticTranspose, LIKE(0, Y, X)),
     .condition = sinks_beside_number},
    {.name = "sink-reshape-after-number",
     .pattern = LIKE(0, Y, ONLY(1, StaticReshape, X)),
     .replacement = NAMED(1, StaticReshape, LIKE(0, Y, X)),
     .condition = sinks_beside_number},
    {.name = "broadcast-left",
     .pattern = LIKE(0, NAMED(1, StaticReshape, X), Y),
     .replacement = LIKE(0, X, Y),
     .condition = adds_leading_ones},
    {.name = "broadcast-right",
     .pattern = LIKE(0, Y, NAMED(1, StaticReshape, X)),
     .replacement = LIKE(0, Y, X),
     .condition = adds_leading_ones},
    {.name = "spread-number-left",
     .pattern = LIKE(0, NAMED(1, StaticReshape, LIKE(2, X, C)), Y),
     .replacement = LIKE(0, LIKE(2, X, COMPUTED), Y),
     .condition = is_broadcast_number},
    {.name = "spread-number-right",
     .pattern = LIKE(0, Y, NAMED(1, StaticReshape, LIKE(2, X, C))),
     .replacement = LIKE(0, Y, LIKE(2, X, COMPUTED)),
     .condition = is_broadcast_number},
};
const Rules movement_rules = {rules, sizeof rules / sizeof *rules};

bool pass_movement(Graph *g, PassContext *c) {
  return rewrite_graph(g, c, &movement_rules);
}
