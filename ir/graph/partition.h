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

// A visit: regions with consecutive ids whose kernels go over slices of their tensors together, one slice after the
// other, so that what one kernel stores for the next stays in the caches. Attention is one: for each head and each
// block of queries, the scores, their softmax, and the product with the values.
//
// Slices are counted along levels, the slowest first: the first axes of all domains, then blocks of the next axis.
enum { MOST_LEVELS = 8 };

typedef struct Sliced { // a tensor that a visit reads or stores
  const Value *value;
  int64_t stride[MOST_LEVELS]; // elements from slice to slice along a level; 0: these slices share all elements
  bool is_stored;              // by the visit
  bool is_passed_on;           // is_stored, and read by the visit
  bool is_private;             // is_passed_on, and used by nothing else: memory holds one slice at a time
} Sliced;

typedef struct Visit {
  uint32_t first_region, last_region; // the regions from the first to the last that have nodes
  int nfixed;                         // the domains' first axes, of which a slice has one index
  int64_t block;                      // of the next axis, a slice has so many; 0: all
  int nlevels;
  int64_t extent[MOST_LEVELS]; // slices along each level
  int64_t nslices;             // the product of these
  Sliced *tensors;
  size_t ntensors;
} Visit;

int64_t visit_offset(const Visit *v, const Sliced *tensor, int64_t slice); // of the slice's first element
const Sliced *visit_find(const Visit *v, const Value *value);              // NULL: the visit does not access it
int64_t visit_nelems(const Visit *v, const Sliced *tensor);                // of the tensor, in a slice
bool visit_is_new_row(const Visit *v, int64_t slice);                      // the first one along the last level

typedef struct Partition {
  uint32_t *region;         // by node->index: the region that the node is in
  uint32_t *first;          // by region: the index of its first node; NO_NODE: there is no region with this id
  uint32_t *next;           // by node->index: the next node of the region; NO_NODE: it is the last
  const Refusal **refusals; // by node->index: a list, newest first
  Visit *visits;            // in the order of their regions
  size_t nvisits;
} Partition;

// The kernel that computes a node, of those that regions became.
typedef struct NodeKernel {
  uint32_t number; // of its first kernel: nodes of one region have it in common. NOT_IN_KERNEL: none, it is an alias
  Type type;       // that the kernel computes in, f32 or f64; TYPE_NONE: there is no kernel
} NodeKernel;
#define NOT_IN_KERNEL UINT32_MAX

// Each node is a region of its own. The partition is in the graph's arena, and becomes invalid when nodes are added,
// removed or sorted. NULL: out of memory.
Partition *partition_into_nodes(Graph *g);

#endif
