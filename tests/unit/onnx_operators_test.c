// Operators of ONNX on numbers worked out by hand: each row becomes a model of one node with constant inputs, which the
// reader folds. tests/unit/onnx_test.c and onnx_numbers_test.c have other models, tests/onnx ONNX's own.
#include "frontend/api/ngrad.h"
#include "frontend/onnx/onnx.h"

#include "backends/interpreter/interpreter.h"
#include "tests/unit/literals.h"
#include "tests/unit/onnx_message.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>

typedef struct Row {
  const char *op;
  int opset;
  // Separated by blanks, with a type as numbers have it: i=1 f=0.5 l=[1,2] m=[0.5,1] s=text n=text,text
  const char *attributes;
  const char *inputs, *outputs; // an input `-` is absent
  bool is_compiled;             // the first input is no constant, and compiled code gives the outputs, too
} Row;

static const Row rows[] = {
    // The remainder of floats is exact, however large the quotient.
    {"Mod", 13, "fmod:i=1", "f32[6] 1e30 -1e38 5 -5 inf 4; f32[6] 7 7 inf -inf 3 0", "f32[6] 1 -2 5 -5 nan nan"},
    {"Mod", 13, "fmod:i=1", "f64[4] 1e300 -1e300 0.5 nan; f64[4] 7 7 inf 1", "f64[4] 1 -1 0.5 nan"},
    {"Mod", 13, "fmod:i=1", "s64[3] 9007199254740993 -9007199254740993 -9223372036854775808; s64[3] 2 10 -1",
     "s64[3] 1 -3 0"},
    {"Mod", 13, "", "s64[4] 9007199254740993 -9007199254740993 7 -7; s64[4] 2 10 -3 0", "s64[4] 1 7 -2 0"},
    {"Mod", 13, "", "s32[4] -7 7 6 -6; s32[4] 3 -3 3 -3", "s32[4] 2 -2 0 0"},
    {"Mod", 13, "", "s8[3] -128 127 -5; s8[3] 3 -2 5", "s8[3] 1 -1 0"},
    {"Mod", 13, "fmod:i=1", "s8[2] -128 127; s8[2] 3 -2", "s8[2] -2 1"},
    {"Mod", 13, "", "u8[2] 255 3; u8[2] 7 200", "u8[2] 3 3"},
    // Rounded once, not to f32 first
    {"Cast", 13, "to:i=10", "f64[2] 1.0004882812500002 2.980232238769532e-08",
     "f16[2] 1.0009765625 5.9604644775390625e-08"},
    {"Cast", 13, "to:i=16", "f64[2] 1.0039062500000002 -1.00390625", "bf16[2] 1.0078125 -1"},
    // The last 8 bits of an integer
    {"Cast", 13, "to:i=2", "s64[4] 9007199254740993 9007199254740995 -1152921504606846971 255", "u8[4] 1 3 5 255"},
    {"Cast", 13, "to:i=3", "s64[3] 9007199254740993 -129 128", "s8[3] 1 127 -128"},
    {"Cast", 13, "to:i=6", "s64[4] 4294967301 2147483648 -2147483649 7", "s32[4] 5 -2147483648 2147483647 7",
     .is_compiled = true},
    {"Cast", 13, "to:i=2", "s8[3] -128 127 -1", "u8[3] 128 127 255"},
    {"Cast", 13, "to:i=9", "s64[3] 256 -9223372036854775808 0", "boolean[3] 1 1 0"},
    {"CastLike", 15, "", "s64[2] 4294967301 -1; s32[1] 0", "s32[2] 5 -1", .is_compiled = true},
    // Floats lose their fraction, and saturate
    {"Cast", 13, "to:i=2", "f32[7] 255.9 256 -0.9 -1 nan inf -inf", "u8[7] 255 255 0 0 0 255 0", .is_compiled = true},
    {"Cast", 13, "to:i=6", "f64[5] 2147483647.9 1e300 -2147483648.9 -1e300 nan",
     "s32[5] 2147483647 2147483647 -2147483648 -2147483648 0"},
    {"Cast", 13, "to:i=7", "f16[4] inf -inf nan -2.5", "s64[4] 9223372036854775807 -9223372036854775808 0 -2"},
    // Quotients are rounded towards 0, and are exact beyond 2^53
    {"Div", 14, "",
     "s64[6] 9223372036854775807 -9223372036854775808 9007199254740993 -9223372036854775808 7 -7; s64[6] 7 -7 1 -1 -2 "
     "2",
     "s64[6] 1317624576693539401 1317624576693539401 9007199254740993 -9223372036854775808 -3 -3", .is_compiled = true},
    {"Div", 14, "",
     "s64[4] -9223372036854775808 9223372036854775807 -1 5; s64[4] 9223372036854775807 9223372036854775806 "
     "9223372036854775807 5",
     "s64[4] -1 1 0 1"},
    {"Div", 14, "", "s32[4] -2147483648 2147483647 -7 7; s32[4] -1 2147483647 2 -2", "s32[4] -2147483648 1 -3 -3"},
    // u64, whose order is not that of s64; quotients by divisors of all 64 bits
    {"Div", 14, "",
     "u64[7] 18446744073709551615 18446744073709551615 18446744073709551615 9223372036854775808 7 9007199254740993 "
     "18446744073709551615; u64[7] 1 18446744073709551615 9223372036854775808 3 18446744073709551615 2 10",
     "u64[7] 18446744073709551615 1 1 3074457345618258602 0 4503599627370496 1844674407370955161", .is_compiled = true},
    {"Mod", 13, "",
     "u64[4] 18446744073709551615 18446744073709551615 9223372036854775808 7; u64[4] 10 9223372036854775808 3 "
     "18446744073709551615",
     "u64[4] 5 9223372036854775807 2 7", .is_compiled = true},
    {"Max", 13, "", "u64[2] 18446744073709551615 1; u64[2] 1 9223372036854775808",
     "u64[2] 18446744073709551615 9223372036854775808", .is_compiled = true},
    {"Min", 13, "", "u64[2] 18446744073709551615 1; u64[2] 1 9223372036854775808", "u64[2] 1 1"},
    {"Clip", 13, "", "u64[3] 18446744073709551615 1 9223372036854775808; u64[] 2; u64[] 9223372036854775808",
     "u64[3] 9223372036854775808 2 9223372036854775808"},
    {"Sign", 13, "", "u64[2] 18446744073709551615 0", "u64[2] 1 0"},
    {"Sub", 14, "", "u64[2] 0 18446744073709551615; u64[2] 1 18446744073709551615", "u64[2] 18446744073709551615 0"},
    {"Mul", 14, "", "u32[2] 4294967295 65536; u32[2] 4294967295 65537", "u32[2] 1 65536", .is_compiled = true},
    {"Add", 14, "", "s16[2] 32767 -32768; s16[2] 1 -1", "s16[2] -32768 32767"},
    {"Div", 14, "", "u32[2] 4294967295 7; u32[2] 2 4294967295", "u32[2] 2147483647 0"},
    {"Pow", 15, "", "f32[2] 2 3; u64[2] 10 2", "f32[2] 1024 9"},
    {"BitShift", 11, "direction:s=LEFT", "u64[4] 18446744073709551615 1 3 5; u64[4] 63 63 0 64",
     "u64[4] 9223372036854775808 9223372036854775808 3 0"},
    {"BitShift", 11, "direction:s=RIGHT", "u64[4] 18446744073709551615 9223372036854775808 3 5; u64[4] 63 1 0 64",
     "u64[4] 1 4611686018427387904 3 0"},
    {"BitShift", 11, "direction:s=LEFT", "u32[3] 4294967295 3 1; u32[3] 1 31 32", "u32[3] 4294967294 2147483648 0"},
    {"BitwiseAnd", 18, "", "u64[2] 18446744073709551615 6; u64[2] 9223372036854775808 3",
     "u64[2] 9223372036854775808 2"},
    {"BitwiseXor", 18, "", "s64[3] -1 -9223372036854775808 5; s64[3] 5 -1 -6", "s64[3] -6 9223372036854775807 -1"},
    {"BitwiseOr", 18, "", "s16[2] -32768 5; s16[2] 1 -6", "s16[2] -32767 -1"},
    {"BitCast", 26, "to:i=5", "u16[2] 65535 7", "s16[2] -1 7"},
    {"BitCast", 26, "to:i=2", "boolean[2] 1 0", "u8[2] 1 0"},
    {"ArgMax", 13, "axis:i=0 keepdims:i=0", "u64[3] 7 9223372036854775808 5", "s64[] 1"},
    {"TopK", 11, "", "u64[3] 7 18446744073709551615 9223372036854775808; s64[1] 3",
     "u64[3] 18446744073709551615 9223372036854775808 7; s64[3] 1 2 0", .is_compiled = true},
    {"ReduceSum", 13, "keepdims:i=0", "u32[2] 4294967295 2", "u32[] 1"},
    {"ScatterElements", 18, "reduction:s=max",
     "u64[2] 9223372036854775808 1; s64[2] 0 1; u64[2] 5 18446744073709551615",
     "u64[2] 9223372036854775808 18446744073709551615"},
    {"ScatterElements", 18, "reduction:s=mul", "s64[2] 3 1; s64[2] 0 0; s64[2] 9007199254740993 1",
     "s64[2] 27021597764222979 1", .is_compiled = true},
    {"QuantizeLinear", 21, "", "f32[3] 1 -70000 70000; f32[] 1; s16[] 3", "s16[3] 4 -32768 32767"},
    {"DequantizeLinear", 21, "", "u16[2] 65535 0; f32[] 2; u16[] 32768", "f32[2] 65534 -65536"},
    {"Div", 14, "", "s8[3] -128 127 -7; s8[3] -1 -1 2", "s8[3] -128 -127 -3", .is_compiled = true},
    // Sums, products and powers of integers wrap around; what is not scattered to stays exact
    {"ReduceSum", 13, "keepdims:i=0", "s32[2] 2147483647 1", "s32[] -2147483648"},
    {"ReduceSumSquare", 13, "keepdims:i=0", "s32[1] 65536", "s32[] 0"},
    {"ReduceProd", 13, "keepdims:i=0", "u8[2] 16 17", "u8[] 16"},
    {"CumSum", 14, "", "s32[3] 2147483647 1 1; s64[] 0", "s32[3] 2147483647 -2147483648 -2147483647",
     .is_compiled = true},
    {"MatMulInteger", 10, "", "u8[1,2] 255 3; s8[2,1] -128 127", "s32[1,1] -32259"},
    {"com.microsoft.QuantizeLinear", 17, "", "f32[3] 1 -70000 70000; f32[] 2; s16[] 3", "s16[3] 3 -32768 32767"},
    {"com.microsoft.QuantizeLinear", 17, "axis:i=0", "f32[2,1] 9 -9; f32[2] 1 2; u16[2] 1 9", "u16[2,1] 10 5"},
    {"com.microsoft.DequantizeLinear", 17, "", "u16[2] 65535 7; f32[] 0.5; u16[] 7", "f32[2] 32764 0"},
    {"com.microsoft.DequantizeLinear", 17, "axis:i=0 block_size:i=2", "s16[4] 1 2 -8 7; f32[2] 2 10",
     "f32[4] 2 4 -80 70"},
    {"Pow", 13, "", "s32[3] 10 -3 2; s32[3] 10 3 31", "s32[3] 1410065408 -27 -2147483648"},
    {"ScatterElements", 13, "axis:i=0", "s64[3] 9007199254740993 5 6; s64[1] 1; s64[1] 7",
     "s64[3] 9007199254740993 7 6"},
    {"ScatterElements", 16, "axis:i=0 reduction:s=add", "s32[3] 2147483647 5 6; s64[1] 0; s32[1] 1",
     "s32[3] -2147483648 5 6"},
    {"ScatterND", 16, "reduction:s=add", "s64[2] 9007199254740993 5; s64[1,1] 0; s64[1] 7",
     "s64[2] 9007199254741000 5"},
    // 8-bit integers wrap around in arithmetic
    {"Neg", 13, "", "s8[3] -128 127 0", "s8[3] -128 -127 0"},
    {"Abs", 13, "", "s8[3] -128 127 -1", "s8[3] -128 127 1", .is_compiled = true},
    {"Abs", 13, "", "u64[3] 18446744073709551615 9223372036854775808 7",
     "u64[3] 18446744073709551615 9223372036854775808 7"},
    {"Abs", 13, "", "s32[3] -2147483648 2147483647 -1", "s32[3] -2147483648 2147483647 1"},
    {"Add", 14, "", "u8[2] 255 100; u8[2] 255 100", "u8[2] 254 200"},
    {"Sub", 14, "", "s8[2] -128 100; s8[2] 127 -100", "s8[2] 1 -56"},
    {"Mul", 14, "", "s8[2] -128 100; s8[2] -128 100", "s8[2] 0 16", .is_compiled = true},
    {"BitShift", 11, "direction:s=LEFT", "u8[4] 255 1 255 255; u8[4] 1 7 8 255", "u8[4] 254 128 0 0"},
    {"BitShift", 11, "direction:s=RIGHT", "u8[4] 255 1 255 255; u8[4] 1 7 8 255", "u8[4] 127 0 0 0"},
    {"Shrink", 9, "bias:f=1.5 lambd:f=1.5", "s32[11] -5 -4 -3 -2 -1 0 1 2 3 4 5", "s32[11] -3 -2 -1 0 0 0 0 0 1 2 3",
     .is_compiled = true},
    // Functions beyond the root of the largest f16
    {"Asinh", 9, "", "f16[4] inf -inf 0 60000", "f16[4] inf -inf 0 11.6953125"},
    {"Acosh", 9, "", "f16[3] inf 1 60000", "f16[3] inf 0 11.6953125"},
    {"Acosh", 9, "", "f32[6] -1e30 -inf -3 0.5 1.5 1e30", "f32[6] nan nan nan nan 0.962423650 69.7707026",
     .is_compiled = true},
    // Axes are reduced where there are some, whatever noop_with_empty_axes says; integers are reduced exactly
    {"ReduceSum", 13, "noop_with_empty_axes:i=1", "f32[2,2] 1 2 3 4; s64[1] -1", "f32[2,1] 3 7"},
    {"ReduceL2", 13, "", "s32[] -3", "s32[] 3"},
    {"ReduceL1", 18, "noop_with_empty_axes:i=1", "s32[2] -3 2147483647", "s32[2] 3 2147483647", .is_compiled = true},
    {"ReduceMean", 18, "noop_with_empty_axes:i=1", "s64[2] -3 4", "s64[2] -3 4"},
    // No element is far below another that it is reduced with, and none is lost in a sum of few.
    {"ReduceLogSumExp", 18, "noop_with_empty_axes:i=1", "f32[4] 1000 -1000 inf -inf", "f32[4] 1000 -1000 inf -inf",
     .is_compiled = true},
    {"ReduceLogSumExp", 18, "keepdims:i=0", "f32[3,3] inf -inf 1 -inf -inf 2 inf nan 0; s64[1] 1", "f32[3] inf 2 nan",
     .is_compiled = true},
    {"ReduceL2", 18, "keepdims:i=0", "f32[3,2] inf -inf -inf 1 inf nan; s64[1] 1", "f32[3] inf inf nan"},
    {"ReduceLogSum", 13, "keepdims:i=0 axes:l=[0]", "f16[2] 60000 60000", "f16[] 11.6953125", .is_compiled = true},
    {"ReduceLogSumExp", 13, "keepdims:i=0", "f16[2] 60000 -60000", "f16[] 60000"},
    // Of no elements: the least number that the type has, or the greatest
    {"ReduceMax", 13, "axes:l=[1] keepdims:i=0", "f32[2,0]", "f32[2] -inf -inf"},
    {"ReduceMin", 13, "axes:l=[1] keepdims:i=0", "f16[2,0]", "f16[2] inf inf"},
    {"ReduceMax", 20, "keepdims:i=0", "f64[2,0]; s64[1] 1", "f64[2] -inf -inf", .is_compiled = true},
    {"ReduceMax", 20, "keepdims:i=0", "s32[0]", "s32[] -2147483648"},
    {"ReduceMin", 20, "keepdims:i=0", "s64[0]", "s64[] 9223372036854775807"},
    {"ReduceMax", 20, "keepdims:i=0", "u8[0]", "u8[] 0"},
    {"ReduceMin", 20, "keepdims:i=0", "s8[0]", "s8[] 127"},
    {"ReduceMax", 20, "keepdims:i=0", "boolean[0]", "boolean[] 0", .is_compiled = true},
    {"ReduceMin", 20, "keepdims:i=0", "boolean[0]", "boolean[] 1"},
    {"ReduceMax", 20, "keepdims:i=0", "boolean[2] 0 1", "boolean[] 1"},
    {"ReduceMin", 20, "keepdims:i=0", "boolean[2] 0 1", "boolean[] 0"},
    {"ReduceSum", 13, "keepdims:i=0", "f32[0]", "f32[] 0"},
    {"ReduceProd", 13, "keepdims:i=0", "f32[0]", "f32[] 1"},
    {"ReduceMean", 13, "keepdims:i=0", "f32[0]", "f32[] nan"},
    {"ReduceL2", 13, "keepdims:i=0", "f32[0]", "f32[] 0"},
    {"ReduceLogSum", 13, "keepdims:i=0", "f32[0]", "f32[] -inf"},
    {"ReduceLogSumExp", 13, "keepdims:i=0", "f32[0]", "f32[] -inf"},
    // Elements at distinct indices, of equal ones the first; NaN is greater than all numbers
    {"TopK", 11, "", "f32[3] 1 nan 2; s64[1] 2", "f32[2] nan 2; s64[2] 1 2"},
    {"TopK", 11, "", "f32[4] 1 2 nan 3; s64[1] 4", "f32[4] nan 3 2 1; s64[4] 2 3 1 0"},
    {"TopK", 11, "", "f32[6] 3 nan 1 inf nan -2; s64[1] 3", "f32[3] nan nan inf; s64[3] 1 4 3", .is_compiled = true},
    {"TopK", 11, "largest:i=0", "f32[6] 3 nan 1 -inf nan -2; s64[1] 5", "f32[5] -inf -2 1 3 nan; s64[5] 3 5 2 0 1"},
    {"TopK", 11, "", "f16[2] nan nan; s64[1] 2", "f16[2] nan nan; s64[2] 0 1"},
    {"TopK", 11, "", "f32[5] -0 0 -0 0 -1; s64[1] 5", "f32[5] -0 0 -0 0 -1; s64[5] 0 1 2 3 4", .is_compiled = true},
    {"TopK", 11, "largest:i=0", "f64[4] 0 -0 1 -0; s64[1] 3", "f64[3] 0 -0 -0; s64[3] 0 1 3"},
    {"TopK", 11, "axis:i=0", "f32[3,2] 1 inf nan -inf 1 inf; s64[1] 2", "f32[2,2] nan inf 1 inf; s64[2,2] 1 0 0 2",
     .is_compiled = true},
    {"TopK", 11, "", "s64[3] 9007199254740992 9007199254740993 -9223372036854775808; s64[1] 3",
     "s64[3] 9007199254740993 9007199254740992 -9223372036854775808; s64[3] 1 0 2", .is_compiled = true},
    {"TopK", 11, "largest:i=0", "u8[4] 255 0 255 7; s64[1] 4", "u8[4] 0 7 255 255; s64[4] 1 3 0 2"},
    {"TopK", 11, "", "f32[2,1] nan 3; s64[1] 1", "f32[2,1] nan 3; s64[2,1] 0 0"},
    // Of long axes, the parts with the best elements are found first
    {"TopK", 11, "", "f32[300] 5 1 7 nan 3 2 *; s64[1] 3", "f32[3] nan nan nan; s64[3] 3 9 15", .is_compiled = true},
    {"TopK", 11, "", "f32[400] 5 1 7 2 3 *; s64[1] 4", "f32[4] 7 7 7 7; s64[4] 2 7 12 17"},
    {"TopK", 11, "largest:i=0", "f32[300] 5 1 7 nan 3 2 *; s64[1] 3", "f32[3] 1 1 1; s64[3] 1 7 13"},
    {"TopK", 11, "largest:i=0", "f64[131] nan *; s64[1] 2", "f64[2] nan nan; s64[2] 0 1"},
    {"TopK", 11, "", "s32[200] -5 -2147483648 *; s64[1] 2", "s32[2] -5 -5; s64[2] 0 2"},
    {"TopK", 11, "axis:i=0", "f32[150,2] 1 2 3 -4 *; s64[1] 2", "f32[2,2] 3 2 3 2; s64[2,2] 1 0 3 2"},
    {"CumSum", 14, "", "f32[300] 1 -1 *; s64[] 0", "f32[300] 1 0 *", .is_compiled = true},
    {"CumSum", 14, "reverse:i=1 exclusive:i=1", "f32[300] 1 -1 *; s64[] 0", "f32[300] -1 0 *"},
    {"CumSum", 14, "", "s32[100,2] 1 2 -1 -2 *; s64[] 0", "s32[100,2] 1 2 0 0 *"},
    {"CumSum", 14, "", "f32[0,5]; s64[] 0", "f32[0,5]"},
    {"CumSum", 14, "reverse:i=1", "f32[2,0]; s64[] 1", "f32[2,0]"},
    {"CumProd", 26, "", "f32[65] -1 *; s64[] 0", "f32[65] -1 1 *", .is_compiled = true},
    {"TopK", 11, "", "f32[0,3]; s64[1] 2", "f32[0,2]; s64[0,2]"},
    {"TopK", 11, "", "f32[2,3] 1 2 3 4 5 6; s64[1] 0", "f32[2,0]; s64[2,0]"},
    {"TopK", 1, "k:i=1 axis:i=0", "f32[2] 1 2", "f32[1] 2; s64[1] 1"},
    // Between two elements, by the names of modes before and since opset 20
    {"GridSample", 16, "align_corners:i=1", "f32[1,1,1,2] 10 20; f32[1,1,3,2] -1 0 0 0 0.5 0",
     "f32[1,1,1,3] 10 15 17.5"},
    {"GridSample", 16, "align_corners:i=1 mode:s=bilinear", "f32[1,1,1,2] 10 20; f32[1,1,1,2] 0 0", "f32[1,1,1,1] 15"},
    {"GridSample", 20, "align_corners:i=1 mode:s=linear", "f32[1,1,1,2] 10 20; f32[1,1,1,2] 0 0", "f32[1,1,1,1] 15"},
    {"GridSample", 20, "align_corners:i=1 mode:s=cubic", "f32[1,1,1,2] 10 20; f32[1,1,1,2] 1 0", "f32[1,1,1,1] 20"},
    {"GridSample", 20, "align_corners:i=1 mode:s=nearest", "f32[1,1,1,2] 10 20; f32[1,1,1,2] 0.5 0", "f32[1,1,1,1] 20"},
    // Diagonals, also beside infinities and NaN
    {"Einsum", 12, "equation:s=ii->i", "f32[2,2] -0 inf nan 3", "f32[2] -0 3"},
    {"Einsum", 12, "equation:s=ii", "f32[2,2] 1 inf nan 3", "f32[] 4"},
    {"Einsum", 12, "equation:s=iji->ji", "f32[2,3,2] 0 1 2 3 4 5 6 7 8 9 10 11", "f32[3,2] 0 7 2 9 4 11"},
    {"Einsum", 12, "equation:s=iijj->ji", "f32[2,2,1,1] 1 inf inf 4", "f32[1,2] 1 4"},
    {"Einsum", 12, "equation:s=iii,i->i", "f32[2,2,2] 1 nan inf 0 0 0 0 5; f32[2] 2 3", "f32[2] 2 15"},
    // Roots of sums of powers
    {"LpPool", 13, "kernel_shape:l=[2] strides:l=[2]", "f32[1,1,4] 3 4 -5 12", "f32[1,1,2] 5 13"},
    {"LpPool", 13, "kernel_shape:l=[2] pads:l=[1,1]", "f32[1,1,2] 3 -4", "f32[1,1,3] 3 5 4"},
    {"LpPool", 13, "kernel_shape:l=[3] p:i=1", "f64[1,1,3] 3 -4 5", "f64[1,1,1] 12"},
    {"LpPool", 13, "kernel_shape:l=[2,2] p:i=3", "f32[1,1,2,2] 3 4 -5 0", "f32[1,1,1,1] 6"},
    {"LpPool", 1, "kernel_shape:l=[2] p:f=2", "f32[1,1,2] 3 4", "f32[1,1,1] 5"},
    {"GlobalLpPool", 13, "", "f32[1,2,2] 3 4 5 -12", "f32[1,2,1] 5 13"},
    {"GlobalLpPool", 13, "p:i=3", "f16[1,1,3] 30 40 50", "f16[1,1,1] 60"},
    {"GlobalLpPool", 13, "", "f32[1,1,2] 3e30 4e30", "f32[1,1,1] 5e30", .is_compiled = true},
    {"LpPool", 13, "kernel_shape:l=[2] strides:l=[2]", "f32[1,1,4] 3e30 4e30 3e-30 4e-30", "f32[1,1,2] 5e30 5e-30",
     .is_compiled = true},
    {"LpNormalization", 13, "p:i=1", "f32[2,2] 1 -3 0 0", "f32[2,2] 0.25 -0.75 0 0"},
    {"LpNormalization", 13, "", "f32[3,2] 3e30 -4e30 0 -0 nan 1", "f32[3,2] 0.6 -0.8 0 0 nan nan"},
    // A label that is no class gives NaN, unless it is ignored
    {"NegativeLogLikelihoodLoss", 13, "", "f32[2,3] 1 2 3 4 5 6; s64[2] 2 0", "f32[] -3.5"},
    {"NegativeLogLikelihoodLoss", 13, "", "f32[2,3] 1 2 3 4 5 6; s64[2] 3 0", "f32[] nan"},
    {"NegativeLogLikelihoodLoss", 13, "reduction:s=none", "f32[2,3] 1 2 3 4 5 6; s64[2] -1 0", "f32[2] nan -4"},
    {"NegativeLogLikelihoodLoss", 13, "reduction:s=sum ignore_index:i=-1",
     "f32[2,3] inf 2 3 4 -inf 6; s64[2] -1 0; f32[3] 2 1 1", "f32[] -8"},
    {"NegativeLogLikelihoodLoss", 13, "ignore_index:i=7", "f32[3,2,1] 1 2 3 4 5 6; s64[3,1] 1 7 0; f32[2] 2 1",
     "f32[] -4"},
    {"SoftmaxCrossEntropyLoss", 13, "reduction:s=none", "f32[2,2] 0 0 0 0; s64[2] -1 0", "f32[2] nan 0.693147181"},
    {"SoftmaxCrossEntropyLoss", 13, "ignore_index:i=7", "f32[2,2] 0 0 0 0; s64[2] 7 0", "f32[] 0.693147181"},
    // Lists longer than those of attributes with a meaning
    {"Constant", 13,
     "value_ints:l=[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,"
     "36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,60,61,62,63,9007199254740993]",
     "",
     "s64[65] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 "
     "38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 9007199254740993"},
    {"Constant", 13, "value_floats:m=[0.5,-2]", "", "f32[2] 0.5 -2"},
    // Neighbours beyond 2^53 are the same in f64.
    {"ArgMax", 13, "axis:i=1 keepdims:i=0",
     "s64[3,3] 9007199254740992 9007199254740993 9007199254740993 -9007199254740993 -9007199254740994 "
     "-9007199254740992 -4294967297 -4294967295 -4294967296",
     "s64[3] 1 2 1"},
    {"ArgMin", 13, "axis:i=1",
     "s64[3,3] 9007199254740993 9007199254740992 9007199254740993 -9007199254740993 -9007199254740994 "
     "-9007199254740992 -4294967297 4294967297 -1",
     "s64[3,1] 1 1 0"},
    {"ArgMax", 13, "axis:i=0 keepdims:i=0 select_last_index:i=1",
     "s64[3] 9223372036854775807 9223372036854775807 9223372036854775806", "s64[] 1"},
    {"ArgMax", 13, "axis:i=0 keepdims:i=0", "s64[2] -9223372036854775808 -9223372036854775807", "s64[] 1"},
    {"ArgMax", 13, "axis:i=0 keepdims:i=0", "u8[3] 7 255 128", "s64[] 1"},
    {"ArgMin", 13, "axis:i=0 keepdims:i=0", "s8[3] 7 -128 -128", "s64[] 1"},
    {"ArgMin", 13, "axis:i=0 keepdims:i=0 select_last_index:i=1", "s8[3] 7 -128 -128", "s64[] 2"},
    {"ArgMax", 13, "axis:i=-1 keepdims:i=0", "s32[2] 2147483646 2147483647", "s64[] 1"},
    // Formulas in other operators
    {"Swish", 24, "alpha:f=2", "f32[2] 0 1", "f32[2] 0 0.880797078", .is_compiled = true},
    {"SwiGLU", 28, "", "f32[2] 1 0; f32[2] 3 5", "f32[2] 2.193175736 0"},
    {"RMSNormalization", 23, "epsilon:f=0", "f32[1,2] 3 4; f32[2] 1 2", "f32[1,2] 0.848528137 2.262741700",
     .is_compiled = true},
    {"RMSNormalization", 23, "epsilon:f=0 axis:i=0", "f16[2,1] 300 400; f16[1] 1",
     "f16[2,1] 0.8486328125 1.1318359375"},
    {"GroupNormalization", 21, "epsilon:f=0 num_groups:i=1", "f32[1,2,2] -1 1 -1 1; f32[2] 1 2; f32[2] 0 10",
     "f32[1,2,2] -1 1 8 12"},
    {"GroupNormalization", 18, "epsilon:f=0 num_groups:i=2", "f32[1,2,2] -1 1 -4 4; f32[2] 1 2; f32[2] 0 10",
     "f32[1,2,2] -1 1 8 12"},
    {"RotaryEmbedding", 23, "", "f32[1,1,1,2] 3 5; f32[1,1,1] 0; f32[1,1,1] 1", "f32[1,1,1,2] -5 3"},
    {"RotaryEmbedding", 23, "num_heads:i=1 rotary_embedding_dim:i=2",
     "f32[1,1,3] 3 5 7; f32[2,1] 1 0; f32[2,1] 0 1; s64[1,1] 1", "f32[1,1,3] -5 3 7"},
    {"RotaryEmbedding", 23, "interleaved:i=1", "f32[1,1,1,4] 3 5 2 1; f32[1,1,2] 0 1; f32[1,1,2] 1 0",
     "f32[1,1,1,4] -5 3 2 1", .is_compiled = true},
    // Equal scores: means of the values that a query may see
    {"Attention", 23, "", "f32[1,1,1,1] 0; f32[1,1,2,1] 5 7; f32[1,1,2,1] 2 4", "f32[1,1,1,1] 3", .is_compiled = true},
    {"Attention", 23, "is_causal:i=1", "f32[1,1,2,1] 0 0; f32[1,1,2,1] 5 7; f32[1,1,2,1] 2 4", "f32[1,1,2,1] 2 3",
     .is_compiled = true},
    {"Attention", 23, "", "f32[1,2,1,1] 0 0; f32[1,1,2,1] 5 7; f32[1,1,2,1] 2 4", "f32[1,2,1,1] 3 3"},
    {"Attention", 23, "q_num_heads:i=2 kv_num_heads:i=1", "f32[1,1,2] 0 0; f32[1,2,1] 5 7; f32[1,2,1] 2 4",
     "f32[1,1,2] 3 3"},
    {"Attention", 23, "", "f32[1,1,1,1] 0; f32[1,1,2,1] 5 7; f32[1,1,2,1] 2 4; boolean[1,2] 0 1", "f32[1,1,1,1] 4"},
    {"Attention", 23, "", "f32[1,1,1,1] 0; f32[1,1,2,1] 5 7; f32[1,1,2,1] 2 nan; boolean[1,2] 0 0", "f32[1,1,1,1] nan"},
    {"Attention", 23, "", "f32[1,1,1,1] 0; f32[1,1,2,1] 5 7; f32[1,1,2,1] 2 4; boolean[1,2] 0 0", "f32[1,1,1,1] 0",
     .is_compiled = true},
    {"Attention", 24, "", "f32[1,1,1,1] 0; f32[1,1,3,1] 5 7 9; f32[1,1,3,1] 2 4 6; f32[1,2] 0 0", "f32[1,1,1,1] 3"},
    {"Attention", 24, "", "f32[1,1,1,1] 0; f32[1,1,2,1] 5 7; f32[1,1,2,1] 2 4; -; -; -; s64[1] 1", "f32[1,1,1,1] 2"},
    {"Attention", 24, "is_causal:i=1", "f32[1,1,2,1] 0 0; f32[1,1,3,1] 5 7 9; f32[1,1,3,1] 2 4 6; -; -; -; s64[1] 1",
     "f32[1,1,2,1] 0 2"},
    {"Attention", 23, "is_causal:i=1 qk_matmul_output_mode:i=1 softcap:f=1 scale:f=0.5",
     "f32[1,1,1,1] 2; f32[1,1,1,1] 1; f32[1,1,1,1] 4; -; f32[1,1,1,1] 1; f32[1,1,1,1] 2",
     "f32[1,1,1,1] 3; f32[1,1,2,1] 1 1; f32[1,1,2,1] 2 4; f32[1,1,1,2] 0.761594156 0.761594156"},
    {"Attention", 23, "qk_matmul_output_mode:i=3 softmax_precision:i=1",
     "f16[1,1,1,1] 0; f16[1,1,2,1] 5 7; f16[1,1,2,1] 2 4",
     "f16[1,1,1,1] 3; f16[1,1,2,1] 5 7; f16[1,1,2,1] 2 4; f16[1,1,1,2] 0.5 0.5"},
    {"ai.onnx.preview.FlexAttention", 25, "", "f32[1,2,1,1] 0 0; f32[1,1,2,1] 5 7; f32[1,1,2,1] 2 4",
     "f32[1,2,1,1] 3 3"},
    {"CausalConvWithState", 27, "", "f32[1,1,3] 1 2 3; f32[1,1,2] 10 1; f32[1] 100",
     "f32[1,1,3] 101 112 123; f32[1,1,1] 3", .is_compiled = true},
    {"CausalConvWithState", 27, "activation:s=silu", "f32[1,1,1] 1; f32[1,1,2] 0.5 0.5; -; f32[1,1,1] 1",
     "f32[1,1,1] 0.731058579; f32[1,1,1] 1"},
    {"LinearAttention", 27, "update_rule:s=linear q_num_heads:i=1 kv_num_heads:i=1 scale:f=1",
     "f32[1,2,1] 1 1; f32[1,2,1] 2 3; f32[1,2,1] 5 7", "f32[1,2,1] 10 31; f32[1,1,1,1] 31", .is_compiled = true},
    {"LinearAttention", 27, "update_rule:s=delta q_num_heads:i=1 kv_num_heads:i=1 scale:f=1",
     "f32[1,2,1] 1 1; f32[1,2,1] 2 3; f32[1,2,1] 5 7; -; -; f32[1,2,1] 1 1", "f32[1,2,1] 10 -59; f32[1,1,1,1] -59"},
    {"LinearAttention", 27, "update_rule:s=gated q_num_heads:i=2 kv_num_heads:i=1",
     "f32[1,1,2] 1 2; f32[1,1,1] 2; f32[1,1,1] 5; f32[1,1,1,1] 8; f32[1,1,1] -0.693147181",
     "f32[1,1,2] 14 28; f32[1,1,1,1] 14"},
    // Some axes, around the edge, with a stretched kernel, at the ratio of one axis
    {"Pad", 18, "", "f32[1,2] 1 2; s64[2] 1 0; f32[] 9; s64[1] -1", "f32[1,3] 9 1 2", .is_compiled = true},
    {"Pad", 19, "mode:s=wrap", "f32[3] 1 2 3; s64[2] 2 4", "f32[9] 2 3 1 2 3 1 2 3 1", .is_compiled = true},
    {"Pad", 19, "mode:s=edge", "f32[2,1] 1 2; s64[2] 1 1; -; s64[1] 0", "f32[4,1] 1 1 2 2"},
    {"Resize", 18, "antialias:i=1 mode:s=linear axes:l=[1]", "f32[1,4] 1 2 3 4; -; f32[1] 0.5", "f32[1,2] 1.625 3.375",
     .is_compiled = true},
    {"Resize", 18, "antialias:i=1 mode:s=linear axes:l=[0]", "f32[2] 1 3; -; f32[1] 2", "f32[4] 1 1.5 2.5 3"},
    {"Resize", 19, "keep_aspect_ratio_policy:s=not_larger", "f32[1,2] 1 2; -; -; s64[2] 3 4",
     "f32[2,4] 1 1 2 2 1 1 2 2"},
    {"Resize", 19, "keep_aspect_ratio_policy:s=not_smaller axes:l=[1,0]", "f32[2,1] 1 2; -; -; s64[2] 2 2",
     "f32[4,2] 1 1 1 1 2 2 2 2"},
    // The scale of both axes is 0.6, and 1.8 rows become 2
    {"Resize", 19,
     "keep_aspect_ratio_policy:s=not_larger nearest_mode:s=floor coordinate_transformation_mode:s=pytorch_half_pixel",
     "f32[3,5] 1 1 1 1 1 2 2 2 2 2 3 3 3 3 3; -; -; s64[2] 9 3", "f32[2,3] 1 1 1 3 3 3"},
    {"Resize", 19,
     "keep_aspect_ratio_policy:s=not_larger nearest_mode:s=floor coordinate_transformation_mode:s=half_pixel_symmetric",
     "f32[3,5] 1 1 1 1 1 2 2 2 2 2 3 3 3 3 3; -; -; s64[2] 9 3", "f32[2,3] 1 1 1 2 2 2"},
    // 8-bit floats saturate unless the model says otherwise; integers of 4 bits keep the last bits, or saturate
    {"Cast", 19, "to:i=17", "f32[4] 1000 -inf nan 0.3", "f8_e4m3[4] 448 -448 nan 0.3125", .is_compiled = true},
    {"Cast", 19, "to:i=17 saturate:i=0", "f32[3] 1000 -inf 2", "f8_e4m3[3] nan nan 2"},
    {"Cast", 19, "to:i=19", "f16[3] 65504 -inf 1", "f8_e5m2[3] 57344 -57344 1"},
    {"Cast", 19, "to:i=19 saturate:i=0", "f16[3] 65504 -inf 1", "f8_e5m2[3] inf -inf 1"},
    {"Cast", 19, "to:i=10", "f8_e4m3[3] 448 nan -0.3125", "f16[3] 448 nan -0.3125", .is_compiled = true},
    {"Cast", 19, "to:i=3", "f8_e5m2[3] 57344 1.75 -1.75", "s8[3] 127 1 -1"},
    {"Cast", 21, "to:i=22", "f32[6] -9 8 -1.5 15 23 1e30", "s4[6] 7 -8 -1 -1 7 -1", .is_compiled = true},
    {"Cast", 21, "to:i=21", "s64[5] -1 16 17 -9223372036854775808 9", "u4[5] 15 0 1 0 9"},
    {"Cast", 21, "to:i=22", "s8[3] -128 127 -7", "s4[3] 0 -1 -7"},
    {"QuantizeLinear", 21, "output_dtype:i=3 block_size:i=2 axis:i=0", "f32[4] 1 2 3 4; f32[2] 1 0.5", "s8[4] 1 2 6 8",
     .is_compiled = true},
    {"QuantizeLinear", 21, "output_dtype:i=22 axis:i=0", "f32[3] 100 -100 2.5; f32[] 1", "s4[3] 7 -8 2"},
    {"QuantizeLinear", 19, "output_dtype:i=17 axis:i=0", "f32[3] 1000 0.3 -3; f32[] 1", "f8_e4m3[3] 448 0.3125 -3"},
    {"DequantizeLinear", 21, "axis:i=0 block_size:i=2", "s8[3] 1 2 3; f32[2] 2 10", "f32[3] 2 4 30"},
    // Of pairs of rows and updates; NaN stays NaN
    {"ScatterElements", 18, "reduction:s=max", "f32[4] 1 5 nan 2; s64[4] 0 0 1 2; f32[4] 3 2 4 9", "f32[4] 3 5 nan 2",
     .is_compiled = true},
    {"ScatterElements", 18, "reduction:s=min", "f32[3] 1 5 7; s64[3] -1 1 1; f32[3] nan 4 3", "f32[3] 1 3 nan"},
    {"ScatterElements", 18, "reduction:s=mul", "s32[2] 2147483647 3; s64[3] 0 1 1; s32[3] 2 5 7", "s32[2] -2 105"},
    {"ScatterND", 18, "reduction:s=max", "f32[2,2] 1 2 3 4; s64[2,1] 1 1; f32[2,2] 9 0 5 8", "f32[2,2] 1 2 9 8",
     .is_compiled = true},
    {"ScatterND", 18, "reduction:s=min", "u8[2] 5 6; s64[2,1] 1 1; u8[2] 7 2", "u8[2] 5 2"},
    {"CumProd", 26, "", "f32[2,3] 1 2 3 4 5 6; s64[] 1", "f32[2,3] 1 2 6 4 20 120", .is_compiled = true},
    {"CumProd", 26, "exclusive:i=1 reverse:i=1", "f32[3] 1 2 3; s64[] 0", "f32[3] 6 3 1"},
    {"CumProd", 26, "", "s32[3] 65536 65536 7; s64[] 0", "s32[3] 65536 0 0"},
    // Windows with gaps, with and without the padding
    {"AveragePool", 19, "kernel_shape:l=[2] dilations:l=[2]", "f32[1,1,4] 1 2 3 6", "f32[1,1,2] 2 4",
     .is_compiled = true},
    {"AveragePool", 19, "kernel_shape:l=[2] dilations:l=[2] pads:l=[1,1]", "f32[1,2,2] 1 2 3 6", "f32[1,2,2] 2 1 6 3"},
    {"AveragePool", 19, "kernel_shape:l=[2] dilations:l=[2] pads:l=[1,1] count_include_pad:i=1", "f32[1,1,2] 1 2",
     "f32[1,1,2] 1 0.5"},
    {"AveragePool", 19, "kernel_shape:l=[2] dilations:l=[2] ceil_mode:i=1 strides:l=[2]", "f32[1,1,4] 1 2 3 6",
     "f32[1,1,2] 2 3"},
    {"LpPool", 18, "kernel_shape:l=[2] dilations:l=[2]", "f32[1,1,3] 3 9 -4", "f32[1,1,1] 5"},
    {"AffineGrid", 20, "", "f32[1,2,3] 1 0 0 0 2 5; s64[4] 1 1 1 2", "f32[1,1,2,2] -0.5 5 0.5 5"},
    {"AffineGrid", 20, "align_corners:i=1", "f32[1,2,3] 0 1 0 1 0 0; s64[4] 1 1 2 2",
     "f32[1,2,2,2] -1 -1 -1 1 1 -1 1 1", .is_compiled = true},
    {"AffineGrid", 20, "", "f32[1,3,4] 1 0 0 0 0 1 0 0 0 0 1 7; s64[5] 1 1 1 1 2", "f32[1,1,1,2,3] -0.5 0 7 0.5 0 7"},
    {"CenterCropPad", 18, "", "f32[4,1] 1 2 3 4; s64[2] 2 2", "f32[2,2] 2 0 3 0", .is_compiled = true},
    {"CenterCropPad", 18, "axes:l=[-1]", "s32[1,2] 1 2; s64[1] 5", "s32[1,5] 0 1 2 0 0"},
    {"Col2Im", 18, "", "f32[1,4,2] 1 2 3 4 5 6 7 8; s64[2] 2 3; s64[2] 2 2", "f32[1,1,2,3] 1 5 4 5 13 8",
     .is_compiled = true},
    {"Col2Im", 18, "strides:l=[2] pads:l=[1,0]", "f32[1,4,1] 1 2 3 4; s64[1] 2; s64[1] 2", "f32[1,2,2] 2 0 4 0"},
    {"Det", 11, "", "f32[3,3] 0 1 2 3 4 5 6 7 9", "f32[] -3", .is_compiled = true},
    {"Det", 11, "", "f32[2,1,1] 5 -3", "f32[2] 5 -3"},
    {"Det", 22, "", "f64[2,2,2] 1e200 2 3 1e-200 1 2 3 4", "f64[2] -5 -2"},
    {"BitwiseAnd", 18, "", "s32[3] -1 12 -2147483648; s32[3] 7 10 -1", "s32[3] 7 8 -2147483648", .is_compiled = true},
    {"BitwiseOr", 18, "", "u8[2] 129 7; u8[1] 8", "u8[2] 137 15"},
    {"BitwiseXor", 18, "", "s8[2] -1 5; s8[2] 127 3", "s8[2] -128 6"},
    {"BitwiseNot", 18, "", "s64[2] 9223372036854775807 0", "s64[2] -9223372036854775808 -1"},
    {"BitwiseNot", 18, "", "u8[2] 255 1", "u8[2] 0 254", .is_compiled = true},
    {"TensorScatter", 24, "axis:i=1", "f32[2,3] 1 2 3 4 5 6; f32[2,1] 7 8; s64[2] 1 2", "f32[2,3] 1 7 3 4 5 8",
     .is_compiled = true},
    {"TensorScatter", 24, "axis:i=1 mode:s=circular", "f32[1,3] 1 2 3; f32[1,2] 7 8; s64[1] 5", "f32[1,3] 8 2 7"},
    {"ai.onnx.ml.ArrayFeatureExtractor", 17, "", "f32[2,3] 1 2 3 4 5 6; s64[1,2] 2 0", "f32[2,2] 3 1 6 4"},
    {"ai.onnx.ml.Binarizer", 17, "threshold:f=1", "f32[3] 0 1 2", "f32[3] 0 0 1"},
    // What ONNX Runtime's optimizer writes
    {"com.microsoft.Gelu", 17, "", "f32[2] 0 1", "f32[2] 0 0.841344746", .is_compiled = true},
    {"com.microsoft.BiasGelu", 17, "", "f32[2] -1 0; f32[1] 1", "f32[2] 0 0.841344746"},
    {"com.microsoft.FastGelu", 17, "", "f32[1] 1", "f32[1] 0.841191991"},
    {"com.microsoft.FastGelu", 17, "", "f32[1] -1; f32[1] 2", "f32[1] 0.841191991"},
    {"com.microsoft.QuickGelu", 17, "", "f32[1] 1", "f32[1] 0.845795817"},
    {"com.microsoft.FusedMatMul", 17, "alpha:f=0.5 transB:i=1", "f32[1,2] 1 2; f32[3,2] 1 2 3 4 5 6",
     "f32[1,3] 2.5 5.5 8.5", .is_compiled = true},
    {"com.microsoft.FusedMatMul", 17, "transA:i=1", "f32[1,2,1] 1 2; f32[2,1] 3 4", "f32[1,1,1] 11"},
    {"com.microsoft.SkipLayerNormalization", 17, "epsilon:f=0",
     "f32[1,1,2] 1 2; f32[1,1,2] -2 -1; f32[2] 2 2; f32[2] 0 1; f32[2] 0 0",
     "f32[1,1,2] -2 3; f32[1,1,1] 0; f32[1,1,1] 1; f32[1,1,2] -1 1"},
    {"com.microsoft.SkipSimplifiedLayerNormalization", 17, "epsilon:f=0", "f32[1,2] 1 2; f32[1,2] 2 2; f32[2] 1 2",
     "f32[1,2] 0.848528137 2.262741700"},
    {"SimplifiedLayerNormalization", 13, "epsilon:f=0", "f32[1,2] 3 4; f32[2] 1 2", "f32[1,2] 0.848528137 2.262741700"},
    {"LayerNormalization", 13, "epsilon:f=0", "f32[1,2] -1 1; f32[2] 2 2; f32[2] 0 1", "f32[1,2] -2 3"},
    {"com.microsoft.QLinearAdd", 17, "", "u8[1] 10; f32[] 0.5; u8[] 2; u8[1] 3; f32[] 2; u8[] 1; f32[] 1; u8[] 5",
     "u8[1] 13"},
    {"com.microsoft.FusedConv", 17, "activation:s=Relu",
     "f32[1,1,1,2] -1 2; f32[1,1,1,1] 3; f32[1] 1; f32[1,1,1,2] 0 1", "f32[1,1,1,2] 0 8"},
    {"com.microsoft.FusedConv", 17, "activation:s=HardSigmoid activation_params:m=[0.25,0.5]",
     "f32[1,1,1,3] -3 1 3; f32[1,1,1,1] 1", "f32[1,1,1,3] 0 0.75 1"},
    {"com.microsoft.FusedConv", 17, "activation:s=LeakyRelu activation_params:m=[0.25]",
     "f32[1,1,1,2] -4 1; f32[1,1,1,1] 1", "f32[1,1,1,2] -1 1"},
    {"com.microsoft.FusedConv", 17, "activation:s=Clip activation_params:m=[0,6]",
     "f32[1,1,1,3] -4 1 7; f32[1,1,1,1] 1", "f32[1,1,1,3] 0 1 6"},
    {"com.microsoft.FusedGemm", 17, "activation:s=LeakyRelu activation_alpha:f=0.5", "f32[1,1] 2; f32[1,2] 3 -4",
     "f32[1,2] 6 -4"},
    {"com.microsoft.FusedGemm", 17, "alpha:f=0.5 activation:s=Relu", "f32[1,1] 2; f32[1,2] 3 -4; f32[1] 1",
     "f32[1,2] 4 0"},
    {"com.microsoft.MatMulNBits", 17, "K:i=2 N:i=1 block_size:i=16",
     "f32[1,2] 1 10; u8[1,1,8] 147 0 0 0 0 0 0 0; f32[1] 0.5", "f32[1,1] 2.5", .is_compiled = true},
    {"com.microsoft.MatMulNBits", 17, "K:i=2 N:i=1 block_size:i=16",
     "f32[1,2] 1 10; u8[1,1,8] 147 0 0 0 0 0 0 0; f32[1] 0.5; u8[1] 2", "f32[1,1] 35.5"},
    {"com.microsoft.MatMulNBits", 17, "K:i=2 N:i=1 bits:i=8 block_size:i=16",
     "f32[1,2] 1 10; u8[1,1,16] 129 126 0 *; f32[1,1] 0.5; -; -; f32[1] 3", "f32[1,1] -6.5"},
    {"com.microsoft.MultiHeadAttention", 17, "num_heads:i=1",
     "f32[1,1,2] 1 2; f32[1,1,2] 3 4; f32[1,1,2] 5 6; f32[6] 0 0 0 0 1 1",
     "f32[1,1,2] 6 7; f32[1,1,1,2] 3 4; f32[1,1,1,2] 6 7"},
    {"com.microsoft.RotaryEmbedding", 17, "", "f32[1,1,2] 1 0; s64[1] 1; f32[2,1] 1 0; f32[2,1] 0 1", "f32[1,1,2] 0 1"},
    {"com.microsoft.QLinearAveragePool", 17, "kernel_shape:l=[1,2]",
     "u8[1,1,1,2] 1 3; f32[] 1; u8[] 0; f32[] 0.5; u8[] 1", "u8[1,1,1,1] 5"},
    {"com.microsoft.QLinearReduceMean", 17, "axes:l=[1]", "u8[1,2] 1 3; f32[] 1; u8[] 0; f32[] 0.5; u8[] 1",
     "u8[1,1] 5"},
    {"com.microsoft.QLinearMul", 17, "", "s8[1] 10; f32[] 0.5; s8[] 2; s8[1] 3; f32[] 2; s8[] 1; f32[] 1; s8[] 5",
     "s8[1] 21"},
    {"com.microsoft.QLinearSigmoid", 17, "", "u8[1] 2; f32[] 1; u8[] 2; f32[] 0.25; u8[] 1", "u8[1] 3"},
    {"com.microsoft.QLinearLeakyRelu", 17, "alpha:f=0.5", "s8[2] -4 4; f32[] 1; s8[] 0; f32[] 1; s8[] 0", "s8[2] -2 4"},
    {"com.microsoft.QLinearSoftmax", 17, "axis:i=1", "u8[1,2] 9 9; f32[] 1; u8[] 2; f32[] 0.25; u8[] 0", "u8[1,2] 2 2"},
    {"com.microsoft.QLinearConcat", 17, "axis:i=0",
     "f32[] 0.5; u8[] 1; u8[2] 10 12; f32[] 1; u8[] 10; u8[1] 3; f32[] 2; u8[] 1", "u8[3] 1 5 9"},
    {"com.microsoft.QLinearWhere", 17, "",
     "boolean[2] 1 0; u8[2] 3 3; f32[] 1; u8[] 1; u8[2] 9 9; f32[] 2; u8[] 4; f32[] 1; u8[] 0", "u8[2] 2 10"},
    {"com.microsoft.QGemm", 17, "transB:i=1",
     "u8[1,2] 3 5; f32[] 1; u8[] 1; s8[2,2] 1 2 3 4; f32[2] 1 2; s8[2] 0 1; s32[2] 1 1", "f32[1,2] 11 34"},
    {"com.microsoft.QGemm", 17, "alpha:f=2",
     "u8[1,1] 3; f32[] 1; u8[] 1; u8[1,2] 1 2; f32[2] 1 2; u8[2] 0 1; -; f32[] 4; u8[] 1", "u8[1,2] 2 3"},
    {"com.microsoft.MatMulIntegerToFloat", 17, "",
     "u8[1,2] 3 5; u8[2,1] 2 4; f32[] 1; f32[] 0.5; u8[] 1; u8[] 1; f32[1] 1", "f32[1,1] 8", .is_compiled = true},
    {"com.microsoft.DynamicQuantizeMatMul", 17, "", "f32[1,2] 0 255; u8[2,1] 9 3; f32[1] 0.5; u8[1] 1", "f32[1,1] 255"},
    {"com.microsoft.QLinearGlobalAveragePool", 17, "", "u8[1,1,2,1] 1 3; f32[] 1; u8[] 0; f32[] 0.5; u8[] 1",
     "u8[1,1,1,1] 5"},
    // As many as the data say; NaN is greater than all numbers
    {"NonMaxSuppression", 11, "", "f32[1,3,4] 0 0 2 2 2 2 0 0.5 5 5 6 6; f32[1,1,3] 0.5 0.75 0.25; s64[] 3; f32[] 0.5",
     "s64[2,3] 0 0 1 0 0 2"},
    {"NonMaxSuppression", 11, "", "f32[1,2,4] 0 0 2 2 0 0 2 2; f32[1,2,2] 0.5 0.5 1 0; s64[] 5; f32[] 1; f32[] 0.25",
     "s64[3,3] 0 0 0 0 0 1 0 1 0"},
    {"NonMaxSuppression", 11, "center_point_box:i=1",
     "f32[1,2,4] 1 1 2 2 1 1.5 2 2; f32[1,1,2] 1 2; s64[] 5; f32[] 0.625", "s64[2,3] 0 0 1 0 0 0"},
    {"NonMaxSuppression", 11, "", "f32[1,1,4] 0 0 1 1; f32[1,1,1] 1", "s64[0,3]"},
    {"Unique", 11, "", "f32[5] 3 nan 1 3 nan", "f32[3] 1 3 nan; s64[3] 2 0 1; s64[5] 1 2 0 1 2; s64[3] 1 2 2"},
    {"Unique", 11, "sorted:i=0", "s64[4] 7 2 7 1", "s64[3] 7 2 1; s64[3] 0 1 3; s64[4] 0 1 0 2; s64[3] 2 1 1"},
    {"Unique", 11, "axis:i=1", "f32[2,3] 2 1 2 5 4 5", "f32[2,2] 1 2 4 5; s64[2] 1 0; s64[3] 1 0 1; s64[2] 1 2"},
    {"Unique", 11, "", "u8[0]", "u8[0]; s64[0]; s64[0]; s64[0]"},
    // Names of activations in any case; each takes its own numbers
    {"RNN", 14, "hidden_size:i=1 activations:n=HARDSIGMOID activation_alpha:m=[0.25] activation_beta:m=[0.125]",
     "f32[1,1,1] 1; f32[1,1,1] 2; f32[1,1,1] 0", "f32[1,1,1,1] 0.625; f32[1,1,1] 0.625", .is_compiled = true},
    {"RNN", 14, "hidden_size:i=1 direction:s=bidirectional activations:n=LeakyRelu,elu activation_alpha:m=[0.5]",
     "f32[1,1,1] -1; f32[2,1,1] 2 0; f32[2,1,1] 0 0", "f32[1,2,1,1] -1 0; f32[2,1,1] -1 0"},
    {"LSTM", 14, "hidden_size:i=1 activations:n=sigmoid,TANH,relu",
     "f32[1,1,1] 0; f32[1,4,1] 0 0 0 0; f32[1,4,1] 0 0 0 0; -; -; -; f32[1,1,1] 4",
     "f32[1,1,1,1] 1; f32[1,1,1] 1; f32[1,1,1] 2"},
    // Spectra, real and complex, forwards and back
    {"DFT", 20, "", "f32[1,3,1] 1 2 3; -; s64[] 1", "f32[1,3,2] 6 0 -1.5 0.866025404 -1.5 -0.866025404",
     .is_compiled = true},
    {"DFT", 20, "onesided:i=1", "f32[3,1] 1 2 3", "f32[2,2] 6 0 -1.5 0.866025404"},
    {"DFT", 20, "onesided:i=1 inverse:i=1", "f32[3,2] 10 0 -2 2 -2 0", "f32[4,1] 1 2 3 4"},
    {"DFT", 20, "inverse:i=1", "f32[2,2] 3 2 -1 4", "f32[2,2] 1 3 2 -1"},
    {"DFT", 17, "axis:i=0 onesided:i=1", "f32[4,1] 1 2 3 9; s64[] 3", "f32[2,2] 6 0 -1.5 0.866025404"},
    {"DFT", 20, "", "f32[1,1] 5; s64[] 2", "f32[2,2] 5 0 5 0"},
    {"STFT", 17, "onesided:i=0", "f32[1,3,1] 1 2 3; s64[] 3; f32[3] 1 1 2",
     "f32[1,1,3,2] 9 0 -3 3.464101615 -3 -3.464101615"},
    {"STFT", 17, "", "f32[1,4,1] 1 2 3 5; s64[] 1; -; s64[] 3", "f32[1,2,2,2] 6 0 -1.5 0.866025404 10 0 -2 1.732050808",
     .is_compiled = true},
    {"MelWeightMatrix", 17, "", "s64[] 1; s64[] 4; s64[] 8; f32[] 0; f32[] 8", "f32[3,1] 0 1 0.5"},
    // Between eight elements; outside is 0
    {"GridSample", 20, "align_corners:i=1 mode:s=linear", "f32[1,1,2,1,2] 0 10 20 30; f32[1,1,1,2,3] 0 0 0 1 0 0.5",
     "f32[1,1,1,1,2] 15 25", .is_compiled = true},
    {"GridSample", 20, "mode:s=nearest", "f32[1,1,1,1,2] 10 20; f32[1,1,1,2,3] 0.5 0 0 3 0 0", "f32[1,1,1,1,2] 20 0"},
    // Taps moved by half an element, and one by two
    {"DeformConv", 19, "", "f32[1,1,1,3] 2 4 8; f32[1,1,1,1] 10; f32[1,2,1,3] 0 0 0 0.5 0 2; f32[1] 1",
     "f32[1,1,1,3] 31 41 1", .is_compiled = true},
    {"DeformConv", 19, "strides:l=[1,2] pads:l=[0,1,0,0]",
     "f32[1,1,1,3] 2 4 8; f32[1,1,1,2] 1 10; f32[1,4,1,2] 0 0 0 0 0 0 0 0; -; f32[1,2,1,2] 1 1 0.5 1",
     "f32[1,1,1,2] 10 84"},
    {"RoiAlign", 16, "sampling_ratio:i=1 output_width:i=2", "f32[1,1,1,4] 1 2 3 4; f32[1,4] 0.5 0.5 2.5 0.5; s64[1] 0",
     "f32[1,1,1,2] 1.5 2.5"},
    {"RoiAlign", 16, "sampling_ratio:i=1 coordinate_transformation_mode:s=output_half_pixel spatial_scale:f=0.5",
     "f32[2,1,1,4] 0 0 0 0 1 2 3 4; f32[2,4] 2 0 2 0 20 0 22 0; s64[2] 1 1", "f32[2,1,1,1] 2.5 0", .is_compiled = true},
    {"RoiAlign", 10, "sampling_ratio:i=1 spatial_scale:f=0.5",
     "f32[2,1,1,4] 0 0 0 0 1 2 3 4; f32[2,4] 2 0 2 0 20 0 22 0; s64[2] 1 1", "f32[2,1,1,1] 2.5 0", .is_compiled = true},
    {"OptionalHasElement", 18, "", "f32[1] 1", "boolean[] 1"},
    {"OptionalHasElement", 18, "", "-", "boolean[] 0"},
    {"OptionalGetElement", 18, "", "f32[1] 7", "f32[1] 7"},
};

