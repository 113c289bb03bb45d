// Shared by the files that verify loop trees: the state of the walk, that is, the facts that hold at the current node.
#ifndef NGRAD_IR_LOOPS_VERIFYING_H
#define NGRAD_IR_LOOPS_VERIFYING_H

#include "ir/loops/linear.h"

// Directions: each inner axis, and OUTER, the flattened outer axes. NO_DIRECTION has a range, in which no node is.
enum { OUTER = MAX_AXES, NDIRECTIONS, NO_DIRECTION = NDIRECTIONS, UNKNOWN_DIRECTION = -1 };
typedef uint32_t Directions; // bit i: direction i

enum { MOST_FRAMES = MOST_NESTED + 1 };

typedef struct VarState {
  bool is_set;
  const Index *value; // the value of a constant; NULL: the variable belongs to a loop or counter, or is a parameter
} VarState;

enum { WIDTH_ROWS = -1, WIDTH_LANES = -2, WIDTH_UNKNOWN = -3 }; // VAR_ROWS; VAR_LANES; VAR_LANES is not set yet

typedef struct Pieces { // the pieces that cover a range, or the branches of a condition; all have the same effects
  const bool *before, *first; // by effect: had happened before the pieces; after the first piece. NULL: no piece yet
} Pieces;

typedef struct Range {    // the indices of a direction, and the piece that the node is in
  bool is_counted;        // a counter is declared; each loop or condition that advances it covers a piece
  bool is_piece;          // the node is inside a piece
  const Index *from, *to; // all indices of the direction
  int64_t divisor;        // a divisor of from and to
  Var start;              // the piece's first index, or the counter; VAR_NONE: VAR_VECTOR_LANE is not set yet
  Var group;              // first index of the group that the vector is in; VAR_NONE: not in a group
  int64_t width;          // of the piece, in indices, or WIDTH_*
  bool is_aligned;        // pieces begin at multiples of LANES
  // With a counter:
  const Index *end;     // end of the row or run that the counter goes over
  bool is_left;         // indices may be left
  int64_t left_below;   // fewer indices than this are left; INT64_MAX: unknown
  int64_t rest;         // either this many indices are left, or none; -1: not known
  int64_t end_divisor;  // a divisor of end
  int depth, nguards;   // loops and conditions around the counter
  AccessId line_access; // 1 + the access whose rows are peeled to cache lines; 0: none
  bool must_advance;    // the counter must advance over the peeled elements next
  // With a counter, or parts:
  Pieces pieces;
  bool is_parted; // a loop has gone over the first indices of an axis or run, and the next node goes over a next part
  const Index *begin, *length; // of the run; length NULL: of the axis
  int64_t reached;             // the end of the last part
} Range;

typedef struct Piece { // what the body of a loop or condition covers
  int direction;       // UNKNOWN_DIRECTION: of a loop over runs, until the loop over a run's indices
  Range range;         // of the direction, in the body
  Pieces *pieces;      // of the counter; NULL: the piece is the only one
} Piece;

typedef struct Frame { // a loop around the node, or a condition that is a piece
  const LoopNode *node;
  int direction;
  uint32_t serial; // a number that no other visited loop has
} Frame;

typedef struct Guard { // a condition around the node; FLAG_NONE: a test of variables
  Flag flag;
  AccessId access;
} Guard;

typedef enum Chain { CHAIN_UNKNOWN, CHAIN_LONG, CHAIN_SHORT } Chain; // by a test of VAR_CHAIN > LONGEST_RUN

typedef struct Made { // by expression
  bool is_made;       // the value is in scope
  bool is_declared;   // its LOCAL_SCALARS is in scope
} Made;

