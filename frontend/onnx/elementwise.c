// Elementwise operators that need more than a node of the graph's operator.
#include "frontend/onnx/translation.h"
#include "frontend/onnx/writer.h"

#include <math.h>
#include <string.h>

bool onnx_identity(Onnx *x) {
  return onnx_out(x, 0, onnx_in(x, 0));
}

// As f32. What integers of 4 bits keep of others, and of floats without a fraction.
static Value *last_4_bits(Onnx *x, Value *v, bool is_signed) {
  Builder *b = &x->build;
  v = build_cast(b, v, TYPE_S32);
  if (!v) return NULL;
  Value *rest = build_binary(b, OP_Mod, v, build_like(b, v, 16)); // between -15 and 15
  if (!rest) return NULL;
  Value *above = build_binary(b, OP_Greater, rest, build_like(b, rest, is_signed ? 7 : 15)),
        *below = build_binary(b, OP_Less, rest, build_like(b, rest, is_signed ? -8 : 0));
  rest = build_choose(b, above, build_plus(b, rest, -16), build_choose(b, below, build_plus(b, rest, 16), rest));
  return build_cast(b, rest, TYPE_F32);
}

// Casts are TypeCast's, but floats lose their fraction, as in a C conversion; TypeCast rounds to the nearest integer.
static Value *convert(Onnx *x, Value *v, Type type) {
  Builder *b = &x->build;
  const bool is_integer = !type_is_float(type) && type != TYPE_BOOLEAN && !(TYPE_BIT(type) & TYPES_F8);
  if (onnx_has_extents(x, v) && type_is_float(type) && type != TYPE_F64) return onnx_float_of_extent(x, v, type);
  if (v && TYPE_BIT(v->type) & (TYPES_F8 | TYPES_4_BITS) && v->type != type) v = onnx_unpack(x, v);
  if (v && is_integer && type_is_float(v->type)) v = build_truncate(b, v);
  if (type_is_float(type)) v = onnx_before_cast(x, v);
  if (v && type_is_packed(type) && v->type != type) v = last_4_bits(x, v, type == TYPE_S4);
  return onnx_pack(x, v, type, onnx_int(x, "saturate", 1) != 0);
}

bool onnx_cast_node(Onnx *x) {
  OnnxAttribute a;
  const bool is_name = x->opset < 6;
  if (!onnx_has(x, "to")) return build_error(&x->build, "expected the attribute to, a type");
  if (!onnx_attribute(x, "to", is_name ? ONNX_STRING : ONNX_INT, &a)) return false;
  const uint64_t number = is_name ? onnx_type_of_name(a.s) : (uint64_t)a.i;
  const Type type = onnx_type(number);
  if (type == TYPE_NONE) return build_error(&x->build, "casts to %s are not supported", onnx_type_name(number));
  return onnx_out(x, 0, convert(x, onnx_in(x, 0), type));
}

// The bits of integers or booleans as integers of as many bits, for which a cast keeps them.
bool onnx_bit_cast(Onnx *x) {
  Value *v = onnx_in(x, 0);
  const uint64_t number = (uint64_t)onnx_int(x, "to", 0);
  const Type type = onnx_type(number);
  if (!v) return false;
  const bool are_integers =
      TYPES_INTEGER & TYPE_BIT(type) && (TYPES_INTEGER | TYPE_BIT(TYPE_BOOLEAN)) & TYPE_BIT(v->type);
  if (type != v->type && (!are_integers || type_nbytes(type) != type_nbytes(v->type)))
    return build_error(&x->build, "bits of %s as %s are not supported", onnx_type_name(onnx_type_number(v->type)),
                       onnx_type_name(number));
  return onnx_out(x, 0, build_cast(&x->build, v, type));
}

bool onnx_cast_like(Onnx *x) {
  const Value *like = onnx_in(x, 1);
  return like && onnx_out(x, 0, convert(x, onnx_in(x, 0), like->type));
}

static bool is_one_number(const Value *v) {
  return v->constant && shape_nelems(&v->shape) == 1 && !isnan(type_load(v->type, v->constant->data, 0));
}

// Maximum or Minimum that propagates NaN from both operands. The operators themselves return NaN only if their second
// operand is NaN.
static Value *extreme_of(Onnx *x, OperatorId id, Value *first, Value *second) {
  Builder *b = &x->build;
  if (!first || !second) return NULL;
  if (is_one_number(second)) return build_binary(b, id, second, first);
  Value *v = build_binary(b, id, first, second);
  if (!type_is_float(first->type) || is_one_number(first)) return v;
  return build_choose(b, build_binary(b, OP_Equal, first, first), v, first);
}