// Reductions of f32[2,2] -3 0.5 2 -1 over all axes and over none, and of f32[] -3.
static const struct Reduction {
  const char *op;
  int opset; // from which on the axes are an input
  const char *of_all, *of_each, *of_scalar;
} reductions[] = {
    {"ReduceL1", 18, "6.5", "3 0.5 2 1", "3"},
    {"ReduceL2", 18, "3.774917217635375", "3 0.5 2 1", "3"},
    {"ReduceSum", 13, "-1.5", "-3 0.5 2 -1", "-3"},
    {"ReduceMean", 18, "-0.375", "-3 0.5 2 -1", "-3"},
    {"ReduceMax", 18, "2", "-3 0.5 2 -1", "-3"},
    {"ReduceMin", 18, "-3", "-3 0.5 2 -1", "-3"},
    {"ReduceProd", 18, "3", "-3 0.5 2 -1", "-3"},
    {"ReduceSumSquare", 18, "14.25", "9 0.25 4 1", "9"},
    {"ReduceLogSum", 18, "nan", "nan -0.69314718056 0.69314718056 nan", "nan"},
    {"ReduceLogSumExp", 18, "2.24659064751", "-3 0.5 2 -1", "-3"},
};

static uint64_t data_type(Type type) {
  static const uint8_t numbers[TYPE_COUNT] = {
      [TYPE_F32] = 1,      [TYPE_U8] = 2,    [TYPE_S8] = 3,      [TYPE_S32] = 6,  [TYPE_S64] = 7, [TYPE_F64] = 11,
      [TYPE_F16] = 10,     [TYPE_BF16] = 16, [TYPE_BOOLEAN] = 9, [TYPE_U4] = 21,  [TYPE_S4] = 22, [TYPE_F8_E4M3] = 17,
      [TYPE_F8_E5M2] = 19, [TYPE_U16] = 4,   [TYPE_S16] = 5,     [TYPE_U32] = 12, [TYPE_U64] = 13};
  return numbers[type];
}

