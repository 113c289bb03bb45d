// Trigonometric and hyperbolic functions that have no operator, by formulas without cancellation.
#include "frontend/foreign/build.h"

#include <math.h>

static Value *over(Builder *b, Value *a, Value *c) {
  return build_binary(b, OP_Divide, a, c);
}

static Value *is_above(Builder *b, Value *v, double number) {
  return build_binary(b, OP_Greater, v, build_like(b, v, number));
}

// An odd function, from its values at |x|.
static Value *odd(Builder *b, Value *v, Value *at_magnitude) {
  return build_choose(b, build_binary(b, OP_Less, v, build_like(b, v, 0)), build_unary(b, OP_Neg, at_magnitude),
                      at_magnitude);
}

// ln(1 + x) for x > 0
static Value *logarithm_of_1_plus(Builder *b, Value *v) {
  return build_unary(b, OP_SoftPlus, build_unary(b, OP_Log, v));
}

// With u = e^-|x| - 1, by Elu: -u (2 + u) / (2 (1 + u)) if 1 + u is exact enough, else e^|x| / 2.
Value *build_sinh(Builder *b, Value *v) {
  Value *m = build_unary(b, OP_Abs, v), *u = build_with(b, OP_Elu, build_unary(b, OP_Neg, m), "alpha", 1);
  Value *near = over(b, build_binary(b, OP_Multiply, build_unary(b, OP_Neg, u), build_plus(b, u, 2)),
                     build_times(b, build_plus(b, u, 1), 2));
  Value *far = build_unary(b, OP_Exp, build_plus(b, m, -log(2)));
  Value *rest = build_unary(b, OP_Exp, build_plus(b, build_unary(b, OP_Neg, m), -log(2)));
  return odd(b, v, build_choose(b, is_above(b, m, 1), build_binary(b, OP_Subtract, far, rest), near));
}

// e^(|x| - ln 2) + e^(-|x| - ln 2)
Value *build_cosh(Builder *b, Value *v) {
  Value *m = build_unary(b, OP_Abs, v), *far = build_unary(b, OP_Exp, build_plus(b, m, -log(2)));
  return build_binary(b, OP_Add, far, build_unary(b, OP_Exp, build_plus(b, build_unary(b, OP_Neg, m), -log(2))));
}

// Where x^2 is about to overflow in the type, and 1 is lost beside it.
static double large(const Value *v) {
  return v && v->type == TYPE_F16 ? 200 : 1e9;
}

// ln(1 + |x| + x^2 / (1 + sqrt(1 + x^2))); beyond `large`, ln(2 |x|).
Value *build_asinh(Builder *b, Value *v) {
  Value *m = build_unary(b, OP_Abs, v), *square = build_unary(b, OP_Square, v);
  Value *below = build_plus(b, build_unary(b, OP_Sqrt, build_plus(b, square, 1)), 1);
  Value *near = logarithm_of_1_plus(b, build_binary(b, OP_Add, m, over(b, square, below)));
  Value *far = build_plus(b, build_unary(b, OP_Log, m), log(2));
  return odd(b, v, build_choose(b, is_above(b, m, large(v)), far, near));
}

// With d = x - 1: ln(1 + d + sqrt(d) sqrt(d + 2)), which is NaN below 1; for large x, ln(2 x).
Value *build_acosh(Builder *b, Value *v) {
  Value *d = build_plus(b, v, -1);
  Value *root = build_binary(b, OP_Multiply, build_unary(b, OP_Sqrt, d), build_unary(b, OP_Sqrt, build_plus(b, d, 2)));
  Value *near = logarithm_of_1_plus(b, build_binary(b, OP_Add, d, root)),
        *far = build_plus(b, build_unary(b, OP_Log, v), log(2));
  return build_choose(b, is_above(b, v, large(v)), far, near);
}

// ln(1 + 2 |x| / (1 - |x|)) / 2
Value *build_atanh(Builder *b, Value *v) {
  Value *m = build_unary(b, OP_Abs, v), *below = build_binary(b, OP_Subtract, build_like(b, m, 1), m);
  return odd(b, v, build_times(b, logarithm_of_1_plus(b, over(b, build_times(b, m, 2), below)), 0.5));
}

// The arctangent of v >= 0: above 1, pi / 2 - atan(1 / v). Then atan(v) = 2 atan(v / (1 + sqrt(1 + v^2))) twice, which
// reduces v below tan(pi / 16) < 0.2, where the series up to v^25 / 25 is exact to 1e-19.
static Value *arctangent(Builder *b, Value *v) {
  enum { NTERMS = 13 };
  Value *is_large = is_above(b, v, 1), *t = build_choose(b, is_large, build_unary(b, OP_Reciprocal, v), v);
  for (int i = 0; i < 2; i++)
    t = over(b, t, build_plus(b, build_unary(b, OP_Sqrt, build_plus(b, build_unary(b, OP_Square, t), 1)), 1));
  Value *square = build_unary(b, OP_Square, t), *sum = build_like(b, t, 1.0 / (2 * NTERMS - 1));
  for (int n = NTERMS - 2; n >= 0; n--)
    sum = build_plus(b, build_binary(b, OP_Multiply, sum, square), (n % 2 ? -1.0 : 1.0) / (2 * n + 1));
  t = build_times(b, build_binary(b, OP_Multiply, t, sum), 4);
  return build_choose(b, is_large, build_plus(b, build_unary(b, OP_Neg, t), acos(0)), t);
}

Value *build_atan(Builder *b, Value *v) {
  return odd(b, v, arctangent(b, build_unary(b, OP_Abs, v)));
}

static Value *one_less(Builder *b, Value *v) {
  return build_binary(b, OP_Subtract, build_like(b, v, 1), v);
}

// atan(x / sqrt((1 - x) (1 + x)))
Value *build_asin(Builder *b, Value *v) {
  Value *m = build_unary(b, OP_Abs, v);
  Value *below = build_unary(b, OP_Sqrt, build_binary(b, OP_Multiply, one_less(b, m), build_plus(b, m, 1)));
  return odd(b, v, arctangent(b, over(b, m, below)));
}

// 2 atan(sqrt((1 - x) / (1 + x)))
Value *build_acos(Builder *b, Value *v) {
  return build_times(b, arctangent(b, build_unary(b, OP_Sqrt, over(b, one_less(b, v), build_plus(b, v, 1)))), 2);
}

Value *build_tan(Builder *b, Value *v) {
  return over(b, build_unary(b, OP_Sin, v), build_unary(b, OP_Cos, v));
}
