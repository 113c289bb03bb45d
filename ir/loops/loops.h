// Loop trees: how a kernel is computed, down to what the text will say.
//
// A tree has two functions. A block does the iterations of the outer axes that one thread takes at a time, and hands
// them to steps. A step does a few of them (rows), or a tile: sections of scalars, and between them sweeps over the
// inner axes. Each node is a statement; what it does stands in its fields, and nothing is left for whoever prints or
// executes it to decide.
//
// Recipes (passes/schedule) build trees, loops_verify checks them, backends/codegen/print says them in C.
#ifndef NGRAD_IR_LOOPS_LOOPS_H
#define NGRAD_IR_LOOPS_LOOPS_H

#include "ir/kernel/kernel.h"

// Integers: variables of loops, and what is computed of them. They are of C's size_t, but for those marked int.

typedef enum VarKind {
  VAR_NONE,
  VAR_AXIS,           // of an axis: its index
  VAR_NEXT,           // of an axis: the index behind that
  VAR_AHEAD_AXIS,     // of an axis: its index of what is fetched ahead
  VAR_AHEAD_LANE,     // there, the index along the vector axis
  VAR_IS_AHEAD,       // int: whether what is fetched ahead is the next run's
  VAR_OUTER,          // the iteration of the outer axes, flattened
  VAR_ROW,            // int: of those that are handled together, which
  VAR_ROWS,           // int: how many are
  VAR_LANE,           // the index along the vector axis of lane 0; across lanes, that along the inner axis
  VAR_VECTOR,         // int: of a group of vectors, which
  VAR_VECTOR_LANE,    // the index of that vector's lane 0
  VAR_LANES,          // int: how many lanes are there
  VAR_RUN,            // where a run of iterations of a middle axis begins
  VAR_RUN_BEGIN,      // where a run along the vector axis begins
  VAR_RUN_END,        // and ends
  VAR_RUN_LENGTH,     // in iterations
  VAR_CHAIN,          // additions that an accumulator makes in an iteration of the middle axes
  VAR_AHEAD,          // outer iterations ahead that are fetched, or 0
  VAR_DISTANCE,       // of an access: elements to what is fetched ahead
  VAR_BLOCK,          // the block's number
  VAR_BEGIN,          // of the block's outer iterations, or the tile's elements
  VAR_END,            // likewise
  VAR_START,          // of the blocks' iteration of the kept axes
  VAR_CHUNK,          // where the block begins in it
  VAR_COMBINED_BLOCK, // a block whose partial sum is combined
  VAR_ELEMENT         // of an array of partial sums
} VarKind;

typedef struct Var {
  VarKind kind;
  uint32_t of; // an axis or access
} Var;
bool var_is_int(Var v);
extern const char *const var_names[]; // by kind, of those that are of no axis and no access

typedef enum IndexOp {
  INDEX_NUMBER,
  INDEX_VAR,
  INDEX_BLOCK_LENGTH, // of this loop's blocks, where open dims decide it
  INDEX_NCHUNKS,      // of `loop`, likewise
  INDEX_ADD,
  INDEX_SUBTRACT,
  INDEX_MULTIPLY,
  INDEX_DIVIDE,
  INDEX_REMAINDER,
  INDEX_LESS, // 1 or 0; and so the next ones
  INDEX_AT_MOST,
  INDEX_AT_LEAST,
  INDEX_MORE,
  INDEX_DIFFERS,
  INDEX_CHOOSE, // a ? b : c
  INDEX_SIGNED  // of ptrdiff_t, where differences wrap around as their products do
} IndexOp;

// How tightly integers bind to operators, in C and as text.
enum { PRECEDENCE_CHOICE = 1, PRECEDENCE_COMPARISON, PRECEDENCE_SUM, PRECEDENCE_PRODUCT, PRECEDENCE_VALUE };
typedef struct IndexOperator {
  const char *text; // between its operands
  int precedence;
} IndexOperator;
extern const IndexOperator index_operators[]; // by op, of those with two operands

typedef struct Index {
  IndexOp op;
  int64_t number; // at the hints
  Monomial monomial;
  Var var;
  uint32_t loop;
  const struct Index *args[3];
} Index;

// Where elements lie: of an access at an offset in elements from a base.

typedef enum Base {
  BASE_TENSOR,  // the tensor or temporary itself, at the access's offset where `index` says so
  BASE_POINTER, // what a POINTER node set: where a row starts; [row] where `is_row`
  BASE_ROWS,    // the step's copy of rows that lie across lanes
  BASE_SPILLED, // the step's vectors of an expression, for later sweeps
  BASE_PARTIAL  // the block's partial sums
} Base;

typedef struct Address {
  Base base;
  AccessId access;
  ExprId expr; // BASE_SPILLED
  bool is_row;
  const Index *index; // NULL: 0
} Address;

