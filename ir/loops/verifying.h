// Shared by the files that verify loop trees: the state of the walk, that is, the facts that hold at the current node.
#ifndef NGRAD_IR_LOOPS_VERIFYING_H
#define NGRAD_IR_LOOPS_VERIFYING_H

#include "ir/loops/linear.h"

// Directions: each inner axis, and OUTER, the flattened outer axes. NO_DIRECTION has a range, in which no node is.
enum { OUTER = MAX_AXES, NO_DIRECTION };

typedef struct VarState {
  bool is_set;
  const Index *value;   // of a constant; NULL: the variable belongs to a loop or counter, or is a parameter
  const LoopNode *loop; // over the variable; NULL: none
} VarState;

enum { WIDTH_ROWS = -1, WIDTH_LANES = -2, WIDTH_UNKNOWN = -3 }; // VAR_ROWS; VAR_LANES; VAR_LANES is not set yet

typedef struct Range { // the indices of a direction that a node is at
  const Index *to;     // the end of all indices
  int64_t divisor;     // a divisor of `to`, and of the first index
  bool is_counted;     // a counter is declared
  const Index *end;    // of the counter: of the axis, or of a run of it
  bool is_piece;   // the node is in a loop or condition over indices `start` to before `start` + width, all below `to`
  Var start;       // VAR_NONE: VAR_VECTOR_LANE is not set yet
  int64_t width;   // or WIDTH_*
  Var group;       // the first index of the group that the vector is in; VAR_NONE: not in a group
  bool is_aligned; // start is a multiple of LANES
} Range;

typedef struct Scoped {  // of a buffer of a kind, which belongs to an access or expression
  bool is_declared;      // an array for each row of the step
  bool is_set;           // it is in scope: declared, or for values and row pointers, set
  const LoopNode *node;  // that declares it
  bool has_rows;         // a row pointer: each row has one
  const Linear *pointer; // index of the element that a row pointer points to; NULL: 0
} Scoped;

typedef struct Verifying {
  const LoopTree *t;
  const Kernel *k;
  const Loop *loop;
  Text *why;
  Arena *arena;
  TreeBuilder b;        // builds the expected indices, which nodes are compared with
  const char *function; // name of the function being verified: "step"
  bool is_block;
  int vector; // the innermost axis; NO_DIRECTION: none
  int lanes;  // the direction along which lanes lie: `vector`, or OUTER for rows in lanes
  AxisSet outer, inner;
  VarState *vars[VAR_KINDS];     // by owner
  Scoped *buffers[BUFFER_KINDS]; // by access or expression
  bool **scoped;                 // what is in scope: set to false at the end of the list of nodes
  size_t nscoped, scoped_capacity;
  AccessId streamed;             // 1 + the access whose VAR_STREAMED is known to be 1; 0: none
  int depth;                     // of loops and conditions around the node
  Range range[NO_DIRECTION + 1]; // by direction
} Verifying;

// The files, from the lowest to the highest: a file calls only files above it in this list, and verify.c calls all.

// verify_state.c: messages, scopes, variables and indices.

