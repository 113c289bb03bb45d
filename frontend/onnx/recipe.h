// Recipes: operators as formulas, which the reader makes nodes of the graph of (bodies.h), and the writer nodes of ONNX
// (expansion.h). A formula is text, statements between semicolons:
//
//   Y = X * Sigmoid(alpha * X)
//
// Names are those that are bound before, and what statements have assigned. What a name stands for is a tensor, a
// number, an extent, a list of extents, a text or nothing: an absent operand, or a name that is not bound. Numbers and
// extents are known when the formula is read, and so are conditions: only one side of c ? a : b is read.
//
// Operators are, from the loosest: c ? a : b; & of numbers; comparisons; + -; * / %; ^. An absent operand is left out
// of sums and products; a number takes the tensor's type. Functions that begin with a capital are ONNX's operators of
// the newest opset, with attributes by name: Softmax(x, axis=1); Name.2 is an output's number, from 0. The other
// functions are the maker's, but
//
//   each t < n { statements }     copies the statements n times, with t from 0
#ifndef NGRAD_FRONTEND_ONNX_RECIPE_H
#define NGRAD_FRONTEND_ONNX_RECIPE_H

#include "frontend/onnx/wire.h"
#include "ir/graph/builder.h"

typedef enum TermKind {
  TERM_ABSENT,
  TERM_NUMBER,
  TERM_EXTENT, // that is no number
  TERM_LIST,
  TERM_TEXT,
  TERM_VALUE, // the reader's `value`, or the writer's `written`
  TERM_VALUES
} TermKind;

enum { MOST_TERMS_OF_A_LIST = 16, MOST_RECIPE_COPIES = 1 << 12, MOST_RECIPE_ARGUMENTS = 10, MOST_WRITTEN = 3 };

typedef struct RecipeAxes {
  int64_t items[MAX_RANK];
  size_t count;
} RecipeAxes;

// A tensor of a model that is written: a value's name, or an operator that is not written yet, so that its result can
// get any name.
typedef struct Written {
  const char *name; // NULL: `op` of these arguments
  const char *op, *arguments[MOST_WRITTEN];
  size_t narguments;
  const RecipeAxes *axes; // of a reduction
  bool is_zero;           // a product with 0, which sums leave out
  Type type;
} Written;

typedef struct Term {
  TermKind kind;
  size_t count; // of a list, or of values
  union {
    double number;
    Extent extent;
    Extent *list; // with memory for MOST_TERMS_OF_A_LIST
    Bytes text;
    Value *value, **values;
    Written written;
  };
} Term;

typedef struct RecipeCall {
  Bytes name;
  size_t output; // which one is the result
  Term arguments[MOST_RECIPE_ARGUMENTS];
  Bytes keys[MOST_RECIPE_ARGUMENTS]; // of attributes; empty: an operand
  size_t count;
} RecipeCall;

typedef struct Recipe Recipe;

// What makes nodes of a formula. None is called where the formula is idle.
typedef struct RecipeMaker {
  Term (*combine)(Recipe *f, char sign, Term a, Term b); // a sign of recipe_operator, or & or ! (!=)
  Term (*call_operator)(Recipe *f, RecipeCall *call);
  Term (*call_function)(Recipe *f, RecipeCall *call);
  // Of a statement: whether nobody wants what it assigns, and what it assigns. Either may be NULL.
  bool (*is_unwanted)(Recipe *f, Bytes name);
  void (*assign)(Recipe *f, Bytes name, Term *term);
} RecipeMaker;

struct Recipe {
  const RecipeMaker *maker;
  Builder *builder;        // for messages; NULL: the formula has no errors
  Arena *arena;            // of lists; NULL: the recipe has none
  const char *at;          // in the text
  bool is_dry, has_failed; // either: the formula is idle, and nothing is made
  struct {
    Bytes name;
    Term term;
  } names[64];
  size_t nnames;
};

static inline bool recipe_is_idle(const Recipe *f) {
  return f->is_dry || f->has_failed;
}

bool recipe_fail(Recipe *f, const char *format, ...) __attribute__((format(printf, 2, 3))); // false
void recipe_bind(Recipe *f, Bytes name, Term term);
const Term *recipe_find(const Recipe *f, Bytes name); // NULL: not bound
void recipe_read(Recipe *f, const char *text);        // may be called again; f->has_failed: after a message
Term recipe_read_term(Recipe *f);                     // a number, name or list at f->at, without operators behind it

// ONNX's operator of + - * / % ^ < L (<=) > G (>=) and =; NULL of another sign.
const char *recipe_operator(char sign);

Bytes bytes_of(const char *text); // without its end
Term term_number(double number);
Term recipe_new_list(Recipe *r); // empty; absent after a message
Term term_combine_numbers(char sign, double a, double b);
bool recipe_int(Recipe *f, const Term *t, int64_t *number); // whether it is an integer; reports if not

#endif
