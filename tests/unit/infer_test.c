// Inference: for each operator what follows from what, in both directions, and which contradictions are told how;
// then whole graphs, and what inference costs.
//
// A row of the table is one node: its operands, and what they are after inference, or the message. An operand is a
// type and a shape, each ? when unknown, as f32[N,_,3] or ??; ~ is an absent one; > stands before the outputs.
#include "ir/infer.h"
#include "tests/unit/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Row {
  const char *op;
  const char *attributes; // "epsilon=1 data_format=NCX"
  const char *before, *after;
} Row;

// What of these all is one shape and one type.
#define UNARY_ROWS(op)                                                                                                 \
  {op, "", "f32[4,_] > ?[_,8]", "f32[4,8] > f32[4,8]"},                                                                \
      {op, "", "f32[4] > ?[5]", op ": axis 0 of src [4] and axis 0 of dst [5]: expected the same extent"}, {           \
    op, "", "s32[4] > ??", op ": src: expected type f64, f32, f16 or bf16, found s32"                                  \
  }
#define UNARY_BACKWARD_ROWS(op)                                                                                        \
  {op, "", "f32? ?[4,_] > ?[_,8]", "f32[4,8] f32[4,8] > f32[4,8]"},                                                    \
      {op, "", "f32[4] f32[1] > ??", op ": axis 0 of src [4] and axis 0 of diff_dst [1]: expected the same extent"}, { \
    op, "", "f32[4] bf16[4] > ??", op ": src is f32 and diff_dst is bf16: expected one type"                           \
  }
// What of these broadcasts two operands of one type.
#define BINARY_ROWS(op)                                                                                                \
  {op, "", "bf16[4,1] ?[1,8] > ??", "bf16[4,1] bf16[1,8] > bf16[4,8]"},                                                \
      {op, "", "f32[4] f32[3] > ??",                                                                                   \
       op ": src_0 [4] and src_1 [3] do not broadcast: extents 4 and 3 on axis 1 from the right"},                     \
      {op, "", "f32[4] f16[4] > ??", op ": src_0 is f32 and src_1 is f16: expected one type"}, {                       \
    op, "auto_broadcast=none", "f32[1] f32[8] > ??",                                                                   \
        op ": axis 0 of src_0 [1] and axis 0 of src_1 [8]: expected the same extent"                                   \
  }

