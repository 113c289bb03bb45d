// Writes operators of the graph as ONNX's own. Operators that the reader's rows map one to one (onnx_find_plain) need
// no row here. A function returns false, before it writes anything, for forms that ONNX lacks.
#include "frontend/onnx/translation.h"
#include "frontend/onnx/writer.h"

#include <math.h>
#include <string.h>

typedef struct StandardRow {
  OperatorId op;
  const char *name; // in ONNX
  bool (*write)(OnnxWriter *w, const Node *node, const char *name);
} StandardRow;

static const char *name_of(const Value *v) {
  return v ? v->name : "";
}

static bool choice_is(const Node *node, const char *attribute, const char *choice) {
  const AttributeValue *value = node_attribute(node, attribute);
  return strcmp(node->op->attributes[value - node->attributes].choices[value->s64], choice) == 0;
}

static bool have_type(const Node *node, Type type) {
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->inputs[i] && node->inputs[i]->type != type) return false;
  return node->outputs[0]->type == type;
}

// Writes a node of `op` with one output and up to two inputs.
static void put(OnnxWriter *w, const char *op, const char *a, const char *b, const char *to) {
  onnx_begin(w, op, "");
  onnx_add_input(w, a);
  if (b) onnx_add_input(w, b);
  onnx_add_output(w, to);
  onnx_end(w);
}

static FreshName put_fresh(OnnxWriter *w, const char *op, const char *a, const char *b) {
  const FreshName to = onnx_fresh(w);
  put(w, op, a, b, to.text);
  return to;
}

static void put_transpose(OnnxWriter *w, const char *from, const int64_t *order, int rank, const char *to) {
  onnx_begin(w, "Transpose", "");
  onnx_add_input(w, from);
  onnx_add_ints(w, "perm", order, (size_t)rank);
  onnx_add_output(w, to);
  onnx_end(w);
}

// Begins and ends a node around its attributes, with unchanged inputs and first output.
static void begin_same(OnnxWriter *w, const Node *node, const char *name, uint32_t ninputs) {
  onnx_begin(w, name, "");
  for (uint32_t i = 0; i < ninputs; i++) onnx_add_input(w, name_of(node->inputs[i]));
}

static bool end_same(OnnxWriter *w, const Node *node) {
  onnx_add_output(w, node->outputs[0]->name);
  onnx_end(w);
  return true;
}

static bool write_same(OnnxWriter *w, const Node *node, const char *name) {
  begin_same(w, node, name, node->ninputs);
  return end_same(w, node);
}

// Elementwise

static bool write_divide(OnnxWriter *w, const Node *node, const char *name) {
  return type_is_float(node->outputs[0]->type) && write_same(w, node, name);
}

static bool write_cast(OnnxWriter *w, const Node *node, const char *name) {
  const Type from = node->inputs[0]->type, to = node->outputs[0]->type;
  if (!type_is_float(to) || TYPES_F8 & TYPE_BIT(from)) return false; // ngrad saturates integers
  begin_same(w, node, name, 1);
  onnx_add_int(w, "to", (int64_t)onnx_type_number(to));
  return end_same(w, node);
}

static bool write_clamp(OnnxWriter *w, const Node *node, const char *name) {
  const Type type = node->inputs[0]->type;
  const FreshName least = onnx_add_scalar(w, type, node_f32(node, "min")),
                  most = onnx_add_scalar(w, type, node_f32(node, "max"));
  begin_same(w, node, name, 1);
  onnx_add_input(w, least.text);
  onnx_add_input(w, most.text);
  return end_same(w, node);
}

static bool write_square(OnnxWriter *w, const Node *node, const char *name) {
  put(w, name, node->inputs[0]->name, node->inputs[0]->name, node->outputs[0]->name);
  return true;
}

// src / 2 * (1 + erf(src / sqrt(2)))
static bool write_gelu(OnnxWriter *w, const Node *node, const char *name) {
  const Type type = node->inputs[0]->type;
  const char *src = node->inputs[0]->name;
  if (!choice_is(node, "mode", "gelu_erf")) return false;
  const FreshName half = onnx_add_scalar(w, type, 0.5), one = onnx_add_scalar(w, type, 1),
                  root = onnx_add_scalar(w, type, sqrt(0.5));
  const FreshName scaled = put_fresh(w, "Mul", src, root.text), erf = put_fresh(w, name, scaled.text, NULL),
                  more = put_fresh(w, "Add", erf.text, one.text), halved = put_fresh(w, "Mul", src, half.text);
  put(w, "Mul", halved.text, more.text, node->outputs[0]->name);
  return true;
}