// Operators with any number of inputs.
static Value *combine_all(Onnx *x, OperatorId id) {
  const bool is_extreme = id == OP_Maximum || id == OP_Minimum;
  Value *v = is_extreme ? onnx_ordered(x, onnx_in(x, 0)) : onnx_in(x, 0);
  for (size_t i = 1; v && i < x->node->ninputs; i++)
    v = is_extreme ? extreme_of(x, id, v, onnx_ordered(x, onnx_in(x, i)))
                   : build_binary(&x->build, id, v, onnx_in(x, i));
  return v;
}

bool onnx_fold_left(Onnx *x) {
  if (!onnx_in(x, 0)) return build_error(&x->build, "expected an input");
  return onnx_out(x, 0, onnx_from_ordered(x, combine_all(x, x->row->op), onnx_in(x, 0)->type));
}

bool onnx_mean(Onnx *x) {
  Value *sum = combine_all(x, OP_Add);
  if (!sum) return false;
  return onnx_out(x, 0, build_binary(&x->build, OP_Divide, sum, build_like(&x->build, sum, (double)x->node->ninputs)));
}

// The bounds are attributes or, from opset 11 on, optional inputs. A NaN of the input is propagated: it is the second
// operand of Maximum and Minimum.
bool onnx_clip(Onnx *x) {
  Builder *b = &x->build;
  Value *v = onnx_in(x, 0);
  if (!v) return false;
  const Value *given = v;
  v = onnx_ordered(x, v);
  for (size_t i = 1; i <= 2; i++) {
    const char *name = i == 1 ? "min" : "max";
    Value *bound = x->opset >= 11      ? onnx_in(x, i)
                   : onnx_has(x, name) ? build_like(b, given, onnx_float(x, name, 0))
                                       : NULL;
    if (bound) v = build_binary(b, i == 1 ? OP_Maximum : OP_Minimum, onnx_ordered(x, bound), v);
    if (!v) return false;
  }
  return onnx_out(x, 0, onnx_from_ordered(x, v, given->type));
}

static Value *compared(Onnx *x, Value *v) {
  return v && !(TYPES_COMPARED & TYPE_BIT(v->type)) ? onnx_wide(x, v) : v;
}

bool onnx_compare(Onnx *x) {
  return onnx_out(x, 0, build_binary(&x->build, x->row->op, compared(x, onnx_in(x, 0)), compared(x, onnx_in(x, 1))));
}

// Before opset 7, attributes said whether the second input is broadcast, and from which axis on.
bool onnx_old_binary(Onnx *x) {
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  if (!a || !b) return build_error(&x->build, "expected two inputs");
  if (onnx_int(x, "broadcast", 0) && onnx_has(x, "axis") && b->shape.rank > 0) {
    int axis;
    int64_t shape[MAX_RANK];
    if (!onnx_axis(x, onnx_int(x, "axis", 0), a->shape.rank, &axis)) return false;
    const int rank = a->shape.rank - axis;
    if (rank < b->shape.rank) return build_error(&x->build, "expected the second input to fit behind axis %d", axis);
    for (int i = 0; i < rank; i++) shape[i] = i < b->shape.rank ? extent_value(b->shape.extent[i]) : 1;
    b = build_reshape(&x->build, b, shape, (size_t)rank);
  }
  const OperatorId id = x->row->op;
  x->inputs[1] = b;
  if (id == OP_Divide && b) return onnx_divide(x);
  if (id == OP_Equal || id == OP_NotEqual || id == OP_Less || id == OP_Greater) return onnx_compare(x);
  return onnx_out(x, 0, build_binary(&x->build, id, a, b));
}

bool onnx_pow(Onnx *x) {
  Value *a = onnx_in(x, 0), *b = onnx_in(x, 1);
  if (!a || !b) return build_error(&x->build, "expected two inputs");
  const Type type = type_is_float(a->type) ? a->type : TYPE_F64;
  Value *power = build_binary(&x->build, OP_Power, build_cast(&x->build, a, type), build_cast(&x->build, b, type));
  // Integer bases with float exponents: the power is rounded towards zero.
  if (!type_is_float(a->type) && type_is_float(b->type)) power = build_truncate(&x->build, power);
  if (!type_is_float(a->type)) power = onnx_to_wrap(x, power, a->type);
  return onnx_out(x, 0, build_cast(&x->build, power, a->type));
}

// Functions with a formula in frontend/foreign/.
#define FUNCTION(name)                                                                                                 \
  bool onnx_##name(Onnx *x) {                                                                                          \
    return onnx_out(x, 0, build_##name(&x->build, onnx_in(x, 0)));                                                     \
  }