static void add_initializer(Message *graph, const Literal *l, const char *name) {
  const Type type = type_from_name(l->type);
  uint8_t data[MOST_NUMBERS * sizeof(double)];
  Message tensor = {.count = 0};
  for (int axis = 0; axis < l->extents.rank; axis++) add_number(&tensor, 1, (uint64_t)l->extents.extent[axis].value);
  add_number(&tensor, 2, data_type(type));
  add_bytes(&tensor, 8, name, strlen(name));
  for (size_t i = 0; i < l->count; i++)
    if (TYPES_64_BITS & TYPE_BIT(type)) ((int64_t *)(void *)data)[i] = l->integers[i];
    else type_store(type, data, i, l->numbers[i]);
  add_bytes(&tensor, 9, data, l->count * type_nbytes(type));
  add_bytes(graph, 5, tensor.bytes, tensor.count);
}

// "name:i=1", or with f, l, m, s or n in the place of i.
static void add_attribute(Message *node, const char *text, size_t count) {
  enum { F = 2, I = 3, S = 4, FLOATS = 7, INTS = 8, STRINGS = 9 };
  const char *colon = memchr(text, ':', count), *value = colon + 3, *end = text + count;
  Message attribute = {.count = 0};
  assert_non_null(colon);
  add_bytes(&attribute, 1, text, (size_t)(colon - text));
  switch (colon[1]) {
  case 'i': add_number(&attribute, I, (uint64_t)strtoll(value, NULL, 10)); break;
  case 'f': add_float(&attribute, F, strtof(value, NULL)); break;
  case 's': add_bytes(&attribute, S, value, (size_t)(end - value)); break;
  case 'n':
    for (size_t n; value < end; value += n + (value[n] == ',')) {
      n = strcspn(value, ", ");
      add_bytes(&attribute, STRINGS, value, n);
    }
    break;
  case 'm':
    for (char *next; *++value != ']'; value = next) {
      add_float(&attribute, FLOATS, strtof(value, &next));
      if (*next == ']') break;
    }
    break;
  default:
    for (char *next; *++value != ']'; value = next) {
      add_number(&attribute, INTS, (uint64_t)strtoll(value, &next, 10));
      if (*next == ']') break;
    }
    add_number(&attribute, 20, 7); // the type INTS, which an empty list does not show
  }
  add_bytes(node, 5, attribute.bytes, attribute.count);
}

