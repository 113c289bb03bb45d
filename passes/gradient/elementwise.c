// Gradients of the elementwise operators.
#include "ir/operators/elementwise.h"

#include "passes/gradient/gradient.h"

#include <math.h>

// Gradients that are operators themselves. If such an operator can compute from src or dst, use_dst is chosen so that
// fewer values are saved.
static bool can_use_dst(const Node *node, const Operator *backward) {
  if (!backward->inputs[0].dst_name) return false;
  return node->op->id != OP_Elu || node_f32(node, "alpha") >= 0; // else dst does not determine src's sign
}

static void make_own(Gradient *g, const Node *node, Value *diff, OperatorId id) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  bool use_dst = can_use_dst(node, &operators[id]) && (!gradient_is_at_hand(g, src) || gradient_is_at_hand(g, dst));
  Value *given = gradient_saved(g, use_dst ? dst : src);
  Value *own = gradient_apply(g, id, node, src->type, &src->shape, given, diff, NULL);
  if (own && operators[id].inputs[0].dst_name) node_attribute_slot(own->producer, "use_dst")->boolean = use_dst;
  gradient_give(g, node, 0, own);
}

#define OWN(name) RULE(name, make_own(g, node, diff, OP_##name##Backward))

OWN(Abs)
OWN(Clamp)
OWN(Elu)
OWN(GELU)
OWN(HardSigmoid)
OWN(HardSwish)
OWN(Mish)
OWN(ReLU)
OWN(Sigmoid)
OWN(SoftPlus)
OWN(Sqrt)
OWN(Tanh)

// Abbreviations for rules: X and Y are the operands, DST is the result. Using one of these saves it.

#define X gradient_saved(g, node->inputs[0])
#define Y gradient_saved(g, node->inputs[1])
#define DST gradient_saved(g, node->outputs[0])
#define NUMBER(number) gradient_number(g, node->outputs[0]->type, number)
#define NUMBER_OF(v, number) ((v) ? gradient_number(g, (v)->type, number) : NULL)
#define ADD(a, b) gradient_binary(g, OP_Add, a, b)
#define SUB(a, b) gradient_binary(g, OP_Subtract, a, b)
#define MUL(a, b) gradient_binary(g, OP_Multiply, a, b)
#define DIV(a, b) gradient_binary(g, OP_Divide, a, b)
#define POWER(a, b) gradient_binary(g, OP_Power, a, b)
#define EQUAL(a, b) gradient_binary(g, OP_Equal, a, b)
#define GT(a, b) gradient_binary(g, OP_Greater, a, b)
#define GE(a, b) gradient_binary(g, OP_GreaterEqual, a, b)
#define SCALE(a, number) gradient_scaled(g, a, number)
#define SELECT(condition, a, b) gradient_select(g, condition, a, b)
#define GIVE(slot, gradient)                                                                                           \
  if (gradient_is_wanted(g, node->inputs[slot])) gradient_give(g, node, slot, gradient)

RULE(Cos, GIVE(0, SCALE(MUL(diff, gradient_unary(g, OP_Sin, X)), -1)))
RULE(Exp, GIVE(0, MUL(diff, DST)))
RULE(Log, GIVE(0, DIV(diff, X)))
RULE(Neg, GIVE(0, gradient_unary(g, OP_Neg, diff)))
// (diff * dst) * dst: diff * dst is between diff and the result, so it does not overflow if these do not. dst^2 may
// overflow.
RULE(Reciprocal, GIVE(0, MUL(MUL(SCALE(diff, -1), DST), DST)))
RULE(Sin, GIVE(0, MUL(diff, gradient_unary(g, OP_Cos, X))))
// Doubles last, as twice diff may overflow where the result does not.
RULE(Square, GIVE(0, SCALE(MUL(gradient_widened(g, diff), X), 2)))

static Value *power(Gradient *g, Value *x, double exponent) {
  Value *v = gradient_unary(g, OP_Pow, x);
  if (v) *node_attribute_slot(v->producer, "beta") = (AttributeValue){.is_set = true, .f32 = exponent};
  return v;
}

