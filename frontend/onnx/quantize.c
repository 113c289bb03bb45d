// Quantisation: integers with a scale and a zero point. Products of integers are computed in f64, in which sums are
// exact up to 2^53.
#include "frontend/onnx/translation.h"
#include "frontend/onnx/writer.h"

#include <string.h>

static Value *with_scale_1(Builder *b, OperatorId id, Value *v, Type type) {
  Node *node = v ? build_node(b, id, 1, &v) : NULL;
  double *scale = node ? ARENA_ARRAY(&b->graph->arena, double, 1) : NULL;
  if (!scale) return v && node ? build_out_of_memory(b) : NULL;
  *scale = 1;
  AttributeValue *value = build_set(node, "scales");
  value->numbers.items = scale;
  value->numbers.count = 1;
  return build_one_of_type(b, node, type);
}

Value *onnx_unpack(Onnx *x, Value *v) {
  return with_scale_1(&x->build, OP_Dequantize, v, TYPE_F32);
}

Value *onnx_pack(Onnx *x, Value *v, Type type, bool saturates) {
  Builder *b = &x->build;
  const bool is_f8 = TYPE_BIT(type) & TYPES_F8;
  if (!v || v->type == type) return v;
  if (!is_f8 && !type_is_packed(type)) return build_cast(b, v, type);
  // Rounding twice could be wrong: only what f32 holds is cast.
  if (TYPE_BIT(v->type) & (TYPE_BIT(TYPE_F64) | TYPES_64_BITS | TYPE_BIT(TYPE_S32) | TYPE_BIT(TYPE_U32)))
    return build_error(b, "casts of %s to %s are not supported", onnx_type_name(onnx_type_number(v->type)),
                       onnx_type_name(onnx_type_number(type))),
           NULL;
  v = build_cast(b, v, TYPE_F32);
  if (v && is_f8 && saturates) { // NaN stays NaN
    const double most = type == TYPE_F8_E4M3 ? 448 : 57344;
    v = build_binary(b, OP_Maximum, build_like(b, v, -most), build_binary(b, OP_Minimum, build_like(b, v, most), v));
  }
  return with_scale_1(b, OP_Quantize, v, type);
}

static Value *as_type(Onnx *x, Value *v, Type type) {
  if (v && TYPE_BIT(v->type) & (TYPES_F8 | TYPES_4_BITS)) v = onnx_unpack(x, v);
  return build_cast(&x->build, v, type);
}

// Numbers of blocks of v's elements, repeated for each element.
static Value *spread_blocks(Onnx *x, const Value *v, Value *numbers, int64_t given_axis, int64_t size) {
  int axis;
  if (!onnx_axis(x, given_axis, v->shape.rank, &axis) || !onnx_has_number(x, v, axis) ||
      !onnx_has_number(x, numbers, axis))
    return NULL;
  const int64_t n = v->shape.extent[axis].value, count = numbers->shape.extent[axis].value;
  if (size < 1 || size > n || (n + size - 1) / size != count)
    return build_error(&x->build, "block_size: expected blocks that divide axis %d in %lld", axis, (long long)count),
           NULL;
  if (!build_spend(&x->build, n * (int64_t)sizeof(int64_t))) return NULL;
  int64_t *indices = ARENA_ARRAY(x->reading.arena, int64_t, (size_t)n + 1);
  if (!indices) return error_out_of_memory(x->reading.d), NULL;
  for (int64_t i = 0; i < n; i++) indices[i] = i / size;
  return onnx_take(x, numbers, indices, n, axis);
}

// A scale or a zero point of type `type`, along an axis of v, of blocks along it, or one number; it is no parameter.
static Value *along(Onnx *x, const Value *v, Value *numbers, int64_t given_axis, Type type) {
  Builder *b = &x->build;
  int64_t shape[MAX_RANK];
  int axis;
  if (numbers && numbers->constant) numbers->constant->is_initializer = false;
  numbers = as_type(x, numbers, type);
  if (!v || !numbers) return NULL;
  if (numbers->shape.rank == 0) return numbers;
  if (onnx_int(x, "block_size", 0) && numbers->shape.rank == v->shape.rank)
    return spread_blocks(x, v, numbers, given_axis, onnx_int(x, "block_size", 0));
  if (numbers->shape.rank != 1) return build_error(b, "expected one scale, or a vector of them"), NULL;
  if (extent_equals(numbers->shape.extent[0], EXTENT(1))) return build_reshape(b, numbers, NULL, 0);
  if (!onnx_axis(x, given_axis, v->shape.rank, &axis) || !onnx_has_number(x, numbers, 0)) return NULL;
  shape[0] = numbers->shape.extent[0].value;
  for (int i = 1; i < v->shape.rank - axis; i++) shape[i] = 1;
  return build_reshape(b, numbers, shape, (size_t)(v->shape.rank - axis));
}

// round(v / scale) + zero, with halves rounded to even, saturated; 8-bit floats are rounded once
static Value *quantize(Onnx *x, Value *v, Value *scale, Value *zero, int64_t axis, Type type) {
  Builder *b = &x->build;
  if (!v || !scale) return NULL;
  Value *number = build_binary(b, OP_Divide, v, along(x, v, scale, axis, v->type));
  if (!(TYPE_BIT(type) & TYPES_F8)) number = build_unary(b, OP_RoundThrough, number);
  if (zero) number = build_binary(b, OP_Add, number, along(x, v, zero, axis, v->type));
  return onnx_pack(x, number, type, onnx_int(x, "saturate", 1) != 0);
}

