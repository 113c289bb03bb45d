// One graph for each operator that has a gradient: inputs and a node, whose type is TYPE. See gradient_test.c.
#ifndef NGRAD_TESTS_UNIT_GRADIENT_CASES_H
#define NGRAD_TESTS_UNIT_GRADIENT_CASES_H

typedef struct Case {
  const char *name;   // an operator's
  const char *inputs; // of the graph; TYPE stands for several types
  const char *node;   // it makes y
} Case;

#define TENSOR(name, type, shape) "{name: " name ", type: " type ", shape: " shape "}"
#define X(shape) TENSOR("x", "TYPE", shape)
#define A(shape) TENSOR("a", "TYPE", shape)
#define B(shape) TENSOR("b", "TYPE", shape)
#define S(name, shape) ", " TENSOR(name, "f32", shape)
#define OF_X(name) "{op: " name ", inputs: [x], outputs: [y]}"
#define OF_X_WITH(name, attributes) "{op: " name ", inputs: [x], outputs: [y], attributes: {" attributes "}}"
#define OF_AB(name) "{op: " name ", inputs: [a, b], outputs: [y]}"
#define UNARY(name)                                                                                                    \
  { name, X("[3, 5]"), OF_X(name) }
#define UNARY_WITH(name, attributes)                                                                                   \
  { name, X("[3, 5]"), OF_X_WITH(name, attributes) }
#define BINARY(name)                                                                                                   \
  {name, A("[3, 5]") ", " B("[3, 5]"), OF_AB(name)}, {name, A("[3, 5]") ", " B("[5]"), OF_AB(name)},                   \
      {name, A("[5]") ", " B("[2, 3, 1]"), OF_AB(name)}, {name, A("[3, 1]") ", " B("[2, 1, 5]"), OF_AB(name)}, {       \
    name, A("[]") ", " B("[2, 3]"), OF_AB(name)                                                                        \
  }
#define REDUCTION(name)                                                                                                \
  {name, X("[2, 3, 4]"), OF_X_WITH(name, "axes: [1]")}, {name, X("[2, 3, 4]"), OF_X_WITH(name, "axes: [0]")},          \
      {name, X("[2, 3, 4]"), OF_X_WITH(name, "axes: [2, 0], keep_dims: true")},                                        \
      {name, X("[2, 3, 4]"), OF_X_WITH(name, "axes: [0, 1, 2]")}, {                                                    \
    name, X("[2, 3]"), OF_X_WITH(name, "axes: []")                                                                     \
  }

#define BATCH_NORM(shape, channels, format)                                                                            \
  {"BatchNormForwardTraining",                                                                                         \
   X(shape) S("mean", channels) S("var", channels) S("gamma", channels) S("beta", channels),                           \
   "{op: BatchNormForwardTraining, inputs: [x, mean, var, gamma, beta], outputs: [y, m, v, bm, bv], "                  \
   "attributes: {epsilon: 1.0e-3, data_format: " format "}}"},                                                         \
  {                                                                                                                    \
    "BatchNormInference", X(shape) S("gamma", channels) S("beta", channels) S("mean", channels) S("var", channels),    \
        "{op: BatchNormInference, inputs: [x, gamma, beta, mean, var], outputs: [y], "                                 \
        "attributes: {epsilon: 1.0e-3, data_format: " format "}}"                                                      \
  }
#define ROWS(name, shape, parameters, attributes)                                                                      \
  {name, X(shape) S("gamma", parameters) S("beta", parameters),                                                        \
   "{op: " name ", inputs: [x, gamma, beta], outputs: [y, m, v], attributes: {" attributes "}}"},                      \
      {name, X(shape) S("gamma", parameters) S("beta", parameters),                                                    \
       "{op: " name ", inputs: [x, gamma, beta], outputs: [y], attributes: {keep_stats: false, " attributes "}}"},     \
  {                                                                                                                    \
    name, X(shape), "{op: " name ", inputs: [x], outputs: [y, m, v], attributes: {use_affine: false, " attributes "}}" \
  }

#define S_OF_TYPE(name, shape) ", " TENSOR(name, "TYPE", shape)
#define MATMUL_WITH(shape_a, shape_b, attributes)                                                                      \
  { "MatMul", A(shape_a) ", " B(shape_b), "{op: MatMul, inputs: [a, b], outputs: [y], attributes: {" attributes "}}" }

#define DROPOUT_KEY ", " TENSOR("seed", "s64", "[]") ", " TENSOR("offset", "s64", "[]") S("p", "[]")

// Windows that overlap, hang over on one side, and leave elements out.
#define POOL(name, attributes)                                                                                         \
  {name, X("[2, 3, 7]"),                                                                                               \
   OF_X_WITH(name, "kernel: [3], strides: [2], pads_begin: [1], pads_end: [0], data_format: NCX" attributes)},         \
      {name, X("[2, 5, 4, 3]"),                                                                                        \
       OF_X_WITH(name,                                                                                                 \
                 "kernel: [2, 3], strides: [1, 2], pads_begin: [], pads_end: [], auto_pad: SAME_UPPER" attributes)},   \
  {                                                                                                                    \
    name, X("[1, 2, 3, 5, 2]"),                                                                                        \
        OF_X_WITH(name, "kernel: [2, 1, 1], strides: [1, 2, 3], pads_begin: [0, 0, 0], "                               \
                        "pads_end: [0, 0, 0]" attributes)                                                              \
  }

