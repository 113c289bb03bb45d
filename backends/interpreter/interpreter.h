// The interpreter defines the meaning of graphs: plain loops in f64, written for clarity and not for speed. Every other
// way of running a graph is compared with it.
//
// Values between nodes are f64. They are not rounded to their declared type, except to integer types. TypeCast rounds,
// and so does storing the graph's outputs. Sums are compensated (sum.h). Hence every output is within one unit in the
// last place of the exact result, whatever the graph's types.
#ifndef NGRAD_BACKENDS_INTERPRETER_INTERPRETER_H
#define NGRAD_BACKENDS_INTERPRETER_INTERPRETER_H

#include "ir/graph/partition.h"
#include "ir/graph/tensor.h"

typedef struct InterpreterOptions {
  const Allocator *allocator; // for all memory, including the arrays of values
  bool nan_check;             // fail at a node that computes NaN from inputs without NaN
  bool finite_check;          // with nan_check: also fail at infinities
  void (*progress)(void *context, size_t done, size_t total); // called after each node; NULL: not called
  void *progress_context;
  // Round as compiled code does: values are rounded to their declared types, and what nodes compute in between
  // overflows the type that they compute in. Otherwise as described above.
  bool rounds_values;
  const Type *types; // with rounds_values: in which nodes are computed, by node->index; NULL: f64 if all floats are
  uint64_t noise;    // seed of the noise on values and sums that programs round (backends/interpreter/noise.h); 0: none
  // With noise: whether noise decides only which choices are made (backends/interpreter/choices.h), and all results are
  // exact otherwise. False: the choices are those without noise, and noise is on everything else.
  bool flips;
} InterpreterOptions;

// Runs a valid graph whose nodes are sorted and whose extents all have numbers. `inputs` is parallel to g->inputs and
// `outputs` to g->outputs; the caller owns their data, which has the values' declared types, shapes and layouts. Writes
// the data of `outputs`. False after reporting out of memory, or the node that nan_check found.
bool interpret(const Graph *g, const Tensor *inputs, Tensor *outputs, const InterpreterOptions *options,
               Diagnostics *d);

// The peak bytes of all arrays during interpret: values, and the operators' temporary arrays, for which it is an upper
// bound. False: out of memory.
bool interpreter_nbytes(const Graph *g, const Allocator *allocator, uint64_t *nbytes);

// Runs one node on arrays parallel to node->inputs and node->outputs: row-major, NULL for absent operands; elements are
// doubles, or int64_t for s64 values. Writes the outputs. False: out of memory.
bool interpret_node(const Node *node, const double *const *inputs, double *const *outputs, const Allocator *allocator);

#endif
