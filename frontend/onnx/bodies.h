// Operators of ONNX as formulas in other operators of ONNX. A formula is text, statements between semicolons:
//
//   Y = X * Sigmoid(alpha * X)
//
// Names are the node's inputs, its attributes, and what statements before have assigned; one that is an output's
// becomes this output. What a name stands for is a tensor, a number, an extent, a list of extents, a text or nothing:
// an input that is absent, or an attribute without a default. Numbers and extents are known when the model is read, and
// so are conditions: only one side of c ? a : b is read.
//
// Operators are + - * / %, comparisons, and & of numbers. An absent operand is left out; a number takes the tensor's
// type. Functions that begin with a capital are ONNX's operators of the newest opset, with attributes by name:
// Softmax(x, axis=1). Name.2 is an output's number, from 0. Others are in the table of body_functions.c, or are
//
//   each t < n { statements }     copies the statements n times, with t from 0
//   p = push(p, x), stack(p, 1)   a list of tensors, and one tensor of them along a new axis
#ifndef NGRAD_FRONTEND_ONNX_BODIES_H
#define NGRAD_FRONTEND_ONNX_BODIES_H

#include "frontend/onnx/translation.h"

typedef enum TermKind {
  TERM_ABSENT,
  TERM_NUMBER,
  TERM_EXTENT, // that is no number
  TERM_LIST,
  TERM_TEXT,
  TERM_VALUE,
  TERM_VALUES
} TermKind;

enum { MOST_TERMS_OF_A_LIST = 16, MOST_BODY_COPIES = 1 << 12, MOST_BODY_ARGUMENTS = 10 };

typedef struct Term {
  TermKind kind;
  double number;
  Extent extents[MOST_TERMS_OF_A_LIST]; // of a list; the first one: of an extent
  size_t count;                         // of extents or values
  Bytes text;
  Value *value, **values;
} Term;

typedef struct Body {
  Onnx *x;
  Arena *scratch;          // of attributes and lists, until the body's end
  const char *at;          // in the text
  bool is_dry, has_failed; // either: nothing is built
  struct {
    const char *name;
    size_t length;
    Term term;
  } names[64];
  size_t nnames;
} Body;

// A node of ONNX; which of its outputs is the result.
typedef struct BodyCall {
  Bytes op;
  size_t output; // which one is the result
  Value *inputs[MOST_BODY_ARGUMENTS];
  size_t ninputs;
  OnnxNamed attributes[MOST_BODY_ARGUMENTS];
  size_t nattributes;
} BodyCall;

// What the bodies' functions are made of, from the bottom up.

// Terms (body_terms.c)
bool body_fail(Body *f, const char *format, ...) __attribute__((format(printf, 2, 3))); // false
Term term_number(double number);
Term term_extent(Extent e);
Term term_value(Value *v);
bool term_int(Body *f, const Term *t, int64_t *number);
// As a tensor: a number or extent with the type of `like`, or s64 if that is NULL; a list in s64. NULL: absent or dry.
Value *term_tensor(Body *f, const Term *t, const Value *like);
Term term_combine_numbers(char sign, double a, double b); // + - * / % & < > and = ! L G: == != <= >=
// The same of extents, at least one of which is no number; unknown if it is no formula.
Term term_combine_extents(Body *f, char sign, const Term *a, const Term *b);

// Calls (body_calls.c)
// An attribute of no declared kind, which is read as any kind of its field. False after a message.
bool body_put_attribute(Body *f, OnnxNamed *a, const char *name, size_t length, const Term *t);
Value *body_call_operator(Body *f, BodyCall *call); // NULL after a message
Term body_call(Body *f, const char *name, size_t length, Term *arguments, size_t count);
Term term_combine(Body *f, char sign, Term a, Term b);

Term body_function(Body *f, const char *name, size_t length, Term *arguments, size_t count); // body_functions.c

static inline bool body_is_idle(const Body *f) {
  return f->is_dry || f->has_failed;
}

#endif
