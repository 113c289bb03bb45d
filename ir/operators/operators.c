// The operator table, and lookup in it and in the signatures.
#include "ir/operators/operator.h"

#include "ir/operators/infer.h"
#include "ir/operators/quantize.h"
#include "ir/operators/rules.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

// Initialisers that several rows of operators.def share.
#define ELEMENTWISE_UNARY .infer = infer_elementwise_unary, .types = {{'T', TYPES_FLOAT}}, .traits = TRAIT_ELEMENTWISE
#define UNARY(...)                                                                                                     \
  .inputs = {{"src", 'T', __VA_ARGS__}}, .ninputs = 1, .outputs = {{"dst", 'T'}}, .noutputs = 1, ELEMENTWISE_UNARY
#define UNARY_BACKWARD(...)                                                                                            \
  .inputs = {{"src", 'T', __VA_ARGS__}, {"diff_dst", 'T'}}, .ninputs = 2, .outputs = {{"diff_src", 'T'}},              \
  .noutputs = 1, ELEMENTWISE_UNARY
#define REQUIRED_F32(attribute)                                                                                        \
  { .name = attribute, .kind = ATTRIBUTE_F32, .is_required = true }
#define BOUND(attribute)                                                                                               \
  { .name = attribute, .kind = ATTRIBUTE_F32, .is_required = true, .may_be_infinite = true }
#define USE_DST                                                                                                        \
  { .name = "use_dst", .kind = ATTRIBUTE_BOOL, .default_value = true }
#define GELU_MODE                                                                                                      \
  {                                                                                                                    \
    .name = "mode", .kind = ATTRIBUTE_CHOICE, .choices = { "gelu_erf", "gelu_tanh" }                                   \
  }
#define BETA_1                                                                                                         \
  { .name = "beta", .kind = ATTRIBUTE_F32, .default_value = 1 }
#define AUTO_BROADCAST                                                                                                 \
  {                                                                                                                    \
    .name = "auto_broadcast", .kind = ATTRIBUTE_CHOICE, .choices = { "numpy", "none" }                                 \
  }
#define BINARY(result)                                                                                                 \
  .inputs = {{"src_0", 'T'}, {"src_1", 'T'}}, .ninputs = 2, .outputs = {{"dst", result}}, .noutputs = 1,               \
  .attributes = {AUTO_BROADCAST}, .nattributes = 1, .infer = infer_binary, .traits = TRAIT_ELEMENTWISE
#define COMPARISON                                                                                                     \
  .family = "elementwise", .doc = "comparison, with numpy broadcasting", BINARY('B'),                                  \
  .types = {{'T', TYPES_ARITHMETIC}, {'B', TYPE_BIT(TYPE_BOOLEAN)}}
#define BINARY_ARITHMETIC                                                                                              \
  .inputs = {{"src_0", 'A'}, {"src_1", 'B'}}, .ninputs = 2, .outputs = {{"dst", 'C'}}, .noutputs = 1,                  \
  .attributes = {AUTO_BROADCAST}, .nattributes = 1, .infer = infer_binary_arithmetic, .traits = TRAIT_ELEMENTWISE
#define NORM_GRADIENTS                                                                                                 \
  .outputs = {{"diff_src", 'T'}, {"diff_gamma", 'S', .is_optional = true}, {"diff_beta", 'S', .is_optional = true}},   \
  .noutputs = 3
#define BATCH_NORM_BACKWARD_OPERANDS                                                                                   \
  .inputs = {{"src", 'T'},                                                                                             \
             {"diff_dst", 'T'},                                                                                        \
             {"mean", 'M', .is_statistic = true},                                                                      \
             {"variance", 'M', .is_positive = true, .is_statistic = true},                                             \
             {"gamma", 'S', .is_optional = true},                                                                      \
             {"beta", 'S', .is_optional = true, .is_hidden = true}},                                                   \
  .ninputs = 6, NORM_GRADIENTS