static bool write_swish(OnnxWriter *w, const Node *node, const char *name) {
  const char *src = node->inputs[0]->name;
  const double factor = node_f32(node, "beta");
  FreshName scaled;
  if (factor != 1) {
    const FreshName number = onnx_add_scalar(w, node->inputs[0]->type, factor);
    scaled = put_fresh(w, "Mul", src, number.text);
  }
  const FreshName sigmoid = put_fresh(w, name, factor != 1 ? scaled.text : src, NULL);
  put(w, "Mul", src, sigmoid.text, node->outputs[0]->name);
  return true;
}

static bool write_softplus(OnnxWriter *w, const Node *node, const char *name) {
  return node_f32(node, "beta") == 1 && write_same(w, node, name);
}

// Movement

static bool write_reshape(OnnxWriter *w, const Node *node, const char *name) {
  const AttributeValue *shape = node_attribute(node, "shape");
  const FreshName numbers = onnx_add_numbers(w, shape->list.items, shape->list.count);
  begin_same(w, node, name, 1);
  onnx_add_input(w, numbers.text);
  if (!node_bool(node, "special_zero")) onnx_add_int(w, "allowzero", 1);
  return end_same(w, node);
}

static bool write_transpose(OnnxWriter *w, const Node *node, const char *name) {
  const AttributeValue *order = node_attribute(node, "order");
  int64_t axes[MAX_RANK];
  const int rank = node->inputs[0]->shape.rank;
  if (order->list.count == 0) return write_same(w, node, name); // both reverse the axes by default
  for (int i = 0; i < rank; i++)
    axes[i] = order->list.items[i] < 0 ? order->list.items[i] + rank : order->list.items[i];
  put_transpose(w, node->inputs[0]->name, axes, rank, node->outputs[0]->name);
  return true;
}

static bool write_along_axis(OnnxWriter *w, const Node *node, const char *name) {
  begin_same(w, node, name, node->ninputs);
  onnx_add_int(w, "axis", node_s64(node, "axis"));
  return end_same(w, node);
}

static bool write_slice(OnnxWriter *w, const Node *node, const char *name) {
  static const char *const lists[] = {"starts", "ends", "axes", "steps"};
  const size_t count = node_attribute(node, "starts")->list.count;
  FreshName inputs[4];
  for (size_t i = 0; i < 4; i++) {
    const AttributeValue *list = node_attribute(node, lists[i]);
    int64_t items[MAX_RANK];
    for (size_t k = 0; k < count; k++)
      items[k] = list->list.count ? list->list.items[k] : i == 3 ? 1 : (int64_t)k; // default: first axes, step 1
    inputs[i] = onnx_add_numbers(w, items, count);
  }
  begin_same(w, node, name, 1);
  for (size_t i = 0; i < 4; i++) onnx_add_input(w, inputs[i].text);
  return end_same(w, node);
}

// Those before all axes, then those behind all; returns their number.
static size_t list_pads(const Node *node, int64_t pads[2 * MAX_RANK]) {
  const AttributeValue *begin = node_attribute(node, "pads_begin"), *end = node_attribute(node, "pads_end");
  const size_t n = begin->list.count;
  for (size_t i = 0; i < n; i++) {
    pads[i] = begin->list.items[i];
    pads[n + i] = end->list.items[i];
  }
  return 2 * n;
}

static bool write_pad(OnnxWriter *w, const Node *node, const char *name) {
  int64_t pads[2 * MAX_RANK];
  const size_t npads = list_pads(node, pads);
  const FreshName numbers = onnx_add_numbers(w, pads, npads),
                  value = onnx_add_scalar(w, node->inputs[0]->type, node_f32(node, "value"));
  begin_same(w, node, name, 1);
  onnx_add_input(w, numbers.text);
  onnx_add_input(w, value.text);
  return end_same(w, node);
}

static bool write_tile(OnnxWriter *w, const Node *node, const char *name) {
  const AttributeValue *repeats = node_attribute(node, "repeats");
  const size_t rank = (size_t)node->inputs[0]->shape.rank;
  if (repeats->list.count != rank) return false;
  const FreshName numbers = onnx_add_numbers(w, repeats->list.items, rank);
  begin_same(w, node, name, 1);
  onnx_add_input(w, numbers.text);
  return end_same(w, node);
}

