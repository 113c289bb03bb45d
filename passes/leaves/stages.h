// Cuts a graph with leaves (ir/graph/leaves.h) into graphs without leaves: the functions of a step (ir/leaves/step.h).
//
// A value's level is the largest number of AllReduces on a path to it. Stage k computes the values of level k: first,
// once, the values that are the same in all leaves and that some leaf needs; then, for each leaf, the values that
// differ between leaves; then the AllReduces of these. The last stage computes all other common values, outputs and
// updates of states.
#ifndef NGRAD_PASSES_LEAVES_STAGES_H
#define NGRAD_PASSES_LEAVES_STAGES_H

#include "ir/graph/graph.h"
#include "ir/leaves/step.h"

typedef struct Stages {
  Arena arena;
  struct ngrad_step step; // without buckets' parts, scratch_nbytes, and the data of numbers
  Graph **functions;      // by number; each refers to the graph, which must outlive them
  size_t nfunctions;
  const Value **numbers;      // the constants that are step.numbers
  struct ngrad_stage *stages; // step.stages, while it is built
} Stages;

// AllReduces exchange tensors in buckets of at least bucket_nbytes, except a stage's last bucket. All extents of the
// graph are numbers. False after reporting an error; stages_free follows in any case.
bool stages_cut(Stages *s, const Graph *g, size_t bucket_nbytes, Diagnostics *d);
void stages_free(Stages *s);

#endif
