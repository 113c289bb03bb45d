// Schedules: the list of loops that computes a kernel.
//
// Scheduling (passes/schedule/order/order.h) decides which axes are outer, which reductions finish inside an outer
// iteration and which only after a whole loop, and which temporaries hold values between loops. It first rewrites the
// kernel: splits axes, and sums into sums of sums. Then it adds expressions (loads of temporaries, EXPR_COMBINE). The
// root that stores a result computes the value of the rewritten kernel's store, from temporaries of earlier loops where
// there are any.
//
// Functions on loops take a Kernel, not a Schedule, if they need only axes and expressions.
#ifndef NGRAD_IR_KERNEL_SCHEDULE_H
#define NGRAD_IR_KERNEL_SCHEDULE_H

#include "ir/kernel/sum_order.h"

typedef struct Temporary { // memory that carries values between a kernel's loops
  const char *name;
  Type type;
  int64_t nelems;
  size_t offset;     // in the workspace, in bytes; unset with open dims
  ExprOp reduction;  // the temporary holds partial results of this reduction, one for each block; EXPR_NONE: it holds
                     // values
  uint32_t loop;     // the loop whose blocks store the partial results
  Monomial monomial; // of nelems; with partial results, of the part of one block
  bool is_own;       // a local array of a micro-kernel: the outer iteration that writes an element alone reads it
  bool is_invariant; // in a slice group: invariant loops store the temporary, and later slices read the same elements
  bool is_reused;    // an earlier schedule that this one follows stores the elements, at the same `offset`
} Temporary;

// A result of a loop: a store, or a reduction. A loop's roots are sorted by sweep.
typedef enum RootKind {
  ROOT_STORE,        // store expr to access
  ROOT_REDUCE_INNER, // finish the reduction `expr` over inner axes. Readable from sweep + 1 on; a nested reduction over
                     // the vector axis is readable after each iteration of the middle axes
  ROOT_REDUCE_OUTER  // combine `expr` into the block's partial result in `access`
} RootKind;

typedef struct Root {
  RootKind kind;
  int sweep;
  ExprId expr;
  AccessId access;       // ROOT_STORE: the result; ROOT_REDUCE_OUTER: the temporary, with strides along inner axes only
  bool is_streamed;      // ROOT_STORE: stores bypass the caches
  int64_t stream_nelems; // with is_streamed: stores bypass the caches only if the access has more elements; 0: always
  const SumOrder *order; // ROOT_REDUCE_*: the order of additions, which kernel_order decides; else NULL
} Root;

typedef struct Spill { // a vector that a sweep stores in a local array of the micro-kernel; later sweeps load it
  ExprId expr;
  int sweep; // the sweep that computes and spills the vector
} Spill;
enum { MOST_SPILLS = 2, SCALAR_ROW_NBYTES = 768 }; // what rows may take of the 2 kB of a function's stack in scalar C

// The levels of loop nests. loop_nest (ir/kernel/nest.h) adds factors and segments. Levels from LOOP_MIDDLE on are
// inside of a micro-kernel.
typedef enum LoopLevel {
  LOOP_END,       // after the last level
  LOOP_BATCH,     // the batch axes: each index has blocks of its own
  LOOP_CUT,       // the other outer axes, or the axis of a tiled loop: cut into blocks or tiles
  LOOP_COLUMNS,   // products: the vector axis is cut into the columns of a micro-kernel. One factor does not vary over
                  // this axis, and the other not over the cut axes: a matrix product for each index on the batch axes
  LOOP_ROWS,      // the iterations of a block: `rows` of them in a micro-kernel
  LOOP_TAPS,      // depthwise sums: likewise, but the rows of a micro-kernel may be all indices of the innermost axes.
                  // Both factors vary over the vector axis, and one of them not over the cut axes
  LOOP_ROW_LANES, // the iterations of a block, on the last outer axis: each lane computes a row
  LOOP_MIDDLE,    // the middle axes: one index after the other
  LOOP_LANES,     // the vector axis: vectors of LANES indices
  LOOP_ROW_ELEMENTS, // the vector axis, if rows are in lanes: one index after the other
  LOOP_ROW_COPY      // likewise, but the only root copies dense rows into panels along the last outer axis
} LoopLevel;

