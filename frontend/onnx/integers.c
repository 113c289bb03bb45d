// Integer arithmetic that has no operator: quotients, remainders, bits, and types in which nothing is computed. Those
// of 8 and 16 bits are computed in s32, and u32 in s64, where they have the same order. u64 is computed in s64 with the
// same bits, so sums, differences and products are right, but the order is not (onnx_ordered).
#include "frontend/onnx/translation.h"

static Value *is_negative(Onnx *x, Value *v) {
  return v ? build_binary(&x->build, OP_Less, v, build_like(&x->build, v, 0)) : NULL;
}

static bool is_computed(Type type) {
  return TYPES_ARITHMETIC & TYPE_BIT(type);
}

Value *onnx_wide(Onnx *x, Value *v) {
  if (!v || is_computed(v->type)) return v;
  const bool is_wide = TYPE_BIT(v->type) & (TYPE_BIT(TYPE_U32) | TYPE_BIT(TYPE_U64));
  return build_cast(&x->build, v, is_wide ? TYPE_S64 : TYPE_S32);
}

// Adds 2^63 and drops the carry, which is its own inverse.
static Value *moved_by_half(Onnx *x, Value *v) {
  return build_binary(&x->build, OP_Add, v, build_number(&x->build, TYPE_S64, NULL, -0x1p63));
}

Value *onnx_to_wrap(Onnx *x, Value *v, Type type) {
  return build_cast(&x->build, v, type == TYPE_U64 ? TYPE_U64 : TYPE_S64);
}

Value *onnx_ordered(Onnx *x, Value *v) {
  return v && v->type == TYPE_U64 ? moved_by_half(x, onnx_wide(x, v)) : onnx_wide(x, v);
}

Value *onnx_from_ordered(Onnx *x, Value *v, Type type) {
  return build_cast(&x->build, v && type == TYPE_U64 ? moved_by_half(x, v) : v, type);
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
  a = onnx_wide(x, a);
  b = onnx_wide(x, b);
  Value *multiple = build_binary(build, OP_Subtract, a, build_binary(build, OP_Mod, a, b)),
        *quotient = near_quotient(x, multiple, b);
  Value *rest = build_binary(build, OP_Subtract, multiple, build_binary(build, OP_Multiply, quotient, b));
  return build_cast(build, build_binary(build, OP_Add, quotient, near_quotient(x, rest, b)), type);
}

// The quotient of u64: by a divisor of at most 63 bits, twice that of half the dividend, or one more; else 0 or 1.
static Value *divide_unsigned(Onnx *x, Value *a, Value *b) {
  Builder *build = &x->build;
  Value *dividend = onnx_wide(x, a), *divisor = onnx_wide(x, b);
  Value *last = dividend ? build_binary(build, OP_Mod, dividend, build_like(build, dividend, 2)) : NULL;
  if (!last || !divisor) return NULL;
  Value *even = build_binary(build, OP_Subtract, dividend, build_binary(build, OP_Multiply, last, last));
  if (!even) return NULL;
  Value *half = divide_integers(x, even, build_like(build, even, 2));
  half = build_choose(build, is_negative(x, dividend), moved_by_half(x, half), half);
  Value *quotient = half ? divide_integers(x, half, divisor) : NULL;
  quotient = build_binary(build, OP_Add, quotient, quotient);
  Value *rest = build_binary(build, OP_Subtract, dividend, build_binary(build, OP_Multiply, quotient, divisor));
  Value *is_more = build_binary(build, OP_GreaterEqual, build_cast(build, rest, TYPE_U64), b);
  quotient = build_binary(build, OP_Add, quotient, build_cast(build, is_more, TYPE_S64));
  Value *is_one = build_cast(build, build_binary(build, OP_GreaterEqual, a, b), TYPE_S64);
  return build_cast(build, build_choose(build, is_negative(x, divisor), is_one, quotient), TYPE_U64);
}

static Value *divide(Onnx *x, Value *a, Value *b) {
  return a->type == TYPE_U64 ? divide_unsigned(x, a, b) : divide_integers(x, a, b);
}

