// Mixed precision: products and convolutions take operands of bf16 or f16, and the backward pass reads activations of
// that type; all else is computed in f32. The pass writes this into a graph as TypeCasts, and changes the types of some
// values.
#ifndef NGRAD_PASSES_TRAIN_MIXED_PRECISION_H
#define NGRAD_PASSES_TRAIN_MIXED_PRECISION_H

#include "passes/gradient/gradient.h"

typedef struct MixedPrecision {
  Type type;              // of narrow values: TYPE_BF16 or TYPE_F16; TYPE_NONE: all values keep their types
  const bool *stays_wide; // by OperatorId: the operator reads and makes f32, whatever its class; NULL: none
} MixedPrecision;

// What becomes of an operator's values of f32.
typedef enum PrecisionClass {
  PRECISION_COMPUTES, // read and made as f32; those kept for the backward pass are rounded
  PRECISION_NARROW,   // operands are rounded, and summed in f32
  PRECISION_WIDE,     // read and made as f32; kept as f32, too
  PRECISION_FOLLOWS   // the results are operands' elements: narrow if all that read them round them
} PrecisionClass;
extern const PrecisionClass precision_classes[];

// Marks the values of a forward graph, by index, that may be rounded for the backward pass: floating-point results that
// change with the data, except single numbers, statistics, results of reductions, and what an operator of
// PRECISION_WIDE reads or makes. False: out of memory.
bool mixed_find_kept(const Graph *forward, const MixedPrecision *mixed, bool *is_kept);

// Rewrites a graph whose nodes are in topological order, those from first_backward on being the backward pass. is_kept
// marks, by index, the values that mixed_find_kept found in their forward graph: nodes of the backward pass read them
// rounded, and the graph's outputs from first_saved on, up to its updates, become narrow. Leaves the graph unsorted.
// False after reporting an error.
bool mixed_rewrite(Graph *g, const MixedPrecision *mixed, size_t first_backward, size_t first_saved,
                   const bool *is_kept, Diagnostics *d);

// Rewrites a gradient graph that graph_gradient made; its inputs that were activations become narrow. False after
// reporting an error.
bool mixed_gradient(Graph *backward, const Graph *forward, const GradientEnds *ends, const MixedPrecision *mixed,
                    Diagnostics *d);
// Rewrites a forward graph that graph_with_saved made beside a graph from mixed_gradient. False after reporting an
// error.
bool mixed_forward(Graph *saving, const Graph *forward, const Graph *backward, const GradientEnds *ends,
                   const MixedPrecision *mixed, Diagnostics *d);

#endif
