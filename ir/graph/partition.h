// Partitions: which of a graph's nodes are computed together.
//
// Each region becomes one kernel, or several where no schedule carries all of it. A region is a list of nodes in the
// graph's order, and is named by the index of the last of them, where its kernel stands in the order of kernels.
#ifndef NGRAD_IR_GRAPH_PARTITION_H
#define NGRAD_IR_GRAPH_PARTITION_H

#include "ir/graph/graph.h"

#define NO_NODE UINT32_MAX // ends a list of nodes

typedef struct Refusal { // why a node is in no region with another node that it shares values with
  const Node *with;
  const char *why;
  const struct Refusal *next;
} Refusal;

typedef struct Partition {
  uint32_t *region;         // by node->index: the region that the node is in
  uint32_t *first;          // by region: the index of its first node; NO_NODE: there is no region of that name
  uint32_t *next;           // by node->index: the next node of the region; NO_NODE: it is the last
  const Refusal **refusals; // by node->index: newest first
} Partition;

// Each node is a region of its own. The partition lies in the graph's arena, and holds until nodes are added, removed
// or sorted. NULL: out of memory.
Partition *partition_into_nodes(Graph *g);

#endif
