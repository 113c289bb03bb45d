// Kernels of graphs with leaves: compiled functions, and the step that calls them (ir/leaves/step.h).
#ifndef NGRAD_FRONTEND_API_STAGED_H
#define NGRAD_FRONTEND_API_STAGED_H

#include "backends/codegen/leaves/leaves.h"
#include "frontend/api/build.h"
#include "passes/leaves/stages.h"

// Bytes that leaves share and that go to other ranks together, at least: so many that the time of a message is small
// beside theirs, and so few that the first can leave while the gradient of earlier layers is computed.
enum { BUCKET_NBYTES = 4 << 20 };

typedef struct Staged {
  Stages stages;
  Graph *graph;         // that was cut
  Graph **graphs;       // by function: what was compiled, which has the constants that it reads
  Compiled **functions; // likewise
  size_t *parts;        // by bucket of the stage at hand
  ng_kernel_info info;
  _Atomic(void *) spare; // memory of a run of one process that no run is using, or NULL
} Staged;

// Compiles a bound graph with leaves. staged_free follows in any case.
ng_status staged_compile(Staged *s, ng_graph *g, const ng_options *options);
// A run of it by the rank; `ranks` NULL: all leaves are here.
ng_status staged_run(Staged *s, ng_context *ctx, void *const *inputs, void *const *outputs, int threads,
                     const ng_ranks *ranks);
void staged_free(Staged *s, ng_context *ctx);
// The extents of its tensors that a rank gives: for an input with an axis of leaves, its own ones.
void staged_own_extents(const Graph *g, const ng_ranks *ranks, Tensor *tensors);

#endif