static void add_attributes(Message *node, const char *text) {
  while (*text) {
    const size_t count = strcspn(text, " ");
    add_attribute(node, text, count);
    text += count + (text[count] == ' ');
  }
}

// The literal as an input of the model.
static void add_input(Message *graph, const Literal *l, const char *name) {
  Message shape = {.count = 0}, tensor = {.count = 0}, type = {.count = 0}, info = {.count = 0};
  for (int axis = 0; axis < l->extents.rank; axis++) {
    Message extent = {.count = 0};
    add_number(&extent, 1, (uint64_t)l->extents.extent[axis].value);
    add_bytes(&shape, 1, extent.bytes, extent.count);
  }
  add_number(&tensor, 1, data_type(type_from_name(l->type)));
  add_bytes(&tensor, 2, shape.bytes, shape.count);
  add_bytes(&type, 1, tensor.bytes, tensor.count);
  add_bytes(&info, 1, name, strlen(name));
  add_bytes(&info, 2, type.bytes, type.count);
  add_bytes(graph, 11, info.bytes, info.count);
}

// Operands that are inputs of the graph: others are constants.
typedef enum Inputs { NO_INPUTS, FIRST_INPUT, FLOAT_INPUTS } Inputs;

static void add_operands(Message *graph, Message *node, const char *text, Inputs inputs) {
  static const char *const names[] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8", "i9"};
  for (size_t i = 0; *text; i++) {
    Literal l;
    if (*text == '-' && text[1] != '0') {
      add_bytes(node, 1, "", 0);
      text += 1 + strspn(text + 1, "; ");
    } else {
      assert_true(next_literal(&text, &l));
      const bool is_input = inputs == FLOAT_INPUTS ? type_is_float(type_from_name(l.type)) : i == 0 && inputs;
      (is_input ? add_input : add_initializer)(graph, &l, names[i]);
      add_bytes(node, 1, names[i], 2);
    }
  }
}

