// Partitions: which nodes of a graph are fused.
//
// A region is a set of nodes that becomes one kernel, or several kernels when no single schedule can compute all nodes.
// It is a linked list of nodes in the graph's order. A region's id is the index of its last node: kernels that run in
// the order of their regions' ids compute every value before a kernel reads it.
#ifndef NGRAD_IR_GRAPH_PARTITION_H
#define NGRAD_IR_GRAPH_PARTITION_H

#include "ir/graph/graph.h"

#define NO_NODE UINT32_MAX // the end of a list of nodes

typedef struct Refusal { // why a node is not fused with another node that produces, reads or shares one of its values
  const Node *with;
  const char *why;
  const struct Refusal *next;
} Refusal;

// A slice group: several kernels run on one slice of their tensors after the other, as a tiled loop around all of them,
// so that values between the kernels stay in the caches. Their regions have consecutive ids. Example, attention: for
// each head and each block of queries, compute the scores, their softmax, and the product with the values.
//
// A slice has one index on each level, the slowest level first: the first axes of all domains, then blocks of the next
// axis.
enum { MOST_LEVELS = 8 };

typedef struct SlicedTensor { // a tensor that a slice group reads or stores
  const Value *value;
  int64_t stride[MOST_LEVELS]; // elements between neighbouring slices on a level; 0: they share all elements
  bool is_stored;              // the slice group stores the tensor
  bool is_passed_on;           // the slice group stores the tensor, and has a node that uses it
  bool is_private;             // is_passed_on, and nothing else uses the tensor: memory holds one slice at a time
} SlicedTensor;

typedef struct SliceGroup {
  uint32_t first_region, last_region; // the slice group's first and last region with nodes
  int nfixed;                         // first axes of the domains on which a slice has one index
  int64_t block;                      // indices of the next axis in a slice; 0: all
  int nlevels;
  int64_t extent[MOST_LEVELS]; // number of slices along each level
  int64_t nslices;             // the product of the extents
  SlicedTensor *tensors;
  size_t ntensors;
} SliceGroup;

int64_t slice_group_offset(const SliceGroup *v, const SlicedTensor *tensor,
                           int64_t slice); // of the slice's first element
const SlicedTensor *slice_group_find(const SliceGroup *v,
                                     const Value *value);                    // NULL: the slice group does not access it
int64_t slice_group_nelems(const SliceGroup *v, const SlicedTensor *tensor); // elements of the tensor in a slice
bool slice_group_is_new_row(const SliceGroup *v, int64_t slice); // the slice is the first along the last level

typedef struct Partition {
  uint32_t *region;         // by node->index: the node's region
  uint32_t *first;          // by region: the index of its first node; NO_NODE: no region has this id
  uint32_t *next;           // by node->index: the next node of the region; NO_NODE: the node is the last
  const Refusal **refusals; // by node->index: a list, the newest first
  SliceGroup *slice_groups; // in the order of their regions
  size_t nslice_groups;
} Partition;

// A partition in which each node is a region. It is in the graph's arena, and becomes invalid when nodes are added,
// removed or sorted. NULL: out of memory.
Partition *partition_into_nodes(Graph *g);

#endif
