// Lowering: turns the operators of a region into expressions of one kernel.
//
// A region is a set of nodes that become one kernel. The kernel iterates over one domain: the largest shape in the
// region. Nodes are lowered in topological order, each by the function bound to its operator's row. A value computed
// inside the region becomes an expression; every other value becomes a load.
#ifndef NGRAD_PASSES_LOWER_LOWER_H
#define NGRAD_PASSES_LOWER_LOWER_H

#include "ir/kernel/kernel.h"
#include "ir/operators/operator.h"

// Group norm splits the domain's axis C into two axes of the kernel, (group, channel in group); the kernel's later axes
// are then numbered one higher. Functions below take axes of the domain. An axis map may also contain GROUP_AXIS, which
// stands for the axis of groups alone.
enum { GROUP_AXIS = MAX_RANK };

// Which results of a region its kernel computes, and how constants are represented.
typedef struct LoweredPart {
  uint32_t slots; // mask of the output slots that the kernel computes; a single node may need several kernels
  bool broadcasts_constants; // a constant with one value varies over its tensor's axes, as a load would
  uint32_t piece;            // of a node that is computed in pieces (passes/lower/pieces.h)
  const Visit *visit;        // the kernel computes one of its slices; NULL: all
  bool keeps_axes;           // the kernel's axes are those of the domain, not yet simplified
} LoweredPart;

// State of the region being lowered. All zeros between two regions, so that one allocation serves a whole graph.
typedef struct LowerScratch {
  ExprId *value_expr; // by value->index: the expression of a value computed in the region; 0: computed elsewhere
  bool *is_inside;    // by node->index: the node is in the region
  bool *is_prologue;  // by node->index: the node is in the prologue of an operand (prologue.c)
} LowerScratch;

bool lower_scratch_init(LowerScratch *scratch, Arena *arena, const Graph *g); // false: out of memory

// Where the elements of a product's operand are in the kernel, while the nodes that compute the operand are lowered:
// the domain is then the operand's shape, and its axes lie along axes of the kernel or along bounds.
typedef struct View {
  int axis[MAX_RANK]; // by the domain's axis: as for lower_bounded_load, without COMPUTED
  Bound bounds[MAX_RANK];
  Bound made[MAX_RANK]; // of the access that is being made
} View;

// The places on an axis of the results that the kernel's domain goes over: every step-th one from `begin` on. These are
// 0, 1, 2, ... unless the kernel computes a piece.
typedef struct Places {
  int64_t begin, step;
} Places;

typedef struct Lowering {
  Kernel *kernel;
  Shape domain;            // without extra axes: these are the kernel's last (lower_extra_axis)
  Places places[MAX_RANK]; // by axis of the domain
  uint32_t cut_axes;       // a mask of the domain's axes of which the kernel has a part only
  int split_axis;          // the domain's axis that is split into (group, channel in group); -1: none
  Extent ngroups;          // number of groups
  LoweredPart part;
  View *view;            // NULL: the domain's axes are the kernel's
  ExprId *value_expr;    // LowerScratch's
  const bool *is_inside; // LowerScratch's
} Lowering;

// lower_NAME(l, node), one function per operator: adds the node's expressions and calls lower_result for each output.
#define OP(name, ...) void lower_##name(Lowering *l, const Node *node);
#include "ir/operators/operators.def"
#undef OP

// The value as an expression over the domain: `axis[i]` is the domain's axis that the value's axis i runs along. Axes
// of extent 1 are broadcast. With `axis` NULL, as in lower_value, axes are aligned at the right, as in numpy.
ExprId lower_value(Lowering *l, const Value *v);
ExprId lower_value_on(Lowering *l, const Value *v, const int *axis);

// A value of s64 with one element, which is made outside of the region, as an operand of EXPR_IS_KEPT.
ExprId lower_s64(Lowering *l, const Value *v);

// A tensor's strides along its own axes, in elements: stride[i] times the open dims in monomial[i].
typedef struct Strides {
  int64_t stride[MAX_RANK];
  Monomial monomial[MAX_RANK];
} Strides;
Strides strides_of(const Shape *shape, const Order *order);
Strides value_strides(const Value *v); // in the memory that the value, perhaps an alias, is in

