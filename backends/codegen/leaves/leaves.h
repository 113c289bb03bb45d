// Running a step of a graph with leaves (ir/leaves/step.h) with compiled functions.
#ifndef NGRAD_BACKENDS_CODEGEN_LEAVES_LEAVES_H
#define NGRAD_BACKENDS_CODEGEN_LEAVES_LEAVES_H

#include "backends/codegen/codegen.h"
#include "ir/leaves/step.h"
#include "ir/support/memory.h"

// The parts of a profiled run of the leaves' function (Watch) behind which what leaves share in each bucket is
// complete and no longer read, by bucket; SIZE_MAX: only its end is.
void step_find_parts(const struct ngrad_stage *stage, const Program *leaf, size_t *parts);

typedef enum StepStatus { STEP_DONE, STEP_OUT_OF_MEMORY, STEP_RANKS_FAILED } StepStatus;

size_t step_nbytes(const struct ngrad_step *step, const struct ngrad_ranks *ranks); // of the memory that a run needs
// Runs the step. Those functions that leaves call are compiled with is_profiled. `ranks` NULL: one process has all
// leaves. Of inputs with an axis of leaves, those are given that the rank has. `memory` is aligned to 64 bytes.
StepStatus step_run(const struct ngrad_step *step, const struct ngrad_ranks *ranks, Compiled *const *functions,
                    const void *const *inputs, void *const *outputs, int threads, void *memory);
int64_t step_first_leaf(int64_t nleaves, int64_t rank, int64_t count); // of the rank; of rank `count`, nleaves

// What a run exchanges

typedef struct StepMessages { // in a phase of the exchange of a bucket: the most of any rank
  uint64_t nbytes, count;     // sent or received, whichever is more
} StepMessages;

typedef struct StepExchange {
  StepMessages pieces, results;
  uint64_t nrounds;      // messages of a phase that wait for each other
  uint64_t nbytes_added; // by a rank to its own pieces, or divided
} StepExchange;

typedef struct StepLoad {
  int64_t most_leaves, most_pieces;  // of a rank
  int64_t additions, last_additions; // of leaves, by a rank with most leaves; of them, with its last leaf
  uint64_t nbytes_sent, nbytes_received, nmessages; // by a rank in a step: the most of any
  uint64_t all_nbytes, all_messages;                // sent by all ranks
} StepLoad;

// Fills in the load of a step by `count` ranks, and by bucket, stage after stage, the exchanges. False: out of memory.
bool step_find_load(const struct ngrad_step *step, int64_t count, const Allocator *a, StepLoad *load,
                    StepExchange *exchanges);

// Times

typedef struct StepTimes { // milliseconds
  double *functions;       // by number
  double *buckets;         // by bucket, stage after stage: since the beginning of the leaf's function
} StepTimes;

// Runs the step as if it had one leaf, and keeps the times of those functions that took less than they did before. What
// the inputs with an axis of leaves have is one leaf's part.
StepStatus step_time(const struct ngrad_step *step, Compiled *const *functions, const void *const *inputs,
                     void *const *outputs, int threads, void *memory, const StepTimes *times);
size_t step_time_nbytes(const struct ngrad_step *step); // of its memory

// Adds numbers as a run does, to so many bytes.
void step_add(float *a, const float *b, size_t nbytes);

#endif