static bool write_split(OnnxWriter *w, const Node *node, const char *name) {
  const AttributeValue *splits = node_attribute(node, "splits");
  FreshName numbers;
  uint32_t count = 0;
  while (count < node->noutputs && node->outputs[count]) count++;
  for (uint32_t i = count; i < node->noutputs; i++)
    if (node->outputs[i]) return false;
  if (splits->list.count) {
    if (splits->list.count != count) return false;
    numbers = onnx_add_numbers(w, splits->list.items, count);
  } else if ((uint32_t)node_s64(node, "parts") != count) {
    return false;
  }
  begin_same(w, node, name, 1);
  if (splits->list.count) onnx_add_input(w, numbers.text);
  onnx_add_int(w, "axis", node_s64(node, "axis"));
  for (uint32_t i = 0; i < count; i++) onnx_add_output(w, node->outputs[i]->name);
  onnx_end(w);
  return true;
}

// Reductions and normalisations

static bool write_reduce(OnnxWriter *w, const Node *node, const char *name) {
  const AttributeValue *axes = node_attribute(node, "axes");
  const bool is_input = strcmp(name, "ReduceSum") == 0; // the other reductions have this input only from opset 18 on
  FreshName numbers;
  if (axes->list.count == 0) return false; // reduces nothing
  if (is_input) numbers = onnx_add_numbers(w, axes->list.items, axes->list.count);
  begin_same(w, node, name, 1);
  if (is_input) onnx_add_input(w, numbers.text);
  else onnx_add_ints(w, "axes", axes->list.items, axes->list.count);
  onnx_add_int(w, "keepdims", node_bool(node, "keep_dims"));
  return end_same(w, node);
}

static bool write_arg(OnnxWriter *w, const Node *node, const char *name) {
  if (node->outputs[0]->type != TYPE_S64) return false;
  begin_same(w, node, name, 1);
  onnx_add_int(w, "axis", node_s64(node, "axis"));
  onnx_add_int(w, "keepdims", node_bool(node, "keep_dims"));
  return end_same(w, node);
}

static bool write_softmax(OnnxWriter *w, const Node *node, const char *name) {
  const bool is_plain = node->op->id == OP_LogSoftmax || (choice_is(node, "mode", "none") && !node->outputs[1]);
  return is_plain && have_type(node, node->inputs[0]->type) && write_along_axis(w, node, name);
}

static bool write_layer_norm(OnnxWriter *w, const Node *node, const char *name) {
  if (!node->inputs[1] || node->outputs[1] || node->outputs[2] || !have_type(node, node->inputs[0]->type)) return false;
  begin_same(w, node, name, node->inputs[2] ? 3 : 2);
  onnx_add_int(w, "axis", node_s64(node, "begin_norm_axis"));
  onnx_add_float(w, "epsilon", node_f32(node, "epsilon"));
  return end_same(w, node);
}

// Channels. ONNX has channels first, so an operator with channels last gets transposes around it.

typedef struct Channels {
  FreshName from, to; // channels first, if the graph has them last
  const char *src, *dst;
  bool are_last;
} Channels;

static Channels *take_channels(OnnxWriter *w, const Node *node, Channels *c) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  int64_t order[MAX_RANK] = {0, src->shape.rank - 1};
  c->are_last = choice_is(node, "data_format", "NXC");
  c->src = c->are_last ? c->from.text : src->name;
  c->dst = c->are_last ? c->to.text : dst->name;
  if (!c->are_last) return c;
  c->from = onnx_fresh(w);
  c->to = onnx_fresh(w);
  for (int i = 2; i < src->shape.rank; i++) order[i] = i - 1;
  put_transpose(w, src->name, order, src->shape.rank, c->src);
  return c;
}

static bool end_channels(OnnxWriter *w, const Node *node, const Channels *c) {
  const Value *dst = node->outputs[0];
  int64_t order[MAX_RANK] = {0};
  onnx_add_output(w, c->dst);
  onnx_end(w);
  if (!c->are_last) return true;
  for (int i = 1; i < dst->shape.rank; i++) order[i] = i + 1 < dst->shape.rank ? i + 1 : 1;
  put_transpose(w, c->dst, order, dst->shape.rank, dst->name);
  return true;
}

