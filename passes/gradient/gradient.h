// The gradient of a graph: another graph, which computes how sums of the first one's outputs, weighted by the gradients
// that arrive at them, change with its inputs.
//
// Inputs of the gradient graph are, as far as it uses them: the forward graph's inputs, what its nodes made and the
// gradients need (saved values) and constants that it read from files, all under their own names; then diff_NAME for
// each output. Its outputs are diff_NAME for each input asked for. Statistics that a norm did not keep are computed
// anew. Gradients do not flow through statistics (Operand.is_statistic).
//
// Below that is what the operators' rules are made of: one a row of ir/operators/operators.def, called gradient_ and
// the operator's name, in the file of the row's family. Its function reads the forward node and gives a gradient to
// those of its inputs that want one; an operator that has none says why. What nothing uses is removed in the end.
#ifndef NGRAD_PASSES_GRADIENT_GRADIENT_H
#define NGRAD_PASSES_GRADIENT_GRADIENT_H

#include "ir/operators/operator.h"

typedef struct GradientRequest {
  Value *const *wrt; // inputs of the graph; NULL: all floating-point ones that a gradient reaches
  size_t nwrt;
  Value *const *of; // outputs of the graph; NULL: all floating-point ones that depend on wrt and are no statistics
  size_t nof;
} GradientRequest;

typedef struct GradientEnds {
  const Value **inputs;  // forward values, parallel to the gradient graph's inputs: of the last ndiffs, the gradients
  const Value **outputs; // forward inputs, of which its outputs are the gradients
  size_t ndiffs;
} GradientEnds;

// Of a valid graph all of whose extents have numbers or names. The result is verified; it refers to forward's dims,
// source and constants, so forward must outlive it. `ends` is filled with arrays that the result owns. NULL after
// telling why.
Graph *graph_gradient(const Graph *forward, const GradientRequest *request, GradientEnds *ends, Diagnostics *d);

// Rules

typedef struct Gradient Gradient;

typedef struct GradientRule {
  void (*make)(Gradient *g, const Node *node, Value *diff); // diff: the gradient of output 0, of its type and shape
  const char *why_not;                                      // when there is none
} GradientRule;

#define OP(name, ...) extern const GradientRule gradient_##name;
#include "ir/operators/operators.def"
#undef OP

extern const GradientRule *const gradient_rules[OP_COUNT];

#define GRADIENT(name)                                                                                                 \
  static void make_##name(Gradient *g, const Node *node, Value *diff);                                                 \
  const GradientRule gradient_##name = {.make = make_##name};                                                          \
  static void make_##name(Gradient *g, const Node *node, Value *diff)
#define NO_GRADIENT(name, why) const GradientRule gradient_##name = {.why_not = why};
#define SECOND_ORDER "it is a gradient itself, and second derivatives are not taken"

// Values are of the forward graph where that is said, else of the gradient graph. Out of memory is remembered: the
// functions then return NULL, and take it.

bool gradient_is_wanted(const Gradient *g, const Value *forward);
Value *gradient_saved(Gradient *g, const Value *forward);          // as the gradient graph sees it
bool gradient_is_at_hand(const Gradient *g, const Value *forward); // without saving it first

// Adds to the gradient of a forward value, after summing over the axes along which that was broadcast by numpy's
// rules, and casting to its type. NULL, or a value that wants none: nothing.
void gradient_give(Gradient *g, const Value *forward, Value *diff);

// A number everywhere: of this shape, or of rank 0; of f64 or f32 where that goes with `type`.
Value *gradient_filled(Gradient *g, Type type, const Shape *shape, double number);
Value *gradient_number(Gradient *g, Type type, double number);

Value *gradient_cast(Gradient *g, Value *v, Type type); // v itself when it has the type
Value *gradient_widened(Gradient *g, Value *v);         // f16 and bf16 to f32

// Elementwise operators without attributes; two operands are broadcast.
Value *gradient_unary(Gradient *g, OperatorId op, Value *a);
Value *gradient_binary(Gradient *g, OperatorId op, Value *a, Value *b);
Value *gradient_scaled(Gradient *g, Value *v, double number);
Value *gradient_select(Gradient *g, Value *condition, Value *a, Value *b); // which has the condition's shape

// Reductions over a mask of axes.
Value *gradient_reduced(Gradient *g, OperatorId op, Value *v, uint32_t axes, bool keep_dims);
Value *gradient_reshaped(Gradient *g, Value *v, const Shape *shape);

// A node with those attributes of `like`, a forward node, that its operator has too, and defaults. Operands are to be
// set: inputs with node_set_input, outputs with gradient_output, of a forward value's type and shape.
Node *gradient_node(Gradient *g, OperatorId id, const Node *like);
Value *gradient_output(Gradient *g, Node *node, uint32_t slot, Type type, const Shape *shape);
void gradient_set_list(Gradient *g, Node *node, const char *name, const int64_t *items, size_t count);
AttributeValue *gradient_attribute(const Node *node, const char *name);

#endif
