// The pipeline: passes over the graph in their order, then the graph as kernels.
#ifndef NGRAD_PASSES_PIPELINE_H
#define NGRAD_PASSES_PIPELINE_H

#include "ir/kernel/program.h"
#include "passes/pass.h"

extern const Pass passes[];
extern const size_t npasses;

// Runs the graph passes, verifying after each that changed something; a graph that no longer verifies is printed to
// stderr and aborts the program, for it is a mistake in a pass. False when one failed.
bool pipeline_run(Graph *g, PassContext *c);

// A graph that pipeline_run has taken through all passes, to c->partition, as kernels scheduled for c->target. They are
// in an arena of their own that refers to g, which must outlive them. All extents must have numbers. NULL after telling
// why.
Program *pipeline_lower(Graph *g, PassContext *c);

#endif
