// Evaluates a node whose inputs are constants: its outputs become constants.
#ifndef NGRAD_IR_GRAPH_FOLD_H
#define NGRAD_IR_GRAPH_FOLD_H

#include "ir/graph/graph.h"

// Evaluates a node as interpret_node (backends/interpreter/interpreter.h) does, on f64 arrays parallel to its operands.
// False: out of memory. The interpreter is passed as a function, because ir and passes include no backend.
typedef bool Evaluator(const Node *node, const double *const *inputs, double *const *outputs,
                       const Allocator *allocator);

typedef struct Folding {
  Evaluator *evaluate;
  bool is_splat; // all inputs are splats, and the node is elementwise with one output: evaluate one element
  // Whether an element may be stored in the type, which may round it. NULL: each may.
  bool (*may_store)(const void *context, Type type, double element);
  const void *context;
} Folding;

typedef enum FoldResult { FOLD_OUT_OF_MEMORY, FOLD_REFUSED, FOLD_DONE } FoldResult;

// Makes the node's outputs constants, and takes its operands from it: the caller removes it from the graph. All inputs
// are constants; inputs and outputs are row-major. FOLD_REFUSED: some element may not be stored; the node is unchanged.
FoldResult graph_fold_node(Graph *g, Node *node, const Folding *f);

#endif
