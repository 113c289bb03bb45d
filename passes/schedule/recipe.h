// The internal interface of the files that build loop trees. (Passes over finished trees are in tree_passes.h.)
#ifndef NGRAD_PASSES_SCHEDULE_RECIPE_H
#define NGRAD_PASSES_SCHEDULE_RECIPE_H

#include "ir/kernel/needed.h"
#include "ir/kernel/nest.h"
#include "ir/loops/loops.h"
#include "passes/costs/costs.h"
#include "passes/schedule/tree.h"

// Where an expression is computed; the innermost axis that it varies over decides. A row is an outer iteration.
typedef enum Level {
  LEVEL_CALL,   // varies over no axis of the loop
  LEVEL_ROW,    // over outer axes only
  LEVEL_MIDDLE, // over inner axes, but not the innermost
  LEVEL_VECTOR  // over the innermost axis, along which vectors lie
} Level;

enum { ALL_SWEEPS = -1 };

typedef struct Recipe {
  TreeBuilder b;
  LoopNode **rows; // the link to the loop that open_rows added
  LoopTree *t;
  const Schedule *schedule;
  const Kernel *k; // the schedule's
  const Loop *loop;
  uint32_t loop_index;
  const Wants *wants;
  int *section;           // by ExprId: the first sweep before which the expression can be computed
  int sweep;              // the sweep that is_needed describes, or ALL_SWEEPS
  bool *is_needed;        // by ExprId: for the sweep or section being built
  bool is_tail;           // the step being built is the tail: rows in lanes, but fewer than LANES
  bool is_partial_tested; // the nodes being built are guarded by a test of FLAG_HAS_PARTIAL
  Nest nest;              // of the loop; while a sweep is built, with the sweep's runs
  Runs runs;              // of the sweep being built
} Recipe;

// levels.c: which expressions a sweep needs, and at which level. need_* set or extend is_needed.

const Root *roots_end(const Recipe *r); // after the loop's last root
int vector_axis(const Recipe *r);
AxisSet middle_axes(const Recipe *r);
bool has_rows(const Recipe *r);                    // a step computes several rows
bool varies_by_row(const Recipe *r, AxisSet axes); // a value over these axes differs between a step's rows
AxisSet shared_axes(const Recipe *r);              // outer axes whose index is the same in all rows of a step
bool is_of_row(const Recipe *r, AxisSet axes);     // and a step has several
bool is_row_pointer(const Recipe *r, AccessId id); // each row of a step has its own pointer
Level expr_level(const Recipe *r, ExprId id);
Level root_level(const Recipe *r, const Root *root);
// Places: a number of levels of the nest. What is at a place is inside of that many levels.
int place_of(const Recipe *r, AxisSet axes); // just inside of the innermost level over these axes
int root_place(const Recipe *r, const Root *root);
bool is_root_at(const Recipe *r, const Root *root, int at); // and in the loops of the sweep being built
bool has_body(const Recipe *r, int at);                     // what is at this place are vectors
bool is_lanewise(const Recipe *r, ExprId id);               // its value is a vector
bool is_row_sum(const Recipe *r, ExprId id);                // an inner reduction of the loop
bool is_reloaded(const Recipe *r, ExprId id);               // an earlier sweep spilled it
bool is_spilled(const Recipe *r, ExprId id);                // this sweep spills it
ExprOp root_reduction(const Recipe *r, const Root *root);
ExprId root_operand(const Recipe *r, const Root *root);
bool is_widened_sum(const Recipe *r, const Root *root);         // f32 operands are added to an f64 partial sum
bool is_array_sum(const Recipe *r, const Root *root);           // an outer reduction whose partial sums are an array
bool is_in_sweep(const Recipe *r, const Root *root, int sweep); // in the sweep's loops, not before or after them
// The values that the current sweep loads or has: sums of sweeps up to this sweep, and vectors that earlier sweeps
// spilled.
Available available_values(const Recipe *r);
void need_expr(Recipe *r, ExprId id);
void need_none(Recipe *r);
void need_root(Recipe *r, const Root *root);
void need_sweep(Recipe *r, int sweep);
void need_all(Recipe *r);
bool is_made(const Recipe *r, ExprId id); // needed, and computed by a NODE_LET or NODE_COMBINE
void find_sections(Recipe *r);

// addresses.c

