// The state of building a backward graph, and what gradient.c and the files that it calls share.
#ifndef NGRAD_PASSES_GRADIENT_GRADIENT_STATE_H
#define NGRAD_PASSES_GRADIENT_GRADIENT_STATE_H

#include "ir/graph/builder.h"
#include "passes/gradient/gradient.h"

enum { SHAPE_TEXT = 160 }; // bytes of a shape in a message

// What is known of a gradient: it is 0 where `mask`, a boolean of the backward graph, is not `when`. No mask: nothing.
typedef struct Guard {
  Value *mask;
  bool when;
} Guard;

// An expansion (walk.c) has a Gradient of its own, whose forward nodes and values are the last ones of the backward
// graph.
struct Gradient {
  const Graph *forward;
  size_t first; // the index of the first forward value: arrays begin with it
  Graph *graph;
  Diagnostics *diagnostics;
  Builder build; // of graph
  Arena scratch;
  const Node *node;    // the forward node whose rule is running
  uint64_t given;      // a mask of its inputs whose gradients the rule has given
  Value **given_masks; // where its rule puts what it gives, as it runs for masks (guards.c); NULL: it does not
  Guard guard_of_input[MAX_VARIADIC]; // of what it gives to each input
  // By the index of a forward value:
  bool *is_own;              // it is an own value of each leaf (ir/graph/leaves.h)
  bool *depends;             // a gradient flows from it to an input whose gradient is requested
  bool *follows;             // it depends on such an input, but no gradient flows: the derivative is 0
  Value **here;              // the corresponding input or constant of the backward graph; NULL: not used yet
  Value **seed;              // for a forward output, the backward graph's input with its gradient; NULL: none
  Value **diff;              // the sum of its gradients so far; NULL: zero
  Guard *guard;              // of diff
  bool *is_risky;            // it may be infinite or NaN though the inputs are not: it follows an operator with poles
  bool *is_needed;           // outputs with gradients depend on it; NULL: not asked yet
  bool *is_listed;           // by the index of a backward value: it is in the list of inputs
  char prefix[PREFIX_BYTES]; // of gradients' names
  GradientEnds *ends;
  bool failed;
};

// A node with the attributes of `like` (NULL: none), and defaults for others.
Node *gradient_add_node(Gradient *g, OperatorId id, uint32_t ninputs, const Node *like);
bool gradient_check_extents(const Graph *g, const Value *v, Diagnostics *d); // whether rules can use the value
bool gradient_is_needed(const Value *v); // an input of the backward graph that something uses
bool gradient_is_statistic(const Value *forward);
// Adds diff to the gradient of a forward value, as gradient_give.
void gradient_add(Gradient *g, const Value *forward, Value *diff, Guard guard);
void *gradient_out_of_memory(Gradient *g); // records it in g; NULL
bool gradient_name_terms(Graph *g);        // names the values without names; false: out of memory
bool gradient_has_pole(const Node *node);  // its results may be infinite or NaN where its operands are not

// Branches of Select (guards.c).
void gradient_guard_inputs(Gradient *g, const Node *node); // sets guard_of_input

// The walk over forward nodes (walk.c).
bool gradient_begin_walk(Gradient *g, size_t count);            // allocates what is known of so many values
void gradient_find_flow(Gradient *g, const Node *node);         // sets depends and follows of its results
void gradient_walk_back(Gradient *g, size_t first, size_t end); // runs the rules of these forward nodes

// Derivatives that are 0 (zeros.c).
// Warns about the nodes with steps that the outputs with gradients depend on.
void gradient_warn_of_steps(Gradient *g);
// The gradient of a requested input that no gradient flows to: zeros if outputs with gradients depend on it in steps.
// Otherwise NULL, and if is_required after reporting why there is none.
Value *gradient_of_steps(Gradient *g, const Value *input, bool is_required);

// In a graph with leaves: the mean, over all leaves, of the leaves' gradients of a common value.
Value *gradient_of_all_leaves(Gradient *g, Value *diff);
// Replaces AllReduces of common values, which need no exchange. The backward graph is sorted before and after. False:
// failed.
bool gradient_settle_leaves(Gradient *g);

// Recomputes saved values by the policy in gradient.h. The backward graph must have all outputs and no unused nodes.
void gradient_choose_saved(Gradient *g);

#endif