static const Row rows[] = {
    {"ReLU", "", "f32[4,_] > ?[_,8]", "f32[4,8] > f32[4,8]"},
    {"ReLU", "", "f32? > ?[3,N]", "f32[3,N] > f32[3,N]"},
    {"ReLU", "", "bf16[] > ??", "bf16[] > bf16[]"},
    {"ReLU", "", "f64[0,1] > ??", "f64[0,1] > f64[0,1]"},
    {"ReLU", "", "f16? > ??", "f16? > f16?"},
    {"ReLU", "", "?[2] > f16[_]", "f16[2] > f16[2]"},
    {"ReLU", "", "f32[_,_] > ??", "f32[_,_] > f32[_,_]"},
    {"ReLU", "", "f32[4,8] > ?[4,9]", "ReLU: axis 1 of src [4, 8] and axis 1 of dst [4, 9]: expected the same extent"},
    {"ReLU", "", "f32[4] > ?[4,1]", "ReLU: src [4] and dst [4, 1]: expected the same shape"},
    {"ReLU", "", "f32[N] > ?[4]", "ReLU: axis 0 of src [N] and axis 0 of dst [4]: expected the same extent"},
    {"ReLU", "", "f32[N] > ?[M]", "ReLU: axis 0 of src [N] and axis 0 of dst [M]: expected the same extent"},
    {"ReLU", "", "f32[0] > ?[1]", "ReLU: axis 0 of src [0] and axis 0 of dst [1]: expected the same extent"},
    {"ReLU", "", "s32[4] > ??", "ReLU: src: expected type f64, f32, f16 or bf16, found s32"},
    {"ReLU", "", "f32[4] > f16?", "ReLU: src is f32 and dst is f16: expected one type"},

    {"ReLUBackward", "", "f32? ?[4,_] > ?[_,8]", "f32[4,8] f32[4,8] > f32[4,8]"},
    {"ReLUBackward", "", "f32? ?? > ?[5]", "f32[5] f32[5] > f32[5]"},
    {"ReLUBackward", "", "f32[4] f32[1] > ??",
     "ReLUBackward: axis 0 of src [4] and axis 0 of diff_dst [1]: expected the same extent"},
    {"ReLUBackward", "", "f32[4] bf16[4] > ??", "ReLUBackward: src is f32 and diff_dst is bf16: expected one type"},

    // clang-format off
    UNARY_ROWS("Abs"), UNARY_ROWS("Clamp"), UNARY_ROWS("Elu"), UNARY_ROWS("Exp"), UNARY_ROWS("GELU"), UNARY_ROWS("HardSigmoid"),
    UNARY_ROWS("HardSwish"), UNARY_ROWS("LeakyReLU"), UNARY_ROWS("Log"), UNARY_ROWS("Mish"), UNARY_ROWS("Pow"), UNARY_ROWS("Reciprocal"),
    UNARY_ROWS("Round"), UNARY_ROWS("Sigmoid"), UNARY_ROWS("SoftPlus"), UNARY_ROWS("Sqrt"), UNARY_ROWS("Square"), UNARY_ROWS("Tanh"),
    UNARY_BACKWARD_ROWS("AbsBackward"), UNARY_BACKWARD_ROWS("ClampBackward"), UNARY_BACKWARD_ROWS("EluBackward"),
    UNARY_BACKWARD_ROWS("GELUBackward"), UNARY_BACKWARD_ROWS("HardSigmoidBackward"), UNARY_BACKWARD_ROWS("HardSwishBackward"),
    UNARY_BACKWARD_ROWS("MishBackward"), UNARY_BACKWARD_ROWS("SigmoidBackward"), UNARY_BACKWARD_ROWS("SoftPlusBackward"),
    UNARY_BACKWARD_ROWS("SqrtBackward"), UNARY_BACKWARD_ROWS("TanhBackward"),
    BINARY_ROWS("Maximum"), BINARY_ROWS("Minimum"), BINARY_ROWS("SquaredDifference"),
    // clang-format on

    {"TypeCast", "", "f32[4,_] > bf16[_,2]", "f32[4,2] > bf16[4,2]"},
    {"TypeCast", "", "f16? > f32[N]", "f16[N] > f32[N]"},
    {"TypeCast", "", "f64[] > f32?", "f64[] > f32[]"},
    {"TypeCast", "", "f32[4] > ??", "TypeCast: dst: expected a declared type, as in {name: dst, type: bf16}"},
    {"TypeCast", "", "f32[4] > f32?", "TypeCast: src and dst are both f32: expected different types"},
    {"TypeCast", "", "f16[4] > bf16?", "TypeCast: src is f16 and dst is bf16: expected one of them to be f32"},
    {"TypeCast", "", "f32[4] > s8?", "TypeCast: dst: expected type f64, f32, f16 or bf16, found s8"},
    {"TypeCast", "", "f32[4] > f16[5]", "TypeCast: axis 0 of src [4] and axis 0 of dst [5]: expected the same extent"},

    // Broadcasting, as numpy does it.
    {"Add", "", "f32[4,8] f32[4,8] > ??", "f32[4,8] f32[4,8] > f32[4,8]"},
    {"Add", "", "f32[4,1] f32[1,8] > ??", "f32[4,1] f32[1,8] > f32[4,8]"},
    {"Add", "", "f32[8] f32[4,8] > ??", "f32[8] f32[4,8] > f32[4,8]"},
    {"Add", "", "f32[] f32[4,8] > ??", "f32[] f32[4,8] > f32[4,8]"},
    {"Add", "", "f32[] f32[] > ??", "f32[] f32[] > f32[]"},
    {"Add", "", "f32[0] f32[1] > ??", "f32[0] f32[1] > f32[0]"},
    {"Add", "", "f32[1,1] f32[0] > ??", "f32[1,1] f32[0] > f32[1,0]"},
    {"Add", "", "f32[3,1] f32[0] > ??", "f32[3,1] f32[0] > f32[3,0]"},
    {"Add", "", "f32[N,1] f32[1,M] > ??", "f32[N,1] f32[1,M] > f32[N,M]"},
    {"Add", "", "f32[2,1,3,1,5] f32[4,1,1] > ??",
     "Add: src_0 [2, 1, 3, 1, 5] and src_1 [4, 1, 1] do not broadcast: extents 3 and 4 on axis 3 from the right"},
    {"Subtract", "", "f32[2,1,3,1,5] f32[4,1,4,1] > ??", "f32[2,1,3,1,5] f32[4,1,4,1] > f32[2,4,3,4,5]"},
    {"Multiply", "", "bf16[1,1] bf16[1] > ??", "bf16[1,1] bf16[1] > bf16[1,1]"},
    // What is unknown may be 1 or the result's.
    {"Add", "", "f32[_] f32[8] > ??", "f32[_] f32[8] > f32[8]"},
    {"Add", "", "f32[_] f32[1] > ??", "f32[_] f32[1] > f32[_]"},
    {"Add", "", "f32[_] f32[1] > ?[8]", "f32[8] f32[1] > f32[8]"},
    {"Add", "", "f32[_] f32[] > ?[0]", "f32[0] f32[] > f32[0]"},
    {"Add", "", "f32[_] f32[_] > ?[8]", "f32[_] f32[_] > f32[8]"},
    {"Add", "", "f32[_,_] f32[8] > ?[N,_]", "f32[N,_] f32[8] > f32[N,8]"},
    {"Add", "", "f32? f32[8] > ?[N,_]", "f32[N,_] f32[8] > f32[N,8]"},
    {"Multiply", "", "f32[8] f32? > ?[N,_]", "f32[8] f32[N,_] > f32[N,8]"},
    {"Add", "", "f32? f32[8] > ?[_]", "f32? f32[8] > f32[_]"},
    {"Add", "", "f32? f32? > ?[3]", "f32? f32? > f32[3]"},
    {"Add", "", "f32? f32[8] > ??", "f32? f32[8] > f32?"},
    {"Add", "", "f32[4] f32[3] > ??",
     "Add: src_0 [4] and src_1 [3] do not broadcast: extents 4 and 3 on axis 1 from the right"},
    {"Add", "", "f32[0,2] f32[2,2] > ??",
     "Add: src_0 [0, 2] and src_1 [2, 2] do not broadcast: extents 0 and 2 on axis 2 from the right"},
    {"Subtract", "", "f32[N] f32[M] > ??",
     "Subtract: src_0 [N] and src_1 [M] do not broadcast: extents N and M on axis 1 from the right"},
    {"Multiply", "", "f32[N] f32[4] > ??",
     "Multiply: src_0 [N] and src_1 [4] do not broadcast: extents N and 4 on axis 1 from the right"},
    {"Add", "", "f32[4,8] f32[8] > ?[8]", "Add: dst [8]: expected rank 2 beside src_0 [4, 8]"},
    {"Add", "", "f32[8] f32[8] > ?[1,8]", "Add: dst [1, 8]: expected rank 1 beside src_0 [8]"},
    {"Add", "", "f32[4] f32[1] > ?[5]", "Add: axis 0 of dst [5] and axis 0 of src_0 [4]: expected the same extent"},
    {"Add", "", "f32[1] f32[1] > ?[5]", "Add: axis 0 of dst [5] and axis 0 of src_1 [1]: expected the same extent"},
    {"Add", "auto_broadcast=none", "f32[_] f32[8] > ??", "f32[8] f32[8] > f32[8]"},
    {"Add", "auto_broadcast=none", "f32[1] f32[8] > ??",
     "Add: axis 0 of src_0 [1] and axis 0 of src_1 [8]: expected the same extent"},
    // Types of arithmetic.
    {"Add", "", "s32[2] s32[2] > ??", "s32[2] s32[2] > s32[2]"},
    {"Add", "", "f32[2] bf16[2] > ??", "f32[2] bf16[2] > f32[2]"},
    {"Subtract", "", "f16[2] f32[2] > ??", "f16[2] f32[2] > f32[2]"},
    {"Multiply", "", "f16[2] f16[2] > ??", "f16[2] f16[2] > f16[2]"},
    {"Multiply", "", "s32[2] s32[2] > ??", "Multiply: src_0: expected type f64, f32, f16 or bf16, found s32"},
    {"Add", "", "f16[2] bf16[2] > ??",
     "Add: src_0 is f16 and src_1 is bf16: expected one type, or f32 with f16 or bf16"},
    {"Add", "", "f64[2] f32[2] > ??", "Add: src_0 is f64 and src_1 is f32: expected one type, or f32 with f16 or bf16"},
    {"Add", "", "f16[2] f32[2] > f16?", "Add: dst: expected type f32, found f16"},
    {"Divide", "", "f32[2,1] f16[3] > ??", "f32[2,1] f16[3] > f32[2,3]"},
    {"Divide", "", "s32[2] s32[2] > ??", "Divide: src_0: expected type f64, f32, f16 or bf16, found s32"},

    // What compares gives booleans, and what chooses takes one.
    {"GreaterEqual", "", "f32[4,1] ?[8] > ??", "f32[4,1] f32[8] > boolean[4,8]"},
    {"GreaterEqual", "", "s32[4] s32[] > ??", "s32[4] s32[] > boolean[4]"},
    {"GreaterEqual", "", "f32[4] f16[4] > ??", "GreaterEqual: src_0 is f32 and src_1 is f16: expected one type"},
    {"GreaterEqual", "", "f32[4] f32[4] > u8?", "GreaterEqual: dst: expected type boolean, found u8"},
    {"Select", "", "?[3,1] f32[1,5] ?[3,1] > ??", "boolean[3,1] f32[1,5] f32[3,1] > f32[3,5]"},
    {"Select", "", "?[] f16[] ?[2,3] > ??", "boolean[] f16[] f16[2,3] > f16[2,3]"},
    {"Select", "", "?[1,_] f32? f32[4] > ?[2,_]", "boolean[1,_] f32[2,_] f32[4] > f32[2,4]"},
    {"Select", "", "?[_,3] f32[1,5] ?[1,5] > ??",
     "Select: axis 1 of cond [1, 3] and axis 1 of dst [1, 5]: expected the same extent"},
    {"Select", "", "?[_,5] f32[1,5] ?[1,5] > ??", "boolean[1,5] f32[1,5] f32[1,5] > f32[1,5]"},
    {"Select", "", "?[0] f32[1] ?[1] > ??",
     "Select: axis 0 of cond [0] and axis 0 of dst [1]: expected the same extent"},
    {"Select", "", "?[2,3] f32[3] ?[3] > ??",
     "Select: cond [2, 3] does not broadcast to dst [3]: expected rank 1 or less"},
    {"Select", "", "?[3] f32[3] f32[2] > ??",
     "Select: src_0 [3] and src_1 [2] do not broadcast: extents 3 and 2 on axis 1 from the right"},
    {"Select", "auto_broadcast=none", "?[_] f32[3] ?? > ??", "boolean[3] f32[3] f32[3] > f32[3]"},
    {"Select", "auto_broadcast=none", "?[1] f32[3] ?? > ??",
     "Select: axis 0 of cond [1] and axis 0 of src_0 [3]: expected the same extent"},
    {"Select", "", "f32[3] f32[3] ?? > ??", "Select: cond: expected type boolean, found f32"},
    {"Select", "", "?[3] f32[3] f16? > ??", "Select: src_0 is f32 and src_1 is f16: expected one type"},

    // A bias lies along the channels; so does a slope of one axis, any other is broadcast.
    {"BiasAdd", "", "f32[2,_,3] f32[_] > ?[_,5,_]", "f32[2,5,3] f32[3] > f32[2,5,3]"},
    {"BiasAdd", "data_format=NCX", "f16[2,_,3] f16[5] > ??", "f16[2,5,3] f16[5] > f16[2,5,3]"},
    {"BiasAdd", "", "f32? f32? > ??", "f32? f32[_] > f32?"},
    {"BiasAdd", "", "f32[3] f32[3] > ??", "BiasAdd: src: expected rank 2 or more, found rank 1, [3]"},
    {"BiasAdd", "", "f32[2,3] f32[1,3] > ??", "BiasAdd: bias: expected rank 1, found rank 2, [1, 3]"},
    {"BiasAdd", "data_format=NCX", "f32[2,5,3] f32[3] > ??",
     "BiasAdd: axis 0 of bias [3] and axis 1 of src [2, 5, 3]: expected the same extent"},
    {"BiasAdd", "", "f32[2,3] bf16[3] > ??", "BiasAdd: src is f32 and bias is bf16: expected one type"},
    {"BiasAddBackward", "data_format=NCX", "f32[2,_,3] > ?[5]", "f32[2,5,3] > f32[5]"},
    {"BiasAddBackward", "", "bf16[2,N] > ??", "bf16[2,N] > bf16[N]"},
    {"BiasAddBackward", "", "f32[3] > ??", "BiasAddBackward: diff_dst: expected rank 2 or more, found rank 1, [3]"},
    {"BiasAddBackward", "", "f32[2,3] > ?[2]",
     "BiasAddBackward: axis 0 of diff_bias [2] and axis 1 of diff_dst [2, 3]: expected the same extent"},
    {"PReLU", "", "f32[2,_,3] f32[_] > ?[_,5,_]", "f32[2,5,3] f32[3] > f32[2,5,3]"},
    {"PReLU", "data_format=NCX", "f32[2,_,3] f32[5] > ??", "f32[2,5,3] f32[5] > f32[2,5,3]"},
    {"PReLU", "data_format=NCX per_channel_broadcast=false", "f32[2,5,3] f32[3] > ??",
     "f32[2,5,3] f32[3] > f32[2,5,3]"},
    {"PReLU", "per_channel_broadcast=false", "f32[2,5] f32[1] > ??", "f32[2,5] f32[1] > f32[2,5]"},
    {"PReLU", "data_format=NCX", "f32[5] f32[1] > ??", "f32[5] f32[1] > f32[5]"},
    {"PReLU", "", "f32[2,_,3] f32[4,1] > ??", "f32[2,4,3] f32[4,1] > f32[2,4,3]"},
    {"PReLU", "", "f32? f32[4,1] > ?[2,_]",
     "PReLU: axis 0 of slope [4, 1] and axis 0 of src [2, _]: expected the same extent"},
    {"PReLU", "", "f32[2,5] f32[1] > ??",
     "PReLU: axis 0 of slope [1] and axis 1 of src [2, 5]: expected the same extent"},
    {"PReLU", "", "f32[2,5] f32[] > ??", "PReLU: slope: expected rank 1 or more, found rank 0, []"},
    {"PReLU", "", "f32[5] f32[1,5] > ??", "PReLU: slope [1, 5] does not broadcast to src [5]: expected rank 1 or less"},
    {"PReLUBackward", "data_format=NCX", "f32[2,_,3] f32[5] ?? > ?? ??",
     "f32[2,5,3] f32[5] f32[2,5,3] > f32[2,5,3] f32[5]"},
    {"PReLUBackward", "", "f32[2,3] f32[1] ?? > ?? ??", "f32[2,3] f32[1] f32[2,3] > f32[2,3] f32[1]"},
    {"PReLUBackward", "", "f16[2,3] f16? ?? > ?? ?[2,1]", "f16[2,3] f16[2,1] f16[2,3] > f16[2,3] f16[2,1]"},
    {"PReLUBackward", "", "f32[2,3] f32[_] ?? > ?? ??", "f32[2,3] f32[_] f32[2,3] > f32[2,3] f32[_]"},
    {"PReLUBackward", "", "f32[2,3] f32[2] ?? > ?? ??",
     "PReLUBackward: axis 0 of slope [2] and axis 1 of src [2, 3]: expected the same extent"},
    {"PReLUBackward", "", "f32[2,3] f32[3] f32[3] > ?? ??",
     "PReLUBackward: src [2, 3] and diff_dst [3]: expected the same shape"},
    {"PReLUBackward", "", "f32[2,3] f32[3] ?? > ?? ?[1,3]",
     "PReLUBackward: slope [3] and diff_slope [1, 3]: expected the same shape"},

    // Reductions: what is not reduced is the result's too.
    {"ReduceSum", "", "f32[_,3] > ?[2,_]", "f32[2,3] > f32[2,3]"}, // no axes
    {"ReduceSum", "axes=1", "f32[2,N,4] > ??", "f32[2,N,4] > f32[2,4]"},
    {"ReduceSum", "axes=-1,0", "bf16[2,3,4] > ??", "bf16[2,3,4] > bf16[3]"},
    {"ReduceSum", "axes=2,0 keep_dims=true", "f16[2,3,4] > ??", "f16[2,3,4] > f16[1,3,1]"},
    {"ReduceSum", "axes=0,1", "f64[0,3] > ??", "f64[0,3] > f64[]"},
    {"ReduceSum", "axes=0 keep_dims=true", "f32[0,0] > ??", "f32[0,0] > f32[1,0]"},
    {"ReduceSum", "", "f32[] > ??", "f32[] > f32[]"},
    {"ReduceSum", "axes=0", "f32? > ?[3,_]", "f32[_,3,_] > f32[3,_]"},
    {"ReduceSum", "axes=-1 keep_dims=true", "f32? > ?[3,_]", "f32[3,_] > f32[3,1]"},
    {"ReduceMean", "axes=1", "?? > f32[N]", "f32[N,_] > f32[N]"},
    {"ReduceMean", "axes=1,-1", "f32[2,3] > ??", "ReduceMean: axes: expected each axis once, found axis 1 twice"},
    {"ReduceSum", "axes=2", "f32[2,3] > ??", "ReduceSum: axes: expected -2 to 1 for rank 2, found 2"},
    {"ReduceSum", "axes=-3", "f32[2,3] > ??", "ReduceSum: axes: expected -2 to 1 for rank 2, found -3"},
    {"ReduceSum", "axes=-9223372036854775808", "f32[2] > ??",
     "ReduceSum: axes: expected -1 to 0 for rank 1, found -9223372036854775808"},
    {"ReduceSum", "axes=0", "f32[] > ??", "ReduceSum: axes: expected none for rank 0, found 0"},
    {"ReduceSum", "axes=0,1,2,3,4,5,6,7,8,9", "f32[2] > ??", "ReduceSum: axes: expected -1 to 0 for rank 1, found 1"},
    {"ReduceSum", "axes=0", "f32? > ?[1,1,1,1,1,1,1,1]", "ReduceSum: src: rank 9, expected at most 8"},
    {"ReduceSum", "axes=0", "f32[2,3] > ?[2]",
     "ReduceSum: axis 1 of src [2, 3] and axis 0 of dst [2]: expected the same extent"},
    {"ReduceSum", "axes=0", "f32[2,3] > ?[1,3]", "ReduceSum: dst [1, 3]: expected rank 1 beside src [2, 3]"},
    {"ReduceSum", "axes=0 keep_dims=true", "f32[2,3] > ?[2,3]",
     "ReduceSum: dst [2, 3]: expected extent 1 on axis 0, along which src [2, 3] is reduced"},
    {"ReduceSum", "", "s32[2] > ??", "ReduceSum: src: expected type f64, f32, f16 or bf16, found s32"},
    {"ReduceMean", "", "f32[2] > bf16?", "ReduceMean: src is f32 and dst is bf16: expected one type"},
    {"ReduceMax", "axes=1", "f16[2,3] > ??", "f16[2,3] > f16[2]"},
    {"ReduceMax", "axes=2", "f16[2,3] > ??", "ReduceMax: axes: expected -2 to 1 for rank 2, found 2"},
    {"ReduceMin", "axes=1", "bf16[2,3] > ??", "bf16[2,3] > bf16[2]"},
    {"ReduceMin", "axes=2", "bf16[2,3] > ??", "ReduceMin: axes: expected -2 to 1 for rank 2, found 2"},
    {"ReduceProd", "axes=-2", "f64[2,3] > ??", "f64[2,3] > f64[3]"},
    {"ReduceProd", "axes=2", "f64[2,3] > ??", "ReduceProd: axes: expected -2 to 1 for rank 2, found 2"},
    {"ReduceL1", "axes=0,1 keep_dims=true", "f32[2,3] > ??", "f32[2,3] > f32[1,1]"},
    {"ReduceL1", "axes=2", "f32[2,3] > ??", "ReduceL1: axes: expected -2 to 1 for rank 2, found 2"},
    {"ReduceL2", "axes=0", "f32[2,N] > ??", "f32[2,N] > f32[N]"},
    {"ReduceL2", "axes=2", "f32[2,3] > ??", "ReduceL2: axes: expected -2 to 1 for rank 2, found 2"},

    // Softmax: the data's shape, and of stats 1 on the axis.
    {"SoftMax", "", "f32[2,3] > ?[2,_] ??", "f32[2,3] > f32[2,3] f32[2,1]"},
    {"SoftMax", "axis=-1", "f32[_,4] > ?? ?[N,_]", "f32[N,4] > f32[N,4] f32[N,1]"},
    {"SoftMax", "axis=0", "bf16[2,3] > f32? ~", "bf16[2,3] > f32[2,3] ~"},
    {"SoftMax", "axis=0", "f32[2] > f16? ??", "f32[2] > f16[2] f32[1]"},
    {"SoftMax", "axis=0", "f64[0] > ?? ??", "f64[0] > f64[0] f64[1]"},
    {"SoftMax", "axis=0", "f64[2] > ?? f32?", "f64[2] > f64[2] f32[1]"},
    {"SoftMax", "", "f32? > ?? ?[2,_]", "f32[2,_] > f32[2,_] f32[2,1]"},
    {"SoftMax", "", "f32[2] > ?? ~", "SoftMax: axis: expected -1 to 0 for rank 1, found 1"},
    {"SoftMax", "axis=0", "f32[] > ?? ~", "SoftMax: axis: expected none for rank 0, found 0"},
    {"SoftMax", "", "bf16[2,3] > f16? ~", "SoftMax: src is bf16 and dst is f16: expected one type, or one of them f32"},
    {"SoftMax", "", "f32[2,3] > ?? f64?", "SoftMax: stats is f64 while src is f32: expected f32"},
    {"SoftMax", "", "f32[2,3] > ?? ?[2,3]",
     "SoftMax: stats [2, 3]: expected extent 1 on axis 1, the axis of src [2, 3] that is summed"},
    {"SoftMax", "", "f32[2,3] > ?? ?[2]", "SoftMax: stats [2]: expected rank 2 beside src [2, 3]"},
    {"SoftMax", "", "f32[2,3] > ?[2,4] ~",
     "SoftMax: axis 1 of src [2, 3] and axis 1 of dst [2, 4]: expected the same extent"},
    {"LogSoftmax", "", "f32[2,_] > ?[_,3]", "f32[2,3] > f32[2,3]"},
    {"LogSoftmax", "axis=-3", "f32[2,3] > ??", "LogSoftmax: axis: expected -2 to 1 for rank 2, found -3"},
    {"LogSoftmax", "", "f32[2] > f16?", "LogSoftmax: src is f32 and dst is f16: expected one type"},
    {"SoftMaxBackward", "", "bf16[2,_] ?[_,3] > f32?", "bf16[2,3] bf16[2,3] > f32[2,3]"},
    {"SoftMaxBackward", "", "f16[2,3] ?? > ??", "f16[2,3] f16[2,3] > f16[2,3]"},
    {"SoftMaxBackward", "", "f32[2,3] ?? > bf16?",
     "SoftMaxBackward: diff_dst is f32 and diff_src is bf16: expected one type, or diff_src f32"},
    {"SoftMaxBackward", "axis=2", "f32[2,3] ?? > ??", "SoftMaxBackward: axis: expected -2 to 1 for rank 2, found 2"},
    {"LogSoftmaxBackward", "", "f32[2,3] ?? > ??", "f32[2,3] f32[2,3] > f32[2,3]"},
    {"LogSoftmaxBackward", "", "f32[2,3] f32[2,4] > ??",
     "LogSoftmaxBackward: axis 1 of diff_dst [2, 3] and axis 1 of dst [2, 4]: expected the same extent"},

    // Movement.
    {"StaticReshape", "shape=6,4 special_zero=false", "f32[2,3,4] > ??", "f32[2,3,4] > f32[6,4]"},
    {"StaticReshape", "shape=-1 special_zero=false", "f32[2,3,4] > ??", "f32[2,3,4] > f32[24]"},
    {"StaticReshape", "shape=0,-1,1 special_zero=true", "bf16[2,3,4] > ??", "bf16[2,3,4] > bf16[2,12,1]"},
    {"StaticReshape", "shape= special_zero=false", "f32[1,1] > ??", "f32[1,1] > f32[]"},
    {"StaticReshape", "shape=0,-1 special_zero=true", "f32[N,2,3] > ??", "f32[N,2,3] > f32[N,6]"},
    {"StaticReshape", "shape=-1,6 special_zero=false", "f32[N,2,3] > ??", "f32[N,2,3] > f32[N,6]"},
    {"StaticReshape", "shape=-1,3 special_zero=false", "f32[N,2,3] > ??", "f32[N,2,3] > f32[_,3]"},
    {"StaticReshape", "shape=-1,5 special_zero=false", "f32[0,2] > ??", "f32[0,2] > f32[0,5]"},
    {"StaticReshape", "shape=0,5 special_zero=false", "f32[0,2] > ??", "f32[0,2] > f32[0,5]"},
    {"StaticReshape", "shape=5,4 special_zero=false", "f32[2,3,4] > ??",
     "StaticReshape: shape: expected as many elements as src, found src of [2, 3, 4]"},
    {"StaticReshape", "shape=-1,5 special_zero=false", "f32[2,3,4] > ??",
     "StaticReshape: shape: expected -1 to have an extent, found src of [2, 3, 4]"},
    {"StaticReshape", "shape=-1,0 special_zero=false", "f32[0,3] > ??",
     "StaticReshape: shape: expected -1 to have an extent, found src of [0, 3]"},
    {"StaticReshape", "shape=-1,-1 special_zero=false", "f32[4] > ??",
     "StaticReshape: shape: expected -1 at most once, found src of [4]"},
    {"StaticReshape", "shape=-2 special_zero=false", "f32[4] > ??",
     "StaticReshape: shape: expected extents, one -1, or with special_zero a 0 where src has an axis, found src of "
     "[4]"},
    {"StaticReshape", "shape=4,0 special_zero=true", "f32[4] > ??",
     "StaticReshape: shape: expected extents, one -1, or with special_zero a 0 where src has an axis, found src of "
     "[4]"},
    {"Quantize", "scales=0.5 zps=3", "f32[4,_] > s8[_,2]", "f32[4,2] > s8[4,2]"},
    {"Quantize", "scales=1,2,4 qtype=per_channel", "f32[4,_] > f8_e4m3?", "f32[4,3] > f8_e4m3[4,3]"},
    {"Quantize", "scales=1 zps=0", "f32[4] > f8_e5m2?", "Quantize: zps: expected none for an 8-bit float"},
    {"Quantize", "scales=1,2 qtype=per_channel axis=0", "f32[4] > u8?",
     "Quantize: axis 0 of src [4]: expected as many as scales, [2]"},
    {"Dequantize", "scales=0.5", "u8[N] > ??", "u8[N] > f32[N]"},
    {"Dequantize", "scales=1,2 qtype=per_channel axis=2", "s8[4,2] > ??",
     "Dequantize: axis: expected -2 to 1 for rank 2, found 2"},
    {"DynamicQuantize", "", "f32[2,3] f32[_] ~ > u8?", "f32[2,3] f32[1] ~ > u8[2,3]"},
    {"DynamicQuantize", "qtype=per_channel axis=-1", "f32[2,3] f32? u8[1] > s8?", "f32[2,3] f32[3] u8[1] > s8[2,3]"},
    {"DynamicQuantize", "", "f32[2,3] f32[2] ~ > u8?",
     "DynamicQuantize: scales [2]: expected extent 1 on axis 0 beside src [2, 3]"},
    {"DynamicDequantize", "qtype=per_channel", "s8[2,_] f32[3] s32[3] > ??", "s8[2,3] f32[3] s32[3] > f32[2,3]"},
    {"DynamicDequantize", "qtype=per_group group_shape=1,2", "u8[2,4] bf16? u8? > ??",
     "u8[2,4] bf16[2,2] u8[2,2] > bf16[2,4]"},
    {"DynamicDequantize", "qtype=per_group group_shape=1,3", "u8[2,4] f32? ~ > ??",
     "DynamicDequantize: src [2, 4]: expected a multiple of group_shape [3] on axis 1"},
    {"DynamicDequantize", "qtype=per_group group_shape=2", "u8[2,4] f32? ~ > ??",
     "DynamicDequantize: group_shape: expected one for each axis, 2, found 1"},
    {"DynamicDequantize", "qtype=per_group group_shape=0,1", "u8[2,4] f32? ~ > ??",
     "DynamicDequantize: group_shape: expected numbers above 0"},
    {"Reorder", "", "f32[4,_] > ?[_,8]", "f32[4,8] > f32[4,8]"},
    {"Reorder", "", "f32[4] > ?[5]", "Reorder: axis 0 of src [4] and axis 0 of dst [5]: expected the same extent"},
    {"Dropout", "", "bf16[4,_] s64? s64? f32? > ?[_,8] u8?", "bf16[4,8] s64[] s64[] f32[] > bf16[4,8] u8[4,8]"},
    {"Dropout", "", "f32[_,_] ?? ?? ?? > ?? u8[3,N]", "f32[3,N] s64[] s64[] f32[] > f32[3,N] u8[3,N]"},
    {"Dropout", "", "f64[] s64[] s64[] f32[] > ?? ~", "f64[] s64[] s64[] f32[] > f64[] ~"},
    {"Dropout", "", "f32[4] s64[1] s64[] f32[] > ?? ~", "Dropout: seed: expected rank 0, found rank 1, [1]"},
    {"Dropout", "", "f32[4] s64[] s64[2] f32[] > ?? ~", "Dropout: offset: expected rank 0, found rank 1, [2]"},
    {"Dropout", "", "f32[4] s64[] s64[] f32[4] > ?? ~", "Dropout: probability: expected rank 0, found rank 1, [4]"},
    {"Dropout", "", "f32[4] s32[] s64[] f32[] > ?? ~", "Dropout: seed: expected type s64, found s32"},
    {"Dropout", "", "f32[4] s64[] s64[] f32[] > ?? ?[5]",
     "Dropout: axis 0 of src [4] and axis 0 of mask [5]: expected the same extent"},
    {"GenIndex", "axis=-1", "bf16[4,_] > ?[_,8]", "bf16[4,8] > s32[4,8]"},
    {"GenIndex", "axis=2", "f32[4,8] > ??", "GenIndex: axis: expected -2 to 1 for rank 2, found 2"},
    {"GenIndex", "axis=0", "f32[2147483648] > ??", "GenIndex: src: expected an extent below 2^31 on axis 0"},
    {"Concat", "axis=1", "f32[4,8] > ??", "f32[4,8] > f32[4,8]"},
    {"Concat", "axis=-2", "f16[0,_] > ?[_,3]", "f16[0,3] > f16[0,3]"},
    {"Concat", "axis=0", "f32[_,2] > ?[7,_]", "f32[7,2] > f32[7,2]"},
    {"Concat", "axis=2", "f32[4,8] > ??", "Concat: axis: expected -2 to 1 for rank 2, found 2"},
    {"Concat", "axis=0", "f32[4,8] > ?[5,8]", "Concat: dst [5, 8]: expected extent 4 on axis 0 beside src [4, 8]"},
    {"Interpolate", "mode=nearest sizes=5,6 data_format=NCX", "f32[2,3,4,4] ~ > ??", "f32[2,3,4,4] ~ > f32[2,3,5,6]"},
    {"Interpolate", "mode=linear scales=2.5", "bf16[2,3,_] s32? > ??", "bf16[2,3,_] s32[1] > bf16[2,7,_]"},
    {"Interpolate", "mode=linear scales=1.235294 data_format=NCX", "f32[1,1,17] ~ > ??", "f32[1,1,17] ~ > f32[1,1,20]"},
    {"Interpolate", "mode=nearest scales=2", "f32[N,M,3] ~ > ??", "f32[N,M,3] ~ > f32[N,_,3]"},
    {"Interpolate", "mode=linear sizes=3", "f32? ~ > ??", "f32[_,_,_] ~ > f32[_,3,_]"},
    {"Interpolate", "mode=linear sizes=3", "f32[2,2,2,2] ~ > ??",
     "Interpolate: sizes: expected one for each spatial axis, 2, found 1"},
    {"Interpolate", "mode=linear sizes=3", "f32[2,2] ~ > ??", "Interpolate: src: expected rank 3 to 5, found rank 2"},
    {"Interpolate", "mode=linear sizes=3", "f32[2,0,2] ~ > ??",
     "Interpolate: src: expected elements on axis 1 to make dst of"},
    {"Interpolate", "mode=linear sizes=3", "f32[2,2,2] ~ > ?[2,4,2]",
     "Interpolate: dst [2, 4, 2]: expected extent 3 on axis 1 beside src [2, 2, 2]"},
    {"Interpolate", "mode=linear scales=-1", "f32[2,2,2] ~ > ??",
     "Interpolate: scales: expected numbers that give extents, found -1 on axis 1"},
    {"Interpolate", "mode=nearest sizes=67108864", "f32[1,16777216,1] ~ > ??",
     "Interpolate: axis 1 of src and dst: expected extents whose product is below 2^50"},
    {"InterpolateBackward", "mode=nearest", "f32[2,3,_] f32[_,5,4] ~ > ??", "f32[2,3,4] f32[2,5,4] ~ > f32[2,3,4]"},
    {"InterpolateBackward", "mode=nearest", "f32? f32? ~ > ?[2,3,4]", "f32[2,3,4] f32[2,_,4] ~ > f32[2,3,4]"},
    {"InterpolateBackward", "mode=nearest data_format=NCX", "f32[2,3,4] f32[2,2,4] ~ > ??",
     "InterpolateBackward: axis 1 of diff_src [2, 3, 4] and axis 1 of diff_dst [2, 2, 4]: expected the same extent"},
    {"StaticTranspose", "order=2,0,1", "f32[1,2,3] > ??", "f32[1,2,3] > f32[3,1,2]"},
    {"StaticTranspose", "order=-1,0", "f16[_,N] > ?[_,4]", "f16[4,N] > f16[N,4]"},
    {"StaticTranspose", "order=", "f32[1,2,3] > ??", "f32[1,2,3] > f32[3,2,1]"},
    {"StaticTranspose", "order=1,0", "f32? > ??", "f32[_,_] > f32[_,_]"},
    {"StaticTranspose", "order=0,0", "f32[2,3] > ??",
     "StaticTranspose: order: expected each axis of rank 2 once, or none"},
    {"StaticTranspose", "order=0,2", "f32[2,3] > ??",
     "StaticTranspose: order: expected each axis of rank 2 once, or none"},
    {"StaticTranspose", "order=0", "f32[2,3] > ??",
     "StaticTranspose: order: expected each axis of rank 2 once, or none"},

    // Batch norm: the channel axis and the statistics tell each other, the data all of the data.
    {"BatchNormInference", "", "f32[2,_,6] f32[_] ?? ?? ?? > ?[_,5,_]",
     "f32[2,5,6] f32[6] f32[6] f32[6] f32[6] > f32[2,5,6]"},
    {"BatchNormInference", "data_format=NCX", "f16[2,_,5] f32? ?? ?[6] ?? > ??",
     "f16[2,6,5] f32[6] f32[6] f32[6] f32[6] > f16[2,6,5]"},
    {"BatchNormInference", "", "f32? f32[6] ?? ?? ?? > ??", "f32? f32[6] f32? f32? f32? > f32?"},
    {"BatchNormInference", "", "f32[2,6] f32[6] f32[6] f32[5] f32[6] > ??",
     "BatchNormInference: axis 0 of mean [5] and axis 1 of src [2, 6]: expected the same extent"},
    {"BatchNormForwardTraining", "data_format=NCX", "bf16[2,_] bf16? ?? ~ ~ > ?? ?? ?? ?? ?[6]",
     "bf16[2,6] bf16[6] bf16[6] ~ ~ > bf16[2,6] bf16[6] bf16[6] bf16[6] bf16[6]"},
    {"BatchNormForwardTraining", "", "f64[0,3] f32[3] ?? ?? ?? > ?? ?? ?? ?? ??",
     "f64[0,3] f32[3] f32[3] f32[3] f32[3] > f64[0,3] f32[3] f32[3] f32[3] f32[3]"},
    {"BatchNormForwardTraining", "", "f32[2,3] f32[3] ?? ~ ~ > ?? ?[4] ?? ?? ??",
     "BatchNormForwardTraining: axis 0 of running_mean [4] and axis 1 of src [2, 3]: expected the same extent"},
    {"BatchNormTrainingBackward", "", "f32[_,_,_,_] f32[N,7,_,_] f32? ?? ?[6] > ?[_,_,7,_] ?? ??",
     "f32[N,7,7,6] f32[N,7,7,6] f32[6] f32[6] f32[6] > f32[N,7,7,6] f32[6] f32[6]"},
    {"BatchNormTrainingBackward", "data_format=NCX", "f32? f32? f32? f32? ~ > ?[2,_,3] ?[C] ??",
     "f32[2,C,3] f32[2,C,3] f32[C] f32[C] ~ > f32[2,C,3] f32[C] f32[C]"},
    {"BatchNormTrainingBackward", "", "f32[N,4] f32[M,4] f32? f32? ~ > ?? ~ ~",
     "BatchNormTrainingBackward: axis 0 of src [N, 4] and axis 0 of diff_dst [M, 4]: expected the same extent"},
    {"BatchNormTrainingBackward", "data_format=NCX", "f32[2,5,_] f32? f32? f32? f32[6] > ?? ?? ??",
     "BatchNormTrainingBackward: axis 0 of gamma [6] and axis 1 of src [2, 5, _]: expected the same extent"},
    {"BatchNormTrainingBackward", "", "f32[4] f32[4] f32? f32? ~ > ?? ~ ~",
     "BatchNormTrainingBackward: src: expected rank 2 or more, found rank 1, [4]"},
    {"BatchNormTrainingBackward", "", "f32[4,2] f32? f32[1,2] f32? ~ > ?? ~ ~",
     "BatchNormTrainingBackward: mean [1, 2]: expected rank 1 beside src [4, 2]"},
    {"BatchNormTrainingBackward", "", "f32[4,0] f32? f32? f32? ~ > ?? ~ ~",
     "BatchNormTrainingBackward: mean: expected at least 1 channel, found 0"},
    {"BatchNormTrainingBackward", "", "f16[4,2] f16? f16? ?? ~ > ?? ~ ~",
     "BatchNormTrainingBackward: mean is f16 while src is f16: expected f32"},
    {"BatchNormTrainingBackward", "", "f32[4,2] f32? bf16? ?? ~ > ?? ~ ~",
     "BatchNormTrainingBackward: mean is bf16 while src is f32: expected f32"},
    {"BatchNormTrainingBackward", "", "bf16[4,2] bf16? f64? ?? ~ > ?? ~ ~",
     "BatchNormTrainingBackward: mean is f64 while src is bf16: expected f32 or bf16"},
    {"BatchNormTrainingBackward", "", "f64[4,2] f64? f16? ?? ~ > ?? ~ ~",
     "BatchNormTrainingBackward: mean is f16 while src is f64: expected f32 or f64"},
    {"BatchNormTrainingBackward", "", "f32[4,2] f32? f32? f64? ~ > ?? ~ ~",
     "BatchNormTrainingBackward: mean is f32 and variance is f64: expected one type"},
    {"BatchNormTrainingBackprop", "data_format=NCX", "f32[2,_,3] f32? f32? f32? ~ > ?? ?[5] ??",
     "f32[2,5,3] f32[2,5,3] f32[5] f32[5] ~ > f32[2,5,3] f32[5] f32[5]"},
    {"ngraph.BatchNormTrainingBackprop", "", "f16[2,_,4] ?? ?[3] ?? ?? ?? > ?? ?? ??",
     "f16[2,3,4] f16[3] f16[3] f16[3] f16[3] f16[2,3,4] > f16[2,3,4] f16[3] f16[3]"},
    {"ngraph.BatchNormTrainingBackprop", "", "f16[2,_,4] f32[3] ?? ?? ?? ?? > ?? ?? ??",
     "ngraph.BatchNormTrainingBackprop: input is f16 and gamma is f32: expected one type"},
    {"BatchNormInferenceBackward", "data_format=NCX", "f32? f32[2,6,3] f32? f32? ~ > ?? ?? ??",
     "f32[2,6,3] f32[2,6,3] f32[6] f32[6] ~ > f32[2,6,3] f32[6] f32[6]"},
    {"BatchNormInferenceBackward", "", "f32[2,3] f32[3,2] f32? f32? ~ > ?? ~ ~",
     "BatchNormInferenceBackward: axis 0 of src [2, 3] and axis 0 of diff_dst [3, 2]: expected the same extent"},
    // DirectML: statistics are alike, each extent 1 or the data's.
    {"directml.BATCH_NORMALIZATION_GRAD", "", "f32[2,_,3,_] ?[_,6,_,_] ?[1,_,1,1] ?[_,6,_,_] ?? > ?[_,_,_,4] ?? ??",
     "f32[2,6,3,4] f32[2,6,3,4] f32[1,6,1,1] f32[1,6,1,1] f32[1,6,1,1] > f32[2,6,3,4] f32[1,6,1,1] f32[1,6,1,1]"},
    {"directml.BATCH_NORMALIZATION_GRAD", "", "f16[1,6] ?? ?[_,_] ?? ?? > ?? ?? ??",
     "f16[1,6] f16[1,6] f16[1,_] f16[1,_] f16[1,_] > f16[1,6] f16[1,_] f16[1,_]"},
    {"directml.BATCH_NORMALIZATION_TRAINING_GRAD", "", "f32[7] ?? ?? ?? ?[1] > ?? ?? ??",
     "f32[7] f32[7] f32[1] f32[1] f32[1] > f32[7] f32[1] f32[1]"},
    {"directml.BATCH_NORMALIZATION_TRAINING_GRAD", "", "f32[_,3] ?? ?[4,1] ?? ?? > ?? ?? ??",
     "f32[4,3] f32[4,3] f32[4,1] f32[4,1] f32[4,1] > f32[4,3] f32[4,1] f32[4,1]"},
    {"directml.BATCH_NORMALIZATION_TRAINING_GRAD", "", "f32[4,3] ?? ?[4,2] ?? ?? > ?? ?? ??",
     "directml.BATCH_NORMALIZATION_TRAINING_GRAD: axis 1 of MeanTensor [4, 2] and axis 1 of InputTensor [4, 3]: "
     "expected "
     "the same extent"},
    {"directml.BATCH_NORMALIZATION_GRAD", "", "f32[4,3] ?? ?[3] ?? ?? > ?? ?? ??",
     "directml.BATCH_NORMALIZATION_GRAD: MeanTensor [3]: expected rank 2 beside InputTensor [4, 3]"},
    {"directml.BATCH_NORMALIZATION_GRAD", "", "f32[4,3] ?? ?[1,3] ?[4,1] ?? > ?? ?? ??",
     "directml.BATCH_NORMALIZATION_GRAD: axis 0 of MeanTensor [1, 3] and axis 0 of VarianceTensor [4, 1]: expected the "
     "same extent"},
    {"directml.BATCH_NORMALIZATION_GRAD", "", "f64[4] ?? ?? ?? ?? > ?? ?? ??",
     "directml.BATCH_NORMALIZATION_GRAD: InputTensor: expected type f32 or f16, found f64"},

    // Layer norm: statistics have the axes before, parameters those from begin_norm_axis on, or one for all of them.
    {"LayerNorm", "", "f32[N,_] f32[8] ?? > ?? ?? ??", "f32[N,8] f32[8] f32[8] > f32[N,8] f32[N] f32[N]"},
    {"LayerNorm", "begin_norm_axis=0", "f32[2,3] f32? ?? > ?? ?? ??",
     "f32[2,3] f32[2,3] f32[2,3] > f32[2,3] f32[] f32[]"},
    {"LayerNorm", "begin_norm_axis=1 use_affine=false", "bf16[_,3] ~ ~ > ?? ?[5] ??",
     "bf16[5,3] ~ ~ > bf16[5,3] f32[5] f32[5]"},
    {"LayerNorm", "use_affine=false", "bf16[2,3] ~ ~ > ?? bf16? ??", "bf16[2,3] ~ ~ > bf16[2,3] bf16[2] bf16[2]"},
    {"LayerNorm", "begin_norm_axis=-2", "f32[2,3,4] ?? f32[12] > ?? ~ ~",
     "f32[2,3,4] f32[12] f32[12] > f32[2,3,4] ~ ~"},
    {"LayerNorm", "begin_norm_axis=-2", "f32[2,3,4] f32[_,4] f32[_] > ?? ~ ~",
     "LayerNorm: gamma [3, 4] and beta [12]: expected the same shape"},
    {"LayerNorm", "begin_norm_axis=2", "f32[2,3] f32? ?? > ?? ?? ??",
     "LayerNorm: begin_norm_axis: expected -2 to 1 for rank 2, found 2"},
    {"LayerNorm", "begin_norm_axis=-3", "f32[2,3] f32? ?? > ?? ?? ??",
     "LayerNorm: begin_norm_axis: expected -2 to 1 for rank 2, found -3"},
    {"LayerNorm", "", "f32[] f32? ?? > ?? ?? ??", "LayerNorm: src: expected rank 1 or more, found rank 0, []"},
    {"LayerNormBackward", "", "f32[N,_] f32? f32? f32? f32[8] ~ > ?? ?? ??",
     "f32[N,8] f32[N,8] f32[N] f32[N] f32[8] ~ > f32[N,8] f32[8] f32[8]"},
    {"LayerNormBackward", "begin_norm_axis=1", "f32[_,_,_] f32? f32[2] f32? f32[_,5] f32[4,_] > ?? ?? ??",
     "f32[2,4,5] f32[2,4,5] f32[2] f32[2] f32[4,5] f32[4,5] > f32[2,4,5] f32[4,5] f32[4,5]"},
    {"LayerNormBackward", "begin_norm_axis=1", "f32? f32? f32? f32? f32? ~ > ?[2,4,5] ?[20] ??",
     "f32[2,4,5] f32[2,4,5] f32[2] f32[2] f32[20] ~ > f32[2,4,5] f32[20] f32[20]"},
    {"LayerNormBackward", "begin_norm_axis=1", "f32[2,4,5] f32? f32? f32? f32[_] ~ > ?? ?? ??",
     "f32[2,4,5] f32[2,4,5] f32[2] f32[2] f32[20] ~ > f32[2,4,5] f32[20] f32[20]"},
    {"LayerNormBackward", "begin_norm_axis=1", "f32[2,N,5] f32? f32? f32? f32[_] ~ > ?? ?? ??",
     "f32[2,N,5] f32[2,N,5] f32[2] f32[2] f32[_] ~ > f32[2,N,5] f32[_] f32[_]"},
    {"LayerNormBackward", "begin_norm_axis=1", "f32[2,4,5] f32? f32? f32? f32[21] ~ > ?? ?? ??",
     "LayerNormBackward: gamma [21]: expected extent 20 on axis 0 beside src [2, 4, 5]"},
    {"LayerNormBackward", "", "f32[2,4,5] f32? f32[2] f32? f32[5] ~ > ?? ?? ??",
     "LayerNormBackward: mean [2]: expected rank 2 beside src [2, 4, 5]"},
    {"LayerNormBackward", "", "f32[2,5] f32? f32? f32? f32[5] ~ > ?? ?[6] ??",
     "LayerNormBackward: axis 0 of gamma [5] and axis 0 of diff_gamma [6]: expected the same extent"},
    {"LayerNormBackward", "", "f16[2,5] f16? f16? ?? ?? ~ > ?? ?? ??",
     "LayerNormBackward: mean is f16 while src is f16: expected f32"},

    // Group norm: statistics of each batch element's groups, parameters of channels.
    {"GroupNorm", "groups=2", "f32[3,_,6] ?? ?[_] > ?[_,5,_] ?? ??",
     "f32[3,5,6] f32[6] f32[6] > f32[3,5,6] f32[3,2] f32[3,2]"},
    {"GroupNorm", "groups=3 data_format=NCX", "bf16[N,6,4] bf16? ?? > ?? ?? ??",
     "bf16[N,6,4] bf16[6] bf16[6] > bf16[N,6,4] bf16[N,3] bf16[N,3]"},
    {"GroupNorm", "groups=3", "f64[2,_] ~ ~ > ?? f64? ??", "f64[2,_] ~ ~ > f64[2,_] f64[2,3] f64[2,3]"},
    {"GroupNorm", "groups=1", "f16[2,1] ~ ~ > ?? ~ ??", "f16[2,1] ~ ~ > f16[2,1] ~ f32[2,1]"},
    {"GroupNorm", "groups=4", "f32[3,5,6] ~ ~ > ?? ?? ??",
     "GroupNorm: groups: expected a divisor of 6, the channels of src, found 4"},
    {"GroupNorm", "groups=2", "f32[4] ~ ~ > ?? ?? ??", "GroupNorm: src: expected rank 2 or more, found rank 1, [4]"},
    {"GroupNorm", "groups=2", "f32[2,4] ~ ~ > ?? ?[2,4] ??",
     "GroupNorm: mean [2, 4]: expected extent 2 on axis 1, the groups of src [2, 4]"},
    {"GroupNorm", "groups=2", "f32[2,0] ~ ~ > ?? ?? ??", "GroupNorm: src: expected at least 1 channel, found 0"},
    {"GroupNorm", "groups=2", "f32[2,4] f32[2] f32? > ?? ?? ??",
     "GroupNorm: axis 0 of gamma [2] and axis 1 of src [2, 4]: expected the same extent"},
    {"GroupNormBackward", "groups=2", "f32? ?[3,5,6] f32? ?? ?? ~ > ?? ?? ??",
     "f32[3,5,6] f32[3,5,6] f32[3,2] f32[3,2] f32[6] ~ > f32[3,5,6] f32[6] f32[6]"},
    {"GroupNormBackward", "groups=2", "f32[3,5,6] ?? f32[6] ?? ~ ~ > ?? ~ ~",
     "GroupNormBackward: mean [6]: expected rank 2 beside src [3, 5, 6]"},
    {"InstanceNorm", "data_format=NCX", "f32[3,_,6] ?[5] f32? > ?? ?? ??",
     "f32[3,5,6] f32[5] f32[5] > f32[3,5,6] f32[3,5] f32[3,5]"},
    {"InstanceNorm", "", "f32[3,4] ~ ~ > ?? ?[3,2] ??",
     "InstanceNorm: axis 1 of src [3, 4] and axis 1 of mean [3, 2]: expected the same extent"},
    {"InstanceNormBackward", "", "f32[3,5,_] ?? f32[_,6] ?? ~ ~ > ?? ~ ~",
     "f32[3,5,6] f32[3,5,6] f32[3,6] f32[3,6] ~ ~ > f32[3,5,6] ~ ~"},
    {"InstanceNormBackward", "", "f16[3,4] ?? f16[3,4] ?? ~ ~ > ?? ~ ~",
     "InstanceNormBackward: mean is f16 while src is f16: expected f32"},

    // RMSNorm: gamma broadcasts to the data's shape.
    {"RMSNorm", "", "f32[2,_] f32[1,3] > ?[_,3]", "f32[2,3] f32[1,3] > f32[2,3]"},
    {"RMSNorm", "begin_norm_axis=0", "f16[N] f16[] > ??", "f16[N] f16[] > f16[N]"},
    {"RMSNorm", "begin_norm_axis=2", "f32[2,3] ~ > ??",
     "RMSNorm: begin_norm_axis: expected -2 to 1 for rank 2, found 2"},
    {"RMSNorm", "", "f32[2,3] f32[2] > ??",
     "RMSNorm: axis 0 of gamma [2] and axis 1 of src [2, 3]: expected the same extent"},
    {"RMSNorm", "", "f32[3] f32[1,3] > ??",
     "RMSNorm: gamma [1, 3] does not broadcast to src [3]: expected rank 1 or less"},
    {"RMSNorm", "", "bf16[3] f16[3] > ??", "RMSNorm: gamma is f16 while src is bf16: expected f32 or bf16"},
    {"RMSNorm", "", "f32[] ~ > ??", "RMSNorm: src: expected rank 1 or more, found rank 0, []"},
    {"RMSNormBackward", "", "f32? ?[2,3] f32[3] > ?? ??", "f32[2,3] f32[2,3] f32[3] > f32[2,3] f32[3]"},
    {"RMSNormBackward", "", "f32[2,3] ?? f32? > ?? ?[2,1]", "f32[2,3] f32[2,3] f32[2,1] > f32[2,3] f32[2,1]"},
    {"RMSNormBackward", "begin_norm_axis=0", "f32[2,3] ?? f32[1,1] > ?? ??",
     "f32[2,3] f32[2,3] f32[1,1] > f32[2,3] f32[1,1]"},
    {"RMSNormBackward", "begin_norm_axis=0", "f32[2,3] ?? f32[2,1] > ?? ~", "f32[2,3] f32[2,3] f32[2,1] > f32[2,3] ~"},
    {"RMSNormBackward", "begin_norm_axis=0", "f32[2,3] ?? f32[3] > ?? ??",
     "RMSNormBackward: gamma [3]: expected all or none of the axes from 0 on of src [2, 3], for diff_gamma"},
    {"RMSNormBackward", "", "f32[2,3] ?? f32? > ?? ?[2]",
     "RMSNormBackward: axis 0 of gamma [2] and axis 1 of src [2, 3]: expected the same extent"},
};
enum { NROWS = sizeof rows / sizeof *rows };