// Accumulators and what else a sum goes through.

typedef enum SumPlace {
  SUM_ACCUMULATOR,      // vectors in registers
  SUM_TOTAL,            // of the runs, in f64: a vector
  SUM_SCALAR,           // in f64: a number
  SUM_PARTIAL_REGISTER, // a vector of the block's partial sums, while it is in a register
  SUM_PARTIAL_ELEMENT,  // a number among them, in memory
  SUM_PARTIAL_LANES     // a vector in memory, of a partial sum for each lane
} SumPlace;

typedef enum AccumulatorChoice { // of several accumulators
  ACCUMULATOR_ONLY,
  ACCUMULATOR_OF_ROW,    // [r]
  ACCUMULATOR_OF_VECTOR, // [u]
  ACCUMULATOR_FIRST      // [0]
} AccumulatorChoice;

typedef enum Form { // of an expression's value
  FORM_NONE,
  FORM_NUMBER, // written where it is used
  FORM_SCALAR,
  FORM_ROWS, // a scalar for each row that is handled together
  FORM_VECTOR
} Form;

typedef enum Flag { // of an access, for the length of a call
  FLAG_NONE,
  FLAG_WANTED,          // the caller wants the output
  FLAG_STREAMED,        // its stores go past the caches
  FLAG_HAS_PARTIAL,     // somebody wants what the block's partial sums are for
  FLAG_HAS_ALL_PARTIALS // likewise, all blocks'
} Flag;

typedef enum LoopNodeKind {
  NODE_COMMENT, // words
  NODE_UNUSED,  // var
  NODE_INDEX,   // var = value
  NODE_COUNTER, // var = value, which the loops behind it count on
  NODE_ADVANCE, // var += value
  NODE_FOR,     // var from value to end by step: body
  NODE_SCOPE,   // body
  NODE_IF,      // test (or the flag of access): body; otherwise
  NODE_FLAG,    // the flag of access is set: FLAG_WANTED; FLAG_STREAMED, where rows start cache lines and there is more
                // than `end` of value elements
  NODE_POINTER, // where the access's row starts: address
  NODE_LOCAL,   // of the step's own: `room`, with nelems elements
  NODE_LET,     // the value of expr
  NODE_COMBINE, // the value of expr: of the parts that blocks left
  NODE_BEGIN_SUM,     // sum = identity
  NODE_UPDATE,        // sum = sum (+) value of expr
  NODE_END_RUN,       // total = total (+) accumulators
  NODE_END_SUM,       // expr = its sum over lanes
  NODE_LOAD_PARTIAL,  // held = vector of partial sums at address
  NODE_STORE_PARTIAL, // vector of partial sums at address = held
  NODE_STORE,         // address = value of expr
  NODE_SPILL,         // leaves the vector of expr at address for later sweeps
  NODE_LOAD_ROWS,     // rows across lanes, transposed into the step's copy
  NODE_STORE_ROWS,
  NODE_LOAD_COLUMN, // the vector at address into the step's copy
  NODE_PREFETCH,
  NODE_PEEL_COUNT, // var = elements from address to the next cache line
  // Of blocks
  NODE_PARTIALS,       // the block's partial sums: where they are
  NODE_INIT_PARTIAL,   // the partial sum at address = identity
  NODE_STEP,           // a step
  NODE_REDUCE_PARTIAL, // the block's partial sum at address from those of its lanes
  NODE_FENCE           // what went past the caches is there for other threads
} LoopNodeKind;

typedef enum LocalKind { // memory of a step
  LOCAL_TEMPORARY,       // of the access
  LOCAL_POINTERS,        // of the access, one for each row
  LOCAL_COPY,            // of the access's rows across lanes
  LOCAL_SPILLED,         // of expr's vectors, for later sweeps
  LOCAL_SCALARS          // of expr, one for each row
} LocalKind;

typedef enum Load { // how a value is made
  LOAD_NONE,        // it is computed
  LOAD_ELEMENT,     // a scalar
  LOAD_BROADCAST,   // an element for all lanes
  LOAD_DENSE,
  LOAD_STRIDED,
  LOAD_GATHERED, // each lane by an offset of its own
  LOAD_COPIED,   // from the step's copy
  LOAD_SPILLED   // from where an earlier sweep left it
} Load;

