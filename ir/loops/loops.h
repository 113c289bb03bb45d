// Loop trees: the statements that compute a kernel. Most map to a line of C.
//
// Each loop of a kernel has a tree of two functions. `block` runs a range of the flattened outer axes (or a tile of the
// only axis) on one thread and calls `step`, the micro-kernel; blocks may run in parallel. `step` computes one outer
// iteration ("row"), `rows` of them, LANES of them with rows in lanes, or a tile. It computes scalars first, then the
// sweeps over the inner axes; after a sweep, the scalars that depend on the sweep's sums. With rows in lanes,
// `tail_step` computes the last rows of a block, fewer than LANES.
//
// Decisions are fields of nodes; NODE_SCATTER is a whole loop, which each printer and executor writes itself.
// passes/schedule builds trees, loops_verify checks them, backends/codegen/print writes them as C. `ngrad show
// --format loops` prints them; the comments below quote its lines after a colon. Sum of a row of 100 elements, each
// lane in f32:
//
//   step
//     acc_sum = 0.0, vectors of f32            NODE_BUFFER, of BUFFER_SUM
//     count i from 0                           NODE_INDEX with is_counter
//     for i += 16 while i + 16 <= 100          NODE_FOR with is_counter
//       vector x = load p_x + i                NODE_LET, from BUFFER_ROW
//       acc_sum += x                           NODE_UPDATE
//     if i < 100                               NODE_IF: the tail, with VAR_LANES = 4 lanes
//       n = 100 - i                            NODE_INDEX
//       vector x = load p_x + i, n lanes       has_fewer_lanes: the other lanes are 0
//       acc_sum += x, n lanes
//     scalar sum = sum of the lanes of acc_sum in f64     NODE_LET, from BUFFER_SUM
#ifndef NGRAD_IR_LOOPS_LOOPS_H
#define NGRAD_IR_LOOPS_LOOPS_H

#include "ir/kernel/schedule.h"

// Integers: variables (variables.def) and expressions of variables.

typedef enum VarKind {
#define VARIABLE(kind, prefix, suffix, owner, is_int) VAR_##kind,
#include "ir/loops/variables.def"
  VAR_KINDS
} VarKind;

typedef enum VarOwner { OWNER_FUNCTION, OWNER_AXIS, OWNER_ACCESS } VarOwner;
typedef struct VarInfo {
  const char *prefix, *suffix;
  VarOwner owner;
  bool is_int;
} VarInfo;
extern const VarInfo var_info[VAR_KINDS];

typedef struct Var {
  VarKind kind;
  uint32_t of; // the owner: an axis or access; else 0
} Var;