const Index *number(Recipe *r, int64_t n);
const Index *var(Recipe *r, VarKind kind, uint32_t of);
const Index *lane_index(Recipe *r); // lane 0's index on the innermost axis
const Index *axes_nelems_index(Recipe *r, AxisSet axes);
const Index *block_length(Recipe *r);
const Index *ncut_blocks(Recipe *r, uint32_t loop);
// Arithmetic of indices; x may be NULL, which means 0, in a sum and a difference.
const Index *plus(Recipe *r, const Index *x, const Index *y);
const Index *minus(Recipe *r, const Index *x, const Index *y);
const Index *times(Recipe *r, const Index *x, const Index *y);
const Index *least(Recipe *r, const Index *x, const Index *y);
// before + the sum of index * stride over these axes. `before` and the result may be NULL, which means 0.
const Index *add_terms(Recipe *r, const Access *a, AxisSet axes, const Index *before);
const Index *stride_of(Recipe *r, const Access *a, int axis);
Address vector_address(Recipe *r, AccessId id); // of lane 0, relative to the row pointer
Address lanes_address(Recipe *r, AccessId id, Level level);
Address element_address(Recipe *r, AccessId id, AxisSet axes);
// Sets the node's conditions on the bounds of the access that it loads.
void add_bounds(Recipe *r, LoopNode *load, const Access *a);
bool is_transposed(const Recipe *r, AccessId id);   // rows in lanes: rows are copied, transposed
bool is_column(const Recipe *r, AccessId id);       // rows in lanes: columns are copied
bool is_optional(const Recipe *r, AccessId id);     // an output for which the caller may pass NULL
bool may_be_unwanted(const Recipe *r, AccessId id); // partial sums that only optional outputs need
Flag partial_flag(const Recipe *r, AccessId id);    // that guards an update of partial sums

// values.c: nodes for values and stores.

LoopNode *add(Recipe *r, LoopNode node);
void open_body(Recipe *r, LoopNode *node);
void close_body(Recipe *r);
// Adds a loop, and opens its body.
LoopNode *open_for(Recipe *r, VarKind kind, const Index *from, const Index *to, const Index *step);
void open_rows(Recipe *r);
void close_rows(Recipe *r); // removes the loop if it is empty
void make_scalar(Recipe *r, ExprId id, AxisSet axes);
void make_vector(Recipe *r, ExprId id);
void store_scalar(Recipe *r, const Root *root);
void store_vector(Recipe *r, const Root *root);
bool open_wanted(Recipe *r, AccessId id); // opens a test of FLAG_WANTED if the output is optional; false: it is not

// pointers.c: row pointers. Loops whose inner axes have no elements have none.

bool has_vectors(const Recipe *r); // the inner axes have elements
// Whether an expression of this level has a row pointer for its access: the access varies over the vector axis, or, in
// a product, over a step's rows and middle axes.
bool has_row_pointer(const Recipe *r, Level level, AccessId access);
// Calls f(r, access, is_written) for each access with a row pointer.
void for_each_pointer(Recipe *r, void (*f)(Recipe *, AccessId, bool));
void declare_pointer(Recipe *r, AccessId id, bool is_written);
void set_pointer(Recipe *r, AccessId id, bool is_written);

// rows_in_lanes.c

void copy_rows(Recipe *r, AccessId id, bool is_written); // declares the array of the copy, and loads rows into it
void store_rows(Recipe *r);                              // stores the sweep's results from copies
void copy_into_panel(Recipe *r);                         // Loop.copies_rows: all that the loop does

// sums.c: sums over inner axes, in the sweep being built. `at`: those that begin and end at this place.

bool has_lane_sums(const Recipe *r); // the sweep adds vectors to sums
Runs sweep_runs(const Recipe *r);    // no runs: the sweep has no sums that need short chains
void begin_sums(Recipe *r, int at);
void end_sums(Recipe *r, int at);
void begin_runs(Recipe *r); // of all sums of vectors
void end_runs(Recipe *r);   // adds the sums of the runs to totals

// body.c, build_nest.c

void build_body(Recipe *r, int at);
void build_sweep(Recipe *r, int sweep);

// step_function.c, block.c

void build_step(Recipe *r, LoopNode **step);
void build_block(Recipe *r);

// sections.c

// The outer axes that nodes use, and whose index is the same in a step's rows.
AxisSet mentioned_shared_axes(Recipe *r);
// Computes the indices on these outer axes from the flattened outer index. by_row: in a loop over the step's rows.
void find_indices(Recipe *r, AxisSet axes, bool by_row);
// In a loop over the step's rows: computes the indices, on the axes of rows, that the conditions of needed loads test.
void find_bounded_indices(Recipe *r);
void build_section(Recipe *r, int section);

#endif
