// The functions that rules build the backward graph with.
#include "ir/operators/movement.h"
#include "passes/gradient/gradient_state.h"

void *gradient_out_of_memory(Gradient *g) {
  g->failed = true;
  error_out_of_memory(g->diagnostics);
  return NULL;
}

bool gradient_is_wanted(const Gradient *g, const Value *forward) {
  const bool *which = g->given_masks ? g->is_risky : g->depends;
  return forward && which[forward->index - g->first];
}

static bool is_expansion(const Gradient *g) {
  return g->forward == g->graph;
}

bool gradient_is_at_hand(const Gradient *g, const Value *forward) {
  return is_expansion(g) || forward->is_input || forward->constant || g->here[forward->index];
}

Value *gradient_saved(Gradient *g, const Value *forward) {
  if (is_expansion(g)) return (Value *)forward; // the cast is valid: it is a value of the backward graph
  Value **here = &g->here[forward->index];
  if (*here) return *here;
  bool is_given = !forward->constant || forward->constant->file;
  *here = (is_given ? graph_add_input : graph_add_value)(g->graph, forward->name, forward->type, &forward->shape);
  if (!*here) return gradient_out_of_memory(g);
  (*here)->position = forward->position;
  (*here)->layout = forward->layout;
  (*here)->is_of_leaf = is_given && g->is_own[forward->index];
  if (!is_given) (*here)->constant = forward->constant;
  return *here;
}

// For nodes at the place of the forward node whose rule is running.
static Builder *builder(Gradient *g) {
  g->build.at = g->node ? g->node->position : (Position){0};
  return &g->build;
}

static Value *made(Gradient *g, Value *v) { // NULL: the builder has reported why
  g->failed |= !v;
  return v;
}

Value *gradient_filled(Gradient *g, Type type, const Shape *shape, double number) {
  // 16-bit floats are not precise enough for counts and attributes.
  return made(g, build_number(builder(g), type == TYPE_F64 ? TYPE_F64 : TYPE_F32, shape, number));
}

Value *gradient_number(Gradient *g, Type type, double number) {
  return gradient_filled(g, type, &(Shape){.rank = 0}, number);
}

void gradient_refuse(Gradient *g, const Node *node, const char *why) {
  char title[NODE_TITLE_BYTES];
  g->failed = true;
  error_at(g->diagnostics, node->position, "%s has no gradient: %s", node_title(node, title), why);
}

Value *gradient_of_output(const Gradient *g, const Node *node, uint32_t slot) {
  return node->outputs[slot] ? g->diff[node->outputs[slot]->index - g->first] : NULL;
}

Node *gradient_add_node(Gradient *g, OperatorId id, uint32_t ninputs, const Node *like) {
  const Operator *op = &operators[id];
  Node *node = g->failed ? NULL : build_bare_node(builder(g), id, ninputs);
  g->failed |= !node;
  if (!node) return NULL;
  for (uint32_t i = 0; like && i < op->nattributes; i++)
    if (operator_has_attribute(like->op, op->attributes[i].name))
      node->attributes[i] = *node_attribute(like, op->attributes[i].name);
  node_set_defaults(node);
  return node;
}

Node *gradient_node(Gradient *g, OperatorId id, const Node *like) {
  return gradient_add_node(g, id, operators[id].ninputs, like);
}

Node *gradient_variadic(Gradient *g, OperatorId id, uint32_t ninputs) {
  return gradient_add_node(g, id, ninputs, NULL);
}

Value *gradient_output(Gradient *g, Node *node, uint32_t slot, Type type, const Shape *shape) {
  Value *v = node ? made(g, build_result(builder(g), node, slot, type)) : NULL;
  if (v) v->shape = *shape;
  return v;
}

void gradient_set_extents(Gradient *g, Node *node, const char *name, const Extent *extents, size_t count) {
  if (!node_set_extents(g->graph, node, name, extents, count)) gradient_out_of_memory(g);
}

void gradient_set_given_shape(Gradient *g, Node *node, const Shape *shape) {
  int64_t items[MAX_RANK];
  for (int i = 0; i < shape->rank; i++) {
    if (!extent_is_literal(shape->extent[i])) return;
    items[i] = shape->extent[i].value;
  }
  for (uint32_t i = 0; i < node->op->nattributes; i++)
    if (node->op->attributes[i].list == LIST_SHAPE)
      gradient_set_list(g, node, node->op->attributes[i].name, items, (size_t)shape->rank);
}

void gradient_set_list(Gradient *g, Node *node, const char *name, const int64_t *items, size_t count) {
  if (!node_set_list(g->graph, node, name, items, count)) gradient_out_of_memory(g);
}

Value *gradient_apply(Gradient *g, OperatorId id, const Node *like, Type type, const Shape *shape, Value *a, Value *b,
                      Value *c) {
  Value *const inputs[] = {a, b, c};
  Node *node = gradient_node(g, id, like);
  for (uint32_t i = 0; node && i < node->ninputs && i < sizeof inputs / sizeof *inputs; i++)
    node_set_input(node, i, inputs[i]);
  return gradient_output(g, node, 0, type, shape);
}

Value *gradient_unary(Gradient *g, OperatorId op, Value *a) {
  return a ? made(g, build_unary(builder(g), op, a)) : NULL;
}

