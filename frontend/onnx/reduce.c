// Reductions, softmax and normalisations.
#include "frontend/onnx/translation.h"

#include <math.h>

// Axes are an input of ReduceSum from opset 13 on, and of the others from 18 on. Without axes, all axes are reduced or,
// with noop_with_empty_axes, none: then each element is reduced alone, so ReduceL2 is |x| and ReduceSumSquare x^2.
static bool take_axes(Onnx *x, const Value *v, Ints *axes) {
  bool is_given;
  if (!v || !onnx_ints_of(x, 1, "axes", axes, &is_given)) return false;
  if (axes->count == 0 && !onnx_int(x, "noop_with_empty_axes", 0))
    for (int i = 0; i < v->shape.rank; i++) axes->items[axes->count++] = i;
  return true;
}

static Value *reduce(Onnx *x, OperatorId id, Value *v) {
  Ints axes;
  if (!v || !take_axes(x, v, &axes)) return NULL;
  return build_reduce(&x->build, id, v, axes.items, axes.count, onnx_int(x, "keepdims", 1) != 0);
}

// Integers are reduced as f64, in which they are exact up to 2^53.
static Value *as_float(Onnx *x, Value *v) {
  return v && !type_is_float(v->type) ? build_cast(&x->build, v, TYPE_F64) : v;
}

// The same, and halves as f32: in f16, a sum of exponentials or of squares may overflow where the result does not.
static Value *as_wide(Onnx *x, Value *v) {
  const TypeSet narrow = TYPE_BIT(TYPE_F16) | TYPE_BIT(TYPE_BF16);
  return v && TYPE_BIT(v->type) & narrow ? build_cast(&x->build, v, TYPE_F32) : as_float(x, v);
}

// Casts a result to the type of `like`. Integers lose their fraction, and wrap around as other sums and products. But
// -inf, the maximum of no elements, becomes the least number: false for booleans.
static Value *as_type_of(Onnx *x, Value *v, const Value *like) {
  Builder *b = &x->build;
  if (type_is_float(like->type)) return build_cast(b, v, like->type);
  const bool is_extreme = x->row->op == OP_ReduceMax || x->row->op == OP_ReduceMin;
  v = build_truncate(b, v);
  v = !is_extreme ? onnx_to_wrap(x, v, like->type) : like->type == TYPE_BOOLEAN ? build_cast(b, v, TYPE_U8) : v;
  return build_cast(b, v, like->type);
}

// The mean of integers: their exact sum divided by their number. Multiplying by 1 / n could miss an integer.
static Value *mean_of_integers(Onnx *x, Value *v) {
  Value *sum = reduce(x, OP_ReduceSum, as_float(x, v)), *ones = build_number(&x->build, TYPE_F64, &v->shape, 1);
  return build_binary(&x->build, OP_Divide, sum, reduce(x, OP_ReduceSum, ones));
}

bool onnx_reduce(Onnx *x) {
  Value *v = onnx_in(x, 0);
  if (!v) return build_error(&x->build, "expected an input");
  if (onnx_has_extents(x, v) && x->row->op == OP_ReduceProd && !onnx_int(x, "noop_with_empty_axes", 0))
    return onnx_out(x, 0, onnx_multiply_extents(x, v, onnx_int(x, "keepdims", 1) != 0));
  const bool is_mean = x->row->op == OP_ReduceMean && !type_is_float(v->type);
  return onnx_out(x, 0, as_type_of(x, is_mean ? mean_of_integers(x, v) : reduce(x, x->row->op, as_float(x, v)), v));
}

// The logarithm of the sum, or the sum of squares.
bool onnx_reduce_with(Onnx *x) {
  Value *given = onnx_in(x, 0), *v = as_wide(x, given);
  if (!v) return build_error(&x->build, "expected an input");
  const bool is_log = bytes_are(x->node->op, "ReduceLogSum");
  v = reduce(x, OP_ReduceSum, is_log ? v : build_unary(&x->build, OP_Square, v));
  return onnx_out(x, 0, as_type_of(x, is_log ? build_unary(&x->build, OP_Log, v) : v, given));
}

// v if finite, else 0
static Value *if_finite(Onnx *x, Value *v) {
  Builder *b = &x->build;
  Value *is_finite = build_binary(b, OP_Less, build_unary(b, OP_Abs, v), build_like(b, v, (double)INFINITY));
  return build_choose(b, is_finite, v, build_like(b, v, 0));
}

