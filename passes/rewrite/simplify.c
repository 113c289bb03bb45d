// Algebraic identities. Each holds for every IEEE value, including NaN, infinities and the sign of zero, and its
// replacement rounds at most as often as its pattern. Other identities need --fast-math: x + 0 is not x (-0 + 0 is +0),
// and x - x is not 0 (NaN for infinities); but x + -0 and x - 0 are x.
#include "passes/rewrite/passes.h"

#include "passes/rewrite/rewrite.h"

#include <math.h>
#include <stdlib.h>

#define POW(exponent, x) TERM(.kind = TERM_NODE, .op = OP_Pow, .setting = "beta", .is = (exponent), .arguments = {x})

// Whether the divisor is a power of two with a normal reciprocal: multiplication by the reciprocal then gives the same
// bits.
static bool divisor_is_power_of_two(Match *m) {
  const Value *v = m->values[3];
  int exponent;
  double divisor = v->constant->is_splat ? type_load(v->type, v->constant->data, 0) : 0;
  m->number = 1 / divisor;
  return fabs(frexp(divisor, &exponent)) == 0.5 && abs(exponent) < (v->type == TYPE_F16 ? 12 : 120);
}

// The product of two constants.
static bool constants_multiply(Match *m) {
  const Value *c = m->values[3], *d = m->values[4];
  if (!c->constant->is_splat || !d->constant->is_splat) return false;
  m->number = type_load(c->type, c->constant->data, 0) * type_load(d->type, d->constant->data, 0);
  return isfinite(m->number);
}

// Whether the ones broadcast the operand, as the next operator may do itself; the engine checks that it does.
static bool is_broadcast(Match *m) {
  return !shape_equals(&m->values[0]->shape, &m->nodes[1]->outputs[0]->shape);
}

static const Rule rules[] = {
    // Identity operations
    {.name = "add-negative-zero", .pattern = NODE(Add, X, NUMBER(-0.0)), .replacement = X},
    {.name = "subtract-zero", .pattern = NODE(Subtract, X, NUMBER(0)), .replacement = X},
    {.name = "multiply-one", .pattern = NODE(Multiply, X, NUMBER(1)), .replacement = X},
    {.name = "ones-left",
     .pattern = LIKE(0, NAMED(1, Multiply, X, NUMBER(1)), Y),
     .replacement = LIKE(0, X, Y),
     .condition = is_broadcast},
    {.name = "ones-right",
     .pattern = LIKE(0, Y, NAMED(1, Multiply, X, NUMBER(1))),
     .replacement = LIKE(0, Y, X),
     .condition = is_broadcast},
    {.name = "divide-one", .pattern = NODE(Divide, X, NUMBER(1)), .replacement = X},
    {.name = "power-one", .pattern = POW(1, X), .replacement = X},
    {.name = "raised-to-one", .pattern = NODE(Power, X, NUMBER(1)), .replacement = X},
    {.name = "maximum-itself", .pattern = NODE(Maximum, X, X), .replacement = X},
    {.name = "minimum-itself", .pattern = NODE(Minimum, X, X), .replacement = X},
    {.name = "select-either", .pattern = NODE(Select, X, Y, Y), .replacement = Y},
    {.name = "absolute-absolute", .pattern = NODE(Abs, NAMED(1, Abs, X)), .replacement = NAMED(1, Abs, X)},
    {.name = "round-round", .pattern = NODE(Round, NAMED(1, Round, X)), .replacement = NAMED(1, Round, X)},
    // Normal forms
    {.name = "multiply-itself", .pattern = NODE(Multiply, X, X), .replacement = NODE(Square, X)},
    {.name = "power-two", .pattern = POW(2, X), .replacement = NODE(Square, X)},
    {.name = "raised-to-two", .pattern = NODE(Power, X, NUMBER(2)), .replacement = NODE(Square, X)},
    {.name = "raised-to-minus-one", .pattern = NODE(Power, X, NUMBER(-1)), .replacement = NODE(Reciprocal, X)},
    {.name = "power-minus-one", .pattern = POW(-1, X), .replacement = NODE(Reciprocal, X)},
    {.name = "one-divided", .pattern = NODE(Divide, NUMBER(1), X), .replacement = NODE(Reciprocal, X)},
    {.name = "add-negated",
     .pattern = NODE(Add, X, NODE(Multiply, Y, NUMBER(-1))),
     .replacement = NODE(Subtract, X, Y)},
    {.name = "subtract-negated",
     .pattern = NODE(Subtract, X, NODE(Multiply, Y, NUMBER(-1))),
     .replacement = NODE(Add, X, Y)},
    {.name = "square-negated", .pattern = NODE(Square, NODE(Multiply, X, NUMBER(-1))), .replacement = NODE(Square, X)},
    {.name = "square-absolute", .pattern = NODE(Square, NODE(Abs, X)), .replacement = NODE(Square, X)},
    {.name = "divide-power-of-two",
     .pattern = NODE(Divide, X, C),
     .replacement = NODE(Multiply, X, COMPUTED),
     .condition = divisor_is_power_of_two},
    // Identities that do not hold for every IEEE value
    {.name = "add-zero", .pattern = NODE(Add, X, NUMBER(0)), .replacement = X, .is_fast_math = true},
    {.name = "multiply-zero", .pattern = NODE(Multiply, X, NUMBER(0)), .replacement = NUMBER(0), .is_fast_math = true},
    {.name = "subtract-itself", .pattern = NODE(Subtract, X, X), .replacement = NUMBER(0), .is_fast_math = true},
    {.name = "divide-itself", .pattern = NODE(Divide, X, X), .replacement = NUMBER(1), .is_fast_math = true},
    {.name = "reciprocal-reciprocal",
     .pattern = NODE(Reciprocal, NODE(Reciprocal, X)),
     .replacement = X,
     .is_fast_math = true},
    {.name = "multiply-reciprocal",
     .pattern = NODE(Multiply, X, NODE(Reciprocal, Y)),
     .replacement = NODE(Divide, X, Y),
     .is_fast_math = true},
    {.name = "square-root-squared", .pattern = NODE(Square, NODE(Sqrt, X)), .replacement = X, .is_fast_math = true},
    {.name = "multiply-constants",
     .pattern = NODE(Multiply, NODE(Multiply, X, C), D),
     .replacement = NODE(Multiply, X, COMPUTED),
     .condition = constants_multiply,
     .is_fast_math = true},
    {.name = "power-half", .pattern = POW(0.5, X), .replacement = NODE(Sqrt, X), .is_fast_math = true},
    {.name = "logarithm-exponential", .pattern = NODE(Log, NODE(Exp, X)), .replacement = X, .is_fast_math = true},
};
const Rules simplify_rules = {rules, sizeof rules / sizeof *rules};

bool pass_simplify(Graph *g, PassContext *c) {
  return rewrite_graph(g, c, &simplify_rules);
}