#define NORM_TYPES .types = {{'T', TYPES_FLOAT}, {'S', TYPES_FLOAT}, {'M', TYPES_FLOAT}}
#define NORM_TYPES_WITHOUT_STATISTICS .types = {{'T', TYPES_FLOAT}, {'S', TYPES_FLOAT}}
#define TYPES_OF_STATISTICS                                                                                            \
  "mean and variance are f32 beside f16 or bf16 gamma and beta, unless declared in that type; gradients take f32 all " \
  "the same"
#define EPSILON_REQUIRED                                                                                               \
  { .name = "epsilon", .kind = ATTRIBUTE_F32, .is_required = true, .must_be_positive = true }
#define EPSILON_DEFAULT                                                                                                \
  { .name = "epsilon", .kind = ATTRIBUTE_F32, .default_value = 1e-5, .must_be_positive = true }
#define DATA_FORMAT                                                                                                    \
  {                                                                                                                    \
    .name = "data_format", .kind = ATTRIBUTE_CHOICE, .choices = { "NXC", "NCX" }                                       \
  }
// The attributes of windows; attribute lists of convolutions and pooling begin with these. Arguments: an attribute's
// name, and further members.
#define REQUIRED_LIST(...)                                                                                             \
  { .kind = ATTRIBUTE_S64_LIST, .is_required = true, .name = __VA_ARGS__ }
#define OPTIONAL_LIST(...)                                                                                             \
  { .kind = ATTRIBUTE_S64_LIST, .name = __VA_ARGS__ }
#define AUTO_PAD                                                                                                       \
  {                                                                                                                    \
    .name = "auto_pad", .kind = ATTRIBUTE_CHOICE, .choices = { "None", "SAME_UPPER", "SAME_LOWER", "VALID" }           \
  }
#define WINDOW_ATTRIBUTES                                                                                              \
  REQUIRED_LIST("strides", .list = LIST_SPATIAL), REQUIRED_LIST("pads_begin", .list = LIST_PADDING),                   \
      REQUIRED_LIST("pads_end", .list = LIST_PADDING), AUTO_PAD, DATA_FORMAT
enum { WINDOW_NATTRIBUTES = 5 };
#define CONVOLUTION_ATTRIBUTES                                                                                         \
  WINDOW_ATTRIBUTES, REQUIRED_LIST("dilations", .list = LIST_SPATIAL), {                                               \
    .name = "groups", .kind = ATTRIBUTE_S64, .default_value = 1, .must_be_positive = true                              \
  }
#define WEIGHTS_FORMAT(kernel_first, kernel_last)                                                                      \
  {                                                                                                                    \
    .name = "weights_format", .kind = ATTRIBUTE_CHOICE, .choices = { kernel_first, kernel_last }                       \
  }
#define OUTPUT_PADDING OPTIONAL_LIST("output_padding", .list = LIST_PADDING)
#define GIVEN_SHAPE(attribute) OPTIONAL_LIST(attribute, .list = LIST_SHAPE)
#define GIVEN_SHAPE_OPERAND(operand)                                                                                   \
  { operand, 'I', .is_optional = true }
enum { CONVOLUTION_NATTRIBUTES = WINDOW_NATTRIBUTES + 3 }; // includes weights_format
#define CONVOLUTION                                                                                                    \
  .family = "contraction", .infer = infer_convolution, .check = check_convolution, .domain = convolution_domain,       \
  .traits = TRAIT_MULTIPLIES
#define POOL_ATTRIBUTES WINDOW_ATTRIBUTES, REQUIRED_LIST("kernel", .list = LIST_SPATIAL)
enum { POOL_NATTRIBUTES = WINDOW_NATTRIBUTES + 1 };
#define TYPES_WINNERS (TYPE_BIT(TYPE_U8) | TYPE_BIT(TYPE_S32) | TYPE_BIT(TYPE_S64))
#define DILATIONS_ONE OPTIONAL_LIST("dilations", .list = LIST_SPATIAL)
#define EXCLUDE_PAD                                                                                                    \
  { .name = "exclude_pad", .kind = ATTRIBUTE_BOOL, .is_required = true }
