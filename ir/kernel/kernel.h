// Kernels: what a fused region computes.
//
// A kernel has one iteration domain (a list of axes with extents) and one DAG of expressions. Each expression carries
// the set of axes over which it varies; a reduction removes axes from the set. An access describes how the domain
// reads or writes a tensor: it has a stride for each axis. Fusing two operators means building both in one kernel.
//
// The stores are the specification: they say which expression each result is. A schedule (ir/kernel/schedule.h) says
// in which loops, and in which order of additions, the stores are computed.
//
// With open dims (ir/graph/open.h) each number that depends on them is its value at the hints; the monomial beside it
// is the product of dims by which it grows. A property that must hold for all values of the dims has to look at both.
#ifndef NGRAD_IR_KERNEL_KERNEL_H
#define NGRAD_IR_KERNEL_KERNEL_H

#include "ir/graph/partition.h"

// LANES: elements of a vector, on every target. LONGEST_CHAIN: the most additions in f32 into a partial sum of a block,
// or along a row that lies in one lane.
enum { MAX_AXES = 16, LANES = 16, LONGEST_CHAIN = 256 };

typedef uint32_t AxisSet; // bit i: axis i
typedef uint32_t ExprId;  // index in kernel->exprs; 0: none, which builders return when they are out of memory
typedef uint32_t AccessId;

typedef struct Axis {
  const char *name;
  int64_t extent;
  Monomial monomial;
} Axis;

// An axis of a tensor along which several axes of the domain step, or that the domain goes beyond: windows with
// padding, and their adjoints. The row of a window of 3 with stride 2 and padding 1: 2 * oy + ky - 1, in a tensor of 56
// rows.
typedef struct Bound {
  int64_t offset, extent; // the index is offset + the sum of index * factor over the axes; inside: 0 <= index < extent
  int64_t factor[MAX_AXES]; // may be negative; an axis has a factor in at most one bound of an access
  int64_t stride;           // of the tensor's axis, in elements
  // The indices from reach_begin to below reach_end are those of all kernels that compute a piece of the same result,
  // of which a copy may have all. Equal: not known.
  int64_t reach_begin, reach_end;
} Bound;

// A view of a tensor: the element at an index of the domain is offset + the sum of index * stride over the axes. The
// stride is 0 along the axes over which the access does not vary.
//
// A load of an access with bounds yields `outside` where some bound's index is not inside, and touches no memory there.
// The bounds' numbers, and the extents of axes with factors, depend on no open dim. Such an axis has the stride
// (stride of the bound * factor), so that strides and the offset may be negative. What is stored has no bounds.
//
// An access of TYPE_NONE without a value has no storage: its element number is a value itself (Dropout's counter).
//
// A temporary of booleans is a mask of one bit for each lane. Along the vector axis its stride is 1, in bits, and each
// row is padded to a multiple of LANES; along other axes, strides and the offset are in bytes.
typedef struct Access {
  Value *value;       // NULL: a temporary of the schedule
  uint32_t temporary; // index in schedule->temporaries when value is NULL
  Type type;
  int64_t offset;           // elements before the first one; more than 0 when the access is a part of the tensor
  int64_t stride[MAX_AXES]; // in elements
  Monomial offset_monomial, stride_monomial[MAX_AXES];
  // 1 + the axis along which the elements of a temporary lie in panels of LANES: for index n on this axis, at
  // n / LANES * LANES * stride + n % LANES. Panels are as long as the other axes of the temporary; the last one is
  // padded. 0: none.
  int panel_axis;
  Bound *bounds; // the access's own
  size_t nbounds;
  double outside;
} Access;

typedef enum ExprOp {
  EXPR_NONE,
  EXPR_LOAD,       // the element of `access`; with args[0], the element that many elements further
  EXPR_CONSTANT,   // number
  EXPR_REDUCE_SUM, // reductions of args[0] over the axes in `reduced`
  EXPR_REDUCE_MAXIMUM,
  EXPR_REDUCE_PRODUCT,
  EXPR_COMBINE, // only in schedules: the reduction of the partial results in `access`, one for each block of `loop`
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
  EXPR_EXP,   // this one to EXPR_COS: C's functions of the same names, special values included
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
  EXPR_MAXIMUM,    // IEEE 754's maximum: NaN if an operand is NaN, and +0 > -0; the order of operands has no effect
  EXPR_ROUND_E4M3, // to the nearest number of the type and back
  EXPR_ROUND_E5M2,
  EXPR_INDEX,   // the index along the one axis over which it varies
  EXPR_INTEGER, // integer: a constant of s64; like a load with is_s64, an operand of EXPR_IS_KEPT only
  EXPR_IS_KEPT, // a mask: whether dropout keeps the element that `access` numbers, with seed a and offset b (both
                // s64) and the probability c of dropping it
  EXPR_COUNT,   // number, with a monomial
  EXPR_SHARE,   // 1 / max(number, 1), with a monomial
  EXPR_OP_COUNT
} ExprOp;