Value *gradient_cast(Gradient *g, Value *v, Type type) {
  if (!v || v->type == type) return v;
  // TypeCast converts only from or to f32 or f64.
  const bool is_direct = type_nbytes(v->type) > 2 || type_nbytes(type) > 2;
  Value *between = is_direct ? v : gradient_cast(g, v, TYPE_F32);
  return between ? made(g, build_cast(builder(g), between, type)) : NULL;
}

Value *gradient_widened(Gradient *g, Value *v) {
  return gradient_cast(g, v, v && v->type == TYPE_F64 ? TYPE_F64 : TYPE_F32);
}

Value *gradient_binary(Gradient *g, OperatorId op, Value *a, Value *b) {
  if (a && b && (a->type == TYPE_F64) != (b->type == TYPE_F64)) { // f64 mixes with no other type
    a = gradient_cast(g, a, TYPE_F64);
    b = gradient_cast(g, b, TYPE_F64);
  }
  if (!a || !b) return NULL;
  const bool compares = op == OP_GreaterEqual || op == OP_Greater || op == OP_Equal || op == OP_NotEqual;
  Node *node = build_node(builder(g), op, 2, (Value *const[]){a, b});
  return made(g, build_one_of_type(builder(g), node, compares || a->type == b->type ? TYPE_NONE : TYPE_F32));
}

Value *gradient_scaled(Gradient *g, Value *v, double number) {
  return v ? gradient_binary(g, OP_Multiply, v, gradient_number(g, v->type, number)) : NULL;
}

Value *gradient_select(Gradient *g, Value *condition, Value *a, Value *b) {
  const bool is_f64 = a && b && (a->type == TYPE_F64 || b->type == TYPE_F64);
  a = gradient_cast(g, a, is_f64 ? TYPE_F64 : TYPE_F32);
  b = gradient_cast(g, b, is_f64 ? TYPE_F64 : TYPE_F32);
  if (!condition || !a || !b) return NULL;
  return made(g, build_one(builder(g), build_node(builder(g), OP_Select, 3, (Value *const[]){condition, a, b})));
}

Value *gradient_reduced(Gradient *g, OperatorId op, Value *v, uint32_t axes, bool keep_dims) {
  return v && axes ? made(g, build_reduce_mask(builder(g), op, v, axes, keep_dims)) : v;
}

Value *gradient_count(Gradient *g, Type type, const Shape *shape, uint32_t axes) {
  Shape counted = {.rank = 0};
  double count = 1;
  bool is_known = true;
  for (int i = 0; i < shape->rank; i++) {
    if (!(axes >> i & 1)) continue;
    counted.extent[counted.rank++] = shape->extent[i];
    is_known &= extent_is_literal(shape->extent[i]);
    count *= (double)extent_value(shape->extent[i]);
  }
  if (is_known) return gradient_number(g, type, count);
  return gradient_reduced(g, OP_ReduceSum, gradient_filled(g, type, &counted, 1), (1U << counted.rank) - 1, false);
}

Value *gradient_reshaped(Gradient *g, Value *v, const Shape *shape) {
  Node *node = v ? gradient_node(g, OP_StaticReshape, NULL) : NULL;
  if (!node) return NULL;
  if (!node_set_shape(g->graph, node, &v->shape, shape)) return gradient_out_of_memory(g);
  node_set_input(node, 0, v);
  return gradient_output(g, node, 0, v->type, shape);
}

Value *gradient_transposed(Gradient *g, Value *v, const int64_t *order, const Shape *shape) {
  Value *moved = gradient_apply(g, OP_StaticTranspose, NULL, v->type, shape, v, NULL, NULL);
  if (moved) gradient_set_list(g, moved->producer, "order", order, (size_t)shape->rank);
  return moved;
}

Value *gradient_transposed_back(Gradient *g, const Node *node, Value *v) {
  const Shape *src = &node->inputs[0]->shape;
  int axes[MAX_RANK];
  int64_t back[MAX_RANK];
  if (!v || !transpose_axes(node, src->rank, axes)) return NULL;
  for (int i = 0; i < src->rank; i++) back[axes[i]] = i;
  return gradient_transposed(g, v, back, src);
}

Value *gradient_in_shape(Gradient *g, Value *v, const Shape *shape) {
  return v && !shape_equals(&v->shape, shape) ? gradient_reshaped(g, v, shape) : v;
}

// Reduces the missing and the broadcast axes.
Value *gradient_summed(Gradient *g, Value *v, const Shape *shape) {
  if (!v) return NULL;
  int missing = v->shape.rank - shape->rank;
  uint32_t broadcast = 0;
  v = gradient_reduced(g, OP_ReduceSum, v, (1U << missing) - 1, false);
  for (int i = 0; v && i < shape->rank; i++)
    if (extent_equals(shape->extent[i], EXTENT(1)) && !extent_equals(v->shape.extent[i], EXTENT(1)))
      broadcast |= 1U << i;
  return gradient_reduced(g, OP_ReduceSum, v, broadcast, true);
}

bool gradient_is_statistic(const Value *v) {
  return v->producer && v->producer->op->outputs[v->output_slot].is_statistic;
}

bool gradient_is_needed(const Value *v) {
  return v && v->is_input && (v->uses || v->is_output);
}