typedef struct LoopNode LoopNode;
struct LoopNode {
  LoopNodeKind kind;
  LoopNode *next;
  LoopNode *body, *otherwise; // lists
  const char *words;          // NODE_COMMENT
  Var var;
  const Index *value, *end, *step;
  const Index *test;  // NODE_IF
  const Index *bound; // NODE_FOR: ends before this, too; NULL: there is none
  bool is_down;       // NODE_FOR: from end - 1 to value
  bool is_unrolled;   // NODE_FOR
  bool is_whole;      // NODE_FOR: as long as a whole step is left; NODE_COUNTER has begun it
  // NODE_FOR of vectors, before schedule_split_vectors: `count` accumulators take turns.
  bool is_vectors;
  bool has_tail;   // steps may not come out even: fewer lanes than a vector may be left
  AccessId peeled; // where is_peeled: whose rows are stored from cache lines on, after what lies before these
  int sweep;
  Flag flag; // NODE_FLAG; others are done where it is set
  AccessId access;
  Address address;
  LocalKind local;
  int64_t nelems;       // NODE_LOCAL; NODE_LOAD_ROWS, NODE_STORE_ROWS: of a row
  ExprId expr;          // whose value is made, stored or added
  bool is_vector;       // of what is made, stored or added
  bool is_row;          // one for each row that is handled together
  bool has_fewer_lanes; // only the first VAR_LANES lanes are there
  Load load;            // NODE_LET
  bool is_written;
  bool is_streamed; // NODE_STORE, NODE_STORE_ROWS: past the caches where the flag of address.access says so
  bool is_strided;  // NODE_STORE
  SumPlace sum;     // NODE_BEGIN_SUM, NODE_UPDATE
  AccumulatorChoice accumulator;
  int count; // NODE_BEGIN_SUM, NODE_END_RUN, NODE_END_SUM: of accumulators
  ExprOp reduction;
  bool is_f64;     // of the sum
  bool is_widened; // it is in f64, and its operands in f32
  bool is_fused;   // NODE_UPDATE: a product enters the sum before it is rounded
  bool has_totals; // NODE_END_SUM
  bool is_tile;    // NODE_STEP: it takes elements from begin to end
  bool is_peeled;  // NODE_FLAG, NODE_FOR of vectors: rows are peeled to cache lines
};

typedef struct LoopTree {
  const Kernel *k;
  const Loop *plan;
  Form *form;                 // by ExprId
  bool *is_made;              // by ExprId: some node makes or uses it
  bool calls_long;            // functions of many instructions are called, as there are many in the loop
  LoopNode *step, *tail_step; // lists; tail_step: a step of the last rows across lanes, NULL: there is none
  LoopNode *block;            // a list
} LoopTree;

typedef struct Wants {         // which results a caller may leave out
  const bool *is_optional;     // by value->index: outputs; NULL: none
  const bool *may_be_unwanted; // by temporary: partial sums that are for such outputs alone; NULL: none
} Wants;

// Building: nodes are added at the end of the list that is open. Memory is the arena's; out of memory is a flag.
enum { MOST_NESTED = 40 };
bool expr_is_long(ExprOp op); // takes tens of instructions a vector

typedef struct TreeBuilder {
  Arena *arena;
  bool out_of_memory;
  LoopNode **end, **ends[MOST_NESTED];
  LoopNode *following[MOST_NESTED]; // of the open lists, what follows what is added
  int depth;
  LoopNode spare;
} TreeBuilder;

const Index *index_number(TreeBuilder *b, int64_t number, Monomial monomial);
const Index *index_var(TreeBuilder *b, VarKind kind, uint32_t of);
const Index *index_of(TreeBuilder *b, IndexOp op, const Index *x, const Index *y);
const Index *index_loop(TreeBuilder *b, IndexOp op, uint32_t loop);
const Index *index_choose(TreeBuilder *b, const Index *test, const Index *x, const Index *y);
// How far it is from b to a, which are flattened, along an axis: ((a / below % extent) - (b / below % extent)) *
// stride.
const Index *index_distance(TreeBuilder *t, const Index *a, const Index *b, const Index *below, const Index *extent,
                            const Index *stride);
typedef enum IndexType { INDEX_EITHER, INDEX_INT, INDEX_SIZE } IndexType; // in C; numbers are either
IndexType index_type(const Index *i);
bool index_is(const Index *i, int64_t number);
LoopNode *tree_add(TreeBuilder *b, LoopNode node);
void tree_open(TreeBuilder *b, LoopNode **at); // what is added next goes there, before what is there
void tree_close(TreeBuilder *b);
Var loop_var(VarKind kind); // of no axis or access
bool index_mentions(const Index *i, Var v);
bool nodes_mention(const LoopNode *n, Var v); // in an index or address of theirs, or of what is below them
const Index *index_replace(TreeBuilder *b, const Index *i, Var replaced, const Index *with);
// A copy of the nodes, at the end of the open list, with `with` in the place of the variable `replaced`.
void tree_add_copy(TreeBuilder *b, const LoopNode *nodes, Var replaced, const Index *with,
                   bool (*change)(LoopNode *copy, int count), int count); // may change each; false leaves it out

#endif
