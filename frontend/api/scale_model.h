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
  double overhead_ms;   // from the beginning of a message to the beginning of the next
  double nbytes_per_ms; // in each direction
  double added_per_ms;  // bytes of sums
} Network;

typedef struct ModelStep {
  const struct ngrad_step *step;
  const double *common_ms, *leaf_ms; // by stage
  const double *ready_ms;            // by bucket, stage after stage: time since the beginning of the leaf's function
  size_t nbuckets;                   // of all stages
} ModelStep;

typedef enum Scheme {
  SCHEME_OWN,  // as a run does it
  SCHEME_RING, // a ring all-reduce of each bucket, whose bits depend on the number of ranks
  SCHEME_COUNT
} Scheme;

typedef struct ModelCost { // milliseconds of a step
  double step;
  double leaves;    // the time of the leaves if they were divided evenly
  double imbalance; // the additional time because some ranks have more leaves
  double common;    // the work that each rank does for all leaves
  double additions;
  double latency, bandwidth; // of exchanges, where no computation hides them
} ModelCost;

// The cost of a step on `count` ranks; `load` and `exchanges` are from step_find_load. The load's step has the numbers
// of leaves. False: out of memory.
bool model_cost(const ModelStep *m, int64_t count, const StepLoad *load, const StepExchange *exchanges, Scheme scheme,
                const Network *network, const Allocator *a, ModelCost *cost);

#endif
