// Functions shared by the readers of other systems' graphs, which build nodes by ir/graph/builder.h: they report errors
// once, make constants, and fold nodes whose inputs are constants. The builder has a Foreign, a title and a stem; its
// finish is build_folded, or calls build_checked.
#ifndef NGRAD_FRONTEND_FOREIGN_BUILD_H
#define NGRAD_FRONTEND_FOREIGN_BUILD_H

#include "frontend/names.h"
#include "ir/graph/builder.h"

#include <stdarg.h>

typedef struct Foreign {
  int64_t nmade;   // bytes of constants so far
  int64_t nfolded; // elements that folding has read and written so far
  Names told;      // messages reported, by operator and text: an error that many nodes share is reported for the first
                   // one only
  bool has_told;   // set by build_error, also for a repeated message that it does not report
} Foreign;

bool build_error(Builder *b, const char *format, ...) __attribute__((format(printf, 2, 3))); // false
bool build_error_of(Builder *b, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
// A warning about the node of b->title, once for each operator and text. False: out of memory.
bool build_warning(Builder *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

bool build_fits(Builder *b, const Value *v); // whether its rank is known, and its elements are within a tensor's limit
bool build_checked(Builder *b, Node *node);  // infers; whether its attributes, types and shapes are valid
bool build_folded(Builder *b, Node *node);   // the same, and folds if possible
bool build_is_quick(const Builder *b, const Node *node); // whether all inputs are constants, and folding is quick
bool build_can_fold(const Builder *b, const Node *node); // the same, and no input is a parameter
bool build_fold(Builder *b, Node *node); // replaces the node's outputs by constants; the node must be the last
Value *build_choose(Builder *b, Value *condition, Value *a, Value *c);                 // of any type
Value *build_constant(Builder *b, Type type, const Shape *shape, Constant **constant); // with memory for its elements
// Counts bytes towards the limit of all constants, for a temporary table; false after a message.
bool build_spend(Builder *b, int64_t nbytes);
Value *build_transpose(Builder *b, Value *v, const int64_t *order, int rank); // v must have this rank
Value *build_gather(Builder *b, Value *v, Value *indices, int64_t axis);
Value *build_one_hot(Builder *b, Value *labels, int64_t axis, int64_t depth, Type type);
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