#define BACKWARD_WITH(name, attributes)                                                                                \
  {                                                                                                                    \
    name "Backward", A("[3, 5]") ", " B("[3, 5]"),                                                                     \
        "{op: " name "Backward, inputs: [a, b], outputs: [y], attributes: {" attributes "}}"                           \
  }
#define FROM_BOTH(name, attributes)                                                                                    \
  BACKWARD_WITH(name, "use_dst: false" attributes), BACKWARD_WITH(name, "use_dst: true" attributes)

// Gradients of norms: x, dy, statistics and parameters.
#define NORM_BACKWARD(name, shape, statistics, parameters, gradient, attributes)                                       \
  {                                                                                                                    \
    name "Backward", A(shape) ", " B(shape) S("mean", statistics) S("variance", statistics) S("gamma", parameters),    \
        "{op: " name "Backward, inputs: [a, b, mean, variance, gamma], outputs: " gradient                             \
        ", attributes: {epsilon: 1.0e-3, " attributes "}}"                                                             \
  }
#define NORM_BACKWARDS(name, shape, statistics, parameters, attributes)                                                \
  NORM_BACKWARD(name, shape, statistics, parameters, "[y, g, b2]", attributes),                                        \
      NORM_BACKWARD(name, shape, statistics, parameters, "[x2, y, b2]", attributes)

