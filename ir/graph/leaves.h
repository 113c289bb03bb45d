// Leaves: the equal parts of a batch that processes compute independently.
//
// A graph with leaves describes the computation of one leaf. The operator Leaf takes one leaf's part of an input whose
// first axis goes over the leaves. A value that depends on a Leaf is own: each leaf computes a different tensor. All
// other values are common to all leaves. AllReduce reduces an own value over all leaves to a common value. Outputs and
// updates of states are common values, so no result depends on which process computes which leaf.
//
// AllReduce adds the leaves' values in one fixed binary tree, the canonical tree: node i at level k is the sum of the
// leaves i * 2^k .. (i + 1) * 2^k - 1, as far as they exist.
#ifndef NGRAD_IR_GRAPH_LEAVES_H
#define NGRAD_IR_GRAPH_LEAVES_H

#include "ir/graph/graph.h"

// Marks own values, by value->index. The graph must be sorted.
void graph_find_own_values(const Graph *g, bool *is_own);

// A part of graph_verify: Leaf reads an allowed value, and outputs are common values.
bool graph_verify_leaves(const Graph *g, Diagnostics *d);

#endif