typedef struct ExprInfo { // a row of the table of expression operators
  const char *name;       // of its function in the vector vocabulary, after v_ or d_
  int narguments;
  bool is_mask; // the result is a mask
} ExprInfo;
extern const ExprInfo expr_info[EXPR_OP_COUNT];

typedef struct ReductionInfo { // a row of the table of reductions
  ExprOp combine;              // the operator that combines two results; EXPR_NONE: the row is no reduction
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
  int64_t integer;   // EXPR_INTEGER; EXPR_CONSTANT of a kernel that computes in s64, whose number is the nearest
  bool is_s64;       // EXPR_INTEGER, EXPR_LOAD of s64: the integer itself, an operand of EXPR_IS_KEPT only. Without
                     // it, a load of s64 yields the nearest float
  Monomial monomial; // EXPR_COUNT, EXPR_SHARE: of number
  const char *label; // stem of its name in the emitted text; NULL: none
} Expr;

typedef struct Store { // the element of `access` is `value`, along all of the access's axes
  AccessId access;
  ExprId value;
} Store;

typedef struct Kernel {
  Arena *arena;       // the program's
  const Graph *graph; // whose dims the monomials refer to; NULL: there are no open dims
  const char *name;
  Axis axes[MAX_AXES];
  int naxes;
  bool is_f64; // computes in f64 instead of f32
  bool is_s64; // computes in s64, in lanes as wide as those of f64: is_f64 is set too
  Expr *exprs; // arguments before users; [0] unused; a schedule adds expressions of its own behind the kernel's
  size_t nexprs, exprs_capacity;
  Access *accesses; // likewise
  size_t naccesses, accesses_capacity;
  Store *stores;
  size_t nstores, stores_capacity;
  Node **nodes; // the graph's nodes that it computes, in topological order
  size_t nnodes;
  const char *piece;       // which piece of its nodes it computes, as text; NULL: all of them
  const Visit *visit;      // the kernel computes a slice, and runs once for each; NULL: it computes all
  const Dim *closed;       // an open dim that the kernel needs a literal value for; NULL: it works for all values
  const Node *closing;     // the node that needs it
  const char *unsupported; // why no kernel can compute its nodes; NULL: one can
  bool out_of_memory;
} Kernel;

// Building. Builders return 0 after setting kernel->out_of_memory, and accept 0 as an operand, so that only the end of
// a lowering has to check. An expression or access that equals an earlier one is that one.
void kernel_init(Kernel *k, Arena *arena, const char *name);
int kernel_add_axis(Kernel *k, const char *name, int64_t extent, Monomial monomial);
AccessId kernel_add_access(Kernel *k, const Access *access); // copies the bounds
void kernel_store(Kernel *k, AccessId access, ExprId value);
ExprId expr_load(Kernel *k, AccessId access);
ExprId expr_load_s64(Kernel *k, AccessId access);               // with is_s64
ExprId expr_load_at(Kernel *k, AccessId access, ExprId offset); // offset: in elements, an integral number
ExprId expr_index(Kernel *k, int axis);
ExprId expr_integer(Kernel *k, int64_t integer);
ExprId expr_is_kept(Kernel *k, AccessId place, ExprId seed, ExprId offset, ExprId probability);
ExprId expr_constant(Kernel *k, double number);
ExprId expr_constant_over(Kernel *k, double number, AxisSet axes);  // varies over axes, as a tensor of the number would
ExprId expr_integer_over(Kernel *k, int64_t integer, AxisSet axes); // the same in a kernel that computes in s64
ExprId expr_count(Kernel *k, int64_t count, Monomial monomial);     // a constant if the monomial is 0
ExprId expr_share(Kernel *k, int64_t count, Monomial monomial);     // 1 / max(count, 1)
ExprId expr_unary(Kernel *k, ExprOp op, ExprId a);
ExprId expr_binary(Kernel *k, ExprOp op, ExprId a, ExprId b);
ExprId expr_fma(Kernel *k, ExprId a, ExprId b, ExprId c); // a * b + c
ExprId expr_select(Kernel *k, ExprId mask, ExprId a, ExprId b);
// A reduction over axes over which `a` does not vary is a product or a power of it.
ExprId expr_reduce(Kernel *k, ExprOp reduction, ExprId a, AxisSet reduced);
ExprId expr_sum(Kernel *k, ExprId a, AxisSet reduced); // the sum of -0 alone is +0
ExprId expr_combine(Kernel *k, AccessId partial_sums, uint32_t loop, AxisSet axes);
ExprId expr_with_arguments(Kernel *k, const Expr *e, const ExprId *args); // e, which is no leaf, with other operands
ExprId expr_label(Kernel *k, ExprId e, const char *label);                // labels e unless it has a label; returns e

