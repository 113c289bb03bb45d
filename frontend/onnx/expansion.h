// Operators of the graph as formulas (recipe.h) in ONNX's operators, without attributes: dst = src * Sigmoid(src).
// Names are the node's operands, its f32 attributes, names bound before, and those that a statement assigns; one that
// is an output's is this output. Numbers take the type of the other operand. Functions are
//   sum mean most(x)     over the formula's axes, which stay with extent 1; total(x): the sum over its other axes
//   softmax logsoftmax   along the formula's axis
//   wide narrow(x)       casts to f64, and to the type that the node is computed in
#ifndef NGRAD_FRONTEND_ONNX_EXPANSION_H
#define NGRAD_FRONTEND_ONNX_EXPANSION_H

#include "frontend/onnx/recipe.h"
#include "frontend/onnx/writer.h"

typedef struct Expansion {
  Recipe recipe; // the first member: the maker finds the Expansion by its address
  OnnxWriter *w;
  const Node *node;
  const char *targets[MAX_OPERANDS]; // the names that outputs get; NULL: an absent output
  RecipeAxes axes, others;
  int64_t axis;
} Expansion;

void expansion_init(Expansion *f, OnnxWriter *w);
void expansion_bind(Expansion *f, const char *name, const char *to, Type type); // to: a value; NULL: absent
void expansion_bind_number(Expansion *f, const char *name, double given);
const char *expansion_find(const Expansion *f, const char *name); // the value that a statement assigned
void expansion_write(Expansion *f, const char *text);

#endif
