// The ONNX operators that can be read, their first opset, and their translators.
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/translation.h"

#include <string.h>

// clang-format off
static const OnnxRow rows[] = {
    // Elementwise
    {"Abs",              1, NULL, OP_Abs, {{0}}},
    {"Add",              1, onnx_old_binary, OP_Add, {{0}}},
    {"Add",              7, NULL, OP_Add, {{0}}},
    {"And",              1, onnx_old_binary, OP_LogicalAnd, {{0}}},
    {"And",              7, NULL, OP_LogicalAnd, {{0}}},
    {"Cast",             1, onnx_cast_node, OP_TypeCast, {{0}}},
    {"CastLike",        15, onnx_cast_like, OP_TypeCast, {{0}}},
    {"Ceil",             1, onnx_ceiling, OP_Round, {{0}}},
    {"Celu",            12, onnx_celu, OP_Elu, {{0}}},
    {"Clip",             1, onnx_clip, OP_Clamp, {{0}}},
    {"Cos",              7, NULL, OP_Cos, {{0}}},
    {"Div",              1, onnx_old_binary, OP_Divide, {{0}}},
    {"Div",              7, onnx_divide, OP_Divide, {{0}}},
    {"Dropout",          1, onnx_dropout, OP_Dropout, {{0}}},
    {"Elu",              1, NULL, OP_Elu, {{"alpha", "alpha", 1}}},
    {"Equal",            1, onnx_old_binary, OP_Equal, {{0}}},
    {"Equal",            7, onnx_compare, OP_Equal, {{0}}},
    {"Erf",              9, NULL, OP_Erf, {{0}}},
    {"Exp",              1, NULL, OP_Exp, {{0}}},
    {"Floor",            1, onnx_floor, OP_Round, {{0}}},
    {"Gelu",            20, onnx_gelu, OP_GELU, {{0}}},
    {"Greater",          1, onnx_old_binary, OP_Greater, {{0}}},
    {"Greater",          7, onnx_compare, OP_Greater, {{0}}},
    {"GreaterOrEqual",  12, onnx_compare, OP_GreaterEqual, {{0}}},
    {"Hardmax",          1, onnx_hardmax, OP_OneHot, {{0}}},
    {"HardSigmoid",      1, NULL, OP_HardSigmoid, {{"alpha", "alpha", 0.2F}, {"beta", "beta", 0.5}}},
    {"HardSwish",       14, NULL, OP_HardSwish, {{0}}},
    {"Identity",         1, onnx_identity, OP_Reorder, {{0}}, .takes_sequences = true},
    {"IsInf",           10, onnx_is_inf, OP_Equal, {{0}}},
    {"IsNaN",            9, onnx_is_nan, OP_NotEqual, {{0}}},
    {"LeakyRelu",        1, NULL, OP_LeakyReLU, {{"alpha", "alpha", 0.01F}}},
    {"Less",             1, onnx_old_binary, OP_Less, {{0}}},
    {"Less",             7, onnx_compare, OP_Less, {{0}}},
    {"LessOrEqual",     12, onnx_compare, OP_LessEqual, {{0}}},
    {"Log",              1, NULL, OP_Log, {{0}}},
    {"Max",              1, onnx_fold_left, OP_Maximum, {{0}}},
    {"Mean",             1, onnx_mean, OP_Add, {{0}}},
    {"Min",              1, onnx_fold_left, OP_Minimum, {{0}}},
    {"Mish",            18, NULL, OP_Mish, {{0}}},
    {"Mul",              1, onnx_old_binary, OP_Multiply, {{0}}},
    {"Mul",              7, NULL, OP_Multiply, {{0}}},
    {"Neg",              1, NULL, OP_Neg, {{0}}},
    {"Not",              1, NULL, OP_LogicalNot, {{0}}},
    {"Or",               1, onnx_old_binary, OP_LogicalOr, {{0}}},
    {"Or",               7, NULL, OP_LogicalOr, {{0}}},
    {"Pow",              1, onnx_old_binary, OP_Power, {{0}}},
    {"Pow",              7, onnx_pow, OP_Power, {{0}}},
    {"PRelu",            1, onnx_prelu, OP_PReLU, {{0}}},
    {"Reciprocal",       1, NULL, OP_Reciprocal, {{0}}},
    {"Relu",             1, NULL, OP_ReLU, {{0}}},
    {"Round",           11, NULL, OP_Round, {{0}}},
    {"Selu",             1, onnx_selu, OP_Elu, {{0}}},
    {"Shrink",           9, onnx_shrink, OP_Select, {{0}}},
    {"Sigmoid",          1, NULL, OP_Sigmoid, {{0}}},
    {"Sign",             9, onnx_sign, OP_Subtract, {{0}}},
    {"Sin",              7, NULL, OP_Sin, {{0}}},
    {"Softplus",         1, NULL, OP_SoftPlus, {{0}}},
    {"Softsign",         1, onnx_softsign, OP_Divide, {{0}}},
    {"Sqrt",             1, NULL, OP_Sqrt, {{0}}},
    {"Sub",              1, onnx_old_binary, OP_Subtract, {{0}}},
    {"Sub",              7, NULL, OP_Subtract, {{0}}},
    {"Sum",              1, onnx_fold_left, OP_Add, {{0}}},
    {"Tan",              7, onnx_tan, OP_Divide, {{0}}},
    {"Tanh",             1, NULL, OP_Tanh, {{0}}},
    {"ThresholdedRelu", 10, onnx_thresholded, OP_Select, {{0}}},
    {"Where",            9, NULL, OP_Select, {{0}}},
    {"Xor",              1, onnx_old_binary, OP_NotEqual, {{0}}},
    {"Xor",              7, onnx_xor, OP_NotEqual, {{0}}},
    {"BitShift",        11, onnx_bit_shift, OP_Multiply, {{0}}},
    {"DequantizeLinear", 10, onnx_dequantize, OP_DynamicDequantize, {{0}}},
    {"DynamicQuantizeLinear", 11, onnx_dynamic_quantize, OP_DynamicQuantize, {{0}}},
    {"Mod",             10, onnx_modulo, OP_COUNT, {{0}}},
    {"QuantizeLinear",  10, onnx_quantize, OP_DynamicQuantize, {{0}}},
    // Trigonometry
    {"Acos",             7, onnx_acos, OP_COUNT, {{0}}},
    {"Acosh",            9, onnx_acosh, OP_COUNT, {{0}}},
    {"Asin",             7, onnx_asin, OP_COUNT, {{0}}},
    {"Asinh",            9, onnx_asinh, OP_COUNT, {{0}}},
    {"Atan",             7, onnx_atan, OP_COUNT, {{0}}},
    {"Atanh",            9, onnx_atanh, OP_COUNT, {{0}}},
    {"Cosh",             9, onnx_cosh, OP_COUNT, {{0}}},
    {"Sinh",             9, onnx_sinh, OP_COUNT, {{0}}},
    // Movement
    {"Concat",           1, onnx_concat, OP_Concat, {{0}}},
    {"Constant",         1, onnx_constant_node, OP_COUNT, {{0}}},
    {"ConstantOfShape",  9, onnx_constant_of_shape, OP_COUNT, {{0}}},
    {"DepthToSpace",     1, onnx_depth_to_space, OP_StaticTranspose, {{0}}},
    {"Expand",           8, onnx_expand, OP_Select, {{0}}},
    {"Flatten",          1, onnx_flatten, OP_StaticReshape, {{0}}},
    {"Gather",           1, onnx_gather, OP_Gather, {{0}}},
    {"OneHot",           9, onnx_one_hot, OP_OneHot, {{0}}},
    {"Trilu",           14, onnx_trilu, OP_Select, {{0}}},
    {"Range",           11, onnx_range, OP_COUNT, {{0}}},
    {"Pad",              1, onnx_pad, OP_Pad, {{0}}},
    {"Reshape",          1, onnx_reshape_node, OP_StaticReshape, {{0}}},
    {"Shape",            1, onnx_shape, OP_COUNT, {{0}}},
    {"Size",             1, onnx_size, OP_COUNT, {{0}}},
    {"Slice",            1, onnx_slice, OP_Slice, {{0}}},
    {"SpaceToDepth",     1, onnx_space_to_depth, OP_StaticTranspose, {{0}}},
    {"Split",            1, onnx_split, OP_Split, {{0}}},
    {"Squeeze",          1, onnx_squeeze, OP_StaticReshape, {{0}}},
    {"Tile",             6, onnx_tile, OP_Tile, {{0}}},
    {"Transpose",        1, onnx_transpose_node, OP_StaticTranspose, {{0}}},
    {"Unsqueeze",        1, onnx_unsqueeze, OP_StaticReshape, {{0}}},
    {"Compress",         9, onnx_compress, OP_Gather, {{0}}},
    {"CumSum",          11, onnx_cumulative_sum, OP_ReduceSum, {{0}}},
    {"EyeLike",          9, onnx_eye_like, OP_COUNT, {{0}}},
    {"GatherElements",  11, onnx_gather_elements, OP_Gather, {{0}}},
    {"GatherND",        11, onnx_gather_nd, OP_Gather, {{0}}},
    {"GridSample",      16, onnx_grid_sample, OP_Gather, {{0}}},
    {"NonZero",          9, onnx_non_zero, OP_COUNT, {{0}}},
    {"Resize",          10, onnx_resize, OP_Interpolate, {{0}}},
    {"ReverseSequence", 10, onnx_reverse_sequence, OP_Gather, {{0}}},
    {"Scatter",          9, onnx_scatter_elements, OP_GatherBackward, {{0}}},
    {"ScatterElements", 11, onnx_scatter_elements, OP_GatherBackward, {{0}}},
    {"ScatterND",       11, onnx_scatter_nd, OP_GatherBackward, {{0}}},
    {"TopK",             1, onnx_top_k, OP_COUNT, {{0}}},
    {"Upsample",         1, onnx_upsample, OP_Interpolate, {{0}}},
    // Windows of signals
    {"BlackmanWindow",  17, onnx_window, OP_COUNT, {{0}}},
    {"HammingWindow",   17, onnx_window, OP_COUNT, {{0}}},
    {"HannWindow",      17, onnx_window, OP_COUNT, {{0}}},
    // Reductions and normalisations
    {"ArgMax",           1, onnx_arg, OP_ArgMax, {{0}}},
    {"ArgMin",           1, onnx_arg, OP_ArgMin, {{0}}},
    {"BatchNormalization", 1, onnx_batch_norm, OP_BatchNormInference, {{0}}},
    {"InstanceNormalization", 6, onnx_instance_norm, OP_InstanceNorm, {{0}}},
    {"LayerNormalization", 17, onnx_layer_norm, OP_LayerNorm, {{0}}},
    {"LogSoftmax",       1, onnx_softmax, OP_LogSoftmax, {{0}}},
    {"LpNormalization",  1, onnx_lp_norm, OP_ReduceL2, {{0}}},
    {"LRN",              1, onnx_local_norm, OP_COUNT, {{0}}},
    {"MeanVarianceNormalization", 9, onnx_mean_variance_norm, OP_ReduceMean, {{0}}},
    {"ReduceL1",         1, onnx_reduce, OP_ReduceL1, {{0}}},
    {"ReduceL2",         1, onnx_reduce, OP_ReduceL2, {{0}}},
    {"ReduceLogSum",     1, onnx_reduce_log, OP_ReduceSum, {{0}}},
    {"ReduceLogSumExp",  1, onnx_reduce_log_exp, OP_ReduceSum, {{0}}},
    {"ReduceMax",        1, onnx_reduce, OP_ReduceMax, {{0}}},
    {"ReduceMean",       1, onnx_reduce, OP_ReduceMean, {{0}}},
    {"ReduceMin",        1, onnx_reduce, OP_ReduceMin, {{0}}},
    {"ReduceProd",       1, onnx_reduce, OP_ReduceProd, {{0}}},
    {"ReduceSum",        1, onnx_reduce, OP_ReduceSum, {{0}}},
    {"ReduceSumSquare",  1, onnx_reduce_square, OP_ReduceSum, {{0}}},
    {"Softmax",          1, onnx_softmax, OP_SoftMax, {{0}}},
    // Products
    {"AveragePool",      1, onnx_average_pool, OP_AvgPool, {{0}}},
    {"Conv",             1, onnx_conv, OP_Convolution, {{0}}},
    {"ConvTranspose",    1, onnx_conv_transpose, OP_ConvTranspose, {{0}}},
    {"Gemm",             1, onnx_gemm, OP_MatMul, {{0}}},
    {"GlobalAveragePool", 1, onnx_global_pool, OP_ReduceMean, {{0}}},
    {"GlobalMaxPool",    1, onnx_global_pool, OP_ReduceMax, {{0}}},
    {"GlobalLpPool",     1, onnx_lp_pool, OP_AvgPool, {{0}}},
    {"LpPool",           1, onnx_lp_pool, OP_AvgPool, {{0}}},
    {"MatMul",           1, onnx_matmul, OP_MatMul, {{0}}},
    {"MaxPool",          1, onnx_max_pool, OP_MaxPool, {{0}}},
    {"MaxUnpool",        9, onnx_max_unpool, OP_GatherBackward, {{0}}},
    {"ConvInteger",     10, onnx_conv_integer, OP_Convolution, {{0}}},
    {"Einsum",          12, onnx_einsum, OP_MatMul, {{0}}},
    {"GRU",              1, onnx_gru, OP_COUNT, {{0}}},
    {"LSTM",             1, onnx_lstm, OP_COUNT, {{0}}},
    {"MatMulInteger",   10, onnx_matmul_integer, OP_MatMul, {{0}}},
    {"QLinearConv",     10, onnx_conv_quantized, OP_Convolution, {{0}}},
    {"QLinearMatMul",   10, onnx_matmul_quantized, OP_MatMul, {{0}}},
    {"RNN",              1, onnx_rnn, OP_COUNT, {{0}}},
    // Sequences of tensors
    {"ConcatFromSequence", 11, onnx_concat_from_sequence, OP_Concat, {{0}}, .takes_sequences = true},
    {"SequenceAt",      11, onnx_sequence_at, OP_COUNT, {{0}}, .takes_sequences = true},
    {"SequenceConstruct", 11, onnx_sequence_construct, OP_COUNT, {{0}}},
    {"SequenceEmpty",   11, onnx_sequence_empty, OP_COUNT, {{0}}},
    {"SequenceErase",   11, onnx_sequence_erase, OP_COUNT, {{0}}, .takes_sequences = true},
    {"SequenceInsert",  11, onnx_sequence_insert, OP_COUNT, {{0}}, .takes_sequences = true},
    {"SequenceLength",  11, onnx_sequence_length, OP_COUNT, {{0}}, .takes_sequences = true},
    {"SplitToSequence", 11, onnx_split_to_sequence, OP_Slice, {{0}}},
    // Control
    {"If",               1, onnx_if, OP_COUNT, {{0}}},
    // Training
    {"Adagrad",          1, onnx_optimizer, OP_Adagrad, {{0}}},
    {"Adam",             1, onnx_optimizer, OP_Adam, {{0}}},
    {"Momentum",         1, onnx_optimizer, OP_Momentum, {{0}}},
    {"NegativeLogLikelihoodLoss", 12, onnx_nll, OP_SoftmaxCrossEntropy, {{0}}},
    {"SoftmaxCrossEntropyLoss", 12, onnx_cross_entropy, OP_SoftmaxCrossEntropy, {{0}}},
};
// clang-format on

const OnnxRow *onnx_find_row(Bytes name, int64_t opset) {
  const OnnxRow *found = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].since <= opset && bytes_are(name, rows[i].name)) found = &rows[i];
  return found;
}

const OnnxRow *onnx_find_plain(OperatorId op, int64_t opset) {
  const OnnxRow *found = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].since <= opset && !rows[i].translate && rows[i].op == op) found = &rows[i];
  return found;
}

size_t onnx_form_count(void) {
  return sizeof rows / sizeof *rows;
}

ForeignForm onnx_form_at(size_t i) {
  const bool has_later = i + 1 < onnx_form_count() && strcmp(rows[i].name, rows[i + 1].name) == 0;
  return (ForeignForm){rows[i].name, rows[i].op, rows[i].since, has_later ? rows[i + 1].since - 1 : 0};
}
