// What rounding errors can do to the results of a node.
//
// A value is sharp if no element of it has a rounding error: graph inputs, constants, and what operators make of sharp
// values without rounding, such as their elements in another order, or sums of few small integers. Choices (booleans,
// integers, rounded numbers) are sharp, too: a rounding error does not move them a little, but may flip them.
#ifndef NGRAD_BACKENDS_INTERPRETER_CHOICES_H
#define NGRAD_BACKENDS_INTERPRETER_CHOICES_H

#include "ir/operators/operator.h"

// Whether all results are choices.
bool node_chooses(const Node *node);
// Whether results jump where the float operand `slot` crosses a threshold: an operand of a comparison, for example.
bool operand_decides(const Node *node, uint32_t slot);
// Whether some results of sharp operands are sharp.
bool node_may_be_exact(const Node *node);
// Whether all results of sharp operands are the nearest numbers to the exact results.
bool node_rounds_once(const Node *node);

// Whether the signs of the value's zeros are exact: it consists of elements of inputs and constants, or an elementwise
// operator that rounds each result once, or none, makes it of these.
bool value_has_exact_signs(const Value *v);

// Marks, by index, the values that depend on choices of floats, or on floats that are rounded to a type narrower than
// f32. For a choice that depends on no such value, few runs with noise show which of its results are right.
void graph_find_doubtful(const Graph *g, bool *is_doubtful);

typedef struct Results {
  const double *const *inputs; // parallel to node->inputs, as in an Evaluation: sharp
  const size_t *input_nelems;
  const double *output; // `slot` of node->outputs
  uint32_t slot;
  size_t nelems;
} Results;

// Whether an output of a node that may be exact is sharp.
bool results_are_exact(const Node *node, const Results *r);

#endif
