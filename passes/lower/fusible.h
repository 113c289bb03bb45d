// What fusion asks about nodes and sets of nodes, from their operators, types and axes alone, without lowering them.
#ifndef NGRAD_PASSES_LOWER_FUSIBLE_H
#define NGRAD_PASSES_LOWER_FUSIBLE_H

#include "ir/operators/operator.h"

enum {
  MOST_NODES = 128,  // in a region: limits the size of kernels, and the time to search for equal expressions
  MOST_STREAMS = 128 // values of the cost fusion_streams
};

// Whether the node never fuses: its iteration domain is a slice of the output, it adds to rows of the output at
// computed indices, or it has no kernel.
bool node_is_never_fused(const Node *node);

// Whether the node has extra axes, as products and windows have, along which it reads its operands from memory. A
// region has at most one such node. Elementwise nodes may join it, and for a product, nodes with sums over rows.
bool node_has_own_axes(const Node *node);
bool node_has_sums(const Node *node);
bool node_is_pointwise(const Node *node);

// The reduction that alone reads the node's result, through elementwise operators if any, where all of them read only
// smaller tensors, so that no tensor should hold the operand: sums of outer products, say. NULL: there is none.
const Node *node_expands_into(const Node *node);

// Whether the node may be computed over a wider domain: its operands and results broadcast by numpy's rules.
bool node_is_broadcastable(const Node *node);

// Whether numpy broadcasts the first shape to the second.
bool shape_broadcasts_to(const Shape *from, const Shape *to);

// Whether lower_region would choose the first shape as the domain of a region with nodes over both shapes.
bool shape_is_domain_of_both(const Shape *one, const Shape *other);

// Whether the value is a tensor of the domain's size or larger, not a parameter or statistic.
bool value_is_data(const Value *v, const Shape *domain);

// Whether the value can be an expression from maker to user, without memory.
bool value_can_be_expression(const Node *maker, const Value *v, const Node *user, const Shape *domain);

// Whether the node replaces one stream of the region by another of the same layout, so that joining cannot make a
// schedule impossible or slower, or change an order. A splat constant is no stream: it varies over no axis.
bool node_replaces_stream(const Node *node, const Shape *domain);

typedef struct NodeList { // in the graph's order
  Node *nodes[MOST_NODES];
  uint32_t count;
} NodeList;

// Tells in one step whether a node is in a list: each question about a list first marks its nodes with a new number.
typedef struct NodeMarks {
  uint32_t *marks; // by node->index, 0 at first
  uint32_t newest;
} NodeMarks;

// Whether the nodes stream more tensors of the domain's size than a kernel may. Elementwise producers that have not
// been visited, whose index is below `first`, can still join the region: their inputs would then be streamed instead of
// their results. So a region over the limit is counted again with these producers.
bool list_has_many_streams(const NodeList *list, const Shape *domain, int64_t most, uint32_t first, NodeMarks *marks);

typedef struct Sums {                // counts of a list's nodes with sums
  uint32_t nown, nproducts, nothers; // with extra axes; products among these; without extra axes
  bool has_groups;                   // a sum is over the channels of a group
  bool has_bounds;                   // a node's loads may have bounds
} Sums;
Sums list_count_sums(const NodeList *list);

// Whether all group norms among the nodes have the same groups: a kernel can split the channel axis in one way only.
bool list_has_same_groups(const NodeList *list);

#endif
