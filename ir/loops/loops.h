// Loop trees: how a kernel is computed, as a list of statements that maps to C line by line.
//
// Each loop of a kernel has a tree of two functions. `block` runs a range of the flattened outer axes (or a tile of the
// only axis) on one thread and calls `step`; blocks may run in parallel. `step` computes one outer iteration ("row"),
// `rows` of them, LANES of them with one row per lane, or a tile: scalars first, then sweeps over the inner axes, with
// the scalars that a sweep's sums yield between two sweeps. With rows in lanes, `tail_step` computes the last rows of a
// block, fewer than LANES.
//
// All decisions are fields of nodes, so that printing and executing a tree decide nothing. Recipes (passes/schedule)
// build trees, loops_verify checks them, backends/codegen/print writes them as C. `ngrad show --format loops` prints
// them; the comments below quote its lines after a colon. Sum of a row of 100 elements, each lane in f32:
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

// Integers: variables, and expressions of them. In C they are of size_t, except those marked int.

typedef enum VarKind {
  VAR_NONE,
  VAR_AXIS,           // the index on an axis; printed as the axis's name
  VAR_NEXT,           // the index on a middle axis to prefetch from: a later iteration, or this one near the end
  VAR_AHEAD_AXIS,     // the index on a middle axis of the prefetched element: VAR_NEXT or the current one
  VAR_AHEAD_LANE,     // the index on the vector axis of the prefetched element
  VAR_IS_AHEAD,       // int: 1 if the prefetched element is in the next iteration of the middle axis
  VAR_OUTER,          // the flattened index over the outer axes
  VAR_ROW,            // int: which of the rows of a step
  VAR_ROWS,           // int: how many rows the step computes
  VAR_LANE,           // the vector axis's index of lane 0; with rows in lanes, the index on the inner axis
  VAR_VECTOR,         // int: which vector of a group (the unrolled loop over accumulators)
  VAR_VECTOR_LANE,    // the vector axis's index of that vector's lane 0
  VAR_LANES,          // int: number of lanes in use, where fewer than LANES elements are left
  VAR_RUN,            // the first iteration, on a middle axis, of a run of an f32 sum
  VAR_RUN_BEGIN,      // the first index, on the vector axis, of a run of an f32 sum
  VAR_RUN_END,        // the end of the run that begins at VAR_RUN or VAR_RUN_BEGIN
  VAR_RUN_LENGTH,     // iterations of the middle axis in a run, where open dims decide it
  VAR_CHAIN,          // additions that an accumulator makes in one iteration of the middle axes
  VAR_AHEAD,          // outer iterations to prefetch ahead; 0 in the last iterations
  VAR_DISTANCE,       // of an access: elements from this iteration's to the prefetched one's
  VAR_BLOCK,          // the block's number
  VAR_BEGIN,          // the block's first outer iteration, or the tile's first element
  VAR_END,            // the end of these
  VAR_START,          // the first outer iteration with the block's indices on the free axes (Loop.nfree)
  VAR_CHUNK,          // the block's first iteration, counted from VAR_START
  VAR_COMBINED_BLOCK, // the block whose partial sum NODE_COMBINE adds
  VAR_COLUMN,         // the step's first index on the vector axis, if the step takes a part of that (Loop.columns)
  VAR_COLUMN_END,     // the end of that part
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
  INDEX_BLOCK_LENGTH, // iterations in a block of `loop`, where open dims decide it
  INDEX_NCHUNKS,      // blocks of `loop` for each index on its free axes, where open dims decide it
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
  INDEX_SIGNED  // args[0] as ptrdiff_t: a difference that may be negative, computed modulo 2^64
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
  Monomial monomial; // INDEX_NUMBER: open dims that are factors of the number; 0: a literal
  Var var;           // INDEX_VAR
  uint32_t loop;     // INDEX_BLOCK_LENGTH, INDEX_NCHUNKS
  const struct Index *args[3];
} Index;

// Addresses: an offset in elements from a base.