#define ROUNDING_TYPE                                                                                                  \
  {                                                                                                                    \
    .name = "rounding_type", .kind = ATTRIBUTE_CHOICE, .choices = { "floor", "ceil" }                                  \
  }
#define POOL_FORWARD(...)                                                                                              \
  .family = "pool", .inputs = {{"src", 'T', .side = SIDE_LARGE}}, .ninputs = 1,                                        \
  .outputs = {{"dst", 'T', .side = SIDE_SMALL}}, .noutputs = 1,                                                        \
  .attributes = {POOL_ATTRIBUTES, ROUNDING_TYPE, __VA_ARGS__}, .nattributes = POOL_NATTRIBUTES + 2,                    \
  .types = {{'T', TYPES_FLOAT}}, .infer = infer_pool, .check = check_window, .domain = window_domain
#define STATISTICS_FORM                                                                                                \
  { .name = "statistics", .kind = ATTRIBUTE_CHOICE, .choices = {"vector", "broadcast"}, .is_hidden = true }
#define BEGIN_NORM_AXIS                                                                                                \
  { .name = "begin_norm_axis", .kind = ATTRIBUTE_S64, .default_value = -1 }
#define KEEP_STATS                                                                                                     \
  { .name = "keep_stats", .kind = ATTRIBUTE_BOOL, .default_value = true }
#define GROUPS                                                                                                         \
  { .name = "groups", .kind = ATTRIBUTE_S64, .is_required = true, .must_be_positive = true }
#define GROUP_A_CHANNEL                                                                                                \
  { .name = "groups", .kind = ATTRIBUTE_S64, .is_hidden = true }
#define FORWARD_OUTPUTS                                                                                                \
  .outputs = {{"dst", 'T'},                                                                                            \
              {"mean", 'M', .is_optional = true, .is_statistic = true},                                                \
              {"variance", 'M', .is_optional = true, .is_statistic = true}}
#define NORM_OPERANDS                                                                                                  \
  .inputs = {{"src", 'T'}, {"gamma", 'S', .is_optional = true}, {"beta", 'S', .is_optional = true}}, .ninputs = 3,     \
  FORWARD_OUTPUTS, .noutputs = 3
#define NORM_BACKWARD_OPERANDS                                                                                         \
  .inputs = {{"src", 'T'},                                                                                             \
             {"diff_dst", 'T'},                                                                                        \
             {"mean", 'M', .is_statistic = true},                                                                      \
             {"variance", 'M', .is_positive = true, .is_statistic = true},                                             \
             {"gamma", 'S', .is_optional = true},                                                                      \
             {"beta", 'S', .is_optional = true}},                                                                      \
  .ninputs = 6, NORM_GRADIENTS
#define USE_AFFINE                                                                                                     \
  { .name = "use_affine", .kind = ATTRIBUTE_BOOL, .default_value = true }

#define REDUCTION                                                                                                      \
  .family = "reduce", .inputs = {{"src", 'T'}}, .ninputs = 1, .outputs = {{"dst", 'T'}}, .noutputs = 1,                \
  .attributes = {{.name = "axes", .kind = ATTRIBUTE_S64_LIST}, {.name = "keep_dims", .kind = ATTRIBUTE_BOOL}},         \
  .nattributes = 2, .types = {{'T', TYPES_FLOAT}}, .infer = infer_reduce

#define ARG_REDUCTION                                                                                                  \
  .family = "reduce", .inputs = {{"src", 'T'}}, .ninputs = 1, .outputs = {{"dst", 'I'}}, .noutputs = 1,                \
  .attributes = {{.name = "axis", .kind = ATTRIBUTE_S64, .is_required = true},                                         \
                 {.name = "keep_dims", .kind = ATTRIBUTE_BOOL}},                                                       \
  .nattributes = 2, .types = {{'T', TYPES_FLOAT_OR_S32}, {'I', TYPE_BIT(TYPE_S32) | TYPE_BIT(TYPE_S64)}},              \
  .infer = infer_arg_reduce