static Message model_of(const Row *row, size_t noutputs, Inputs inputs) {
  static const char *const names[MOST_IN_CASE] = {"o0", "o1", "o2", "o3", "o4", "o5", "o6", "o7"};
  Message graph = {.count = 0}, node = {.count = 0}, model = {.count = 0}, opset = {.count = 0};
  add_operands(&graph, &node, row->inputs, inputs);
  for (size_t i = 0; i < noutputs; i++) add_bytes(&node, 2, names[i], 2);
  add_bytes(&node, 4, row->op, strlen(row->op));
  add_attributes(&node, row->attributes);
  add_bytes(&graph, 1, node.bytes, node.count);
  for (size_t i = 0; i < noutputs; i++) {
    Message output = {.count = 0};
    add_bytes(&output, 1, names[i], 2);
    add_bytes(&graph, 12, output.bytes, output.count);
  }
  add_number(&opset, 2, (uint64_t)row->opset);
  add_bytes(&model, 8, opset.bytes, opset.count);
  add_bytes(&model, 7, graph.bytes, graph.count);
  return model;
}

static bool is_number(const Literal *l, size_t i, Type type, const void *data) {
  if (TYPES_64_BITS & TYPE_BIT(type)) return ((const int64_t *)data)[i] == l->integers[i];
  const double expected = type_round(type, l->numbers[i]), found = type_load(type, data, i);
  if (isnan(expected)) return isnan(found);
  const bool is_near = found == expected || fabs(found - expected) <= 1e-6 * fabs(expected);
  return is_near && signbit(found) == signbit(expected);
}

