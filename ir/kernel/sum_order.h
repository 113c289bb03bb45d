// The order of additions, as data. With the rules below, it is all that the bits of a reduction depend on, apart from
// its operands.
//
// A reduction has levels, from the innermost to the outermost. The innermost one combines operands; each other one
// combines the results of the level inside of it. A level deals what it combines to its accumulators in turn. When the
// accumulators have taken `cut` operands, or all that there are, their values are results. Sum over a row of 2000
// elements: 64 additions in each of 16 lanes of f32, the lanes by halves, then the sums of these segments in f64.
//
// Two rules are the same for all reductions. Lanes are added by halves (d_sum, backends/codegen/simd/arithmetic.h).
// Blocks are added in their order.
//
// kernel_order (passes/schedule/order/order.h) decides the order of each reduction, before a target is known, and
// writes it to the reduction's root (Root.order, ir/kernel/schedule.h). Whoever needs a length of a chain, a number of
// accumulators or a type of a sum reads it there.
#ifndef NGRAD_IR_KERNEL_SUM_ORDER_H
#define NGRAD_IR_KERNEL_SUM_ORDER_H

#include "ir/kernel/kernel.h"

// How a number of operands, or of iterations, is cut into parts. All parts but the last have the same length.
typedef struct Cut {
  int64_t length;  // of a part, at least; 0: there is one part
  int64_t most;    // if not 0: parts are longer, by multiples of LANES, if there would be more than this
  int64_t longest; // but not longer than this; 0: any length. A multiple of LANES
} Cut;

// The length of a part of `total` operands. total: at least 0. Requires cut->length.
int64_t cut_length(const Cut *cut, int64_t total);

// Sums that each lane has of its own, as those of products, are cut into chains of f32 additions. A chain goes over
// whole iterations of the innermost axes that together have fewer than 2 * CHAIN operands, and, on the next axis, over
// `chain_iterations` iterations. inside: the operands in one iteration of the axis, 1 to 2 * CHAIN - 1.
enum { CHAIN = 1024, CHAIN_TRIES = 5 };
int64_t chain_iterations(int64_t extent, int64_t inside);
// The most iterations in a chain of at most CHAIN products (times 1), or of fewer than 2 * CHAIN (times 2); at least 1.
int64_t chain_limit(int64_t inside, int times);
// Whether all parts but the last are multiples of n, whatever the values of open dims.
bool cut_is_multiple(const Cut *cut, int64_t n);

typedef struct SumLevel {
  AxisSet axes;     // the operands come from all indices on these axes; 0: from the accumulators of the level inside
  Cut cut;          // the operands of one result of all accumulators together. In a tiled loop, elements of a tile,
                    // whose sum is one operand
  int accumulators; // of each sum
  Type type;        // of the accumulators
} SumLevel;

// The most f32 additions to an accumulator in a segment along the vector axis. The tail of a row may add a few more.
enum { LONGEST_SEGMENT = 64 };

// Segments split a sum over inner axes into short sequences of f32 additions: the sum of each, of all lanes or in each
// lane, is added to an outer accumulator in f64. At most one of `elements` and `iterations` is set; if neither is, and
// the segments are not open, the sum is one segment.
typedef struct Segments {
  int64_t elements;   // of the vector axis in a segment
  int64_t iterations; // of `axis` in a segment, each with all indices of the axes inside of it
  int axis;           // a middle axis
  int64_t inside;     // operands in an iteration of `axis`: indices on the middle axes inside of it
  bool is_open; // emitted code computes `iterations`: index_chain_iterations with sums in lanes. With `elements`: as
                // many as have at most LONGEST_SEGMENT additions, if one iteration has no more
} Segments;

enum { MOST_SUM_LEVELS = 3 };

typedef struct SumOrder {
  ExprOp reduction;
  bool is_fused; // the first level adds unrounded products
  int nlevels;
  SumLevel levels[MOST_SUM_LEVELS];
  Segments segments; // of a sum over inner axes whose first level is cut: where it is cut
} SumOrder;

bool sum_order_equal(const SumOrder *a, const SumOrder *b);

// The operands that each accumulator of the first level takes one after the other, if all take equally many, at most
// for any values of the open dims; INT64_MAX: any number. The first accumulators take more at the ends of rows
// (Segments).
int64_t sum_order_chain(const Kernel *k, const SumOrder *o);
bool sum_order_has_segments(const SumOrder *o); // of an inner sum: whether several, or as many as a call needs

// Prints, for instance, "over d1 into 16 accumulators of f32, each for 64 operands; then into 16 of f64; then into 1 of
// f64", without a newline.
void sum_order_print(const Kernel *k, const SumOrder *o, Text *out);

#endif