#define SOFTMAX_AXIS_LAST .attributes = {{.name = "axis", .kind = ATTRIBUTE_S64, .default_value = -1}}, .nattributes = 1

#define LOSS_REDUCTION                                                                                                 \
  {                                                                                                                    \
    .name = "reduction", .kind = ATTRIBUTE_CHOICE, .choices = { "mean", "sum", "none" }                                \
  }
#define LOSS_TYPES                                                                                                     \
  {'T', TYPES_FLOAT}, {                                                                                                \
    'S', TYPE_BIT(TYPE_F32) | TYPE_BIT(TYPE_F64)                                                                       \
  }
#define LOSS                                                                                                           \
  .ninputs = 2, .outputs = {{"loss", 'S'}}, .noutputs = 1, .attributes = {LOSS_REDUCTION}, .nattributes = 1,           \
  .types = {LOSS_TYPES}, .infer = infer_loss
#define CROSS_ENTROPY                                                                                                  \
  .attributes = {{.name = "axis", .kind = ATTRIBUTE_S64, .default_value = -1},                                         \
                 LOSS_REDUCTION,                                                                                       \
                 {.name = "ignore_index", .kind = ATTRIBUTE_S64, .is_optional = true},                                 \
                 {.name = "label_smoothing", .kind = ATTRIBUTE_F32}},                                                  \
  .nattributes = 4, .types = {LOSS_TYPES, {'I', TYPE_BIT(TYPE_S32) | TYPE_BIT(TYPE_S64)}, {'W', TYPES_FLOAT}}

#define SPLIT_OUTPUT(name)                                                                                             \
  { name, 'T', .is_optional = true }
#define SPLIT_OUTPUTS                                                                                                  \
  .outputs = {{"dst_0", 'T'},        SPLIT_OUTPUT("dst_1"), SPLIT_OUTPUT("dst_2"), SPLIT_OUTPUT("dst_3"),              \
              SPLIT_OUTPUT("dst_4"), SPLIT_OUTPUT("dst_5"), SPLIT_OUTPUT("dst_6"), SPLIT_OUTPUT("dst_7")},             \
  .noutputs = MAX_OPERANDS

// Type variables R and N mark an optimizer's scalars; all other operands have the shape of the weights.
#define OPTIMIZER .family = "optimizer", .infer = infer_optimizer, .check = check_optimizer, .traits = TRAIT_POINTWISE
#define WEIGHTS                                                                                                        \
  { "weights", 'T' }
#define DIFF_WEIGHTS                                                                                                   \
  { "diff_weights", 'T' }
#define NEW_WEIGHTS                                                                                                    \
  { "new_weights", 'T' }
#define RATE                                                                                                           \
  { "rate", 'R', .is_positive = true }
#define STEP                                                                                                           \
  { "step", 'N', .is_positive = true, .is_count = true }
#define WEIGHT_TYPES                                                                                                   \
  { 'T', TYPES_FLOAT }
#define STATE_TYPES                                                                                                    \
  { 'S', TYPE_BIT(TYPE_F32) | TYPE_BIT(TYPE_F64) }
#define RATE_TYPES                                                                                                     \
  { 'R', TYPE_BIT(TYPE_F32) | TYPE_BIT(TYPE_F64) }
#define STEP_TYPES                                                                                                     \
  { 'N', TYPE_BIT(TYPE_S64) | TYPE_BIT(TYPE_S32) }
#define WEIGHT_DECAY(number)                                                                                           \
  { .name = "weight_decay", .kind = ATTRIBUTE_F32, .default_value = (number) }
#define OPTIMIZER_EPSILON(number)                                                                                      \
  { .name = "epsilon", .kind = ATTRIBUTE_F32, .default_value = (number), .must_be_positive = true }
#define ADAM_OPERANDS                                                                                                  \
  .inputs = {WEIGHTS, DIFF_WEIGHTS, {"mean", 'S'}, {"variance", 'S', .is_positive = true}, RATE, STEP}, .ninputs = 6,  \
  .outputs = {NEW_WEIGHTS, {"new_mean", 'S'}, {"new_variance", 'S'}}, .noutputs = 3,                                   \
  .types = {WEIGHT_TYPES, STATE_TYPES, RATE_TYPES, STEP_TYPES}
