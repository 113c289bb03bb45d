// Kernels of graphs with leaves: compiled functions, and the step that calls them (ir/leaves/step.h).
#ifndef NGRAD_FRONTEND_API_LEAF_KERNEL_H
#define NGRAD_FRONTEND_API_LEAF_KERNEL_H

#include "backends/codegen/leaves/leaves.h"
#include "frontend/api/build.h"
#include "passes/leaves/stages.h"

// The least bytes of a bucket, the data of leaves that goes to other ranks in one message. A larger bucket makes the
// time for a message's latency negligible; a smaller one leaves earlier, while gradients of earlier layers are
// computed.
enum { BUCKET_NBYTES = 4 << 20 };

typedef struct Staged {
  Stages stages;
  Graph *graph;         // the graph that was divided
  Graph **graphs;       // by function: the compiled graph, which owns the constants that the function reads
  Compiled **functions; // by function
  size_t *parts;        // by bucket of the current stage
  ng_kernel_info info;
  _Atomic(void *) spare; // memory for a run of one process, if no run uses it; else NULL
} Staged;

// Compiles a bound graph with leaves. staged_free must follow, also after a failure.
ng_status staged_compile(Staged *s, ng_graph *g, const ng_options *options);
// Runs the step as one rank; `ranks` NULL: this process has all leaves.
ng_status staged_run(Staged *s, ng_context *ctx, void *const *inputs, void *const *outputs, int threads,
                     const ng_ranks *ranks);
void staged_free(Staged *s, ng_context *ctx);
// Sets the extents that this rank's tensors have: inputs with an axis of leaves have only the rank's own leaves.
void staged_own_extents(const Graph *g, const ng_ranks *ranks, Tensor *tensors);

#endif
