// Cuts a graph with leaves (ir/graph/leaves.h) into graphs without: the functions of a step (ir/leaves/step.h).
//
// A value's level is the most AllReduces on a path to it. Stage k computes once, of level k, what all leaves have in
// common and some leaf needs, then for each leaf what it has of its own, and then the AllReduces of that. The last
// stage has what else is common, outputs and updates of states.
#ifndef NGRAD_PASSES_LEAVES_STAGES_H
#define NGRAD_PASSES_LEAVES_STAGES_H

#include "ir/graph/graph.h"
#include "ir/leaves/step.h"

typedef struct Stages {
  Arena arena;
  struct ngrad_step step; // but for buckets' parts, scratch_nbytes, and the data of numbers
  Graph **functions;      // by their number; each refers to the graph, which must outlive them
  size_t nfunctions;
  const Value **numbers;      // the constants that are step.numbers
  struct ngrad_stage *stages; // step.stages, to be filled
} Stages;

// Shared tensors are exchanged in buckets of at least bucket_nbytes, as far as there are so many. The graph's extents
// all have numbers. False after reporting why not; stages_free follows in any case.
bool stages_cut(Stages *s, const Graph *g, size_t bucket_nbytes, Diagnostics *d);
void stages_free(Stages *s);

#endif
