// The rewrite engine: rules are data, one matcher finds them, and a worklist applies them until none fits.
//
//   static const Rule rules[] = {
//       {.name = "multiply-one", .pattern = NODE(Multiply, X, NUMBER(1)), .replacement = X},
//
// A pattern is a term: an operator with the terms of its first inputs, all later ones absent; X, Y, Z, any value,
// where one letter is one value; a number, which a constant has in every element; C, any constant. Operands of a
// commutative operator match in either order, and the matcher goes back on every choice, the side condition's
// included. A replacement is made of the same terms; it is taken only if it has the type and shape of what it
// replaces. Outputs of the graph keep their names.
//
// Cost: rules are looked up by the operator at their root, and a node is looked at again only when something within
// a pattern's depth below it has changed.
#ifndef NGRAD_PASSES_REWRITE_REWRITE_H
#define NGRAD_PASSES_REWRITE_REWRITE_H

#include "ir/operators/operator.h"
#include "passes/pass.h"

enum { MOST_NAMED = 8, MOST_MATCHED = 16, MOST_ARGUMENTS = 3 };

typedef enum TermKind { TERM_VALUE, TERM_CONSTANT, TERM_NUMBER, TERM_NODE } TermKind;

typedef struct Term {
  TermKind kind;
  uint8_t name;      // values, constants: which of the match's; nodes: likewise, for the functions below
  bool is_only_used; // node: by this match, nowhere else
  OperatorId op;     // TERM_NODE; OP_COUNT: any elementwise one of as many inputs, or the operator of the node so named
  bool is_computed;  // number: the match's, which the condition has set
  double number;     // TERM_NUMBER: exactly this, -0 is not 0
  const char *setting; // node: an attribute, no list, that must be `is`, or that a new one gets; NULL: none
  double is;
  const struct Term *arguments[MOST_ARGUMENTS];
} Term;

#define TERM(...) (&(const Term){__VA_ARGS__})
#define NUMBER(n) TERM(.kind = TERM_NUMBER, .number = (n))
#define X TERM(.kind = TERM_VALUE, .name = 0)
#define Y TERM(.kind = TERM_VALUE, .name = 1)
#define Z TERM(.kind = TERM_VALUE, .name = 2)
#define C TERM(.kind = TERM_CONSTANT, .name = 3)
#define D TERM(.kind = TERM_CONSTANT, .name = 4)
#define NODE(operator, ...) TERM(.kind = TERM_NODE, .op = OP_##operator, .arguments = {__VA_ARGS__})
#define COMPUTED TERM(.kind = TERM_NUMBER, .is_computed = true)
#define LIKE(i, ...) TERM(.kind = TERM_NODE, .name = (i), .op = OP_COUNT, .arguments = {__VA_ARGS__})
#define NAMED(i, operator, ...) TERM(.kind = TERM_NODE, .name = (i), .op = OP_##operator, .arguments = {__VA_ARGS__})
#define ONLY(i, operator, ...)                                                                                         \
  TERM(.kind = TERM_NODE, .name = (i), .is_only_used = true, .op = OP_##operator, .arguments = {__VA_ARGS__})

typedef struct Match {
  Graph *graph;
  Value *values[MOST_NAMED]; // by the name in their terms
  Node *nodes[MOST_NAMED];   // by the name in their terms; the root is 0 unless another has that name
  Node *matched[MOST_MATCHED];
  uint32_t nmatched;
  double number;
} Match;

struct Rule {
  const char *name;
  const Term *pattern, *replacement;
  bool (*condition)(Match *m); // NULL: none
  // Sets the attributes of the new root that follow from the match; its input 0 has been set. NULL: each new node has
  // the attributes of the matched one of its operator and name, or defaults. False: the rule does not fit after all.
  bool (*finish)(const Match *m, Node *root);
  bool is_fast_math; // does not hold for all IEEE values
};

// Multiply(x, 1) -> x
void rule_print(const Rule *rule, Text *out);

// Whether the pattern fits the value; fills m. For tests and for conditions that look further.
bool rule_matches(const Rule *rule, Graph *g, Value *root, Match *m);

// Applies the rules that the context does not disable until none fits; true: the graph changed. What is dead by
// then is removed.
bool rewrite_graph(Graph *g, PassContext *c, const Rules *rules);

#endif
