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

#define PASSING(name) PASSING_RULE(name, make_own(g, node, diff, OP_##name##Backward))

PASSING(Abs)
PASSING(Clamp)
OWN(Elu)
OWN(GELU)
PASSING(HardSigmoid)
OWN(HardSwish)
OWN(Mish)
PASSING(ReLU)
OWN(Sigmoid)
OWN(SoftPlus)
POLE_RULE(Sqrt, make_own(g, node, diff, OP_SqrtBackward))
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
POLE_RULE(Exp, GIVE(0, MUL(diff, DST)))
POLE_RULE(Log, GIVE(0, DIV(diff, X)))
PASSING_RULE(Neg, GIVE(0, gradient_unary(g, OP_Neg, diff)))
// (diff * dst) * dst: diff * dst is between diff and the result, so it does not overflow if these do not. dst^2 may
// overflow.
POLE_RULE(Reciprocal, GIVE(0, MUL(MUL(SCALE(diff, -1), DST), DST)))
RULE(Sin, GIVE(0, MUL(diff, gradient_unary(g, OP_Cos, X))))
// Doubles last, as twice diff may overflow where the result does not.
RULE(Square, GIVE(0, SCALE(MUL(gradient_widened(g, diff), X), 2)))

static Value *power(Gradient *g, Value *x, double exponent) {
  Value *v = gradient_unary(g, OP_Pow, x);
  if (v) *node_attribute_slot(v->producer, "beta") = (AttributeValue){.is_set = true, .f32 = exponent};
  return v;
}

// v * number. The rounding error of a single f32 would be visible next to a term that cancels the result.
static Value *scaled_precisely(Gradient *g, Value *v, double number) {
  const double high = (float)number;
  return ADD(SCALE(v, high), SCALE(v, number - high));
}

// 2 / sqrt(pi) * e^(-x^2), with no step rounded to a type narrower than f32.
GRADIENT(Erf) {
  Value *square = gradient_unary(g, OP_Square, gradient_widened(g, X));
  Value *density = MUL(gradient_widened(g, diff), gradient_unary(g, OP_Exp, SCALE(square, -1)));
  GIVE(0, scaled_precisely(g, density, M_2_SQRTPI));
}

GRADIENT(LeakyReLU) {
  Value *slope = SCALE(diff, node_coefficient(node, "alpha"));
  GIVE(0, SELECT(GE(gradient_cast(g, NUMBER(0), node->inputs[0]->type), X), slope, diff));
}

