// From a graph and options to kernels: the way that compiling, emitting and showing have in common.
#ifndef NGRAD_FRONTEND_API_BUILD_H
#define NGRAD_FRONTEND_API_BUILD_H

#include "backends/codegen/isa.h"
#include "frontend/api/handles.h"
#include "ir/loops/target.h"
#include "passes/pipeline.h"
#include "passes/schedule/schedule.h"

enum { MOST_TARGETS = 8 };

typedef struct Build {
  ng_graph *owner;
  const Isa *isa; // that the options name, or this machine's best
  ScheduleOverrides overrides;
  PassContext passes;
  const ng_options *options; // during build_graph
  size_t npassed;            // passes that have run
  Graph *graph;              // what the passes made of a clone of the owner's graph; it refers to the owner's
  bool is_portable;          // for any machine rather than for this one
  Target targets[MOST_TARGETS];
  Program *programs[MOST_TARGETS]; // parallel to targets
  size_t nprograms;
  const Program *program; // for `isa`; NULL before build_kernels
} Build;

// Checks the options (NULL: defaults), binds the graph and takes a clone of it through the passes. Whatever it returns,
// build_deinit must follow.
ng_status build_graph(Build *b, ng_graph *g, const ng_options *options);
// The same with a part of g's graph, all of whose extents have numbers; it must outlive the build.
ng_status build_graph_of(Build *b, ng_graph *g, const Graph *part, const ng_options *options);
// The same with a graph of g's that may have open dims (ir/graph/open.h), which must outlive the build, and for any
// machine rather than for this one, whose caches it must not depend on. The options' isa is not looked at.
ng_status build_portable_graph(Build *b, ng_graph *g, const Graph *open, const ng_options *options);
// The graph as a program for an instruction set. The build keeps it, and gives it again for another with the same
// numbers.
ng_status build_program(Build *b, const Isa *isa, const Program **program);
ng_status build_kernels(Build *b); // sets b->program
void build_deinit(Build *b);

#endif
