// The operators of the graph that are written as ONNX's own. Operators that the reader's rows map one to one
// (onnx_find_plain) need no row here.
#include "frontend/onnx/write_standard.h"

#include "frontend/onnx/translation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// How the types of operands become one type.
typedef enum Casting {
  NO_CASTS,   // elements are moved, or the writer does it
  CASTS_HALF, // one operator, which computes in the operands' type if it is the same for all, and not bf16
  CASTS_F32   // several operators, whose intermediate results are f32 at least
} Casting;

typedef struct StandardRow {
  OperatorId op;
  Casting casting;
  OnnxWrite write;
  const char *name; // ONNX's operator, or a formula
} StandardRow;

// Attributes are f32, constants of a formula have the operands' type.
static bool has_exact_attributes(const OnnxWriter *w, const Node *node) {
  for (uint32_t i = 0; i < node->op->nattributes && w->type == TYPE_F64; i++)
    if (node->op->attributes[i].kind == ATTRIBUTE_F32 && !onnx_is_float(node->attributes[i].f32)) return false;
  return true;
}

static bool write_inexact(OnnxWriter *w, const Node *node) {
  const char *text = node->op->id == OP_HardSigmoid ? "dst = Max(Min(alpha * src + beta, 1), 0)"
                     : node->op->id == OP_LeakyReLU ? "dst = Where(src > 0, src, alpha * src)"
                                                    : "dst = Where(src > 0, src, alpha * (Exp(src) - 1))";
  return onnx_write_expansion(w, node, text);
}

// Elementwise

// An infinite element is within an infinite bound, and NaN within none.
static bool write_clamp_backward(OnnxWriter *w, const Node *node, const char *format) {
  char text[128];
  snprintf(text, sizeof text, format, isinf(node_f32(node, "min")) ? ">=" : ">",
           isinf(node_f32(node, "max")) ? "<=" : "<");
  return onnx_write_expansion(w, node, text);
}

// Formulas of two forms, separated by |: the second if the attribute use_dst, nesterov or (of GELU) mode is set.
static bool write_either(OnnxWriter *w, const Node *node, const char *texts) {
  static const char *const attributes[] = {"use_dst", "nesterov", "mode"};
  char text[512];
  const char *second = strchr(texts, '|') + 1;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    if (!operator_has_attribute(node->op, attributes[i])) continue;
    const AttributeValue *a = node_attribute(node, attributes[i]);
    if (i == 2 ? a->s64 != 0 : a->boolean) return onnx_write_expansion(w, node, second);
  }
  snprintf(text, sizeof text, "%.*s", (int)(second - 1 - texts), texts);
  return onnx_write_expansion(w, node, text);
}

// clang-format off
#define STEP_OF_ADAM \
  "new_mean = beta1 * mean + (1 - beta1) * g; new_variance = beta2 * variance + (1 - beta2) * g * g; " \
  "a = narrow(1 - beta1 ^ wide(step)); b = narrow(1 - beta2 ^ wide(step)); "
#define STATISTICS "m = mean(src); c = src - m; v = mean(c * c); "
#define NORMED "c / Sqrt(v + epsilon) * gamma + beta; "
#define NORM STATISTICS "dst = " NORMED "mean = m; variance = v"
#define NORM_BACKWARD \
  "r = 1 / Sqrt(variance + epsilon); x = (src - mean) * r; g = gamma * diff_dst; " \
  "diff_src = r * (g - mean(g) - x * mean(g * x)); diff_gamma = total(diff_dst * x); diff_beta = total(diff_dst)"

