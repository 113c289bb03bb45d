// Makes nodes with their outputs and attributes.
#include "ir/graph/builder.h"

#include "ir/operators/infer.h"
#include "ir/operators/movement.h"

#include <string.h>

void *build_out_of_memory(Builder *b) {
  b->failed = true;
  error_out_of_memory(b->d);
  return NULL;
}

Value *build_name(Builder *b, Value *v, const char *name) {
  if (!v || !name) return NULL;
  v->name = arena_copy_text(&b->graph->arena, name, strlen(name));
  return v->name ? v : build_out_of_memory(b);
}

Node *build_bare_node(Builder *b, OperatorId id, uint32_t ninputs) {
  const Operator *op = &operators[id];
  Node *node = graph_add_node(b->graph, op, NULL, ninputs > op->ninputs ? ninputs : op->ninputs, op->noutputs);
  if (!node || (b->origin && !node_add_origin(b->graph, node, b->origin))) return build_out_of_memory(b);
  node->position = b->origin ? b->origin->position : b->at;
  node->comment = b->comment;
  b->comment = NULL;
  return node;
}

Node *build_node(Builder *b, OperatorId id, uint32_t ninputs, Value *const *inputs) {
  const Operator *op = &operators[id];
  for (uint32_t i = 0; i < ninputs || i < op->ninputs; i++)
    if ((i >= ninputs || !inputs[i]) && !op->inputs[i < op->ninputs ? i : op->ninputs - 1].is_optional) return NULL;
  Node *node = build_bare_node(b, id, ninputs);
  for (uint32_t i = 0; node && i < ninputs; i++)
    if (inputs[i]) node_set_input(node, i, inputs[i]);
  return node;
}

AttributeValue *build_set(Node *node, const char *name) {
  AttributeValue *value = node_attribute_slot(node, name);
  value->is_set = true;
  return value;
}

bool build_set_list(Builder *b, Node *node, const char *name, const int64_t *items, size_t count) {
  return node && (node_set_list(b->graph, node, name, items, count) || build_out_of_memory(b));
}

bool build_set_choice(Node *node, const char *name, const char *choice) {
  if (!node) return false;
  AttributeValue *value = build_set(node, name);
  const Attribute *row = &node->op->attributes[value - node->attributes];
  while (strcmp(row->choices[value->s64], choice) != 0) value->s64++;
  return true;
}

static const char *fresh_name(Builder *b, const char *otherwise) {
  return b->stem && !*b->stem ? b->stem : graph_fresh_name(b->graph, b->stem ? b->stem : otherwise);
}

Value *build_result(Builder *b, Node *node, uint32_t slot, Type type) {
  if (!node) return NULL;
  const char *name = fresh_name(b, node->op->outputs[slot].name);
  Value *v = name ? graph_add_value(b->graph, name, type, NULL) : NULL;
  if (!v) return build_out_of_memory(b);
  v->position = node->position;
  node_set_output(node, slot, v);
  return v;
}

bool build_infer(Builder *b, Node *node) {
  if (!node) return false;
  node_set_defaults(node);
  const bool ok = graph_infer_node(b->graph, node, b->d);
  b->failed |= !ok;
  return ok;
}

bool build_finish(Builder *b, Node *node) {
  return b->finish ? node && b->finish(b, node) : build_infer(b, node);
}

Value *build_one_of_type(Builder *b, Node *node, Type type) {
  Value *v = build_result(b, node, 0, type);
  return v && build_finish(b, node) ? v : NULL;
}

Value *build_one(Builder *b, Node *node) {
  return build_one_of_type(b, node, TYPE_NONE);
}

Value *build_number(Builder *b, Type type, const Shape *shape, double number) {
  const Shape scalar = {.rank = 0};
  Value *v = graph_add_number(b->graph, fresh_name(b, "constant"), type, shape ? shape : &scalar, number);
  if (!v) return build_out_of_memory(b);
  v->position = b->origin ? b->origin->position : b->at;
  return v;
}

Value *build_unary(Builder *b, OperatorId id, Value *a) {
  return build_one(b, build_node(b, id, 1, &a));
}