// m + ln(sum(e^(x - m))), where m is the maximum, or 0 if that is infinite, so that no power overflows.
bool onnx_reduce_log_exp(Onnx *x) {
  Builder *b = &x->build;
  Value *given = onnx_in(x, 0), *v = as_wide(x, given);
  Ints axes;
  if (!v || !take_axes(x, v, &axes)) return false;
  Value *most = if_finite(x, build_reduce(b, OP_ReduceMax, v, axes.items, axes.count, true));
  Value *sum = reduce(x, OP_ReduceSum, build_unary(b, OP_Exp, build_binary(b, OP_Subtract, v, most)));
  // A second reduction of `most`, whose axes have extent 1, gives it the result's axes.
  Value *result = build_binary(b, OP_Add, build_unary(b, OP_Log, sum), reduce(x, OP_ReduceMax, most));
  return onnx_out(x, 0, as_type_of(x, result, given));
}

static Value *backwards(Onnx *x, Value *v, int axis) {
  const int64_t at = axis, start = -1, end = -MAX_ELEMENTS, step = -1;
  return build_slices(&x->build, v, &start, &end, &at, &step, 1);
}

// Of s64, which f64 holds up to 2^53 only: multiples of 2^32 and rests are exact in f64, so the greatest element, or
// the least, has the greatest rest among those of the greatest multiple. The result is these rests, and infinity
// elsewhere.
static Value *rests_of_extremes(Onnx *x, Value *v, int axis) {
  Builder *b = &x->build;
  const bool is_greatest = x->row->op == OP_ArgMax;
  const double none = (double)INFINITY;
  Value *rest = build_binary(b, OP_Mod, v, build_number(b, TYPE_S64, NULL, 0x1p32)),
        *multiple = build_cast(b, build_binary(b, OP_Subtract, v, rest), TYPE_F64);
  const OperatorId id = is_greatest ? OP_ReduceMax : OP_ReduceMin;
  Value *extreme = build_reduce(b, id, multiple, (int64_t[]){axis}, 1, true),
        *is_extreme = build_binary(b, OP_Equal, multiple, extreme);
  return build_choose(b, is_extreme, build_cast(b, rest, TYPE_F64),
                      build_like(b, multiple, is_greatest ? -none : none));
}

bool onnx_arg(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  int axis;
  const bool is_last = onnx_int(x, "select_last_index", 0) != 0;
  if (!v || !onnx_axis(x, onnx_int(x, "axis", 0), v->shape.rank, &axis)) return false;
  if (is_last && !onnx_has_number(x, v, axis)) return false;
  const int64_t n = extent_value(v->shape.extent[axis]);
  if (is_last) v = backwards(x, v, axis);
  v = v && TYPE_BIT(v->type) & (TYPES_BYTE | TYPES_16_BITS) ? build_cast(b, v, TYPE_F32) : onnx_ordered(x, v);
  if (v && v->type == TYPE_S64) v = rests_of_extremes(x, v, axis);
  Node *node = build_node(b, x->row->op, 1, &v);
  if (!node) return false;
  build_set(node, "axis")->s64 = axis;
  build_set(node, "keep_dims")->boolean = onnx_int(x, "keepdims", 1) != 0;
  Value *index = build_one_of_type(b, node, TYPE_S64);
  if (is_last) index = build_binary(b, OP_Subtract, build_number(b, TYPE_S64, NULL, (double)(n - 1)), index);
  return onnx_out(x, 0, index);
}

Value *onnx_flat_from(Onnx *x, Value *v, int *axis) {
  if (!v || !onnx_axis(x, onnx_int(x, "axis", x->opset < 13 ? 1 : -1), v->shape.rank, axis)) return NULL;
  Shape flat = v->shape;
  if (x->opset >= 13 || *axis == v->shape.rank - 1) return v;
  flat.rank = *axis + 1;
  for (int i = flat.rank; i < v->shape.rank; i++) {
    const Extent e = flat.extent[*axis], other = v->shape.extent[i];
    const bool are_numbers = extent_is_literal(e) && extent_is_literal(other);
    flat.extent[*axis] = are_numbers ? EXTENT(e.value * other.value) : EXTENT_UNKNOWN;
  }
  return onnx_reshape_extents(x, v, &flat);
}

bool onnx_softmax(Onnx *x) {
  int axis = 0;
  Value *given = onnx_in(x, 0), *v = onnx_flat_from(x, given, &axis);
  Value *result = build_along(&x->build, x->row->op, v, axis);
  return onnx_out(x, 0, v == given ? result : onnx_reshape_extents(x, result, &given->shape));
}

