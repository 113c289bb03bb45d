// The gradient of a graph is another graph, the backward graph. Given diff_y, the gradient of a scalar loss with
// respect to each output y, it computes diff_x, the gradient of the loss with respect to the inputs x.
//
// The inputs of the backward graph are, if used: the forward graph's inputs, values that forward nodes computed (saved
// values) and constants that the forward graph read from files, all with their forward names; then diff_NAME for each
// output. The outputs are diff_NAME for each requested input. In a graph that has such names itself, as a backward
// graph has, the prefix is diff2_, then diff3_, and so on. Statistics that a norm does not output, or outputs in 16
// bits, are computed again, in f32 or f64.
//
// By default every value that a rule uses is saved. With saves_least the backward graph recomputes values by cheap
// nodes from its other inputs, and never takes more bytes than by default. Cheap nodes are elementwise, or move
// elements: activations, masks, casts, reshapes and transposes, slices, one-hot labels. Products, reductions, norms and
// pooling are not cheap.
// - The results of a cheap node are recomputed if its operands have fewer bytes than the results. Operands that are
//   states or constants, that are inputs of the backward graph for another reason, or that are recomputed count as 0
//   bytes.
// - For a reshape, transpose or reorder, an operand with the same number of bytes is saved instead of the result, so
//   that a value and its reshaped copy are not both saved.
// For this comparison, extents without numbers count as 64.
//
// Where results follow an operand in steps, as Round's, the gradient is 0, or RoundThrough's the identity's, and a
// warning says so. An input that affects
// the outputs through such nodes alone gets zeros.
//
// No NaN comes from the branch of a Select that was not taken: the gradient by the branch is 0 there, and is set to 0
// again behind each elementwise node, or reduction with keep_dims, that may have multiplied it by an infinite number.
//
// The second half of this header is for the operators' rules. Each row of ir/operators/operators.def has a rule
// gradient_NAME, in the file of the row's family. The rule's function reads the forward node and gives the gradient of
// each input that is wanted. In its place, an operator may have an expansion: nodes of other operators that compute its
// results; the gradient is theirs. The rule also says for which operands the gradient is 0 or refused, and why. No
// operand is left out: a gradient that a rule neither gives nor excludes is an internal error. Unused nodes are removed
// at the end.
#ifndef NGRAD_PASSES_GRADIENT_GRADIENT_H
#define NGRAD_PASSES_GRADIENT_GRADIENT_H

#include "ir/operators/operator.h"

typedef struct GradientRequest {
  Value *const *wrt; // inputs of the graph; NULL: all floating-point inputs that affect an output of `of`,
                     // except inputs with leaves
  size_t nwrt;
  Value *const *of; // outputs of the graph; NULL: all floating-point outputs that depend on wrt and are neither
                    // statistics nor updates of states
  size_t nof;
  bool saves_least;
  bool gives_zeros; // for inputs of `wrt` that no output depends on; without wrt, if there are no others, for all
  bool splits_ends; // an output that is an input, too, has its gradient under the name cotangent_NAME
} GradientRequest;

typedef struct GradientEnds {
  const Value **inputs;  // parallel to the backward graph's inputs: the forward value; for the last ndiffs inputs, the
                         // forward output whose gradient the input is
  const Value **outputs; // parallel to the backward graph's outputs: the forward input
  size_t ndiffs;
} GradientEnds;

// The gradient of a valid graph whose extents all have numbers or names. The result is verified. It shares forward's
// dims, source and constants, and holds a reference to it. The result owns the arrays in `ends`. NULL after reporting
// why there is no gradient.
Graph *graph_gradient(const Graph *forward, const GradientRequest *request, GradientEnds *ends, Diagnostics *d);

// The forward graph with the backward graph's saved values as additional outputs, after its own outputs and before the
// updates of its states. It has its own dims, and holds a reference to forward. NULL: out of memory.
Graph *graph_with_saved(const Graph *forward, const Graph *backward, const GradientEnds *ends);

// Gives the graph's results for `count` values of some inputs at once: values[i], whose first axis has that extent,
// takes the place of inputs[i], and each output gets this axis. False after reporting an error.
enum { MOST_BATCH = MAX_VARIADIC };
bool graph_batch(Graph *g, Value *const *inputs, Value *const *values, size_t ninputs, int64_t count, Diagnostics *d);

// Chooses the prefix of new names, stem_ or stem2_ and so on: with no number that the graph's inputs or outputs have
// behind a prefix like it in the names of the graph's values. False: out of memory.
enum { PREFIX_BYTES = 32 };
bool gradient_choose_prefix(const Graph *g, const char *stem, char prefix[PREFIX_BYTES]);