typedef struct Graphlet { // a graph of one node
  Graph *graph;
  Diagnostics diagnostics;
  Node *node;
  OperatorName as;
} Graphlet;

static Extent parse_extent(Graph *g, const char *word) {
  if (word[0] == '_') return EXTENT_UNKNOWN;
  if (word[0] >= '0' && word[0] <= '9') return EXTENT(strtoll(word, NULL, 10));
  Dim *dim = graph_find_dim(g, word);
  if (!dim) dim = graph_add_dim(g, word, word[0] == 'N' ? 4 : -1);
  assert_non_null(dim);
  return (Extent){dim, -1};
}

// f32[N,_,3]
static Value *parse_value(Graph *g, const char *name, char *word, bool is_input) {
  size_t length = word[0] == '?' ? 1 : strcspn(word, "[?");
  Shape shape = {.rank = -1};
  char *rest = NULL, *extents = word + length;
  if (*extents == '[') {
    shape.rank = 0;
    for (char *e = strtok_r(extents, "[,]", &rest); e; e = strtok_r(NULL, "[,]", &rest))
      shape.extent[shape.rank++] = parse_extent(g, e);
  } else {
    assert_string_equal(extents, "?");
  }
  word[length] = 0;
  Type type = type_from_name(word);
  assert_true(type != TYPE_NONE || word[0] == '?' || word[0] == 0);
  Value *v = is_input ? graph_add_input(g, name, type, &shape) : graph_add_value(g, name, type, &shape);
  assert_non_null(v);
  return v;
}