// 2 / sqrt(pi) * e^(-x^2), with no step rounded to a type narrower than f32. The factor 2 / sqrt(pi) is the sum of two
// f32: the rounding error of a single f32 would be visible next to a term that cancels the result.
GRADIENT(Erf) {
  const double high = (float)M_2_SQRTPI, low = M_2_SQRTPI - high;
  Value *square = gradient_unary(g, OP_Square, gradient_widened(g, X));
  Value *density = MUL(gradient_widened(g, diff), gradient_unary(g, OP_Exp, SCALE(square, -1)));
  GIVE(0, ADD(SCALE(density, high), SCALE(density, low)));
}

GRADIENT(LeakyReLU) {
  Value *slope = SCALE(diff, node_coefficient(node, "alpha"));
  GIVE(0, SELECT(GE(gradient_cast(g, NUMBER(0), node->inputs[0]->type), X), slope, diff));
}

// x^0 is 1 everywhere, even where x^-1 is infinite, so the gradient is 0.
GRADIENT(Pow) {
  double exponent = node_coefficient(node, "beta");
  Value *zeros = exponent == 0 ? gradient_filled(g, diff->type, &diff->shape, 0) : NULL;
  GIVE(0, zeros ? zeros : MUL(SCALE(diff, exponent), power(g, X, exponent - 1)));
}

// x clamped to [-bound, bound]; propagates NaN.
static Value *bounded(Gradient *g, Value *x, double bound) {
  Value *below = gradient_binary(g, OP_Maximum, NUMBER_OF(x, -bound), x);
  return gradient_binary(g, OP_Minimum, NUMBER_OF(x, bound), below);
}

// The derivative of x s(beta x) is s + beta x s', where s is the sigmoid. beta x is clamped: beyond the bound s' is 0,
// and 0 times an infinite argument would be NaN.
GRADIENT(Swish) {
  const double bound = 0x1p60, beta = node_coefficient(node, "beta");
  if (beta == 0) { // src / 2, even for an infinite src
    GIVE(0, SCALE(diff, 0.5));
    return;
  }
  Value *x = gradient_widened(g, X), *argument = bounded(g, beta == 1 ? x : SCALE(x, beta), bound);
  diff = gradient_widened(g, diff);
  if (!x) return;
  Value *slope = gradient_apply(g, OP_SigmoidBackward, NULL, x->type, &x->shape, argument, diff, NULL);
  if (slope) node_attribute_slot(slope->producer, "use_dst")->boolean = false;
  GIVE(0, ADD(MUL(diff, gradient_unary(g, OP_Sigmoid, argument)), MUL(argument, slope)));
}

// As in PyTorch, the derivative by the base is 0 where the exponent is 0, and the derivative by the exponent is 0 where
// the base is 0 and the exponent is not negative. The latter is also 0 where the power is 0: this is the limit, but the
// formula would give NaN, as 0 times an infinite logarithm.
GRADIENT(Power) {
  Value *base = gradient_widened(g, X), *exponent = gradient_widened(g, Y);
  if (!base || !exponent) return;
  Value *zero = gradient_number(g, base->type, 0), *one = gradient_number(g, base->type, 1);
  diff = gradient_widened(g, diff);
  GIVE(0, MUL(diff, SELECT(EQUAL(exponent, zero), zero, MUL(exponent, POWER(base, SUB(exponent, one))))));
  if (!gradient_is_wanted(g, node->inputs[1])) return;
  Value *result = POWER(base, exponent), *slope = MUL(result, gradient_unary(g, OP_Log, base));
  slope = SELECT(EQUAL(result, zero), zero, slope);
  GIVE(1, MUL(diff, SELECT(EQUAL(base, zero), SELECT(GE(exponent, zero), zero, slope), slope)));
}

// Widens the gradient of a result to the type of the node's widest operand, so that products with the gradient are not
// rounded to a narrower type.
static Value *in_widest_type(Gradient *g, const Node *node, Value *diff) {
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (type_widens(node->outputs[0]->type, node->inputs[i]->type))
      diff = gradient_cast(g, diff, node->inputs[i]->type);
  return diff;
}

GRADIENT(Add) {
  diff = in_widest_type(g, node, diff);
  GIVE(0, diff);
  GIVE(1, diff);
}

GRADIENT(Subtract) {
  diff = in_widest_type(g, node, diff);
  GIVE(0, diff);
  GIVE(1, SCALE(diff, -1));
}

GRADIENT(Multiply) {
  diff = in_widest_type(g, node, diff);
  GIVE(0, MUL(diff, Y));
  GIVE(1, MUL(diff, X));
}

