// Kernels: what the code generator prints.
//
// A kernel has one iteration domain (a list of axes with extents) and one DAG of expressions. Each expression carries
// the set of axes it varies over; a reduction removes axes from the set. Tensors are seen through accesses, which
// give a stride for each axis of the domain. Fusing two operators is building both into one kernel.
//
// Scheduling (passes/schedule/schedule.h) turns the DAG into loops: which axes are outer, which reductions finish
// inside an outer iteration and which only after a full loop, where values that two loops need are kept. It adds
// COMBINE expressions and temporaries, but never changes what is computed. After it, a kernel is its list of loops.
//
// In a graph with open dims (ir/graph/open.h) numbers stand for what they are at the hints; beside each are its powers.
// What must hold for all values looks at both.
#ifndef NGRAD_IR_KERNEL_KERNEL_H
#define NGRAD_IR_KERNEL_KERNEL_H

#include "ir/graph/partition.h"

enum { MAX_AXES = 16, LANES = 16, LONGEST_CHAIN = 256 };

typedef uint32_t AxisSet; // bit i: axis i
typedef uint32_t ExprId;  // index in kernel->exprs; 0: none, what builders return when out of memory
typedef uint32_t AccessId;

typedef struct Axis {
  const char *name;
  int64_t extent;
  Monomial monomial;
} Axis;

// A temporary of booleans holds masks: a bit for each lane of the vector axis, whose stride is 1, and a row of them
// filled up to LANES; strides along other axes are in bytes.
//
// A tensor as the domain sees it: element = offset + sum of index * stride over the axes. Outside of its own axes' set
// the stride is 0. An access of TYPE_NONE without a value has no storage: it is the row-major index of an element.
typedef struct Access {
  Value *value;       // NULL: a temporary of the kernel
  uint32_t temporary; // index in kernel->temporaries when value is NULL
  Type type;
  int64_t offset;           // of the first element, in elements: what is seen is a part
  int64_t stride[MAX_AXES]; // in elements
  Monomial offset_monomial, stride_monomial[MAX_AXES];
} Access;

typedef enum ExprOp {
  EXPR_NONE,
  EXPR_LOAD,       // access; with args[0], so many elements further
  EXPR_CONSTANT,   // number
  EXPR_REDUCE_SUM, // of args[0] over `reduced`; so the two below
  EXPR_REDUCE_MAXIMUM,
  EXPR_REDUCE_PRODUCT,
  EXPR_COMBINE, // after scheduling: of the partial results that the blocks of `loop` left in `access`
  EXPR_ADD,
  EXPR_SUB,
  EXPR_MUL,
  EXPR_DIV,
  EXPR_NEG,
  EXPR_SQRT,
  EXPR_MAX,       // a > b ? a : b
  EXPR_FMA,       // a * b + c, rounded once
  EXPR_GT,        // a mask
  EXPR_SELECT,    // mask ? a : b
  EXPR_ROUND_F32, // to the nearest f32 and back, where a kernel computes in f64
  EXPR_ROUND_F16,
  EXPR_ROUND_BF16,
  EXPR_ABS,
  EXPR_MIN,   // a < b ? a : b
  EXPR_EQ,    // a mask
  EXPR_GE,    // a mask
  EXPR_EXP,   // these as C's functions of the name, special values included
  EXPR_EXPM1, // e^a - 1
  EXPR_LOG,
  EXPR_LOG1P, // log(1 + a)
  EXPR_TANH,
  EXPR_GELU,       // a (1 + erf(a / sqrt(2))) / 2
  EXPR_GELU_SLOPE, // its derivative
  EXPR_POW,        // a to the power of b
  EXPR_FLOOR,
  EXPR_ROUND,      // to the nearest integer, half to even
  EXPR_MAXIMUM,    // IEEE 754's: NaN beside a NaN, and +0 above -0, so that no order of them matters
  EXPR_ROUND_E4M3, // as the other roundings
  EXPR_ROUND_E5M2,
  EXPR_INDEX,   // the coordinate on the one axis that it varies over
  EXPR_INTEGER, // integer: an s64, as a load of one is, which no arithmetic takes
  EXPR_IS_KEPT, // a mask: by dropout, of the s64 seed a and offset b and the probability c, for the element whose index
                // is `access`
  EXPR_COUNT,   // number, which has powers
  EXPR_SHARE,   // 1 divided by the greater of that and 1
  EXPR_OP_COUNT
} ExprOp;

typedef struct ExprInfo { // a row of the table of expression operators
  const char *name;       // in the vector vocabulary behind v_ or d_
  int narguments;
  bool is_mask;
} ExprInfo;
extern const ExprInfo expr_info[EXPR_OP_COUNT];