typedef struct Memory { // by access
  bool has_pointer, is_pointer_row, has_pointer_array, has_copy, is_copied, is_in_register, has_partials;
  bool is_wanted_found, is_streamed_found;
  bool is_peeled;       // rows are peeled, so that streamed stores begin at cache lines
  bool is_step_local;   // LOCAL_TEMPORARY
  bool may_be_null;     // partial sums that only unwanted outputs may need
  const LoopNode *load; // NODE_LOAD_PARTIAL
  Linear *pointer;      // index of the element that the row pointer points to

  uint32_t copy_serial; // of the loop that filled the transposed copy
} Memory;

typedef struct Accumulators { // since a NODE_BEGIN_SUM
  bool is_there;              // in scope
  bool is_open;               // the run, or the sum, has not ended
  const LoopNode *node;       // the NODE_BEGIN_SUM
  int depth;                  // number of loops around it
} Accumulators;

typedef struct Combination { // by expression that combines partial sums, since its NODE_BEGIN_SUM
  Accumulators total;
  int nguards;  // number of conditions around it
  bool is_done; // the partial sums of all blocks are added
} Combination;

typedef struct SumState {  // by root
  Accumulators own, total; // total: that runs are added to
  bool is_ever_done;       // a NODE_END_SUM has been seen
} SumState;

typedef struct SpillState { // by spilled vector
  bool is_declared;
  int64_t nelems;
  Linear *address;
  uint32_t serial; // of the loop that spills it
} SpillState;

// An effect must happen exactly once. Each root has two effects, each spilled vector one, the call of the step one.
typedef enum Effect {
  EFFECT_DONE,     // the store; the update of a sum
  EFFECT_PREPARED, // a store to the transposed copy; the run of a sum; the initialisation of partial sums
  NEFFECTS
} Effect;

typedef struct Verifying Verifying;
typedef struct Scoped { // a declaration, in scope to the end of its list of nodes
  bool *is_in_scope;
  const bool *is_open; // must be unset at the end of the scope, else the message is `what`; NULL: nothing to check
  const LoopNode *node;
  const char *what;
} Scoped;

struct Verifying {
  const LoopTree *t;
  const Kernel *k;
  const Loop *loop;
  Text *why;
  Arena *arena;
  TreeBuilder b;        // builds the expected indices, which nodes are compared with
  const char *function; // name of the function being verified: "step"
  int vector;           // the innermost axis; NO_DIRECTION: none
  int lanes;            // the direction along which lanes lie: `vector`, or OUTER for rows in lanes
  AxisSet outer, inner;
  const Root **root_of_access; // the store, or the partial sums, of the loop; NULL: no root
  VarState *vars;
  Made *made;
  Memory *memory;
  SumState *sums;
  Combination *combinations;
  SpillState *spilled;
  bool *done; // by effect: it has happened
  Scoped *scoped;
  size_t nscoped, scoped_capacity;
  Range range[NO_DIRECTION + 1]; // by direction
  Frame frames[MOST_FRAMES];
  int nframes;
  uint32_t nserials;
  Guard guards[MOST_FRAMES];
  int nguards;
  Chain chain;
  bool is_block, has_streams;
};

// The files, from the lowest to the highest: a file calls only files above it in this list, and verify.c calls all.

// verify_state.c: messages, scopes, effects, variables and indices.