typedef enum Base {
  BASE_TENSOR,  // the access's tensor or temporary: `dy + d0 * 440`
  BASE_POINTER, // the row pointer that a NODE_POINTER set: `p_dy + i`; `p_dy[r] + i` where `is_row`
  BASE_ROWS,    // the step's transposed copy, for rows in lanes: `rows_x + i * 16`
  BASE_SPILLED, // the step's array of spilled vectors of `expr`: `spilled_e + i`
  BASE_PARTIAL  // the block's partial sums: `part_dgamma + i`
} Base;

typedef struct Address {
  Base base;
  AccessId access;
  ExprId expr;        // BASE_SPILLED
  bool is_row;        // the base is an array of pointers, one for each row of the step
  const Index *index; // NULL: 0
} Address;

// Sums. A row's sum goes through vector accumulators in the kernel's type. To keep chains of f32 additions short, a row
// may be cut into runs: at the end of each run the accumulators are added to a total in f64. Sums over outer axes go
// through partial sums: an array for each block, which a later loop combines in the order of the blocks.

typedef enum SumPlace { // what an update adds to
  SUM_ACCUMULATOR,      // a vector register: `acc_sum`
  SUM_TOTAL,            // the vector that runs are added to, of f64 unless Runs.is_f32: `total_sum`
  SUM_SCALAR,           // a scalar of f64: `total_sum`
  SUM_PARTIAL_REGISTER, // a vector of the block's partial sums, loaded by NODE_LOAD_PARTIAL: `held_dgamma`
  SUM_PARTIAL_ELEMENT,  // a scalar in memory, among the block's partial sums: `part_dgamma[i]`
  SUM_PARTIAL_LANES     // a vector in memory: one scalar sum's partial sums, one for each lane
} SumPlace;

typedef enum AccumulatorChoice { // which of a sum's accumulators, or totals
  ACCUMULATOR_ONLY,              // there is one, or the node takes all
  ACCUMULATOR_OF_ROW,            // the row's: `acc_sum[r]`
  ACCUMULATOR_OF_VECTOR,         // in a group of vectors, the vector's: `acc_sum[u]`
  ACCUMULATOR_OF_BOTH,           // in a group of vectors of several rows: `acc_sum[u * rows + r]`
  ACCUMULATOR_FIRST              // outside of groups, the first: `acc_sum[0]`
} AccumulatorChoice;
extern const char *const accumulator_indices[]; // by AccumulatorChoice: as C writes it behind the sum's name

typedef enum Form { // how C code holds an expression's value
  FORM_NONE,
  FORM_NUMBER, // a literal
  FORM_SCALAR,
  FORM_ROWS, // an array with a scalar for each row of the step
  FORM_VECTOR
} Form;

typedef enum Flag { // conditions that are the same in the whole call
  FLAG_NONE,
  FLAG_WANTED,          // the caller wants the output, its pointer is not NULL: `wants_dx`
  FLAG_STREAMED,        // stores of the access bypass the caches: `streams_dx`
  FLAG_HAS_PARTIAL,     // in blocks and steps: the pointer to the block's partial sums is not NULL
  FLAG_HAS_ALL_PARTIALS // the temporary with all blocks' partial sums has memory: an output that needs it is wanted
} Flag;

