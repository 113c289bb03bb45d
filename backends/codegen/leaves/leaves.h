// Runs a step of a graph with leaves (ir/leaves/step.h) with compiled functions.
#ifndef NGRAD_BACKENDS_CODEGEN_LEAVES_LEAVES_H
#define NGRAD_BACKENDS_CODEGEN_LEAVES_LEAVES_H

#include "backends/codegen/codegen.h"
#include "ir/leaves/step.h"
#include "ir/support/memory.h"

// By bucket: the part (Watch) of a profiled run of the leaves' function after which the bucket's tensors are complete
// and no longer read; SIZE_MAX: not before the function's end.
void step_find_parts(const struct ngrad_stage *stage, const Program *leaf, size_t *parts);

typedef enum StepStatus { STEP_DONE, STEP_OUT_OF_MEMORY, STEP_RANKS_FAILED } StepStatus;

size_t step_nbytes(const struct ngrad_step *step, const struct ngrad_ranks *ranks); // of the memory of a run
// Runs the step. The leaves' functions are compiled with is_profiled. `ranks` NULL: one process has all leaves. Inputs
// with an axis of leaves have only the rank's leaves. `memory` is aligned to 64 bytes.
StepStatus step_run(const struct ngrad_step *step, const struct ngrad_ranks *ranks, Compiled *const *functions,
                    const void *const *inputs, void *const *outputs, int threads, void *memory);
int64_t step_first_leaf(int64_t nleaves, int64_t rank, int64_t count); // for rank == count: nleaves

// What a run exchanges

typedef struct StepMessages { // in a phase of a bucket's exchange: the most of any rank
  uint64_t nbytes, count;     // sent or received, whichever is more
} StepMessages;

typedef struct StepExchange {
  StepMessages subtrees, results;
  uint64_t nrounds;      // rounds of messages in a phase, one after the other
  uint64_t nbytes_added; // bytes that a rank adds to its own subtrees, or divides
} StepExchange;

typedef struct StepLoad {
  int64_t most_leaves, most_subtrees;               // the most that a rank has
  int64_t additions, last_additions;                // of leaves, by a rank with most leaves: all; for its last leaf
  uint64_t nbytes_sent, nbytes_received, nmessages; // in a step: the most of any rank
  uint64_t all_nbytes, all_messages;                // sent by all ranks together
} StepLoad;

// Fills in the load of a step on `count` ranks, and the exchange of each bucket, stage after stage. False: out of
// memory.
bool step_find_load(const struct ngrad_step *step, int64_t count, const Allocator *a, StepLoad *load,
                    StepExchange *exchanges);

// Times

typedef struct StepTimes { // milliseconds
  double *functions;       // by number
  double *buckets;         // by bucket, stage after stage: from the beginning of the leaf's function
} StepTimes;

// Runs the step as if it had one leaf, and lowers `times` of the functions that were faster than before. Inputs with an
// axis of leaves have one leaf.
StepStatus step_time(const struct ngrad_step *step, Compiled *const *functions, const void *const *inputs,
                     void *const *outputs, int threads, void *memory, const StepTimes *times);
size_t step_time_nbytes(const struct ngrad_step *step); // the bytes of `memory`

// a[i] += b[i] in nbytes of each, by the function that a run uses.
void step_add(float *a, const float *b, size_t nbytes);

#endif