typedef enum IndexOp {
  INDEX_NUMBER,
  INDEX_VAR,
  INDEX_BLOCK_LENGTH, // iterations in a block of `loop`, if they depend on open dims
  INDEX_NCUT_BLOCKS,  // blocks of `loop` for each index on its batch axes, if they depend on open dims
  INDEX_ADD,
  INDEX_SUBTRACT,
  INDEX_MULTIPLY,
  INDEX_DIVIDE,
  INDEX_REMAINDER,
  INDEX_LESS, // comparisons yield 1 or 0
  INDEX_AT_MOST,
  INDEX_AT_LEAST,
  INDEX_MORE,
  INDEX_EXCEEDS, // a > b, where b elements fit into the caches
  INDEX_DIFFERS,
  INDEX_BOTH,   // a && b
  INDEX_CHOOSE, // a ? b : c
  INDEX_SIGNED, // args[0] as ptrdiff_t: a difference, computed modulo 2^64, that may be negative
  // Of an address:
  INDEX_EXISTS,     // its buffer has memory: the caller wants the output, or what needs the partial sums
  INDEX_IS_AT_LINE, // it begins a cache line
  INDEX_TO_LINE     // int: the number of elements to the next cache line
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
typedef enum IndexType { INDEX_EITHER, INDEX_INT, INDEX_SIZE, INDEX_OF_ARGS } IndexType; // in C; literals fit both
typedef struct IndexOperator {
  const char *text; // printed between the operands
  int precedence;
  IndexType type;
} IndexOperator;
extern const IndexOperator index_operators[]; // by op

struct Address;
typedef struct Index {
  IndexOp op;
  int64_t number;    // INDEX_NUMBER: its value at the hints of open dims
  Monomial monomial; // INDEX_NUMBER: the open dims among its factors; 0: a literal
  Var var;           // INDEX_VAR
  uint32_t loop;     // INDEX_BLOCK_LENGTH, INDEX_NCUT_BLOCKS
  const struct Index *args[3];
  const struct Address *address;
} Index;

// Buffers: where values live. A buffer belongs to an access or to an expression, and its kind says in which memory it
// is.
//
// Sums are buffers in registers. Vector accumulators in the kernel's type add up a row. To keep chains of f32 additions
// short, a row may be cut into runs: at the end of each run the accumulators are added to a total (f64), lane by lane
// if each lane has a sum of its own, else the sum of all lanes. For sums over outer axes each block has an array of
// partial sums; a later loop combines these in the order of the blocks.

typedef enum BufferKind {
  BUFFER_NONE,
  BUFFER_TENSOR,   // the access's tensor or temporary: `dy + d0 * 440`
  BUFFER_ROW,      // a row pointer into that, one for each row of the step: `p_dy[r] + i`; or the step's own temporary
  BUFFER_PARTIALS, // the block's partial sums, in the access's temporary: `part_dgamma + i`
  BUFFER_COPY,     // the step's array of the access's rows, transposed, for rows in lanes: `rows_x + i * 16`; or of a
                   // vector of each row: `rows_x + r * 16`
  BUFFER_SPILL,    // the step's array of the expression's vectors, from one sweep to later ones: `spilled_e + i`
  BUFFER_VALUE,    // the expression's value; with ITEM_OF_ROW, one for each row of the step: `e[r]`
  BUFFER_SUM,      // vector accumulators of the sum: `acc_sum`
  BUFFER_TOTAL,    // that sums of runs, or scalars, are added to, of f64; a vector if lanes have sums of their own:
                   // `total_sum`
  BUFFER_HELD,     // a vector of the block's partial sums: `held_dgamma`
  BUFFER_KINDS
} BufferKind;
typedef enum Space {
  SPACE_TENSOR, // a tensor, or a temporary in the workspace
  SPACE_BLOCK,  // what a block has of a temporary
  SPACE_STACK,  // arrays of the step, of whole vectors
  SPACE_REGISTERS
} Space;
typedef struct BufferInfo {
  const char *prefix; // of its name, before that of the access or expression
  Space space;
  bool is_of_expr; // else of an access
} BufferInfo;
extern const BufferInfo buffer_info[BUFFER_KINDS];

typedef struct Address {
  BufferKind buffer;
  uint32_t of;        // the AccessId or ExprId
  const Index *item;  // of a buffer that has several: `acc_sum[r]`; NULL: it has one, or the node takes all
  const Index *index; // in elements; NULL: 0
  // Of loads with a bound that varies from lane to lane (node_lane_bound): the index of lane 0, modulo 2^64, so that
  // one comparison tests both ends. A lane is loaded if within + lane * factor < extent, else it is the access's
  // `outside`: `lanes where i + kx - 1 + lane < 56, else 0.0`
  const Index *within;
} Address;

extern const Index item_of_row, item_of_vector,
    item_of_both; // r; in a group of vectors, u; of several rows, u * rows + r

typedef enum Form { // the C type that holds an expression's value
  FORM_NONE,
  FORM_NUMBER, // a literal
  FORM_SCALAR,
  FORM_ROWS, // an array with a scalar for each row of the step
  FORM_VECTOR
} Form;

// The words value, var, to and so on below are fields of LoopNode.
typedef enum LoopNodeKind {
  NODE_COMMENT, // no effect. words: `sweep: store dx, sum sum_g`
  NODE_INDEX,  // a constant, var = value: `d0 = o + r`; 0 if its test is 0. With is_counter a variable, which following
               // loops over it advance: `count i from 0`; a sum of itself adds to it: `i += n`
  NODE_FOR,    // for var from value to end by step: body: `for d0 in 0..40`
  NODE_IF,     // if test: body; else otherwise. Without a test a scope: { body }
  NODE_BUFFER, // declares the buffer `to`. In registers: `count` accumulators or totals, set to the reduction's
               // identity: `acc_sum = 0.0, vectors of f32`; or what it holds, of address `from`: `held_dgamma = load
               // part_dgamma + i`. A pointer to address `from`: `p_x = x + d0 * 440`. Else a local array of `count`
               // items: `local p_x[2]: pointers`
  NODE_LET, // expr = its operator of its arguments: `vector t9 = sub(x, mean)`; or the elements `from` memory, or the
            // sum: the total, or the reduction over the lanes of accumulators: `scalar sum = sum of the lanes of
            // acc_sum in f32`
  NODE_UPDATE,  // adds to the buffer `to` the value of expr: `acc_sum += x`. Without expr: of accumulators `from`, to a
                // total: `total_sum += sum of the lanes of acc_sum`; of a block's partial sums `from`, to a total, in
                // f64: `total_dgamma += temporary0_dgamma + b * 440 + i`
  NODE_STORE,   // to memory `to`: the value of expr, a partial sum that is held, or else the reduction's identity
  NODE_MOVE,    // between a tensor and the step's copy, or (expr, which it stores) a panel. LANES rows of `count`
                // elements, `step` apart, are transposed; else a vector of each row, whose lanes are `step`
                // apart, or one vector: `rows_x + i * 16 = load p_x + i * 50`
  NODE_BARRIER, // of the compiler: the totals `to` are in memory from here on, not in registers
  NODE_PREFETCH, // fetches the cache line of address
  // In blocks only:
  NODE_CALL,    // calls step, or tail_step: `step, rows = 2`
  NODE_SCATTER, // the block's rows of the scatter expr: sets them to zero, then adds the rows whose indices refer to
                // them
  NODE_FENCE    // makes streamed stores visible to other threads
} LoopNodeKind;

typedef struct VectorLoop { // a loop over vectors, before schedule_split_vectors replaces it
  int count;                // vectors of a group
  int rest;                 // whole vectors after the last group, which form a smaller group; 0: not known
  int sweep;                // that the loop is of
  bool has_tail;  // the extent is no multiple of LANES, or not known to be one: a tail of fewer than LANES elements may
                  // follow
  bool is_peeled; // elements before a row's first cache line are stored separately
  AccessId peeled; // by the store through this access
} VectorLoop;

typedef struct LoopNode LoopNode;
// What a node does, by its kind and what it has (actions.def).
typedef enum Action {
  ACTION_NONE, // of unsound trees
#define ACTION(NAME, name, kind, to, from, has_expr) ACTION_##NAME,
#include "ir/loops/actions.def"
  ACTIONS
} Action;

struct LoopNode {
  LoopNodeKind kind;
  LoopNode *next;
  LoopNode *body, *otherwise; // lists
  const char *words;          // NODE_COMMENT
  Var var;
  const Index *value, *end, *step; // NODE_CALL: lanes of a tail step; end of the step's part of the vector axis
  const Index *bound;              // NODE_FOR: a second end, the loop stops at the smaller one; NULL: none
  const Index *test;               // the node has no effect where it is 0; what it declares is then empty, and what it
                                   // loads is the access's `outside`: `load x + i * 8, where oy * 2 + ky - 1 < 56, else
                                   // 0.0`. NULL: none
  const VectorLoop *vectors;       // NODE_FOR over vectors
  Address to, from;
  ExprId expr;
  int64_t count;    // items of a buffer, elements of a row; NODE_CALL: rows
  bool is_down;     // NODE_FOR: var goes from end - 1 down to value
  bool is_unrolled; // NODE_FOR
  bool is_counter;  // var is a counter: NODE_INDEX sets it; NODE_FOR continues from its value while var + step <= end
  bool is_vector;   // the value computed, stored or added, or an item of the buffer, is a vector
  bool has_fewer_lanes; // only the first VAR_LANES lanes hold elements; NODE_CALL: calls tail_step
  bool is_held;         // NODE_LET: a load whose result stays in a register for all rows
  bool is_streamed;     // NODE_STORE, NODE_MOVE: bypasses the caches
  bool is_fused;        // NODE_UPDATE: adds a product with one rounding (fused multiply-add)
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

// The types of a sum follow from its buffer, and its reduction from its expression or temporary.

// Where what is kept of variables and buffers lies in one array each: of owner `of` at the kind's slot + of.
typedef struct TreeSlots {
  size_t vars[VAR_KINDS + 1], buffers[BUFFER_KINDS + 1]; // the last: how many there are
} TreeSlots;
TreeSlots tree_slots(const LoopTree *t);

// The parameters of the step, or of the tail step, besides partial sums. Returns their number.
enum { MOST_PARAMETERS = 5 };
int tree_parameters(const LoopTree *t, bool is_tail, Var *parameters);
bool access_is_own(const LoopTree *t, AccessId id); // of a temporary that each step has for itself
// With rows in lanes: the accumulators of the sum, at most LANES. Element i goes to accumulator i % LANES, as it would
// go to that lane if vectors lay along the row; at the end they are combined as lanes are. 0: the sum has one
// accumulator.
int tree_element_sums(const LoopTree *t, ExprId sum);

Action node_action(const LoopNode *n);
AccessId node_access(const LoopNode *n);                     // of the memory that it reads, or else writes; 0: none
const Address *node_memory(const LoopNode *n);               // the address in memory that it reads, or else writes
const Address *node_sum(const LoopNode *n);                  // the buffer that the node declares, adds to or takes
ExprOp node_reduction(const LoopTree *t, const LoopNode *n); // EXPR_NONE: the node has no sum
bool node_is_of_rows(const LoopTree *t, const LoopNode *n);  // it is repeated for each row of the step
bool node_ends_sum(const LoopNode *n);                       // NODE_LET of accumulators or a total
bool node_adds_lanes(const LoopTree *t, const LoopNode *n);  // its sum is that of all lanes, and a total of it a scalar
bool node_combines(const LoopTree *t, const LoopNode *n);    // its sum combines the partial sums of blocks, in f64
bool node_is_f64(const LoopTree *t, const LoopNode *n);      // items of its sum are f64
bool node_is_widened(const LoopTree *t, const LoopNode *n);  // they are, and the kernel computes in f32

typedef enum Load { // how NODE_LET loads, or NODE_UPDATE combines
  LOAD_NONE,        // not from memory
  LOAD_ELEMENT,     // one element, as a scalar
  LOAD_BROADCAST,   // one element, in all lanes
  LOAD_DENSE,       // neighbours in memory
  LOAD_STRIDED,     // elements `step` apart
  LOAD_GATHERED,    // elements at computed offsets, a different one for each lane
  LOAD_WHOLE        // a vector of the step's copy, or a spilled one
} Load;
Load node_load(const LoopTree *t, const LoopNode *n);

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
const Index *index_unfolded(TreeBuilder *b, IndexOp op, const Index *x, const Index *y); // also x * 1
const Index *index_of_address(TreeBuilder *b, IndexOp op, Address at);
bool index_is_var(const Index *i, Var var);
const Index *index_loop(TreeBuilder *b, IndexOp op, uint32_t loop);
const Index *index_signed(TreeBuilder *b, const Index *x);
const Index *index_choose(TreeBuilder *b, const Index *test, const Index *x, const Index *y);
IndexType index_type(const Index *i);
bool index_is(const Index *i, int64_t number);
bool index_equals(const Index *a, const Index *b);
LoopNode *tree_add(TreeBuilder *b, LoopNode node);
void tree_open(TreeBuilder *b, LoopNode **at); // opens a list at this link, before the nodes already there
void tree_close(TreeBuilder *b);
Var loop_var(VarKind kind); // for kinds that belong to no axis and no access
enum { NODE_INDICES = 10 };
const Index **node_index(LoopNode *n, int i); // the members that are indices; NULL: the node has no such one
bool nodes_mention(const LoopNode *n, Var v); // an index or address of the nodes or their bodies contains v
const Index *index_replace(TreeBuilder *b, const Index *i, Var replaced, const Index *with);
// Appends a copy of the nodes to the open list, with the variable `replaced` replaced by `with`. change(copy, t, count)
// may edit each copy; if it returns false, the copy is left out. change NULL: copies stay as they are.
void tree_add_copy(TreeBuilder *b, const LoopNode *nodes, Var replaced, const Index *with,
                   bool (*change)(LoopNode *copy, const LoopTree *t, int count), const LoopTree *t, int count);

#endif
