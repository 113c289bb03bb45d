// Loop trees: the statements that compute a kernel. Most map to a line of C.
//
// Each loop of a kernel has a tree of two functions. `block` runs a range of the flattened outer axes (or a tile of the
// only axis) on one thread and calls `step`; blocks may run in parallel. `step` computes one outer iteration ("row"),
// `rows` of them, LANES of them with rows in lanes, or a tile. It computes scalars first, then the sweeps over the
// inner axes; after a sweep, the scalars that depend on the sweep's sums. With rows in lanes, `tail_step` computes the
// last rows of a block, fewer than LANES.
//
// Decisions are fields of nodes; NODE_SCATTER is a whole loop, which each printer and executor writes itself.
// passes/schedule builds trees, loops_verify checks them, backends/codegen/print writes them as C. `ngrad show
// --format loops` prints them; the comments below quote its lines after a colon. Sum of a row of 100 elements, each
// lane in f32:
//
//   step
//     acc_sum = 0.0, vectors of f32            NODE_BEGIN_SUM
//     count i from 0                           NODE_COUNTER
//     for i += 16 while i + 16 <= 100          NODE_FOR with is_whole
//       vector x = load p_x + i                NODE_LET with LOAD_DENSE
//       acc_sum += x                           NODE_UPDATE
//     if i < 100                               NODE_IF: the tail, with VAR_LANES = 4 lanes
//       n = 100 - i                            NODE_INDEX
//       vector x = load p_x + i, n lanes       has_fewer_lanes: the other lanes are 0
//       acc_sum += x, n lanes
//     scalar sum = sum of the lanes of acc_sum in f64     NODE_END_SUM
#ifndef NGRAD_IR_LOOPS_LOOPS_H
#define NGRAD_IR_LOOPS_LOOPS_H

#include "ir/kernel/schedule.h"

// Integers: variables and expressions of variables. In C their type is size_t, or int where the comment says so.

typedef enum VarKind {
  VAR_NONE,
  VAR_AXIS,           // the index on an axis; printed as the axis's name
  VAR_NEXT,           // the index on a middle axis to prefetch from: a later iteration, or the current one near the end
  VAR_AHEAD_AXIS,     // the prefetched element's index on a middle axis: VAR_NEXT or the current index
  VAR_AHEAD_LANE,     // the prefetched element's index on the vector axis
  VAR_IS_AHEAD,       // int: 1 if the prefetched element is in the next iteration of the middle axis
  VAR_OUTER,          // the flattened index over the outer axes
  VAR_ROW,            // int: the row's number in its step
  VAR_ROWS,           // int: number of rows that the step computes
  VAR_LANE,           // the vector axis's index of lane 0; with rows in lanes, the index on the inner axis
  VAR_VECTOR,         // int: the vector's number in its group (the unrolled loop over accumulators)
  VAR_VECTOR_LANE,    // the vector axis's index of lane 0 of vector VAR_VECTOR
  VAR_LANES,          // int: number of lanes in use in a tail, which has fewer than LANES elements
  VAR_RUN,            // the first iteration, on a middle axis, of a run of an f32 sum
  VAR_RUN_BEGIN,      // the first index, on the vector axis, of a run of an f32 sum
  VAR_RUN_END,        // the end of the run that begins at VAR_RUN or VAR_RUN_BEGIN
  VAR_RUN_LENGTH,     // iterations of the middle axis in a run, if they depend on open dims
  VAR_CHAIN,          // additions that an accumulator makes in one iteration of the middle axes
  VAR_AHEAD,          // outer iterations to prefetch ahead; 0 in the last iterations
  VAR_DISTANCE,       // of an access: from the current element to the prefetched one, in elements
  VAR_BLOCK,          // the block's number
  VAR_BEGIN,          // the block's first outer iteration, or the tile's first element
  VAR_END,            // the end of the block's iterations, or of the tile's elements
  VAR_START,          // the first outer iteration that has the block's indices on the free axes (Loop.nfree)
  VAR_CUT_BEGIN,      // the block's first iteration, counted from VAR_START
  VAR_COMBINED_BLOCK, // the block whose partial sums NODE_COMBINE adds
  VAR_COLUMN,         // the step's first index on the vector axis, if a step takes a part of the axis (Loop.columns)
  VAR_COLUMN_END,     // the end of the step's part of the vector axis
  VAR_ELEMENT         // the index in an array of partial sums
} VarKind;

