// Lowers elementwise operators. Each has one formula of x, y and z, the operands in the operator's order.
//
// To add an operator, add a row FORMULA(name, declarations, expression), written with the macros below. The formulas
// are mathematically equal to the interpreter's, in forms that neither cancel nor overflow in f32. The order of
// operands of GT, MAX and MIN matters: a comparison with NaN is false, and MAX and MIN then yield their second operand.
// Swapped operands may lose a NaN or give a wrong limit at infinity.
#include "ir/operators/elementwise.h"

#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

// The operand in `slot` over the domain; 0: the operator has fewer operands.
static ExprId operand(Lowering *l, const Node *node, uint32_t slot) {
  if (slot >= node->ninputs) return 0;
  int axis = operand_channel_axis(node, &node->op->inputs[slot], node->inputs[slot]);
  return lower_value_on(l, node->inputs[slot], axis < 0 ? NULL : &axis);
}

// Parts of formulas

// x clamped to [least, greatest]; propagates NaN.
static ExprId clamped(Kernel *k, ExprId x, double least, double greatest) {
  return MIN(NUMBER(greatest), MAX(NUMBER(least), x));
}

// x, with minus infinity replaced by the lowest finite number, so that x * 0 is 0, the limit of the activation, not
// NaN.
static ExprId above_infinity(Kernel *k, ExprId x) {
  return MAX(NUMBER(-FLT_MAX), x);
}

// x clamped for derivatives, where an infinite x times 0 would be NaN. The bound's square is finite.
static ExprId bounded(Kernel *k, ExprId x) {
  return clamped(k, x, -0x1p60, 0x1p60);
}

// e^-|t|, the building block of sigmoid-like functions: e^-|t| does not overflow, and 1 + e^-|t| does not cancel.
static ExprId decay(Kernel *k, ExprId t) {
  return EXP(NEG(ABS(t)));
}

// 1 / (1 + e^-t)
static ExprId sigmoid(Kernel *k, ExprId t) {
  ExprId e = decay(k, t);
  return DIV(SELECT(GE(t, NUMBER(0)), NUMBER(1), e), ADD(NUMBER(1), e));
}

// The derivative of sigmoid: e^-|t| / (1 + e^-|t|)^2.
static ExprId sigmoid_slope(Kernel *k, ExprId t) {
  ExprId e = decay(k, t), sum = ADD(NUMBER(1), e);
  return DIV(e, MUL(sum, sum));
}

// ln(1 + e^(beta x)) / beta = linear + ln(1 + e^-|beta x|) / beta, where linear is x or 0. `linear` is not computed as
// (beta x) / beta, because beta x may overflow.
static ExprId soft_plus(Kernel *k, ExprId x, double beta) {
  ExprId linear = beta > 0 ? MAX(NUMBER(0), x) : MIN(NUMBER(-0.0), x);
  return ADD(linear, DIV(LOG1P(decay(k, MUL(NUMBER(beta), x))), NUMBER(beta)));
}

// (1 + tanh(t)) / 2 is sigmoid(2t). gelu_argument is 2t for gelu_tanh: 2c (x + 0.044715 x^3) with c = sqrt(2 / pi).
#define GELU_SCALE (2 * M_2_SQRTPI * M_SQRT1_2)
#define GELU_CUBIC (0.044715 * GELU_SCALE)

static ExprId gelu_argument(Kernel *k, ExprId x) {
  return MUL(x, FMA(NUMBER(GELU_CUBIC), MUL(x, x), NUMBER(GELU_SCALE)));
}

// a b + c, with a result of 0 replaced by -0: the slopes of these activations approach 0 from below at minus infinity.
// (-fma(-a, b, -c) would also give -0, but some compilers turn it into fma(a, b, c).)
static ExprId fma_from_below(Kernel *k, ExprId a, ExprId b, ExprId c) {
  ExprId slope = FMA(a, b, c);
  return SELECT(EQ(slope, NUMBER(0)), NUMBER(-0.0), slope);
}

// The derivative of x s(t(x)), where s is sigmoid and t is gelu_argument: s + s' x t'.
static ExprId gelu_tanh_slope(Kernel *k, ExprId x) {
  ExprId t = gelu_argument(k, x), finite = bounded(k, x);
  ExprId argument_slope = FMA(NUMBER(3 * GELU_CUBIC), MUL(finite, finite), NUMBER(GELU_SCALE));
  return fma_from_below(k, MUL(sigmoid_slope(k, t), finite), argument_slope, sigmoid(k, t));
}

