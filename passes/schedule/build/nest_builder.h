// The internal interface of the files that build loop trees. (Passes over finished trees are in tree_passes.h.)
#ifndef NGRAD_PASSES_SCHEDULE_BUILD_NEST_BUILDER_H
#define NGRAD_PASSES_SCHEDULE_BUILD_NEST_BUILDER_H

#include "ir/kernel/needed.h"
#include "ir/kernel/nest.h"
#include "ir/loops/loops.h"
#include "passes/costs/costs.h"
#include "passes/schedule/build/tree.h"

// Where an expression is computed; the innermost axis that it varies over decides. A row is an outer iteration.
typedef enum Level {
  LEVEL_CALL,   // varies over no axis of the loop
  LEVEL_ROW,    // over outer axes only
  LEVEL_MIDDLE, // over inner axes, but not the innermost
  LEVEL_VECTOR  // over the innermost axis, along which vectors lie
} Level;

enum { ALL_SWEEPS = -1 };

typedef struct NestBuilder {
  TreeBuilder b;
  LoopNode **rows; // the link to the loop that open_rows added
  LoopTree *t;
  const Schedule *schedule;
  const Kernel *k; // the schedule's
  const Loop *loop;
  uint32_t loop_index;
  const Wants *wants;
  int *ready;             // by ExprId: the first sweep before which the expression can be computed
  bool *is_of_row;        // by ExprId: it, or what it is computed from, has a value for each row of the micro-kernel
  int sweep;              // the sweep that is_needed describes, or ALL_SWEEPS
  bool *is_needed;        // by ExprId: for the sweep or hoisted code being built
  bool is_tail;           // the micro-kernel being built is the tail: rows in lanes, but fewer than LANES
  bool is_partial_tested; // a test guards the nodes being built: the block has partial sums
  Nest nest;              // of the loop; while a sweep is built, with the sweep's segments
  Segments segments;      // of the sums of the sweep being built
} NestBuilder;

// levels.c: which expressions a sweep needs, and at which level. need_* set or extend is_needed.

const Root *roots_end(const NestBuilder *r); // after the loop's last root
int vector_axis(const NestBuilder *r);
bool has_rows(const NestBuilder *r);                    // a micro-kernel computes several rows
bool peels_rows(const NestBuilder *r);                  // the sweep being built stores rows from cache lines on
bool varies_by_row(const NestBuilder *r, AxisSet axes); // a value over these axes differs between a micro-kernel's rows
AxisSet shared_axes(const NestBuilder *r); // outer axes whose index is the same in all rows of a micro-kernel
bool is_row_pointer(const NestBuilder *r, AccessId id); // each row of a micro-kernel has its own pointer
Level expr_level(const NestBuilder *r, ExprId id);
Level root_level(const NestBuilder *r, const Root *root);
// Depths: what is at depth n of the nest is inside of its first n levels.
int depth_of(const NestBuilder *r, AxisSet axes); // just inside of the innermost level over these axes
int root_depth(const NestBuilder *r, const Root *root);
bool is_root_at(const NestBuilder *r, const Root *root, int depth); // and in the loops of the sweep being built
bool has_body(const NestBuilder *r, int depth);                     // what is at this depth are vectors
bool is_lanewise(const NestBuilder *r, ExprId id);                  // its value is a vector
bool is_row_sum(const NestBuilder *r, ExprId id);                   // an inner reduction of the loop
bool is_reloaded(const NestBuilder *r, ExprId id);                  // an earlier sweep spilled it
bool is_spilled(const NestBuilder *r, ExprId id);                   // this sweep spills it
bool is_array_sum(const NestBuilder *r, const Root *root); // an outer reduction whose partial sums are an array
bool is_in_sweep(const NestBuilder *r, const Root *root, int sweep); // in the sweep's loops, not before or after them
void need_expr(NestBuilder *r, ExprId id);
void need_none(NestBuilder *r);
void need_root(NestBuilder *r, const Root *root);
void need_sweep(NestBuilder *r, int sweep);
bool is_emitted(const NestBuilder *r, ExprId id); // needed, and computed by a NODE_LET
void find_ready(NestBuilder *r);

// addresses.c