static bool write_batch_norm(OnnxWriter *w, const Node *node, const char *name) {
  Channels c;
  take_channels(w, node, &c);
  onnx_begin(w, name, "");
  onnx_add_input(w, c.src);
  for (uint32_t i = 1; i < node->ninputs; i++) onnx_add_input(w, node->inputs[i]->name);
  onnx_add_float(w, "epsilon", node_f32(node, "epsilon"));
  return end_channels(w, node, &c);
}

static bool write_instance_norm(OnnxWriter *w, const Node *node, const char *name) {
  if (!node->inputs[1] || !node->inputs[2] || node->outputs[1] || node->outputs[2]) return false;
  return have_type(node, node->inputs[0]->type) && write_batch_norm(w, node, name);
}

static void add_list(OnnxWriter *w, const Node *node, const char *own, const char *name) {
  const AttributeValue *list = node_attribute(node, own);
  if (list->list.count) onnx_add_ints(w, name, list->list.items, list->list.count);
}

static void add_window(OnnxWriter *w, const Node *node) {
  int64_t pads[2 * MAX_RANK];
  add_list(w, node, "strides", "strides");
  if (!choice_is(node, "auto_pad", "None")) {
    const char *mode = choice_is(node, "auto_pad", "VALID")        ? "VALID"
                       : choice_is(node, "auto_pad", "SAME_UPPER") ? "SAME_UPPER"
                                                                   : "SAME_LOWER";
    onnx_add_text(w, "auto_pad", mode);
    return;
  }
  const size_t npads = list_pads(node, pads);
  onnx_add_ints(w, "pads", pads, npads);
}

// Convolution and ConvTranspose; ONNX's weights have their channels first, too.
static bool write_convolution(OnnxWriter *w, const Node *node, const char *name) {
  const Value *weights = node->inputs[1];
  const bool is_transposed = node->op->id == OP_ConvTranspose;
  const char *kernel = weights->name;
  int64_t order[MAX_RANK] = {weights->shape.rank - 1, weights->shape.rank - 2};
  FreshName first;
  Channels c;
  if (is_transposed && !choice_is(node, "auto_pad", "None")) return false; // ONNX defines other extents of dst
  take_channels(w, node, &c);
  if (!choice_is(node, "weights_format", is_transposed ? "IOX" : "OIX")) {
    for (int i = 2; i < weights->shape.rank; i++) order[i] = i - 2;
    first = onnx_fresh(w);
    kernel = first.text;
    put_transpose(w, weights->name, order, weights->shape.rank, kernel);
  }
  onnx_begin(w, name, "");
  onnx_add_input(w, c.src);
  onnx_add_input(w, kernel);
  if (node->inputs[2]) onnx_add_input(w, node->inputs[2]->name);
  add_window(w, node);
  add_list(w, node, "dilations", "dilations");
  if (is_transposed) add_list(w, node, "output_padding", "output_padding");
  onnx_add_int(w, "group", node_s64(node, "groups"));
  return end_channels(w, node, &c);
}

static bool write_pool(OnnxWriter *w, const Node *node, const char *name) {
  const bool is_mean = node->op->id == OP_AvgPool;
  Channels c;
  take_channels(w, node, &c);
  onnx_begin(w, name, "");
  onnx_add_input(w, c.src);
  add_list(w, node, "kernel", "kernel_shape");
  add_window(w, node);
  if (!is_mean) add_list(w, node, "dilations", "dilations");
  else onnx_add_int(w, "count_include_pad", !node_bool(node, "exclude_pad"));
  onnx_add_int(w, "ceil_mode", choice_is(node, "rounding_type", "ceil"));
  return end_channels(w, node, &c);
}

// Products

static const char *transposed(OnnxWriter *w, const Value *v, FreshName *to) {
  int64_t order[MAX_RANK];
  const int rank = v->shape.rank;
  for (int i = 0; i < rank; i++) order[i] = i;
  order[rank - 1] = rank - 2;
  order[rank - 2] = rank - 1;
  *to = onnx_fresh(w);
  put_transpose(w, v->name, order, rank, to->text);
  return to->text;
}

