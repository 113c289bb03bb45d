// Inference and check functions of elementwise operators.
#include "ir/operators/elementwise.h"

#include "ir/operators/norm.h"
#include "ir/operators/rules.h"

#include <math.h>

double node_coefficient(const Node *node, const char *name) {
  double number = node_f32(node, name);
  return node->inputs[0]->type == TYPE_F64 ? number : (float)number;
}

// Whether operands with this letter may be floats, so that they are numbers to compute with, not a seed or a count.
static bool is_arithmetic(const Operator *op, char letter) {
  const TypeVariable *t = op->types;
  while (t->letter && t->letter != letter) t++;
  return t->types & TYPES_FLOAT;
}

bool node_computes_in_s64(const Node *node) {
  const Operator *op = node->op;
  // The low bits of a 64-bit integer are lost in f64, and -1 becomes 2^64 - 1. Casts to floats round to f64 first.
  if (op->id == OP_TypeCast) {
    const TypeSet from = TYPE_BIT(node->inputs[0]->type), to = TYPE_BIT(node->outputs[0]->type);
    return from & TYPES_INTEGER && to & TYPES_INTEGER && (from & TYPES_64_BITS || to & TYPE_BIT(TYPE_U64));
  }
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->inputs[i] && TYPES_64_BITS & TYPE_BIT(node->inputs[i]->type) && is_arithmetic(op, op->inputs[i].type))
      return true;
  return false;
}

int operand_channel_axis(const Node *node, const Operand *row, const Value *operand) {
  int rank = node->inputs[0]->shape.rank;
  if (!row->is_per_channel || operand->shape.rank != 1 || rank < 2) return -1;
  if (node->op->id == OP_PReLU && !node_bool(node, "per_channel_broadcast")) return -1;
  return node_channel_axis(node, rank);
}

uint32_t operand_axes(const Node *node, const Operand *row, const Value *operand) {
  int channel_axis = operand_channel_axis(node, row, operand);
  uint32_t axes = 0;
  for (int i = 0; i < operand->shape.rank; i++) {
    int axis = channel_axis >= 0 ? channel_axis : node->inputs[0]->shape.rank - operand->shape.rank + i;
    if (!extent_equals(operand->shape.extent[i], EXTENT(1))) axes |= 1U << axis;
  }
  return axes;
}

bool infer_type_cast(Inference *inf, Node *node) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  if (dst->type == TYPE_NONE)
    return infer_error(inf, "%s: expected a declared type, as in {name: %s, type: bf16}", dst->name, dst->name);
  if (src->type == dst->type)
    return infer_error(inf, "%s and %s are both %s: expected different types", src->name, dst->name,
                       type_name(src->type));
  const TypeSet halves = TYPE_BIT(TYPE_F16) | TYPE_BIT(TYPE_BF16);
  if (TYPE_BIT(src->type) & halves && TYPE_BIT(dst->type) & halves)
    return infer_error(inf, "%s is %s and %s is %s: expected one of them to be f32 or f64", src->name,
                       type_name(src->type), dst->name, type_name(dst->type));
  return infer_elementwise_unary(inf, node);
}

// Whether the result type is declared and the types may be mixed: f32 and 16-bit floats.
static bool is_declared_combination(Type a, Type b, Type dst) {
  const TypeSet mixed = TYPE_BIT(TYPE_F32) | TYPE_BIT(TYPE_F16) | TYPE_BIT(TYPE_BF16);
  return dst != TYPE_NONE && mixed & TYPE_BIT(a) && mixed & TYPE_BIT(b) && mixed & TYPE_BIT(dst);
}

