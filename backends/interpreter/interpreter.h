// The interpreter: what a graph means, computed by plain loops in f64. It is what every other way of running a
// graph is compared with, so it is written to be read, not to be fast.
//
// Values between nodes are f64 and not rounded to their declared type, unless that is an integer type; TypeCast
// rounds, and so does the storing of the graph's outputs. Sums are compensated. Hence every output is within one
// unit in the last place of the exact result, whatever the graph's types.
#ifndef NGRAD_BACKENDS_INTERPRETER_INTERPRETER_H
#define NGRAD_BACKENDS_INTERPRETER_INTERPRETER_H

#include "ir/graph/tensor.h"

typedef struct InterpreterOptions {
  const Allocator *allocator;                                 // for everything, the arrays of values included
  bool nan_check;                                             // stop at the first node that makes a NaN out of none
  void (*progress)(void *context, size_t done, size_t total); // called after each node; NULL: nobody listens
  void *progress_context;
  uint64_t noise; // 0: none; else the seed of noise on every value and sum: backends/interpreter/noise.h
} InterpreterOptions;

// Runs a valid graph, in topological order, all of whose extents have numbers. `inputs` is parallel to g->inputs
// and `outputs` to g->outputs, both with data, in the values' declared types, shapes and orders; the data of `outputs`
// is written. False after telling why: out of memory, or what nan_check found.
bool interpret(const Graph *g, const Tensor *inputs, Tensor *outputs, const InterpreterOptions *options,
               Diagnostics *d);

// The most bytes that the arrays of values take at a time during interpret, without what an operator's own sums take.
// False: out of memory.
bool interpreter_nbytes(const Graph *g, const Allocator *allocator, uint64_t *nbytes);

// Runs one node: f64 arrays parallel to node->inputs and node->outputs, row-major and dense, NULL where the operand
// is absent; s64 are int64_t in their place. The outputs are written. False: out of memory.
bool interpret_node(const Node *node, const double *const *inputs, double *const *outputs, const Allocator *allocator);

#endif
