// Functions shared by the readers of other systems' graphs: they make nodes one after another, infer types and shapes
// at once, make constants, and fold nodes whose inputs are constants.
//
// Functions that return NULL or false have reported an error, or got a value that is NULL and did nothing: the value
// failed before, or is absent.
#ifndef NGRAD_FRONTEND_FOREIGN_BUILD_H
#define NGRAD_FRONTEND_FOREIGN_BUILD_H

#include "frontend/names.h"
#include "ir/operators/operator.h"

typedef struct Builder Builder;
struct Builder {
  Graph *graph;
  Diagnostics *d;
  Position at;       // of the current foreign node: for the nodes made from it, and for messages
  const char *title; // title of the current node in messages, beginning with the operator's name, and label of the
                     // nodes made; NULL: none
  const char *stem;  // of the names of made values
  int64_t nmade;     // bytes of constants so far
  int64_t nfolded;   // elements that folding has read and written so far
  Names told; // messages reported, by operator and text: an error that many nodes share is reported for the first one
              // only
  bool has_told; // set by build_error, also for a repeated message that it does not report
  // Called by build_finish when types and shapes are known; NULL: fold if possible.
  bool (*finish)(Builder *b, Node *node);
};

bool build_error(Builder *b, const char *format, ...) __attribute__((format(printf, 2, 3))); // false

Node *build_node(Builder *b, OperatorId id, uint32_t ninputs, Value *const *inputs);
AttributeValue *build_set(Node *node, const char *name); // marks the attribute as set; the operator must have it
bool build_set_list(Builder *b, Node *node, const char *name, const int64_t *items, size_t count);
bool build_set_choice(Node *node, const char *name, const char *choice);
Value *build_result(Builder *b, Node *node, uint32_t slot, Type type); // declares an output; TYPE_NONE: inferred
bool build_fits(Builder *b, const Value *v); // whether its rank is known, and its elements are within a tensor's limit
bool build_finish(Builder *b, Node *node);   // infers, and folds if possible
bool build_is_quick(const Builder *b, const Node *node); // whether all inputs are constants, and folding is quick
bool build_can_fold(const Builder *b, const Node *node); // the same, and no input is a parameter
bool build_fold(Builder *b, Node *node);  // replaces the node's outputs by constants; the node must be the last
Value *build_one(Builder *b, Node *node); // the node's only output, after build_finish
Value *build_one_of_type(Builder *b, Node *node, Type type);
Value *build_unary(Builder *b, OperatorId id, Value *a);
Value *build_binary(Builder *b, OperatorId id, Value *a, Value *c);
Value *build_choose(Builder *b, Value *condition, Value *a, Value *c);         // of any type
Value *build_number(Builder *b, Type type, const Shape *shape, double number); // a constant; shape NULL: a scalar
Value *build_constant(Builder *b, Type type, const Shape *shape, Constant **constant); // with memory for its elements
// Counts bytes towards the limit of all constants, for a temporary table; false after a message.
bool build_spend(Builder *b, int64_t nbytes);
Value *build_cast(Builder *b, Value *v, Type type);
Value *build_reshape(Builder *b, Value *v, const int64_t *shape, size_t rank); // all numbers
Value *build_transpose(Builder *b, Value *v, const int64_t *order, int rank);  // v must have this rank
Value *build_slice(Builder *b, Value *v, int axis, int64_t from, int64_t to);
// Between positions along some axes. axes NULL: all axes; steps NULL: 1.
Value *build_slices(Builder *b, Value *v, const int64_t *starts, const int64_t *ends, const int64_t *axes,
                    const int64_t *steps, size_t count);
Value *build_pad(Builder *b, Value *v, const int64_t *begin, const int64_t *end, size_t rank, double number);
Value *build_gather(Builder *b, Value *v, Value *indices, int64_t axis);
Value *build_one_hot(Builder *b, Value *labels, int64_t axis, int64_t depth, Type type);
Value *build_reduce(Builder *b, OperatorId id, Value *v, const int64_t *axes, size_t count, bool keeps_axes);
Value *build_along(Builder *b, OperatorId id, Value *v, int64_t axis); // an operator with the attribute axis
Value *build_with(Builder *b, OperatorId id, Value *v, const char *attribute, double number);
Value *build_expand(Builder *b, Value *v, const Shape *shape); // broadcast by numpy's rules
Value *build_copy(Builder *b, Value *v);                       // a new value with the same elements

// Formulas of several nodes, of v's type.

Value *build_like(Builder *b, const Value *v, double number); // a scalar constant
Value *build_plus(Builder *b, Value *v, double number);
Value *build_times(Builder *b, Value *v, double number); // 1: v itself
// To integers: down, up and towards zero. Values of integer types are returned unchanged.
Value *build_floor(Builder *b, Value *v), *build_ceiling(Builder *b, Value *v), *build_truncate(Builder *b, Value *v);
Value *build_tan(Builder *b, Value *v), *build_asin(Builder *b, Value *v), *build_acos(Builder *b, Value *v),
    *build_atan(Builder *b, Value *v);
Value *build_sinh(Builder *b, Value *v), *build_cosh(Builder *b, Value *v), *build_asinh(Builder *b, Value *v),
    *build_acosh(Builder *b, Value *v), *build_atanh(Builder *b, Value *v);

// Removes nodes that no output needs, and makes the names of values unique.
bool build_end(Builder *b);

#endif