// An access to that memory, at the value's first element, without strides.
static inline Access value_access(const Value *v) {
  Access a = {.value = (Value *)v, .type = v->type};
  if (!v->alias) return a;
  a.value = v->alias->of;
  a.offset = v->alias->offset;
  a.offset_monomial = v->alias->offset_monomial;
  return a;
}

// Loads a value with the given strides, instead of the value's own, along the last `rank` axes of the domain. `offset`
// is an expression in elements that is added to the address; 0: none. The value must be made outside of the region.
ExprId lower_strided_load(Lowering *l, const Value *v, const Strides *strides, int rank, ExprId offset);

// Converts a mask of the domain's axes to a set of the kernel's axes.
AxisSet lower_axes(const Lowering *l, uint32_t axes);

// Sets the node's output `slot` to `e`, and stores it if it is used outside of the region. `axis` is as for
// lower_value_on. Does nothing if the graph does not use the output or this kernel does not compute it.
void lower_result(Lowering *l, const Node *node, uint32_t slot, ExprId e, const int *axis);

// The row-major index of the value's element at a point of the domain, whatever the value's layout. This is an index
// expression without storage: nothing is loaded through the access.
AccessId lower_index_of_element(Lowering *l, const Value *v);

// The coordinate along an axis of the results.
ExprId lower_index(const Lowering *l, int axis);

// The index begin + step * the coordinate along an axis of the results: a bound whose extent and stride are not set.
Bound lower_index_bound(const Lowering *l, int axis, int64_t begin, int64_t step);

// The kernel's axis for one of the extra axes of the node's domain, from 0.
int lower_extra_axis(const Lowering *l, int extra);

// The kernel's axis for an axis of the domain; of a split one, that of the channel in its group.
int lower_axis(const Lowering *l, int axis);

// Loads a value along axes of the kernel. The value's axis i runs along axis[i], or is one of:
enum {
  BOUNDED = -1, // along bounds[i], of which the caller has set the offset and the factors
  STEPPED = -2, // the same, and never outside of the value
  COMPUTED = -3 // its index is a part of `offset`, in elements; 0: there is no such axis. Then no axis is BOUNDED
};
// A value that is made in the region is computed here instead, by its prologue.
ExprId lower_bounded_load(Lowering *l, const Value *v, const int *axis, const Bound *bounds, double outside,
                          ExprId offset);

// bounded.c: an access with strides along the domain, as the view has it along the kernel; the index on an axis of the
// domain, which is not of extent 1; and `e` where the bound holds, `outside` elsewhere.
void view_place(const Lowering *l, Access *a);
ExprId view_index(const Lowering *l, int axis);
ExprId lower_inside(Lowering *l, const Bound *b, ExprId e, double outside);

// prologue.c: marks the nodes, in topological order, that are in prologues; and computes an operand by its prologue.
void mark_prologues(Node *const *nodes, size_t nnodes, const LowerScratch *scratch);
ExprId lower_prologue(Lowering *l, const Value *v, const int *axis, const Bound *bounds, double outside);
void lower_node(Lowering *l, const Node *node); // lower_NAME of its operator

// Whether a kernel of the node computes in f64.
bool node_computes_in_f64(const Node *node);

// Stores `e` to a slice of output 0 with the domain's shape, which begins at `start` (times the open dims in
// start_monomial) along `axis`.
void lower_piece(Lowering *l, const Node *node, ExprId e, int axis, int64_t start, Monomial start_monomial);

// Lowers nodes, given in topological order, to one unscheduled kernel in the arena. It stores the values that other
// nodes use. NULL: out of memory.
Kernel *lower_region(Arena *arena, const Graph *g, Node *const *nodes, size_t nnodes, LoweredPart part,
                     const LowerScratch *scratch);

// The domain of the node if it is alone in its region, without extra axes.
Shape node_domain(const Node *node);

#endif
