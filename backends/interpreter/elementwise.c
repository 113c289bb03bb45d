// Elementwise operators: each is a formula of x, y and z, the elements of its inputs in the operator's order, after
// broadcasting to the output's shape. The last two, which are gradients, also compute sums.
//
// To add an operator, write FORMULA(name, declarations, expression), or ARITHMETIC for one that integers have too. The
// declarations, separated by semicolons, are evaluated once for the node and name the attributes that the expression
// uses: `const double alpha = node_f32(node, "alpha")`.
#include "ir/operators/elementwise.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"

#include <math.h>

static void walk_operand(Walk *w, int track, const Node *node, const Operand *row, const Value *operand) {
  bool is_vector = operand_channel_axis(node, row, operand) >= 0;
  if (is_vector) walk_axes(w, track, operand_axes(node, row, operand));
  else walk_broadcast(w, track, &operand->shape);
}

static Walk broadcast_walk(const Node *node) {
  Walk w = walk_over(&node->outputs[0]->shape);
  for (uint32_t i = 0; i < node->ninputs; i++) walk_operand(&w, (int)i, node, &node->op->inputs[i], node->inputs[i]);
  return w;
}

// Formulas always have three arguments; operands that the operator does not have are 0.
static const double *operand(const Evaluation *e, uint32_t slot) {
  static const double nothing = 0;
  return slot < e->node->ninputs ? e->inputs[slot] : &nothing;
}

// A function that evaluates the expression for all elements.
#define FUNCTION(function, declarations, expression)                                                                   \
  function(const Evaluation *e) {                                                                                      \
    const Node *node = e->node;                                                                                        \
    const double *xs = operand(e, 0), *ys = operand(e, 1), *zs = operand(e, 2);                                        \
    declarations;                                                                                                      \
    for (Walk w = broadcast_walk(node); w.i < w.nelems; walk_step(&w)) {                                               \
      const double x = xs[w.at[0]], y = ys[w.at[1]], z = zs[w.at[2]];                                                  \
      (void)x, (void)y, (void)z;                                                                                       \
      e->outputs[0][w.i] = (expression);                                                                               \
    }                                                                                                                  \
    return true;                                                                                                       \
  }
#define FORMULA(name, declarations, expression) bool FUNCTION(interpret_##name, declarations, expression)
#define NOTHING

// The operand's element as unsigned; 0 for an operand that the operator does not have.
static uint64_t integer_at(const Evaluation *e, const Walk *w, uint32_t slot) {
  return slot < e->node->ninputs ? (uint64_t)evaluation_integer(e, slot, w->at[slot]) : 0;
}

// The same formula for floating-point numbers and for integers, which wrap around.
#define ARITHMETIC(name, expression, integers)                                                                         \
  static bool FUNCTION(interpret_##name##_reals, NOTHING,                                                              \
                       expression) static bool interpret_##name##_integers(const Evaluation *e) {                      \
    const Node *node = e->node;                                                                                        \
    for (Walk w = broadcast_walk(node); w.i < w.nelems; walk_step(&w)) {                                               \
      const uint64_t x = integer_at(e, &w, 0), y = integer_at(e, &w, 1), z = integer_at(e, &w, 2);                     \
      (void)x, (void)y, (void)z;                                                                                       \
      evaluation_put_integer(e, w.i, type_wrap(node->outputs[0]->type, (int64_t)(integers)));                          \
    }                                                                                                                  \
    return true;                                                                                                       \
  }                                                                                                                    \
  bool interpret_##name(const Evaluation *e) {                                                                         \
    const Type type = e->node->inputs[e->node->ninputs - 1]->type;                                                     \
    return type_is_float(type) ? interpret_##name##_reals(e) : interpret_##name##_integers(e);                         \
  }

static bool is_less(const Node *node, uint64_t x, uint64_t y) {
  return type_less(node->inputs[0]->type, (int64_t)x, (int64_t)y);
}

