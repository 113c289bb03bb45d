// Rules of the elementwise operators.
#include "ir/elementwise.h"

#include "ir/rules.h"

#include <string.h>

double node_coefficient(const Node *node, const char *name) {
  double number = node_f32(node, name);
  return node->inputs[0]->type == TYPE_F64 ? number : (float)number;
}

bool infer_type_cast(Inference *inf, Node *node) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  if (dst->type == TYPE_NONE)
    return infer_error(inf, "%s: expected a declared type, as in {name: %s, type: bf16}", dst->name, dst->name);
  if (src->type == dst->type)
    return infer_error(inf, "%s and %s are both %s: expected different types", src->name, dst->name,
                       type_name(src->type));
  if (src->type != TYPE_F32 && dst->type != TYPE_F32 && src->type != TYPE_NONE)
    return infer_error(inf, "%s is %s and %s is %s: expected one of them to be f32", src->name, type_name(src->type),
                       dst->name, type_name(dst->type));
  return infer_elementwise_unary(inf, node);
}

// Both types alike, or f32 with a 16-bit float, which gives f32.
static bool infer_binary_type(Inference *inf, Node *node) {
  const Value *a = node->inputs[0], *b = node->inputs[1];
  if (a->type == TYPE_NONE || b->type == TYPE_NONE) return true;
  if (a->type == b->type) return infer_type(inf, node->outputs[0], a->type);
  const TypeSet narrow = TYPE_BIT(TYPE_F16) | TYPE_BIT(TYPE_BF16);
  if ((a->type == TYPE_F32 && (narrow & TYPE_BIT(b->type))) || (b->type == TYPE_F32 && (narrow & TYPE_BIT(a->type))))
    return infer_type(inf, node->outputs[0], TYPE_F32);
  return infer_error(inf, "%s is %s and %s is %s: expected one type, or f32 with f16 or bf16", a->name,
                     type_name(a->type), b->name, type_name(b->type));
}

bool infer_binary(Inference *inf, Node *node) {
  if (node_s64(node, "auto_broadcast") == BROADCAST_NONE) return infer_elementwise_unary(inf, node);
  return infer_broadcast(inf, node, 0);
}

bool infer_binary_arithmetic(Inference *inf, Node *node) {
  return infer_binary_type(inf, node) && infer_binary(inf, node);
}

bool infer_select(Inference *inf, Node *node) {
  if (node_s64(node, "auto_broadcast") == BROADCAST_NONE) return infer_elementwise_unary(inf, node);
  return infer_broadcast(inf, node, 1) && infer_broadcast_to(inf, node->inputs[0], node->outputs[0]);
}

static bool node_error(const Node *node, Diagnostics *d, const char *what) {
  char title[NODE_TITLE_BYTES];
  return error_at(d, node->position, "%s: %s", node_title(node, title), what);
}

bool check_clamp(Node *node, Diagnostics *d) {
  return node_f32(node, "min") <= node_f32(node, "max") || node_error(node, d, "min is above max");
}

bool check_elu_backward(Node *node, Diagnostics *d) {
  return !node_bool(node, "use_dst") || node_f32(node, "alpha") >= 0 ||
         node_error(node, d, "alpha is negative: expected at least 0 with use_dst");
}