typedef struct Var {
  VarKind kind;
  uint32_t of; // the axis, or the access of VAR_DISTANCE; else 0
} Var;
bool var_is_int(Var v);
extern const char *const var_names[]; // by kind; NULL for kinds that belong to an axis or an access

typedef enum IndexOp {
  INDEX_NUMBER,
  INDEX_VAR,
  INDEX_BLOCK_LENGTH, // iterations in a block of `loop`, if they depend on open dims
  INDEX_NCUT_BLOCKS,  // blocks of `loop` for each index on its free axes, if they depend on open dims
  INDEX_ADD,
  INDEX_SUBTRACT,
  INDEX_MULTIPLY,
  INDEX_DIVIDE,
  INDEX_REMAINDER,
  INDEX_LESS, // comparisons yield 1 or 0
  INDEX_AT_MOST,
  INDEX_AT_LEAST,
  INDEX_MORE,
  INDEX_DIFFERS,
  INDEX_BOTH,   // a && b
  INDEX_CHOOSE, // a ? b : c
  INDEX_SIGNED  // args[0] as ptrdiff_t: a difference, computed modulo 2^64, that may be negative
} IndexOp;

// Operator precedence, in C and in printed trees.
enum {
  PRECEDENCE_CHOICE = 1,
  PRECEDENCE_BOTH,
  PRECEDENCE_COMPARISON,
  PRECEDENCE_SUM,
  PRECEDENCE_PRODUCT,
  PRECEDENCE_VALUE
};
typedef struct IndexOperator {
  const char *text; // printed between the operands
  int precedence;
} IndexOperator;
extern const IndexOperator index_operators[]; // by op, for binary operators

typedef struct Index {
  IndexOp op;
  int64_t number;    // INDEX_NUMBER: its value at the hints of open dims
  Monomial monomial; // INDEX_NUMBER: the open dims among its factors; 0: a literal
  Var var;           // INDEX_VAR
  uint32_t loop;     // INDEX_BLOCK_LENGTH, INDEX_NCUT_BLOCKS
  const struct Index *args[3];
} Index;

// Addresses: an offset in elements from a base.

typedef enum Base {
  BASE_TENSOR,  // the access's tensor or temporary: `dy + d0 * 440`
  BASE_POINTER, // the row pointer that a NODE_POINTER set: `p_dy + i`; `p_dy[r] + i` with `is_row`
  BASE_ROWS, // the step's transposed copy, for rows in lanes: `rows_x + i * 16`; a vector of a row: `rows_x + r * 16`
  BASE_SPILLED, // the step's array of spilled vectors of `expr`: `spilled_e + i`
  BASE_PARTIAL  // the block's partial sums: `part_dgamma + i`
} Base;

typedef struct Address {
  Base base;
  AccessId access;
  ExprId expr;        // BASE_SPILLED
  bool is_row;        // the base is one of an array of pointers, which has one for each row of the step
  const Index *index; // NULL: 0
} Address;

// Sums. Vector accumulators in the kernel's type add up a row. To keep chains of f32 additions short, a row may be cut
// into runs: at the end of each run the accumulators are added to a total (f64), lane by lane if each lane has a sum of
// its own, else the sum of all lanes. For sums over outer axes each block has an array of partial sums; a later loop
// combines these in the order of the blocks.

typedef enum SumPlace { // where an update adds
  SUM_ACCUMULATOR,      // a vector register: `acc_sum`
  SUM_TOTAL,            // that sums of runs are added to, of f64: a vector if lanes have sums of their own: `total_sum`
  SUM_SCALAR,           // a scalar of f64: `total_sum`
  SUM_PARTIAL_REGISTER, // a vector of the block's partial sums that NODE_LOAD_PARTIAL loaded: `held_dgamma`
  SUM_PARTIAL_ELEMENT   // an element of the block's partial sums in memory: `part_dgamma[i]`
} SumPlace;