Value *build_binary(Builder *b, OperatorId id, Value *a, Value *c) {
  Value *const inputs[] = {a, c};
  return build_one(b, build_node(b, id, 2, inputs));
}

Value *build_cast(Builder *b, Value *v, Type type) {
  const TypeSet narrow = TYPE_BIT(TYPE_F16) | TYPE_BIT(TYPE_BF16);
  if (!v || v->type == type) return v;
  // TypeCast has no casts from one half float to another.
  if (TYPE_BIT(type) & narrow && TYPE_BIT(v->type) & narrow)
    v = build_one_of_type(b, build_node(b, OP_TypeCast, 1, &v), TYPE_F32);
  return build_one_of_type(b, build_node(b, OP_TypeCast, 1, &v), type);
}

Value *build_in_shape(Builder *b, Value *v, const Shape *shape) {
  if (!v || shape_equals(&v->shape, shape)) return v;
  Node *node = build_node(b, OP_StaticReshape, 1, &v);
  if (node && !node_set_shape(b->graph, node, &v->shape, shape)) return build_out_of_memory(b);
  return build_one(b, node);
}

Value *build_reshape(Builder *b, Value *v, const int64_t *shape, size_t rank) {
  Node *node = build_node(b, OP_StaticReshape, 1, &v);
  if (!build_set_list(b, node, "shape", shape, rank)) return NULL;
  build_set(node, "special_zero")->boolean = false;
  return build_one(b, node);
}

Value *build_slices(Builder *b, Value *v, const int64_t *starts, const int64_t *ends, const int64_t *axes,
                    const int64_t *steps, size_t count) {
  Node *node = build_node(b, OP_Slice, 1, &v);
  const bool ok = build_set_list(b, node, "starts", starts, count) && build_set_list(b, node, "ends", ends, count) &&
                  (!axes || build_set_list(b, node, "axes", axes, count)) &&
                  (!steps || build_set_list(b, node, "steps", steps, count));
  return ok ? build_one(b, node) : NULL;
}

Value *build_slice(Builder *b, Value *v, int axis, int64_t from, int64_t to) {
  return build_slices(b, v, &from, &to, &(int64_t){axis}, NULL, 1);
}

Value *build_pad(Builder *b, Value *v, const int64_t *begin, const int64_t *end, size_t rank, double number) {
  Node *node = build_node(b, OP_Pad, 1, &v);
  if (!build_set_list(b, node, "pads_begin", begin, rank) || !build_set_list(b, node, "pads_end", end, rank))
    return NULL;
  build_set(node, "value")->f32 = number;
  return build_one(b, node);
}

Value *build_reduce(Builder *b, OperatorId id, Value *v, const int64_t *axes, size_t count, bool keeps_axes) {
  Node *node = build_node(b, id, 1, &v);
  if (!build_set_list(b, node, "axes", axes, count)) return NULL;
  build_set(node, "keep_dims")->boolean = keeps_axes;
  return build_one(b, node);
}

Value *build_reduce_mask(Builder *b, OperatorId id, Value *v, uint32_t axes, bool keeps_axes) {
  int64_t items[MAX_RANK];
  size_t count = 0;
  for (int i = 0; v && i < v->shape.rank; i++)
    if (axes >> i & 1) items[count++] = i;
  return build_reduce(b, id, v, items, count, keeps_axes);
}

Value *build_along(Builder *b, OperatorId id, Value *v, int64_t axis) {
  Node *node = build_node(b, id, 1, &v);
  if (!node) return NULL;
  build_set(node, "axis")->s64 = axis;
  return build_one(b, node);
}

Value *build_with(Builder *b, OperatorId id, Value *v, const char *attribute, double number) {
  Node *node = build_node(b, id, 1, &v);
  if (!node) return NULL;
  build_set(node, attribute)->f32 = number;
  return build_one(b, node);
}

Value *build_all_reduce(Builder *b, Value *v, Reduction how) {
  Node *node = build_node(b, OP_AllReduce, 1, &v);
  if (!node) return NULL;
  build_set(node, "reduction")->s64 = how;
  return build_one(b, node);
}
