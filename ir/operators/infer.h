// Inference: types and shapes of all values from those that are known, in both directions.
//
// Each operator's infer function states what must be equal; the functions below make it so, refining whichever
// side is unknown, or tell the contradiction. A worklist runs them until nothing changes, so the cost is linear in
// the graph: an extent can become known only once.
#ifndef NGRAD_IR_OPERATORS_INFER_H
#define NGRAD_IR_OPERATORS_INFER_H

#include "ir/operators/operator.h"

// True when nothing contradicts; unknown extents may remain. The graph must be sorted.
bool graph_infer(Graph *g, Diagnostics *d);

// The same, but nothing is changed: a value that inference would still refine is an error too.
bool graph_infers_nothing_new(Graph *g, Diagnostics *d);

// What follows for the outputs of one new node, whose inputs are known. False after telling what contradicts.
bool graph_infer_node(Graph *g, Node *node, Diagnostics *d);

// For infer functions. `v` NULL (an absent operand) is accepted and ignored by all of them.
struct Inference {
  Graph *graph;
  Diagnostics *diagnostics;
  Node *node;   // the one at work, for messages
  Node **queue; // NULL: only that one is of interest; ring of nodes whose operands changed since they were looked at
  bool *is_queued;
  size_t first, count;
  bool is_frozen; // refining is an error
};

bool infer_type(Inference *inf, Value *v, Type type);
bool infer_rank(Inference *inf, Value *v, int rank);
bool infer_rank_beside(Inference *inf, Value *v, int rank, const Value *other);             // as other's shape tells
bool infer_rank_at_least(Inference *inf, const Value *v, int least);                        // whose rank is known
bool infer_extent(Inference *inf, Value *v, int axis, Extent e);                            // v's axis has that length
bool infer_extent_beside(Inference *inf, Value *v, int axis, Extent e, const Value *other); // as other's shape tells
bool infer_same_extent(Inference *inf, Value *a, int axis_a, Value *b, int axis_b);
bool infer_same_shape(Inference *inf, Value *a, Value *b);
bool infer_error(Inference *inf, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Infer functions that several families use.
bool infer_elementwise_unary(Inference *inf, Node *node); // output 0 and every input have one shape
// The inputs from slot `first` on broadcast to output 0 by numpy's rules.
bool infer_broadcast(Inference *inf, Node *node, uint32_t first);
// `from` broadcasts to `to` by numpy's rules, one way: it has no more axes, each of to's extent or 1.
bool infer_broadcast_to(Inference *inf, Value *from, Value *to);
bool infer_broadcast_extent(Inference *inf, Value *from, int axis_from, Value *to, int axis_to); // on one axis

// An axis that an attribute names, negative ones counted from the end, as one of `rank`.
bool infer_axis(Inference *inf, const char *attribute, int64_t given, int rank, int64_t *axis);

// The name of a type variable's rule broken is told here: binds each operand's type by its variable's letter.
bool infer_types(Inference *inf, Node *node);

#endif
