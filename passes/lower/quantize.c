// Lowers quantisation. Attributes have a single scale and zero point here: pass quantize-scales has turned longer lists
// into constant tensors, and the node into its dynamic form.
#include "ir/operators/quantize.h"

#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

#include <assert.h>
#include <math.h>

enum { SCALES = 1, ZPS };

// Rounds to an integer and saturates as a store to `type` does, because other nodes of the kernel may use the value
// before the store.
static ExprId rounded(Kernel *k, Type type, ExprId e) {
  if (TYPE_BIT(type) & TYPES_F8) return e;
  double least = type_round(type, -INFINITY), greatest = type_round(type, INFINITY);
  ExprId number = SELECT(EQ(e, e), e, NUMBER(0));
  ExprId within = MIN(NUMBER(greatest), MAX(NUMBER(least), number));
  return ADD(ROUND(within), NUMBER(0)); // no integer is -0
}

static void lower_quantized(Lowering *l, const Node *node, ExprId scale, ExprId zp) {
  Kernel *k = l->kernel;
  ExprId e = DIV(lower_value(l, node->inputs[0]), scale);
  lower_result(l, node, 0, rounded(k, node->outputs[0]->type, zp ? ADD(e, zp) : e), NULL);
}

// dst = (src - zp) * scale
static void lower_dequantized(Lowering *l, const Node *node, ExprId scale, ExprId zp) {
  Kernel *k = l->kernel;
  ExprId src = lower_value(l, node->inputs[0]);
  lower_result(l, node, 0, MUL(zp ? SUB(src, zp) : src, scale), NULL);
}

static ExprId static_scale(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const AttributeValue *scales = node_attribute(node, "scales");
  assert(scales->numbers.count == 1);
  return NUMBER((float)scales->numbers.items[0]);
}

static ExprId static_zp(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  const AttributeValue *zps = node_attribute(node, "zps");
  return zps->list.count && zps->list.items[0] ? NUMBER(zps->list.items[0]) : 0;
}

// The index of a scale or zero point that several indices along the axis share.
static ExprId shared_index(Lowering *l, int axis, int64_t step, int64_t period) {
  Kernel *k = l->kernel;
  ExprId index = lower_index(l, axis);
  ExprId whole = FLOOR(DIV(index, NUMBER(period ? period : step)));
  return period ? FMA(NUMBER(-period), whole, index) : whole;
}

// Loads the scale or zero point in `slot`, by channel or by block; 0: the node has no such operand.
static ExprId operand(Lowering *l, const Node *node, uint32_t slot) {
  const Value *v = node->inputs[slot];
  Kernel *k = l->kernel;
  ExprId offset = 0, is_beyond = 0;
  Strides strides = {0};
  int rank = node->inputs[0]->shape.rank;
  if (!v) return 0;
  if (l->value_expr[v->index]) return l->value_expr[v->index];
  const Strides own = strides_of(&v->shape, &v->layout);
  const int64_t period = scaling_period(node, &v->shape);
  for (int axis = 0; axis < rank; axis++) {
    int64_t step;
    int of = scaling_axis(node, shape_nelems(&v->shape), axis, &step);
    if (of < 0 || extent_value(v->shape.extent[of]) == 1) continue;
    if (step == 1 && !period) {
      strides.stride[axis] = own.stride[of];
      strides.monomial[axis] = own.monomial[of];
      continue;
    }
    ExprId index = shared_index(l, axis, step, period);
    if (period) is_beyond = GE(lower_index(l, axis), NUMBER(period));
    kernel_close(k, own.monomial[of]); // the offset is a float, which is exact only for some values of the dim
    offset = offset ? FMA(NUMBER(own.stride[of]), index, offset) : MUL(NUMBER(own.stride[of]), index);
  }
  ExprId number = lower_strided_load(l, v, &strides, rank, offset);
  return is_beyond && slot == ZPS ? SELECT(is_beyond, NUMBER(0), number) : number;
}

LOWER(Quantize, lower_quantized(l, node, static_scale(l, node), static_zp(l, node)))
LOWER(Dequantize, lower_dequantized(l, node, static_scale(l, node), static_zp(l, node)))
LOWER(DynamicQuantize, lower_quantized(l, node, operand(l, node, SCALES), operand(l, node, ZPS)))
LOWER(DynamicDequantize, lower_dequantized(l, node, operand(l, node, SCALES), operand(l, node, ZPS)))
