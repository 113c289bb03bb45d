// The gradient of a graph: another graph, the backward graph. With diff_y the gradient of a scalar loss with respect to
// each output y, it computes diff_x, the gradient of the loss with respect to the inputs x.
//
// Inputs of the backward graph, as far as it uses them: inputs of the forward graph, values that its nodes computed
// (saved values) and constants that it read from files, all under their own names; then diff_NAME for each output. Its
// outputs are diff_NAME for each requested input. Statistics that a norm does not output, or outputs in 16 bits, are
// computed again, in f32 at least. Gradients do not flow through statistics (Operand.is_statistic).
//
// Which values are saved. By default, all that a rule uses. With saves_least the backward graph computes again what is
// cheap to compute from what it takes anyway, which is never more than by default. Cheap nodes are elementwise, or move
// elements: activations, masks, casts, reshapes and transposes, slices, one-hot labels. Products, reductions, norms and
// pooling are not.
// - The results of a cheap node are computed again if its operands have fewer bytes than these results. Operands count
//   as nothing if they are states or constants, are taken anyway, or are computed again themselves.
// - Operands with as many bytes take the place of the result of a reshape, transpose or reorder, so that a value and a
//   view of it are not both saved.
// Extents without numbers count as 64.
//
// The second half of this header is for the operators' rules. There is one for each row of ir/operators/operators.def,
// called gradient_ and the operator's name, in the file of the row's family. Its function reads the forward node and
// adds to the gradients of those inputs that need one; for an operator without gradient the rule states the reason.
// Unused nodes are removed in the end.
#ifndef NGRAD_PASSES_GRADIENT_GRADIENT_H
#define NGRAD_PASSES_GRADIENT_GRADIENT_H

#include "ir/operators/operator.h"

typedef struct GradientRequest {
  Value *const *wrt; // inputs of the graph; NULL: all floating-point inputs that affect an output of `of`
  size_t nwrt;
  Value *const *of; // outputs of the graph; NULL: all floating-point outputs that depend on wrt and are neither
                    // statistics nor updates of states
  size_t nof;
  bool saves_least;
} GradientRequest;

typedef struct GradientEnds {
  const Value **inputs;  // parallel to the backward graph's inputs: the forward value; of the last ndiffs inputs, the
                         // forward output whose gradient the input is
  const Value **outputs; // parallel to the backward graph's outputs: the forward input
  size_t ndiffs;
} GradientEnds;

// The gradient of a valid graph whose extents all have numbers or names. The result is verified. It refers to forward's
// dims, source and constants, so forward must outlive it. Fills `ends` with arrays that the result owns. NULL after
// reporting why there is no gradient.
Graph *graph_gradient(const Graph *forward, const GradientRequest *request, GradientEnds *ends, Diagnostics *d);

// The forward graph with the values that the backward graph is given as outputs, behind its own outputs and before the
// updates of its states. It has dims of its own, and holds a reference to forward. NULL: out of memory.
Graph *graph_with_saved(const Graph *forward, const Graph *backward, const GradientEnds *ends);

// Rules

typedef struct Gradient Gradient;

typedef struct GradientRule {
  void (*make)(Gradient *g, const Node *node, Value *diff); // diff: the gradient of output 0, of its type and shape
  const char *why_not;                                      // if make is NULL: why there is no gradient
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
#define SECOND_ORDER "it is itself a gradient, and second derivatives are not supported"

// Parameters called `forward` are values of the forward graph, all others of the backward graph. Out of memory is
// recorded in g: the functions then return NULL, and accept NULL as operand.

// Whether the value depends on an input whose gradient is requested; false for NULL.
bool gradient_is_wanted(const Gradient *g, const Value *forward);
Value *gradient_saved(Gradient *g, const Value *forward); // the backward graph's input or constant for a forward value
// Whether using the value saves nothing more: it is an input, a constant, or saved already.
bool gradient_is_at_hand(const Gradient *g, const Value *forward);

// Adds diff to the gradient of a forward value, after summing over the axes along which the value was broadcast by
// numpy's rules, and casting to its type. Does nothing if diff is NULL or no gradient is wanted.
void gradient_give(Gradient *g, const Value *forward, Value *diff);

// A splat constant, of this shape or of rank 0. Its type is f64 if `type` is, else f32.
Value *gradient_filled(Gradient *g, Type type, const Shape *shape, double number);
Value *gradient_number(Gradient *g, Type type, double number);

Value *gradient_cast(Gradient *g, Value *v, Type type); // v if it has the type
Value *gradient_widened(Gradient *g, Value *v);         // f16 and bf16 become f32

// The gradient of any output of the forward node, of its type; NULL: there is none. Of output 0, it is a rule's diff.
Value *gradient_of_output(const Gradient *g, const Node *node, uint32_t slot);

// Reports why the forward node has no gradient.
void gradient_refuse(Gradient *g, const Node *node, const char *why);

// Elementwise operators without attributes; operands are broadcast.
Value *gradient_unary(Gradient *g, OperatorId op, Value *a);
Value *gradient_binary(Gradient *g, OperatorId op, Value *a, Value *b);
Value *gradient_scaled(Gradient *g, Value *v, double number);
Value *gradient_select(Gradient *g, Value *condition, Value *a, Value *b); // the shape is that of a and b

// Reductions over a mask of axes.
Value *gradient_reduced(Gradient *g, OperatorId op, Value *v, uint32_t axes, bool keep_dims);
Value *gradient_reshaped(Gradient *g, Value *v, const Shape *shape);

// A node with the attributes of `like`, a forward node, as far as its operator has them, and defaults for the others.
// The caller sets its operands: inputs by node_set_input, outputs by gradient_output.
Node *gradient_node(Gradient *g, OperatorId id, const Node *like);
Node *gradient_variadic(Gradient *g, OperatorId id, uint32_t ninputs); // of a variadic operator
Value *gradient_output(Gradient *g, Node *node, uint32_t slot, Type type, const Shape *shape);
void gradient_set_list(Gradient *g, Node *node, const char *name, const int64_t *items, size_t count);
AttributeValue *gradient_attribute(const Node *node, const char *name);

#endif