#define ADAM_ATTRIBUTES                                                                                                \
  {.name = "beta1", .kind = ATTRIBUTE_F32, .default_value = 0.9},                                                      \
      {.name = "beta2", .kind = ATTRIBUTE_F32, .default_value = 0.999}, OPTIMIZER_EPSILON(1e-8)

#define INTERPOLATE_ATTRIBUTES                                                                                         \
  .attributes = {{.name = "mode",                                                                                      \
                  .kind = ATTRIBUTE_CHOICE,                                                                            \
                  .is_required = true,                                                                                 \
                  .choices = {"nearest", "linear", "bilinear", "trilinear"}},                                          \
                 {.name = "sizes", .kind = ATTRIBUTE_S64_LIST},                                                        \
                 {.name = "scales", .kind = ATTRIBUTE_F32_LIST},                                                       \
                 {.name = "coordinate_transformation_mode",                                                            \
                  .kind = ATTRIBUTE_CHOICE,                                                                            \
                  .choices = {"half_pixel", "align_corners"}},                                                         \
                 DATA_FORMAT},                                                                                         \
  .nattributes = 5, .types = {{'T', TYPES_FLOAT}, {'I', TYPE_BIT(TYPE_S32)}}

#define QTYPE                                                                                                          \
  {                                                                                                                    \
    .name = "qtype", .kind = ATTRIBUTE_CHOICE, .choices = { "per_tensor", "per_channel" }                              \
  }
#define QTYPE_GROUPS                                                                                                   \
  {                                                                                                                    \
    .name = "qtype", .kind = ATTRIBUTE_CHOICE, .choices = { "per_tensor", "per_channel", "per_group" }                 \
  }
#define QUANTIZE_AXIS                                                                                                  \
  { .name = "axis", .kind = ATTRIBUTE_S64, .default_value = 1 }
#define RANGE_OF_QUANTIZED                                                                                             \
  "integers saturate, and NaN becomes 0; 8-bit floats do not: beyond the range, f8_e4m3 is NaN and f8_e5m2 infinite"
#define QUANTIZE_ATTRIBUTES                                                                                            \
  .attributes = {{.name = "scales", .kind = ATTRIBUTE_F32_LIST, .is_required = true},                                  \
                 {.name = "zps", .kind = ATTRIBUTE_S64_LIST},                                                          \
                 QTYPE,                                                                                                \
                 QUANTIZE_AXIS},                                                                                       \
  .nattributes = 4

const Operator operators[OP_COUNT] = {
#define OP(op_name, ...) [OP_##op_name] = {.name = #op_name, .id = OP_##op_name, __VA_ARGS__},
#include "ir/operators/operators.def"
#undef OP
};

ValueRange operand_range(const Operand *row) {
  return row->is_probability ? RANGE_PROBABILITY : row->is_positive ? RANGE_POSITIVE : RANGE_ANY;
}

bool value_is_exact(const Value *v) {
  return !type_is_float(v->type) && !(v->producer && v->producer->op->traits & TRAIT_QUANTIZES);
}

static bool signature_matches(const Signature *s, const char *text) {
  return strcmp(text, s->full_name) == 0 || (s->is_canonical_too && strcmp(text, s->name) == 0);
}

OperatorName operator_find(const char *text) {
  for (size_t i = 0; i < nsignatures; i++)
    if (signature_matches(&signatures[i], text)) return (OperatorName){&operators[signatures[i].op], &signatures[i]};
  static const char home[] = "onednn.";
  const char *name = strncmp(text, home, sizeof home - 1) == 0 ? text + sizeof home - 1 : text;
  for (size_t i = 0; i < OP_COUNT; i++)
    if (strcmp(name, operators[i].name) == 0) return (OperatorName){&operators[i], NULL};
  return (OperatorName){NULL, NULL};
}

