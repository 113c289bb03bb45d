// Lowering: turns the operators of a region into expressions of one kernel.
//
// A region is a set of nodes that become one kernel. The kernel iterates over one domain: the largest shape in the
// region. Nodes are lowered in topological order, each by the function bound to its operator's row. A value computed
// inside the region becomes an expression; every other value becomes a load.
#ifndef NGRAD_PASSES_LOWER_LOWER_H
#define NGRAD_PASSES_LOWER_LOWER_H

#include "ir/kernel/kernel.h"
#include "ir/operators/operator.h"
#include "passes/costs/costs.h"

// Group norm splits the domain's axis C into two axes of the kernel, (group, channel in group), so that the kernel's
// later axes have a number one higher than the domain's. Functions below take axes of the domain. An axis map may also
// contain GROUP_AXIS, which stands for the axis of groups.
enum { GROUP_AXIS = MAX_RANK };

// Which results of a region its kernel computes, and how constants are represented.
typedef struct LoweredPart {
  uint32_t slots; // mask of the output slots that the kernel computes, as a single node may need several kernels
  bool broadcasts_constants;     // a splat constant varies over its tensor's axes, as a load would
  uint32_t piece;                // the number of the piece, if the node is computed in pieces (passes/lower/pieces.h)
  const SliceGroup *slice_group; // the kernel computes one slice of the slice group; NULL: it computes all elements
  bool keeps_axes;               // the kernel's axes are those of the domain, not yet simplified
  bool has_unused; // a group norm's kernel stores the results that nothing uses, too, until the forms of its sums are
                   // known (kernel_drop_unused), so that these follow from the operator
} LoweredPart;

// State of the region being lowered. The arrays are all zeros between two regions, so that one allocation serves a
// whole graph.
typedef struct LowerScratch {
  ExprId *value_expr; // by value->index: the expression of a value computed in the region; 0: computed elsewhere
  bool *is_inside;    // by node->index: the node is in the region
  bool *is_prologue;  // by node->index: the node is in the prologue of an operand (prologue.c)
  const Costs *costs; // of the kernels
} LowerScratch;

// costs NULL: usual_costs. False: out of memory.
bool lower_scratch_init(LowerScratch *scratch, Arena *arena, const Graph *g, const Costs *costs);

// Maps a product's operand to the kernel while the nodes that compute the operand are lowered: the domain is then the
// operand's shape, and each of its axes is an axis of the kernel or goes through a bound.
typedef struct View {
  int axis[MAX_RANK]; // by the domain's axis: as for lower_bounded_load, without COMPUTED
  Bound bounds[MAX_RANK];
  Bound made[MAX_RANK]; // of the access that is being made
} View;

// The indices on an axis of the results that the kernel computes: begin, begin + step, ... All indices (0, 1, 2, ...)
// unless the kernel computes a piece.
typedef struct Places {
  int64_t begin, step;
} Places;

typedef struct Lowering {
  Kernel *kernel;
  Shape domain;            // without extra axes, which are the kernel's last axes (lower_extra_axis)
  Places places[MAX_RANK]; // by axis of the domain
  uint32_t cut_axes;       // mask of the domain's axes of which the kernel has only a part
  int split_axis;          // the domain's axis that is split into (group, channel in group); -1: none
  Extent ngroups;          // number of groups
  LoweredPart part;
  bool has_sums;         // the node that is being lowered has some (node_has_sums)
  View *view;            // NULL: the domain's axes are the kernel's
  ExprId *value_expr;    // LowerScratch's
  const bool *is_inside; // LowerScratch's
} Lowering;

// lower_NAME(l, node), one function per operator: adds the node's expressions and calls lower_result for each output.
#define OP(name, ...) void lower_##name(Lowering *l, const Node *node);
#include "ir/operators/operators.def"
#undef OP
#define LOWER(name, statement) /* a lowering of one statement */                                                       \
  void lower_##name(Lowering *l, const Node *node) {                                                                   \
    statement;                                                                                                         \
  }

// The value as an expression over the domain. The value's axis i is the domain's axis `axis[i]`; axes of extent 1 are
// broadcast. With `axis` NULL, as in lower_value, axes are aligned at the right, as in numpy.
ExprId lower_value(Lowering *l, const Value *v);
ExprId lower_value_on(Lowering *l, const Value *v, const int *axis);

// An s64 value with one element, computed outside of the region, as an operand of EXPR_IS_KEPT.
ExprId lower_s64(Lowering *l, const Value *v);

// A tensor's strides along its own axes, in elements; stride[i] grows with monomial[i].
typedef struct Strides {
  int64_t stride[MAX_RANK];
  Monomial monomial[MAX_RANK];
} Strides;
Strides strides_of(const Shape *shape, const Layout *layout);
Strides value_strides(const Value *v); // in the memory that holds the value, which may be an alias

