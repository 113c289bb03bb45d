// The pipeline: runs the passes over a graph, then lowers the graph to scheduled kernels.
#ifndef NGRAD_PASSES_PIPELINE_H
#define NGRAD_PASSES_PIPELINE_H

#include "ir/kernel/program.h"
#include "passes/pass.h"

extern const Pass passes[];
extern const size_t npasses;

// Runs the graph passes, and verifies the graph after each pass that changed it. An invalid graph is a bug in a pass:
// the errors are printed to stderr and the program aborts. False if a pass failed.
bool pipeline_run(Graph *g, PassContext *c);

// Lowers a graph, after pipeline_run, to kernels scheduled for c->target. The program has its own arena and refers to
// g, which must outlive it. All extents must have numbers. NULL after reporting an error.
Program *pipeline_lower(Graph *g, PassContext *c);

// Builds the trees of the program's loops, which printers and executors need, unless they are built.
// has_optional_outputs: a call may leave out outputs, so the trees test which ones are wanted. False: out of
// memory, or p->unsound says why a tree is not sound: it does not pass loops_verify, or a run proves that it does not
// compute its kernel, which is a bug in passes/schedule.
bool pipeline_build_trees(Program *p, bool has_optional_outputs);

#endif
