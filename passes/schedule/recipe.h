// The internal interface of the files that build loop trees: recipes, and the functions that recipes call. (Passes over
// finished trees are in tree_passes.h.)
#ifndef NGRAD_PASSES_SCHEDULE_RECIPE_H
#define NGRAD_PASSES_SCHEDULE_RECIPE_H

#include "ir/kernel/needed.h"
#include "ir/loops/loops.h"
#include "passes/schedule/tree.h"

// Where an expression is computed; the innermost axis that it varies over decides. A row is an outer iteration.
typedef enum Level {
  LEVEL_CALL,   // varies over no axis of the loop
  LEVEL_ROW,    // over outer axes only
  LEVEL_MIDDLE, // over inner axes, but not the innermost
  LEVEL_VECTOR  // over the innermost axis, along which vectors lie
} Level;

enum { ALL_SWEEPS = -1 };

typedef struct Recipe Recipe;

typedef struct SweepRuns {        // how a sweep's sums along the vector axis are cut into runs (loop_runs)
  bool has_sums;                  // the sweep has sums along the vector axis
  bool has_totals;                // these sums are cut into runs
  int64_t vector_run, middle_run; // as in Runs
  bool is_open;
} SweepRuns;

// A recipe builds the tree of one kind of loop. Its functions add nodes to the open list.
typedef struct RecipeInfo {
  const char *name;
  bool (*suits)(const Loop *loop);
  // Add the initialisation and the final reduction of sums over all inner axes, before and after a sweep's loops. NULL:
  // no nodes.
  void (*begin_sums)(Recipe *r, int sweep, const SweepRuns *runs);
  void (*build_loops)(Recipe *r, int sweep, const SweepRuns *runs); // loops over the inner axes
  void (*end_sums)(Recipe *r, int sweep, const SweepRuns *runs);
  // Add nodes before and after the loop over vectors, in each iteration of the last middle axis. NULL: no nodes.
  void (*begin_iteration)(Recipe *r, int sweep, const SweepRuns *runs);
  void (*end_iteration)(Recipe *r, int sweep, const SweepRuns *runs);
  void (*build_steps)(Recipe *r); // the block's calls of the step function
  bool rows_in_lanes;             // a vector has a lane for each row
  bool is_tile;                   // a step computes the elements of the vector axis from begin to end
} RecipeInfo;
extern const RecipeInfo recipe_rows, recipe_tiles, recipe_lanes, recipe_nested, recipe_middle, recipe_scatter;

struct Recipe {
  const RecipeInfo *info;
  TreeBuilder b;
  LoopNode **rows; // the link to the loop that open_rows added
  LoopTree *t;
  const Schedule *schedule;
  const Kernel *k; // the schedule's
  const Loop *loop;
  uint32_t loop_index;
  const Wants *wants;
  uint32_t *nuses;               // by ExprId: uses in a sweep; for fuse_products.c only
  int *section;                  // by ExprId: the first sweep before which the expression can be computed
  int sweep;                     // the sweep that is_needed describes, or ALL_SWEEPS
  bool *is_needed;               // by ExprId: for the sweep or section being built
  const Index *lane;             // lane 0's index on the innermost axis
  AccumulatorChoice accumulator; // the accumulator that sums are added to
  bool is_tail;                  // the step being built is the tail: rows in lanes, but fewer than LANES
  bool is_partial_tested;        // the nodes being built are guarded by a test of FLAG_HAS_PARTIAL
};

// levels.c: which expressions a sweep needs, and at which level. need_* set or extend is_needed.