// The only operator whose name ends with the text: StaticReshape for Reshape. NULL: there is none, or several.
static const char *only_with_end(const char *text) {
  const char *found = NULL;
  const size_t length = strlen(text);
  for (size_t i = 0; i < OP_COUNT && length >= 3; i++) {
    const size_t own = strlen(operators[i].name);
    if (own <= length || strcasecmp(operators[i].name + own - length, text) != 0) continue;
    if (found) return NULL;
    found = operators[i].name;
  }
  return found;
}

const char *operator_nearest(const char *text) {
  enum { MOST = OP_COUNT + 64 };
  const char *candidates[MOST];
  size_t count = 0;
  for (size_t i = 0; i < OP_COUNT; i++) candidates[count++] = operators[i].name;
  for (size_t i = 0; i < nsignatures && count + 2 <= MOST; i++) {
    if (signatures[i].is_canonical_too) candidates[count++] = signatures[i].name;
    candidates[count++] = signatures[i].full_name;
  }
  const char *nearest = nearest_word(text, candidates, count);
  return nearest ? nearest : only_with_end(text);
}

void operator_print_name(const Operator *op, const Signature *signature, Text *out) {
  if (!signature) text_add_string(out, op->name);
  else text_add_string(out, signature->is_canonical_too ? signature->name : signature->full_name);
}

const char *node_title(const Node *node, char buffer[NODE_TITLE_BYTES]) {
  const Signature *s = node->signature;
  bool has_dialect = s && !s->is_canonical_too;
  snprintf(buffer, NODE_TITLE_BYTES, "%s%s%s%s%s%s", has_dialect ? s->dialect : "", has_dialect ? "." : "",
           s ? s->name : node->op->name, node->label ? " (" : "", node->label ? node->label : "",
           node->label ? ")" : "");
  return buffer;
}

static uint32_t count_visible(const Operand *operands, uint32_t n) {
  while (n && operands[n - 1].is_hidden) n--;
  return n;
}

uint32_t named_ninputs(OperatorName n) {
  return n.signature ? n.signature->ninputs : count_visible(n.op->inputs, n.op->ninputs);
}

uint32_t named_noutputs(OperatorName n) {
  return n.signature ? n.signature->noutputs : count_visible(n.op->outputs, n.op->noutputs);
}

SignatureOperand named_input(OperatorName n, uint32_t i) {
  if (n.signature) return n.signature->inputs[i];
  return (SignatureOperand){n.op->inputs[i].name, (uint8_t)i, n.op->inputs[i].is_optional};
}

SignatureOperand named_output(OperatorName n, uint32_t i) {
  if (n.signature) return n.signature->outputs[i];
  return (SignatureOperand){n.op->outputs[i].name, (uint8_t)i, n.op->outputs[i].is_optional};
}

static uint32_t find_attribute(const Operator *op, const char *name) {
  uint32_t i = 0;
  while (i < op->nattributes && strcmp(op->attributes[i].name, name) != 0) i++;
  return i;
}

Extent node_indexed(const Node *node, uint32_t slot) {
  const Shape *indexed = slot ? &node->inputs[0]->shape : &node->outputs[0]->shape;
  const int64_t axis = node_s64(node, "axis");
  return indexed->extent[axis < 0 ? axis + indexed->rank : axis];
}

int64_t node_indexed_extent(const Node *node, uint32_t slot) {
  const bool is_index = slot < node->op->ninputs && node->op->inputs[slot].is_index;
  return is_index ? extent_value(node_indexed(node, slot)) : -1;
}

bool operator_has_attribute(const Operator *op, const char *name) {
  return find_attribute(op, name) < op->nattributes;
}

bool operator_places_by_axis(const Operator *op) {
  bool places = op->traits & TRAIT_ALONG_AXIS;
  for (uint32_t i = 0; i < op->ninputs; i++) places |= op->inputs[i].is_per_channel;
  for (uint32_t i = 0; i < op->noutputs; i++) places |= op->outputs[i].is_per_channel;
  return places;
}

