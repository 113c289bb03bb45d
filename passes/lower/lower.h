// Lowering: operators as expressions of a kernel.
//
// A region is a set of nodes that become one kernel over one domain, whose axes are those of the region's largest
// shape. Each node is lowered in topological order by the function bound to its operator's row; values made inside
// the region are expressions, all others loads.
#ifndef NGRAD_PASSES_LOWER_LOWER_H
#define NGRAD_PASSES_LOWER_LOWER_H

#include "ir/kernel/kernel.h"
#include "ir/operators/operator.h"

// One axis of the domain may be two of the kernel's: which part of it, and where in the part; those after it are then
// one further. Values have the domain's axes, but that a map may give one this axis, the parts alone:
enum { PART_AXIS = MAX_RANK };

// What of a region becomes the kernel, and how.
typedef struct LoweredPart {
  uint32_t slots;         // mask of the results that are stored: for a single node, which may have several kernels
  bool spreads_constants; // one number everywhere varies over its tensor's axes, as if it were loaded
  uint32_t piece;         // the input that becomes a part of the output, of a node with TRAIT_PIECES
} LoweredPart;

// What lowering knows of the region at work, for a graph's values and nodes; all zeros between two regions.
typedef struct LowerScratch {
  ExprId *value_expr; // by value->index: what a value made in the region is; 0: not made here
  bool *is_inside;    // by node->index: the node is in the region
} LowerScratch;

bool lower_scratch_init(LowerScratch *scratch, Arena *arena, const Graph *g); // false: out of memory

typedef struct Lowering {
  Kernel *kernel;
  Shape domain;
  int split_axis; // -1: none
  Extent nparts;
  LoweredPart part;
  ExprId *value_expr; // the scratch's
  const bool *is_inside;
} Lowering;

// One function an operator: reads operands, sets results.
#define OP(name, ...) void lower_##name(Lowering *l, const Node *node);
#include "ir/operators/operators.def"
#undef OP

// A value as the domain sees it. `axis[i]` is the domain's axis of the value's axis i; axes of extent 1 do not vary.
// The first aligns at the right, as numpy does.
ExprId lower_value(Lowering *l, const Value *v);
ExprId lower_value_on(Lowering *l, const Value *v, const int *axis);

// A value's strides along its own axes.
typedef struct Strides {
  int64_t stride[MAX_RANK];
  Monomial monomial[MAX_RANK];
} Strides;
Strides strides_of(const Shape *shape, const Order *order);

// A value from outside of the region, its element at a point of the last `rank` axes found by these strides, and
// `offset` elements further; 0: none.
ExprId lower_moved(Lowering *l, const Value *v, const Strides *strides, int rank, ExprId offset);

// The kernel's axes for a mask of the domain's.
AxisSet lower_axes(const Lowering *l, uint32_t axes);

// The node's result in `slot` is `e`. With axis NULL it is aligned at the right; else as for lower_value_on.
void lower_result(Lowering *l, const Node *node, uint32_t slot, ExprId e, const int *axis);

// The row-major index of each of the value's elements, whatever its layout, as the domain sees it.
AccessId lower_index_of_element(Lowering *l, const Value *v);

// The coordinate on an axis of the domain.
ExprId lower_index(const Lowering *l, int axis);

// `e` is the part of output 0 that begins at `start` on this axis, and is as the domain on the others.
void lower_piece(Lowering *l, const Node *node, ExprId e, int axis, int64_t start, Monomial start_monomial);

// A kernel of these nodes, which are in topological order; unscheduled. It stores what other nodes use. NULL: out of
// memory.
Kernel *lower_region(Arena *arena, const Graph *g, Node *const *nodes, size_t nnodes, LoweredPart part,
                     const LowerScratch *scratch);

// The shape that a region around this node iterates over.
Shape node_domain(const Node *node);

#endif