// 0,-1
static void parse_list(Graph *g, AttributeValue *value, const char *numbers) {
  int64_t *items = ARENA_ARRAY(&g->arena, int64_t, strlen(numbers) + 1);
  assert_non_null(items);
  value->list.items = items;
  value->list.count = 0;
  for (char *end; *numbers; numbers = end + (*end == ',')) items[value->list.count++] = strtoll(numbers, &end, 10);
}

static void parse_numbers(Graph *g, AttributeValue *value, char *numbers) {
  double *items = ARENA_ARRAY(&g->arena, double, strlen(numbers) + 1);
  assert_non_null(items);
  value->numbers.items = items;
  value->numbers.count = 0;
  for (char *end; *numbers; numbers = end + (*end == ',')) items[value->numbers.count++] = strtod(numbers, &end);
}

static void parse_attribute(Graph *g, Node *node, char *word) {
  char *number = strchr(word, '=');
  assert_non_null(number);
  *number++ = 0;
  uint32_t k = 0;
  while (strcmp(node->op->attributes[k].name, word) != 0) assert_true(++k < node->op->nattributes);
  const Attribute *row = &node->op->attributes[k];
  AttributeValue *value = &node->attributes[k];
  value->is_set = true;
  if (row->kind == ATTRIBUTE_BOOL) value->boolean = strcmp(number, "true") == 0;
  else if (row->kind == ATTRIBUTE_S64) value->s64 = strtoll(number, NULL, 10);
  else if (row->kind == ATTRIBUTE_F32) value->f32 = strtod(number, NULL);
  else if (row->kind == ATTRIBUTE_S64_LIST) parse_list(g, value, number);
  else if (row->kind == ATTRIBUTE_F32_LIST) parse_numbers(g, value, number);
  else
    for (value->s64 = 0; strcmp(row->choices[value->s64], number) != 0;) assert_true(++value->s64 < MAX_CHOICES);
}