FUNCTION(acos)
FUNCTION(acosh)
FUNCTION(asin)
FUNCTION(asinh)
FUNCTION(atan)
FUNCTION(atanh)
FUNCTION(ceiling)
FUNCTION(cosh)
FUNCTION(floor)
FUNCTION(sinh)
FUNCTION(tan)

bool onnx_is_nan(Onnx *x) {
  return onnx_out(x, 0, build_binary(&x->build, OP_NotEqual, onnx_in(x, 0), onnx_in(x, 0)));
}

bool onnx_gelu(Onnx *x) {
  Value *v = onnx_in(x, 0);
  Node *node = build_node(&x->build, OP_GELU, 1, &v);
  if (!build_set_choice(node, "mode", bytes_are(onnx_text(x, "approximate"), "tanh") ? "gelu_tanh" : "gelu_erf"))
    return false;
  return onnx_out(x, 0, build_one(&x->build, node));
}

// True for each element of v, also if v's extents are unknown.
static Value *mask_of(Onnx *x, Value *v) {
  Builder *b = &x->build;
  return build_binary(b, OP_LogicalOr, build_binary(b, OP_Equal, v, v), build_binary(b, OP_NotEqual, v, v));
}

// The number of the call, from 1: a state that counts calls, so that dropout's masks differ from call to call.
static Value *call_number(Onnx *x) {
  static const Init zeros = {.kind = INIT_ZEROS};
  const Shape scalar = {.rank = 0};
  if (x->calls) return x->calls;
  const char *name = graph_fresh_name(x->build.graph, "dropout_calls");
  if (!name || !graph_add_state(x->build.graph, name, TYPE_S64, &scalar, &zeros))
    return error_out_of_memory(x->reading.d), NULL;
  x->calls = build_binary(&x->build, OP_Add, x->build.graph->inputs[x->build.graph->ninputs - 1],
                          build_number(&x->build, TYPE_S64, NULL, 1));
  return x->calls;
}

// Each node has its own masks, also if several nodes have the same seed.
static bool drop_out(Onnx *x, Value *v, double ratio) {
  Builder *b = &x->build;
  const uint64_t seed = (uint64_t)onnx_int(x, "seed", 0) << 32 | ++x->ndropouts;
  if (!(ratio >= 0 && ratio < 1)) return build_error(b, "ratio: expected a number from 0 to below 1, found %g", ratio);
  const Shape scalar = {.rank = 0};
  Constant *number;
  Value *key = build_constant(b, TYPE_S64, &scalar, &number);
  if (!key) return false;
  memcpy(number->data, &seed, sizeof seed);
  Value *const in[] = {v, key, call_number(x), build_number(b, TYPE_F32, NULL, ratio)};
  Node *node = build_node(b, OP_Dropout, 4, in);
  Value *dst = build_result(b, node, 0, TYPE_NONE), *mask = onnx_wants(x, 1) ? build_result(b, node, 1, TYPE_U8) : NULL;
  if (!dst || !build_finish(b, node) || !onnx_out(x, 0, dst)) return false;
  return !mask || onnx_out(x, 1, build_cast(b, mask, x->opset < 10 ? v->type : TYPE_BOOLEAN));
}

bool onnx_dropout(Onnx *x) {
  Value *v = onnx_in(x, 0), *mode = onnx_in(x, 2);
  double is_training = 0;
  if (!v) return false;
  if (mode && !onnx_number(x, mode, &is_training)) return false;
  if (x->opset < 7 && !onnx_int(x, "is_test", 0)) is_training = 1;
  double ratio = onnx_float(x, "ratio", 0.5);
  if (x->opset >= 12 && onnx_in(x, 1) && !onnx_number(x, onnx_in(x, 1), &ratio)) return false;
  if (is_training != 0 && ratio != 0) return drop_out(x, v, ratio);
  if (onnx_wants(x, 1) && !onnx_out(x, 1, build_cast(&x->build, mask_of(x, v), x->opset < 10 ? v->type : TYPE_BOOLEAN)))
    return false;
  return onnx_out(x, 0, v);
}

// 1 at the first of the greatest elements along an axis, 0 elsewhere. Before opset 13, along all axes from `axis` on
// together.
bool onnx_hardmax(Onnx *x) {
  Builder *b = &x->build;
  int axis;
  Value *given = onnx_in(x, 0), *v = onnx_flat_from(x, given, &axis);
  Node *node = v && onnx_has_number(x, v, axis) ? build_node(b, OP_ArgMax, 1, &v) : NULL;
  if (!node) return false;
  build_set(node, "axis")->s64 = axis;
  Value *greatest = build_one_of_type(b, node, TYPE_S64);
  Value *result = build_one_hot(b, greatest, axis, v->shape.extent[axis].value, v->type);
  return onnx_out(x, 0, v == given ? result : onnx_reshape_extents(x, result, &given->shape));
}
