// The pipeline: passes over the graph in their order, then the graph as kernels.
#ifndef NGRAD_PASSES_PIPELINE_H
#define NGRAD_PASSES_PIPELINE_H

#include "ir/graph.h"
#include "ir/kernel.h"
#include "ir/target.h"
#include "passes/schedule.h"

typedef struct Rule Rule; // passes/rewrite.h
typedef struct Rules {
  const Rule *items;
  size_t count;
} Rules;

typedef struct PassContext {
  Diagnostics *diagnostics;
  const Allocator *allocator;
  const Target *target;
  const ScheduleOverrides *overrides; // NULL: none
  const char *const *disabled;        // names of passes and rules to leave out
  size_t ndisabled;
  const char *after; // stop after this pass; NULL: go through all
  // What one node makes of f64 arrays, parallel to its operands; false: out of memory. NULL: nothing is folded.
  bool (*evaluate)(const Node *node, const double *const *inputs, double *const *outputs, const Allocator *allocator);
  // Called after each pass, with the time it took. NULL: nobody watches.
  void (*watch)(void *watcher, const Graph *g, const char *pass, bool changed, double milliseconds);
  void *watcher;
  bool no_fuse;
  bool fast_math; // rewrites that do not hold for every IEEE value are allowed
  bool failed;    // a pass could not do its work: out of memory, or told in diagnostics
} PassContext;

typedef struct Pass {
  const char *name;
  bool (*run)(Graph *g, PassContext *c); // true: the graph changed
  const char *doc;                       // one line
  const Rules *rules;                    // that it applies; NULL: none
} Pass;

extern const Pass passes[];
extern const size_t npasses;

// Whether the context names a pass or a rule among those to leave out.
bool pass_is_disabled(const PassContext *c, const char *name);

// Runs the graph passes, verifying after each that changed something; a graph that no longer verifies is printed to
// stderr and aborts the program, for it is a mistake in a pass. False when one failed.
bool pipeline_run(Graph *g, PassContext *c);

// The graph as scheduled kernels, in an arena of their own that refers to g's values: g must outlive them.
// All extents must have numbers. NULL when out of memory, or after telling why.
Program *pipeline_lower(Graph *g, PassContext *c);

#endif