bool verify_fail(Verifying *v, const LoopNode *n, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool verify_fail_expr(Verifying *v, const LoopNode *n, ExprId id, const char *what);
// Whether the indices are equal; if not, the message is "WHAT is INDEX, expected INDEX". NULL: no index.
bool verify_equal(Verifying *v, const LoopNode *n, const char *what, const Index *found, const Index *expected);
bool verify_out_of_memory(Verifying *v);         // false
bool scope_add(Verifying *v, bool *is_in_scope); // sets it now, and unsets it at the end of the list of nodes
bool scope_end(Verifying *v, bool *is_in_scope); // only unsets it
bool scope_add_open(Verifying *v, bool *is_in_scope, bool *is_open, const LoopNode *n, const char *what);
bool scope_close(Verifying *v, size_t nscoped); // closes all but the first `nscoped` declarations
const Root *root_of(const Verifying *v, AccessId id);
SumState *sum_of(const Verifying *v, const Root *root);
size_t effect_of(const Verifying *v, const Root *root, Effect effect);
size_t effect_of_spill(const Verifying *v, int spill);
size_t effect_of_step(const Verifying *v);
bool effects_clear(Verifying *v);
bool effect_do(Verifying *v, const LoopNode *n, size_t effect); // false: the effect has happened before
bool effect_fail(Verifying *v, const LoopNode *n, size_t effect, const char *what);
bool effects_begin(Verifying *v, Pieces *p);
bool effects_begin_piece(Verifying *v, const LoopNode *n, const Pieces *p); // resets the effects of the first piece
bool effects_end_piece(Verifying *v, const LoopNode *n, Pieces *p);
// Whether the effects since effects_begin are all of this access.
bool effects_are_of(Verifying *v, const LoopNode *n, const Pieces *p, AccessId access);
size_t vars_count(const Kernel *k);
VarState *var_state(const Verifying *v, Var var);
bool var_set(Verifying *v, const LoopNode *n, Var var, const Index *value); // declares the variable
bool verify_index(Verifying *v, const LoopNode *n, const Index *i); // all its variables are in scope; NULL: true
Linear linear_of(const Verifying *v, const Index *i);               // in terms of indices on axes
const Index *number_index(Verifying *v, int64_t number);
const Index *nelems_index(Verifying *v, AxisSet axes);
const Index *var_index(Verifying *v, VarKind kind);
const Index *least_index(Verifying *v, const Index *x, const Index *y);

// verify_ranges.c: the loops and conditions around a node.

const char *direction_name(const Verifying *v, int direction);
const Frame *frame_find(const Verifying *v, VarKind kind); // the loop around the node over this variable; NULL: none
bool is_in_frame(const Verifying *v, uint32_t serial);
bool is_in_row(const Verifying *v);       // in a loop over the rows of a step
bool has_fewer_lanes(const Verifying *v); // only VAR_LANES lanes hold elements at this node
bool is_guarded(const Verifying *v, Flag flag, AccessId access);
bool verify_flag(Verifying *v, const LoopNode *n); // the node's flag is computed before it, or the node has none
// Whether the loops around the node, except the outermost `since`, cover exactly these directions.
bool verify_goes_over(Verifying *v, const LoopNode *n, int since, Directions directions, bool is_vector);
Directions directions_of(const Verifying *v, AxisSet axes); // the inner axes among them; OUTER, unless steps take tiles
AxisSet shared_axes_of(const Verifying *v);                 // outer axes on which all rows of a step have one index
// Whether the node is inside a loop over each of the axes, or computes a lane or row of the axis.
bool verify_has_axes(Verifying *v, const LoopNode *n, AxisSet axes, bool is_vector);
Frame *runs_find(Verifying *v, const Index *begin); // the loop over runs that begin at this index; NULL: none
bool verify_runs(Verifying *v, const LoopNode *n, const Frame *runs, const Range *r);

// verify_addresses.c

Linear access_index(const Verifying *v, AccessId id, AxisSet axes);
bool verify_base(Verifying *v, const LoopNode *n, Linear *base); // sets the index that the base points to
bool verify_address(Verifying *v, const LoopNode *n, AccessId id, const Linear *expected);
bool verify_access(Verifying *v, const LoopNode *n, AccessId id);
bool are_blocks_aligned(const Loop *loop); // every block begins at a multiple of LANES iterations
bool is_at_panel(const Verifying *v, const Access *a);
bool verify_lane_step(Verifying *v, const LoopNode *n, AccessId id); // `step` is the stride from lane to lane
bool verify_fewer_lanes(Verifying *v, const LoopNode *n); // has_fewer_lanes is unset, or only some lanes hold elements
// Whether the node uses exactly the lanes that hold elements. Spilled vectors and vectors of panels are always whole.
bool verify_lanes(Verifying *v, const LoopNode *n);
bool verify_copied(Verifying *v, const LoopNode *n, AccessId id, const Address *at);
int find_spill(const Verifying *v, ExprId id); // index in loop->spills; -1: not spilled
bool verify_spilled(Verifying *v, const LoopNode *n, Linear *address);

// verify_values.c: how values are computed and loaded.

bool verify_operand(Verifying *v, const LoopNode *n, ExprId id, bool is_vector);
bool verify_define(Verifying *v, const LoopNode *n); // the value of the node's expression is known from here on
bool verify_begin_combination(Verifying *v, const LoopNode *n); // of partial sums: a NODE_BEGIN_SUM
bool verify_end_combination(Verifying *v, const LoopNode *n);   // a NODE_END_SUM

// verify_memory.c: stores, copies, pointers, local arrays, flags. verify_sums.c: sums in registers, and partial sums of
// blocks. Both have only checks of nodes, which are listed below.

// verify_blocks.c: what outer iterations a block and a step compute.

bool verify_axis_index(Verifying *v, const LoopNode *n);  // an outer axis's index, computed from the flattened index
bool verify_block_range(Verifying *v, const LoopNode *n); // VAR_BEGIN and VAR_END of all blocks cover the outer axes

// verify_counters.c: counters and their pieces. begin_* set the piece that the body covers.

int counted_direction(const Verifying *v, Var var);                // NO_DIRECTION: not a counter
bool begin_vectors(Verifying *v, const LoopNode *n, Piece *piece); // a loop as it is before schedule_split_vectors
bool begin_whole(Verifying *v, const LoopNode *n, Piece *piece);
bool begin_tail(Verifying *v, const LoopNode *n, Piece *piece);
bool begin_peel(Verifying *v, const LoopNode *n, Piece *piece);

// verify_loops.c: loops, conditions, and constants computed inside of them.

bool begin_for(Verifying *v, const LoopNode *n, Piece *piece);
bool is_piece_of_counter(const Verifying *v, const LoopNode *n); // of a NODE_IF with a test: a tail, or peeled elements
bool begin_if(Verifying *v, const LoopNode *n, Piece *piece);    // of such a piece

// The checks of all kinds of nodes, as (kind, check) for a function verify_CHECK; by file.
// clang-format off
#define NODE_CHECKS(ROW) \
  /* verify_values.c */ ROW(LET, let) ROW(COMBINE, combine) \
  /* verify_memory.c */ ROW(FLAG, set_flag) ROW(POINTER, pointer) ROW(LOCAL, local) ROW(STORE, store) \
    ROW(SPILL, spill) ROW(LOAD_ROWS, load_rows) ROW(STORE_ROWS, store_rows) ROW(COPY_ROWS, copy_rows) \
    ROW(LOAD_COLUMN, load_column) ROW(GATHER_ROWS, gather_rows) ROW(SCATTER_ROWS, scatter_rows) ROW(PREFETCH, prefetch) \
  /* verify_sums.c */ ROW(BEGIN_SUM, begin_sum) ROW(LEAVE, leave) ROW(UPDATE, update) ROW(END_RUN, end_run) ROW(END_SUM, end_sum) \
    ROW(LOAD_PARTIAL, load_partial) ROW(STORE_PARTIAL, store_partial) ROW(PARTIALS, partials) \
    ROW(INIT_PARTIAL, init_partial) \
  /* verify_blocks.c */ ROW(STEP, step_call) \
  /* verify_counters.c */ ROW(COUNTER, counter) ROW(ADVANCE, advance) ROW(PEEL_COUNT, peel_count) \
  /* verify_loops.c */ ROW(INDEX, set_index) \
  /* verify.c */ ROW(COMMENT, nothing) ROW(UNUSED, unused) ROW(FOR, for) ROW(SCOPE, scope) ROW(IF, if) \
    ROW(SCATTER, scatter) ROW(FENCE, nothing)
// clang-format on

#define ROW(kind, check) bool verify_##check(Verifying *v, const LoopNode *n);
NODE_CHECKS(ROW)
#undef ROW

#endif