bool verify_fail(Verifying *v, const LoopNode *n, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool verify_fail_expr(Verifying *v, const LoopNode *n, ExprId id, const char *what);
// Whether the indices are equal; if not, the message is "WHAT is INDEX, expected INDEX". NULL: no index.
bool verify_equal(Verifying *v, const LoopNode *n, const char *what, const Index *found, const Index *expected);
bool scope_add(Verifying *v, bool *is_in_scope); // sets it now, and unsets it at the end of the list of nodes
bool scope_end(Verifying *v, bool *is_in_scope); // only unsets it
void scope_close(Verifying *v, size_t nscoped);  // closes all but the first `nscoped` declarations
Scoped *state_of(const Verifying *v, BufferKind kind, uint32_t of);
const Root *root_of(const Verifying *v, RootKind kind, AccessId id); // NULL: the loop has no such store, or sum
size_t vars_count(const Kernel *k, VarKind kind);
VarState *var_state(const Verifying *v, Var var);
bool var_set(Verifying *v, const LoopNode *n, Var var, const Index *value); // declares the variable
bool verify_index(Verifying *v, const LoopNode *n, const Index *i); // all its variables are in scope; NULL: true
Linear linear_of(const Verifying *v, const Index *i);               // in terms of indices on axes
const Index *number_index(Verifying *v, int64_t number);
const Index *nelems_index(Verifying *v, AxisSet axes);
const Index *var_index(Verifying *v, VarKind kind);
const Index *least_index(Verifying *v, const Index *x, const Index *y);
bool is_in_row(const Verifying *v);                    // in a loop over the rows of a step
bool has_fewer_lanes(const Verifying *v);              // only VAR_LANES lanes hold elements at this node
bool verify_streamed(Verifying *v, const LoopNode *n); // a store that bypasses caches depends on its flag
bool verify_test(Verifying *v, const LoopNode *n);     // the node's test is computed before it
bool verify_operand(Verifying *v, const LoopNode *n, ExprId id, bool is_vector);
bool verify_define(Verifying *v, const LoopNode *n); // the value of the node's expression is known from here on

// verify_addresses.c: addresses, and lanes.

bool verify_base(Verifying *v, const LoopNode *n, const Address *at);    // the buffer is in scope, and has the item
bool verify_address(Verifying *v, const LoopNode *n, const Address *at); // it is that of the element, or vector
bool verify_first(Verifying *v, const LoopNode *n, const Address *at);   // it is that of the tensor's first element
bool verify_lanes(Verifying *v, const LoopNode *n);  // the lanes that the node uses hold elements of its loops
bool verify_bounds(Verifying *v, const LoopNode *n); // only elements inside of the tensor are loaded
bool verify_moved(Verifying *v, const LoopNode *n);  // both addresses of NODE_MOVE

// verify_loops.c: loops and conditions. begin_* set the range that the body covers, of this direction; NO_DIRECTION:
// none.

bool begin_for(Verifying *v, const LoopNode *n, int *direction, Range *r);
bool begin_if(Verifying *v, const LoopNode *n, int *direction, Range *r);

// verify_values.c: values, stores, copies, pointers, local arrays, flags.

bool verify_flag(Verifying *v, const LoopNode *n);              // NODE_INDEX of VAR_WANTED and VAR_STREAMED
bool verify_root(Verifying *v, const LoopNode *n, AccessId id); // the loop stores through the access

// verify_sums.c: what other nodes do with sums.

bool verify_begin_sum(Verifying *v, const LoopNode *n); // NODE_BUFFER of accumulators or totals
bool verify_end_sum(Verifying *v, const LoopNode *n);   // NODE_LET
bool verify_partials(Verifying *v, const LoopNode *n);  // NODE_BUFFER of partial sums, or a vector of them

bool verify_store_partial(Verifying *v, const LoopNode *n); // NODE_STORE of a vector, or of the identity

// The checks of all kinds of nodes, as (kind, check) for a function verify_CHECK; by file. verify_sums.c: sums in
// registers, and partial sums of blocks.
// clang-format off
#define NODE_CHECKS(ROW) \
  /* verify_loops.c */ ROW(INDEX, set_index) ROW(CALL, call) \
  /* verify_values.c */ ROW(LET, let) ROW(BUFFER, buffer) ROW(STORE, store) ROW(MOVE, move) \
    ROW(PREFETCH, prefetch) \
  /* verify_sums.c */ ROW(UPDATE, update) ROW(BARRIER, barrier) \
  /* verify.c */ ROW(COMMENT, nothing) ROW(FOR, for) ROW(IF, if) \
    ROW(SCATTER, scatter) ROW(FENCE, nothing)
// clang-format on

#define ROW(kind, check) bool verify_##check(Verifying *v, const LoopNode *n);
NODE_CHECKS(ROW)
#undef ROW

#endif
