// What the files that build a loop's tree share.
#ifndef NGRAD_PASSES_SCHEDULE_RECIPE_H
#define NGRAD_PASSES_SCHEDULE_RECIPE_H

#include "ir/loops/loops.h"
#include "passes/schedule/tree.h"

// Where an expression is computed, by the axes that it varies over.
typedef enum Level { LEVEL_CALL, LEVEL_ROW, LEVEL_MIDDLE, LEVEL_VECTOR } Level;

enum { ALL_SWEEPS = -1 };

typedef struct Recipe Recipe;

typedef struct SweepRuns { // of the loop's runs, what a sweep has
  bool has_sums, has_totals;
  int64_t vector_run, middle_run;
  bool is_open;
} SweepRuns;

// A way to build a loop's tree. Its functions add nodes where the tree is open.
typedef struct RecipeInfo {
  const char *name;
  bool (*suits)(const Loop *loop);
  // Around the loops of a sweep: the sums over all that these go over.
  void (*begin_sums)(Recipe *r, int sweep, const SweepRuns *runs);
  void (*build_loops)(Recipe *r, int sweep, const SweepRuns *runs); // over the inner axes
  void (*end_sums)(Recipe *r, int sweep, const SweepRuns *runs);
  // Around the loop over vectors in each iteration of the last middle axis; NULL: nothing.
  void (*begin_iteration)(Recipe *r, int sweep, const SweepRuns *runs);
  void (*end_iteration)(Recipe *r, int sweep, const SweepRuns *runs);
  void (*build_steps)(Recipe *r); // of a block
  bool rows_in_lanes;             // values of rows are vectors, a lane a row
  bool is_tile;                   // a step takes the elements of the vector axis from begin to end
} RecipeInfo;
extern const RecipeInfo recipe_rows, recipe_tiles, recipe_lanes, recipe_nested, recipe_middle;

struct Recipe {
  const RecipeInfo *info;
  TreeBuilder b;
  LoopTree *t;
  const Kernel *k;
  const Loop *loop;
  uint32_t loop_index;
  const Wants *wants;
  uint32_t *nuses;               // by ExprId, in a sweep: kernel_fuse_products alone
  int *section;                  // by ExprId: the sweep before which a row's scalar is known
  int sweep;                     // which is needed; ALL_SWEEPS
  bool *is_needed;               // by ExprId: for the sweep or section being built
  const Index *lane;             // index of the vector's first lane
  AccumulatorChoice accumulator; // which of the accumulators
  bool is_tail;                  // of rows in lanes, fewer than lanes are there
  bool is_partial_tested;        // what is built stands under the test of partial sums
};

// uses.c: which expressions a sweep needs, and at which level.

int vector_axis(const Recipe *r);
AxisSet middle_axes(const Recipe *r);
bool has_rows(const Recipe *r);
bool varies_by_row(const Recipe *r, AxisSet axes);
Level level_of(const Recipe *r, AxisSet axes, int *depth); // for LEVEL_MIDDLE *depth is the deepest of its middle axes
Level expr_level(const Recipe *r, ExprId id);
Level root_level(const Recipe *r, const Root *root);
bool is_lanewise(const Recipe *r, ExprId id);
bool is_row_sum(const Recipe *r, ExprId id);
bool is_reloaded(const Recipe *r, ExprId id);
bool is_spilled(const Recipe *r, ExprId id);
ExprOp root_reduction(const Recipe *r, const Root *root);
ExprId root_operand(const Recipe *r, const Root *root);
bool is_widened_sum(const Recipe *r, const Root *root);
bool is_array_sum(const Recipe *r, const Root *root);
bool is_vector_sum(const Recipe *r, const Root *root);
bool is_in_sweep(const Recipe *r, const Root *root, int sweep);
void need_expr(Recipe *r, ExprId id);
void need_none(Recipe *r);
void need_root(Recipe *r, const Root *root);
void need_sweep(Recipe *r, int sweep);
void need_all(Recipe *r);
bool is_made(const Recipe *r, ExprId id); // by a node of its own
void find_sections(Recipe *r);

// addresses.c: where elements lie.

const Index *number(Recipe *r, int64_t n);
const Index *var(Recipe *r, VarKind kind, uint32_t of);
const Index *axes_nelems_index(Recipe *r, AxisSet axes);
const Index *block_length(Recipe *r);
const Index *nchunks(Recipe *r, uint32_t loop);
// The sum of index * stride over those axes that have one, behind `before` (NULL: nothing).
const Index *add_terms(Recipe *r, const Access *a, AxisSet axes, const Index *before);
const Index *stride_of(Recipe *r, const Access *a, int axis);
Address vector_address(Recipe *r, AccessId id); // of lane 0
Address lanes_address(Recipe *r, AccessId id, Level level);
Address element_address(Recipe *r, AccessId id, AxisSet axes);
bool is_transposed(const Recipe *r, AccessId id);
bool is_column(const Recipe *r, AccessId id);
bool is_optional(const Recipe *r, AccessId id);
bool may_be_unwanted(const Recipe *r, AccessId id);
void for_each_pointer(Recipe *r, void (*f)(Recipe *, AccessId, bool));
void declare_pointer(Recipe *r, AccessId id, bool is_written);
void set_pointer(Recipe *r, AccessId id, bool is_written);
void copy_rows(Recipe *r, AccessId id, bool is_written);

// values.c

LoopNode *add(Recipe *r, LoopNode node);
void open_body(Recipe *r, LoopNode *node);
void close_body(Recipe *r);
void open_rows(Recipe *r);
void close_rows(Recipe *r);
void make_scalar(Recipe *r, ExprId id, AxisSet axes);
void make_vector(Recipe *r, ExprId id);
void store_scalar(Recipe *r, const Root *root);
void store_vector(Recipe *r, const Root *root);
Flag partial_flag(const Recipe *r, AccessId id);

// vectors.c

void update_vector(Recipe *r, const Root *root);
void build_body(Recipe *r, int sweep);
void build_vector_loop(Recipe *r, int sweep, const Index *from, const Index *to, bool has_sums);

// sums.c: what begins and ends a row's sums.

bool is_exact_in_f32(const Recipe *r, ExprId id); // the greatest of numbers is one of them: no chain is too long
SweepRuns sweep_runs(const Recipe *r, int sweep);
void for_each_sum(Recipe *r, int sweep, void (*f)(Recipe *, ExprId)); // of vectors
void begin_sum(Recipe *r, ExprId id, SumPlace sum, int count, bool is_f64);
void begin_accumulator(Recipe *r, ExprId id);
void begin_total(Recipe *r, ExprId id);
void begin_run(Recipe *r, ExprId id);
void end_run(Recipe *r, ExprId id);
void end_sums(Recipe *r, int sweep, bool has_totals);

// rows.c: what other recipes share with rows.

void build_row_loops(Recipe *r, int sweep, const SweepRuns *runs);
void build_row_steps(Recipe *r);
void make_middle(Recipe *r, int sweep, int depth, int time); // scalars that vary over middle axes

// sweeps.c

void build_sweep(Recipe *r, int sweep);

// step.c, block.c

void build_step(Recipe *r, LoopNode **step);
void build_block(Recipe *r);
void begin_steps(Recipe *r);         // from the first outer iteration on
void add_steps(Recipe *r, int rows); // as many steps of so many rows as fit a block

// sections.c

AxisSet mentioned_axes(Recipe *r, int section);
void build_section(Recipe *r, int section);

#endif