// A loop nest. The outer axes are flattened and cut into blocks, which run in parallel and in any order. Each outer
// iteration makes `nsweeps` sweeps: passes over all indices of the inner axes. The last inner axis is the vector axis,
// cut into vectors of LANES; the other inner axes are the middle axes. A loop with one inner axis and no outer axes, or
// free ones only, is tiled: the inner axis is cut into tiles, which run as blocks do. Then outer reductions reduce the
// inner axis, and may reduce the last of the batch axes, too.
typedef struct Loop {
  // kernel_order sets the fields from here to dense_axis, independent of the target
  // (but schedule_find_invariants sets is_invariant, and schedule_reuse_copies is_made). They imply the orders of the
  // roots (loop_sum_order).
  int axes[MAX_AXES]; // outer axes, slowest first, then inner axes
  int nouter, ninner;
  // The first `nbatch` outer axes are free: outer reductions do not reduce them, and a block has one index on them. The
  // other outer axes are cut into blocks.
  int nbatch;
  // Of the iterations on the cut axes into blocks, or of the axis's elements into tiles. With outer reductions, equal
  // to the cut of their first levels. Else blocks decide no bits, and schedule_tune may change their length.
  Cut cut;
  // From the outermost to the innermost, then LOOP_END: a table of passes/schedule/order/nests.c.
  const LoopLevel *levels;
  bool is_producer;  // computes temporaries for main loops, or results that do not vary over all axes
  bool is_invariant; // in a slice group: the loop computes the same for all slices along the last level, and runs only
                     // for the first of these
  bool is_reused;    // does not run, as another schedule makes its temporaries (Temporary.is_reused)
  bool may_share_rows; // a micro-kernel may compute several outer iterations, as each sum has one accumulator, and no
                       // scalar varies over middle axes
  int dense_axis;      // main loops: the axis along which most accessed elements are adjacent in memory

  // The fields from here to nspills do not affect results. schedule_tune chooses them for a target.
  bool is_serial;      // a single thread runs all blocks
  int64_t serial_work; // if not 0, with open dims: a single thread runs all blocks if the axes have at most this many
                       // elements
  int rows;            // outer iterations in a micro-kernel
  int vectors;         // with sums in lanes: vectors of results that a micro-kernel sums together; else 0
  int64_t columns;     // elements of the vector axis in a micro-kernel; 0: all
  int prefetch; // prefetch distance in outer iterations, of which each sweep prefetches some tensors; 0: none. In
                // products: in indices of the innermost batch axis, along which windows read the vector factor
  int ahead;    // prefetch distance of each sweep along the vector axis, in elements; near the end of a row, the sweep
                // prefetches from the next middle iteration. Less than the axis's literal extent; 0: no prefetching.
  // In products: prefetches the vector factor in the same middle iteration, even beyond the end of its row
  bool fetches_rows;    // in products: each micro-kernel prefetches the next one's rows, which are contiguous
  int iterations_ahead; // prefetch distance of each sweep, in iterations of the last middle axis; 0: no prefetching
  bool is_peeled;       // the last sweep stores a row's elements before its first cache line separately, so that its
                        // vectors are aligned
  int by_element; // not 0: each loop over vectors goes over elements instead, so many together, for the least code. A
                  // sum over lanes has its accumulators in memory
  bool is_backwards; // the last sweep goes backwards over the middle axes, and so begins with data that is still in the
                     // caches
  Spill spills[MOST_SPILLS];
  int nspills;

  int nsweeps; // at least 1; a root that varies over outer axes only is computed after its sweep
  Root *roots; // sorted by sweep
  size_t nroots, roots_capacity;
} Loop;

// How a reduction of the rewritten kernel is taken: over inner axes, over outer axes, or over first the one, then the
// other.
typedef struct ScheduledSum {
  ExprId sum;        // as the kernel's stores use it
  uint32_t loop;     // index of the loop
  ExprId inner;      // of the root that reduces inner axes; 0: there is none
  AccessId partials; // of the root that reduces outer axes; 0: there is none
} ScheduledSum;

typedef struct Schedule {
  Kernel *kernel; // owns the arena; kernel->out_of_memory also covers the schedule
  Temporary *temporaries;
  size_t ntemporaries, temporaries_capacity;
  Loop *loops; // in the order of execution
  size_t nloops, loops_capacity;
  ScheduledSum *sums; // of main loops; a sum that several loops compute stands here several times
  size_t nsums, sums_capacity;
  // In a program: runs directly after the previous schedule, which computes another piece of the same results. It may
  // overwrite elements that the other has stored, and read its temporaries.
  bool follows;
  const char *shown; // the schedule as a pass over kernels left it (schedule_print); NULL: as it is now
} Schedule;

// Building. NULL, 0 or false: out of memory, with kernel->out_of_memory set.
Schedule *schedule_new(Kernel *k);
uint32_t schedule_add_temporary(Schedule *s, const char *name, Type type, int64_t nelems);
Loop *schedule_add_loop(Schedule *s);
bool schedule_add_sum(Schedule *s, ScheduledSum sum);
bool loop_add_root(Kernel *k, Loop *loop, Root root);
void loop_sort_roots(Loop *loop); // by sweep
bool loop_has_roots(const Loop *loop, RootKind kind);
const Root *loop_root(const Loop *loop, RootKind kind, AccessId id); // through the access; NULL: there is none
bool loop_has_partial_arrays(const Kernel *k, const Loop *loop);     // partial sums of a block are arrays
// Sums over the vector axis end in each iteration of the middle axes, where sums over these add them up.
bool loop_has_nested_sums(const Kernel *k, const Loop *loop);

// Sets is_invariant of loops and temporaries, for a kernel in a slice group. False: out of memory.
bool schedule_find_invariants(Schedule *s);

