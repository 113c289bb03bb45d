// Kernels: what a fused region computes.
//
// A kernel has one iteration domain (a list of axes with extents) and one DAG of expressions. Each expression has the
// set of axes over which it varies; a reduction removes axes from the set. An access maps the domain's indices to
// elements of a tensor: it has a stride for each axis. Two operators are fused by building both in one kernel.
//
// The stores define the results: each writes an expression to a tensor. A schedule (ir/kernel/schedule.h) chooses the
// loops that compute the stores, and the order of additions.
//
// With open dims (ir/graph/open_dims.h) a number that depends on them is stored as its value at the hints, with its
// monomial in a field beside it. A property that must hold for all values of the dims must be decided from both.
#ifndef NGRAD_IR_KERNEL_KERNEL_H
#define NGRAD_IR_KERNEL_KERNEL_H

#include "ir/graph/partition.h"

struct Costs; // passes/costs/costs.h

// LANES: elements of a vector, on every target. LONGEST_CHAIN: the most f32 additions in sequence, into the partial sum
// of a block or along a row that one lane adds.
enum { MAX_AXES = 16, LANES = 16, LONGEST_CHAIN = 256 };

typedef uint32_t AxisSet; // bit i: axis i
typedef uint32_t ExprId;  // index in kernel->exprs; 0: no expression; builders return 0 when out of memory
typedef uint32_t AccessId;

typedef struct Axis {
  const char *name;
  int64_t extent;
  Monomial monomial;
  uint64_t places; // which axes of the operators it is: a digit of base 16 for each, the outermost first, 1 for the
                   // last axis of a result. Both parts of a split axis have its digits. 0: none
} Axis;

// An axis of a tensor whose index is a sum over several axes of the domain, or may lie outside of the tensor: windows
// with padding, and their adjoints. Example, rows of a 3-tap window with stride 2 and padding 1 in a tensor of 56 rows:
// 0 <= 2 * oy + ky - 1 < 56.
typedef struct Bound {
  int64_t offset, extent; // the index is offset + the sum of index * factor over the axes; inside: 0 <= index < extent
  int64_t factor[MAX_AXES]; // may be negative; at most one bound of an access has a factor for an axis
  int64_t stride;           // of the tensor's axis, in elements; grows with stride_monomial
  Monomial stride_monomial;
  Monomial offset_monomial; // the offset grows with it, while the access is lowered; 0 in kernels
  // All kernels that compute pieces of the same result read indices reach_begin .. reach_end - 1, so that one copy can
  // serve all of them. reach_begin = reach_end: not known.
  int64_t reach_begin, reach_end;
} Bound;

// A view of a tensor: at a point of the domain, the element's number is offset + the sum of index * stride over the
// axes. The stride is 0 along axes over which the access does not vary.
//
// Where the index of a bound is not inside, a load yields `outside` and touches no memory. The bounds' numbers, and the
// extents of axes with factors, depend on no open dim. An axis with a factor has the stride (stride of the bound *
// factor), so strides and the offset may be negative. Accesses of stores have no bounds.
//
// An access of TYPE_NONE without a value is an index expression without storage: Dropout uses the element's number as
// its counter.
//
// A temporary of booleans is a bit mask, one bit for each lane. Along the vector axis its stride is 1 bit, and each row
// is padded to a multiple of LANES bits; along other axes, strides and the offset are in bytes.
typedef struct Access {
  Value *value;       // NULL: a temporary of the schedule
  uint32_t temporary; // index in schedule->temporaries when value is NULL
  Type type;
  int64_t offset;           // number of the first element; above 0 when the access is a part of the tensor
  int64_t stride[MAX_AXES]; // in elements
  Monomial offset_monomial, stride_monomial[MAX_AXES];
  // 1 + the axis along which a temporary is stored in panels of LANES elements, as packed operands of matrix products
  // are: index n on this axis is at n / LANES * LANES * stride + n % LANES. A panel has all indices of the other axes;
  // the last panel is padded. 0: no panels.
  int panel_axis;
  Bound *bounds; // owned by the access
  size_t nbounds;
  double outside;
} Access;