// The words value, var, address and so on below are fields of LoopNode.
typedef enum LoopNodeKind {
  NODE_COMMENT,   // no effect. words: `sweep: store dx, sum sum_g`
  NODE_UNUSED,    // no effect: a parameter var that the function does not need
  NODE_INDEX,     // a constant, var = value: `d0 = o + r`
  NODE_COUNTER,   // a variable, var = value, that later is_whole loops advance: `count i from 0`
  NODE_ADVANCE,   // var += value: `i += n`
  NODE_FOR,       // for var from value to end by step: body: `for d0 in 0..40`
  NODE_SCOPE,     // { body }
  NODE_IF,        // if test, or the flag of the access: body; else otherwise
  NODE_FLAG,      // computes a flag of the access. FLAG_WANTED: `wants_dx = dx is wanted`. FLAG_STREAMED: the rows
                  // start cache lines and, if value is not NULL, value > end (elements that the caches hold)
  NODE_POINTER,   // the access's row pointer = address: `p_x = x + d0 * 440`
  NODE_LOCAL,     // a local array of nelems elements: `local p_x[2]: pointers`
  NODE_LET,       // expr = its load or operator: `vector t9 = sub(x, mean)`
  NODE_COMBINE,   // expr = reduction over the partial sums of blocks 0..end:
                  // `vector dgamma = sum of temporary0_dgamma + b * 440 + i for b in 0..2, in f64`
  NODE_BEGIN_SUM, // declares accumulators or totals, set to the reduction's identity: `acc_sum = 0.0, vectors of f32`
  NODE_UPDATE,    // adds the value of expr, or of the operand of the sum expr: `acc_sum += x`
  NODE_END_RUN,   // adds accumulators to the total: `total_sum += acc_sum in f64`
  NODE_END_SUM,   // expr = reduction over the lanes of total or accumulators:
                  // `scalar sum = sum of the lanes of acc_sum in f64`
  NODE_LOAD_PARTIAL,  // a vector of the block's partial sums, into a register: `held_dgamma = load part_dgamma + i`
  NODE_STORE_PARTIAL, // and back: `store held_dgamma to part_dgamma + i`
  NODE_STORE,         // stores the value of expr: `store dx to p_dx + i`
  NODE_SPILL,         // stores the vector of expr in the step's local array, for later sweeps
  NODE_LOAD_ROWS,     // copies LANES rows, transposed: `rows_x = rows of 7 from p_x, with stride 7, transposed`
  NODE_STORE_ROWS,    // and back
  NODE_COPY_ROWS,     // copies them to the panel at address, as the store of expr:
                      // `p_w4 = rows of 768 at p_w, with stride 768, transposed`
  NODE_LOAD_COLUMN,   // copies the vector at address to value in the step's copy: `rows_x + i * 16 = load p_x + i * 50`
  NODE_PREFETCH,      // fetches the cache line of address
  NODE_PEEL_COUNT,    // var = number of elements from address to the next cache line
  // In blocks only:
  NODE_PARTIALS,       // sets the pointer to the block's partial sums: `part_db = temporary1_db + block * 440`
  NODE_INIT_PARTIAL,   // the partial sum at address = the reduction's identity: `part_db[i] = 0.0`
  NODE_STEP,           // calls step, or tail_step: `step, rows = 2`
  NODE_REDUCE_PARTIAL, // the block's partial sum at address = reduction over its lanes' partial sums
  NODE_SCATTER,        // the block's rows of the scatter expr: zeros, to which the rows at its indices are added
  NODE_FENCE           // makes streamed stores visible to other threads
} LoopNodeKind;

typedef enum LocalKind { // arrays in a step's own memory
  LOCAL_TEMPORARY,       // a temporary of the kernel that only one step at a time needs
  LOCAL_POINTERS,        // the access's row pointers, one for each row of the step
  LOCAL_COPY,            // the transposed copy of the access's rows, for rows in lanes
  LOCAL_SPILLED,         // vectors of expr, from one sweep to later ones
  LOCAL_SCALARS          // the scalars of expr, one for each row of the step
} LocalKind;

typedef enum Load { // where NODE_LET takes its value from
  LOAD_NONE,        // the expression's operator, not memory
  LOAD_ELEMENT,     // one element, as a scalar
  LOAD_BROADCAST,   // one element, in all lanes
  LOAD_DENSE,       // neighbours in memory
  LOAD_STRIDED,     // elements `step` apart
  LOAD_GATHERED,    // elements at computed offsets, a different one for each lane
  LOAD_COPIED,      // the step's transposed copy
  LOAD_SPILLED      // the step's array of spilled vectors
} Load;

