// The costs by which passes decide: costs.def has a row for each.
//
// Passes read them from Kernel.costs or PassContext.costs, never from the table, so that `--cost NAME=VALUE` changes
// one compilation.
#ifndef NGRAD_PASSES_COSTS_COSTS_H
#define NGRAD_PASSES_COSTS_COSTS_H

#include "ir/support/diagnostics.h"

#include <stdint.h>

typedef struct Costs {
#define COST(name, ...) int64_t name;
#include "passes/costs/costs.def"
#undef COST
} Costs;

extern const Costs usual_costs; // the table's values

typedef struct CostInfo { // a row of the table
  const char *name;
  size_t offset; // in Costs
  int64_t value, least, most;
  const char *unit, *decides, *graph, *what;
  const char *measured; // NULL: nothing is recorded
} CostInfo;
extern const CostInfo cost_table[];
extern const size_t ncosts;

enum { MOST_DIVISORS = 1 << 12 }; // tried as lengths of blocks: limits the time of compiling

// Parses "name=number". False: the diagnostics say what is wrong.
bool cost_override(Costs *costs, const char *setting, Diagnostics *d);

static inline const Costs *costs_or_usual(const Costs *costs) {
  return costs ? costs : &usual_costs;
}

#endif