typedef enum ExprOp {
  EXPR_NONE,
  EXPR_LOAD,       // the element of `access`; with args[0], the element args[0] elements further
  EXPR_CONSTANT,   // number
  EXPR_REDUCE_SUM, // reductions reduce args[0] over the axes in `reduced`
  EXPR_REDUCE_MAXIMUM,
  EXPR_REDUCE_PRODUCT,
  EXPR_COMBINE, // only in schedules: reduces the partial results in `access`, one for each block of `loop`
  EXPR_ADD,
  EXPR_SUB,
  EXPR_MUL,
  EXPR_DIV,
  EXPR_NEG,
  EXPR_SQRT,
  EXPR_MAX,       // a > b ? a : b, so b if either is NaN
  EXPR_FMA,       // a * b + c, rounded once; of integers, it wraps around
  EXPR_GT,        // a mask
  EXPR_SELECT,    // mask ? a : b
  EXPR_ROUND_F32, // rounds to f32 in a kernel that computes in f64
  EXPR_ROUND_F16,
  EXPR_ROUND_BF16,
  EXPR_ABS,
  EXPR_MIN,   // a < b ? a : b, so b if either is NaN
  EXPR_EQ,    // a mask
  EXPR_GE,    // a mask
  EXPR_EXP,   // from here to EXPR_COS: C's functions of the same names, with their special values
  EXPR_EXPM1, // e^a - 1
  EXPR_LOG,
  EXPR_LOG1P, // log(1 + a)
  EXPR_TANH,
  EXPR_ERF,
  EXPR_SIN,
  EXPR_COS,
  EXPR_GELU,       // a (1 + erf(a / sqrt(2))) / 2
  EXPR_GELU_SLOPE, // its derivative
  EXPR_POW,        // a to the power of b
  EXPR_FLOOR,
  EXPR_ROUND,      // to the nearest integer, half to even
  EXPR_MAXIMUM,    // IEEE 754's maximum: propagates NaN, and +0 > -0; commutative
  EXPR_ROUND_E4M3, // rounds to an 8-bit float
  EXPR_ROUND_E5M2,
  EXPR_INDEX,   // the index on the one axis in `axes`
  EXPR_INTEGER, // a constant of s64; only EXPR_IS_KEPT takes it as an operand
  EXPR_IS_KEPT, // a mask: whether dropout keeps the element whose number `access` gives, with seed a and offset b (both
                // s64), and probability c of dropping an element
  EXPR_COUNT,   // `number`, which grows with the monomial
  EXPR_RECIPROCAL, // 1 / max(`number`, 1), which grows with the monomial
  EXPR_FMOD,       // C's function of the same name; of integers, 0 if b is 0
  EXPR_ROUND_ODD,  // in f64: to 13 bits, with the last bit set if digits were lost: if a rounding to 11 bits or fewer
                   // follows, the two are as good as one
  EXPR_OP_COUNT
} ExprOp;

typedef struct ExprInfo { // a row of the table of expression operators
  const char *name;       // of its function in the emitted vector functions, after v_ or d_
  int narguments;
  bool is_mask;       // the result is a mask
  bool is_elementary; // computed by tens of instructions
  bool has_s64;       // kernels that compute in s64 have it: results wrap around
  // Arithmetic operations for each element, of a reduction for each that it reduces; 0: it selects, moves or converts.
  double operations;
} ExprInfo;
extern const ExprInfo expr_info[EXPR_OP_COUNT];

typedef struct ReductionInfo { // a row of the table of reductions
  ExprOp combine;              // combines two partial results; EXPR_NONE: the row is no reduction
  double identity;             // the result over no elements
} ReductionInfo;
extern const ReductionInfo reductions[EXPR_OP_COUNT];

typedef struct Expr {
  ExprOp op;
  AxisSet axes;
  ExprId args[3];
  AccessId access;
  AxisSet reduced;
  uint32_t loop; // EXPR_COMBINE: index in schedule->loops
  double number;
  int64_t integer; // EXPR_INTEGER; EXPR_CONSTANT in a kernel that computes in s64, where `number` is the nearest double
  bool is_element; // EXPR_MUL: the product is an element of a tensor, and rounded wherever it is used. Sums of other
                   // products add them unrounded
  bool is_s64; // EXPR_INTEGER, EXPR_LOAD of s64: the result is the integer, an operand of EXPR_IS_KEPT only. If unset,
               // a load of s64 yields the nearest float
  Monomial monomial; // EXPR_COUNT, EXPR_RECIPROCAL: the monomial of `number`
  const char *label; // stem of the variable's name in emitted code; NULL: none
} Expr;

typedef struct Store { // stores `value` to the element of `access`, at all indices of the access's axes
  AccessId access;
  ExprId value;
} Store;