// tanh(ln(1 + e^x)) is p / q with p = e^x (e^x + 2), q = p + 2. For x > 0, p and q are divided by e^2x.
typedef struct MishTerms {
  ExprId e, is_negative, p, q, rest; // rest: q - p
} MishTerms;

static MishTerms mish_terms(Kernel *k, ExprId x) {
  MishTerms m = {.e = decay(k, x), .is_negative = GT(NUMBER(0), x)};
  m.p = SELECT(m.is_negative, MUL(m.e, ADD(m.e, NUMBER(2))), FMA(NUMBER(2), m.e, NUMBER(1)));
  m.rest = MUL(NUMBER(2), SELECT(m.is_negative, NUMBER(1), MUL(m.e, m.e)));
  m.q = ADD(m.p, m.rest);
  return m;
}

static ExprId mish(Kernel *k, ExprId x) {
  MishTerms m = mish_terms(k, x);
  return MUL(above_infinity(k, x), DIV(m.p, m.q));
}

// The derivative of x t with t = p / q: t + x sigmoid(x) (1 - t^2), where 1 - t^2 = (q - p) (q + p) / q^2.
static ExprId mish_slope(Kernel *k, ExprId x) {
  MishTerms m = mish_terms(k, x);
  ExprId complement = MUL(DIV(m.rest, m.q), DIV(ADD(m.q, m.p), m.q));
  return fma_from_below(k, MUL(bounded(k, x), sigmoid(k, x)), complement, DIV(m.p, m.q));
}

// The derivative of tanh: 1 - tanh(x)^2 = 4 sigmoid'(2x).
static ExprId tanh_slope(Kernel *k, ExprId x) {
  return MUL(NUMBER(4), sigmoid_slope(k, MUL(NUMBER(2), x)));
}

// Whether alpha x + beta < 1. The sum may round to 1; so the comparison is of what is left to 1. Near 1, alpha x - rest
// is a multiple of the last places of alpha x, and small, so that it is exact.
static ExprId is_below_1(Kernel *k, ExprId x, ExprId alpha, double beta) {
  const double rest = k->is_f64 ? 1 - beta : (float)(1 - beta), lost = 1 - rest - beta; // of 1 - beta by rounding
  return GT(FMA(NEG(alpha), x, NUMBER(rest)), NUMBER(-lost));
}

// x sigmoid(beta x). An infinite x with sigmoid 0 is replaced by the largest finite number.
static ExprId swish(Kernel *k, ExprId x, double beta) {
  if (beta == 0) return MUL(NUMBER(0.5), x);
  ExprId finite = beta > 0 ? above_infinity(k, x) : MIN(NUMBER(FLT_MAX), x);
  return MUL(finite, sigmoid(k, MUL(NUMBER(beta), x)));
}

static bool is_infinite(const Kernel *k, ExprId e) {
  return k->exprs[e].op == EXPR_CONSTANT && isinf(k->exprs[e].number);
}

// The mask a > b. If one is an infinite constant, a >= b: an infinite number is within an infinite bound.
static ExprId beyond(Kernel *k, ExprId a, ExprId b) {
  return is_infinite(k, a) || is_infinite(k, b) ? GE(a, b) : GT(a, b);
}

// A mask as a boolean tensor's number: 0 or 1.
static ExprId boolean(Kernel *k, ExprId mask) {
  return SELECT(mask, NUMBER(1), NUMBER(0));
}

static bool is_number(const Kernel *k, ExprId e, double number) {
  return k->exprs[e].op == EXPR_CONSTANT && k->exprs[e].number == number;
}

// condition ? a : b. Uses the mask directly if this kernel computes the condition from a mask.
static ExprId choose(Kernel *k, ExprId condition, ExprId a, ExprId b) {
  if (!condition) return 0;
  const Expr e = k->exprs[condition];
  const bool is_choice = e.op == EXPR_SELECT;
  if (is_choice && is_number(k, e.args[1], 1) && is_number(k, e.args[2], 0)) return SELECT(e.args[0], a, b);
  if (is_choice && is_number(k, e.args[1], 0) && is_number(k, e.args[2], 1)) return SELECT(e.args[0], b, a);
  return SELECT(EQ(condition, NUMBER(0)), b, a);
}