// Expressions and accesses

bool expr_is_reduction(const Expr *e);
bool expr_has_access(const Expr *e); // `access` is meaningful (EXPR_COMBINE apart)
bool expr_is_mask(const Kernel *k, ExprId e);
bool expr_operations_equal(const Expr *a, const Expr *b);   // equal except for operands and axes; false for two NaNs
AxisSet access_axes(const Kernel *k, const Access *access); // the axes with a stride, or with a factor in a bound
bool access_is_mask(const Access *access);
bool access_has_addresses(const Access *access);       // elements have byte addresses: they are stored, and not packed
int64_t access_lane_stride(const Access *a, int axis); // from element to element along lanes that lie on this axis
bool access_strides_equal(const Access *a, const Access *b);
bool kernel_stores(const Kernel *k, AccessId access); // one of the stores writes through the access

// Bounds

bool access_has_conditions(const Kernel *k, const Access *access); // some bound does not hold for all indices
bool bound_always_holds(const Kernel *k, const Bound *b);          // at all indices of the domain
bool bound_never_holds(const Kernel *k, const Bound *b);
// The indices *begin..*end on the axis, which has a factor, at which it holds at all indices on the other axes.
void bound_interior(const Kernel *k, const Bound *b, int axis, int64_t *begin, int64_t *end);
AxisSet bound_axes(const Bound *b); // the axes with a factor
// Elements of the tensor that the access reaches along these axes, at most. Windows may overlap.
int64_t access_nelems_along(const Kernel *k, const Access *access, AxisSet axes);
// Prints "x[2 * d1 + d4 - 1 in 0..56, d2 in 0..8], else 0.0", without the name.
void access_print_bounds(const Kernel *k, const Access *access, Text *out);

// Extents

// Of domains that have more indices, such as those of windows far larger than their tensors, GREATEST_NELEMS is said.
#define GREATEST_NELEMS ((int64_t)1 << 56)
int64_t axes_nelems(const Kernel *k, AxisSet axes);
Monomial axes_monomial(const Kernel *k, AxisSet axes); // of axes_nelems
// The greatest known divisor of the number for all values of the dims.
int64_t kernel_factor(const Kernel *k, int64_t number, Monomial monomial);
// Records that the kernel works for the hint of one of these dims only.
void kernel_close(Kernel *k, Monomial monomial);

// Bytes. Of a kernel in a visit, those of all slices.

typedef struct Traffic {
  int64_t read, written;
} Traffic;
int64_t access_value_nbytes(const Kernel *k, AccessId id); // of its tensor; of a result, the part that is stored
bool access_reads_again(const Kernel *k, AccessId id);     // an earlier access reads its tensor, too
Traffic kernel_tensor_nbytes(const Kernel *k);             // of all tensors, each counted once; without temporaries

// Operations of arithmetic, on the whole domain: additions, multiplications, maxima, and each elementary function
// as one. Values that several results share count once. False: out of memory.
bool kernel_count_operations(const Kernel *k, Arena *arena, double *out);

// Prints the operators that the kernel computes: "LayerNorm (lines 4, 7 to 9), Add (line 10)"; of a piece of them,
// which one: "MaxPoolBackward (line 5) at [:, :, 0::2, 1::2]".
void kernel_print_nodes(const Kernel *k, Text *out);

#endif
