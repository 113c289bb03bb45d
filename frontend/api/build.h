// From a graph and options to kernels: the steps shared by compiling, emitting and showing.
#ifndef NGRAD_FRONTEND_API_BUILD_H
#define NGRAD_FRONTEND_API_BUILD_H

#include "backends/codegen/codegen.h"
#include "backends/codegen/isa.h"
#include "frontend/api/handles.h"
#include "ir/loops/target.h"
#include "passes/costs/costs.h"
#include "passes/pipeline.h"
#include "passes/schedule/overrides.h"

enum { MOST_TARGETS = 8 };

typedef struct Build Build;
struct Build {
  ng_graph *owner;
  const Isa *isa; // named by the options, or this machine's best
  ScheduleOverrides overrides;
  Costs costs;
  PassContext passes;
  const ng_options *options; // during build_graph
  size_t npassed;            // passes that have run
  Graph *graph;              // the result of the passes on a clone of the owner's graph; refers to the owner's memory
  bool is_portable;          // scheduled for any machine, not for this one
  Target targets[MOST_TARGETS];
  Program *programs[MOST_TARGETS]; // parallel to targets
  size_t nprograms;
  Program *program; // for `isa`; NULL before build_kernels
};

// Checks the options (NULL: defaults), binds the graph and runs the passes on a clone of it. build_deinit must follow,
// also after a failure.
ng_status build_graph(Build *b, ng_graph *g, const ng_options *options);
// build_graph for a part of g's graph. All extents of the part must have numbers, and the part must outlive the build.
ng_status build_graph_of(Build *b, ng_graph *g, const Graph *part, const ng_options *options);
// build_graph for `open`, a graph made from g's that may have open dims (ir/graph/open_dims.h) and must outlive the
// build. The schedule is for any machine: it does not depend on this machine's caches. The options' isa is ignored.
ng_status build_portable_graph(Build *b, ng_graph *g, const Graph *open, const ng_options *options);
// Lowers the graph to a program for an instruction set. The build owns the program, and returns the same program for
// instruction sets with equal scheduling parameters.
ng_status build_program(Build *b, const Isa *isa, Program **program);
ng_status build_kernels(Build *b); // sets b->program
// build_graph_of and build_kernels, to be compiled and run on this machine, in the memory that may be used.
bool options_want_size(const ng_options *options); // options->optimize
ng_status build_to_run(Build *b, ng_graph *g, const Graph *part, const ng_options *options);
// The status of a build whose trees are not there: NG_WRONG, with a message, if they are unsound, a bug in ngrad.
ng_status build_failed_status(ng_context *ctx, const Program *p);
// Compiles the build's program to machine code.
ng_status build_compile(const Build *b, Compiled **compiled, CompileTimes *times);
void build_deinit(Build *b);

#endif