// Reduces an integer e below 2^62, held in f64, to the type's low bits. For e beyond 2^52 the quotient is rounded, and
// the result may be off by 2^32.
static ExprId wrapped(Kernel *k, Type type, ExprId e) {
  const double least = type_least(type), span = type_greatest(type) - least + 1;
  return ADD(FMA(FLOOR(FMA(e, NUMBER(1 / span), NUMBER(-least / span))), NUMBER(-span), e), NUMBER(0)); // no -0
}

// The same for any s64, in a kernel that computes in s64.
static ExprId wrapped_s64(Kernel *k, Type type, ExprId e) {
  const double least = type_least(type), greatest = type_greatest(type), span = greatest - least + 1;
  const ExprId rest = FMOD(e, NUMBER(span)); // between -span and span
  const ExprId from_least = SELECT(GT(NUMBER(least), rest), ADD(rest, NUMBER(span)), rest);
  return SELECT(GT(from_least, NUMBER(greatest)), SUB(from_least, NUMBER(span)), from_least);
}

// Wraps a sum or difference of s32, which is exact in f64.
static ExprId whole(Kernel *k, const Node *node, ExprId e) {
  return node->outputs[0]->type == TYPE_S32 ? wrapped(k, TYPE_S32, e) : e;
}

// A product of s32 is the exact sum of two f64: the rounded product, and its rounding error.
static ExprId product(Kernel *k, const Node *node, ExprId x, ExprId y) {
  const ExprId high = MUL(x, y);
  if (node->outputs[0]->type != TYPE_S32) return high;
  return wrapped(k, TYPE_S32, ADD(wrapped(k, TYPE_S32, high), FMA(x, y, NEG(high))));
}

// The remainder; with the divisor 0, NaN of floats and 0 of integers.
static ExprId remainder_of(Kernel *k, const Node *node, ExprId x, ExprId y) {
  const bool is_s32 = node->outputs[0]->type == TYPE_S32; // the operation on s64 gives 0 itself
  return is_s32 ? SELECT(EQ(y, NUMBER(0)), NUMBER(0), FMOD(x, y)) : FMOD(x, y);
}

// An operand whose order in s64 is that of the type: u64 moved down by 2^63.
static ExprId ordered(Kernel *k, const Node *node, ExprId e) {
  return e && node->inputs[0]->type == TYPE_U64 ? ADD(e, NUMBER(-0x1p63)) : e;
}

// Whether a number of the type is rounded to f32 before it becomes a half float, unless it is rounded to odd first.
static bool is_rounded_twice(const Kernel *k, Type from, Type type) {
  const TypeSet wide = TYPE_BIT(TYPE_F64) | TYPES_64_BITS | TYPE_BIT(TYPE_S32) | TYPE_BIT(TYPE_U32);
  return k->is_f64 && TYPE_BIT(from) & wide && (type == TYPE_F16 || type == TYPE_BF16);
}

// A float saturates as in a store of an integer type; an integer keeps its low bits.
static ExprId cast(Kernel *k, Type from, Type type, ExprId x) {
  if (type == TYPE_BOOLEAN) return SELECT(EQ(x, NUMBER(0)), NUMBER(0), NUMBER(1));
  if (is_rounded_twice(k, from, type)) x = expr_unary(k, EXPR_ROUND_ODD, x);
  if (type_is_float(type)) return x;
  if (type_is_float(from)) {
    const ExprId number = ADD(clamped(k, ROUND(x), type_least(type), type_greatest(type)), NUMBER(0)); // no -0
    return SELECT(EQ(x, x), number, NUMBER(0));
  }
  const bool fits = type_least(from) >= type_least(type) && type_greatest(from) <= type_greatest(type);
  if (fits || TYPES_64_BITS & TYPE_BIT(type)) return x;
  return k->is_s64 ? wrapped_s64(k, type, x) : wrapped(k, type, x);
}

// Formulas