typedef struct Kernel {
  Arena *arena;              // the program's
  const Graph *graph;        // the graph of the open dims in monomials; NULL: there are none
  const struct Costs *costs; // the thresholds by which passes decide; NULL: not known yet
  const char *name;
  Axis axes[MAX_AXES];
  int naxes;
  bool is_f64; // computes in f64 instead of f32
  bool is_s64; // computes in s64, in 64-bit lanes: is_f64 is set too
  bool is_row; // of several: the first axis of the domain has a single index, and no sum goes over it
  Expr *exprs; // arguments before users; [0] is unused; a schedule appends expressions to the kernel's
  size_t nexprs, exprs_capacity;
  Access *accesses; // likewise
  size_t naccesses, accesses_capacity;
  Store *stores;
  size_t nstores, stores_capacity;
  Node **nodes; // the graph's nodes that the kernel computes, in topological order
  size_t nnodes;
  const char *piece;             // text: the piece of its nodes' results that the kernel computes; NULL: all
  const SliceGroup *slice_group; // the kernel computes one slice of the slice group, and runs once for each slice;
                                 // NULL: it computes all
  const Dim *closed;   // an open dim for which the kernel needs a literal value; NULL: the kernel works for all values
  const Node *closing; // the node that needs the literal value
  const char *unsupported; // why no kernel can compute these nodes; NULL: the kernel can
  bool out_of_memory;
} Kernel;

// Memory of the kernel's arena, all 0. NULL: out of memory, with k->out_of_memory set. kernel_grow is arena_grow with
// this flag.
#define KERNEL_ARRAY(k, type, count) ((type *)kernel_array(k, count, sizeof(type)))
void *kernel_array(Kernel *k, size_t count, size_t nbytes_each);
bool kernel_grow(Kernel *k, void *array, size_t count, size_t *capacity, size_t nbytes_each);

// Building. Builders return 0 after setting kernel->out_of_memory, and accept 0 as an operand, so that only the end of
// a lowering has to check. A builder returns an existing expression or access if an equal one exists.
void kernel_init(Kernel *k, Arena *arena, const char *name);
int kernel_add_axis(Kernel *k, const char *name, int64_t extent, Monomial monomial); // of no places
uint64_t places_join(uint64_t outer, uint64_t inner); // of an axis that is both; the parts of one axis are that axis
// Gives the access a stride along an axis with a single index, which moves nothing: what depends on the access can vary
// over the axis. A single row so stays a row, and is added up as one of many.
void access_take_unit_axis(Access *a, int axis);
// Sets row-major strides along these axes; `next`, times *monomial, is the stride of the last axis. Returns the stride
// of a next axis.
int64_t access_stack_axes(const Kernel *k, AxisSet axes, int64_t next, Monomial *monomial, Access *a);
void kernel_spread_axis(Kernel *k, int axis); // lets all that depends on accesses along the axis vary over it
AccessId kernel_add_access(Kernel *k, const Access *access); // copies the bounds
void kernel_store(Kernel *k, AccessId access, ExprId value);
ExprId expr_load(Kernel *k, AccessId access);
ExprId expr_load_s64(Kernel *k, AccessId access);               // sets is_s64
ExprId expr_load_at(Kernel *k, AccessId access, ExprId offset); // offset: in elements, an integral number
ExprId expr_index(Kernel *k, int axis);
ExprId expr_integer(Kernel *k, int64_t integer);
ExprId expr_is_kept(Kernel *k, AccessId counter, ExprId seed, ExprId offset, ExprId probability);
ExprId expr_constant(Kernel *k, double number);
ExprId expr_constant_over(Kernel *k, double number, AxisSet axes);   // the number, marked as varying over `axes`
ExprId expr_integer_over(Kernel *k, int64_t integer, AxisSet axes);  // likewise, in a kernel that computes in s64
ExprId expr_count(Kernel *k, int64_t count, Monomial monomial);      // an EXPR_CONSTANT if the monomial is 0
ExprId expr_reciprocal(Kernel *k, int64_t count, Monomial monomial); // 1 / max(count, 1)
ExprId expr_unary(Kernel *k, ExprOp op, ExprId a);
ExprId expr_binary(Kernel *k, ExprOp op, ExprId a, ExprId b);
ExprId expr_fma(Kernel *k, ExprId a, ExprId b, ExprId c); // a * b + c
ExprId expr_element(Kernel *k, Type type, ExprId e); // as an element of a tensor of this type: rounded to a float type
ExprId expr_select(Kernel *k, ExprId mask, ExprId a, ExprId b);
// Over axes on which `a` does not vary, a sum becomes a multiplication by the extent, a product becomes a power.
ExprId expr_reduce(Kernel *k, ExprOp reduction, ExprId a, AxisSet reduced);
ExprId expr_sum(Kernel *k, ExprId a, AxisSet reduced); // a sum that adds only -0 yields +0
ExprId expr_combine(Kernel *k, AccessId partial_sums, uint32_t loop, AxisSet axes);
ExprId expr_with_arguments(Kernel *k, const Expr *e, const ExprId *args); // e with other operands; e has operands
ExprId expr_label(Kernel *k, ExprId e, const char *label);                // labels e unless it has a label; returns e