typedef enum AccumulatorChoice { // selects an accumulator, or a total, of a sum
  ACCUMULATOR_ONLY,              // the only one; or the node takes all
  ACCUMULATOR_OF_ROW,            // the row's: `acc_sum[r]`
  ACCUMULATOR_OF_VECTOR,         // in a group of vectors, the vector's: `acc_sum[u]`
  ACCUMULATOR_OF_BOTH,   // in a group of vectors of several rows, the vector's and row's: `acc_sum[u * rows + r]`
  ACCUMULATOR_FIRST,     // the first: `acc_sum[0]`
  ACCUMULATOR_OF_ELEMENT // with rows in lanes, the element's: `acc_sum[i % 16]`
} AccumulatorChoice;
extern const char *const accumulator_indices[]; // by AccumulatorChoice: as C writes it behind the sum's name

typedef enum Form { // the C type that holds an expression's value
  FORM_NONE,
  FORM_NUMBER, // a literal
  FORM_SCALAR,
  FORM_ROWS, // an array with a scalar for each row of the step
  FORM_VECTOR
} Form;

typedef enum Flag { // conditions that do not change during a call
  FLAG_NONE,
  FLAG_WANTED,          // the caller passes a pointer for the output: `wants_dx`
  FLAG_STREAMED,        // stores of the access may bypass the caches: `streams_dx`
  FLAG_HAS_PARTIAL,     // in blocks and steps: the block has partial sums, its pointer is not NULL
  FLAG_HAS_ALL_PARTIALS // the temporary of all blocks' partial sums has memory, as a wanted output needs it
} Flag;

// The words value, var, address and so on below are fields of LoopNode.
typedef enum LoopNodeKind {
  NODE_COMMENT,   // no effect. words: `sweep: store dx, sum sum_g`
  NODE_UNUSED,    // no effect: the function does not use its parameter var
  NODE_INDEX,     // a constant, var = value: `d0 = o + r`
  NODE_COUNTER,   // a variable, var = value, that following is_whole loops advance: `count i from 0`
  NODE_ADVANCE,   // var += value: `i += n`
  NODE_FOR,       // for var from value to end by step: body: `for d0 in 0..40`
  NODE_SCOPE,     // { body }
  NODE_IF,        // if test, or the flag of the access: body; else otherwise
  NODE_FLAG,      // computes a flag of the access. FLAG_WANTED: `wants_dx = dx is wanted`. FLAG_STREAMED: rows begin at
                  // cache lines and, if value is not NULL, value > end (the elements that fit into the caches)
  NODE_POINTER,   // the access's row pointer = address: `p_x = x + d0 * 440`
  NODE_LOCAL,     // a local array of nelems elements: `local p_x[2]: pointers`
  NODE_LET,       // expr = its load or operator: `vector t9 = sub(x, mean)`
  NODE_BEGIN_SUM, // declares accumulators or totals, set to the reduction's identity: `acc_sum = 0.0, vectors of f32`
  NODE_LEAVE,     // no effect: the totals of expr are in memory from here on, not in registers
  NODE_UPDATE,    // adds the value of expr, or if expr is a sum, of its operand: `acc_sum += x`
  NODE_END_RUN,   // adds accumulators to the total: `total_sum += sum of the lanes of acc_sum in f32`
  NODE_END_SUM,   // expr = the total, or the reduction over the lanes of accumulators:
                  // `scalar sum = sum of the lanes of acc_sum in f32`
  NODE_COMBINE,   // adds a block's partial sums to the total of expr, in f64, in a loop over the blocks between its
                  // NODE_BEGIN_SUM and NODE_END_SUM: `total_dgamma += temporary0_dgamma + b * 440 + i`
  NODE_LOAD_PARTIAL,  // a vector of the block's partial sums, into a register: `held_dgamma = load part_dgamma + i`
  NODE_STORE_PARTIAL, // the vector from the register to memory: `store held_dgamma to part_dgamma + i`
  NODE_STORE,         // stores the value of expr: `store dx to p_dx + i`
  NODE_SPILL,         // stores the vector of expr in the step's local array, for later sweeps
  NODE_LOAD_ROWS,     // copies LANES rows, transposed: `rows_x = rows of 7 from p_x, with stride 7, transposed`
  NODE_STORE_ROWS,    // copies the transposed rows to memory
  NODE_COPY_ROWS,    // stores expr: copies LANES rows, transposed, to the panel at address: `p_w4 = rows of 768 at p_w,
                     // with stride 768, transposed`
  NODE_LOAD_COLUMN,  // copies the vector at address to index value of the step's transposed copy: `rows_x + i * 16 =
                     // load p_x + i * 50`
  NODE_GATHER_ROWS,  // loads a vector of each row of the step: `rows_x = vectors of all rows at p_x[r] + i * 4, with
                     // stride 784`
  NODE_SCATTER_ROWS, // stores a vector of each row of the step
  NODE_PREFETCH,     // fetches the cache line of address
  NODE_PEEL_COUNT,   // var = number of elements from address to the next cache line; 0 if the flag is not set
  // In blocks only:
  NODE_PARTIALS,     // sets the pointer to the block's partial sums: `part_db = temporary1_db + block * 440`
  NODE_INIT_PARTIAL, // the partial sum at address = the reduction's identity: `part_db[i] = 0.0`
  NODE_STEP,         // calls step, or tail_step: `step, rows = 2`
  NODE_SCATTER, // the block's rows of the scatter expr: sets them to zero, then adds the rows whose indices refer to
                // them
  NODE_FENCE    // makes streamed stores visible to other threads
} LoopNodeKind;

