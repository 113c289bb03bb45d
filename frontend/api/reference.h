// What is right of a graph's outputs, for comparing and for self-tests.
//
// The interpreter rounds nothing between nodes. Compiled code rounds a value to its declared type where a kernel stores
// it for another one, which can change outputs of narrow types by more than their tolerances: a softmax of scores in
// bf16, say. So there is a second right result: that of the graph that was compiled, interpreted with the roundings of
// its kernels. As long as that graph means the same as the one that was read, up to rounding errors.
#ifndef NGRAD_FRONTEND_API_REFERENCE_H
#define NGRAD_FRONTEND_API_REFERENCE_H

#include "backends/interpreter/magnitude.h"

// What became kernels.
typedef struct CompiledGraph {
  const Graph *graph;        // after all passes; its inputs and outputs are those of the graph that was read
  const NodeKernel *kernels; // by node->index; NULL: not known
} CompiledGraph;

typedef struct Reference { // members by output
  Tensor *exact;           // the interpreter's results
  double *magnitudes;      // and how far rounding errors move them
  Movement *movements;     // likewise; NULL: not known
  Tensor *rounded;         // the results with the roundings of kernels
  bool *is_rounded;        // they are right: without roundings, the compiled graph has the exact ones
} Reference;

// Sets the last two, in the arena, by the first ones. g is bound; by NULL: it is not known what became kernels, and
// each node counts as one. False: as interpret.
bool reference_round(Reference *r, const Graph *g, const CompiledGraph *by, const Tensor *inputs, Arena *arena,
                     Diagnostics *d);

#endif