// Expressions and accesses

Type kernel_type(const Kernel *k); // in which the kernel computes: f32, f64 or s64
bool expr_is_reduction(const Expr *e);
// The reduction is a maximum of f32 numbers: it does not round, and needs neither f64 nor short chains.
bool reduction_is_exact(const Kernel *k, ExprOp reduction);
bool expr_has_access(const Expr *e); // `access` is meaningful; false for EXPR_COMBINE
bool expr_is_mask(const Kernel *k, ExprId e);
bool expr_operations_equal(const Expr *a, const Expr *b);   // except operands and axes; false for two NaNs
AxisSet bound_axes(const Bound *b);                         // axes with a factor
AxisSet access_axes(const Kernel *k, const Access *access); // axes with a stride, or with a factor in a bound
bool access_is_mask(const Access *access);
bool access_has_addresses(const Access *access); // has storage, and its type is not packed
bool access_strides_equal(const Access *a, const Access *b);
bool kernel_stores(const Kernel *k, AccessId access); // one of the stores writes through the access
bool kernel_stores_value(const Kernel *k, const Value *v);

// Bounds

bool access_has_conditions(const Kernel *k, const Access *access); // a bound fails at some point of the domain
bool bound_always_holds(const Kernel *k, const Bound *b);          // at all points of the domain
bool bound_never_holds(const Kernel *k, const Bound *b);
// The expression as an index, offset + the sum of factor * index, without extent and stride. False: it has another
// form.
bool bound_of_index(const Kernel *k, ExprId id, Bound *b);
void bound_range(const Kernel *k, const Bound *b, int64_t *least, int64_t *most); // of the index, over the domain
// The interior: indices *begin .. *end - 1 on the axis, at which the bound holds for all indices on the other axes. The
// axis has a factor.
void bound_interior(const Kernel *k, const Bound *b, int axis, int64_t *begin, int64_t *end);
// At most how many distinct elements of the tensor the access reaches along these axes. Overlapping windows share
// elements.
int64_t access_nelems_along(const Kernel *k, const Access *access, AxisSet axes);
// Prints "x[2 * d1 + d4 - 1 in 0..56, d2 in 0..8], else 0.0", without the name.
void access_print_bounds(const Kernel *k, const Access *access, Text *out);

// Extents

// The largest result of axes_nelems. Larger domains, as of windows far larger than their tensors, yield this number.
#define GREATEST_NELEMS ((int64_t)1 << 56)
int64_t axes_nelems(const Kernel *k, AxisSet axes);
Monomial axes_monomial(const Kernel *k, AxisSet axes); // of axes_nelems
// The greatest known divisor of the number, for all values of the dims.
int64_t kernel_factor(const Kernel *k, int64_t number, Monomial monomial);
// Records that the kernel works only if one of these dims has its hint's value.
void kernel_close(Kernel *k, Monomial monomial);

// Bytes. For a kernel in a slice group, these functions add up all slices.

typedef struct Traffic {
  int64_t read, written;
} Traffic;
int64_t access_value_nbytes(const Kernel *k, AccessId id); // of the whole tensor; of a result, of the stored part
bool access_reads_again(const Kernel *k, AccessId id);     // an earlier access reads the same tensor
Traffic kernel_tensor_nbytes(const Kernel *k); // of all tensors, each counted once; temporaries do not count

// Counts arithmetic operations on the whole domain: additions, multiplications, maxima; an elementary function counts
// as one. A value that several results use counts once. False: out of memory.
bool kernel_count_operations(const Kernel *k, Arena *arena, double *out);

// Prints the kernel's operators: "LayerNorm (lines 4, 7 to 9), Add (line 10)", and the piece if the kernel computes a
// piece: "MaxPoolBackward (line 5) at [:, :, 0::2, 1::2]".
void kernel_print_nodes(const Kernel *k, Text *out);

#endif