// Maximum and minimum: b if either operand is NaN, so only NaN of b propagates.
static double greater(double a, double b) {
  return a > b ? a : b;
}

static double lesser(double a, double b) {
  return a < b ? a : b;
}

// The remainder as unsigned; 0 for the divisors 0 and -1, for which C's operator may trap.
static uint64_t whole_remainder(int64_t x, int64_t y) {
  return y == 0 || y == -1 ? 0 : (uint64_t)(x % y);
}

// Clamps x; propagates NaN.
static double within(double x, double least, double greatest) {
  return x < least ? least : x > greatest ? greatest : x;
}

// An infinite x is within an infinite bound. NaN is not between any.
static bool is_between(double x, double min, double max) {
  return (x > min || (x == min && isinf(min))) && (x < max || (x == max && isinf(max)));
}

// Whether 0 < alpha x + beta < 1. The sum may round to 1; so the second comparison is of what is left to 1, whose
// rounding keeps its sign.
static bool is_on_slope(double x, double alpha, double beta) {
  const double rest = 1 - beta, lost = 1 - rest - beta; // of 1 - beta by rounding
  return fma(alpha, x, beta) > 0 && fma(-alpha, x, rest) > -lost;
}

// Replaces infinities by large numbers in derivatives that have a limit, where infinity * 0 would be NaN.
static double bounded(double x) {
  return within(x, -1e100, 1e100);
}

static double sigmoid(double x) {
  double e = exp(-fabs(x)); // cannot overflow
  return (x < 0 ? e : 1) / (1 + e);
}

// The cumulative distribution function of the standard normal distribution, and its density.
static double normal(double x) {
  return erfc(-x * M_SQRT1_2) / 2;
}

static double normal_density(double x) {
  return exp(-x * x / 2) * (M_2_SQRTPI * M_SQRT1_2 / 2);
}

// The limit at -infinity is -0, as it is approached from below.
static double gelu_backward(double x) {
  x = bounded(x);
  double along = fabs(x) * normal_density(x);
  return x < 0 ? -(along - normal(x)) : normal(x) + along;
}

// gelu_tanh replaces erf(x / sqrt(2)) by tanh(t), where t is gelu_argument; (1 + tanh(t)) / 2 = sigmoid(2t).
static double gelu_argument(double x) {
  return M_2_SQRTPI * M_SQRT1_2 * x * (1 + 0.044715 * x * x);
}

static double gelu_argument_slope(double x) {
  return M_2_SQRTPI * M_SQRT1_2 * (1 + 3 * 0.044715 * x * x);
}

static double gelu_tanh_backward(double x) {
  x = bounded(x);
  double t = gelu_argument(x);
  return sigmoid(2 * t) * (1 + 2 * x * sigmoid(-2 * t) * gelu_argument_slope(x));
}

// ln(1 + e^x)
static double soft_plus(double x) {
  return greater(0, x) + log1p(exp(-fabs(x)));
}

static double mish_backward(double x) {
  x = bounded(x);
  double t = tanh(soft_plus(x)), s = 1 / cosh(soft_plus(x));
  return -(-x * sigmoid(x) * s * s - t); // written so that the limit at -infinity is -0: it is approached from below
}

static double tanh_backward(double x) {
  double s = 1 / cosh(x);
  return s * s;
}

// x * weight; its limit -0 at x = -infinity, where weight is 0.
static double weighted(double x, double weight) {
  return x == -INFINITY ? -0.0 : x * weight;
}

// x sigmoid(beta x), with its limit 0 of x's sign where beta x is -infinity; x may be infinite when beta is 0.
static double swish(double x, double beta) {
  if (beta == 0) return x / 2;
  return beta * x == -INFINITY ? copysign(0, x) : x * sigmoid(beta * x);
}