static bool is_result(const Graph *g, size_t slot, const Literal *l, const Tensor *found) {
  const Value *v = g->outputs[slot];
  bool ok = strcmp(type_name(v->type), l->type) == 0 && shape_equals(&v->shape, &l->extents);
  if (!ok) print_error("output %zu is %s[%d axes]\n", slot, type_name(v->type), v->shape.rank);
  for (size_t i = 0; ok && i < l->count; i++) {
    ok = is_number(l, i, v->type, found->data);
    if (!ok) print_error("output %zu, element %zu: %.17g\n", slot, i, type_load(v->type, found->data, i));
  }
  return ok;
}

static bool computes(const Row *row) {
  Literal expected[MOST_IN_CASE];
  Tensor results[MOST_IN_CASE] = {{0}};
  const size_t count = read_literals(row->outputs, expected);
  const Message model = model_of(row, count, NO_INPUTS);
  Diagnostics d;
  Text text;
  diagnostics_init(&d, &system_allocator);
  text_init(&text, &system_allocator);
  Graph *g =
      onnx_read(&system_allocator, "test.onnx", (Bytes){model.bytes, model.count}, &(ReadSettings){.folder = NULL}, &d);
  bool ok = g != NULL;
  for (size_t i = 0; ok && i < count; i++) {
    const Shape *s = &g->outputs[i]->shape;
    results[i] = (Tensor){.type = g->outputs[i]->type, .rank = s->rank};
    for (int axis = 0; axis < s->rank; axis++) results[i].extent[axis] = s->extent[axis].value;
    ok = tensor_alloc(&results[i], &system_allocator);
  }
  ok = ok && interpret(g, NULL, results, &(InterpreterOptions){.allocator = &system_allocator}, &d);
  for (size_t i = 0; ok && i < count; i++) ok = is_result(g, i, &expected[i], &results[i]);
  for (size_t i = 0; i < count; i++) tensor_free(&results[i], &system_allocator);
  diagnostics_print(&d, &text, false);
  if (!ok) print_error("%s of %s\n%s", row->op, row->inputs, text_string(&text));
  graph_free(g);
  text_deinit(&text);
  diagnostics_deinit(&d);
  return ok;
}