typedef struct ReductionInfo { // a row of the table of reductions
  ExprOp combine;              // of two results; EXPR_NONE: no reduction
  double identity;             // the result over no elements
} ReductionInfo;
extern const ReductionInfo reductions[EXPR_OP_COUNT];

typedef struct Expr {
  ExprOp op;
  AxisSet axes;
  ExprId args[3];
  AccessId access;
  AxisSet reduced;
  uint32_t loop; // EXPR_COMBINE
  double number;
  int64_t integer;
  Monomial monomial; // EXPR_COUNT, EXPR_SHARE: the number's
  const char *label; // stem of its name in the emitted text; NULL: none
} Expr;

typedef struct Store {
  AccessId access;
  ExprId value;
} Store;

typedef struct Temporary { // memory of a kernel between its loops
  const char *name;
  Type type;
  int64_t nelems;
  size_t offset;     // in the workspace, bytes; not of a graph with open dims
  ExprOp reduction;  // of which it holds blocks' partial results; EXPR_NONE: none
  uint32_t loop;     // whose blocks these are
  Monomial monomial; // of nelems without the count of blocks
  bool is_own;       // of each outer iteration, which alone needs it: in a step's own memory, not in the workspace
} Temporary;

// What a loop does at a point: in the order of the list, grouped by sweep.
typedef enum RootKind {
  ROOT_STORE,        // store access <- expr
  ROOT_REDUCE_INNER, // finish the reduction `expr` over the inner axes; its value is there in later sweeps, and that of
                     // one over the vector axis in a nested loop when an iteration of the middle axes has its vectors
  ROOT_REDUCE_OUTER  // add `expr` to the block's partial sum, kept in a temporary
} RootKind;

typedef struct Root {
  RootKind kind;
  int sweep;
  ExprId expr;
  AccessId access;       // ROOT_STORE; ROOT_REDUCE_OUTER: of the partial sums, strides as the inner axes have them
  bool is_streamed;      // ROOT_STORE: past the caches
  int64_t stream_nelems; // not 0: where its access has more elements
  bool is_fused;         // ROOT_REDUCE_*: the sum is of products, which enter it before they are rounded
} Root;

typedef struct Spill { // a vector that a sweep leaves in a step's own memory for later ones
  ExprId expr;
  int sweep; // the first that needs it
} Spill;
enum { MOST_SPILLS = 2 };

enum { LONGEST_RUN = 24 }; // additions in a chain of f32 before it enters a sum in f64; the rest of a row may add a few

// How sums along the vector axis are kept in short chains: a sweep's additions go by runs, of each of which the sum
// enters a total in f64. At most one of the three is set; none: each sum is one chain.
typedef struct Runs {
  int64_t vector_run; // elements of the vector axis
  int64_t middle_run; // iterations of the last middle axis
  bool is_open;       // the latter, of as many as LONGEST_RUN allows at the extents of a call
} Runs;

// A loop nest. Outer axes are flattened and cut into blocks, which run in parallel in any order; each outer iteration
// makes `nsweeps` sweeps over the inner axes, the last of which is cut into vectors of LANES.
typedef struct Loop {
  // The order of additions, which decides bits: kernel_order writes it, and no target is known there.
  int order[MAX_AXES]; // outer axes, slowest first, then inner axes
  int nouter, ninner;
  int nfree;     // the first of the outer axes, which outer reductions keep; blocks do not straddle them
  int64_t block; // iterations of the other outer axes in a block
  int64_t few_work, few_block, many_block; // few_work not 0: it is few_block where all axes together have at most
                                           // few_work elements, many_block where they have more
  int64_t most_chunks;                     // not 0: blocks are longer where loop_nchunks would be more, and partial
                                           // sums are in f64
  int64_t tile;                            // 0, or: no outer axes, one inner axis, of which a block is so many elements
  bool
      rows_in_lanes; // the last outer axis lies across lanes, LANES iterations a vector; the inner axis goes one by one
  bool is_nested;    // inner reductions are over the vector axis, in each iteration of the middle ones, and over these
  bool sums_middle;  // inner reductions are over the middle axes, of each vector along the last one, in its registers
  int accumulators;  // partial sums a lane keeps in an inner reduction over the vector axis
  Runs runs;
  bool is_side;        // for few values: what main loops keep, or what does not vary over all axes
  bool may_share_rows; // outer iterations may be handled together: sums have an accumulator each, no scalars are middle
  int dense_axis;      // along which most of what is accessed lies next to each other; side loops: not known

  // What kernel_tune may choose for a target.
  bool is_serial;      // so little work that sharing it out costs more than it saves
  int64_t serial_work; // not 0: that is so where all axes together have at most so many elements
  int rows;            // outer iterations handled together
  int vectors;         // sums_middle: vectors of results whose sums are made together; else 0
  int prefetch;        // outer iterations ahead that the last sweep fetches; 0: none
  int ahead;    // elements of the vector axis ahead that each sweep fetches, at the end of a run of them those of the
                // next iteration of the last middle axis; fewer than its literal extent; 0: none
  int iterations_ahead; // iterations of the last middle axis ahead that each sweep fetches; 0: none
  bool is_peeled;    // the sweep that streams begins each row with what lies before a cache line of its one store
  bool is_backwards; // the last sweep goes backwards over the middle axes, to begin with what the caches still hold
  Spill spills[MOST_SPILLS];
  int nspills;

  int nsweeps; // at least 1; roots that vary over outer axes only follow their sweep
  Root *roots; // by sweep
  size_t nroots, roots_capacity;
} Loop;

