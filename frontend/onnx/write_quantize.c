// Writers of quantisation to 8 bits. ONNX adds zero points after rounding, ngrad before: this differs at halves where a
// zero point is odd. QuantizeLinear and DequantizeLinear are written where both are the same, else formulas.
#include "frontend/onnx/write_standard.h"
#include "ir/operators/movement.h"

// Scales and zero points: of the whole tensor, or a vector along an axis.
typedef struct Scaling {
  int axis;
  bool is_vector;
  const char *scale, *zero; // the zero point as it is given; NULL: none
  Type zero_type;
  bool are_even, are_in_range; // the zero points, as far as is known
} Scaling;

static bool is_back(const Node *node) {
  return node->op->id == OP_Dequantize || node->op->id == OP_DynamicDequantize;
}

static const Value *quantized(const Node *node) {
  return is_back(node) ? node->inputs[0] : node->outputs[0];
}

// From attributes: scales repeat along the axis, and so does a single zero point; other missing ones are 0.
static bool take_lists(OnnxWriter *w, const Node *node, Scaling *s) {
  enum { MOST = 1 << 20 };
  const AttributeValue *scales = node_attribute(node, "scales"), *zps = node_attribute(node, "zps");
  const Shape *shape = &node->inputs[0]->shape;
  const Extent channels = s->is_vector ? shape->extent[s->axis] : EXTENT(1);
  const double least = quantized(node)->type == TYPE_U8 ? 0 : INT8_MIN,
               most = quantized(node)->type == TYPE_U8 ? UINT8_MAX : INT8_MAX;
  if (!extent_is_literal(channels) || channels.value > MOST) return false;
  const size_t count = (size_t)channels.value;
  float *factors = ARENA_ARRAY(w->node_names.arena, float, count + 1);
  int32_t *zeros = ARENA_ARRAY(w->node_names.arena, int32_t, count + 1);
  if (!factors || !zeros) return w->node.out_of_memory = true;
  for (size_t i = 0; i < count; i++) {
    factors[i] = (float)scales->numbers.items[i % scales->numbers.count];
    const size_t at = zps->list.count == 1 ? 0 : i;
    zeros[i] = at < zps->list.count ? (int32_t)zps->list.items[at] : 0;
    s->are_even &= zeros[i] % 2 == 0;
    s->are_in_range &= zeros[i] >= least && zeros[i] <= most;
  }
  s->scale = onnx_put_initializer(w, TYPE_F32, &channels.value, s->is_vector, factors);
  if (zps->list.count == 0) return true;
  s->zero = onnx_put_initializer(w, TYPE_S32, &channels.value, s->is_vector, zeros);
  s->zero_type = TYPE_S32;
  return true;
}

// From inputs, of which one element counts for all.
static bool take_inputs(OnnxWriter *w, const Node *node, Scaling *s) {
  const Value *scales = node->inputs[1], *zps = node->inputs[2];
  const Extent channels = s->is_vector ? node->inputs[0]->shape.extent[s->axis] : EXTENT(1);
  if (!extent_is_literal(channels)) return false;
  if (s->is_vector && !extent_equals(scales->shape.extent[0], channels)) return false;
  if (zps && !extent_equals(zps->shape.extent[0], channels)) return false;
  s->scale = s->is_vector ? w->in[1] : onnx_put_reshape(w, w->in[1], NULL, 0, NULL);
  if (!zps) return true;
  if (TYPE_BIT(zps->type) & TYPES_4_BITS) return false;
  s->zero = s->is_vector ? w->in[2] : onnx_put_reshape(w, w->in[2], NULL, 0, NULL);
  s->zero_type = zps->type;
  s->are_even = false; // for all one knows
  s->are_in_range = zps->type == quantized(node)->type;
  return true;
}

static bool write_linear(OnnxWriter *w, const Node *node, const char *name, const Scaling *s) {
  const Type type = quantized(node)->type;
  const uint64_t none = 0;
  const char *zero = s->zero;
  if (zero && s->zero_type != type) zero = onnx_put_cast(w, zero, type, NULL);
  if (!zero && !s->is_vector) zero = onnx_put_initializer(w, type, NULL, 0, &none);
  if (!zero && !is_back(node)) // it says the type
    zero = onnx_put_cast(w, onnx_put(w, "Sub", NULL, s->scale, s->scale), type, NULL);
  onnx_begin(w, name, w->in[0], s->scale, zero);
  if (s->is_vector) onnx_add_int(w, "axis", s->axis);
  return onnx_end(w, w->out[0]);
}

// src / scale + zp, rounded and saturated, or (src - zp) * scale.
static bool write_formula(OnnxWriter *w, const Node *node, const Scaling *s) {
  const Type real = is_back(node) ? node->outputs[0]->type : node->inputs[0]->type,
             type = real == TYPE_F64 ? TYPE_F64 : TYPE_F32;
  int64_t axes[MAX_RANK];
  int count = 0;
  for (int i = s->axis + 1; s->is_vector && i < node->inputs[0]->shape.rank; i++) axes[count++] = i - s->axis;
  const char *scale = onnx_put_axes(w, "Unsqueeze", s->scale, axes, (size_t)count, NULL), *zero = s->zero;
  if (node->ninputs > 1 && node->inputs[1]->type != type) scale = onnx_put_cast(w, scale, type, NULL);
  if (node->ninputs == 1 && type != TYPE_F32) scale = onnx_put_cast(w, scale, type, NULL);
  if (zero) zero = onnx_put_cast(w, onnx_put_axes(w, "Unsqueeze", zero, axes, (size_t)count, NULL), type, NULL);
  if (!is_back(node)) {
    const char *v = onnx_put(w, "Div", NULL, w->in[0], scale);
    if (zero) v = onnx_put(w, "Add", NULL, v, zero);
    onnx_put_saturated(w, v, type, node->outputs[0]->type, w->out[0]);
    return true;
  }
  const char *v = onnx_put_cast(w, w->in[0], type, NULL);
  if (zero) v = onnx_put(w, "Sub", NULL, v, zero);
  v = onnx_put(w, "Mul", real == type ? w->out[0] : NULL, v, scale);
  if (real != type) onnx_put_cast(w, v, real, w->out[0]);
  return true;
}

bool onnx_write_quantize(OnnxWriter *w, const Node *node, const char *name) {
  const bool has_lists = node->op->id == OP_Quantize || node->op->id == OP_Dequantize;
  const Value *real = is_back(node) ? node->outputs[0] : node->inputs[0];
  Scaling s = {.are_even = true, .are_in_range = true, .is_vector = onnx_choice_is(node, "qtype", "per_channel")};
  if (!(TYPE_BIT(quantized(node)->type) & TYPES_BYTE) || onnx_choice_is(node, "qtype", "per_group")) return false;
  if (s.is_vector) s.axis = axis_of(node, node->inputs[0]->shape.rank);
  const AttributeValue *scales = has_lists ? node_attribute(node, "scales") : NULL;
  if (has_lists ? scales->numbers.count == 1 && node_attribute(node, "zps")->list.count == 0
                : s.is_vector && extent_equals(node->inputs[1]->shape.extent[0], EXTENT(1)) && !node->inputs[2])
    s.is_vector = false;
  if (!(has_lists ? take_lists(w, node, &s) : take_inputs(w, node, &s))) return false;
  const bool is_plain = real->type == TYPE_F32 && s.are_in_range && (is_back(node) || s.are_even);
  return is_plain ? write_linear(w, node, name, &s) : write_formula(w, node, &s);
}
