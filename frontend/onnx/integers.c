// Integer arithmetic that has no operator: quotients, remainders, 8-bit integers.
#include "frontend/onnx/translation.h"

static Value *is_negative(Onnx *x, Value *v) {
  return v ? build_binary(&x->build, OP_Less, v, build_like(&x->build, v, 0)) : NULL;
}

// 8-bit integers as s32, in which they are computed; a cast back keeps the last 8 bits.
static Value *as_wide(Onnx *x, Value *v) {
  return v && TYPE_BIT(v->type) & TYPES_BYTE ? build_cast(&x->build, v, TYPE_S32) : v;
}

// The nearest integer to a quotient that is rounded to f64.
static Value *near_quotient(Onnx *x, Value *a, Value *b) {
  Value *quotient =
      build_binary(&x->build, OP_Divide, build_cast(&x->build, a, TYPE_F64), build_cast(&x->build, b, TYPE_F64));
  return build_cast(&x->build, quotient, a ? a->type : TYPE_NONE);
}

// The quotient, rounded towards 0. Without the remainder, the dividend is a multiple of the divisor. Its quotient in
// f64 is exact up to 2^53; beyond, it is off by less than 2^11, and the quotient of what is left is the difference.
static Value *divide_integers(Onnx *x, Value *a, Value *b) {
  Builder *build = &x->build;
  const Type type = a->type;
  a = as_wide(x, a);
  b = as_wide(x, b);
  Value *multiple = build_binary(build, OP_Subtract, a, build_binary(build, OP_Mod, a, b)),
        *quotient = near_quotient(x, multiple, b);
  Value *rest = build_binary(build, OP_Subtract, multiple, build_binary(build, OP_Multiply, quotient, b));
  return build_cast(build, build_binary(build, OP_Add, quotient, near_quotient(x, rest, b)), type);
}

// The remainder with the sign of a or, without fmod, with the sign of b, as Python's %.
bool onnx_modulo(Onnx *x) {
  Builder *build = &x->build;
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  if (!a || !b) return false;
  const Type type = a->type;
  b = as_wide(x, b);
  Value *rest = build_binary(build, OP_Mod, as_wide(x, a), b);
  if (onnx_int(x, "fmod", 0) == 0 && rest) {
    Value *const zero = build_like(build, rest, 0);
    Value *below = build_binary(build, OP_LogicalAnd, is_negative(x, rest), build_binary(build, OP_Greater, b, zero)),
          *above = build_binary(build, OP_LogicalAnd, build_binary(build, OP_Greater, rest, zero), is_negative(x, b));
    rest = build_choose(build, build_binary(build, OP_LogicalOr, below, above), build_binary(build, OP_Add, rest, b),
                        rest);
  }
  return onnx_out(x, 0, build_cast(build, rest, type));
}

bool onnx_needs_arithmetic(const Onnx *x) {
  const OperatorId id = x->row->op;
  const Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  if (id == OP_Abs || id == OP_ReLU) return a && !type_is_float(a->type);
  if (id == OP_Neg) return a && (onnx_has_extents(x, a) || TYPE_BIT(a->type) & TYPES_BYTE);
  if (id == OP_Select) return b && !(TYPE_BIT(b->type) & TYPES_ARITHMETIC);
  if (!a || !b || (id != OP_Add && id != OP_Subtract && id != OP_Multiply)) return false;
  return onnx_has_extents(x, a) || onnx_has_extents(x, b) || TYPE_BIT(a->type) & TYPES_BYTE;
}

// -v or |v| of integers
static Value *negate(Onnx *x, Value *v, OperatorId id) {
  Value *opposite = build_unary(&x->build, OP_Neg, v);
  return id == OP_Neg ? opposite : build_choose(&x->build, is_negative(x, v), opposite, v);
}

// Sums, differences, products, choices, signs and ReLU; 8-bit integers wrap around.
bool onnx_arithmetic(Onnx *x) {
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  const OperatorId id = x->row->op;
  if (a && id == OP_Neg && onnx_has_extents(x, a))
    return onnx_out(x, 0, onnx_combine_extents(x, OP_Multiply, a, build_number(&x->build, TYPE_S64, NULL, -1)));
  if (a && (id == OP_Abs || id == OP_Neg))
    return onnx_out(x, 0, build_cast(&x->build, negate(x, as_wide(x, a), id), a->type));
  if (a && id == OP_ReLU) {
    Value *v = as_wide(x, a);
    Value *positive = build_choose(&x->build, is_negative(x, v), build_like(&x->build, v, 0), v);
    return onnx_out(x, 0, build_cast(&x->build, positive, a->type));
  }
  if (id == OP_Select) return onnx_out(x, 0, build_choose(&x->build, a, b, onnx_in(x, 2)));
  if (!a || !b) return build_error(&x->build, "expected two inputs");
  if (onnx_has_extents(x, a) || onnx_has_extents(x, b))
    return onnx_out(x, 0, onnx_combine_extents(x, x->row->op, a, b));
  Value *result = build_binary(&x->build, x->row->op, as_wide(x, a), as_wide(x, b));
  return onnx_out(x, 0, build_cast(&x->build, result, a->type));
}

// For 8-bit integers: multiplication or division by a power of 2.
bool onnx_bit_shift(Onnx *x) {
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  if (!a || !b) return false;
  if (a->type != TYPE_U8) return build_error(&x->build, "types other than uint8 are not supported");
  Value *count = build_binary(&x->build, OP_Minimum, build_cast(&x->build, b, TYPE_F64),
                              build_number(&x->build, TYPE_F64, NULL, 8)), // after 8, no bit is left
      *power = build_binary(&x->build, OP_Power, build_number(&x->build, TYPE_F64, NULL, 2), count);
  a = build_cast(&x->build, a, TYPE_F64);
  if (bytes_are(onnx_text(x, "direction"), "LEFT"))
    return onnx_out(x, 0,
                    build_cast(&x->build,
                               build_cast(&x->build, build_binary(&x->build, OP_Multiply, a, power), TYPE_S32),
                               TYPE_U8));
  return onnx_out(x, 0,
                  build_cast(&x->build, build_floor(&x->build, build_binary(&x->build, OP_Divide, a, power)), TYPE_U8));
}

bool onnx_divide(Onnx *x) {
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  if (onnx_has_extents(x, a) || onnx_has_extents(x, b)) return onnx_out(x, 0, onnx_combine_extents(x, OP_Divide, a, b));
  if (a && b && !type_is_float(a->type)) return onnx_out(x, 0, divide_integers(x, a, b));
  return onnx_out(x, 0, build_binary(&x->build, OP_Divide, a, b));
}
