// Replaces each Quantize and Dequantize that has several scales by DynamicQuantize and DynamicDequantize with constant
// operands. Lowering relies on this pass, as it supports only a single scale as an attribute.
#include "passes/rewrite/passes.h"

#include "ir/operators/operator.h"

// A constant of shape [count] with the elements number(list, i); NULL: out of memory.
static Value *add_vector(Graph *g, const char *stem, Type type, size_t count, const AttributeValue *list,
                         double (*number)(const AttributeValue *list, size_t i)) {
  const Shape shape = {.rank = 1, .extent = {EXTENT((int64_t)count)}};
  const char *name = graph_fresh_name(g, stem);
  Value *v = name ? graph_add_value(g, name, type, &shape) : NULL;
  Constant *constant = ARENA_NEW(&g->arena, Constant);
  void *data = arena_array(&g->arena, count, type_nbytes(type));
  if (!v || !constant || !data) return NULL;
  for (size_t i = 0; i < count; i++) type_store(type, data, i, number(list, i));
  constant->data = data;
  v->constant = constant;
  return v;
}

static double scale_at(const AttributeValue *list, size_t i) {
  return list->numbers.items[i];
}

static double zp_at(const AttributeValue *list, size_t i) {
  return (double)list->list.items[i];
}

// The narrowest type that holds all zero points of the list, because a kernel with an s32 operand computes in f64.
// TYPE_NONE: all are 0, so no operand is needed.
static Type zps_type(const AttributeValue *list) {
  static const Type types[] = {TYPE_S8, TYPE_U8};
  bool has_any = false;
  for (size_t i = 0; i < list->list.count; i++) has_any |= list->list.items[i] != 0;
  for (size_t t = 0; t < sizeof types / sizeof *types && has_any; t++) {
    bool fits = true;
    for (size_t i = 0; i < list->list.count; i++) fits &= type_round(types[t], zp_at(list, i)) == zp_at(list, i);
    if (fits) return types[t];
  }
  return has_any ? TYPE_S32 : TYPE_NONE;
}

// Replaces node i. False: out of memory.
static bool replace(Graph *g, size_t i) {
  Node *node = g->nodes[i];
  const AttributeValue *scales = node_attribute(node, "scales"), *zps = node_attribute(node, "zps");
  const Operator *op = &operators[node->op->id == OP_Quantize ? OP_DynamicQuantize : OP_DynamicDequantize];
  size_t count = scales->numbers.count;
  Value *src = node->inputs[0], *dst = node->outputs[0];
  Value *scale = add_vector(g, "scales", TYPE_F32, count, scales, scale_at);
  const Type type = zps_type(zps);
  Value *zp = type ? add_vector(g, "zps", type, count, zps, zp_at) : NULL;
  Node *made = graph_add_node(g, op, NULL, op->ninputs, op->noutputs);
  if (!scale || (type && !zp) || !made || !node_add_origin(g, made, node)) return false;
  *node_attribute_slot(made, "qtype") = *node_attribute(node, "qtype");
  *node_attribute_slot(made, "axis") = *node_attribute(node, "axis");
  node_set_defaults(made);
  node_set_input(node, 0, NULL);
  node_set_output(node, 0, NULL);
  node_set_input(made, 0, src);
  node_set_input(made, 1, scale);
  node_set_input(made, 2, zp);
  node_set_output(made, 0, dst);
  made->index = (uint32_t)i;
  g->nodes[i] = made;
  g->nnodes--; // the new node was appended, and is now at i
  return true;
}

bool pass_quantize_scales(Graph *g, PassContext *c) {
  bool changed = false;
  for (size_t i = 0; i < g->nnodes && !c->failed; i++) {
    bool has_list = g->nodes[i]->op->id == OP_Quantize || g->nodes[i]->op->id == OP_Dequantize;
    if (!has_list || node_attribute(g->nodes[i], "scales")->numbers.count == 1) continue;
    changed = true;
    if (replace(g, i)) continue;
    pass_out_of_memory(c);
  }
  return changed;
}
