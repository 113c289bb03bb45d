// Gradients of graphs: each operator's against finite differences, the nodes of a gradient graph, and errors.
#include "frontend/api/ngrad.h"
#include "frontend/yaml/yaml.h"
#include "ir/operators/operator.h"
#include "passes/gradient/gradient.h"
#include "tests/random_seeds.h"
#include "tests/unit/failing_allocator.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_BYTES = 4096 };

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
enum { NCASES = sizeof cases / sizeof *cases };

static void write_case(const Case *c, const char *type, char text[TEXT_BYTES]) {
  int used = snprintf(text, TEXT_BYTES, "format: ngrad/1\ninputs: [");
  for (const char *from = c->inputs; *from;) {
    const char *placeholder = strstr(from, "TYPE");
    int before = placeholder ? (int)(placeholder - from) : (int)strlen(from);
    used += snprintf(text + used, TEXT_BYTES - (size_t)used, "%.*s%s", before, from, placeholder ? type : "");
    from += before + (placeholder ? 4 : 0);
  }
  used += snprintf(text + used, TEXT_BYTES - (size_t)used, "]\nnodes:\n  - %s\noutputs: [y]\n", c->node);
  assert_true(used < TEXT_BYTES);
}

static ng_graph *read_graph(ng_context *ctx, const char *text) {
  ng_graph *g = ng_graph_read(ctx, "forward", text, strlen(text), NULL);
  if (!g) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  return g;
}

static bool has_case(const char *name) {
  for (size_t i = 0; i < NCASES; i++)
    if (strcmp(cases[i].name, name) == 0) return true;
  return false;
}

static void every_operator_has_a_gradient_with_a_case_or_a_reason(void **state) {
  (void)state;
  for (size_t i = 0; i < OP_COUNT; i++) {
    assert_true((gradient_rules[i]->make != NULL) != (gradient_rules[i]->of_all.why != NULL));
    for (uint32_t k = 1; k < operators[i].noutputs && gradient_rules[i]->make && i != OP_Split; k++)
      assert_true(operators[i].outputs[k].is_statistic);  // a rule is given the first result's gradient alone
    if (operators[i].traits & TRAIT_COLLECTIVE) continue; // leaves_test.c
    if ((gradient_rules[i]->make != NULL) != has_case(operators[i].name))
      fail_msg("%s: expected a case if, and only if, the operator has a gradient", operators[i].name);
  }
}

// Running statistics, which a batch norm updates, and probabilities have no gradient.
static bool has_gradient(const ng_graph *g, size_t i, const char *text) {
  const char *name = ng_graph_input(g, i).name;
  bool is_running = strstr(text, "BatchNormForwardTraining") && (strcmp(name, "mean") == 0 || strcmp(name, "var") == 0);
  bool is_probability = strstr(text, "Dropout") && strcmp(name, "p") == 0;
  return type_is_float((Type)ng_graph_input(g, i).type) && !is_running && !is_probability;
}

static void must_pass(ng_graph *g, ng_context *ctx, const char *text) {
  ng_gradcheck_result results[16];
  assert_true(ng_graph_input_count(g) <= 16);
  ng_status status = ng_gradcheck(g, NULL, results);
  if (status != NG_OK && status != NG_DIFFERENT) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  for (size_t i = 0; i < ng_graph_input_count(g); i++) {
    const ng_gradcheck_result *r = &results[i];
    if (r->nchecked && !r->is_within)
      fail_msg("%s[%lld]: %.12g, expected %.12g\n%s", ng_graph_input(g, i).name, (long long)r->worst_element,
               r->gradient, r->expected, text);
    assert_int_equal(r->nchecked, has_gradient(g, i, text) ? r->nelems : 0);
    assert_true(r->nskipped == 0); // no data of these is near a kink
  }
  assert_int_equal(status, NG_OK);
}