static ng_tensor tensor_of(ng_context *ctx, ng_tensor_info info, const Literal *l) {
  ng_tensor t;
  assert_int_equal(ng_tensor_new(ctx, &info, &t), NG_OK);
  for (size_t i = 0; l && i < l->count; i++)
    if (t.type == NG_S64 || t.type == NG_U64) ((int64_t *)t.data)[i] = l->integers[i];
    else type_store((Type)t.type, t.data, i, l->numbers[i]);
  return t;
}

// Compiled code rounds to the types of values, which the interpreter does not.
static bool computes_compiled(const Row *row, const char *isa) {
  Literal expected[MOST_IN_CASE], first;
  const char *inputs = row->inputs;
  const size_t count = read_literals(row->outputs, expected);
  const Message model = model_of(row, count, FIRST_INPUT);
  ng_tensor results[MOST_IN_CASE];
  assert_true(next_literal(&inputs, &first));
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "test.onnx", (const char *)model.bytes, model.count, NULL);
  ng_kernel *k = g ? ng_compile(g, &(ng_options){.isa = isa}) : NULL;
  if (!k) fail_msg("%s of %s: %s", row->op, row->inputs, ng_messages_text(ctx, 0));
  ng_tensor input = tensor_of(ctx, ng_graph_input(g, 0), &first);
  for (size_t i = 0; i < count; i++) results[i] = tensor_of(ctx, ng_graph_output(g, i), NULL);
  bool ok = ng_kernel_run(k, &input, results, 1) == NG_OK;
  for (size_t slot = 0; slot < count; slot++)
    for (size_t i = 0; ok && i < expected[slot].count; i++) {
      ok = is_number(&expected[slot], i, (Type)results[slot].type, results[slot].data);
      if (!ok)
        print_error("%s of %s, compiled: output %zu, element %zu: %.17g\n", row->op, row->inputs, slot, i,
                    ng_tensor_get(&results[slot], (int64_t)i));
    }
  for (size_t i = 0; i < count; i++) ng_tensor_free(ctx, &results[i]);
  ng_tensor_free(ctx, &input);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
  return ok;
}

static void compiled_code_gives_the_numbers_too(void **state) {
  (void)state;
  static const char *const isas[] = {NULL, "scalar"};
  size_t nwrong = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t k = 0; k < 2 && rows[i].is_compiled; k++) nwrong += !computes_compiled(&rows[i], isas[k]);
  assert_int_equal(nwrong, 0);
}

// Long axes are sorted, and many updates combined, in other ways than by pairs. The numbers are 0 to 7 or NaN, so that
// many are equal. `largest`: -1 of updates.
typedef struct Long {
  const char *type;
  int64_t n;
  int largest;
  const char *reduction;
  bool is_compiled;
} Long;