#define ATTRIBUTE(name) const double name = node_coefficient(node, #name)
#define USE_DST const bool use_dst = node_bool(node, "use_dst")
#define GELU_MODE const bool is_tanh = node_s64(node, "mode") == GELU_TANH

// clang-format off
FORMULA(Abs, NOTHING, fabs(x))
FORMULA(Clamp, ATTRIBUTE(min); ATTRIBUTE(max), lesser(greater(x, min), max))
FORMULA(Cos, NOTHING, cos(x))
FORMULA(Elu, ATTRIBUTE(alpha), x > 0 ? x : alpha * expm1(x))
FORMULA(Erf, NOTHING, erf(x))
FORMULA(Exp, NOTHING, exp(x))
FORMULA(GELU, GELU_MODE, weighted(x, is_tanh ? sigmoid(2 * gelu_argument(x)) : normal(x)))
FORMULA(HardSigmoid, ATTRIBUTE(alpha); ATTRIBUTE(beta), within(alpha * x + beta, 0, 1))
FORMULA(HardSwish, NOTHING, weighted(x, within(x + 3, 0, 6) / 6))
FORMULA(LeakyReLU, ATTRIBUTE(alpha), x > 0 ? x : alpha * x)
FORMULA(Log, NOTHING, log(x))
FORMULA(Mish, NOTHING, weighted(x, tanh(soft_plus(x))))
ARITHMETIC(Neg, -x, 0 - x)
FORMULA(Pow, ATTRIBUTE(beta), pow(x, beta))
FORMULA(Reciprocal, NOTHING, 1 / x)
FORMULA(ReLU, NOTHING, x > 0 || isnan(x) ? x : 0)
FORMULA(Round, NOTHING, nearbyint(x))
FORMULA(RoundThrough, NOTHING, nearbyint(x))
FORMULA(Sigmoid, NOTHING, sigmoid(x))
FORMULA(Sin, NOTHING, sin(x))
FORMULA(SoftPlus, ATTRIBUTE(beta), soft_plus(beta * x) / beta)
FORMULA(Sqrt, NOTHING, sqrt(x))
FORMULA(Square, NOTHING, x * x)
FORMULA(Swish, ATTRIBUTE(beta), swish(x, beta))
FORMULA(Tanh, NOTHING, tanh(x))

// x is src or dst, y is diff_dst.
FORMULA(AbsBackward, NOTHING, x > 0 ? y : x < 0 ? -y : 0)
FORMULA(ClampBackward, ATTRIBUTE(min); ATTRIBUTE(max), is_between(x, min, max) ? y : 0) // the same for src and dst
FORMULA(EluBackward, ATTRIBUTE(alpha); USE_DST, x > 0 ? y : y * (use_dst ? x + alpha : alpha * exp(x)))
FORMULA(GELUBackward, GELU_MODE, y * (is_tanh ? gelu_tanh_backward(x) : gelu_backward(x)))
FORMULA(HardSigmoidBackward, ATTRIBUTE(alpha); ATTRIBUTE(beta),
        is_on_slope(x, alpha, beta) ? alpha * y : 0)
FORMULA(HardSwishBackward, NOTHING, x <= -3 ? 0 : x >= 3 ? y : y * (x / 3 + 0.5))
FORMULA(MishBackward, NOTHING, y * mish_backward(x))
FORMULA(ReLUBackward, NOTHING, x > 0 ? y : 0) // the same for src and dst: one is positive if the other is
FORMULA(SigmoidBackward, USE_DST, use_dst ? y * x * (1 - x) : y * (sigmoid(x) * sigmoid(-x)))
FORMULA(SoftPlusBackward, ATTRIBUTE(beta), y * sigmoid(beta * x))
FORMULA(SqrtBackward, USE_DST, y / (2 * (use_dst ? x : sqrt(x))))
FORMULA(TanhBackward, USE_DST, use_dst ? y * (1 - fabs(x)) * (1 + fabs(x)) : y * tanh_backward(x))