// Vectors of a group in a product. With more, there are few rows: the rows' scalars are in registers, and each vector
// is loaded once for all rows. With few, the vectors are in registers, and the scalars are loaded row by row.
enum { FEW_VECTORS = 2 };

typedef struct LoopNode LoopNode;
struct LoopNode {
  LoopNodeKind kind;
  LoopNode *next;
  LoopNode *body, *otherwise; // lists
  const char *words;          // NODE_COMMENT
  Var var;
  const Index *value, *end, *step;
  const Index *test;  // NODE_IF; NULL: it tests the flag
  const Index *bound; // NODE_FOR: a second end, the loop stops at the smaller one; NULL: none
  bool is_down;       // NODE_FOR: var goes from end - 1 down to value
  bool is_unrolled;   // NODE_FOR
  bool is_whole;      // NODE_FOR: goes on from the value of the counter var, while var + step <= end
  // NODE_FOR with step 1: where all conditions of the body's loads that depend on var hold. In C, the indices before,
  // in and behind the interior have a loop each, so that the compiler finds this out. The interior ends with the loop
  // if interior_end is INT64_MAX. 0, 0: there is one loop.
  int64_t interior_begin, interior_end;
  // NODE_FOR over vectors, before schedule_split_vectors replaces it:
  bool is_vectors;
  bool has_tail;   // the extent may be no multiple of LANES, so that fewer than LANES elements may be left
  AccessId peeled; // with is_peeled: the store whose address decides how many elements are peeled
  int sweep;
  Flag flag; // NODE_FLAG: the flag that it computes; other nodes: the condition under which they have an effect
  AccessId access;
  Address address;
  LocalKind local;
  int64_t nelems; // NODE_LOCAL: of the array; nodes that transpose rows: of a row
  ExprId expr;
  bool is_vector; // the value computed, stored or added is a vector; NODE_PARTIALS: there is a vector a partial sum
  bool is_row;    // repeated for each row of the step, or the row's element of an array
  bool has_fewer_lanes; // only the first VAR_LANES lanes hold elements; NODE_STEP: calls tail_step
  bool keeps_lanes;     // uses all lanes in the tail, too: panels have memory for them, and sums of lanes are apart
  Load load;            // NODE_LET
  bool is_held;         // NODE_LET: a load that stays in a register for all rows
  // NODE_LET, loads with bounds. Arithmetic is modulo 2^64, so that `index < extent` tests both ends of a bound.
  const Index *inside; // a test; where it is 0, the value is the access's `outside`. NULL: bounds that are the same in
                       // all lanes always hold. `load x + i * 8, where oy * 2 + ky - 1 < 56, else 0.0`
  const Index *within; // the index of lane 0 along the bound that varies from lane to lane; NULL: there is none. A lane
                       // is loaded if within + lane * factor < extent: `lanes where i + kx - 1 + lane < 56, else 0.0`
  int64_t factor, extent;
  bool is_written;  // NODE_POINTER, NODE_LOCAL: the step stores through the pointer
  bool is_streamed; // NODE_STORE, NODE_STORE_ROWS: bypasses the caches if FLAG_STREAMED of the access is set
  bool is_strided;  // NODE_STORE, NODE_COMBINE: lanes are `step` elements apart
  // NODE_STORE and NODE_LET of strided vectors: in the loop over the step's rows, these are neighbours in memory,
  // except where an outer axis begins anew. C loads or stores all rows at once then, transposed in registers.
  bool has_near_rows;
  SumPlace sum; // NODE_BEGIN_SUM, NODE_UPDATE, NODE_END_SUM
  AccumulatorChoice accumulator;
  int count; // sums: number of accumulators; NODE_STEP: rows; NODE_FOR over vectors: vectors of a group
  int rest;  // NODE_FOR over vectors: whole vectors behind the last group, which are a smaller group; 0: not known
  ExprOp reduction;
  bool is_f64;      // the sum is in f64
  bool is_widened;  // NODE_UPDATE, NODE_END_RUN: adds f32 to f64; NODE_END_SUM with has_totals: the total is in f64
  bool is_fused;    // NODE_UPDATE: adds a product with one rounding (fused multiply-add)
  bool has_totals;  // NODE_END_SUM: reduces the total of all runs, not the accumulators
  bool is_tile;     // NODE_STEP: the step takes the elements from VAR_BEGIN to VAR_END
  bool has_columns; // NODE_STEP: it takes the vector axis from VAR_COLUMN to `end`
  bool is_peeled;   // NODE_FLAG, NODE_FOR over vectors: elements before a row's first cache line are stored separately
};

