// Literal cases of gradients at singular points, infinities and NaN, and of products that overflow or underflow
// although the final result does not.
//
// A row is an operator, its attributes, its inputs, the gradient of its first output, and the gradients of its
// floating-point inputs in order; none[] any: the input has no gradient. Tensors are as in tests/unit/literals.h.
#ifndef NGRAD_TESTS_UNIT_GRADIENT_EDGES_H
#define NGRAD_TESTS_UNIT_GRADIENT_EDGES_H

typedef struct GradientEdge {
  const char *op, *attributes, *inputs, *diff, *gradients;
} GradientEdge;

#define CONVOLVED "strides: [1], pads_begin: [0], pads_end: [0], dilations: [1], data_format: NCX"
#define POOLED "kernel: [2], strides: [2], pads_begin: [0], pads_end: [0], data_format: NCX"

// clang-format off
static const GradientEdge gradient_edges[] = {
    // Activations: 2 times the derivative.
    {"Abs", "", "f32[6] nan inf -inf 0 -0 3", "f32[6] 2 2 2 2 2 inf", "f32[6] 0 2 -2 0 0 inf"},
    {"Clamp", "min: -1, max: 1", "f32[6] nan inf -inf -1 1 0.5", "f32[6] 2 2 2 2 2 2", "f32[6] 0 0 0 0 0 2"},
    {"Clamp", "min: 0, max: .inf", "f32[5] nan inf -inf 0 3", "f32[5] 2 2 2 2 2", "f32[5] 0 2 0 0 2"},
    {"Clamp", "min: -.inf, max: 0", "f32[5] nan inf -inf 0 -3", "f32[5] 2 2 2 2 2", "f32[5] 0 0 2 0 2"},
    {"Cos", "", "f32[4] nan inf -inf 0", "f32[4] 2 2 2 2", "f32[4] nan nan nan 0"},
    {"Elu", "alpha: 0.5", "f32[4] nan inf -inf 0", "f32[4] 2 2 2 2", "f32[4] nan 2 0 1"},
    {"Erf", "", "f32[6] nan inf -inf 1e30 -1e30 0", "f32[6] 1 1 1 1 1 1", "f32[6] nan 0 0 0 0 1.12837917"},
    {"Exp", "", "f32[4] nan inf -inf 0", "f32[4] 2 2 2 2", "f32[4] nan inf 0 2"},
    {"GELU", "mode: gelu_erf", "f32[6] nan inf -inf 1e30 -1e30 0", "f32[6] 2 2 2 2 2 2", "f32[6] nan 2 0 2 0 1"},
    {"GELU", "mode: gelu_tanh", "f32[6] nan inf -inf 1e30 -1e30 0", "f32[6] 2 2 2 2 2 2", "f32[6] nan 2 0 2 0 1"},
    {"HardSigmoid", "alpha: 0.25, beta: 0.5", "f32[6] nan inf -inf -2 2 0", "f32[6] 2 2 2 2 2 2", "f32[6] 0 0 0 0 0 0.5"},
    {"HardSwish", "", "f32[6] nan inf -inf -3 3 0", "f32[6] 2 2 2 2 2 2", "f32[6] nan 2 0 0 2 1"},
    {"LeakyReLU", "alpha: 0.25", "f32[5] nan inf -inf 0 -0", "f32[5] 2 2 2 2 2", "f32[5] 2 2 0.5 0.5 0.5"},
    {"Log", "", "f32[7] nan inf 0 -0 1e-38 -1 0", "f32[7] 2 2 2 2 2 2 0", "f32[7] nan 0 inf -inf 2e38 -2 nan"},
    {"Mish", "", "f32[6] nan inf -inf 1e30 -1e30 0", "f32[6] 2 2 2 2 2 2", "f32[6] nan 2 0 2 0 1.2"},
    {"Neg", "", "f32[3] nan inf 0", "f32[3] 2 2 inf", "f32[3] -2 -2 -inf"},
    {"Pow", "beta: 0", "f32[5] 0 -0 nan inf 1", "f32[5] 2 2 2 2 inf", "f32[5] 0 0 0 0 0"},
    {"Pow", "beta: 0.5", "f32[4] 0 inf 4 -1", "f32[4] 2 2 2 2", "f32[4] inf 0 0.5 nan"},
    {"Pow", "beta: 1", "f32[4] 0 inf -inf nan", "f32[4] 2 2 2 2", "f32[4] 2 2 2 2"},
    {"Pow", "beta: 2", "f32[4] 0 inf -inf nan", "f32[4] 2 2 2 2", "f32[4] 0 inf -inf nan"},
    {"Pow", "beta: 3", "f32[2] 1e15 -1e-15", "f32[2] 1e-30 1e30", "f32[2] 3 3"},
    {"Pow", "beta: -1", "f32[4] 0 inf -inf 2", "f32[4] 2 2 2 2", "f32[4] -inf 0 0 -0.5"},
    {"Reciprocal", "", "f32[6] nan inf -inf 0 1e25 1e-20", "f32[6] 2 2 2 2 1e30 1e-10", "f32[6] nan 0 0 -inf -1e-20 -1e30"},
    {"ReLU", "", "f32[6] nan inf -inf 0 -0 1", "f32[6] 2 2 2 2 2 2", "f32[6] 0 2 0 0 0 2"},
    {"Sigmoid", "", "f32[6] nan inf -inf 1e30 -1e30 0", "f32[6] 2 2 2 2 2 2", "f32[6] nan 0 0 0 0 0.5"},
    {"Sin", "", "f32[4] nan inf -inf 0", "f32[4] 2 2 2 2", "f32[4] nan nan nan 2"},
    {"SoftPlus", "beta: 1", "f32[6] nan inf -inf 1e30 -1e30 0", "f32[6] 2 2 2 2 2 2", "f32[6] nan 2 0 2 0 1"},
    {"SoftPlus", "beta: -1", "f32[3] inf -inf 0", "f32[3] 2 2 2", "f32[3] 0 2 1"},
    {"Sqrt", "", "f32[5] nan inf 0 4 0", "f32[5] 2 2 2 2 0", "f32[5] nan 0 inf 0.5 nan"},
    {"Square", "", "f32[5] nan inf -inf 0 1e-30", "f32[5] 2 2 2 2 3e38", "f32[5] nan inf -inf 0 6e8"},
    {"Swish", "", "f32[6] nan inf -inf 1e30 -1e30 0", "f32[6] 2 2 2 2 2 2", "f32[6] nan 2 0 2 0 1"},
    {"Swish", "beta: 0", "f32[3] inf -inf 3", "f32[3] 2 2 2", "f32[3] 1 1 1"},
    {"Swish", "beta: -1", "f32[3] inf -inf 0", "f32[3] 2 2 2", "f32[3] 0 2 1"},
    {"Swish", "beta: 1.0e30", "f32[3] 1e30 -1e30 0", "f32[3] 2 2 2", "f32[3] 2 0 1"},
    {"Tanh", "", "f32[6] nan inf -inf 1e30 -1e30 0", "f32[6] 2 2 2 2 2 2", "f32[6] nan 0 0 0 0 2"},

    // Of several operands.
    {"Add", "", "f32[2] inf 1; f32[2] 1 nan", "f32[2] 2 inf", "f32[2] 2 inf; f32[2] 2 inf"},
    {"Subtract", "", "f32[2] inf 1; f32[2] 1 nan", "f32[2] 2 inf", "f32[2] 2 inf; f32[2] -2 -inf"},
    {"Multiply", "", "f32[3] 0 inf nan; f32[3] inf 0.5 2", "f32[3] 2 2 2", "f32[3] inf 1 4; f32[3] 0 inf nan"},
    {"Mod", "", "f32[4] 7 -7 1 1; f32[4] 2 2 inf 0", "f32[4] 2 2 2 2", "f32[4] 2 2 2 2; f32[4] -6 6 0 nan"},
    {"Divide", "", "f32[5] 1 1 inf 0 2; f32[5] 0 inf 2 0 1e-30", "f32[5] 2 2 2 2 1e-30",
     "f32[5] inf 0 1 inf 1; f32[5] -inf 0 -inf nan -2e30"},
    {"Maximum", "", "f32[5] 1 nan 1 inf -inf; f32[5] 1 1 nan 2 0", "f32[5] 2 2 2 2 2", "f32[5] 0 0 0 2 0; f32[5] 2 2 2 0 2"},
    {"Minimum", "", "f32[5] 1 nan 1 inf -inf; f32[5] 1 1 nan 2 0", "f32[5] 2 2 2 2 2", "f32[5] 0 0 0 0 2; f32[5] 2 2 2 2 0"},
    {"SquaredDifference", "", "f32[3] 1e-30 inf nan; f32[3] 0 1 1", "f32[3] 3e38 2 2", "f32[3] 6e8 inf nan; f32[3] -6e8 -inf nan"},
    {"Power", "", "f32[8] 0 0 0 inf inf 2 -2 1e-30; f32[8] 0 2 -1 -1 2 0 2 2", "f32[8] 1 1 1 1 1 1 1 1",
     "f32[8] 0 0 -inf 0 inf 0 -4 2e-30; f32[8] 0 0 -inf 0 inf 0.693147181 nan 0"},
    {"Select", "", "boolean[2] 1 0; f32[2] nan inf; f32[2] inf nan", "f32[2] 2 3", "f32[2] 2 0; f32[2] 0 3"},
    {"BiasAdd", "", "f32[2,2] nan inf 1 2; f32[2] 0 inf", "f32[2,2] 1 inf 2 3", "f32[2,2] 1 inf 2 3; f32[2] 3 inf"},
    {"PReLU", "", "f32[1,4] nan -inf 0 2; f32[1] 0.25", "f32[1,4] 2 2 2 2", "f32[1,4] 0.5 0.5 0.5 2; f32[1] nan"},
    {"PReLU", "", "f32[1,4] -3 -inf 0 2; f32[4] 0.25 0.5 1 inf", "f32[1,4] 2 2 2 2", "f32[1,4] 0.5 1 2 2; f32[4] -6 -inf 0 0"},
    {"TypeCast", "", "f32[3] nan inf 1", "bf16[3] 2 inf -2", "f32[3] 2 inf -2"},

    // Reductions.
    {"ReduceSum", "axes: [1]", "f32[1,2] inf nan", "f32[1] 2", "f32[1,2] 2 2"},
    {"ReduceMean", "axes: [1]", "f32[1,2] inf nan", "f32[1] 3e38", "f32[1,2] 1.5e38 1.5e38"},
    {"ReduceMax", "axes: [1]", "f32[4,3] 1 2 2 inf 1 0 nan 1 2 -inf -inf -inf", "f32[4] 3 3 3 3", "f32[4,3] 0 1.5 1.5 3 0 0 0 0 0 1 1 1"},
    {"ReduceMin", "axes: [1]", "f32[4,3] 1 2 1 inf 1 3 nan 1 2 inf inf inf", "f32[4] 3 3 3 3", "f32[4,3] 1.5 0 1.5 0 3 0 0 0 0 1 1 1"},
    {"ReduceProd", "axes: [1]", "f32[6,2] 1e30 1e30 1e-30 1e-30 0 3 0 0 2 5 inf 2", "f32[6] 1 1 1 1 1 1",
     "f32[6,2] 1e30 1e30 1e-30 1e-30 3 0 0 0 5 2 nan inf"},
    {"ReduceL1", "axes: [1]", "f32[1,5] nan 0 inf -inf -2", "f32[1] 2", "f32[1,5] 0 0 2 -2 -2"},
    {"ReduceL2", "axes: [1]", "f32[4,2] 0 0 3e36 4e36 3e-30 4e-30 inf 1", "f32[4] 5 5e-5 1e20 5", "f32[4,2] 0 0 3e-5 4e-5 6e19 8e19 nan 0"},
    {"SoftMax", "axis: 1", "f32[3,2] 0 -inf -inf -inf 1000 0", "f32[3,2] 3 5 3 5 3 5", "f32[3,2] 0 0 nan nan 0 0"},
    {"LogSoftmax", "axis: 1", "f32[3,2] 0 -inf inf 0 1000 0", "f32[3,2] 3 5 3 5 3 5", "f32[3,2] -5 5 nan nan -5 5"},

    // Losses.
    {"SoftmaxCrossEntropy", "reduction: none, ignore_index: 5", "f32[3,2] 0 -inf 0 -inf nan 1; s32[3] 0 1 5", "f32[3] 2 2 2",
     "f32[3,2] 0 0 2 -2 0 0"},
    {"SoftmaxCrossEntropy", "ignore_index: 5", "f32[2,2] 1000 0 nan 1; s32[2] 1 5", "f32[] 2", "f32[2,2] 2 -2 0 0"},
    {"SoftmaxCrossEntropy", "reduction: sum", "f32[2,2] 0 0 0 0; s32[2] 0 1; f32[2] 1 3", "f32[] 2",
     "f32[2,2] -1 1 3 -3; f32[2] 1.38629436 1.38629436"},
    {"SoftmaxCrossEntropy", "", "f32[2,2] 1000 0 0 0; s32[2] 1 0; f32[2] 1 3", "f32[] 2",
     "f32[2,2] 1.5 -1.5 -0.25 0.25; f32[2] -374.74007 124.913357"},
    {"SoftmaxCrossEntropy", "reduction: none, ignore_index: 1", "f32[2,2] 0 -inf nan 1; s64[2] 0 1; f32[2] 1 3", "f32[2] 2 inf",
     "f32[2,2] 0 0 0 0; f32[2] 0 0"},
    {"MeanSquaredError", "reduction: none", "f32[3] inf 1 1e20; f32[3] 1 inf 0", "f32[3] 2 2 2", "f32[3] inf -inf 4e20; f32[3] -inf inf -4e20"},
    {"BinaryCrossEntropy", "reduction: none", "f32[4] inf -inf inf 0; f32[4] 1 0 0 0.5", "f32[4] 2 2 2 2", "f32[4] 0 0 2 0; f32[4] -inf inf -inf 0"},

    // Norms of constant rows, whose deviation is sqrt(epsilon).
    {"BatchNormInference", "epsilon: 1.0e-5", "f32[2,1] 3 1; f32[1] 2; f32[1] 0; f32[1] 1; f32[1] 0", "f32[2,1] 1 2",
     "f32[2,1] 632.455532 1264.91106; f32[1] 632.455532; f32[1] 3; f32[1] -1897.3666; f32[1] -63245553.2"},
    {"BatchNormForwardTraining", "epsilon: 1.0e-5", "f32[2,1] 3 3; f32[1] 0; f32[1] 1; f32[1] 2; f32[1] 0", "f32[2,1] 1 2",
     "f32[2,1] -316.227766 316.227766; none[] any; none[] any; f32[1] 0; f32[1] 3"},
    {"LayerNorm", "keep_stats: false", "f32[1,2] 3 3; f32[2] 1 1; f32[2] 0 0", "f32[1,2] 1 2",
     "f32[1,2] -158.113883 158.113883; f32[2] 0 0; f32[2] 1 2"},
    {"LayerNorm", "keep_stats: false", "f32[1,2] inf 3; f32[2] 1 1; f32[2] 0 0", "f32[1,2] 1 2", "f32[1,2] nan nan; f32[2] nan nan; f32[2] 1 2"},
    {"GroupNorm", "groups: 1, keep_stats: false", "f32[1,2,1] 3 3; f32[1] 1; f32[1] 0", "f32[1,2,1] 1 2",
     "f32[1,2,1] -158.113883 158.113883; f32[1] 0; f32[1] 3"},
    {"InstanceNorm", "keep_stats: false", "f32[1,2,1] 3 3; f32[1] 1; f32[1] 0", "f32[1,2,1] 1 2",
     "f32[1,2,1] -158.113883 158.113883; f32[1] 0; f32[1] 3"},
    // 16-bit parameters beside means that their type cannot represent. any: gradients that cancel.
    {"BatchNormForwardTraining", "epsilon: 1.0e-5", "bf16[2,1] 129 130; bf16[1] 0; bf16[1] 1; bf16[1] 1; bf16[1] 0", "bf16[2,1] 1 0",
     "bf16[2,1] any; none[] any; none[] any; bf16[1] -1; bf16[1] 1"},
    {"LayerNorm", "keep_stats: false", "bf16[1,2] 129 130; bf16[2] 1 1; bf16[2] 0 0", "bf16[1,2] 1 0", "bf16[1,2] any; bf16[2] -1 0; bf16[2] 1 0"},
    {"GroupNorm", "groups: 1, keep_stats: false", "bf16[1,2,1] 129 130; bf16[1] 1; bf16[1] 0", "bf16[1,2,1] 1 0",
     "bf16[1,2,1] any; bf16[1] -1; bf16[1] 1"},
    {"InstanceNorm", "keep_stats: false", "bf16[1,2,1] 129 130; bf16[1] 1; bf16[1] 0", "bf16[1,2,1] 1 0",
     "bf16[1,2,1] any; bf16[1] -1; bf16[1] 1"},
    {"BatchNormForwardTraining", "epsilon: 1.0e-5", "f16[2,1] 2048 2050; f16[1] 0; f16[1] 1; f16[1] 1; f16[1] 0", "f16[2,1] 1 0",
     "f16[2,1] any; none[] any; none[] any; f16[1] -1; f16[1] 1"},
    {"LayerNorm", "keep_stats: false", "f16[1,2] 2048 2050; f16[2] 1 1; f16[2] 0 0", "f16[1,2] 1 0", "f16[1,2] any; f16[2] -1 0; f16[2] 1 0"},
    {"GroupNorm", "groups: 1, keep_stats: false", "f16[1,2,1] 2048 2050; f16[1] 1; f16[1] 0", "f16[1,2,1] 1 0",
     "f16[1,2,1] any; f16[1] -1; f16[1] 1"},
    {"InstanceNorm", "keep_stats: false", "f16[1,2,1] 2048 2050; f16[1] 1; f16[1] 0", "f16[1,2,1] 1 0",
     "f16[1,2,1] any; f16[1] -1; f16[1] 1"},
    {"RMSNorm", "", "f32[1,2] 0 0; f32[2] 1 1", "f32[1,2] 1 2", "f32[1,2] 316.227766 632.455532; f32[2] 0 0"},
    {"RMSNorm", "begin_norm_axis: 1, epsilon: 1.0e-30", "f32[1,2,2] 1 1 1 1; f32[2] 1 1", "f32[1,2,2] 1 2 3 4",
     "f32[1,2,2] -1.5 -0.5 0.5 1.5; f32[2] 4 6"},

    // Products and windows.
    {"MatMul", "", "f32[1,2] inf 1; f32[2,1] 0 2", "f32[1,1] 3", "f32[1,2] 0 6; f32[2,1] inf 3"},
    {"Convolution", CONVOLVED ", weights_format: OIX", "f32[1,1,2] inf 2; f32[1,1,1] 3", "f32[1,1,2] 1 1", "f32[1,1,2] 3 3; f32[1,1,1] inf"},
    {"ConvolutionBackwardData", CONVOLVED ", weights_format: OIX, dst_shape: [1, 1, 2]", "f32[1,1,2] inf 2; f32[1,1,1] 3", "f32[1,1,2] 1 1",
     "f32[1,1,2] 3 3; f32[1,1,1] inf"},
    {"ConvolutionBackwardWeights", CONVOLVED ", weights_format: OIX, weights_shape: [1, 1, 1]", "f32[1,1,2] inf 2; f32[1,1,2] 3 nan", "f32[1,1,1] 2",
     "f32[1,1,2] 6 nan; f32[1,1,2] inf 4"},
    {"ConvTranspose", CONVOLVED ", weights_format: IOX", "f32[1,1,2] inf 2; f32[1,1,1] 3", "f32[1,1,2] 1 1", "f32[1,1,2] 3 3; f32[1,1,1] inf"},
    {"ConvTransposeBackwardData", CONVOLVED ", weights_format: IOX", "f32[1,1,2] inf 2; f32[1,1,1] 3", "f32[1,1,2] 1 1",
     "f32[1,1,2] 3 3; f32[1,1,1] inf"},
    {"ConvTransposeBackwardWeights", CONVOLVED ", weights_format: IOX, weights_shape: [1, 1, 1]", "f32[1,1,2] inf 2; f32[1,1,2] 3 nan", "f32[1,1,1] 2",
     "f32[1,1,2] 6 nan; f32[1,1,2] inf 4"},
    {"MaxPool", POOLED, "f32[1,1,8] nan 1 inf inf -inf -inf 2 3", "f32[1,1,4] 1 2 inf 4", "f32[1,1,8] 1 0 2 0 inf 0 0 4"},
    {"AvgPool", POOLED ", exclude_pad: true", "f32[1,1,4] nan inf 1 2", "f32[1,1,2] 2 inf", "f32[1,1,4] 1 1 inf inf"},
    {"AvgPoolBackward", POOLED ", exclude_pad: true, src_shape: [1, 1, 4]", "f32[1,1,2] nan inf", "f32[1,1,4] 2 4 inf 1", "f32[1,1,2] 3 inf"},
    {"Interpolate", "mode: linear, sizes: [4], data_format: NCX", "f32[1,1,2] nan inf", "f32[1,1,4] inf 0 0 2", "f32[1,1,2] inf 2"},

    // Movement.
    {"StaticReshape", "shape: [2], special_zero: false", "f32[1,2] nan inf", "f32[2] inf 2", "f32[1,2] inf 2"},
    {"StaticTranspose", "order: [1, 0]", "f32[1,2] nan inf", "f32[2,1] inf 2", "f32[1,2] inf 2"},
    {"Diagonal", "", "f32[2,2] nan inf -inf 0", "f32[2] inf nan", "f32[2,2] inf 0 0 nan"},
    {"Reorder", "", "f32[2] nan inf", "f32[2] inf 2", "f32[2] inf 2"},
    {"Concat", "axis: 0", "f32[1] nan; f32[1] inf", "f32[2] inf 2", "f32[1] inf; f32[1] 2"},
    {"Slice", "starts: [0], ends: [1]", "f32[2] nan inf", "f32[1] inf", "f32[2] inf 0"},
    {"Pad", "pads_begin: [1], pads_end: [0]", "f32[1] nan", "f32[2] inf 2", "f32[1] 2"},
    {"Split", "axis: 0, parts: 1", "f32[2] nan inf", "f32[2] inf 2", "f32[2] inf 2"},
    {"Tile", "repeats: [2]", "f32[2] nan inf", "f32[4] inf 2 1 3", "f32[2] inf 5"},
    {"Gather", "", "f32[3] nan 1 2; s32[2] 0 -3", "f32[2] inf 2", "f32[3] inf 0 0"},
    {"GatherBackward", "", "s32[3] 0 -2 0; f32[3] nan inf 1", "f32[2] 2 inf", "f32[3] 2 2 2"},
    {"DynamicDequantize", "", "u8[2] 3 5; f32[1] inf", "f32[2] 2 inf", "f32[1] inf"},
    {"DynamicDequantize", "", "u8[2] 3 5; f32[1] nan; u8[1] 4", "f32[2] 2 7", "f32[1] 5"},
    {"Dropout", "", "f32[4] nan inf 1 2; s64[] 1; s64[] 7; f32[] 1", "f32[4] inf 2 nan 1", "f32[4] 0 0 0 0; none[] any"},
};
// clang-format on
enum { NGRADIENT_EDGES = sizeof gradient_edges / sizeof *gradient_edges };

#endif