ARITHMETIC(Add, x + y, x + y)
ARITHMETIC(Subtract, x - y, x - y)
ARITHMETIC(Multiply, x * y, x * y)
FORMULA(Divide, NOTHING, x / y)
ARITHMETIC(Maximum, greater(x, y), (int64_t)x > (int64_t)y ? x : y)
ARITHMETIC(Minimum, lesser(x, y), (int64_t)x < (int64_t)y ? x : y)
FORMULA(SquaredDifference, NOTHING, (x - y) * (x - y))
FORMULA(Power, NOTHING, pow(x, y))
ARITHMETIC(Mod, fmod(x, y), whole_remainder((int64_t)x, (int64_t)y))
ARITHMETIC(Equal, x == y, x == y)
ARITHMETIC(NotEqual, x != y, x != y)
ARITHMETIC(Less, x < y, is_less(node, x, y))
ARITHMETIC(LessEqual, x <= y, !is_less(node, y, x))
ARITHMETIC(Greater, x > y, is_less(node, y, x))
ARITHMETIC(GreaterEqual, x >= y, !is_less(node, x, y))
FORMULA(LogicalAnd, NOTHING, x != 0 && y != 0)
FORMULA(LogicalOr, NOTHING, x != 0 || y != 0)
FORMULA(LogicalNot, NOTHING, x == 0)
ARITHMETIC(Select, x != 0 ? y : z, x ? y : z)
FORMULA(BiasAdd, NOTHING, x + y)
FORMULA(PReLU, NOTHING, x > 0 ? x : y * x)

// clang-format on

bool interpret_TypeCast(const Evaluation *e) {
  const Type from = e->node->inputs[0]->type, to = e->node->outputs[0]->type;
  const int64_t nelems = shape_nelems(&e->node->outputs[0]->shape);
  for (int64_t i = 0; i < nelems; i++) {
    if (!type_is_float(from) && !type_is_float(to)) {
      evaluation_put_integer(e, i, type_wrap(to, evaluation_integer(e, 0, i)));
      continue;
    }
    const double x = type_is_float(from) ? e->inputs[0][i] : type_number(from, evaluation_integer(e, 0, i));
    if (TYPES_64_BITS & TYPE_BIT(to)) type_store(to, e->outputs[0], (size_t)i, x);
    else e->outputs[0][i] = type_round(to, x);
  }
  return true;
}

// Computes output `slot` as the sum of `term`, a function of input 0's element i, over the axes that the output lacks.
static bool sum_terms(const Evaluation *e, uint32_t slot, double (*term)(const Evaluation *e, int64_t i)) {
  const Node *node = e->node;
  const Value *v = node->outputs[slot];
  Sum *sums = sums_of_output(e, slot);
  if (!sums) return false;
  Walk w = walk_over(&node->inputs[0]->shape);
  for (walk_operand(&w, 0, node, &node->op->outputs[slot], v); w.i < w.nelems; walk_step(&w))
    sum_add(&sums[w.at[0]], term(e, w.i));
  return sums_store(e, slot, sums);
}

static double bias_term(const Evaluation *e, int64_t i) {
  return e->inputs[0][i];
}

INTERPRET(BiasAddBackward, sum_terms(e, 0, bias_term))

static double slope_term(const Evaluation *e, int64_t i) {
  const double *src = e->inputs[0], *diff_dst = e->inputs[2];
  return src[i] > 0 ? 0 : src[i] * diff_dst[i];
}

bool interpret_PReLUBackward(const Evaluation *e) {
  const double *src = e->inputs[0], *slope = e->inputs[1], *diff_dst = e->inputs[2];
  for (Walk w = broadcast_walk(e->node); w.i < w.nelems; walk_step(&w))
    e->outputs[0][w.i] = src[w.i] > 0 ? diff_dst[w.i] : slope[w.at[1]] * diff_dst[w.i];
  return sum_terms(e, 1, slope_term);
}
