// Schedules: how a kernel is computed, as a list of loops.
//
// Scheduling (passes/schedule/schedule.h) decides which axes are outer, which reductions finish inside an outer
// iteration and which only after a whole loop, and in which temporaries values stay between loops. It adds expressions
// to the kernel (loads of temporaries, EXPR_COMBINE), but does not change what the kernel computes: the root that
// stores a result has the value of the kernel's store, computed from what earlier loops left.
//
// Functions of loops take the kernel alone where they need its axes and expressions only.
#ifndef NGRAD_IR_KERNEL_SCHEDULE_H
#define NGRAD_IR_KERNEL_SCHEDULE_H

#include "ir/kernel/kernel.h"

typedef struct Temporary { // memory of a kernel between its loops
  const char *name;
  Type type;
  int64_t nelems;
  size_t offset;     // in the workspace, in bytes; not set with open dims
  ExprOp reduction;  // of the partial results that it holds, one for each block; EXPR_NONE: it holds values
  uint32_t loop;     // whose blocks leave the partial results
  Monomial monomial; // of nelems; of one block's part when it holds partial results
  bool is_own;       // only the outer iteration that writes it reads it: it is local to a step, not in the workspace
  bool is_lasting;   // in a visit: stored by lasting loops, it keeps its elements from slice to slice
  bool is_made;      // a schedule that this one follows has stored its elements; `offset` is the same there
} Temporary;

// What a loop computes for others. The list is sorted by sweep.
typedef enum RootKind {
  ROOT_STORE,        // store access <- expr
  ROOT_REDUCE_INNER, // finish the reduction `expr` over inner axes. Readable from sweep + 1 on; a nested reduction over
                     // the vector axis, after each iteration of the middle axes
  ROOT_REDUCE_OUTER  // add `expr` to the block's partial result in `access`
} RootKind;

typedef struct Root {
  RootKind kind;
  int sweep;
  ExprId expr;
  AccessId access;       // ROOT_STORE; ROOT_REDUCE_OUTER: the temporary, with strides along inner axes only
  bool is_streamed;      // ROOT_STORE: the stores bypass the caches
  int64_t stream_nelems; // with is_streamed: only when the access has more elements than this; 0: at all sizes
  bool is_fused;         // ROOT_REDUCE_*: a sum of products, each added by a fused multiply-add
} Root;

typedef struct Spill { // a vector that a sweep saves in a step's local memory; later sweeps load it
  ExprId expr;
  int sweep; // the first that computes it
} Spill;
enum { MOST_SPILLS = 2 };

// Additions in a chain of f32 before its sum is added to a total in f64. The remainder of a row may add a few more.
enum { LONGEST_RUN = 24 };

// How sums are split into short chains of f32. A sweep's additions go in runs; the sum of each run is added to a total.
// At most one of vector_run, middle_run and is_open is set; if none is, each sum is one chain.
typedef struct Runs {
  int64_t vector_run; // elements of the vector axis in a run
  int64_t middle_run; // iterations in a run, of the middle axis at `depth`
  int depth;          // the axis's position among the inner axes; the axes inside of it are summed whole in each run
  bool is_open;       // a call computes middle_run from its extents, so that a run has at most LONGEST_RUN additions
  bool is_f32;        // totals are in f32, not in f64: sums of products, whose runs are longer (LONGEST_CHAIN)
} Runs;

// A loop nest. The outer axes are flattened and cut into blocks, which run in parallel and in any order. Each outer
// iteration makes `nsweeps` sweeps over the inner axes. The last inner axis is the vector axis, cut into vectors of
// LANES; the other inner axes are the middle axes.
typedef struct Loop {
  // The order of additions, on which the bits of results depend. kernel_order sets it, without knowing the target.
  int order[MAX_AXES]; // outer axes, slowest first, then inner axes
  int nouter, ninner;
  // The first `nfree` outer axes are free: outer reductions do not reduce them, and no block spans two of their
  // indices. The other outer axes are cut into blocks of `block` iterations.
  int nfree;
  int64_t block;
  // When few_work is not 0, open dims choose the block: few_block iterations if the cut and the inner axes have at most
  // few_work elements together, many_block if they have more.
  int64_t few_work, few_block, many_block;
  int64_t most_chunks; // when not 0: blocks grow so that loop_nchunks is at most this, and partial sums are in f64
  int64_t tile;        // when not 0: no axis is outer, and the one inner axis is cut into tiles of this many elements
  bool rows_in_lanes;  // the last outer axis lies across lanes, LANES iterations a vector; the inner axis is serial
  bool copies_rows;    // with rows_in_lanes: copies a tensor whose rows are dense into panels along the last outer axis
  bool is_nested;      // inner reductions are nested: over the vector axis, then over the middle axes
  bool sums_middle;    // inner reductions are over the middle axes, for each vector along the last axis, in registers
  // With sums_middle: the sum is of products of an operand that does not vary over the vector axis and one that does,
  // but does not vary over the axes that are cut into blocks: a matrix product for each index on the free axes.
  bool is_product;
  // The sum is of products of operands over the vector axis, one of which does not vary over the axes that are cut into
  // blocks. A step may take all indices of these axes, or of the innermost ones, as rows.
  bool is_depthwise;
  bool is_scatter;  // with sums_middle: the kernel is a scatter (ir/kernel/scatter.h); each sum is one chain
  int accumulators; // partial sums of a lane in an inner reduction over the vector axis
  Runs runs;
  bool is_side;        // makes temporaries for main loops, or results that do not vary over all axes
  bool is_lasting;     // in a visit: computes the same for all slices along the last level, and runs for the first only
  bool is_made;        // does not run, as its temporaries are made (Temporary.is_made)
  bool may_share_rows; // a step may take several outer iterations: each sum has one accumulator, and no scalar varies
                       // over middle axes
  int dense_axis;      // main loops: the axis along which most accessed elements are adjacent in memory

  // What schedule_tune chooses for a target.
  bool is_serial;      // one thread runs all blocks
  int64_t serial_work; // when not 0: one thread does so if the axes have at most this many elements (open dims)
  int rows;            // outer iterations in a step
  int vectors;         // sums_middle: vectors of results that are summed together; else 0
  int64_t columns;     // elements of the vector axis in a step; 0: all
  int prefetch;        // outer iterations: the last sweep prefetches this far ahead; 0: no prefetching. is_product:
                       // indices of the innermost free axis, along which the vector factor is read through windows
  int ahead;           // elements along the vector axis: each sweep prefetches this far ahead, at the end of a run from
                       // the next middle iteration; less than the axis's literal extent; 0: no prefetching. is_product:
                       // the same middle iteration of the vector factor, also beyond the end of its row
  bool fetches_rows;   // is_product: each step prefetches the next one's rows, which are contiguous
  int iterations_ahead; // iterations of the last middle axis: each sweep prefetches this far ahead; 0: no prefetching
  bool is_peeled;    // the sweep that streams stores scalars or a part of a vector up to the first cache line of a row
  bool is_backwards; // the last sweep goes backwards over the middle axes, to start with data still in the caches
  Spill spills[MOST_SPILLS];
  int nspills;

  int nsweeps; // at least 1; roots that vary over outer axes only come after their sweep
  Root *roots; // sorted by sweep
  size_t nroots, roots_capacity;
} Loop;

