// From a graph and options to kernels: the way that compiling, emitting and showing have in common.
#ifndef NGRAD_FRONTEND_API_BUILD_H
#define NGRAD_FRONTEND_API_BUILD_H

#include "backends/codegen/isa.h"
#include "frontend/api/handles.h"
#include "passes/pipeline.h"
#include "passes/schedule/schedule.h"

typedef struct Build {
  ng_graph *owner;
  const Isa *isa;
  Target target;
  ScheduleOverrides overrides;
  PassContext passes;
  const ng_options *options; // during build_graph
  size_t npassed;            // passes that have run
  Graph *graph;              // what the passes made of a clone of the owner's graph; it refers to the owner's
  Program *program;          // NULL before build_kernels
} Build;

// Checks the options (NULL: defaults), binds the graph and takes a clone of it through the passes. Whatever it returns,
// build_deinit must follow.
ng_status build_graph(Build *b, ng_graph *g, const ng_options *options);
// The same with a graph of g's that may have open dims (ir/graph/open.h), which must outlive the build, and for any
// machine rather than for this one, whose caches it must not depend on.
ng_status build_portable_graph(Build *b, ng_graph *g, const Graph *open, const ng_options *options);
ng_status build_kernels(Build *b);
void build_deinit(Build *b);

#endif