// The remainder with the sign of a or, without fmod, with the sign of b, as Python's %.
bool onnx_modulo(Onnx *x) {
  Builder *build = &x->build;
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  if (!a || !b) return false;
  const Type type = a->type;
  if (type == TYPE_U64) {
    Value *whole = build_binary(build, OP_Multiply, onnx_wide(x, divide_unsigned(x, a, b)), onnx_wide(x, b));
    return onnx_out(x, 0, build_cast(build, build_binary(build, OP_Subtract, onnx_wide(x, a), whole), type));
  }
  b = onnx_wide(x, b);
  Value *rest = build_binary(build, OP_Mod, onnx_wide(x, a), b);
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
  if (id == OP_Neg) return a && (onnx_has_extents(x, a) || !is_computed(a->type));
  if (id == OP_Select) return b && !(TYPE_BIT(b->type) & TYPES_COMPARED);
  if (!a || !b || (id != OP_Add && id != OP_Subtract && id != OP_Multiply)) return false;
  return onnx_has_extents(x, a) || onnx_has_extents(x, b) || !is_computed(a->type);
}

// -v or |v| of integers
static Value *negate(Onnx *x, Value *v, OperatorId id) {
  Value *opposite = build_unary(&x->build, OP_Neg, v);
  return id == OP_Neg ? opposite : build_choose(&x->build, is_negative(x, v), opposite, v);
}

// Sums, differences, products, choices, signs and ReLU; integers wrap around.
bool onnx_arithmetic(Onnx *x) {
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  const OperatorId id = x->row->op;
  if (a && id == OP_Neg && onnx_has_extents(x, a))
    return onnx_out(x, 0, onnx_combine_extents(x, OP_Multiply, a, build_number(&x->build, TYPE_S64, NULL, -1)));
  if (a && (id == OP_Abs || id == OP_ReLU) && type_least(a->type) >= 0) return onnx_out(x, 0, a);
  if (a && (id == OP_Abs || id == OP_Neg))
    return onnx_out(x, 0, build_cast(&x->build, negate(x, onnx_wide(x, a), id), a->type));
  if (a && id == OP_ReLU) {
    Value *v = onnx_wide(x, a);
    Value *positive = build_choose(&x->build, is_negative(x, v), build_like(&x->build, v, 0), v);
    return onnx_out(x, 0, build_cast(&x->build, positive, a->type));
  }
  if (id == OP_Select) return onnx_out(x, 0, build_choose(&x->build, a, b, onnx_in(x, 2)));
  if (!a || !b) return build_error(&x->build, "expected two inputs");
  if (onnx_has_extents(x, a) || onnx_has_extents(x, b))
    return onnx_out(x, 0, onnx_combine_extents(x, x->row->op, a, b));
  Value *result = build_binary(&x->build, x->row->op, onnx_wide(x, a), onnx_wide(x, b));
  return onnx_out(x, 0, build_cast(&x->build, result, a->type));
}

// Multiplication or division by a power of 2; beyond the type's bits, no bit is left.
bool onnx_bit_shift(Onnx *x) {
  Builder *build = &x->build;
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  if (!a || !b) return false;
  if (!(TYPES_INTEGER & TYPE_BIT(a->type)) || type_least(a->type) < 0)
    return build_error(build, "expected unsigned integers");
  Value *power = build_binary(build, OP_Power, build_number(build, TYPE_F64, NULL, 2), build_cast(build, b, TYPE_F64)),
        *fits = build_binary(build, OP_Less, b, build_like(build, b, (double)(8 * type_nbytes(a->type)))),
        *is_left = bytes_are(onnx_text(x, "direction"), "LEFT") ? power : NULL;
  power = build_cast(build, power, a->type);
  if (!power) return false;
  Value *moved = is_left ? build_binary(build, OP_Multiply, onnx_wide(x, a), onnx_wide(x, power)) : divide(x, a, power);
  return onnx_out(x, 0, build_choose(build, fits, build_cast(build, moved, a->type), build_like(build, a, 0)));
}

bool onnx_divide(Onnx *x) {
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  if (onnx_has_extents(x, a) || onnx_has_extents(x, b)) return onnx_out(x, 0, onnx_combine_extents(x, OP_Divide, a, b));
  if (a && b && !type_is_float(a->type)) return onnx_out(x, 0, divide(x, a, b));
  return onnx_out(x, 0, build_binary(&x->build, OP_Divide, a, b));
}