static bool is_made_by(const Value *v, OperatorId id) {
  return v && v->producer && v->producer->op->id == id;
}

Value *onnx_before_cast(Onnx *x, Value *v) {
  Builder *b = &x->build;
  Value *number = is_made_by(v, OP_TypeCast) ? v->producer->inputs[0] : NULL;
  const Value *rounded = is_made_by(number, OP_Add) ? number->producer->inputs[0] : number;
  if (!is_made_by(rounded, OP_RoundThrough)) return v;
  if (number == rounded) number = build_plus(b, number, 0); // no -0
  Node *node = build_node(b, OP_Clamp, 1, &number);
  if (!node) return NULL;
  build_set(node, "min")->f32 = type_least(v->type);
  build_set(node, "max")->f32 = type_greatest(v->type);
  Value *clamped = build_one(b, node);
  return clamped ? build_choose(b, build_binary(b, OP_Equal, number, number), clamped, build_like(b, clamped, 0))
                 : NULL;
}

// (v - zero) * scale; scale NULL: 1
static Value *dequantize(Onnx *x, Value *v, Value *scale, Value *zero, int64_t axis, Type type) {
  Builder *b = &x->build;
  const Value *given = v;
  v = as_type(x, onnx_before_cast(x, v), type);
  if (zero) v = build_binary(b, OP_Subtract, v, along(x, given, zero, axis, type));
  if (v && scale) v = build_binary(b, OP_Multiply, v, along(x, given, scale, axis, type));
  return v;
}

bool onnx_quantize(Onnx *x) {
  Value *v = onnx_in(x, 0), *zero = onnx_in(x, 2);
  const uint64_t wanted = (uint64_t)onnx_int(x, "output_dtype", 0);
  const Type type = zero ? zero->type : wanted ? onnx_type(wanted) : TYPE_U8;
  if (!(TYPE_BIT(type) & (TYPES_QUANTIZED | TYPES_16_BITS)))
    return build_error(&x->build, "output_dtype: %s is not supported", onnx_type_name(wanted));
  if (v && (!type_is_float(v->type) || (v->type == TYPE_F64 && !(TYPE_BIT(type) & (TYPES_BYTE | TYPES_16_BITS)))))
    v = build_cast(&x->build, v, TYPE_F32);
  return onnx_out(x, 0, quantize(x, v, onnx_in(x, 1), zero, onnx_int(x, "axis", 1), type));
}

// A stored tensor, dequantised, is a weight.
static Value *as_weight(Onnx *x, const Value *given, Value *v) {
  const bool is_weight = given && given->constant && given->constant->is_initializer && given->shape.rank > 0;
  Value *known = is_weight ? onnx_known(x, v) : NULL;
  if (!known || !known->constant) return v;
  const char *name = onnx_wants(x, 0) ? onnx_text_of(x, x->node->outputs[0]) : NULL;
  known->constant->is_initializer = true;
  if (name && onnx_is_name(name)) known->name = arena_copy_text(&x->build.graph->arena, name, strlen(name));
  return known->name ? known : (error_out_of_memory(x->reading.d), NULL);
}

bool onnx_dequantize(Onnx *x) {
  Value *v = onnx_in(x, 0), *scale = onnx_in(x, 1);
  const uint64_t wanted = (uint64_t)onnx_int(x, "output_dtype", 0);
  const Type type = wanted ? onnx_type(wanted) : scale ? scale->type : TYPE_NONE;
  if (scale && !type_is_float(type))
    return build_error(&x->build, "output_dtype: %s is not supported", onnx_type_name(wanted));
  return scale && onnx_out(x, 0, as_weight(x, v, dequantize(x, v, scale, onnx_in(x, 2), onnx_int(x, "axis", 1), type)));
}

// The axis of rows, along which the zero point of a product's first operand may vary.
static int64_t row_axis(const Value *v) {
  return v && v->shape.rank > 1 ? v->shape.rank - 2 : 0;
}

// Exact sums in f64, of as many products as `naxes` axes of the weights have elements, as s32. What follows takes
// the sums before the cast, so that a gradient reaches them, unless there are so many that s32 may wrap around.
static Value *as_sum(Onnx *x, Value *sum, const Value *weights, int axis, int naxes) {
  enum { MOST_EXACT = INT32_MAX / (255 * 255) };
  Builder *b = &x->build;
  if (!sum || !weights) return NULL;
  const Extent count = onnx_product(x, weights, axis, axis + naxes);
  if (extent_is_literal(count) && count.value <= MOST_EXACT)
    return build_cast(b, build_unary(b, OP_RoundThrough, sum), TYPE_S32);
  return build_cast(b, build_cast(b, sum, TYPE_S64), TYPE_S32);
}

bool onnx_matmul_integer(Onnx *x) {
  Value *a = dequantize(x, onnx_in(x, 0), NULL, onnx_in(x, 2), row_axis(onnx_in(x, 0)), TYPE_F64),
        *b = dequantize(x, onnx_in(x, 1), NULL, onnx_in(x, 3), -1, TYPE_F64);
  const int axis = b && b->shape.rank > 1 ? b->shape.rank - 2 : 0;
  return onnx_out(x, 0, as_sum(x, build_binary(&x->build, OP_MatMul, a, b), b, axis, 1));
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
  const int naxes = weights ? weights->shape.rank - 1 : 0;
  return onnx_out(x, 0, as_sum(x, onnx_convolve(x, v, weights, NULL), weights, 1, naxes));
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
