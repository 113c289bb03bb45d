// Partitions: which of a graph's nodes are fused.
//
// A region is a set of nodes that becomes one kernel, or several when no single schedule can compute all of it. It is a
// linked list of nodes in the graph's order. A region's id is the index of its last node, so that kernels in the order
// of their regions' ids compute every value before it is read.
#ifndef NGRAD_IR_GRAPH_PARTITION_H
#define NGRAD_IR_GRAPH_PARTITION_H

#include "ir/graph/graph.h"

#define NO_NODE UINT32_MAX // ends a list of nodes

typedef struct Refusal { // why a node is not fused with another node that produces, reads or shares one of its values
  const Node *with;
  const char *why;
  const struct Refusal *next;
} Refusal;

typedef struct Partition {
  uint32_t *region;         // by node->index: the region that the node is in
  uint32_t *first;          // by region: the index of its first node; NO_NODE: there is no region with this id
  uint32_t *next;           // by node->index: the next node of the region; NO_NODE: it is the last
  const Refusal **refusals; // by node->index: a list, newest first
} Partition;

// Each node is a region of its own. The partition is in the graph's arena, and becomes invalid when nodes are added,
// removed or sorted. NULL: out of memory.
Partition *partition_into_nodes(Graph *g);

#endif
