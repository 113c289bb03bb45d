// Rows of tests of inference: for each operator, what follows in both directions, and the messages on contradictions.
//
// A row is one node: its operands before inference, and after it, or the message. An operand is a type and a shape,
// such as f32[N,_,3]; ? is an unknown type or shape; ~ an absent operand; > stands before the outputs.
#ifndef NGRAD_TESTS_UNIT_INFER_ROWS_H
#define NGRAD_TESTS_UNIT_INFER_ROWS_H

typedef struct InferRow {
  const char *op;
  const char *attributes; // "epsilon=1 data_format=NCX"
  const char *before, *after;
} InferRow;

// Operators whose operands all have the same shape and type.
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
// Operators that broadcast two operands of the same type.
#define BINARY_ROWS(op)                                                                                                \
  {op, "", "bf16[4,1] ?[1,8] > ??", "bf16[4,1] bf16[1,8] > bf16[4,8]"},                                                \
      {op, "", "f32[4] f32[3] > ??",                                                                                   \
       op ": src_0 [4] and src_1 [3] do not broadcast: extents 4 and 3 on axis 1 from the right"},                     \
      {op, "", "f32[4] f16[4] > ??", op ": src_0 is f32 and src_1 is f16: expected one type"}, {                       \
    op, "auto_broadcast=none", "f32[1] f32[8] > ??",                                                                   \
        op ": axis 0 of src_0 [1] and axis 0 of src_1 [8]: expected the same extent"                                   \
  }

#define COMPARISON_ROWS(op)                                                                                            \
  {op, "", "s32[4,1] ?[1,8] > ??", "s32[4,1] s32[1,8] > boolean[4,8]"}, {                                              \
    op, "", "boolean[4] boolean[4] > ??",                                                                              \
        op ": src_0: expected type f64, f32, f16, bf16, s64, s32, s8, u8, s16, u16, u32 or u64, found boolean"         \
  }
#define LOGIC_ROWS(op)                                                                                                 \
  {op, "", "?[4,1] ?[1,8] > ??", "boolean[4,1] boolean[1,8] > boolean[4,8]"}, {                                        \
    op, "", "f32[4] ?[4] > ??", op ": src_0: expected type boolean, found f32"                                         \
  }

static const InferRow infer_rows[] = {
#include "tests/unit/infer_rows/contraction.def"
#include "tests/unit/infer_rows/elementwise.def"
#include "tests/unit/infer_rows/movement.def"
#include "tests/unit/infer_rows/norm.def"
#include "tests/unit/infer_rows/optimizer.def"
#include "tests/unit/infer_rows/pool.def"
#include "tests/unit/infer_rows/quantize.def"
#include "tests/unit/infer_rows/reduce.def"
};
enum { NINFER_ROWS = sizeof infer_rows / sizeof *infer_rows };

#endif