typedef enum LocalKind { // local arrays of a step
  LOCAL_TEMPORARY,       // a temporary of the kernel that only one step at a time needs
  LOCAL_POINTERS,        // the access's row pointers, one for each row of the step
  LOCAL_COPY,            // the transposed copy of the access's rows, for rows in lanes
  LOCAL_ROWS,            // nelems vectors of the access, one for each row of the step
  LOCAL_SPILLED,         // vectors of expr, from one sweep to later ones
  LOCAL_SCALARS          // the scalars of expr, one for each row of the step
} LocalKind;

typedef enum Load { // where the value of NODE_LET comes from
  LOAD_NONE,        // the expression's operator, not memory
  LOAD_ELEMENT,     // one element, as a scalar
  LOAD_BROADCAST,   // one element, in all lanes
  LOAD_DENSE,       // neighbours in memory
  LOAD_STRIDED,     // elements `step` apart
  LOAD_GATHERED,    // elements at computed offsets, a different one for each lane
  LOAD_COPIED,      // the step's transposed copy, or its vectors of all rows
  LOAD_SPILLED      // the step's array of spilled vectors
} Load;

typedef struct LoopNode LoopNode;
struct LoopNode {
  LoopNodeKind kind;
  LoopNode *next;
  LoopNode *body, *otherwise; // lists
  const char *words;          // NODE_COMMENT
  Var var;
  const Index *value, *end, *step; // NODE_STEP: lanes of a tail step; end of the step's part of the vector axis
  const Index *test;               // NODE_IF: the condition; NULL: the flag is the condition
  const Index *bound;              // NODE_FOR: a second end, the loop stops at the smaller one; NULL: none
  bool is_down;                    // NODE_FOR: var goes from end - 1 down to value
  bool is_unrolled;                // NODE_FOR
  bool is_whole;                   // NODE_FOR: continues from the value of the counter var, while var + step <= end
  // NODE_FOR over vectors, before schedule_split_vectors replaces it:
  bool is_vectors;
  bool has_tail; // the extent is no multiple of LANES, or not known to be one: a tail of fewer than LANES elements may
                 // follow
  AccessId peeled; // with is_peeled: the store whose address determines the number of peeled elements
  int sweep;
  Flag flag; // NODE_FLAG: the flag that the node computes; other nodes: they have no effect unless the flag is set
  AccessId access;
  Address address;
  LocalKind local;
  int64_t nelems; // NODE_LOCAL: elements of the array; nodes that transpose rows: of a row
  ExprId expr;
  bool is_vector;       // the value computed, stored or added is a vector
  bool is_row;          // the node is repeated for each row of the step, or takes the row's element of an array
  bool has_fewer_lanes; // only the first VAR_LANES lanes hold elements; NODE_STEP: calls tail_step
  Load load;            // NODE_LET
  bool is_held;         // NODE_LET: a load whose result stays in a register for all rows
  // NODE_LET, loads with bounds. Arithmetic is modulo 2^64, so that `index < extent` tests both ends of a bound.
  const Index *inside; // a test of the bounds that are the same in all lanes; where it is 0, the value is the access's
                       // `outside`. NULL: they always hold. `load x + i * 8, where oy * 2 + ky - 1 < 56, else 0.0`
  const Index *within; // index of lane 0 in node_lane_bound; NULL: there is none. A lane is loaded if
                       // within + lane * factor < extent: `lanes where i + kx - 1 + lane < 56, else 0.0`
  bool is_streamed;    // NODE_STORE, NODE_STORE_ROWS: bypasses the caches
  SumPlace sum;        // NODE_BEGIN_SUM, NODE_UPDATE; NODE_END_SUM: SUM_TOTAL if the sum has runs
  AccumulatorChoice accumulator;
  int count;      // NODE_BEGIN_SUM: number of accumulators; NODE_STEP: rows; NODE_FOR over vectors: vectors of a group
  int rest;       // NODE_FOR over vectors: whole vectors after the last group, which form a smaller group; 0: not known
  bool is_fused;  // NODE_UPDATE: adds a product with one rounding (fused multiply-add)
  bool is_peeled; // NODE_FLAG, NODE_FOR over vectors: elements before a row's first cache line are stored separately
};