// Equal types give the same type, f32 with a 16-bit float gives f32, unless another result type is declared.
static bool infer_binary_type(Inference *inf, Node *node) {
  const Value *a = node->inputs[0], *b = node->inputs[1];
  if (a->type == TYPE_NONE || b->type == TYPE_NONE) return true;
  if (is_declared_combination(a->type, b->type, node->outputs[0]->type)) return true;
  if (a->type == b->type) return infer_type(inf, node->outputs[0], a->type);
  const TypeSet narrow = TYPE_BIT(TYPE_F16) | TYPE_BIT(TYPE_BF16);
  bool is_a_narrow = narrow & TYPE_BIT(a->type), is_b_narrow = narrow & TYPE_BIT(b->type);
  if ((a->type == TYPE_F32 && is_b_narrow) || (b->type == TYPE_F32 && is_a_narrow))
    return infer_type(inf, node->outputs[0], TYPE_F32);
  return infer_error(inf, "%s is %s and %s is %s: expected one type, or f32 with f16 or bf16%s", a->name,
                     type_name(a->type), b->name, type_name(b->type),
                     is_a_narrow && is_b_narrow ? ", or a result that is declared as f32" : "");
}

bool infer_binary(Inference *inf, Node *node) {
  if (node_s64(node, "auto_broadcast") == BROADCAST_NONE) return infer_elementwise_unary(inf, node);
  return infer_broadcast(inf, node, 0);
}

bool infer_binary_arithmetic(Inference *inf, Node *node) {
  return infer_binary_type(inf, node) && infer_binary(inf, node);
}

// The bias is a vector with one element for each channel of the data.
static bool infer_bias(Inference *inf, Node *node, Value *data, Value *bias) {
  if (!infer_rank(inf, bias, 1)) return false;
  if (data->shape.rank < 0) return true;
  return infer_rank_at_least(inf, data, 2) &&
         infer_same_extent(inf, bias, 0, data, node_channel_axis(node, data->shape.rank));
}

bool infer_bias_add(Inference *inf, Node *node) {
  return infer_same_shape(inf, node->inputs[0], node->outputs[0]) &&
         infer_bias(inf, node, node->inputs[0], node->inputs[1]);
}

bool infer_bias_add_backward(Inference *inf, Node *node) {
  return infer_bias(inf, node, node->inputs[0], node->outputs[0]);
}

// A vector of slopes has one element for each channel, or a single element.
static bool infer_slope(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *slope = node->inputs[1];
  if (slope->shape.rank < 0) return true;
  if (!infer_rank_at_least(inf, slope, 1)) return false;
  if (src->shape.rank < 0) return true;
  int axis = operand_channel_axis(node, &node->op->inputs[1], slope);
  return axis < 0 ? infer_broadcast_to(inf, slope, src) : infer_broadcast_extent(inf, slope, 0, src, axis);
}

bool infer_prelu(Inference *inf, Node *node) {
  return infer_same_shape(inf, node->inputs[0], node->outputs[0]) && infer_slope(inf, node);
}

bool infer_prelu_backward(Inference *inf, Node *node) {
  return infer_same_shape(inf, node->inputs[0], node->inputs[2]) &&
         infer_same_shape(inf, node->inputs[0], node->outputs[0]) &&
         infer_same_shape(inf, node->inputs[1], node->outputs[1]) && infer_slope(inf, node);
}

bool check_clamp(Node *node, Diagnostics *d) {
  char title[NODE_TITLE_BYTES];
  double min = node_f32(node, "min"), max = node_f32(node, "max");
  if (isinf(min) && isinf(max))
    return error_at(d, node->position, "%s: min and max: expected a finite number for at least one of them",
                    node_title(node, title));
  return min <= max || error_at(d, node->position, "%s: min: expected at most max, which is %g, found %g",
                                node_title(node, title), max, min);
}

// With a negative alpha dst is positive for negative and positive src, so the gradient cannot be computed from dst.
bool check_elu_backward(Node *node, Diagnostics *d) {
  char title[NODE_TITLE_BYTES];
  double alpha = node_f32(node, "alpha");
  return alpha >= 0 || !node_bool(node, "use_dst") ||
         error_at(d, node->position, "%s: alpha: expected at least 0 with use_dst, found %g", node_title(node, title),
                  alpha);
}