static const Case cases[] = {
    {"MatMul", A("[2, 3]") ", " B("[3, 4]"), OF_AB("MatMul")},
    MATMUL_WITH("[3, 2]", "[3, 4]", "transpose_a: true"),
    MATMUL_WITH("[2, 3]", "[4, 3]", "transpose_b: true"),
    MATMUL_WITH("[3, 2]", "[4, 3]", "transpose_a: true, transpose_b: true"),
    {"MatMul", A("[3]") ", " B("[3]"), OF_AB("MatMul")},
    MATMUL_WITH("[3]", "[2, 3, 4]", "transpose_a: true, transpose_b: false"),
    MATMUL_WITH("[3]", "[2, 4, 3]", "transpose_b: true"),
    MATMUL_WITH("[2, 3, 4]", "[3]", "transpose_a: true, transpose_b: true"),
    MATMUL_WITH("[2, 2, 4, 3]", "[3]", "transpose_b: true"),
    {"MatMul", A("[2, 2, 5, 3]") ", " B("[3, 4]"), OF_AB("MatMul")},
    MATMUL_WITH("[2, 3, 5]", "[4, 3]", "transpose_a: true, transpose_b: true"),
    {"MatMul", A("[5, 3]") ", " B("[2, 3, 4]"), OF_AB("MatMul")},
    MATMUL_WITH("[2, 1, 5, 3]", "[1, 2, 4, 3]", "transpose_b: true"),
    {"MatMul", A("[2, 5, 3]") ", " B("[1, 3, 4]") S_OF_TYPE("c", "[5, 1]"),
     "{op: MatMul, inputs: [a, b, c], outputs: [y]}"},
    {"MatMul", A("[5, 3]") ", " B("[3]") S_OF_TYPE("c", "[1]"), "{op: MatMul, inputs: [a, b, c], outputs: [y]}"},
    {"MatMul", A("[5, 0]") ", " B("[0, 3]"), OF_AB("MatMul")},
    {"MatMul", TENSOR("a", "bf16", "[2, 5, 3]") ", " TENSOR("b", "bf16", "[3, 2]"),
     "{op: MatMul, inputs: [a, b], outputs: [{name: y, type: f32}]}"},
    {"Convolution", A("[2, 3, 5]") ", " B("[4, 3, 3]") S_OF_TYPE("c", "[4]"),
     "{op: Convolution, inputs: [a, b, c], outputs: [y], attributes: {strides: [2], pads_begin: [1], pads_end: [1], "
     "dilations: [1], data_format: NCX, weights_format: OIX}}"},
    {"Convolution", A("[1, 5, 4, 4]") ", " B("[2, 3, 2, 4]") S_OF_TYPE("c", "[4]"),
     "{op: Convolution, inputs: [a, b, c], outputs: [y], attributes: {strides: [1, 2], pads_begin: [0, 1], pads_end: "
     "[1, 0], dilations: [2, 1], data_format: NXC, weights_format: XIO, groups: 2}}"},
    {"Convolution", A("[1, 2, 2, 3, 2]") ", " B("[2, 1, 2, 1, 2]"),
     "{op: Convolution, inputs: [a, b], outputs: [y], attributes: {strides: [1, 1, 1], pads_begin: [0, 1, 0], "
     "pads_end: [0, 0, 0], dilations: [1, 1, 1], data_format: NCX, weights_format: OIX, groups: 2}}"},
    {"Convolution", A("[1, 1, 5]") ", " B("[1, 1, 4]"),
     "{op: Convolution, inputs: [a, b], outputs: [y], attributes: {strides: [2], pads_begin: [0], pads_end: [0], "
     "dilations: [1], data_format: NCX, weights_format: OIX, auto_pad: SAME_UPPER}}"},
    {"Convolution", A("[1, 1, 5]") ", " B("[1, 1, 3]"),
     "{op: Convolution, inputs: [a, b], outputs: [y], attributes: {strides: [2], pads_begin: [0], pads_end: [0], "
     "dilations: [1], data_format: NCX, weights_format: OIX, auto_pad: SAME_LOWER}}"},
    {"Convolution", A("[1, 5, 1]") ", " B("[3, 1, 2]"),
     "{op: Convolution, inputs: [a, b], outputs: [y], attributes: {strides: [3], pads_begin: [7], pads_end: [7], "
     "dilations: [1], data_format: NXC, weights_format: XIO, auto_pad: VALID}}"},
    {"Convolution", A("[1, 3, 3, 3]") ", " B("[6, 1, 2, 2]"),
     "{op: Convolution, inputs: [a, b], outputs: [y], attributes: {strides: [1, 1], pads_begin: [0, 0], pads_end: [0, "
     "0], dilations: [1, 1], data_format: NCX, weights_format: OIX, groups: 3}}"},
    {"Convolution", A("[0, 1, 3]") ", " B("[2, 1, 2]"),
     "{op: Convolution, inputs: [a, b], outputs: [y], attributes: {strides: [1], pads_begin: [0], pads_end: [0], "
     "dilations: [1], data_format: NCX, weights_format: OIX}}"},
    {"Convolution", A("[1, 1, 8]") ", " B("[1, 1, 1]"),
     "{op: Convolution, inputs: [a, b], outputs: [y], attributes: {strides: [2], pads_begin: [0], pads_end: [0], "
     "dilations: [1], data_format: NCX, weights_format: OIX}}"},
    {"ConvolutionBackwardData", A("[1, 4, 3]") ", " B("[4, 2, 2]"),
     "{op: ConvolutionBackwardData, inputs: [a, b], outputs: [y], attributes: {strides: [2], pads_begin: [1], "
     "pads_end: [0], dilations: [1], data_format: NCX, weights_format: OIX, dst_shape: [1, 2, 5]}}"},
    {"ConvolutionBackwardData", A("[1, 2, 2, 4]") ", " B("[2, 2, 1, 4]"),
     "{op: ConvolutionBackwardData, inputs: [a, b], outputs: [y], attributes: {strides: [2, 2], pads_begin: [0, 0], "
     "pads_end: [0, 0], dilations: [1, 1], data_format: NXC, weights_format: XIO, groups: 2, auto_pad: SAME_LOWER, "
     "dst_shape: [1, 3, 4, 2]}}"},
    {"ConvolutionBackwardWeights", A("[2, 2, 5]") ", " B("[2, 4, 3]"),
     "{op: ConvolutionBackwardWeights, inputs: [a, b], outputs: [y], attributes: {strides: [2], pads_begin: [1], "
     "pads_end: [0], dilations: [1], data_format: NCX, weights_format: OIX, weights_shape: [4, 2, 2]}}"},
    {"ConvolutionBackwardWeights", A("[1, 4, 5, 4]") ", " B("[1, 3, 4, 2]"),
     "{op: ConvolutionBackwardWeights, inputs: [a, b], outputs: [y], attributes: {strides: [1, 1], pads_begin: [0, 1], "
     "pads_end: [0, 0], dilations: [1, 1], data_format: NXC, weights_format: XIO, groups: 2, weights_shape: [2, 3, 2, "
     "2]}}"},
    {"ConvTranspose", A("[2, 3, 4]") ", " B("[3, 2, 3]") S_OF_TYPE("c", "[2]"),
     "{op: ConvTranspose, inputs: [a, b, c], outputs: [y], attributes: {strides: [2], pads_begin: [1], pads_end: [1], "
     "dilations: [1], data_format: NCX, weights_format: IOX, output_padding: [1]}}"},
    {"ConvTranspose", A("[1, 2, 3, 4]") ", " B("[2, 2, 1, 4]") S_OF_TYPE("c", "[2]"),
     "{op: ConvTranspose, inputs: [a, b, c], outputs: [y], attributes: {strides: [2, 1], pads_begin: [0, 1], pads_end: "
     "[1, 0], dilations: [1, 2], data_format: NXC, weights_format: XOI, groups: 2}}"},
    {"ConvTranspose", A("[1, 1, 3]") ", " B("[1, 1, 3]"),
     "{op: ConvTranspose, inputs: [a, b], outputs: [y], attributes: {strides: [2], pads_begin: [0], pads_end: [0], "
     "dilations: [1], data_format: NCX, weights_format: IOX, auto_pad: SAME_UPPER}}"},
    {"ConvTranspose", A("[1, 1, 3]") ", " B("[1, 1, 5]"),
     "{op: ConvTranspose, inputs: [a, b], outputs: [y], attributes: {strides: [2], pads_begin: [0], pads_end: [0], "
     "dilations: [1], data_format: NCX, weights_format: IOX, auto_pad: SAME_LOWER, output_padding: [1]}}"},
    {"ConvTranspose", A("[1, 2, 3]") ", " B("[2, 2, 2]") S_OF_TYPE("c", "[2]"),
     "{op: ConvTranspose, inputs: [a, b, c], outputs: [y], attributes: {strides: [2], pads_begin: [0], pads_end: [0], "
     "dilations: [1], data_format: NCX, weights_format: IOX, output_padding: [3]}}"},
    {"ConvTranspose", A("[1, 3, 2, 2]") ", " B("[2, 1, 2, 2]"),
     "{op: ConvTranspose, inputs: [a, b], outputs: [y], attributes: {strides: [1, 2], pads_begin: [0, 0], pads_end: "
     "[2, 0], dilations: [1, 1], data_format: NXC, weights_format: XOI, output_padding: [3, 5]}}"},
    {"ConvTranspose", A("[1, 1, 7]") ", " B("[1, 1, 3]"),
     "{op: ConvTranspose, inputs: [a, b], outputs: [y], attributes: {strides: [2], pads_begin: [0], pads_end: [9], "
     "dilations: [1], data_format: NCX, weights_format: IOX}}"},
    {"ConvTranspose", A("[0, 1, 3]") ", " B("[1, 2, 3]") S_OF_TYPE("c", "[2]"),
     "{op: ConvTranspose, inputs: [a, b, c], outputs: [y], attributes: {strides: [1], pads_begin: [0], pads_end: [0], "
     "dilations: [1], data_format: NCX, weights_format: IOX}}"},
    {"ConvTranspose", A("[1, 1, 0]") ", " B("[1, 2, 3]") S_OF_TYPE("c", "[2]"),
     "{op: ConvTranspose, inputs: [a, b, c], outputs: [y], attributes: {strides: [1], pads_begin: [0], pads_end: [0], "
     "dilations: [1], data_format: NCX, weights_format: IOX}}"},
    {"ConvTranspose", A("[1, 2, 1, 2, 2]") ", " B("[2, 1, 2, 1, 2]"),
     "{op: ConvTranspose, inputs: [a, b], outputs: [y], attributes: {strides: [1, 2, 1], pads_begin: [0, 0, 0], "
     "pads_end: [0, 0, 0], dilations: [1, 1, 1], data_format: NCX, weights_format: IOX, output_padding: [0, 1, 0]}}"},
    {"ConvTransposeBackwardData", A("[1, 2, 6]") ", " B("[4, 2, 3]"),
     "{op: ConvTransposeBackwardData, inputs: [a, b], outputs: [y], attributes: {strides: [2], pads_begin: [1], "
     "pads_end: [0], dilations: [1], data_format: NCX, weights_format: IOX}}"},
    {"ConvTransposeBackwardData", A("[1, 3, 4, 2]") ", " B("[2, 2, 1, 4]"),
     "{op: ConvTransposeBackwardData, inputs: [a, b], outputs: [y], attributes: {strides: [2, 2], pads_begin: [0, 0], "
     "pads_end: [0, 0], dilations: [1, 1], data_format: NXC, weights_format: XOI, groups: 2, auto_pad: SAME_UPPER}}"},
    {"ConvTransposeBackwardWeights", A("[2, 4, 3]") ", " B("[2, 2, 6]"),
     "{op: ConvTransposeBackwardWeights, inputs: [a, b], outputs: [y], attributes: {strides: [2], pads_begin: [1], "
     "pads_end: [0], dilations: [1], data_format: NCX, weights_format: IOX, weights_shape: [4, 2, 3]}}"},
    {"ConvTransposeBackwardWeights", A("[1, 2, 2, 4]") ", " B("[1, 3, 4, 2]"),
     "{op: ConvTransposeBackwardWeights, inputs: [a, b], outputs: [y], attributes: {strides: [2, 2], pads_begin: [0, "
     "0], pads_end: [0, 0], dilations: [1, 1], data_format: NXC, weights_format: XOI, groups: 2, auto_pad: SAME_UPPER, "
     "weights_shape: [2, 2, 1, 4]}}"},
    UNARY("Abs"),
    UNARY_WITH("Clamp", "min: -0.5, max: 0.8"),
    UNARY_WITH("Elu", "alpha: 0.7"),
    UNARY_WITH("Elu", "alpha: -0.7"),
    UNARY("Erf"),
    UNARY("Sin"),
    UNARY("Cos"),
    UNARY("Exp"),
    UNARY_WITH("GELU", "mode: gelu_erf"),
    UNARY_WITH("GELU", "mode: gelu_tanh"),
    UNARY_WITH("HardSigmoid", "alpha: 0.4, beta: 0.5"),
    UNARY("HardSwish"),
    UNARY_WITH("LeakyReLU", "alpha: 0.1"),
    UNARY("Log"),
    UNARY("Mish"),
    UNARY("Neg"),
    UNARY_WITH("Pow", "beta: 2.5"),
    UNARY_WITH("Pow", "beta: -1"),
    UNARY("Reciprocal"),
    UNARY("ReLU"),
    UNARY("Sigmoid"),
    UNARY_WITH("SoftPlus", "beta: 2"),
    UNARY("Sqrt"),
    UNARY("Square"),
    UNARY("Swish"),
    UNARY_WITH("Swish", "beta: -1.5"),
    UNARY("Tanh"),
    BACKWARD_WITH("Abs", ""),
    FROM_BOTH("Clamp", ", min: -0.5, max: 0.8"),
    FROM_BOTH("Elu", ", alpha: 0.7"),
    BACKWARD_WITH("GELU", "mode: gelu_erf"),
    BACKWARD_WITH("GELU", "mode: gelu_tanh"),
    BACKWARD_WITH("HardSigmoid", "alpha: 0.4, beta: 0.5"),
    BACKWARD_WITH("HardSwish", ""),
    BACKWARD_WITH("Mish", ""),
    FROM_BOTH("ReLU", ""),
    FROM_BOTH("Sigmoid", ""),
    BACKWARD_WITH("SoftPlus", "beta: 2"),
    FROM_BOTH("Sqrt", ""),
    FROM_BOTH("Tanh", ""),
    {"BiasAddBackward", X("[2, 3, 4]"), OF_X_WITH("BiasAddBackward", "data_format: NCX")},
    {"PReLUBackward", A("[2, 3, 4]") ", " B("[3]") S_OF_TYPE("c", "[2, 3, 4]"),
     "{op: PReLUBackward, inputs: [a, b, c], outputs: [y, s], attributes: {data_format: NCX}}"},
    {"PReLUBackward", A("[2, 3, 4]") ", " B("[3, 1]") S_OF_TYPE("c", "[2, 3, 4]"),
     "{op: PReLUBackward, inputs: [a, b, c], outputs: [x, y]}"},
    {"PReLUBackward", A("[2, 3, 4]") ", " B("[1]") S_OF_TYPE("c", "[2, 3, 4]"),
     "{op: PReLUBackward, inputs: [a, b, c], outputs: [x, y]}"},
    NORM_BACKWARDS("BatchNormTraining", "[3, 4, 5]", "[4]", "[4]", "data_format: NCX"),
    NORM_BACKWARDS("BatchNormInference", "[3, 5, 4]", "[4]", "[4]", "data_format: NXC"),
    NORM_BACKWARDS("LayerNorm", "[3, 2, 4]", "[3, 2]", "[4]", "begin_norm_axis: -1"),
    NORM_BACKWARDS("LayerNorm", "[3, 2, 4]", "[3]", "[8]", "begin_norm_axis: 1"),
    NORM_BACKWARDS("GroupNorm", "[2, 6, 5]", "[2, 3]", "[6]", "groups: 3, data_format: NCX"),
    NORM_BACKWARDS("GroupNorm", "[2, 5, 6]", "[2, 2]", "[6]", "groups: 2"),
    NORM_BACKWARDS("InstanceNorm", "[2, 3, 5]", "[2, 3]", "[3]", "data_format: NCX"),
    {"BatchNormTrainingBackward",
     TENSOR("a", "f32", "[3, 4]") ", " TENSOR("b", "f32", "[3, 4]") S("m", "[1, 4]") S("v", "[1, 4]") S("s", "[1, 4]"),
     "{op: directml.BATCH_NORMALIZATION_TRAINING_GRAD, inputs: [a, b, m, v, s], outputs: [y, g, c], attributes: "
     "{Epsilon: 1.0e-3}}"},
    {"BatchNormTrainingBackward", // the second s, beta, counts for nothing
     TENSOR("a", "f32", "[3, 4, 2]") ", " TENSOR("b", "f32", "[3, 4, 2]") S("m", "[4]") S("v", "[4]") S("s", "[4]"),
     "{op: ngraph.BatchNormTrainingBackprop, inputs: [a, s, s, m, v, b], outputs: [y, g, c], attributes: "
     "{epsilon: 1.0e-3}}"},
    {"RMSNormBackward", A("[3, 8]") ", " B("[3, 8]") S("gamma", "[8]"),
     "{op: RMSNormBackward, inputs: [a, b, gamma], outputs: [y, g]}"},
    {"RMSNormBackward", A("[3, 8]") ", " B("[3, 8]") S("gamma", "[8]"),
     "{op: RMSNormBackward, inputs: [a, b, gamma], outputs: [x, y]}"},
    {"SoftMaxBackward", A("[3, 4]") ", " B("[3, 4]"), OF_AB("SoftMaxBackward")},
    {"LogSoftmaxBackward", A("[3, 4]") ", " B("[3, 4]"), OF_AB("LogSoftmaxBackward")},
    {"SoftmaxCrossEntropyBackward", A("[3, 4]") S("b", "[]") ", " TENSOR("l", "s64", "[3]"),
     "{op: SoftmaxCrossEntropyBackward, inputs: [a, b, l], outputs: [y]}"},
    {"SoftmaxCrossEntropyBackward", A("[3, 4, 2]") S("b", "[3, 2]") ", " TENSOR("l", "s32", "[3, 2]") S("w", "[4]"),
     "{op: SoftmaxCrossEntropyBackward, inputs: {src: a, diff_loss: b, labels: l, weights: w}, outputs: [y], "
     "attributes: {axis: 1, reduction: none, label_smoothing: 0.25, ignore_index: 1}}"},
    {"SoftmaxCrossEntropyBackward", A("[5, 4]") S("b", "[]") ", " TENSOR("l", "s32", "[5]") S("t", "[]") S("w", "[4]"),
     "{op: SoftmaxCrossEntropyBackward, inputs: [a, b, l, t, w], outputs: [y], attributes: {ignore_index: 1}}"},
    {"InterpolateBackward", A("[2, 3, 5]") ", " B("[2, 3, 7]"),
     "{op: InterpolateBackward, inputs: [a, b], outputs: [y], attributes: {mode: linear, sizes: [7], data_format: "
     "NCX}}"},
    {"MaxPoolBackward", A("[2, 3, 7]") ", " B("[2, 3, 3]"),
     "{op: MaxPoolBackward, inputs: [a, b], outputs: [y], attributes: {kernel: [3], strides: [2], pads_begin: [0], "
     "pads_end: [0], data_format: NCX}}"},
    {"MaxPoolScatter", TENSOR("w", "u8", "[1, 1, 3]") ", " X("[1, 1, 3]"),
     "{op: MaxPoolScatter, inputs: [w, x], outputs: [{name: y, shape: [1, 1, 7]}], attributes: {kernel: [3], strides: "
     "[2], pads_begin: [0], pads_end: [0], data_format: NCX}}"},
    {"MaxPoolGather", TENSOR("w", "u8", "[1, 1, 3]") ", " X("[1, 1, 7]"),
     "{op: MaxPoolGather, inputs: [w, x], outputs: [y], attributes: {kernel: [3], strides: [2], pads_begin: [0], "
     "pads_end: [0], data_format: NCX}}"},
    {"AvgPoolBackward", X("[1, 1, 3, 1]"),
     OF_X_WITH("AvgPoolBackward", "kernel: [1, 2], strides: [2, 2], pads_begin: [0, 0], pads_end: [0, 0], "
                                  "exclude_pad: true, src_shape: [1, 2, 5, 1]")},
    BINARY("Add"),
    BINARY("Subtract"),
    BINARY("Multiply"),
    BINARY("Divide"),
    BINARY("Maximum"),
    BINARY("Minimum"),
    BINARY("SquaredDifference"),
    {"Select", TENSOR("c", "boolean", "[5]") ", " A("[3, 5]") ", " B("[3, 1]"),
     "{op: Select, inputs: [c, a, b], outputs: [y]}"},
    {"Select", TENSOR("c", "boolean", "[2, 1, 5]") ", " A("[3, 5]") ", " B("[5]"),
     "{op: Select, inputs: [c, a, b], outputs: [y]}"},
    BINARY("Power"),
    BINARY("Mod"),
    {"Select", TENSOR("c", "boolean", "[3, 5]") ", " A("[]") ", " B("[3, 5]"),
     "{op: Select, inputs: [c, a, b], outputs: [y]}"},
    {"Add", TENSOR("a", "f32", "[3, 5]") ", " TENSOR("b", "bf16", "[5]"),
     "{op: Add, inputs: [a, b], outputs: [{name: y, type: bf16}]}"},
    {"Multiply", TENSOR("a", "bf16", "[3, 5]") ", " TENSOR("b", "f16", "[5]"),
     "{op: Multiply, inputs: [a, b], outputs: [{name: y, type: f32}]}"},
    {"Divide", TENSOR("a", "f32", "[3, 5]") ", " TENSOR("b", "f32", "[5]"),
     "{op: Divide, inputs: [a, b], outputs: [{name: y, type: bf16}]}"},
    {"BiasAdd", A("[2, 3, 4]") ", " B("[3]"),
     "{op: BiasAdd, inputs: [a, b], outputs: [y], attributes: {data_format: NCX}}"},
    {"BiasAdd", A("[2, 3, 4]") ", " B("[4]"), OF_AB("BiasAdd")},
    {"PReLU", A("[2, 3, 4]") ", " B("[3]"),
     "{op: PReLU, inputs: [a, b], outputs: [y], attributes: {data_format: NCX}}"},
    {"PReLU", A("[2, 3, 3]") ", " B("[3]"),
     "{op: PReLU, inputs: [a, b], outputs: [y], attributes: {data_format: NCX, per_channel_broadcast: false}}"},
    {"PReLU", A("[2, 3, 4]") ", " B("[3, 1]"), OF_AB("PReLU")},
    {"Subtract", TENSOR("a", "f32", "[3, 5]") ", " TENSOR("b", "bf16", "[5]"),
     "{op: Subtract, inputs: [a, b], outputs: [{name: y, type: f16}]}"},
    {"Multiply", TENSOR("a", "f16", "[3, 5]") ", " TENSOR("b", "f16", "[5]"),
     "{op: Multiply, inputs: [a, b], outputs: [{name: y, type: bf16}]}"},
    {"TypeCast", TENSOR("x", "f32", "[3]"), "{op: TypeCast, inputs: [x], outputs: [{name: y, type: bf16}]}"},
    {"TypeCast", TENSOR("x", "f16", "[3]"), "{op: TypeCast, inputs: [x], outputs: [{name: y, type: f32}]}"},
    REDUCTION("ReduceSum"),
    REDUCTION("ReduceMean"),
    REDUCTION("ReduceMax"),
    REDUCTION("ReduceMin"),
    REDUCTION("ReduceProd"),
    REDUCTION("ReduceL1"),
    REDUCTION("ReduceL2"),
    {"SoftMax", X("[3, 4]"), OF_X("SoftMax")},
    {"SoftMax", X("[2, 3, 4]"),
     "{op: SoftMax, inputs: [x], outputs: [y, s], attributes: {axis: -2, mode: inf_as_zero}}"},
    {"SoftMax", TENSOR("x", "bf16", "[3, 4]"), "{op: SoftMax, inputs: [x], outputs: [{name: y, type: f32}]}"},
    {"SoftMax", TENSOR("x", "f32", "[3, 4]"), "{op: SoftMax, inputs: [x], outputs: [{name: y, type: bf16}]}"},
    {"LogSoftmax", X("[3, 4]"), OF_X("LogSoftmax")},
    {"LogSoftmax", X("[2, 3, 4]"), OF_X_WITH("LogSoftmax", "axis: 0")},
    {"SoftmaxCrossEntropy", X("[3, 4]") ", " TENSOR("l", "s64", "[3]"),
     "{op: SoftmaxCrossEntropy, inputs: [x, l], outputs: [y]}"},
    {"SoftmaxCrossEntropy", X("[3, 4, 2]") ", " TENSOR("l", "s32", "[3, 2]") S("w", "[4]"),
     "{op: SoftmaxCrossEntropy, inputs: [x, l, w], outputs: [y], attributes: {axis: 1, reduction: none, "
     "label_smoothing: 0.25, ignore_index: 1}}"},
    {"SoftmaxCrossEntropy", X("[5, 4]") ", " TENSOR("l", "s32", "[5]") S("w", "[4]"),
     "{op: SoftmaxCrossEntropy, inputs: [x, l, w], outputs: [y], attributes: {ignore_index: 1}}"},
    {"MeanSquaredError", A("[3, 4]") ", " B("[3, 4]"), OF_AB("MeanSquaredError")},
    {"MeanSquaredError", A("[3, 4]") ", " B("[3, 4]"),
     "{op: MeanSquaredError, inputs: [a, b], outputs: [y], attributes: {reduction: none}}"},
    {"BinaryCrossEntropy", A("[3, 4]") ", " B("[3, 4]"), OF_AB("BinaryCrossEntropy")},
    {"BinaryCrossEntropy", A("[3, 4]") ", " B("[3, 4]"),
     "{op: BinaryCrossEntropy, inputs: [a, b], outputs: [y], attributes: {reduction: sum}}"},
    BATCH_NORM("[3, 4, 5]", "[4]", "NCX"),
    BATCH_NORM("[3, 5, 4]", "[4]", "NXC"),
    {"BatchNormForwardTraining", X("[4, 3]") S("mean", "[3]") S("var", "[3]"),
     "{op: BatchNormForwardTraining, inputs: [x, mean, var], outputs: [y, m, v, bm, bv], attributes: {epsilon: "
     "1.0e-3}}"},
    ROWS("LayerNorm", "[3, 8]", "[8]", "epsilon: 1.0e-3"),
    ROWS("LayerNorm", "[3, 2, 4]", "[2, 4]", "begin_norm_axis: 1"),
    ROWS("LayerNorm", "[3, 2, 4]", "[8]", "begin_norm_axis: 1"),
    ROWS("GroupNorm", "[2, 6, 5]", "[6]", "groups: 2, data_format: NCX"),
    ROWS("GroupNorm", "[2, 5, 6]", "[6]", "groups: 3"),
    ROWS("InstanceNorm", "[2, 3, 5]", "[3]", "data_format: NCX"),
    ROWS("InstanceNorm", "[2, 5, 3]", "[3]", "epsilon: 1.0e-3"),
    {"RMSNorm", X("[3, 8]") S("gamma", "[8]"), "{op: RMSNorm, inputs: [x, gamma], outputs: [y]}"},
    {"RMSNorm", X("[3, 2, 4]"), OF_X_WITH("RMSNorm", "begin_norm_axis: 1")},
    {"StaticReshape", X("[2, 6]"), OF_X_WITH("StaticReshape", "shape: [3, -1], special_zero: false")},
    {"StaticTranspose", X("[2, 3, 4]"), OF_X_WITH("StaticTranspose", "order: [2, 0, 1]")},
    {"StaticTranspose", X("[2, 3]"), OF_X_WITH("StaticTranspose", "order: []")},
    {"Diagonal", X("[3, 3]"), OF_X_WITH("Diagonal", "axis1: 1, axis2: 0")},
    {"Diagonal", X("[2, 3, 4, 3]"), OF_X_WITH("Diagonal", "axis1: -1, axis2: 1")},
    {"Gather", X("[5, 4]") ", " TENSOR("i", "s64", "[3, 2]"), "{op: Gather, inputs: [x, i], outputs: [y]}"},
    {"Gather", X("[2, 5, 3]") ", " TENSOR("i", "s32", "[7]"),
     "{op: Gather, inputs: [x, i], outputs: [y], attributes: {axis: -2}}"},
    {"Gather", X("[5]") ", " TENSOR("i", "s32", "[]"), "{op: Gather, inputs: [x, i], outputs: [y]}"},
    {"GatherBackward", TENSOR("i", "s64", "[3, 2]") ", " X("[3, 2, 4]"),
     "{op: GatherBackward, inputs: [i, x], outputs: [{name: y, shape: [5, 4]}]}"},
    {"GatherBackward", TENSOR("i", "s32", "[7]") ", " X("[2, 7, 3]"),
     "{op: GatherBackward, inputs: [i, x], outputs: [{name: y, shape: [2, 5, 3]}], attributes: {axis: -2}}"},
    {"DynamicDequantize", TENSOR("q", "s8", "[2, 6, 4]") S_OF_TYPE("s", "[1]"),
     "{op: DynamicDequantize, inputs: [q, s], outputs: [y]}"},
    {"DynamicDequantize", TENSOR("q", "u8", "[2, 6, 4]") S_OF_TYPE("s", "[6]") ", " TENSOR("z", "u8", "[6]"),
     "{op: DynamicDequantize, inputs: [q, s, z], outputs: [y], attributes: {qtype: per_channel}}"},
    {"DynamicDequantize", TENSOR("q", "s4", "[2, 6, 4]") S_OF_TYPE("s", "[1, 3, 4]"),
     "{op: DynamicDequantize, inputs: [q, s], outputs: [y], attributes: {qtype: per_group, group_shape: [2, 2, 1]}}"},
    {"Slice", X("[5, 4]"), OF_X_WITH("Slice", "starts: [1, -1], ends: [4, -9], steps: [1, -1]")},
    {"Slice", X("[3, 7, 2]"), OF_X_WITH("Slice", "starts: [1], ends: [7], axes: [1], steps: [3]")},
    {"Slice", X("[9, 5]"), OF_X_WITH("Slice", "starts: [-2, 0], ends: [0, 4], steps: [-3, 2]")},
    {"Slice", X("[3, 4]"), OF_X_WITH("Slice", "starts: [0], ends: [9]")},
    {"Pad", X("[3, 4]"), OF_X_WITH("Pad", "pads_begin: [1, 0], pads_end: [0, 2], value: 3")},
    {"Pad", X("[3, 4]"), OF_X_WITH("Pad", "pads_begin: [-1, 1], pads_end: [2, -2]")},
    {"Pad", X("[3, 4]"), OF_X_WITH("Pad", "pads_begin: [-1, 1], pads_end: [1, -1]")},
    {"Concat", A("[2, 3]") ", " B("[2, 1]"), "{op: Concat, inputs: [a, b, a], outputs: [y], attributes: {axis: -1}}"},
    {"Concat", X("[2, 3]"), OF_X_WITH("Concat", "axis: 0")},
    {"Concat", A("[0, 3]") ", " B("[2, 3]"), "{op: Concat, inputs: [a, b], outputs: [y], attributes: {axis: 0}}"},
    {"Split", X("[2, 6]"), "{op: Split, inputs: [x], outputs: [a, y, c], attributes: {axis: 1, splits: [1, 3, 2]}}"},
    {"Split", X("[4, 3]"), "{op: Split, inputs: [x], outputs: [y], attributes: {axis: 0, parts: 2}}"},
    {"Tile", X("[2, 3]"), OF_X_WITH("Tile", "repeats: [3, 2]")},
    {"Tile", X("[2, 1, 3]"), OF_X_WITH("Tile", "repeats: [1, 4, 1]")},
    {"Reorder", X("[2, 3]"), "{op: Reorder, inputs: [x], outputs: [y]}"},
    {"Dropout", X("[3, 5]") DROPOUT_KEY, "{op: Dropout, inputs: [x, seed, offset, p], outputs: [y, m]}"},
    {"Dropout", X("[3, 5]") DROPOUT_KEY,
     "{op: Dropout, inputs: [x, seed, offset, p], outputs: [{name: y, shape: [3, 5], order: [1, 0]}]}"},
    {"Interpolate", X("[2, 3, 5]"), OF_X_WITH("Interpolate", "mode: linear, sizes: [7], data_format: NCX")},
    {"Interpolate", X("[2, 3, 4, 2]"), OF_X_WITH("Interpolate", "mode: nearest, scales: [2, 0.5]")},
    POOL("MaxPool", ""),
    {"MaxPool", X("[2, 7, 3]"),
     OF_X_WITH("MaxPool", "kernel: [2], strides: [2], pads_begin: [0], pads_end: [0], "
                          "dilations: [3], rounding_type: ceil")},
    POOL("AvgPool", ", exclude_pad: true"),
    POOL("AvgPool", ", exclude_pad: false"),
    {"AvgPool", X("[2, 7, 3]"),
     OF_X_WITH("AvgPool", "kernel: [2], strides: [3], pads_begin: [0], pads_end: [0], "
                          "exclude_pad: false, rounding_type: ceil")},
    {"AvgPoolBackward", X("[2, 3, 3]"),
     OF_X_WITH("AvgPoolBackward", "kernel: [2], strides: [2], pads_begin: [0], "
                                  "pads_end: [0], exclude_pad: true, "
                                  "src_shape: [2, 7, 3]")},
    {"AvgPoolBackward", X("[2, 4, 3]"),
     OF_X_WITH("AvgPoolBackward", "kernel: [2], strides: [2], pads_begin: [0], "
                                  "pads_end: [0], exclude_pad: true, "
                                  "src_shape: [2, 7, 3]")},
    {"AvgPoolBackward", X("[2, 3, 4, 5]"),
     OF_X_WITH("AvgPoolBackward", "kernel: [3, 2], strides: [1, 2], "
                                  "pads_begin: [], pads_end: [], "
                                  "auto_pad: SAME_LOWER, exclude_pad: false, "
                                  "src_shape: [2, 3, 8, 5]")},
};

#endif
