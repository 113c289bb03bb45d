// Properties of the operators that move elements.
#ifndef NGRAD_IR_OPERATORS_MOVEMENT_H
#define NGRAD_IR_OPERATORS_MOVEMENT_H

#include "ir/graph/extents.h"
#include "ir/operators/operator.h"

// The permutation of a transpose: the output's axis i is the input's axis axes[i]. False if the attribute `order` is
// not a permutation of `rank` axes.
bool transpose_axes(const Node *node, int rank, int axes[MAX_RANK]);

// Diagonal: to[i] is dst's axis for src's axis i. axis1 and axis2 both become dst's last axis.
void diagonal_axes(const Node *node, int to[MAX_RANK]);

// The attribute `axis` of a verified node, in 0 .. rank - 1.
int axis_of(const Node *node, int rank);

// How Slice and Pad read src along an axis: index i of dst reads begin + step * i of src. Pad also reads outside of
// src.
typedef struct AxisRead {
  int64_t begin, step;
} AxisRead;

// The reads of a verified node, by axis. {0, 1}, the whole axis forwards, holds for every extent. Another read holds
// for the axis's extent, or for extent 2 if a named extent has no value.
void node_reads(const Node *node, AxisRead reads[MAX_RANK]);

// The same for one axis, as formulas: the first index, and the number of indices. False: they have none, and node_reads
// is right only for a whole axis.
bool node_read_formulas(const Node *node, int axis, Formula *first, Formula *count);

// The numbers of elements that a Slice leaves out in front of those that it reads, and behind. Bounds of which one is
// negative are refused, and so are those of which the number of indices is. False: as above.
bool node_left_out(const Node *node, int axis, Formula *front, Formula *behind);

// Whether a start or end of a Slice, or the pads of a Pad, have names on the axis: *first in front, *last behind,
// unknown if it is a number. node_reads holds for the values of the names then, also where both extents are numbers.
bool node_has_named_reads(const Node *node, int axis, Extent *first, Extent *last);

// An item of a list of numbers or named extents, as a formula. False: it is a number out of range.
bool item_formula(const AttributeValue *list, size_t i, Formula *f);

// The number of parts of a Split, and the index on the axis at which each part begins. Extents must have numbers.
uint32_t split_nparts(const Node *node);
void split_starts(const Node *node, int64_t starts[MAX_OPERANDS + 1]); // the last item is the end of the last part
// The extent of a part on the axis, also of named extents; unknown if it has no formula. False: out of memory.
bool split_extent(const Node *node, Graph *g, uint32_t part, Extent *e);

// Whether all indices of a Gather are one number, for all values of open dims. *place: the index that the number stands
// for, which may be outside of the tensor.
bool gather_place(const Node *node, int64_t *place);

// An upper bound on the offsets that the kernel of a Gather, or of a Slice backwards along an open dim, computes from
// indices: the number of elements of the tensor, or MAX_ELEMENTS if strides depend on open dims. 0 for other nodes, and
// if gather_place finds the index.
int64_t gather_greatest_place(const Node *node);

// Sets StaticReshape's attributes for a reshape from one shape to another. False: out of memory.
bool node_set_shape(Graph *g, Node *node, const Shape *from, const Shape *to);

// The same as numbers. A named extent is written as 0 (if `from` has the same extent on the same axis; *special_zero is
// then true) or as -1 (once). Fills items[to->rank]. False: numbers cannot express the reshape.
bool reshape_list(const Shape *from, const Shape *to, int64_t *items, bool *special_zero);

#endif
