// The operators of nGraph that can be read, their attributes in all versions, and the operators that they become.
#include "frontend/ngraph/ngraph.h"
#include "frontend/ngraph/translation.h"

#include <string.h>

#define NONE                                                                                                           \
  {                                                                                                                    \
    { {NULL}, NGRAPH_INTS, false }                                                                                     \
  }
#define BINARY                                                                                                         \
  {                                                                                                                    \
    { {"auto_broadcast", "autob"}, NGRAPH_BROADCAST, true }                                                            \
  }
#define REDUCTION                                                                                                      \
  {                                                                                                                    \
    {{"reduction_axes"}, NGRAPH_INTS, true}, {                                                                         \
      {"keep_dims"}, NGRAPH_ZERO, true                                                                                 \
    }                                                                                                                  \
  }
#define EPSILON                                                                                                        \
  {                                                                                                                    \
    {{"eps", "epsilon"}, NGRAPH_NUMBER, false}, {                                                                      \
      {"training"}, NGRAPH_IGNORED, true                                                                               \
    }                                                                                                                  \
  }
#define BOUNDS                                                                                                         \
  {{"lower_bounds"}, NGRAPH_INTS, false}, {{"upper_bounds"}, NGRAPH_INTS, false}, {                                    \
    {"strides"}, NGRAPH_INTS, true                                                                                     \
  }
#define POOL                                                                                                           \
  {{"window_shape"}, NGRAPH_INTS, false}, {{"window_movement_strides"}, NGRAPH_INTS, true},                            \
      {{"padding_below"}, NGRAPH_INTS, true}, {                                                                        \
    {"padding_above"}, NGRAPH_INTS, true                                                                               \
  }
#define POOL_FORWARD                                                                                                   \
  POOL, {{"pad_type"}, NGRAPH_ZERO, true}, {                                                                           \
    {"ceil_mode"}, NGRAPH_BOOL, true                                                                                   \
  }
#define INCLUDE_PADDING                                                                                                \
  { {"include_padding_in_avg_computation"}, NGRAPH_BOOL, true }
#define CONVOLUTION                                                                                                    \
  {                                                                                                                    \
    {{"window_movement_strides"}, NGRAPH_INTS, true}, {{"window_dilation_strides"}, NGRAPH_INTS, true},                \
        {{"padding_below"}, NGRAPH_INTS, true}, {{"padding_above"}, NGRAPH_INTS, true},                                \
        {{"data_dilation_strides", "image_dilation_strides"}, NGRAPH_INTS, true}, {                                    \
      {"pad_type"}, NGRAPH_ZERO, true                                                                                  \
    }                                                                                                                  \
  }
#define CONVOLUTION_BACKPROP(...)                                                                                      \
  {                                                                                                                    \
    {{"window_movement_strides", "window_movement_strides_forward"}, NGRAPH_INTS, true},                               \
        {{"window_dilation_strides", "window_dilation_strides_forward"}, NGRAPH_INTS, true},                           \
        {{"padding_below", "padding_below_forward"}, NGRAPH_INTS, true},                                               \
        {{"padding_above", "padding_above_forward"}, NGRAPH_INTS, true},                                               \
        {{"data_dilation_strides", "data_dilation_strides_forward", "image_dilation_strides_forward"},                 \
         NGRAPH_INTS,                                                                                                  \
         true},                                                                                                        \
    {                                                                                                                  \
      {__VA_ARGS__}, NGRAPH_INTS, false                                                                                \
    }                                                                                                                  \
  }
#define CHOICE                                                                                                         \
  {                                                                                                                    \
    { {"auto_broadcast"}, NGRAPH_BROADCAST, true }                                                                     \
  }

