// Leaves: the parts, all alike, that a batch is dealt out in.
//
// A graph with leaves says what one leaf computes. Leaf takes a leaf's part of an input that has them along its first
// axis. A value that depends on one is the leaf's own; AllReduce makes of a value of every leaf one that all have in
// common, as all other values are. Outputs and updates of states are common values. So it does not matter for any
// result which process computes which leaf.
//
// The common results of all leaves are added in one fixed tree, the canonical one: the node at level k has the leaves
// from i * 2^k to below (i + 1) * 2^k, as far as there are so many.
#ifndef NGRAD_IR_GRAPH_LEAVES_H
#define NGRAD_IR_GRAPH_LEAVES_H

#include "ir/graph/graph.h"

// Marks, by index, the values of which each leaf has its own. The graph is sorted.
void graph_find_own_values(const Graph *g, bool *is_own);

// A part of graph_verify: what Leaf takes, and that outputs are common values.
bool graph_verify_leaves(const Graph *g, Diagnostics *d);

#endif
