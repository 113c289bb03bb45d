// Inference of types and shapes, from inputs to outputs and from outputs to inputs.
//
// Each operator's infer function states which types and extents are equal, by the functions below: they refine the
// unknown side or report a contradiction. A worklist calls infer functions until nothing changes. Each extent becomes
// known only once, so the cost is linear in the graph.
#ifndef NGRAD_IR_OPERATORS_INFER_H
#define NGRAD_IR_OPERATORS_INFER_H

#include "ir/operators/operator.h"

// Returns whether there is no contradiction; unknown extents may remain. The graph must be sorted.
bool graph_infer(Graph *g, Diagnostics *d);

// The same without changing the graph: a value that inference would refine is an error.
bool graph_infers_nothing_new(Graph *g, Diagnostics *d);

// Infers the outputs of one new node, whose inputs are known. False after reporting a contradiction.
bool graph_infer_node(Graph *g, Node *node, Diagnostics *d);

// For infer functions. All functions below accept NULL values (absent operands), and then do nothing.
struct Inference {
  Graph *graph;
  Diagnostics *diagnostics;
  Node *node;   // whose infer function is running
  Node **queue; // ring of nodes whose operands have changed since their infer function ran; NULL: only one node is
                // inferred
  bool *is_queued;
  size_t first, count; // of the ring
  bool is_frozen;      // refining a value is an error
  // Nodes that may guess an extent after the queue has run empty; also a ring.
  Node **guessers;
  bool *is_guesser;
  size_t first_guesser, nguessers;
  bool may_guess; // the running infer function may guess one extent; if only one node is inferred, all
};

bool infer_type(Inference *inf, Value *v, Type type);
bool infer_rank(Inference *inf, Value *v, int rank);
bool infer_rank_beside(Inference *inf, Value *v, int rank, const Value *other); // messages show other's shape as reason
bool infer_same_rank(Inference *inf, Value *a, Value *b);
bool infer_rank_at_least(Inference *inf, const Value *v, int least); // v's rank is known
bool infer_extent(Inference *inf, Value *v, int axis, Extent e);
bool infer_extent_beside(Inference *inf, Value *v, int axis, Extent e, const Value *other); // other: as above
bool infer_same_extent(Inference *inf, Value *a, int axis_a, Value *b, int axis_b);
bool infer_same_shape(Inference *inf, Value *a, Value *b);
// A default: the extent becomes e only if no other node determines it.
bool infer_guessed_extent(Inference *inf, Value *v, int axis, Extent e);
// The extent is e, which is computed from other extents. A name in the file may stand for a formula, which numbers for
// the names will show; so a formula is only a default, and only an extent that differs by a number is an error. What an
// operand's extent must be for the sake of a result is a default, too: where the result is declared as a number, the
// operand may have a name with a number, which another node says.
bool infer_computed_extent(Inference *inf, Value *v, int axis, Extent e, const Value *other);
// *result = a + times * b, a * b, or a / b if there is no remainder; unknown where an operand is, or where the result
// is no formula (ir/graph/formula.h). False after reporting that memory has run out.
bool infer_sum(Inference *inf, Extent a, int64_t times, Extent b, Extent *result);
bool infer_product(Inference *inf, Extent a, Extent b, Extent *result);
bool infer_quotient(Inference *inf, Extent a, Extent b, Extent *result);
bool infer_error(Inference *inf, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Infer functions that several families use.
// The result has the data's type unless the graph declares another. If the types differ, the result must be f32; with
// data_may_be_f32, either of the two.
bool infer_result_type(Inference *inf, const Value *data, Value *result, bool data_may_be_f32);
bool infer_elementwise_unary(Inference *inf, Node *node); // output 0 and every input have one shape
// The inputs from slot `first` on broadcast against each other, by numpy's rules; the result is the shape of output 0.
bool infer_broadcast(Inference *inf, Node *node, uint32_t first);
// `from` broadcasts to the shape of `to` by numpy's rules: it has at most as many axes, each of extent 1 or equal to
// to's.
bool infer_broadcast_to(Inference *inf, Value *from, Value *to);
bool infer_broadcast_extent(Inference *inf, Value *from, int axis_from, Value *to, int axis_to); // of one axis

// Converts an attribute's axis to 0 .. rank - 1; a negative axis counts from the end.
bool infer_axis(Inference *inf, const char *attribute, int64_t given, int rank, int64_t *axis);

// Checks each operand's type against its type variable, and gives all operands with the same variable the same type.
bool infer_types(Inference *inf, Node *node);

#endif