const Index *number(NestBuilder *r, int64_t n);
const Index *var(NestBuilder *r, VarKind kind, uint32_t of);
const Index *lane_index(NestBuilder *r); // lane 0's index on the innermost axis
const Index *axes_nelems_index(NestBuilder *r, AxisSet axes);
const Index *block_length(NestBuilder *r);
const Index *ncut_blocks(NestBuilder *r, uint32_t loop);
// Arithmetic of indices; x may be NULL, which means 0, in a sum and a difference.
const Index *plus(NestBuilder *r, const Index *x, const Index *y);
const Index *minus(NestBuilder *r, const Index *x, const Index *y);
const Index *times(NestBuilder *r, const Index *x, const Index *y);
const Index *least(NestBuilder *r, const Index *x, const Index *y);
// before + the sum of index * stride over these axes. `before` and the result may be NULL, which means 0.
const Index *add_terms(NestBuilder *r, const Access *a, AxisSet axes, const Index *before);
const Index *stride_of(NestBuilder *r, const Access *a, int axis);
Address vector_address(NestBuilder *r, AccessId id); // of lane 0, relative to the row pointer
Address lanes_address(NestBuilder *r, AccessId id, Level level);
Address element_address(NestBuilder *r, AccessId id, AxisSet axes);
// Sets the node's conditions on the bounds of the access that it loads.
void add_bounds(NestBuilder *r, LoopNode *load, const Access *a);
bool is_transposed(const NestBuilder *r, AccessId id);       // rows in lanes: rows are copied, transposed
bool copies_columns(const NestBuilder *r, AccessId id);      // rows in lanes: columns are copied
bool is_optional(const NestBuilder *r, AccessId id);         // an output for which the caller may pass NULL
bool may_be_unwanted(const NestBuilder *r, AccessId id);     // partial sums that only optional outputs need
const Index *exists(NestBuilder *r, AccessId id);            // its tensor or temporary has memory in this call
const Index *all_partials_test(NestBuilder *r, AccessId id); // the temporary of all blocks has memory
const Index *partial_test(NestBuilder *r, AccessId id);      // that guards an update of partial sums; NULL: none

// values.c: nodes for values and stores.

LoopNode *add(NestBuilder *r, LoopNode node);
void set(NestBuilder *r, Var var, const Index *value);
void open_body(NestBuilder *r, LoopNode *node);
LoopNode *open_if(NestBuilder *r, const Index *test); // NULL: a scope
void close_body(NestBuilder *r);
// Adds a loop, and opens its body.
LoopNode *open_for(NestBuilder *r, VarKind kind, const Index *from, const Index *to, const Index *step);
void open_rows(NestBuilder *r);
void close_rows(NestBuilder *r); // removes the loop if it is empty
void make_scalar(NestBuilder *r, ExprId id, AxisSet axes);
void make_vector(NestBuilder *r, ExprId id);
void store_scalar(NestBuilder *r, const Root *root);
void store_vector(NestBuilder *r, const Root *root);
void declare_wanted(NestBuilder *r, AccessId id); // sets VAR_WANTED if the output is optional
bool open_wanted(NestBuilder *r,
                 AccessId id); // opens a test of VAR_WANTED if the output is optional; false: it is not

// pointers.c: row pointers. Loops whose inner axes have no elements have none.

bool has_vectors(const NestBuilder *r); // the inner axes have elements
// Whether an expression of this level has a row pointer for its access: the access varies over the vector axis, or, in
// a product, over a micro-kernel's rows and middle axes.
bool has_row_pointer(const NestBuilder *r, Level level, AccessId access);
// Calls f(r, access, is_written) for each access with a row pointer.
void for_each_pointer(NestBuilder *r, void (*f)(NestBuilder *, AccessId, bool));
void declare_pointer(NestBuilder *r, AccessId id, bool is_written);
void set_pointer(NestBuilder *r, AccessId id, bool is_written);

// rows_in_lanes.c

void copy_rows(NestBuilder *r, AccessId id, bool is_written); // declares the array of the copy, and loads rows into it
void store_rows(NestBuilder *r);                              // stores the sweep's results from copies
void copy_into_panel(NestBuilder *r);                         // LOOP_ROW_COPY: all that the loop does

// sums.c: sums over inner axes, in the sweep being built. Those that begin and end at this depth.

bool has_lane_sums(const NestBuilder *r);      // the sweep adds vectors to sums
Segments sweep_segments(const NestBuilder *r); // none: the sweep has no sums that are cut
void begin_sums(NestBuilder *r, int depth);
void end_sums(NestBuilder *r, int depth);
void begin_segments(NestBuilder *r); // of all sums of vectors
void end_segments(NestBuilder *r);   // adds the sums of the segments to totals

// segment_lengths.c

// What loop_sum_order computes of literal extents, for an open innermost extent (Segments.is_open). VAR_CHAIN: the
// additions to the accumulator in an iteration of the middle axes, of `width` elements of the vector axis.
// VAR_RUN_LENGTH: the iterations in a segment, if VAR_CHAIN is at most LONGEST_SEGMENT.
const Index *index_chain(TreeBuilder *b, const Index *width);
const Index *index_run_length(TreeBuilder *b);
// chain_iterations of an open extent; at least 1.
const Index *index_chain_iterations(TreeBuilder *b, const Index *extent, int64_t inside);

// body.c, build_nest.c

void build_body(NestBuilder *r, int depth);
void build_sweep(NestBuilder *r, int sweep);

// micro_kernel.c, block.c

void build_micro_kernel(NestBuilder *r, LoopNode **nodes);
void build_block(NestBuilder *r);

// hoisted.c

// The outer axes that nodes use, and whose index is the same in a micro-kernel's rows.
AxisSet mentioned_shared_axes(NestBuilder *r);
// Computes the indices on these outer axes from the flattened outer index. by_row: in a loop over the micro-kernel's
// rows.
void find_indices(NestBuilder *r, AxisSet axes, bool by_row);
// In a loop over the micro-kernel's rows: computes the indices, on the axes of rows, that the conditions of needed
// loads test.
void find_bounded_indices(NestBuilder *r);
void build_hoisted(NestBuilder *r, int before);

#endif