typedef struct LoopTree {
  const Schedule *schedule;
  const Kernel *k; // the schedule's
  const Loop *plan;
  Form *form;          // by ExprId
  bool *is_made;       // by ExprId: some node computes or uses the expression
  bool calls_long;     // exp and the like are called, not inlined: the loop has many, and compilers are slow then
  LoopNode *step;      // a list
  LoopNode *tail_step; // a list: the step of a block's last rows, with rows in lanes; else NULL
  LoopNode *block;     // a list
} LoopTree;

typedef struct Wants {         // which results a caller may leave out
  const bool *is_optional;     // by value->index: the output may be left out; NULL: none may
  const bool *may_be_unwanted; // by temporary: partial sums that only optional outputs need; NULL: none
} Wants;

enum { MOST_NESTED = 40 };    // open lists; deeper than any recipe nests: MAX_AXES loops and what is around them
bool expr_is_long(ExprOp op); // its vector function has tens of instructions

// Building: nodes are added at the end of the innermost open list. Memory comes from the arena. Without memory,
// functions set out_of_memory and return NULL, which they also accept as operands.

typedef struct TreeBuilder {
  Arena *arena;
  bool out_of_memory;
  LoopNode **end, **ends[MOST_NESTED];
  LoopNode *following[MOST_NESTED]; // by open list: the nodes that will follow the added ones
  int depth;
  LoopNode spare; // returned by tree_add when out of memory
} TreeBuilder;

const Index *index_number(TreeBuilder *b, int64_t number, Monomial monomial);
const Index *index_var(TreeBuilder *b, VarKind kind, uint32_t of);
const Index *index_of(TreeBuilder *b, IndexOp op, const Index *x, const Index *y);
const Index *index_loop(TreeBuilder *b, IndexOp op, uint32_t loop);
const Index *index_choose(TreeBuilder *b, const Index *test, const Index *x, const Index *y);
// The distance in memory from flattened index b to a, along one axis: ((a / below % extent) - (b / below % extent)) *
// stride. below: the number of elements of the axes inside of it.
const Index *index_distance(TreeBuilder *t, const Index *a, const Index *b, const Index *below, const Index *extent,
                            const Index *stride);
typedef enum IndexType { INDEX_EITHER, INDEX_INT, INDEX_SIZE } IndexType; // in C; literals fit both
IndexType index_type(const Index *i);
bool index_is(const Index *i, int64_t number);
LoopNode *tree_add(TreeBuilder *b, LoopNode node);
void tree_open(TreeBuilder *b, LoopNode **at); // opens a list at this link, before the nodes that it leads to
void tree_close(TreeBuilder *b);
Var loop_var(VarKind kind); // for kinds that belong to no axis and no access
bool index_mentions(const Index *i, Var v);
bool nodes_mention(const LoopNode *n, Var v); // in an index or address of the nodes or their bodies
const Index *index_replace(TreeBuilder *b, const Index *i, Var replaced, const Index *with);
// Adds a copy of the nodes to the open list, with `with` for the variable `replaced`. `change` may edit each copy;
// where it returns false, the copy is left out. It is given `count`.
void tree_add_copy(TreeBuilder *b, const LoopNode *nodes, Var replaced, const Index *with,
                   bool (*change)(LoopNode *copy, int count), int count);

#endif