bool node_places_by_axis(const Node *node) {
  const bool has_one_scale =
      operator_has_attribute(node->op, "qtype") && node_s64(node, "qtype") == QUANTIZE_PER_TENSOR;
  return operator_places_by_axis(node->op) && !has_one_scale;
}

static uint32_t attribute_index(const Operator *op, const char *name) {
  uint32_t i = find_attribute(op, name);
  assert(i < op->nattributes);
  return i;
}

const char *named_input_beside(OperatorName n, uint32_t i, const AttributeValue *attributes) {
  SignatureOperand row = named_input(n, i);
  const char *dst_name = n.op->inputs[row.slot].dst_name;
  if (!dst_name) return row.name;
  uint32_t use_dst = attribute_index(n.op, "use_dst");
  bool is_dst = attributes[use_dst].is_set ? attributes[use_dst].boolean : n.op->attributes[use_dst].default_value != 0;
  return is_dst ? dst_name : row.name;
}

// Whether the signature lists attributes. If not, the operator's list applies.
static bool has_own_attributes(OperatorName n) {
  return n.signature && n.signature->nattributes;
}

uint32_t named_nattributes(OperatorName n) {
  uint32_t count = 0;
  if (has_own_attributes(n)) {
    for (uint32_t i = 0; i < n.signature->nattributes; i++) count += n.signature->attributes[i].name != NULL;
    return count;
  }
  for (uint32_t i = 0; i < n.op->nattributes; i++) count += !n.op->attributes[i].is_hidden;
  return count;
}

NamedAttribute named_attribute(OperatorName n, uint32_t i) {
  uint32_t at = 0;
  if (has_own_attributes(n)) {
    for (const SignatureAttribute *a = n.signature->attributes;; a++) {
      if (!a->name || at++ != i) continue;
      return (NamedAttribute){a->name, attribute_index(n.op, a->canonical), a->is_required, !a->is_required, a->value};
    }
  }
  for (uint32_t k = 0;; k++) {
    const Attribute *a = &n.op->attributes[k];
    if (a->is_hidden || at++ != i) continue;
    return (NamedAttribute){a->name, k, a->is_required, !a->is_required && !a->is_optional, a->default_value};
  }
}

static void set_number(AttributeValue *value, AttributeKind kind, double number) {
  if (value->is_set) return;
  value->is_set = value->is_default = true;
  switch (kind) {
  case ATTRIBUTE_BOOL: value->boolean = number != 0; break;
  case ATTRIBUTE_F32: value->f32 = number; break;
  case ATTRIBUTE_S64_LIST:
    value->list.items = NULL;
    value->list.count = 0;
    break;
  case ATTRIBUTE_F32_LIST:
    value->numbers.items = NULL;
    value->numbers.count = 0;
    break;
  default: value->s64 = (int64_t)number; break;
  }
}

void node_set_defaults(Node *node) {
  const Operator *op = node->op;
  const Signature *s = node->signature;
  for (uint32_t i = 0; s && i < s->nattributes; i++) {
    const SignatureAttribute *a = &s->attributes[i];
    uint32_t k = attribute_index(op, a->canonical);
    if (!a->is_required) set_number(&node->attributes[k], op->attributes[k].kind, a->value);
  }
  for (uint32_t k = 0; k < op->nattributes; k++) {
    const Attribute *a = &op->attributes[k];
    if (!a->is_required && !a->is_optional) set_number(&node->attributes[k], a->kind, a->default_value);
  }
}

const AttributeValue *node_attribute(const Node *node, const char *name) {
  return &node->attributes[attribute_index(node->op, name)];
}

AttributeValue *node_attribute_slot(Node *node, const char *name) {
  return &node->attributes[attribute_index(node->op, name)];
}

bool node_bool(const Node *node, const char *name) {
  return node_attribute(node, name)->boolean;
}

int64_t node_s64(const Node *node, const char *name) {
  return node_attribute(node, name)->s64;
}

double node_f32(const Node *node, const char *name) {
  return node_attribute(node, name)->f32;
}
