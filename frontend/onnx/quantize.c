// Quantisation: integers with a scale and a zero point. Products of integers are computed in f64, in which sums are
// exact up to 2^53.
#include "frontend/onnx/translation.h"

// A scale or a zero point of type `type`, along an axis of v, or one number.
static Value *along(Onnx *x, const Value *v, Value *numbers, int64_t given_axis, Type type) {
  Builder *b = &x->build;
  int64_t shape[MAX_RANK];
  int axis;
  numbers = build_cast(b, numbers, type);
  if (!v || !numbers) return NULL;
  if (numbers->shape.rank == 0) return numbers;
  if (numbers->shape.rank != 1) return build_error(b, "expected one scale, or a vector of them"), NULL;
  if (extent_equals(numbers->shape.extent[0], EXTENT(1))) return build_reshape(b, numbers, NULL, 0);
  if (!onnx_axis(x, given_axis, v->shape.rank, &axis) || !onnx_has_number(x, numbers, 0)) return NULL;
  shape[0] = numbers->shape.extent[0].value;
  for (int i = 1; i < v->shape.rank - axis; i++) shape[i] = 1;
  return build_reshape(b, numbers, shape, (size_t)(v->shape.rank - axis));
}

// round(v / scale) + zero, with halves rounded to even, saturated
static Value *quantize(Onnx *x, Value *v, Value *scale, Value *zero, int64_t axis, Type type) {
  Builder *b = &x->build;
  if (!v || !scale) return NULL;
  Value *number = build_unary(b, OP_Round, build_binary(b, OP_Divide, v, along(x, v, scale, axis, v->type)));
  if (zero) number = build_binary(b, OP_Add, number, along(x, v, zero, axis, v->type));
  return build_cast(b, number, type);
}

// (v - zero) * scale; scale NULL: 1
static Value *dequantize(Onnx *x, Value *v, Value *scale, Value *zero, int64_t axis, Type type) {
  Builder *b = &x->build;
  const Value *given = v;
  v = build_cast(b, v, type);
  if (zero) v = build_binary(b, OP_Subtract, v, along(x, given, zero, axis, type));
  if (v && scale) v = build_binary(b, OP_Multiply, v, along(x, given, scale, axis, type));
  return v;
}

bool onnx_quantize(Onnx *x) {
  Value *v = onnx_in(x, 0), *zero = onnx_in(x, 2);
  if (onnx_int(x, "output_dtype", 0) || onnx_int(x, "block_size", 0)) // from opset 21
    return build_error(&x->build, "output_dtype and block_size are not supported");
  return onnx_out(x, 0,
                  quantize(x, v && !type_is_float(v->type) ? build_cast(&x->build, v, TYPE_F32) : v, onnx_in(x, 1),
                           zero, onnx_int(x, "axis", 1), zero ? zero->type : TYPE_U8));
}

bool onnx_dequantize(Onnx *x) {
  Value *scale = onnx_in(x, 1);
  return scale &&
         onnx_out(x, 0, dequantize(x, onnx_in(x, 0), scale, onnx_in(x, 2), onnx_int(x, "axis", 1), scale->type));
}

static Value *reduce_all(Onnx *x, OperatorId id, Value *v) {
  int64_t axes[MAX_RANK];
  if (!v || v->shape.rank == 0) return v;
  for (int i = 0; i < v->shape.rank; i++) axes[i] = i;
  return build_reduce(&x->build, id, v, axes, (size_t)v->shape.rank, false);
}

// Quantises to 8 bits, with the scale and zero point that cover the input's range and 0.
bool onnx_dynamic_quantize(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  if (!v) return false;
  Value *zero = build_like(b, v, 0), *steps = build_like(b, v, 255);
  Value *least = build_binary(b, OP_Minimum, reduce_all(x, OP_ReduceMin, v), zero),
        *most = build_binary(b, OP_Maximum, reduce_all(x, OP_ReduceMax, v), zero);
  Value *scale = build_binary(b, OP_Divide, build_binary(b, OP_Subtract, most, least), steps);
  Value *point = build_cast(
      b, build_unary(b, OP_Round, build_binary(b, OP_Divide, build_unary(b, OP_Neg, least), scale)), TYPE_U8);
  return onnx_out(x, 0, quantize(x, v, scale, point, 0, TYPE_U8)) && onnx_out(x, 1, scale) && onnx_out(x, 2, point);
}

// The axis of rows, along which the zero point of a product's first operand may vary.
static int64_t row_axis(const Value *v) {
  return v && v->shape.rank > 1 ? v->shape.rank - 2 : 0;
}

// Exact sums in f64 as s32, which wrap around.
static Value *as_sum(Onnx *x, Value *v) {
  return build_cast(&x->build, build_cast(&x->build, v, TYPE_S64), TYPE_S32);
}

bool onnx_matmul_integer(Onnx *x) {
  Value *a = dequantize(x, onnx_in(x, 0), NULL, onnx_in(x, 2), row_axis(onnx_in(x, 0)), TYPE_F64),
        *b = dequantize(x, onnx_in(x, 1), NULL, onnx_in(x, 3), -1, TYPE_F64);
  return onnx_out(x, 0, as_sum(x, build_binary(&x->build, OP_MatMul, a, b)));
}

// Inputs: a with its scale and zero point, b with its own, and the result's.
bool onnx_matmul_quantized(Onnx *x) {
  Value *a = dequantize(x, onnx_in(x, 0), onnx_in(x, 1), onnx_in(x, 2), row_axis(onnx_in(x, 0)), TYPE_F64),
        *b = dequantize(x, onnx_in(x, 3), onnx_in(x, 4), onnx_in(x, 5), -1, TYPE_F64), *zero = onnx_in(x, 7);
  if (!a || !b || !zero) return false;
  return onnx_out(x, 0,
                  quantize(x, build_binary(&x->build, OP_MatMul, a, b), onnx_in(x, 6), zero, row_axis(a), zero->type));
}

bool onnx_conv_integer(Onnx *x) {
  Value *v = dequantize(x, onnx_in(x, 0), NULL, onnx_in(x, 2), 1, TYPE_F64),
        *weights = dequantize(x, onnx_in(x, 1), NULL, onnx_in(x, 3), 0, TYPE_F64);
  return onnx_out(x, 0, as_sum(x, onnx_convolve(x, v, weights, NULL)));
}

// The bias is in units of the product of both scales.
bool onnx_conv_quantized(Onnx *x) {
  Builder *b = &x->build;
  Value *v = dequantize(x, onnx_in(x, 0), onnx_in(x, 1), onnx_in(x, 2), 1, TYPE_F64),
        *weights = dequantize(x, onnx_in(x, 3), onnx_in(x, 4), onnx_in(x, 5), 0, TYPE_F64), *bias = onnx_in(x, 8),
        *zero = onnx_in(x, 7);
  if (!v || !weights || !zero) return false;
  if (bias) {
    Value *unit = build_binary(b, OP_Multiply, along(x, bias, onnx_in(x, 4), 0, TYPE_F64),
                               along(x, bias, onnx_in(x, 1), 0, TYPE_F64));
    bias = build_binary(b, OP_Multiply, build_cast(b, bias, TYPE_F64), unit);
    if (!bias) return false;
  }
  return onnx_out(x, 0, quantize(x, onnx_convolve(x, v, weights, bias), onnx_in(x, 6), zero, 1, zero->type));
}
