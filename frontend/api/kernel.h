// A compiled kernel as a handle, for the files that run and time it.
#ifndef NGRAD_FRONTEND_API_KERNEL_H
#define NGRAD_FRONTEND_API_KERNEL_H

#include "backends/codegen/codegen.h"
#include "frontend/api/handles.h"
#include "frontend/api/profile.h"
#include "frontend/api/reference.h"
#include "frontend/api/staged.h"
#include "ir/operators/indices.h"

enum { MOST_THREADS = 1024 };

struct ng_kernel {
  ng_context *ctx;
  Graph *graph;           // what was compiled, which has the constants that `compiled` reads
  CompiledGraph rounding; // the same with its kernels, unless it has leaves
  Compiled *compiled;     // NULL: the graph has leaves
  Staged *staged;         // which are these; NULL: it has none
  Profile *profile;       // NULL: none was asked for
  ng_kernel_info info;
  double operations; // of a run
  char *name;        // the graph's
  Tensor *tensors;   // what inputs and then outputs must be like; no data
  size_t ninputs, noutputs;
  const IndexCheck *checks; // in the graph's arena
  size_t nchecks;
};

// Whether what options ask for can be compiled here, as far as the graph of the build tells.
ng_status kernel_check_options(const Build *b);
// The build's program as machine code.
ng_status kernel_compile(const Build *b, bool is_profiled, Compiled **compiled, CompileTimes *times);
// ng_kernel_run, with compiled_run's watch.
ng_status kernel_run(const ng_kernel *k, const ng_tensor *inputs, const ng_tensor *outputs, int threads, Watch *watch);

#endif
