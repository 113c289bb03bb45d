// Operators of the graph as formulas in ONNX's operators. A formula is text:
//
//   s = Sigmoid(src); diff_src = diff_dst * s * (1 - s)
//
// Names are the node's operands, its f32 attributes, names bound before, and those that a statement assigns; one that
// is an output's is this output. An absent operand is left out of sums and products. Operators are + - * / ^, and
// comparisons in arguments; numbers take the type of the other operand, and are folded. Functions that begin with a
// capital are ONNX's operators without attributes. The others are
//   sum mean most(x)     over the formula's axes, which stay with extent 1; total(x): the sum over its other axes
//   softmax logsoftmax   along the formula's axis
//   wide narrow(x)       casts to f64, and to the type that the node is computed in
#ifndef NGRAD_FRONTEND_ONNX_EXPANSION_H
#define NGRAD_FRONTEND_ONNX_EXPANSION_H

#include "frontend/onnx/writer.h"

enum { MOST_BINDINGS = 32, MOST_TERMS = 3 };

typedef struct ExpansionAxes {
  int64_t items[MAX_RANK];
  size_t count;
} ExpansionAxes;

// A number, a value's name, or an operator that is not written yet, so that its result can get any name.
typedef struct Term {
  bool is_number, is_absent;
  double number;
  const char *name; // NULL: `op` of these arguments
  const char *op;
  const char *arguments[MOST_TERMS];
  int narguments;
  const ExpansionAxes *axes; // of a reduction
  bool is_zero;              // a product with 0, which sums leave out
  Type type;
} Term;

typedef struct Binding {
  const char *name;
  size_t length;
  Term term;
} Binding;

typedef struct Expansion {
  OnnxWriter *w;
  const Node *node;
  Binding bindings[MOST_BINDINGS];
  size_t nbindings;
  const char *targets[MAX_OPERANDS]; // the names that outputs get; NULL: an absent output
  ExpansionAxes axes, others;
  int64_t axis;
  const char *at; // in the text
  bool is_dry;    // the statement's result is not wanted
} Expansion;

void expansion_init(Expansion *f, OnnxWriter *w);
void expansion_bind(Expansion *f, const char *name, const char *to, Type type); // to: a value; NULL: absent
void expansion_bind_number(Expansion *f, const char *name, double given);
const char *expansion_find(const Expansion *f, const char *name); // the value that a statement assigned
void expansion_write(Expansion *f, const char *text);

#endif