int vector_axis(const Recipe *r);
AxisSet middle_axes(const Recipe *r);
bool has_rows(const Recipe *r);                            // a step computes several rows
bool varies_by_row(const Recipe *r, AxisSet axes);         // a value over these axes differs between a step's rows
AxisSet shared_axes(const Recipe *r);                      // outer axes whose index is the same in all rows of a step
bool is_row_pointer(const Recipe *r, AccessId id);         // each row of a step has its own pointer
Level level_of(const Recipe *r, AxisSet axes, int *depth); // *depth: the position of the innermost of the inner axes
Level expr_level(const Recipe *r, ExprId id);
Level root_level(const Recipe *r, const Root *root);
bool is_lanewise(const Recipe *r, ExprId id); // its value is a vector
bool is_row_sum(const Recipe *r, ExprId id);  // an inner reduction of the loop
bool is_reloaded(const Recipe *r, ExprId id); // an earlier sweep spilled it
bool is_spilled(const Recipe *r, ExprId id);  // this sweep spills it
ExprOp root_reduction(const Recipe *r, const Root *root);
ExprId root_operand(const Recipe *r, const Root *root);
bool is_widened_sum(const Recipe *r, const Root *root);         // f32 operands are added to an f64 partial sum
bool is_array_sum(const Recipe *r, const Root *root);           // an outer reduction whose partial sums are an array
bool is_vector_sum(const Recipe *r, const Root *root);          // an inner reduction over the vector axis
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
// Sets the interior of a loop over a middle axis: the iterations in which all bounds hold. Only if the rows of each
// step are all indices of the axes cut into blocks, so that the rows' indices in the conditions are constants.
void find_interior(Recipe *r, LoopNode *loop);
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
void copy_rows(Recipe *r, AccessId id, bool is_written); // rows in lanes: the array of the copy, and loads into it

// vector_loop.c: the loop over vectors.

void update_vector(Recipe *r, const Root *root);
void build_vector_root(Recipe *r, const Root *root); // stores the vector, or adds it to its sum
void move_array_sums(Recipe *r, int sweep, LoopNodeKind kind);
void build_body(Recipe *r, int sweep);
void build_vector_loop(Recipe *r, int sweep, const Index *from, const Index *to, bool has_sums);

// row_sums.c: initialisation and final reduction of a row's sums, and of runs of them.

bool is_exact_in_f32(const Recipe *r, ExprId id); // a maximum; however many operands, it needs no runs
SweepRuns sweep_runs(const Recipe *r, int sweep);
void for_each_sum(Recipe *r, int sweep, void (*f)(Recipe *, ExprId)); // over the vector axis
void begin_sum(Recipe *r, ExprId id, SumPlace sum, int count);
void begin_accumulator(Recipe *r, ExprId id);
void begin_total(Recipe *r, ExprId id);
void begin_run(Recipe *r, ExprId id);
void end_run(Recipe *r, ExprId id);
// RecipeInfo.begin_sums and end_sums for sums over the vector axis.
void begin_sums(Recipe *r, int sweep, const SweepRuns *runs);
void end_sums(Recipe *r, int sweep, const SweepRuns *runs);

// recipe_rows.c: functions that other recipes use, too.

void build_row_loops(Recipe *r, int sweep, const SweepRuns *runs);
void build_row_steps(Recipe *r);
// Computes the scalars whose innermost middle axis is at this depth. With time == sweep: scalars known before the loop
// over vectors. With time == sweep + 1: scalars that depend on the nested sums of that loop.
void make_middle(Recipe *r, int sweep, int depth, int time);

// sweeps.c

void build_sweep(Recipe *r, int sweep);

// step_function.c, block.c

void build_step(Recipe *r, LoopNode **step);
void build_block(Recipe *r);
// Opens a loop over the `count` elements of the block's partial sums in this access; the caller closes its body.
void open_partial_sums(Recipe *r, AccessId id, const Index *count, Flag flag);
void begin_steps(Recipe *r); // declares the counter of outer iterations
// Adds a loop that calls the step for `rows` outer iterations at a time, while at least that many are left.
// columns_end: the end of a step's part of the vector axis. NULL: a step takes the whole axis.
void add_steps(Recipe *r, int rows, const Index *columns_end);

// sections.c

AxisSet mentioned_axes(Recipe *r, int section); // outer axes whose indices the section's nodes use
AxisSet mentioned_shared_axes(Recipe *r);       // of all sections, those whose index is the same in a step's rows
// Computes the indices on these outer axes from the flattened outer index. by_row: in a loop over the step's rows.
void find_indices(Recipe *r, AxisSet axes, bool by_row);
// In a loop over the step's rows: computes the indices, on the axes of rows, that the conditions of needed loads test.
void find_bounded_indices(Recipe *r);
void build_section(Recipe *r, int section);

#endif