bool onnx_batch_norm(Onnx *x) {
  Builder *b = &x->build;
  const bool is_training = onnx_int(x, "training_mode", 0) != 0 || x->settings->trains_batch_norms;
  Value *const in[] = {onnx_in(x, 0), onnx_in(x, 1), onnx_in(x, 2), onnx_in(x, 3), onnx_in(x, 4)};
  Value *const training[] = {in[0], in[3], in[4], in[1], in[2]};
  if (x->opset < 9 && onnx_int(x, "spatial", 1) == 0) return build_error(b, "spatial: 0 is not supported");
  if (x->opset < 14 && (onnx_wants(x, 1) || (x->opset < 7 && !onnx_int(x, "is_test", 0))))
    return build_error(b, "training is supported from opset 14 on");
  Node *node = is_training ? build_node(b, OP_BatchNormForwardTraining, 5, training)
                           : build_node(b, OP_BatchNormInference, 5, in);
  if (!build_set_choice(node, "data_format", "NCX")) return false;
  build_set(node, "epsilon")->f32 = onnx_float(x, "epsilon", 1e-5F);
  if (!is_training) return onnx_out(x, 0, build_one(b, node));
  build_set(node, "momentum")->f32 = onnx_float(x, "momentum", 0.9F);
  Value *outputs[5];
  for (uint32_t i = 0; i < 5; i++) outputs[i] = build_result(b, node, i, TYPE_NONE);
  return build_finish(b, node) && onnx_out(x, 0, outputs[0]) && onnx_out(x, 1, outputs[1]) &&
         onnx_out(x, 2, outputs[2]);
}

bool onnx_instance_norm(Onnx *x) {
  Value *const in[] = {onnx_in(x, 0), onnx_in(x, 1), onnx_in(x, 2)};
  Node *node = build_node(&x->build, OP_InstanceNorm, 3, in);
  if (!build_set_choice(node, "data_format", "NCX")) return false;
  build_set(node, "epsilon")->f32 = onnx_float(x, "epsilon", 1e-5F);
  build_set(node, "keep_stats")->boolean = false;
  build_set(node, "use_affine")->boolean = true;
  return onnx_out(x, 0, build_one(&x->build, node));
}

// (x - mean) / sqrt(variance + epsilon); *centre becomes the mean, and *scale the factor.
static Value *normalise(Onnx *x, Value *v, const Ints *axes, double epsilon, Value **centre, Value **scale) {
  Builder *b = &x->build;
  if (!v) return NULL;
  *centre = build_reduce(b, OP_ReduceMean, v, axes->items, axes->count, true);
  Value *centred = build_binary(b, OP_Subtract, v, *centre),
        *variance = build_reduce(b, OP_ReduceMean, build_unary(b, OP_Square, centred), axes->items, axes->count, true);
  if (!variance) return NULL;
  *scale = build_unary(b, OP_Reciprocal,
                       build_unary(b, OP_Sqrt, build_binary(b, OP_Add, variance, build_like(b, v, epsilon))));
  return build_binary(b, OP_Multiply, centred, *scale);
}

// The mean and 1 / sqrt(variance + epsilon) are outputs, with extent 1 on normalised axes. Passes recognise a layer
// norm in these nodes. With stash_type 1, as by default, the two are f32; where they are wanted, halves are normalised
// in f32, as their squares may exceed the range of f16.
bool onnx_layer_norm(Onnx *x) {
  Value *v = onnx_in(x, 0), *gamma = onnx_in(x, 1), *beta = onnx_in(x, 2), *centre = NULL, *scale = NULL;
  Ints axes = {.count = 0};
  int axis;
  if (!v || !onnx_axis(x, onnx_int(x, "axis", -1), v->shape.rank, &axis)) return false;
  for (int i = axis; i < v->shape.rank; i++) axes.items[axes.count++] = i;
  const bool has_f32 = onnx_int(x, "stash_type", 1) == 1 && (onnx_wants(x, 1) || onnx_wants(x, 2));
  Value *from = has_f32 && v->type != TYPE_F64 ? build_cast(&x->build, v, TYPE_F32) : v;
  Value *dst = normalise(x, from, &axes, onnx_float(x, "epsilon", 1e-5F), &centre, &scale);
  dst = build_cast(&x->build, dst, v->type);
  if (has_f32) centre = build_cast(&x->build, centre, TYPE_F32), scale = build_cast(&x->build, scale, TYPE_F32);
  if (dst && gamma) dst = build_binary(&x->build, OP_Multiply, dst, gamma);
  if (dst && beta) dst = build_binary(&x->build, OP_Add, dst, beta);
  return onnx_out(x, 0, dst) && (!onnx_wants(x, 1) || onnx_out(x, 1, centre)) &&
         (!onnx_wants(x, 2) || onnx_out(x, 2, scale));
}
