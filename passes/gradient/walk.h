// A gradient while it is made: what gradient.c and save.c have in common.
#ifndef NGRAD_PASSES_GRADIENT_WALK_H
#define NGRAD_PASSES_GRADIENT_WALK_H

#include "passes/gradient/gradient.h"

struct Gradient {
  const Graph *forward;
  Graph *graph;
  Diagnostics *diagnostics;
  Arena scratch;
  const Node *node; // the forward node whose rule is running
  // By the index of a forward value:
  bool *is_own;    // each leaf of the batch has its own (ir/graph/leaves.h)
  bool *depends;   // it depends on an input whose gradient is requested
  Value **here;    // the input or constant of the backward graph for it; NULL: not used yet
  Value **seed;    // the backward graph's input with its gradient as an output of the forward graph; NULL: none
  Value **diff;    // its gradient so far; NULL: zero
  bool *is_listed; // by the index of a backward graph's value: it is in the list of inputs
  GradientEnds *ends;
  bool failed;
};

// A node with `like`'s attributes, if it is not NULL, and defaults for the others.
Node *gradient_add_node(Gradient *g, OperatorId id, uint32_t ninputs, const Node *like);
bool gradient_is_needed(const Value *v); // an input of the backward graph that something uses

// In a graph with leaves, the mean over these of each one's gradient of a value that they have in common.
Value *gradient_of_all_leaves(Gradient *g, Value *diff);
// Replaces AllReduces of what all leaves have in common. The backward graph is sorted before and after. False: failed.
bool gradient_settle_leaves(Gradient *g);

// Recomputes saved values as the policy in gradient.h says. All outputs are there, and no unused nodes.
void gradient_save_less(Gradient *g);

#endif