// x^0 is 1 everywhere, even where x^-1 is infinite, so the gradient is 0.
WITH_POLE(Pow) {
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
WITH_POLE(Power) {
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

PASSES_ON(Add) {
  diff = in_widest_type(g, node, diff);
  GIVE(0, diff);
  GIVE(1, diff);
}

PASSES_ON(Subtract) {
  diff = in_widest_type(g, node, diff);
  GIVE(0, diff);
  GIVE(1, SCALE(diff, -1));
}

GRADIENT(Multiply) {
  diff = in_widest_type(g, node, diff);
  GIVE(0, MUL(diff, Y));
  GIVE(1, MUL(diff, X));
}

WITH_POLE(Divide) {
  diff = in_widest_type(g, node, diff);
  Value *quotient = DIV(diff, Y);
  GIVE(0, quotient);
  GIVE(1, SCALE(MUL(quotient, DST), -1));
}

// The derivative by the divisor is minus the quotient, rounded towards 0.
WITH_POLE(Mod) {
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

PASSING_RULE(Maximum, make_choice(g, node, diff, GT(X, Y)))

PASSING_RULE(Minimum, make_choice(g, node, diff, GT(Y, X)))

GRADIENT(SquaredDifference) {
  Value *slope = SCALE(MUL(gradient_widened(g, diff), SUB(X, Y)), 2);
  GIVE(0, slope);
  GIVE(1, SCALE(slope, -1));
}

PASSES_ON(Select) {
  Value *zero = NUMBER(0);
  GIVE(1, SELECT(X, diff, zero));
  GIVE(2, SELECT(X, zero, diff));
}

PASSES_ON(BiasAdd) {
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

PASSING_RULE(TypeCast, gradient_give(g, node, 0, diff))

GRADIENT_WITH(RoundThrough, .passes_on = true, .is_identity = true) {
  gradient_give(g, node, 0, diff);
}

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

// Gradients of gradients. These operators are linear in diff_dst, so the gradient by it is the operator itself, of
// diff. By src, or by dst with use_dst, the gradient is diff * diff_dst times the next derivative.

// The operator itself, with the same src or dst, and v in place of diff_dst.
static Value *again(Gradient *g, const Node *node, Value *x, Value *v) {
  return x ? gradient_apply(g, node->op->id, node, x->type, &x->shape, x, gradient_cast(g, v, x->type), NULL) : NULL;
}

#define DIFFS MUL(gradient_widened(g, diff), gradient_widened(g, Y))
#define WIDE_X gradient_widened(g, X)
#define OF_BACKWARD(name, by_src)                                                                                      \
  GRADIENT(name##Backward) {                                                                                           \
    GIVE(1, again(g, node, X, diff));                                                                                  \
    GIVE(0, by_src);                                                                                                   \
  }
#define OF_STEPS(name)                                                                                                 \
  GRADIENT_WITH(name##Backward, .passes_on = true,                                                                     \
                .exceptions = {{"src", ZERO("its derivative is constant beside "                                       \
                                            "kinks")}}) {                                                              \
    GIVE(1, again(g, node, X, diff));                                                                                  \
  }

OF_STEPS(Abs)
OF_STEPS(Clamp)
OF_STEPS(HardSigmoid)
OF_STEPS(ReLU)

static Value *slope_of(Gradient *g, OperatorId id, Value *x, Value *diff) { // from x, not from the activation's result
  Value *slope = x ? gradient_apply(g, id, NULL, x->type, &x->shape, x, diff, NULL) : NULL;
  if (slope) node_attribute_slot(slope->producer, "use_dst")->boolean = false;
  return slope;
}

// The sigmoid s has the derivative s (1 - s), and this -s (1 - s) tanh(x / 2).
static Value *sigmoid_twice(Gradient *g, const Node *node, Value *x, Value *diffs) {
  if (node_bool(node, "use_dst")) return MUL(diffs, SUB(NUMBER_OF(x, 1), SCALE(x, 2)));
  return MUL(again(g, node, x, diffs), SCALE(gradient_unary(g, OP_Tanh, SCALE(x, 0.5)), -1));
}

static Value *tanh_twice(Gradient *g, const Node *node, Value *x, Value *diffs) {
  if (node_bool(node, "use_dst")) return SCALE(MUL(diffs, x), -2);
  return MUL(again(g, node, x, diffs), SCALE(gradient_unary(g, OP_Tanh, x), -2));
}

static Value *sqrt_twice(Gradient *g, const Node *node, Value *x, Value *diffs) {
  return DIV(again(g, node, x, diffs), SCALE(x, node_bool(node, "use_dst") ? -1 : -2));
}

static Value *elu_twice(Gradient *g, const Node *node, Value *x, Value *diffs) {
  Value *zero = NUMBER_OF(x, 0), *bend = node_bool(node, "use_dst") ? diffs : again(g, node, x, diffs);
  return SELECT(GT(x, zero), zero, bend);
}

static Value *hard_swish_twice(Gradient *g, Value *x, Value *diffs) {
  Value *zero = NUMBER_OF(x, 0);
  return SELECT(GT(NUMBER_OF(x, 3), gradient_unary(g, OP_Abs, x)), DIV(diffs, NUMBER_OF(x, 3)), zero);
}

// Beyond this bound further derivatives of GELU and Mish are below f64's least number, and 0 times an infinite x would
// be NaN.
static const double curved = 1024;

// The density p(x) of the normal distribution has the derivative -x p, so P + x p has p (2 - x^2). With tanh, GELU is
// x s(t) with the sigmoid s and t = x (scale + c x^2); x s(t) has s + x s' t', and this s' (2 t' + x t'' - x t'^2
// tanh(t / 2)).
static Value *gelu_twice(Gradient *g, const Node *node, Value *x, Value *diffs) {
  const double scale = 2 * M_2_SQRTPI * M_SQRT1_2, cubic = 0.044715, density = M_2_SQRTPI * M_SQRT1_2 / 2;
  Value *near = bounded(g, x, curved), *square = near ? gradient_unary(g, OP_Square, near) : NULL;
  if (node_s64(node, "mode") != GELU_TANH) {
    Value *p = scaled_precisely(g, gradient_unary(g, OP_Exp, SCALE(square, -0.5)), density);
    return MUL(diffs, MUL(p, SUB(NUMBER_OF(x, 2), square)));
  }
  const double high = (float)scale;
  Value *bent = scaled_precisely(g, square, scale * cubic); // c x^2
  Value *whole = ADD(ADD(bent, NUMBER_OF(x, high)), NUMBER_OF(x, scale - high)), *t = MUL(near, whole);
  Value *by_x = gradient_unary(g, OP_Square, ADD(whole, SCALE(bent, 2)));
  Value *bend = MUL(near, MUL(gradient_unary(g, OP_Tanh, SCALE(t, 0.5)), by_x));
  return slope_of(g, OP_SigmoidBackward, t, MUL(diffs, SUB(ADD(SCALE(whole, 2), SCALE(bent, 10)), bend)));
}

// Mish is x t with t = tanh(l), l = ln(1 + e^x). The derivative of l is the sigmoid s, so x t has t + x s (1 - t^2),
// and this s (1 - t^2) (2 + x (1 - s - 2 s t)).
static Value *mish_twice(Gradient *g, Value *x, Value *diffs) {
  Value *near = bounded(g, x, curved), *one = NUMBER_OF(x, 1);
  Value *l = near ? gradient_apply(g, OP_SoftPlus, NULL, near->type, &near->shape, near, NULL, NULL) : NULL;
  Value *s = gradient_unary(g, OP_Sigmoid, near), *t = gradient_unary(g, OP_Tanh, l);
  Value *bend = MUL(near, SUB(SUB(one, s), SCALE(MUL(s, t), 2)));
  return slope_of(g, OP_TanhBackward, l, MUL(MUL(diffs, s), ADD(NUMBER_OF(x, 2), bend)));
}

static Value *soft_plus_twice(Gradient *g, const Node *node, Value *x, Value *diffs) {
  const double beta = node_coefficient(node, "beta");
  return SCALE(slope_of(g, OP_SigmoidBackward, SCALE(x, beta), diffs), beta);
}

WITH_POLE(SqrtBackward) {
  GIVE(1, again(g, node, X, diff));
  GIVE(0, sqrt_twice(g, node, WIDE_X, DIFFS));
}

OF_BACKWARD(Elu, elu_twice(g, node, WIDE_X, DIFFS))
OF_BACKWARD(GELU, gelu_twice(g, node, WIDE_X, DIFFS))
OF_BACKWARD(HardSwish, hard_swish_twice(g, WIDE_X, DIFFS))
OF_BACKWARD(Mish, mish_twice(g, WIDE_X, DIFFS))
OF_BACKWARD(Sigmoid, sigmoid_twice(g, node, WIDE_X, DIFFS))
OF_BACKWARD(SoftPlus, soft_plus_twice(g, node, WIDE_X, DIFFS))
OF_BACKWARD(Tanh, tanh_twice(g, node, WIDE_X, DIFFS))

// The shape of an operand as it broadcasts to input 0's: a vector of channels has an axis for each of input 0's.
static Shape broadcast_shape(const Node *node, const Operand *row, const Value *v) {
  const int axis = operand_channel_axis(node, row, v);
  if (axis < 0) return v->shape;
  Shape shape = {.rank = node->inputs[0]->shape.rank};
  for (int i = 0; i < shape.rank; i++) shape.extent[i] = i == axis ? v->shape.extent[0] : EXTENT(1);
  return shape;
}

// v summed to the shape of a result.
static Value *summed_to_result(Gradient *g, const Node *node, uint32_t slot, Value *v) {
  const Value *result = node->outputs[slot];
  const Shape shape = broadcast_shape(node, &node->op->outputs[slot], result);
  return gradient_in_shape(g, gradient_summed(g, v, &shape), &result->shape);
}

EXPANSION(BiasAddBackward) {
  results[0] = summed_to_result(g, node, 0, gradient_widened(g, X));
}

EXPANSION(PReLUBackward) {
  const Shape shape = broadcast_shape(node, &node->op->inputs[1], node->inputs[1]);
  Value *src = WIDE_X, *slope = gradient_in_shape(g, gradient_widened(g, Y), &shape);
  Value *diff_dst = gradient_widened(g, gradient_saved(g, node->inputs[2]));
  Value *zero = NUMBER_OF(src, 0), *is_on = GT(src, zero);
  results[0] = SELECT(is_on, diff_dst, MUL(slope, diff_dst));
  results[1] = summed_to_result(g, node, 1, SELECT(is_on, zero, MUL(src, diff_dst)));
}
