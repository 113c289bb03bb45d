// The order of additions, as data: all that the bits of a reduction depend on, apart from its operands.
//
// A reduction has levels, from the innermost to the outermost. The innermost one combines operands; each other one
// combines the results of the level inside of it. A level deals what it combines to its accumulators in turn. When an
// accumulator has taken `length` operands, or all that there are, its value is a result. Sum over a row of 768
// elements: 24 additions in each of 16 lanes of f32, whose results 16 lanes of f64 take, then the lanes by pairs.
//
// Levels follow from a schedule as kernel_order leaves it (passes/schedule/sum_order.h). schedule_tune keeps them.
#ifndef NGRAD_IR_KERNEL_SUM_ORDER_H
#define NGRAD_IR_KERNEL_SUM_ORDER_H

#include "ir/kernel/schedule.h"

typedef struct SumLevel {
  AxisSet axes;     // the operands come from all indices on these axes; 0: from the accumulators of the level inside
  int64_t length;   // the most operands that an accumulator takes one after the other; 0: any number. In a tiled loop,
                    // elements of a tile, whose sum is one operand
  int accumulators; // of each sum
  Type type;        // of the accumulators
  // With open dims: if the loop's axes have at most few_work elements, `few_length` holds instead of `length`. 0:
  // always `length`.
  int64_t few_work, few_length;
  int64_t most_results; // if not 0: `length` grows until the level has at most this many results
} SumLevel;

enum { MOST_SUM_LEVELS = 3 };

typedef struct SumOrder {
  uint32_t loop; // in schedule->loops
  ExprId expr;   // the reduction; of a reduction over rows, the operand
  ExprOp reduction;
  bool is_fused; // the first level adds unrounded products
  int nlevels;
  SumLevel levels[MOST_SUM_LEVELS];
} SumOrder;

// The orders of all reductions, in the order of loops and roots, in the arena. NULL: out of memory.
SumOrder *schedule_sum_orders(const Schedule *s, Arena *arena, size_t *count);
// Compares arrays, whatever the expressions: tuning may compute an operand in another way.
bool sum_orders_equal(const SumOrder *a, size_t na, const SumOrder *b, size_t nb);

// The most operands that an accumulator of the first level takes, for all values of the open dims; INT64_MAX: any
// number.
int64_t sum_order_chain(const Kernel *k, const SumOrder *o);
// The accumulators of the first level round: they are f32, and the reduction is not a maximum.
bool sum_order_rounds(const Kernel *k, const SumOrder *o);

// Prints, for instance, "over d1 into 16 accumulators of f32, each for 24 operands; then into 16 of f64; then into 1 of
// f64", without a newline.
void sum_order_print(const Kernel *k, const SumOrder *o, Text *out);

#endif
