// Passes over a graph, and the context that their caller provides.
#ifndef NGRAD_PASSES_PASS_H
#define NGRAD_PASSES_PASS_H

#include "ir/graph/fold.h"
#include "ir/graph/partition.h"
#include "ir/loops/target.h"

struct ScheduleOverrides; // passes/schedule/overrides.h
struct Costs;             // passes/costs/costs.h
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
  const struct Costs *costs;                 // NULL: usual_costs
  const char *const *disabled;               // names of passes and rules to skip
  size_t ndisabled;
  const char *after;   // the last pass to run; NULL: run all
  Evaluator *evaluate; // NULL: constants are not folded
  // Called after each pass. NULL: not called.
  void (*watch)(void *watcher, const Graph *g, const char *pass, bool changed, double milliseconds);
  void *watcher;
  uint64_t memory_nbytes; // the most bytes of a program's workspace; 0: no limit
  bool no_fuse;           // each node becomes a kernel of its own
  Partition *partition;   // the result of pass fuse, in the graph's arena; NULL: fuse has not run
  bool fast_math;         // allows rewrites that do not hold for every IEEE value
  bool failed;            // a pass ran out of memory, or reported an error in diagnostics
} PassContext;

typedef struct Pass {
  const char *name;
  bool (*run)(Graph *g, PassContext *c); // true: the graph changed
  const char *doc;                       // one line
  const Rules *rules;                    // the rewrite rules that the pass applies; NULL: none
  bool is_needed;                        // lowering relies on the pass: it runs even if disabled
} Pass;

// Reports out of memory and sets `failed`. Returns false.
bool pass_out_of_memory(PassContext *c);

// Aborts with the text `why` if a verifier rejects the result of a pass, which is a bug in ngrad. Frees `why`. False
// after reporting that the verifier ran out of memory.
bool pass_require(PassContext *c, bool is_sound, Text *why);

// Whether the context disables the pass or rule of this name.
bool pass_is_disabled(const PassContext *c, const char *name);

#endif
