// Reference results of a graph's outputs, for comparing and for self-tests.
//
// The interpreter does not round between nodes. Compiled code rounds a value to its declared type where a kernel stores
// the value for another kernel. This can change outputs of narrow types by more than their tolerances; an example is
// the softmax of bf16 scores. Hence a second reference: the compiled graph, interpreted with the roundings of its
// kernels. It is valid if the compiled graph without roundings gives the exact results, up to rounding errors.
#ifndef NGRAD_FRONTEND_API_REFERENCE_H
#define NGRAD_FRONTEND_API_REFERENCE_H

#include "backends/interpreter/magnitude.h"

// The graph after passes, and the types in which compiled code computes its nodes.
typedef struct CompiledGraph {
  const Graph *graph; // after all passes; same inputs and outputs as the graph that was read
  const Type *types;  // by node->index; NULL: unknown
} CompiledGraph;

typedef struct Reference { // members by output
  Tensor *exact;           // the interpreter's results
  double *magnitudes;      // of each output: see interpret_magnitudes
  Movement *movements;     // of each output: see interpret_movements; NULL: unknown
  Tensor *rounded;         // the interpreter's results with the kernels' roundings
  bool *is_rounded;        // `rounded` is valid: without roundings, the compiled graph gives the exact results
} Reference;

// Sets the last two members, in the arena, from the others. g is bound. by NULL: the kernels are unknown, and each node
// counts as a kernel. False: as interpret.
bool reference_round(Reference *r, const Graph *g, const CompiledGraph *by, const Tensor *inputs, Arena *arena,
                     Diagnostics *d);

#endif