static const StandardRow rows[] = {
    // Elementwise
    {OP_Clamp, CASTS_HALF, onnx_write_expansion, "dst = Clip(src, min, max)"},
    {OP_GELU, CASTS_F32, write_either,
     "dst = src * 0.5 * (1 + Erf(src * 0.7071067811865476))|"
     "dst = src * 0.5 * (1 + Tanh(src * 0.7978845608028654 * (1 + 0.044715 * src * src)))"},
    {OP_Mish, CASTS_F32, onnx_write_expansion, "dst = src * Tanh(Softplus(src))"},
    {OP_Pow, CASTS_HALF, onnx_write_expansion, "dst = src ^ beta"},
    {OP_SoftPlus, CASTS_F32, onnx_write_expansion, "dst = Softplus(beta * src) / beta"},
    {OP_Square, CASTS_HALF, onnx_write_expansion, "dst = src * src"},
    {OP_Swish, CASTS_F32, onnx_write_expansion, "dst = src * Sigmoid(beta * src)"},
    {OP_Add, CASTS_HALF, onnx_write_same, "Add"},
    {OP_Subtract, CASTS_HALF, onnx_write_same, "Sub"},
    {OP_Multiply, CASTS_HALF, onnx_write_same, "Mul"},
    {OP_Divide, CASTS_HALF, onnx_write_same, "Div"},
    {OP_Maximum, CASTS_HALF, onnx_write_same, "Max"},
    {OP_Minimum, CASTS_HALF, onnx_write_same, "Min"},
    {OP_SquaredDifference, CASTS_F32, onnx_write_expansion, "d = src_0 - src_1; dst = d * d"},
    {OP_Power, CASTS_HALF, onnx_write_same, "Pow"},
    {OP_Mod, CASTS_HALF, onnx_write_expansion, "dst = Mod(src_0, src_1)"},
    {OP_Equal, CASTS_HALF, onnx_write_same, "Equal"},
    {OP_NotEqual, CASTS_HALF, onnx_write_expansion, "dst = Not(src_0 == src_1)"},
    {OP_Less, CASTS_HALF, onnx_write_same, "Less"},
    {OP_LessEqual, CASTS_HALF, onnx_write_same, "LessOrEqual"},
    {OP_Greater, CASTS_HALF, onnx_write_same, "Greater"},
    {OP_GreaterEqual, CASTS_HALF, onnx_write_same, "GreaterOrEqual"},
    {OP_LogicalAnd, CASTS_HALF, onnx_write_same, "And"},
    {OP_LogicalOr, CASTS_HALF, onnx_write_same, "Or"},
    {OP_Select, CASTS_HALF, onnx_write_same, "Where"},
    {OP_BiasAdd, CASTS_HALF, onnx_write_bias, "dst = src + bias"},
    {OP_BiasAddBackward, CASTS_F32, onnx_write_bias, "diff_bias = total(diff_dst)"},
    {OP_PReLU, CASTS_F32, onnx_write_bias, "dst = Where(src > 0, src, slope * src)"},
    {OP_PReLUBackward, CASTS_F32, onnx_write_bias,
     "diff_src = Where(src > 0, diff_dst, slope * diff_dst); diff_slope = total(Where(src > 0, 0, src * diff_dst))"},
    {OP_TypeCast, NO_CASTS, onnx_write_cast, "Cast"},
    // Gradients of elementwise operators
    {OP_AbsBackward, CASTS_F32, onnx_write_expansion,
     "diff_src = Where(src > 0, diff_dst, Where(src < 0, -diff_dst, 0))"},
    {OP_ClampBackward, CASTS_F32, write_clamp_backward,
     "diff_src = Where(src %s min, Where(src %s max, diff_dst, 0), 0)"},
    {OP_EluBackward, CASTS_F32, write_either,
     "diff_src = diff_dst * Where(src > 0, 1, alpha * Exp(src))|"
     "diff_src = diff_dst * Where(src > 0, 1, src + alpha)"},
    {OP_GELUBackward, CASTS_F32, write_either,
     "diff_src = diff_dst * (0.5 * (1 + Erf(src * 0.7071067811865476)) + "
     "src * Exp(-0.5 * src * src) * 0.3989422804014327)|"
     "s = src * src; v = Tanh(src * 0.7978845608028654 * (1 + 0.044715 * s)); diff_src = diff_dst * 0.5 * (1 + v) * "
     "(1 + src * (1 - v) * 0.7978845608028654 * (1 + 0.134145 * s))"},
    {OP_HardSigmoidBackward, CASTS_F32, onnx_write_expansion,
     "t = alpha * src + beta; diff_src = Where(t > 0, Where(t < 1, alpha * diff_dst, 0), 0)"},
    {OP_HardSwishBackward, CASTS_F32, onnx_write_expansion,
     "diff_src = Where(src <= -3, 0, Where(src >= 3, diff_dst, diff_dst * (src / 3 + 0.5)))"},
    {OP_MishBackward, CASTS_F32, onnx_write_expansion,
     "t = Tanh(Softplus(src)); diff_src = diff_dst * (t + src * (1 - t * t) * Sigmoid(src))"},
    {OP_ReLUBackward, CASTS_F32, onnx_write_expansion, "diff_src = Where(src > 0, diff_dst, 0)"},
    {OP_SigmoidBackward, CASTS_F32, write_either,
     "s = Sigmoid(src); diff_src = diff_dst * s * (1 - s)|diff_src = diff_dst * src * (1 - src)"},
    {OP_SoftPlusBackward, CASTS_F32, onnx_write_expansion, "diff_src = diff_dst * Sigmoid(beta * src)"},
    {OP_SqrtBackward, CASTS_F32, write_either,
     "diff_src = diff_dst / (2 * Sqrt(src))|diff_src = diff_dst / (2 * src)"},
    {OP_TanhBackward, CASTS_F32, write_either,
     "t = Abs(Tanh(src)); diff_src = diff_dst * (1 - t) * (1 + t)|"
     "t = Abs(src); diff_src = diff_dst * (1 - t) * (1 + t)"},
    // Movement
    {OP_StaticReshape, NO_CASTS, onnx_write_reshape, "Reshape"},
    {OP_StaticTranspose, NO_CASTS, onnx_write_transpose, "Transpose"},
    {OP_Reorder, NO_CASTS, onnx_write_same, "Identity"},
    {OP_Concat, NO_CASTS, onnx_write_along_axis, "Concat"},
    {OP_Slice, NO_CASTS, onnx_write_slice, "Slice"},
    {OP_Pad, NO_CASTS, onnx_write_pad, "Pad"},
    {OP_Split, NO_CASTS, onnx_write_split, "Split"},
    {OP_Tile, NO_CASTS, onnx_write_tile, "Tile"},
    {OP_Gather, NO_CASTS, onnx_write_along_axis, "Gather"},
    {OP_GatherBackward, CASTS_F32, onnx_write_gather_backward, "ScatterND"},
    {OP_OneHot, NO_CASTS, onnx_write_one_hot, "OneHot"},
    {OP_Diagonal, NO_CASTS, onnx_write_diagonal, "Slice"},
    {OP_GenIndex, NO_CASTS, onnx_write_index, "Expand"},
    // Reductions, softmax and losses
    {OP_ReduceL1, CASTS_HALF, onnx_write_reduce, "ReduceL1"},
    {OP_ReduceL2, CASTS_HALF, onnx_write_reduce, "ReduceL2"},
    {OP_ReduceMax, CASTS_HALF, onnx_write_reduce, "ReduceMax"},
    {OP_ReduceMean, CASTS_HALF, onnx_write_reduce, "ReduceMean"},
    {OP_ReduceMin, CASTS_HALF, onnx_write_reduce, "ReduceMin"},
    {OP_ReduceProd, CASTS_HALF, onnx_write_reduce, "ReduceProd"},
    {OP_ReduceSum, CASTS_HALF, onnx_write_reduce, "ReduceSum"},
    {OP_ArgMax, CASTS_HALF, onnx_write_arg, "ArgMax"},
    {OP_ArgMin, CASTS_HALF, onnx_write_arg, "ArgMin"},
    {OP_SoftMax, CASTS_F32, onnx_write_softmax, "Softmax"},
    {OP_LogSoftmax, CASTS_F32, onnx_write_softmax, "LogSoftmax"},
    {OP_SoftMaxBackward, CASTS_F32, onnx_write_along_formula, "diff_src = dst * (diff_dst - sum(diff_dst * dst))"},
    {OP_LogSoftmaxBackward, CASTS_F32, onnx_write_along_formula, "diff_src = diff_dst - Exp(dst) * sum(diff_dst)"},
    {OP_MeanSquaredError, CASTS_F32, onnx_write_loss, "d = src - target; each = d * d"},
    {OP_BinaryCrossEntropy, CASTS_F32, onnx_write_loss, "each = Max(src, 0) - src * target + Softplus(-Abs(src))"},
    {OP_SoftmaxCrossEntropy, CASTS_F32, onnx_write_cross_entropy, "SoftmaxCrossEntropyLoss"},
    {OP_SoftmaxCrossEntropyBackward, CASTS_F32, onnx_write_cross_entropy_backward,
     "all = (1 - label_smoothing) * own + label_smoothing / classes * all_weights; "
     "q = Where(is_label, (1 - label_smoothing) * weights, 0) + label_smoothing / classes * weights; "
     "d = Where(is_class, diff_loss / total * (softmax(src) * all - q), 0 / 0)"},
    // Norms
    {OP_BatchNormInference, CASTS_F32, onnx_write_batch_norm, "BatchNormalization"},
    {OP_BatchNormForwardTraining, CASTS_F32, onnx_write_batch_norm_training,
     STATISTICS "dst = " NORMED "running_mean = momentum * mean + (1 - momentum) * m; "
     "running_variance = momentum * variance + (1 - momentum) * v; batch_mean = m; batch_variance = v"},
    {OP_BatchNormTrainingBackward, CASTS_F32, onnx_write_batch_norm_backward, NORM_BACKWARD},
    {OP_BatchNormInferenceBackward, CASTS_F32, onnx_write_norm,
     "r = 1 / Sqrt(variance + epsilon); diff_src = gamma * r * diff_dst; "
     "diff_gamma = r * total(diff_dst * (src - mean)); diff_beta = total(diff_dst)"},
    {OP_LayerNorm, CASTS_F32, onnx_write_layer_norm, NORM},
    {OP_LayerNormBackward, CASTS_F32, onnx_write_norm, NORM_BACKWARD},
    {OP_GroupNorm, CASTS_F32, onnx_write_norm, NORM},
    {OP_GroupNormBackward, CASTS_F32, onnx_write_norm, NORM_BACKWARD},
    {OP_InstanceNorm, CASTS_F32, onnx_write_instance_norm, NORM},
    {OP_InstanceNormBackward, CASTS_F32, onnx_write_norm, NORM_BACKWARD},
    {OP_RMSNorm, CASTS_F32, onnx_write_norm, "dst = src / Sqrt(mean(src * src) + epsilon) * gamma"},
    {OP_RMSNormBackward, CASTS_F32, onnx_write_norm,
     "r = 1 / Sqrt(mean(src * src) + epsilon); x = src * r; g = gamma * diff_dst; "
     "diff_src = r * (g - x * mean(g * x)); diff_gamma = total(diff_dst * x)"},
    // Products and windows
    {OP_MatMul, CASTS_F32, onnx_write_matmul, "MatMul"},
    {OP_Convolution, CASTS_F32, onnx_write_convolution, "Conv"},
    {OP_ConvTranspose, CASTS_F32, onnx_write_convolution, "ConvTranspose"},
    {OP_ConvolutionBackwardData, CASTS_F32, onnx_write_backward_data, "ConvTranspose"},
    {OP_ConvTransposeBackwardData, CASTS_F32, onnx_write_backward_data, "Conv"},
    {OP_ConvolutionBackwardWeights, CASTS_F32, onnx_write_backward_weights, "Conv"},
    {OP_ConvTransposeBackwardWeights, CASTS_F32, onnx_write_backward_weights, "Conv"},
    {OP_MaxPool, CASTS_HALF, onnx_write_pool, "MaxPool"},
    {OP_AvgPool, CASTS_F32, onnx_write_pool, "AveragePool"},
    {OP_MaxPoolBackward, CASTS_F32, onnx_write_max_pool_backward, "MaxPool"},
    {OP_AvgPoolBackward, CASTS_F32, onnx_write_average_pool_backward, "ConvTranspose"},
    {OP_Interpolate, CASTS_F32, onnx_write_interpolate, "Resize"},
    {OP_InterpolateBackward, CASTS_F32, onnx_write_interpolate_backward, "MatMul"},
    // Optimizers
    {OP_SGD, CASTS_F32, onnx_write_expansion,
     "g = diff_weights + weight_decay * weights; new_weights = weights - rate * g"},
    {OP_Momentum, CASTS_F32, write_either,
     "g = diff_weights + weight_decay * weights; new_velocity = momentum * velocity + (1 - dampening) * g; "
     "new_weights = weights - rate * new_velocity|"
     "g = diff_weights + weight_decay * weights; new_velocity = momentum * velocity + (1 - dampening) * g; "
     "new_weights = weights - rate * (g + momentum * new_velocity)"},
    {OP_Adam, CASTS_F32, onnx_write_expansion,
     "g = diff_weights + weight_decay * weights; " STEP_OF_ADAM
     "new_weights = weights - rate * (new_mean / a) / (Sqrt(new_variance / b) + epsilon)"},
    {OP_AdamW, CASTS_F32, onnx_write_expansion,
     "g = diff_weights; " STEP_OF_ADAM
     "new_weights = weights * (1 - rate * weight_decay) - rate * (new_mean / a) / (Sqrt(new_variance / b) + epsilon)"},
    {OP_Adagrad, CASTS_F32, onnx_write_expansion,
     "g = diff_weights + weight_decay * weights; new_sum = sum + g * g; new_weights = weights - "
     "rate / (1 + (narrow(step) - 1) * lr_decay) * g / (Sqrt(new_sum) + epsilon)"},
    // Quantisation
    {OP_Quantize, NO_CASTS, onnx_write_quantize, "QuantizeLinear"},
    {OP_Dequantize, NO_CASTS, onnx_write_quantize, "DequantizeLinear"},
    {OP_DynamicQuantize, NO_CASTS, onnx_write_quantize, "QuantizeLinear"},
    {OP_DynamicDequantize, NO_CASTS, onnx_write_quantize, "DequantizeLinear"},
};
// clang-format on