static bool write_matmul(OnnxWriter *w, const Node *node, const char *name) {
  const Value *a = node->inputs[0], *b = node->inputs[1], *bias = node->inputs[2], *dst = node->outputs[0];
  const bool has_a = node_bool(node, "transpose_a") && a->shape.rank > 1,
             has_b = node_bool(node, "transpose_b") && b->shape.rank > 1;
  if (!have_type(node, a->type)) return false;
  if (a->shape.rank == 2 && b->shape.rank == 2 && (has_a || has_b || bias) && (!bias || bias->shape.rank <= 2)) {
    begin_same(w, node, "Gemm", bias ? 3 : 2);
    if (has_a) onnx_add_int(w, "transA", 1);
    if (has_b) onnx_add_int(w, "transB", 1);
    return end_same(w, node);
  }
  FreshName first, second, product;
  const char *left = has_a ? transposed(w, a, &first) : a->name, *right = has_b ? transposed(w, b, &second) : b->name;
  if (bias) product = put_fresh(w, name, left, right);
  if (bias) put(w, "Add", product.text, bias->name, dst->name);
  else put(w, name, left, right, dst->name);
  return true;
}

static const StandardRow rows[] = {
    {OP_ArgMax, "ArgMax", write_arg},
    {OP_ArgMin, "ArgMin", write_arg},
    {OP_AvgPool, "AveragePool", write_pool},
    {OP_BatchNormInference, "BatchNormalization", write_batch_norm},
    {OP_Clamp, "Clip", write_clamp},
    {OP_Concat, "Concat", write_along_axis},
    {OP_ConvTranspose, "ConvTranspose", write_convolution},
    {OP_Convolution, "Conv", write_convolution},
    {OP_Divide, "Div", write_divide},
    {OP_Equal, "Equal", write_same},
    {OP_GELU, "Erf", write_gelu},
    {OP_Gather, "Gather", write_along_axis},
    {OP_Greater, "Greater", write_same},
    {OP_GreaterEqual, "GreaterOrEqual", write_same},
    {OP_InstanceNorm, "InstanceNormalization", write_instance_norm},
    {OP_LayerNorm, "LayerNormalization", write_layer_norm},
    {OP_Less, "Less", write_same},
    {OP_LessEqual, "LessOrEqual", write_same},
    {OP_LogSoftmax, "LogSoftmax", write_softmax},
    {OP_LogicalAnd, "And", write_same},
    {OP_LogicalOr, "Or", write_same},
    {OP_MatMul, "MatMul", write_matmul},
    {OP_MaxPool, "MaxPool", write_pool},
    {OP_Maximum, "Max", write_same},
    {OP_Minimum, "Min", write_same},
    {OP_Pad, "Pad", write_pad},
    {OP_Power, "Pow", write_same},
    {OP_ReduceL1, "ReduceL1", write_reduce},
    {OP_ReduceL2, "ReduceL2", write_reduce},
    {OP_ReduceMax, "ReduceMax", write_reduce},
    {OP_ReduceMean, "ReduceMean", write_reduce},
    {OP_ReduceMin, "ReduceMin", write_reduce},
    {OP_ReduceProd, "ReduceProd", write_reduce},
    {OP_ReduceSum, "ReduceSum", write_reduce},
    {OP_Slice, "Slice", write_slice},
    {OP_SoftMax, "Softmax", write_softmax},
    {OP_SoftPlus, "Softplus", write_softplus},
    {OP_Split, "Split", write_split},
    {OP_Square, "Mul", write_square},
    {OP_StaticReshape, "Reshape", write_reshape},
    {OP_StaticTranspose, "Transpose", write_transpose},
    {OP_Swish, "Sigmoid", write_swish},
    {OP_Tile, "Tile", write_tile},
    {OP_TypeCast, "Cast", write_cast},
};

// Writes an operator with the reader's row that maps it one to one, and with the node's attributes.
static bool write_plain(OnnxWriter *w, const Node *node, const OnnxRow *row) {
  for (uint32_t i = 0; i < node->op->nattributes; i++) {
    const OnnxAttributeRow *a = row->attributes;
    while (a->onnx && strcmp(a->own, node->op->attributes[i].name) != 0) a++;
    if (!a->onnx) return false;
  }
  begin_same(w, node, row->name, node->ninputs);
  for (const OnnxAttributeRow *a = row->attributes; a->onnx; a++) onnx_add_float(w, a->onnx, node_f32(node, a->own));
  return end_same(w, node);
}

bool onnx_write_standard(OnnxWriter *w, const Node *node) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].op == node->op->id) return rows[i].write(w, node, rows[i].name);
  const OnnxRow *row = onnx_find_plain(node->op->id, ONNX_OPSET);
  return row && write_plain(w, node, row);
}