// clang-format off
static const NgraphRow rows[] = {
    // Elementwise
    {"Abs",              ngraph_elementwise, OP_Abs, 0, 1, 1, NONE},
    {"Acos",             ngraph_acos, OP_COUNT, 0, 1, 1, NONE},
    {"Add",              ngraph_elementwise, OP_Add, 1, 2, 2, BINARY},
    {"And",              ngraph_elementwise, OP_LogicalAnd, 0, 2, 2, BINARY},
    {"Asin",             ngraph_asin, OP_COUNT, 0, 1, 1, NONE},
    {"Atan",             ngraph_atan, OP_COUNT, 0, 1, 1, NONE},
    {"Ceiling",          ngraph_ceiling, OP_Round, 0, 1, 1, NONE},
    {"Convert",          ngraph_convert, OP_TypeCast, 0, 1, 1, {{{"target_type"}, NGRAPH_TYPE, false}}},
    {"Cos",              ngraph_elementwise, OP_Cos, 0, 1, 1, NONE},
    {"Cosh",             ngraph_cosh, OP_COUNT, 0, 1, 1, NONE},
    {"Divide",           ngraph_divide, OP_Divide, 1, 2, 2, {{{"auto_broadcast", "autob"}, NGRAPH_BROADCAST, true},
                                                             {{"pythondiv", "m_pythondiv"}, NGRAPH_BOOL, true}}},
    {"Equal",            ngraph_elementwise, OP_Equal, 1, 2, 2, BINARY},
    {"Erf",              ngraph_elementwise, OP_Erf, 0, 1, 1, NONE},
    {"Exp",              ngraph_elementwise, OP_Exp, 0, 1, 1, NONE},
    {"Floor",            ngraph_floor, OP_Round, 0, 1, 1, NONE},
    {"Greater",          ngraph_elementwise, OP_Greater, 1, 2, 2, BINARY},
    {"GreaterEq",        ngraph_elementwise, OP_GreaterEqual, 0, 2, 2, BINARY},
    {"GreaterEqual",     ngraph_elementwise, OP_GreaterEqual, 1, 2, 2, BINARY},
    {"Less",             ngraph_elementwise, OP_Less, 1, 2, 2, BINARY},
    {"LessEq",           ngraph_elementwise, OP_LessEqual, 0, 2, 2, BINARY},
    {"LessEqual",        ngraph_elementwise, OP_LessEqual, 1, 2, 2, BINARY},
    {"Log",              ngraph_elementwise, OP_Log, 0, 1, 1, NONE},
    {"LogicalAnd",       ngraph_elementwise, OP_LogicalAnd, 1, 2, 2, BINARY},
    {"LogicalNot",       ngraph_elementwise, OP_LogicalNot, 1, 1, 1, NONE},
    {"LogicalOr",        ngraph_elementwise, OP_LogicalOr, 1, 2, 2, BINARY},
    {"Maximum",          ngraph_elementwise, OP_Maximum, 1, 2, 2, BINARY},
    {"Minimum",          ngraph_elementwise, OP_Minimum, 1, 2, 2, BINARY},
    {"Multiply",         ngraph_elementwise, OP_Multiply, 1, 2, 2, BINARY},
    {"Negative",         ngraph_elementwise, OP_Neg, 0, 1, 1, NONE},
    {"Not",              ngraph_elementwise, OP_LogicalNot, 0, 1, 1, NONE},
    {"NotEqual",         ngraph_elementwise, OP_NotEqual, 1, 2, 2, BINARY},
    {"Or",               ngraph_elementwise, OP_LogicalOr, 0, 2, 2, BINARY},
    {"Power",            ngraph_elementwise, OP_Power, 1, 2, 2, BINARY},
    {"Relu",             ngraph_elementwise, OP_ReLU, 0, 1, 1, NONE},
    {"ReluBackprop",     ngraph_backprop, OP_ReLUBackward, 0, 2, 2, NONE},
    {"Select",           ngraph_select, OP_Select, 1, 3, 3, CHOICE},
    {"Sigmoid",          ngraph_elementwise, OP_Sigmoid, 0, 1, 1, NONE},
    {"SigmoidBackprop",  ngraph_backprop, OP_SigmoidBackward, 0, 2, 2, NONE},
    {"Sign",             ngraph_sign, OP_Subtract, 0, 1, 1, NONE},
    {"Sin",              ngraph_elementwise, OP_Sin, 0, 1, 1, NONE},
    {"Sinh",             ngraph_sinh, OP_COUNT, 0, 1, 1, NONE},
    {"Sqrt",             ngraph_elementwise, OP_Sqrt, 0, 1, 1, NONE},
    {"Subtract",         ngraph_elementwise, OP_Subtract, 1, 2, 2, BINARY},
    {"Tan",              ngraph_tan, OP_Divide, 0, 1, 1, NONE},
    {"Tanh",             ngraph_elementwise, OP_Tanh, 0, 1, 1, NONE},
    // Constants, inputs and outputs
    {"Constant",         ngraph_constant, OP_COUNT, 0, 0, 0, {{{"value"}, NGRAPH_VALUES, false}, {{"shape"}, NGRAPH_IGNORED, true}}},
    {"GetOutputElement", ngraph_element, OP_COUNT, 0, 1, 1, {{{"n"}, NGRAPH_INT, false}}},
    {"Parameter",        ngraph_parameter, OP_COUNT, 0, 0, 0, {{{"cacheable"}, NGRAPH_IGNORED, true}, {{"shape"}, NGRAPH_IGNORED, true}}},
    {"Result",           ngraph_identity, OP_COUNT, 0, 1, 1, {{{"needs_default_layout"}, NGRAPH_IGNORED, true}}},
    {"StopGradient",     ngraph_identity, OP_COUNT, 0, 1, 1, NONE},
    // Movement
    {"Broadcast",        ngraph_broadcast, OP_Select, 0, 1, 1, {{{"axes"}, NGRAPH_INTS, false}, {{"shape"}, NGRAPH_INTS, false}}},
    {"Concat",           ngraph_concat, OP_Concat, 0, 1, MOST_NGRAPH_INPUTS, {{{"axis", "concatenation_axis"}, NGRAPH_INT, false}}},
    {"OneHot",           ngraph_one_hot, OP_OneHot, 0, 1, 1, {{{"shape"}, NGRAPH_INTS, false}, {{"one_hot_axis"}, NGRAPH_INT, false}}},
    {"Pad",              ngraph_pad_node, OP_Pad, 0, 2, 2, {{{"padding_below"}, NGRAPH_INTS, false}, {{"padding_above"}, NGRAPH_INTS, false},
                                                             {{"padding_interior"}, NGRAPH_INTS, true}, {{"pad_mode"}, NGRAPH_ZERO, true}}},
    {"ReplaceSlice",     ngraph_replace_slice, OP_Concat, 0, 2, 2, {BOUNDS}},
    {"Reshape",          ngraph_reshape_node, OP_StaticReshape, 0, 1, 1, {{{"output_shape"}, NGRAPH_INTS, false},
                                                                          {{"input_order"}, NGRAPH_INTS, false}}},
    {"Reverse",          ngraph_reverse, OP_Slice, 0, 1, 1, {{{"reversed_axes"}, NGRAPH_INTS, false}}},
    {"Slice",            ngraph_slice_node, OP_Slice, 0, 1, 1, {BOUNDS}},
    // Reductions and normalisations
    {"BatchNormBackprop", ngraph_batch_norm_backprop, OP_BatchNormTrainingBackward, 0, 6, 6, EPSILON},
    {"BatchNormInference", ngraph_batch_norm, OP_BatchNormInference, 0, 5, 5, EPSILON},
    {"BatchNormTraining", ngraph_batch_norm_training, OP_BatchNormForwardTraining, 0, 3, 3, EPSILON},
    {"BatchNormTrainingBackprop", ngraph_batch_norm_backprop, OP_BatchNormTrainingBackward, 0, 6, 6, EPSILON},
    {"Max",              ngraph_reduce, OP_ReduceMax, 0, 1, 2, REDUCTION},
    {"Min",              ngraph_reduce, OP_ReduceMin, 0, 1, 2, REDUCTION},
    {"Product",          ngraph_reduce, OP_ReduceProd, 0, 1, 2, REDUCTION},
    {"Softmax",          ngraph_softmax, OP_SoftMax, 0, 1, 2, {{{"softmax_axes"}, NGRAPH_INTS, true}}},
    {"Sum",              ngraph_reduce, OP_ReduceSum, 0, 1, 2, REDUCTION},
    // Products and windows
    {"AvgPool",          ngraph_pool, OP_AvgPool, 0, 1, 1, {POOL_FORWARD, INCLUDE_PADDING}},
    {"AvgPoolBackprop",  ngraph_avg_pool_backprop, OP_AvgPoolBackward, 0, 1, 1, {POOL, INCLUDE_PADDING, {{"forward_arg_shape"}, NGRAPH_INTS, false}}},
    {"Convolution",      ngraph_convolution, OP_Convolution, 0, 2, 2, CONVOLUTION},
    {"ConvolutionBackpropData", ngraph_convolution_backprop_data, OP_ConvolutionBackwardData, 0, 2, 2, CONVOLUTION_BACKPROP("data_batch_shape", "image_batch_shape")},
    {"ConvolutionBackpropFilters", ngraph_convolution_backprop_filters, OP_ConvolutionBackwardWeights, 0, 2, 2, CONVOLUTION_BACKPROP("filters_shape")},
    {"ConvolutionBackpropImageBatch", ngraph_convolution_backprop_data, OP_ConvolutionBackwardData, 0, 2, 2, CONVOLUTION_BACKPROP("data_batch_shape", "image_batch_shape")},
    {"Dot",              ngraph_dot, OP_MatMul, 0, 2, 2, {{{"reduction_axes_count"}, NGRAPH_INT, true}}},
    {"MaxPool",          ngraph_pool, OP_MaxPool, 0, 1, 1, {POOL_FORWARD}},
    {"MaxPoolBackprop",  ngraph_max_pool_backprop, OP_MaxPoolBackward, 0, 2, 3, {POOL}},
};
// clang-format on

const NgraphRow *ngraph_find_row(const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, name) == 0) return &rows[i];
  return NULL;
}

size_t ngraph_form_count(void) {
  return sizeof rows / sizeof *rows;
}

ForeignForm ngraph_form_at(size_t i) {
  return (ForeignForm){.name = rows[i].name, .op = rows[i].op};
}
