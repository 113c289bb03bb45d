// A compiled kernel as a handle, for the files that run and time it.
#ifndef NGRAD_FRONTEND_API_KERNEL_H
#define NGRAD_FRONTEND_API_KERNEL_H

#include "backends/codegen/codegen.h"
#include "frontend/api/handles.h"
#include "frontend/api/leaf_kernel.h"
#include "frontend/api/profile.h"
#include "frontend/api/reference.h"
#include "ir/operators/indices.h"

enum { MOST_THREADS = 1024 };

struct ng_kernel {
  ng_context *ctx;
  Graph *graph;           // the compiled graph, which owns the constants that `compiled` reads
  CompiledGraph rounding; // the same graph and its kernels; unset if it has leaves
  Compiled *compiled;     // NULL: the graph has leaves
  Staged *staged;         // the functions of a graph with leaves; NULL: no leaves
  Profile *profile;       // NULL: not requested
  ng_kernel_info info;
  double operations; // in a run
  bool is_fast_math;
  char *name;      // of the graph
  Tensor *tensors; // types, shapes and layouts of inputs, then outputs; no data
  size_t ninputs, noutputs;
  const IndexCheck *checks; // in the graph's arena
  size_t nchecks;
};

typedef struct Build Build; // frontend/api/build.h

// Compiles a build of a graph without leaves to machine code. The caller frees *kernel, also after a failure.
ng_status kernel_of_build(const Build *b, ng_kernel **kernel);

// ng_kernel_run, with the watch of compiled_run.
ng_status kernel_run(const ng_kernel *k, const ng_tensor *inputs, const ng_tensor *outputs, int threads, Watch *watch);

#endif
