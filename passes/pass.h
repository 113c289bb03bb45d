// What a pass over a graph is, and what it gets from outside of the graph.
#ifndef NGRAD_PASSES_PASS_H
#define NGRAD_PASSES_PASS_H

#include "ir/graph/partition.h"
#include "ir/loops/target.h"

struct ScheduleOverrides; // passes/schedule/schedule.h
typedef struct Rule Rule; // passes/rewrite/rewrite.h
typedef struct Rules {
  const Rule *items;
  size_t count;
} Rules;

typedef struct PassContext {
  Diagnostics *diagnostics;
  const Allocator *allocator;
  const Target *target;
  const struct ScheduleOverrides *overrides; // NULL: none
  const char *const *disabled;               // names of passes and rules to leave out
  size_t ndisabled;
  const char *after; // stop after this pass; NULL: go through all
  // What one node makes of f64 arrays, parallel to its operands; false: out of memory. NULL: nothing is folded.
  bool (*evaluate)(const Node *node, const double *const *inputs, double *const *outputs, const Allocator *allocator);
  // Called after each pass, with the time it took. NULL: nobody watches.
  void (*watch)(void *watcher, const Graph *g, const char *pass, bool changed, double milliseconds);
  void *watcher;
  bool no_fuse;
  Partition *partition; // that fuse made, in the graph's arena; NULL: it has not run
  bool fast_math;       // rewrites that do not hold for every IEEE value are allowed
  bool failed;          // a pass could not do its work: out of memory, or told in diagnostics
} PassContext;

typedef struct Pass {
  const char *name;
  bool (*run)(Graph *g, PassContext *c); // true: the graph changed
  const char *doc;                       // one line
  const Rules *rules;                    // that it applies; NULL: none
  bool is_needed;                        // by lowering: the pass runs even when it is disabled
} Pass;

// Tells that a pass is out of memory, and sets `failed`. Returns false.
bool pass_out_of_memory(PassContext *c);

// Ends the program with `why` where what a pass made is not sound: that is a mistake in ngrad. Frees `why`. False: out
// of memory while finding out, which is told.
bool pass_require(PassContext *c, bool is_sound, Text *why);

// Whether the context names a pass or a rule among those to leave out.
bool pass_is_disabled(const PassContext *c, const char *name);

#endif
