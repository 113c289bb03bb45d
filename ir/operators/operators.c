// The operator table.
#include "ir/operators/operator.h"

#include "ir/operators/infer.h"
#include "ir/operators/rules.h"

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
  .types = {{'T', TYPES_COMPARED}, {'B', TYPE_BIT(TYPE_BOOLEAN)}}
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
  "mean and variance are f32, or f64 for f64 data, unless declared in gamma's type; gradients take f32 or f64 all "    \
  "the "                                                                                                               \
  "same"
#define EPSILON_REQUIRED                                                                                               \
  { .name = "epsilon", .kind = ATTRIBUTE_F32, .is_required = true, .must_be_positive = true }
#define EPSILON_DEFAULT                                                                                                \
  { .name = "epsilon", .kind = ATTRIBUTE_F32, .default_value = 1e-5, .must_be_positive = true }
#define DATA_FORMAT                                                                                                    \
  {                                                                                                                    \
    .name = "data_format", .kind = ATTRIBUTE_CHOICE, .choices = { "NXC", "NCX" }                                       \
  }
// The attributes of windows; attribute lists of convolutions and pooling begin with these. Empty lists, the defaults,
// are strides and dilations of 1, and no padding. Arguments: an attribute's name, and further members.
#define REQUIRED_LIST(...)                                                                                             \
  { .kind = ATTRIBUTE_S64_LIST, .is_required = true, .name = __VA_ARGS__ }
#define OPTIONAL_LIST(...)                                                                                             \
  { .kind = ATTRIBUTE_S64_LIST, .name = __VA_ARGS__ }
#define AUTO_PAD                                                                                                       \
  {                                                                                                                    \
    .name = "auto_pad", .kind = ATTRIBUTE_CHOICE, .choices = { "None", "SAME_UPPER", "SAME_LOWER", "VALID" }           \
  }
#define WINDOW_ATTRIBUTES                                                                                              \
  OPTIONAL_LIST("strides", .list = LIST_SPATIAL), OPTIONAL_LIST("pads_begin", .list = LIST_PADDING),                   \
      OPTIONAL_LIST("pads_end", .list = LIST_PADDING), AUTO_PAD, DATA_FORMAT
enum { WINDOW_NATTRIBUTES = 5 };
#define CONVOLUTION_ATTRIBUTES                                                                                         \
  WINDOW_ATTRIBUTES, OPTIONAL_LIST("dilations", .list = LIST_SPATIAL), {                                               \
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

#define DIFF(name)                                                                                                     \
  { name, 'T', .is_optional = true }
const Operator operators[NREADABLE] = {
#define OP(op_name, ...) [OP_##op_name] = {.name = #op_name, .id = OP_##op_name, __VA_ARGS__},
#include "ir/operators/operators.def"
#undef OP
    [OP_Gradient] =
        {
            .name = "Gradient",
            .id = OP_Gradient,
            .family = "gradient",
            .doc = "gradients of a tensor's sum by others that it depends on",
            .formula = "diff_i = d(sum of all elements of of) / d(by_i), of the shape of by_i: for each by, a diff",
            .inputs = {{"of", 'T'}, {"by", 'T'}},
            .ninputs = 2,
            .outputs = {{"diff", 'T'},
                        DIFF("diff_1"),
                        DIFF("diff_2"),
                        DIFF("diff_3"),
                        DIFF("diff_4"),
                        DIFF("diff_5"),
                        DIFF("diff_6"),
                        DIFF("diff_7")},
            .noutputs = MAX_OPERANDS,
            .types = {{'T', TYPES_FLOAT}},
            .infer = infer_gradient,
            .traits = TRAIT_VARIADIC,
        },
};