typedef struct LoopTree {
  const Schedule *schedule;
  const Kernel *k; // the schedule's
  const Loop *loop;
  Form *form;      // by ExprId
  bool *is_made;   // by ExprId: a node computes or uses the expression
  bool calls_long; // long functions such as exp are called, not inlined: the loop has so many that inlining would slow
                   // the compiler
  LoopNode *step;  // a list
  LoopNode *tail_step;   // with rows in lanes, a list: the step of a block's last rows; else NULL
  LoopNode *block;       // a list
  const char *spoilt_by; // in checked builds: the pass over trees after which the tree is unsound; NULL: there is none
} LoopTree;

// The types of a node's sum follow from its place, and its reduction from its expression or temporary.

// The parameters of the step, or of the tail step, besides partial sums. Returns their number.
enum { MOST_PARAMETERS = 5 };
int tree_parameters(const LoopTree *t, bool is_tail, Var *parameters);
bool tree_stores(const LoopTree *t, AccessId id); // the loop stores through the access
// With rows in lanes: the accumulators of the sum, at most LANES. Element i goes to accumulator i % LANES, as it would
// go to that lane if vectors lay along the row; at the end they are combined as lanes are. 0: the sum has one
// accumulator.
int tree_element_sums(const LoopTree *t, ExprId sum);

ExprId node_operand(const LoopTree *t, const LoopNode *n);   // that the node adds or stores
ExprOp node_reduction(const LoopTree *t, const LoopNode *n); // EXPR_NONE: the node has no sum
bool node_adds_lanes(const LoopTree *t, const LoopNode *n);  // its sum is that of all lanes, and a total of it a scalar
bool node_combines(const LoopTree *t, const LoopNode *n);    // its sum combines the partial sums of blocks, in f64
bool node_is_f64(const LoopTree *t,
                 const LoopNode *n); // vectors of the sum are f64. NODE_END_SUM: reduces lanes in f64