// Writes an operator with the reader's row that maps it one to one, and with the node's numbers as attributes. What
// else the node has, auto_broadcast, has no effect on a valid node.
static bool write_plain(OnnxWriter *w, const Node *node, const char *name) {
  const OnnxRow *row = onnx_find_plain(node->op->id, ONNX_OPSET);
  if (!has_exact_attributes(w, node)) return write_inexact(w, node);
  onnx_begin_same(w, node, name);
  for (const OnnxAttributeRow *a = row->attributes; a->onnx; a++) onnx_add_float(w, a->onnx, node_f32(node, a->own));
  return onnx_end(w, w->out[0]);
}

static bool find_row(OperatorId op, StandardRow *row) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].op != op) continue;
    *row = rows[i];
    return true;
  }
  const OnnxRow *plain = onnx_find_plain(op, ONNX_OPSET);
  if (plain) *row = (StandardRow){op, CASTS_HALF, write_plain, plain->name};
  return plain;
}

bool onnx_is_written(OperatorId op) {
  StandardRow row;
  return find_row(op, &row);
}

// The type that the node is computed in.
static Type computed_type(const Node *node, Casting casting) {
  TypeSet types = 0;
  Type any = TYPE_NONE;
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Value *v = i < node->ninputs ? node->inputs[i] : node->outputs[i - node->ninputs];
    if (!v) continue;
    if (TYPE_BIT(v->type) & TYPES_FLOAT) types |= TYPE_BIT(v->type);
    if (any == TYPE_NONE) any = v->type;
  }
  if (casting == NO_CASTS || !types) return any;
  if (types & TYPE_BIT(TYPE_F64)) return TYPE_F64;
  return types == TYPE_BIT(TYPE_F16) && casting == CASTS_HALF ? TYPE_F16 : TYPE_F32;
}