static void graphlet_init(Graphlet *t, const Row *row) {
  char operands[256], attributes[128], copy[64], *rest = NULL;
  snprintf(operands, sizeof operands, "%s", row->before);
  snprintf(attributes, sizeof attributes, "%s", row->attributes);
  t->graph = graph_new(&system_allocator, "test");
  diagnostics_init(&t->diagnostics, &system_allocator);
  t->as = operator_find(row->op);
  assert_true(t->graph && t->as.op);
  t->node = graph_add_node(t->graph, t->as.op, t->as.signature, t->as.op->ninputs, t->as.op->noutputs);
  assert_non_null(t->node);
  uint32_t i = 0;
  bool is_input = true;
  for (char *word = strtok_r(operands, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
    if (word[0] == '>') {
      assert_int_equal(i, named_ninputs(t->as));
      is_input = false;
      i = 0;
      continue;
    }
    SignatureOperand named = is_input ? named_input(t->as, i++) : named_output(t->as, i++);
    if (word[0] == '~') continue;
    snprintf(copy, sizeof copy, "%s", word);
    Value *v = parse_value(t->graph, named.name, copy, is_input);
    if (is_input) node_set_input(t->node, named.slot, v);
    else node_set_output(t->node, named.slot, v);
  }
  assert_int_equal(i, named_noutputs(t->as));
  for (char *word = strtok_r(attributes, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    parse_attribute(t->graph, t->node, word);
  node_set_defaults(t->node);
}

static void graphlet_deinit(Graphlet *t) {
  graph_free(t->graph);
  diagnostics_deinit(&t->diagnostics);
}

static void print_value(const Value *v, Text *out) {
  char shape[128];
  if (!v) {
    text_add_string(out, "~");
    return;
  }
  text_add_string(out, type_name(v->type));
  shape_string(&v->shape, shape, sizeof shape);
  for (const char *c = shape; *c; c++)
    if (*c != ' ') text_add(out, c, 1);
}

// The node's operands as a row has them.
static Text graphlet_text(const Graphlet *t) {
  Text out;
  text_init(&out, &system_allocator);
  for (uint32_t i = 0; i < named_ninputs(t->as); i++) {
    print_value(t->node->inputs[named_input(t->as, i).slot], &out);
    text_add_string(&out, " ");
  }
  text_add_string(&out, ">");
  for (uint32_t i = 0; i < named_noutputs(t->as); i++) {
    text_add_string(&out, " ");
    print_value(t->node->outputs[named_output(t->as, i).slot], &out);
  }
  return out;
}

static bool is_message(const Row *row) {
  return strstr(row->after, ": ") != NULL;
}

static void assert_text(const Graphlet *t, const char *expected) {
  Text text = graphlet_text(t);
  assert_string_equal(text_string(&text), expected);
  text_deinit(&text);
}

static void check_row(const Row *row) {
  Graphlet t;
  graphlet_init(&t, row);
  bool ok = graph_infer(t.graph, &t.diagnostics);
  if (is_message(row)) {
    assert_false(ok);
    assert_int_equal(t.diagnostics.nerrors, 1);
    assert_string_equal(t.diagnostics.items[0].message, row->after);
  } else {
    if (!ok) print_error("%s %s: %s\n", row->op, row->before, t.diagnostics.items[0].message);
    assert_true(ok);
    assert_text(&t, row->after);
    assert_true(graph_infer(t.graph, &t.diagnostics)); // once more changes nothing
    assert_text(&t, row->after);
    assert_true(graph_infers_nothing_new(t.graph, &t.diagnostics));
  }
  graphlet_deinit(&t);
}

static void each_operator_infers_what_follows(void **state) {
  (void)state;
  for (size_t i = 0; i < NROWS; i++) check_row(&rows[i]);
}

static void each_operator_and_name_has_rows(void **state) {
  (void)state;
  bool has_result[OP_COUNT] = {0}, has_message[OP_COUNT] = {0};
  for (size_t i = 0; i < NROWS; i++) {
    OperatorId id = operator_find(rows[i].op).op->id;
    if (is_message(&rows[i])) has_message[id] = true;
    else has_result[id] = true;
  }
  for (OperatorId id = 0; id < OP_COUNT; id++)
    if (!has_result[id] || !has_message[id]) fail_msg("%s lacks rows", operators[id].name);
  for (size_t k = 0; k < nsignatures; k++) {
    bool has_row = false;
    for (size_t i = 0; i < NROWS; i++) has_row |= operator_find(rows[i].op).signature == &signatures[k];
    if (!has_row) fail_msg("%s lacks rows", signatures[k].full_name);
  }
}

static void what_is_not_inferred_is_found_and_left_as_it_is(void **state) {
  (void)state;
  for (size_t i = 0; i < NROWS; i++) {
    if (is_message(&rows[i]) || strcmp(rows[i].before, rows[i].after) == 0) continue;
    Graphlet t;
    graphlet_init(&t, &rows[i]);
    assert_false(graph_infers_nothing_new(t.graph, &t.diagnostics));
    assert_text(&t, rows[i].before);
    assert_int_equal(t.diagnostics.nerrors, 1);
    assert_non_null(strstr(t.diagnostics.items[0].message, " is not fully inferred"));
    graphlet_deinit(&t);
  }
}

// Calls back for each extent of each operand of each row whose result has no unknowns, on a graph of that result.
static void for_each_extent(void (*check)(Graphlet *t, const char *known, Value *v, int axis)) {
  for (size_t i = 0; i < NROWS; i++) {
    if (strpbrk(rows[i].after, "?_:")) continue;
    if (strcmp(rows[i].op, "StaticReshape") == 0) continue; // extents of src and dst do not follow one from another
    const Row known = {rows[i].op, rows[i].attributes, rows[i].after, NULL};
    for (size_t k = 0;; k++) { // the k-th extent of all
      Graphlet t;
      graphlet_init(&t, &known);
      size_t n = 0;
      for (size_t v = 0; v < t.graph->nvalues; v++)
        for (int axis = 0; axis < t.graph->values[v]->shape.rank; axis++)
          if (n++ == k) check(&t, known.before, t.graph->values[v], axis);
      graphlet_deinit(&t);
      if (n <= k) break;
    }
  }
}

// An operand that is broadcast may have been 1; an extent that is reduced stands nowhere else.
static bool may_be_lost(const Graphlet *t) {
  static const OperatorId losing[] = {OP_ReduceSum,   OP_BiasAddBackward,     OP_PReLU,          OP_PReLUBackward,
                                      OP_Interpolate, OP_InterpolateBackward, OP_DynamicQuantize};
  const Operator *op = t->node->op;
  bool has_choice = op->attributes[0].name && strcmp(op->attributes[0].name, "auto_broadcast") == 0;
  for (size_t i = 0; i < sizeof losing / sizeof *losing; i++)
    if (op->infer == operators[losing[i]].infer) return true;
  bool broadcasts_gamma = op->id == OP_RMSNorm || op->id == OP_RMSNormBackward;
  return broadcasts_gamma || (has_choice && t->node->attributes[0].s64 == 0);
}

static void must_find_extent(Graphlet *t, const char *known, Value *v, int axis) {
  v->shape.extent[axis] = EXTENT_UNKNOWN;
  assert_true(graph_infer(t->graph, &t->diagnostics));
  if (!may_be_lost(t) || !extent_is_unknown(v->shape.extent[axis])) assert_text(t, known);
}

static void one_unknown_extent_follows_from_the_others(void **state) {
  (void)state;
  for_each_extent(must_find_extent);
}

static void must_find_rank(Graphlet *t, const char *known, Value *v, int axis) {
  if (axis) return;
  v->shape.rank = -1;
  assert_true(graph_infer(t->graph, &t->diagnostics));
  if (!may_be_lost(t)) assert_text(t, known);
}

static void one_unknown_shape_follows_from_the_others(void **state) {
  (void)state;
  for_each_extent(must_find_rank);
}

// Two more than is right, in one place (0 and 1 broadcast): told with both tensors, or the operand was broadcast.
static void must_tell_contradiction(Graphlet *t, const char *known, Value *v, int axis) {
  Extent right = v->shape.extent[axis];
  if (right.dim) return;
  v->shape.extent[axis] = EXTENT(right.value + 2);
  bool ok = graph_infer(t->graph, &t->diagnostics);
  assert_true(!ok || may_be_lost(t));
  if (ok) return;
  const char *message = t->diagnostics.items[0].message, *bracket = strchr(message, '[');
  assert_int_equal(t->diagnostics.nerrors, 1);
  assert_non_null(bracket);
  assert_non_null(strchr(bracket + 1, '['));
  if (!strstr(message, v->name)) fail_msg("%s in %s: %s", v->name, known, message);
  assert_non_null(strstr(message, "axis"));
}

static void a_contradiction_names_both_tensors_and_the_axis(void **state) {
  (void)state;
  for_each_extent(must_tell_contradiction);
}

// Graphs

static Value *add_value(Graph *g, bool is_input, int rank) {
  const Shape shape = {.rank = rank,
                       .extent = {EXTENT_UNKNOWN, EXTENT_UNKNOWN, EXTENT_UNKNOWN, EXTENT_UNKNOWN, EXTENT_UNKNOWN,
                                  EXTENT_UNKNOWN, EXTENT_UNKNOWN, EXTENT_UNKNOWN}};
  Value *v = is_input ? graph_add_input(g, "in", TYPE_F32, &shape) : graph_add_value(g, "made", TYPE_NONE, &shape);
  assert_non_null(v);
  return v;
}

static Value *add_node(Graph *g, const Operator *op, Value *a, Value *b) {
  Node *node = graph_add_node(g, op, NULL, op->ninputs, op->noutputs);
  Value *out = add_value(g, false, -1);
  assert_non_null(node);
  node_set_input(node, 0, a);
  if (b) node_set_input(node, 1, b);
  node_set_output(node, 0, out);
  node_set_defaults(node);
  return out;
}

static void assert_all_known(const Graph *g) {
  for (size_t i = 0; i < g->nvalues; i++) {
    assert_true(shape_is_known(&g->values[i]->shape));
    assert_int_equal(g->values[i]->type, TYPE_F32);
  }
}

static void ranks_of_intermediates_come_from_either_side(void **state) {
  (void)state;
  for (int is_last = 0; is_last < 2; is_last++) {
    Graph *g = graph_new(&system_allocator, "test");
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    Value *x = add_value(g, true, is_last ? -1 : 2), *y = add_node(g, &operators[OP_ReLU], x, NULL);
    Value *z = add_node(g, &operators[OP_ReLUBackward], y, x), *w = add_node(g, &operators[OP_Add], z, y);
    Value *known = is_last ? z : x;
    known->shape = (Shape){.rank = 2, .extent = {EXTENT(2), EXTENT(0)}};
    assert_true(graph_infer(g, &d));
    assert_all_known(g);
    assert_int_equal(extent_value(w->shape.extent[0]), 2);
    diagnostics_deinit(&d);
    graph_free(g);
  }
}

static void each_mistake_is_told_once_and_hides_no_other(void **state) {
  (void)state;
  Graph *g = graph_new(&system_allocator, "test");
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Value *x = add_value(g, true, 1), *y = add_value(g, true, 1), *unknown = add_value(g, true, -1);
  x->shape.extent[0] = EXTENT(3);
  y->shape.extent[0] = EXTENT(4);
  Value *wrong = add_node(g, &operators[OP_ReLUBackward], x, y); // told
  add_node(g, &operators[OP_ReLU], wrong, NULL);                 // nothing is known of it
  Value *right = add_node(g, &operators[OP_ReLUBackward], unknown, x);
  add_node(g, &operators[OP_Add], right, y); // told
  assert_false(graph_infer(g, &d));
  assert_int_equal(d.nerrors, 2);
  assert_int_equal(extent_value(unknown->shape.extent[0]), 3);
  diagnostics_deinit(&d);
  graph_free(g);
}

static void too_many_elements_are_told(void **state) {
  (void)state;
  Graph *g = graph_new(&system_allocator, "test");
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Value *x = add_value(g, true, 2), *y = add_value(g, true, 2);
  x->shape = (Shape){.rank = 2, .extent = {EXTENT((int64_t)1 << 24), EXTENT(1)}};
  y->shape = (Shape){.rank = 2, .extent = {EXTENT(1), EXTENT((int64_t)1 << 23)}};
  add_node(g, &operators[OP_Add], x, y);
  assert_false(graph_infer(g, &d));
  assert_int_equal(d.nerrors, 1);
  assert_string_equal(d.items[0].message, "made: too many elements, expected fewer than 2^47");
  diagnostics_deinit(&d);
  graph_free(g);
}

static void flat_parameters_of_too_many_elements_are_told_as_such(void **state) {
  (void)state;
  Graphlet t;
  graphlet_init(&t,
                &(Row){"LayerNorm", "begin_norm_axis=0", "f32[16777216,8388608] f32[5] f32[5] > ?? f32[] f32[]", NULL});
  assert_false(graph_infer(t.graph, &t.diagnostics));
  assert_int_equal(t.diagnostics.nerrors, 2);
  assert_string_equal(t.diagnostics.items[0].message, "src: too many elements, expected fewer than 2^47");
  assert_string_equal(t.diagnostics.items[1].message, "dst: too many elements, expected fewer than 2^47");
  graphlet_deinit(&t);
}

static void bound_dims_are_inferred_as_numbers(void **state) {
  (void)state;
  Graphlet t;
  graphlet_init(&t, &(Row){"Add", "", "f32[N,1] f32[_] > ??", NULL});
  assert_true(graph_infer(t.graph, &t.diagnostics));
  assert_text(&t, "f32[N,1] f32[_] > f32[N,_]");
  assert_true(graph_bind_dims(t.graph, &t.diagnostics));
  t.graph->values[1]->shape.extent[0] = EXTENT(1); // as data tells
  assert_true(graph_infer(t.graph, &t.diagnostics));
  assert_text(&t, "f32[4,1] f32[1] > f32[4,1]");
  graphlet_deinit(&t);
}

// What inference costs, in calls of operators' infer functions.

enum { MANY = 100000 };
static size_t nsteps;
static Operator counting; // ReLUBackward, counting

static bool counting_infer(Inference *inf, Node *node) {
  nsteps++;
  return operators[OP_ReLUBackward].infer(inf, node);
}

static Graph *counting_graph(void) {
  counting = operators[OP_ReLUBackward];
  counting.infer = counting_infer;
  nsteps = 0;
  Graph *g = graph_new(&system_allocator, "test");
  assert_non_null(g);
  return g;
}

// A node is looked at once, and again when something new is known of one of its three operands: type, rank, extents.
static void must_take_steps(Graph *g, size_t most_changes) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  assert_true(graph_infer(g, &d));
  assert_all_known(g);
  assert_true(nsteps <= g->nnodes * (1 + 3 * most_changes));
  nsteps = 0;
  assert_true(graph_infers_nothing_new(g, &d));
  assert_int_equal(nsteps, g->nnodes);
  diagnostics_deinit(&d);
  graph_free(g);
}

// v0 -> v1 -> ...; only the first or the last value's shape is known.
static void a_chain_is_inferred_in_linear_time(void **state) {
  (void)state;
  for (int is_last = 0; is_last < 2; is_last++) {
    Graph *g = counting_graph();
    Value *first = add_value(g, true, -1), *v = first;
    for (int i = 0; i < MANY; i++) v = add_node(g, &counting, v, v);
    *(is_last ? &v->shape : &first->shape) = (Shape){.rank = 2, .extent = {EXTENT(4), EXTENT(8)}};
    must_take_steps(g, 1);
  }
}

// A chain through nodes that each have two of its values as inputs, written in an order that goes to and fro.
static void a_zigzag_is_inferred_in_linear_time(void **state) {
  (void)state;
  Graph *g = counting_graph();
  Value **v = ARENA_ARRAY(&g->arena, Value *, MANY + 1);
  for (int i = 0; i <= MANY; i++) v[i] = add_value(g, true, -1);
  for (int i = 0; i < MANY; i++) {
    int at = i % 2 ? MANY - i : i; // the even ones upwards, the odd ones downwards
    add_node(g, &counting, v[at], v[at + 1]);
  }
  v[MANY]->shape = (Shape){.rank = 1, .extent = {EXTENT(4)}};
  must_take_steps(g, 2);
}

// Eight extents, each known in another place of a chain: every value learns eight times.
static void extents_that_come_one_by_one_are_inferred_in_linear_time(void **state) {
  (void)state;
  Graph *g = counting_graph();
  Value **v = ARENA_ARRAY(&g->arena, Value *, MANY + 1);
  for (int i = 0; i <= MANY; i++) v[i] = add_value(g, true, MAX_RANK);
  for (int i = 0; i < MANY; i++) add_node(g, &counting, v[i], v[i + 1]);
  for (int axis = 0; axis < MAX_RANK; axis++) v[(size_t)axis * (MANY / 7)]->shape.extent[axis] = EXTENT(2);
  must_take_steps(g, MAX_RANK + 2);
}

static void a_value_of_many_users_is_inferred_in_linear_time(void **state) {
  (void)state;
  Graph *g = counting_graph();
  Value *v = add_value(g, true, MAX_RANK), *other[MANY / 1000];
  for (int i = 0; i < MANY; i++) {
    Value *beside = add_value(g, true, MAX_RANK);
    add_node(g, &counting, v, beside);
    if (i % 1000 == 999) other[i / 1000] = beside;
  }
  for (int axis = 0; axis < MAX_RANK; axis++) other[99 - 12 * axis]->shape.extent[axis] = EXTENT(2);
  must_take_steps(g, MAX_RANK + 2);
}

static void inference_without_memory_is_an_error(void **state) {
  (void)state;
  bool is_done = false;
  for (size_t n = 0; !is_done; n++) {
    FailingAllocator memory;
    Diagnostics d;
    failing_allocator_init(&memory, NEVER_FAIL);
    diagnostics_init(&d, &memory.allocator);
    Graph *g = graph_new(&memory.allocator, "test");
    Value *v = add_value(g, true, 1), *wrong = add_value(g, true, 1);
    v->shape.extent[0] = EXTENT(3);
    wrong->shape.extent[0] = EXTENT(4);
    add_node(g, &operators[OP_Add], v, wrong); // a message takes memory too
    for (int i = 0; i < 600; i++) v = add_node(g, &operators[OP_ReLU], v, NULL);
    memory.failing = memory.ncalls + n;
    assert_false(graph_infer(g, &d));
    is_done = memory.ncalls <= memory.failing;
    assert_int_equal(d.out_of_memory, !is_done);
    assert_true(d.out_of_memory || d.nerrors == 1);
    diagnostics_deinit(&d);
    graph_free(g);
    assert_int_equal(memory.nlive, 0);
    assert_true(n < 100);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_operator_infers_what_follows),
      cmocka_unit_test(each_operator_and_name_has_rows),
      cmocka_unit_test(what_is_not_inferred_is_found_and_left_as_it_is),
      cmocka_unit_test(one_unknown_extent_follows_from_the_others),
      cmocka_unit_test(one_unknown_shape_follows_from_the_others),
      cmocka_unit_test(a_contradiction_names_both_tensors_and_the_axis),
      cmocka_unit_test(ranks_of_intermediates_come_from_either_side),
      cmocka_unit_test(each_mistake_is_told_once_and_hides_no_other),
      cmocka_unit_test(too_many_elements_are_told),
      cmocka_unit_test(flat_parameters_of_too_many_elements_are_told_as_such),
      cmocka_unit_test(bound_dims_are_inferred_as_numbers),
      cmocka_unit_test(a_chain_is_inferred_in_linear_time),
      cmocka_unit_test(a_zigzag_is_inferred_in_linear_time),
      cmocka_unit_test(extents_that_come_one_by_one_are_inferred_in_linear_time),
      cmocka_unit_test(a_value_of_many_users_is_inferred_in_linear_time),
      cmocka_unit_test(inference_without_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