static void gradients_of_operators_are_those_of_differences(void **state) {
  (void)state;
  for (size_t i = 0; i < NCASES; i++) {
    char text[TEXT_BYTES];
    write_case(&cases[i], "f32", text);
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_graph(ctx, text);
    must_pass(g, ctx, text);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Printed gradients read back unchanged, and compile.
static void gradients_of_any_type_are_graphs(void **state) {
  (void)state;
  static const char *const types[] = {"f64", "f32", "f16", "bf16"};
  const size_t ntypes = sizeof types / sizeof *types;
  for (size_t i = 0; i < ntypes * NCASES; i++) {
    if (!takes_all() && i % ntypes != i / ntypes % ntypes) continue;
    char text[TEXT_BYTES], *source, *header;
    write_case(&cases[i / ntypes], types[i % ntypes], text);
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
    if (!gradient) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
    char *printed = ng_graph_show(gradient, "yaml", NULL);
    if (ng_emit(gradient, NULL, &source, &header) != NG_OK) fail_msg("%s\n%s", ng_messages_text(ctx, 0), printed);
    assert_string_equal(ng_messages_text(ctx, 0), "");
    ng_text_free(ctx, source);
    ng_text_free(ctx, header);
    ng_text_free(ctx, printed);
    ng_graph_free(gradient);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Nothing of a gradient graph is there for nothing.
static void gradients_hold_nothing_dead(void **state) {
  (void)state;
  const ng_options after_dead_code = {.after = "dead-code"};
  for (size_t i = 0; i < NCASES; i++) {
    char text[TEXT_BYTES];
    write_case(&cases[i], "f32", text);
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
    ng_graph_free(g); // the gradient does not need the graph
    assert_non_null(gradient);
    char *written = ng_graph_show(gradient, "yaml", NULL), *left = ng_graph_show(gradient, "yaml", &after_dead_code);
    assert_string_equal(written, left);
    ng_text_free(ctx, written);
    ng_text_free(ctx, left);
    ng_graph_free(gradient);
    ng_context_free(ctx);
  }
}

// Models

typedef struct Model {
  const char *forward, *by_hand; // paths; by_hand: its gradient
  const char *wrt[8], *of[8];
} Model;

static const Model models[] = {
    {"models/resnet50_residual_forward.yaml",
     "models/resnet50_residual_tail_backward.yaml",
     {"branch", "gamma", "beta"},
     {"x", "y"}},
    {"models/transformer_mlp_forward.yaml",
     "models/transformer_mlp_backward.yaml",
     {"h", "bias", "p", "skip", "gamma", "beta"},
     {"activated", "y"}},
};
enum { NMODELS = sizeof models / sizeof *models };

static ng_gradient_options options_of_model(const Model *m) {
  ng_gradient_options o = {.wrt = m->wrt, .of = m->of};
  while (m->wrt[o.nwrt]) o.nwrt++;
  while (m->of[o.nof]) o.nof++;
  return o;
}

static ng_graph *read_model(ng_context *ctx, const char *path, int64_t n) {
  ng_graph *g = ng_graph_read_file(ctx, path);
  if (!g || ng_graph_set_dim(g, "N", n) != NG_OK) fail_msg("%s", ng_messages_text(ctx, 0));
  return g;
}

static void gradients_of_models_are_those_of_differences(void **state) {
  (void)state;
  for (size_t i = 0; i < NMODELS; i += takes_all() ? 1 : 3) {
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_model(ctx, models[i].forward, 1);
    ng_gradcheck_options options = {.gradient = options_of_model(&models[i])};
    ng_gradcheck_result results[16];
    if (ng_gradcheck(g, &options, results) != NG_OK) fail_msg("%s", models[i].forward);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Makes the graph's outputs on random data, by the interpreter or by kernels.
static void run_graph(ng_graph *g, ng_context *ctx, bool by_kernels, ng_tensor *outputs) {
  size_t ninputs = ng_graph_input_count(g), noutputs = ng_graph_output_count(g);
  ng_tensor inputs[16];
  assert_true(ninputs <= 16 && noutputs <= 16);
  for (size_t i = 0; i < ninputs; i++) assert_int_equal(ng_tensor_random(g, i, 1, &inputs[i]), NG_OK);
  for (size_t i = 0; i < noutputs; i++) {
    ng_tensor_info info = ng_graph_output(g, i);
    assert_int_equal(ng_tensor_new(ctx, &info, &outputs[i]), NG_OK);
  }
  if (by_kernels) {
    ng_kernel *k = ng_compile(g, NULL);
    if (!k) fail_msg("%s", ng_messages_text(ctx, 0));
    assert_int_equal(ng_kernel_run(k, inputs, outputs, 2), NG_OK);
    ng_kernel_free(k);
  } else {
    assert_int_equal(ng_interpret(g, inputs, outputs, 0), NG_OK);
  }
  for (size_t i = 0; i < ninputs; i++) ng_tensor_free(ctx, &inputs[i]);
}

static void both_backends_run_the_gradients_of_models(void **state) {
  (void)state;
  for (size_t i = 0; i < NMODELS; i++) {
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_model(ctx, models[i].forward, 3);
    ng_gradient_options options = options_of_model(&models[i]);
    ng_graph *gradient = ng_graph_gradient(g, &options);
    ng_tensor expected[16], made[16];
    run_graph(gradient, ctx, false, expected);
    run_graph(gradient, ctx, true, made);
    for (size_t k = 0; k < ng_graph_output_count(gradient); k++) {
      ng_difference difference;
      assert_int_equal(ng_tensor_compare(ctx, &made[k], &expected[k], -1, &difference), NG_OK);
      ng_tensor_free(ctx, &made[k]);
      ng_tensor_free(ctx, &expected[k]);
    }
    ng_graph_free(gradient);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Both backends agree as far as f64 goes. The interpreter rounds no value between nodes, whatever its type.
static void must_agree_in_f64(ng_context *ctx, ng_graph *g, const char *text) {
  ng_tensor expected[16], made[16];
  if (!g) fail_msg("%s\n%s", ng_messages_text(ctx, 0), text);
  run_graph(g, ctx, false, expected);
  run_graph(g, ctx, true, made);
  for (size_t k = 0; k < ng_graph_output_count(g); k++) {
    const double tolerance = made[k].type == NG_F64 ? 1e-12 : 1e-6;
    ng_difference difference;
    if (ng_tensor_compare(ctx, &made[k], &expected[k], tolerance, &difference) != NG_OK)
      fail_msg("%s: %g\n%s", ng_graph_output(g, k).name, difference.relative_l2, text);
    ng_tensor_free(ctx, &made[k]);
    ng_tensor_free(ctx, &expected[k]);
  }
  ng_graph_free(g);
}

static void compiled_gradients_of_f64_are_precise(void **state) {
  (void)state;
  for (size_t i = 0; i < NCASES; i++) {
    const char *family = operator_find(cases[i].name).op->family;
    const bool is_everyday =
        strcmp(family, "norm") == 0 || strcmp(family, "loss") == 0 || strcmp(family, "softmax") == 0;
    if (!is_everyday && !takes_all()) continue;
    char text[TEXT_BYTES];
    write_case(&cases[i], "f64", text);
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_graph(ctx, text);
    must_agree_in_f64(ctx, ng_graph_gradient(g, NULL), text);
    must_agree_in_f64(ctx, g, text);
    ng_context_free(ctx);
  }
}

// Statistics of f64 data are f64: a gradient that reads them is as precise.
static void gradients_read_statistics_in_f64(void **state) {
  (void)state;
  static const char *const norms[][2] = {
      {"LayerNorm", ""}, {"GroupNorm", ", groups: 2"}, {"InstanceNorm", ""}, {"LayerNorm", ", begin_norm_axis: 1"}};
  for (size_t i = 0; i < sizeof norms / sizeof *norms; i++) {
    char text[TEXT_BYTES];
    snprintf(
        text, sizeof text,
        "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [3, 5, 4]}, {name: dy, type: f64, shape: [3, 5, 4]}]\n"
        "nodes:\n  - {op: %s, inputs: [x], outputs: [y, m, v], attributes: {use_affine: false%s}}\n"
        "  - {op: %sBackward, inputs: [x, dy, m, v], outputs: [dx], attributes: {use_affine: false%s}}\n"
        "outputs: [dx]\n",
        norms[i][0], norms[i][1], norms[i][0], norms[i][1]);
    ng_context *ctx = ng_context_new(NULL);
    must_agree_in_f64(ctx, read_graph(ctx, text), text);
    ng_context_free(ctx);
  }
}

static int count_kernels(ng_graph *g, ng_context *ctx) {
  char *text = ng_graph_show(g, "kernels", NULL);
  int count = 0;
  assert_non_null(text);
  for (const char *at = text; (at = strstr(at, "kernel ")); at++) count += at == text || at[-1] == '\n';
  ng_text_free(ctx, text);
  return count;
}

static void gradients_have_as_many_kernels_as_those_written_by_hand(void **state) {
  (void)state;
  for (size_t i = 0; i < NMODELS; i++) {
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_model(ctx, models[i].forward, 16), *by_hand = read_model(ctx, models[i].by_hand, 16);
    ng_gradient_options options = options_of_model(&models[i]);
    ng_graph *gradient = ng_graph_gradient(g, &options);
    assert_non_null(gradient);
    assert_int_equal(ng_graph_node_count(gradient), ng_graph_node_count(by_hand));
    assert_int_equal(count_kernels(gradient, ctx), count_kernels(by_hand, ctx));
    ng_graph_free(gradient);
    ng_graph_free(by_hand);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// The check itself

static ng_status check_text(const char *text, const ng_gradcheck_options *options, ng_gradcheck_result *results) {
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text);
  ng_status status = ng_gradcheck(g, options, results);
  ng_graph_free(g);
  ng_context_free(ctx);
  return status;
}

// ln(1 + e^0) / 0 is infinite, so there are no finite differences.
static void gradcheck_names_the_worst_element(void **state) {
  (void)state;
  ng_gradcheck_result r;
  const char *text = "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3, 5]}]\n"
                     "nodes:\n  - {op: SoftPlus, inputs: [x], outputs: [y], attributes: {beta: 0}}\noutputs: [y]\n";
  assert_int_equal(check_text(text, NULL, &r), NG_DIFFERENT);
  assert_int_equal(r.nelems, 15);
  assert_int_equal(r.nchecked, 15);
  assert_int_equal(r.nskipped, 0);
  assert_false(r.is_within);
  assert_int_equal(r.worst_element, 0);
  assert_true(isinf(r.largest_error) && isnan(r.expected) && isfinite(r.gradient));
}

// One number changes very many others, and some of these cross zero at every step size. Then the check skips it.
static void gradcheck_skips_kinks_and_says_so(void **state) {
  (void)state;
  ng_gradcheck_result r[2];
  const char *text =
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [200000]}, {name: b, type: f32, shape: []}]\n"
      "nodes:\n  - {op: Add, inputs: [x, b], outputs: [z]}\n"
      "  - {op: ReLU, inputs: [z], outputs: [y]}\noutputs: [y]\n";
  assert_int_equal(check_text(text, NULL, r), NG_DIFFERENT);
  assert_true(r[0].is_within && r[0].nskipped == 0);
  assert_true(r[0].nchecked > 0 && r[0].nchecked < r[0].nelems);
  assert_true(!r[1].is_within && r[1].nchecked == 1 && r[1].nskipped == 1);
}

static void elements_that_are_alike_share_a_gradient(void **state) {
  (void)state;
  const char *text = "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [4]}]\n"
                     "nodes:\n  - {op: ReduceMax, inputs: [x], outputs: [y], attributes: {axes: [0]}}\noutputs: [y]\n";
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
  float x[] = {1, 7, -2, 7}, dy = 3, dx[4];
  ng_tensor inputs[] = {{.type = NG_F32, .rank = 1, .extent = {4}, .data = x}, {.type = NG_F32, .data = &dy}};
  assert_int_equal(ng_graph_input_count(gradient), 2); // the greatest element is found again
  ng_tensor output = {.type = NG_F32, .rank = 1, .extent = {4}, .data = dx};
  assert_int_equal(ng_interpret(gradient, inputs, &output, 0), NG_OK);
  const float expected[] = {0, 1.5F, 0, 1.5F};
  assert_memory_equal(dx, expected, sizeof dx);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// The product of the others, where none, one or two of them are zero.
static void products_with_zeros_have_gradients(void **state) {
  (void)state;
  const char *text = "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3, 3]}]\n"
                     "nodes:\n  - {op: ReduceProd, inputs: [x], outputs: [y], attributes: {axes: [1]}}\noutputs: [y]\n";
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
  float x[] = {2, 3, 4, 2, 0, 4, 0, 5, 0}, dy[] = {1, 10, 1}, dx[9];
  ng_tensor inputs[] = {{.type = NG_F32, .rank = 2, .extent = {3, 3}, .data = x},
                        {.type = NG_F32, .rank = 1, .extent = {3}, .data = dy}};
  ng_tensor output = {.type = NG_F32, .rank = 2, .extent = {3, 3}, .data = dx};
  assert_int_equal(ng_interpret(gradient, inputs, &output, 0), NG_OK);
  const float expected[] = {12, 8, 6, 0, 80, 0, 0, 0, 0};
  for (int i = 0; i < 9; i++) assert_true(dx[i] == expected[i]);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// A graph that has no gradient is wrong, and nothing else is told.
static void what_cannot_be_differentiated_is_told_once(void **state) {
  (void)state;
  static const char *const texts[] = {
      "format: ngrad/1\ndims: {B: 2}\ninputs: [{name: x, type: f32, shape: [4, B]}]\nnodes:\n"
      "  - {op: Slice, inputs: [x], outputs: [{name: y, type: f32, shape: [4, 2]}], attributes: {starts: [0], ends: "
      "[2], "
      "axes: [1]}}\noutputs: [y]\n",
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3]}]\n"
      "nodes:\n  - {op: SigmoidBackward, inputs: [x, x], outputs: [y]}\noutputs: [y]\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    ng_context *ctx = ng_context_new(NULL);
    ng_graph *g = read_graph(ctx, texts[i]);
    assert_null(ng_graph_gradient(g, NULL));
    assert_int_equal(ng_last_status(ctx), NG_WRONG);
    assert_int_equal(ng_message_count(ctx), 1);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// A mean over ignored labels alone is 0 / 0, and so is one over labels without class: random data has neither, also
// where other operators compute the loss.
static void random_labels_count(void **state) {
  (void)state;
  static const char *const texts[] = {
      "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [1, 3]}, {name: l, type: s32, shape: [1]}]\nnodes:\n"
      "  - {op: SoftmaxCrossEntropy, inputs: [x, l], outputs: [y], attributes: {ignore_index: 0}}\noutputs: [y]\n",
      "format: ngrad/1\ninputs: [{name: x, type: f64, shape: [1, 3]}, {name: l, type: s64, shape: [1]}]\n"
      "constants: [{name: ignored, type: s64, shape: [], value: 0}]\nnodes:\n"
      "  - {op: OneHot, inputs: [l], outputs: [{name: own, type: f64}], attributes: {depth: 3}}\n"
      "  - {op: NotEqual, inputs: [l, ignored], outputs: [counts]}\n"
      "  - {op: TypeCast, inputs: [counts], outputs: [{name: count, type: f64}]}\n"
      "  - {op: Multiply, inputs: [own, count], outputs: [weight]}\n"
      "  - {op: Multiply, inputs: [x, weight], outputs: [costs]}\n"
      "  - {op: ReduceSum, inputs: [costs], outputs: [cost], attributes: {axes: [0, 1]}}\n"
      "  - {op: ReduceSum, inputs: [weight], outputs: [total], attributes: {axes: [0, 1]}}\n"
      "  - {op: Divide, inputs: [cost, total], outputs: [y]}\noutputs: [y]\n",
  };
  for (uint64_t seed = 0; seed < 40; seed++)
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
      ng_gradcheck_result results[2];
      assert_int_equal(check_text(texts[i], &(ng_gradcheck_options){.seed = seed}, results), NG_OK);
    }
}

// As a quotient by a norm is defined to be 0 where the norm is, so is its gradient.
static void quotients_by_a_norm_of_zero_have_the_gradient_0(void **state) {
  (void)state;
  const char *text =
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [2, 2]}]\n"
      "constants: [{name: zero, type: f32, shape: [], value: 0}, {name: one, type: f32, shape: [], value: 1}]\n"
      "nodes:\n  - {op: ReduceL2, inputs: [x], outputs: [n], attributes: {axes: [1], keep_dims: true}}\n"
      "  - {op: Equal, inputs: [n, zero], outputs: [is_zero]}\n"
      "  - {op: Select, inputs: [is_zero, one, n], outputs: [divisor]}\n"
      "  - {op: Divide, inputs: [x, divisor], outputs: [quotient]}\n"
      "  - {op: Select, inputs: [is_zero, zero, quotient], outputs: [y]}\noutputs: [y]\n";
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
  const float x[] = {0, -0.0F, 3, 4}, dy[] = {1, 2, 5, 10}, n[] = {0, 5}, quotient[] = {0, 0, 0.6F, 0.8F};
  const float expected[] = {0, 0, -0.32F, 0.24F}; // (dy - y * (dy . y)) / n
  ng_tensor inputs[8], output;
  for (size_t i = 0; i < ng_graph_input_count(gradient); i++) {
    const ng_tensor_info info = ng_graph_input(gradient, i);
    const void *data = strcmp(info.name, "x") == 0        ? x
                       : strcmp(info.name, "n") == 0      ? n
                       : strcmp(info.name, "diff_y") == 0 ? dy
                                                          : NULL;
    assert_int_equal(ng_tensor_new(ctx, &info, &inputs[i]), NG_OK);
    for (size_t e = 0; e < (size_t)ng_tensor_nelems(&inputs[i]); e++) {
      const bool is_flag = info.type == NG_BOOLEAN;
      if (is_flag) ((uint8_t *)inputs[i].data)[e] = n[e] == 0;
      else if (data) ((float *)inputs[i].data)[e] = ((const float *)data)[e];
      else ((float *)inputs[i].data)[e] = strcmp(info.name, "divisor") == 0 ? (n[e] == 0 ? 1 : n[e]) : quotient[e];
    }
  }
  const ng_tensor_info info = ng_graph_output(gradient, 0);
  assert_int_equal(ng_tensor_new(ctx, &info, &output), NG_OK);
  assert_int_equal(ng_interpret(gradient, inputs, &output, 0), NG_OK);
  for (int64_t e = 0; e < 4; e++) assert_true(fabs(ng_tensor_get(&output, e) - (double)expected[e]) < 1e-6);
  for (size_t i = 0; i < ng_graph_input_count(gradient); i++) ng_tensor_free(ctx, &inputs[i]);
  ng_tensor_free(ctx, &output);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Nothing flows through Round: the gradient is 0, and one warning says so.
static void steps_are_told_once(void **state) {
  (void)state;
  const char *text = "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3]}]\n"
                     "nodes:\n  - {op: Round, inputs: [x], outputs: [r]}\n"
                     "  - {op: Square, inputs: [r], outputs: [s]}\n"
                     "  - {op: Round, inputs: [s], outputs: [t]}\n"
                     "  - {op: Mod, inputs: [x, x], outputs: [m]}\n"
                     "  - {op: Round, inputs: [m], outputs: [y]}\noutputs: [t, y]\n";
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = read_graph(ctx, text), *gradient = ng_graph_gradient(g, NULL);
  assert_non_null(gradient);
  assert_int_equal(ng_message_count(ctx), 1);
  assert_non_null(
      strstr(ng_messages_text(ctx, 0),
             "warning: Round: its gradient is 0, and so is that of 1 other node: the results change in steps"));
  ng_tensor output = {.type = NG_F32, .rank = 1, .extent = {3}, .data = (float[]){1, 1, 1}};
  assert_int_equal(ng_graph_input_count(gradient), 0);
  assert_int_equal(ng_interpret(gradient, NULL, &output, 0), NG_OK);
  for (int64_t i = 0; i < 3; i++) assert_true(ng_tensor_get(&output, i) == 0);
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Random graphs

// Where the graph's results are numbers. Beside a small divisor, every step of a difference goes over many jumps of a
// remainder.
static void must_be_right(const char *text) {
  enum { MOST_INPUTS = 64 };
  if (strstr(text, "op: Mod")) return;
  ng_gradcheck_result results[MOST_INPUTS] = {{0}};
  ng_status status = check_text(text, NULL, results);
  bool has_numbers = true;
  for (size_t i = 0; i < MOST_INPUTS; i++) has_numbers &= isfinite(results[i].expected);
  if (status != NG_OK && (status != NG_DIFFERENT || has_numbers)) fail_msg("%s", text);
}

static void random_graphs_have_gradients_or_reasons(void **state) {
  (void)state;
  const uint64_t count = number_of_graphs(600);
  const RandomGraphOptions options = {.most_nodes = 5, .most_nelems = 512};
  uint64_t ndifferentiated = 0;
  for (RandomSeeds s = random_seeds(count); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    Diagnostics d;
    GradientEnds ends;
    Text text, again;
    diagnostics_init(&d, &system_allocator);
    text_init(&text, &system_allocator);
    text_init(&again, &system_allocator);
    Graph *g = random_graph(&system_allocator, seed, &options, &d);
    assert_non_null(g);
    Graph *gradient = graph_gradient(g, &(GradientRequest){0}, &ends, &d);
    assert_true((gradient == NULL) == (d.nerrors > 0));
    if (gradient) {
      yaml_print(gradient, &text);
      Graph *read = yaml_read(&system_allocator, "gradient", text_string(&text), text.nbytes, NULL, &d);
      if (!read) {
        diagnostics_print(&d, &again, false);
        fail_msg("seed %d\n%s\n%s", (int)seed, text_string(&again), text_string(&text));
      }
      yaml_print(read, &again);
      assert_string_equal(text_string(&text), text_string(&again));
      graph_free(read);
      text_deinit(&text);
      text_init(&text, &system_allocator);
      yaml_print(g, &text);
      must_be_right(text_string(&text));
      ndifferentiated++;
    }
    graph_free(gradient);
    graph_free(g);
    text_deinit(&text);
    text_deinit(&again);
    diagnostics_deinit(&d);
  }
  assert_true(ndifferentiated >= count / 6);
}

// Whichever allocation fails, nothing is left, and the next call succeeds.
static void without_memory_there_is_no_gradient(void **state) {
  (void)state;
  const char *text =
      "format: ngrad/1\ninputs: [{name: x, type: f32, shape: [2, 3]}, {name: b, type: f32, shape: [3]}]\n"
      "nodes:\n  - {op: Add, inputs: [x, b], outputs: [z]}\n"
      "  - {op: ReduceMean, inputs: [z], outputs: [m], attributes: {axes: [1]}}\n"
      "  - {op: LeakyReLU, inputs: [m], outputs: [y], attributes: {alpha: 0.1}}\noutputs: [y]\n";
  FailingAllocator memory;
  failing_allocator_init(&memory, NEVER_FAIL);
  ng_allocator allocator = {failing_resize, &memory};
  ng_context *ctx = ng_context_new(&allocator);
  ng_graph *g = read_graph(ctx, text), *gradient = NULL;
  for (size_t failing = 0; !gradient; failing++) {
    memory.ncalls = 0;
    memory.failing = failing;
    gradient = ng_graph_gradient(g, NULL);
    if (!gradient) assert_int_equal(ng_last_status(ctx), NG_OUT_OF_MEMORY);
  }
  ng_gradcheck_result results[2];
  ng_status status = NG_OUT_OF_MEMORY;
  for (size_t failing = 0; status != NG_OK; failing++) {
    memory.ncalls = 0;
    memory.failing = failing;
    status = ng_gradcheck(g, NULL, results);
    assert_true(status == NG_OK || status == NG_OUT_OF_MEMORY);
  }
  memory.failing = NEVER_FAIL;
  ng_graph_free(gradient);
  ng_graph_free(g);
  ng_context_free(ctx);
  assert_int_equal(memory.nlive, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_operator_has_a_gradient_with_a_case_or_a_reason),
      cmocka_unit_test(gradients_of_operators_are_those_of_differences),
      cmocka_unit_test(gradients_of_any_type_are_graphs),
      cmocka_unit_test(gradients_hold_nothing_dead),
      cmocka_unit_test(gradients_of_models_are_those_of_differences),
      cmocka_unit_test(both_backends_run_the_gradients_of_models),
      cmocka_unit_test(compiled_gradients_of_f64_are_precise),
      cmocka_unit_test(gradients_read_statistics_in_f64),
      cmocka_unit_test(gradients_have_as_many_kernels_as_those_written_by_hand),
      cmocka_unit_test(gradcheck_names_the_worst_element),
      cmocka_unit_test(gradcheck_skips_kinks_and_says_so),
      cmocka_unit_test(elements_that_are_alike_share_a_gradient),
      cmocka_unit_test(products_with_zeros_have_gradients),
      cmocka_unit_test(what_cannot_be_differentiated_is_told_once),
      cmocka_unit_test(random_labels_count),
      cmocka_unit_test(quotients_by_a_norm_of_zero_have_the_gradient_0),
      cmocka_unit_test(steps_are_told_once),
      random_unit_test(random_graphs_have_gradients_or_reasons),
      cmocka_unit_test(without_memory_there_is_no_gradient),
  };
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
