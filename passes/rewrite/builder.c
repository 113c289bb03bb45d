// Builds nodes with their outputs and attributes.
#include "passes/rewrite/builder.h"

#include "ir/operators/infer.h"
#include "ir/operators/movement.h"

Node *builder_add_node(Builder *b, OperatorId id, const Value *stands_for) {
  const Operator *op = &operators[id];
  Node *node = graph_add_node(b->graph, op, NULL, op->ninputs, op->noutputs);
  if (!node || !node_add_origin(b->graph, node, stands_for->producer)) b->out_of_memory = true;
  else node->position = stands_for->producer->position;
  return b->out_of_memory ? NULL : node;
}

Value *builder_add_output(Builder *b, Node *node, uint32_t slot, Type type) {
  const char *name = graph_fresh_name(b->graph, node->op->outputs[slot].name);
  Value *v = name ? graph_add_value(b->graph, name, type, NULL) : NULL;
  if (!v) b->out_of_memory = true;
  else node_set_output(node, slot, v);
  return v;
}

bool builder_finish_node(Builder *b, Node *node) {
  if (b->out_of_memory) return false;
  node_set_defaults(node);
  return graph_infer_node(b->graph, node, &b->refusals);
}

AttributeValue *node_attribute_to_set(Node *node, const char *name) {
  AttributeValue *value = node_attribute_slot(node, name);
  value->is_set = true;
  return value;
}

bool builder_set_list(Builder *b, Node *node, const char *name, const int64_t *items, int count) {
  const bool ok = node_set_list(b->graph, node, name, items, (size_t)count);
  b->out_of_memory |= !ok;
  return ok;
}

Value *builder_add_unary(Builder *b, OperatorId id, Value *src, const Value *stands_for) {
  Node *node = builder_add_node(b, id, stands_for);
  Value *v = node ? builder_add_output(b, node, 0, TYPE_NONE) : NULL;
  if (!v) return NULL;
  node_set_input(node, 0, src);
  return builder_finish_node(b, node) ? v : NULL;
}

Value *builder_add_constant(Builder *b, const Shape *shape, Type type, double number) {
  Value *v = graph_add_number(b->graph, graph_fresh_name(b->graph, "constant"), type, shape, number);
  if (!v) b->out_of_memory = true;
  return v;
}

Node *builder_add_reshape(Builder *b, Value *v, const Shape *shape, const Value *stands_for) {
  Node *node = builder_add_node(b, OP_StaticReshape, stands_for);
  if (!node) return NULL;
  if (!node_set_shape(b->graph, node, &v->shape, shape)) {
    b->out_of_memory = true;
    return NULL;
  }
  node_set_input(node, 0, v);
  return node;
}

Value *builder_in_shape(Builder *b, Value *v, const Shape *shape, const Value *stands_for) {
  if (!v || shape_equals(&v->shape, shape)) return v;
  Node *node = builder_add_reshape(b, v, shape, stands_for);
  bool ok = node && builder_add_output(b, node, 0, TYPE_NONE) && builder_finish_node(b, node);
  return ok ? node->outputs[0] : NULL;
}
