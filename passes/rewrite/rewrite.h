// The rewrite engine: rules are data, a matcher finds where rules apply, and a worklist applies rules until none
// applies.
//
//   static const Rule rules[] = {
//       {.name = "multiply-one", .pattern = NODE(Multiply, X, NUMBER(1)), .replacement = X},
//
// A pattern is a term:
//   NODE(Add, a, b)   a node with this operator whose inputs match the terms a and b; further inputs are absent
//   X, Y, Z           any value; the same letter is the same value
//   NUMBER(1)         a splat constant of this number
//   C, D              any constant
// Operands of a commutative operator match in either order. The matcher backtracks over all choices, even after the
// rule's condition is false. A replacement consists of the same terms. It is used only if it has the type and shape of
// the value that it replaces. Outputs of the graph keep their names.
//
// Cost: rules are looked up by the operator at their root, and a node is visited again only if a node within the
// patterns' depth among its operands has changed.
#ifndef NGRAD_PASSES_REWRITE_REWRITE_H
#define NGRAD_PASSES_REWRITE_REWRITE_H

#include "ir/operators/operator.h"
#include "passes/pass.h"

enum { MOST_NAMED = 8, MOST_MATCHED = 16, MOST_ARGUMENTS = 3 };

typedef enum TermKind { TERM_VALUE, TERM_CONSTANT, TERM_NUMBER, TERM_NODE } TermKind;

typedef struct Term {
  TermKind kind;
  uint8_t name;      // index into Match.values (values, constants) or Match.nodes
  bool is_only_used; // TERM_NODE: the output must have no other use
  // TERM_NODE. OP_COUNT: any operator for which node_may_be_moved holds, with as many inputs as arguments; in a
  // replacement, the operator of Match.nodes[name].
  OperatorId op;
  bool is_computed;    // TERM_NUMBER in a replacement: the number is Match.number
  double number;       // TERM_NUMBER: matched exactly; -0 is not 0
  const char *setting; // TERM_NODE: an attribute, not a list, that must have the value `is`; a replacement sets it to
                       // `is`. NULL: none
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
  Value *values[MOST_NAMED];   // by Term.name
  Node *nodes[MOST_NAMED];     // by Term.name; the root is 0 unless another node has that name
  Node *matched[MOST_MATCHED]; // all matched nodes, the root first
  uint32_t nmatched;
  double number;       // set by Rule.condition: the number of COMPUTED in the replacement
  bool *out_of_memory; // for Rule.finish to set
} Match;

struct Rule {
  const char *name;
  const Term *pattern, *replacement; // the roots of trees of terms
  bool (*condition)(Match *m);       // NULL: none
  // Sets further attributes of the replacement's root, whose inputs are set. False: the rule does not apply. NULL:
  // nothing to set. A new node has the attributes of the matched node with the same Term.name if that has the same
  // operator, else defaults.
  bool (*finish)(const Match *m, Node *root);
  bool is_fast_math; // the identity does not hold for all IEEE values
};

// Prints a rule as "Multiply(x, 1.0) -> x".
void rule_print(const Rule *rule, Text *out);

// Whether the node commutes with reshapes and transposes: an element's result does not depend on the element's index.
bool node_may_be_moved(const Node *node);

// Whether the pattern matches the value; fills m.
bool rule_matches(const Rule *rule, Graph *g, Value *root, Match *m);

// Applies the rules that the context does not disable until none applies, then removes dead code. True: the graph
// changed.
bool rewrite_graph(Graph *g, PassContext *c, const Rules *rules);

#endif