#define FORMULA(name, declarations, expression)                                                                        \
  void lower_##name(Lowering *l, const Node *node) {                                                                   \
    Kernel *k = l->kernel;                                                                                             \
    const ExprId x = operand(l, node, 0), y = operand(l, node, 1), z = operand(l, node, 2);                            \
    (void)x, (void)y, (void)z;                                                                                         \
    declarations;                                                                                                      \
    lower_result(l, node, 0, expression, NULL);                                                                        \
  }
#define NOTHING
#define ATTRIBUTE(name) const ExprId name = NUMBER(node_coefficient(node, #name))
#define USE_DST const bool use_dst = node_bool(node, "use_dst")
#define GELU_MODE const bool is_tanh = node_s64(node, "mode") == GELU_TANH
#define ZERO NUMBER(0)

// clang-format off
FORMULA(Abs, NOTHING, ABS(x))
FORMULA(Clamp, ATTRIBUTE(min); ATTRIBUTE(max), MIN(MAX(x, min), max))
FORMULA(Cos, NOTHING, COS(x))
FORMULA(Elu, ATTRIBUTE(alpha), SELECT(GT(x, ZERO), x, MUL(alpha, EXPM1(x))))
FORMULA(Erf, NOTHING, ERF(x))
FORMULA(Exp, NOTHING, EXP(x))
FORMULA(GELU, GELU_MODE, is_tanh ? MUL(above_infinity(k, x), sigmoid(k, gelu_argument(k, x))) : GELU(x))
FORMULA(HardSigmoid, ATTRIBUTE(alpha); ATTRIBUTE(beta), clamped(k, FMA(alpha, x, beta), 0, 1))
FORMULA(HardSwish, NOTHING, MUL(above_infinity(k, x), MUL(NUMBER(1.0 / 6), clamped(k, ADD(x, NUMBER(3)), 0, 6))))
FORMULA(LeakyReLU, ATTRIBUTE(alpha), SELECT(GT(x, ZERO), x, MUL(alpha, x)))
FORMULA(Log, NOTHING, LOG(x))
FORMULA(Mish, NOTHING, mish(k, x))
FORMULA(Neg, NOTHING, whole(k, node, NEG(x)))
FORMULA(Pow, ATTRIBUTE(beta), POW(x, beta))
FORMULA(Reciprocal, NOTHING, DIV(NUMBER(1), x))
FORMULA(ReLU, NOTHING, SELECT(GE(ZERO, x), ZERO, x)) // IEEE 754's maximum(0, x): +0 for -0, NaN for NaN
FORMULA(Round, NOTHING, ROUND(x))
FORMULA(RoundThrough, NOTHING, ROUND(x))
FORMULA(Sigmoid, NOTHING, sigmoid(k, x))
FORMULA(Sin, NOTHING, SIN(x))
FORMULA(SoftPlus, NOTHING, soft_plus(k, x, node_coefficient(node, "beta")))
FORMULA(Sqrt, NOTHING, SQRT(x))
FORMULA(Square, NOTHING, MUL(x, x))
FORMULA(Swish, NOTHING, swish(k, x, node_coefficient(node, "beta")))
FORMULA(Tanh, NOTHING, TANH(x))

// Gradients: x is src, or dst with use_dst; y is diff_dst.
FORMULA(AbsBackward, NOTHING, SELECT(GT(x, ZERO), y, SELECT(GT(ZERO, x), NEG(y), ZERO)))
FORMULA(ClampBackward, ATTRIBUTE(min); ATTRIBUTE(max), SELECT(beyond(k, x, min), SELECT(beyond(k, max, x), y, ZERO), ZERO))
FORMULA(EluBackward, ATTRIBUTE(alpha); USE_DST,
        SELECT(GT(x, ZERO), y, MUL(y, use_dst ? ADD(x, alpha) : MUL(alpha, EXP(x)))))
FORMULA(GELUBackward, GELU_MODE, MUL(y, is_tanh ? gelu_tanh_slope(k, x) : GELU_SLOPE(x)))
FORMULA(HardSigmoidBackward, ATTRIBUTE(alpha); const double beta = node_coefficient(node, "beta"),
        SELECT(GT(FMA(alpha, x, NUMBER(beta)), ZERO), SELECT(is_below_1(k, x, alpha, beta), MUL(alpha, y), ZERO), ZERO))