// Rules

typedef struct Gradient Gradient;

// What happens to the gradient by an operand.
typedef enum DerivativeKind {
  DERIVATIVE_COMPUTED, // the operator's rule computes it
  DERIVATIVE_ZERO,     // it is 0, at least almost everywhere, and nothing is computed
  DERIVATIVE_REFUSED   // it is an error
} DerivativeKind;

typedef struct Derivative {
  DerivativeKind kind;
  const char *why; // unless computed
  bool is_told;    // zero: the results follow the operand in steps, which a warning tells
  bool is_setting; // inputs of the graph that are nothing else have a gradient only on request, and are no parameters
} Derivative;

enum { MOST_EXCEPTIONS = 4 };

// The node's results from its inputs, in the backward graph, by operators that have rules. Results may have a wider
// type. The inputs are in the backward graph, too, where all functions below take them.
typedef void Expansion(Gradient *g, const Node *node, Value **results);

typedef struct GradientRule {
  void (*make)(Gradient *g, const Node *node, Value *diff);  // diff: output 0's gradient, of its type and shape
  Expansion *expand;                                         // in place of make
  void (*make_of_statistics)(Gradient *g, const Node *node); // gives what the gradients of its statistics add
  Derivative of_all; // of each floating-point operand without exception; computed only if there is make or expand
  bool passes_on;    // make multiplies gradients by no number that may be infinite or NaN, and by none below 0 unless
                     // the operator is elementwise
  bool has_pole;     // results may be infinite or NaN where operands are not
  bool is_identity; // make gives the identity's gradient, though results follow the operand in steps: a warning says so
  struct {
    const char *operand; // or result; NULL ends the list
    Derivative derivative;
  } exceptions[MOST_EXCEPTIONS];
} GradientRule;

#define OP(name, ...) extern const GradientRule gradient_##name;
#include "ir/operators/operators.def"
#undef OP

extern const GradientRule gradient_Gradient; // expanded before any rule runs
extern const GradientRule *const gradient_rules[NREADABLE];

#define GRADIENT_WITH(name, ...) /* further members of GradientRule */                                                 \
  static void make_##name(Gradient *g, const Node *node, Value *diff);                                                 \
  const GradientRule gradient_##name = {.make = make_##name, __VA_ARGS__};                                             \
  static void make_##name(Gradient *g, const Node *node, Value *diff)
#define GRADIENT_EXCEPT(name, ...) /* exceptions: {"operand", ZERO(why)} */                                            \
  GRADIENT_WITH(name, .exceptions = {__VA_ARGS__})
#define GRADIENT(name) GRADIENT_WITH(name, .passes_on = false)
#define PASSES_ON(name) GRADIENT_WITH(name, .passes_on = true)
#define WITH_POLE(name) GRADIENT_WITH(name, .has_pole = true)
#define POLE_RULE(name, statement) /* the same, of one statement */                                                    \
  WITH_POLE(name) {                                                                                                    \
    statement;                                                                                                         \
  }
#define PASSING_RULE(name, statement)                                                                                  \
  PASSES_ON(name) {                                                                                                    \
    statement;                                                                                                         \
  }
#define RULE(name, statement) /* a rule of one statement */                                                            \
  GRADIENT(name) {                                                                                                     \
    statement;                                                                                                         \
  }
#define EXPANSION_EXCEPT(name, ...)                                                                                    \
  static void expand_##name(Gradient *g, const Node *node, Value **results);                                           \
  const GradientRule gradient_##name = {.expand = expand_##name, .exceptions = {__VA_ARGS__}};                         \
  static void expand_##name(Gradient *g, const Node *node, Value **results)
#define EXPANSION(name) EXPANSION_EXCEPT(name, {NULL})
// clang-format off
#define ZERO(text) {.kind = DERIVATIVE_ZERO, .why = (text)}
#define ZERO_STEPS(text) {.kind = DERIVATIVE_ZERO, .why = (text), .is_told = true}
#define REFUSED(text) {.kind = DERIVATIVE_REFUSED, .why = (text)}
#define REFUSED_SETTING(text) {.kind = DERIVATIVE_REFUSED, .why = (text), .is_setting = true}
// clang-format on
#define NO_GRADIENT(name, ...) const GradientRule gradient_##name = {.of_all = __VA_ARGS__};