typedef struct Schedule {
  Kernel *kernel; // in whose arena the schedule is; kernel->out_of_memory is the schedule's, too
  Temporary *temporaries;
  size_t ntemporaries, temporaries_capacity;
  Loop *loops; // in the order in which they run
  size_t nloops, loops_capacity;
  // In a program: runs right behind the schedule before it, which is of another piece of the same results. It may store
  // to places that the other has stored to, and read its temporaries.
  bool follows;
} Schedule;

// Building. NULL, 0 or false: out of memory, with kernel->out_of_memory set.
Schedule *schedule_new(Kernel *k);
uint32_t schedule_add_temporary(Schedule *s, const char *name, Type type, int64_t nelems);
Loop *schedule_add_loop(Schedule *s);
bool loop_add_root(Kernel *k, Loop *loop, Root root);
void loop_sort_roots(Loop *loop); // by sweep
bool loop_has_roots(const Loop *loop, RootKind kind);
// Both loops add in the same order: the fields that kernel_order sets are equal. Without outer reductions, blocks of
// any length do.
bool loop_has_same_order(const Loop *a, const Loop *b);

// Sets is_lasting of the loops and temporaries of a kernel in a visit. False: out of memory.
bool schedule_find_lasting(Schedule *s);

AxisSet root_axes(const Kernel *k, const Root *root); // axes of the expression; of a store, also those of the access

AxisSet loop_outer_axes(const Loop *loop);
AxisSet loop_inner_axes(const Loop *loop);
AxisSet loop_cut_axes(const Loop *loop); // the axes that are cut into blocks or tiles
int loop_vector_axis(const Loop *loop);  // the innermost axis; -1: there is none
int loop_lane_axis(const Loop *loop);    // the axis that lies across lanes; -1: there is none
// The innermost of the axes that are cut into blocks, if the rows of each step are all of their indices; 0: they are
// not.
AxisSet loop_row_axes(const Kernel *k, const Loop *loop);
// Whether the rows of a product's factor follow each other in memory without gaps, also from step to step.
bool loop_has_contiguous_rows(const Kernel *k, const Loop *loop, AccessId id);
// The innermost middle axis that is no tap of the access's windows, if all taps are inside of it and the innermost free
// axis moves these windows; -1: there is none.
int loop_axis_outside_windows(const Kernel *k, const Loop *loop, AccessId id);
int64_t loop_row_nelems(const Kernel *k, const Loop *loop); // of a row in whole vectors, with one inner axis

// Blocks, at the hints of open dims. The blocks of a loop are loop_nchunks for each index of the free axes.
int64_t loop_block_length(const Kernel *k, const Loop *loop); // iterations in a block, or elements in a tile
int64_t loop_nchunks(const Kernel *k, const Loop *loop);
int64_t loop_nblocks(const Kernel *k, const Loop *loop);
bool loop_has_open_length(const Kernel *k, const Loop *loop); // loop_block_length depends on open dims
bool loop_has_open_chunks(const Kernel *k, const Loop *loop); // loop_nchunks depends on open dims
// Two blocks may store halves of the same byte, of a packed type. They do not if a block's elements are contiguous,
// begin at a whole byte and are an even number.
bool loop_shares_bytes(const Kernel *k, const Loop *loop, const Access *a);
bool loop_is_idle(const Kernel *k, const Loop *loop); // has no iterations, stores no elements, or is_made

// Bytes of a tensor or temporary in memory; of a result, the part that is stored; 0 for local memory of a step. In a
// visit, those of a slice.
int64_t access_tensor_nbytes(const Schedule *s, AccessId id);

// Prints a loop's order in words, "over d0 4096 in 47 blocks of 88; inside d1 768", and what a sweep does, "store y,
// sum sum_g". Both without a line end.
void loop_print_order(const Kernel *k, const Loop *loop, Text *out);
void loop_print_sweep(const Schedule *s, const Loop *loop, int sweep, Text *out);
// All loops with the order of their additions and their sweeps, one item a line.
void schedule_print(const Schedule *s, Text *out);

#endif