typedef struct Kernel {
  Arena *arena;       // the program's
  const Graph *graph; // whose dims the powers are of; NULL: there are none
  const char *name;
  Axis axes[MAX_AXES];
  int naxes;
  bool is_f64; // computes in f64 instead of f32
  Expr *exprs; // arguments before users; [0] unused
  size_t nexprs, exprs_capacity;
  Access *accesses;
  size_t naccesses, accesses_capacity;
  Store *stores;
  size_t nstores, stores_capacity;
  Temporary *temporaries;
  size_t ntemporaries, temporaries_capacity;
  Loop *loops; // after scheduling, in order
  size_t nloops, loops_capacity;
  Node **nodes; // that it computes, in the graph's order
  size_t nnodes;
  const Dim *closed;   // an open dim for which there is no kernel; NULL: there is one for all
  const Node *closing; // the one of its nodes that does not leave it open
  bool out_of_memory;
} Kernel;

typedef struct Room { // in the workspace, for values of which the number of elements has these powers
  Monomial monomial;
  size_t nbytes; // times the powers' product
} Room;

struct LoopTree; // ir/loops/loops.h
struct Wants;

typedef struct Program {
  Arena arena;
  const Graph *graph;
  const Partition *partition; // of the graph, that the kernels were made of
  Kernel **kernels;
  size_t nkernels;
  uint32_t *first_kernel; // by node->index: the first of the kernels that compute it
  size_t *value_offset;   // by value->index: place in the workspace of a value that lives between kernels; with open
                          // dims in its room, times the powers' product
  bool *is_in_workspace;  // by value->index
  Room *rooms;            // with open dims: one behind the other, each from a whole line on, and then temporaries
  size_t nrooms;
  size_t workspace_nbytes;
  // The tree of a kernel's loop, made when it is asked for, as all together are large. NULL: out of memory.
  struct LoopTree *(*loop_tree)(const Kernel *k, uint32_t loop, const struct Wants *wants, Arena *arena);
  size_t unshared_nbytes; // what the workspace would be if no two values ever had the same place
} Program;

void program_free(Program *p);

// Building. All return 0 after setting kernel->out_of_memory, and take 0 as an operand, so that only the end of a
// lowering needs to look. Equal expressions are made once.
void kernel_init(Kernel *k, Arena *arena, const char *name);
int kernel_add_axis(Kernel *k, const char *name, int64_t extent, Monomial monomial);
AccessId kernel_add_access(Kernel *k, const Access *access);
ExprId expr_load(Kernel *k, AccessId access);
ExprId expr_load_at(Kernel *k, AccessId access, ExprId offset); // elements, a whole number; 0: out of memory
ExprId expr_index(Kernel *k, int axis);
ExprId expr_integer(Kernel *k, int64_t integer);
ExprId expr_is_kept(Kernel *k, AccessId place, ExprId seed, ExprId offset, ExprId probability);
ExprId expr_constant(Kernel *k, double number);
ExprId expr_count(Kernel *k, int64_t count, Monomial monomial);    // a constant where it is a literal
ExprId expr_share(Kernel *k, int64_t count, Monomial monomial);    // 1 / count, or 1 for none
ExprId expr_constant_over(Kernel *k, double number, AxisSet axes); // as a tensor of it varies
ExprId expr_unary(Kernel *k, ExprOp op, ExprId a);
ExprId expr_binary(Kernel *k, ExprOp op, ExprId a, ExprId b);
ExprId expr_fma(Kernel *k, ExprId a, ExprId b, ExprId c); // a * b + c
ExprId expr_select(Kernel *k, ExprId mask, ExprId a, ExprId b);
ExprId expr_reduce(Kernel *k, ExprOp reduction, ExprId a, AxisSet reduced);
ExprId expr_sum(Kernel *k, ExprId a, AxisSet reduced); // that of nothing but -0 is +0
bool expr_is_reduction(const Expr *e);
bool expr_is_s64(const Kernel *k, const Expr *e);
bool expr_has_access(const Expr *e); // whether its access is more than 0
ExprId expr_combine(Kernel *k, AccessId partial_sums, uint32_t loop, AxisSet axes);
ExprId expr_with_arguments(Kernel *k, const Expr *e, const ExprId *args); // e of other operands; e is no leaf
ExprId expr_label(Kernel *k, ExprId e, const char *label);                // gives e a name unless it has one; returns e
void kernel_store(Kernel *k, AccessId access, ExprId value);
uint32_t kernel_add_temporary(Kernel *k, const char *name, Type type, int64_t nelems);
Loop *kernel_add_loop(Kernel *k);
bool loop_add_root(Kernel *k, Loop *loop, Root root);
void loop_sort_roots(Loop *loop); // by sweep