// An access to the memory that holds the value, at its first element, without strides.
static inline Access value_access(const Value *v) {
  Access a = {.value = (Value *)v, .type = v->type};
  if (!v->alias) return a;
  a.value = v->alias->of;
  a.offset = v->alias->offset;
  a.offset_monomial = v->alias->offset_monomial;
  return a;
}

// Loads a value with the given strides, instead of the value's own, along the last `rank` axes of the domain. The
// expression `offset`, in elements, is added to the address; 0: none. The value must be computed outside of the region.
ExprId lower_strided_load(Lowering *l, const Value *v, const Strides *strides, int rank, ExprId offset);

Extent lower_group_length(const Lowering *l); // the number of channels in a group

// Converts a mask of the domain's axes to a set of the kernel's axes.
AxisSet lower_axes(const Lowering *l, uint32_t axes);

// Whether the node is the multiplication of a sum of products that is spelled by two nodes: of factors that are both
// broadcast, so that no tensor should hold the products. They are not rounded.
bool node_spells_products(const Node *node);

// Sets the node's output `slot` to `e`, and stores it if it is used outside of the region. `axis` is as for
// lower_value_on. Does nothing if the graph does not use the output or this kernel does not compute it.
void lower_result(Lowering *l, const Node *node, uint32_t slot, ExprId e, const int *axis);

// The row-major index of the value's element at a point of the domain, independent of the value's layout. An index
// expression without storage: nothing is loaded through the access.
AccessId lower_index_of_element(Lowering *l, const Value *v);

// The index on an axis of the results.
ExprId lower_index(const Lowering *l, int axis);

// The index begin + step * (index on an axis of the results), as a bound whose extent and stride are not set.
Bound lower_index_bound(const Lowering *l, int axis, int64_t begin, int64_t step);

// The kernel's axis for one of the extra axes of the node's domain, from 0.
int lower_extra_axis(const Lowering *l, int extra);

// The kernel's axis for an axis of the domain; for a split axis, the axis of channels in a group.
int lower_axis(const Lowering *l, int axis);

// Loads a value along axes of the kernel. The value's axis i is the kernel's axis axis[i], or axis[i] is one of:
enum {
  BOUNDED = -1, // goes through bounds[i], of which the caller has set the offset and the factors
  STEPPED = -2, // likewise, and the index is never outside of the value
  COMPUTED = -3 // the index is part of `offset`, which is in elements. No other axis may then be BOUNDED
};
// A value that the region computes is not loaded, but computed by its prologue. `offset` 0: no axis is COMPUTED.
ExprId lower_bounded_load(Lowering *l, const Value *v, const int *axis, const Bound *bounds, double outside,
                          ExprId offset);

// views.c. view_place: converts the strides of an access from the domain's axes to the kernel's, through the view.
// view_index: the index on an axis of the domain, whose extent is not 1. lower_inside: `e` where the bound holds,
// `outside` elsewhere. access_add_steps: adds the bound's index times its stride; an
// axis of extent 1 loses its factor.
void view_place(const Lowering *l, Access *a);
ExprId view_index(const Lowering *l, int axis);
ExprId lower_inside(Lowering *l, const Bound *b, ExprId e, double outside);
void access_add_steps(Kernel *k, Access *a, Bound *b, bool is_bounded);

// prologue.c. mark_prologues: marks the nodes in prologues, from nodes in topological order. lower_prologue: computes
// an operand by its prologue.
void mark_prologues(Node *const *nodes, size_t nnodes, const LowerScratch *scratch);
ExprId lower_prologue(Lowering *l, const Value *v, const int *axis, const Bound *bounds, double outside);
void lower_node(Lowering *l, const Node *node); // calls lower_NAME of its operator (table.c)

// Whether a kernel of the node computes in f64.
bool node_computes_in_f64(const Costs *costs, const Node *node);

// Whether both nodes compute in the same type: f32, f64 or s64. All nodes of a region agree.
bool nodes_compute_alike(const Costs *costs, const Node *node, const Node *other);

// Stores `e` to the slice of output 0 that has the domain's shape and begins at `start` along `axis`; `start` grows
// with start_monomial.
void lower_piece(Lowering *l, const Node *node, ExprId e, int axis, int64_t start, Monomial start_monomial);

// Lowers nodes, given in topological order, to one unscheduled kernel in the arena. The kernel stores the values that
// nodes outside of the region use. NULL: out of memory.
Kernel *lower_region(Arena *arena, const Graph *g, Node *const *nodes, size_t nnodes, LoweredPart part,
                     const LowerScratch *scratch);

// The domain of the node alone, without extra axes.
Shape node_domain(const Node *node);

#endif