// The node adds f32 to a sum of f64. NODE_END_SUM: the total is f64, the result f32.
bool node_is_widened(const LoopTree *t, const LoopNode *n);

// The bound of a vector's load that holds for some lanes only. NULL: there is none.
const Bound *node_lane_bound(const LoopTree *t, const LoopNode *n);
// The tail, too, uses all lanes: panels have memory for them, and each lane has a sum of its own.
bool node_uses_all_lanes(const LoopTree *t, const LoopNode *n);
bool node_is_strided(const LoopNode *n); // a vector's lanes are `step` elements apart, and not 1

typedef struct Wants {         // which results a caller may leave out
  const bool *is_optional;     // by value->index: the output may be left out; NULL: none may
  const bool *may_be_unwanted; // by temporary: it holds partial sums that only optional outputs need; NULL: none does
} Wants;

enum { MOST_NESTED = 40 };    // open lists; nests are less deep: at most MAX_AXES loops and the lists around them
bool expr_is_long(ExprOp op); // the operator's vector function has tens of instructions

// Building: nodes are appended to the innermost open list. Memory comes from the arena. Out of memory: functions set
// out_of_memory and return NULL, which they also accept as operands.

typedef struct TreeBuilder {
  Arena *arena;
  bool out_of_memory;
  LoopNode **end, **ends[MOST_NESTED];
  LoopNode *following[MOST_NESTED]; // by open list: the nodes that will follow the appended nodes
  int depth;
  LoopNode spare; // returned by tree_add when out of memory
} TreeBuilder;

const Index *index_number(TreeBuilder *b, int64_t number, Monomial monomial);
const Index *index_var(TreeBuilder *b, VarKind kind, uint32_t of);
const Index *index_of(TreeBuilder *b, IndexOp op, const Index *x, const Index *y);
const Index *index_loop(TreeBuilder *b, IndexOp op, uint32_t loop);
const Index *index_choose(TreeBuilder *b, const Index *test, const Index *x, const Index *y);
// The distance in memory from flattened index b to a, along one axis: ((a / below % extent) - (b / below % extent)) *
// stride. below: the product of the extents of the axes inside of this axis.
const Index *index_distance(TreeBuilder *t, const Index *a, const Index *b, const Index *below, const Index *extent,
                            const Index *stride);
// What loop_runs computes of literal extents, for an open innermost extent (Runs.is_open). VAR_CHAIN: the additions to
// the accumulator in an iteration of the middle axes, of `width` elements of the vector axis. VAR_RUN_LENGTH: the
// iterations in a run, if VAR_CHAIN is at most LONGEST_RUN.
const Index *index_chain(TreeBuilder *b, const Index *width);
const Index *index_run_length(TreeBuilder *b);
// chain_iterations of an open extent; at least 1.
const Index *index_chain_iterations(TreeBuilder *b, const Index *extent, int64_t inside);
typedef enum IndexType { INDEX_EITHER, INDEX_INT, INDEX_SIZE } IndexType; // in C; literals fit both
IndexType index_type(const Index *i);
bool index_is(const Index *i, int64_t number);
LoopNode *tree_add(TreeBuilder *b, LoopNode node);
void tree_open(TreeBuilder *b, LoopNode **at); // opens a list at this link, before the nodes already there
void tree_close(TreeBuilder *b);
Var loop_var(VarKind kind);                   // for kinds that belong to no axis and no access
bool nodes_mention(const LoopNode *n, Var v); // an index or address of the nodes or their bodies contains v
const Index *index_replace(TreeBuilder *b, const Index *i, Var replaced, const Index *with);
// Appends a copy of the nodes to the open list, with the variable `replaced` replaced by `with`. change(copy, t, count)
// may edit each copy; if it returns false, the copy is left out. change NULL: copies stay as they are.
void tree_add_copy(TreeBuilder *b, const LoopNode *nodes, Var replaced, const Index *with,
                   bool (*change)(LoopNode *copy, const LoopTree *t, int count), const LoopTree *t, int count);

#endif