AxisSet access_axes(const Kernel *k, const Access *access); // axes with a stride
bool access_is_mask(const Access *access);
bool access_has_addresses(const Access *access); // its elements do: none are packed, or mere indices
bool expr_is_mask(const Kernel *k, ExprId e);
AxisSet root_axes(const Kernel *k,
                  const Root *root); // its expression's; a store repeats that along its access's other axes

bool kernel_stores(const Kernel *k, AccessId access); // whether a result is stored there

// Leaves out the expressions that no store needs, and the accesses that then nobody makes.
void kernel_drop_unneeded(Kernel *k);

// Drops axes of extent 1, puts the others into the order that most of memory has, and merges neighbours that every
// expression treats alike.
void kernel_simplify_axes(Kernel *k);

int64_t axes_nelems(const Kernel *k, AxisSet axes);
Monomial axes_monomial(const Kernel *k, AxisSet axes); // of axes_nelems
bool access_strides_equal(const Access *a, const Access *b);
// A divisor of the number whatever its dims' values are, the greatest that is known.
int64_t kernel_factor(const Kernel *k, int64_t number, Monomial monomial);
void kernel_close(Kernel *k, Monomial monomial); // there is no kernel for all values of these dims
AxisSet loop_outer_axes(const Loop *loop);
int loop_lane_axis(const Loop *loop); // along which vectors lie; -1: there is none
AxisSet loop_inner_axes(const Loop *loop);
int loop_vector_axis(const Loop *loop);                     // the innermost; -1: there is none
int64_t loop_row_nelems(const Kernel *k, const Loop *loop); // elements of a row in whole vectors; one inner axis
int64_t loop_nblocks(const Kernel *k, const Loop *loop);
bool loop_is_idle(const Kernel *k, const Loop *loop); // it has nothing to go over, or leaves nothing
// How long a block or a tile is; whether that depends on open dims.
bool loop_has_open_length(const Kernel *k, const Loop *loop);
int64_t loop_block_length(const Kernel *k, const Loop *loop); // at the hints
// Of how many blocks each iteration of the kept axes consists, and whether that depends on open dims.
int64_t loop_nchunks(const Kernel *k, const Loop *loop);
bool loop_has_open_chunks(const Kernel *k, const Loop *loop);
AxisSet loop_cut_axes(const Loop *loop); // those that blocks or tiles are cut along

typedef struct Traffic { // bytes
  int64_t read, written;
} Traffic;
// Of a tensor or temporary in memory; of one that is written, the part; 0 of what a step has in its own.
int64_t access_tensor_nbytes(const Kernel *k, AccessId id);
// Of all tensors that a kernel reads and writes, each once, without temporaries.
Traffic kernel_tensor_nbytes(const Kernel *k);

// The operators that it computes: "LayerNorm (lines 4, 7 to 9), Add (line 10)".
void kernel_print_nodes(const Kernel *k, Text *out);
// A loop's schedule in words: "over d0 4096 in 47 blocks of 88; inside d1 768", and what a sweep of it does: "store y,
// sum sum_g". No line ends.
void loop_print_order(const Kernel *k, const Loop *loop, Text *out);
void loop_print_sweep(const Kernel *k, const Loop *loop, int sweep, Text *out);

// The kernels of a program, their loops and schedules as text for people.
void program_print(const Program *p, Text *out);

#endif