static double long_number(int64_t i, bool has_nan) {
  const uint32_t hash = (uint32_t)i * 0x9E3779B9U ^ (uint32_t)i >> 3;
  return has_nan && hash % 11 == 0 ? (double)NAN : (double)(hash >> 20 & 7);
}

// Whether element a comes before b.
static bool is_before(double a, double b, int64_t at_a, int64_t at_b, bool is_largest) {
  const bool is_greater = isnan(a) ? !isnan(b) : a > b, is_less = isnan(b) ? !isnan(a) : a < b;
  return (is_largest ? is_greater : is_less) || (!is_greater && !is_less && at_a < at_b);
}

static void add_long_number(Text *text, double number) {
  if (isnan(number)) text_add_string(text, " nan");
  else text_format(text, " %g", number);
}

static bool sorts(const Long *l) {
  const bool has_nan = *l->type == 'f', is_largest = l->largest;
  Text inputs, values, places;
  text_init(&inputs, &system_allocator);
  text_init(&values, &system_allocator);
  text_init(&places, &system_allocator);
  text_format(&inputs, "%s[%d]", l->type, (int)l->n);
  text_format(&values, "%s[%d]", l->type, (int)l->n - 1);
  text_format(&places, "; s64[%d]", (int)l->n - 1);
  for (int64_t i = 0; i < l->n; i++) add_long_number(&inputs, long_number(i, has_nan));
  text_format(&inputs, "; s64[1] %d", (int)l->n - 1);
  int64_t order[1030]; // the element of each rank
  assert_true(l->n <= 1030);
  for (int64_t i = 0; i < l->n; i++) {
    int64_t nbefore = 0;
    for (int64_t k = 0; k < l->n; k++)
      nbefore += is_before(long_number(k, has_nan), long_number(i, has_nan), k, i, is_largest);
    order[nbefore] = i;
  }
  for (int64_t rank = 0; rank < l->n - 1; rank++) {
    add_long_number(&values, long_number(order[rank], has_nan));
    text_format(&places, " %d", (int)order[rank]);
  }
  text_add_string(&values, text_string(&places));
  const Row row = {"TopK", 11, is_largest ? "" : "largest:i=0", text_string(&inputs), text_string(&values), false};
  const bool ok = computes(&row) && (!l->is_compiled || computes_compiled(&row, NULL));
  text_deinit(&inputs);
  text_deinit(&values);
  text_deinit(&places);
  return ok;
}

// Updates i of rows i * i % n, of [n, 2].
static bool combines(const Long *l) {
  const bool has_nan = *l->type == 'f';
  double results[2 * 300];
  Text inputs, result;
  text_init(&inputs, &system_allocator);
  text_init(&result, &system_allocator);
  text_format(&inputs, "%s[%d,2]", l->type, (int)l->n);
  text_format(&result, "%s[%d,2]", l->type, (int)l->n);
  assert_true(l->n <= 300);
  for (int64_t i = 0; i < 2 * l->n; i++) add_long_number(&inputs, results[i] = long_number(i + 7, has_nan));
  text_format(&inputs, "; s64[%d,1]", (int)l->n);
  for (int64_t i = 0; i < l->n; i++) text_format(&inputs, " %d", (int)(i * i % l->n));
  text_format(&inputs, "; %s[%d,2]", l->type, (int)l->n);
  for (int64_t i = 0; i < 2 * l->n; i++) {
    double *row = &results[2 * (i / 2 * (i / 2) % l->n) + i % 2];
    const double update = long_number(i, has_nan);
    add_long_number(&inputs, update);
    if (strcmp(l->reduction, "mul") == 0) *row *= update;
    else if (isnan(update) || (strcmp(l->reduction, "max") == 0 ? update > *row : update < *row)) *row = update;
  }
  for (int64_t i = 0; i < 2 * l->n; i++) add_long_number(&result, results[i]);
  char attribute[32];
  snprintf(attribute, sizeof attribute, "reduction:s=%s", l->reduction);
  const Row row = {"ScatterND", 18, attribute, text_string(&inputs), text_string(&result), false};
  const bool ok = computes(&row) && (!l->is_compiled || computes_compiled(&row, NULL));
  text_deinit(&inputs);
  text_deinit(&result);
  return ok;
}

static void long_axes_are_sorted(void **state) {
  static const Long cases[] = {{"f32", 1030, 1, NULL, true},   {"f16", 1030, 0, NULL, false},
                               {"s64", 1030, 0, NULL, false},  {"u64", 1030, 1, NULL, false},
                               {"f32", 260, -1, "max", true},  {"f32", 260, -1, "min", false},
                               {"s64", 260, -1, "max", false}, {"f32", 260, -1, "mul", false}};
  (void)state;
  size_t nwrong = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    nwrong += !(cases[i].largest < 0 ? combines : sorts)(&cases[i]);
  assert_int_equal(nwrong, 0);
}

static void operators_give_the_numbers_of_their_rows(void **state) {
  (void)state;
  size_t nwrong = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) nwrong += !computes(&rows[i]);
  assert_int_equal(nwrong, 0);
}

// Reads the reduction in one way of giving no axes.
static bool reduces(const struct Reduction *r, bool is_old, const char *attributes, const char *inputs,
                    const char *shape, const char *numbers) {
  char outputs[128];
  snprintf(outputs, sizeof outputs, "%s %s", shape, numbers);
  return computes(&(Row){r->op, is_old ? r->opset - 2 : r->opset, attributes, inputs, outputs});
}

static void reductions_without_axes_are_over_all_or_none(void **state) {
  static const char x[] = "f32[2,2] -3 0.5 2 -1", x_and_axes[] = "f32[2,2] -3 0.5 2 -1; s64[0]";
  static const char none[] = "noop_with_empty_axes:i=1", flat[] = "keepdims:i=0";
  (void)state;
  size_t nwrong = 0;
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
    const struct Reduction *r = &reductions[i];
    nwrong += !reduces(r, true, flat, x, "f32[]", r->of_all);
    nwrong += !reduces(r, true, "axes:l=[] keepdims:i=0", x, "f32[]", r->of_all);
    nwrong += !reduces(r, false, flat, x, "f32[]", r->of_all);
    nwrong += !reduces(r, false, "", x_and_axes, "f32[1,1]", r->of_all);
    nwrong += !reduces(r, false, none, x, "f32[2,2]", r->of_each);
    nwrong += !reduces(r, false, "noop_with_empty_axes:i=1 keepdims:i=0", x_and_axes, "f32[2,2]", r->of_each);
    nwrong += !reduces(r, false, "", "f32[] -3", "f32[]", r->of_scalar);
    nwrong += !reduces(r, false, none, "f32[] -3", "f32[]", r->of_scalar);
  }
  assert_int_equal(nwrong, 0);
}

// Operators that others compute, with a gradient by each operand of floating-point numbers; 0: in steps, which a
// warning tells.
static const struct {
  Row row;
  bool is_zero;
} differentiable[] = {
    {{"ScatterND", 11, "", "f32[5,3] any; s64[3,1] 1 -1 2; f32[3,3] any", ""}, false},
    {{"ScatterND", 16, "reduction:s=add", "f32[4,2] any; s64[3,2] 1 0 -1 1 1 0; f32[3] any", ""}, false},
    {{"ScatterND", 16, "", "f64[2,3,2] any; s64[2,2,2] 0 0 1 2 1 -2 0 2; f64[2,2,2] any", ""}, false},
    {{"ScatterElements", 16, "axis:i=1", "f32[2,4] any; s64[2,2] 1 -1 0 2; f32[2,2] any", ""}, false},
    {{"ScatterElements", 16, "reduction:s=add", "f32[3,2] any; s64[2,2] 1 1 1 0; f32[2,2] any", ""}, false},
    {{"GatherND", 13, "", "f32[3,2] any; s64[2,2] 1 0 -1 1", ""}, false},
    {{"GatherElements", 13, "axis:i=1", "f32[2,3] any; s64[2,2] 1 1 0 -1", ""}, false},
    {{"LpNormalization", 13, "", "f32[3,4] any", ""}, false},
    {{"Attention", 23, "", "f32[1,1,2,2] any; f32[1,1,3,2] any; f32[1,1,3,2] any; boolean[2,3] 0 0 0 1 0 1", ""},
     false},
    {{"LpNormalization", 13, "p:i=1", "f32[3,4] any", ""}, false},
    {{"NegativeLogLikelihoodLoss", 13, "ignore_index:i=1", "f32[4,3] any; s64[4] 2 1 0 0; f32[3] any", ""}, false},
    {{"SoftmaxCrossEntropyLoss", 13, "ignore_index:i=1", "f32[4,3] any; s64[4] 2 1 0 0; f32[3] any", ""}, false},
    {{"Round", 11, "", "f32[3,4] any", ""}, true},
    {{"Floor", 13, "", "f32[3,4] any", ""}, true},
    {{"Ceil", 13, "", "f32[3,4] any", ""}, true},
    {{"Sign", 13, "", "f32[3,4] any", ""}, true},
};

static bool has_gradient(const Row *row, bool is_zero) {
  const Message model = model_of(row, 1, FLOAT_INPUTS);
  ng_gradcheck_result results[MOST_IN_CASE] = {{0}};
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "test.onnx", (const char *)model.bytes, model.count, NULL);
  bool ok = g && ng_gradcheck(g, NULL, results) == NG_OK;
  ok = ok && (strstr(ng_messages_text(ctx, 0), "its gradient is 0") != NULL) == is_zero;
  for (size_t i = 0; ok && i < ng_graph_input_count(g); i++)
    ok = results[i].nchecked > 0 && (!is_zero || results[i].gradient == 0);
  if (!ok) print_error("%s {%s}\n%s", row->op, row->attributes, ng_messages_text(ctx, 0));
  ng_graph_free(g);
  ng_context_free(ctx);
  return ok;
}

static void gradients_of_operators_are_those_of_differences(void **state) {
  (void)state;
  size_t nwrong = 0;
  for (size_t i = 0; i < sizeof differentiable / sizeof *differentiable; i++)
    nwrong += !has_gradient(&differentiable[i].row, differentiable[i].is_zero);
  assert_int_equal(nwrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(operators_give_the_numbers_of_their_rows),
                                     cmocka_unit_test(reductions_without_axes_are_over_all_or_none),
                                     cmocka_unit_test(compiled_code_gives_the_numbers_too),
                                     cmocka_unit_test(long_axes_are_sorted),
                                     cmocka_unit_test(gradients_of_operators_are_those_of_differences)};
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