AxisSet root_axes(const Kernel *k, const Root *root);   // of the expression; for a store, also of the access
ExprId root_operand(const Kernel *k, const Root *root); // what it stores or adds up
// Each iteration of the inner axes stores it or adds to it; else the value is the same for all of them, and is stored
// or added after the sweep.
bool root_is_in_sweep(const Kernel *k, const Loop *loop, const Root *root);

bool loop_has(const Loop *loop, LoopLevel level);
// Inner sums are sums of products with a factor that does not vary over the cut axes: it is the same in all rows of a
// micro-kernel (LOOP_COLUMNS, LOOP_TAPS).
bool loop_shares_factors(const Loop *loop);
// Rows are in lanes, and their elements are adjacent in memory; else columns are, with lanes along adjacent elements.
bool loop_sums_rows(const Loop *loop);
// Lanes are outside of the middle axes: inner reductions go over these only, and sum vectors of results in registers.
bool loop_sums_in_lanes(const Loop *loop);
AxisSet loop_outer_axes(const Loop *loop);
AxisSet loop_inner_axes(const Loop *loop);
AxisSet loop_middle_axes(const Loop *loop);
AxisSet loop_cut_axes(const Loop *loop); // the axes that are cut into blocks or tiles
bool loop_is_tiled(const Loop *loop);
int64_t loop_tile(const Loop *loop);    // elements of a tile; 0: the loop is not tiled
int loop_vector_axis(const Loop *loop); // the innermost axis; -1: there is none
int loop_lane_axis(const Loop *loop);   // the axis that lanes lie along; -1: there is none
// The innermost axes among those cut into blocks, if the rows of each micro-kernel are all indices of these axes; else
// 0.
AxisSet loop_row_axes(const Kernel *k, const Loop *loop);
// Whether the rows of a product's factor are contiguous in memory, within a micro-kernel and from one micro-kernel to
// the next.
bool loop_has_contiguous_rows(const Kernel *k, const Loop *loop, AccessId id);
// The innermost middle axis that is not a tap axis of the access's windows, if all tap axes are inside of it and the
// innermost batch axis moves these windows; -1: there is none.
int loop_axis_outside_windows(const Kernel *k, const Loop *loop, AccessId id);
int64_t loop_row_nelems(const Kernel *k, const Loop *loop); // in whole vectors; with one inner axis

// Blocks, at the hints of open dims. A loop has loop_ncut_blocks blocks for each index on the batch axes.
int64_t loop_block_length(const Kernel *k, const Loop *loop); // iterations in a block, or elements in a tile
int64_t loop_ncut_blocks(const Kernel *k, const Loop *loop);
int64_t loop_nblocks(const Kernel *k, const Loop *loop);
// The partial results that EXPR_COMBINE reduces for each index on its axes: of the blocks on the loop's other free
// axes, without the factor of open cut blocks.
int64_t loop_ncombined(const Kernel *k, const Loop *loop, const Expr *combine);
bool loop_has_open_length(const Kernel *k, const Loop *loop);     // loop_block_length depends on open dims
bool loop_has_open_cut_blocks(const Kernel *k, const Loop *loop); // loop_ncut_blocks depends on open dims
// Whether two blocks may store halves of the same byte of a packed type. They do not if the elements of each block are
// contiguous, begin at a whole byte and are an even number.
bool loop_shares_bytes(const Kernel *k, const Loop *loop, const Access *a);
bool loop_is_idle(const Kernel *k, const Loop *loop); // has no iterations, stores no elements, or is_reused

// The order in which the loop takes a reduction, apart from is_fused. kernel_order makes Root.order of it, and the
// verifier compares them. adds_segments: the operands of an inner sum are sums of a long sum's segments, which are
// added in f64.
SumOrder loop_sum_order(const Schedule *s, const Loop *loop, const Root *root, bool adds_segments);
Segments loop_segments(const Loop *loop); // of the loop's inner sums that have some, which is the same for all of them

// How the reduction of the kernel is taken, for kernel_reference (ir/kernel/reference.h). False: a loop has another
// root by now than kernel_order gave it.
struct Summation;
bool schedule_summation(const Schedule *s, const ScheduledSum *sum, struct Summation *out);

// Bytes of a tensor or temporary in memory, or of the stored part of a result; 0 for a micro-kernel's local array. In a
// slice group, bytes of one slice.
int64_t access_tensor_nbytes(const Schedule *s, AccessId id);

// Print a loop's order in words, "over d0 4096 in 47 blocks of 88; inside d1 768", and the roots of a sweep, "store y,
// sum sum_g". Both print no newline.
void loop_print_order(const Kernel *k, const Loop *loop, Text *out);
void loop_print_sweep(const Schedule *s, const Loop *loop, int sweep, Text *out);
// Prints all loops, each with its order and sweeps, one item a line; before there are loops, the kernel's axes and
// reductions.
void schedule_print(const Schedule *s, Text *out);

#endif