static bool needs_cast(const OnnxWriter *w, const Value *v, Casting casting) {
  return casting != NO_CASTS && TYPE_BIT(v->type) & TYPES_FLOAT && v->type != w->type;
}

// Whether an operand has no elements, and extents that are no numbers: no shape for Reshape says so.
static bool is_open_and_empty(const Node *node) {
  bool is_open = false, is_empty = false;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Shape *shape = node->inputs[i] ? &node->inputs[i]->shape : NULL;
    for (int k = 0; shape && k < shape->rank; k++) {
      is_open |= !extent_is_literal(shape->extent[k]);
      is_empty |= extent_equals(shape->extent[k], EXTENT(0));
    }
  }
  return is_open && is_empty;
}

// Whether its elements have a type that few of ONNX's operators take.
static bool is_younger(const Node *node) {
  const bool is_any = node->op->id == OP_StaticReshape || node->op->id == OP_Reorder;
  return !is_any && TYPE_BIT(node->outputs[0]->type) & (TYPES_F8 | TYPES_4_BITS);
}

bool onnx_write_standard(OnnxWriter *w, const Node *node) {
  StandardRow row;
  if (!find_row(node->op->id, &row)) return false;
  if (row.casting == CASTS_F32 && is_open_and_empty(node)) return false;
  if (row.casting == NO_CASTS && is_younger(node)) return false;
  const size_t nodes = w->nodes.nbytes, initializers = w->initializers.nbytes, nfresh = w->nfresh;
  const bool is_labelled = node->label && names_find(&w->node_names, node->label);
  w->type = computed_type(node, row.casting);
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Value *v = node->inputs[i];
    w->in[i] = !v ? NULL : needs_cast(w, v, row.casting) ? onnx_put_cast(w, v->name, w->type, NULL) : v->name;
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    w->out[i] = !v ? NULL : needs_cast(w, v, row.casting) ? onnx_fresh(w) : v->name;
  }
  if (row.write(w, node, row.name)) {
    for (uint32_t i = 0; i < node->noutputs; i++) {
      const Value *v = node->outputs[i];
      if (v && w->out[i] != v->name) onnx_put_cast(w, w->out[i], v->type, v->name);
    }
    return true;
  }
  w->nodes.nbytes = nodes;
  w->initializers.nbytes = initializers;
  w->nfresh = nfresh;
  if (node->label && !is_labelled) names_set(&w->node_names, node->label, NULL);
  return false;
}
