// Lowering of the elementwise operators: a formula each.
#include "passes/lower/lower.h"

#include <stdint.h>

static ExprId input(Lowering *l, const Node *node, uint32_t i) {
  return lower_value(l, node->inputs[i]);
}

// NaN passes: it is not greater than zero, so the comparison is the other way round.
void lower_ReLU(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  ExprId x = input(l, node, 0), zero = expr_constant(k, 0);
  lower_result(l, node, 0, expr_select(k, expr_binary(k, EXPR_GT, zero, x), zero, x), NULL);
}

void lower_ReLUBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  ExprId zero = expr_constant(k, 0), is_on = expr_binary(k, EXPR_GT, input(l, node, 0), zero);
  lower_result(l, node, 0, expr_select(k, is_on, input(l, node, 1), zero), NULL);
}

// What other nodes of the kernel see of an s32 is within its range; a store keeps to it by itself.
static ExprId saturated(Kernel *k, const Value *v, ExprId e) {
  if (v->type != TYPE_S32 || !v->uses) return e;
  ExprId least = expr_constant(k, INT32_MIN), greatest = expr_constant(k, INT32_MAX);
  e = expr_select(k, expr_binary(k, EXPR_GT, e, greatest), greatest, e);
  return expr_select(k, expr_binary(k, EXPR_GT, least, e), least, e);
}

#define BINARY(op_name, op)                                                                                            \
  void lower_##op_name(Lowering *l, const Node *node) {                                                                \
    ExprId e = expr_binary(l->kernel, op, input(l, node, 0), input(l, node, 1));                                       \
    lower_result(l, node, 0, saturated(l->kernel, node->outputs[0], e), NULL);                                         \
  }

BINARY(Add, EXPR_ADD)
BINARY(Subtract, EXPR_SUB)
BINARY(Multiply, EXPR_MUL)

// Narrowing shows in the value even when nothing is stored in between.
void lower_TypeCast(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  ExprId x = input(l, node, 0);
  Type to = node->outputs[0]->type;
  if (to == TYPE_F32 && k->is_f64) x = expr_unary(k, EXPR_ROUND_F32, x);
  if (to == TYPE_F16) x = expr_unary(k, EXPR_ROUND_F16, x);
  if (to == TYPE_BF16) x = expr_unary(k, EXPR_ROUND_BF16, x);
  lower_result(l, node, 0, x, NULL);
}