GRADIENT(Divide) {
  diff = in_widest_type(g, node, diff);
  Value *quotient = DIV(diff, Y);
  GIVE(0, quotient);
  GIVE(1, SCALE(MUL(quotient, DST), -1));
}

// The derivative by the divisor is minus the quotient, rounded towards 0.
GRADIENT(Mod) {
  GIVE(0, diff);
  GIVE(1, MUL(diff, DIV(SUB(DST, X), Y)));
}

// The gradient of Maximum and Minimum goes to the operand that equals the result; to the second operand if both are
// equal or one is NaN.
static void make_choice(Gradient *g, const Node *node, Value *diff, Value *takes_first) {
  Value *zero = NUMBER(0);
  GIVE(0, SELECT(takes_first, diff, zero));
  GIVE(1, SELECT(takes_first, zero, diff));
}

RULE(Maximum, make_choice(g, node, diff, GT(X, Y)))
RULE(Minimum, make_choice(g, node, diff, GT(Y, X)))

GRADIENT(SquaredDifference) {
  Value *slope = SCALE(MUL(gradient_widened(g, diff), SUB(X, Y)), 2);
  GIVE(0, slope);
  GIVE(1, SCALE(slope, -1));
}

GRADIENT(Select) {
  Value *zero = NUMBER(0);
  GIVE(1, SELECT(X, diff, zero));
  GIVE(2, SELECT(X, zero, diff));
}

GRADIENT(BiasAdd) {
  GIVE(0, diff);
  const Value *bias = node->inputs[1];
  if (!gradient_is_wanted(g, bias)) return;
  gradient_give(g, node, 1, gradient_apply(g, OP_BiasAddBackward, node, bias->type, &bias->shape, diff, NULL, NULL));
}

// PReLUBackward has no per_channel_broadcast: a vector of slopes is always along the channels. For slopes along the
// last axis, data_format NXC makes the last axis the channel axis.
GRADIENT(PReLU) {
  const Value *src = node->inputs[0], *slope = node->inputs[1];
  Value *x = X, *y = Y, *own = gradient_apply(g, OP_PReLUBackward, node, src->type, &src->shape, x, y, diff);
  if (!own) return;
  if (!node_bool(node, "per_channel_broadcast")) node_attribute_slot(own->producer, "data_format")->s64 = 0;
  gradient_give(g, node, 0, own);
  gradient_give(g, node, 1, gradient_output(g, own->producer, 1, slope->type, &slope->shape));
}

RULE(TypeCast, gradient_give(g, node, 0, diff))

#define BOOLEAN ZERO("the result is boolean")
NO_GRADIENT(Round, ZERO_STEPS("the result is constant between halves"))
NO_GRADIENT(Equal, BOOLEAN)
NO_GRADIENT(NotEqual, BOOLEAN)
NO_GRADIENT(Less, BOOLEAN)
NO_GRADIENT(LessEqual, BOOLEAN)
NO_GRADIENT(Greater, BOOLEAN)
NO_GRADIENT(GreaterEqual, BOOLEAN)
NO_GRADIENT(LogicalAnd, BOOLEAN)
NO_GRADIENT(LogicalOr, BOOLEAN)
NO_GRADIENT(LogicalNot, BOOLEAN)

NO_GRADIENT(AbsBackward, SECOND_ORDER)
NO_GRADIENT(BiasAddBackward, SECOND_ORDER)
NO_GRADIENT(ClampBackward, SECOND_ORDER)
NO_GRADIENT(EluBackward, SECOND_ORDER)
NO_GRADIENT(GELUBackward, SECOND_ORDER)
NO_GRADIENT(HardSigmoidBackward, SECOND_ORDER)
NO_GRADIENT(HardSwishBackward, SECOND_ORDER)
NO_GRADIENT(MishBackward, SECOND_ORDER)
NO_GRADIENT(PReLUBackward, SECOND_ORDER)
NO_GRADIENT(ReLUBackward, SECOND_ORDER)
NO_GRADIENT(SigmoidBackward, SECOND_ORDER)
NO_GRADIENT(SoftPlusBackward, SECOND_ORDER)
NO_GRADIENT(SqrtBackward, SECOND_ORDER)
NO_GRADIENT(TanhBackward, SECOND_ORDER)