// What happens to the gradient by input `slot` of the operator, and to the gradient that an output gets. This is the
// list that `ngrad ops NAME` prints; tests/unit/derivatives_test.c holds it against differences.
Derivative gradient_by_input(OperatorId id, uint32_t slot);
Derivative gradient_of_result(OperatorId id, uint32_t slot);

// Parameters named `forward` are values of the forward graph, all other values belong to the backward graph. Out of
// memory is recorded in g: functions then return NULL, and they accept NULL as operand.

// Whether the value depends on an input whose gradient is requested; false for NULL.
bool gradient_is_wanted(const Gradient *g, const Value *forward);
Value *gradient_saved(Gradient *g, const Value *forward); // the backward graph's input or constant for a forward value
// An input of the forward node for a product with the gradient: 0 where the gradient is known to be 0 and the input may
// be infinite.
Value *gradient_guarded(Gradient *g, const Node *node, uint32_t slot); // of a rule that passes gradients on
// Whether a rule may use the value without saving another value: it is an input, a constant, or saved already.
bool gradient_is_at_hand(const Gradient *g, const Value *forward);

// Adds diff to the gradient of the forward node's input, after summing over the axes along which the input was
// broadcast, and casting to its type. Does nothing if no gradient is wanted.
void gradient_give(Gradient *g, const Node *node, uint32_t slot, Value *diff);

// Gives the gradients of an expansion of the forward node, through the results that it sets.
void gradient_expand(Gradient *g, const Node *node, Expansion *expand);

bool gradient_broadcasts(const Shape *from, const Shape *to); // by numpy's rules

// A splat constant, of this shape or of rank 0. Its type is f64 if `type` is f64, else f32.
Value *gradient_filled(Gradient *g, Type type, const Shape *shape, double number);
Value *gradient_number(Gradient *g, Type type, double number);

Value *gradient_cast(Gradient *g, Value *v, Type type); // v if it has the type
Value *gradient_widened(Gradient *g, Value *v);         // f16 and bf16 become f32

// The gradient of an output of the forward node, with the output's type; NULL: there is none. A rule gets output 0's as
// `diff`.
Value *gradient_of_output(const Gradient *g, const Node *node, uint32_t slot);

// Reports why this forward node has no gradient, though its operator has one.
void gradient_refuse(Gradient *g, const Node *node, const char *why);

// Elementwise operators without attributes; operands are broadcast.
Value *gradient_unary(Gradient *g, OperatorId op, Value *a);
Value *gradient_binary(Gradient *g, OperatorId op, Value *a, Value *b);
Value *gradient_scaled(Gradient *g, Value *v, double number);
Value *gradient_select(Gradient *g, Value *condition, Value *a, Value *b); // the result has the shape of a and b

// Reductions over a mask of axes.
Value *gradient_reduced(Gradient *g, OperatorId op, Value *v, uint32_t axes, bool keep_dims);
// The number of elements on these axes of the shape, which the graph computes where extents have names.
Value *gradient_count(Gradient *g, Type type, const Shape *shape, uint32_t axes);
Value *gradient_reshaped(Gradient *g, Value *v, const Shape *shape);
Value *gradient_transposed(Gradient *g, Value *v, const int64_t *order, const Shape *shape);
// v, of the shape of a StaticTranspose's result, as its operand has it.
Value *gradient_transposed_back(Gradient *g, const Node *node, Value *v);
Value *gradient_in_shape(Gradient *g, Value *v, const Shape *shape); // v if it has the shape
Value *gradient_summed(Gradient *g, Value *v, const Shape *shape);   // over the axes along which `shape` was broadcast

// The output, of this type and shape, of a new node with up to three inputs. Attributes that the forward node `like`
// also has are copied, others have defaults.
Value *gradient_apply(Gradient *g, OperatorId id, const Node *like, Type type, const Shape *shape, Value *a, Value *b,
                      Value *c);

// A new node, with attributes likewise. The caller sets its operands: inputs by node_set_input, outputs by
// gradient_output.
Node *gradient_node(Gradient *g, OperatorId id, const Node *like);
Node *gradient_variadic(Gradient *g, OperatorId id, uint32_t ninputs); // of a variadic operator
Value *gradient_output(Gradient *g, Node *node, uint32_t slot, Type type, const Shape *shape);
void gradient_set_list(Gradient *g, Node *node, const char *name, const int64_t *items, size_t count);
// Sets the attribute that holds a result's shape. With named extents it stays unset, as the result declares its shape.
void gradient_set_given_shape(Gradient *g, Node *node, const Shape *shape);
void gradient_set_extents(Gradient *g, Node *node, const char *name, const Extent *extents, size_t count);

#endif
