// The cost of a step with leaves on many ranks, from the times of its functions and the messages of its exchanges.
//
// A rank has one processor, which computes, adds and posts messages, and one link, which sends and receives at the same
// time. All ranks are as busy as the busiest one.
#ifndef NGRAD_FRONTEND_API_SCALE_MODEL_H
#define NGRAD_FRONTEND_API_SCALE_MODEL_H

#include "backends/codegen/leaves/leaves.h"
#include "ir/support/memory.h"

typedef struct Network {
  double latency_ms;    // of a message
  double overhead_ms;   // from the beginning of a message to that of the next one
  double nbytes_per_ms; // each way
  double added_per_ms;  // bytes of sums
} Network;

typedef struct ModelStep {
  const struct ngrad_step *step;
  const double *common_ms, *leaf_ms; // by stage
  const double *ready_ms;            // by bucket, stage after stage: since the beginning of the leaf's function
  size_t nbuckets;                   // of all stages
} ModelStep;

typedef enum Scheme {
  SCHEME_OWN,  // what a run does
  SCHEME_RING, // a ring all-reduce of each bucket, whose sums depend on the number of ranks
  SCHEME_COUNT
} Scheme;

typedef struct ModelCost { // milliseconds of a step
  double step;
  double leaves;    // what the leaves take if all ranks have as many
  double imbalance; // more, as some have more than others
  double common;    // what each rank computes for all leaves
  double additions;
  double latency, bandwidth; // exchanges that no computing hides
} ModelCost;

// The cost of a step by `count` ranks, whose load is step_find_load's. The numbers of leaves are those of the load's
// step. False: out of memory.
bool model_cost(const ModelStep *m, int64_t count, const StepLoad *load, const StepExchange *exchanges, Scheme scheme,
                const Network *network, const Allocator *a, ModelCost *cost);

#endif