FORMULA(HardSwishBackward, NOTHING,
        SELECT(GE(NUMBER(-3), x), ZERO, SELECT(GE(x, NUMBER(3)), y, MUL(y, MUL(NUMBER(1.0 / 3), ADD(x, NUMBER(1.5)))))))
FORMULA(MishBackward, NOTHING, MUL(y, mish_slope(k, x)))
FORMULA(ReLUBackward, NOTHING, SELECT(GT(x, ZERO), y, ZERO))
FORMULA(SigmoidBackward, USE_DST, use_dst ? MUL(MUL(y, x), SUB(NUMBER(1), x)) : MUL(y, sigmoid_slope(k, x)))
FORMULA(SoftPlusBackward, ATTRIBUTE(beta), MUL(y, sigmoid(k, MUL(beta, x))))
FORMULA(SqrtBackward, USE_DST, DIV(y, MUL(NUMBER(2), use_dst ? x : SQRT(x))))
FORMULA(TanhBackward, USE_DST, use_dst ? MUL(MUL(y, SUB(NUMBER(1), ABS(x))), ADD(NUMBER(1), ABS(x))) : MUL(y, tanh_slope(k, x)))

FORMULA(Add, NOTHING, whole(k, node, ADD(x, y)))
FORMULA(Subtract, NOTHING, whole(k, node, SUB(x, y)))
FORMULA(Multiply, NOTHING, product(k, node, x, y))
FORMULA(Divide, NOTHING, DIV(x, y))
FORMULA(Maximum, NOTHING, MAX(x, y))
FORMULA(Minimum, NOTHING, MIN(x, y))
FORMULA(SquaredDifference, const ExprId difference = SUB(x, y), MUL(difference, difference))
FORMULA(Power, NOTHING, POW(x, y))
FORMULA(Mod, NOTHING, remainder_of(k, node, x, y))
FORMULA(Equal, NOTHING, boolean(k, EQ(x, y)))
FORMULA(NotEqual, NOTHING, SELECT(EQ(x, y), ZERO, NUMBER(1)))
FORMULA(Less, NOTHING, boolean(k, GT(ordered(k, node, y), ordered(k, node, x))))
FORMULA(LessEqual, NOTHING, boolean(k, GE(ordered(k, node, y), ordered(k, node, x))))
FORMULA(Greater, NOTHING, boolean(k, GT(ordered(k, node, x), ordered(k, node, y))))
FORMULA(GreaterEqual, NOTHING, boolean(k, GE(ordered(k, node, x), ordered(k, node, y))))
FORMULA(LogicalAnd, NOTHING, choose(k, x, choose(k, y, NUMBER(1), ZERO), ZERO))
FORMULA(LogicalOr, NOTHING, choose(k, x, NUMBER(1), choose(k, y, NUMBER(1), ZERO)))
FORMULA(LogicalNot, NOTHING, choose(k, x, ZERO, NUMBER(1)))
FORMULA(Select, NOTHING, choose(k, x, y, z))
FORMULA(BiasAdd, NOTHING, ADD(x, y))
FORMULA(PReLU, NOTHING, SELECT(GT(x, ZERO), x, MUL(y, x)))

FORMULA(TypeCast, NOTHING, cast(k, node->inputs[0]->type, node->outputs[0]->type, x))
// clang-format on

// Sets output `slot` to the sum of `term` over all axes that the output lacks.
static void lower_sum(Lowering *l, const Node *node, uint32_t slot, ExprId term) {
  const Operand *row = &node->op->outputs[slot];
  const Value *v = node->outputs[slot];
  AxisSet all = (1U << l->domain.rank) - 1, varying = operand_axes(node, row, v);
  int axis = operand_channel_axis(node, row, v);
  lower_result(l, node, slot, expr_sum(l->kernel, term, lower_axes(l, all & ~varying)), axis < 0 ? NULL : &axis);
}

LOWER(BiasAddBackward, lower_sum(l, node, 0, operand(l, node, 0)))

void lower_PReLUBackward(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  ExprId src = operand(l, node, 0), slope = operand(l, node, 1), diff_dst = operand(l, node, 2);
  ExprId is_on = GT(src, ZERO);
  lower_result(l, node, 0, SELECT(is_on, diff_dst, MUL(slope, diff_dst)), NULL);
  lower_sum(l, node, 1, SELECT(is_on, ZERO, MUL(src, diff_dst)));
}
