// What the readers of other systems' graphs share: nodes of the graph, made one after another, whose types and shapes
// are inferred at once, and constants. What only constants give is computed at once, too.
//
// Functions that return NULL or false have told why, or were given a value that is NULL: it failed before, or is
// absent, and they do nothing.
#ifndef NGRAD_FRONTEND_FOREIGN_BUILD_H
#define NGRAD_FRONTEND_FOREIGN_BUILD_H

#include "frontend/names.h"
#include "ir/operators/operator.h"

typedef struct Builder Builder;
struct Builder {
  Graph *graph;
  Diagnostics *d;
  Position at;       // of what is read now: of the nodes that are made, and of messages
  const char *title; // how messages call it, the operator's name first, and the label of its nodes; NULL: nothing
  const char *stem;  // of the names of values
  int64_t nmade;     // bytes of constants so far
  int64_t nfolded;   // elements that folding has read and written so far
  Names told;        // by operator and message: many nodes may lack the same, which is told of the first one
  bool has_told;     // set by build_error, also where it tells nothing new
  // What build_finish does when types and shapes are known; NULL: it folds what can be.
  bool (*finish)(Builder *b, Node *node);
};

bool build_error(Builder *b, const char *format, ...) __attribute__((format(printf, 2, 3))); // false

Node *build_node(Builder *b, OperatorId id, uint32_t ninputs, Value *const *inputs);
AttributeValue *build_set(Node *node, const char *name); // marked as set; which the operator must have
bool build_set_list(Builder *b, Node *node, const char *name, const int64_t *items, size_t count);
bool build_set_choice(Node *node, const char *name, const char *choice);
Value *build_result(Builder *b, Node *node, uint32_t slot, Type type); // declares an output; TYPE_NONE: inferred
bool build_infer(Builder *b, Node *node);    // the outputs' types and shapes; attributes that are not set get defaults
bool build_fits(Builder *b, const Value *v); // whether it has a rank, and no more elements than a tensor may have
bool build_finish(Builder *b, Node *node);   // infers, and computes what constants give
// Whether all that it needs are constants, but no parameters, and it is quick.
bool build_can_fold(const Builder *b, const Node *node);
bool build_fold(Builder *b, Node *node);  // constants take the place of its outputs; it is the last node
Value *build_one(Builder *b, Node *node); // its only output, finished
Value *build_one_of_type(Builder *b, Node *node, Type type);
Value *build_unary(Builder *b, OperatorId id, Value *a);
Value *build_binary(Builder *b, OperatorId id, Value *a, Value *c);
Value *build_choose(Builder *b, Value *condition, Value *a, Value *c);         // of any type
Value *build_number(Builder *b, Type type, const Shape *shape, double number); // a constant; shape NULL: a scalar
Value *build_constant(Builder *b, Type type, const Shape *shape, Constant **constant); // with room for its elements
// Takes bytes from what all constants may have, for a table that is made on the way to one; false after telling.
bool build_spend(Builder *b, int64_t nbytes);
Value *build_cast(Builder *b, Value *v, Type type);
Value *build_reshape(Builder *b, Value *v, const int64_t *shape, size_t rank); // all numbers
Value *build_transpose(Builder *b, Value *v, const int64_t *order, int rank);  // which v must have
Value *build_slice(Builder *b, Value *v, int axis, int64_t from, int64_t to);
Value *build_expand(Builder *b, Value *v, const Shape *shape); // broadcast with it, as numpy does
Value *build_copy(Builder *b, Value *v);                       // the same elements as another value

// Formulas of several nodes, of v's type.

Value *build_like(Builder *b, const Value *v, double number); // a scalar constant
Value *build_plus(Builder *b, Value *v, double number);
Value *build_times(Builder *b, Value *v, double number); // 1: v itself
// To integers: down, up and towards zero. Values of integer types stay as they are.
Value *build_floor(Builder *b, Value *v), *build_ceiling(Builder *b, Value *v), *build_truncate(Builder *b, Value *v);
Value *build_tan(Builder *b, Value *v), *build_asin(Builder *b, Value *v), *build_acos(Builder *b, Value *v),
    *build_atan(Builder *b, Value *v);
Value *build_sinh(Builder *b, Value *v), *build_cosh(Builder *b, Value *v), *build_asinh(Builder *b, Value *v),
    *build_acosh(Builder *b, Value *v), *build_atanh(Builder *b, Value *v);

// Takes away the nodes that no output needs, and gives values that share a name other ones.
bool build_end(Builder *b);

#endif
